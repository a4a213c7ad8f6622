"""The figures of a comparison, and CI thresholds on them (`--gate`)."""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import Field

from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean, shorten
from jurygraph.schema.frozen_model import Count, FrozenModel, Number, Unit

_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_CONDITION = re.compile(r"\s*(\w+)\s*(>=|<=|==|>|<)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*", re.ASCII)
_EXAMPLE = '"mean_delta>-0.01" or "mean_delta_low>=-0.02, flips<=3"'


class ComparisonStatistics(FrozenModel):
    """All figures of a comparison that a threshold (`--gate`) can refer to; None where one cannot be computed.

    `n` is the number of responses with a reward in both runs: means, tests and correlations are over these. A failed
    reward has no value; it is counted as failed, never as 0. Differences are B - A.
    """

    paired: Count = Field(description="responses in both runs")
    only_a: Count = Field(description="responses in A only")
    only_b: Count = Field(description="responses in B only")
    n: Count = Field(description="responses with a reward in both runs")
    failed_a: Count = Field(description="rewards that failed in A alone")
    failed_b: Count = Field(description="rewards that failed in B alone")
    failed_both: Count = Field(description="rewards that failed in both")
    mean_a: Number | None = Field(description="mean reward in A")
    mean_b: Number | None = Field(description="mean reward in B")
    mean_delta: Number | None = Field(description="mean of B - A")
    mean_delta_low: Number | None = Field(description="its 95 % interval: from")
    mean_delta_high: Number | None = Field(description="its 95 % interval: to")
    median_delta: Number | None = Field(description="median of B - A")
    wilcoxon_p: Unit | None = Field(description="Wilcoxon signed-rank test of B - A: p")
    passed_a_only: Count = Field(description="responses that pass in A and not in B")
    passed_b_only: Count = Field(description="responses that pass in B and not in A")
    mcnemar_p: Unit | None = Field(description="McNemar's exact test of these two: p")
    spearman: Number | None = Field(description="rank correlation of the rewards: Spearman's rho")
    kendall: Number | None = Field(description="rank correlation of the rewards: Kendall's tau-b")
    judged_both: Count = Field(description="verdicts given in both runs")
    flips: Count = Field(description="... of which the decision flipped")
    flip_rate: Unit | None = Field(description="... as a share")


class Threshold(NamedTuple):
    """One condition: a figure's name, one of > >= < <= ==, and a finite number."""

    name: str
    sign: str
    bound: float

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.bound!r}".removesuffix(".0")

    def is_met(self, seen: float | None) -> bool:
        """Return whether a figure meets the condition. A missing figure never does."""
        return seen is not None and _OPERATORS[self.sign](seen, self.bound)


def parse_thresholds(
    text: str, figures: type[FrozenModel] = ComparisonStatistics, example: str = _EXAMPLE
) -> list[Threshold]:
    """Parse conditions NAME OP NUMBER on these figures, joined by `,` or `and`.

    `example` is a condition for messages. Raises `InputError` where a condition cannot be parsed, or names no figure.
    """
    known = list(figures.model_fields)
    return [_parse_condition(part, text, known, example) for part in re.split(r",|\sand\s", text)]


def failed_thresholds(thresholds: Iterable[Threshold], figures: FrozenModel) -> list[tuple[Threshold, float | None]]:
    """Return the conditions that do not hold, in their order, each with the value of its figure, None where missing."""
    values = ((threshold, getattr(figures, threshold.name)) for threshold in thresholds)
    return [(threshold, value) for threshold, value in values if not threshold.is_met(value)]


def _parse_condition(part: str, gate_text: str, figure_names: Sequence[str], example: str) -> Threshold:
    match = _CONDITION.fullmatch(part)
    if match is None or not math.isfinite(float(match[3])):
        problem = f"{shorten(part.strip())!r} is not a condition" if part.strip() else "a condition is missing"
        raise InputError(f"gate {shorten(gate_text)!r}: {problem}; write it as in {example}")
    if match[1] not in figure_names:
        hint = did_you_mean(match[1], figure_names) or f"there are {', '.join(figure_names)}"
        raise InputError(f"gate {shorten(gate_text)!r}: unknown statistic {shorten(match[1])!r}; {hint}")
    return Threshold(match[1], match[2], float(match[3]))
