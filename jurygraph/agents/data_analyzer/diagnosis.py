"""The signature of a hacked reward: changes that come together, and each of which alone may be harmless."""

from collections.abc import Callable, Sequence

from jurygraph.agents.data_analyzer.alert import Alert

TOGETHER = 50
"""Steps within which changes are of one story."""

ACCURACY, FORMAT, REWARD = "component.accuracy", "component.format", "reward"
LENGTH, CORRELATION = "length", "length_reward"
NEAR = 10
"""Steps by which a rise may begin before accuracy's fall does, or after that was told: else it is of another story."""

_HELD, _SHARED = 0.25, 0.65
"""The reward holds where it fell by less than the first of these shares of accuracy's fall, each in its own sd; from
the second on it fell with accuracy, as an honest one does."""

_CLEAR = 1.0
"""The mean of recent normal scores from which on a series clearly moved: 2.6 sd of it."""


class Diagnosis:
    """Follows the alerts of a stream, and tells a hack once.

    Of each series only the last alert counts: what rose and fell again did not rise.

    Args:
        recent: the weighted mean of the last normal scores of a series.
    """

    def __init__(self, recent: Callable[[str], float]) -> None:
        self._recent = recent
        self._last: dict[str, Alert] = {}
        self._void: set[str] = set()
        """Series whose last alert is a rise, at which accuracy rose as well."""
        self._shared = 0.0
        """How much of accuracy's fall the reward shared when that was told."""
        self._told: int | None = None

    def hacks(self, step: int, alerts: Sequence[Alert]) -> list[Alert]:
        """The hack that the alerts of a step complete, if one is news."""
        for alert in alerts:
            self._take(alert)
        found = self._paid_for_wrong(step) or self._paid_for_length(step)
        return [found] if found is not None and self._is_news(step) else []

    def _take(self, alert: Alert) -> None:
        self._last[alert.series] = alert
        if (alert.series, alert.direction) == (ACCURACY, "down"):
            self._shared = self._recent(REWARD) / min(self._recent(ACCURACY), -_CLEAR)
        self._void.discard(alert.series)
        if alert.direction == "up" and self._recent(ACCURACY) > max(_SHARED * self._recent(alert.series), _CLEAR):
            self._void.add(alert.series)

    def _is_news(self, step: int) -> bool:
        """None was told before, or long ago. A signature that goes on is not told again."""
        before, self._told = self._told, step
        return before is None or step - before > TOGETHER

    def _within(self, step: int, series: str, direction: str) -> Alert | None:
        alert = self._last.get(series)
        return alert if alert is not None and alert.direction == direction and step - alert.step <= TOGETHER else None

    def _rose(self, step: int, series: str, fall: Alert) -> bool:
        """Whether a series rose while accuracy fell, and not before, nor when that recovered."""
        rise = self._within(step, series, "up")
        near = rise is not None and fall.since - NEAR <= rise.since <= fall.step + NEAR
        return near and series not in self._void

    def _reward_fell(self, fall: Alert) -> bool:
        """Whether the reward fell with accuracy."""
        told = self._last.get(REWARD)
        if told is None or told.direction == "up" or told.step < fall.since - NEAR:
            return self._shared >= _SHARED
        return self._shared >= _SHARED or told.size <= _SHARED * fall.size

    def _reward_holds(self, fall: Alert) -> bool:
        """Whether it hardly moved when accuracy fell, and has not been told to since."""
        told = self._last.get(REWARD)
        return self._shared < _HELD and (told is None or told.step < fall.since - NEAR)

    def _paid_for_wrong(self, step: int) -> Alert | None:
        """Reward or format holds or rises while accuracy falls."""
        fall = self._within(step, ACCURACY, "down")
        if fall is None or self._reward_fell(fall):
            return None
        evidence = [f"{_short(name)} rises" for name in (REWARD, FORMAT) if self._rose(step, name, fall)]
        if "reward rises" not in evidence and self._reward_holds(fall):
            evidence.append("reward holds")
        if not evidence:
            return None
        evidence += [f"{_short(name)} rises" for name in (LENGTH, CORRELATION) if self._rose(step, name, fall)]
        return _hack(step, fall, ["accuracy falls", *evidence])

    def _paid_for_length(self, step: int) -> Alert | None:
        """Responses grow, and the longer are paid more."""
        length, correlation = self._within(step, LENGTH, "up"), self._within(step, CORRELATION, "up")
        if length is None or correlation is None:
            return None
        return _hack(step, length, ["length rises", "length_reward rises"])


def _short(name: str) -> str:
    return name.removeprefix("component.")


def _hack(step: int, anchor: Alert, evidence: Sequence[str]) -> Alert:
    told = f"step {step}: the reward looks hacked, since about step {anchor.since}: {', '.join(evidence)}"
    changed = {"step": step, "kind": "hack", "adverse": True, "evidence": tuple(evidence), "sentence": told}
    return anchor.model_copy(update=changed)
