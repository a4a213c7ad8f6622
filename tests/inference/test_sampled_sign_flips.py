"""Sign flips of too many tasks to enumerate, and sums that are 0 but for rounding."""

import numpy as np
import pytest

from jurygraph.inference.sign_flips import FLIPS, MAX_ENUMERATED, sign_flip_p


@pytest.mark.parametrize("tasks", [37, 64, 200])
def test_random_flips_agree_with_the_exact_distribution(tasks: int):
    """Sums of whole numbers have an exact distribution at any number of tasks; a tenth of them has to be sampled."""
    sums = np.random.default_rng(tasks).integers(-9, 12, tasks)
    exact = sign_flip_p(sums)
    error = np.sqrt(exact * (1 - exact) / FLIPS)
    assert sign_flip_p(sums / 10) == pytest.approx(exact, abs=4 * error)
    assert sign_flip_p(sums / 10, seed=1) != sign_flip_p(sums / 10)


def test_random_flips_have_no_p_of_zero():
    assert sign_flip_p(np.linspace(0.1, 0.9, 60)) == 1 / (1 + FLIPS)


def test_a_sum_of_rounding_errors_is_no_difference():
    rest = [0.1 + 0.2 - 0.3] * MAX_ENUMERATED
    assert rest[0] != 0
    assert sign_flip_p([0.1, 0.2, 0.4, 0.5, *rest]) == 0.125


def test_fifty_gains_among_ten_thousand_tasks_are_exact():
    """2 of 2^50 combinations of signs, which no sample could show."""
    sums = np.zeros(10_000)
    sums[::200] = np.arange(1, 51)
    assert sign_flip_p(sums) == 2.0**-49
