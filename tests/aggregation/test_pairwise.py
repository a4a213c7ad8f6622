"""Comparisons in both orders: outcomes, position bias, and Bradley-Terry strengths."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from jurygraph.aggregation import pairwise
from jurygraph.aggregation.pairwise import MAX_NEWTON_STEPS, bradley_terry, flips, outcomes
from jurygraph.errors import PlanError
from tests.examples import at_most
from tests.rows import all_rows

LLMBAR = Path(__file__).parents[1] / "data" / "llmbar"
NINE = [(1, 1), (1, 0.5), (1, 0), (0.5, 1), (0.5, 0.5), (0.5, 0), (0, 1), (0, 0.5), (0, 0)]
FIRST, SECOND = zip(*NINE, strict=True)

preferences = st.sampled_from([0.0, 0.5, 1.0])
both = st.lists(st.tuples(preferences, preferences), max_size=30)


# Outcomes


def test_it_takes_both_orders_to_win_or_to_lose() -> None:
    assert outcomes(FIRST, SECOND).tolist() == [1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.0]


def test_a_flip_is_where_each_order_prefers_another() -> None:
    assert np.flatnonzero(flips(FIRST, SECOND)).tolist() == [2, 6]
    assert (outcomes(FIRST, SECOND)[flips(FIRST, SECOND)] == 0.5).all()


def test_a_value_between_counts_for_the_nearer_side() -> None:
    assert outcomes([0.6, 0.51, 0.4], [0.9, 0.49, 0.1]).tolist() == [1.0, 0.5, 0.0]


@given(both)
def test_outcomes_of_both_sides_add_up_to_1(pairs: list[tuple[float, float]]) -> None:
    one, other = np.array(pairs).reshape(-1, 2).T
    assert (outcomes(one, other) + outcomes(1 - other, 1 - one) == 1.0).all()


@given(both)
def test_swapping_the_orders_changes_nothing(pairs: list[tuple[float, float]]) -> None:
    one, other = np.array(pairs).reshape(-1, 2).T
    assert outcomes(one, other).tolist() == outcomes(other, one).tolist()
    assert flips(one, other).tolist() == flips(other, one).tolist()


@all_rows(
    ("first", "second", "message"),
    [
        ([1.0], [1.1], r"second\[0\] is 1.1: a number in \[0, 1\]"),
        ([np.nan], [1.0], r"first\[0\] is nan"),
        ([1.0, 0.0], [1.0], r"second has shape \(1,\) where \(2,\) is needed"),
        ([True], [1.0], "first holds bool"),
    ],
)
@all_rows("function", [outcomes, flips])
def test_invalid_preferences_are_refused(
    function: Callable[..., Any], first: Any, second: Any, message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        function(first, second)


# Bradley-Terry


def posterior_mode(wins: np.ndarray, prior: float) -> np.ndarray:
    """The posterior's mode by another way: SciPy's optimiser on the log posterior of θ = log p."""

    def worse(theta: np.ndarray) -> tuple[float, np.ndarray]:
        apart = theta[:, None] - theta
        log_posterior = (
            -(wins * np.logaddexp(0, -apart)).sum() + prior * (theta - np.exp(theta)).sum()
        )
        losing = 1 / (1 + np.exp(apart))
        slope = (
            (wins * losing).sum(axis=1) - (wins * losing).sum(axis=0) + prior * (1 - np.exp(theta))
        )
        return -log_posterior, -slope

    found = minimize(
        worse,
        np.zeros(len(wins)),
        jac=True,
        method="BFGS",
        options={"gtol": 1e-11, "maxiter": 5000},
    )
    assert np.abs(worse(found.x)[1]).max() < 2e-6
    return np.exp(found.x)


@st.composite
def games(draw: Callable[[st.SearchStrategy[Any]], Any]) -> np.ndarray:
    size = draw(st.integers(1, 7))
    number = st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0, 3.5])
    wins = np.array([[draw(number) for _ in range(size)] for _ in range(size)])
    np.fill_diagonal(wins, 0.0)
    return wins


priors = st.sampled_from([0.01, 0.1, 0.5, 1.0, 3.0])


def total_order(size: int) -> np.ndarray:
    return np.triu(np.ones((size, size)), 1)


@settings(max_examples=at_most(60), deadline=None)
@given(games(), st.sampled_from([0.1, 0.5, 2.0]))
def test_the_strengths_are_the_mode_of_the_posterior(wins: np.ndarray, prior: float) -> None:
    np.testing.assert_allclose(bradley_terry(wins, prior), posterior_mode(wins, prior), rtol=1e-4)


@settings(deadline=None)
@given(games(), priors, st.integers(2, 5))
def test_scaling_wins_and_prior_together_changes_nothing(
    wins: np.ndarray, prior: float, times: int
) -> None:
    more = bradley_terry(wins * times, prior * times)
    np.testing.assert_allclose(more, bradley_terry(wins, prior), rtol=1e-9)


@settings(deadline=None)
@given(games(), priors, st.data())
def test_another_win_raises_the_winner_above_everybody(
    wins: np.ndarray, prior: float, data: st.DataObject
) -> None:
    if len(wins) < 2:
        return
    winner, loser = data.draw(st.permutations(range(len(wins))))[:2]
    before = bradley_terry(wins, prior)
    more = wins.copy()
    more[winner, loser] += 1.0
    after = bradley_terry(more, prior)
    assert (after[winner] / after >= before[winner] / before - 1e-9).all()


def test_a_response_that_was_never_compared_has_strength_1() -> None:
    assert bradley_terry(np.zeros((3, 3))).tolist() == [1.0, 1.0, 1.0]
    alone = bradley_terry([[0, 2, 0], [1, 0, 0], [0, 0, 0]])
    assert alone[2] == pytest.approx(1.0, abs=1e-11)
    assert bradley_terry(np.zeros((0, 0))).tolist() == []


@all_rows("prior", [0.01, 0.1, 1.0, 100.0])
@all_rows("size", [2, 8, 64])
@all_rows("wins", [total_order, lambda n: np.diag(np.ones(n - 1), 1)])
def test_a_response_that_wins_everything_converges_quickly(
    wins: Callable[[int], np.ndarray], size: int, prior: float
) -> None:
    found = bradley_terry(wins(size), prior)
    assert (np.diff(found) <= 1e-12).all()
    assert found[0] > 1.0 > found[-1]
    with pytest.MonkeyPatch.context() as fewer:
        fewer.setattr(pairwise, "MAX_NEWTON_STEPS", MAX_NEWTON_STEPS // 2)
        assert bradley_terry(wins(size), prior).tobytes() == found.tobytes()


@pytest.mark.landing
def test_the_limit_of_rounds_stops_without_convergence() -> None:
    found = bradley_terry(total_order(64), 1e-6)
    assert np.isfinite(found).all()
    with pytest.MonkeyPatch.context() as more:
        more.setattr(pairwise, "MAX_NEWTON_STEPS", MAX_NEWTON_STEPS + 1)
        assert bradley_terry(total_order(64), 1e-6).tobytes() != found.tobytes()


def test_the_same_bits_in_any_layout() -> None:
    wins = np.random.default_rng(3).integers(0, 4, (9, 9)) * (1 - np.eye(9))
    bits = bradley_terry(wins).tobytes()
    assert bradley_terry(np.asfortranarray(wins)).tobytes() == bits
    assert bradley_terry(np.repeat(wins, 2, axis=0)[::2]).tobytes() == bits


@all_rows(
    ("wins", "prior", "message"),
    [
        ([[0.0, 1.0]], 0.1, r"wins has shape \(1, 2\) where \(1, 1\) is needed"),
        (1.0, 0.1, r"wins has shape \(\) where \(0, 0\)"),
        ([[0.0, -1.0], [0.0, 0.0]], 0.1, r"wins\[0, 1\] is -1.0: at least 0"),
        ([[0.0, np.inf], [0.0, 0.0]], 0.1, r"wins\[0, 1\] is inf"),
        (
            [[1.0, 0.0], [0.0, 0.0]],
            0.1,
            "a number on its diagonal: no response is compared with itself",
        ),
        ([[0.0, 1.0], [0.0, 0.0]], 0.0, "prior is 0.0: a number from 1e-06 to 1e\\+06"),
        ([[0.0, 1.0], [0.0, 0.0]], float("nan"), "prior is nan"),
        (
            [[0.0, 1e300], [0.0, 0.0]],
            0.1,
            r"wins holds 1e\+300: 1e\+06 of one over another are the most",
        ),
    ],
)
def test_invalid_win_matrices_are_refused(wins: Any, prior: float, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        bradley_terry(wins, prior)


def test_the_largest_numbers_are_allowed() -> None:
    assert bradley_terry([[0.0, 1e6], [1e6, 0.0]], 1e6).tolist() == [1.0, 1.0]


# LLMBar: the stored verdicts of 65 evaluators on five sets, in both orders (see tests/data/README.md)

with gzip.open(LLMBAR / "verdicts.jsonl.gz", "rt", encoding="utf-8") as lines:
    ENTRIES = [json.loads(line) for line in lines]
with gzip.open(LLMBAR / "statistics.json.gz", "rt", encoding="utf-8") as file:
    STATISTICS = json.load(file)


def preferences_of(entry: dict[str, str]) -> tuple[np.ndarray, ...]:
    """From the side of response 1: what both orders prefer, where both are readable, and whether it is the better."""
    first, second = (
        np.array([winner == "1" for winner in entry[order]], dtype=float)
        for order in ("orig", "swap")
    )
    readable = np.array(
        ["-" not in pair for pair in zip(entry["orig"], entry["swap"], strict=True)]
    )
    return first, second, readable, np.array([label == "1" for label in entry["label"]])


@all_rows("entry", ENTRIES)
def test_llmbars_counts_in_both_orders(entry: dict[str, str]) -> None:
    published = STATISTICS[f"{entry['subset']}|{entry['evaluator']}|{entry['mode']}"]
    first, second, readable, better = preferences_of(entry)
    size = len(better)

    def share(count: int) -> str:
        return f"{count} / {size} = {count / size * 100}%"

    won = outcomes(first[readable], second[readable])
    assert published["correct_both"] == share(int((won == better[readable]).sum()))
    right = [
        sum(a == b for a, b in zip(entry[order], entry["label"], strict=True))
        for order in ("orig", "swap")
    ]
    assert [published["correct_False"], published["correct_True"]] == [
        share(each) for each in right
    ]
    assert published["correct_average"] == f"{sum(right) / 2 / size * 100}%"
    flipped = int(flips(first[readable], second[readable]).sum())
    lost_twice = sum(a == b == "-" for a, b in zip(entry["orig"], entry["swap"], strict=True))
    assert published["equal"] == share(int(readable.sum()) - flipped + lost_twice)
