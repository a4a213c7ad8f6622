"""`jurygraph show`, `explain` and `export`: print or convert the contents of a run."""

from collections.abc import Callable, Iterable
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from jurygraph.cli.options import AsJson, OutFile, RunFolder, option
from jurygraph.cli.output_files import compress_lines, refuse_unwritable, write_output, write_output_with
from jurygraph.cli.render.explanation import Explanation
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.sentences import sentences
from jurygraph.cli.render.text import (
    escape_line,
    format_number,
    print_message,
    print_report,
    print_result,
    print_result_lines,
    spooled_table,
)
from jurygraph.cli.render.trace import trace_lines
from jurygraph.errors import InputError
from jurygraph.runs.export import export_jsonl, table_to_csv, trace_to_json_line, write_parquet
from jurygraph.runs.integrity.bundle import export_bundle
from jurygraph.runs.outline import read_groups
from jurygraph.runs.run import Run
from jurygraph.runs.tables import import_library


def show(
    run: RunFolder,
    response: Annotated[str | None, option("ID", "Show the full trace of this response.")] = None,
    limit: Annotated[int | None, option("N", "Show the first N responses.", min=1)] = None,
    json: AsJson = False,
) -> None:
    """Show the rewards of a run, or the full trace of a response.

    `--json` prints the traces as stored, one per line.

    \b
    Example:
        jurygraph show run
        jurygraph show run --response task-1/a
        jurygraph show run --json | jq .reward.value
    """
    stored_run = Run.open(run)
    if json:
        traces = islice(stored_run.traces(), limit) if response is None else [stored_run.find_trace(response)]
        for trace in traces:
            print_result(trace_to_json_line(trace))
    elif response is not None:
        print_result_lines(trace_lines(_explain(stored_run, response)))
    else:
        _show_table(stored_run, limit)
        if not stored_run.is_closed:
            scored, total = stored_run.tasks_scored, stored_run.header.extent.tasks
            state = f"{scored} of {total} tasks are scored; the same score command continues"
            print_message(f"this run is still being written, or was interrupted: {state}")


def _explain(run: Run, response: str) -> Explanation:
    trace = run.find_trace(response)
    return Explanation(trace, run.decision_of(trace.task_id))


def _show_table(run: Run, limit: int | None) -> None:
    """Print a row for each response. Rows are spooled to a temporary file until the column widths are known."""
    outlines = (outline for group in read_groups(run) for outline in group.traces)
    with spooled_table(left=3) as rows:
        names: dict[str, None] = {}
        for outline in islice(outlines, limit):
            names.update(dict.fromkeys(outline.components))
            numbers = (outline.value, outline.coverage, *map(outline.components.get, names))
            rows.add([outline.response_id, outline.agent or "-", outline.status, *map(format_number, numbers)])
        header = ["response", "agent", "status", "reward", "coverage", *names]
        print_result_lines(rows.lines(header, missing=format_number(None)))


def explain(
    run: RunFolder, response: Annotated[str, option("ID", "Id of a response.", "--response")], json: AsJson = False
) -> None:
    """Explain a reward in plain sentences.

    \b
    Example:
        jurygraph explain run --response task-1/a
    """
    explanation = _explain(Run.open(run), response)
    trace, lines = explanation.trace, sentences(explanation)
    content = {"task_id": trace.task_id, "response_id": trace.response_id, "sentences": lines}
    print_report(json, content, map(escape_line, lines))


def export(
    run: RunFolder,
    to: Annotated[
        Literal["jsonl", "csv", "parquet", "verdicts", "audit-bundle"],
        option(
            None,
            "jsonl: the traces; csv, parquet: one row per response; verdicts: one row per verdict, as CSV, or Parquet "
            "with -o F.parquet; audit-bundle: a self-verifying zip.",
        ),
    ],
    output: OutFile = None,
    texts: Annotated[bool, typer.Option("--texts", help="Add the columns prompt and response to a table.")] = False,
) -> None:
    """Export a run in another format.

    Tables have the labels of responses as columns label.NAME, and the metadata of responses and tasks as metadata.NAME.
    In csv a missing value is an empty cell, and a text that a spreadsheet would run as a formula (= + - or @ at its
    start, or after a line break, tab or semicolon) gets an apostrophe in front, which commands that read ratings and
    texts from csv remove; other formats keep texts unchanged. On a terminal, control characters are escaped. An
    audit-bundle contains the ledger with all texts and `verify.py`, a small file that verifies it with Python alone. It
    and parquet need `-o`. A name that ends in .gz is compressed.

    \b
    Example:
        jurygraph export run --to csv -o rewards.csv
        jurygraph export run --to verdicts --texts -o verdicts.parquet
        jurygraph export run --to audit-bundle -o run.zip
    """
    output = None if output == "-" else output
    form = _table_format(output) if to == "verdicts" else to
    if texts and form not in ("csv", "parquet"):
        raise InputError(f"--texts: --to {to} has no columns to add to; use csv, parquet or verdicts")
    if output is None and form in ("parquet", "audit-bundle"):
        raise InputError(f"--to {to}: needs an output file; name one with -o")
    if form == "parquet":
        import_library("pyarrow")  # before a large run is read
    stored_run = Run.open(run)
    if output is not None:
        refuse_unwritable(output)
    if form not in ("csv", "parquet"):
        traces = export_jsonl(stored_run)
        _write(output, traces if form == "jsonl" else lambda path: export_bundle(stored_run, path, traces))
        return
    with progress("reading", stored_run.header.extent.responses, "responses") as report:
        table = stored_run.read_table("verdicts" if to == "verdicts" else "rewards", texts, report)
    with closing(table):
        _write(output, table_to_csv(table) if form == "csv" else lambda path: write_parquet(table, path))


def _table_format(output: str | None) -> Literal["csv", "parquet"]:
    """Return the format of a table from the name of its file. Raises `InputError` for another suffix."""
    if output is None or output.lower().endswith((".csv", ".csv.gz")):
        return "csv"
    if output.lower().endswith(".parquet"):
        return "parquet"
    raise InputError(f"{output}: verdicts are written as CSV or Parquet; name a file that ends in .csv or .parquet")


def _write(output: str | None, content: Iterable[bytes] | Callable[[Path], None]) -> None:
    """Write lines, or what a library writes to a path. Without a path, print the lines."""
    if output is None:
        for line in cast(Iterable[bytes], content):
            print_result(line.removesuffix(b"\n"))
    elif callable(content):
        write_output_with(output, content)
    else:
        write_output(output, compress_lines(output, content))
    if output is not None:
        print_message(f"wrote {output}")
