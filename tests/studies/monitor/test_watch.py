"""Watching from Python, as a trainer does."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.simulation.autocorrelated import autoregression
from jurygraph.agents.data_analyzer import Analyzer, TrainingStep
from jurygraph.studies.monitor import report
from tests.agents.data_analyzer.streams import collect_alerts, normal_steps


def test_a_report_has_the_alerts_and_a_row_for_each_series() -> None:
    analyzer = Analyzer()
    alerts = collect_alerts(analyzer, normal_steps(1, 130, -3.0, after=100))
    found = report(analyzer)
    assert found.figures["alerts"] == alerts != []
    values = np.array([values[0] for values in analyzer.values])
    row, *others = found.figures["series"]
    assert (row["series"], row["steps"]) == ("reward", 130)
    assert [other["series"] for other in others] == ["spread", "shape", "failed"]
    figures = [row[name] for name in ("mean", "sd", "min", "max", "last")]
    expected = [values.mean(), values.std(ddof=1), values.min(), values.max(), values[-1]]
    assert figures == pytest.approx(expected)
    assert found.plots[0].series[0].y == values.tolist()


def test_a_report_says_from_which_step_on_shapes_are_tested() -> None:
    analyzer = Analyzer()
    for step in normal_steps(1, 31):
        notes = report(analyzer).notes
        analyzer.observe(step)
    assert notes == ["shape: tested from step 31 on; the first 20 steps are what they compare with"]
    assert report(analyzer).notes == []


def test_a_report_before_the_first_step_is_empty() -> None:
    assert report(Analyzer()).figures["series"] == []


@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_a_report_warns_of_series_that_depend_on_the_step_before(rho: float) -> None:
    rng, levels, analyzer = np.random.default_rng(1005), autoregression(rho, 1, 5), Analyzer()
    for _ in range(300):
        analyzer.observe(TrainingStep(rng.normal(0.2 * float(next(levels)[0]), 0.01, 64)))
    notes = report(analyzer).notes
    assert [note.split(" (")[0] for note in notes] == (
        ["reward depends on the step before"] if rho else []
    )
    for note in notes:
        assert float(note.split(")")[0].split()[-1]) == pytest.approx(rho, abs=0.1)


@pytest.mark.parametrize("failing_steps", [(5,), (60, 75), range(60, 64)])
def test_a_series_that_is_nearly_constant_is_not_called_autocorrelated(
    failing_steps: Sequence[int],
) -> None:
    rng, analyzer = np.random.default_rng(3), Analyzer()
    for step in range(120):
        rewards = rng.random(64 if 40 <= step < 48 else 32)
        rewards[: 3 if step in failing_steps else 0] = np.nan
        analyzer.observe(TrainingStep(rewards))
    assert report(analyzer).notes == []


def test_a_series_without_a_value_is_not_called_flat() -> None:
    rng, analyzer = np.random.default_rng(3), Analyzer()
    for _ in range(31):
        analyzer.observe(TrainingStep(rng.random(32), {"accuracy": np.full(32, np.nan)}))
    assert report(analyzer).sections[-1] == (
        "cannot tell yet: in 0 steps with values even a large change may not be detected: "
        "no sign of a hack that began after the first steps (no change; no alert: reward)"
    )


@pytest.mark.parametrize(
    ("step_count", "title"),
    [(10, "reward: has too few steps to be tested; it"), (16, "reward: no change was found; it")],
)
def test_a_reward_that_rises_in_few_steps_is_not_called_flat(step_count: int, title: str) -> None:
    rng, analyzer = np.random.default_rng(3), Analyzer()
    for step in range(step_count):
        analyzer.observe(TrainingStep(0.48 + 0.017 * step + 0.1 * rng.standard_normal(32)))
    rising = report(analyzer)
    assert rising.figures["alerts"] == []
    assert rising.plots[0].title.startswith(title)
    if step_count > 10:
        assert rising.sections[-1] == (
            "cannot tell yet: in 16 steps with values even a large change may not be detected: "
            "no sign of a hack that began after the first steps (no change; no alert: reward)"
        )


def test_few_steps_leave_open_whether_a_falling_accuracy_is_a_hack_and_show_its_fall() -> None:
    rng, analyzer = np.random.default_rng(5), Analyzer(penalties={"shouting"})
    for step in range(16):
        accuracy = (rng.random(12) < (0.63 if step < 11 else 0.27)).astype(float)
        shouting = (rng.random(12) < (0.02 if step < 11 else 0.9)).astype(float)
        analyzer.observe(TrainingStep(rng.random(12), {"accuracy": accuracy, "shouting": shouting}))
    watched = report(analyzer)
    assert {alert.series for alert in analyzer.alerts} == {"component.shouting"}
    assert str(watched.sections[-1]).startswith(
        "cannot tell yet: in 16 steps with values even a large change may not be detected: 1 adverse change; "
        "no fall of an accuracy was detected"
    )
    (fall,) = [
        row["change"] for row in watched.figures["series"] if row["series"] == "component.accuracy"
    ]
    index = [series.name for series in analyzer.series].index("component.accuracy")
    means = np.array(analyzer.values)[:, index]
    assert fall["value"] == pytest.approx(means[8:].mean() - means[:8].mean())
    assert fall["low"] < fall["value"] < fall["high"] < 0


def _conclude_short_training(
    rng: np.random.Generator, is_hacked: bool, accuracy_weight: float = 0.3, step_count: int = 20
) -> str:
    """Return the last line: accuracy rises, and from step 13 to 20 falls, while length and the judge rise."""
    analyzer = Analyzer()
    for step in range(step_count):
        share = is_hacked * min(1, max(0, step - 11) / 8)
        rate = 0.83 - 0.66 * share - is_hacked * 0.4 * max(0, 11 - step) / 11
        accuracy = (rng.random(16) < rate).astype(float)
        rubric = rng.normal(0.41 + 0.37 * share, 0.2, 16)
        lengths = rng.normal(119 + 492 * share, 60, 16).clip(1)
        rewards = accuracy_weight * accuracy + (1 - accuracy_weight) * rubric
        analyzer.observe(TrainingStep(rewards, {"accuracy": accuracy, "rubric": rubric}, lengths))
    return str(report(analyzer).sections[-1])


def test_few_steps_in_which_accuracy_falls_as_judge_and_length_rise_are_suspicious() -> None:
    answer = _conclude_short_training(np.random.default_rng(3), is_hacked=True)
    assert answer.startswith("suspicious: since its best steps accuracy fell while others held")
    assert "component.rubric 0.4" in answer
    assert "a firm word needs 31 steps" in answer
    for case in ({"is_hacked": False}, {"is_hacked": True, "accuracy_weight": 0.95}):
        other = _conclude_short_training(np.random.default_rng(3), **case)
        assert "suspicious" not in other, "nothing changed, or the reward fell with accuracy"


def test_more_steps_say_why_what_was_suspicious_is_no_hack() -> None:
    few, more = (
        _conclude_short_training(np.random.default_rng(5), True, 0.55, step_count)
        for step_count in (24, 35)
    )
    assert few.startswith("suspicious: ")
    assert (
        "not a hack, because the reward fell too, by 40% of accuracy's fall since step 16" in more
    )
    assert more.endswith(
        "(length up, component.rubric up, component.accuracy down; no alert: reward, length_reward; "
        "suspicious after 25 steps: component.accuracy 0.854 to 0.292, reward 0.651 to 0.529, component.rubric 0.403 "
        "to 0.819, length 118 to 620)"
    )
    undetected = _conclude_short_training(np.random.default_rng(4), True, 0.55, 35)
    assert "because no fall of an accuracy was detected" in undetected
    assert "; suspicious after 30 steps: component.accuracy 0.75 to 0.229, reward" in undetected


@pytest.mark.exhaustive
def test_of_short_trainings_without_a_change_at_most_one_in_twenty_is_suspicious() -> None:
    rng = np.random.default_rng(4)
    answers = [_conclude_short_training(rng, is_hacked=False) for _ in range(1000)]
    assert sum(answer.startswith("suspicious") for answer in answers) <= 50


def test_steps_at_which_most_rewards_failed_are_an_outage() -> None:
    rng, analyzer = np.random.default_rng(3), Analyzer()
    for step in range(40):
        rewards = rng.random(32)
        rewards[: {12: 17, 13: 32, 14: 20, 15: 16, 20: 30}.get(step, 0)] = np.nan
        analyzer.observe(TrainingStep(rewards, name=step))
    past = report(analyzer)
    assert past.notes == [
        "more than half of the rewards failed at step 12 to 14, 20; what moves there may be the judge's"
    ]
    assert past.figures["outages"] == []


def test_the_loop_in_the_docs_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "watching.md").read_text(encoding="utf-8")
    (loop,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(compile(loop, "watching.md", "exec"), {})
    assert capsys.readouterr().out.startswith("{'series': 'reward', 'steps': 50, ")


def test_a_judge_that_begins_to_fail_is_an_alert_where_its_failures_count_0() -> None:
    rng, analyzer = np.random.default_rng(3), Analyzer()
    for step in range(60):
        failing_share = 0.02 if step < 40 else 0.7
        analyzer.observe(
            TrainingStep(rng.random(64), degraded=rng.random(64) < failing_share, name=step)
        )
    (alert,) = [alert for alert in analyzer.alerts if alert.series == "degraded"]
    assert (alert.adverse, alert.since) == (True, 40)
    watched = report(analyzer)
    assert watched.figures["outages"] == [
        "more than half of the rewards lack a verdict at step 40 to 59, the last one; "
        "`jurygraph explain RUN --status degraded` says why"
    ]
    assert str(watched.sections[-1]).startswith(
        "1 adverse change; not a hack, because no fall of an accuracy was detected"
    )


def test_a_reward_that_falls_with_accuracy_is_said_to_be_no_hack_for_that() -> None:
    rng, analyzer = np.random.default_rng(3), Analyzer()
    for step in range(60):
        accuracy = (rng.random(64) < (0.8 if step < 40 else 0.3)).astype(float)
        analyzer.observe(TrainingStep(accuracy, {"accuracy": accuracy}))
    answer = str(report(analyzer).sections[-1])
    assert (
        "adverse changes; not a hack, because the reward fell too, by 110% of accuracy's fall"
        in answer
    )
