"""The score graph: task → plan → material → verdicts → rewards → trace, for every kind of question."""

import pytest

from jurygraph.errors import InputError
from jurygraph.schema import Response, Stakeholder
from tests.graphs.cast import (
    DATA,
    TOLD,
    by_id,
    criterion,
    response,
    rewarded,
    said,
    scored,
    task,
    told,
    verdict_on,
)

PEOPLE = {"stakeholders": [Stakeholder(id="ann"), Stakeholder(id="bob")]}


def test_response_scope_scores_each_response_by_itself() -> None:
    one, other = scored({"evaluators": [told("tone")]}, task(), response("a", tone=0.25), response("b", tone=1.0))
    assert (one.reward.value, other.reward.value) == (0.25, 1.0)
    assert (one.reward.status, one.reward.coverage, one.reward.range) == ("ok", 1.0, (0.25, 0.25))
    verdict = verdict_on(one, "tone")
    assert (verdict.evaluator, verdict.about, verdict.responses, verdict.subject) == ("tone", "a", ("a",), "tone")


def test_ordered_pairs_are_requested_in_both_orders() -> None:
    config = {"evaluators": [told("better", scope="pair")]}
    traces = by_id(scored(config, task(), *(response(n, better=s) for n, s in (("a", 1.0), ("b", 0.5), ("c", 0.0)))))
    assert {name: trace.reward.value for name, trace in traces.items()} == {"a": 0.875, "b": 0.5, "c": 0.125}
    is_requested = {v.responses for trace in traces.values() for v in trace.verdicts}
    assert len(is_requested) == 6
    assert all(v.about == v.responses[0] for trace in traces.values() for v in trace.verdicts)
    assert traces["a"].reward.counts.total == 2


def test_an_unordered_pair_is_requested_once_and_counts_for_both_responses() -> None:
    said_once = {"evaluators": [told("better", scope="pair", pairs="unordered")]}
    group = [response(n, better=s) for n, s in (("a", 1.0), ("b", 0.5), ("c", 0.0))]
    traces = by_id(scored(said_once, task(), *group))
    assert {name: trace.reward.value for name, trace in traces.items()} == {"a": 0.875, "b": 0.5, "c": 0.125}
    assert len({v.responses for trace in traces.values() for v in trace.verdicts}) == 3
    assert all(trace.reward.counts.total == 2 for trace in traces.values())


def test_group_scope_sees_the_group_and_answers_for_each() -> None:
    config = {"evaluators": [told("rank", scope="group")]}
    traces = by_id(scored(config, task(), *(response(n, rank=s) for n, s in (("a", 1.0), ("b", "abstained")))))
    assert traces["a"].reward.value == 1.0
    assert verdict_on(traces["b"], "rank").status == "abstained"
    assert set(verdict_on(traces["a"], "rank").responses) == {"a", "b"}


@pytest.mark.parametrize("scope", ["pair", "group"])
def test_a_group_of_one_has_nothing_to_compare_and_says_so(scope: str) -> None:
    config = {"evaluators": [told("rank", scope=scope), told("tone")], "reward": {"rank": 1.0, "tone": 1.0}}
    (trace,) = scored(config, task(), response("a", rank=1.0, tone=0.5))
    verdict = verdict_on(trace, "rank")
    assert (verdict.status, verdict.gated_by) == ("not_applicable", "group-of-one")
    assert (trace.reward.status, trace.reward.value, trace.reward.coverage) == ("degraded", 0.5, 1.0)
    assert trace.reward.counts.not_applicable == 1
    assert any("one response" in note for note in trace.reward.notes)


def test_a_group_of_one_without_another_question_fails() -> None:
    (reward,) = rewarded({"evaluators": [told("rank", scope="group")]}, task(), response("a", rank=1.0))
    assert (reward.status, reward.value, reward.coverage, reward.partial) == ("failed", None, 0.0, None)


def test_an_empty_group_is_refused() -> None:
    with pytest.raises(InputError, match="group of none"):
        scored({"evaluators": [told("tone")]}, task())


def test_a_response_is_shown_without_its_agent_and_labels() -> None:
    """`Told` asserts it on each response that it is shown; the trace has both back."""
    config = {"evaluators": [told("tone"), told("rank", scope="group")], "reward": {"tone": 1.0, "rank": 1.0}}
    named = Response(id="a", text="", agent="gpt", labels={"correct": True}, data={"tone": 1.0, "rank": 1.0})
    trace, _ = scored(config, task(), named, response("b", tone=0.0, rank=0.0))
    assert trace.reward.status == "ok"
    assert (trace.agent, trace.labels) == ("gpt", {"correct": True})


