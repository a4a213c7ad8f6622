"""Values of a schema that a grammar enforces are bounded, so that a small model ends its reply; the engine's start."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jurygraph.judges.criteria import Binary, _reply_model
from jurygraph.models.backends import gguf
from jurygraph.models.backends.gguf import bound_schema_values
from jurygraph.models.judge_client import answer_schema

TEXT = {"type": "string"}


def schema(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def longest(part: dict[str, Any]) -> int:
    """Return the most letters that all strings of a schema may have together, by its own rules."""
    if part.get("type") == "array":
        return int(part["maxItems"]) * longest(part["items"])
    if part.get("type") == "string":
        return int(part["maxLength"])
    return sum(map(longest, [*part.get("properties", {}).values(), *part.get("anyOf", [])]))


def test_strings_share_the_reply_and_keep_a_closer_bound_of_their_own() -> None:
    short = {"type": "string", "maxLength": 50}
    bounded = bound_schema_values(
        schema(a=TEXT, b={"type": "array", "items": TEXT, "maxItems": 3}, c=short), 500
    )
    properties = bounded["properties"]
    assert properties["a"]["maxLength"] == properties["b"]["items"]["maxLength"] == 1000 // 5
    assert properties["c"]["maxLength"] == 50


def test_a_schema_of_ones_own_may_hold_a_tuple_or_a_list_of_anything() -> None:
    pair = {"type": "array", "prefixItems": [TEXT, TEXT], "minItems": 2, "maxItems": 2}
    bounded = bound_schema_values(schema(a=TEXT, pair=pair, rest={"type": "array"}), 300)
    properties = bounded["properties"]
    lengths = [part["maxLength"] for part in properties["pair"]["prefixItems"]]
    assert [properties["a"]["maxLength"], *lengths] == [600 // 3] * 3
    assert properties["rest"] == {"type": "array"}


def test_a_judges_reply_on_four_criteria_fits_into_its_tokens() -> None:
    model = _reply_model(
        tuple((f"criterion_{n}", Binary().reply_model(compact=False)) for n in range(1, 5))
    )
    assert longest(bound_schema_values(answer_schema(model), 1024)) <= 2 * 1024


def test_names_of_choices_and_schemas_without_a_limit_of_tokens_stay_as_they_are() -> None:
    choice = {"type": "string", "enum": ["A", "B"]}
    assert bound_schema_values(schema(a=choice), 8) == schema(a=choice)
    assert bound_schema_values(schema(a=TEXT), None) == schema(a=TEXT)


def test_a_string_may_always_have_some_letters() -> None:
    fields = {f"f{n}": TEXT for n in range(100)}
    assert {
        each["maxLength"]
        for each in bound_schema_values(schema(**fields), 100)["properties"].values()
    } == {40}


def test_a_number_has_an_end_and_keeps_bounds_of_its_own() -> None:
    share = {"type": "number", "minimum": 0, "exclusiveMaximum": 1}
    bounded = bound_schema_values(
        schema(price={"type": "number"}, share=share, count={"type": "integer"}), 100
    )["properties"]
    assert bounded["price"] == {
        "type": "number",
        "multipleOf": 1e-6,
        "minimum": -(10**12),
        "maximum": 10**12,
    }
    assert bounded["share"] == {**share, "multipleOf": 1e-6}
    assert bounded["count"] == {"type": "integer", "minimum": -(10**12), "maximum": 10**12}


def test_an_engine_answers_before_it_may_be_unloaded_and_has_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that is unloaded before its loop began would wait for ever."""
    sent: list[str] = []
    parameters = SimpleNamespace(
        **{part: SimpleNamespace() for part in ("model", "cpuparams", "cpuparams_batch")}
    )
    server = SimpleNamespace(handle_metrics=lambda: sent.append("metrics"))
    library = SimpleNamespace(CommonParams=lambda: parameters, Server=lambda _: server)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0}, raising=False)
    monkeypatch.setattr(gguf, "import_xllamacpp", lambda: library)
    assert gguf.start_engine(Path("tiny.gguf")) is server
    assert sent == ["metrics"]
    assert parameters.cpuparams.n_threads == parameters.cpuparams_batch.n_threads == 1
