"""What run lengths are simulated of, and a simulated hack. The benchmark prints the run lengths."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks.simulation.run_lengths import pool
from benchmarks.simulation.streams import Hack, hacked_steps, three_sd_step, unchanged_steps
from jurygraph.agents.data_analyzer import Analyzer, TrainingStep

pytestmark = pytest.mark.exhaustive


def test_a_pool_has_the_values_that_the_analyzer_measures() -> None:
    """The limit of conflict is of the first steps of the pool's own seed; the analyzer is given these first."""
    measured = pool(5, 10)
    analyzer, first = Analyzer(), unchanged_steps(5, 20)
    then = unchanged_steps(np.random.SeedSequence(5).generate_state(1).tolist()[0], 250)
    for step in [*first, *then[:10]]:
        analyzer.observe(step)
    assert [one.name for one in analyzer.series] == list(measured.names)
    assert_allclose(analyzer.values[-1], measured.measure.value[9], rtol=1e-12)


def test_a_policy_that_is_nearly_always_right_raises_no_more_false_alarms() -> None:
    """Two or three of 64 answers are wrong, and lengths are very skewed: hardly a figure is normal."""
    rng = np.random.default_rng(4)
    analyzer, groups = Analyzer(arl=1000.0), np.repeat(np.arange(16), 4)
    alarms = 0
    for _ in range(1000):
        right = (rng.random(64) < 0.96).astype(float)
        alarms += len(
            analyzer.observe(
                TrainingStep(right, {"accuracy": right}, np.exp(rng.normal(5, 0.8, 64)), groups)
            )
        )
    assert alarms <= 3


@pytest.mark.landing
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4])
def test_a_simulated_hack_is_detected_within_5_steps_of_3_sd_and_named_soon(seed: int) -> None:
    hack, analyzer = Hack(), Analyzer()
    alerts = [alert for step in hacked_steps(seed, 130, hack) for alert in analyzer.observe(step)]
    adverse = [one.step for one in alerts if one.adverse and one.step >= hack.first_step]
    named = next(one for one in alerts if one.kind == "hack")
    assert min(adverse) - three_sd_step(hack) <= 5
    assert named.step - three_sd_step(hack) <= 10
    assert "accuracy falls" in named.evidence
