"""`jurygraph show`, `explain` and `export`: print or convert the contents of a run."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from jurygraph.cli.options import AsJson, OutFile, RunFolder, option
from jurygraph.cli.output_files import compress_lines, refuse_unwritable, write_output, write_output_with
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.reward_table import Selection, print_reward_table
from jurygraph.cli.render.text import (
    escape_line,
    print_message,
    print_report,
    print_result,
    print_result_lines,
)
from jurygraph.cli.render.trace import trace_lines
from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean
from jurygraph.runs.export import export_jsonl, table_to_csv, trace_to_json_line, write_parquet
from jurygraph.runs.integrity.bundle import export_bundle
from jurygraph.runs.run import Run
from jurygraph.runs.tables import import_library

Options = Mapping[str, object]


def show(
    run: RunFolder,
    response: Annotated[str | None, option("ID", "Show the full trace of this response.")] = None,
    call: Annotated[str | None, option("QUESTION", "Show prompt and reply of each call for this question.")] = None,
    verdict: Annotated[str | None, option("QUESTION", "Show every field of the verdicts on this question.")] = None,
    status: Annotated[
        Literal["ok", "degraded", "failed"] | None, option(None, "Only rewards with this status.")
    ] = None,
    agent: Annotated[str | None, option("A", "Only responses of this agent.")] = None,
    sort: Annotated[str | None, option("COLUMN", "Sort by a column; -COLUMN puts the greatest first.")] = None,
    limit: Annotated[int | None, option("N", "Show the first N responses.", min=1)] = None,
    columns: Annotated[str | None, option("A,B", "Columns of the table: reward, coverage, a component, …")] = None,
    all_components: Annotated[bool, typer.Option("--all", help="Also show components of weight 0.")] = False,
    json: AsJson = False,
) -> None:
    """Show the rewards of a run, the full trace of a response, or the calls behind it.

    On a terminal the table is fitted to its width; a pipe gets it whole. An asterisk marks values that the failure rule
    filled in; a dash means that there is no value. --call and --verdict take the name of a question as the trace
    prints it. `--json` prints the traces as stored, one per line.

    \b
    Example:
        jurygraph show run --sort -reward --status ok --columns reward,accuracy
        jurygraph show run --response task-1/a
        jurygraph show run --response task-1/a --call criteria@kind
        jurygraph show run --json | jq .reward.value
    """
    selection = Selection(status, agent, sort, limit)
    table = {"columns": columns, "all": all_components or None}
    _refuse_contradictions(response, {"call": call, "verdict": verdict}, {**table, **selection._asdict()}, json)
    stored_run = Run.open(run)
    question = verdict if call is None else call
    if response is not None and question is not None:
        _show_question(stored_run, response, question, call is not None, json)
    elif response is not None and json:
        print_result(trace_to_json_line(stored_run.find_trace(response)))
    elif response is not None:
        print_result_lines(trace_lines(stored_run.explain(response).explained))
    elif json:
        _print_traces(stored_run, selection)
    else:
        print_reward_table(stored_run, selection, columns, all_components)
        if not stored_run.is_closed:
            scored, total = stored_run.tasks_scored, stored_run.header.extent.tasks
            state = f"{scored} of {total} tasks are scored; the same score command continues"
            print_message(f"this run is still being written, or was interrupted: {state}")


def _refuse_contradictions(response: str | None, one: Options, many: Options, json: bool) -> None:
    """Raise `InputError` for options about one response together with options about many, or without a response."""
    of_one, of_many = ([f"--{name}" for name, value in options.items() if value is not None] for options in (one, many))
    if of_one and response is None:
        raise InputError(f"{of_one[0]} is about one response; name it with --response ID")
    if len(of_one) > 1:
        raise InputError(f"expected one of {' and '.join(of_one)}")
    if of_many and response is not None:
        raise InputError(f"{of_many[0]} is about many responses; leave it out, or leave out --response")
    if json and of_many and of_many[0] in ("--columns", "--all"):
        raise InputError(f"{of_many[0]} is about the table; --json prints whole traces, so leave it out")


def _print_traces(run: Run, selection: Selection) -> None:
    """Print the selected traces as JSON lines; the last groups are kept, since traces of a group are often together."""
    group_at = lru_cache(maxsize=16)(lambda seq: run.group(run.source.ledger.record_at(seq)))
    for seq, name in selection.select(run, lambda one: (one.record.seq - one.body["group"], one.response_id)):
        print_result(next(trace_to_json_line(trace) for trace, _ in group_at(seq) if trace.response_id == name))


def _show_question(run: Run, response: str, question: str, calls: bool, json: bool) -> None:
    """Print the verdicts on a question about a response, or the `calls` behind them."""
    from jurygraph.cli.render.question import call_lines, verdict_lines  # lazily: they load NumPy
    from jurygraph.runs.calls import read_calls

    trace = run.find_trace(response)
    verdicts = [verdict for verdict in trace.verdicts if verdict.question == question]
    if not verdicts:
        known = dict.fromkeys(verdict.question for verdict in trace.verdicts)
        hint = did_you_mean(question, known) or f"known: {', '.join(known)}"
        raise InputError(f"{run.folder}: response {response!r} has no question {question!r}; {hint}")
    content: dict[str, Any] = {"task_id": trace.task_id, "response_id": response, "question": question}
    if calls:
        found = read_calls(run, trace, verdicts)
        content["calls"] = [{**one._asdict(), "call": one.call.model_dump(mode="json")} for one in found]
        print_report(json, content, call_lines(found, verdicts))
    else:
        content["verdicts"] = [verdict.model_dump(mode="json") for verdict in verdicts]
        print_report(json, content, verdict_lines(verdicts))


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
    explanation = Run.open(run).explain(response)
    if json:
        print_report(True, explanation.to_dict(what_if), ())
    else:
        print_result_lines(map(escape_line, explanation.sentences(what_if)))


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
