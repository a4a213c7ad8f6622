"""Length, redundancy and compression of a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.data_optimizer.measures import baseline, brevity, compressed_share, freshness


@pytest.mark.parametrize(("length", "score"), [(1, 1.0), (10, 1.0), (15, 0.75), (20, 0.5), (30, 0.0), (1_000, 0.0)])
def test_a_length_scores_1_up_to_the_baseline_and_0_from_the_limit_on(length: int, score: float) -> None:
    assert brevity(length, 10, 3) == pytest.approx(score)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0.5, 1e6), st.floats(1.001, 100))
def test_more_words_never_raise_the_length_score(a: int, b: int, free: float, limit: float) -> None:
    assert 0.0 <= brevity(max(a, b), free, limit) <= brevity(min(a, b), free, limit) <= 1.0


@pytest.mark.parametrize(
    ("reference", "group", "free"),
    [
        (10, [20, 30], 10),
        (40, [20, 30], 25),
        (0, [20, 30, 90], 30),
        (0, [0, 0, 20], 20),
        (5, [0, 0], 0),
    ],
)
def test_the_baseline_is_the_reference_or_the_median_of_nonempty_responses(
    reference: int, group: list[int], free: float
) -> None:
    assert baseline(reference, group) == free


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("", 0.0),
        ("One thing is said here. Another thing is told there.", 1.0),
        ("It is so.\nIt is so.", 0.5),
        ("It is so! IT  IS  SO!", 0.5),
        ("a b c d e f g h i j.\na b c d e f g h i j k.", 11 / 23),
        ("a b c d e f.\na b x d e f.", 1.0),
        ("no " * 400, 0.1),
    ],
)
def test_repeated_content_is_redundant(text: str, score: float) -> None:
    assert freshness(text) == pytest.approx(score)


@given(st.text(alphabet="ab .\n", max_size=200))
def test_repetition_never_raises_freshness(text: str) -> None:
    assert 0.0 <= freshness(text) <= 1.0
    twice = freshness(f"{text}\n{text}")
    assert twice <= 0.5 + 1e-9
    assert twice <= freshness(text) + 1e-9


def test_compression_is_that_of_lz78_by_hand() -> None:
    # a|aa|aaa|aaaa: four phrases, whose numbers take 1, 2, 2 and 3 bits, and 8 for each letter
    assert compressed_share("a" * 10) == (1 + 2 + 2 + 3 + 4 * 8) / 80
    # a|b|ab|ba|bb: five phrases; one more letter is a rest, which takes the number of a phrase
    assert compressed_share("ababbabb") == (1 + 2 + 2 + 3 + 3 + 5 * 8) / 64
    assert compressed_share("ababbabba") == (1 + 2 + 2 + 3 + 3 + 5 * 8 + 3) / 72
    # 300 signs are told apart by 9 bits each
    signs = "".join(map(chr, range(0x4E00, 0x4E00 + 300)))
    assert compressed_share(signs) == sum(number.bit_length() + 9 for number in range(1, 301)) / (300 * 9)
