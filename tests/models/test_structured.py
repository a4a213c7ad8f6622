"""Structured replies: the requested schema, parsing of replies, and the repair."""

import json
import math
import random
import re
from copy import deepcopy
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from jurygraph.models.judge_client import (
    answer_schema,
    make_repair_request,
    parse_reply,
    with_schema_instructions,
)
from jurygraph.models.request import Fault, Reply, Request
from jurygraph.schema import FrozenModel, Message
from jurygraph.schema.frozen_model import StrictBool, UnitInterval
from tests.examples import at_most
from tests.rows import all_rows
from tests.schema.json_schema import faults


class One(FrozenModel):
    id: str
    reason: str
    met: bool
    probability: float = Field(ge=0, le=1)


class Verdicts(FrozenModel):
    verdicts: tuple[One, ...]


GOOD = {"verdicts": [{"id": "a", "reason": "It says so.", "met": True, "probability": 0.9}]}
TEXT = json.dumps(GOOD)


def fault(text: str, reply_model: type[BaseModel] = Verdicts, **more: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        parse_reply(Reply(text=text, **more), reply_model)
    return caught.value


def reply_with_first(**fields: Any) -> str:
    return json.dumps({"verdicts": [{**GOOD["verdicts"][0], **fields}]})


# what a reply comes to


def test_a_valid_json_reply_is_parsed_as_the_model() -> None:
    answer = parse_reply(Reply(text=TEXT, finish="stop"), Verdicts)
    assert answer == Verdicts(
        verdicts=(One(id="a", reason="It says so.", met=True, probability=0.9),)
    )


@pytest.mark.parametrize("finish", ["length", "LENGTH", "max_tokens", "MAX_TOKENS"])
def test_a_reply_that_ends_at_its_limit_is_truncated(finish: str) -> None:
    assert fault(TEXT, finish=finish, refusal="no").kind == "truncated"


@pytest.mark.parametrize("finish", ["content_filter", "SAFETY", "refusal", "RECITATION"])
def test_a_reply_that_was_withheld_is_refused(finish: str) -> None:
    assert fault(TEXT, finish=finish).kind == "refused"


@pytest.mark.parametrize("text", ["", " ", "\n\t\r ", "\u00a0\u2003"])
def test_white_space_alone_is_empty(text: str) -> None:
    assert fault(text).kind == "empty"
    assert fault(text, finish="content_filter").kind == "refused"


@all_rows(
    ("field", "value"),
    [
        *[("met", one) for one in ("true", "True", 1, 0, 1.0, None, [], {}, "yes")],
        *[
            ("probability", one)
            for one in ("0.9", True, None, -0.1, 1.1, 10**400, math.nan, math.inf, -math.inf, [0.9])
        ],
        *[("id", one) for one in (1, None, True, ["a"], {"a": 1})],
        *[("probability", one) for one in (-0.0,)],
    ],
)
def test_a_value_of_another_type_or_range_is_malformed_and_its_field_named(
    field: str, value: Any
) -> None:
    wrong = fault(reply_with_first(**{field: value}))
    assert wrong.kind == "malformed"
    assert str(wrong).startswith(f"field verdicts[0].{field}: ")


@all_rows(
    "number",
    [
        "NaN",
        "Infinity",
        "-Infinity",
        "-0",
        "-0.0",
        "-0e7",
        "1e999",
        "-1e999",
        "9" * 400,
        "9" * 5000,
    ],
)
def test_invalid_numbers_are_refused_anywhere(number: str) -> None:
    class Free(BaseModel):
        model_config = ConfigDict(extra="allow")
        parts: dict[str, JsonValue]

    assert fault(TEXT.replace("0.9", number)).kind == "malformed"
    wrong = fault(f'{{"parts": {{"a": [1, {{"b": [0, {number}]}}]}}}}', Free)
    assert wrong.kind == "malformed"
    assert "parts.a[1].b[1]" in str(wrong) or len(number) > 4300  # the parser itself refuses those


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (TEXT.replace('"met": true', '"met": false, "met": true'), "verdicts[0].met"),
        (TEXT.replace('"met": true', '"met": true, "m\\u0065t": true'), "verdicts[0].met"),
        (f'{TEXT[:-1]}, "verdicts": []}}', "verdicts"),
    ],
)
def test_a_duplicate_field_is_malformed(text: str, field: str) -> None:
    assert str(fault(text)).startswith(f"field {field}: occurs twice")


