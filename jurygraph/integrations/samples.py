"""Samples of a trainer as tasks and responses: a prompt with the columns of its row, and what a policy answered.

A prompt or a completion is a text, or messages in OpenAI's form. A task is named by the row's id where it has one, else
by a digest of what it contains, so that equal rows are one task in every process.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite, isnan
from typing import Any

import numpy as np
from pydantic_core import to_jsonable_python

from jurygraph.display import format_value
from jurygraph.errors import InputError
from jurygraph.messages import Problem, validate
from jurygraph.schema import Response, Task
from jurygraph.schema.frozen_model import digest_of
from jurygraph.schema.task import read_rubric_fields

_TASK_DIGEST_LENGTH = 16
"""Hexadecimal digits of a name that is made from a task's content."""


DEFAULT_COLUMN_BY_FIELD: Mapping[str, str] = {
    "id": "task_id",
    "reference": "reference",
    "rubric": "rubric",
    "stakeholders": "stakeholders",
}
"""The columns of a row by the parts of a task that they hold, where a trainer has no setting for them."""


def read_task_fields(row: Mapping[str, Any], columns: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the parts of a task in a row by their columns; what the row does not have is left out."""
    return {
        part: _CELL_READER_BY_FIELD[part](row[column])
        for part, column in columns.items()
        if column is not None and not is_missing_cell(row.get(column))
    }


def is_missing_cell(value: Any) -> bool:
    """Return whether a cell is empty: pandas has NaN where a row has no value."""
    return value is None or (isinstance(value, float | np.floating) and isnan(value))


def _read_reference_cell(value: Any) -> Any:
    """Return what a cell holds, a number as text: data sets of answers have columns of them."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    is_number = is_whole or (isinstance(value, float) and isfinite(value))
    return str(value) if is_number else value


def _read_json_cell(value: Any) -> Any:
    """Return what a cell holds: data sets keep nested values as text of JSON where their rows differ in shape."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


_CELL_READER_BY_FIELD: Mapping[str, Callable[[Any], Any]] = {
    "id": str,
    "reference": _read_reference_cell,
    "rubric": read_rubric_fields,
    "stakeholders": _read_json_cell,
}


_JSON_OBJECT_PATTERN = re.compile(r'\s*\{\s*("(\\.|[^"\\])*"\s*:|\}\s*$)', re.DOTALL)
"""The beginning of a JSON object, or an empty one: that of a set of texts, or of LaTeX's `{}^{14}C`, is none."""


def read_label_fields(label: Any) -> dict[str, Any]:
    """Return the parts of a task that a trainer's label has: its reference, or a JSON object with several parts.

    A set such as {1, 2} is a reference. Raises `InputError` for what begins as an object and is none with these parts.
    """
    if label in (None, ""):
        return {}
    if isinstance(label, str) and _JSON_OBJECT_PATTERN.match(label):
        parts = _read_json_cell(label)
        if isinstance(parts, dict) and parts.keys() <= Task.model_fields.keys():
            return parts
        raise InputError(
            f"the label {format_value(label, 60)} begins as a JSON object and is none of a task's fields; a label is "
            'the reference, or JSON such as {"id": "a", "reference": "4"}, also around a reference that is JSON itself'
        )
    text = label if isinstance(label, str) else json.dumps(label, ensure_ascii=False)
    return {"reference": text}


def complete_task_content(content: Any) -> Any:
    """Return the content of a task with its rubric as an object, and an id.

    A rubric may come as in a column; a task without an id is named by what it contains.
    """
    if not isinstance(content, Mapping):
        return content
    task_content = dict(content)
    if "rubric" in task_content:
        task_content["rubric"] = read_rubric_fields(task_content["rubric"])
    if "id" not in task_content:
        # messages of LangChain and others are dumped, as their own `model_dump` does it
        jsonable_content = to_jsonable_python(task_content, by_alias=False, fallback=dict)
        task_content["id"] = f"prompt-{digest_of(jsonable_content)[:_TASK_DIGEST_LENGTH]}"
    return task_content


def read_task(prompt: Any, parts: Mapping[str, Any]) -> Task:
    """Return the task of a prompt, a text or messages, with its other `parts` by their fields.

    Raises `InputError` that names the prompt, the field and what would be right.
    """
    task = _validate_task(prompt, parts)
    if not isinstance(task, Task):
        where = f"the trainer's prompt {format_value(prompt, 60)}, `{task.field}`"
        raise InputError(f"{where}: {task}")
    return task


def _validate_task(prompt: Any, parts: Mapping[str, Any]) -> Task | Problem:
    return validate(Task, complete_task_content({"query": prompt, **parts}))


def describe_row(index: int, prompt: Any, rows: str = "call") -> str:
    """Return a row of a trainer's call by its number, from 1 on, with the beginning of its prompt's last message.

    `rows` is what has the row, where it is not a call.
    """
    last_message = prompt[-1] if isinstance(prompt, list | tuple) and prompt else prompt
    if isinstance(last_message, Mapping):
        last_message = last_message.get("content", last_message)
    return f"row {index + 1} of the {rows} ({format_value(last_message, 60)})"


RowDescription = Callable[[int], str]
"""Returns how a message names a row, by its index."""


def read_tasks(
    prompts: Sequence[Any],
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str | None],
    describe: RowDescription,
) -> list[Task]:
    """Return the task of each sample, by its prompt and its row.

    Raises `InputError` that names row, column and field, and for a column which is not there; ids in `task_id` may be
    missing.

    The samples of a prompt follow each other, so that equal neighbours share one task: it is read once. One whose
    reference is NaN has that before it.
    """
    for part, column in columns.items():
        if rows and column not in (None, "task_id", *rows[0]):
            column_names_text = ", ".join(sorted(rows[0])) or "none but the prompt"
            argument = "task_id" if part == "id" else part
            raise InputError(
                f"{argument}: the data set has no column {column!r}; it has {column_names_text}"
            )
    tasks: list[Task] = []
    previous_content: tuple[Any, dict[str, Any]] | None = None
    for index, (prompt, row) in enumerate(zip(prompts, rows, strict=True)):
        fields = read_task_fields(row, columns)
        has_nan_reference = (
            "reference" not in fields and row.get(columns.get("reference") or "") is not None
        )
        if has_nan_reference and previous_content and prompt == previous_content[0]:
            fields = previous_content[1] | fields
        content = prompt, fields
        is_new_task = not tasks or content != previous_content
        task = _validate_task(*content) if is_new_task else tasks[-1]
        if not isinstance(task, Task):
            column = columns.get(str(task.path[0])) if task.path else None
            location = describe(index)
            if column is not None:
                location += f", column {column!r}"
            raise InputError(f"{location}, `{task.field}`: {task}")
        tasks.append(task)
        previous_content = content
    return tasks


