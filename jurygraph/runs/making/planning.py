"""The calls by which profiles are read while tasks are planned, kept with the plans: all of them or none."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future

from jurygraph.runs.calls import Calls, CallsBeside
from jurygraph.runs.run import Run
from jurygraph.runs.store.chain import Draft
from jurygraph.runs.store.ledger import Ledger
from jurygraph.runs.store.packing import ERASED, read_beside
from jurygraph.schema.profile import FILE, Profiles, ReadStakeholder, ReadTension
from jurygraph.sources import Work
from jurygraph.sources.profiles import ProfilesFile


def planning_calls(ledger: Ledger, *others: Ledger) -> CallsBeside:
    """Calls kept in the transaction in which a run's plans are made: they are there for good when these are."""
    return CallsBeside(Calls(ledger, _InTransaction(ledger)), *others)


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
