"""`trace.explain()` and `jurygraph.explain` in Python, and the changes that would matter."""

import pickle
from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np
import pytest

import jurygraph as jg
from jurygraph.explanation import Explanation
from jurygraph.testing import ScriptedJudge

CONFIG: dict[str, Any] = {
    "evaluators": ["maths.format", "maths.steps", "maths.repetition"],
    "reward": {"format": 1.0, "steps": 0.5, "repetition": -0.2},
}
TASK = jg.Task(id="sum", query="What is 17 + 25?", reference="42")
RESPONSES = [
    jg.Response(id="kind", text="<think>17 + 25 = 42</think>\n<answer>42</answer>"),
    jg.Response(id="blunt\x1b[2J", text="It is 43\nIt is 43\nIt is 43"),
]


def score(**config: Any) -> dict[str, jg.Trace]:
    with jg.Jury.from_config(CONFIG | config) as jury:
        return {trace.response_id: trace for trace in jury.score(TASK, RESPONSES)}


def test_a_trace_explains_itself() -> None:
    trace = score()["kind"]
    explanation = trace.explain()
    assert isinstance(explanation, Explanation)
    assert (
        str(explanation).splitlines()[0]
        == f"Response kind to task sum gets {trace.reward.value:.4f}."
    )
    assert {line.component: line.value for line in explanation.lines} == {
        term.name: term.value for term in trace.reward.terms
    }
    assert sum(line.points for line in explanation.lines) == pytest.approx(trace.reward.value)
    assert len(explanation.what_if()) == 4
    assert (
        repr(explanation)
        == f"Explanation(response='kind', reward={trace.reward.value:.4g}, terms=3)"
    )


def test_an_explanation_as_a_json_value_has_its_points_gates_sentences_and_changes() -> None:
    trace = score(gates=[{"kind": "format", "component": "format", "below": 0.5}])["blunt\x1b[2J"]
    explanation = trace.explain()
    found = explanation.to_dict()
    assert (found["task_id"], found["response_id"], found["reward"]) == (
        "sum",
        trace.response_id,
        trace.reward.value,
    )
    assert [line["component"] for line in found["lines"]] == [
        line.component for line in explanation.lines
    ]
    assert [gate["kind"] for gate in found["gates"]] == ["format"]
    assert found["sentences"] == explanation.sentences()
    changes = [(change.name, change.gain) for change in explanation.what_if()]
    found = explanation.to_dict(what_if=True)
    assert [(change["name"], change["gain"]) for change in found["what_if"]] == changes
    assert found["sentences"] == explanation.sentences(what_if=True)


def test_text_of_a_response_cannot_control_the_terminal() -> None:
    explanation = score()["blunt\x1b[2J"].explain()
    assert "\x1b" not in str(explanation) + repr(explanation)
    assert "blunt\\u001b[2J" in str(explanation)


def test_a_trace_without_its_plan_needs_it() -> None:
    trace = score()["kind"]
    assert trace.plan is not None
    stored = jg.Trace.model_validate_json(trace.model_dump_json())
    with pytest.raises(
        jg.InputError,
        match=r"the trace of response 'kind' has no plan, .* keep its `trace.plan`.* `run.explain\('kind",
    ):
        stored.explain()
    explanation = stored.explain(jg.Plan.model_validate_json(trace.plan.model_dump_json()))
    assert explanation.sentences() == trace.explain().sentences()
    assert explanation.what_if() == trace.explain().what_if()
    with (
        jg.Jury.from_config(CONFIG) as jury,
        pytest.raises(jg.InputError, match="has another plan than the one given"),
    ):
        stored.explain(jury.prepare(TASK.model_copy(update={"query": "What is 1 + 1?"})))


def test_the_method_has_the_parameters_of_the_function() -> None:
    function, method = signature(jg.explain), signature(jg.Trace.explain)
    assert [str(one) for one in function.parameters.values()][1:] == [
        str(one).replace("'Trace'", "jurygraph.schema.trace.Trace")
        for one in method.parameters.values()
    ][1:]
    assert (function.return_annotation, method.return_annotation) == (jg.Explanation, Any)


class Lowest(jg.Combiner):
    def combine(
        self, matrices: Mapping[str, jg.ScoreMatrix], params: Mapping[str, Any]
    ) -> jg.Component:
        values, present = zip(*(matrix.mean() for matrix in matrices.values()), strict=True)
        return jg.Component(np.min(values, axis=0), np.any(present, axis=0), {})