def read_response(
    completion: Any,
    labels: Mapping[str, Any] | None = None,
    name: str = "a completion of the trainer",
) -> Response:
    """Return a completion, a text or the messages that follow the prompt, as a response.

    Raises `InputError`, which begins with the `name`.
    """
    if completion is None:
        raise InputError(f"{name} is None; give its text, or messages")
    content = {"text" if isinstance(completion, str) else "messages": completion}
    response = validate(Response, {**content, "labels": labels} if labels else content)
    if not isinstance(response, Response):
        raise InputError(f"{name}, `{response.field}`: {response}")
    return response


def group_sample_indices(tasks: Sequence[Task]) -> dict[str, list[int]]:
    """Return the indices of the samples of each task by its id, in the order of its first sample.

    Raises `InputError` for two tasks with one id that differ: their responses would be judged as one group.
    """
    groups: dict[str, list[int]] = {}
    for index, task in enumerate(tasks):
        members = groups.setdefault(task.id, [])
        first = tasks[members[0]] if members else task
        if first is not task and first != task:
            raise differing_rows_error(task.id, members[0], index, "batch")
        members.append(index)
    return groups


def differing_rows_error(task_id: str, first: int, second: int, rows: str) -> InputError:
    """Return the error of two rows, by their indices in what has the `rows`, that have one task's id and differ."""
    problem = f"task {task_id!r}: rows {first + 1} and {second + 1} of the {rows} differ"
    return InputError(f"{problem}; give each prompt an id of its own")