def test_an_unrequested_field_is_malformed() -> None:
    class Loose(BaseModel):
        verdicts: tuple[One, ...]

    for reply_model in (Verdicts, Loose):  # whatever the model itself would let pass
        assert str(fault(reply_with_first(confidence=1), reply_model)).startswith(
            "field verdicts[0].confidence: "
        )
        assert str(fault(f'{TEXT[:-1]}, "note": 1}}', reply_model)).startswith("field note: ")


def test_a_default_does_not_stand_in_for_a_field() -> None:
    class Part(FrozenModel):
        met: bool = True

    class Whole(FrozenModel):
        parts: tuple[Part, ...] = ()
        note: str | None = None

    assert parse_reply(Reply(text='{"parts": [{"met": false}], "note": null}'), Whole) == Whole(
        parts=(Part(met=False),)
    )
    assert str(fault('{"parts": [{"met": true}, {}], "note": null}', Whole)).startswith(
        "field parts[1].met: is missing"
    )
    assert str(fault('{"parts": []}', Whole)).startswith("field note: is missing")


def test_a_boolean_is_not_accepted_as_a_number() -> None:
    class Rated(FrozenModel):
        score: Literal[0, 1, 2]

    assert parse_reply(Reply(text='{"score": 1}'), Rated).score == 1
    for text in ('{"score": true}', '{"score": false}', '{"score": "1"}'):
        assert str(fault(text, Rated)).startswith("field score: ")


@pytest.mark.parametrize("half", ["\\ud800", "\\udc00", "\\ud800\\ud800", "x\\udfffy"])
def test_half_a_surrogate_pair_is_malformed(half: str) -> None:
    assert fault(TEXT.replace("It says", half)).kind == "malformed"
    assert fault(TEXT.replace('"id"', f'"{half}"')).kind == "malformed"
    assert (
        parse_reply(Reply(text=TEXT.replace("It says", "\\ud83d\\ude00")), Verdicts)
        .verdicts[0]
        .reason
        == "\U0001f600 so."
    )


@pytest.mark.parametrize("depth", [150, 250, 5_000, 200_000])
def test_too_deep_nesting_is_malformed(depth: int) -> None:
    class Any_(FrozenModel):
        it: JsonValue

    assert fault("[" * depth).kind == "malformed"
    assert fault('{"verdicts":' * depth + "[]" + "}" * depth).kind == "malformed"
    if depth > 200:
        assert fault('{"it":' + "[" * depth + "]" * depth + "}", Any_).kind == "malformed"


ATOMS: tuple[Any, ...] = (
    *(
        True,
        False,
        None,
        0,
        1,
        -1,
        0.5,
        -0.0,
        1e-400,
        10**30,
        10**400,
        math.nan,
        math.inf,
        "true",
        "0.9",
        "",
        "a",
    ),
    *(
        [],
        {},
        [True],
        {"met": True},
        GOOD,
        TEXT,
        "解",
        "\ud800",
        "\U0001f600",
        "\x00",
        "]]",
        '"met": true',
    ),
)


def change_randomly(value: Any, chance: random.Random) -> None:
    """Make one change somewhere within the value."""
    parts = [part for part in nested_parts(value) if part]
    if not parts:
        return
    part = chance.choice(parts)
    step = chance.choice(list(part)) if isinstance(part, dict) else chance.randrange(len(part))
    how = chance.randrange(4)
    if how == 0:
        part[step] = deepcopy(chance.choice(ATOMS))
    elif how == 1:
        part.pop(step)
    elif how == 2 and isinstance(part, dict):
        part[chance.choice(("note", "met ", "Met", "verdict", "id", "\ud800"))] = deepcopy(
            chance.choice(ATOMS)
        )
    else:
        part[step] = [part[step]] if chance.random() < 0.5 else {"verdicts": part[step]}


def nested_parts(value: Any) -> list[Any]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value] * isinstance(value, dict | list) + [
        one for part in parts for one in nested_parts(part)
    ]


def outcome(text: str) -> Verdicts | str:
    """Return the model, or the kind of the fault; its message must be short and storable."""
    try:
        return parse_reply(Reply.model_construct(text=text, finish="stop", refusal=None), Verdicts)
    except Fault as wrong:
        fault = wrong
    assert len(str(fault).encode()) <= 1_200
    assert fault.failure.cause == "response"
    return fault.kind


