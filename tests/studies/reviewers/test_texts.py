"""Texts of items and reasons by any embedder, and reasons against the agreement of reviewers."""

from collections.abc import Sequence

import numpy as np
import pytest

from jurygraph.arrays import Floats
from jurygraph.errors import InputError
from jurygraph.models.embedding import Embedder
from jurygraph.models.request import Fault
from jurygraph.studies.reviewers.baselines import predict, read_parts
from jurygraph.studies.reviewers.report import report
from jurygraph.studies.reviewers.texts import EmbeddedTexts
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
        return np.array([[text[0] == "a", text[0] == "b", 0.5] for text in texts], dtype=np.float64) / np.sqrt(1.25)


def test_neighbours_by_an_embedder_embed_each_text_once() -> None:
    texts = {"i": "a one", "j": "a two", "k": "b three", "l": "b four", "m": "a two"}
    rows = [
        {"item": item, "reviewer": who, "score": score}
        for item, score in zip("ijklm", range(5), strict=True)
        for who in "xy"
    ]
    embedder = ByFirstLetter()
    vectorize = EmbeddedTexts(embedder)
    (part,) = read_parts(to_ratings(rows))
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
    parts = read_parts(to_ratings(argued_rows(is_planted)))
    judged = [(part, list(predict(part, ["item-mean"], (), 1, {}))) for part in parts]
    (found,) = figures_of(report(judged)).reasons
    assert (found.reasons_of, found.pairs) == ("the reviewers", 45)
    assert (found.p < 0.02, found.correlation > 0.9) == (is_planted, is_planted)
