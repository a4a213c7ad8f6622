"""P(yes) from the tokens of a reply: the boolean's token and its alternatives."""

import json
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph.models.judge_client import (
    decode_token_texts,
    find_boolean_offset,
    find_value_token_indices,
    probability_of_true,
    read_token_logprobs,
)
from jurygraph.models.request import Reply, Token
from tests.examples import at_most
from tests.rows import all_rows

Path = tuple[str | int, ...]


def make_reply(*tokens: str | tuple[str, float, dict[str, float]]) -> Reply:
    """Return a reply of these tokens; some with a probability and alternatives."""
    made = [
        Token(text=one, logprob=0.0)
        if isinstance(one, str)
        else Token(
            text=one[0],
            logprob=math.log(one[1]),
            others=tuple((t, math.log(p)) for t, p in one[2].items()),
        )
        for one in tokens
    ]
    return Reply(text="".join(token.text for token in made), tokens=tuple(made))


def p_met(*tokens: str | tuple[str, float, dict[str, float]]) -> float | None:
    return probability_of_true(make_reply(*tokens), ("met",))


# what counts as true, and what as false


def test_p_true_compares_the_tokens_true_and_false() -> None:
    assert p_met('{"met":', ("true", 0.6, {"false": 0.2, "null": 0.1}), "}") == pytest.approx(0.75)
    assert p_met('{"met":', ("false", 0.6, {"true": 0.2}), "}") == pytest.approx(0.25)


@pytest.mark.parametrize(
    "other", ["false", '"unmet":false', '"mat":false', '"met"', ":false", '"me":false']
)
def test_an_alternative_with_other_text_before_the_boolean_does_not_count(other: str) -> None:
    assert p_met("{", ('"met":true', 0.5, {other: 0.3, '"met":false': 0.1}), "}") == pytest.approx(
        0.5 / 0.6
    )


def test_only_the_boolean_at_the_path_counts() -> None:
    reply = make_reply(
        '{"verdicts":[{"reason":"says \\"met\\": true","met":',
        ("false", 0.9, {"true": 0.1}),
        '},{"reason":"","met":',
        ("true", 0.8, {"false": 0.2}),
        "}]}",
    )
    assert probability_of_true(reply, ("verdicts", 0, "met")) == pytest.approx(0.1)
    assert probability_of_true(reply, ("verdicts", 1, "met")) == pytest.approx(0.8)


def test_extreme_log_probabilities_neither_overflow_nor_vanish() -> None:
    for true, false, expected in [
        (-9999.0, -9999.0, 0.5),
        (1e308, -1e308, 1.0),
        (-9999.0, 0.0, 0.0),
        (900, 900, 0.5),
    ]:
        tokens = (
            Token(text="[", logprob=0.0),
            Token(text="true", logprob=true, others=(("false", false),)),
        )
        assert (
            probability_of_true(
                Reply(text="[true]", tokens=(*tokens, Token(text="]", logprob=0.0))), (0,)
            )
            == expected
        )


# where nothing can be said


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({}, None),
        ({"true": 0.55}, None),
        ({"the": 0.1}, None),
        ({"the": 0.1, "a": 0.02}, 1.0),
        ({" true": 0.1, "a": 0.02}, 1.0),
    ],
)
def test_an_unlisted_word_counts_as_at_most_the_least_likely_alternative(
    others: dict[str, float], expected: float | None
) -> None:
    assert p_met('{"met":', ("true", 0.55, others), "}") == expected


# letters that are cut apart


@given(st.text(min_size=1), st.lists(st.integers(1, 4), min_size=1, max_size=30))
def test_any_split_text_is_joined_again(text: str, lengths: list[int]) -> None:
    left, tokens = text.encode("utf-8", "replace"), []
    for length in [*lengths, len(left)]:
        tokens.append(("?", list(left[:length])))
        left = left[length:]
    assert "".join(decode_token_texts(tokens)) == text.encode("utf-8", "replace").decode()


def test_tokens_that_do_not_spell_the_text_give_no_probability() -> None:
    reply = make_reply('{"met":', ("true", 0.6, {"false": 0.2}), "}")
    assert (
        probability_of_true(reply.model_copy(update={"text": reply.text + " "}), ("met",)) is None
    )


