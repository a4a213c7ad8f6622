"""Coverage of credible intervals."""

import pytest

from benchmarks.simulation.credible import Chains, credible_coverage
from jurygraph.studies.simulate import Setting

pytestmark = pytest.mark.exhaustive


def test_clear_labels_leave_no_doubt_about_these_items_but_about_their_population() -> None:
    unanimous = Setting(qualities=(1.0, 0.0), items=40, pool=(9, 0, 0, 0), labels=9, ambiguous=False)
    found = credible_coverage(unanimous, range(2), Chains(2, 100))
    assert found.mean("gibbs", "true credit") == 1.0
    assert found.mean("gibbs", "width") < 0.5 * found.mean("gibbs", "population's width")
    assert found.mean("gibbs", "R-hat") < 1.2
    assert (found.by_seed("gibbs", "annotators") <= 1.0).all()


def test_few_items_are_covered_too() -> None:
    found = credible_coverage(Setting(items=10, annotators=9, labels=9), range(8), Chains(2, 150))
    assert found.mean("gibbs", "true credit") >= 0.9
