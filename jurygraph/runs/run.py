"""The folder of a run: `run.json`, `config.yaml`, `plans.jsonl`, `traces.jsonl`."""

import io
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from ruamel.yaml import YAML

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.lock import hold
from jurygraph.runs.manifest import Extent, Manifest, Status, differences, now, write_whole
from jurygraph.runs.records import Groups, Record, RecordWriter, Recovered, TornLine, read_records, recover
from jurygraph.schema import Config, Plan, Trace
from jurygraph.sources import nearest, read_config

_MANIFEST, _CONFIG, _PLANS, _TRACES = "run.json", "config.yaml", "plans.jsonl", "traces.jsonl"
_HEADER = "# Every setting of this run, defaults included. A copy: a change here changes nothing.\n"


class Run:
    """A run that exists. `open` is for reading; `at` and `create` are for those who go on to `begin` and `append`.

    A run that is to be written is locked until `release`.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._writer: RecordWriter | None = None
        self._lock: IO[bytes] | None = None

    @classmethod
    def create(cls, folder: Path, manifest: Manifest, config: Config, plans: Iterable[Plan]) -> "Run":
        """Make the run, whole or not at all. The folder must not exist, or be empty."""
        folder = folder.resolve()
        folder.parent.mkdir(parents=True, exist_ok=True)
        there = folder.is_dir()
        # A draft lies on the file system of its run: within a folder that is there, which may be a mount.
        draft = (folder if there else folder.parent) / f".{folder.name}.{os.getpid()}"
        draft.mkdir()
        run = cls(folder, manifest)
        try:
            (draft / _CONFIG).write_text(_HEADER + _yaml(config), encoding="utf-8")
            write_whole(draft / _PLANS, _plan_lines(plans))
            manifest.save(draft / _MANIFEST)
            run._lock = _moved_into(draft, folder) if there else _renamed(draft, folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return run

    @classmethod
    def open(cls, folder: str | Path) -> "Run":
        """The run in a folder. Raises `InputError` where there is none."""
        folder = Path(folder)
        if not (folder / _MANIFEST).is_file():
            state = "holds no run" if folder.is_dir() else "is no folder" if folder.exists() else "does not exist"
            raise InputError(f"{folder}: {state}; name the folder that `jurygraph score --out` made")
        return cls(folder, Manifest.load(folder / _MANIFEST))

    @classmethod
    def at(cls, folder: Path) -> "Run | None":
        """The run in a folder, locked, or None where a new one can be made. Anything else there is refused.

        Raises `InputError` where another process writes it.
        """
        if (folder / _MANIFEST).exists():
            lock = hold(_part(folder, _TRACES))
            try:
                run = cls.open(folder)  # read under the lock: before it, another process may have gone on
            except BaseException:
                lock.close()
                raise
            run._lock = lock
            return run
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder}: is no run, and not empty; name another folder with --out")
        return None

    def config(self) -> Config:
        """The config under which the run was made."""
        config = read_config(_part(self.folder, _CONFIG))
        if config.digest != self.manifest.config:
            raise TraceMismatch(f"{self.folder / _CONFIG}: is not the config of this run; it has been changed")
        return config

    def plans(self) -> dict[str, Plan]:
        """The plan of each task, by the task's id."""
        plans = {}
        with _part(self.folder, _PLANS).open("rb") as file:
            for number, line in enumerate(file, start=1):
                plan = _plan(line)
                if plan is None:
                    raise TraceMismatch(f"{self.folder / _PLANS}, line {number}: is no plan; it has been changed")
                plans[plan.task_id] = plan
        return plans

    def plan_of(self, task_id: str) -> Plan:
        """The plan of one task."""
        plan = self.plans().get(task_id)
        if plan is None:
            raise TraceMismatch(f"{self.folder / _PLANS}: has no plan of task {task_id!r}; lines of it are lost")
        return plan

    def records(self) -> Iterator[Record]:
        """Every whole record, in the order of the tasks. What was torn off at the end is left out.

        Raises `TraceMismatch` at the end where a complete run has fewer than it had.
        """
        count = 0
        with suppress(TornLine):
            for record in read_records(_part(self.folder, _TRACES)):
                yield record
                count += 1
        lost = self.manifest.done.responses - count
        if self.manifest.status == "complete" and lost > 0:
            wrong = f"{lost} of the {self.manifest.done.responses} traces of this complete run are missing"
            raise TraceMismatch(f"{self.folder / _TRACES}: {wrong}; restore the file, or score again")

    def traces(self) -> Iterator[Trace]:
        """Every trace, in the order of the tasks."""
        return (record.trace for record in self.records())

    def find(self, response_id: str) -> Record:
        """The record of one response."""
        known = []
        for record in self.records():
            if record.trace.response_id == response_id:
                return record
            known.append(record.trace.response_id)
        near = nearest(response_id, known) or "`jurygraph show RUN` lists them"
        raise InputError(f"{self.folder}: there is no response {response_id!r}; {near}")

    def refuse_other(self, here: Manifest, config: Config) -> None:
        """Refuse to go on with another config, other files or other evaluators than the run was begun with."""
        found = list(differences(self.manifest, self.config(), here, config))
        if found:
            raise InputError(f"{self.folder}: was begun with other settings: {'; '.join(found)}; use another --out")

    def recover(self, groups: Groups) -> Recovered:
        """How many of the first groups are there, whole."""
        return recover(_part(self.folder, _TRACES), groups)

    def add_plans(self, plans: Iterable[Plan]) -> None:
        """Keep the plans of tasks that are still to come. One that differs from the one that is there is refused."""
        known = self.plans()
        before = len(known)
        for plan in plans:
            if known.setdefault(plan.task_id, plan) != plan:
                wrong = f"the plan of task {plan.task_id!r} is another one now"
                raise InputError(f"{self.folder}: {wrong}; use another --out")
        if len(known) > before:
            write_whole(self.folder / _PLANS, _plan_lines(known.values()))

    def begin(self, asked: Extent, after: Recovered) -> None:
        """Be ready to append after what is whole."""
        self.manifest = self.manifest.model_copy(update={"asked": asked})
        self._writer = RecordWriter(self.folder / _TRACES, after)
        self._mark("running", self.manifest.done)

    def append(self, traces: Sequence[Trace]) -> None:
        """Add the traces of one task's whole group."""
        assert self._writer is not None, "begin() comes before append()"
        self._writer.append(traces)

    def end(self, status: Status, done: Extent) -> None:
        """Close the run for writing."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._mark(status, done)

    def release(self) -> None:
        """Let another process write the run."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _mark(self, status: Status, done: Extent) -> None:
        finished = now() if status == "complete" else None
        self.manifest = self.manifest.model_copy(update={"status": status, "done": done, "finished": finished})
        self.manifest.save(self.folder / _MANIFEST)


