"""How many items or reviewers a study needs, by resampling the ratings of a first one.

Two questions: when is the interval of Krippendorff's alpha as narrow as wanted, and when is a difference of two judges
found. Neither can be answered for more ratings of an item than some items have. A difference is tested as
`study reviewers` does, over reviewers and items: more reviewers of the same items do not help against what a judge gets
wrong on an item.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from jurygraph.arrays import Floats, Ints
from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.errors import InputError
from jurygraph.inference.agreement import MeasurementLevel, alpha_estimate
from jurygraph.inference.clusters import (
    cluster_numbers,
    find_least_count,
    members_by_cluster,
    t_quantile,
)
from jurygraph.inference.crossed import crossed_error
from jurygraph.studies import symbols
from jurygraph.studies.agreement import DimensionRatings, dimension_domain_name
from jurygraph.studies.report import (
    FigureRows,
    Figures,
    Plot,
    PlotSeries,
    Report,
    ReportSections,
    ReportTable,
    describe_series,
)
from jurygraph.studies.reviewers import absolute_errors, predict

_MIN_ITEMS_NEEDED = 30  # with fewer the interval is too narrow, and with it the answer
_FEW_REVIEWERS_THRESHOLD = 20
_MAX_ITEMS_PLANNED = 30_720
_MAX_RATINGS_PER_ITEM = 5
_MAX_REVIEWERS_PLANNED = 4096
_RESAMPLE_COUNT = 40
_SIMULATED_TEST_COUNT = 1000
_CELLS_PER_BATCH = 4_000_000  # limits memory


@dataclass(frozen=True)
class PowerStudy:
    """The questions that are answered.

    Attributes:
        width: wanted half-width of the 95 % interval of alpha.
        difference: difference of two judges' mean absolute errors that is to be found, in units of the scores; or None.
        judges: the two judges without a model, whose errors are resampled.
        power: wanted probability of finding it.
        level: of alpha.
        seed: of all draws.
    """

    width: float = 0.1
    difference: float | None = None
    judges: tuple[str, str] = ("own-history", "item-mean")
    power: float = 0.8
    level: MeasurementLevel = "ordinal"
    seed: int = 0

    def report(
        self, parts: Sequence[DimensionRatings], advance: ProgressCallback = ignore_progress
    ) -> Report:
        """Return the answers for each dimension; `advance` is called with 1 for each dimension and question.

        The figures are `alpha`: for each dimension and number of ratings `per_item`, the `curve` of the median
        half-width over numbers of `items`, so many of them in a group (`mean_items_per_group`), and `needed` items; and
        `differences`: the `reviewers` needed with as many ratings each as now (`ratings_each`), of as many items or
        groups of items (`items_now`). What is needed is None if no feasible number is enough.
        """
        alphas: list[Figures] = []
        gaps = []
        notes = []
        for part in parts:
            alphas += self._plan_alpha(part)
            advance(1)
            if self.difference is not None:
                if len(np.unique(part.reviewer)) > 1:
                    gaps.append(self._plan_difference(part, self.difference))
                else:
                    notes.append(
                        f"{part.name}: has one reviewer; a difference needs ratings of several"
                    )
                advance(1)
        figures = {
            "width": self.width,
            "level": self.level,
            "seed": self.seed,
            "alpha": alphas,
            "differences": gaps,
        }
        notes += _notes(parts, alphas, gaps)
        return Report(
            figures,
            self._sections(alphas, gaps),
            notes,
            self._plots(alphas),
            symbol_meanings=symbols.AGREEMENT_SYMBOL_MEANINGS,
        )

    def _plan_alpha(self, part: DimensionRatings) -> Iterator[Figures]:
        levels, codes = np.unique(part.score, return_inverse=True)
        number = np.bincount(part.item, minlength=len(part.items))
        rating_codes = np.full((len(part.items), number.max()), -1)
        for ratings in members_by_cluster(part.item):
            rating_codes[part.item[ratings[0]], : len(ratings)] = codes[ratings]
        group_of_item = np.zeros(len(part.items), dtype=np.intp)
        group_of_item[part.item] = part.group
        for per_item in range(2, min(_MAX_RATINGS_PER_ITEM, number.max()) + 1):
            has_enough_ratings = number >= per_item
            items = _GroupedItems(
                rating_codes[has_enough_ratings],
                members_by_cluster(group_of_item[has_enough_ratings]),
            )
            if len(items.groups) < _MIN_ITEMS_NEEDED:
                break
            curve = self._simulate_width_curve(items, per_item, levels)
            yield {
                "dimension": part.dimension,
                "per_item": per_item,
                "per_group": items.mean_items_per_group,
                "needed": _interpolate_needed_items(curve, self.width),
                "curve": curve,
            }

    def _simulate_width_curve(
        self, items: "_GroupedItems", per_item: int, levels: Floats
    ) -> list[Figures]:
        """Return the median half-width over numbers of items, doubled until it is as narrow as wanted."""
        curve = []
        groups = _MIN_ITEMS_NEEDED
        while groups * items.mean_items_per_group <= _MAX_ITEMS_PLANNED:
            rng = np.random.default_rng((self.seed, per_item, groups))
            widths = []
            for _ in range(_RESAMPLE_COUNT):
                counts, group = items.sample_level_counts(groups, per_item, len(levels), rng)
                estimate = alpha_estimate(counts, levels, self.level, group)
                if estimate is None or not estimate.error:
                    widths.append(math.inf)
                else:
                    widths.append(t_quantile(estimate.clusters - 1) * estimate.error)
            half_width = float(np.median(widths))
            curve.append(
                {"items": round(groups * items.mean_items_per_group), "half_width": half_width}
            )
            if half_width <= self.width:
                break
            groups *= 2
        return curve

    def _plan_difference(self, part: DimensionRatings, difference: float) -> Figures:
        errors = absolute_errors(part, predict(part, self.judges, (), 1, {}))
        gaps = errors[self.judges[0]] - errors[self.judges[1]]
        is_predicted_by_both = ~np.isnan(gaps)
        gaps = gaps[is_predicted_by_both] - gaps[is_predicted_by_both].mean()
        if not gaps.any():
            raise InputError(
                f"--judges: {' and '.join(self.judges)} have no different errors; name two others"
            )
        reviewer = part.reviewer[is_predicted_by_both]
        effects = estimate_gap_effects(gaps, reviewer, part.group[is_predicted_by_both])
        current_reviewer_count = len(effects.reviewers)
        ratings = np.unique(reviewer, return_counts=True)[1]
        ratings_per_item = int(np.median(ratings))

        def power(reviewers: int) -> float:
            return simulate_power(effects, difference, reviewers, ratings_per_item, self.seed)

        # Without end, more reviewers leave what items alone make uncertain; if that is too much, no search is needed.
        current_item_count = len(effects.items)
        item_effects_only = ReviewerAndItemEffects(np.zeros(1), effects.items, np.zeros(1))
        power_with_all_items = simulate_power(
            item_effects_only, difference, current_item_count, current_item_count, self.seed
        )
        power_now = power(current_reviewer_count)
        reviewers = None
        if power_with_all_items >= self.power:
            reviewers = find_least_count(
                lambda number: power(number) >= self.power, _MAX_REVIEWERS_PLANNED
            )
        return {
            "dimension": part.dimension,
            "judges": self.judges,
            "difference": difference,
            "power": self.power,
            "power_now": power_now,
            "reviewers_now": current_reviewer_count,
            "items_now": current_item_count,
            "ratings_each": ratings_per_item,
            "reviewers": reviewers,
        }

    def _sections(self, alphas: FigureRows, gaps: FigureRows) -> ReportSections:
        yield (
            f"by resampling the ratings, seed {self.seed}; alpha is Krippendorff's, {self.level}; - where no number up "
            f"to {_MAX_ITEMS_PLANNED} items or {_MAX_REVIEWERS_PLANNED} reviewers is enough, "
            "or no two of these ratings of an item differ; a difference is tested over reviewers and "
            "items (items of one group together), of as many items as now"
        )
        columns: dict[str, Any] = {
            "dimension": dimension_domain_name,
            "ratings of an item": "per_item",
        }
        if any(row["per_group"] != 1.0 for row in alphas):
            columns["items of a group"] = "per_group"
        columns[f"items for alpha ± {self.width:g}"] = "needed"
        yield ReportTable.of(columns, alphas, digits=1)
        columns = {
            "dimension": dimension_domain_name,
            "MAE of": lambda row: " - ".join(row["judges"]),
            "to find": "difference",
            "reviewers": "reviewers_now",
            "items": "items_now",
            "ratings of each": "ratings_each",
            "power": "power_now",
            f"reviewers for power {self.power:g}": "reviewers",
        }
        yield ReportTable.of(columns, gaps, left=2, digits=2)

    def _plots(self, alphas: FigureRows) -> Iterator[Plot]:
        for dimension, rows in groupby(alphas, itemgetter("dimension")):
            series = []
            for row in rows:
                widths = [point["half_width"] for point in row["curve"]]
                items = [point["items"] for point in row["curve"]]
                series.append(PlotSeries(f"{row['per_item']} ratings of an item", widths, items))
            interval = f"Half the interval of {self.level} alpha of {dimension or 'all'}"
            title = f"{describe_series(interval, 'items', series[0])} ({series[0].label})"
            yield Plot(title, "line", series, "items", "half-width of the 95 % interval")


def _notes(
    parts: Sequence[DimensionRatings], alphas: FigureRows, gaps: FigureRows
) -> Iterator[str]:
    dimensions_planned = {row["dimension"] for row in alphas}
    for part in parts:
        if part.dimension not in dimensions_planned:
            yield (
                f"{part.name}: fewer than {_MIN_ITEMS_NEEDED} items (of a group, one) have two "
                "ratings, too few to draw studies from; have so many rated by two people each, and ask again"
            )
    for row in gaps:
        if row["reviewers_now"] < _FEW_REVIEWERS_THRESHOLD:
            yield (
                f"{dimension_domain_name(row)}: a file of {row['reviewers_now']} reviewers hardly "
                f"shows how reviewers differ; with fewer than {_FEW_REVIEWERS_THRESHOLD}, the answer "
                "is rough"
            )
        if row["reviewers"] is None:
            yield (
                f"{dimension_domain_name(row)}: no number of reviewers finds the difference; more "
                "items may, where a judge errs on an item for all of its reviewers"
            )


class _GroupedItems(NamedTuple):
    """The codes of items' ratings, [N, K], -1 where there are fewer; and the items of each group."""

    rated: Ints
    groups: Sequence[Ints]

    @property
    def mean_items_per_group(self) -> float:
        return len(self.rated) / len(self.groups)

    def sample_level_counts(
        self, groups: int, per_item: int, levels: int, rng: np.random.Generator
    ) -> tuple[Floats, Ints]:
        """Return how often each item of the drawn groups has each level, [n, V], and the number of its group, [n].

        Of each item so many ratings are drawn at random.
        """
        drawn_groups = [self.groups[index] for index in rng.integers(0, len(self.groups), groups)]
        group = np.repeat(np.arange(groups), list(map(len, drawn_groups)))
        drawn_ratings = self.rated[np.concatenate(drawn_groups)]
        keys = np.where(drawn_ratings >= 0, rng.random(drawn_ratings.shape), np.inf)
        first = np.argsort(keys, axis=1)[:, :per_item]
        chosen = np.take_along_axis(drawn_ratings, first, axis=1)
        cells = np.arange(len(drawn_ratings))[:, None] * levels + chosen
        counts = np.bincount(cells.ravel(), minlength=len(drawn_ratings) * levels)
        return counts.reshape(len(drawn_ratings), levels).astype(np.float64), group


