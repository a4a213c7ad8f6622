"""The tables of `study reviewers`: first for each reviewer which judge to use, then how near each judge is.

What few readers need is laid out on demand: every pair of judges, every reviewer's error of each judge, and reasons.
"""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any

from jurygraph.messages import join_names, shorten
from jurygraph.studies.agreement import dimension_domain_name
from jurygraph.studies.alternative_annotator import SIGNIFICANCE_LEVEL
from jurygraph.studies.conclusions import PLANNED_PAIR, has_equal_predictions
from jurygraph.studies.report import Columns, FigureRows, Figures, ReportSections, ReportTable

OWN_HISTORY_BASELINE_NAMES = ("own-history", "neighbours")
PEER_BASELINE_NAMES = ("item-mean", "rater-offset")
"""Judges that use what other reviewers gave the judged item."""
BASELINES_WITHOUT_MODEL = (*OWN_HISTORY_BASELINE_NAMES, *PEER_BASELINE_NAMES)
_MAX_ROWS_LISTED = 40
_MAX_REASONS_LISTED = 8
_MAX_REASON_LENGTH = 90
_USE_BY_JUDGE = {"personalized": "personal", "own-history": "own mean"}


def lay_out_sections(figures: Figures, all_tables: bool) -> ReportSections:
    """Yield the tables in the order in which they are read; only the first three without `all_tables`."""
    uses = [row for row in figures["reviewers"] if row["judge"] not in BASELINES_WITHOUT_MODEL]
    if uses:
        judge = uses[0]["judge"]
        name = _USE_BY_JUDGE.get(judge, judge)
        columns: Columns = {
            "reviewer": "reviewer",
            "use": _describe_use,
            f"{name} - mean of others (95 %)": "above_item_mean",
            f"{name} - own mean (95 %)": "above_own_mean",
            "bias (95 %)": "bias",
        }
        yield _table(columns, uses, left=3)
        yield (
            "use: whose error is surely the least (Holm, all reviewers) of the judges of new items; -: the error of "
            "one less that of the other, below 0 where the first is nearer; bias: what the judge gives above the person"
        )
    folds = dict.fromkeys(row["fold"] for row in figures["judges"] if row["fold"])
    rule = f"what a model predicts is the {join_names(folds)} (`panel`); " if folds else ""
    yield (
        f"each score is predicted from other ratings (leave-one-out), never from one of the same group; {rule}"
        "errors are on ratings that all judges predict, and the difference of personalized and aggregate on those that "
        "both do; "
        f"alpha is {figures['level']}; intervals are over reviewers, "
        "and those of differences over reviewers and items (items of one group together), each for itself; p holds for "
        "all pairs together, but that of personalized and aggregate for itself; own scores are those of the same "
        "dimension and domain"
    )
    yield _judge_table(
        "judge", [row for row in figures["judges"] if row["judge"] not in PEER_BASELINE_NAMES]
    )
    peer_judge_rows = [row for row in figures["judges"] if row["judge"] in PEER_BASELINE_NAMES]
    yield _judge_table("judge that uses others' scores of the item", peer_judge_rows)
    if all_tables or not uses:
        yield from _reviewer_tables(figures)
    if all_tables:
        yield from _detail_tables(figures)
    else:
        yield "more tables (each pair of judges, each reviewer's errors, numbers of examples, reasons): --all"


def _reviewer_tables(figures: Figures) -> ReportSections:
    """Yield the error of each judge for each reviewer, by dimension."""
    for dimension, reviewers in groupby(figures["reviewers"], key=dimension_domain_name):
        rows = [{**row, **row["mae"]} for row in reviewers]
        judges = rows[0]["mae"]
        columns = {f"MAE of {dimension}, reviewer": "reviewer", "n of all judges": "n"}
        columns |= dict(zip(judges, judges, strict=True))
        if judges.keys() >= PLANNED_PAIR:
            columns["n of both"] = "gain_n"
            columns["aggregate less personalized (95 %, this reviewer)"] = "gain"
            columns["p (Holm, all reviewers)"] = "gain_p"
        judge = rows[0]["judge"]
        if judge not in BASELINES_WITHOUT_MODEL:
            columns[f"rank correlation of {judge} (95 %)"] = "rank_correlation"
        yield ReportTable.of(columns, rows, digits=3, most=_MAX_ROWS_LISTED)


def _detail_tables(figures: Figures) -> ReportSections:
    """Yield the judges by numbers of examples, the pairs of judges, and their reasons."""
    curve_rows = []
    for _, rows_of_judge in groupby(figures["curve"], itemgetter("dimension", "judge")):
        curve = list(rows_of_judge)
        if len(curve) > 1:  # a single point is a row of the judges' table
            curve_rows += curve
    yield _judge_table("by examples", curve_rows)
    columns = {
        "error of": "first",
        "less that of": "second",
        "n": "n",
        "absolute (95 %, this pair)": "absolute",
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


def _describe_use(row: Figures) -> object:
    if row["use_p"] >= SIGNIFICANCE_LEVEL:
        return "not shown"
    return _USE_BY_JUDGE.get(row["use"], row["use"])


def _describe_shots(row: Figures) -> object:
    uses_all = row["shots"] is None and row["judge"] in OWN_HISTORY_BASELINE_NAMES
    return "all" if uses_all else row["shots"]
