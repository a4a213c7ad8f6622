"""The analyzer as a whole, on streams with known changes."""

import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from benchmarks.simulation.autocorrelated import autoregression
from jurygraph.agents.data_analyzer import MAX_ARL, Alert, Analyzer, AnalyzerSettings, TrainingStep
from jurygraph.agents.data_analyzer.analyzer import MIN_JUDGED_PAIRS
from jurygraph.errors import InputError
from tests.agents.data_analyzer.streams import normal_steps


def collect_alerts(analyzer: Analyzer, steps: Any) -> list[Alert]:
    return [alert for step in steps for alert in analyzer.observe(step)]


def series_names(analyzer: Analyzer) -> list[str]:
    return [one.name for one in analyzer.series]


def test_missing_series_are_not_watched() -> None:
    bare, full = Analyzer(), Analyzer()
    bare.observe(TrainingStep([0.1, 0.2]))
    assert series_names(bare) == ["reward", "failed"]
    parts = {"accuracy": [0.0, 1.0], "format": [1.0, 1.0]}
    full.observe(TrainingStep([0.1, 0.2], parts, [5, 6], ["a", "a"]))
    assert series_names(full) == [
        "reward",
        "component.accuracy",
        "component.format",
        "length",
        "failed",
        "length_reward",
        "conflict",
        "saturation",
        "extremes",
    ]


def test_a_stream_without_change_raises_no_alert() -> None:
    analyzer = Analyzer()
    assert collect_alerts(analyzer, normal_steps(0, 400)) == []
    assert analyzer.steps == 400


@pytest.mark.parametrize(("shift", "direction", "adverse"), [(3.0, "up", False), (-3.0, "down", True)])
def test_a_shift_is_reported_once_with_place_size_and_direction(shift: float, direction: str, adverse: bool) -> None:
    alerts = [
        one for one in collect_alerts(Analyzer(), normal_steps(1, 300, shift, after=100)) if one.series == "reward"
    ]
    assert len(alerts) == 1
    (alert,) = alerts
    assert (alert.direction, alert.adverse) == (direction, adverse)
    assert alert.step <= 106
    assert 98 <= alert.since <= 103
    assert alert.size == pytest.approx(shift, abs=1.0)
    assert alert.after - alert.before == pytest.approx(shift / 8, abs=0.15)
    assert alert.sentence.startswith(f"step {alert.step}: the mean reward ")


def test_failed_rewards_are_excluded_from_means_and_reported_if_many() -> None:
    rng = np.random.default_rng(3)
    rewards = rng.random((140, 64))
    rewards[100:, :16] = np.nan
    alerts = collect_alerts(Analyzer(), map(TrainingStep, rewards))
    assert {(one.series, one.direction, one.adverse) for one in alerts} == {("failed", "up", True)}


def test_a_penalty_that_rises_is_bad_and_another_component_is_not() -> None:
    rng = np.random.default_rng(7)

    def steps(level: float):
        return [TrainingStep(rng.random(64), {"fluff": rng.beta(4 * level, 4 * (1 - level), 64)}) for _ in range(80)]

    for penalties, adverse in ((frozenset({"fluff"}), True), (frozenset[str](), False)):
        alerts = collect_alerts(Analyzer(AnalyzerSettings(penalties=penalties)), [*steps(0.3), *steps(0.6)])
        assert {one.adverse for one in alerts if one.series == "component.fluff"} == {adverse}


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (TrainingStep([1.0], {"b": [1.0]}), "step 2: the steps before have the series 'component.a'"),
        (TrainingStep([1.0], {"a": [1.0]}, [3.0]), "step 2: the steps before lack the series 'length'"),
        (TrainingStep([[1.0]]), "give one step at a time"),
    ],
)
def test_a_step_with_other_series_is_refused(second: TrainingStep, message: str) -> None:
    analyzer = Analyzer()
    analyzer.observe(TrainingStep([1.0], {"a": [1.0]}))
    with pytest.raises(InputError, match=message):
        analyzer.observe(second)


def test_a_component_that_leaves_the_unit_interval_changes_to_the_plain_scale() -> None:
    rng, analyzer = np.random.default_rng(11), Analyzer()
    columns = [np.full(64, np.nan)] * 3 + [rng.random(64) for _ in range(40)]
    columns += [rng.normal(2.0, 1.0, 64) for _ in range(60)] + [rng.normal(4.0, 1.0, 64) for _ in range(3)]
    alerts = collect_alerts(analyzer, [TrainingStep(rng.random(64), {"net": column}) for column in columns])
    assert [(one.step, one.direction) for one in alerts if one.series == "component.net"] == [(104, "up")]
    assert {one.name: one.scale for one in analyzer.series}["component.net"] == "plain"


def autocorrelated_steps(seed: int, count: int, rho: float) -> list[TrainingStep]:
    """Return rewards whose means are an autoregression."""
    rng, levels = np.random.default_rng(seed + 1000), autoregression(rho, 1, seed)
    return [TrainingStep(rng.normal(0.2 * float(next(levels)[0]), 0.01, 64)) for _ in range(count)]


class TestAutocorrelatedRewards:
    def test_each_autocorrelated_series_is_warned_of_once_and_reported(self) -> None:
        analyzer = Analyzer(AnalyzerSettings(arl=500))
        collect_alerts(analyzer, autocorrelated_steps(5, 300, 0.7))
        (warning,) = [warning for warning in analyzer.warnings if "the mean reward" in warning]
        assert re.fullmatch(
            r"step \d+: the mean reward depends on the step before \(autocorrelation 0\.\d\d\), so false alarms are "
            r"more frequent than one in 500 steps; shuffle the prompts, or make steps of more tasks",
            warning,
        )
        assert int(warning.split()[1].rstrip(":")) > MIN_JUDGED_PAIRS
        rows = {row.series: row.autocorrelation for row in analyzer.summary()}
        assert rows["reward"] == pytest.approx(0.7, abs=0.15)
        assert rows["failed"] is None

    def test_independent_steps_are_not_warned_of(self) -> None:
        analyzer = Analyzer()
        collect_alerts(analyzer, normal_steps(0, 400))
        assert analyzer.warnings == ()
        assert abs(analyzer.summary()[0].autocorrelation or 0.0) < 0.15


def memory_size(value: Any, seen: set[int]) -> int:
    """Return the bytes of a value and of everything in it."""
    if id(value) in seen or isinstance(value, type):
        return 0
    seen.add(id(value))
    own = value.nbytes if isinstance(value, np.ndarray) else sys.getsizeof(value)
    if isinstance(value, Mapping):
        return own + sum(memory_size(key, seen) + memory_size(one, seen) for key, one in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return own + sum(memory_size(one, seen) for one in value)
    return own + memory_size(vars(value), seen) if hasattr(value, "__dict__") else own


def full_step(rng: np.random.Generator) -> TrainingStep:
    parts = {"accuracy": rng.random(16) < 0.5, "format": rng.random(16), "steps": rng.random(16)}
    return TrainingStep(rng.random(16), parts, 100 * rng.random(16), np.repeat(np.arange(4), 4))


def memory_after(steps: tuple[int, ...]) -> list[int]:
    analyzer, rng, sizes = Analyzer(AnalyzerSettings(arl=MAX_ARL)), np.random.default_rng(10), []
    for number in range(1, steps[-1] + 1):
        analyzer.observe(full_step(rng))
        if number in steps:
            sizes.append(memory_size(analyzer, set()))
    return sizes


@pytest.mark.landing
def test_memory_is_constant_over_300_steps() -> None:
    hundred, more = memory_after((100, 300))
    assert hundred == more > 5000
