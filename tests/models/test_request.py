"""A request: its identity is its whole content, written as pydantic writes it."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticSerializationError

from jurygraph.models.request import Fault, Request, encode_compact_json, fault_at_deadline
from jurygraph.safety.gates import TextFence
from jurygraph.schema import Message
from jurygraph.schema.frozen_model import digest_of
from tests.virtual_time import now, run

texts = st.text(min_size=1, max_size=12)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
requests = st.builds(
    Request,
    provider=texts,
    endpoint=st.none() | texts,
    model=texts,
    messages=st.lists(
        st.builds(
            Message, role=st.sampled_from(["system", "user", "assistant"]), content=st.text()
        ),
        min_size=1,
    ).map(tuple),
    parameters=st.dictionaries(texts, values, max_size=3),
    answer=st.none() | st.dictionaries(texts, values, max_size=3),
    form=st.sampled_from(["native", "grammar", "instructed", "text"]),
    prompt=st.none() | texts,
    prompt_version=st.none() | texts,
    sample=st.integers(0, 9),
    marks=st.lists(texts, max_size=3, unique=True).map(tuple),
)


@given(requests)
def test_without_marks_its_digest_is_that_of_its_canonical_json(request: Request) -> None:
    bare = request.model_copy(update={"marks": ()})
    assert bare.digest == digest_of(bare.model_dump(mode="json"))
    assert "marks" not in bare.model_dump()


@given(requests, st.data())
def test_a_copy_that_changes_anything_has_another_digest(request: Request, data: Any) -> None:
    before = request.digest
    name = data.draw(st.sampled_from(["provider", "model", "endpoint", "prompt", "prompt_version"]))
    changed = request.model_copy(update={name: f"{getattr(request, name)}+"})
    assert changed.digest != before
    assert changed.model_copy(update={name: getattr(request, name)}).digest == before


REQUEST: dict[str, Any] = {
    "provider": "p",
    "model": "m",
    "messages": (Message(role="user", content="Is 7 a prime?"),),
    "parameters": {"n": 1},
}
OTHERS: list[dict[str, Any]] = [
    {},
    *(
        {"parameters": other}
        for other in ({"n": True}, {"n": 1.5}, {"n": 1, "seed": 0}, {}, {"n": {"budget": 1}})
    ),
    {"messages": (Message(role="system", content="Is 7 a prime?"),)},
    {"messages": (Message(role="user", content="Is 7 a"), Message(role="user", content=" prime?"))},
    *({"answer": {"type": "object"}, "form": form} for form in ("native", "instructed")),
    {"answer": {"type": "object", "description": "whether it is"}, "form": "native"},
    {"prompt": "primes"},
    {"sample": 1},
]


def test_the_digest_separates_everything_that_affects_a_reply() -> None:
    assert len({Request.model_validate(REQUEST | other).digest for other in OTHERS}) == len(OTHERS)


# The marks of fences, which hang on the project's key


def make_request(*texts: str, key: bytes = b"", task: str = "Write a letter.") -> Request:
    """Return a request that shows a task and responses, each in a fence."""
    fence = TextFence(key)
    shown = [fence.enclose(task, "task"), *(fence.enclose(text, "response") for text in texts)]
    messages = (
        Message(role="system", content="You judge."),
        Message(role="user", content="\n".join(shown)),
    )
    return Request(provider="p", model="m", messages=messages, marks=tuple(fence.marks))


def test_an_integer_of_more_than_64_bits_is_encoded_and_an_unpaired_surrogate_is_refused() -> None:
    assert encode_compact_json({"seed": 2**70}) == f'{{"seed":{2**70}}}'.encode()
    with pytest.raises(PydanticSerializationError):
        encode_compact_json("\ud800")


@given(st.lists(st.text(max_size=20), max_size=3), st.binary(max_size=8), st.binary(max_size=8))
def test_its_identity_does_not_depend_on_the_fence_key(
    texts: list[str], one: bytes, other: bytes
) -> None:
    first, second = make_request(*texts, key=one), make_request(*texts, key=other)
    assert first.digest == second.digest
    assert (first.marks == second.marks) == ((one or b"jurygraph") == (other or b"jurygraph"))
    assert first.to_dict()["messages"][1]["content"] == first.messages[1].content


MARK = make_request().marks[0]
"""That of the task, which anybody can work out where there is no key."""


@pytest.mark.parametrize("text", ["0", "mark 0", "[0]", '", 0, "', "\\u0000", "", "mark 1"])
def test_no_text_has_the_digest_of_one_with_a_mark(text: str) -> None:
    assert (
        make_request(f"before {text} after").digest != make_request(f"before {MARK} after").digest
    )
    assert make_request(text).digest != make_request(MARK).digest


def test_few_marks_and_many_are_found_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adjacent ones, too, and the first of two that overlap."""
    marks = ("ab12ab", "12abff", "c0ffee")
    text = "ab12abff c0ffeec0ffee xc0ffee1 c0ffe é ab12a"
    request = make_request().model_copy(
        update={"messages": (Message(role="user", content=text),), "marks": marks}
    )
    few = request.to_identity_fields()
    expected = ["", 0, "ff ", 2, "", 2, " x", 2, "1 c0ffe é ab12a"]
    assert few["messages"][0]["content"] == expected
    monkeypatch.setattr("jurygraph.models.request._MAX_MARKS_SEARCHED_SINGLY", 0)
    assert request.to_identity_fields() == few


@pytest.mark.parametrize("seconds_left", [None, 60.0])
def test_an_error_that_another_timeout_raises_is_not_the_deadline(
    seconds_left: float | None,
) -> None:
    async def store() -> None:
        until = None if seconds_left is None else now() + seconds_left
        async with fault_at_deadline(until):
            raise TimeoutError("the disk of the run does not answer")

    with pytest.raises(TimeoutError, match="disk"):
        run(store())


def test_the_deadline_ends_what_waits() -> None:
    async def wait() -> None:
        async with fault_at_deadline(now() + 60.0):
            await asyncio.sleep(100.0)

    with pytest.raises(Fault, match="the time for this group") as caught:
        run(wait())
    assert caught.value.kind == "deadline"
