"""Export a run as JSON lines, or its rewards or verdicts as CSV or Parquet."""

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import JsonValue

from jurygraph.errors import InputError
from jurygraph.messages import escape_hidden
from jurygraph.runs.run import Run
from jurygraph.runs.tables import ExportTable, own_verdicts, to_text
from jurygraph.schema import Trace
from jurygraph.schema.rating import Vote
from jurygraph.sources.ratings import QUOTED_CHARACTERS, escape_formulas


def trace_to_json_line(trace: Trace) -> bytes:
    """Return a trace as one printable line of JSON, with invisible characters escaped and without newline."""
    return escape_hidden(trace.model_dump_json()).encode()


def export_jsonl(run: Run) -> Iterator[bytes]:
    for trace in run.traces():
        yield trace_to_json_line(trace) + b"\n"


def export_votes(run: Run) -> Iterator[bytes]:
    """Yield the judges' verdicts as JSON lines of votes, as `jurygraph consensus` reads them.

    An item is a question about a response, and its label the score: 1 or 0 where a judge says that something is met or
    not. A judge that abstained has no label. Comparisons are left out, and verdicts that failed, that lack the
    quotation which they need, or that no judge gave. Raises `InputError` if none is left.
    """
    has_votes = False
    for trace in run.traces():
        for verdict in own_verdicts(trace, superseded=True):
            is_of_response = verdict.responses == (trace.response_id,)
            is_vote = verdict.status in ("ok", "abstained") and not verdict.is_worst_case
            if verdict.judge is None or not is_of_response or not is_vote:
                continue
            vote = Vote(
                item=f"{verdict.question} {trace.response_id}",
                agent=trace.agent,
                annotator=verdict.judge,
                label=float(bool(verdict.met)) if verdict.is_binary else verdict.score,
                group=trace.task_id,
            )
            yield vote.model_dump_json(exclude_none=verdict.status == "ok").encode() + b"\n"
            has_votes = True
    if not has_votes:
        raise InputError(
            f"{run.folder}: has no votes, since no judge answered a question about one response"
        )


def table_to_csv(table: ExportTable) -> Iterator[bytes]:
    """Yield the lines of a CSV file.

    A missing value is an empty cell, and a text with a line break, tab or semicolon is quoted. A text that a
    spreadsheet would run as a formula gets an apostrophe; the other formats leave every text unchanged.
    """
    columns = table.columns
    yield _csv_line(columns)
    for rows in table.batches():
        yield from (_csv_line(row.get(name) for name in columns) for row in rows)


def write_parquet(table: ExportTable, path: Path) -> None:
    """Write the rows of `table_to_csv` as a Parquet file. Raises `InputError` where pyarrow is not installed."""
    schema, batches = table.arrow_batches()
    import pyarrow.parquet as pq

    with path.open("wb") as file, pq.ParquetWriter(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _csv_line(cells: Iterable[JsonValue]) -> bytes:
    """Return one CSV line with unquoted numbers. The writer quotes cells that hold a character of its terminator."""
    line = io.StringIO()
    csv.writer(line, lineterminator=QUOTED_CHARACTERS).writerow(map(_csv_cell, cells))
    return f"{line.getvalue().removesuffix(QUOTED_CHARACTERS)}\n".encode()


def _csv_cell(value: JsonValue) -> str | float | None:
    """Return a number or None as it is, everything else as text that no spreadsheet runs as a formula."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    return escape_formulas(to_text(value))