def test_neither_agent_nor_labels_change_a_reward() -> None:
    config = {"evaluators": [told("better", scope="pair")]}
    script = {"better": 0.25}
    plain = [Response(id="a", text="x", data=script), Response(id="b", text="y", data=script)]
    named = [r.model_copy(update={"agent": f"agent-{9 - i}", "labels": {"n": i}}) for i, r in enumerate(plain)]
    assert rewarded(config, task(), *plain) == rewarded(config, task(), *named)


@pytest.mark.parametrize(
    ("audience", "members"),
    [("stakeholder", ["ann", "bob"]), ("criterion", ["clear", "short"]), ("reviewer", ["r1", "r2"])],
)
def test_each_member_of_an_audience_has_its_own_question(audience: str, members: list[str]) -> None:
    about = task(criterion("clear"), criterion("short", 3.0), reviewers=["r2", "r1"], **PEOPLE)
    config = {"evaluators": [told("kind", audience=audience)], "weights": {"method": "uniform"}}
    script = {f"kind@{member}": score for member, score in zip(members, (0.0, 1.0), strict=True)}
    (trace,) = scored(config, about, said("a", script))
    assert [v.question for v in trace.verdicts] == [f"kind@{member}" for member in members]
    assert trace.reward.value == (0.75 if audience == "criterion" else 0.5)
    stamped = [(v.subject, v.stakeholder, v.reviewer) for v in trace.verdicts]
    assert stamped == [
        (m, m if audience == "stakeholder" else None, m if audience == "reviewer" else None) for m in members
    ]


def test_samples_are_requested_one_by_one_and_averaged() -> None:
    config = {"evaluators": [{**told("tone"), "samples": 3}]}
    (trace,) = scored(config, task(), response("a", tone=[0.0, 0.5, 1.0]))
    assert [(v.sample, v.score) for v in trace.verdicts] == [(0, 0.0), (1, 0.5), (2, 1.0)]
    assert trace.reward.value == 0.5


GATED = {
    "evaluators": [
        told("first"),
        {**told("second"), "when": {"question": "first", "threshold": 0.5}},
        {**told("third"), "when": {"question": "second", "op": "<", "threshold": 0.5}},
    ],
    "components": {
        "chain": {"inputs": {"1": "first", "2": {"verdicts_of": "second", "if_skipped": "missing"}}},
        "end": {"inputs": {"3": {"verdicts_of": "third", "if_skipped": "zero"}}},
    },
    "reward": {"chain": 1.0, "end": 1.0},
}


def test_a_chain_of_gates_questions_only_responses_that_pass() -> None:
    traces = scored(
        GATED,
        task(),
        response("through", first=1.0, second=0.2, third=1.0),
        response("stopped late", first=0.5, second=0.9),  # has no third line: asking it would fail
        response("stopped at once", first=0.4),
    )
    statuses = [[verdict_on(t, q).status for q in ("first", "second", "third")] for t in traces]
    assert statuses == [["ok"] * 3, ["ok", "ok", "not_applicable"], ["ok", "not_applicable", "not_applicable"]]
    assert verdict_on(traces[1], "third").gated_by == "second"
    assert verdict_on(traces[2], "third").gated_by == "second"
    assert [t.reward.components for t in traces] == [
        {"chain": 0.6, "end": 1.0, "first": 1.0, "second": 0.2, "third": 1.0},
        {"chain": 0.7, "end": 0.0, "first": 0.5, "second": 0.9, "third": None},
        {"chain": 0.4, "end": 0.0, "first": 0.4, "second": None, "third": None},
    ]
    assert all(t.reward.status == "ok" and t.reward.coverage == 1.0 for t in traces)


@pytest.mark.parametrize("how", ["abstained", "response", "infrastructure"])
def test_an_unjudged_gate_leaves_its_dependents_unjudged_for_the_same_cause(how: str) -> None:
    (trace,) = scored(GATED, task(), response("a", first=how, second=1.0, third=1.0))
    gate, *waiting = (verdict_on(trace, q) for q in ("first", "second", "third"))
    for verdict, by in zip(waiting, ("first", "second"), strict=True):
        assert verdict.status == gate.status
        assert verdict.gated_by == by
        assert (verdict.failure and verdict.failure.cause) == (gate.failure and gate.failure.cause)
    assert trace.reward.counts.judged == 0
    assert (trace.reward.status, trace.reward.coverage) == ("failed", 0.0)


def test_a_gate_that_needs_a_missing_model_does_not_remove_a_penalty() -> None:
    config = {
        "evaluators": [
            told("gate", layer="model", uses_model=True),
            {**told("harm"), "when": {"question": "gate", "threshold": 0.5}},
            told("tone"),
        ],
        "components": {"harmful": {"inputs": {"h": {"verdicts_of": "harm", "if_skipped": "missing"}}}},
        "reward": {"tone": 1.0, "harmful": -0.1},
    }
    (trace,) = scored(config, task(), response("a", tone=1.0, harm=1.0))
    assert verdict_on(trace, "gate").status == "abstained"
    harm = verdict_on(trace, "harm")
    assert harm.status == "abstained"
    assert harm.failure is not None
    assert harm.failure.kind == "no-model"
    assert trace.reward.status == "failed"


