"""The score graph: task → plan → material → verdicts → rewards → trace, for every kind of question."""

import pytest

from jurygraph.schema import Stakeholder
from tests.graphs.scripted import (
    DATA_READER,
    SCRIPTED,
    by_id,
    criterion,
    evaluator_use,
    find_verdict,
    response,
    response_with,
    score_responses,
    task,
)

PEOPLE = {"stakeholders": [Stakeholder(id="ann"), Stakeholder(id="bob")]}


def test_response_scope_scores_each_response_by_itself() -> None:
    one, other = score_responses(
        {"evaluators": [evaluator_use("tone")]},
        task(),
        response("a", tone=0.25),
        response("b", tone=1.0),
    )
    assert (one.reward.value, other.reward.value) == (0.25, 1.0)
    assert (one.reward.status, one.reward.coverage, one.reward.range) == ("ok", 1.0, (0.25, 0.25))
    verdict = find_verdict(one, "tone")
    assert (verdict.evaluator, verdict.about, verdict.responses, verdict.subject) == (
        "tone",
        "a",
        ("a",),
        "tone",
    )


def test_group_scope_sees_the_group_and_answers_for_each() -> None:
    config = {"evaluators": [evaluator_use("rank", scope="group")]}
    traces = by_id(
        score_responses(
            config, task(), *(response(n, rank=s) for n, s in (("a", 1.0), ("b", "abstained")))
        )
    )
    assert traces["a"].reward.value == 1.0
    assert find_verdict(traces["b"], "rank").status == "abstained"
    assert set(find_verdict(traces["a"], "rank").responses) == {"a", "b"}


@pytest.mark.parametrize("scope", ["pair", "group"])
def test_a_group_of_one_has_nothing_to_compare_and_says_so(scope: str) -> None:
    config = {
        "evaluators": [evaluator_use("rank", scope=scope), evaluator_use("tone")],
        "reward": {"rank": 1.0, "tone": 1.0},
    }
    (trace,) = score_responses(config, task(), response("a", rank=1.0, tone=0.5))
    verdict = find_verdict(trace, "rank")
    assert (verdict.status, verdict.gated_by) == ("not_applicable", "group-of-one")
    assert (trace.reward.status, trace.reward.value, trace.reward.coverage) == (
        "degraded",
        0.5,
        1.0,
    )
    assert trace.reward.counts.not_applicable == 1
    assert any("one response" in note for note in trace.reward.notes)


@pytest.mark.parametrize(
    ("audience", "members"),
    [
        ("stakeholder", ["ann", "bob"]),
        ("criterion", ["clear", "short"]),
        ("reviewer", ["r1", "r2"]),
    ],
)
def test_each_member_of_an_audience_has_its_own_question(audience: str, members: list[str]) -> None:
    about = task(criterion("clear"), criterion("short", 3.0), reviewers=["r2", "r1"], **PEOPLE)
    config = {
        "evaluators": [evaluator_use("kind", audience=audience)],
        "weights": {"method": "uniform"},
    }
    script = {f"kind@{member}": score for member, score in zip(members, (0.0, 1.0), strict=True)}
    (trace,) = score_responses(config, about, response_with("a", script))
    assert [v.question for v in trace.verdicts] == [f"kind@{member}" for member in members]
    assert trace.reward.value == (0.75 if audience == "criterion" else 0.5)
    stamped = [(v.subject, v.stakeholder, v.reviewer) for v in trace.verdicts]
    assert stamped == [
        (m, m if audience == "stakeholder" else None, m if audience == "reviewer" else None)
        for m in members
    ]


GATED = {
    "evaluators": [
        evaluator_use("first"),
        {**evaluator_use("second"), "when": {"question": "first", "threshold": 0.5}},
        {**evaluator_use("third"), "when": {"question": "second", "op": "<", "threshold": 0.5}},
    ],
    "components": {
        "chain": {
            "inputs": {"1": "first", "2": {"verdicts_of": "second", "if_skipped": "left-out"}}
        },
        "end": {"inputs": {"3": {"verdicts_of": "third", "if_skipped": "zero"}}},
    },
    "reward": {"chain": 1.0, "end": 1.0},
}


