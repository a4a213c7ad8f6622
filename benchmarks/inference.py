"""Type I errors and coverage of the tests and intervals of jurygraph.inference, and those of plain methods.

Last are margins: how often `no_worse_than` passes a loss of exactly the margin, and how often the interval alone would.

Each figure is of simulated runs of n tasks x m responses with an intra-class correlation, in `simulation/responses.py`.
The plain methods take each response for independent: a t-test, McNemar's and Wilson's; or they draw tasks
with replacement (percentile bootstrap). A target is missed if a figure is more than three of its standard errors beyond
it. Where a sample gives no p-value, nothing is rejected; samples without an interval are left out, and counted.
"""

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby, product
from time import process_time
from typing import NamedTuple

import numpy as np

from benchmarks.figure import Figure, at_most
from benchmarks.simulation.processes import run_each
from benchmarks.simulation.responses import KINDS, Design, Kind, decisions, differences
from jurygraph.arrays import Bools, Floats
from jurygraph.inference.clusters import (
    ONE_SIDED_LEVEL,
    no_worse_p_value,
    ratio_interval,
    share_interval,
    wilson,
)
from jurygraph.inference.sign_flips import RANDOM_FLIP_COUNT, sign_flip_p

JOBS = os.cpu_count() or 1
SEED = 26
LEVEL, WANTED_LEVEL = 0.05, 0.06
WANTED_COVERAGE = 0.93
MIN_TASKS = 5
STRICT: tuple[Kind, ...] = ("normal", "binary")
"""The kinds that are held to the targets."""
SHIFT = 0.05
"""True difference of the intervals."""
SHARES = (0.5, 0.2, 0.05)
MARGIN = 0.04
MARGIN_TASKS = (6, 10, 30, 100)
MARGIN_SAMPLES = 4_000
RESAMPLES = 1_000
RESPONSES = (1, 4, 8)
CORRELATIONS = (0.0, 0.3, 0.7)


@dataclass(frozen=True)
class Effort:
    """Numbers of tasks with the samples that a test gets for each, and the samples of an interval."""

    tests: Mapping[int, int] = field(
        default_factory=lambda: {3: 4_000, 5: 4_000, 10: 4_000, 30: 2_000, 100: 500}
    )
    intervals: int = 10_000


class Cell(NamedTuple):
    """One test or interval in one design; `kind` is a kind of differences, or a share."""

    method: str
    kind: Kind | float
    design: Design
    samples: int

    def __str__(self) -> str:
        return f"{self.method}, {self.kind}, {self.design}"


class Rates(NamedTuple):
    """Rates of rejection, or of coverage, of our method and of the plain one; `unknown` is that of no interval."""

    own: float
    plain: float
    unknown: float = 0.0


def measure(effort: Effort | None = None) -> Iterator[Figure]:
    """Yield type I errors, coverage, the worst of each method that is held to a target, and the speed."""
    found = []
    for _, group in groupby(cells(effort or Effort()), key=lambda cell: cell.method):
        planned = list(group)
        for cell, rates in zip(planned, run_each(measure_cell, planned, JOBS), strict=True):
            figure = make_figure(cell, rates)
            found.append((cell, figure))
            yield figure
    yield from _worst(found)
    yield from _margins()
    yield from _rare_changes()
    yield from _speed()


def cells(effort: Effort) -> list[Cell]:
    """Return all cells: with one response a task, the intra-class correlation does not matter."""
    designs = [
        Design(*one)
        for one in product(effort.tests, RESPONSES, CORRELATIONS)
        if one[1] > 1 or one[2] == CORRELATIONS[0]
    ]
    tests = [
        Cell(test, kind, design, effort.tests[design.tasks])
        for test, kind, design in product(TESTS, KINDS, designs)
        if test != "discordances" or "binary" in kind
    ]
    means = [
        Cell("mean interval", kind, design, effort.intervals)
        for kind, design in product(KINDS, designs)
    ]
    shares = [
        Cell("share interval", p, design, effort.intervals)
        for p, design in product(SHARES, designs)
    ]
    return [*tests, *means, *shares]


