"""`jurygraph consensus`: fuse annotators' labels, estimate how each annotator errs, and how stable the ranking is."""

import math
import os
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli.options import AsJson, PlotFile
from jurygraph.cli.output_files import refuse_picture, refuse_source, refuse_unwritable, write_output, write_output_with
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.text import print_json, print_message, print_result_lines
from jurygraph.errors import InputError

if TYPE_CHECKING:
    from jurygraph.sources.ratings import VotesFile
    from jurygraph.studies.consensus import ConsensusReport, FittedConsensus, VoteColumns


class Preset(StrEnum):
    """Presets for fitting the model."""

    converged = "converged"
    paper = "paper"


class Method(StrEnum):
    """Methods that score agents and items."""

    stableval = "stableval"
    dawid_skene = "dawid-skene"
    majority = "majority"


def _column_option(*names: str) -> typer.models.OptionInfo:
    info: typer.models.OptionInfo = typer.Option(
        *names, metavar="C", help=f"Column for `{names[0][2:]}`.", show_default=False
    )
    return info


def _file_option(name: str, help_text: str) -> typer.models.OptionInfo:
    info: typer.models.OptionInfo = typer.Option(name, metavar="F", help=help_text, show_default=False)
    return info


Files = Annotated[list[Path], typer.Argument(metavar="RATINGS", help="CSV, JSONL or Parquet files, .gz too.")]
Dimension = Annotated[str | None, typer.Option(metavar="D", help="Use this dimension only.", show_default=False)]
Classes = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="All labels, from low to high.", show_default="the numbers in the data"),
]
Values = Annotated[
    str | None, typer.Option(metavar="V,W", help="Credit of each class.", show_default="evenly from 0 to 1")
]
PresetName = Annotated[
    Preset | None, typer.Option(help="How to fit the model.", show_default="converged; see docs/consensus.md")
]
MethodName = Annotated[
    Method | None,
    typer.Option(
        help="Method for scores of agents and items.", show_default="stableval; majority if the panel is too small"
    ),
]
Bootstrap = Annotated[int, typer.Option(min=0, metavar="N", help="Resamples for intervals of agents; 0: none.")]
Refit = Annotated[int, typer.Option(min=0, metavar="N", help="Resamples to refit for intervals; 0: none.")]
Subsets = Annotated[int, typer.Option(min=0, metavar="N", help="Subsets of annotators for stability; 0: none.")]
Fraction = Annotated[float, typer.Option(min=0.0, max=1.0, metavar="P", help="Share of the annotators in a subset.")]
Seed = Annotated[
    int | None,
    typer.Option(
        min=0, max=2**32 - 1, metavar="S", help="Seed of all draws.", show_default="0; 42 for stability by preset paper"
    ),
]
Jobs = Annotated[int | None, typer.Option(min=1, metavar="N", help="Processes.", show_default="one for each CPU")]
Compare = Annotated[bool, typer.Option("--compare", help="Compare all methods.")]


def consensus(
    ratings: Files,
    item: Annotated[str | None, _column_option("--item")] = None,
    annotator: Annotated[str | None, _column_option("--annotator", "--reviewer")] = None,
    label: Annotated[str | None, _column_option("--label", "--score")] = None,
    agent: Annotated[str | None, _column_option("--agent")] = None,
    group: Annotated[str | None, _column_option("--group")] = None,
    dimension: Dimension = None,
    classes: Classes = None,
    values: Values = None,
    gold: Annotated[Path | None, _file_option("--gold", "Items with a known label, in the same columns.")] = None,
    preset: PresetName = None,
    method: MethodName = None,
    compare: Compare = False,
    bootstrap: Bootstrap = 1000,
    refit: Refit = 0,
    subsets: Subsets = 50,
    fraction: Fraction = 0.7,
    seed: Seed = None,
    jobs: Jobs = None,
    artifact: Annotated[
        Path | None, _file_option("--artifact", "Write the confusions as JSON, for later plans.")
    ] = None,
    plot: PlotFile = None,
    json: AsJson = False,
) -> None:
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
    from jurygraph.studies.consensus import Settings, fit_consensus

    _refuse_unwritable(artifact, plot, [*ratings, *([gold] if gold else [])])
    columns = {"item": item, "annotator": annotator, "label": label, "agent": agent, "group": group}
    ballots = _read_ballots(ratings, {name: one for name, one in columns.items() if one}, dimension, classes, gold)
    settings = Settings(
        preset=preset.value if preset else None,
        method=method.value if method else None,
        values=_parse_values(values) if values is not None else None,
        bootstrap=bootstrap,
        refit=refit,
        subsets=subsets,
        fraction=fraction,
        seed=seed,
        jobs=jobs or os.cpu_count() or 1,
    )
    reached = fit_consensus(ballots, settings)
    findings = _measure_consensus(reached)
    _print_findings(findings, compare, json)
    _print_warnings(reached)
    _write_files(reached, findings, artifact, plot)


