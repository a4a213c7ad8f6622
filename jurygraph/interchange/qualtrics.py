"""Qualtrics's CSV: a row for each participant, a column for each question, and three header rows."""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from jurygraph.errors import InputError
from jurygraph.interchange.exports import (
    ExportColumns,
    ExportedAnswer,
    get_export_field,
    read_located_rows,
)

_QUESTION_HEADER_PATTERN = re.compile(r'\{"ImportId":"QID\d+(_\d+)*"\}')
"""The third header of a question with an answer to choose; those of texts, times and orders end with a word."""
_PREVIEW_STATUS_VALUES = ("Survey Preview", "1")


def read_qualtrics_answers(path: Path, columns: ExportColumns) -> Iterator[ExportedAnswer]:
    """Yield the answers of participants: an item is a question, by the name of its column.

    Who answered is in `PROLIFIC_PID` if the survey has it, else in `ResponseId`. Previews are left out. Raises
    `InputError` with file, line and column.
    """
    rows = read_located_rows(path)
    headers = dict(islice(rows, 2)).values()
    import_id_by_column = list(headers)[-1] if headers else {}
    questions = [
        name
        for name, cell in import_id_by_column.items()
        if _QUESTION_HEADER_PATTERN.fullmatch(str(cell))
    ]
    if not questions:
        raise InputError(
            f"{path}, line 3: has no ImportId of a question (QID1); "
            "export as CSV, and leave the three rows of the header as they are"
        )
    person = "PROLIFIC_PID" if "PROLIFIC_PID" in import_id_by_column else "ResponseId"
    for location, row in rows:
        annotator = get_export_field(
            location, row, columns.annotator or person, "--reviewer-column"
        )
        for name in () if row.get("Status") in _PREVIEW_STATUS_VALUES else questions:
            yield ExportedAnswer(
                location, name, {"question": name}, "question", annotator, row[name], name
            )
