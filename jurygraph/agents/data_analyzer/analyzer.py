"""The Data Analyzer: takes the steps of a training run, and returns alerts."""

from collections.abc import Collection, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from jurygraph.agents.data_analyzer.detectors import LEARNING_SCORES, Baseline, Detectors, limits
from jurygraph.agents.data_analyzer.series import (
    Direction,
    Series,
    TrainingStep,
    conflict_limit,
    disagreement,
    measure_series,
    series_of,
)
from jurygraph.arrays import Floats
from jurygraph.errors import InputError
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Flag, Number

MIN_STEPS = LEARNING_SCORES + 1  # the first step at which anything is tested
MAX_ARL = 1e9
OPPOSED = ("accuracy", "format", "steps")
"""The components whose disagreement is conflict, if at least two of them exist (MACRM)."""
CALIBRATION = 20  # the number of steps after which it is known what conflict is
MAX_STEPS_BETWEEN_RELATED = 50  # the number of steps within which changes are related

ACCURACY = "component.accuracy"
_BEFORE = 40
_LATEST = 5
"""Steps before a change, and latest ones, whose mean scores are compared."""
_CLEAR = 1.5  # the change from which a series has clearly moved, in sd of the steps before
_SHARED = 0.65
_HELD = 0.25
"""The reward fell with accuracy from the first of these shares of its fall on, each in its own sd, as an honest reward
does; it holds if it fell by less than the second."""


class Alert(FrozenModel):
    """A change in a series that chance does not explain.

    `step` is when the alert was raised, counted from 1; `since` the estimated first step of the change. `before` and
    `after` are the levels, `size` their signed distance in sd of the step's statistic. A `hack` is based on the changes
    listed in `evidence`. An `adverse` alert is a bad sign; others are expected in training.
    """

    step: int = Field(strict=True, ge=1)
    series: str
    kind: Literal["change", "hack"]
    direction: Direction
    since: int = Field(strict=True, ge=1)
    before: Number
    after: Number
    size: Number
    adverse: Flag
    sentence: str
    evidence: tuple[str, ...] = ()


