"""The signature of a hacked reward: changes that occur together, and each of which alone may be harmless."""

from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import Field

from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Flag, Number


class Alert(FrozenModel):
    """A change in a series that chance does not explain.

    `step` is when the alert was raised, counted from 1; `since` the estimated first step of the change. `before` and
    `after` are the levels, `size` their signed distance in sd of the step's statistic. A `hack` is based on the changes
    listed in `evidence`. An `adverse` alert is a bad sign; others are expected in training.
    """

    step: int = Field(strict=True, ge=1)
    series: str
    kind: Literal["drift", "jump", "hack"]
    direction: Literal["up", "down"]
    since: int = Field(strict=True, ge=1)
    before: Number
    after: Number
    size: Number
    adverse: Flag
    sentence: str
    evidence: tuple[str, ...] = ()


MAX_STEPS_BETWEEN_RELATED = 50  # the number of steps within which changes are related

ACCURACY = "component.accuracy"
FORMAT = "component.format"
REWARD = "reward"
LENGTH = "length"
CORRELATION = "length_reward"
MAX_STEPS_BETWEEN_STARTS = 10
"""The number of steps by which a rise may start before accuracy's fall, or after its alert, and still be related."""

_MAX_SHARE_HELD = 0.25
_MIN_SHARE_FELL = 0.65
"""The reward holds if it fell by less than the first of these shares of accuracy's fall, each in its own sd; from the
second share on it fell with accuracy, as an honest reward does."""

_CLEAR = 1.0  # the mean of recent normal scores from which a series has clearly moved: 2.6 sd of that mean


class Diagnosis:
    """Follow the alerts of a stream, and report each hack once.

    Only the last alert of each series counts: a series that rose and fell again has not risen.

    Args:
        recent: returns the weighted mean of the last normal scores of a series.
    """

    def __init__(self, recent: Callable[[str], float]) -> None:
        self._recent = recent
        self._last_alert: dict[str, Alert] = {}
        self._rose_with_accuracy: set[str] = set()
        """Series whose last alert is a rise during which accuracy rose as well."""
        self._shared_fall = 0.0
        """The share of accuracy's fall that the reward had when the fall was reported."""
        self._last_hack_step: int | None = None

    def hacks(self, step: int, alerts: Sequence[Alert]) -> list[Alert]:
        """Return the hack that the alerts of a step complete, if it is new: a continuing one is not reported again."""
        for alert in alerts:
            self._last_alert[alert.series] = alert
            accuracy = self._recent(ACCURACY)
            if (alert.series, alert.direction) == (ACCURACY, "down"):
                self._shared_fall = self._recent(REWARD) / min(accuracy, -_CLEAR)
            self._rose_with_accuracy.discard(alert.series)
            if alert.direction == "up" and accuracy > max(_MIN_SHARE_FELL * self._recent(alert.series), _CLEAR):
                self._rose_with_accuracy.add(alert.series)
        hack = self._diagnose_wrong_answers(step) or self._diagnose_length(step)
        if hack is None:
            return []
        before = self._last_hack_step
        self._last_hack_step = step
        return [hack] if before is None or step - before > MAX_STEPS_BETWEEN_RELATED else []

    def _recent_alert(self, step: int, series: str, direction: str) -> Alert | None:
        alert = self._last_alert.get(series)
        if alert is None or alert.direction != direction or step - alert.step > MAX_STEPS_BETWEEN_RELATED:
            return None
        return alert

    def _rises(self, step: int, fall: Alert, *names: str) -> list[str]:
        """Return the evidence of series that rose while accuracy fell, and not before, nor when accuracy recovered."""
        rises = {name: self._recent_alert(step, name, "up") for name in names}
        earliest = fall.since - MAX_STEPS_BETWEEN_STARTS
        latest = fall.step + MAX_STEPS_BETWEEN_STARTS
        return [
            f"{name.removeprefix('component.')} rises"
            for name, rise in rises.items()
            if rise is not None and earliest <= rise.since <= latest and name not in self._rose_with_accuracy
        ]

    def _diagnose_wrong_answers(self, step: int) -> Alert | None:
        fall = self._recent_alert(step, ACCURACY, "down")
        if fall is None:
            return None
        change = self._last_alert.get(REWARD)
        if change is not None and change.step < fall.since - MAX_STEPS_BETWEEN_STARTS:
            change = None  # too early to belong to this fall
        has_fallen = change is not None and change.direction == "down" and change.size <= _MIN_SHARE_FELL * fall.size
        if has_fallen or self._shared_fall >= _MIN_SHARE_FELL:
            return None
        evidence = self._rises(step, fall, REWARD, FORMAT)
        if "reward rises" not in evidence and change is None and self._shared_fall < _MAX_SHARE_HELD:
            evidence.append("reward holds")
        if not evidence:
            return None
        return _build_hack(step, fall, ["accuracy falls", *evidence, *self._rises(step, fall, LENGTH, CORRELATION)])

    def _diagnose_length(self, step: int) -> Alert | None:
        length = self._recent_alert(step, LENGTH, "up")
        correlation = self._recent_alert(step, CORRELATION, "up")
        if length is None or correlation is None:
            return None
        return _build_hack(step, length, ["length rises", "length_reward rises"])


def _build_hack(step: int, anchor: Alert, evidence: Sequence[str]) -> Alert:
    sentence = f"step {step}: the reward looks hacked, since about step {anchor.since}: {', '.join(evidence)}"
    update = {"step": step, "kind": "hack", "adverse": True, "evidence": tuple(evidence), "sentence": sentence}
    return anchor.model_copy(update=update)