def _renamed(draft: Path, folder: Path) -> IO[bytes]:
    """Make the draft the folder. The lock moves with its file."""
    (draft / _TRACES).touch()
    lock = hold(draft / _TRACES)
    try:
        draft.rename(folder)
    except OSError:
        lock.close()
        _refuse_rival(folder)
        raise
    return lock


def _moved_into(draft: Path, folder: Path) -> IO[bytes]:
    """Move the draft's files into a folder that stays; who makes the traces first has it, and the manifest is last."""
    try:
        (folder / _TRACES).touch(exist_ok=False)
    except FileExistsError:
        _refuse_rival(folder)
        raise
    lock = hold(folder / _TRACES)
    try:
        for name in (_CONFIG, _PLANS, _MANIFEST):
            (draft / name).rename(folder / name)
        draft.rmdir()
    except BaseException:
        lock.close()
        for name in (_MANIFEST, _CONFIG, _PLANS, _TRACES):
            (folder / name).unlink(missing_ok=True)
        raise
    return lock


def _refuse_rival(folder: Path) -> None:
    """Refuse a folder in which another process made a run while this one was planning."""
    if (folder / _TRACES).exists():
        raise InputError(f"{folder}: is being written by another process, which was first; wait until it ends")


def _part(folder: Path, name: str) -> Path:
    """A file of a run, which must be there."""
    path = folder / name
    if not path.is_file():
        raise TraceMismatch(f"{path}: is missing; the run is not whole without it")
    return path


def _yaml(config: Config) -> str:
    text = io.StringIO()
    yaml = YAML()
    yaml.width = 10_000
    yaml.dump(config.model_dump(mode="json"), text)
    return text.getvalue()


def _plan_lines(plans: Iterable[Plan]) -> bytes:
    lines = [json.dumps({"digest": plan.digest, "plan": plan.model_dump(mode="json")}) for plan in plans]
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def _plan(line: bytes) -> Plan | None:
    try:
        content = json.loads(line)
        plan = Plan.model_validate_json(json.dumps(content["plan"]))
        return plan if plan.digest == content["digest"] else None
    except (ValueError, TypeError, KeyError):
        return None
