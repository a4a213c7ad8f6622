"""Argilla's records (2.x, `dataset.records.to_json`): the responses of users to questions."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue

from jurygraph.interchange.exports import ExportColumns, ExportedAnswer, read_located_entries
from jurygraph.interchange.rows import ImportedRow, RowKey
from jurygraph.schema.frozen_model import EMPTY_OBJECT, JsonObject

_SUBMITTED_RESPONSE_STATUSES = (None, "submitted")


class _Response(ImportedRow):
    user_id: str | None = None
    value: JsonValue = None
    status: str | None = None


class _Record(ImportedRow):
    id: RowKey
    fields: JsonObject = EMPTY_OBJECT
    metadata: JsonObject = EMPTY_OBJECT
    responses: dict[str, tuple[_Response, ...]]


def read_argilla_answers(path: Path, columns: ExportColumns) -> Iterator[ExportedAnswer]:
    """Yield the submitted responses; an item is the record's id, or one of its fields or metadata."""
    for location, record in read_located_entries(path, _Record):
        fields: JsonObject = {"id": record.id}
        if columns.item is not None:
            fields = {**record.fields, **record.metadata}
        for name, responses in record.responses.items():
            for number, response in enumerate(responses):
                field_path = f"responses.{name}[{number}]"
                if response.status in _SUBMITTED_RESPONSE_STATUSES:
                    yield ExportedAnswer(
                        location, field_path, fields, "id", response.user_id, response.value, name
                    )
