"""Routing: the next work is a pure function of the plan, the group and the verdicts so far."""

from typing import Any

import pytest

from jurygraph.graphs.routing import WaveWork, make_stamp, next_work, sort_responses_by_content
from jurygraph.schema import (
    Criterion,
    Failure,
    Material,
    RecordedVerdict,
    Response,
    Survey,
    Verdict,
)
from jurygraph.schema.verdict import VerdictKey
from tests.graphs.scripted import (
    INFRASTRUCTURE_FAILURE,
    NO_MODEL,
    RESPONSE_FAILURE,
    SCRIPTED,
    evaluator_use,
    make_plan,
    ordered_ids,
    response,
    task,
)

GATED = {
    "evaluators": [
        evaluator_use("gate"),
        {**evaluator_use("then"), "when": {"question": "gate", "threshold": 0.3}},
    ],
    "reward": {"gate": 1.0},
}


def survey_of(config: dict[str, Any]) -> Survey:
    return make_plan(config, task()).survey


def requested(work: WaveWork) -> list[tuple[str, tuple[str, ...], int]]:
    due = [item for branch in sorted(work.judgements) for item in work.judgements[branch]]
    return [(item.question.id, tuple(r.id for r in item.responses), item.sample) for item in due]


def recorded_verdict(
    survey: Survey, question: str, about: str, score: float, sample: int = 0
) -> RecordedVerdict:
    question_ = next(q for q in survey.questions if q.id == question)
    return make_stamp(question_, survey.views[question_.view])(
        Verdict(score=score), VerdictKey(question_.id, about, (about,), sample)
    )


def test_a_group_is_sorted_by_content_then_id() -> None:
    same = [Response(id=name, text="same", agent=f"agent {name}") for name in "cab"]
    other = Response(id="z", text="other")
    order = ordered_ids(*same, other)
    assert ordered_ids(other, *same[::-1]) == order
    assert [name for name in order if name != "z"] == ["a", "b", "c"]
    assert all(r.agent is None for r in sort_responses_by_content(same))


def test_the_worst_case_of_a_penalty_is_that_all_of_it_is_found() -> None:
    criteria = [
        Criterion(id=name, text=f"It is {name}.", weight=weight)
        for name, weight in (("fair", 1), ("rude", -1))
    ]
    config = {"evaluators": [evaluator_use("met", audience="criterion")], "reward": {"rubric": 1.0}}
    survey = make_plan(config, task(*criteria)).survey
    scores = {}
    for question in survey.questions:
        key = VerdictKey(question.id, "a", ("a",), 1)
        found = make_stamp(question, survey.views[question.view])(
            Verdict(score=0.0, unsupported="worst-case"), key
        )
        assert found.key == key
        scores[found.subject] = found.score, found.met
    assert scores == {"fair": (0.0, None), "rude": (1.0, True)}


def test_a_wave_asks_every_response_every_sample() -> None:
    survey = survey_of({"evaluators": [evaluator_use("tone", samples=2)]})
    work, wave = next_work(survey, 0, [response("a"), response("b")], [], [])
    assert requested(work) == [
        ("tone", ("a",), 0),
        ("tone", ("a",), 1),
        ("tone", ("b",), 0),
        ("tone", ("b",), 1),
    ]
    assert (wave, work.due_branch_names) == (1, ["checks"])
    after, wave = next_work(survey, wave, [response("a")], [], [])
    assert (after.due_branch_names, after.settled_verdicts, wave) == ([], [], 1)


@pytest.mark.parametrize(("pairs", "n"), [("ordered", 12), ("unordered", 6)])
def test_the_pairs_policy_decides_which_pairs_are_requested(pairs: str, n: int) -> None:
    survey = survey_of({"evaluators": [evaluator_use("better", scope="pair", pairs=pairs)]})
    work, _ = next_work(survey, 0, [response(name) for name in "abcd"], [], [])
    assert len(requested(work)) == len(set(requested(work))) == n


