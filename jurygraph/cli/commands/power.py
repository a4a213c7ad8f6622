"""`jurygraph power`: how many items or reviewers a study of ratings needs."""

from pathlib import Path
from typing import Annotated

import typer

from jurygraph.cli.options import (
    AgentColumn,
    ItemColumn,
    ReviewerColumn,
    ScoreColumn,
    named_columns,
    option,
    split_names,
)
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.report import report_command
from jurygraph.errors import InputError
from jurygraph.inference.agreement import AlphaLevel
from jurygraph.sources.ratings import read_ratings
from jurygraph.studies.report import Report

_JUDGES = ("own-history", "item-mean", "rater-offset")


@report_command
def power(
    ratings: Annotated[Path, typer.Argument(metavar="RATINGS", help="A CSV, JSONL or Parquet file, .gz too.")],
    width: Annotated[float, typer.Option(metavar="W", help="Wanted half-width of alpha's interval.", min=0.001)] = 0.1,
    difference: Annotated[float | None, option("D", "Difference of two judges to find, in units of scores.")] = None,
    judges: Annotated[str, typer.Option(metavar="A,B", help=f"The two judges: {', '.join(_JUDGES)}.")] = (
        "own-history,item-mean"
    ),
    chance: Annotated[float, typer.Option("--power", metavar="P", help="Wanted probability of finding it.")] = 0.8,
    level: Annotated[AlphaLevel, typer.Option(help="What the difference of two scores means.")] = "ordinal",
    item: ItemColumn = None,
    reviewer: ReviewerColumn = None,
    score: ScoreColumn = None,
    agent: AgentColumn = None,
    seed: Annotated[int, typer.Option(metavar="S", help="Seed of the draws.", min=0)] = 0,
) -> Report:
    """Estimate how many items or reviewers a study needs, from ratings of a first one.

    Items are drawn again from RATINGS, with two, three, … of their ratings each: as many as are needed until half of
    such studies have an interval of Krippendorff's alpha that is narrow enough. With --difference, reviewers and their
    ratings are drawn again, with that difference between the mean absolute errors of two judges without a model, until
    the interval over reviewers shows it in a share P of the studies. More ratings do not help if reviewers differ.

    Exit codes: 0 done; 2 invalid input, such as ratings of too few items.

    \b
    Example:
        jurygraph power ratings.csv --width 0.05
        jurygraph power ratings.csv --difference 0.1 --judges rater-offset,item-mean --seed 1 --json
    """
    from jurygraph.studies.agreement import read_parts
    from jurygraph.studies.power import PowerStudy

    names = split_names(judges)
    if len(names) != 2 or names[0] == names[1] or not set(names) <= set(_JUDGES):
        raise InputError(f"--judges: is {judges!r}; name two of {', '.join(_JUDGES)}")
    if not 0.0 < chance < 1.0:
        raise InputError(f"--power: is {chance:g}; write a number between 0 and 1")
    if difference is not None and difference <= 0.0:
        raise InputError(f"--difference: is {difference:g}; write a number above 0")
    parts = read_parts([read_ratings(ratings, named_columns(item=item, reviewer=reviewer, score=score, agent=agent))])
    questions = 1 if difference is None else 2
    planning = PowerStudy(width, difference, (names[0], names[1]), chance, level, seed)
    with progress("resampling", len(parts) * questions, "questions") as advance:
        return planning.report(parts, advance)
