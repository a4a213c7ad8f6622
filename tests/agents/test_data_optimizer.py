"""Words, conciseness, novelty, and the evaluators of them."""

import re
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph import Jury, Response, Task, Trace, Verdict
from jurygraph.agents.data_optimizer import (
    MAX_WORD_LENGTH,
    GroupDiversity,
    compressed_share,
    compute_unpenalised_word_count,
    length_score,
    unrepeated_share,
    words,
)
from jurygraph.conformance import check_evaluator
from jurygraph.safety.gates import remove_invisible
from jurygraph.sources import read_tasks
from tests.rows import all_rows


@all_rows(
    ("text", "found"),
    [
        ("", []),
        (" \n\t", []),
        ("The Cat's mat.", ["the", "cat", "'", "s", "mat", "."]),
        ("17 + 25=42", ["17", "+", "25", "=", "42"]),
        ("今天 tea", ["今", "天", "tea"]),
        ("STRASSE straße", ["strasse", "strasse"]),
        ("naïve Ältere", ["naïve", "ältere"]),
        ("--->", ["--->"]),
    ],
)
def test_words_are_letters_signs_and_what_is_written_without_blanks(
    text: str, found: list[str]
) -> None:
    assert words(text) == found


PROSE = "the quick brown fox jumps over the lazy dog and then it goes home to sleep until morning comes again"


@pytest.mark.parametrize("joint", ["_", "__", "\u3164", "\u2800", "\uffa0", " \u200b", "\u115f"])
def test_space_like_characters_separate_words(joint: str) -> None:
    assert words(PROSE.replace(" ", joint)) == PROSE.split()


@pytest.mark.parametrize("joint", ["", "\u200b", "\u2060", "\u00ad"])
def test_joining_words_does_not_shorten_a_text(joint: str) -> None:
    assert len(words(PROSE.replace(" ", joint))) == 17
    assert len(words("!" * 100)) == 20


def test_a_word_of_15_signs_is_one() -> None:
    assert words("responsibilitys") == ["responsibilitys"]
    assert words("responsibilities") == ["respo", "nsibi", "litie", "s"]


@given(st.text())
def test_every_visible_sign_is_in_a_word(text: str) -> None:
    seen = re.sub("[_\u115f\u1160\u2800\u3164\uffa0]", " ", text)
    assert "".join(words(text)) == "".join(remove_invisible(seen).casefold().split())
    assert all(1 <= len(word) <= MAX_WORD_LENGTH for word in words(text))


@pytest.mark.parametrize(
    ("length", "score"), [(1, 1.0), (10, 1.0), (15, 0.75), (20, 0.5), (30, 0.0), (1_000, 0.0)]
)
def test_a_length_scores_1_up_to_the_baseline_and_0_from_the_limit_on(
    length: int, score: float
) -> None:
    assert length_score(length, 10, 3) == pytest.approx(score)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0.5, 1e6), st.floats(1.001, 100))
def test_more_words_never_raise_the_length_score(a: int, b: int, free: float, limit: float) -> None:
    assert (
        0.0 <= length_score(max(a, b), free, limit) <= length_score(min(a, b), free, limit) <= 1.0
    )


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
def test_the_free_length_is_the_reference_or_the_median_of_nonempty_responses(
    reference: int, group: list[int], free: float
) -> None:
    assert compute_unpenalised_word_count(reference, group) == free


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
    assert unrepeated_share(text) == pytest.approx(score)


@given(st.text(alphabet="ab .\n", max_size=200))
def test_repetition_never_raises_freshness(text: str) -> None:
    assert 0.0 <= unrepeated_share(text) <= 1.0
    twice = unrepeated_share(f"{text}\n{text}")
    assert twice <= 0.5 + 1e-9
    assert twice <= unrepeated_share(text) + 1e-9


def test_compression_is_that_of_lz78_by_hand() -> None:
    # a|aa|aaa|aaaa: four phrases, whose numbers take 1, 2, 2 and 3 bits, and 8 for each letter
    assert compressed_share("a" * 10) == (1 + 2 + 2 + 3 + 4 * 8) / 80
    # a|b|ab|ba|bb: five phrases; one more letter is a rest, which takes the number of a phrase
    assert compressed_share("ababbabb") == (1 + 2 + 2 + 3 + 3 + 5 * 8) / 64
    assert compressed_share("ababbabba") == (1 + 2 + 2 + 3 + 3 + 5 * 8 + 3) / 72
    # 300 signs are told apart by 9 bits each
    signs = "".join(map(chr, range(0x4E00, 0x4E00 + 300)))
    assert compressed_share(signs) == sum(number.bit_length() + 9 for number in range(1, 301)) / (
        300 * 9
    )


