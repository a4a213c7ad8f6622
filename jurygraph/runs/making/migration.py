"""Bringing over a run of schema version 1, a folder of JSON lines: nothing is asked, every reward stays to the bit.

The first form kept no task and no response, so the tasks file is needed again; it must be the one that was scored.
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
from jurygraph.runs.closing import close_record
from jurygraph.runs.progress import Report
from jurygraph.runs.run import Run
from jurygraph.runs.store.folder import FIRST_FORM
from jurygraph.runs.store.header import Extent, Header
from jurygraph.schema import Audience, Config, Plan, Seat, Trace, digest_of
from jurygraph.sources import Work, read_config


def migrate(old: Path, folder: Path, work: Work, report: Report) -> int:
    """Write an old run anew, into another folder; how many traces it has. The old one stays as it is.

    `report` is told how many responses a group had. Raises `InputError` where there is no such run, or the tasks are
    not those that it scored, and `TraceMismatch` where it is not what was written.
    """
    try:
        return _migrated(old, folder, work, report)
    except JurygraphError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        wrong = f"holds what nobody wrote like that ({type(error).__name__}: {error})"
        raise TraceMismatch(f"{old}: {wrong}; it has been changed") from error


def _migrated(old: Path, folder: Path, work: Work, report: Report) -> int:
    first = _FirstForm(old)
    _refuse_other_files(old, first.manifest, work)
    present = Run.complete(folder) or Run.to_write(folder)
    if present is not None:
        present.close()
        raise InputError(f"{folder}: holds a run already; name another folder with --out")
    plans = first.plans()
    run = Run.create(folder, _header(first, plans, work), uuid.uuid4().hex)
    try:
        scored = _copy(first, plans, work, run, report)
        done = first.manifest["done"]["responses"] if first.manifest["status"] == "complete" else 0
        if run.ledger.number("trace") < done:
            lost = f"{done - run.ledger.number('trace')} of the {done} traces of this complete run are missing"
            raise TraceMismatch(f"{old}: {lost}; it has been changed")
        if done and scored == work.extent()[0]:
            close_record(run)
        run.ledger.commit()
        return run.ledger.number("trace")
    finally:
        run.close()


class _FirstForm:
    """run.json, config.yaml, plans.jsonl and traces.jsonl."""

    def __init__(self, folder: Path) -> None:
        if not (folder / FIRST_FORM).is_file():
            raise InputError(f"{folder}: is no run of schema version 1; only such a run is brought over")
        self.folder = folder
        self.manifest: Mapping[str, Any] = _plain((folder / FIRST_FORM).read_bytes(), folder / FIRST_FORM)
        self.config: Config = read_config(folder / "config.yaml")
        stated = self.config.model_dump(mode="json", exclude_unset=True)  # all settings that there were at the time
        if digest_of(stated) != self.manifest.get("config"):
            raise TraceMismatch(f"{folder / 'config.yaml'}: is not the config of this run; it has been changed")

    def plans(self) -> dict[str, Plan]:
        """The plan of each task."""
        plans = {}
        for place, line in self._lines("plans.jsonl"):
            content = _plain(line, place)
            plan: Plan = _read(Plan, json.dumps(content.get("plan")).encode(), place)
            if plan.digest != content.get("digest"):
                raise TraceMismatch(f"{place}: is not the plan that was written; it has been changed")
            plans[plan.task_id] = plan
        return plans

    def traces(self) -> Iterator[Trace]:
        """Every trace; each names the SHA-256 of the line before it."""
        previous = None
        for place, line in self._lines("traces.jsonl"):
            trace: Trace = _read(Trace, line, place)
            if trace.previous != previous:
                raise TraceMismatch(
                    f"{place}: does not follow the line before it; one of them has been changed or lost"
                )
            previous = hashlib.sha256(line).hexdigest()
            yield trace

    def _lines(self, name: str) -> Iterator[tuple[str, bytes]]:
        """Whole lines: a run that was killed may have left a torn one at the end."""
        with (self.folder / name).open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n"):
                    yield f"{self.folder / name}, line {number}", line[:-1]


def _plain(content: bytes, place: object) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(content)
        return value
    except ValueError:
        raise TraceMismatch(f"{place}: is no JSON; it has been changed") from None


def _read(noun: type[Any], line: bytes, place: str) -> Any:
    try:
        return noun.model_validate_json(line)
    except ValidationError:
        raise TraceMismatch(f"{place}: is no {noun.__name__.lower()}; it has been changed") from None


def _refuse_other_files(old: Path, manifest: Mapping[str, Any], work: Work) -> None:
    for what, here in (("tasks", work.tasks), ("responses", work.responses)):
        stated = (manifest.get(what) or {}).get("sha256")
        if stated != (here.sha256 if here else None):
            raise InputError(f"{old}: scored another {what} file; name the one that it scored")


def _header(first: _FirstForm, plans: Mapping[str, Plan], work: Work) -> Header:
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
        config=first.config,
        evaluators={
            name: Seat(version=version, audience=audiences.get(name, "task"))
            for name, version in first.manifest["evaluators"].items()
        },
        derivers={one.deriver: one.version for one in derivations},
        combiners={spec.combiner: spec.version for spec in specs},
        asked=Extent.of(work.extent()),
    )


def _copy(first: _FirstForm, plans: Mapping[str, Plan], work: Work, run: Run, report: Report) -> int:
    """Append all plans, then every group that is whole; how many groups."""
    for task, _ in work.pairs(0, len(plans)):
        run.add_plan(task, plans[task.id])
    traces, scored = first.traces(), 0
    for task, responses in work.pairs(0, len(plans)):
        group = list(islice(traces, len(responses)))
        if len(group) < len(responses):
            break
        if {trace.response_id for trace in group} != {response.id for response in responses}:
            raise TraceMismatch(f"{first.folder}: the traces of task {task.id!r} are not those of its responses")
        run.ledger.append(*run.drafts(plans[task.id], group, responses))
        scored += 1
        report(len(group))
    return scored