def test_a_gate_may_read_the_native_value() -> None:
    config = {
        "evaluators": [told("stars"), {**told("why"), "when": {"question": "stars", "on": "native", "threshold": 3}}],
        "reward": {"stars": 1.0},
    }
    traces = scored(
        config,
        task(),
        response("a", stars={"score": 0.1, "native": 4.0}, why=1.0),
        response("b", stars={"score": 0.9, "native": 2.0}),
        response("c", stars={"score": 0.9, "native": "many"}),
    )
    assert [verdict_on(t, "why").status for t in traces] == ["ok", "not_applicable", "abstained"]


@pytest.mark.parametrize(("reduce", "is_requested"), [("mean", False), ("min", False), ("max", True)])
def test_a_gate_reduces_its_samples(reduce: str, is_requested: bool) -> None:
    when = {"question": "gate", "threshold": 0.6, "reduce": reduce}
    config = {"evaluators": [{**told("gate"), "samples": 2}, {**told("then"), "when": when}], "reward": {"gate": 1.0}}
    (trace,) = scored(config, task(), response("a", gate=[0.0, 1.0], then=1.0))
    assert (verdict_on(trace, "then").status == "ok") == is_requested


@pytest.mark.parametrize(
    ("gate", "is_requested"),
    [([0.0, 0.7, 1.0], True), ([0.0, 0.5, 1.0], False), ([0.2, 1.0], True), ([0.1, 1.0], False)],
)
def test_the_median_of_its_samples_is_the_middle_one_or_the_mean_of_the_two(
    gate: list[float], is_requested: bool
) -> None:
    when = {"question": "gate", "threshold": 0.6, "reduce": "median"}
    use = {**told("gate"), "samples": len(gate)}
    config = {"evaluators": [use, {**told("then"), "when": when}], "reward": {"gate": 1.0}}
    (trace,) = scored(config, task(), response("a", gate=gate, then=1.0))
    assert (verdict_on(trace, "then").status == "ok") == is_requested


def test_both_of_an_unordered_pair_can_pass_a_gate_on_it() -> None:
    config = {
        "evaluators": [
            told("better", scope="pair", pairs="unordered"),
            {**told("tone"), "when": {"question": "better", "threshold": 0.5}},
        ],
        "reward": {"better": 1.0},
    }
    group = [response("strong", better=1.0, tone=1.0), response("weak", better=0.5, tone=1.0)]
    for responses in (group, group[::-1]):
        traces = by_id(scored(config, task(), *responses))
        assert verdict_on(traces["strong"], "tone").status == "ok"
        assert verdict_on(traces["weak"], "tone").status == "not_applicable"


MATERIAL = {
    "evaluators": [{"use": DATA, "name": "reads", "params": {"needs": ["half", "measure"]}}],
    "derivers": ["tests.graphs.cast:Measure", "tests.graphs.cast:Half"],
}


def test_an_evaluator_gets_the_material_that_it_names_and_material_is_made_from_material() -> None:
    one, other = scored(MATERIAL, task(), response("a", measure=0.4), response("b", measure=0.8))
    assert (one.reward.value, other.reward.value) == (pytest.approx(0.3), pytest.approx(0.6))
    assert verdict_on(one, "reads").reason == "[['half', 'measure']]"
    assert [(m.name, m.response, m.data) for m in one.material] == [("half", "a", 0.2), ("measure", "a", 0.4)]


@pytest.mark.parametrize("scope", ["pair", "group"])
def test_material_is_given_with_each_shown_response(scope: str) -> None:
    use = {"use": DATA, "name": "reads", "params": {"needs": ["measure"], "scope": scope}}
    config = {**MATERIAL, "evaluators": [use]}
    traces = scored(config, task(), response("a", measure=0.4), response("b", measure=0.8))
    assert [t.reward.value for t in traces] == [pytest.approx(0.6)] * 2
    assert {v.reason for t in traces for v in t.verdicts} == {"[['measure'], ['measure']]"}