@settings(max_examples=at_most(300))
@given(st.text() | st.text('{}[]",:truefalsn0.1-e \\\n', max_size=40))
def test_no_text_raises_anything_but_a_fault(text: str) -> None:
    assert outcome(text) in ("malformed", "empty") or parse_reply(
        Reply(text=text.strip()), Verdicts
    )


# where it need not be whole


def parse_leniently(text: str, **more: Any) -> Verdicts | str:
    """Return the model found anywhere in a reply, or the kind of fault."""
    try:
        return parse_reply(Reply(text=text, **more), Verdicts, strict=False)
    except Fault as found:
        return found.kind


@all_rows(
    "text",
    [
        TEXT,
        f"Sure: {TEXT}",
        f"{TEXT} I hope this helps.",
        f"```json\n{TEXT}\n```",
        f"{{as you wish}} {TEXT}",
        f'{{"verdicts": 3}} {TEXT}',
        f'{{"answer": {TEXT}}}',
        f"[{TEXT}, 1]",
        f'{TEXT}{{"verdicts": []}}',
        "{" * 2000 + TEXT,
        '{"verdicts":' * 2000 + TEXT,
    ],
)
def test_without_strict_the_first_valid_json_object_counts(text: str) -> None:
    assert parse_leniently(text) == parse_reply(Reply(text=TEXT), Verdicts)


@pytest.mark.parametrize(
    "text",
    [
        "It is met.",
        "[]",
        TEXT[:-2],
        TEXT.replace("0.9", "9"),
        TEXT.replace("0.9", "NaN"),
        "{}",
        '{"verdicts"',
    ],
)
def test_without_strict_a_reply_without_a_valid_object_is_malformed(text: str) -> None:
    assert parse_leniently(text) == fault(text).kind == "malformed"
    with pytest.raises(Fault, match=re.escape(str(fault(text)))):
        parse_reply(Reply(text=text), Verdicts, strict=False)


# the schema that is asked for


def test_the_schema_contains_every_field_in_order() -> None:
    one = {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "reason": {"type": "string"},
            "met": {"type": "boolean"},
            "probability": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "required": ["id", "reason", "met", "probability"],
        "additionalProperties": False,
    }
    schema = answer_schema(Verdicts)
    assert schema == {
        "type": "object",
        "properties": {"verdicts": {"type": "array", "items": one}},
        "required": ["verdicts"],
        "additionalProperties": False,
    }
    assert list(schema["properties"]["verdicts"]["items"]["properties"]) == [
        "id",
        "reason",
        "met",
        "probability",
    ]


class Left(FrozenModel):
    kind: Literal["left"]
    title: str = Field(description="A field called title, not a keyword.")


class Right(FrozenModel):
    kind: Literal["right"]
    format: Literal[1, 2]


class Rich(BaseModel):
    """What the model is told of it."""

    reason: str = Field(description="Why, in one sentence.", min_length=1, max_length=500)
    side: Annotated[Left | Right, Field(discriminator="kind")]
    other: Left | None = Field(default=None, description="Another one.")
    default: Annotated[str, Field(pattern="^[a-z]*$")] = "x"
    ids: tuple[Literal["a", "b"], ...] = Field(min_length=1, max_length=2)
    count: int = Field(gt=0, lt=10, multiple_of=1)
    share: UnitInterval
    sure: StrictBool


def keywords(schema: Any) -> set[str]:
    """Return the keywords of a schema without the names of fields."""
    if isinstance(schema, list):
        return {word for part in schema for word in keywords(part)}
    if not isinstance(schema, dict):
        return set()
    inner = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("anyOf")]
    return set(schema) | {
        word for part in [*inner, *schema.get("$defs", {}).values()] for word in keywords(part)
    }