@pytest.mark.parametrize(
    "combiner", [Lowest(), Lowest, f"{__name__}.Lowest"], ids=["object", "class", "name"]
)
def test_what_if_uses_the_combiners_of_the_jury(combiner: Any) -> None:
    class Local(Lowest):  # cannot be pickled, nor found by a name
        pass

    inputs = {"format": "maths.format", "steps": "maths.steps"}
    settings: dict[str, Any] = {
        "evaluators": ["maths.format", "maths.steps"],
        "components": {
            "low": {"combiner": combiner, "inputs": inputs},
            "local": {"combiner": Local, "inputs": inputs},
        },
        "reward": {"low": 1.0, "local": 1.0},
    }
    with jg.Jury(**settings) as jury:
        (trace,) = jury.score(TASK, RESPONSES[1:])
        plan = jury.prepare(TASK)
    changes = trace.explain().what_if()
    assert [(change.name, change.gain) for change in changes if change.raises_reward] != []
    sent = pickle.loads(pickle.dumps(trace))  # as to another process
    assert sent == trace
    assert sent.explain().sentences() == trace.explain().sentences()
    with pytest.raises(
        jg.InputError, match=r"unknown combiner 'Lo.*'.*; give `plan=jury.prepare\(task\)`"
    ):
        sent.explain().what_if()
    assert sent.explain(plan).what_if() == changes


def test_verdicts_that_do_not_give_the_reward_are_refused() -> None:
    trace = score()["kind"]
    changed = trace.model_copy(update={"reward": trace.reward.model_copy(update={"value": 9.0})})
    with pytest.raises(jg.TraceMismatch, match="has reward 9, and its verdicts give"):
        changed.explain().what_if()


def test_a_gate_that_is_passed_is_a_change() -> None:
    gate = {"kind": "format", "component": "format", "below": 0.5}
    trace = score(gates=[gate])["blunt\x1b[2J"]
    changes = {change.name: change for change in trace.explain().what_if()}
    opened = changes["format gate"]
    assert trace.reward.value == 0.0
    assert opened.condition == "the format gate were passed (format ≥ 0.5)"
    total = sum(term.contribution or 0.0 for term in trace.reward.terms)
    assert opened.value == pytest.approx(total)
    assert changes["steps"].gain == 0.0
    assert not changes["steps"].raises_reward


@jg.evaluator(layer="model")
def warm(task: jg.TaskView, response: jg.Response) -> float:
    return 0.5


@jg.evaluator(layer="model")
def rude(task: jg.TaskView, response: jg.Response) -> float:
    return 0.5


def test_a_response_gate_is_one_change_of_all_its_verdicts() -> None:
    config = {
        "evaluators": [f"{__name__}.warm", f"{__name__}.rude"],
        "reward": {"warm": 1.0, "rude": -0.5},
    }
    with jg.Jury.from_config(config) as jury:
        (trace,) = jury.score(TASK, [jg.Response(id="empty", text=" ")])
    explanation = trace.explain()
    assert trace.reward.value == -0.5
    (change,) = explanation.what_if()
    assert (change.kind, change.name, change.value, change.gain) == (
        "response gate",
        "empty-response",
        1.0,
        1.5,
    )
    assert "Response gate empty-response, the worst score (2): rude (" in str(explanation)
    assert "Lost 1: warm 0 of 1, weight 1 (an empty answer, the worst score)." in str(explanation)
    assert "Verdicts: 2 requested; 0 judged, 2 set by empty-response, 0 abstained" in str(
        explanation
    )
    assert "All verdicts are present" not in str(explanation)


@jg.evaluator(scope="pair", pairs="unordered", layer="check")
def longer(task: jg.TaskView, first: jg.Response, second: jg.Response) -> float:
    return 0.5