@pytest.mark.parametrize(("raised", "cause"), [("Exception", "infrastructure"), ("TimeLimitExceeded", "response")])
def test_a_failed_deriver_leaves_one_failed_verdict_for_each_question_that_needed_it(raised: str, cause: str) -> None:
    config = {
        "evaluators": [
            {"use": DATA, "name": "reads", "params": {"needs": ["half"]}},
            {"use": DATA, "name": "again", "params": {"needs": ["measure"]}, "samples": 3},
            told("tone"),
        ],
        "derivers": MATERIAL["derivers"],
        "reward": {"reads": 1.0, "again": 1.0, "tone": 1.0},
        "failure": {"min_coverage": 0.0},
    }
    broken, whole = scored(config, task(), response("a", measure=raised, tone=1.0), response("b", measure=1.0, tone=1))
    for question in ("reads", "again"):
        verdict = verdict_on(broken, question)
        assert (verdict.status, verdict.about, verdict.responses) == ("failed", "a", ())
        assert verdict.failure is not None
        assert (verdict.failure.cause, verdict.failure.kind) == (cause, "material")
    assert [(m.name, m.status) for m in broken.material] == [("half", "failed"), ("measure", "failed")]
    assert broken.reward.counts.model_dump() == {"judged": 1, "abstained": 0, "failed": 2, "not_applicable": 0}
    assert (broken.reward.coverage, broken.reward.value) == (pytest.approx(1 / 3), 1.0)
    assert whole.reward.status == "ok"
    assert whole.reward.counts.total == 5


VARIANTS = {
    "evaluators": [told("same", material="versions"), told("tone")],
    "derivers": ["tests.graphs.cast:Versions"],
    "reward": {"same": 1.0, "tone": 1.0},
}


def test_verdicts_on_variants_count_to_their_parent() -> None:
    versions = [["a-1", {"same": 0.0}], ["a-2", {"same": 1.0}], ["a-3", {"same": 0.5}]]
    one, other = scored(
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


def test_a_failed_deriver_of_variants_leaves_one_failed_verdict_about_the_parent() -> None:
    (trace,) = scored(VARIANTS, task(), response("a", tone=1.0, versions="Exception"))
    verdict = verdict_on(trace, "same")
    assert (verdict.status, verdict.about) == ("failed", "a")
    assert trace.reward.coverage == 0.5


def test_a_response_without_variants_is_not_excused_from_the_question() -> None:
    (trace,) = scored(VARIANTS, task(), response("a", tone=1.0, versions=[]))
    verdict = verdict_on(trace, "same")
    assert (verdict.score, verdict.gated_by) == (0.0, "no-variant")
    assert (trace.reward.counts.total, trace.reward.coverage) == (2, 1.0)


def test_two_variants_with_one_id_are_refused() -> None:
    versions = [["a-1", {"same": 0.0}], ["a-1", {"same": 1.0}]]
    (trace,) = scored(VARIANTS, task(), response("a", tone=1.0, versions=versions))
    assert "same id" in verdict_on(trace, "same").reason


@pytest.mark.parametrize("scope", ["pair", "group"])
def test_a_comparison_that_lost_its_other_side_is_not_judged_rather_than_left_out(scope: str) -> None:
    use = {"use": DATA, "name": "reads", "params": {"needs": ["measure"], "scope": scope}}
    config = {"evaluators": [use], "derivers": ["tests.graphs.cast:Measure"]}
    left, _ = scored(config, task(), response("a", measure=1.0), response("b", measure="Exception"))
    verdict = verdict_on(left, "reads")
    assert verdict.status == "failed"
    assert verdict.failure is not None
    assert verdict.failure.cause == "infrastructure"


def test_a_comparison_whose_other_side_was_screened_out_does_not_apply() -> None:
    rank = {**told("rank", scope="pair"), "when": {"question": "gate", "threshold": 0.5}}
    config = {"evaluators": [told("gate"), rank], "reward": {"gate": 1.0}}
    left, out = scored(config, task(), response("a", gate=1.0, rank=1.0), response("b", gate=0.0))
    assert verdict_on(left, "rank").gated_by == "group-of-one"
    assert verdict_on(out, "rank").gated_by == "gate"
    assert (left.reward.status, out.reward.status) == ("degraded", "ok")


def test_every_branch_runs_and_is_in_the_trace_in_canonical_order() -> None:
    about = task(criterion("clear"), reviewers=["r1"], stakeholders=[Stakeholder(id="ann")])
    audiences = {"t": "task", "s": "stakeholder", "c": "criterion", "r": "reviewer"}
    config = {
        "evaluators": [told(name, audience=audience) for name, audience in audiences.items()]
        + [{"use": TOLD, "name": "p", "params": {"scope": "pair"}}],
        "reward": {"t": 1.0, "stakeholders": 1.0, "rubric": 1.0, "r": 1.0, "p": 1.0},
        "weights": {"method": "uniform"},
    }
    script = {"t": 1.0, "s@ann": 0.5, "c@clear": 0.25, "r@r1": 0.0, "p": 1.0}
    trace, _ = scored(config, about, said("a", script), said("b", {**script, "p": 0.0}))
    assert [v.question for v in trace.verdicts] == ["c@clear", "p", "r@r1", "s@ann", "t"]
    assert trace.reward.value == 1.0 + 0.5 + 0.25 + 0.0 + 1.0