def measure_cell(cell: Cell) -> Rates:
    """Draw the samples of a cell, each cell from its own seed, and return its rates."""
    place = KINDS.index(cell.kind) if isinstance(cell.kind, str) else round(1000 * cell.kind)
    tasks, responses, icc = cell.design
    rng = np.random.default_rng((SEED, place, tasks, responses, round(10 * icc)))
    if isinstance(cell.kind, float):
        return _share_coverage(decisions(cell.design, cell.kind, cell.samples, rng), cell.kind)
    if cell.method == "mean interval":
        return _mean_coverage(differences(cell.kind, cell.design, cell.samples, SHIFT, rng), rng)
    own, plain = TESTS[cell.method]
    drawn = differences(cell.kind, cell.design, cell.samples, 0.0, rng)
    return Rates(_rejected([own(one) for one in drawn]), _rejected(plain(drawn)))


def flips_of_means(drawn: Floats) -> float | None:
    return sign_flip_p(drawn.sum(axis=1))


def t_test(drawn: Floats) -> list[float | None]:
    """Return the paired t-test over responses; no p-value without spread."""
    from scipy import special

    values = drawn.reshape(len(drawn), -1)
    n, deviation = values.shape[1], values.std(axis=1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * special.stdtr(n - 1, -np.abs(values.mean(axis=1)) / deviation * math.sqrt(n))
    return [float(one) if spread > 0.0 else None for one, spread in zip(p, deviation, strict=True)]


def mcnemar(drawn: Floats) -> list[float | None]:
    """Return McNemar's exact test over responses."""
    from scipy import stats

    gained, lost = (drawn > 0).sum(axis=(1, 2)), (drawn < 0).sum(axis=(1, 2))
    p = np.minimum(1.0, 2 * stats.binom.cdf(np.minimum(gained, lost), gained + lost, 0.5))
    return [float(one) if count else None for one, count in zip(p, gained + lost, strict=True)]


TESTS: dict[
    str, tuple[Callable[[Floats], float | None], Callable[[Floats], list[float | None]]]
] = {
    "mean": (flips_of_means, t_test),
    "discordances": (flips_of_means, mcnemar),
}
"""Tests by sign flips of tasks [tasks, responses], and the plain ones of samples [samples, tasks, responses].

The discordances are the sums of differences of decisions.
"""


def _rejected(p_values: list[float | None]) -> float:
    return sum(p is not None and p <= LEVEL for p in p_values) / len(p_values)


def _mean_coverage(drawn: Floats, rng: np.random.Generator) -> Rates:
    samples, tasks, responses = drawn.shape
    sums, sizes = drawn.sum(axis=2), np.full(tasks, responses)
    estimates = [ratio_interval(one, sizes) for one in sums]
    known = [
        (one.low, one.high)
        for one in estimates
        if one and one.low is not None and one.high is not None
    ]
    weights = rng.multinomial(tasks, np.full(tasks, 1 / tasks), RESAMPLES) / tasks
    low, high = np.quantile((sums / responses) @ weights.T, (0.025, 0.975), axis=1)
    return Rates(
        _covered(np.array(known), SHIFT),
        _covered(np.stack([low, high], axis=1), SHIFT),
        _missing(known, samples),
    )


def _share_coverage(drawn: Floats, p: float) -> Rates:
    samples, tasks, responses = drawn.shape
    hits, sizes = drawn.sum(axis=2), np.full(tasks, responses)
    shares = [share_interval(one, sizes) for one in hits]
    known = [
        (one.low, one.high)
        for one in shares
        if one and one.low is not None and one.high is not None
    ]
    plain = [wilson(float(one.sum()), tasks * responses) for one in hits]
    return Rates(
        _covered(np.array(known), p), _covered(np.array(plain), p), _missing(known, samples)
    )


def _covered(ends: Floats, value: float) -> float:
    inside: Bools = (ends[:, 0] <= value + 1e-12) & (ends[:, 1] >= value - 1e-12)
    return float(inside.mean())


def _missing(known: list[tuple[float, float]], samples: int) -> float:
    return 1.0 - len(known) / samples


def make_figure(cell: Cell, rates: Rates) -> Figure:
    """Return the figure of a cell, which has a target from 5 tasks, except for heavy skew and rare changes."""
    plain, note = (
        f"plain {rates.plain:.3f}",
        f"{rates.unknown:.1%} unknown" if rates.unknown >= 0.001 else "",
    )
    if cell.design.tasks < MIN_TASKS or (isinstance(cell.kind, str) and cell.kind not in STRICT):
        return Figure(str(cell), rates.own, plain, note)
    if cell.method in TESTS:
        allowance = 3 * math.sqrt(WANTED_LEVEL * (1 - WANTED_LEVEL) / cell.samples)
        is_met = rates.own <= WANTED_LEVEL + allowance
        return Figure(str(cell), rates.own, plain, f"at most {WANTED_LEVEL:g}", is_met)
    allowance = 3 * math.sqrt(WANTED_COVERAGE * (1 - WANTED_COVERAGE) / cell.samples)
    return Figure(
        str(cell),
        rates.own,
        plain,
        f"at least {WANTED_COVERAGE:g}",
        rates.own >= WANTED_COVERAGE - allowance,
    )


def _worst(found: list[tuple[Cell, Figure]]) -> Iterator[Figure]:
    """Yield the worst figure of each method and kind that is held to a target."""
    rows: dict[tuple[str, str], list[float]] = {}
    for cell, figure in found:
        if figure.met is not None:
            rows.setdefault((cell.method, str(cell.kind)), []).append(figure.value)
    for (method, kind), values in rows.items():
        worst, what = (
            (max(values), "highest type I error")
            if method in TESTS
            else (min(values), "lowest coverage")
        )
        yield Figure(f"{method}, {kind}: {what} from {MIN_TASKS} tasks", worst, "")


LOSSES: Mapping[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "normal": lambda rng, shape: rng.normal(MARGIN, 0.05, shape),
    "rare": lambda rng, shape: np.where(rng.random(shape) < 0.05, MARGIN / 0.05, 0.0),
    "lognormal": lambda rng, shape: MARGIN * rng.lognormal(-0.5, 1.0, shape),
}
"""Losses of [samples, tasks] with a mean of the margin, where a task can lose 1 at most in fact."""


def _margins() -> Iterator[Figure]:
    for (kind, draw), tasks in product(LOSSES.items(), MARGIN_TASKS):
        rng = np.random.default_rng((SEED, tasks))
        estimates = [
            ratio_interval(-losses, np.ones(tasks)) for losses in draw(rng, (MARGIN_SAMPLES, tasks))
        ]
        found = [one for one in estimates if one is not None]
        holds = (
            sum((no_worse_p_value(one, MARGIN, 1.0) or 1.0) < ONE_SIDED_LEVEL for one in found)
            / MARGIN_SAMPLES
        )
        alone = (
            sum((one.value if one.low is None else one.low) > -MARGIN for one in found)
            / MARGIN_SAMPLES
        )
        name = f"no_worse_than={MARGIN:g}, {kind} losses of {MARGIN:g}, {tasks} tasks: holds"
        yield Figure(name, holds, f"interval alone {alone:.3f}", "at most 0.05", holds <= LEVEL)


def _rare_changes() -> Iterator[Figure]:
    """Yield how often an interval exists and covers where one decision in twenty changes, with one response a task."""
    for tasks in MARGIN_TASKS:
        rng = np.random.default_rng((SEED, tasks, 20))
        drawn = np.where(rng.random((MARGIN_SAMPLES, tasks)) < 0.05, 1.0, 0.0)
        found = [
            one
            for one in (ratio_interval(row, np.ones(tasks)) for row in drawn)
            if one and one.low is not None
        ]
        covers = (
            sum((one.low or 0.0) <= 0.05 <= (one.high or 0.0) for one in found) / MARGIN_SAMPLES
        )
        unknown = f"{1.0 - len(found) / MARGIN_SAMPLES:.1%} unknown"
        yield Figure(
            f"mean interval, one of 20 tasks gains 1, {tasks} tasks: exists and covers",
            covers,
            "",
            unknown,
        )


def _speed() -> Iterator[Figure]:
    """Yield the CPU time of sign flips and interval of 1,250 tasks of 8 responses, as a share of SciPy's."""
    from scipy import stats

    drawn = np.random.default_rng(SEED).normal(0.02, 1.0, (1250, 8))
    sizes = np.full(1250, 8)

    def scipys() -> None:
        means = drawn.mean(axis=1)
        kinds = {
            "permutation_type": "samples",
            "n_resamples": RANDOM_FLIP_COUNT,
            "batch": 1000,
            "rng": SEED,
        }
        stats.permutation_test(
            (means,), lambda values, axis: values.mean(axis=axis), vectorized=True, **kinds
        )

    def own() -> None:
        flips_of_means(drawn)
        ratio_interval(drawn.sum(axis=1), sizes)

    times = {}
    for function in (own, scipys):
        start = process_time()
        function()
        times[function] = process_time() - start
    yield Figure("sign flips and interval of 10,000 responses", times[own] * 1e3, "ms CPU")
    yield at_most(
        "... against scipy.stats.permutation_test, as many flips",
        times[own] / times[scipys],
        "x",
        1.0,
    )
