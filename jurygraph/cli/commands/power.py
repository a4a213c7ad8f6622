"""`jurygraph power`: how many items or reviewers a study needs."""

import math
from typing import Annotated

from jurygraph.cli.options import (
    COLUMN_OPTION_BY_RATING_FIELD,
    AgentColumnOption,
    ClassWordsOption,
    DimensionOption,
    GroupColumnOption,
    ItemColumnOption,
    RatingsFilesArgument,
    ReviewerColumnOption,
    ScoreColumnOption,
    option,
    select_named_columns,
    with_people_options,
)
from jurygraph.cli.render.report import make_report_command
from jurygraph.cli.render.text import progress
from jurygraph.errors import InputError
from jurygraph.inference.agreement import MeasurementLevel
from jurygraph.messages import split_names
from jurygraph.sources.people import PeopleChoice
from jurygraph.sources.ratings import read_rating_files
from jurygraph.studies.agreement import read_parts
from jurygraph.studies.report import Report

_JUDGES_WITH_POWER_ANALYSIS = ("own-history", "item-mean", "rater-offset")


@make_report_command
@with_people_options
def power(
    ratings: RatingsFilesArgument,
    width: Annotated[float, option("W", "Wanted half-width of alpha's interval.", min=0.001)] = 0.1,
    difference: Annotated[
        float | None, option("D", "Difference of two judges to find, in units of scores.")
    ] = None,
    judges: Annotated[
        str | None,
        option(
            "A,B",
            f"The two judges: {', '.join(_JUDGES_WITH_POWER_ANALYSIS)}.",
            show_default="own-history,item-mean",
        ),
    ] = None,
    chance: Annotated[float, option("P", "Wanted probability of finding it.", "--power")] = 0.8,
    level: Annotated[
        MeasurementLevel, option(None, "What the difference of two scores means.")
    ] = "ordinal",
    item: ItemColumnOption = None,
    reviewer: ReviewerColumnOption = None,
    score: ScoreColumnOption = None,
    agent: AgentColumnOption = None,
    group: GroupColumnOption = None,
    dimension: DimensionOption = None,
    classes: ClassWordsOption = None,
    seed: Annotated[int, option("S", "Seed of the draws.", min=0)] = 0,
    *,
    people: PeopleChoice,
) -> Report:
    """Estimate how many items or reviewers a study needs, from ratings of a first one.

    Items are drawn again from RATINGS, with two, three, … of their ratings each: as many as are needed until half of
    such studies have an interval of Krippendorff's alpha that is narrow enough. With --difference, reviewers and their
    ratings are drawn again, with that difference between the mean absolute errors of two judges without a model, until
    the interval over reviewers shows it in a share P of the studies. More ratings do not help if reviewers differ.

    Exit codes: 0 done, also where the ratings are too few to draw from, which it says; 2 invalid input, such as a judge
    that does not exist.

    \b
    Example:
        jurygraph power ratings.csv --width 0.05
        jurygraph power ratings.csv --difference 0.1 --judges rater-offset,item-mean --seed 1 --json
    """
    from jurygraph.studies.power import PowerStudy

    names = split_names(judges) or ["own-history", "item-mean"]
    if judges is not None and difference is None:
        raise InputError(
            "--judges: needs --difference, the difference of the two that a study is to find"
        )
    if len(names) != 2 or len(set(names) & set(_JUDGES_WITH_POWER_ANALYSIS)) != 2:
        raise InputError(
            f"--judges: is {judges!r}; name two of {', '.join(_JUDGES_WITH_POWER_ANALYSIS)}"
        )
    if not 0.0 < chance < 1.0:
        raise InputError(f"--power: is {chance:g}; write a number between 0 and 1")
    if difference is not None and not 0.0 < difference < math.inf:
        raise InputError(f"--difference: is {difference:g}; write a finite number above 0")
    columns = select_named_columns(
        item=item, reviewer=reviewer, score=score, agent=agent, group=group
    )
    options = COLUMN_OPTION_BY_RATING_FIELD
    files = read_rating_files(ratings, columns, options, people, dimension, classes, level)
    parts = read_parts(files)
    power_study = PowerStudy(
        width=width,
        difference=difference,
        judges=(names[0], names[1]),
        power=chance,
        level=level,
        seed=seed,
    )
    with progress("resampling", len(parts) * (1 + bool(difference)), "questions") as advance:
        return power_study.report(parts, advance)
