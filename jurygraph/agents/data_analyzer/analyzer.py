"""The Data Analyzer: takes steps, returns alerts and a final table, in constant memory."""

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from jurygraph.agents.data_analyzer import detectors
from jurygraph.agents.data_analyzer.autocorrelation import PairMoments
from jurygraph.agents.data_analyzer.detectors import Baseline, Detectors, Limits, Recent, TestResults
from jurygraph.agents.data_analyzer.diagnosis import Alert, Diagnosis
from jurygraph.agents.data_analyzer.scales import Measure, invert_scale
from jurygraph.agents.data_analyzer.series import (
    Calibration,
    Direction,
    Series,
    has_left_unit,
    measure_series,
    series_of,
)
from jurygraph.agents.data_analyzer.step import TrainingStep
from jurygraph.arrays import Floats
from jurygraph.errors import InputError
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Count, Number


class SeriesSummary(FrozenModel):
    """A series over the steps at which it had a value: count, mean, sd, extremes, the last value, and the trend.

    `trend` is the slope of a straight line through the values, per step; 0 for a single value. None if no step had a
    value. `autocorrelation` is that of each value with the one before (lag 1) on the scale of the tests; its standard
    error is about 1 / √steps. None for a series that did not vary, or with few values.
    """

    series: str
    steps: Count
    mean: Number | None
    sd: Number | None
    least: Number | None
    most: Number | None
    last: Number | None
    trend: Number | None
    autocorrelation: Number | None


class AnalyzerSummary:
    def __init__(self, series: int) -> None:
        self._moments = PairMoments.empty((series,))
        """Of value and step number."""
        self._least = np.full(series, np.inf)
        self._most = np.full(series, -np.inf)
        self._last = np.full(series, np.nan)

    def add(self, step: int, values: Floats) -> None:
        """Add the values [S] of a step; NaN are skipped."""
        has_value = ~np.isnan(values)
        self._moments = self._moments.plus(values, np.full_like(values, step), has_value)
        self._least = np.fmin(self._least, values)
        self._most = np.fmax(self._most, values)
        self._last = np.where(has_value, values, self._last)

    def rows(self, names: Sequence[str], autocorrelations: Floats) -> tuple[SeriesSummary, ...]:
        """Return the table, one row per series; `autocorrelations` [S] are NaN where unknown."""
        counts, (means, _), ((squares, _), (product, times)) = self._moments
        sd = np.sqrt(squares / np.maximum(counts - 1.0, 1.0))
        trend = product / np.where(times > 0.0, times, 1.0)
        keys = ("mean", "sd", "least", "most", "last", "trend")
        columns = zip(means, sd, self._least, self._most, self._last, trend, strict=True)
        return tuple(
            SeriesSummary(
                series=name,
                steps=int(n),
                autocorrelation=None if np.isnan(rho) else float(rho),
                **{key: float(value) if n else None for key, value in zip(keys, values, strict=True)},
            )
            for name, n, rho, values in zip(names, counts, autocorrelations, columns, strict=True)
        )


MIN_STEPS = detectors.LEARNING_SCORES + 1  # the first step at which anything is tested

MIN_JUDGED_PAIRS = 50
"""Number of steps from which a series can be called autocorrelated."""
MAX_HARMLESS = 0.1
"""The autocorrelation above which a series is called so, by the lower bound of 3 standard errors, 1 / √n each."""

MAX_ARL = 1e9
"""The largest `arl`, in steps between false alarms: beyond it, limits lie in a tail that no statistic follows."""


class AnalyzerSettings(FrozenModel):
    """Settings of the analyzer.

    `arl` is the average number of steps between false alarms of the whole analyzer, at most 1e9. `calibration` is the
    number of steps after which it is known what conflict is. A rise of a component in `penalties` is bad. `opposed` are
    the components whose disagreement is conflict (MACRM's three), if at least two of them exist.
    """

    arl: float = Field(default=10_000.0, gt=1.0, le=MAX_ARL, allow_inf_nan=False)
    calibration: int = Field(default=20, ge=2)
    penalties: frozenset[str] = frozenset({"repetition"})
    opposed: tuple[str, ...] = ("accuracy", "format", "steps")


