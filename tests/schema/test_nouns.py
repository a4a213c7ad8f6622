"""What holds of every noun: frozen, strict, one digest, and back from JSON as it was."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from jurygraph import schema
from jurygraph.schema import FrozenModel, Trace, canonical_json, digest_of
from tests.examples import at_most
from tests.schema.nouns import FREE, NOUNS, STRATEGIES
from tests.schema.samples import digests

few = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
every_noun = pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.__name__)


def test_every_noun_is_tested_here() -> None:
    public = [value for value in vars(schema).values() if isinstance(value, type) and issubclass(value, FrozenModel)]
    assert set(public) == {FrozenModel, *NOUNS}


@every_noun
@few
@given(data=st.data())
def test_it_comes_back_from_json(noun: type[FrozenModel], data: st.DataObject) -> None:
    made = data.draw(STRATEGIES[noun])
    again = noun.model_validate_json(made.model_dump_json())
    assert again == made
    assert again.digest == made.digest
    assert noun.model_validate(json.loads(canonical_json(made.model_dump(mode="json")))) == made


@every_noun
@few
@given(data=st.data())
def test_its_digest_does_not_depend_on_the_order_of_keys(noun: type[FrozenModel], data: st.DataObject) -> None:
    made = data.draw(STRATEGIES[noun])
    turned = _keys_reversed(made.model_dump(mode="json"))
    assert noun.model_validate(turned).digest == made.digest


def _keys_reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _keys_reversed(value[key]) for key in reversed(value)}
    return [_keys_reversed(one) for one in value] if isinstance(value, list) else value


@every_noun
@few
@given(data=st.data())
def test_its_digest_changes_with_every_field(noun: type[FrozenModel], data: st.DataObject) -> None:
    one, other = data.draw(STRATEGIES[noun]), data.draw(STRATEGIES[noun])
    aside = {"plan", "previous", "calls"} if noun is Trace else set()  # they have tests of their own
    for name in noun.model_fields.keys() - aside:
        changed = one.model_copy(update={name: getattr(other, name)})
        assert (changed.digest == one.digest) == (_json(changed, name) == _json(one, name)), name


def _json(noun: FrozenModel, name: str) -> bytes:
    return canonical_json(noun.model_dump(mode="json", include={name}))


@every_noun
@few
@given(data=st.data())
def test_it_is_frozen(noun: type[FrozenModel], data: st.DataObject) -> None:
    made = data.draw(STRATEGIES[noun])
    for name in noun.model_fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(made, name, getattr(made, name))


@every_noun
@few
@given(data=st.data())
def test_it_refuses_an_unknown_field(noun: type[FrozenModel], data: st.DataObject) -> None:
    values = data.draw(STRATEGIES[noun]).model_dump(mode="json")
    with pytest.raises(ValidationError, match="unheard_of"):
        noun.model_validate(values | {"unheard_of": 1})


def _has_numbers(noun: type[FrozenModel]) -> bool:
    plain = noun.model_json_schema(mode="validation")
    own = {name: field for name, field in plain.get("properties", {}).items() if name not in FREE}
    return any(f'"type": "{kind}"' in json.dumps(own) for kind in ("number", "integer"))


@pytest.mark.parametrize("noun", list(filter(_has_numbers, NOUNS)), ids=lambda noun: noun.__name__)
@settings(few, max_examples=at_most(30))
@given(data=st.data())
def test_it_refuses_a_number_that_is_text_or_not_finite(noun: type[FrozenModel], data: st.DataObject) -> None:
    values = data.draw(STRATEGIES[noun].filter(lambda made: any(_places(made.model_dump(mode="json")))))
    plain = values.model_dump(mode="json")
    *path, last = data.draw(st.sampled_from(list(_places(plain))))
    inside = plain
    for step in path:
        inside = inside[step]
    texts = [] if last == "native" else [str(inside[last])]
    inside[last] = data.draw(st.sampled_from([*texts, float("nan"), float("inf"), -float("inf")]))
    with pytest.raises(ValidationError):
        noun.model_validate(plain)
    with pytest.raises(ValidationError):
        noun.model_validate_json(json.dumps(plain))


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the numbers of a document stand, those in a user's own JSON left out."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield path
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if key not in FREE:
                yield from _places(inner, (*path, key))


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
def test_canonical_json_refuses_what_is_no_json(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": [number]})


def test_a_digest_is_the_sha256_of_the_canonical_json() -> None:
    assert digest_of({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


def test_a_copy_with_other_content_has_its_own_digest() -> None:
    made = schema.Response(id="a", text="one")
    known = made.digest, made.content_digest
    copied = made.model_copy(update={"text": "two"})
    assert (copied.digest, copied.content_digest) != known
    assert copied.digest == schema.Response(id="a", text="two").digest
