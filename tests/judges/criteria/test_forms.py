"""The forms of a judgement: what is replied, what of that needs a quotation, and what it measures."""

import json
import math
from typing import Any

import pytest
from pydantic import ValidationError

from jurygraph.agents.roles import MAX_QUOTES, JudgedValue
from jurygraph.errors import InputError
from jurygraph.judges.criteria import AnswerForm, Binary, Item, PartialCredit, Scale
from jurygraph.models.judge_client import answer_schema
from jurygraph.models.request import Reply, Token
from tests.judges.criteria.scripted_judge import binary_reply, parts_reply, scale_reply
from tests.rows import all_rows

FORMS: dict[str, AnswerForm] = {
    "met": Binary(),
    "scale": Scale(1.0, 10.0),
    "parts": PartialCredit((1.0, 3.0)),
    "likely parts": PartialCredit((1.0, 3.0), by_probability=True),
}
SILENT = Reply(text="{}")


def parse_reply(form: AnswerForm, reply_fields: dict[str, Any], compact: bool = False) -> Any:
    """Return a reply parsed in its form."""
    return form.reply_model(compact).model_validate_json(json.dumps(reply_fields), strict=True)


def measure_reply(
    form: AnswerForm, reply_fields: dict[str, Any], reply: Reply = SILENT
) -> JudgedValue:
    found = form.find(parse_reply(form, reply_fields), "item_1", reply).judged_value
    assert found is not None
    return found


def claims_of(form: AnswerForm, reply_fields: dict[str, Any]) -> list[tuple[str, list[str]]]:
    return [
        (claim.statement, list(claim.quotes))
        for claim in form.find(parse_reply(form, reply_fields), "item_1", None).claims
    ]


def likely_parts_reply(*probabilities: float | None) -> dict[str, Any]:
    parts = [{"quotes": ["a"], "probability": probability} for probability in probabilities]
    return {"reason": "so", **{f"part_{n}": part for n, part in enumerate(parts, start=1)}}


# Reply models


@pytest.mark.parametrize(
    ("form", "compact", "fields"),
    [
        ("met", False, ["reason", "quotes", "met", "probability"]),
        ("met", True, ["met", "probability"]),
        ("scale", False, ["reason", "quotes", "value"]),
        ("scale", True, ["value"]),
        ("parts", False, ["reason", "part_1", "part_2"]),
        ("parts", True, ["part_1", "part_2"]),
    ],
)
def test_reasons_and_quotations_precede_the_judgement_and_compact_replies_have_none(
    form: str, compact: bool, fields: list[str]
) -> None:
    schema: Any = answer_schema(FORMS[form].reply_model(compact))
    assert list(schema["properties"]) == schema["required"] == fields
    parts = [schema["properties"][name] for name in fields if name.startswith("part_")]
    assert all(part["required"] == (["met"] if compact else ["quotes", "met"]) for part in parts)


LIKELY = {"quotes": [], "probability": 0.4}
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("met", binary_reply("true")),
    ("met", {"met": True, "probability": 0.9}),
    ("met", binary_reply(quotes=["a"] * (MAX_QUOTES + 1))),
    ("met", binary_reply(quotes=["a" * 1001])),
    ("met", binary_reply(reason="so " * 1000)),
    ("scale", scale_reply(0.99)),
    ("scale", scale_reply("7")),
    ("scale", scale_reply(True)),
    ("scale", {"reason": "so", "quotes": []}),
    ("parts", parts_reply(["a"])),
    ("parts", {"reason": "so", "part_1": LIKELY, "part_2": LIKELY}),
    ("likely parts", parts_reply(["a"], None)),
    ("likely parts", {"reason": "so", "part_1": LIKELY, "part_2": {**LIKELY, "probability": 1.1}}),
    ("parts", {**parts_reply(None, None), "part_2": {"met": True}}),
]


