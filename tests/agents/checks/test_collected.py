"""Which preferences a response recorded: the completeness of GroupTravelBench. No utility depends on it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from jurygraph import Jury, Response, Task, Trace
from jurygraph.errors import PlanError

EVALUATORS = ("checks.constraints", "checks.collected")
ANN = {
    "id": "ann",
    "constraints": [
        {"id": "budget: 900", "kind": "hard", "check": {"text": "cheap"}},
        {"id": "transport.must: train", "kind": "hard", "check": {"text": "train"}},
        {"id": "Rome.food.prefer_eat: pizza", "kind": "soft", "check": {"text": "pizza"}},
    ],
}
BEN = {
    "id": "ben",
    "constraints": [{"id": "budget: 900", "kind": "hard", "check": {"text": "cheap"}}],
}
TABLE = {
    "ann": {
        "budget": 900.0,
        "transport": {"must": ["train", "bus"], "avoid": []},
        "Rome": {"food": {"prefer_eat": []}},
    },
    "ben": {"budget": "900 or so"},
}


def trace_of(
    data: Any,
    evaluators: tuple[str, ...] = EVALUATORS,
    fields: Mapping[str, Any] = {},
    people: Sequence[Any] = (ANN, BEN),
    **weights: Any,
) -> Trace:
    config = {"evaluators": list(evaluators), "weights": {"method": "uniform", **weights}, **fields}
    task = Task.model_validate({"id": "trip", "query": "Plan a trip.", "stakeholders": people})
    with Jury.from_config(config) as jury:
        (trace,) = jury.score(task, [Response(id="plan", text="A cheap trip by train.", data=data)])
    return trace


def figures(trace: Trace) -> dict[str, float]:
    return dict(trace.reward.diagnostics["stakeholders"])


def test_completeness_is_the_recall_over_all_peoples_preferences_of_both_kinds() -> None:
    trace = trace_of({"preferences": TABLE})
    assert {v.question: v.score for v in trace.verdicts if v.evaluator == "checks.collected"} == {
        "checks.collected/collected/budget: 900@ann": 1.0,
        "checks.collected/collected/transport.must: train@ann": 1.0,
        "checks.collected/collected/Rome.food.prefer_eat: pizza@ann": 0.0,
        "checks.collected/collected/budget: 900@ben": 0.0,
    }
    assert figures(trace)["preference completeness"] == 50.0


@pytest.mark.parametrize(
    "data", [None, "a plan", {}, {"preferences": None}, {"preferences": ["train"]}, {"ann": TABLE}]
)
def test_a_response_without_a_table_collected_nothing(data: Any) -> None:
    trace = trace_of(data)
    assert figures(trace)["preference completeness"] == 0.0
    assert trace.reward.status == "ok"


def test_a_component_that_names_the_evaluator_is_the_completeness_as_a_share() -> None:
    component = {"completeness": {"inputs": {"collected": {"verdicts_of": "checks.collected"}}}}
    fields = {"components": component, "reward": {"stakeholders": 1.0, "completeness": 0.25}}
    assert trace_of({"preferences": TABLE}, fields=fields).reward.components["completeness"] == 0.5


def test_utilities_without_a_verdict_stay_unjudged_beside_it() -> None:
    ann = {"id": "ann", "constraints": [{"id": "budget: 900", "kind": "hard"}]}
    # without a model
    trace = trace_of({"preferences": TABLE}, ("preferences", "checks.collected"), people=[ann])
    assert (trace.reward.value, trace.reward.coverage) == (None, 0.0)
    assert figures(trace) == {"preference completeness": 100.0}
    assert "stakeholders 0 of 1, weight 1; not judged." in str(trace.explain())


def test_it_cannot_judge_a_utility_alone() -> None:
    with pytest.raises(PlanError, match="no evaluator has a question about 'ann'"):
        trace_of(None, ("checks.collected",))