def test_a_group_of_one_is_decided_again_and_an_incomplete_group_is_not() -> None:
    config = {
        "evaluators": ["maths.format", f"{__name__}.longer"],
        "reward": {"format": 1.0, "longer": 0.5},
    }
    dropping = {
        "evaluators": ["maths.format"],
        "reward": {"format": 1.0},
        "failure": {"group_rule": "drop-criterion"},
    }
    for each in (config, dropping):
        with jg.Jury.from_config(each) as jury:
            (trace,) = jury.score(TASK, RESPONSES[1:])
        assert [change.name for change in trace.explain(group=[trace]).what_if()] == ["format"]
        with pytest.raises(
            jg.InputError,
            match=r"depends on the other .* group; write `trace.explain\(group=traces\)`",
        ):
            trace.explain().what_if()
    with jg.Jury.from_config(config) as jury:
        traces = jury.score(TASK, [*RESPONSES, jg.Response(id="third", text="42")])
    with pytest.raises(jg.InputError, match="depends on the other responses of its group"):
        traces[0].explain(group=traces[:2]).what_if()
    with pytest.raises(
        jg.InputError, match=r"^group\[0\]: belongs to another group of responses; give all traces"
    ):
        traces[0].explain(group=[trace])
    alone, other, *_ = score().values()
    # nothing is compared
    assert alone.explain(group=[other]).what_if() == alone.explain().what_if()


def test_a_pair_is_changed_from_the_side_of_the_response() -> None:
    config = {"evaluators": [f"{__name__}.longer"], "reward": {"longer": 1.0}}
    with jg.Jury.from_config(config) as jury:
        traces = jury.score(
            TASK, [jg.Response(id="a", text="one"), jg.Response(id="b", text="two")]
        )
    for trace, other in zip(traces, "ba", strict=True):
        best, worst = trace.explain(group=traces).what_if()
        assert (best.name, best.condition, worst.condition) == (
            f"longer against {other}",
            f"longer against {other} were 1",
            f"longer against {other} were 0",
        )
        assert (trace.reward.value, best.value, worst.value) == (0.5, 1.0, 0.0)


@jg.evaluator(scope="pair", pairs="unordered", layer="check")
def has_more(task: jg.TaskView, first: jg.Response, second: jg.Response) -> jg.Verdict:
    is_longer = len(first.text) > len(second.text)
    return jg.Verdict(score=float(is_longer), met=is_longer)


def test_who_won_a_pair_may_lose_it_from_either_side() -> None:
    with jg.Jury(evaluators=[has_more], reward={"has_more": 1.0}) as jury:
        traces = jury.score(
            TASK, [jg.Response(id="a", text="one"), jg.Response(id="b", text="one two")]
        )
    changes = [trace.explain(group=traces).what_if() for trace in traces]
    assert [[(change.condition, change.value) for change in row] for row in changes] == [
        [("has_more against b were met", 1.0)],
        [("has_more against a were not met", 0.0)],
    ]


def test_changes_of_the_same_name_have_their_question() -> None:
    evaluators = ["maths.length", "optimizer.efficiency"]
    traces = score(evaluators=evaluators, reward={"length": 1.0, "efficiency": 1.0})
    explanation = traces["kind"].explain(group=list(traces.values()))
    changes = [change for change in explanation.what_if() if change.name == "length"]
    assert {change.question for change in changes} == {
        "maths.length",
        "optimizer.efficiency/length",
    }
    ends = {f"length ({change.question}) were {end}" for change in changes for end in (0, 1)}
    assert {change.condition for change in changes} <= ends


