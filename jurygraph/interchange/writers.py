"""The formats that `jurygraph export` writes, by their names.

A format is a module next to this one, and an entry here; the formats that are read stand in `readers`, so that neither
direction loads the other.
"""

from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from math import nan
from pathlib import Path
from typing import Literal

from jurygraph.display import ignore_progress
from jurygraph.errors import InputError
from jurygraph.interchange.tables import table_to_csv, write_parquet
from jurygraph.interchange.traces import export_traces_as_jsonl, write_audit_bundle
from jurygraph.interchange.votes import export_votes
from jurygraph.runs.export_table import ExportRow, ExportTable, TableName
from jurygraph.runs.run import Run
from jurygraph.runs.stored_groups import read_stored_groups
from jurygraph.runs.table_reader import TableOptions, open_export_table

ExportContent = Iterable[bytes] | Callable[[Path], None]
"""Lines, or what writes a file."""


@dataclass(frozen=True, kw_only=True)
class Exporter:
    """One form of the format `name`: how its files end, which options it takes, and what it writes.

    What it reads is opened in the stack, until it is written. `library` is one that it needs, and `needs_file` says
    that it cannot go to standard output.
    """

    name: str
    suffix: str
    read: Callable[[Run, TableOptions, ExitStack], ExportContent]
    option_names: frozenset[str] = frozenset()
    needs_file: bool = False
    required_library: Literal["pyarrow", "openpyxl"] | None = None


def _read_workbook(run: Run, options: TableOptions, stack: ExitStack) -> ExportContent:
    from jurygraph.interchange.workbook import MAX_SHEET_ROWS, read_sheets, write_workbook

    responses = run.ledger.count_records("trace")
    if responses >= MAX_SHEET_ROWS:
        raise InputError(
            f"{run.folder}: a sheet has room for {MAX_SHEET_ROWS - 1} responses, not {responses}; "
            "use --to parquet"
        )
    sheets = read_sheets(run, options)
    options_without_progress = replace(options, report=ignore_progress)
    table = _open_table(run, "rewards", options_without_progress, stack)
    return partial(write_workbook, sheets, table)


def _open_table(run: Run, name: TableName, options: TableOptions, stack: ExitStack) -> ExportTable:
    return stack.enter_context(closing(open_export_table(run, name, options)))


def read_advantages(run: Run) -> dict[str, ExportRow]:
    """Return the `advantage` of each response in its group, with the std of ddof 1; None for a failed reward."""
    from jurygraph.aggregation import advantages  # lazily: it loads NumPy

    found: dict[str, ExportRow] = {}
    for group in read_stored_groups(run):
        values = [nan if trace.value is None else trace.value for trace in group.traces]
        for trace, advantage in zip(group.traces, advantages(values).tolist(), strict=True):
            found[trace.response_id] = {"advantage": None if trace.value is None else advantage}
    return found


_RESPONSE_TABLE_OPTIONS = frozenset(
    {"texts", "where", "questions", "reasons", "parts", "advantages", "labels"}
)
_VERDICT_TABLE_OPTIONS = frozenset({"texts", "where"})


def _make_csv_exporter(name: str, table: TableName, option_names: frozenset[str]) -> Exporter:
    return Exporter(
        name=name,
        suffix=".csv",
        read=lambda run, options, exit_stack: table_to_csv(
            _open_table(run, table, options, exit_stack)
        ),
        option_names=option_names,
    )


def _make_parquet_exporter(name: str, table: TableName, option_names: frozenset[str]) -> Exporter:
    return Exporter(
        name=name,
        suffix=".parquet",
        read=lambda run, options, exit_stack: partial(
            write_parquet, _open_table(run, table, options, exit_stack)
        ),
        option_names=option_names,
        needs_file=True,
        required_library="pyarrow",
    )


EXPORTERS = (
    Exporter(name="jsonl", suffix=".jsonl", read=lambda run, *_: export_traces_as_jsonl(run)),
    _make_csv_exporter("csv", "rewards", _RESPONSE_TABLE_OPTIONS),
    _make_parquet_exporter("parquet", "rewards", _RESPONSE_TABLE_OPTIONS),
    Exporter(
        name="xlsx",
        suffix=".xlsx",
        read=_read_workbook,
        option_names=_RESPONSE_TABLE_OPTIONS | {"by", "study"},
        needs_file=True,
        required_library="openpyxl",
    ),
    _make_csv_exporter("verdicts", "verdicts", _VERDICT_TABLE_OPTIONS),
    _make_parquet_exporter("verdicts", "verdicts", _VERDICT_TABLE_OPTIONS),
    Exporter(name="ratings", suffix=".jsonl", read=lambda run, *_: export_votes(run)),
    Exporter(
        name="audit-bundle",
        suffix=".zip",
        read=lambda run, *_: partial(write_audit_bundle, run),
        needs_file=True,
    ),
)
"""The forms of all formats, of which the name of the file chooses; the first of a format without one."""