def test_a_wave_that_screening_settles_completely_is_skipped() -> None:
    survey = survey_of(
        {
            "evaluators": [
                *GATED["evaluators"],
                {**evaluator_use("last"), "when": {"question": "then", "threshold": 0.0}},
            ],
            "reward": {"gate": 1.0},
        }
    )
    work, wave = next_work(
        survey, 1, [response("a")], [], [recorded_verdict(survey, "gate", "a", 0.0)]
    )
    assert (work.due_branch_names, wave) == ([], 3)
    assert [(v.question, v.status, v.gated_by) for v in work.settled_verdicts] == [
        ("then", "not_applicable", "gate"),
        ("last", "not_applicable", "then"),
    ]


@pytest.mark.parametrize(
    ("op", "passing"),
    [(">=", (0.3, 0.4)), (">", (0.4,)), ("<=", (0.2, 0.3)), ("<", (0.2,))],
    ids=str,
)
def test_a_threshold_compares_with_its_operator(op: str, passing: tuple[float, ...]) -> None:
    use = {
        "use": SCRIPTED,
        "name": "then",
        "when": {"question": "gate", "threshold": 0.3, "op": op},
    }
    survey = survey_of({"evaluators": [evaluator_use("gate"), use], "reward": {"gate": 1.0}})
    for score in (0.2, 0.3, 0.4):
        work, _ = next_work(
            survey, 1, [response("a")], [], [recorded_verdict(survey, "gate", "a", score)]
        )
        assert bool(requested(work)) == (score in passing)


def test_a_gate_averages_its_samples_with_total() -> None:
    """Left to right: the builtin sum gives other bits from Python 3.12 on, and so would ask other questions."""
    scores = [0.1] * 10
    exact, left_to_right = 1.0 / 10, 0.9999999999999999 / 10
    assert exact > left_to_right
    for threshold, asks in ((exact, False), (left_to_right, True)):
        use = {**evaluator_use("then"), "when": {"question": "gate", "threshold": threshold}}
        survey = survey_of(
            {"evaluators": [evaluator_use("gate", samples=10), use], "reward": {"gate": 1.0}}
        )
        verdicts = [recorded_verdict(survey, "gate", "a", s, i) for i, s in enumerate(scores)]
        work, _ = next_work(survey, 1, [response("a")], [], verdicts)
        assert bool(requested(work)) == asks


# Gates that are pairs


def pair_verdict(survey: Survey, first: str, second: str, verdict: Verdict) -> RecordedVerdict:
    question_ = next(q for q in survey.questions if q.id == "gate")
    return make_stamp(question_, survey.views[question_.view])(
        verdict, VerdictKey(question_.id, first, (first, second), 0)
    )


def route_after_pairs(
    *verdicts: Verdict, **when: Any
) -> tuple[list[str], dict[str, RecordedVerdict]]:
    """Return which of a, b and c have a next question behind an unordered pair as gate, and the settled verdicts."""
    use = {**evaluator_use("then"), "when": {"question": "gate", "threshold": 0.6, **when}}
    survey = survey_of(
        {
            "evaluators": [evaluator_use("gate", scope="pair", pairs="unordered"), use],
            "reward": {"gate": 1.0},
        }
    )
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    given = [
        pair_verdict(survey, *pair, verdict) for pair, verdict in zip(pairs, verdicts, strict=False)
    ]
    work, _ = next_work(survey, 1, [response(name) for name in "abc"], [], given)
    return [shown[0] for _, shown, _ in requested(work)], {
        v.about: v for v in work.settled_verdicts
    }


def test_an_unordered_pair_opens_the_gate_of_its_second_response_by_1_minus_its_score() -> None:
    passing, settled = route_after_pairs(
        Verdict(score=0.9), Verdict(score=0.9), Verdict(score=0.1), reduce="max"
    )
    assert passing == ["a", "c"]  # c is 0.1 against a, and 0.9 against b
    assert settled["b"].reason == "gate is 0.1, and >= 0.6 is asked for"


