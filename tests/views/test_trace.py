"""The view of a trace has the numbers that are shown, before anybody lays them out."""

import pytest

from jurygraph.schema import ComponentInput, Criterion, Decision, RecordedVerdict, Rubric, Task
from jurygraph.schema.plan import FormatGate
from jurygraph.schema.verdict import Failure
from jurygraph.views.trace import (
    TraceView,
    build_trace_view,
    criterion_texts,
    describe_failure,
    describe_lost_points,
)
from tests.explanation.test_sentences import chain, component, decide, explain, spec, verdict


def view(decision: Decision, *verdicts: RecordedVerdict) -> TraceView:
    return build_trace_view(explain(decide(decision, *verdicts), decision))


def test_a_graph_has_what_a_criterion_scored_and_what_its_prerequisite_left_of_it() -> None:
    rubric = chain("gear", ("a", 1.0), ("bad", -0.5), kept=0.2)
    (term,) = view(
        Decision(specs=(rubric,)), verdict("a", score=0.25), verdict("bad", score=0.8)
    ).terms
    assert term.graph is not None
    (edge,) = term.graph.edges
    assert (edge.parent, edge.child, edge.retention) == ("a", "bad", 0.2)
    nodes = {node.name: (node.weight, node.p, node.q) for node in term.graph.nodes}
    left = 0.8 * (0.25 + 0.75 * 0.2)  # GEAR Eq. 11 for one parent
    assert nodes == {"a": (1.0, 0.25, 0.25), "bad": (-0.5, 0.8, pytest.approx(left))}


def test_a_node_says_why_it_never_helps_what_depends_on_it() -> None:
    rubric = chain("gear", ("a", 1.0), ("b", 1.0), kept=0.0)
    samples = [verdict("a", score=0.8), verdict("a", score=0.0, sample=1, unsupported="worst-case")]
    (term,) = view(Decision(specs=(rubric,)), *samples, verdict("b", score=0.9)).terms
    assert term.graph is not None
    remarks = {node.name: node.remark for node in term.graph.nodes}
    assert remarks == {"a": "unsupported in 1 of 2 verdicts", "b": ""}


def test_a_stakeholder_to_whom_nothing_applies_gives_nothing_up() -> None:
    people = component("people", "nash", ("ann", 0.5), ("ben", 0.5))
    (term,) = view(
        Decision(specs=(people,)),
        verdict("ann", status="not_applicable"),
        verdict("ben", score=0.4),
    ).terms
    assert term.weights is not None
    given_up = {member.name: member.forgone_utility for member in term.weights.stakeholders}
    assert given_up == {"ann": None, "ben": pytest.approx(0.6)}


def test_what_the_terms_lost_adds_up_to_the_reward() -> None:
    specs = (component("short", "mean", ("a", 1.0)), component("kind", "mean", ("b", 1.0)))
    shown = view(Decision(specs=specs), verdict("a", score=0.25), verdict("b", score=0.5))
    assert [line.component for line in shown.lost] == ["short", "kind"]
    best = sum(max(term.weight, 0.0) for term in shown.terms)
    lost = sum(line.lost for line in shown.lost)
    assert best - lost == pytest.approx(shown.trace.reward.value)
    assert shown.counts.total == shown.counts.judged == 2


def test_the_answers_of_several_judges_stand_beside_what_counts() -> None:
    """A finding without a quotation is the worst case, and no vote: nobody agrees with the judge who has one."""
    use = ComponentInput(questions=("a",), weights=(1.0,), reduce="majority", has_judges=True)
    decision = Decision(specs=(spec("a", 1.0).model_copy(update={"inputs": {"a": use}}),))
    shown = view(
        decision,
        verdict("a", score=0.0, judge="fair", unsupported="worst-case"),
        verdict("a", score=0.9, judge="mild"),
        verdict("a", score=0.0, judge="strict", unsupported="worst-case"),
    )
    answers = {"fair": "unsupported", "mild": "0.9000", "strict": "unsupported"}
    assert shown.judges == [("a", "a", answers, "no majority: worst case")]
    assert shown.terms[0].diagnostics == {"discarded": 0.0}  # those of samples know no judges


