"""Runs: the content of a ledger as values of the data model."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.messages import did_you_mean
from jurygraph.runs.store import folder as place
from jurygraph.runs.store.chain import Draft, Record
from jurygraph.runs.store.drafts import remove_leftovers, write_atomically
from jurygraph.runs.store.header import Header, header_draft, read_header
from jurygraph.runs.store.ledger import Ledger
from jurygraph.runs.store.lock import acquire, release
from jurygraph.runs.store.packing import (
    Body,
    Shape,
    pack_reward,
    pack_trace,
    read_planning_results,
    read_views,
    shared_lists,
    task_text,
)
from jurygraph.schema import Call, Config, Decision, Plan, Purpose, Response, Task, Trace
from jurygraph.schema.plan import with_planning_results
from jurygraph.schema.purpose import purpose_of

if TYPE_CHECKING:
    from jurygraph.runs.trace_reading import ScoredResponse


class Run:
    """A stored run. `open` opens it for reading; `open_for_writing` and `create` lock it until `close`.

    Raises `TraceMismatch` where the stored content cannot be the content that was written.
    """

    def __init__(self, folder: Path, ledger: Ledger, header: Header, lock: IO[str] | None = None) -> None:
        self.folder = folder
        self.ledger = ledger
        self.header = header
        self._lock = lock
        self._created_folders: Sequence[Path] = ()
        self.shape = lru_cache(maxsize=1024)(partial(_read_shape, ledger))
        self.decision = lru_cache(maxsize=1024)(partial(_read_decision, ledger))

    @classmethod
    def open(cls, folder: str | Path) -> "Run":
        """Open the run in a folder for reading. Raises `InputError` where there is none."""
        folder = Path(folder)
        place.require_run(folder)
        ledger = _open_ledger(folder)
        if ledger is None:
            raise InputError(f"{folder}: contains no run yet: planning was interrupted; run `jurygraph score` again")
        return cls(folder, ledger, read_header(ledger))

    @classmethod
    def open_if_closed(cls, folder: Path) -> "Run | None":
        """Open the run in a folder for reading if it is closed, so that it needs no lock; None otherwise."""
        ledger = _open_ledger(folder) if (folder / place.LEDGER).is_file() else None
        if ledger is None or ledger.find("close", "") is None:
            return None
        return cls(folder, ledger, read_header(ledger))

    @classmethod
    def open_for_writing(cls, folder: Path) -> "Run | None":
        """Open and lock the run in a folder; None where a new run can be created there.

        Raises `InputError` where another process writes it, or where the folder holds something other than a run.
        """
        if not (folder / place.LEDGER).exists():
            place.refuse_foreign(folder)
            return None
        lock = acquire(folder / place.LOCK)
        try:
            ledger = _open_ledger(folder, write=True)
            if ledger is not None:
                return cls(folder, ledger, read_header(ledger), lock)
        except BaseException:
            release(lock)
            raise
        release(lock)  # stopped before its plans were committed
        return None

    @classmethod
    def create(cls, folder: Path, header: Header, run_id: str) -> "Run":
        """Create and lock a new run. It exists once it is committed; closed before, it leaves nothing behind."""
        folder = folder.resolve()
        created = place.create_folder(folder)
        place.refuse_links(folder)
        lock = acquire(folder / place.LOCK)
        try:
            ledger = Ledger.create(folder / place.LEDGER)
        except BaseException:
            place.remove_folder(folder, created)
            release(lock)
            raise
        text = place.config_text(header.config)
        run = cls(folder, ledger, header.model_copy(update={"config_file": place.sha256_hex(text)}), lock)
        run._created_folders = created
        try:
            if ledger.count:
                raise InputError(f"{folder}: another process made a run there first; start again to go on with it")
            write_atomically(folder / place.CONFIG, text)
            ledger.append(header_draft(run.header, run_id))
        except BaseException:
            run.close()
            raise
        return run

    def close(self) -> None:
        """Release the run, so that another process can write it; one that was never committed is removed."""
        self.shape.cache_clear()
        self.decision.cache_clear()
        if "base" in vars(self) and self.base is not None:
            self.base.close()
        if self._lock is None:
            self.ledger.close()
            return
        self.ledger.close_as_plain_file()
        if not self.ledger.count:
            place.remove_folder(self.folder, self._created_folders)
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            release(self._lock)
            self._lock = None

    @property
    def id(self) -> str:
        """Return the run's id."""
        return self.ledger.record_at(1).key

    @property
    def config(self) -> Config:
        """Return the config of the run."""
        return self.header.config

    def purpose(self, served: Iterable[str]) -> Purpose | None:
        """Return the purpose of a reward whose judge replied under the `served` names; None for rewards to train on."""
        model = self.header.model
        return purpose_of(self.config.purpose, None if model is None else model.model, served)

    @property
    def judges(self) -> tuple[str, ...]:
        """Return the models behind the rewards, sorted: all names under which they were requested or replied."""
        requested, names = self.source.header.model, set()
        for record in self.source.ledger.records("trace", up_to=self.last_base_record):
            names |= {call[name] for call in record.content.get("calls", ()) for name in ("model", "served")}
        return tuple(sorted({*names, None if requested is None else requested.model} - {None}))

    @property
    def code_folder(self) -> Path | None:
        """Return the folder of the config's own modules when the run was scored; None where all were installed."""
        code = self.header.code
        return None if code is None else Path(os.path.normpath(self.folder.resolve() / code))

    @cached_property
    def base(self) -> "Run | None":
        """The run whose verdicts this one refers to, None without one. Raises `InputError` where it cannot be found."""
        origin = self.header.base
        if origin is None:
            return None
        folder = Path(os.path.normpath(self.folder.resolve() / origin.folder))
        if not (folder / place.LEDGER).is_file():
            problem = f"refers to the verdicts of {folder}, which is not there"
            raise InputError(f"{self.folder}: {problem}; put it back there, or move both together")
        base = Run.open(folder)
        if base.id != origin.run:
            raise TraceMismatch(f"{folder}: is another run than the one that {self.folder} refers to")
        return base

    @property
    def source(self) -> "Run":
        """Return the run that holds the verdicts: the base, or this run."""
        return self.base or self

    @property
    def tasks_scored(self) -> int:
        """Return the number of scored tasks."""
        return self.source.ledger.count_records("group") if self.base is None else self.header.extent.tasks

    @property
    def tasks_planned(self) -> int:
        """Return the number of tasks with a plan."""
        return self.ledger.count_records("task")

    @property
    def is_closed(self) -> bool:
        """Return whether the run is closed, so that nothing more can be scored into it."""
        return self.ledger.find("close", "") is not None

    @property
    def last_base_record(self) -> int | None:
        """Return the number of the last record of the base that belongs to this run; None without a base."""
        return None if self.header.base is None else self.header.base.records

    def add_plan(self, task: Task, plan: Plan) -> None:
        """Append the plan of a task, together with its survey and decision unless these are stored already."""
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

    def group_drafts(self, plan: Plan, traces: Sequence[Trace], responses: Sequence[Response]) -> list[Draft]:
        """Return the records of a task's whole group, ready to be appended."""
        from jurygraph.decision.group_result import RewardRow

        response_by_id = {response.id: response for response in responses}
        shape = Shape.of(plan.survey)
        shared = shared_lists(traces)
        group = {"size": len(traces), "statistics": traces[0].statistics}
        if shared:
            group["shown"] = list(shared)
        drafts = [Draft("group", plan.task_id, group, [traces[0].group.encode()])]
        for number, trace in enumerate(traces, start=1):
            reward = pack_reward(RewardRow.from_reward(trace.reward))
            body, texts = pack_trace(trace, response_by_id[trace.response_id], shape, reward, number, shared)
            drafts.append(Draft("trace", trace.response_id, body, texts))
        return drafts

    def task_content(self, task_id: str) -> Body | None:
        """Return the stored text of a task as parsed JSON; None where it was erased.

        It has the keys `task`, `views` and `plan`; `profiles` if some were read; `rubric` if it was annotated.
        """
        record = self.source.ledger.require("task", task_id)
        text = self.source.ledger.texts({record.seq: record.content["texts"]})[record.seq].get(0)
        if text is None:
            return None
        content: Body = json.loads(text)
        return content

    def task(self, task_id: str) -> Task | None:
        """Return a task as it was given to planning; None where its texts were erased."""
        content = self.task_content(task_id)
        return None if content is None else Task.model_validate(content["task"])

    def planned_task(self, task_id: str) -> Task | None:
        """Return a task with the content of its profiles and its rubric's graph; None where its texts were erased."""
        content = self.task_content(task_id)
        return (
            None
            if content is None
            else with_planning_results(Task.model_validate(content["task"]), **read_planning_results(content))
        )

    def plan_of(self, task_id: str) -> Plan:
        """Return the plan of a task, with the decision of this run. Raises `InputError` where its texts were erased."""
        content = self.task_content(task_id)
        if content is None:
            problem = f"the texts of task {task_id!r} were erased, its plan with them"
            raise InputError(f"{self.folder}: {problem}; `jurygraph close` ends the run without it")
        task = Task.model_validate(content["task"])
        return Plan(
            task_id=task_id,
            task_digest=task.content_digest,
            survey=self.survey_shape_of(task_id).survey(read_views(content)),
            decision=self.decision_of(task_id),
            **read_planning_results(content),
        )

    def planning_calls(self) -> Iterator[Call]:
        """Yield the calls that read profiles and annotated rubrics, task by task."""
        for record in self.ledger.records("task"):
            yield from map(Call.model_validate, record.content.get("calls", ()))

    def survey_shape_of(self, task_id: str) -> Shape:
        """Return the survey of a task, without its texts."""
        return self.source.shape(self.source.ledger.require("task", task_id).content["survey"])

    def decision_of(self, task_id: str) -> Decision:
        """Return the decision of a task."""
        return self.decision(self.ledger.require("task", task_id).content["decision"])

    def scored_responses(self) -> "Iterator[ScoredResponse]":
        """Yield every trace with its response, in the order of the tasks."""
        for group in self.source.ledger.records("group", up_to=self.last_base_record):
            yield from self.group(group)

    def traces(self) -> Iterator[Trace]:
        """Yield every trace, in the order of the tasks."""
        return (scored.trace for scored in self.scored_responses())

    def group(self, group: Record) -> "list[ScoredResponse]":
        """Return the traces of a group; `group` is its record in the run that holds the verdicts."""
        from jurygraph.runs.trace_reading import read_group

        return read_group(self, group)

    def group_of(self, task_id: str) -> "list[ScoredResponse]":
        """Return the traces of a task's group."""
        return self.group(self.source.ledger.require("group", task_id))

    def own_record(self, record: Record) -> Record:
        """Return this run's own record of a trace, given its record in the run that holds the verdicts."""
        return record if self.base is None else self.ledger.require("trace", record.key)

    def find_trace(self, response_id: str) -> Trace:
        """Return the trace of one response.

        It includes its plan if profiles or a rubric's graph are stored for that and not erased. Raises `InputError` for
        an unknown response.
        """
        record = self.source.ledger.find("trace", response_id)
        if record is None:
            self._require_all()
            hint = did_you_mean(response_id, self.source.ledger.keys("trace")) or "`jurygraph show RUN` lists them"
            raise InputError(f"{self.folder}: there is no response {response_id!r}; {hint}")
        group = self.source.ledger.record_at(record.seq - record.content["group"])
        trace = next(scored.trace for scored in self.group(group) if scored.trace.response_id == response_id)
        plan = self.plan_of(group.key) if read_planning_results(self.task_content(group.key) or {}) else None
        return trace if plan is None else trace.model_copy(update={"plan": plan})

    def _require_all(self) -> None:
        """Raise `TraceMismatch` where a closed run has lost traces."""
        closing = self.ledger.find("close", "")
        if closing is not None and closing.content["traces"] != self.ledger.count_records("trace"):
            closed_with = closing.content["traces"]
            missing = f"{closed_with - self.ledger.count_records('trace')} of its {closed_with} traces"
            raise TraceMismatch(f"{self.ledger.path}: {missing} are missing; it has been changed")


def _read_shape(ledger: Ledger, digest: str) -> Shape:
    return Shape.from_body(ledger.require("survey", digest).content)


def _read_decision(ledger: Ledger, digest: str) -> Decision:
    return Decision.model_validate(ledger.require("decision", digest).content)


def _open_ledger(folder: Path, write: bool = False) -> Ledger | None:
    """Open the ledger in a folder; None where creating a run was stopped before it had a record."""
    path = folder / place.LEDGER
    place.refuse_links(folder)
    remove_leftovers(folder)
    if not path.stat().st_size and (folder / place.CONFIG).exists():
        raise TraceMismatch(f"{path}: is empty, but {place.CONFIG} shows that there was a run; it has been changed")
    ledger = Ledger.open(path, write)
    if ledger is None and (folder / place.SEAL).exists():
        raise TraceMismatch(f"{path}: has no record, but {place.SEAL} shows that there was a run; it has been changed")
    return ledger