def test_a_pair_that_was_not_judged_is_no_verdict_on_its_second_response_either() -> None:
    passing, settled = route_after_pairs(
        Verdict(score=0.9), RESPONSE_FAILURE, RESPONSE_FAILURE, reduce="min"
    )
    assert passing == ["a"]
    assert (settled["b"].status, settled["c"].status) == ("not_applicable", "failed")
    assert settled["c"].failure is not None
    assert (settled["c"].failure.cause, settled["c"].failure.kind) == ("response", "gate")


def test_the_native_value_of_a_pair_does_not_count_for_the_second_response() -> None:
    own = Verdict(score=0.9, native=0.9)
    passing, settled = route_after_pairs(own, own, own, reduce="min", on="native")
    assert passing == ["a"]
    assert {settled[name].status for name in "bc"} == {"abstained"}
    assert {settled[name].reason for name in "bc"} == {"gate, which it depends on, was not judged"}


@pytest.mark.parametrize(
    ("scores", "threshold", "is_asked"),
    [
        ((0.9, 0.1, 0.2), 0.2, True),
        ((0.9, 0.1, 0.2), 0.21, False),
        ((0.9, 0.1, 0.2, 0.4), 0.3, True),
    ],
)
def test_the_median_is_the_middle_one_or_the_mean_of_the_two(
    scores: tuple[float, ...], threshold: float, is_asked: bool
) -> None:
    use = {
        **evaluator_use("then"),
        "when": {"question": "gate", "threshold": threshold, "reduce": "median"},
    }
    survey = survey_of(
        {"evaluators": [evaluator_use("gate", samples=len(scores)), use], "reward": {"gate": 1.0}}
    )
    verdicts = [
        recorded_verdict(survey, "gate", "a", score, sample) for sample, score in enumerate(scores)
    ]
    work, _ = next_work(survey, 1, [response("a")], [], verdicts)
    assert bool(requested(work)) == is_asked


def test_a_gate_that_is_a_group_counts_for_each_by_its_own_verdict() -> None:
    use = {**evaluator_use("then"), "when": {"question": "gate", "threshold": 0.5, "reduce": "max"}}
    survey = survey_of(
        {"evaluators": [evaluator_use("gate", scope="group"), use], "reward": {"gate": 1.0}}
    )
    gate = next(q for q in survey.questions if q.id == "gate")
    stamp = make_stamp(gate, survey.views[gate.view])
    given = [
        stamp(Verdict(score=score), VerdictKey("gate", name, ("a", "b"), 0))
        for name, score in (("a", 1.0), ("b", 0.0))
    ]
    work, _ = next_work(survey, 1, [response("a"), response("b")], [], given)
    assert requested(work) == [("then", ("a",), 0)]


def test_a_gate_that_is_an_ordered_pair_counts_for_its_first_response_alone() -> None:
    use = {**evaluator_use("then"), "when": {"question": "gate", "threshold": 0.5, "reduce": "max"}}
    survey = survey_of(
        {
            "evaluators": [evaluator_use("gate", scope="pair", pairs="ordered"), use],
            "reward": {"gate": 1.0},
        }
    )
    given = [
        pair_verdict(survey, first, second, Verdict(score=0.0))
        for first, second in (("a", "b"), ("b", "a"))
    ]
    work, _ = next_work(survey, 1, [response("a"), response("b")], [], given)
    assert requested(work) == []
    assert [(v.about, v.status, v.gated_by) for v in work.settled_verdicts] == [
        ("a", "not_applicable", "gate"),
        ("b", "not_applicable", "gate"),
    ]


