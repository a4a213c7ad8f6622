"""Describe why a run cannot be resumed: the differences between its files and settings and the current ones."""

from collections.abc import Iterator, Sequence
from itertools import islice

from jurygraph.runs.run import Run, ScoredResponse
from jurygraph.runs.store.header import Header, changes, differences, format_value
from jurygraph.runs.store.packing import ERASED, read_planning_results
from jurygraph.schema import Response, Task
from jurygraph.schema.profile import READ_FROM_FILE, Profiles, ReadStakeholder, ReadTension
from jurygraph.sources import TaskSource
from jurygraph.sources.profiles import ProfilesFile

_MAX_LISTED = 3


def describe_differences(run: Run, here: Header, work: TaskSource) -> Iterator[str]:
    """Yield one sentence for each difference; where the files differ, for the first tasks and responses that differ.

    Their contents are compared, too, after an erasure, which removes the digests of the files.
    """
    yield from differences(run.header, here)
    if _file_digests(run.header) != _file_digests(here):
        sentences = list(islice(_compare_contents(run, work), _MAX_LISTED + 1))
        yield from sentences[:_MAX_LISTED]
        if len(sentences) > _MAX_LISTED:
            yield "and more"


def _file_digests(header: Header) -> list[str | None]:
    return [mark.sha256 if mark else None for mark in (header.tasks, header.responses, header.edges)]


def _compare_contents(run: Run, work: TaskSource) -> Iterator[str]:
    scored, planned, expected = run.tasks_scored, run.tasks_planned, run.header.extent.tasks
    for number, (task, responses) in enumerate(work.pairs()):
        if number >= expected or (number < planned and run.ledger.find("task", task.id) is None):
            yield f"task {task.id!r} is new, or at another position"
        elif number < planned:
            stored = run.task(task.id)
            if stored is not None:
                yield from _compare_task(stored, task, responses, run, number < scored)
    for name in run.ledger.keys("task"):
        if work.line(name) is None:
            yield f"task {name!r} is gone"


def _compare_task(stored: Task, task: Task, responses: tuple[Response, ...], run: Run, scored: bool) -> Iterator[str]:
    for field, before, after in changes(stored.model_dump(mode="json"), task.model_dump(mode="json")):
        yield f"task {task.id!r}, field {field}: is {format_value(before)} in the run and {format_value(after)} here"
    if not scored:
        return
    given_by_id = {response.id: response for response in responses}
    stored_by_id = {scored.trace.response_id: scored for scored in run.group_of(task.id)}
    for name in dict.fromkeys((*stored_by_id, *given_by_id)):
        if name not in given_by_id or name not in stored_by_id:
            yield f"response {name!r} is {'gone' if name in stored_by_id else 'new'}"
        else:
            yield from _compare_response(stored_by_id[name], given_by_id[name])


def _compare_response(old: ScoredResponse, new: Response) -> Iterator[str]:
    if old.trace.agent != new.agent:
        agents = f"{format_value(old.trace.agent)} in the run and {format_value(new.agent)} here"
        yield f"response {new.id!r}: its agent is {agents}"
    if old.response is None:
        return
    if old.response.content_digest != new.content_digest:
        yield f"response {new.id!r} is another one now"
    before, after = old.trace.labels, new.labels
    if before != after:
        yield f"response {new.id!r}: its labels are {format_value(before)} in the run and {format_value(after)} here"


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
        current = line.to_profiles() if line else None
        if _from_file(read_planning_results(content).get("profiles")) != _from_file(current):
            yield f"{file.mark.name} has other content for task {task.id!r} than the run was planned with"


def _from_file(profiles: Profiles | None) -> tuple[Sequence[ReadStakeholder], Sequence[ReadTension] | None]:
    """Return the stakeholders and tensions that came from a PROFILES file."""
    if profiles is None:
        return (), None
    people = tuple(person for person in profiles.stakeholders if profiles.by[person.id] == READ_FROM_FILE)
    return people, profiles.tensions if profiles.tensions_by == READ_FROM_FILE else None