def _interpolate_needed_items(curve: FigureRows, width: float) -> int | None:
    """Return the number of items at which the half-width is reached; it falls as a power of their number."""
    last = curve[-1]
    if last["half_width"] > width:
        return None
    before = curve[-2]["half_width"] if len(curve) > 1 else np.inf
    if not np.isfinite(before):
        return int(last["items"])
    share = np.log(before / width) / np.log(before / last["half_width"])
    return int(np.ceil(curve[-2]["items"] * 2.0**share))


class ReviewerAndItemEffects(NamedTuple):
    """The parts of gaps of two judges: effects of reviewers [R], of items [I], and the remainders [N].

    An item is a group of items where these belong together.
    """

    reviewers: Floats
    items: Floats
    residuals: Floats


def estimate_gap_effects(gaps: Floats, reviewer: Ints, item: Ints) -> ReviewerAndItemEffects:
    """Return the effects of gaps [N]: each kind varies as it does without what the chance of few ratings adds.

    Where items have hardly more than one rating, what is an item's cannot be told, and no item has an effect.
    """
    reviewers = _means_by_cluster(reviewer, gaps)
    items = _means_by_cluster(item, gaps - reviewers.cluster_mean_of_each_value)
    degrees_of_freedom = len(gaps) - len(reviewers.sizes) - len(items.sizes) + 1
    if degrees_of_freedom <= 0:
        items = items._replace(means=np.zeros(len(items.sizes)))
        degrees_of_freedom = max(1, len(gaps) - len(reviewers.sizes))
    reviewers = _means_by_cluster(reviewer, gaps - items.cluster_mean_of_each_value)
    gap_residuals = gaps - items.cluster_mean_of_each_value - reviewers.cluster_mean_of_each_value
    variance = float((gap_residuals**2).sum()) / degrees_of_freedom
    scale = np.sqrt(len(gaps) / degrees_of_freedom)
    reviewer_effects = reviewers.shrunken_means(variance)
    item_effects = items.shrunken_means(variance)
    return ReviewerAndItemEffects(reviewer_effects, item_effects, scale * gap_residuals)


