"""Why a run cannot go on: what is other now than when it was begun."""

from collections.abc import Iterator
from itertools import islice

from jurygraph.runs.reading import Scored
from jurygraph.runs.run import Run
from jurygraph.runs.store.header import Header, changes, differences, shown
from jurygraph.schema import Response, Task
from jurygraph.sources import Work

_MOST = 3


def what_differs(run: Run, here: Header, work: Work) -> Iterator[str]:
    """One sentence for each difference; where the files differ, the first tasks and responses that do.

    Once something was erased, what the files hash to is not known any more: their contents are compared then.
    """
    yield from differences(run.header, here)
    if _sums(run.header) != _sums(here):
        found = list(islice(_contents(run, work), _MOST + 1))
        yield from found[:_MOST]
        if len(found) > _MOST:
            yield "and more"


def _sums(header: Header) -> list[str | None]:
    return [mark.sha256 if mark else None for mark in (header.tasks, header.responses, header.edges)]


def _contents(run: Run, work: Work) -> Iterator[str]:
    scored, planned, asked = run.tasks_scored, run.tasks_planned, run.header.asked.tasks
    for number, (task, responses) in enumerate(work.pairs()):
        if number >= asked or (number < planned and run.ledger.find("task", task.id) is None):
            yield f"task {task.id!r} is new, or stands elsewhere"
        elif number < planned:
            there = run.task(task.id)
            if there is not None:
                yield from _task(there, task, responses, run, number < scored)
    for name in run.ledger.keys("task"):
        if work.line(name) is None:
            yield f"task {name!r} is gone"


def _task(there: Task, here: Task, responses: tuple[Response, ...], run: Run, scored: bool) -> Iterator[str]:
    for field, before, now in changes(there.model_dump(mode="json"), here.model_dump(mode="json")):
        yield f"task {here.id!r}, field {field}: is {shown(before)} in the run and {shown(now)} here"
    if scored:
        yield from _responses(here.id, responses, run)


def _responses(task_id: str, responses: tuple[Response, ...], run: Run) -> Iterator[str]:
    here = {response.id: response for response in responses}
    there = {one.trace.response_id: one for one in run.group_of(task_id)}
    for name in dict.fromkeys((*there, *here)):
        if name not in here or name not in there:
            yield f"response {name!r} is {'gone' if name in there else 'new'}"
        else:
            yield from _response(there[name], here[name])


def _response(there: Scored, here: Response) -> Iterator[str]:
    if there.trace.agent != here.agent:
        yield f"response {here.id!r}: its agent is {shown(there.trace.agent)} in the run and {shown(here.agent)} here"
    if there.response is None:
        return
    if there.response.content_digest != here.content_digest:
        yield f"response {here.id!r} is another one now"
    before, now = there.trace.labels, here.labels
    if before != now:
        yield f"response {here.id!r}: its labels are {shown(before)} in the run and {shown(now)} here"
