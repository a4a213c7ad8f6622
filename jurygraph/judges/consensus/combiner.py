"""What judges say together, by the confusions that were learned of them: the posterior of the response's true level.

The confusions are frozen in the plan, so the reward is arithmetic: γ_c ∝ μ_c Π_j π_j[c, level of j]. They are learned
from a whole run in a second pass (`jurygraph rescore --learn`), or elsewhere (`jurygraph consensus --artifact`). Until
then the level that most judges give counts, and a tie is shared.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from jurygraph import aggregation
from jurygraph.agents.functions import describe
from jurygraph.agents.roles import Bools, Cells, Combiner, Component, Floats
from jurygraph.errors import PlanError
from jurygraph.schema import Input
from jurygraph.schema.confusions import Confusions

Levels = NDArray[np.intp]
MOST_CASES = 4096
"""Ways to cast the votes that were not heard that are gone through; beyond, the worst level counts."""
_PARAMS = ("confusions", "levels")


class ConsensusOfJudges(Combiner):
    """The mean level of a response under its posterior, each input a judge and each of its samples a vote.

    A verdict counts as the level that it is nearest to (the lower of two). Params: `levels`, what the classes are
    worth, rising in [0, 1] (0 and 1 unless the confusions say otherwise), and `confusions`. A judge that was not heard
    is taken to have said whatever is worst: so no failure is credit, and one that says the opposite of the truth gains
    nothing by failing. The figures are the posterior of the judges that were heard, and its ambiguity, 1 - max.
    """

    name = "consensus"
    keeps_columns = True

    def freeze(self, inputs: Mapping[str, Input], params: Mapping[str, Any]) -> dict[str, Any]:
        unknown = sorted(set(params) - set(_PARAMS))
        if unknown:
            raise PlanError(f"combiner 'consensus' takes no parameter {unknown[0]!r}; there are {', '.join(_PARAMS)}")
        for key, one in inputs.items():
            if one.mass != 1.0 or any(weight != 1.0 for weight in one.weights):
                raise PlanError(f"input {key!r} has a weight, and judges weigh by their confusions here; leave it out")
        known = None if params.get("confusions") is None else _read(params["confusions"])
        levels = _levels(params.get("levels"), known)
        if known is None:
            return {"levels": levels}
        own = {key: _of(known, key) for key in inputs}
        return {"levels": levels, "prior": list(known.prior), "judges": own, "confusions": known.digest}

    def combine(self, cells: Mapping[str, Cells], params: Mapping[str, Any]) -> Component:
        votes = _Votes(cells, params)
        heard = votes.posterior(votes.level, votes.cast)
        value = votes.worth(heard)
        missing = votes.live & ~votes.cast
        if missing.any():
            value = np.where(missing.any(axis=1), votes.unheard(missing), value)
        some = votes.cast.any(axis=1)
        named = {f"p({level:g})": heard[:, place] for place, level in enumerate(params["levels"])}
        figures = {name: np.where(some, one, np.nan) for name, one in named.items()}
        figures["ambiguity"] = np.where(some, 1.0 - heard.max(axis=1), np.nan)
        parts = {name: one.mean()[0] for name, one in cells.items()}
        return Component(value, np.asarray(votes.live.any(axis=1)), parts, figures)


class _Votes:
    """The cells of all judges side by side, [R,J], each column a vote of `judge` [J]."""

    def __init__(self, cells: Mapping[str, Cells], params: Mapping[str, Any]) -> None:
        self.levels = levels_of(params)
        self._prior = params.get("prior")
        self._judges = params.get("judges")
        self.filled = np.concatenate([one.value for one in cells.values()], axis=1)
        self.level = nearest(self.filled, self.levels)
        self.live: Bools = np.concatenate([one.live for one in cells.values()], axis=1)
        self.cast: Bools = self.live & np.concatenate([one.judged for one in cells.values()], axis=1)
        self.judge = [name for name, one in cells.items() for _ in range(one.value.shape[1])]

    def posterior(self, level: Levels, cast: Bools) -> Floats:
        """The share of each level, [R,K], from the votes that were cast."""
        return self._majority(level, cast) if self._judges is None else self._learned(level, cast)

    def _learned(self, level: Levels, cast: Bools) -> Floats:
        assert self._judges is not None
        shares = np.tile(np.array(self._prior), (len(level), 1))
        for column, judge in enumerate(self.judge):
            says = np.array(self._judges[judge])[:, level[:, column]].T
            shares = _normal(np.where(cast[:, column, None], shares * says, shares))
        return shares

    def _majority(self, level: Levels, cast: Bools) -> Floats:
        each = [np.asarray(aggregation.total(np.where(cast & (level == k), 1.0, 0.0))) for k in range(len(self.levels))]
        counts = np.stack(each, axis=1)
        return _normal(np.where(counts == counts.max(axis=1)[:, None], 1.0, 0.0))

    def worth(self, posterior: Floats) -> Floats:
        return np.asarray(aggregation.total(posterior * self.levels))

    def unheard(self, missing: Bools) -> Floats:
        """What a response is worth, [R], where the judges that are `missing` [R,J] voted as badly as they could: for
        it, or, where their cells are filled with more than a half, against whoever pays for it."""
        columns = np.flatnonzero(missing.any(axis=0)).tolist()
        upward = ~(missing & (self.filled < 0.5)).any(axis=1)
        k = len(self.levels)
        if _more_than(MOST_CASES, k, len(columns)):
            return np.asarray(np.where(upward, self.levels[-1], self.levels[0]))
        worst = np.where(upward, self.levels[0], self.levels[-1])
        for case in product(range(k), repeat=len(columns)):
            level = self.level.copy()
            for column, said in zip(columns, case, strict=True):
                level[:, column] = np.where(missing[:, column], said, level[:, column])
            value = self.worth(self.posterior(level, self.cast | missing))
            worst = np.where(upward, np.maximum(worst, value), np.minimum(worst, value))
        return np.asarray(worst)


def _more_than(most: int, k: int, votes: int) -> bool:
    """Whether so many votes can be cast in more ways."""
    ways = 1
    for _ in range(votes):
        ways *= k
        if ways > most:
            return True
    return False


def levels_of(params: Mapping[str, Any]) -> Floats:
    """What each class is worth, rising, [K], by the params of a plan."""
    return np.array(params["levels"], dtype=np.float64)


def nearest(value: Floats, levels: Floats) -> Levels:
    """The level that each value is nearest to, its place; the lower one of two."""
    middles = (levels[1:] + levels[:-1]) / 2.0
    return np.searchsorted(middles, value, side="left")


def _normal(shares: Floats) -> Floats:
    """Shares that sum to 1 in each row; those of nothing at all are alike."""
    size = np.asarray(aggregation.total(shares))[:, None]
    return np.where(size > 0.0, shares / np.where(size > 0.0, size, 1.0), 1.0 / shares.shape[1])


def _read(stated: Any) -> Confusions:
    if isinstance(stated, str):
        raise PlanError(f"params.confusions names {stated!r}, which was not read; write what stands in the file")
    try:
        return Confusions.model_validate({key: one for key, one in stated.items() if key != "digest"})
    except ValidationError as error:
        raise PlanError(f"params.confusions: {describe(error)}") from None
    except AttributeError:
        raise PlanError(f"params.confusions is {stated!r}; name a file, or write what stands in it") from None


def _of(known: Confusions, judge: str) -> list[list[float]]:
    if judge not in known.annotators:
        there = ", ".join(sorted(known.annotators)[:20])
        raise PlanError(f"params.confusions say nothing of input {judge!r}; name inputs as the annotators: {there}")
    return [list(row) for row in known.annotators[judge]]


def _levels(stated: Any, known: Confusions | None) -> list[float]:
    """What each class is worth. Classes that are numbers in [0, 1] are worth themselves, others are spread evenly."""
    if stated is None:
        return [0.0, 1.0] if known is None else _own_worth(known.classes)
    plain = isinstance(stated, Sequence) and all(isinstance(x, int | float) and 0 <= x <= 1 for x in stated)
    if not plain or isinstance(stated, str) or len(stated) < 2 or sorted(set(stated)) != list(stated):
        raise PlanError(f"params.levels is {stated!r}; write two numbers or more in [0, 1] that rise")
    if known is not None and len(stated) != len(known.classes):
        raise PlanError(f"params.levels has {len(stated)} levels for {len(known.classes)} classes; give each one")
    return [float(one) for one in stated]


def _own_worth(classes: Sequence[Any]) -> list[float]:
    numbers = [one for one in classes if isinstance(one, int | float) and not isinstance(one, bool)]
    if len(numbers) == len(classes) and min(numbers) >= 0 and max(numbers) <= 1 and sorted(numbers) == numbers:
        return [float(one) for one in numbers]
    return [place / (len(classes) - 1) for place in range(len(classes))]
