"""Two texts are near if one would reveal the other."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.judges.examples import is_near_duplicate

PLAN = (
    "We walk along the harbour in the morning and take the small ferry across to the island before noon. "
    "After lunch near the old lighthouse there is time for the museum of boats, and in the evening a train goes back."
)
OTHER = (
    "To multiply two fractions, first multiply their numerators, then their denominators, and shorten the result as "
    "far as it goes; a number without a fraction is written over one before anything else is done to it."
)
CHINESE = "上午我们沿着海港散步，中午以前坐小渡船到岛上。午饭以后在旧灯塔旁边参观船舶博物馆，晚上坐火车回家。"
OTHER_CHINESE = (
    "两个分数相乘，先把分子相乘，再把分母相乘，最后把结果约分。整数可以写成分母为一的分数。"
)

texts = st.text(string.ascii_letters + string.digits + " ,.\n'-éßüØ解说灯", max_size=80)
few_words = st.lists(
    st.text(string.ascii_lowercase, min_size=1, max_size=7), min_size=1, max_size=12
)

FULL_WIDTH = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(33, 127)})


@given(texts)
def test_a_text_is_near_itself(text: str) -> None:
    assert is_near_duplicate(text, text)
    assert is_near_duplicate(text, text + " ")


@given(texts, texts)
def test_nearness_is_symmetric(one: str, other: str) -> None:
    assert is_near_duplicate(one, other) == is_near_duplicate(other, one)


@given(few_words, few_words, st.sampled_from(["\n", "  ", ", ", " - ", "; "]))
def test_case_space_punctuation_and_width_change_nothing(
    one: list[str], other: list[str], between: str
) -> None:
    plain, changed = " ".join(one), f"«{between.join(one).upper().translate(FULL_WIDTH)}!»"
    assert is_near_duplicate(plain, changed)
    assert is_near_duplicate(changed, " ".join(other)) == is_near_duplicate(plain, " ".join(other))


def test_a_text_is_near_one_that_quotes_it_in_any_context() -> None:
    assert is_near_duplicate(PLAN, f"{OTHER * 20} {PLAN} {OTHER * 20}")


def test_different_texts_are_not_near() -> None:
    assert not is_near_duplicate(PLAN, OTHER)
    assert not is_near_duplicate(CHINESE, OTHER_CHINESE)
    assert not is_near_duplicate(PLAN, CHINESE)
    assert not is_near_duplicate(PLAN, "")


def test_sixty_percent_of_shared_ngrams_make_texts_near() -> None:
    # ten runs, of which the other text has some
    shared = [f"{letter * 6}" for letter in "abcdefghijkl"]
    other = "wwww xxxx yyyy zzzz qqqq rrrr ssss tttt uuuu vvvv pppp oooo nnnn mmmm"
    assert is_near_duplicate(" ".join(shared), f"{' '.join(shared[:8])} {other}")
    assert not is_near_duplicate(" ".join(shared), f"{' '.join(shared[:7])} {other}")


def test_texts_under_eight_words_are_compared_by_letters() -> None:
    seven = "one two three four five six seven"
    assert not is_near_duplicate(seven.replace("four", "for"), f"{seven} {OTHER}")
    assert is_near_duplicate(f"{seven} eight".replace("one", "on"), f"{seven} eight {OTHER}")
    assert is_near_duplicate(seven, seven.replace("one", "on"))
    assert not is_near_duplicate("yes", "no")


def test_a_text_of_twelve_letters_is_near_any_text_that_contains_it() -> None:
    for short in (
        "Paris, in France",
        "abcd efgh ijkl",
        "The answer is 42.",
        "上午我们沿着海港散步中午",
    ):
        assert is_near_duplicate(short, f"{OTHER} {short.upper()}! {OTHER * 20}")
        assert is_near_duplicate(f"{PLAN} {short} {PLAN}", short)
        assert not is_near_duplicate(short, OTHER)


def test_a_text_of_eleven_letters_may_occur_in_another() -> None:
    for short in ("abcd efgh ijk", "yes", "42", ""):
        assert not is_near_duplicate(short, f"{OTHER} {short} {OTHER}")
        assert is_near_duplicate(short, f"{short}!")


@pytest.mark.parametrize("greek", [False, True])
def test_letters_that_look_like_latin_ones_count_as_these(greek: bool) -> None:
    pairs = (
        "ABEHIKMNOPTXYZ",
        "\u0391\u0392\u0395\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a7\u03a5\u0396",
    )
    if not greek:
        pairs = (
            "ABCEHIJKMOPSTXY",
            "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0405\u0422\u0425\u0423",
        )
    disguised = PLAN.upper().translate(str.maketrans(*pairs))
    assert disguised != PLAN.upper()
    assert is_near_duplicate(disguised, PLAN)
    assert is_near_duplicate(f"{OTHER} {disguised}", PLAN)
    small = PLAN.translate(str.maketrans("aeopcyx", "\u0430\u0435\u043e\u0440\u0441\u0443\u0445"))
    assert is_near_duplicate(small[:40], PLAN)


def test_scripts_without_spaces_are_compared_by_runs_of_letters() -> None:
    first, second = CHINESE.split("。")[:2]
    assert is_near_duplicate(f"{second}，{first}！好。", CHINESE)
    assert is_near_duplicate(CHINESE, f"{OTHER_CHINESE * 5}{CHINESE}{OTHER_CHINESE * 5}")
    assert is_near_duplicate("มาเที่ยวทะเลกันเถอะวันนี้อากาศดี", "วันนี้อากาศดี มาเที่ยวทะเลกันเถอะ เพื่อนรัก")
