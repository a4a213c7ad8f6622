"""A request: its identity is its whole content, written as pydantic writes it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from jurygraph.models.asking import Request
from jurygraph.schema import Message
from jurygraph.schema.noun import digest_of

texts = st.text(min_size=1, max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
requests = st.builds(
    Request,
    provider=texts,
    endpoint=st.none() | texts,
    model=texts,
    messages=st.lists(
        st.builds(Message, role=st.sampled_from(["system", "user", "assistant"]), content=st.text()), min_size=1
    ).map(tuple),
    parameters=st.dictionaries(texts, values, max_size=3),
    answer=st.none() | st.dictionaries(texts, values, max_size=3),
    form=st.sampled_from(["native", "grammar", "instructed", "text"]),
    prompt=st.none() | texts,
    prompt_version=st.none() | texts,
    sample=st.integers(0, 9),
)


@given(requests)
def test_its_plain_form_is_what_pydantic_writes(request: Request) -> None:
    assert request.plain() == request.model_dump(mode="json")
    assert to_json(request.plain()) == request.model_dump_json().encode()
    assert Request.model_validate_json(to_json(request.plain())) == request


@given(requests)
def test_its_digest_is_that_of_its_canonical_json(request: Request) -> None:
    assert request.digest == digest_of(request.model_dump(mode="json"))


@given(requests, st.data())
def test_a_copy_that_changes_anything_has_another_digest(request: Request, data: Any) -> None:
    before = request.digest
    name = data.draw(st.sampled_from(["provider", "model", "endpoint", "prompt", "prompt_version"]))
    changed = request.model_copy(update={name: f"{getattr(request, name)}+"})
    assert changed.digest != before
    assert changed.model_copy(update={name: getattr(request, name)}).digest == before
