"""Variance by level: equal to published analyses, to REML and to dense matrices; its correlations cover."""

from itertools import pairwise

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.regression.mixed_linear_model import MixedLM

from jurygraph.errors import PlanError
from jurygraph.inference.variance import reliability, split_variance

PASTES = np.array(
    (
        "62.8 62.6 60.1 62.3 62.7 63.1 60.0 61.4 57.5 56.9 61.1 58.9 58.7 57.5 63.9 63.1 65.4 63.7 57.1 56.4 "
        "56.9 58.6 64.7 64.5 55.1 55.1 54.7 54.2 58.8 57.5 63.4 64.9 59.3 58.1 60.5 60.0 62.5 62.6 61.0 58.7 "
        "56.9 57.7 59.2 59.4 65.2 66.0 64.8 64.1 54.8 54.8 64.0 64.0 57.7 56.8 58.3 59.3 59.2 59.2 58.9 56.6"
    ).split(),
    dtype=np.float64,
)
sizes = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=2, max_size=6)


def test_three_levels_equal_the_pastes_of_davies() -> None:
    """Ten batches, three casks of each, two assays of each cask; as lme4 reports them by REML."""
    found = split_variance(PASTES, np.repeat(range(10), 6), np.repeat(range(30), 2))
    assert found.raw == pytest.approx((1.657, 8.434, 0.678), abs=5e-4)
    same_batch, same_cask = found.correlations
    assert same_batch.value == pytest.approx(1.657 / 10.769, abs=1e-4)
    assert same_cask.value == pytest.approx(10.091 / 10.769, abs=1e-4)


# it is passed on to SciPy's Powell
@pytest.mark.filterwarnings("ignore:Argument xtol:FutureWarning")
@pytest.mark.parametrize("levels", [2, 3])
def test_balanced_data_have_the_components_of_reml(levels: int) -> None:
    rng = np.random.default_rng(levels)
    task, response = np.repeat(range(12), 12), np.repeat(range(48), 3)
    values = (
        5.0
        + rng.normal(size=12)[task]
        + 0.8 * rng.normal(size=48)[response]
        + 0.5 * rng.normal(size=144)
    )
    table = {"value": values, "task": task, "response": response}
    places, inner = [task, response], {"response": "0 + C(response)"}
    if levels == 2:
        table, places, inner = (
            {name: column[::3] for name, column in table.items()},
            [task[::3]],
            {},
        )
    frame = pandas.DataFrame(table)
    model = MixedLM.from_formula(
        "value ~ 1", frame, groups="task", re_formula="1", vc_formula=inner
    )
    fitted = model.fit(reml=True, method=["powell"], xtol=1e-9, ftol=1e-13)
    expected = [float(np.asarray(fitted.cov_re)[0, 0]), *fitted.vcomp, fitted.scale]
    found = split_variance(table["value"], *places)
    assert min(found.raw) > 0.0
    assert found.raw == pytest.approx(expected, rel=1e-6)


@given(sizes, st.integers(0, 2**32 - 1))
def test_unbalanced_data_set_sums_of_squares_equal_to_their_expectations(
    design: list[list[int]], seed: int
) -> None:
    """By dense matrices: E[y'Ay] = Σ_i σ²_i tr(A Z_i Z_i')."""
    counts = [samples for task in design for samples in task]
    response = np.repeat(range(len(counts)), counts)
    task = np.repeat(range(len(design)), [sum(one) for one in design])
    values = np.random.default_rng(seed).normal(size=len(task)) + task
    units = [
        (level[:, None] == np.unique(level)).astype(float)
        for level in (task, response, np.arange(len(task)))
    ]
    means = [
        np.full((len(task),) * 2, 1 / len(task)),
        *(one @ np.diag(1 / one.sum(axis=0)) @ one.T for one in units),
    ]
    forms = [inner - outer for outer, inner in pairwise(means)]
    expected = np.array([[np.trace(form @ one @ one.T) for one in units] for form in forms])
    found = split_variance(values, task, response)
    if (np.diag(expected) < 1e-9).any():
        assert found is None
    else:
        solved = np.linalg.solve(expected, [values @ form @ values for form in forms])
        assert found.raw == pytest.approx(solved, abs=1e-9)


