"""The published JSON Schemas (`jurygraph schema …`) accept what the models accept."""

import json
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jurygraph.schema import Config, FrozenModel, ResponseLine, TaskLine, Trace
from tests.examples import at_most
from tests.schema.json_schema import faults
from tests.schema.samples import CONFIG, RESPONSE, TASK, TRACE
from tests.schema.strategies import STRATEGIES

WRITTEN: list[tuple[type[FrozenModel], dict[str, Any]]] = [
    (TaskLine, TASK),
    (ResponseLine, RESPONSE),
    (Config, CONFIG),
]
CONFIG_IN_FULL = CONFIG | {
    "derivers": ["my_package.extract"],
    "components": {
        "both": {
            "combiner": "product",
            "inputs": {"a": "maths.accuracy", "l": {"verdicts_of": "length"}},
        }
    },
    "gates": [{"kind": "format", "below": 0.5}],
    "clip": [0, 1],
}


def schema_of(
    model: type[FrozenModel], mode: Literal["validation", "serialization"] = "validation"
) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(model.model_json_schema(mode=mode)))
    return plain


@pytest.mark.parametrize(
    ("model", "document"), [*WRITTEN, (Config, CONFIG_IN_FULL)], ids=lambda it: str(it)[:30]
)
def test_the_example_conforms(model: type[FrozenModel], document: dict[str, Any]) -> None:
    model.model_validate(document)
    assert faults(document, schema_of(model)) == []


def test_a_written_trace_conforms() -> None:
    written = json.loads(Trace.model_validate(TRACE).model_dump_json())
    assert faults(written, schema_of(Trace, "serialization")) == []


@pytest.mark.parametrize(
    "model", [TaskLine, ResponseLine, Config, Trace], ids=lambda model: model.__name__
)
@settings(max_examples=at_most(30, quick=5), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_dumped_model_conforms(model: type[FrozenModel], data: st.DataObject) -> None:
    written = json.loads(data.draw(STRATEGIES[model]).model_dump_json())
    assert (
        faults(written, schema_of(model, "serialization" if model is Trace else "validation")) == []
    )


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"unknown_field": 1}, "$ additionalProperties"),
        ({"id": ""}, "$.id minLength"),
        ({"reviewers": "r1"}, "$.reviewers type"),
        ({"responses": [{"id": "r"}]}, "$.responses[0] anyOf"),
    ],
)
def test_the_schema_refuses_the_invalid_lines_that_the_models_refuse(
    change: dict[str, Any], fault: str
) -> None:
    assert faults(TASK | change, schema_of(TaskLine)) == [fault]


def test_the_schema_refuses_a_number_written_as_text() -> None:
    assert faults(CONFIG | {"scale": "1"}, schema_of(Config)) == ["$.scale type"]
