"""`jurygraph show`, `explain` and `export`: print or convert the contents of a run."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

import typer

from jurygraph.cli.options import AsJson, OutFile, RunFolder, option
from jurygraph.cli.output_files import refuse_unwritable, write_output, write_output_with
from jurygraph.cli.render.explanation import Explanation
from jurygraph.cli.render.reward_table import Selection, print_reward_table
from jurygraph.cli.render.sentences import sentences
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
from jurygraph.runs.export import export_csv, export_jsonl, export_parquet, trace_to_json_line
from jurygraph.runs.integrity.bundle import export_bundle
from jurygraph.runs.run import Run

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
        print_result_lines(trace_lines(_explain(stored_run, response)))
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


def _explain(run: Run, response: str) -> Explanation:
    trace = run.find_trace(response)
    return Explanation(trace, run.decision_of(trace.task_id))


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
