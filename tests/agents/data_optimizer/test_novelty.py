"""Novelty of a response within its group."""

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.data_optimizer.measures import MeasuredGroup

WORDS = ("tea", "sea", "stone", "on", "the", "a")
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
GROUPS = st.lists(TEXT, min_size=2, max_size=5)


def diversity_parts(texts: list[str], *task: str) -> list[list[float]]:
    group = MeasuredGroup(texts, task)
    return [group.distinct_ngram_shares(), group.self_bleu_novelty()]


def test_distinct_is_the_share_of_n_grams_that_no_other_has_by_hand() -> None:
    group = MeasuredGroup(["the tea on the stone", "the tea on the sea"], ["stone sea"])
    # n=1: stone of {the tea on stone}; n=2: the-stone of 4; n=3: on-the-stone of 3
    assert group.distinct_ngram_shares() == pytest.approx([(1 / 4 + 1 / 4 + 1 / 3) / 3] * 2)


def test_self_bleu_by_hand() -> None:
    group = MeasuredGroup(["a b c d e", "a b c d f"], ["e f"])
    # 4 of 5 words; then (3+1)/(4+1), (2+1)/(3+1), (1+1)/(2+1)
    bleu = sqrt(sqrt(4 / 5 * 4 / 5 * 3 / 4 * 2 / 3))
    assert group.self_bleu_novelty() == pytest.approx([1 - bleu] * 2)


def test_a_sequence_counts_once_by_hand() -> None:
    group = MeasuredGroup(["on tea sea tea sea on", "tea sea stone", "stone on tea"], ["on"])
    # tea-sea comes again: on-tea-sea and on are left; 3 of 3 words, 2 of 2 pairs, on-tea-sea of nobody else
    bleu = sqrt(sqrt(3 / 3 * 3 / 3 * 1 / 2 * 1 / 1))
    assert group.self_bleu_novelty()[0] == pytest.approx(1 - bleu)
    assert group.distinct_ngram_shares()[0] == pytest.approx((0 + 0 + 1) / 3)


@given(GROUPS, st.integers(2, 5), st.data())
def test_a_copy_that_is_repeated_is_a_copy(texts: list[str], times: int, data: st.DataObject) -> None:
    copied = "\n".join([data.draw(st.sampled_from(texts))] * times)
    for part in diversity_parts([*texts, copied]):
        assert part[-1] == 0.0
    assert MeasuredGroup([*texts, copied]).copies()[-1]


@given(GROUPS, st.sampled_from([" , ", " . ", " = $ + ", "! ", "_", "\u3164", " \u200b"]), st.data())
def test_a_copy_with_signs_between_its_words_is_a_copy(texts: list[str], sign: str, data: st.DataObject) -> None:
    copied = sign.join(data.draw(st.sampled_from(texts)).split())
    group = MeasuredGroup([*texts, copied])
    assert (group.distinct_ngram_shares()[-1], group.self_bleu_novelty()[-1], group.copies()[-1]) == (0.0, 0.0, True)


@pytest.mark.parametrize("signs", [". " * 300, "$ = $ + $ - " * 8, ", . " * 50])
def test_signs_are_no_known_words(signs: str) -> None:
    group = MeasuredGroup([f"q {signs}", "tea, on = the $ stone. Sea + - tea."], ["Where, . = $ + - is the tea?"])
    assert (group.known_share[0], group.distinct_ngram_shares()[0], group.self_bleu_novelty()[0]) == (0.0, 0.0, 0.0)


@given(GROUPS, st.data())
def test_a_copy_with_noise_in_it_is_a_copy(texts: list[str], data: st.DataObject) -> None:
    copied = data.draw(st.sampled_from(texts)).split()
    noise = data.draw(st.lists(st.sampled_from(["xq1", "zz7", "vlk"]), max_size=4, unique=True))
    for word in noise:
        copied.insert(data.draw(st.integers(0, len(copied))), word)
    for part in diversity_parts([*texts, " ".join(copied)]):
        assert part[-1] == 0.0


@given(GROUPS, st.lists(st.text(alphabet="qxzj", min_size=7, max_size=9), min_size=1, max_size=30, unique=True))
def test_gibberish_is_not_new(texts: list[str], noise: list[str]) -> None:
    for part in diversity_parts([*texts, " ".join(noise)]):
        assert part[-1] == 0.0


@given(GROUPS, st.randoms())
def test_every_part_lies_in_its_range_and_the_order_changes_nothing(texts: list[str], random: object) -> None:
    order = list(range(len(texts)))
    random.shuffle(order)  # type: ignore[attr-defined]
    for part, turned in zip(diversity_parts(texts), diversity_parts([texts[place] for place in order]), strict=True):
        assert all(0.0 <= score <= 1.0 for score in part)
        assert [part[place] for place in order] == turned
