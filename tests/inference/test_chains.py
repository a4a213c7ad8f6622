"""R-hat and effective sample sizes of chains, compared with ArviZ."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.inference.chains import bulk_ess, r_hat, tail_ess

_RNG = np.random.default_rng(3)
_INDEPENDENT = _RNG.standard_normal((4, 50))
DRAWS = {
    "independent": _INDEPENDENT,
    "random walks": _INDEPENDENT.cumsum(axis=1) / 3,
    "ties and a shifted chain": np.round(_INDEPENDENT + np.array([[0.0], [0.0], [0.0], [1.5]]), 1),
    "odd length": _RNG.standard_normal((2, 51)),
}
ARVIZ = {  # arviz 0.23.4: rhat(x), ess(x), ess(x, method="tail")
    "independent": (0.9913955632354944, 232.1674179985075, 227.73818300974858),
    "random walks": (2.4022522466264093, 5.549113486886048, 24.933137925387797),
    "ties and a shifted chain": (1.2302370704172, 14.94716557251657, 176.58549290272163),
    "odd length": (1.0104958872379268, 116.72509055647573, 106.51005375273742),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_figures_equal_those_of_arviz(name: str) -> None:
    figures = [figure(DRAWS[name]) for figure in (r_hat, bulk_ess, tail_ess)]
    assert figures == pytest.approx(ARVIZ[name], rel=1e-9)


def test_equal_draws_tell_nothing() -> None:
    constant = np.full((4, 20), 0.5)
    assert [figure(constant) for figure in (r_hat, bulk_ess, tail_ess)] == [None, None, None]


def test_chains_that_repeat_values_of_their_own_never_agree() -> None:
    stuck = np.repeat([[0.0], [1.0]], 20, axis=1)
    assert r_hat(stuck) == math.inf
    assert bulk_ess(stuck) is not None


@given(st.integers(0, 1000), st.floats(0.5, 3.0))
def test_the_bulk_depends_on_ranks_alone(seed: int, power: float) -> None:
    draws = np.random.default_rng(seed).random((3, 40))
    assert bulk_ess(draws**power) == pytest.approx(bulk_ess(draws))
