"""Judges blind to wording, whose variants and repeats are draws from one distribution: what does the study say of them?

Each function simulates one data set of responses to as many tasks, measures it as `study stability` does, and returns
S/R, or whether an interval is above 1 or contains the true value. The true variance of all scores is 1.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.simulation.units import Cell
from jurygraph.arrays import Floats
from jurygraph.inference.clusters import Estimate
from jurygraph.inference.positive import ValuesByCluster, mean_of_positive_values
from jurygraph.studies.stability import semantic_to_repeat, variance, wording_variance

NORMAL, SKEWED, UNLIKE = "normal", "exponential", "unlike"
KINDS = (NORMAL, SKEWED, UNLIKE)
_SIGMA = 0.8
"""Of the lognormal variances of responses that are unlike: their largest among 40 is some four times the mean."""


def draw_scores(
    kind: str, tasks: int, variants: int, repeats: int, seed: int
) -> tuple[Floats, Floats]:
    """Return scores of variants [S, V] and of exact repeats [S, R]: normal or exponential, or normal with a variance
    that differs between responses."""
    rng = np.random.default_rng((seed, KINDS.index(kind), tasks, variants, repeats))
    shape = (tasks, variants + repeats)
    scores = rng.exponential(size=shape) if kind == SKEWED else rng.normal(size=shape)
    if kind == UNLIKE:
        variances = np.exp(_SIGMA * rng.normal(size=(tasks, 1)) - _SIGMA**2 / 2)
        scores = np.sqrt(variances) * scores
    return scores[:, :variants], scores[:, variants:]


def by_task(scores: Floats) -> ValuesByCluster:
    return {str(task): [variance(row)] for task, row in enumerate(scores)}


def sem_over_rep(variants: Floats, repeats: Floats) -> Estimate | None:
    """Return S/R of responses to as many tasks, from scores of variants [S, V] and of exact repeats [S, R]."""
    return semantic_to_repeat(by_task(variants), by_task(repeats), repeats.size - len(repeats))


def blind_ratio(kind: str, tasks: int, variants: int, repeats: int, seed: int) -> float:
    """Return S/R of a judge blind to wording."""
    found = sem_over_rep(*draw_scores(kind, tasks, variants, repeats, seed))
    return math.nan if found is None else found.value


def ratio_is_above_1(kind: str, tasks: int, variants: int, repeats: int, seed: int) -> bool:
    """Return whether the whole interval of S/R is above 1, although wording has no part in it."""
    found = sem_over_rep(*draw_scores(kind, tasks, variants, repeats, seed))
    return found is not None and found.low is not None and found.low > 1.0


def cover_variance(kind: str, tasks: int, variants: int, seed: int) -> bool:
    """Return whether the interval of σ²_Sem contains the true variance."""
    scores, _ = draw_scores(kind, tasks, variants, 2, seed)
    return _contains(mean_of_positive_values(by_task(scores)), 1.0)


def cover_part(
    kind: str, tasks: int, variants: int, repeats: int, seed: int, part: float = 1.0
) -> bool:
    """Return whether the interval of σ²_Sem - σ²_Rep contains its true value, the variance that wording adds."""
    scores, exact = draw_scores(kind, tasks, variants, repeats, seed)
    moves = np.random.default_rng((seed, tasks, variants)).normal(size=scores.shape)
    return _contains(
        wording_variance(by_task(scores + math.sqrt(part) * moves), by_task(exact)), part
    )


def _contains(estimate: Estimate | None, value: float) -> bool:
    if estimate is None or estimate.low is None or estimate.high is None:
        return False
    return estimate.low <= value <= estimate.high


def cells() -> Iterator[Cell]:
    """Yield the designs: S/R of a blind judge is 1 and seldom clearly above, variances are covered in 92 %.

    Designs of skewed scores, where only the first approximation holds, have no bounds on S/R: they are printed.
    """
    for repeats in (2, 5):
        for variants in (5, 15):
            for kind in KINDS:
                name = f"{kind}, 40 tasks, {variants} variants, {repeats} repeats"
                design = (kind, 40, variants, repeats)
                mean = Cell(
                    f"S/R, blind: {name}",
                    partial(blind_ratio, *design),
                    most=math.inf,
                    is_share=False,
                )
                above = Cell(f"S/R above 1, blind: {name}", partial(ratio_is_above_1, *design))
                if kind == NORMAL:
                    mean = mean._replace(least=0.95, most=1.05)
                    above = above._replace(most=0.07)
                yield mean
                yield above
    for tasks in (10, 20, 40):
        for kind in KINDS:
            for variants in (5, 15):
                name = f"σ²_Sem is covered: {kind}, {tasks} tasks, {variants} variants"
                yield Cell(name, partial(cover_variance, kind, tasks, variants), least=0.92)
            name = f"σ²_Sem - σ²_Rep is covered: {kind}, {tasks} tasks, 15 variants, 5 repeats"
            yield Cell(name, partial(cover_part, kind, tasks, 15, 5), least=0.92)
