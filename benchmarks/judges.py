"""Judges: ranking a group by its pairs, and looking among a reviewer's ratings for what gives a response away."""

from difflib import SequenceMatcher
from random import Random

import numpy as np

from benchmarks.figure import Figure, at_least, best_of
from jurygraph.aggregation.pairwise import bradley_terry
from jurygraph.arrays import Floats
from jurygraph.judges.examples import NormalizedText

GROUP, PRIOR, CLOSE = 16, 0.1, 1e-11
TEXTS, WORDS = 200, 120


def measure() -> list[Figure]:
    """Ratios to a plain version that gives the same, in the same run, and what one call takes."""
    return [*_ranking(), *_near_duplicates()]


def _ranking() -> list[Figure]:
    # a clear order, of which the MM algorithm takes longest
    wins = np.tril(np.ones((GROUP, GROUP)), -1)
    np.testing.assert_allclose(bradley_terry(wins, PRIOR), _mm(wins, PRIOR), rtol=1e-6)
    ours = best_of(lambda: bradley_terry(wins, PRIOR), repeat=10, number=20)
    plain = best_of(lambda: _mm(wins, PRIOR), repeat=3, number=1)
    return [
        at_least(
            f"bradley_terry, {GROUP} in a clear order, against plain MM", plain / ours, "times", 2.0
        ),
        Figure(f"bradley_terry, {GROUP} responses", ours * 1e3, "ms a group"),
    ]


def _mm(wins: Floats, prior: float) -> Floats:
    """The mode by minorization and maximization (Hunter 2004; Caron & Doucet 2012), as choix's `mm_pairwise` does."""
    compared, gained, strength, moved = (
        wins + wins.T,
        wins.sum(axis=1) + prior,
        np.ones(len(wins)),
        np.inf,
    )
    while moved > CLOSE:
        raised = gained / ((compared / (strength[:, None] + strength)).sum(axis=1) + prior)
        raised /= raised.mean()
        moved, strength = float(np.max(np.abs(raised - strength) / strength)), raised
    return strength


def _near_duplicates() -> list[Figure]:
    drawn = Random(0)
    known = ["".join(drawn.choices("abcdefghij ", k=WORDS * 6)) for _ in range(TEXTS)]
    judged = known[0].upper()
    folded, own = [NormalizedText(text) for text in known], NormalizedText(judged)
    assert [one.is_near_duplicate_of(own) for one in folded] == [True, *[False] * (TEXTS - 1)]
    ours = best_of(
        lambda: [NormalizedText(text).is_near_duplicate_of(own) for text in known],
        repeat=5,
        number=1,
    )
    plain = best_of(lambda: [_ratio(text, judged) for text in known[:10]], repeat=3, number=1)
    return [
        at_least(
            "near-duplicates against difflib's ratio", plain / 10 / (ours / TEXTS), "times", 5.0
        ),
        Figure(
            f"near-duplicates, texts of {WORDS * 6} characters", ours / TEXTS * 1e6, "µs a text"
        ),
    ]


def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, one.lower(), other.lower(), autojunk=False).ratio()