def test_a_decision_at_its_best_may_be_surer_or_the_other_one() -> None:
    def helpful(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        return jg.Verdict(score=0.9, met=True)

    def rude(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        return jg.Verdict(score=0.1, met=False)

    def wrong(task: jg.TaskView, response: jg.Response) -> bool:
        return False

    reward = {"helpful": 1.0, "rude": -0.5, "wrong": -0.25}
    with jg.Jury(evaluators=[helpful, rude, wrong], reward=reward) as jury:
        (trace,) = jury.score(TASK, ["It is 42."])
    assert trace.explain().sentences(what_if=True)[-6:] == [
        "If helpful were certainly met (1 instead of 0.9): 0.95 (+0.1).",
        "If rude were certainly not met (0 instead of 0.1): 0.9 (+0.05).",
        "If helpful were not met: -0.05 (-0.9).",
        "If rude were met: 0.4 (-0.45).",
        "If wrong were met: 0.6 (-0.25).",
        "2 of 5 single changes would raise it, 3 would lower it.",
    ]


def test_a_score_at_one_end_may_be_at_the_other_and_no_change_changes_nothing() -> None:
    def brief(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        return jg.Verdict(score=1.0)

    def long(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        return jg.Verdict(score=0.0)

    with jg.Jury(evaluators=[brief, long], reward={"brief": 1.0, "long": 0.5}) as jury:
        (trace,) = jury.score(TASK, ["It is 42."])
    assert trace.explain().sentences(what_if=True)[-3:] == [
        "If long were 1: 1.5 (+0.5).",
        "If brief were 0: 0 (-1).",
        "1 of 2 single changes would raise it, 1 would lower it.",
    ]


def judge_by_majority(votes: Mapping[str, Any]) -> jg.Trace:
    """Return the trace of a letter whose kindness several judges vote on."""
    judges = {name: ScriptedJudge({"It is kind.": met}, name=name) for name, met in votes.items()}
    use = {"use": "criteria", "judges": [*judges], "fold": "majority"}
    rubric = jg.Rubric(criteria=(jg.Criterion(id="kind", text="It is kind.", weight=1),))
    with jg.Jury(models=judges, evaluators=[use], safety={"evidence": "off"}) as jury:
        task = jg.Task(id="letter", query="Write a letter.", rubric=rubric)
        (trace,) = jury.score(task, ["Dear friend, it is good to hear from you."])
    return trace


def test_what_most_judges_find_met_may_be_the_other_one() -> None:
    trace = judge_by_majority({"mild": True, "fair": True, "strict": False})
    assert trace.explain().sentences(what_if=True)[-2:] == [
        "If kind were not met: 0 (-1).",
        "0 of 2 single changes would raise it, 1 would lower it, 1 would change nothing.",
    ]


def test_votes_without_a_majority_are_named_with_what_is_missing() -> None:
    trace = judge_by_majority({"mild": True, "strict": False, "torn": "no decision"})
    words = (
        "no majority (mild met (1), strict not met (0), torn failed), so the failure rule counts"
    )
    assert any(words in sentence for sentence in trace.explain().sentences())


def test_feedback_has_the_words_of_criteria_that_lost_points_with_answer_and_reason() -> None:
    criteria = [
        {"id": "c1", "text": "It apologises.", "weight": 0.9},
        {"id": "c2", "text": "It says when.", "weight": 1},
        {"id": "c3", "text": "How clear it is.", "scale": [1, 5], "weight": 2},
        {"id": "c4", "text": "It is rude.", "weight": -3},
    ]
    task = jg.Task(id="letter", query="Write to Ann.", rubric={"criteria": criteria})
    quote = {"quotes": ["You are a fool"]}
    answers = {
        "apolog": {"met": False, "probability": 0.0, "reason": "No word of sorrow.", "quotes": []},
        "when": {"met": True, "probability": 0.9, **quote},
        "clear": {"value": 3, "reason": "Hard to read", **quote},
        "rude": {"met": True, "probability": 1.0, "reason": "It scolds", **quote},
    }
    with jg.Jury(model=ScriptedJudge(answers), evaluators=["criteria"]) as jury:
        (trace,) = jury.score(task, ["You are a fool."])
    explanation = trace.explain()
    assert explanation.feedback() == [
        "It is rude (a fault): met (1); It scolds, as in “You are a fool”",
        "How clear it is: 3 of 5; Hard to read, as in “You are a fool”",
        "It apologises: not met (0); No word of sorrow",
    ]
    assert not any(line.is_filled_in for line in explanation.lines)

    failing = ScriptedJudge(["no JSON"] * 2)
    wishes = [{"id": "k1", "text": "No walking.", "kind": "hard"}]
    people = [{"id": "ann", "profile": "Ann", "constraints": wishes}]
    task = jg.Task(id="trip", query="Plan a trip.", stakeholders=people)
    with jg.Jury(model=failing, evaluators=["preferences"]) as jury:
        (trace,) = jury.score(task, ["Walk."])
    assert trace.explain().feedback() == []  # an outage is nothing to mend
    assert trace.explain().lines[0].is_filled_in
    with jg.Jury(model=ScriptedJudge({"walking": False}), evaluators=["preferences"]) as jury:
        (trace,) = jury.score(task, ["We walk all day."])
    (text,) = trace.explain().feedback()
    assert text.startswith("No walking: not met (0); scripted, as in")