def test_a_chain_of_gates_questions_only_responses_that_pass() -> None:
    traces = score_responses(
        GATED,
        task(),
        response("through", first=1.0, second=0.2, third=1.0),
        response("stopped late", first=0.5, second=0.9),  # has no third line: asking it would fail
        response("stopped at once", first=0.4),
    )
    statuses = [[find_verdict(t, q).status for q in ("first", "second", "third")] for t in traces]
    assert statuses == [
        ["ok"] * 3,
        ["ok", "ok", "not_applicable"],
        ["ok", "not_applicable", "not_applicable"],
    ]
    assert find_verdict(traces[1], "third").gated_by == "second"
    assert find_verdict(traces[2], "third").gated_by == "second"
    assert [t.reward.components for t in traces] == [
        {"chain": 0.6, "end": 1.0, "first": 1.0, "second": 0.2, "third": 1.0},
        {"chain": 0.7, "end": 0.0, "first": 0.5, "second": 0.9, "third": None},
        {"chain": 0.4, "end": 0.0, "first": 0.4, "second": None, "third": None},
    ]
    assert all(t.reward.status == "ok" and t.reward.coverage == 1.0 for t in traces)


def test_a_gate_that_needs_a_missing_model_does_not_remove_a_penalty() -> None:
    config = {
        "evaluators": [
            evaluator_use("gate", layer="model", uses_model=True),
            {**evaluator_use("harm"), "when": {"question": "gate", "threshold": 0.5}},
            evaluator_use("tone"),
        ],
        "components": {
            "harmful": {"inputs": {"h": {"verdicts_of": "harm", "if_skipped": "left-out"}}}
        },
        "reward": {"tone": 1.0, "harmful": -0.1},
    }
    (trace,) = score_responses(config, task(), response("a", tone=1.0, harm=1.0))
    assert find_verdict(trace, "gate").status == "abstained"
    harm = find_verdict(trace, "harm")
    assert harm.status == "abstained"
    assert harm.failure is not None
    assert harm.failure.kind == "no-model"
    assert trace.reward.status == "failed"


def test_a_gate_may_read_the_native_value() -> None:
    config = {
        "evaluators": [
            evaluator_use("stars"),
            {**evaluator_use("why"), "when": {"question": "stars", "on": "native", "threshold": 3}},
        ],
        "reward": {"stars": 1.0},
    }
    traces = score_responses(
        config,
        task(),
        response("a", stars={"score": 0.1, "native": 4.0}, why=1.0),
        response("b", stars={"score": 0.9, "native": 2.0}),
        response("c", stars={"score": 0.9, "native": "many"}),
    )
    assert [find_verdict(t, "why").status for t in traces] == ["ok", "not_applicable", "abstained"]


NOT_APPLICABLE = {"status": "not_applicable", "reason": "no table is needed"}


def test_a_question_that_does_not_apply_leaves_what_the_judged_ones_give() -> None:
    uses = [evaluator_use("tone"), evaluator_use("table")]
    config = {"evaluators": uses, "reward": {"tone": 1.0, "table": 0.5}}
    (trace,) = score_responses(config, task(), response("a", tone=0.25, table=NOT_APPLICABLE))
    verdict = find_verdict(trace, "table")
    assert (verdict.status, verdict.reason) == ("not_applicable", "no table is needed")
    assert (verdict.gated_by, verdict.responses) == (None, ("a",))
    assert (trace.reward.value, trace.reward.status, trace.reward.coverage) == (0.25, "ok", 1.0)
    assert trace.reward.range == (0.25, 0.25)
    assert trace.reward.counts.model_dump() == {
        "judged": 1,
        "abstained": 0,
        "failed": 0,
        "not_applicable": 1,
    }


MATERIAL = {
    "evaluators": [{"use": DATA_READER, "name": "reads", "params": {"needs": ["half", "measure"]}}],
    "derivers": ["tests.graphs.scripted:Measure", "tests.graphs.scripted:Half"],
}


