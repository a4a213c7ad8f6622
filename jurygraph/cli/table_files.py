"""Write rows as a table that a spreadsheet opens, .csv or .xlsx, or as .jsonl, by the ending of the file."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

from jurygraph.cli.output_files import write_output, write_output_with
from jurygraph.errors import InputError
from jurygraph.runs.export_table import import_library
from jurygraph.sources.sheets import sheet_rows_to_csv

_OTHER_SUFFIXES = (".json", ".parquet", ".xls", ".ods", ".tsv", ".html", ".md", ".gz")
Cell = str | int | float | None
TableRows = Sequence[Mapping[str, Cell]]


def refuse_other_table(path: Path) -> None:
    """Raise `InputError` for an ending of another format, or where the library for Excel is not installed."""
    if path.suffix.lower() in _OTHER_SUFFIXES:
        raise InputError(
            f"{path}: is written as CSV, JSONL or Excel; name a file that ends in .csv, .jsonl or .xlsx"
        )
    if path.suffix.lower() == ".xlsx":
        import_library("openpyxl")


def write_table(
    path: Path,
    rows: TableRows,
    other_sheets: Mapping[str, TableRows] = MappingProxyType({}),
    choices: Sequence[Sequence[str]] = (),
) -> None:
    """Write rows with the columns of all of them: as Excel, with other sheets, for .xlsx, JSON for .jsonl, else CSV.

    Excel offers the `choices` of each row, [rows], for its `score`; there are no other sheets then.
    """
    suffix = path.suffix.lower()
    if suffix == ".xlsx":
        from jurygraph.interchange.workbook import write_sheets

        write_output_with(
            path, partial(write_sheets, {"Items": rows, **other_sheets}, choices=choices)
        )
        return
    if suffix == ".jsonl":
        write_output(path, (json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows))
        return
    columns = list(dict.fromkeys(column for row in rows for column in row))
    texts = [
        {column: "" if row.get(column) is None else str(row[column]) for column in columns}
        for row in rows
    ]
    write_output(path, sheet_rows_to_csv(texts))
