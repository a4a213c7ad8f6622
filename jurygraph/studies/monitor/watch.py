"""Watch a stream of steps, and report on it."""

import numpy as np

from jurygraph.agents.data_analyzer import MIN_STEPS, Alert, Analyzer, SeriesSummary, Settings, Step
from jurygraph.agents.data_analyzer.detectors import REFERENCES
from jurygraph.aggregation.arrays import Floats
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Count, Number


class WatchReport(FrozenModel):
    """The result of watching: all alerts in their order, and every series over the whole stream.

    `arl` is the average run length without change for which the limits were computed; `drift` are the limits of the
    CUSUMs by their reference value, `jump` is the limit for a single step's normal score. Without a step there are
    none.
    """

    steps: Count
    arl: Number
    drift: dict[str, Number]
    jump: Number | None
    alerts: tuple[Alert, ...]
    series: tuple[SeriesSummary, ...]

    @property
    def adverse(self) -> tuple[Alert, ...]:
        """Return the alerts whose change is bad."""
        return tuple(alert for alert in self.alerts if alert.adverse)


class Watch:
    """Feeds an analyzer and keeps its alerts. For trainers, which have no run:

        watch = Watch()
        for alert in watch.feed(Step(rewards, components, lengths, groups)):
            log(alert.sentence)

    Args:
        settings: settings of the analyzer.
        keep: keep every step's values, for a plot; memory grows with the number of steps.
    """

    def __init__(self, settings: Settings | None = None, keep: bool = False) -> None:
        self.analyzer = Analyzer(settings)
        self.alerts: list[Alert] = []
        self._keep = keep
        self._values: list[Floats] = []

    def feed(self, step: Step) -> tuple[Alert, ...]:
        """Return the alerts of one more step. Raises `InputError` if it does not match the steps before."""
        alerts = self.analyzer.observe(step)
        self.alerts += alerts
        if self._keep:
            self._values.append(self.analyzer.values)
        return alerts

    @property
    def has_enough_steps(self) -> bool:
        """Return True if there were enough steps to test anything."""
        return self.analyzer.steps >= MIN_STEPS

    @property
    def has_reward(self) -> bool:
        """Return True if the reward had a value in any step."""
        return any(row.series == "reward" and row.steps for row in self.analyzer.summary())

    @property
    def history(self) -> dict[str, Floats]:
        """Return the values of each series by step; NaN if there was none. Empty unless values are kept."""
        if not self._values:
            return {}
        values = np.stack(self._values)
        return {series.name: values[:, index] for index, series in enumerate(self.analyzer.series)}

    def report(self) -> WatchReport:
        """Return the report on the steps so far."""
        analyzer = self.analyzer
        limits = analyzer.limits if analyzer.series else None
        return WatchReport(
            steps=analyzer.steps,
            arl=analyzer.settings.arl,
            drift={} if limits is None else dict(zip(map(str, REFERENCES), limits.drift, strict=True)),
            jump=None if limits is None else limits.jump,
            alerts=tuple(self.alerts),
            series=analyzer.summary(),
        )