def test_omitted_white_space_of_a_server_does_not_shift_tokens() -> None:
    """llama.cpp lets a reply to a schema stand in a fence, and others give the tokens of thoughts too."""
    thought = ('{"met":true}', 0.9, {'{"met":false}': 0.1})
    reply = make_reply(
        thought, "```json\n", '{"met":', ("true", 0.6, {"false": 0.2}), "}", "\n```", ""
    )
    assert probability_of_true(
        reply.model_copy(update={"text": '{"met":true}'}), ("met",)
    ) == pytest.approx(0.75)


@all_rows(
    "path",
    [("other",), (), (0,), ("met", "x"), ("met", 0), ("list", 2), ("list", -1), ("list", "0")],
)
def test_a_path_without_a_boolean_gives_no_probability(path: Path) -> None:
    reply = make_reply('{"list":[1,"true"],"met":', ("true", 0.6, {"false": 0.2}), "}")
    assert probability_of_true(reply, path) is None


# every boolean of any document, however it is written and cut into tokens

LEAVES = st.one_of(
    st.booleans(),
    st.none(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=5) | st.just("true"), inner, max_size=4)
    ),
    max_leaves=20,
)


class Written:
    """A document as JSON text with random white space, and the offsets of its booleans."""

    def __init__(self, document: Any, chance: random.Random) -> None:
        self.text = ""
        self.booleans: dict[Path, int] = {}
        self._chance = chance
        self._add(document, ())
        self._space()

    def _space(self) -> None:
        self.text += "".join(self._chance.choices(" \t\n\r", k=self._chance.choice((0, 0, 1, 3))))

    def _scalar(self, value: Any) -> None:
        self.text += json.dumps(value, ensure_ascii=self._chance.random() < 0.5)

    def _add(self, value: Any, path: Path) -> None:
        self._space()
        if isinstance(value, dict | list):
            self.text += "{" if isinstance(value, dict) else "["
            for number, (step, inner) in enumerate(
                value.items() if isinstance(value, dict) else enumerate(value)
            ):
                self.text += "," if number else ""
                if isinstance(value, dict):
                    self._space()
                    self._scalar(step)
                    self._space()
                    self.text += ":"
                self._add(inner, (*path, step))
            self._space()
            self.text += "}" if isinstance(value, dict) else "]"
        else:
            if isinstance(value, bool):
                self.booleans[path] = len(self.text)
            self._scalar(value)


def booleans(value: Any, path: Path = ()) -> Iterator[tuple[Path, bool]]:
    if isinstance(value, bool):
        yield path, value
    for step, inner in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield from booleans(inner, (*path, step))


@given(DOCUMENTS, st.randoms(use_true_random=False))
def test_every_boolean_of_a_document_is_found_where_it_was_written(
    document: Any, chance: random.Random
) -> None:
    written = Written(document, chance)
    assert json.loads(written.text) == document
    for path, value in booleans(document):
        place = find_boolean_offset(written.text, path)
        assert place == written.booleans[path]
        assert written.text.startswith(json.dumps(value), place)


def split_randomly(text: str, chance: random.Random) -> list[str]:
    """Split a text into random pieces, some of them empty."""
    edges = sorted(chance.choices(range(len(text) + 1), k=chance.randint(0, len(text))))
    return [text[start:end] for start, end in zip([0, *edges], [*edges, len(text)], strict=True)]


def plant_alternatives(
    piece: str, lead: str, chance: random.Random
) -> tuple[dict[str, float], float, float]:
    """Return alternatives to a token with their probabilities, and the shares of true and of false."""
    held = lead.rstrip(" \t\n\r")
    wrong = [
        held,
        held + "null",
        held + "True",
        held + '"true"',
        "?" + held + "true",
        held + ",false",
    ]
    wrong += [held[:-1] + "?false"] if held else []
    right = [
        (held + space + word[:length] + (end if length == len(word) else ""), word)
        for space in ("", " ", "\n\t")
        for word in ("true", "false")
        for length in (1, 3, len(word))
        for end in ("", ",", "}]", " ")
    ]
    others: dict[str, float] = {
        text: chance.uniform(1e-6, 1) for text in chance.sample(wrong, chance.randint(1, 5))
    }
    totals = {"true": 0.0, "false": 0.0}
    for text, word in dict(chance.sample(right, chance.randint(0, 8))).items():
        if text != piece:
            others[text] = chance.uniform(1e-6, 1)
            totals[word] += others[text]
    others.pop(piece, None)
    return others, totals["true"], totals["false"]


