"""How many items or reviewers a study needs, by resampling the ratings of a first one.

Two questions: when is the interval of Krippendorff's alpha as narrow as wanted, and when is a difference of two judges
found. Neither can be answered for more ratings of an item than some items have.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.display import ProgressCallback
from jurygraph.errors import InputError
from jurygraph.inference.agreement import AlphaLevel, alpha_estimate
from jurygraph.inference.clusters import t_quantile
from jurygraph.studies.agreement import ScoredPart
from jurygraph.studies.report import Figures, Plot, PlotSeries, Report, ReportTable
from jurygraph.studies.reviewers import predict

_LEAST_ITEMS = 30  # with fewer the interval is too narrow, and with it the answer
_FEW_REVIEWERS = 20
_MOST_ITEMS = 30_720
_MOST_PER_ITEM = 5
_MOST_CLUSTERS = 4096
_DRAWS = 40
_TESTS = 1000
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
    level: AlphaLevel = "ordinal"
    seed: int = 0

    def report(self, parts: Sequence[ScoredPart], advance: ProgressCallback = lambda steps: None) -> Report:
        """Return the answers for each dimension; `advance` is called with 1 for each dimension and question.

        The figures are `alpha`: for each dimension and number of ratings `per_item`, the `curve` of the median
        half-width over numbers of `items`, and `needed` items; and `differences`: the `reviewers` needed with as many
        ratings each as now (`ratings_each`). What is needed is None if no feasible number is enough.
        """
        alphas: list[Figures] = []
        gaps: list[Figures] = []
        notes: list[str] = []
        for part in parts:
            alphas += self._plan_alpha(part)
            advance(1)
            if self.difference is not None:
                if len(np.unique(part.reviewer)) > 1:
                    gaps.append(self._plan_difference(part, self.difference))
                else:
                    notes.append(f"{part.dimension or 'all'}: has one reviewer; a difference needs ratings of several")
                advance(1)
        figures = {"width": self.width, "level": self.level, "seed": self.seed, "alpha": alphas, "differences": gaps}
        notes += _notes(parts, alphas, gaps)
        return Report(figures, list(self._sections(alphas, gaps)), notes, list(self._plots(alphas)))

    def _plan_alpha(self, part: ScoredPart) -> Iterator[Figures]:
        levels, codes = np.unique(part.score, return_inverse=True)
        number = np.bincount(part.item, minlength=len(part.items))
        rated = np.full((len(part.items), number.max()), -1)
        order = np.argsort(part.item, kind="stable")
        starts = np.cumsum(number) - number
        rated[part.item[order], np.arange(len(order)) - starts[part.item[order]]] = codes[order]
        for per_item in range(2, min(_MOST_PER_ITEM, number.max()) + 1):
            usable = rated[number >= per_item]
            if len(usable) < _LEAST_ITEMS:
                break
            curve: list[Figures] = []
            items = _LEAST_ITEMS
            while items <= _MOST_ITEMS and (not curve or curve[-1]["half_width"] > self.width):
                rng = np.random.default_rng((self.seed, per_item, items))
                widths = [
                    _half_width(_draw_counts(usable, items, per_item, len(levels), rng), levels, self.level)
                    for _ in range(_DRAWS)
                ]
                curve.append({"items": items, "half_width": float(np.median(widths))})
                items *= 2
            needed = _interpolate(curve, self.width)
            yield {"dimension": part.dimension, "per_item": per_item, "needed": needed, "curve": curve}

    def _plan_difference(self, part: ScoredPart, difference: float) -> Figures:
        errors = {
            prediction.judge: np.abs(prediction.values - part.score).mean(axis=0)
            for prediction in predict(part, self.judges, (), 1, {})
        }
        gaps = errors[self.judges[0]] - errors[self.judges[1]]
        known = ~np.isnan(gaps)
        gaps = gaps[known] - gaps[known].mean()
        if not gaps.any():
            raise InputError(f"--judges: {' and '.join(self.judges)} have no different errors; name two others")
        by_reviewer = without_noise([gaps[part.reviewer[known] == one] for one in np.unique(part.reviewer[known])])
        ratings_each = int(np.median([len(own) for own in by_reviewer]))

        def power(reviewers: int) -> float:
            return power_of(by_reviewer, difference, reviewers, ratings_each, self.seed)

        return {
            "dimension": part.dimension,
            "judges": self.judges,
            "difference": difference,
            "power": self.power,
            "power_now": power(len(by_reviewer)),
            "reviewers_now": len(by_reviewer),
            "ratings_each": ratings_each,
            "reviewers": _least(lambda number: power(number) >= self.power, _MOST_CLUSTERS),
        }

    def _sections(self, alphas: Sequence[Figures], gaps: Sequence[Figures]) -> Iterator[str | ReportTable]:
        yield (
            f"by resampling the ratings, seed {self.seed}; alpha is Krippendorff's, {self.level}; - where no number up "
            f"to {_MOST_ITEMS} items or {_MOST_CLUSTERS} reviewers is enough"
        )
        rows = [[row["dimension"] or "all", row["per_item"], row["needed"]] for row in alphas]
        yield ReportTable(("dimension", "ratings of an item", f"items for alpha ± {self.width:g}"), rows)
        names = ("difference", "reviewers_now", "ratings_each", "power_now", "reviewers")
        rows = [[row["dimension"] or "all", " - ".join(row["judges"]), *(row[name] for name in names)] for row in gaps]
        header = ("dimension", "MAE of", "to find", "reviewers", "ratings of each", "power")
        yield ReportTable((*header, f"reviewers for power {self.power:g}"), rows, left=2, digits=2)

    def _plots(self, alphas: Sequence[Figures]) -> Iterator[Plot]:
        for dimension in dict.fromkeys(row["dimension"] for row in alphas):
            series = [
                PlotSeries(
                    f"{row['per_item']} ratings of an item",
                    [point["half_width"] for point in row["curve"]],
                    [point["items"] for point in row["curve"]],
                )
                for row in alphas
                if row["dimension"] == dimension
            ]
            title = f"Krippendorff's alpha, {self.level}: {dimension or 'all'}"
            yield Plot(title, "line", series, "items", "half-width of the 95 % interval")


def _notes(parts: Sequence[ScoredPart], alphas: Sequence[Figures], gaps: Sequence[Figures]) -> Iterator[str]:
    planned = {row["dimension"] for row in alphas}
    for part in parts:
        if part.dimension not in planned:
            problem = f"fewer than {_LEAST_ITEMS} items have two ratings, too few to draw studies from"
            yield f"{part.dimension or 'all'}: {problem}"
    for row in gaps:
        if row["reviewers_now"] < _FEW_REVIEWERS:
            problem = f"hardly shows how reviewers differ; with fewer than {_FEW_REVIEWERS}, the answer is rough"
            yield f"{row['dimension'] or 'all'}: a file of {row['reviewers_now']} reviewers {problem}"


def _draw_counts(rated: Any, items: int, per_item: int, levels: int, rng: np.random.Generator) -> Floats:
    """Return how often each of the drawn items has each level, [items, V]: so many ratings of each at random."""
    drawn = rated[rng.integers(0, len(rated), items)]
    keys = np.where(drawn >= 0, rng.random(drawn.shape), np.inf)
    chosen = np.take_along_axis(drawn, np.argsort(keys, axis=1)[:, :per_item], axis=1)
    cells = np.arange(items)[:, None] * levels + chosen
    return np.bincount(cells.ravel(), minlength=items * levels).reshape(items, levels).astype(np.float64)


def _half_width(counts: Floats, levels: Floats, level: AlphaLevel) -> float:
    estimate = alpha_estimate(counts, levels, level)
    if estimate is None or not estimate.error:
        return np.inf
    return t_quantile(estimate.clusters - 1) * estimate.error


def _interpolate(curve: Sequence[Figures], width: float) -> int | None:
    """Return the number of items at which the half-width is reached; it falls as a power of their number."""
    last = curve[-1]
    if last["half_width"] > width:
        return None
    before = curve[-2]["half_width"] if len(curve) > 1 else np.inf
    if not np.isfinite(before):
        return int(last["items"])
    share = np.log(before / width) / np.log(before / last["half_width"])
    return int(np.ceil(curve[-2]["items"] * 2.0**share))


def without_noise(by_reviewer: Sequence[Floats]) -> list[Floats]:
    """Return gaps whose means vary as the reviewers do, without what the chance of few ratings adds."""
    means = np.array([own.mean() for own in by_reviewer])
    noise = np.mean([own.var(ddof=1) / len(own) if len(own) > 1 else 0.0 for own in by_reviewer])
    spread = means.var(ddof=1) if len(means) > 1 else 0.0
    share = np.sqrt(max(0.0, 1.0 - noise / spread)) if spread > 0.0 else 0.0
    return [
        share * mean + (own - mean) * np.sqrt(len(own) / max(1, len(own) - 1))
        for own, mean in zip(by_reviewer, means, strict=True)
    ]


def power_of(by_reviewer: Sequence[Floats], difference: float, reviewers: int, ratings: int, seed: int) -> float:
    """Return the share of resampled studies whose 95 % interval over reviewers finds a mean of `difference`.

    A study draws so many reviewers, and so many ratings of each. `by_reviewer` are gaps with the mean 0.
    """
    if reviewers < 2:
        return 0.0
    rng = np.random.default_rng((seed, reviewers, ratings))
    sizes = np.array([len(own) for own in by_reviewer])
    starts = np.cumsum(sizes) - sizes
    gaps = np.concatenate(by_reviewer)
    hits = 0
    batch = max(1, _CELLS_PER_BATCH // (reviewers * ratings))
    for start in range(0, _TESTS, batch):
        drawn = rng.integers(0, len(sizes), (min(batch, _TESTS - start), reviewers, 1))
        places = starts[drawn] + (rng.random((*drawn.shape[:2], ratings)) * sizes[drawn]).astype(np.intp)
        means = gaps[places].mean(axis=2) + difference
        errors = means.std(axis=1, ddof=1) / np.sqrt(reviewers)
        hits += int((np.abs(means.mean(axis=1)) > t_quantile(reviewers - 1) * errors).sum())
    return hits / _TESTS


def _least(is_enough: Callable[[int], bool], most: int) -> int | None:
    """Return the least number that is enough, by bisection below the first power of 2 that is; None above `most`."""
    high = 2
    while not is_enough(high):
        high *= 2
        if high > most:
            return None
    return bisect_left(range(high), True, high // 2 + 1, key=is_enough)
