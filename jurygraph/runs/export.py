"""Export the traces of a run as JSON lines, CSV or Parquet."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.safety.text_folding import UNSEEN
from jurygraph.schema import Trace
from jurygraph.sources.ratings import QUOTED_CHARACTERS, escape_formulas

_UNSEEN = re.compile(f"[{UNSEEN}]")


def trace_to_json_line(trace: Trace) -> bytes:
    """Return a trace as one printable line of JSON, with invisible characters escaped and without newline."""
    text = trace.model_dump_json()
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text).encode()


_IDENTITY = ("task_id", "response_id", "agent")
_NUMBERS = ("coverage", "low", "high")
_COUNTS = ("judged", "abstained", "failed", "not_applicable")
_ROWS = 10_000

Row = dict[str, str | float | int | None]


def export_jsonl(run: Run) -> Iterator[bytes]:
    """Yield the traces as JSON lines."""
    for trace in run.traces():
        yield trace_to_json_line(trace) + b"\n"


def export_csv(run: Run) -> Iterator[bytes]:
    """Yield the lines of a CSV file with one row per response: its reward, `component.NAME` columns and the counts.

    A missing number is an empty cell, and a text with a line break, tab or semicolon is quoted. An id or a name that a
    spreadsheet would run as a formula gets an apostrophe; the other formats leave every name unchanged.
    """
    columns, rows = _table(run)
    first = list(islice(rows, 1))  # read before the header is yielded: an unreadable run must not give a header
    yield _csv_line(columns)
    for row in chain(first, rows):
        yield _csv_line(row.values())


def export_parquet(run: Run, path: Path) -> None:
    """Write the rows of `export_csv` as a Parquet file. Raises `InputError` where pyarrow is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install 'jurygraph[parquet]'") from None
    columns, rows = _table(run)
    types = {**dict.fromkeys((*_IDENTITY, "status"), pa.string()), **dict.fromkeys(_COUNTS, pa.int64())}
    schema = pa.schema([(name, types.get(name, pa.float64())) for name in columns])
    with path.open("wb") as file, pq.ParquetWriter(file, schema) as writer:
        while batch := list(islice(rows, _ROWS)):
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))


def _table(run: Run) -> tuple[list[str], Iterator[Row]]:
    """Return the names of the columns, with all components in the order of the run's decisions, and the rows."""
    decisions = (run.decision(record.key) for record in run.ledger.records("decision"))
    components = list(dict.fromkeys(spec.name for decision in decisions for spec in decision.specs))
    columns = [*_IDENTITY, "value", "status", *_NUMBERS, *(f"component.{name}" for name in components), *_COUNTS]

    def row(trace: Trace) -> Row:
        reward = trace.reward
        low, high = reward.range or (None, None)
        identity = trace.task_id, trace.response_id, trace.agent
        values = [*identity, reward.value, reward.status, reward.coverage, low, high]
        values += [reward.components.get(name) for name in components]
        values += [getattr(reward.counts, name) for name in _COUNTS]
        return dict(zip(columns, values, strict=True))

    return columns, map(row, run.traces())


def _csv_line(cells: Iterable[str | float | int | None]) -> bytes:
    """Return one CSV line with unquoted numbers. The writer quotes cells that hold a character of its terminator."""
    line = io.StringIO()
    csv.writer(line, lineterminator=QUOTED_CHARACTERS).writerow(
        escape_formulas(cell) if isinstance(cell, str) else cell for cell in cells
    )
    return f"{line.getvalue().removesuffix(QUOTED_CHARACTERS)}\n".encode()
