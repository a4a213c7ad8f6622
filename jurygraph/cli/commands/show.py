"""`jurygraph show`, `explain` and `export`: print or convert the contents of a run."""

from itertools import islice
from typing import Annotated, Literal

from jurygraph.cli.options import AsJson, OutFile, RunFolder, option
from jurygraph.cli.output_files import refuse_unwritable, write_output, write_output_with
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
from jurygraph.explanation import Explanation
from jurygraph.runs.export import export_csv, export_jsonl, export_parquet, trace_to_json_line
from jurygraph.runs.integrity.bundle import export_bundle
from jurygraph.runs.integrity.verification import load_run_combiners
from jurygraph.runs.outline import read_groups
from jurygraph.runs.run import Run


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
        print_result_lines(trace_lines(explain_response(stored_run, response).explained))
    else:
        _show_table(stored_run, limit)
        if not stored_run.is_closed:
            scored, total = stored_run.tasks_scored, stored_run.header.extent.tasks
            state = f"{scored} of {total} tasks are scored; the same score command continues"
            print_message(f"this run is still being written, or was interrupted: {state}")


def explain_response(run: Run, response: str) -> Explanation:
    """Return the explanation of a response's reward in a run."""
    trace = run.find_trace(response)
    questions = run.survey_shape_of(trace.task_id).questions
    return Explanation(
        trace,
        run.decision_of(trace.task_id),
        questions,
        group=lambda: [scored.trace for scored in run.group_of(trace.task_id)],
        combiners=lambda: load_run_combiners(run),
        config=run.config,
    )


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
    run: RunFolder,
    response: Annotated[str, option("ID", "Id of a response.", "--response")],
    what_if: Annotated[bool, option(None, "Show the single changes that would raise the reward.")] = False,
    json: AsJson = False,
) -> None:
    """Explain a reward: the points that it gained and lost, in order of cost.

    `--what-if` decides again, each time with one verdict at its best value or one gate passed; no model is called.

    \b
    Example:
        jurygraph explain run --response task-1/a
        jurygraph explain run --response task-1/a --what-if
    """
    explanation = explain_response(Run.open(run), response)
    if json:
        print_report(True, explanation.to_dict(what_if), ())
    else:
        print_result_lines(map(escape_line, explanation.sentences(what_if)))


def export(
    run: RunFolder,
    to: Annotated[
        Literal["jsonl", "csv", "parquet", "audit-bundle"],
        option(None, "jsonl: the traces; csv, parquet: one row per response; audit-bundle: a self-verifying zip."),
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
    stored_run, output = Run.open(run), None if output == "-" else output
    if output is not None:
        refuse_unwritable(output)
    if to in ("jsonl", "csv"):
        lines = (export_jsonl if to == "jsonl" else export_csv)(stored_run)
        if output is None:
            for line in lines:
                print_result(line.removesuffix(b"\n"))
            return
        write_output(output, lines)
    elif output is None:
        raise InputError(f"--to {to}: needs an output file; name one with -o")
    elif to == "parquet":
        write_output_with(output, lambda path: export_parquet(stored_run, path))
    else:
        write_output_with(output, lambda path: export_bundle(stored_run, path, export_jsonl(stored_run)))
    print_message(f"wrote {output}")
