"""The tables and plots of `study reviewers`: first what the judge is for each reviewer, then how near each judge is.

What few readers need is laid out on demand: every pair of judges, tests for every reviewer, and reasons.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from jurygraph.inference.clusters import MIN_TESTED_ITEMS
from jurygraph.messages import join_names, shorten
from jurygraph.studies.agreement import dimension_domain_name
from jurygraph.studies.conclusions import (
    PLANNED_PAIR,
    SHORT_JUDGE_NAMES,
    STATE_TEXTS,
    has_equal_predictions,
    name_with_examples,
)
from jurygraph.studies.report import (
    Columns,
    FigureRows,
    Figures,
    Plot,
    PlotSeries,
    ReportSections,
    ReportTable,
    describe_range,
)

OWN_HISTORY_BASELINE_NAMES = ("own-history", "neighbours")
PEER_BASELINE_NAMES = ("item-mean", "rater-offset")
"""Judges that use what other reviewers gave the judged item."""
BASELINES_WITHOUT_MODEL = (*OWN_HISTORY_BASELINE_NAMES, *PEER_BASELINE_NAMES)
ALL_TABLES_HINT = (
    "more tables (each pair of judges, more of each reviewer, numbers of examples, reasons): --all"
)
_MAX_ROWS_LISTED = 40
_MAX_REASONS_LISTED = 8
_MAX_REASON_LENGTH = 90


_STATE_RULE = (
    "Better or worse than own mean is by Student's t over the person's items, as intervals here are, for all people of "
    f"the table together (Holm), from {MIN_TESTED_ITEMS} items on."
)


def lay_out_sections(figures: Figures, all_tables: bool) -> ReportSections:
    """Yield the tables in the order in which they are read; those of detail only with `all_tables`."""
    for dimension, rows in groupby(figures["reviewers"], key=dimension_domain_name):
        reviewers = list(rows)
        has_model = reviewers[0]["state"] != "own mean"
        if has_model:
            yield _state_table(dimension, reviewers)
            yield _STATE_RULE
        if all_tables or not has_model:
            yield _reviewer_table(dimension, reviewers)
    yield (
        "MAE: how far a judge is off on average, on ratings that all judges predict; bias: what the judge gives above "
        "the person"
    )
    yield _judge_table("judge", figures["judges"])
    folds = join_names(dict.fromkeys(row["fold"] for row in figures["judges"] if row["fold"]))
    rule = folds and f" A model's is the {folds} (`panel`), without those that lack a quotation."
    yield (
        "Each prediction is from other ratings (leave-one-out), never from one of the same item or group. Judges "
        "without a model are yardsticks, which `score` does not have; they learn from the history of a run, as its "
        "judges do, and without one from the other ratings; others' scores of the judged item are those here."
        f"{rule} Alpha is {figures['level']}. Intervals here are over reviewers, those of differences over reviewers "
        "and items, each for itself; personalized and aggregate are compared on ratings that both predict."
    )
    if all_tables:
        yield from _detail_tables(figures)


def _state_table(dimension: str, reviewers: FigureRows) -> ReportTable:
    """Return what the judge is for each reviewer of a dimension, compared with the reviewer's own mean."""
    columns: dict[str, Any] = {
        f"{dimension}, reviewer": "reviewer",
        "judge beside own mean": lambda row: STATE_TEXTS[row["state"]],
        "n": "error_n",
        f"{reviewers[0]['subject']} off by (95 %)": "error",
        "own mean off by": "own_mean",
    }
    if "item-mean" in reviewers[0]["mae"]:
        columns["mean of others off by, where all predict"] = lambda row: row["mae"]["item-mean"]
    return ReportTable.of(columns, reviewers, left=2, digits=2, most=_MAX_ROWS_LISTED)


