"""p-values by flips of tasks, adjusted for their number."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from jurygraph.errors import PlanError
from jurygraph.inference import sign_flips
from jurygraph.inference.sign_flips import holm, nonzero_sums, sign_flip_p

whole = st.lists(st.integers(-20, 20), min_size=1, max_size=12)
tied = st.lists(st.integers(-9, 9).map(lambda value: value / 10), min_size=1, max_size=12)
free = st.lists(st.floats(-1.0, 1.0).map(lambda value: round(value, 4)), min_size=1, max_size=12)


def enumerated(sums: list[float]) -> float | None:
    """Return P(|Σ ± t| >= |Σ t|) over all 2^G vectors of signs; sums are compared with 9 decimals."""
    observed = round(abs(math.fsum(sums)), 9)
    signs = np.array(list(product((-1, 1), repeat=len(sums))))
    return (
        float((np.abs(signs @ np.array(sums)).round(9) >= observed).mean()) if any(sums) else None
    )


@given(whole)
def test_whole_numbers_equal_enumeration(sums: list[int]) -> None:
    assert sign_flip_p(sums) == pytest.approx(enumerated(sums))


@given(tied | free)
@example([0.1, 0.2, -0.3])  # which is not 0 as floats
@example([0.3, 0.1, 0.1, 0.1])
def test_fractions_with_ties_and_zeros_equal_enumeration(sums: list[float]) -> None:
    assert sign_flip_p(sums) == pytest.approx(enumerated(sums))


@given(tied)
def test_random_flips_equal_enumeration_within_their_error(sums: list[float]) -> None:
    expected = enumerated(sums)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sign_flips, "MAX_ENUMERATED_TASKS", 0)
        patch.setattr(sign_flips, "MAX_DISTRIBUTION_ADDITIONS", 0)
        found = sign_flip_p(sums, seed=1)
    if expected is None:
        assert found is None
    else:
        error = math.sqrt(expected * (1 - expected) / sign_flips.RANDOM_FLIP_COUNT)
        assert found == pytest.approx(expected, abs=5 * error + 2 / sign_flips.RANDOM_FLIP_COUNT)


@given(st.integers(0, 40), st.integers(0, 40))
def test_tasks_of_one_response_have_mcnemars_exact_p(gained: int, lost: int) -> None:
    found = sign_flip_p([1] * gained + [-1] * lost + [0] * 5)
    expected = stats.binomtest(gained, gained + lost).pvalue if gained + lost else None
    assert found == pytest.approx(expected)


@given(free, st.sampled_from([1e-3, -1.0, 1e290]), st.integers(0, 11))
def test_neither_scale_direction_order_nor_unchanged_tasks_matter(
    sums: list[float], scale: float, turn: int
) -> None:
    moved = [scale * value for value in sums[turn:] + sums[:turn]]
    assert sign_flip_p([*moved, 0.0]) == pytest.approx(sign_flip_p(sums))


def test_rounding_errors_are_no_changes() -> None:
    """The differences of each task cancel: 0.1 + 0.2 - 0.3 is 5.6e-17."""
    assert sign_flip_p([0.1 + 0.2 - 0.3] * 8) is None
    assert sign_flip_p([1e4 * (0.1 + 0.2 - 0.3)] * 8 + [1e4]) == 1.0
    assert sign_flip_p([]) is None
    assert sign_flip_p([0.0, 0.0]) is None


@pytest.mark.parametrize("values", [[math.nan, 1.0], [math.inf]])
def test_numbers_that_are_not_finite_are_refused(values: list[float]) -> None:
    with pytest.raises(PlanError, match="a finite number is needed"):
        sign_flip_p(values)


def test_the_level_holds_where_responses_of_a_task_belong_together() -> None:
    """10 tasks x 8 responses, intra-class correlation .7: a t-test over responses rejects .43 of the time at .05."""
    rng, rejected = np.random.default_rng(2), 0
    for _ in range(400):
        differences = math.sqrt(0.7) * rng.normal(size=(10, 1)) + math.sqrt(0.3) * rng.normal(
            size=(10, 8)
        )
        p = sign_flip_p(differences.sum(axis=1))
        rejected += p <= 0.05
    assert rejected / 400 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


@given(st.lists(st.sampled_from([0.0, 0.1, 0.2, 1e-13, 3.0]), min_size=1, max_size=12))
def test_the_least_p_is_that_of_sums_with_one_sign(sums: list[float]) -> None:
    count = len(nonzero_sums(sums))
    assert count == sum(value > 1e-12 for value in sums)
    assert sign_flip_p(sums) == (2.0 ** (1 - count) if count else None)


def test_of_very_many_tasks_the_normal_tail_is_that_of_random_flips() -> None:
    sums = np.random.default_rng(5).normal(0.02, 1.0, 6000)
    quick = sign_flip_p(sums)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sign_flips, "MAX_SAMPLED_TASKS", len(sums))
        drawn = sign_flip_p(sums)
    assert quick is not None
    assert drawn is not None
    assert quick == pytest.approx(
        drawn, abs=5 * math.sqrt(drawn * (1 - drawn) / sign_flips.RANDOM_FLIP_COUNT)
    )


p_values = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.01, 0.05, 1.0])


@given(st.lists(p_values, min_size=1, max_size=20), st.lists(st.integers(0, 20), max_size=5))
def test_adjusted_p_values_equal_statsmodels_and_missing_ones_do_not_count(
    p_values: list[float], missing: list[int]
) -> None:
    expected = multipletests(p_values, method="holm")[1].tolist()
    given: list[float | None] = list(p_values)
    for place in missing:
        given.insert(place, None)
    found = holm(given)
    assert [one for one in found if one is not None] == pytest.approx(expected)
    assert [one is None for one in found] == [one is None for one in given]


def test_without_a_test_there_is_nothing_to_adjust() -> None:
    assert holm([]) == []
    assert holm([None, None]) == [None, None]
    assert holm([0.03]) == [0.03]