WORDS = ("tea", "sea", "stone", "on", "the", "a")
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
GROUPS = st.lists(TEXT, min_size=2, max_size=5)


def diversity_parts(texts: list[str], *task: str) -> list[list[float]]:
    group = GroupDiversity(texts, task)
    return [group.distinct_ngram_shares(), group.self_bleu_novelty()]


def test_distinct_is_the_share_of_n_grams_that_no_other_has_by_hand() -> None:
    group = GroupDiversity(["the tea on the stone", "the tea on the sea"], ["stone sea"])
    # n=1: stone of {the tea on stone}; n=2: the-stone of 4; n=3: on-the-stone of 3
    assert group.distinct_ngram_shares() == pytest.approx([(1 / 4 + 1 / 4 + 1 / 3) / 3] * 2)


def test_self_bleu_by_hand() -> None:
    group = GroupDiversity(["a b c d e", "a b c d f"], ["e f"])
    # 4 of 5 words; then (3+1)/(4+1), (2+1)/(3+1), (1+1)/(2+1)
    bleu = sqrt(sqrt(4 / 5 * 4 / 5 * 3 / 4 * 2 / 3))
    assert group.self_bleu_novelty() == pytest.approx([1 - bleu] * 2)


def test_a_sequence_counts_once_by_hand() -> None:
    group = GroupDiversity(["on tea sea tea sea on", "tea sea stone", "stone on tea"], ["on"])
    # tea-sea comes again: on-tea-sea and on are left; 3 of 3 words, 2 of 2 pairs, on-tea-sea of nobody else
    bleu = sqrt(sqrt(3 / 3 * 3 / 3 * 1 / 2 * 1 / 1))
    assert group.self_bleu_novelty()[0] == pytest.approx(1 - bleu)
    assert group.distinct_ngram_shares()[0] == pytest.approx((0 + 0 + 1) / 3)


@given(GROUPS, st.integers(2, 5), st.data())
def test_a_copy_that_is_repeated_is_a_copy(
    texts: list[str], times: int, data: st.DataObject
) -> None:
    copied = "\n".join([data.draw(st.sampled_from(texts))] * times)
    for part in diversity_parts([*texts, copied]):
        assert part[-1] == 0.0


@given(
    GROUPS, st.sampled_from([" , ", " . ", " = $ + ", "! ", "_", "\u3164", " \u200b"]), st.data()
)
def test_a_copy_with_signs_between_its_words_is_a_copy(
    texts: list[str], sign: str, data: st.DataObject
) -> None:
    copied = sign.join(data.draw(st.sampled_from(texts)).split())
    group = GroupDiversity([*texts, copied])
    assert (group.distinct_ngram_shares()[-1], group.self_bleu_novelty()[-1]) == (0.0, 0.0)


@pytest.mark.parametrize("signs", [". " * 300, "$ = $ + $ - " * 8, ", . " * 50])
def test_signs_are_no_known_words(signs: str) -> None:
    group = GroupDiversity(
        [f"q {signs}", "tea, on = the $ stone. Sea + - tea."], ["Where, . = $ + - is the tea?"]
    )
    assert (
        group.known_share[0],
        group.distinct_ngram_shares()[0],
        group.self_bleu_novelty()[0],
    ) == (0.0, 0.0, 0.0)


@given(GROUPS, st.data())
def test_a_copy_with_noise_in_it_is_a_copy(texts: list[str], data: st.DataObject) -> None:
    copied = data.draw(st.sampled_from(texts)).split()
    noise = data.draw(st.lists(st.sampled_from(["xq1", "zz7", "vlk"]), max_size=4, unique=True))
    for word in noise:
        copied.insert(data.draw(st.integers(0, len(copied))), word)
    for part in diversity_parts([*texts, " ".join(copied)]):
        assert part[-1] == 0.0


