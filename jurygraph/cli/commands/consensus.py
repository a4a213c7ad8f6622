"""`jurygraph consensus`: fuse annotators' labels, estimate how each annotator errs, and how stable the ranking is."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from jurygraph.cli.options import (
    AgentColumn,
    ItemColumn,
    PlotFile,
    named_columns,
    option,
    split_names,
)
from jurygraph.cli.output_files import refuse_unwritable, write_output
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.report import report_command
from jurygraph.cli.render.text import print_message
from jurygraph.errors import InputError
from jurygraph.judges.panel import to_confusions
from jurygraph.sources.ratings import NUMERAL, confusions_to_json, read_votes
from jurygraph.studies.consensus import Settings, VoteColumns, collect_votes, fit_consensus, report
from jurygraph.studies.report import Report

Classes = Annotated[str | None, option("A,B", "All labels, from low to high.", show_default="the numbers in the data")]
Preset = Annotated[
    Literal["converged", "paper"] | None,
    option(None, "How to fit the model.", show_default="converged; see docs/consensus.md"),
]
_METHOD_DEFAULT = "stableval; majority if the panel is too small"
MethodOption = Annotated[
    Literal["stableval", "dawid-skene", "majority"] | None,
    option(None, "Method for scores of agents and items.", show_default=_METHOD_DEFAULT),
]
Subsets = Annotated[int, typer.Option(min=0, metavar="N", help="Subsets of annotators for stability; 0: none.")]
Seed = Annotated[
    int | None,
    option("S", "Seed of all draws.", show_default="0; 42 for stability by preset paper", min=0, max=2**32 - 1),
]


def _column(*names: str) -> Any:
    return option("C", f"Column for `{names[0][2:]}`.", *names)


@report_command
def consensus(
    ratings: Annotated[list[Path], typer.Argument(metavar="RATINGS", help="CSV, JSONL or Parquet files, .gz too.")],
    item: ItemColumn = None,
    annotator: Annotated[str | None, _column("--annotator", "--reviewer")] = None,
    label: Annotated[str | None, _column("--label", "--score")] = None,
    agent: AgentColumn = None,
    group: Annotated[str | None, _column("--group")] = None,
    dimension: Annotated[str | None, option("D", "Use this dimension only.")] = None,
    classes: Classes = None,
    values: Annotated[str | None, option("V,W", "Credit of each class.", show_default="evenly from 0 to 1")] = None,
    preset: Preset = None,
    method: MethodOption = None,
    compare: Annotated[bool, typer.Option("--compare", help="Compare all methods.")] = False,
    subsets: Subsets = 50,
    seed: Seed = None,
    artifact: Annotated[Path | None, option("F", "Write the confusions as JSON, for later plans.")] = None,
    plot: PlotFile = None,
) -> Report:
    """Aggregate annotators' labels, with their disagreement (STABLEVAL).

    The confusions of each annotator and the class probabilities of each item are estimated together. An agent's score
    is the mean expected credit of its items. A row of RATINGS is a label: `item`, `annotator` (or `reviewer`), `label`
    (or `score`), and optionally `agent`, `group`, `dimension`. An empty label is an abstention.

    Exit codes: 0 done; 2 invalid input, such as a label that is not a class.

    \b
    Example:
        jurygraph consensus ratings.csv
        jurygraph consensus votes.csv --item id --classes bad,ok,good --compare --plot consensus.svg
    """
    if artifact is not None and plot is not None and artifact.resolve() == plot.resolve():
        raise InputError(f"{plot}: --artifact and --plot name the same file; name two files")
    if artifact is not None:
        refuse_unwritable(str(artifact), *map(str, ratings))
    columns = named_columns(item=item, annotator=annotator, label=label, agent=agent, group=group)
    ballots = _read_ballots(ratings, columns, dimension, classes)
    credit = _parse_values(values) if values is not None else None
    fitted = fit_consensus(ballots, Settings(preset, method, credit, subsets, seed, compare))
    if artifact is not None and fitted.method == "majority" and method is None:  # the panel is small
        print_message(f"{artifact}: not written, because the majority vote has no confusions; use --method stableval")
    elif artifact is not None:
        write_output(str(artifact), [confusions_to_json(to_confusions(fitted.model, ballots.classes))])
    with progress("estimating again", fitted.estimates, "resamples") as advance:
        return report(fitted, advance)


def _read_ballots(
    ratings: Sequence[Path], columns: Mapping[str, str], dimension: str | None, classes: str | None
) -> VoteColumns:
    files = [read_votes(path, columns) for path in ratings]
    for file in files:
        for column, hint in file.unread.items():
            if hint is not None:
                print_message(f"{file.path}: column {column!r} is not read; {hint}")
    return collect_votes(files, dimension, split_names(classes))


def _parse_values(text: str) -> list[float]:
    for part in split_names(text):
        if NUMERAL.fullmatch(part) is None or not math.isfinite(float(part)):
            raise InputError(f"--values: expected the credit of each class, such as 0,0.5,1, got {part!r}")
    return [float(part) for part in split_names(text)]
