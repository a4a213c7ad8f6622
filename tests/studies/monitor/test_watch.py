"""Watching from Python, as a trainer does."""

import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.simulation.autocorrelated import autoregression
from jurygraph.agents.data_analyzer import TrainingStep
from jurygraph.studies.monitor import Watch
from tests.agents.data_analyzer.streams import normal_steps
from tests.studies.figures import figures_of


def test_alerts_are_returned_and_kept() -> None:
    watch = Watch()
    alerts = [alert for step in normal_steps(1, 130, -3.0, after=100) for alert in watch.feed(step)]
    assert watch.alerts == alerts != []
    assert {one.series for one in watch.adverse} == {"reward"}
    report = figures_of(watch.report())
    assert (report.steps, len(report.alerts)) == (130, len(alerts))
    assert [one.series for one in report.series] == ["reward", "failed"]


def test_a_report_has_the_warnings_of_the_analyzer() -> None:
    levels = autoregression(0.8, 1, 2)
    steps = [TrainingStep(float(next(levels)[0]) + np.arange(4.0)) for _ in range(80)]
    watch = Watch()
    for step in steps:
        watch.feed(step)
    assert "the mean reward depends on the step before" in " ".join(watch.report().notes)


def test_values_are_kept_only_on_request() -> None:
    without_history, with_history = Watch(), Watch(keep=True)
    for step in normal_steps(2, 5):
        without_history.feed(step)
        with_history.feed(step)
    assert without_history.report().plots == []
    plots = {plot.title: plot.series[0].y for plot in with_history.report().plots}
    assert len(plots["reward"]) == 5
    assert plots["reward"][-1] == with_history.analyzer.values[0]
    assert set(plots["failed"]) == {0.0}
    assert "history" not in with_history.report().to_json()


def test_the_loop_in_the_docs_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "watching.md").read_text(encoding="utf-8")
    (loop,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(compile(loop, "watching.md", "exec"), {})
    assert capsys.readouterr().out.startswith("SeriesSummary(series='reward', steps=50, ")