@settings(max_examples=at_most(150))
@given(
    st.lists(st.booleans() | DOCUMENTS, min_size=1, max_size=5), st.randoms(use_true_random=False)
)
def test_planted_probabilities_are_found_however_the_text_is_cut(
    document: list[Any], chance: random.Random
) -> None:
    written = Written({"verdicts": document, "met": chance.random() < 0.5}, chance)
    pieces = split_randomly(written.text, chance)
    path, place = chance.choice(sorted(written.booleans.items(), key=str))
    tokens, start = [], 0
    expected: float | None = -1.0
    for piece in pieces:
        others: dict[str, float] = {}
        own = chance.uniform(1e-6, 1)
        if start <= place < start + len(piece):
            others, true, false = plant_alternatives(piece, piece[: place - start], chance)
            true, false = (true + own, false) if written.text[place] == "t" else (true, false + own)
            unseen = 0.0 if true and false else min([own, *others.values()])
            expected = None if unseen > 0.05 * (true + false + unseen) else true / (true + false)
            if chance.random() < 0.5:
                others[piece] = own
        ranked = sorted(
            ((text, math.log(p)) for text, p in others.items()), key=lambda one: -one[1]
        )
        tokens.append(Token(text=piece, logprob=math.log(own), others=tuple(ranked)))
        start += len(piece)
    assert expected != -1.0
    assert probability_of_true(
        Reply(text=written.text, tokens=tuple(tokens)), path
    ) == pytest.approx(expected)


# where alternatives are kept

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every value inside a value."""
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for step, part in parts:
        yield (*path, step)
        yield from paths(part, (*path, step))


def test_alternatives_are_kept_at_the_first_character_of_a_text_value_only() -> None:
    tokens = [
        "{",
        '"',
        "reason",
        '":',
        '"',
        "It",
        " is",
        " true",
        ", ",
        'so"',
        ',"choice":',
        '"',
        "A",
        '"',
        "}",
    ]
    assert sorted(find_value_token_indices("".join(tokens), tokens)) == [0, 4, 5, 11, 12]


# what a server says


def entry(
    token: str, logprob: Any, *others: tuple[str, Any], raw: bytes | None = None
) -> dict[str, Any]:
    top = [{"token": other, "logprob": number} for other, number in others]
    return {
        "token": token,
        "logprob": logprob,
        "top_logprobs": top,
        "bytes": None if raw is None else list(raw),
    }


def test_log_probabilities_are_finite_and_at_most_0() -> None:
    others = [("b", number) for number in (math.nan, None, math.inf, 5, 1e-7)]
    (token,) = read_token_logprobs({"content": [entry("a", -math.inf, *others)]}, "a")
    assert token == Token(text="a", logprob=-9999.0, others=(("b", 0.0),))


def test_tokens_spell_letters_that_are_cut_apart_by_their_bytes() -> None:
    pieces = [b'{"reason":"', b"\xf0\x9f", b"\x98\x80", b'","met":', b"true", b"}"]
    content = [entry(repr(piece)[2:-1], math.log(0.6), raw=piece) for piece in pieces]
    content[4]["top_logprobs"] = [{"token": "false", "logprob": math.log(0.2)}]
    text = b"".join(pieces).decode()
    tokens = read_token_logprobs({"content": content}, text)
    assert [token.text for token in tokens] == ['{"reason":"', "", "😀", '","met":', "true", "}"]
    assert probability_of_true(Reply(text=text, tokens=tokens), ("met",)) == pytest.approx(0.75)


@all_rows(
    "logprobs",
    [
        *(
            {"content": [entry("a", -1), wrong]}
            for wrong in (entry("b", math.nan), {"logprob": -1}, {"token": "b"}, "b")
        ),
        *([], "no", {"content": {}}, {"tokens": ["a"], "token_logprobs": [-1]}, None),
    ],
)
def test_one_unreadable_token_drops_all_tokens(logprobs: Any) -> None:
    assert read_token_logprobs(logprobs, "yes") == ()