@all_rows(("form", "reply_fields"), WRONG)
def test_an_answer_outside_the_form_is_refused(form: str, reply_fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        parse_reply(FORMS[form], reply_fields)


# Claims


def test_only_positive_findings_are_claims() -> None:
    assert claims_of(FORMS["met"], binary_reply(quotes=["a", "b"])) == [("met", ["a", "b"])]
    assert claims_of(FORMS["met"], binary_reply(False, quotes=["a"])) == []
    assert claims_of(FORMS["scale"], scale_reply(7, "a")) == [("a value of 7", ["a"])]
    assert claims_of(FORMS["scale"], scale_reply(1.5)) == [("a value of 1.5", [])]
    assert claims_of(FORMS["scale"], scale_reply(1, "a")) == []
    assert claims_of(FORMS["parts"], parts_reply(["a"], None)) == [("part_1 met", ["a"])]
    assert claims_of(FORMS["parts"], parts_reply([], ["b"])) == [
        ("part_1 met", []),
        ("part_2 met", ["b"]),
    ]
    assert claims_of(FORMS["parts"], parts_reply(None, None)) == []


def test_log_probabilities_that_contradict_the_decision_are_ignored() -> None:
    """As happens where words are drawn by chance, or a server's log probabilities are not those of its words."""
    reply_fields = {"item_1": binary_reply(False, 0.1, quotes=[])}
    before, after = json.dumps(reply_fields, separators=(",", ":")).rsplit("false,", 1)
    tokens = (
        Token(text=before, logprob=0.0),
        Token(text="false", logprob=math.log(0.05), others=(("true", math.log(0.95)),)),
        Token(text=f",{after}", logprob=0.0),
    )
    reply = Reply(text="".join(token.text for token in tokens), tokens=tokens)
    assert measure_reply(FORMS["met"], reply_fields["item_1"], reply) == JudgedValue(
        0.1, False, "P(met) as stated"
    )


# Measurements


@pytest.mark.parametrize(("value", "score"), [(1, 0.0), (10, 1.0), (5.5, 0.5), (4, 1 / 3)])
def test_a_scale_scores_the_relative_position_of_the_value(value: float, score: float) -> None:
    found = measure_reply(FORMS["scale"], scale_reply(value, "a"))
    assert found.score == pytest.approx(score)
    assert (found.met, found.native, found.scale) == (None, value, (1.0, 10.0))


@pytest.mark.parametrize(
    ("met", "score", "whole"),
    [((True, True), 1.0, True), ((True, False), 0.25, False), ((False, True), 0.75, False)],
)
def test_parts_give_their_weight_as_partial_credit(
    met: tuple[bool, bool], score: float, whole: bool
) -> None:
    found = measure_reply(FORMS["parts"], parts_reply(*(["a"] if one else None for one in met)))
    assert (found.score, found.met, found.native, found.scale) == (
        score,
        whole,
        score * 4,
        (0.0, 4.0),
    )


def test_likely_parts_give_probability_times_weight_and_leave_the_decision_to_the_rubric() -> None:
    """As the authors' scripts of GEAR do: Σ prob_met · points / Σ points."""
    reply_fields = likely_parts_reply(0.9, 0.2)
    found = measure_reply(FORMS["likely parts"], reply_fields)
    assert found.score == pytest.approx((0.9 * 1 + 0.2 * 3) / 4, abs=1e-15)
    assert (found.met, found.native, found.scale) == (None, pytest.approx(1.5), (0.0, 4.0))
    assert claims_of(FORMS["likely parts"], reply_fields) == [("part_1 met", ["a"])]
    assert claims_of(FORMS["likely parts"], likely_parts_reply(0.5, 0.49)) == [
        ("part_1 met", ["a"])
    ]
    unknown = parse_reply(FORMS["likely parts"], likely_parts_reply(0.9, None))
    assert FORMS["likely parts"].find(unknown, "item_1", None).judged_value is None


@all_rows(
    ("make", "message"),
    [
        (lambda: Scale(5, 1), "Scale(5, 1): does not rise"),
        (lambda: Scale(1, math.inf), "Scale(1, inf): does not rise"),
        (lambda: Scale("a", "b"), "Scale.low: is a str; give a number"),
        (
            lambda: PartialCredit(3),
            "PartialCredit.weights: is an int; give a tuple with a number above 0",
        ),
        (lambda: PartialCredit(()), "PartialCredit.weights: are []; give a tuple"),
        (
            lambda: PartialCredit((1.0, -1.0)),
            "PartialCredit.weights: are [1.0, -1.0]; give a tuple",
        ),
        (lambda: PartialCredit(("a",)), "PartialCredit.weights[0]: is a str; give a tuple"),
        (lambda: Item("x", "binary"), "Item.form: is a str; give Binary(), "),
        (lambda: Item(3, Binary()), "Item.text: is an int; give the text"),
    ],
)
def test_a_form_that_cannot_judge_is_refused_where_it_is_made(make: Any, message: str) -> None:
    with pytest.raises(InputError) as refused:
        make()
    assert str(refused.value).startswith(message)
