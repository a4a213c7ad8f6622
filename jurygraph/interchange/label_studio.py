"""Label Studio's export JSON, in which a task has its annotations: their ratings, choices and numbers."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from jurygraph.interchange.exports import ExportColumns, ExportedAnswer, read_located_entries
from jurygraph.interchange.rows import ImportedRow, RowKey
from jurygraph.schema.frozen_model import EMPTY_OBJECT, JsonObject

_RESULT_VALUE_KEYS = ("rating", "number", "choices", "selected")
"""The keys under which a result has its value."""


class _Result(ImportedRow):
    from_name: str | None = None
    value: JsonValue = None


class _Annotation(ImportedRow):
    completed_by: JsonValue = None
    result: tuple[_Result, ...] = ()
    was_cancelled: bool | None = None

    @property
    def annotator(self) -> Any:
        """Who annotated: a number, or the email or id of a user who is exported whole."""
        user = self.completed_by
        return user.get("email") or user.get("id") if isinstance(user, dict) else user


class _AnnotatedTask(ImportedRow):
    id: RowKey
    data: JsonObject = EMPTY_OBJECT
    annotations: tuple[_Annotation, ...]


def read_label_studio_answers(path: Path, columns: ExportColumns) -> Iterator[ExportedAnswer]:
    """Yield the answers of annotators; a question is a `from_name`, and a skipped annotation is left out.

    An item is the task's id, or a field of its data.
    """
    for location, task in read_located_entries(path, _AnnotatedTask):
        fields = task.data if columns.item is not None else {"id": task.id}
        for number, annotation in enumerate(task.annotations):
            field_path = f"annotations[{number}]"
            for result in () if annotation.was_cancelled else annotation.result:
                name = result.from_name
                if name is not None:
                    answer = _unwrap_result_values(result.value)
                    yield ExportedAnswer(
                        location, field_path, fields, "id", annotation.annotator, answer, name
                    )


def _unwrap_result_values(value: Any) -> Any:
    """Return the values in a result, out of lists and objects, as a list if there are none or several."""
    while isinstance(value, list | Mapping):
        parts = (
            value
            if isinstance(value, list)
            else [value[key] for key in _RESULT_VALUE_KEYS if key in value]
        )
        if len(parts) != 1:
            return parts
        value = parts[0]
    return value