class Analyzer:
    """Watch one stream of steps. Its memory does not grow with their number."""

    def __init__(self, settings: AnalyzerSettings | None = None) -> None:
        self.settings = settings or AnalyzerSettings()
        self.steps = 0
        self.series: tuple[Series, ...] = ()
        self.values: Floats = np.empty(0)
        """The values of the last step, in the order of the series."""
        self.warnings: tuple[str, ...] = ()
        """One sentence for each series found autocorrelated: `arl` does not hold for it."""
        self._conflict = float("nan")
        self._calibration: Calibration | None = None

    def observe(self, step: TrainingStep) -> tuple[Alert, ...]:
        """Process a step and return its alerts, the combined diagnosis last.

        Raises `InputError` if its series differ from those of earlier steps, or if it is more than one step.
        """
        if step.rewards.ndim != 1:
            raise InputError(f"a step: rewards have shape {step.rewards.shape}; give one step at a time")
        if not self.series:
            self._begin(step)
        self._require_same_series(step)
        self._leave_unit_scale(step)
        self.steps += 1
        measure = measure_series(step, self.series, self._opposed, self._conflict)
        self.values = measure.value
        self._summary.add(self.steps, measure.value)
        before = self._detectors.baseline
        raised = self._detectors.feed(self.steps, measure)
        self._recent.add(measure, raised.u, before)
        alerts = [self._alert(int(place), raised, measure) for place in np.flatnonzero(raised.has_alarm)]
        alerts += self._diagnosis.hacks(self.steps, alerts)
        self._detectors.restart(raised.has_alarm)
        self._recent.restart(raised.has_alarm)
        self._warn_of_autocorrelation()
        self._calibrate(step)
        return tuple(alerts)

    def summary(self) -> tuple[SeriesSummary, ...]:
        """Return every series over the whole stream; empty before the first step."""
        if not self.series:
            return ()
        return self._summary.rows([series.name for series in self.series], self._detectors.lag_one.estimate())

    @property
    def limits(self) -> Limits:
        """Return the limits of the tests. They depend on the number of series, so the first step must be known."""
        return detectors.limits(self.settings.arl, len(self.series))

    def _begin(self, step: TrainingStep) -> None:
        opposed = tuple(name for name in self.settings.opposed if name in step.components)
        self._opposed = opposed if len(opposed) > 1 else ()
        self.series = series_of(step, self._opposed, self.settings.penalties)
        self._places = {series.name: place for place, series in enumerate(self.series)}
        self._detectors = Detectors((len(self.series),), self.limits)
        self._is_warned = np.zeros(len(self.series), dtype=np.bool_)
        self._summary = AnalyzerSummary(len(self.series))
        self._recent = Recent(len(self.series))
        self._diagnosis = Diagnosis(self._recent_mean)
        if self._opposed:
            self._calibration = Calibration(self.settings.calibration, self._opposed)

    def _calibrate(self, step: TrainingStep) -> None:
        limit = None if self._calibration is None else self._calibration.add(step)
        if limit is not None:
            self._conflict = limit
            self._calibration = None  # its rows are no longer needed

    def _recent_mean(self, name: str) -> float:
        return float(self._recent.mean[self._places[name]]) if name in self._places else 0.0

    def _require_same_series(self, step: TrainingStep) -> None:
        names = {series.name for series in series_of(step, self._opposed, self.settings.penalties)}
        differing = sorted(names ^ self._places.keys())
        if differing:
            raise InputError(
                f"step {self.steps + 1}: the steps before {'lack' if differing[0] in names else 'have'} the series "
                f"{differing[0]!r}; give every step the same, with NaN where there is no number"
            )

    def _leave_unit_scale(self, step: TrainingStep) -> None:
        """Test components that leave [0, 1] on the plain scale from now on, against a new baseline."""
        leaving = np.array([has_left_unit(series, step) for series in self.series])
        if leaving.any():
            self.series = tuple(
                series._replace(scale="plain") if has_left else series
                for series, has_left in zip(self.series, leaving, strict=True)
            )
            self._detectors.restart(leaving)
            self._recent.restart(leaving, forget_scale=True)

    def _warn_of_autocorrelation(self) -> None:
        lag_one = self._detectors.lag_one
        pairs = lag_one.pairs
        rho = lag_one.estimate()
        is_clear = (pairs >= MIN_JUDGED_PAIRS) & (rho - 3.0 / np.sqrt(np.maximum(pairs, 1.0)) > MAX_HARMLESS)
        for place in np.flatnonzero(is_clear & ~self._is_warned):
            self.warnings += (
                f"step {self.steps}: {self.series[place].description} depends on the step before (autocorrelation "
                f"{rho[place]:.2f}), so false alarms are more frequent than one in {self.settings.arl:g} steps; "
                "shuffle the prompts, or make steps of more tasks",
            )
        self._is_warned |= is_clear

    def _alert(self, place: int, raised: TestResults, measure: Measure) -> Alert:
        series = self.series[place]
        is_jump = bool(raised.jump[place].any())
        if is_jump:
            side: Direction = "up" if raised.jump[place, 0] else "down"
            since = self.steps
            size = float(raised.size[place])
            levels = float(raised.expected[place]), float(measure.score[place])
        else:
            side, since, levels, size = self._describe_drift(place, raised)
        before, after = (invert_scale(series.scale, level) for level in levels)
        verb = f"jumps {side}" if is_jump else f"{'rises' if side == 'up' else 'falls'} since about step {since}"
        change = f"from {before:.4g} to {after:.4g} ({size:+.3g} sd of a step)"
        return Alert(
            step=self.steps,
            series=series.name,
            kind="jump" if is_jump else "drift",
            direction=side,
            since=since,
            before=before,
            after=after,
            size=size,
            adverse=side == series.adverse,
            sentence=f"step {self.steps}: {series.description} {verb}, {change}",
        )

    def _describe_drift(self, place: int, raised: TestResults) -> tuple[Direction, int, tuple[float, float], float]:
        """Return the side, first step, scores before and after, and size of the drift that is the clearest.

        It is that of the CUSUM that exceeds its limit by the largest factor.
        """
        tests = self._detectors
        excess = np.where(raised.drift[place], tests.cusum[place] / np.array(self.limits.drift)[:, None], -np.inf)
        reference, side = divmod(int(np.argmax(excess)), 2)
        began = Baseline(*(float(statistic[place, reference, side]) for statistic in tests.baseline_at_zero))
        now = Baseline(*(float(statistic[place]) for statistic in tests.baseline))
        after = (now.n * now.mean - began.n * began.mean) / (now.n - began.n)
        size = (after - began.mean) / float(began.sd(0.0))
        since = int(tests.last_zero_step[place, reference, side]) + 1
        return "down" if side else "up", since, (began.mean, after), size