def test_the_interval_leaves_out_each_task() -> None:
    rng = np.random.default_rng(7)
    task = np.repeat(range(8), rng.integers(2, 6, 8))
    values = rng.normal(size=8)[task] + rng.normal(size=len(task))
    (found,) = split_variance(values, task).correlations
    size = len(task) / 8

    def log_ratio(kept: np.ndarray) -> float:
        between, within = split_variance(values[kept], task[kept]).raw
        return np.log((size * between + within) / within)

    whole = log_ratio(task >= 0)
    changes = [log_ratio(task != one) - whole for one in range(8)]
    half_width = 2.364624251592784 * np.sqrt(7 / 8 * np.sum(np.square(changes)))
    low, high = (1 - size / (np.exp(whole + sign * half_width) + size - 1) for sign in (-1, 1))
    assert (found.low, found.high) == pytest.approx((max(0.0, low), high), abs=1e-8)


def test_an_estimate_below_0_is_reported_as_0_with_its_raw_value() -> None:
    """Tasks that are more alike than chance would have them."""
    found = split_variance([0.0, 1.0, 1.0, 0.0, 0.0, 1.0], np.repeat(range(3), 2))
    assert found.raw == pytest.approx((-0.25, 0.5))
    assert found.components == (0.0, found.raw[1])
    assert found.correlations[0].value == 0.0
    assert found.shares == (0.0, 1.0)


def test_what_cannot_be_split_has_no_components_or_no_interval() -> None:
    assert split_variance([1.0, 2.0], np.array([0, 0])) is None, "one task"
    assert split_variance([1.0, 2.0], np.array([0, 1])) is None, "one response for each task"
    constant = split_variance([0.7] * 6, np.repeat(range(3), 2))
    assert (constant.raw, constant.correlations, constant.shares) == ((0.0, 0.0), (None,), None)
    alike = split_variance([0.1, 0.1, 0.7, 0.7, 0.4, 0.4], np.repeat(range(3), 2))
    assert alike.correlations[0][:3] == (1.0, None, None), "no variance within a task"


def test_levels_that_do_not_fit_are_refused() -> None:
    with pytest.raises(
        PlanError, match="unit a of level 2 is in several units of level 1; give each unit an id"
    ):
        split_variance([1.0, 2.0, 3.0, 4.0], ["t1", "t1", "t2", "t2"], ["a", "b", "a", "b"])
    with pytest.raises(PlanError, match=r"level 1 has shape \(1,\)"):
        split_variance([1.0, 2.0], ["t"])


@given(st.floats(0.0, 1.0), st.integers(1, 50))
def test_the_reliability_of_a_mean_is_that_of_spearman_and_brown(
    correlation: float, count: int
) -> None:
    """σ²_a / (σ²_a + σ²_e / k) for σ²_a = ρ, σ²_e = 1 - ρ."""
    own, other = correlation, (1.0 - correlation) / count
    expected = own / (own + other) if own + other else 0.0
    assert reliability(correlation, count) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("correlation", "tasks"), [(0.0, 10), (0.3, 10), (0.7, 5)])
def test_the_interval_of_a_correlation_covers(correlation: float, tasks: int) -> None:
    """300 runs of four responses a task; ρ ± t errors covers .87 to .91."""
    rng, task, covered = np.random.default_rng(11), np.repeat(range(tasks), 4), 0
    for _ in range(300):
        between = np.sqrt(correlation) * rng.normal(size=tasks)
        values = between[task] + np.sqrt(1.0 - correlation) * rng.normal(size=len(task))
        (found,) = split_variance(values, task).correlations
        covered += found.low <= correlation <= found.high
    assert covered / 300 >= 0.92
