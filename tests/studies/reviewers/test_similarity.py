"""Similar texts: of items and of reasons."""

from collections.abc import Sequence

import numpy as np
import pytest

from jurygraph.arrays import Floats
from jurygraph.errors import InputError
from jurygraph.models.embedding import Embedder
from jurygraph.models.request import Fault
from jurygraph.studies.agreement import read_parts
from jurygraph.studies.reasons import EmbeddedTexts, mantel, match_reasons, tf_idf
from jurygraph.studies.reviewers import predict, report
from tests.studies.figures import figures_of
from tests.studies.reviewers.test_baselines import Row, to_ratings

WORDS = {"strict": ("wrong", "vague", "thin", "dull"), "kind": ("warm", "clear", "rich", "bright")}


class ByFirstLetter(Embedder):
    """Texts are similar if they begin alike."""

    name = "letters"
    version = "1"

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Floats:
        if "fail" in texts:
            raise Fault("unreachable", "letters: is not there")
        self.seen += texts
        return np.array(
            [[text[0] == "a", text[0] == "b", 0.5] for text in texts], dtype=np.float64
        ) / np.sqrt(1.25)


def test_neighbours_by_an_embedder_embed_each_text_once() -> None:
    texts = {"i": "a one", "j": "a two", "k": "b three", "l": "b four", "m": "a two"}
    rows = [
        {"item": item, "reviewer": who, "score": score}
        for item, score in zip("ijklm", range(5), strict=True)
        for who in "xy"
    ]
    embedder = ByFirstLetter()
    vectorize = EmbeddedTexts(embedder)
    (part,) = read_parts([to_ratings(rows)])
    for _ in range(2):
        (nearest,) = predict(part, ["neighbours"], [3], 1, texts, vectorize)
    assert sorted(embedder.seen) == sorted(set(texts.values()))
    # A cosine of 1 is a repetition, so that only texts with the other letter are left.
    np.testing.assert_array_equal(nearest.values[0][:5], [2.5, 2.5, 5 / 3, 5 / 3, 2.5])
    with pytest.raises(InputError, match="--embedder: letters: is not there"):
        vectorize(["fail"])


def argued_rows(does_style_follow_scores: bool) -> list[Row]:
    """Strict and kind reviewers rate 20 items; the words of their reasons are those of their kind, or anybody's."""
    rng = np.random.default_rng(3)
    kinds = ["strict", "kind"] * 5
    styles = kinds if does_style_follow_scores else rng.permutation(kinds).tolist()
    return [
        {
            "item": f"i{item}",
            "reviewer": f"r{who}",
            "score": float((kinds[who] == "kind") * 2 + rng.integers(0, 2)),
            "reason": " ".join(rng.choice(WORDS[styles[who]], 3)),
        }
        for item in range(20)
        for who in range(10)
    ]


@pytest.mark.parametrize("is_planted", [True, False])
def test_those_who_agree_argue_alike_only_where_it_is_so(is_planted: bool) -> None:
    parts = read_parts([to_ratings(argued_rows(is_planted))])
    judged = [(part, list(predict(part, ["item-mean"], (), 1, {}))) for part in parts]
    (found,) = figures_of(report(judged)).reasons
    assert (found.reasons_of, found.pairs) == ("the reviewers", 45)
    assert (found.p < 0.02, found.correlation > 0.9) == (is_planted, is_planted)


def symmetric(values: Floats) -> Floats:
    return np.asarray(values + values.T)


@pytest.mark.parametrize(
    ("runs", "rejected", "below_half"),
    [
        (60, (0, 8), (20, 40)),
        pytest.param(200, (2, 18), (82, 118), marks=pytest.mark.exhaustive),
    ],
)
def test_p_is_uniform_without_a_relation_and_small_with_one(
    runs: int,
    rejected: tuple[int, int],
    below_half: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """5 % and half of the runs are expected, within 99 % of a binomial distribution.

    Members differ in both matrices, as strict and terse reviewers do, so that pairs are far from independent.
    """
    monkeypatch.setattr("jurygraph.studies.reasons.PERMUTATION_COUNT", 99)
    rng = np.random.default_rng(0)
    without = []
    planted = []
    for seed in range(runs):
        first, second = (
            np.add.outer(*[rng.normal(size=12)] * 2) + symmetric(rng.normal(size=(12, 12)))
            for _ in "ab"
        )
        second[0, 1] = second[1, 0] = np.nan
        found = mantel(first, second, seed)
        assert found.pairs == 65
        without.append(found.p)
        if seed < runs // 4:
            planted.append(mantel(first, second + first, seed).p)
    p = np.array(without, dtype=np.float64)
    assert rejected[0] <= (p <= 0.05).sum() <= rejected[1]
    assert below_half[0] <= (p <= 0.5).sum() <= below_half[1]
    assert (np.array(planted) <= 0.05).mean() > 0.9


def test_what_cannot_be_correlated_has_no_p() -> None:
    same = np.ones((5, 5))
    assert mantel(same, np.arange(25.0).reshape(5, 5))[1:] == (None, None)
    assert mantel(np.eye(2), np.eye(2)) == (1, None, None)
    sparse = np.full((40, 40), np.nan)
    sparse[:4, :4] = np.random.default_rng(0).normal(size=(4, 4))
    found = mantel(sparse, sparse)
    assert (found.pairs, found.p) == (6, None)


def test_a_judges_reasons_are_compared_with_the_persons_own_and_with_others() -> None:
    """Whoever copies the person's words is like the person; whoever copies another's is like the others."""
    own = [
        f"{WORDS[kind][place % 4]} {place}" for kind in ("strict", "kind") for place in range(12)
    ]
    reviewer = np.repeat([0, 1], 12)
    item = np.tile(np.arange(12), 2)
    other = own[12:] + own[:12]
    for reasons, sign in ((own, 1.0), (other, -1.0)):
        match = match_reasons(reviewer, item, own, reasons, tf_idf)
        assert match.cells == 24
        assert match.difference is not None
        assert match.difference.value * sign > 0.4
        assert match.own - match.others == pytest.approx(match.difference.value)
    nobody_else = match_reasons(reviewer, np.arange(24), own, own, tf_idf)
    assert nobody_else.cells == 0