@given(
    GROUPS,
    st.lists(
        st.text(alphabet="qxzj", min_size=7, max_size=9), min_size=1, max_size=30, unique=True
    ),
)
def test_gibberish_is_not_new(texts: list[str], noise: list[str]) -> None:
    for part in diversity_parts([*texts, " ".join(noise)]):
        assert part[-1] == 0.0


@given(GROUPS, st.randoms())
def test_every_part_lies_in_its_range_and_the_order_changes_nothing(
    texts: list[str], random: object
) -> None:
    order = list(range(len(texts)))
    random.shuffle(order)  # type: ignore[attr-defined]
    for part, turned in zip(
        diversity_parts(texts), diversity_parts([texts[place] for place in order]), strict=True
    ):
        assert all(0.0 <= score <= 1.0 for score in part)
        assert [part[place] for place in order] == turned


SOLUTIONS = Path(__file__).parents[1] / "data" / "gsm8k_solutions.jsonl.gz"
SUM = Task(
    id="sum", query="What is 17 + 25, and why?", reference="17 + 25 = 42 because 7 + 5 is 12."
)
FIRST = "17 + 25 = 42 because 7 + 5 is 12 and 10 + 20 is 30."
OTHER = "42: add 5 to 17 and it is 22, then 20 to 22."


def score_texts(use: Any, texts: dict[str, str], task: Task = SUM) -> dict[str, Trace]:
    with Jury.from_config({"evaluators": [use]}) as jury:
        traces = jury.score(task, [Response(id=name, text=text) for name, text in texts.items()])
    return {trace.response_id: trace for trace in traces}


def verdict(trace: Trace, subject: str) -> Verdict:
    return next(one for one in trace.verdicts if one.subject == subject)


@pytest.mark.parametrize("name", ["optimizer.efficiency", "optimizer.diversity"])
def test_both_conform(name: str) -> None:
    assert check_evaluator(name, read_tasks(SOLUTIONS)[:3]) > 3


def test_each_part_shows_in_the_component() -> None:
    efficiency = score_texts("optimizer.efficiency", {"a": FIRST, "b": OTHER})["a"].reward.parts[
        "efficiency"
    ]
    assert efficiency.keys() == {"length", "redundancy", "compression"}
    diversity = score_texts("optimizer.diversity", {"a": FIRST, "b": OTHER})["a"].reward.parts[
        "diversity"
    ]
    assert diversity.keys() == {"distinct", "self-bleu"}


class TestEfficiency:
    def test_length_is_against_the_reference_and_the_group(self) -> None:
        traces = score_texts(
            "optimizer.efficiency", {"short": "It is 42.", "long": FIRST * 4, "usual": FIRST}
        )
        score = {name: verdict(trace, "length").score for name, trace in traces.items()}
        assert score["short"] == 1.0
        assert 0.0 < (score["usual"] or 0.0) < 1.0
        assert score["long"] == 0.0
        assert verdict(traces["short"], "length").reason == "4 words, where 12 cost nothing"

    def test_a_single_response_has_no_length_and_keeps_the_other_parts(self) -> None:
        (trace,) = score_texts("optimizer.efficiency", {"a": FIRST}).values()
        assert verdict(trace, "length").status == "not_applicable"
        assert [verdict(trace, part).score for part in ("redundancy", "compression")] == [1.0, 1.0]
        assert trace.reward.value == 1.0

    @pytest.mark.parametrize("text", ["x" * 199, "ha " * 60])
    def test_a_short_text_is_not_found_redundant_by_compression(self, text: str) -> None:
        compression = verdict(score_texts("optimizer.efficiency", {"a": text})["a"], "compression")
        assert (compression.score, compression.reason) == (
            1.0,
            f"{len(text)} characters are too few to tell",
        )

    @pytest.mark.parametrize("text", ["", " \n", "...", "= = ="])
    def test_an_empty_response_scores_0(self, text: str) -> None:
        trace = score_texts("optimizer.efficiency", {"nothing": text, "a": FIRST})["nothing"]
        assert [one.score for one in trace.verdicts] == [0.0, 0.0, 0.0]


class TestDiversity:
    def test_a_copy_scores_0_and_a_paraphrase_more(self) -> None:
        traces = score_texts("optimizer.diversity", {"a": FIRST, "copy": FIRST, "other": OTHER})
        assert [traces[name].reward.value for name in ("a", "copy")] == [0.0, 0.0]
        assert (traces["other"].reward.value or 0.0) > 0.3