class _MeansByCluster(NamedTuple):
    """The means and sizes of clusters, [G], and the cluster of each value, [N]."""

    means: Floats
    sizes: Ints
    number: Ints

    @property
    def cluster_mean_of_each_value(self) -> Floats:
        """The mean of each value's cluster, [N]."""
        return self.means[self.number]

    def shrunken_means(self, variance: float) -> Floats:
        """Return the means around 0, shrunk to the spread that they have without that of single values."""
        noise = variance * float((1.0 / self.sizes).mean())
        spread = float(self.means.var(ddof=1)) if len(self.means) > 1 else 0.0
        share = 0.0
        if spread > 0.0:
            share = np.sqrt(max(0.0, 1.0 - noise / spread))
        centered = self.means - self.means.mean()
        return np.asarray(share * centered)


def _means_by_cluster(cluster: Ints, values: Floats) -> _MeansByCluster:
    number = cluster_numbers(cluster)
    sizes = np.bincount(number)
    return _MeansByCluster(np.bincount(number, values) / sizes, sizes, number)


def simulate_power(
    effects: ReviewerAndItemEffects, difference: float, reviewers: int, ratings: int, seed: int
) -> float:
    """Return the share of resampled studies whose 95 % interval over reviewers and items finds a mean of `difference`.

    A study draws so many reviewers, as many items as there are, and the remainders of so many ratings of each reviewer.
    Every item has as many ratings as any other, or one more: the ratings of a reviewer are of items in a row.
    """
    item_count = len(effects.items)
    if reviewers < 2 or item_count < 2:
        return 0.0
    rng = np.random.default_rng((seed, reviewers, ratings))
    number = reviewers * ratings
    item_indices = np.arange(number) % item_count
    rated_item_count = min(item_count, number)
    is_fully_rated = ratings == item_count
    padding = -number % item_count
    quantile = t_quantile(min(reviewers, rated_item_count) - 1)
    hits = 0
    batch = max(1, _CELLS_PER_BATCH // number)
    for start in range(0, _SIMULATED_TEST_COUNT, batch):
        size = min(batch, _SIMULATED_TEST_COUNT - start)
        gaps = rng.choice(effects.residuals, (size, reviewers, ratings))
        gaps += rng.choice(effects.reviewers, (size, reviewers, 1))
        item_effects = rng.choice(effects.items, (size, item_count))
        gaps += item_effects[:, item_indices].reshape(gaps.shape)
        means = gaps.mean(axis=(1, 2))
        residuals = (gaps - means[:, None, None]).reshape(size, number)
        padded_residuals = np.pad(residuals, ((0, 0), (0, padding)))
        residual_sum_by_item = padded_residuals.reshape(size, -1, item_count).sum(axis=1)[
            :, :rated_item_count
        ]
        residual_sum_by_reviewer = residuals.reshape(gaps.shape).sum(axis=2)
        squares = (residuals**2).sum(axis=1)
        errors = crossed_error(
            residual_sum_by_reviewer, residual_sum_by_item, squares, number, number, is_fully_rated
        )
        is_difference_found = np.abs(means + difference) > quantile * errors
        hits += int(is_difference_found.sum())
    return hits / _SIMULATED_TEST_COUNT
