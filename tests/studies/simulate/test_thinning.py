"""Rankings under fewer labels of each item."""

import numpy as np
import pytest

from jurygraph.errors import PlanError
from jurygraph.studies.simulate import Setting
from jurygraph.studies.simulate.thinning import measure_thinning


@pytest.mark.exhaustive
def test_rankings_are_more_stable_with_more_labels() -> None:
    setting = Setting(items=60, labels=9)
    few, many = (measure_thinning(setting, kept, range(4)) for kept in (1, 8))
    for method in few.methods:
        assert few.mean(method, "tau_b") < many.mean(method, "tau_b") <= 1.0


@pytest.mark.exhaustive
def test_a_seed_gives_the_same_figures_in_any_number_of_processes() -> None:
    setting = Setting(items=20)
    np.testing.assert_array_equal(
        measure_thinning(setting, 3, range(2)).values, measure_thinning(setting, 3, range(2), jobs=2).values
    )


@pytest.mark.parametrize("kept", [0, 5])
def test_the_number_of_kept_labels_must_be_smaller_than_that_of_all(kept: int) -> None:
    with pytest.raises(PlanError, match=f"kept is {kept}: at least 1 is needed, and fewer than the 5 labels"):
        measure_thinning(Setting(), kept, [0])