def test_an_evaluator_gets_the_material_that_it_names_and_material_is_made_from_material() -> None:
    one, other = score_responses(
        MATERIAL, task(), response("a", measure=0.4), response("b", measure=0.8)
    )
    assert (one.reward.value, other.reward.value) == (pytest.approx(0.3), pytest.approx(0.6))
    assert find_verdict(one, "reads").reason == "[['half', 'measure']]"
    assert [(m.name, m.response, m.data) for m in one.material] == [
        ("half", "a", 0.2),
        ("measure", "a", 0.4),
    ]


VARIANTS = {
    "evaluators": [evaluator_use("same", material="versions"), evaluator_use("tone")],
    "derivers": ["tests.graphs.scripted:Versions"],
    "reward": {"same": 1.0, "tone": 1.0},
}


def test_verdicts_on_variants_count_to_their_parent() -> None:
    versions = [["a-1", {"same": 0.0}], ["a-2", {"same": 1.0}], ["a-3", {"same": 0.5}]]
    one, other = score_responses(
        VARIANTS,
        task(),
        response("a", tone=1.0, versions=versions),
        response("b", tone=1.0, versions=[["b-1", {"same": 1.0}]]),
    )
    assert one.reward.components == {"same": 0.5, "tone": 1.0}
    assert other.reward.components == {"same": 1.0, "tone": 1.0}
    about = [(v.about, v.responses) for v in one.verdicts if v.question == "same"]
    assert about == [("a", ("a-1",)), ("a", ("a-2",)), ("a", ("a-3",))]
    assert len(one.material[0].variants) == 3


def test_a_response_without_variants_is_not_excused_from_the_question() -> None:
    (trace,) = score_responses(VARIANTS, task(), response("a", tone=1.0, versions=[]))
    verdict = find_verdict(trace, "same")
    assert (verdict.status, verdict.gated_by) == ("not_applicable", "no-variant")
    assert (trace.reward.components["same"], trace.reward.counts.total, trace.reward.coverage) == (
        0.0,
        2,
        1.0,
    )


@pytest.mark.parametrize("scope", ["pair", "group"])
def test_a_comparison_that_lost_its_other_side_is_not_judged_rather_than_left_out(
    scope: str,
) -> None:
    use = {"use": DATA_READER, "name": "reads", "params": {"needs": ["measure"], "scope": scope}}
    config = {"evaluators": [use], "derivers": ["tests.graphs.scripted:Measure"]}
    left, _ = score_responses(
        config, task(), response("a", measure=1.0), response("b", measure="Exception")
    )
    verdict = find_verdict(left, "reads")
    assert verdict.status == "failed"
    assert verdict.failure is not None
    assert verdict.failure.cause == "infrastructure"


def test_every_branch_runs_and_is_in_the_trace_in_canonical_order() -> None:
    about = task(criterion("clear"), reviewers=["r1"], stakeholders=[Stakeholder(id="ann")])
    audiences = {"t": "task", "s": "stakeholder", "c": "criterion", "r": "reviewer"}
    config = {
        "evaluators": [
            evaluator_use(name, audience=audience) for name, audience in audiences.items()
        ]
        + [{"use": SCRIPTED, "name": "p", "params": {"scope": "pair"}}],
        "reward": {"t": 1.0, "stakeholders": 1.0, "rubric": 1.0, "r": 1.0, "p": 1.0},
        "weights": {"method": "uniform"},
    }
    script = {"t": 1.0, "s@ann": 0.5, "c@clear": 0.25, "r@r1": 0.0, "p": 1.0}
    trace, _ = score_responses(
        config, about, response_with("a", script), response_with("b", {**script, "p": 0.0})
    )
    assert [v.question for v in trace.verdicts] == ["c@clear", "p", "r@r1", "s@ann", "t"]
    assert trace.reward.value == 1.0 + 0.5 + 0.25 + 0.0 + 1.0
