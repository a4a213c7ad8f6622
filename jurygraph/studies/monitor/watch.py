"""A stream of steps watched, and what came of it."""

import numpy as np

from jurygraph.agents.data_analyzer import LEAST_STEPS, Alert, Analyzer, SeriesSummary, Settings, Step
from jurygraph.agents.data_analyzer.limits import REFERENCES
from jurygraph.agents.data_analyzer.step import Floats
from jurygraph.schema import Noun
from jurygraph.schema.noun import Count, Number


class WatchReport(Noun):
    """What watching came to: all alerts in their order, and every series over the whole stream.

    `arl` is the average run length without change that the limits were made for; `drift` are the limits of the CUSUMs
    by their reference value, `jump` that of a single step's normal score. Without a step there are none.
    """

    steps: Count
    arl: Number
    drift: dict[str, Number]
    jump: Number | None
    alerts: tuple[Alert, ...]
    series: tuple[SeriesSummary, ...]

    @property
    def adverse(self) -> tuple[Alert, ...]:
        """The alerts that should worry."""
        return tuple(alert for alert in self.alerts if alert.adverse)


class Watch:
    """Feeds an analyzer and keeps what it told. For trainers, which have no run:

        watch = Watch()
        for alert in watch.feed(Step(rewards, components, lengths, groups)):
            log(alert.sentence)

    Args:
        settings: how to watch.
        keep: whether to keep every step's values as well, to draw them; this grows with the number of steps.
    """

    def __init__(self, settings: Settings | None = None, keep: bool = False) -> None:
        self.analyzer = Analyzer(settings)
        self.alerts: list[Alert] = []
        self._keep = keep
        self._values: list[Floats] = []

    def feed(self, step: Step) -> tuple[Alert, ...]:
        """The alerts of one more step. Raises `InputError` where it does not go with the steps before."""
        alerts = self.analyzer.observe(step)
        self.alerts += alerts
        if self._keep:
            self._values.append(self.analyzer.values)
        return alerts

    @property
    def enough(self) -> bool:
        """Whether there were steps enough to test anything."""
        return self.analyzer.steps >= LEAST_STEPS

    @property
    def rewarded(self) -> bool:
        """Whether a reward ever had a value."""
        return any(row.series == "reward" and row.steps for row in self.analyzer.summary())

    @property
    def history(self) -> dict[str, Floats]:
        """The values of each series, step by step; NaN where there was none. Empty unless they are kept."""
        if not self._values:
            return {}
        values = np.stack(self._values)
        return {one.name: values[:, place] for place, one in enumerate(self.analyzer.series)}

    def report(self) -> WatchReport:
        """What watching came to so far."""
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
