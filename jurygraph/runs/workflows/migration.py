"""Migrate a run of schema version 1, a folder of JSON lines, without requests; every reward stays the same to the bit.

Version 1 stored neither tasks nor responses, so the tasks file is needed again; it must be the one that was scored.
"""

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from jurygraph.errors import InputError, JurygraphError, TraceMismatch
from jurygraph.runs.close_record import append_close_record
from jurygraph.runs.progress import ProgressCallback
from jurygraph.runs.run import Run
from jurygraph.runs.store.folder import VERSION_1_FILE
from jurygraph.runs.store.header import Extent, Header
from jurygraph.runs.writable_run import WritableRun
from jurygraph.schema import Audience, Config, EvaluatorRecord, Plan, Trace, digest_of
from jurygraph.sources import TaskSource, read_config


def migrate(old: Path, folder: Path, work: TaskSource, report: ProgressCallback) -> int:
    """Write an old run in the current format into another folder and return its number of traces.

    The old run is left unchanged. `report` receives the number of responses of each group. Raises `InputError` where
    there is no such run, or where the tasks are not those that it scored, and `TraceMismatch` where it was changed.
    """
    try:
        return _write_migrated(old, folder, work, report)
    except JurygraphError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        problem = f"holds what nobody wrote like that ({type(error).__name__}: {error})"
        raise TraceMismatch(f"{old}: {problem}; it has been changed") from error


def _write_migrated(old: Path, folder: Path, work: TaskSource, report: ProgressCallback) -> int:
    old_run = _OldRun(old)
    _refuse_other_files(old, old_run.manifest, work)
    existing = Run.open_if_closed(folder) or WritableRun.open_for_writing(folder)
    if existing is not None:
        existing.close()
        raise InputError(f"{folder}: holds a run already; name another folder with --out")
    plans = old_run.plans()
    run = WritableRun.create(folder, _build_header(old_run, plans, work), uuid.uuid4().hex)
    try:
        scored = _copy_groups(old_run, plans, work, run, report)
        finished = old_run.manifest["done"]["responses"] if old_run.manifest["status"] == "complete" else 0
        if run.ledger.count_records("trace") < finished:
            number = finished - run.ledger.count_records("trace")
            missing = f"{number} of the {finished} traces of this complete run are missing"
            raise TraceMismatch(f"{old}: {missing}; it has been changed")
        if finished and scored == work.extent()[0]:
            append_close_record(run)
        run.ledger.commit()
        return run.ledger.count_records("trace")
    finally:
        run.close()


class _OldRun:
    """A run of version 1: run.json, config.yaml, plans.jsonl and traces.jsonl."""

    def __init__(self, folder: Path) -> None:
        if not (folder / VERSION_1_FILE).is_file():
            raise InputError(f"{folder}: is no run of schema version 1; only such a run is brought over")
        self.folder = folder
        self.manifest: Mapping[str, Any] = _parse_json((folder / VERSION_1_FILE).read_bytes(), folder / VERSION_1_FILE)
        self.config: Config = read_config(folder / "config.yaml")
        settings = self.config.model_dump(mode="json", exclude_unset=True)  # only the settings that existed at the time
        if digest_of(settings) != self.manifest.get("config"):
            raise TraceMismatch(f"{folder / 'config.yaml'}: is not the config of this run; it has been changed")

    def plans(self) -> dict[str, Plan]:
        """Return the plan of each task by id."""
        plans = {}
        for place, line in self._read_lines("plans.jsonl"):
            content = _parse_json(line, place)
            plan: Plan = _parse_model(Plan, json.dumps(content.get("plan")).encode(), place)
            if plan.digest != content.get("digest"):
                raise TraceMismatch(f"{place}: is not the plan that was written; it has been changed")
            plans[plan.task_id] = plan
        return plans

    def traces(self) -> Iterator[Trace]:
        """Yield every trace; each refers to the SHA-256 of the line before it."""
        previous = None
        for place, line in self._read_lines("traces.jsonl"):
            trace: Trace = _parse_model(Trace, line, place)
            if trace.previous != previous:
                raise TraceMismatch(
                    f"{place}: does not follow the line before it; one of them has been changed or lost"
                )
            previous = hashlib.sha256(line).hexdigest()
            yield trace

    def _read_lines(self, name: str) -> Iterator[tuple[str, bytes]]:
        """Yield the place and content of complete lines: a killed run may have left an incomplete one at the end."""
        with (self.folder / name).open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n"):
                    yield f"{self.folder / name}, line {number}", line[:-1]


def _parse_json(content: bytes, place: object) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(content)
        return value
    except ValueError:
        raise TraceMismatch(f"{place}: is no JSON; it has been changed") from None


def _parse_model(noun: type[Any], line: bytes, place: str) -> Any:
    try:
        return noun.model_validate_json(line)
    except ValidationError:
        raise TraceMismatch(f"{place}: is no {noun.__name__.lower()}; it has been changed") from None


def _refuse_other_files(old: Path, manifest: Mapping[str, Any], work: TaskSource) -> None:
    for kind, file in (("tasks", work.tasks), ("responses", work.responses)):
        recorded_digest = (manifest.get(kind) or {}).get("sha256")
        if recorded_digest != (file.sha256 if file else None):
            raise InputError(f"{old}: scored another {kind} file; name the one that it scored")


def _build_header(old_run: _OldRun, plans: Mapping[str, Plan], work: TaskSource) -> Header:
    audiences: dict[str, Audience] = {
        question.evaluator: plan.survey.views[question.view].audience
        for plan in plans.values()
        for question in plan.survey.questions
    }
    specs = [spec for plan in plans.values() for spec in plan.decision.specs]
    derivations = [derivation for plan in plans.values() for derivation in plan.survey.derivations]
    return Header(
        tasks=work.tasks,
        responses=work.responses,
        config=old_run.config,
        evaluators={
            name: EvaluatorRecord(version=version, audience=audiences.get(name, "task"))
            for name, version in old_run.manifest["evaluators"].items()
        },
        derivers={derivation.deriver: derivation.version for derivation in derivations},
        combiners={spec.combiner: spec.version for spec in specs},
        extent=Extent.of(work.extent()),
    )


def _copy_groups(
    old_run: _OldRun, plans: Mapping[str, Plan], work: TaskSource, run: WritableRun, report: ProgressCallback
) -> int:
    """Append all plans, then every complete group; return the number of groups."""
    for task, _ in work.pairs(0, len(plans)):
        run.add_plan(task, plans[task.id])
    traces, scored = old_run.traces(), 0
    for task, responses in work.pairs(0, len(plans)):
        group = list(islice(traces, len(responses)))
        if len(group) < len(responses):
            break
        if {trace.response_id for trace in group} != {response.id for response in responses}:
            raise TraceMismatch(f"{old_run.folder}: the traces of task {task.id!r} are not those of its responses")
        run.ledger.append(*run.group_drafts(plans[task.id], group, responses))
        scored += 1
        report(len(group))
    return scored
