"""When the estimate stops, and where its leaps land."""

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import em
from jurygraph.aggregation.consensus.em import FitProblem, FitSettings, Model, _extrapolate
from jurygraph.aggregation.consensus.fitting import Preset
from jurygraph.aggregation.consensus.votes import encode
from tests.aggregation.consensus.reference import drawn


@cache
def truncated_estimates(preset: Preset) -> list[consensus.Consensus]:
    """Estimates after one step, two steps, and so on."""
    item, annotator, label, _ = drawn(60, 4, 3, seed=11, right=0.6)
    return [consensus.fit(item, annotator, label, preset, max_iter=steps, tol=1e-300) for steps in range(1, 60)]


def stopped_after(preset: Preset, changed: Any, tol: float) -> int:
    """The first step after the first in which the quantity changes by less than `tol`, from estimates cut short."""
    changes = [float(np.abs(changed(new) - changed(old)).max()) for old, new in pairwise(truncated_estimates(preset))]
    return 2 + next(place for place, change in enumerate(changes) if change < tol)


QUANTITIES: dict[Preset, Any] = {"paper": lambda one: one.posterior, "paper-synthetic": lambda one: one.confusion}


@pytest.mark.landing
@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("preset", QUANTITIES)
def test_paper_stops_by_its_posteriors_and_paper_synthetic_by_its_confusions(preset: Preset, tol: float) -> None:
    item, annotator, label, _ = drawn(60, 4, 3, seed=11, right=0.6)
    fitted = consensus.fit(item, annotator, label, preset, tol=tol)
    by_either = {name: stopped_after(preset, quantity, tol) for name, quantity in QUANTITIES.items()}
    assert by_either["paper"] != by_either["paper-synthetic"]
    assert (fitted.iterations, fitted.converged) == (by_either[preset], True)


@pytest.mark.parametrize("preset", consensus.PRESETS)
def test_a_change_of_exactly_tol_does_not_converge(preset: Preset, monkeypatch: pytest.MonkeyPatch) -> None:
    changes: list[float] = []

    def record_change(new: np.ndarray, old: np.ndarray) -> float:
        changes.append(float(np.abs(new - old).max()))
        return changes[-1]

    monkeypatch.setattr(em, "_largest_change", record_change)
    item, annotator, label, _ = drawn(60, 4, 3, seed=11, right=0.6)
    until = consensus.fit(item, annotator, label, preset, max_iter=9, tol=1e-300).iterations
    middle, last = changes[2], changes[-1]
    for tol, goes_on, converged in ((middle, True, True), (last, False, False)):
        below, at = (
            consensus.fit(item, annotator, label, preset, max_iter=until, tol=one)
            for one in (float(np.nextafter(tol, 1.0)), tol)
        )
        assert below.converged
        assert (at.iterations > below.iterations, at.converged) == (goes_on, converged)


def converging_models(distance: float, ratio: float, steps: int) -> list[Model]:
    """So many models on their way to a limit, each nearer to it by the same ratio."""
    limit = Model(np.array([0.6, 0.4]), np.array([[0.7, 0.3, 0.8, 0.2], [0.4, 0.6, 0.1, 0.9]]))
    prior, confusion = np.array([1.0, -1.0]), np.array([[1.0, -1.0, -1.0, 1.0], [-1.0, 1.0, 1.0, -1.0]])
    left = [distance * ratio**step for step in range(steps)]
    return [Model(limit.prior + far * prior, limit.confusion + far * confusion) for far in left]


@given(st.floats(-0.05, 0.05).filter(lambda far: abs(far) > 1e-3), st.floats(0.1, 0.9))
def test_extrapolating_geometric_steps_reaches_their_limit(distance: float, ratio: float) -> None:
    """A geometric series: the leap of scheme S3 ends at its limit, at once."""
    leapt = _extrapolate(*converging_models(distance, ratio, 3))
    (limit,) = converging_models(0.0, 1.0, 1)
    np.testing.assert_allclose(leapt.prior, limit.prior, atol=1e-9)
    np.testing.assert_allclose(leapt.confusion, limit.confusion, atol=1e-9)


@pytest.mark.parametrize("ratio", [1.0, -0.5, -1.0])
def test_steps_that_do_not_shrink_are_not_extrapolated(ratio: float) -> None:
    """Without a bend there is no limit to leap to; where the steps turn back, the plain ones are nearer to it."""
    steps = converging_models(0.04, ratio, 3) if ratio < 0 else [*converging_models(0.0, 1.0, 1)] * 3
    assert _extrapolate(*steps) is None


def test_the_objective_adds_the_log_density_of_both_priors() -> None:
    """Without its constant: (α_μ - 1) Σ log μ + (α_π - 1) Σ log π."""
    coded = encode([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 0], range(2))
    rules = FitSettings(3.0, 1.5, 1e-300, "posterior", 1e-9, 10, accelerated=False)
    model = Model(np.array([0.6, 0.4]), np.array([[0.7, 0.3, 0.8, 0.2], [0.4, 0.6, 0.1, 0.9]]))
    found = FitProblem(coded.matrix, coded.counts, np.ones(2), rules, np.full(2, -1)).e_step(model)
    first = 0.6 * 0.7 * 0.8 + 0.4 * 0.4 * 0.1  # both say 0
    second = 0.6 * 0.3 * 0.8 + 0.4 * 0.6 * 0.1  # 1 and 0
    assert found.log_likelihood == pytest.approx(np.log(first) + np.log(second))
    priors = 2.0 * np.log(model.prior).sum() + 0.5 * np.log(model.confusion).sum()
    assert found.objective == pytest.approx(found.log_likelihood + priors)