@pytest.mark.parametrize(
    ("gate", "status", "failure"),
    [
        (
            RESPONSE_FAILURE,
            "failed",
            ("response", "gate", "gate, which it depends on, was not judged"),
        ),
        (
            INFRASTRUCTURE_FAILURE,
            "failed",
            ("infrastructure", "gate", "gate, which it depends on, was not judged"),
        ),
        (NO_MODEL, "abstained", ("infrastructure", "no-model", "")),
        (Verdict.abstain("no idea"), "abstained", None),
    ],
)
def test_a_question_behind_an_unjudged_gate_is_not_judged(
    gate: Verdict, status: str, failure: Any
) -> None:
    survey = survey_of(GATED)
    question = next(q for q in survey.questions if q.id == "gate")
    given = make_stamp(question, survey.views[question.view])(
        gate, VerdictKey(question.id, "a", ("a",), 0)
    )
    (settled,) = next_work(survey, 1, [response("a")], [], [given])[0].settled_verdicts
    assert (settled.status, settled.gated_by) == (status, "gate")
    assert settled.reason == "gate, which it depends on, was not judged"
    found = settled.failure and (
        settled.failure.cause,
        settled.failure.kind,
        settled.failure.message,
    )
    assert found == failure


# The only one left


def settled_comparison(*missing: Verdict) -> RecordedVerdict:
    """Return the settled verdict on a comparison of a with others whose gates have these verdicts."""
    use = {**evaluator_use("better", scope="pair"), "when": {"question": "gate", "threshold": 0.5}}
    survey = survey_of({"evaluators": [evaluator_use("gate"), use], "reward": {"gate": 1.0}})
    stamp = make_stamp(
        next(q for q in survey.questions if q.id == "gate"), next(iter(survey.views.values()))
    )
    verdicts = zip("abc", [Verdict(score=1.0), *missing], strict=False)
    given = [stamp(one, VerdictKey("gate", name, (name,), 0)) for name, one in verdicts]
    group = [response(name) for name in "abc"[: 1 + len(missing)]]
    work, _ = next_work(survey, 1, group, [], given)
    assert requested(work) == []
    (settled,) = (verdict for verdict in work.settled_verdicts if verdict.about == "a")
    return settled


@pytest.mark.parametrize("others", [(), (Verdict(score=0.0),)], ids=["alone", "screened out"])
def test_a_comparison_does_not_apply_to_the_only_remaining_response(
    others: tuple[Verdict, ...],
) -> None:
    settled = settled_comparison(*others)
    assert (settled.status, settled.gated_by) == ("not_applicable", "group-of-one")
    assert settled.reason == "there is nothing to compare with"


@pytest.mark.parametrize("scope", ["pair", "group"])
def test_no_pair_is_requested_if_all_responses_are_screened_out(scope: str) -> None:
    use = {**evaluator_use("better", scope=scope), "when": {"question": "gate", "threshold": 0.5}}
    survey = survey_of({"evaluators": [evaluator_use("gate"), use], "reward": {"gate": 1.0}})
    given = [recorded_verdict(survey, "gate", name, 0.0) for name in "ab"]
    work, _ = next_work(survey, 1, [response("a"), response("b")], [], given)
    assert work.due_branch_names == []
    assert [(v.about, v.gated_by) for v in work.settled_verdicts] == [("a", "gate"), ("b", "gate")]


def test_a_missing_opponent_is_a_failure() -> None:
    settled = settled_comparison(Verdict(score=0.0), RESPONSE_FAILURE)
    assert settled.failure is not None
    assert (settled.status, settled.failure.kind, settled.failure.cause) == (
        "failed",
        "group",
        "infrastructure",
    )
    assert (
        settled.reason
        == "there is nothing left to compare with: the others could not be asked about"
    )


