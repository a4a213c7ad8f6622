"""Ratings of reviewers by dimension, and their agreement: in scores, in what each rates high, and how strict each is.

"Aggregate vs. Personalized Judges" finds that reviewers agree little in scores (Krippendorff's alpha), and more in
which items are among their better ones (Jaccard). Where that is so, a judge for each reviewer has something to learn.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation.agreement import alpha_interval
from jurygraph.arrays import Bools, Floats, Ints
from jurygraph.errors import InputError
from jurygraph.inference.agreement import (
    MeasurementLevel,
    correlations_with_others,
    jaccard_above_median,
    jaccard_by_chance,
    jaccard_excess,
    mean_without_own_subgroup,
    rank_correlation,
    shifts_from_others,
)
from jurygraph.inference.clusters import NORMAL_QUANTILE, cluster_numbers
from jurygraph.judges.examples import Example
from jurygraph.messages import join_names, notes_on_similar_names
from jurygraph.schema.rating import Rating
from jurygraph.sources.ratings import RatingsFile
from jurygraph.studies import symbols
from jurygraph.studies.alternative_annotator import SIGNIFICANCE_LEVEL
from jurygraph.studies.conclusions import (
    MIN_ALPHA_FOR_TENTATIVE_CONCLUSIONS,
    NO_INTERVAL_OF_EQUALS,
    SHIFT_FROM_OTHERS,
    describe_raters,
    side_of_bound,
)
from jurygraph.studies.report import (
    Columns,
    FigureRows,
    Figures,
    IntervalCell,
    Plot,
    PlotSeries,
    Report,
    ReportSections,
    ReportTable,
    as_interval,
    describe_range,
    format_cell,
    number_of_cell,
)
from jurygraph.studies.votes import split_far_labels

MIN_SHARED_ITEMS = 10
"""Items that two reviewers must both have rated for their Jaccard similarity (the paper's choice)."""
_FEW_ITEMS_THRESHOLD = 30
_MAX_CLASS_CODES = 3
_MAX_REVIEWERS_LISTED = 40
_MAX_REVIEWERS_OF_PAIRS = 8
_MAX_PARTS_LISTED = 40
_MAX_BARS_PLOTTED = 12


class DimensionRatings(NamedTuple):
    """The ratings of one dimension, [n], by reviewer and item; `group` and `domain` are of the rated item.

    All but `score` are numbers from 0; all agents' answers to an item without a group are a group of their own. `names`
    are the reviewers, `items` the keys of items, `domains` their domains. `reasons` [n] are texts, empty without one;
    or there are none.
    """

    dimension: str | None
    names: Sequence[str]
    items: Sequence[str]
    domains: Sequence[str]
    reviewer: Ints
    item: Ints
    group: Ints
    domain: Ints
    score: Floats
    reasons: Sequence[str] = ()

    @property
    def name(self) -> str:
        return self.dimension or "all"

    def split_by_domain(self) -> Iterator[tuple[str | None, Bools]]:
        """Yield a mask of all ratings [n], under None, and one of each named domain if there are several."""
        yield None, np.ones(len(self.score), dtype=np.bool_)
        if len(self.domains) > 1:
            for index, name in enumerate(self.domains):
                if name:
                    yield name, self.domain == index


def read_parts(
    files: Sequence[RatingsFile],
    repeat_remedy: str = "keep one of the scores, or the last by --keep-last",
) -> list[DimensionRatings]:
    """Return the ratings of each dimension, sorted by dimension, reviewer and item. Those without a score are left out.

    `repeat_remedy` is what to do about an item that a reviewer scored twice.

    Raises `InputError` if a reviewer scored an item twice, an item has two groups or domains, or there is no score.
    """
    ratings_by_dimension = defaultdict(list)
    item_fields: dict[tuple[str, str], tuple[str | None, str]] = {}
    locations: dict[tuple[str | None, str, str], str] = {}
    for file in files:
        for line, rating in file.rows:
            if rating.score is None:
                continue
            location = f"{file.path}, {line}"
            cell = (rating.dimension, rating.reviewer, rating.key)
            first = locations.setdefault(cell, location)
            if first is not location:
                raise InputError(
                    f"{location}: reviewer {rating.reviewer!r} has scored item {rating.key!r} in {first}; "
                    f"{repeat_remedy}"
                )
            for name, value in (("group", rating.group), ("domain", rating.domain)):
                first_value, first_location = item_fields.setdefault(
                    (name, rating.key), (value, location)
                )
                if first_value != value:
                    raise InputError(
                        f"{location}: item {rating.key!r} has the {name} {value or '(none)'}, and "
                        f"{first_value or '(none)'} in {first_location}; give each item one {name} in all its rows, "
                        "or name its column"
                    )
            ratings_by_dimension[rating.dimension or ""].append(rating)
    if not ratings_by_dimension:
        paths = ", ".join(file.path for file in files)
        raise InputError(f"{paths}: has no score; give each rating one")
    return [to_dimension_ratings(name, rows) for name, rows in sorted(ratings_by_dimension.items())]


def to_dimension_ratings(dimension: str, ratings: Sequence[Rating | Example]) -> DimensionRatings:
    """Return the ratings of a dimension, sorted by reviewer and item."""
    rows = sorted(ratings, key=lambda rating: (rating.reviewer, rating.key))
    names, reviewer = np.unique([rating.reviewer for rating in rows], return_inverse=True)
    items, item = np.unique([rating.key for rating in rows], return_inverse=True)
    domains, domain = np.unique([rating.domain or "" for rating in rows], return_inverse=True)
    # A group may have the name of an item that is not in it.
    groups = [
        f"item {rating.item}" if rating.group is None else f"group {rating.group}"
        for rating in rows
    ]
    scores = [rating.score for rating in rows]
    reasons = [rating.reason or "" for rating in rows]
    return DimensionRatings(
        dimension=dimension or None,
        names=names.tolist(),
        items=items.tolist(),
        domains=domains.tolist(),
        reviewer=reviewer,
        item=item,
        group=cluster_numbers(groups),
        domain=domain,
        score=np.array(scores, dtype=np.float64),
        reasons=reasons if any(reasons) else (),
    )


class ReviewerItemScores(NamedTuple):
    """Ratings [n] with numbers of their reviewers and items; `domain` is None for all domains together.

    `group` [items] numbers the groups of items; an item without one is a group of its own. The `table` of scores
    [reviewers, items] has NaN where a reviewer rated nothing.
    """

    dimension: str | None
    domain: str | None
    reviewers: Sequence[str]
    reviewer: Ints
    item: Ints
    score: Floats
    group: Ints
    table: Floats

    @property
    def has_several_scores(self) -> Bools:
        """The items with scores of two reviewers or more, [items]."""
        return np.bincount(self.item) > 1


def _split_into_rating_matrices(part: DimensionRatings) -> Iterator[ReviewerItemScores]:
    """Yield the matrix of a dimension, and those of its domains if it has several."""
    for domain, rows in part.split_by_domain():
        reviewers, row = np.unique(part.reviewer[rows], return_inverse=True)
        _, first, column = np.unique(part.item[rows], return_index=True, return_inverse=True)
        score = part.score[rows]
        table = np.full((len(reviewers), len(first)), np.nan)
        table[row, column] = score
        group = part.group[rows][first]
        names = [part.names[index] for index in reviewers]
        yield ReviewerItemScores(part.dimension, domain, names, row, column, score, group, table)


def report(
    files: Sequence[RatingsFile], level: MeasurementLevel = "ordinal", is_order_named: bool = False
) -> Report:
    """Return how far reviewers agree, for each dimension and domain.

    A note asks whether two or three numbers are codes of classes, unless the user named their order (`is_order_named`).

    The figures are the `level`, and `parts`, each with its `dimension` and `domain` (None for all together); `ratings`;
    `items` with scores of two reviewers or more, in `groups`; `alpha` with its 95 % jackknife interval over groups of
    items, an item without a `group` being one by itself; `jaccard`, the mean over the `pairs` of reviewers with ten
    common items, `jaccard_by_chance` for selections of the same sizes, and the difference of both with its interval
    over groups, `jaccard_excess`; and `reviewers`, each with `ratings`, the rank `correlation` with the mean of the
    others' scores of the same items, with its interval over groups, `spread` (standard deviation of the own scores),
    `strictness`: how far the mean of the others' scores on the same items is above the own mean, in units
    of the ratings, and `shift`: how much higher own scores surely are (`shifts_from_others`); and the
    `rank_correlations` of each of up to eight reviewers with each, in the order of their names. Nominal ratings have no
    order, and neither Jaccard nor reviewers.

    Raises `InputError` as `read_parts` does, or if no item has scores of two reviewers.
    """
    matrices = list(chain.from_iterable(map(_split_into_rating_matrices, read_parts(files))))
    if not any(matrix.has_several_scores.any() for matrix in matrices):
        paths = ", ".join(file.path for file in files)
        raise InputError(
            f"{paths}: no item has scores of two reviewers; agreement needs some that have"
        )
    parts = [_measure_agreement(matrix, level) for matrix in matrices]
    alphas = {dimension_domain_name(figures): figures["alpha"] for figures in parts}
    first_alphas = dict(islice(alphas.items(), _MAX_BARS_PLOTTED))
    alpha_plot = Plot.bars_of_estimates("Krippendorff's alpha", "alpha", first_alphas)
    if len(parts) > _MAX_BARS_PLOTTED:
        title = f"{alpha_plot.title} (the first {_MAX_BARS_PLOTTED} of {len(parts)})"
        alpha_plot = replace(alpha_plot, title=title)
    return Report(
        {"level": level, "parts": parts},
        _sections(matrices, parts, level),
        _notes(matrices, parts, level, is_order_named),
        [alpha_plot, *_alpha_heat_map(parts, describe_range("Krippendorff's alpha", alphas))],
        [
            _describe_pattern(figures)
            for figures in parts
            if figures["domain"] is None and figures["alpha"]
        ],
        symbol_meanings=symbols.AGREEMENT_SYMBOL_MEANINGS,
    )


def _sections(
    matrices: Sequence[ReviewerItemScores], parts: FigureRows, level: MeasurementLevel
) -> ReportSections:
    yield (
        f"agreement of reviewers; alpha is {level}, its interval is over {_sampling_unit_noun(parts)}; Jaccard "
        "compares what two reviewers rate above their own medians"
    )
    rows = [
        {**figures, "reviewers": len(matrix.reviewers)}
        for matrix, figures in zip(matrices, parts, strict=True)
    ]
    columns: Columns = {
        "ratings": dimension_domain_name,
        "reviewers": "reviewers",
        "items": "items",
        "scores": "ratings",
        "alpha (95 %)": "alpha",
        "pairs": "pairs",
        "Jaccard": "jaccard",
        "by chance": "jaccard_by_chance",
        "above it (95 %)": "jaccard_excess",
    }
    yield ReportTable.of(columns, rows, most=_MAX_PARTS_LISTED)
    # Without the rows of single domains, which have the same reviewers.
    for figures in [figures for figures in parts if figures["domain"] is None]:
        columns = {
            f"reviewer of {dimension_domain_name(figures)}": "reviewer",
            "scores": "ratings",
            "rank correlation with the others (95 %)": "correlation",
            "strictness": "strictness",
            "spread": "spread",
        }
        yield ReportTable.of(columns, figures["reviewers"], most=_MAX_REVIEWERS_LISTED)
        cells = {row["reviewer"]: row["correlation"] for row in figures["reviewers"]}
        shifts = {row["reviewer"]: row["shift"] for row in figures["reviewers"]}
        yield from describe_raters(cells, "correlation", 0.0, shifts, "scores", SHIFT_FROM_OTHERS)
        if figures["rank_correlations"]:
            rows_of_pairs = [[name, *row] for name, row in figures["rank_correlations"].items()]
            header = ["rank correlation with", *figures["rank_correlations"]]
            yield ReportTable(header, rows_of_pairs, digits=2)
            yield from _describe_least_similar_rater(cells)


def _alpha_heat_map(parts: FigureRows, title: str) -> Iterator[Plot]:
    """Yield alpha by dimension and domain, if there are domains."""
    alphas = {}
    for figures in parts:
        alphas[figures["dimension"], figures["domain"]] = number_of_cell(figures["alpha"])
    domains = sorted({domain for _, domain in alphas if domain is not None})
    names = ["all", *domains]
    series = []
    for dimension in dict.fromkeys(dimension for dimension, _ in alphas):
        row = [alphas.get((dimension, domain)) for domain in (None, *domains)]
        series.append(PlotSeries(dimension or "all", row, names))
    if domains:
        yield Plot(title, "heat", series)


def _sampling_unit_noun(parts: FigureRows) -> str:
    has_grouped_items = any(figures["groups"] < figures["items"] for figures in parts)
    return "groups of items" if has_grouped_items else "items"


def _measure_agreement(matrix: ReviewerItemScores, level: MeasurementLevel) -> Figures:
    is_rated_by_several = matrix.has_several_scores
    reviewer_pair_indices = np.triu_indices(len(matrix.reviewers), 1)
    similarities = jaccard_above_median(matrix.table, MIN_SHARED_ITEMS)[reviewer_pair_indices]
    chance_jaccards = jaccard_by_chance(matrix.table, MIN_SHARED_ITEMS)[reviewer_pair_indices]
    is_ordinal = level != "nominal"
    is_similarity_defined = ~np.isnan(similarities) & is_ordinal
    figures: Figures = {
        "dimension": matrix.dimension,
        "domain": matrix.domain,
        "items": is_rated_by_several.sum(),
        "groups": len(np.unique(matrix.group[is_rated_by_several])),
        "ratings": len(matrix.score),
        "alpha": as_interval(alpha_interval(matrix.table, level, tasks=matrix.group)),
        "pairs": is_similarity_defined.sum(),
        "jaccard": None,
        "jaccard_by_chance": None,
        "jaccard_excess": None,
        "reviewers": list(_measure_reviewers(matrix)) if is_ordinal else [],
        "rank_correlations": {},
    }
    if is_ordinal and 2 < len(matrix.reviewers) <= _MAX_REVIEWERS_OF_PAIRS:
        for name, scores in zip(matrix.reviewers, matrix.table, strict=True):
            row = [_correlate(scores, other) for other in matrix.table]
            figures["rank_correlations"][name] = row
    if is_similarity_defined.any():
        excess = jaccard_excess(matrix.table, matrix.group, MIN_SHARED_ITEMS)
        figures |= {
            "jaccard": similarities[is_similarity_defined].mean(),
            "jaccard_by_chance": chance_jaccards[is_similarity_defined].mean(),
            "jaccard_excess": as_interval(excess),
        }
    return figures


def _correlate(first: Floats, second: Floats) -> float | None:
    """Return the rank correlation over the items that both scored."""
    shared = ~np.isnan(first + second)
    one_cluster = np.zeros(shared.sum(), dtype=int)  # no interval, whose jackknife takes most time
    estimate = rank_correlation(first[shared], second[shared], one_cluster)
    return None if estimate is None else estimate.value


def _measure_reviewers(matrix: ReviewerItemScores) -> Iterator[Figures]:
    reviewer, item, score = matrix.reviewer, matrix.item, matrix.score
    others = mean_without_own_subgroup(score, item, np.arange(len(score)))
    correlations = correlations_with_others(reviewer, item, score, matrix.group[item])
    shifts = shifts_from_others(reviewer, item, score, matrix.group[item])
    for row, name in enumerate(matrix.reviewers):
        scores = score[reviewer == row]
        gaps = (others - score)[(reviewer == row) & ~np.isnan(others)]
        yield {
            "reviewer": name,
            "ratings": len(scores),
            "correlation": as_interval(correlations[row]),
            "strictness": gaps.mean() if len(gaps) else None,
            "shift": as_interval(shifts[row]),
            "spread": scores.std(ddof=1) if len(scores) > 1 else None,
        }


def dimension_domain_name(figures: Figures) -> str:
    """Return the name of a dimension, and of its domain if the figures are of one."""
    return " · ".join(filter(None, (figures["dimension"], figures.get("domain")))) or "all"


def _describe_pattern(figures: Figures) -> str:
    """Return whether reviewers agree in scores, and if not, whether in what they rate high: the paper's pattern.

    Who is surely higher or lower than the others uses the scale differently; spreads have no test.
    """
    subject = dimension_domain_name(figures)
    alpha: IntervalCell = figures["alpha"]
    if alpha.low is None and alpha.value == 1.0:
        return (
            f"{subject}: reviewers agree fully, in every score of an item that several scored: alpha 1.00, "
            f"{NO_INTERVAL_OF_EQUALS}."
        )
    side = side_of_bound(alpha, MIN_ALPHA_FOR_TENTATIVE_CONCLUSIONS) or 0
    agree = {
        1: "reviewers agree",
        0: "it cannot be told whether reviewers agree",
        -1: "reviewers do not agree",
    }[side]
    conclusion = (
        f"{subject}: {agree} well enough for tentative conclusions: alpha {format_cell(alpha, 2)}, which takes "
        f"{MIN_ALPHA_FOR_TENTATIVE_CONCLUSIONS}."
    )
    if side < 1 and side_of_bound(figures["jaccard_excess"], 0.0) == 1:
        has_shift = any(row["shift"] for row in figures["reviewers"])
        shift = ", and differ in how high they rate" if has_shift else ""
        conclusion += f" More than by chance they rate the same items high{shift}."
    return conclusion


def _notes(
    matrices: Sequence[ReviewerItemScores],
    parts: FigureRows,
    level: MeasurementLevel,
    is_order_named: bool,
) -> Iterator[str]:
    yield from notes_on_similar_names(name for matrix in matrices for name in matrix.reviewers)
    is_ordinal = level != "nominal"
    reasons = {
        "no alpha, as no item has two scores, or all scores of such items are equal": [
            figures for figures in parts if figures["alpha"] is None
        ],
        (
            f"fewer than {_FEW_ITEMS_THRESHOLD} {_sampling_unit_noun(parts)}, so that the interval of alpha is "
            "too narrow"
        ): [
            figures
            for figures in parts
            if figures["alpha"] and figures["groups"] < _FEW_ITEMS_THRESHOLD
        ],
        (
            f"no Jaccard, as no two reviewers have {MIN_SHARED_ITEMS} common items, some of them above their medians"
        ): [figures for figures in parts if figures["jaccard"] is None and is_ordinal],
    }
    if not is_ordinal:
        yield "classes have no order, so there is no Jaccard, strictness or spread"
    for reason, affected_dimensions in reasons.items():
        if affected_dimensions:
            names = list(map(dimension_domain_name, affected_dimensions))
            yield f"{reason}: {join_names(names)}"
    for matrix in matrices:
        if matrix.domain is None and is_ordinal:
            remedy = "" if is_order_named else "use --level nominal"
            yield from notes_on_scores(matrix.dimension or "all", matrix.score, remedy)


def notes_on_scores(name: str, scores: Floats, remedy: str) -> Iterator[str]:
    """Yield a warning of a score that is far from all others, and a note that asks whether two or three numbers are
    codes of classes, unless there is no remedy."""
    codes = np.unique(scores).tolist()
    _, far_scores = split_far_labels(codes, scores.tolist())
    if far_scores:
        numbers = join_names(f"{score:g}" for score in far_scores)
        yield f"Warning: {name}: far from all other scores, and moving every figure: {numbers}; correct them"
    if remedy and 1 < len(codes) <= _MAX_CLASS_CODES:
        class_codes_text = ", ".join(f"{code:g}" for code in codes)
        yield f"{name}: {class_codes_text} are taken as an order; if they are codes of classes, {remedy}"


def _describe_least_similar_rater(cells: Mapping[str, object]) -> Iterator[str]:
    """Yield who of three or more has a rank correlation with the others that is surely below the mean of the others'.

    Its error is as if the correlations were independent; those of shared items rise together, which only makes it
    smaller. As the least of all is tested, the level is divided by their number (Bonferroni).
    """
    names = [name for name, cell in cells.items() if side_of_bound(cell, 0.0) is not None]
    if len(names) < 3:
        return
    values, lows, _ = np.array([as_interval(cells[name]) for name in names], dtype=np.float64).T
    errors = (values - lows) / NORMAL_QUANTILE
    least, *others = values.argsort().tolist()
    gap = values[others].mean() - values[least]
    error = math.hypot(errors[least], *(errors[others] / len(others)))
    if gap < NormalDist().inv_cdf(1.0 - SIGNIFICANCE_LEVEL / len(names)) * error:
        yield "nobody is surely less like the others than these are on average (rank correlation)"
        return
    yield (
        f"least like the others: {names[least]}, rank correlation {format_cell(cells[names[least]], 3)}, surely below "
        f"the mean of the others'; the next has {values[others[0]]:.3f} ({names[others[0]]})"
    )
