"""Rewards or verdicts as a table: CSV, or Parquet."""

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import JsonValue

from jurygraph.runs.export_table import ExportTable, json_value_to_text
from jurygraph.sources.csv_text import CSV_QUOTED_CHARACTERS, escape_formulas


def table_to_csv(table: ExportTable) -> Iterator[bytes]:
    """Yield the lines of a CSV file.

    A missing value is an empty cell, and a text with a line break, tab or semicolon is quoted. A text that a
    spreadsheet would run as a formula gets an apostrophe; the other formats leave every text unchanged.
    """
    columns = table.columns
    yield _format_csv_line(columns)
    for rows in table.batches():
        yield from (_format_csv_line(row.get(name) for name in columns) for row in rows)


def write_parquet(table: ExportTable, path: Path) -> None:
    """Write the rows of `table_to_csv` as a Parquet file. Raises `InputError` where pyarrow is not installed."""
    schema, batches = table.arrow_batches()
    import pyarrow.parquet as pq

    with path.open("wb") as file, pq.ParquetWriter(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _format_csv_line(cells: Iterable[JsonValue]) -> bytes:
    """Return one CSV line with unquoted numbers. The writer quotes cells that hold a character of its terminator."""
    line = io.StringIO()
    csv.writer(line, lineterminator=CSV_QUOTED_CHARACTERS).writerow(map(_to_csv_cell, cells))
    return f"{line.getvalue().removesuffix(CSV_QUOTED_CHARACTERS)}\n".encode()


def _to_csv_cell(value: JsonValue) -> str | float | None:
    """Return a number or None as it is, everything else as text that no spreadsheet runs as a formula."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    return escape_formulas(json_value_to_text(value))
