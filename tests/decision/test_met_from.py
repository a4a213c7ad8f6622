"""`rubric.met_from`: the score from which hard gating takes a criterion as met, where its judge has not decided."""

import pytest

import jurygraph as jg
from jurygraph import Jury, Task, Trace, Verdict

TASK = Task.model_validate(
    {
        "id": "t",
        "query": "?",
        "rubric": {
            "criteria": [{"id": name, "text": name, "weight": 1.0} for name in ("parent", "child")],
            "edges": [{"parent": "parent", "child": "child", "kind": "weak"}],
        },
    }
)


def trace_of(parent: Verdict, met_from: float, aggregation: str = "hard-local") -> Trace:
    """Return the trace of a response whose child is met in full."""

    @jg.evaluator(audience="criterion", version="1")
    def given(task: jg.TaskView, response: jg.Response) -> Verdict:
        return parent if task.about and task.about.id == "parent" else Verdict(score=1.0)

    rubric = {"aggregation": aggregation, "met_from": met_from}
    with Jury(evaluators=[given], rubric=rubric) as jury:
        (trace,) = jury.score(TASK, ["text"])
    return trace


@pytest.mark.parametrize(
    ("parent", "met_from", "child"),
    [
        (Verdict(score=0.6), 0.5, 1.0),
        (Verdict(score=0.6), 0.7, 0.0),
        (Verdict(score=0.7), 0.7, 1.0),
        (Verdict(score=0.6, met=True), 0.7, 1.0),
        (Verdict(score=0.9, met=False), 0.7, 0.0),
    ],
)
def test_a_parent_without_a_decision_is_met_from_there(
    parent: Verdict, met_from: float, child: float
) -> None:
    parts = trace_of(parent, met_from).reward.parts["rubric"]
    assert parts["child"] == child
    assert parts["parent"] == parent.score


def test_it_changes_nothing_under_gear_and_is_in_the_plan_only_where_it_is_set() -> None:
    default, changed = (trace_of(Verdict(score=0.6), met_from, "gear") for met_from in (0.5, 0.7))
    assert default.plan_digest == changed.plan_digest
    assert trace_of(Verdict(score=0.6), 0.5, "hard-local").plan_digest != default.plan_digest
