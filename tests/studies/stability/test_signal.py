"""Signals of groups: SNR without the noise in it, how many variants mend a sign, and decisions that flip."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.errors import InputError
from jurygraph.studies.presentations import Presentations, PresentationScore
from jurygraph.studies.reward_noise import needed_snr, observed_snr, sign_correctness
from jurygraph.studies.stability import measure_signal_to_noise
from tests.studies.figures import Figures, figures_of


@given(st.floats(0.51, 0.999), st.integers(2, 64))
def test_the_needed_snr_is_the_inverse_of_proposition_2(probability: float, group: int) -> None:
    assert sign_correctness(needed_snr(probability, group), group) == pytest.approx(probability)
    assert sign_correctness(0.0, group) == 0.5


def test_the_noise_in_the_observed_rewards_is_taken_out() -> None:
    """On average over draws, the difference is the signal's variance; one draw may show none."""
    rng = np.random.default_rng(5)
    true = np.array([2.0, 4.0, 6.0, 8.0])
    observed = true + rng.normal(0.0, 0.5, (4000, 4))
    assert np.mean([observed_snr(row, 0.25) for row in observed]) == pytest.approx(
        true.var() / 0.25, rel=0.01
    )
    assert observed_snr(np.array([1.0, 1.1]), 1.0) == 0.0
    assert (observed_snr(true, 0.0), observed_snr(np.ones(3), 0.0)) == (math.inf, 0.0)


def row(seed: str, family: str, score: float, version: int = 0, **fields: Any) -> PresentationScore:
    common: dict[str, Any] = {"stakeholders": 2, "task": "trip"}
    return PresentationScore(
        seed=seed, family=family, score=score, version=version, **common | fields
    )


def signal_of(*rows: PresentationScore, **choice: Any) -> Figures:
    return figures_of(measure_signal_to_noise(Presentations(sources=("run",), rows=rows), **choice))


ROWS = (
    row("a", "original", 5.0), row("a", "order", 4.5, 0), row("a", "order", 5.5, 1),
    row("b", "original", 7.0), row("b", "order", 6.5, 0), row("b", "order", 7.5, 1),
    row("c", "original", 1.0, task="other"), row("d", "original", 1.2, task="other"),
)  # fmt: skip


def test_a_group_has_its_snr_and_the_number_of_variants_that_mends_it() -> None:
    found = signal_of(*ROWS, correct=0.999, cut=5.2)
    trip, other = found.groups
    assert (trip.group, trip.noise, trip.snr) == (2, 0.5, pytest.approx((1.0 - 0.25) / 0.5))
    assert trip.sign_correct == pytest.approx(sign_correctness(1.5, 2))
    assert trip.variants == math.ceil(needed_snr(0.999, 2) / 1.5)
    assert sign_correctness(1.5 * trip.variants, 2) >= 0.999
    assert (other.has_own_noise, other.noise, other.snr, other.variants) == (False, 0.5, 0.0, None)
    together = found.together.SNR  # mean variances of rewards (2 + .02) / 2, of wordings .5
    assert (together.value, together.low) == (pytest.approx((1.01 / 0.5 - 1.0) / 2), None)
    assert [(flip.seed, flip.flips) for flip in found.flips] == [("a", 0.5), ("b", 0.0)]
    assert found.flips[0].variants == math.ceil(1.6448536**2 * 0.5 / 0.2**2)


def test_terms_are_those_of_the_variants_whose_judge_gives_weights() -> None:
    rows = [
        row("a", "order", 8.0 - 6.0 * w, place, weights={"x": w, "y": 1.0 - w}, utilities={"x": 2.0, "y": 8.0})
        for place, w in enumerate((0.5, 0.6, 0.4))
    ]  # fmt: skip
    (terms,) = signal_of(*rows, row("b", "original", 3.0)).terms
    assert (terms.estimation, terms.cross) == (0.0, 0.0)
    assert terms.shared == pytest.approx(0.0, abs=1e-15)
    assert terms.aggregation == pytest.approx(0.01 * 36.0)
    assert terms.exchangeable == pytest.approx(terms.aggregation) == terms.variance


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(InputError, match="no task has two responses"):
        signal_of(*ROWS[:3])
    with pytest.raises(InputError, match="no response has two scored variants"):
        signal_of(*ROWS[-2:])
    with pytest.raises(InputError, match="no score is of 'scroe'; did you mean score"):
        signal_of(*ROWS, protocol="scroe")
