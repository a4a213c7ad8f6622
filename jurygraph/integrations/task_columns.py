"""The columns of a data set that tasks lack: what a jury reads of a task, and which parameter would name its column."""

from collections.abc import Mapping, Sequence
from typing import Any

from jurygraph.agents.roles import Evaluator
from jurygraph.errors import InputError
from jurygraph.integrations.samples import RowDescription, is_missing_cell
from jurygraph.jury import Jury
from jurygraph.messages import join_names
from jurygraph.schema import Task

_FIELD_BY_AUDIENCE = {"criterion": "rubric", "stakeholder": "stakeholders"}
_COLUMNS_OF_TRAINERS = frozenset(
    {
        "chat_template_kwargs",
        "completion_ids",
        "environments",
        "image",
        "images",
        "prompt_ids",
        "tools",
    }
)
"""What trainers hand over beside the parts of a task, or read themselves."""


def list_task_fields(jury: Jury) -> dict[str, str]:
    """Return the fields of a task that evaluators of a jury need, each with the name of the first that does."""
    evaluator_by_field: dict[str, str] = {}
    for name, evaluator in jury.evaluators.items():
        for field in _needed_fields(evaluator):
            evaluator_by_field.setdefault(field, name)
    return evaluator_by_field


def _needed_fields(evaluator: Evaluator) -> list[str]:
    return list(filter(None, (_FIELD_BY_AUDIENCE.get(evaluator.audience), *evaluator.task_fields)))


def refuse_unnamed_columns(
    jury: Jury,
    tasks: Sequence[Task],
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str | None],
    describe: RowDescription,
) -> None:
    """Raise `InputError` for a column that has the name of a parameter, which names no column, and what a task lacks.

    Without it, the rows would be left out of a whole training, or judged by a part of the reward.
    """
    for field, evaluator in list_task_fields(jury).items():
        if columns.get(field, field) is not None:
            continue
        for index, (task, row) in enumerate(zip(tasks, rows, strict=True)):
            if _is_filled(row.get(field)) and _lacks_field(jury, task, field):
                problem = f"column {field!r} is filled in {describe(index)}"
                raise InputError(
                    f"{problem}, {evaluator} needs it, and no parameter names it; write {field}={field!r}, or remove "
                    "or rename the column"
                )


def find_lacking_evaluators(jury: Jury, task: Task) -> dict[str, list[str]]:
    """Return the evaluators of a jury that the task has nothing for, each with the fields that it needs."""
    fields_by_evaluator = {}
    for name, evaluator in jury.evaluators.items():
        fields = _needed_fields(evaluator)
        if fields and all(_lacks_field(jury, task, field) for field in fields):
            fields_by_evaluator[name] = fields
    return fields_by_evaluator


def has_nothing_to_judge_by(jury: Jury, task: Task) -> bool:
    """Return whether every evaluator of a jury needs a field of the task that it lacks."""
    return len(find_lacking_evaluators(jury, task)) == len(jury.evaluators)


def describe_missing_fields(
    jury: Jury, task: Task, row: Mapping[str, Any], columns: Mapping[str, str | None]
) -> str:
    """Return which parameters name no column, or an empty one, of what the jury needs and the task lacks.

    Where a parameter is left, the filled columns that no parameter names follow. "" if the task lacks nothing.
    """
    needed_fields = list_task_fields(jury)
    hints = []
    unused_parameters = []
    for field, column in columns.items():
        if field not in needed_fields or not _lacks_field(jury, task, field):
            continue
        if column is None:
            unused_parameters.append(field)
            hints.append(f"`{field}=` names no column")
        else:
            hints.append(f"`{field}={column!r}` has no value there")
    description = ", ".join(hints)
    unnamed_columns = _list_unnamed_columns(row, columns) if unused_parameters else []
    if not unnamed_columns:
        return description
    names = join_names(map(repr, unnamed_columns))
    if len(unnamed_columns) > 1:
        return f"{description}; columns {names} are filled there, and no parameter names them"
    remedies = " or ".join(f"{name}={names}" for name in unused_parameters)
    return f"{description}; column {names} is filled there, and no parameter names it: {remedies}?"


def _list_unnamed_columns(row: Mapping[str, Any], columns: Mapping[str, str | None]) -> list[str]:
    """Return the columns that are filled in a row, and that neither a parameter names nor the trainer has itself."""
    named_columns = _COLUMNS_OF_TRAINERS.union(filter(None, columns.values()))
    return [
        column for column, cell in row.items() if column not in named_columns and _is_filled(cell)
    ]


def _is_filled(cell: Any) -> bool:
    if isinstance(cell, str):
        return bool(cell.strip())
    if isinstance(cell, list | tuple | dict):
        return bool(cell)
    return not is_missing_cell(cell)


def _lacks_field(jury: Jury, task: Task, field: str) -> bool:
    return not getattr(jury.config.task_defaults.complete(task), field)
