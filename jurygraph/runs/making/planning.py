"""The calls by which profiles are read and rubrics annotated while tasks are planned.

The run holds them with its plans: all of them or none. Until these are committed, each answer is durable in a ledger of
its own, so that a run that is stopped while it plans does not ask for it again.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

from jurygraph.models.asking import Request
from jurygraph.models.sink import Answered
from jurygraph.runs.calls import Calls, CallsBeside
from jurygraph.runs.run import Run
from jurygraph.runs.store.chain import Draft
from jurygraph.runs.store.folder import PLANNING, discard_planning
from jurygraph.runs.store.ledger import Ledger
from jurygraph.runs.store.packing import ERASED, read_beside
from jurygraph.runs.store.writer import Writer
from jurygraph.schema.profile import FILE, Profiles, ReadStakeholder, ReadTension
from jurygraph.sources import Work
from jurygraph.sources.profiles import ProfilesFile


class PlanningCalls(CallsBeside):
    """Keeps calls in the transaction in which a run's plans are made, and until that ends in a file of their own.

    That file is written where `is_durable` asks for it: a jury with a cache has its answers there. What an earlier
    sitting left in it is taken over once it is asked for. It stays until `discard`.
    """

    def __init__(self, run: Run, *others: Ledger, is_durable: bool) -> None:
        calls = Calls(run.ledger, _InTransaction(run.ledger))
        super().__init__(calls, *others)
        self._run_calls = calls
        self._folder = run.folder
        self._is_durable = is_durable
        self._ledger: Ledger | None = None
        if (run.folder / PLANNING).exists():
            self._open()

    def _open(self) -> Ledger:
        self._ledger = Ledger.create(self._folder / PLANNING)
        self._writer = Writer(self._ledger)
        self._answers = Calls(self._ledger, self._writer)
        return self._ledger

    def find(self, key: str) -> Answered | None:
        """The call whose request has this digest; one from the file is kept with the plans from here on."""
        found = super().find(key)
        if found is None and self._ledger is not None and (found := self._answers.find(key)) is not None:
            self._run_calls.copy(key, self._ledger)
        return found

    async def keep(self, request: Request, answered: Answered) -> None:
        """Keep a call; it would survive a power cut when this returns, in the cache if not here."""
        if self._is_durable:
            if self._ledger is None:
                self._open()
            await self._answers.keep(request, answered)
        await super().keep(request, answered)

    @property
    def kept(self) -> int:
        """How many answers the file holds, for the next sitting."""
        return 0 if self._ledger is None else self._ledger.number("call")

    def close(self) -> None:
        """Let go of the file, which stays."""
        if self._ledger is not None:
            self._writer.close()
            self._ledger.settle()
            self._ledger = None

    def discard(self) -> None:
        """Remove the file: the run holds all that was needed of it."""
        self.close()
        discard_planning(self._folder)


def earlier_answers(folder: Path) -> Ledger | None:
    """What planning was answered before it was stopped, for reading; None where there is nothing."""
    path = folder / PLANNING
    return Ledger.open(path) if path.exists() else None


class _InTransaction:
    """Appends to a ledger at once, and leaves it to others to commit."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def append(self, drafts: Sequence[Draft]) -> "Future[None]":
        done: Future[None] = Future()
        self._ledger.append(*drafts)
        done.set_result(None)
        return done


def profiles_differ(run: Run, file: ProfilesFile | None, work: Work) -> Iterator[str]:
    """In what a PROFILES file differs from the plans of a run, where something was erased and its sum with it."""
    known = run.header.profiles
    if known is None or known.sha256 != ERASED:
        return
    if file is None:
        yield f"the profiles file is {known.name} in the run and none here"
        return
    for task, _ in work.pairs(0, run.tasks_planned):
        content, stated = run.task_content(task.id), file.of(task)
        if content is None:
            continue
        there, here = _by_hand(read_beside(content).get("profiles")), _by_hand(stated.by_hand() if stated else None)
        if there != here:
            yield f"what {file.mark.name} says of task {task.id!r} is not what the run was planned with"


def _by_hand(profiles: Profiles | None) -> tuple[Sequence[ReadStakeholder], Sequence[ReadTension] | None]:
    """What of it came from a file."""
    if profiles is None:
        return (), None
    people = tuple(one for one in profiles.stakeholders if profiles.by[one.id] == FILE)
    return people, profiles.tensions if profiles.tensions_by == FILE else None
