"""Store the calls that read profiles and annotate rubrics while tasks are planned.

The run stores them together with its plans: all of them or none. Until these are committed, each reply is durable in a
separate ledger, so that a run that is stopped while planning does not repeat the request.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

from jurygraph.models.request import AnsweredCall, Request
from jurygraph.runs.calls import CallStore
from jurygraph.runs.run import Run
from jurygraph.runs.store.chain import Draft
from jurygraph.runs.store.folder import PLANNING, discard_planning
from jurygraph.runs.store.ledger import Ledger
from jurygraph.runs.store.packing import ERASED, read_planning_results
from jurygraph.runs.store.writer import Writer
from jurygraph.schema.profile import READ_FROM_FILE, Profiles, ReadStakeholder, ReadTension
from jurygraph.sources import TaskSource
from jurygraph.sources.profiles import ProfilesFile


class PlanningCalls(CallStore):
    """A call sink that stores calls in the transaction of a run's plans and, until its end, in a separate file.

    The file is written only if `is_durable`: a jury with a cache has its replies there. Calls that an earlier session
    left in it are copied to the run once they are requested. The file is kept until `discard`.
    """

    def __init__(self, run: Run, *others: Ledger, is_durable: bool) -> None:
        super().__init__(run.ledger, *others, append=self._append_to_run)
        self._run = run
        self._is_durable = is_durable
        self._ledger: Ledger | None = None
        if (run.folder / PLANNING).exists():
            self._open()

    def _append_to_run(self, drafts: Sequence[Draft]) -> "Future[None]":
        """Append to the run's ledger immediately; its plans commit the calls."""
        done: Future[None] = Future()
        self._run.ledger.append(*drafts)
        done.set_result(None)
        return done

    def _open(self) -> None:
        self._ledger = Ledger.create(self._run.folder / PLANNING)
        self._writer = Writer(self._ledger)
        self._answers = CallStore(self._ledger, append=self._writer.append)

    def find(self, key: str) -> AnsweredCall | None:
        """Return the call whose request has this digest; a call from the file is copied to the run's ledger."""
        call = super().find(key)
        if call is None and self._ledger is not None and (call := self._answers.find(key)) is not None:
            record = self._ledger.require("call", key)
            body, texts = {"call": record.content["call"]}, self._ledger.stored_texts(record.seq, record.seq)
            self._run.ledger.append(Draft("call", key, body, [text.content for text in texts]))
            self._keys[0].add(key)
        return call

    async def store(self, request: Request, answered: AnsweredCall) -> None:
        """Store a call; it is durable when this returns, in the file or in the jury's cache."""
        if self._is_durable:
            if self._ledger is None:
                self._open()
            await self._answers.store(request, answered)
        await super().store(request, answered)

    @property
    def stored_count(self) -> int:
        """Return the number of calls in the file, for the next session."""
        return 0 if self._ledger is None else self._ledger.count_records("call")

    def close(self) -> None:
        """Close the file and keep it."""
        if self._ledger is not None:
            self._writer.close()
            self._ledger.close_as_plain_file()
            self._ledger = None

    def discard(self) -> None:
        """Remove the file: the run has everything that was needed from it."""
        self.close()
        discard_planning(self._run.folder)


def open_planning_calls(folder: Path) -> Ledger | None:
    """Open the calls of a planning that was stopped, for reading; None where there are none."""
    path = folder / PLANNING
    return Ledger.open(path) if path.exists() else None


def describe_profile_differences(run: Run, file: ProfilesFile | None, work: TaskSource) -> Iterator[str]:
    """Yield the differences between a PROFILES file and a run's plans; needed where its digest was erased."""
    recorded_mark = run.header.profiles
    if recorded_mark is None or recorded_mark.sha256 != ERASED:
        return
    if file is None:
        yield f"the profiles file is {recorded_mark.name} in the run and none here"
        return
    for task, _ in work.pairs(0, run.tasks_planned):
        content, line = run.task_content(task.id), file.line_of(task)
        if content is None:
            continue
        stored, current = (
            _from_file(read_planning_results(content).get("profiles")),
            _from_file(line.to_profiles() if line else None),
        )
        if stored != current:
            yield f"{file.mark.name} has other content for task {task.id!r} than the run was planned with"


def _from_file(profiles: Profiles | None) -> tuple[Sequence[ReadStakeholder], Sequence[ReadTension] | None]:
    """Return the stakeholders and tensions that came from a PROFILES file."""
    if profiles is None:
        return (), None
    people = tuple(person for person in profiles.stakeholders if profiles.by[person.id] == READ_FROM_FILE)
    return people, profiles.tensions if profiles.tensions_by == READ_FROM_FILE else None
