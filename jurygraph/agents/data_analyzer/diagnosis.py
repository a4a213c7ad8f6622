"""The signature of a hacked reward: changes that come together, and each of which alone may be harmless."""

from collections.abc import Callable, Sequence

from jurygraph.agents.data_analyzer.alert import Alert

TOGETHER = 50
"""Steps within which changes are of one story."""

ACCURACY, FORMAT, REWARD = "component.accuracy", "component.format", "reward"
LENGTH, CORRELATION = "length", "length_reward"
_HELD = 0.25
"""The reward holds where it fell by less than this much of accuracy's fall, each in its own sd."""


class Diagnosis:
    """Follows the alerts of a stream, and tells a hack once.

    Args:
        recent: the weighted mean of the last normal scores of a series, as far as they count.
    """

    def __init__(self, recent: Callable[[str], float]) -> None:
        self._recent = recent
        self._last: dict[tuple[str, str], Alert] = {}
        self._told: dict[str, int] = {}
        self._held = -TOGETHER

    def hacks(self, step: int, alerts: Sequence[Alert]) -> list[Alert]:
        """The hacks that the alerts of a step complete."""
        for alert in alerts:
            self._last[alert.series, alert.direction] = alert
        if any((one.series, one.direction) == (ACCURACY, "down") for one in alerts) and self._reward_holds(step):
            self._held = step
        found = (self._paid_for_wrong(step), self._paid_for_length(step))
        return [one for one in found if one is not None and self._is_news(one)]

    def _is_news(self, hack: Alert) -> bool:
        """Not told before, or long ago. A signature that goes on is not told again."""
        before = self._told.get(hack.series)
        self._told[hack.series] = hack.step
        return before is None or hack.step - before > TOGETHER

    def _within(self, step: int, series: str, direction: str) -> Alert | None:
        alert = self._last.get((series, direction))
        return alert if alert is not None and step - alert.step <= TOGETHER else None

    def _reward_holds(self, step: int) -> bool:
        fell = self._within(step, REWARD, "down") is not None
        return not fell and self._recent(REWARD) > _HELD * min(0.0, self._recent(ACCURACY))

    def _paid_for_wrong(self, step: int) -> Alert | None:
        """Reward or format holds or rises while accuracy falls."""
        accuracy = self._within(step, ACCURACY, "down")
        if accuracy is None:
            return None
        rose = [name for name in (REWARD, FORMAT) if self._within(step, name, "up")]
        evidence = [f"{_short(name)} rises" for name in rose]
        if REWARD not in rose and step - self._held <= TOGETHER and self._within(step, REWARD, "down") is None:
            evidence.append("reward holds")
        if not evidence:
            return None
        evidence += [f"{_short(name)} rises" for name in (LENGTH, CORRELATION) if self._within(step, name, "up")]
        return _hack(step, accuracy, ["accuracy falls", *evidence])

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
