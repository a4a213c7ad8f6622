"""PROFILES: constraints read from textual profiles, one task per line, as `jurygraph profiles` writes them.

People may edit them.
"""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from jurygraph.errors import InputError
from jurygraph.messages import Problem, did_you_mean, quote
from jurygraph.schema import Task
from jurygraph.schema.task import Profiles, ProfilesLine
from jurygraph.sources.json_lines import TaskKeyedFile, raise_line_error
from jurygraph.sources.tasks import TaskSource


class ProfilesFile(TaskKeyedFile[ProfilesLine]):
    """A PROFILES file. Raises `InputError` also for a line whose task is not in the tasks file."""

    def __init__(self, path: str | Path, source: TaskSource) -> None:
        self._source = source
        super().__init__(path, ProfilesLine, "task", "keep one of the two")

    def _check(self, number: int, entry: ProfilesLine) -> None:
        if self._source.place(entry.task) is None:
            problem = f"there is no task {quote(entry.task)}"
            hint = f"name a task of {self._source.tasks_file.name}, or leave the line out"
            self._refuse(number, ("task",), problem, hint)

    def line_of(self, task: Task) -> ProfilesLine | None:
        """Return the line of a task; None if there is none. Raises `InputError` if it does not fit the task."""
        entry = self.get(task.id)
        for problem in () if entry is None else profile_errors(task, entry):
            raise_line_error(self._file.name, self._lines[task.id][0], problem)
        return entry


def open_profiles(path: str | Path | None, source: TaskSource) -> AbstractContextManager[ProfilesFile | None]:
    """Return the PROFILES file about the tasks of a source, which the caller closes; None if no path is given.

    Raises `InputError`.
    """
    if path is None:
        return nullcontext()
    if str(path) == "-" and "standard input" in (
        source.tasks_file.name,
        source.responses_file.name if source.responses_file else "",
    ):
        raise InputError("tasks, responses and profiles cannot share standard input; put all but one in a file")
    return ProfilesFile(path, source)


def profile_errors(task: Task, entry: ProfilesLine) -> Iterator[Problem]:
    """Yield the errors of a line that does not fit the task."""
    if entry.task != task.id:
        yield Problem(("task",), f"is {quote(entry.task)}", f"name task {quote(task.id)}, or give it the line of that")
    people = {stakeholder.id: stakeholder for stakeholder in task.stakeholders}
    for index, profile in enumerate(entry.stakeholders):
        if profile.id not in people:
            yield _unknown_stakeholder(task, ("stakeholders", index, "id"), profile.id)
            continue
        person = people[profile.id]
        if person.constraints:
            problem = f"{quote(profile.id)} has constraints of its own in task {quote(task.id)}"
            yield Problem(("stakeholders", index, "id"), problem, "leave them out there, or the stakeholder out here")
        if profile.profile and profile.profile != person.profile:
            problem = f"is not the profile of {quote(profile.id)} in task {quote(task.id)}"
            hint = "see what follows from the new one and copy it here, or have it read again"
            yield Problem(("stakeholders", index, "profile"), problem, hint)
    for index, tension in enumerate(entry.tensions or ()):
        for position, member in enumerate(tension.between):
            if member not in people:
                yield _unknown_stakeholder(task, ("tensions", index, "between", position), member)
    if entry.tensions and task.tensions:
        problem = f"task {quote(task.id)} has tensions of its own"
        yield Problem(("tensions",), problem, "leave them out there, or here")


def _unknown_stakeholder(task: Task, path: tuple[str | int, ...], name: str) -> Problem:
    hint = did_you_mean(name, (stakeholder.id for stakeholder in task.stakeholders)) or "name one that the task has"
    return Problem(path, f"names {quote(name)}, which is not a stakeholder of task {quote(task.id)}", hint)


def profiles_line(task: Task, profiles: Profiles) -> bytes:
    """Return a task's profiles as a line that a person can edit; the text of each profile is included."""
    profile_text = {item.id: item.profile for item in task.stakeholders}
    content = {
        "task": task.id,
        "stakeholders": [
            {"id": item.id, "profile": profile_text[item.id]}
            | item.model_dump(mode="json", include={"constraints"}, exclude_none=True)
            for item in profiles.stakeholders
        ],
    }
    if profiles.tensions_by is not None:
        content["tensions"] = [item.model_dump(mode="json") for item in profiles.tensions]
    return json.dumps(content, ensure_ascii=False).encode() + b"\n"