def test_what_the_failure_rule_fills_in_is_no_answer_of_judges() -> None:
    use = ComponentInput(questions=("a",), weights=(1.0,), reduce="majority", has_judges=True)
    decision = Decision(specs=(spec("a", 1.0).model_copy(update={"inputs": {"a": use}}),))
    answered = verdict("a", score=0.9, judge="mild")
    failed = {
        "status": "failed",
        "failure": Failure(kind="timeout", message="late", cause="infrastructure"),
    }
    missing = [verdict("a", judge=judge, **failed) for judge in ("fair", "strict")]
    (row,) = view(decision, answered, *missing).judges
    assert row.counted == "filled in by the failure rule"


def test_a_sum_is_followed_by_what_scale_and_clip_make_of_it() -> None:
    decision = Decision(
        specs=(component("kind", "mean", ("next", 1.0)),), scale=2.0, clip=(0.0, 0.5)
    )
    trace = decide(decision, verdict("next", score=0.5))
    assert describe_lost_points(explain(trace, decision), {}).splitlines()[1:] == [
        "Sum: 1 at best - 0.5 = 0.5",
        "Scale: 0.5 × 2 = 1",
        "Clip to 0 to 0.5: 1 → 0.5",
    ]


def test_a_sum_ends_with_what_the_gates_make_of_it() -> None:
    gate = FormatGate(component="kind", below=0.6)
    decision = Decision(specs=(component("kind", "mean", ("next", 1.0)),), gates=(gate,))
    trace = decide(decision, verdict("next", score=0.5))
    assert describe_lost_points(explain(trace, decision), {}).splitlines()[-2:] == [
        "Format gate on kind: 0.5 → 0",
        "Sum: 1 at best - 0.5 = 0.5, after the format gate 0",
    ]


def test_every_loss_is_named_with_the_words_of_its_criterion() -> None:
    rubric = chain("gear", ("next", 1.0), ("rule", 3.0), kept=1.0)
    kind = component("kind", "mean", ("next", 1.0))
    decision = Decision(specs=(rubric, kind))
    trace = decide(decision, verdict("next", score=0.0), verdict("rule", score=0.0))
    criteria = [
        Criterion(id="next", text="It says what to do.", weight=1.0),
        Criterion(id="rule", text="It names the rule.", weight=3.0),
    ]
    task = Task(id="t", query="Q", rubric=Rubric(criteria=criteria))
    explanation = explain(trace, decision)
    losses = describe_lost_points(explanation, criterion_texts(decision, task)).splitlines()
    assert [loss.partition(" of 1")[0] for loss in losses] == [
        "Lost 1: kind 0",  # no criterion, although its question has the name of one
        "Lost 0.75: rule “It names the rule.” 0",
        "Lost 0.25: next “It says what to do.” 0",
        "Sum: 2 at best - 1 - 1 = 0",
    ]
    assert criterion_texts(decision, None) == {}
    decision = Decision(specs=(component("rubric", "flat", ("next", 1.0)),))
    explanation = explain(decide(decision, verdict("next", score=0.0)), decision)
    alone = task.model_copy(update={"rubric": Rubric(criteria=criteria[:1])})
    losses = describe_lost_points(explanation, criterion_texts(decision, alone))
    assert losses.startswith("Lost 1: next “It says what to do.” 0 of 1, weight 1")


def test_a_failure_is_told_without_the_words_of_its_machinery() -> None:
    missing = Failure(cause="response", kind="malformed", message="EOF at line 1")
    decision = Decision(specs=(component("kind", "mean", ("a", 1.0), ("b", 1.0)),))
    given = verdict("a", score=1.0)
    lost = verdict("b", status="failed", judge="strict", failure=missing)
    trace = decide(decision, given, lost)
    assert trace.reward.value is None
    assert describe_failure(trace) == (
        "Not scored: judge strict gave no usable reply (malformed); it would be between 0.5 and 1"
    )


def test_a_yes_that_is_hardly_unsure_is_the_best_decision() -> None:
    specs = (component("rubric", "flat", ("good", 2.0), ("bad", -1.0), ("sure", 1.0)),)
    shown = view(
        Decision(specs=specs),
        verdict("good", score=0.9, met=True),
        verdict("bad", score=0.1, met=False),
        verdict("sure", score=0.4, met=False),
    )
    assert {explained.effect for explained in shown.verdicts} == {"deduction"}
    best = {explained.name: explained.has_best_decision for explained in shown.verdicts}
    assert best == {"good": True, "bad": True, "sure": False}