def _refuse_unwritable(artifact: Path | None, plot: Path | None, read: Sequence[Path]) -> None:
    if artifact is not None and plot is not None and artifact.resolve() == plot.resolve():
        raise InputError(f"{plot}: --artifact and --plot name the same file; name two files")
    refuse_picture(plot)
    if artifact is not None:
        refuse_unwritable(str(artifact))
    for file in (artifact, plot):
        if file is not None:
            refuse_source(str(file), *map(str, read))


def _read_ballots(
    ratings: Sequence[Path], columns: Mapping[str, str], dimension: str | None, classes: str | None, gold: Path | None
) -> "VoteColumns":
    from jurygraph.sources.ratings import read_gold, read_votes
    from jurygraph.studies.consensus import collect_votes

    files = [read_votes(path, columns) for path in ratings]
    _print_unread_columns(files)
    gold_columns = {name: column for name, column in columns.items() if name in ("item", "agent", "label")}
    gold_labels = read_gold(gold, gold_columns) if gold is not None else {}
    return collect_votes(files, dimension, _split_list(classes) if classes is not None else (), gold_labels)


def _print_unread_columns(files: Sequence["VotesFile"]) -> None:
    for file in files:
        for column, hint in file.unread.items():
            if hint is not None:
                print_message(f"{file.path}: column {column!r} is not read; {hint}")


def _split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _parse_values(text: str) -> list[float]:
    from jurygraph.sources.ratings import NUMERAL

    for part in _split_list(text):
        if NUMERAL.fullmatch(part) is None or not math.isfinite(float(part)):
            raise InputError(f"--values: expected the credit of each class, such as 0,0.5,1, got {part!r}")
    return [float(part) for part in _split_list(text)]


def _measure_consensus(reached: "FittedConsensus") -> "ConsensusReport":
    from jurygraph.studies.consensus import report

    with progress("stability", reached.settings.subsets, "subsets") as advance:
        stability = reached.stability(advance)
    with progress("refitting", reached.settings.refit, "resamples") as advance:
        refits = reached.refits(advance)
    return report(reached, stability, refits)


def _write_files(
    reached: "FittedConsensus", findings: "ConsensusReport", artifact: Path | None, plot: Path | None
) -> None:
    from jurygraph.judges.panel import to_confusions
    from jurygraph.sources.ratings import confusions_to_json
    from jurygraph.studies.plots import draw_consensus

    if artifact is not None and reached.is_majority_fallback:
        print_message(f"{artifact}: not written, because the majority vote has no confusions; use --method stableval")
    elif artifact is not None:
        write_output(str(artifact), [confusions_to_json(to_confusions(reached.model, reached.ballots.classes))])
    if plot is not None:
        write_output_with(str(plot), lambda draft: draw_consensus(findings, draft, plot.suffix))


def _print_findings(findings: "ConsensusReport", compare: bool, as_json: bool) -> None:
    from jurygraph.cli.render.consensus import consensus_lines

    if as_json:
        print_json(findings.model_dump(mode="json"))
        return
    print_result_lines(consensus_lines(findings, compare))


def _print_warnings(reached: "FittedConsensus") -> None:
    for warning in reached.warnings:
        print_message(warning)
    if reached.ballots.agent is None:
        print_message("no row has an agent: no scores of agents and no stability")
    elif reached.no_stability_reason is not None:
        print_message(f"stability was not measured: {reached.no_stability_reason}")
