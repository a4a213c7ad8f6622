"""`jurygraph show`, `explain` and `export`: print or convert the contents of a run."""

from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli.options import AsJson, OutFile, RunFolder
from jurygraph.cli.output_files import refuse_run_file, write_output, write_output_with
from jurygraph.cli.render.text import (
    escape_line,
    format_number,
    print_json,
    print_message,
    print_result,
    print_result_lines,
    spooled_table,
)
from jurygraph.errors import InputError

if TYPE_CHECKING:
    from jurygraph.runs.run import Run

ResponseId = Annotated[str, typer.Option("--response", metavar="ID", help="Id of a response.", show_default=False)]


class ExportFormat(StrEnum):
    """Formats in which a run can be exported."""

    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"
    audit_bundle = "audit-bundle"


def show(
    run: RunFolder,
    response: Annotated[
        str | None, typer.Option(metavar="ID", help="Show the full trace of this response.", show_default=False)
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Show the first N responses.", show_default=False)
    ] = None,
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
    from jurygraph.runs.run import Run

    stored_run = Run.open(run)
    if response is None:
        _show_all(stored_run, limit, json)
        return
    from jurygraph.cli.render.explanation import explain as explain_trace
    from jurygraph.cli.render.trace import trace_lines
    from jurygraph.runs.export import trace_to_json_line

    trace = stored_run.find_trace(response)
    if json:
        print_result(trace_to_json_line(trace))
        return
    print_result_lines(trace_lines(explain_trace(trace, stored_run.decision_of(trace.task_id))))


def _show_all(run: "Run", limit: int | None, as_json: bool) -> None:
    if as_json:
        from jurygraph.runs.export import trace_to_json_line

        for trace in islice(run.traces(), limit):
            print_result(trace_to_json_line(trace))
        return
    _show_table(run, limit)
    if not run.is_closed:
        scored, total = run.tasks_scored, run.header.extent.tasks
        state = f"{scored} of {total} tasks are scored; the same score command continues"
        print_message(f"this run is still being written, or was interrupted: {state}")


def _show_table(run: "Run", limit: int | None) -> None:
    """Print a row for each response. Rows are spooled to a temporary file until the column widths are known."""
    from jurygraph.runs.outline import read_groups

    outlines = (outline for group in read_groups(run) for outline in group.traces)
    with spooled_table(left=3) as rows:
        names: dict[str, None] = {}
        for outline in islice(outlines, limit):
            components = outline.components
            if not components.keys() <= names.keys():
                names.update(dict.fromkeys(components))
            cells = [
                outline.response_id,
                outline.agent or "-",
                outline.status,
                format_number(outline.value),
                format_number(outline.coverage),
            ]
            rows.add([*cells, *(format_number(components.get(name)) for name in names)])
        header = ["response", "agent", "status", "reward", "coverage", *names]
        print_result_lines(rows.lines(header, missing=format_number(None)))


def explain(run: RunFolder, response: ResponseId, json: AsJson = False) -> None:
    """Explain a reward in plain sentences.

    \b
    Example:
        jurygraph explain run --response task-1/a
    """
    from jurygraph.cli.render.explanation import explain as explain_trace
    from jurygraph.cli.render.sentences import sentences
    from jurygraph.runs.run import Run

    stored_run = Run.open(run)
    trace = stored_run.find_trace(response)
    lines = sentences(explain_trace(trace, stored_run.decision_of(trace.task_id)))
    if json:
        print_json({"task_id": trace.task_id, "response_id": trace.response_id, "sentences": lines})
        return
    for sentence in lines:
        print_result(escape_line(sentence))


def export(
    run: RunFolder,
    to: Annotated[
        ExportFormat,
        typer.Option(
            "--to",
            help="jsonl: the traces; csv, parquet: one row per response; audit-bundle: a self-verifying zip.",
        ),
    ],
    output: OutFile = None,
) -> None:
    """Export a run in another format.

    In csv a missing number is an empty cell, and an id that a spreadsheet would run as a formula (= + - or @ at its
    start, or after a line break, tab or semicolon) gets an apostrophe in front, which commands that read ratings from
    csv remove; other formats keep ids unchanged. On a terminal, control characters are escaped. An audit-bundle
    contains the ledger with all texts and `verify.py`, a small file that verifies it with Python alone. It and parquet
    need `-o`.

    \b
    Example:
        jurygraph export run --to csv -o rewards.csv
        jurygraph export run --to audit-bundle -o run.zip
    """
    from jurygraph.runs.export import export_csv, export_jsonl, export_parquet
    from jurygraph.runs.integrity.bundle import export_bundle
    from jurygraph.runs.run import Run

    stored_run, output = Run.open(run), None if output == "-" else output
    if output is not None:
        refuse_run_file(output)
    if to in (ExportFormat.parquet, ExportFormat.audit_bundle):
        if output is None:
            raise InputError(f"--to {to.value}: needs an output file; name one with -o")
        if to is ExportFormat.parquet:
            write_output_with(output, lambda path: export_parquet(stored_run, path))
        else:
            write_output_with(output, lambda path: export_bundle(stored_run, path, export_jsonl(stored_run)))
    else:
        lines = (export_jsonl if to is ExportFormat.jsonl else export_csv)(stored_run)
        if output is None:
            for line in lines:
                print_result(line.removesuffix(b"\n"))
            return
        write_output(output, lines)
    print_message(f"wrote {output}")
