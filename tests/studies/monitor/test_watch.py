"""Watching from Python, as a trainer does."""

import re
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
    warned = [note.split(" (")[0] for note in report(analyzer).notes]
    assert warned == (["reward depends on the step before"] if rho else [])


def test_the_loop_in_the_docs_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "watching.md").read_text(encoding="utf-8")
    (loop,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(compile(loop, "watching.md", "exec"), {})
    assert capsys.readouterr().out.startswith("{'series': 'reward', 'steps': 50, ")
