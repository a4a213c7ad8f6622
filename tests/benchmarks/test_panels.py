"""Small panels: the measured figures, and the panel sizes from which the model is better."""

import numpy as np
import pytest

from benchmarks.simulation.panels import Panel, Prior, setting, small_panels
from jurygraph.aggregation import consensus
from jurygraph.studies.simulate import stableval

pytestmark = pytest.mark.exhaustive


def test_figures_compare_the_methods_on_the_same_labels() -> None:
    panel, seeds = Panel(5, 50), (7, 8)
    found = small_panels([panel], seeds, {"strong": Prior(2.0, 3.0)})[panel]
    assert found.methods == ("majority", "dawid-skene", "stableval", "strong")
    for place, seed in enumerate(seeds):
        drawn = stableval(setting(panel), seed)
        rows = drawn.item, drawn.annotator, drawn.label
        strong = consensus.fit(*rows, n_classes=3, prior_confusion=2.0, prior_mu=3.0)
        assert found.by_seed("strong", "accuracy")[place] == pytest.approx(
            (strong.likeliest_labels() == drawn.truth).mean()
        )
        scores = [one.score for one in strong.agent_scores(drawn.agent, bootstrap=0).values()]
        assert found.by_seed("strong", "mse")[place] == pytest.approx(np.mean((scores - drawn.true_scores) ** 2))
    assert (found.by_seed("dawid-skene", "accuracy") == found.by_seed("stableval", "accuracy")).all()


def test_a_tie_that_two_classes_share_is_half_right() -> None:
    panel = Panel(2, 50)
    found = small_panels([panel], [3], {})[panel]
    drawn = stableval(setting(panel), 3)
    pairs = drawn.label.reshape(-1, 2) == drawn.truth[:, None]
    assert found.mean("majority", "accuracy") == pytest.approx(pairs.mean())
