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


MAX_STEPS_BETWEEN_RELATED = 50
"""The number of steps within which changes are related."""

ACCURACY, FORMAT, REWARD = "component.accuracy", "component.format", "reward"
LENGTH, CORRELATION = "length", "length_reward"
MAX_STEPS_BETWEEN_STARTS = 10
"""The number of steps by which a rise may start before accuracy's fall, or after its alert, and still be related."""

_MAX_SHARE_HELD, _MIN_SHARE_FELL = 0.25, 0.65
"""The reward holds if it fell by less than the first of these shares of accuracy's fall, each in its own sd; from the
second share on it fell with accuracy, as an honest reward does."""

_CLEAR = 1.0
"""The mean of recent normal scores from which a series has clearly moved: 2.6 sd of that mean."""


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
        """Return the hack that the alerts of a step complete, if it is new."""
        for alert in alerts:
            self._record(alert)
        hack = self._diagnose_wrong_answers(step) or self._diagnose_length(step)
        return [hack] if hack is not None and self._is_news(step) else []

    def _record(self, alert: Alert) -> None:
        self._last_alert[alert.series] = alert
        if (alert.series, alert.direction) == (ACCURACY, "down"):
            self._shared_fall = self._recent(REWARD) / min(self._recent(ACCURACY), -_CLEAR)
        self._rose_with_accuracy.discard(alert.series)
        if alert.direction == "up" and self._recent(ACCURACY) > max(
            _MIN_SHARE_FELL * self._recent(alert.series), _CLEAR
        ):
            self._rose_with_accuracy.add(alert.series)

    def _is_news(self, step: int) -> bool:
        """Return true if no hack was reported recently; a continuing signature is not reported again."""
        before, self._last_hack_step = self._last_hack_step, step
        return before is None or step - before > MAX_STEPS_BETWEEN_RELATED

    def _recent_alert(self, step: int, series: str, direction: str) -> Alert | None:
        alert = self._last_alert.get(series)
        return (
            alert
            if alert is not None and alert.direction == direction and step - alert.step <= MAX_STEPS_BETWEEN_RELATED
            else None
        )

    def _has_risen(self, step: int, series: str, fall: Alert) -> bool:
        """Return true if a series rose while accuracy fell, and not before, nor when accuracy recovered."""
        rise = self._recent_alert(step, series, "up")
        is_near = (
            rise is not None
            and fall.since - MAX_STEPS_BETWEEN_STARTS <= rise.since <= fall.step + MAX_STEPS_BETWEEN_STARTS
        )
        return is_near and series not in self._rose_with_accuracy

    def _has_reward_fallen(self, fall: Alert) -> bool:
        """Return true if the reward fell with accuracy."""
        reward_alert = self._last_alert.get(REWARD)
        if (
            reward_alert is None
            or reward_alert.direction == "up"
            or reward_alert.step < fall.since - MAX_STEPS_BETWEEN_STARTS
        ):
            return self._shared_fall >= _MIN_SHARE_FELL
        return self._shared_fall >= _MIN_SHARE_FELL or reward_alert.size <= _MIN_SHARE_FELL * fall.size

    def _has_reward_held(self, fall: Alert) -> bool:
        """Return true if the reward hardly moved when accuracy fell, and has no alert since."""
        reward_alert = self._last_alert.get(REWARD)
        return self._shared_fall < _MAX_SHARE_HELD and (
            reward_alert is None or reward_alert.step < fall.since - MAX_STEPS_BETWEEN_STARTS
        )

    def _diagnose_wrong_answers(self, step: int) -> Alert | None:
        """Return a hack if reward or format holds or rises while accuracy falls."""
        fall = self._recent_alert(step, ACCURACY, "down")
        if fall is None or self._has_reward_fallen(fall):
            return None
        evidence = [f"{_short_name(name)} rises" for name in (REWARD, FORMAT) if self._has_risen(step, name, fall)]
        if "reward rises" not in evidence and self._has_reward_held(fall):
            evidence.append("reward holds")
        if not evidence:
            return None
        evidence += [
            f"{_short_name(name)} rises" for name in (LENGTH, CORRELATION) if self._has_risen(step, name, fall)
        ]
        return _build_hack(step, fall, ["accuracy falls", *evidence])

    def _diagnose_length(self, step: int) -> Alert | None:
        """Return a hack if responses grow, and longer ones get higher rewards."""
        length, correlation = self._recent_alert(step, LENGTH, "up"), self._recent_alert(step, CORRELATION, "up")
        if length is None or correlation is None:
            return None
        return _build_hack(step, length, ["length rises", "length_reward rises"])


def _short_name(name: str) -> str:
    return name.removeprefix("component.")


def _build_hack(step: int, anchor: Alert, evidence: Sequence[str]) -> Alert:
    sentence = f"step {step}: the reward looks hacked, since about step {anchor.since}: {', '.join(evidence)}"
    update = {"step": step, "kind": "hack", "adverse": True, "evidence": tuple(evidence), "sentence": sentence}
    return anchor.model_copy(update=update)
