"""Trials: recorded conversations of published files, of which those of one task become its responses.

The query of a task is what all of its trials begin with. Where a user is simulated, each trial may begin with other
words: these then stand at the beginning of its response, because a task has one query.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NoReturn, TypeVar

from jurygraph.errors import InputError
from jurygraph.interchange.rows import ImportNote, ImportResult, describe_notes, read_entries
from jurygraph.messages import FieldPath as FieldPath
from jurygraph.messages import Problem, quote, validate
from jurygraph.schema import FrozenModel, TaskLine
from jurygraph.schema.conversation import ChatMessage, render_with_turn_headers
from jurygraph.schema.frozen_model import JsonFields, JsonMapping, StrPath
from jurygraph.schema.task import TranscriptMessages
from jurygraph.sources.files import TextFile, raise_field_error

Conversation = tuple[ChatMessage, ...]
M = TypeVar("M", bound=FrozenModel)

DIFFERENT_BEGINNINGS_IMPORT_NOTE = (
    "tasks whose trials begin with different messages, which stand in their responses"
)
NO_ANSWER_IMPORT_NOTE = "conversations without an answer of the assistant make no response"

_MAX_JSON_BYTES = 1 << 30


class _Messages(FrozenModel):
    messages: TranscriptMessages


@dataclass(frozen=True, kw_only=True)
class FileLocation:
    """A place in a file, such as "runs.jsonl, line 7", and the path of a value from there."""

    place: str
    path: FieldPath = ()

    def refuse(self, path: FieldPath, problem: str, remedy: str | None) -> NoReturn:
        """Raise InputError about the value at a path from here."""
        raise_field_error(self.place, Problem((*self.path, *path), problem, remedy))

    def validate(self, model: type[M], value: Any) -> M:
        """Return a value as a model. Raises InputError with its place."""
        entry = validate(model, value)
        if isinstance(entry, Problem):
            self.refuse(entry.path, entry.problem, entry.remedy)
        return entry

    def messages(self, value: Any, *path: str | int) -> Conversation:
        """Return the value at a path as messages. Raises InputError that names the field of a wrong one."""
        entry = validate(_Messages, {"messages": value})
        if isinstance(entry, Problem):
            self.refuse((*path, *entry.path[1:]), entry.problem, entry.remedy)
        return entry.messages


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One conversation, and what was published about it.

    `task` is the id of its task, of which `about` has further fields. An empty `answer` makes no response. `name` is
    the last part of the id of the response, of which `response` has further fields; without one there is only `about`.
    """

    location: FileLocation
    task: str
    query: Conversation
    answer: Conversation = ()
    name: str | None
    about: JsonMapping = field(default_factory=dict)
    response: JsonMapping = field(default_factory=dict)
    notes: Sequence[ImportNote] = ()


TrialsAndNotes = Iterator[Trial | ImportNote]
"""The conversations of a file, and what of it makes none."""
TrialReader = Callable[[StrPath], TrialsAndNotes]


def make_trials_reader(
    read: TrialReader, expected: str
) -> Callable[[StrPath], Iterator[ImportResult]]:
    """Return a reader of tasks, in the order of their first trials, which reads the whole file first."""

    def read_tasks(path: StrPath) -> Iterator[ImportResult]:
        trials = defaultdict(list)
        left_out = []
        for item in read(path):
            if isinstance(item, ImportNote):
                left_out.append(item)
            else:
                trials[item.task].append(item)
        if not trials:
            reason = f" ({'; '.join(describe_notes(left_out))})" if left_out else ""
            raise InputError(f"{path}: has nothing that makes a task{reason}; name {expected}")
        if left_out:
            yield ImportResult(None, tuple(left_out))
        for group in trials.values():
            yield _to_task(group)

    return read_tasks


def _to_task(trials: Sequence[Trial]) -> ImportResult:
    first = trials[0]
    query = _find_shared_beginning([trial.query for trial in trials])
    notes = list(chain.from_iterable(trial.notes for trial in trials))
    if any(len(trial.query) > len(query) for trial in trials):
        notes.append(ImportNote(DIFFERENT_BEGINNINGS_IMPORT_NOTE, first.task))
    responses = []
    names: dict[str, FileLocation] = {}
    for trial in trials:
        if trial.name is None:
            continue
        if names.setdefault(trial.name, trial.location) is not trial.location:
            trial.location.refuse(
                (),
                f"is the trial {quote(trial.name)} of the task {quote(first.task)} again",
                "keep one of them",
            )
        if not trial.answer:
            notes.append(ImportNote(NO_ANSWER_IMPORT_NOTE, f"{trial.task}/{trial.name}"))
            continue
        messages = (*trial.query[len(query) :], *trial.answer)
        identity = {"id": f"{trial.task}/{trial.name}", "messages": messages}
        responses.append({**identity, **trial.response})
    fields = {**_collect_task_fields(trials), "responses": responses}
    text = query[0].content if len(query) == 1 and query[0].role == "user" else None
    fields["query"] = text if isinstance(text, str) else (query or "")
    return ImportResult(first.location.validate(TaskLine, fields), tuple(notes))


def _find_shared_beginning(queries: Sequence[Conversation]) -> Conversation:
    shortest_conversation = min(queries, key=len)
    for index, message in enumerate(shortest_conversation):
        words = str(render_with_turn_headers([message]))  # of a text, and of a part
        if any(render_with_turn_headers([query[index]]) != words for query in queries):
            return shortest_conversation[:index]
    return shortest_conversation


def _collect_task_fields(trials: Sequence[Trial]) -> JsonFields:
    """Return the fields of the task. Raises InputError where two trials have different ones."""
    fields = {"id": trials[0].task}
    for trial in trials:
        for name, value in trial.about.items():
            if value is not None and fields.setdefault(name, value) != value:
                trial.location.refuse(
                    (),
                    f"has another {name} for the task {quote(trial.task)} than an earlier one",
                    "import files of different tasks each by itself",
                )
    return fields


def read_located_lines(path: StrPath, model: type[M]) -> Iterator[tuple[FileLocation, M]]:
    """Yield every entry of a file with its location, as `read_entries` does."""
    for location, entry in read_entries(path, model):
        yield FileLocation(place=location), entry


def read_json_document(path: StrPath) -> tuple[FileLocation, Any]:
    """Return the value of a JSON file; a NaN in it, as some tools write, is null. Raises InputError for no JSON."""
    with TextFile(path) as file:
        location = FileLocation(place=file.name)
        text = file.read_whole(_MAX_JSON_BYTES, "split it into smaller files")
    try:
        return location, json.loads(text, parse_constant=lambda name: None)
    except json.JSONDecodeError as error:
        line_location = FileLocation(place=f"{location.place}, line {error.lineno}")
        remedy = "export the file again"
        if error.msg == "Extra data":
            remedy = "this form is one JSON value, and JSON lines are several"
        line_location.refuse((), f"is not valid JSON ({error.msg})", remedy)
    except RecursionError:
        location.refuse((), "is nested too deeply", "leave the deepest parts out")


def find_first_assistant_index(messages: Conversation) -> int:
    """Return the index of the assistant's first message; the number of messages without any."""
    roles = [message.role for message in messages]
    return roles.index("assistant") if "assistant" in roles else len(roles)