def test_a_gate_stops_a_response_by_the_query_and_the_reference_of_the_questions_view() -> None:
    about = task(query="Which emoji stands for joy?", reference="no sign")
    judges = [evaluator_use("tone", layer="model"), evaluator_use("same", layer="model")]
    survey = make_plan({"evaluators": judges, "reward": {"tone": 1.0, "same": 1.0}}, about).survey
    work, _ = next_work(
        survey, 0, [response("a", "😂"), response("b", "?"), response("c", " ")], [], []
    )
    assert [(v.about, v.gated_by, v.score) for v in work.settled_verdicts] == [
        ("c", "empty-response", 0.0)
    ] * 2
    assert [shown for _, shown, _ in requested(work)] == [("a",), ("b",)] * 2
    plain = make_plan({"evaluators": [evaluator_use("tone", layer="model")]}, task()).survey
    work, _ = next_work(plain, 0, [response("a", "😂")], [], [])
    assert [(v.about, v.gated_by) for v in work.settled_verdicts] == [("a", "punctuation-only")]


# Material


CHAINED = {
    "evaluators": [evaluator_use("tone", needs=["half"])],
    "derivers": ["tests.graphs.scripted:Measure", "tests.graphs.scripted:Half"],
}


def work_with_material(config: dict[str, Any], wave: int, *material: Material) -> WaveWork:
    """Return the work of a wave of this config on response `a` with this material."""
    work, _ = next_work(survey_of(config), wave, [response("a")], material, [])
    return work


@pytest.mark.parametrize(
    ("failed", "missing"),
    [
        (
            Failure(cause="response", kind="time-limit", message="too slow"),
            Failure(
                cause="response", kind="material", message="material 'measure' is missing: too slow"
            ),
        ),
        (
            Failure(cause="infrastructure", kind="no-model", message="no model"),
            Failure(
                cause="infrastructure",
                kind="no-model",
                message="material 'measure' is missing: no model",
            ),
        ),
    ],
)
def test_material_fails_with_the_cause_of_its_source_material(
    failed: Failure, missing: Failure
) -> None:
    measure = Material(name="measure", response="a", status="failed", failure=failed)
    work = work_with_material(CHAINED, 1, measure)
    assert work.material == [Material(name="half", response="a", status="failed", failure=missing)]
    assert work.derivations == []


@pytest.mark.parametrize(
    ("material", "status", "cause", "kind", "reason"),
    [
        (
            [],
            "failed",
            "infrastructure",
            "material",
            "material 'half' is missing: it was not derived",
        ),
        (
            [
                Material(
                    name="half", response="a", status="failed", failure=RESPONSE_FAILURE.failure
                )
            ],
            "failed",
            "response",
            "material",
            "material 'half' is missing: provoked by the response",
        ),
        (
            [Material(name="half", response="a", status="failed", failure=NO_MODEL.failure)],
            "abstained",
            "infrastructure",
            "no-model",
            "material 'half' is missing: ",
        ),
    ],
    ids=["never derived", "failed", "no model"],
)
def test_a_question_with_missing_material_is_skipped(
    material: list[Material], status: str, cause: str, kind: str, reason: str
) -> None:
    work = work_with_material(CHAINED, 2, *material)
    assert requested(work) == []
    (settled,) = work.settled_verdicts
    assert settled.failure is not None
    assert (settled.status, settled.failure.cause, settled.failure.kind) == (status, cause, kind)
    assert settled.reason == settled.failure.message == reason


@pytest.mark.parametrize(
    ("note", "reason"),
    [
        ("all were too long", "all were too long"),
        ("", "material 'versions' holds no variant to ask about"),
    ],
)
def test_a_question_about_variants_does_not_apply_to_a_response_without_any_and_says_why(
    note: str, reason: str
) -> None:
    config = {
        "evaluators": [evaluator_use("same", material="versions")],
        "derivers": ["tests.graphs.scripted:Versions"],
    }
    work = work_with_material(config, 1, Material(name="versions", response="a", note=note))
    (settled,) = work.settled_verdicts
    assert (settled.status, settled.score, settled.gated_by, settled.reason) == (
        "not_applicable",
        None,
        "no-variant",
        reason,
    )
