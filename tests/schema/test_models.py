"""Every model of the schema is frozen and strict, has one digest, and survives JSON."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema

from jurygraph.errors import InputError
from jurygraph.schema import FrozenModel, Plan, TaskView, Trace, canonical_json, digest_of
from tests.examples import at_most
from tests.schema.samples import digests
from tests.schema.strategies import FREE, MODELS, STRATEGIES

few = settings(
    max_examples=at_most(15, quick=3), deadline=None, suppress_health_check=list(HealthCheck)
)
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)


@pytest.mark.parametrize("model", [Plan, TaskView])
@few
@given(data=st.data())
def test_the_digest_of_a_model_with_constant_parts_is_that_of_its_json(
    model: type[FrozenModel], data: st.DataObject
) -> None:
    made = data.draw(STRATEGIES[model])
    assert made.digest == digest_of(made.model_dump(mode="json")) == made.model_copy().digest


@every_model
@few
@given(data=st.data())
def test_a_model_survives_json_in_any_order_of_its_keys_and_is_strict(
    model: type[FrozenModel], data: st.DataObject
) -> None:
    made = data.draw(STRATEGIES[model])
    again = model.model_validate_json(made.model_dump_json())
    assert again == made
    assert again.digest == made.digest
    dumped = made.model_dump(mode="json")
    assert model.model_validate(json.loads(canonical_json(dumped))) == made
    assert model.model_validate(_reverse_keys(dumped)).digest == made.digest
    with pytest.raises(ValidationError, match="unknown_field"):
        model.model_validate(dumped | {"unknown_field": 1})
    for name in model.model_fields:
        with pytest.raises(
            InputError, match=rf"^{model.__name__}\.{name}: a {model.__name__} cannot be changed"
        ):
            setattr(made, name, getattr(made, name))


def _reverse_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reverse_keys(value[key]) for key in reversed(value)}
    return [_reverse_keys(one) for one in value] if isinstance(value, list) else value


@every_model
@few
@given(data=st.data())
def test_every_field_changes_the_digest_of_a_copy_which_is_pydantics(
    model: type[FrozenModel], data: st.DataObject
) -> None:
    one, other = data.draw(STRATEGIES[model]), data.draw(STRATEGIES[model])
    before = one.__getstate__()
    # they have tests of their own
    aside = {"plan", "previous", "calls"} if model is Trace else set()
    copies = {
        name: one.model_copy(update={name: getattr(other, name)}) for name in model.model_fields
    }
    for name, copied in copies.items():
        expected = BaseModel.model_copy(one, update={name: getattr(other, name)})
        assert copied.__getstate__() == expected.__getstate__()
    assert one.__getstate__() == before
    for name in copies.keys() - aside:
        assert (copies[name].digest == one.digest) == (
            _json(copies[name], name) == _json(one, name)
        ), name


def _json(model: FrozenModel, name: str) -> bytes:
    return canonical_json(model.model_dump(mode="json", include={name}))


@every_model
def test_a_constructor_names_the_wrong_field_and_no_validation_calls_it(
    model: type[FrozenModel],
) -> None:
    with pytest.raises(
        InputError, match=rf"^{model.__name__}\.unknown_field: unknown; "
    ) as refused:
        model(unknown_field=1)
    with pytest.raises(
        InputError, match=rf"^{model.__name__}: .* without the name of its field; write \w+=…"
    ):
        model("value")
    assert "values" not in signature(model).parameters
    assert refused.value.__suppress_context__  # pydantic's own error is not printed too
    assert not model.__pydantic_custom_init__


SCHEMA_REFERENCES, DEFINITIONS = models_json_schema([(model, "validation") for model in MODELS])
"""The JSON Schemas of all models, made together: each process that collects these tests needs them."""


def _has_numbers(model: type[FrozenModel]) -> bool:
    plain = DEFINITIONS["$defs"][SCHEMA_REFERENCES[model, "validation"]["$ref"].split("/")[-1]]
    left_out = {*FREE, "rendering"}  # which is made with the text of messages
    own = {
        name: field for name, field in plain.get("properties", {}).items() if name not in left_out
    }
    return any(f'"type": "{kind}"' in json.dumps(own) for kind in ("number", "integer"))


@pytest.mark.parametrize(
    "model", list(filter(_has_numbers, MODELS)), ids=lambda model: model.__name__
)
@settings(few, max_examples=at_most(30, quick=4))
@given(data=st.data())
def test_a_number_that_is_text_or_not_finite_is_refused(
    model: type[FrozenModel], data: st.DataObject
) -> None:
    values = data.draw(
        STRATEGIES[model].filter(lambda made: any(_places(made.model_dump(mode="json"))))
    )
    plain = values.model_dump(mode="json")
    *path, last = data.draw(st.sampled_from(list(_places(plain))))
    inside = plain
    for step in path:
        inside = inside[step]
    texts = [] if last == "native" else [str(inside[last])]
    inside[last] = data.draw(st.sampled_from([*texts, float("nan"), float("inf"), -float("inf")]))
    with pytest.raises(ValidationError):
        model.model_validate(plain)
    with pytest.raises(ValidationError):
        model.model_validate_json(json.dumps(plain))


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the numbers of a document stand, those in a user's own JSON left out."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield path
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if key not in FREE:
                yield from _places(inner, (*path, key))


@pytest.mark.landing
@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_digests_are_the_same_in_every_process(seed: str) -> None:
    script = "from tests.schema.samples import digests; print(*digests())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == digests()


def test_canonical_json_is_sorted_ascii_without_spaces() -> None:
    assert (
        canonical_json({"b": [1, 2.5, None, True], "a": {"é": "\n"}})
        == b'{"a":{"\\u00e9":"\\n"},"b":[1,2.5,null,true]}'
    )


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_canonical_json_refuses_values_that_json_does_not_have(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": [number]})


@pytest.mark.parametrize("long", ['\\"é😀\n\x7f\ud800' * 20_000, "a" * 65_536 + "é"])
def test_so_is_that_of_a_long_text_which_is_written_in_pieces(long: str) -> None:
    value = {"b": [long, 1.5, {"é": None}, long], "a": {}, "": long}
    assert digest_of(value) == sha256(canonical_json(value)).hexdigest()
    assert digest_of({1: long}) == sha256(canonical_json({1: long})).hexdigest()


def test_a_digest_is_the_sha256_of_the_canonical_json() -> None:
    assert digest_of({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
