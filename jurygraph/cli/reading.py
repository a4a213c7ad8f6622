"""`jurygraph show`, `explain` and `export`: what a run holds, read from its folder."""

from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli.text import number, out, out_json, say, table, visible

if TYPE_CHECKING:
    from jurygraph.runs import Run

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.", show_default=False)]
ResponseId = Annotated[str, typer.Option("--response", metavar="ID", help="Id of a response.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


_RESUMED = "(the same score command resumes it)"
# A run that was killed could not say so: its status stays `running`.
_UNFINISHED = {
    "running": f"is still being written, or was stopped before it was complete {_RESUMED}",
    "interrupted": f"was interrupted {_RESUMED}",
}


class Form(StrEnum):
    """What a run can be exported to."""

    jsonl = "jsonl"
    csv = "csv"


def show(
    run: RunFolder,
    response: Annotated[
        str | None, typer.Option(metavar="ID", help="Show this response's trace in full.", show_default=False)
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Show the first N responses.", show_default=False)
    ] = None,
    json: AsJson = False,
) -> None:
    """Show a run's rewards as a table, or one response's trace in full.

    `--json` prints the traces as they are stored, one a line.

    \b
    Example:
        jurygraph show run
        jurygraph show run --response task-1/a
        jurygraph show run --json | jq .reward.value
    """
    from jurygraph.cli.traces import trace_lines
    from jurygraph.runs import Run

    opened = Run.open(run)
    if response is None:
        _show_all(opened, limit, json)
        return
    record = opened.find(response)
    for line in [record.line] if json else trace_lines(record.trace):
        out(line)


def _show_all(run: "Run", limit: int | None, as_json: bool) -> None:
    records = list(islice(run.records(), limit))
    if as_json:
        for record in records:
            out(record.line)
        return
    rewards = [(record.trace, record.trace.reward) for record in records]
    names = list(dict.fromkeys(name for _, reward in rewards for name in reward.components))
    rows = [
        [
            trace.response_id,
            trace.agent or "-",
            reward.status,
            number(reward.value),
            number(reward.coverage),
            *(number(reward.components.get(name)) for name in names),
        ]
        for trace, reward in rewards
    ]
    for line in table(["response", "agent", "status", "reward", "coverage", *names], rows, left=3):
        out(line)
    manifest = run.manifest
    if manifest.status != "complete":
        say(f"this run {_UNFINISHED[manifest.status]}: it was asked for {manifest.asked.responses} responses")


def explain(run: RunFolder, response: ResponseId, json: AsJson = False) -> None:
    """Say in plain sentences where a reward comes from.

    \b
    Example:
        jurygraph explain run --response task-1/a
    """
    from jurygraph.cli.sentences import sentences
    from jurygraph.runs import Run

    opened = Run.open(run)
    trace = opened.find(response).trace
    said = sentences(trace, opened.plan_of(trace.task_id).decision)
    if json:
        out_json({"task_id": trace.task_id, "response_id": trace.response_id, "sentences": said})
        return
    for sentence in said:
        out(visible(sentence))


def export(
    run: RunFolder,
    to: Annotated[Form, typer.Option("--to", help="jsonl: the traces as they are; csv: one row a response.")],
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="F", help="File to write.", show_default="standard output"),
    ] = None,
) -> None:
    """Write a run in another form.

    In csv a missing number is an empty cell, and an id that a spreadsheet would run as a formula (it starts with one
    of = + - @) gets a leading apostrophe; in jsonl every id is as it was.

    \b
    Example:
        jurygraph export run --to csv -o rewards.csv
    """
    from jurygraph.cli.delivery import deliver, refuse_inside
    from jurygraph.runs import Run, export_csv, export_jsonl

    lines = (export_jsonl if to is Form.jsonl else export_csv)(Run.open(run))
    if output is not None:
        refuse_inside(run, output)
        deliver(output, lines)
        say(f"wrote {output}")
        return
    for line in lines:
        out(line.removesuffix(b"\n"))
