"""A run: what its ledger holds, as nouns."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.store import folder as place
from jurygraph.runs.store.chain import Draft, Record
from jurygraph.runs.store.drafts import remove_leftovers, write_whole
from jurygraph.runs.store.header import Header, header_draft, read_header
from jurygraph.runs.store.ledger import Ledger
from jurygraph.runs.store.lock import hold, release
from jurygraph.runs.store.packing import (
    Body,
    Shape,
    pack_reward,
    pack_trace,
    read_beside,
    read_views,
    shared_lists,
    task_text,
)
from jurygraph.schema import Call, Config, Decision, Plan, Purpose, Response, Task, Trace
from jurygraph.schema.plan import as_planned
from jurygraph.schema.purpose import purpose_of
from jurygraph.sources import nearest

if TYPE_CHECKING:
    from jurygraph.runs.reading import Scored


class Run:
    """A run that exists. `open` is for reading; `to_write` and `create` lock it until `close`.

    Raises `TraceMismatch` where what is stored cannot be what was written.
    """

    def __init__(self, folder: Path, ledger: Ledger, header: Header, lock: IO[str] | None = None) -> None:
        self.folder = folder
        self.ledger = ledger
        self.header = header
        self._lock = lock
        self._made: Sequence[Path] = ()
        self.shape = lru_cache(maxsize=1024)(partial(_shape, ledger))
        self.decision = lru_cache(maxsize=1024)(partial(_decision, ledger))

    @classmethod
    def open(cls, folder: str | Path) -> "Run":
        """The run in a folder. Raises `InputError` where there is none."""
        folder = Path(folder)
        place.require(folder)
        ledger = _ledger(folder)
        if ledger is None:
            raise InputError(f"{folder}: holds no run yet, it was stopped while it planned; `jurygraph score` makes it")
        return cls(folder, ledger, read_header(ledger))

    @classmethod
    def complete(cls, folder: Path) -> "Run | None":
        """The run in a folder, for reading, if there is one that is closed: nobody needs to write it."""
        ledger = _ledger(folder) if (folder / place.LEDGER).is_file() else None
        if ledger is None or ledger.find("close", "") is None:
            return None
        return cls(folder, ledger, read_header(ledger))

    @classmethod
    def to_write(cls, folder: Path) -> "Run | None":
        """The run in a folder, locked, or None where a new one can be made. Anything else there is refused.

        Raises `InputError` where another process writes it.
        """
        if not (folder / place.LEDGER).exists():
            if (folder / place.FIRST_FORM).exists():
                place.require(folder)
            place.refuse_foreign(folder)
            return None
        lock = hold(folder / place.LOCK)
        try:
            ledger = _ledger(folder, write=True)
            if ledger is not None:
                return cls(folder, ledger, read_header(ledger), lock)
        except BaseException:
            release(lock)
            raise
        release(lock)  # it was stopped before its plans were there
        return None

    @classmethod
    def create(cls, folder: Path, header: Header, run_id: str) -> "Run":
        """Begin a run, which is there once it is committed, and leaves nothing behind if it is discarded."""
        folder = folder.resolve()
        made = place.make(folder)
        place.refuse_links(folder)
        lock = hold(folder / place.LOCK)
        try:
            ledger = Ledger.create(folder / place.LEDGER)
        except BaseException:
            place.unmake(folder, made)
            release(lock)
            raise
        text = place.config_text(header.config)
        run = cls(folder, ledger, header.model_copy(update={"config_file": place.digest(text)}), lock)
        run._made = made
        try:
            if ledger.count:
                raise InputError(f"{folder}: another process made a run there first; start again to go on with it")
            write_whole(folder / place.CONFIG, text)
            ledger.append(header_draft(run.header, run_id))
        except BaseException:
            run.close()
            raise
        return run

    def close(self) -> None:
        """Let go of the run, so that another process can write it; one that was never committed leaves nothing."""
        self.shape.cache_clear()
        self.decision.cache_clear()
        if "base" in vars(self) and self.base is not None:
            self.base.close()
        if self._lock is None:
            self.ledger.close()
            return
        self.ledger.settle()
        if not self.ledger.count:
            place.unmake(self.folder, self._made)
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            release(self._lock)
            self._lock = None

    @property
    def id(self) -> str:
        """The run's id."""
        return self.ledger.at(1).key

    @property
    def config(self) -> Config:
        """The config under which the run was made."""
        return self.header.config

    def purpose(self, served: Iterable[str]) -> Purpose | None:
        """What a reward is for, whose judge answered by these names; None where it is there to train on."""
        model = self.header.model
        return purpose_of(self.config.purpose, None if model is None else model.model, served)

    @property
    def judges(self) -> tuple[str, ...]:
        """The models whose rewards it holds, by every name under which they were asked or answered."""
        asked, named = self.source.header.model, set()
        for record in self.source.ledger.records("trace", up_to=self.extent):
            named |= {call[name] for call in record.content.get("calls", ()) for name in ("model", "served")}
        return tuple(sorted({*named, None if asked is None else asked.model} - {None}))

    @property
    def code_folder(self) -> Path | None:
        """Where the modules lay that the config names, when the run was scored; None where all were installed."""
        code = self.header.code
        return None if code is None else Path(os.path.normpath(self.folder.resolve() / code))

    @cached_property
    def base(self) -> "Run | None":
        """The run whose verdicts this one refers to. Raises `InputError` where it is not to be found."""
        origin = self.header.base
        if origin is None:
            return None
        folder = Path(os.path.normpath(self.folder.resolve() / origin.folder))
        if not (folder / place.LEDGER).is_file():
            moved = f"refers to the verdicts of {folder}, which is not there"
            raise InputError(f"{self.folder}: {moved}; put it back there, or move both together")
        base = Run.open(folder)
        if base.id != origin.run:
            raise TraceMismatch(f"{folder}: is another run than the one that {self.folder} refers to")
        return base

    @property
    def source(self) -> "Run":
        """The run that holds the verdicts: its base, or itself."""
        return self.base or self

    @property
    def tasks_scored(self) -> int:
        """How many tasks are scored."""
        return self.source.ledger.number("group") if self.base is None else self.header.asked.tasks

    @property
    def tasks_planned(self) -> int:
        """How many tasks have a plan."""
        return self.ledger.number("task")

    @property
    def closed(self) -> bool:
        """Whether nothing more may be scored into the run."""
        return self.ledger.find("close", "") is not None

    @property
    def extent(self) -> int | None:
        """The last record of the base that belongs to this run; None where it has no base."""
        return None if self.header.base is None else self.header.base.records

    def add_plan(self, task: Task, plan: Plan) -> None:
        """Append the plan of a task, and what it shares with others where that is not there yet."""
        shape = Shape.of(plan.survey)
        self._add_once("survey", shape.digest, shape.body)
        decision = plan.decision
        self._add_once("decision", decision.digest, decision.model_dump(mode="json"))
        body: Body = {"survey": shape.digest, "decision": decision.digest}
        if plan.calls:
            body["calls"] = [call.model_dump(mode="json") for call in plan.calls]
        self.ledger.append(Draft("task", task.id, body, [task_text(task, plan)]))

    def _add_once(self, kind: str, key: str, body: Body) -> None:
        if self.ledger.find(kind, key) is None:
            self.ledger.append(Draft(kind, key, body))

    def drafts(self, plan: Plan, traces: Sequence[Trace], responses: Sequence[Response]) -> list[Draft]:
        """A task's whole group as records to be."""
        from jurygraph.graphs.rewarding import Row

        known = {response.id: response for response in responses}
        shape = Shape.of(plan.survey)
        shared = shared_lists(traces)
        group = {"size": len(traces), "statistics": traces[0].statistics}
        if shared:
            group["shown"] = list(shared)
        drafts = [Draft("group", plan.task_id, group, [traces[0].group.encode()])]
        for number, trace in enumerate(traces, start=1):
            reward = pack_reward(Row.of(trace.reward))
            body, texts = pack_trace(trace, known[trace.response_id], shape, reward, number, shared)
            drafts.append(Draft("trace", trace.response_id, body, texts))
        return drafts

    def task_content(self, task_id: str) -> Body | None:
        """What is written in a task, as JSON has it: `task`, `views` and `plan`; `profiles` and `rubric` as far as some
        were read and it was annotated.

        None where it was erased.
        """
        record = self.source.ledger.require("task", task_id)
        text = self.source.ledger.texts({record.seq: record.content["texts"]})[record.seq].get(0)
        if text is None:
            return None
        content: Body = json.loads(text)
        return content

    def task(self, task_id: str) -> Task | None:
        """A task as it was planned; None where its texts were erased."""
        content = self.task_content(task_id)
        return None if content is None else Task.model_validate(content["task"])

    def planned_task(self, task_id: str) -> Task | None:
        """A task with what its profiles were read as, and its rubric's graph; None where its texts were erased."""
        content = self.task_content(task_id)
        return None if content is None else as_planned(Task.model_validate(content["task"]), **read_beside(content))

    def plan_of(self, task_id: str) -> Plan:
        """The plan of one task, with the decision of this run. Raises `InputError` where its texts were erased."""
        content = self.task_content(task_id)
        if content is None:
            gone = f"the texts of task {task_id!r} were erased, its plan with them"
            raise InputError(f"{self.folder}: {gone}; `jurygraph close` ends the run without it")
        task = Task.model_validate(content["task"])
        return Plan(
            task_id=task_id,
            task_digest=task.content_digest,
            survey=self.shape_of(task_id).survey(read_views(content)),
            decision=self.decision_of(task_id),
            **read_beside(content),
        )

    def planning_calls(self) -> Iterator[Call]:
        """The calls by which profiles were read and rubrics annotated, task by task."""
        for record in self.ledger.records("task"):
            yield from map(Call.model_validate, record.content.get("calls", ()))

    def shape_of(self, task_id: str) -> Shape:
        """The survey of a task, without its texts."""
        return self.source.shape(self.source.ledger.require("task", task_id).content["survey"])

    def decision_of(self, task_id: str) -> Decision:
        """The decision of a task."""
        return self.decision(self.ledger.require("task", task_id).content["decision"])

    def scored(self) -> "Iterator[Scored]":
        """Every trace with its response, in the order of the tasks."""
        for group in self.source.ledger.records("group", up_to=self.extent):
            yield from self.group(group)

    def traces(self) -> Iterator[Trace]:
        """Every trace, in the order of the tasks."""
        return (one.trace for one in self.scored())

    def group(self, group: Record) -> "list[Scored]":
        """The traces of a group, whose record is that of the run which holds the verdicts."""
        from jurygraph.runs.reading import read_group

        return read_group(self, group)

    def group_of(self, task_id: str) -> "list[Scored]":
        """The traces of a task's group."""
        return self.group(self.source.ledger.require("group", task_id))

    def own(self, record: Record) -> Record:
        """This run's own record of a trace, given that of the run which holds its verdicts."""
        return record if self.base is None else self.ledger.require("trace", record.key)

    def find(self, response_id: str) -> Trace:
        """The trace of one response; with its plan, where something was read for that and not erased."""
        record = self.source.ledger.find("trace", response_id)
        if record is None:
            self._require_all()
            near = nearest(response_id, self.source.ledger.keys("trace")) or "`jurygraph show RUN` lists them"
            raise InputError(f"{self.folder}: there is no response {response_id!r}; {near}")
        group = self.source.ledger.at(record.seq - record.content["group"])
        trace = next(one.trace for one in self.group(group) if one.trace.response_id == response_id)
        plan = self.plan_of(group.key) if read_beside(self.task_content(group.key) or {}) else None
        return trace if plan is None else trace.model_copy(update={"plan": plan})

    def _require_all(self) -> None:
        """Raise `TraceMismatch` where a closed run has lost traces."""
        end = self.ledger.find("close", "")
        if end is not None and end.content["traces"] != self.ledger.number("trace"):
            lost = f"{end.content['traces'] - self.ledger.number('trace')} of its {end.content['traces']} traces"
            raise TraceMismatch(f"{self.ledger.path}: {lost} are missing; it has been changed")


def _shape(ledger: Ledger, digest: str) -> Shape:
    return Shape.from_body(ledger.require("survey", digest).content)


def _decision(ledger: Ledger, digest: str) -> Decision:
    return Decision.model_validate(ledger.require("decision", digest).content)


def _ledger(folder: Path, write: bool = False) -> Ledger | None:
    """The ledger in a folder; None where a run was about to be made, and was stopped before it had a record."""
    path = folder / place.LEDGER
    place.refuse_links(folder)
    remove_leftovers(folder)
    if not path.stat().st_size and (folder / place.CONFIG).exists():
        raise TraceMismatch(f"{path}: is empty, and {place.CONFIG} says that a run was there; it has been changed")
    ledger = Ledger.open(path, write)
    if ledger is None and (folder / place.SEAL).exists():
        raise TraceMismatch(f"{path}: has no record, and {place.SEAL} says that a run was there; it has been changed")
    return ledger
