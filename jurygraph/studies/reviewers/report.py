"""The figures of judges of reviewers, on the ratings that every one of them predicts; intervals are over reviewers."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, groupby
from typing import Any

import numpy as np

from jurygraph.arrays import Bools, Floats
from jurygraph.inference.agreement import AlphaLevel, alpha_of_pairs
from jurygraph.inference.clusters import Estimate, jackknife_interval, ratio_interval
from jurygraph.inference.sign_flips import holm, sign_flip_p
from jurygraph.studies.agreement import ScoredPart, question_codes
from jurygraph.studies.report import IntervalCell, Plot, PlotSeries, Report, ReportTable, as_interval, omission_notes
from jurygraph.studies.reviewers.baselines import OWN, PEERS, Predictions, Vectorizer, relate_reasons, tf_idf

_MAX_LEVELS = 101
"""Most different scores of a dimension for which alpha is computed."""
_FEW_REVIEWERS = 20
_LEAST_TESTED = 6
"""Fewest reviewers with which flips of their signs can have p <= .05: the least p is 2^(1 - n)."""
_MAX_ROWS = 40

Figures = dict[str, Any]
Judged = tuple[ScoredPart, Sequence[Predictions]]
"""The ratings of a dimension, and all predictions of them."""


def report(judged: Sequence[Judged], level: AlphaLevel = "ordinal", vectorize: Vectorizer = tf_idf) -> Report:
    """Compare judges of reviewers.

    The figures are `judges`: each with its most examples, for each dimension and each of its domains, with `answered`
    and `coverage` of its ratings, and on the `n` that all answered `alpha`, `rmse` and `mae`; `curve`, the same for
    each number of examples; `differences` of two judges' absolute and squared errors (`first` less `second`), their
    p-values by flips of reviewers (Holm), and for how many reviewers the first is nearer or farther; `reviewers`, each
    with the mean absolute error of every judge; and `reasons`: the correlation of agreement with similar reasons, of
    reviewers or those of a judge for them, over `pairs` of reviewers. Errors are in units of the scores. For alpha a
    prediction counts as the nearest score that occurs.
    """
    whole = [(part, np.ones(len(part.score), dtype=bool), None, columns) for part, columns in judged]
    domains = [
        (part, part.domain == place, name or "none", columns)
        for part, columns in judged
        if len(part.domains) > 1
        for place, name in enumerate(part.domains)
    ]
    figures = {
        "level": level,
        "judges": [one for view in (*whole, *domains) for one in _measure(*view[:3], _most_shots(view[3]), level)],
        "curve": [one for view in whole for one in _measure(*view, level)],
        "differences": [one for part, columns in judged for one in _differences(part, _most_shots(columns))],
        "reasons": [one for part, columns in judged for one in _relate_reasons(part, _most_shots(columns), vectorize)],
        "reviewers": [one for part, columns in judged for one in _by_reviewer(part, _most_shots(columns))],
    }
    return Report(figures, list(_sections(figures)), list(_notes(judged)), list(_plots(figures)))


def _most_shots(columns: Sequence[Predictions]) -> list[Predictions]:
    """Return the last predictions of each judge, those with the most examples."""
    return list({one.judge: one for one in columns}.values())


def _common(columns: Sequence[Predictions]) -> Bools:
    return np.asarray(np.logical_and.reduce([one.answered for one in columns]))


def _measure(
    part: ScoredPart, rows: Bools, domain: str | None, columns: Sequence[Predictions], level: AlphaLevel
) -> Iterator[Figures]:
    common = _common(columns) & rows
    for one in columns:
        errors = (one.values - part.score)[:, common]
        answered = int((one.answered & rows).sum())
        mae = _mean_by_reviewer(part, np.abs(errors).mean(axis=0), common)
        yield {
            "dimension": part.dimension,
            "domain": domain,
            "judge": one.judge,
            "shots": one.shots,
            "answered": answered,
            "coverage": answered / int(rows.sum()),
            "n": int(common.sum()),
            "alpha": _alpha(part, one.values, common, level),
            "rmse": float(np.sqrt((errors**2).mean())) if common.any() else None,
            "mae": mae and as_interval(mae.within(0.0, math.inf)),
            "calls": one.calls,
            "cost": one.cost,
            "left_out": dict(one.left_out),
        }


def _mean_by_reviewer(part: ScoredPart, values: Floats, rows: Bools) -> Estimate | None:
    reviewer = part.reviewer[rows]
    return ratio_interval(np.bincount(reviewer, values), np.bincount(reviewer)) if len(reviewer) else None


def _alpha(part: ScoredPart, values: Floats, rows: Bools, level: AlphaLevel) -> IntervalCell | None:
    """Return alpha between predictions and own scores, the mean over seeds, with its interval over reviewers."""
    levels, own = np.unique(part.score, return_inverse=True)
    if len(levels) > _MAX_LEVELS or not rows.any():
        return None
    reviewer = np.unique(part.reviewer[rows], return_inverse=True)[1]
    middles = (levels[1:] + levels[:-1]) / 2.0
    size = len(levels)
    found = []
    for drawn in values:
        cells = (reviewer * size + np.searchsorted(middles, drawn[rows])) * size + own[rows]
        tables = np.bincount(cells, minlength=(reviewer.max() + 1) * size**2).reshape(-1, size, size)
        together = tables.sum(axis=0)
        found.append(alpha_of_pairs(np.concatenate([together[None], together - tables]), levels, level))
    alphas = np.mean(found, axis=0)
    if np.isnan(alphas).any():
        return None if np.isnan(alphas[0]) else IntervalCell(float(alphas[0]), None, None)
    return as_interval(jackknife_interval(float(alphas[0]), alphas[1:]).within(-1.0, 1.0))


def _differences(part: ScoredPart, columns: Sequence[Predictions]) -> list[Figures]:
    common = _common(columns)
    found: list[Figures] = []
    for first, second in combinations(columns, 2):
        row: Figures = {"dimension": part.dimension, "first": first.judge, "second": second.judge}
        for name, power in (("absolute", 1), ("squared", 2)):
            errors = [(np.abs(one.values - part.score)[:, common] ** power).mean(axis=0) for one in (first, second)]
            sums = np.bincount(part.reviewer[common], errors[0] - errors[1])
            row[name] = as_interval(_mean_by_reviewer(part, errors[0] - errors[1], common))
            row[f"{name}_p"] = sign_flip_p(sums)
            row |= {"nearer": int((sums < 0).sum()), "farther": int((sums > 0).sum())} if power == 1 else {}
        found.append(row)
    for name in ("absolute_p", "squared_p"):
        for row, adjusted in zip(found, holm([row[name] for row in found]), strict=True):
            row[name] = adjusted
    return found


def _relate_reasons(part: ScoredPart, columns: Sequence[Predictions], vectorize: Vectorizer) -> Iterator[Figures]:
    sources = {"the reviewers": part.reasons} | {one.judge: one.reasons for one in columns}
    for source, reasons in sources.items():
        if any(reasons):
            found = relate_reasons(part.reviewer, part.item, part.score, reasons, vectorize)
            if found.pairs:
                yield {"dimension": part.dimension, "reasons_of": source, **found._asdict()}


def _by_reviewer(part: ScoredPart, columns: Sequence[Predictions]) -> Iterator[Figures]:
    common = _common(columns)
    errors = {one.judge: np.abs(one.values - part.score).mean(axis=0) for one in columns}
    for place, name in enumerate(part.names):
        rows = common & (part.reviewer == place)
        mean = {judge: float(each[rows].mean()) if rows.any() else None for judge, each in errors.items()}
        yield {"dimension": part.dimension, "reviewer": name, "n": int(rows.sum()), "mae": mean}


def _sections(figures: Figures) -> Iterator[str | ReportTable]:
    yield (
        "each score is predicted from other ratings (leave-one-out), never from one of the same group; errors are on "
        f"ratings that all judges predict; alpha is Krippendorff's, {figures['level']}; intervals are over reviewers"
    )
    yield _judge_table("judge", [one for one in figures["judges"] if one["judge"] not in PEERS])
    peers = [one for one in figures["judges"] if one["judge"] in PEERS]
    yield _judge_table("judge that uses others' scores of the item", peers)
    by_judge = groupby(figures["curve"], key=lambda one: (one["dimension"], one["judge"]))
    yield _judge_table("by examples", [one for _, each in by_judge for one in _if_several(list(each))])
    names = ("first", "second", "absolute", "absolute_p", "squared", "squared_p", "nearer", "farther")
    rows = [[_name(one), *(one[name] for name in names)] for one in figures["differences"]]
    header = ("dimension", "error of", "less that of", "absolute (95 %)", "p (Holm)", "squared (95 %)", "p (Holm)")
    yield ReportTable((*header, "nearer to", "farther from"), rows, left=3, digits=3, most=_MAX_ROWS)
    related = [
        [_name(one), one["reasons_of"], one["pairs"], one["correlation"], one["p"]] for one in figures["reasons"]
    ]
    titles = ("dimension", "similar reasons of", "pairs", "correlation with agreement", "p")
    yield ReportTable(titles, related, left=2, digits=3)
    for dimension, each in groupby(figures["reviewers"], key=_name):
        of_reviewers = list(each)
        judges = of_reviewers[0]["mae"]
        rows = [[one["reviewer"], one["n"], *one["mae"].values()] for one in of_reviewers]
        yield ReportTable((f"MAE of {dimension}, reviewer", "n", *judges), rows, digits=3, most=_MAX_ROWS)


def _judge_table(title: str, judges: Sequence[Figures]) -> ReportTable:
    header = ("dimension", title, "shots", "coverage", "n", "alpha (95 %)", "RMSE", "MAE (95 %)", "calls", "cost")
    rows = [[_name(one), one["judge"], *_measured(one)] for one in judges]
    return ReportTable(header, rows, left=2, digits=3, most=_MAX_ROWS)


def _if_several(curve: list[Figures]) -> list[Figures]:
    return curve if len(curve) > 1 or curve[0]["shots"] == 0 else []


def _measured(one: Figures) -> list[object]:
    shots = "all" if one["shots"] is None and one["judge"] in OWN else one["shots"]
    return [shots, *(one[name] for name in ("coverage", "n", "alpha", "rmse", "mae", "calls", "cost"))]


def _name(one: Figures) -> str:
    return " · ".join(filter(None, (one["dimension"], one.get("domain")))) or "all"


def _notes(judged: Sequence[Judged]) -> Iterator[str]:
    for part, columns in judged:
        name = part.dimension or "all"
        question = question_codes(name, part.score, "recode these before, so that their order is one")
        yield from filter(None, [question])
        if not _common(columns).any():
            yield f"{name}: no rating that every judge predicts; see the coverage, and leave judges out"
        if len(part.names) < _FEW_REVIEWERS:
            untested = f", and with fewer than {_LEAST_TESTED} no p is .05 or less"
            limit = f"with fewer than {_FEW_REVIEWERS}, intervals are rough"
            yield f"{name}: reviewers: {len(part.names)}; {limit}{untested if len(part.names) < _LEAST_TESTED else ''}"
        for one in columns:
            yield from omission_notes(one.left_out, f"{name}, {one.judge} with {one.shots} examples: ")


def _plots(figures: Figures) -> Iterator[Plot]:
    for dimension, each in groupby(figures["curve"], key=_name):
        series = []
        for judge, points in groupby(each, key=lambda one: str(one["judge"])):
            cells = {one["shots"]: one["mae"] for one in points if one["shots"] is not None and one["mae"] is not None}
            if cells:
                series.append(PlotSeries.with_intervals(judge, cells))
        if series:
            yield Plot(f"{dimension}: mean absolute error (95 %)", "line", series, "examples", "")