def test_a_rich_model_is_expressed_in_the_strict_subset() -> None:
    schema = answer_schema(Rich)
    assert keywords(schema) == {
        *(
            "type",
            "description",
            "properties",
            "required",
            "additionalProperties",
            "anyOf",
            "enum",
            "items",
        ),
        *("minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    }
    assert schema["required"] == list(Rich.model_fields)
    assert schema["description"] == "What the model is told of it."
    assert schema["properties"]["default"] == {"type": "string"}
    assert schema["properties"]["other"]["description"] == "Another one."
    left, right = schema["properties"]["side"]["anyOf"]
    assert left["properties"]["kind"] == {"type": "string", "enum": ["left"]}
    assert list(left["properties"]) == ["kind", "title"]
    assert right["properties"]["format"] == {"type": "integer", "enum": [1, 2]}


class Tree(FrozenModel):
    name: str
    kids: "tuple[Tree, ...]"


def test_a_model_that_contains_itself_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^Tree\.kids\[\] contains itself"):
        answer_schema(Tree)


@pytest.mark.parametrize(
    ("annotation", "why"),
    [
        (dict[str, int], "free keys"),
        (tuple[int, str], "prefixItems"),
        (set[int], "uniqueItems"),
        (Any, "may be anything"),
        (list, "may be anything"),
        (JsonValue, "may be anything"),
    ],
)
def test_a_model_beyond_the_strict_subset_is_refused(annotation: Any, why: str) -> None:
    class Inner(FrozenModel):
        part: annotation

    class Outer(FrozenModel):
        inner: tuple[Inner, ...]

    with pytest.raises(TypeError, match=rf"^Outer\.inner\[\]\.part.* {why}.*use fields"):
        answer_schema(Outer)


RICH = st.builds(
    Rich,
    reason=st.text("abc", min_size=1, max_size=5),
    side=st.builds(Left, kind=st.just("left"), title=st.text("xyz"))
    | st.builds(Right, kind=st.just("right"), format=st.sampled_from((1, 2))),
    other=st.none() | st.builds(Left, kind=st.just("left"), title=st.text("xyz")),
    default=st.text("abc"),
    ids=st.lists(st.sampled_from("ab"), min_size=1, max_size=2).map(tuple),
    count=st.integers(1, 9),
    share=st.floats(0, 1).map(abs),
    sure=st.booleans(),
)


@given(RICH)
def test_every_answer_conforms_to_its_schema_and_is_read_back(answer: Rich) -> None:
    text = answer.model_dump_json()
    assert faults(json.loads(text), answer_schema(Rich)) == []
    assert parse_reply(Reply(text=text), Rich) == answer


@given(RICH, st.randoms(use_true_random=False))
def test_a_reply_that_violates_the_schema_is_refused(answer: Rich, chance: random.Random) -> None:
    value = answer.model_dump(mode="json")
    change_randomly(value, chance)
    text = json.dumps(value)
    if faults(json.loads(text), answer_schema(Rich)):
        assert fault(text, Rich).kind == "malformed"


# asking


def request(*messages: tuple[str, str], **more: Any) -> Request:
    told = tuple(Message(role=role, content=content) for role, content in messages)
    return Request(provider="openai", model="m", messages=told, **more)


def test_a_repair_shows_the_reply_and_what_is_wrong_with_it() -> None:
    asked = request(
        ("system", "Judge."),
        ("user", "It."),
        answer=answer_schema(Verdicts),
        sample=3,
        form="native",
    )
    wrong = fault(reply_with_first(met="yes"))
    again = make_repair_request(asked, Reply(text=reply_with_first(met="yes")), str(wrong))
    assert again.messages[:2] == asked.messages
    assert [message.role for message in again.messages[2:]] == ["assistant", "user"]
    assert again.messages[2].content == reply_with_first(met="yes")
    assert str(wrong) in again.messages[3].content
    assert "JSON alone" in again.messages[3].content
    assert again.model_copy(update={"messages": asked.messages}) == asked
    assert again.digest != asked.digest


def test_schema_instructions_end_the_last_message() -> None:
    asked = request(("system", "Judge."), ("user", "The response."), answer=answer_schema(Verdicts))
    told = with_schema_instructions(asked)
    assert told.messages[0] == asked.messages[0]
    assert [message.role for message in told.messages] == ["system", "user"]
    assert told.messages[1].content.startswith("The response.\n\n")
    assert json.loads(told.messages[1].content.splitlines()[-1]) == asked.answer
    assert told.form == "instructed"


@pytest.mark.parametrize("role", ["system", "assistant", "tool"])
def test_schema_instructions_are_a_user_message_after_an_assistant_message(role: str) -> None:
    told = with_schema_instructions(request((role, "Judge."), answer=answer_schema(Verdicts)))
    assert [message.role for message in told.messages] == [role, "user"]
    assert told.messages[0].content == "Judge."


def test_a_request_without_a_schema_gets_no_instructions() -> None:
    asked = request(("user", "It."))
    assert with_schema_instructions(asked) == asked