def _reviewer_table(dimension: str, reviewers: FigureRows) -> ReportTable:
    """Return the error of each judge for each reviewer of a dimension, on ratings that all judges predict."""
    rows = [{**row, **row["mae"]} for row in reviewers]
    judges = rows[0]["mae"]
    columns: dict[str, Any] = {f"MAE of {dimension}, reviewer": "reviewer", "n": "n"}
    # what others gave comes last: a new item has no such scores
    for name in sorted(judges, key=PEER_BASELINE_NAMES.__contains__):
        columns[SHORT_JUDGE_NAMES.get(name, name)] = name
    if judges.keys() >= PLANNED_PAIR:
        columns |= {
            "aggregate - personalized (95 %, this reviewer alone)": "gain",
            "n of both": "gain_n",
            "p of that (Holm, all reviewers)": "gain_p",
        }
    if rows[0]["state"] != "own mean":
        columns |= {
            "own mean - judge (95 %, all reviewers together)": "own_mean_gain",
            "p of that (Holm)": "own_mean_p",
            "bias (95 %)": "bias",
            f"rank correlation of {rows[0]['judge']} (95 %)": "rank_correlation",
        }
    return ReportTable.of(columns, rows, digits=2, most=_MAX_ROWS_LISTED)


def _detail_tables(figures: Figures) -> ReportSections:
    """Yield the judges by numbers of examples, the pairs of judges, and their reasons."""
    name_judge = itemgetter("dimension", "judge")
    counts = Counter(map(name_judge, figures["curve"]))
    # a single point is a row of the judges' table
    curve_rows = [row for row in figures["curve"] if counts[name_judge(row)] > 1]
    yield _judge_table("by examples", curve_rows)
    columns = {
        "error of": "first",
        "less that of": "second",
        "n": "n",
        "absolute (95 %, this pair alone)": "absolute",
        "p (Holm, all other pairs)": "absolute_p",
        "nearer to (reviewers)": "nearer",
        "farther from (reviewers)": "farther",
    }
    yield _table(
        columns, [row for row in figures["differences"] if not has_equal_predictions(row)], left=3
    )
    columns = {
        "similar reasons of": "reasons_of",
        "pairs": "pairs",
        "correlation with agreement": "correlation",
        "p": "p",
    }
    yield _table(columns, figures["reasons"])
    columns = {
        "reasons of": "judge",
        "cells": "cells",
        "as the person's": "own",
        "as others'": "others",
        "less (95 %)": "difference",
    }
    yield _table(columns, figures["matches"])
    reason_columns: Columns = {
        "reasons of": "reviewer",
        "item": "item",
        "judge": "judge",
        "the person's": lambda cell: shorten(cell["reviewer_reason"], _MAX_REASON_LENGTH),
        "the judge's": lambda cell: shorten(cell["judge_reason"], _MAX_REASON_LENGTH),
        "score": "score",
        "predicted": "predicted",
    }
    yield ReportTable.of(
        reason_columns, figures["side_by_side"], left=5, digits=2, most=_MAX_REASONS_LISTED
    )


def _table(columns: Columns, rows: Iterable[Figures], left: int = 2) -> ReportTable:
    """Return a table of records, whose dimension, with its domain, comes first."""
    named_columns = {"dimension": dimension_domain_name, **columns}
    return ReportTable.of(named_columns, rows, left=left, digits=3, most=_MAX_ROWS_LISTED)


def _judge_table(title: str, judges: FigureRows) -> ReportTable:
    columns: dict[str, Any] = {
        title: "judge",
        "shots": _describe_shots,
        "coverage": "coverage",
        "n": "n",
        "alpha (95 %)": "alpha",
        "RMSE": "rmse",
        "MAE (95 %)": "mae",
    }
    if any(row["answered"] != row["n"] for row in judges):
        columns |= {"n of its own": "answered", "MAE on these (95 %)": "mae_of_answered"}
    columns |= {"calls": "calls", "cost": "cost"}
    return _table(columns, judges)


def _describe_shots(row: Figures) -> object:
    uses_all = row["shots"] is None and row["judge"] in OWN_HISTORY_BASELINE_NAMES
    return "all" if uses_all else row["shots"]


def plot_errors(figures: Figures) -> Iterator[Plot]:
    """Yield a plot for each dimension: how far off each judge is with each number of examples."""
    for dimension, curve in groupby(figures["curve"], key=dimension_domain_name):
        series = []
        errors = {}
        for judge, points in groupby(curve, key=itemgetter("judge")):
            cells = {}
            for row in points:
                if row["shots"] is not None and row["mae"] is not None:
                    cells[row["shots"]] = row["mae"]
                    errors[name_with_examples(judge, row["shots"])] = row["mae"]
            if cells:
                series.append(PlotSeries.from_estimates_with_intervals(judge, cells))
        if series:
            title = describe_range(f"The mean absolute error on {dimension}", errors)
            yield Plot(title, "line", series, "examples", "error, 95 % interval")
