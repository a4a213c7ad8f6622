"""The names of the contract (design/contract.md, "Files"): users' files and scripts rely on every one of them."""

from typing import Any

from jurygraph import schema
from jurygraph.schema import FrozenModel, Trace
from tests.rows import all_rows
from tests.schema.samples import TRACE

WRITTEN: dict[type[FrozenModel], str] = {
    schema.TaskLine: "id query stakeholders rubric reviewers reference facts group metadata responses",
    schema.Stakeholder: "id profile constraints",
    schema.Constraint: "id text kind restrictiveness check",
    schema.Rubric: "criteria edges",
    schema.Criterion: "id text weight role scale",
    schema.Edge: "parent child kind retention",
    schema.Response: "id text agent data labels metadata",
    schema.ResponseLine: "task id text agent data labels metadata",
    schema.Config: "model evaluators weights rubric reward gates clip scale failure",
    schema.WeightsConfig: "method gamma beta temperature",
    schema.RubricConfig: "aggregation kappa",
    schema.FailureConfig: "rule min_coverage max_error_rate",
}
"""What users write."""

SHOWN: dict[type[FrozenModel], str] = {
    schema.Trace: (
        "task_id response_id agent group labels plan_digest reward verdicts material statistics previous calls"
    ),
    schema.Reward: "value status partial coverage range components terms counts",
    schema.Term: "name weight value contribution",
    schema.Counts: "judged abstained failed not_applicable",
    schema.RecordedVerdict: (
        "question evaluator version layer subject stakeholder reviewer about responses sample score met native scale "
        "confidence status failure gated_by reason evidence call"
    ),
    schema.Failure: "cause kind message",
    schema.Evidence: "quote start end source verified",
    schema.Call: (
        "provider model served endpoint parameters prompt prompt_version tokens_in tokens_out cost latency cache_hit "
        "attempts"
    ),
}
"""What a trace shows."""

PLANNED: dict[type[FrozenModel], str] = {
    schema.TaskView: "id query about reference",
    schema.Condition: "question reduce op threshold on",
    schema.Question: (
        "id evaluator version subject view branch layer scope material needs when pairs samples params"
    ),
    schema.Material: "name response status data variants evidence failure call",
    schema.Survey: "questions derivations waves views",
    schema.Plan: "survey decision",
    schema.Decision: "specs rule min_coverage group_rule",
    schema.ComponentSpec: "name weight combiner inputs params",
    schema.ComponentInput: "questions weights reduce input_weight if_skipped",
}
"""The fields of the parts of a plan."""

NAMED = {**WRITTEN, **SHOWN, **PLANNED}


@all_rows("model", NAMED)
def test_models_have_the_fields_of_the_contract(model: type[FrozenModel]) -> None:
    assert set(NAMED[model].split()) <= model.model_fields.keys()


def test_a_dumped_trace_has_every_field_on_every_level() -> None:
    dumped = Trace.model_validate(TRACE).model_dump(mode="json")
    places: list[tuple[Any, type[FrozenModel]]] = [
        (dumped, schema.Trace),
        (dumped["reward"], schema.Reward),
        (dumped["reward"]["terms"][0], schema.Term),
        (dumped["reward"]["counts"], schema.Counts),
        (dumped["verdicts"][0], schema.RecordedVerdict),
        (dumped["verdicts"][0]["evidence"][0], schema.Evidence),
        (dumped["verdicts"][1]["failure"], schema.Failure),
        (dumped["calls"][0], schema.Call),
    ]
    for written, model in places:
        assert set(SHOWN[model].split()) <= written.keys(), model.__name__
    assert "digest" in dumped


def test_missing_values_are_null_and_not_omitted() -> None:
    dumped = Trace.model_validate(TRACE | {"agent": None, "previous": None}).model_dump(mode="json")
    assert dumped["agent"] is None
    assert dumped["previous"] is None
    assert dumped["verdicts"][1]["score"] is None


VALUES = {
    ("Verdict", "status"): "ok abstained failed not_applicable",
    ("RecordedVerdict", "layer"): "fact check model residual human",
    ("Failure", "cause"): "response infrastructure evaluator",
    ("Reward", "status"): "ok degraded failed",
    ("Constraint", "kind"): "hard soft",
    ("Edge", "kind"): "weak strong activation",
    ("Question", "scope"): "response pair group",
    ("FailureConfig", "rule"): "conservative decisive gear strict",
    ("FailureConfig", "group_rule"): "drop-criterion",
}


@all_rows(("model", "field"), VALUES)
def test_literals_have_the_values_of_the_contract(model: str, field: str) -> None:
    field_schema = getattr(schema, model).model_json_schema()["properties"][field]
    listed = next(
        (one for one in field_schema.get("anyOf", []) if one.get("type") != "null"), field_schema
    )
    assert set(VALUES[model, field].split()) == set(listed.get("enum", [listed.get("const")]))