class Analyzer:
    """Watch one stream of steps. It keeps three numbers for each step and series.

    Args:
        arl: the average number of steps between false alarms of the whole analyzer, from 10 to 1e9. Beyond that, limits
            lie in a tail that no statistic follows.
        penalties: the components whose rise is bad.
    """

    def __init__(self, arl: float = 10_000.0, penalties: Collection[str] = ("repetition",)) -> None:
        if not 10.0 <= arl <= MAX_ARL:
            raise InputError(f"arl: expected a number of steps from 10 to {MAX_ARL:g}, got {arl:g}")
        self.arl = arl
        self.penalties = penalties
        self.series: tuple[Series, ...] = ()
        self.values: list[Floats] = []
        """Of each step, the values [S] in the order of the series."""
        self.normal_scores: list[Floats] = []
        self.alerts: list[Alert] = []
        self._scores: list[Floats] = []
        self._conflict = float("nan")
        self._first_pairs: list[Floats] = []
        self._last_alert: dict[str, Alert] = {}
        self._last_hack_step: int | None = None

    @property
    def steps(self) -> int:
        return len(self.values)

    def observe(self, step: TrainingStep) -> tuple[Alert, ...]:
        """Process a step and return its alerts, the combined diagnosis last.

        Raises `InputError` if its series differ from those of earlier steps.
        """
        if not self.series:
            self._begin(step)
        self._require_same_series(step)
        measure = measure_series(step, self.series, self._opposed, self._conflict)
        self.values.append(measure.value)
        self._scores.append(measure.score)
        self.normal_scores.append(self.tests.feed(self.steps, measure))
        has_alarm = self.tests.has_alarm
        alerts = [self._alert(int(place)) for place in np.flatnonzero(has_alarm)]
        self._last_alert |= {alert.series: alert for alert in alerts}
        hack = self._diagnose()
        if hack is not None:
            if self._last_hack_step is None or self.steps - self._last_hack_step > MAX_STEPS_BETWEEN_RELATED:
                alerts.append(hack)  # and not a continuing one
            self._last_hack_step = self.steps
        self.tests.restart(has_alarm)
        if self._opposed and self.steps <= CALIBRATION:
            self._first_pairs.append(disagreement(step, self._opposed))
            if self.steps == CALIBRATION:
                self._conflict = conflict_limit(self._first_pairs)
        self.alerts += alerts
        return tuple(alerts)

    def _begin(self, step: TrainingStep) -> None:
        opposed = tuple(name for name in OPPOSED if name in step.components)
        self._opposed = opposed if len(opposed) > 1 else ()
        self.series = series_of(step, self._opposed, self.penalties)
        self.tests = Detectors((len(self.series),), limits(self.arl, len(self.series)))

    def _require_same_series(self, step: TrainingStep) -> None:
        names = {series.name for series in series_of(step, self._opposed, self.penalties)}
        differing = sorted(names ^ {series.name for series in self.series})
        if differing:
            raise InputError(
                f"step {self.steps + 1}: the steps before {'lack' if differing[0] in names else 'have'} the series "
                f"{differing[0]!r}; give every step the same, with NaN where there is no number"
            )

    def _alert(self, place: int) -> Alert:
        """Return the alert of a series, by the CUSUM that exceeds its limit by the largest factor."""
        series = self.series[place]
        tests = self.tests
        reference, side = divmod(int(np.argmax(tests.excess[place])), 2)
        direction: Direction = "down" if side else "up"
        began = Baseline(*(float(statistic[place, reference, side]) for statistic in tests.baseline_at_zero))
        now = Baseline(*(float(statistic[place]) for statistic in tests.baseline))
        score = (now.n * now.mean - began.n * began.mean) / (now.n - began.n)
        size = (score - began.mean) / float(began.sd())
        before = series.to_value(began.mean)
        after = series.to_value(score)
        since = int(tests.last_zero_step[place, reference, side]) + 1
        change = f"since about step {since}, from {before:.4g} to {after:.4g} ({size:+.3g} sd of a step)"
        return Alert(
            step=self.steps,
            series=series.name,
            kind="change",
            direction=direction,
            since=since,
            before=before,
            after=after,
            size=size,
            adverse=direction == series.adverse,
            sentence=f"step {self.steps}: {series.name} {'falls' if side else 'rises'} {change}",
        )

    def _diagnose(self) -> Alert | None:
        """Return the hack that recent alerts show together, each of which alone may be harmless."""
        fall = self._recent_alert(ACCURACY, "down")
        evidence = [] if fall is None else self._describe_unshared_fall(fall.since)
        if fall is not None and evidence:
            return self._hack(fall, evidence)
        length = self._recent_alert("length", "up")
        if length is not None and self._recent_alert("length_reward", "up") is not None:
            return self._hack(length, ["length rises", "length_reward rises"])
        return None

    def _recent_alert(self, series: str, direction: str) -> Alert | None:
        """Return the last alert of a series, if it is recent and of this direction."""
        alert = self._last_alert.get(series)
        if alert is None or alert.direction != direction or self.steps - alert.step > MAX_STEPS_BETWEEN_RELATED:
            return None
        return alert

    def _describe_unshared_fall(self, since: int) -> list[str]:
        """Return the evidence that the reward did not follow a fall of accuracy; empty if it did, or accuracy is back.

        Other series count if they rose since the same step.
        """
        moved = self._movements(since)
        accuracy = moved[ACCURACY]
        if not accuracy < -_CLEAR or not moved["reward"] > _SHARED * accuracy:
            return []
        evidence = [f"{name} rises" for name in ("reward", "format") if moved[name] > _CLEAR]
        if "reward rises" not in evidence and moved["reward"] > _HELD * accuracy:
            evidence.append("reward holds")
        more = [f"{name} rises" for name in ("length", "length_reward") if moved[name] > _CLEAR]
        return ["accuracy falls", *evidence, *more] if evidence else []

    def _movements(self, since: int) -> dict[str, float]:
        """Return how far each series has moved: the latest scores from those before a step, in sd; 0 if unknown."""
        before = np.array(self._scores[max(0, since - 1 - _BEFORE) : since - 1])
        latest = np.array(self._scores[max(since - 1, self.steps - _LATEST) :])
        moved = dict.fromkeys(("reward", "format", "length", "length_reward"), 0.0)
        for place, series in enumerate(self.series):
            known = before[~np.isnan(before[:, place]), place]
            now = latest[~np.isnan(latest[:, place]), place]
            if len(known) > 1 and len(now):
                sd = max(float(known.std(ddof=1)), float(self.tests.baseline.floor[place]))
                moved[series.name] = float(now.mean() - known.mean()) / sd
        return moved | {"format": moved.get("component.format", 0.0)}

    def _hack(self, anchor: Alert, evidence: Sequence[str]) -> Alert:
        begin = f"step {self.steps}: the reward looks hacked, since about step {anchor.since}"
        update = {"step": self.steps, "kind": "hack", "adverse": True, "evidence": tuple(evidence)}
        return anchor.model_copy(update={**update, "sentence": f"{begin}: {', '.join(evidence)}"})
