"""A reward is a pure function of the decision and the verdicts: what is missing never helps, and no order matters."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from jurygraph.decision.combiners import weighted_mean
from jurygraph.decision.decide import (
    SAMPLE_SPREAD_DIAGNOSTIC,
    explain_notes,
    possible_reward_bounds,
)
from jurygraph.explanation.points import describe_gate_state
from jurygraph.schema import GateResult, Plan, PrecisionShaping, RecordedVerdict, Reward, Verdict
from jurygraph.schema.plan import RewardGate
from tests.examples import at_most
from tests.graphs.scenes import NAMES, Scene, bits, places, scenes
from tests.graphs.scripted import (
    ABSTENTION,
    COMBINERS,
    INFRASTRUCTURE_FAILURE,
    NO_MODEL,
    RESPONSE_FAILURE,
    UNJUDGED,
    criterion,
    decide_rewards,
    evaluator_use,
    make_plan,
    task,
)
from tests.rows import all_rows

EACH = settings(max_examples=at_most(60), deadline=None, suppress_health_check=list(HealthCheck))


@EACH
@given(scenes(), st.randoms(use_true_random=False))
def test_no_order_of_verdicts_or_responses_changes_a_bit(scene: Scene, shuffle: Any) -> None:
    places_, names = list(scene.verdicts), list(NAMES)
    shuffle.shuffle(places_)
    shuffle.shuffle(names)
    expected = bits(scene.rewards())
    assert (
        bits(scene.rewards(verdicts={place: scene.verdicts[place] for place in places_}))
        == expected
    )
    assert bits(scene.rewards(names)) == expected


@EACH
@given(scenes(alone=True), st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_no_split_of_the_group_changes_a_bit_where_no_question_looks_across_it(
    scene: Scene, part: list[int]
) -> None:
    apart: dict[str, Reward] = {}
    for group in sorted(set(part)):
        apart |= scene.rewards(
            [name for name, its in zip(NAMES, part, strict=True) if its == group]
        )
    assert bits(apart) == bits(scene.rewards())


@EACH
@given(scenes())
def test_a_plan_that_was_stored_decides_the_same_bits(scene: Scene) -> None:
    stored = Scene(
        scene.config,
        scene.task,
        Plan.model_validate_json(scene.plan.model_dump_json()),
        scene.verdicts,
    )
    assert bits(stored.rewards()) == bits(scene.rewards())


@EACH
@given(scenes())
def test_every_reward_keeps_the_rules_of_its_status(scene: Scene) -> None:
    requested = dict.fromkeys(NAMES, 0)
    unordered = {
        q.id for q in scene.plan.survey.questions if q.pairs == "unordered" and q.scope == "pair"
    }
    for question, about, shown, _ in scene.verdicts:
        for name in shown if question in unordered else (about,):
            requested[name] += 1
    for name, reward in scene.rewards().items():
        assert (reward.value is None) == (reward.status == "failed")
        assert (reward.partial is None) == (reward.coverage == 0.0)
        assert reward.counts.total == requested[name]
        assert reward.range is not None
        low, high = reward.range
        if reward.value is not None:
            assert low <= reward.value <= high
        if reward.status == "ok":
            assert (reward.coverage, low) == (pytest.approx(1.0), high)
            assert reward.value == reward.partial
        else:
            assert reward.notes
        for gate in reward.gates:
            if gate.kind == "must" and reward.value is not None:
                # no must could still decide: it is whole, or broken, or it is all the same
                assert (
                    gate.value is None or gate.value >= gate.threshold or low == high or high <= 0
                )
        below = reward.coverage == 0.0 or reward.coverage < scene.plan.decision.min_coverage - 1e-9
        assert reward.status == "failed" or not below


def fill_missing(scene: Scene, rng: np.random.Generator) -> dict[Any, Verdict]:
    """Return the scene's verdicts with random scores and decisions in place of the missing ones."""
    missing = [
        place
        for place, verdict in scene.verdicts.items()
        if verdict.status in ("abstained", "failed")
    ]
    scores = rng.choice([0.0, 1.0, 0.5, rng.random(), rng.random()], len(missing))
    judged = {
        p: Verdict(score=float(s), met=bool(rng.random() < 0.5))
        for p, s in zip(missing, scores, strict=True)
    }
    return {**scene.verdicts, **judged}


@settings(EACH, max_examples=at_most(80))
@given(scenes(), st.integers(0, 2**32))
def test_no_other_scores_give_a_reward_that_was_not_possible(scene: Scene, seed: int) -> None:
    low, high = possible_reward_bounds(scene.group(), COMBINERS)
    possible = dict(zip(sorted(NAMES), zip(low.tolist(), high.tolist(), strict=True), strict=True))
    rng = np.random.default_rng(seed)
    for _ in range(4):
        others = {
            place: Verdict(
                score=float(rng.choice([0.0, 1.0, rng.random()])), met=bool(rng.random() < 0.5)
            )
            if verdict.status == "ok"
            else verdict
            for place, verdict in scene.verdicts.items()
        }
        for name, reward in scene.rewards(verdicts=others).items():
            least, greatest = possible[name]
            slack = 1e-12 * max(1.0, abs(least), abs(greatest))
            assert reward.value is None or least - slack <= reward.value <= greatest + slack


@settings(EACH, max_examples=at_most(80))
@given(scenes(), st.integers(0, 2**32))
def test_the_range_holds_whatever_the_unjudged_could_have_been(scene: Scene, seed: int) -> None:
    before = scene.rewards()
    rng = np.random.default_rng(seed)
    for _ in range(4):
        for name, reward in scene.rewards(verdicts=fill_missing(scene, rng)).items():
            bounds = before[name].range
            assert bounds is not None
            slack = 1e-12 * max(1.0, *map(abs, bounds))
            assert reward.value is None or bounds[0] - slack <= reward.value <= bounds[1] + slack


def after_gate(gate: GateResult, rule: RewardGate, reward: Reward, value: float | None) -> float:
    """Return the reward after a gate whose component has this value."""
    if value is None or not (value < gate.threshold if gate.op == "<" else value > gate.threshold):
        return gate.before
    if isinstance(rule, PrecisionShaping):
        auxiliary = sum(
            term.contribution or 0.0 for term in reward.terms if term.name in rule.auxiliary
        )
        return gate.before - (1.0 - rule.fraction) * auxiliary
    if gate.kind == "must":
        return min(gate.before, 0.0)
    return 0.0 if gate.kind == "format" else gate.before * (1.0 - value)


@settings(EACH, max_examples=at_most(80))
@given(scenes(), st.integers(0, 2**32))
def test_a_gate_has_the_value_that_it_used_and_no_possible_one_gives_less(
    scene: Scene, seed: int
) -> None:
    majorities = {
        spec.name
        for spec in scene.plan.decision.all_specs
        if any(spec_input.reduce == "majority" for spec_input in spec.inputs.values())
    }
    rng = np.random.default_rng(seed)
    filled = [scene.rewards(verdicts=fill_missing(scene, rng)) for _ in range(3)]
    for name, reward in scene.rewards().items():
        for place, (gate, rule) in enumerate(
            zip(reward.gates, scene.plan.decision.gates, strict=True)
        ):
            if gate.kind == "must" and gate.is_worst_case:  # it could be broken: it takes nothing
                assert gate.after == gate.before
                continue
            slack = 1e-9 * max(1.0, abs(gate.before))
            expected = after_gate(gate, rule, reward, gate.value)
            assert gate.after == pytest.approx(expected, abs=slack)
            possible = [rewards[name].gates[place].value for rewards in filled]
            # an abstention is no vote of a majority, and could have been one
            may_differ = gate.is_worst_case or gate.component in majorities or gate.kind == "must"
            assert may_differ or set(possible) == {gate.value}
            for value in possible:
                assert gate.after <= after_gate(gate, rule, reward, value) + slack


@EACH
@given(scenes(judged=True))
def test_a_fully_judged_reward_is_unchanged(scene: Scene) -> None:
    for reward in scene.rewards().values():
        assert reward.range is not None
        assert reward.range[0] == reward.range[1]
        if reward.value is not None:
            assert reward.partial == reward.value == reward.range[0]
            assert (reward.status, reward.coverage) == ("ok", 1.0)
        else:
            assert reward.coverage == 0.0


@EACH
@given(scenes(alone=True, plain=True), st.sampled_from(sorted(UNJUDGED)), st.integers(0, 10**6))
def test_losing_a_verdict_never_helps_under_the_conservative_rule(
    scene: Scene, how: str, pick: int
) -> None:
    """Where the judge's own decision agrees with its score, as hard gating would else see something new."""
    judged = {
        place: v.model_copy(update={"met": None})
        for place, v in scene.verdicts.items()
        if v.status == "ok"
    }
    assume(judged)
    place = sorted(judged)[pick % len(judged)]
    before = {**scene.verdicts, **judged}
    better = scene.rewards(verdicts=before)[place[1]]
    worse = scene.rewards(verdicts={**before, place: UNJUDGED[how]})[place[1]]
    if worse.value is not None and better.value is not None:
        assert worse.value <= better.value + 1e-12


MET = evaluator_use("met", audience="criterion")
TWO = {
    "evaluators": [evaluator_use("good"), evaluator_use("bad")],
    "reward": {"good": 1.0, "bad": -0.25},
}


def reward_of(config: Any, about: Any = None, **answers: Verdict | float) -> Reward:
    plan = make_plan(config, about or task())
    return decide_rewards(
        plan, {(question.replace("_", "@"), "a"): one for question, one in answers.items()}, "a"
    )["a"]


def config_under(rule: str, **failure: Any) -> dict[str, Any]:
    return {**TWO, "failure": {"rule": rule, "min_coverage": 0.0, **failure}}


@all_rows(
    ("rule", "missing", "value"),
    [
        ("conservative", ABSTENTION, 0.75),
        ("conservative", RESPONSE_FAILURE, 0.75),
        ("conservative", INFRASTRUCTURE_FAILURE, None),
        ("conservative", NO_MODEL, None),
        ("gear", ABSTENTION, 1.0),
        ("gear", RESPONSE_FAILURE, 1.0),
        ("gear", INFRASTRUCTURE_FAILURE, 1.0),
        ("gear", NO_MODEL, 1.0),
        ("strict", ABSTENTION, 0.75),
        ("strict", RESPONSE_FAILURE, None),
        ("strict", INFRASTRUCTURE_FAILURE, None),
        ("strict", NO_MODEL, None),
        ("decisive", ABSTENTION, 0.75),
        ("decisive", RESPONSE_FAILURE, None),
    ],
)
def test_an_unjudged_penalty(rule: str, missing: Verdict, value: float | None) -> None:
    reward = reward_of(config_under(rule), good=1.0, bad=missing)
    assert (reward.value, reward.status) == (value, "failed" if value is None else "degraded")
    assert (reward.coverage, reward.partial, reward.range) == (0.8, 1.0, (0.75, 1.0))
    assert reward.components == {"good": 1.0, "bad": None}
    causes = {"strict": "a failure", "decisive": "a failure that could change it"}
    cause = causes.get(rule, "a penalty that was not judged, by no fault of the response,")
    assert (f"under the {rule} rule {cause} fails the reward" in reward.notes) == (value is None)


RUBRIC = task(criterion("gain"), criterion("harm", -0.5))


@pytest.mark.parametrize(
    ("weight", "unjudged", "value"),
    [
        (1.0, "met_gain", 0.0 - 0.25),
        (1.0, "met_harm", 0.5 - 0.5),  # in full
        (-1.0, "met_gain", -(1.0 - 0.25)),  # a gain of a component that counts against: in full
        (-1.0, "met_harm", -(0.5 - 0.0)),  # a penalty of one that counts against is a gain: nothing
    ],
)
def test_the_sign_of_a_criterion_and_of_its_component_multiply(
    weight: float, unjudged: str, value: float
) -> None:
    config = {"evaluators": [MET], "reward": {"rubric": weight}, "failure": {"min_coverage": 0.0}}
    answers: dict[str, Verdict | float] = {
        "met_gain": 0.5,
        "met_harm": 0.5,
        unjudged: RESPONSE_FAILURE,
    }
    assert reward_of(config, RUBRIC, **answers).value == value
    answers[unjudged] = INFRASTRUCTURE_FAILURE
    harmful = (weight > 0) == (unjudged == "met_harm")
    assert (reward_of(config, RUBRIC, **answers).value is None) == harmful


@pytest.mark.parametrize(
    ("least", "status"),
    [(0.0, "degraded"), (0.79, "degraded"), (0.8, "degraded"), (0.81, "failed"), (1.0, "failed")],
)
def test_below_min_coverage_there_is_no_value_and_between_it_is_degraded(
    least: float, status: str
) -> None:
    reward = reward_of({**TWO, "failure": {"min_coverage": least}}, good=1.0, bad=ABSTENTION)
    assert (reward.status, reward.partial) == (status, 1.0)
    assert (reward.value is None) == (status == "failed")
    assert any("0.8 of the weight was judged" in note for note in reward.notes)


def test_inapplicable_verdicts_are_left_out_of_numerator_denominator_and_coverage() -> None:
    screened = RecordedVerdict(status="not_applicable", gated_by="gate")
    about = task(criterion("x"), criterion("y", 3.0), criterion("z", -1.0))
    reward = reward_of({"evaluators": [MET]}, about, met_x=0.5, met_y=screened, met_z=screened)
    assert (reward.value, reward.status, reward.coverage) == (0.5, "ok", 1.0)
    assert reward.parts == {"rubric": {"x": 0.5}}
    assert reward.counts.model_dump() == {
        "judged": 1,
        "abstained": 0,
        "failed": 0,
        "not_applicable": 2,
    }


@pytest.mark.parametrize("aggregation", ["flat", "gear", "hard-local", "hard-transitive"])
@EACH
@given(st.lists(st.sampled_from([0.0, 0.3, 1.0, None]), min_size=4, max_size=4))
def test_inapplicable_criteria_give_no_more_than_the_judged_ones_alone(
    aggregation: str, scores: list[float | None]
) -> None:
    edges = [("a", "b", "strong"), ("b", "c", "activation"), ("b", "bad", "weak")]
    about = task(
        criterion("a"),
        criterion("b", 2.0),
        criterion("c", 0.5),
        criterion("bad", -1.0),
        edges=edges,
    )
    plan = make_plan({"evaluators": [MET], "rubric": {"aggregation": aggregation}}, about)

    def reward(missing: Verdict) -> Reward:
        given = zip(("a", "b", "c", "bad"), scores, strict=True)
        answers = {
            (f"met@{name}", "r"): missing if score is None else score for name, score in given
        }
        return decide_rewards(plan, answers, "r")["r"]

    left_out, unjudged = reward(Verdict.not_applicable("no table")), reward(ABSTENTION)
    if all(score is None for score in scores):
        assert (left_out.status, left_out.value, left_out.coverage) == ("failed", None, 0.0)
    else:
        assert (left_out.status, left_out.coverage) == ("ok", 1.0)
        assert left_out.value == unjudged.partial
        assert left_out.range == (left_out.value, left_out.value)


@pytest.mark.parametrize(
    ("gate", "range_"),
    [
        ({"kind": "format", "component": "bad", "below": 0.5}, (0.0, 1.0)),
        ({"kind": "repetition", "component": "bad", "above": 0.5}, (0.0, 1.0)),
        (
            {"kind": "precision", "component": "bad", "auxiliary": ["good"], "fraction": 0.25},
            (0.25, 1.0),
        ),
    ],
)
def test_an_unjudged_gate_always_widens_the_range(gate: Any, range_: tuple[float, float]) -> None:
    """Its component weighs nothing, so coverage is 1; yet the reward could have been another."""
    config = {**TWO, "reward": {"good": 1.0}, "gates": [gate]}
    reward = reward_of(config, good=1.0, bad=RESPONSE_FAILURE)
    assert (reward.status, reward.coverage, reward.range) == ("degraded", 1.0, range_)
    assert reward.value == range_[0]
    assert any("gate" in note for note in reward.notes)


@pytest.mark.parametrize(
    ("shares", "weights", "expected"),
    [
        ([1.0, 1.0], [3.0, 1.0], (1.0, True)),
        ([1.0, 0.0], [3.0, 1.0], (0.75, True)),
        ([0.5, 0.5], [3.0, 1.0], (0.5, True)),
        ([0.5, 1.0], [0.0, 1.0], (1.0, True)),
        ([1.0, 1.0], [0.0, 0.0], (0.0, False)),
    ],
)
def test_a_mean_share_is_weighted_and_0_without_any_weight(
    shares: list[float], weights: list[float], expected: tuple[float, bool]
) -> None:
    mean, has_weight = weighted_mean(np.array([shares]), np.array([weights]))
    assert (mean.tolist(), has_weight.tolist()) == ([expected[0]], [expected[1]])


def test_a_sample_that_failed_costs_its_share_of_the_coverage() -> None:
    config = {
        "evaluators": [{**evaluator_use("tone"), "samples": 4}],
        "failure": {"min_coverage": 0.5},
    }
    plan = make_plan(config, task())
    scene = Scene(config, task(), plan, {})
    answers = dict(
        zip(
            places(plan.survey.questions[0], ["a"]),
            [Verdict(score=1.0)] * 3 + [RESPONSE_FAILURE],
            strict=True,
        )
    )
    reward = scene.rewards(["a"], answers)["a"]
    assert (reward.coverage, reward.value, reward.partial, reward.range) == (
        0.75,
        0.75,
        1.0,
        (0.75, 1.0),
    )


def test_coverage_weighs_questions_not_their_columns() -> None:
    """Three samples of one question, folded into one value, weigh as much as the one sample of another."""
    config = {
        "evaluators": [evaluator_use("many/x", samples=3), evaluator_use("one/y")],
        "components": {"own": {"inputs": {"x": "many/x", "y": "one/y"}}},
        "reward": {"own": 1.0},
        "failure": {"min_coverage": 0.0},
    }
    both = {
        **config,
        "evaluators": [evaluator_use("both", subjects=["x", "y"])],
        "components": {},
        "reward": {"both": 1.0},
    }
    for each in (config, both):
        plan = make_plan(each, task())
        questions = [
            q.model_copy(update={"samples": 3 if q.id.endswith("x") else 1})
            for q in plan.survey.questions
        ]
        plan = plan.model_copy(
            update={"survey": plan.survey.model_copy(update={"questions": tuple(questions)})}
        )
        answers = {
            p: RESPONSE_FAILURE if p[0].endswith("y") else Verdict(score=1.0)
            for q in questions
            for p in places(q, ["a"])
        }
        reward = Scene(each, task(), plan, {}).rewards(["a"], answers)["a"]
        assert (reward.coverage, reward.value, reward.range) == (0.5, 0.5, (0.5, 1.0))


DROP = {"evaluators": [MET], "failure": {"group_rule": "drop-criterion", "min_coverage": 0.5}}


def test_drop_criterion_drops_it_for_the_whole_group_with_a_note() -> None:
    plan = make_plan(DROP, task(criterion("x"), criterion("y"), criterion("z", -1.0)))
    answers: dict[Any, Verdict | float] = {(f"met@{c}", name): 0.5 for c in "xyz" for name in "abc"}
    answers["met@y", "b"] = INFRASTRUCTURE_FAILURE
    answers["met@x", "c"] = 0.0
    rewards = decide_rewards(plan, answers, "a", "b", "c")
    assert {name: reward.value for name, reward in rewards.items()} == {
        "a": 0.0,
        "b": 0.0,
        "c": -0.5,
    }
    for reward in rewards.values():
        assert (reward.status, reward.coverage) == ("degraded", pytest.approx(2 / 3))
        assert explain_notes(reward.notes) == [
            "0.667 of the weight was judged for all of the group; the rest was dropped",
            "met@y was dropped for the whole group, because it was not judged for all",
        ]


def test_a_dropped_criterion_is_told_however_little_it_weighs() -> None:
    plan = make_plan(DROP, task(criterion("x"), criterion("y", 1e-12)))
    answers: dict[Any, Verdict | float] = {
        ("met@x", "a"): 0.5,
        ("met@y", "a"): INFRASTRUCTURE_FAILURE,
    }
    reward = decide_rewards(plan, answers, "a")["a"]
    assert (reward.status, reward.value) == ("degraded", 0.5)
    assert any("met@y was dropped for the whole group" in note for note in reward.notes)


def test_drop_criterion_drops_a_penalty_rather_than_fail_the_reward() -> None:
    plan = make_plan(DROP, RUBRIC)
    answers = {
        ("met@gain", "a"): 1.0,
        ("met@gain", "b"): 0.5,
        ("met@harm", "a"): INFRASTRUCTURE_FAILURE,
        ("met@harm", "b"): 1.0,
    }
    rewards = decide_rewards(plan, answers, "a", "b")
    assert [rewards[name].value for name in "ab"] == [1.0, 0.5]


def test_the_range_of_a_chain_is_what_0_fill_and_1_fill_propagate_to() -> None:
    about = task(
        *(criterion(name) for name in "abc"), edges=[("a", "b", "strong"), ("b", "c", "strong")]
    )
    plan = make_plan({"evaluators": [evaluator_use("met", audience="criterion")]}, about)
    reward = decide_rewards(
        plan, {("met@a", "r"): 0.0, ("met@b", "r"): RESPONSE_FAILURE, ("met@c", "r"): 1.0}, "r"
    )["r"]
    assert reward.range == (pytest.approx(0.2 / 3), pytest.approx((0.2 + 0.36) / 3))


def test_an_unjudged_component_has_no_diagnostics() -> None:
    config = {
        "evaluators": [evaluator_use("better", scope="pair")],
        "components": {
            "rank": {"combiner": "bradley-terry", "inputs": {"pairs": {"verdicts_of": "better"}}}
        },
        "reward": {"rank": 1.0},
        "failure": {"min_coverage": 0.0},
    }
    plan = make_plan(config, task())
    answers = {
        place: RESPONSE_FAILURE if "c" in place[2] else Verdict(score=0.75)
        for question in plan.survey.questions
        for place in places(question, "abc")
    }
    rewards = Scene(config, task(), plan, answers).rewards("abc")
    assert sorted(rewards["a"].diagnostics) == ["rank"]
    assert rewards["c"].diagnostics == {}


@pytest.mark.parametrize("weight", [1.0, 0.0])
def test_under_the_strict_rule_no_dropping_and_no_lack_of_weight_hides_a_failure(
    weight: float,
) -> None:
    failure = {"rule": "strict", "group_rule": "drop-criterion", "min_coverage": 0.0}
    config = {
        "evaluators": [evaluator_use("tone"), evaluator_use("late")],
        "reward": {"tone": 1.0, "late": weight},
        "failure": failure,
    }
    answers: dict[tuple[str, str], Any] = {
        ("tone", "r"): 1.0,
        ("tone", "s"): 1.0,
        ("late", "r"): INFRASTRUCTURE_FAILURE,
    }
    rewards = decide_rewards(make_plan(config, task()), {**answers, ("late", "s"): 1.0}, "r", "s")
    assert [rewards[name].status == "failed" for name in "rs"] == [True, False]


@pytest.mark.parametrize(("weight", "value"), [(0.0, 1.0), (0.1, None)])
def test_under_the_decisive_rule_a_failure_of_no_weight_fails_nothing(
    weight: float, value: float | None
) -> None:
    config = {
        "evaluators": [evaluator_use("tone"), evaluator_use("late")],
        "reward": {"tone": 1.0, "late": weight},
        "failure": {"rule": "decisive", "min_coverage": 0.0},
    }
    for failure in (INFRASTRUCTURE_FAILURE, RESPONSE_FAILURE):
        assert reward_of(config, tone=1.0, late=failure).value == value


@all_rows("missing", UNJUDGED.values())
@all_rows(
    "gate",
    [
        {"kind": "format", "component": "tone", "below": 0.5},
        {"kind": "repetition", "component": "tone", "above": 0.1},
        {"kind": "precision", "component": "tone", "auxiliary": ["rude"], "fraction": 0.0},
    ],
)
def test_a_gate_whose_component_was_not_judged_never_lifts_a_reward(
    gate: Any, missing: Verdict
) -> None:
    config = {
        "evaluators": [evaluator_use("tone"), evaluator_use("rude")],
        "reward": {"tone": 0.0, "rude": -2.0},
        "gates": [gate],
        "failure": {"min_coverage": 0.0},
    }
    reward = decide_rewards(
        make_plan(config, task()), {("tone", "r"): missing, ("rude", "r"): 0.9}, "r"
    )["r"]
    assert reward.value is None or reward.value == -1.8
    assert reward.range is not None
    assert reward.range[0] <= -1.8 <= reward.range[1]


# Musts


@all_rows(
    ("secret", "value", "state"),
    [
        (0.0, 0.0, "must: secret 0 < 0.5"),
        (0.4, 0.0, "must: secret 0.4 < 0.5"),
        (0.5, 1.0, "must: secret 0.5 ≥ 0.5"),
        (ABSTENTION, None, "must: secret not judged"),
        (RESPONSE_FAILURE, None, "must: secret not judged"),
        (INFRASTRUCTURE_FAILURE, None, "must: secret not judged"),
        (Verdict.not_applicable("none"), 1.0, "must: secret not applicable"),
    ],
)
@all_rows("rule", ["conservative", "gear", "strict", "decisive"])
def test_a_broken_must_costs_everything_and_an_unjudged_one_fails_the_reward(
    rule: Any, secret: Verdict | float, value: float | None, state: str
) -> None:
    config = {
        "evaluators": [evaluator_use("good"), evaluator_use("secret")],
        "reward": {"good": 1.0},
        "gates": [{"kind": "must", "component": "secret"}],
        "failure": {"rule": rule},
    }
    reward = reward_of(config, good=1.0, secret=secret)
    assert reward.value == value
    assert describe_gate_state(reward.gates[0], reward) == state
    assert ("must: secret was not judged" in reward.notes) == (value is None)


def test_a_must_that_is_surely_broken_or_whole_needs_no_more_verdicts() -> None:
    config = {
        "evaluators": [evaluator_use("good"), {**evaluator_use("secret"), "samples": 3}],
        "reward": {"good": 1.0},
        "gates": [{"kind": "must", "component": "secret"}],
    }
    plan = make_plan(config, task())
    for first, second, value in ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (1.0, 0.0, None)):
        answers = {
            ("good", "a", ("a",), 0): Verdict(score=1.0),
            ("secret", "a", ("a",), 0): Verdict(score=first),
            ("secret", "a", ("a",), 1): Verdict(score=second),
            ("secret", "a", ("a",), 2): ABSTENTION,
        }
        assert Scene(config, task(), plan, {}).rewards(["a"], answers)["a"].value == value


def test_a_broken_must_takes_no_penalty_away() -> None:
    config = {
        "evaluators": [evaluator_use("bad"), evaluator_use("secret")],
        "reward": {"bad": -1.0},
        "gates": [{"kind": "must", "component": "secret"}],
    }
    assert reward_of(config, bad=1.0, secret=0.0).value == -1.0
    # whatever the must is, the reward is the same
    assert reward_of(config, bad=1.0, secret=ABSTENTION).value == -1.0


def test_a_surely_broken_must_is_judged_whatever_else_was_not() -> None:
    config = {
        "evaluators": [evaluator_use(name) for name in ("good", "bad", "secret")],
        "reward": {"good": 0.5, "bad": -1.0},
        "gates": [{"kind": "must", "component": "secret"}],
        "failure": {"min_coverage": 0},
    }
    reward = reward_of(config, good=1.0, bad=ABSTENTION, secret=0.0)
    assert (reward.value, reward.range, reward.status) == (-0.5, (-0.5, 0.0), "degraded")
    assert not any("must" in note for note in reward.notes)


def test_of_two_musts_a_broken_one_decides_though_the_other_was_not_judged() -> None:
    config = {
        "evaluators": [evaluator_use(name) for name in ("good", "secret", "law")],
        "reward": {"good": 1.0},
        "gates": [{"kind": "must", "component": name} for name in ("secret", "law")],
    }
    reward = reward_of(config, good=1.0, secret=0.0, law=ABSTENTION)
    assert reward.value == 0.0
    states = [describe_gate_state(gate, reward) for gate in reward.gates]
    assert states == ["must: law not judged", "must: secret 0 < 0.5"]
    assert [gate.before - gate.after for gate in reward.gates] == [0.0, 1.0]  # whose loss it is
    assert reward_of(config, good=1.0, secret=1.0, law=ABSTENTION).value is None


def test_a_must_is_not_dropped_for_a_group() -> None:
    config = {**DROP, "criteria": {"x": {"must": True}}}
    plan = make_plan(config, task(criterion("x"), criterion("y")))
    answers: dict[Any, Verdict | float] = {(f"met@{c}", name): 1.0 for c in "xy" for name in "abc"}
    answers["met@x", "b"] = ABSTENTION
    answers["met@x", "c"] = 0.0
    rewards = decide_rewards(plan, answers, "a", "b", "c")
    assert [rewards[name].value for name in "abc"] == [1.0, None, 0.0]


# Discarded verdicts and majorities

MAJORITY_CONFIG = {
    "evaluators": [{**evaluator_use("tone"), "samples": 3}],
    "components": {
        "own": {
            "inputs": {"tone": {"verdicts_of": "tone", "reduce": "majority", "min_confidence": 0.8}}
        }
    },
    "reward": {"own": 1.0},
    "failure": {"min_coverage": 0.0},
}


def majority_reward(*given: Verdict, **config: Any) -> Reward:
    plan = make_plan({**MAJORITY_CONFIG, **config}, task())
    answers = dict(zip(places(plan.survey.questions[0], ["a"]), given, strict=True))
    return Scene(MAJORITY_CONFIG, task(), plan, {}).rewards(["a"], answers)["a"]


def confident(score: float, confidence: float = 0.9) -> Verdict:
    return Verdict(score=score, confidence=confidence)


def test_without_a_majority_nothing_was_judged_and_nothing_is_credit() -> None:
    reward = majority_reward(confident(0.75), confident(0.25), confident(0.5))
    assert (reward.value, reward.status, reward.coverage, reward.range) == (
        None,
        "failed",
        0.0,
        (0.0, 1.0),
    )
    assert reward.diagnostics["own"] == {
        "discarded": 0.0,
        "without a majority": 1.0,
        "spread over samples": 0.5,
    }
    assert reward.counts.judged == 3


# The spread over samples

SAMPLED = {
    "evaluators": [{**evaluator_use("tone"), "samples": 3}, evaluator_use("rude")],
    "reward": {"tone": 1.0},
}


def spreads(*given: Verdict | float, samples: int = 3) -> dict[str, dict[str, float]]:
    """Return the diagnostics of a reward, from the verdicts on the samples of a question."""
    plan = make_plan(
        {**SAMPLED, "evaluators": [{**evaluator_use("tone"), "samples": samples}]}, task()
    )
    verdicts = [one if isinstance(one, Verdict) else Verdict(score=one) for one in given]
    answers = dict(zip(places(plan.survey.questions[0], ["a"]), verdicts, strict=True))
    return Scene(SAMPLED, task(), plan, {}).rewards(["a"], answers)["a"].diagnostics


def test_the_spread_is_the_largest_score_of_the_samples_minus_the_least() -> None:
    assert spreads(0.75, 0.25, 0.5) == {"tone": {"spread over samples": 0.5}}
    assert spreads(0.5, 0.5, 0.5) == {"tone": {"spread over samples": 0.0}}


def test_a_sample_that_was_not_judged_has_no_part_in_the_spread() -> None:
    assert spreads(0.75, ABSTENTION, 0.5) == {"tone": {"spread over samples": 0.25}}
    assert spreads(0.75, ABSTENTION, RESPONSE_FAILURE) == {}


def test_without_samples_there_is_no_spread() -> None:
    assert spreads(0.75, samples=1) == {}
    uses = [
        evaluator_use("tone"),
        evaluator_use("rude", samples=2),
        evaluator_use("better", scope="pair", samples=2),
    ]
    config = {"evaluators": uses, "reward": {"tone": 1.0}}
    plan = make_plan(config, task())
    answers = {
        place: Verdict(score=0.5)
        for question in plan.survey.questions
        for place in places(question, "abc")
    }
    found = Scene(config, task(), plan, {}).rewards("abc", answers)["a"].diagnostics
    assert {name for name, figures in found.items() if SAMPLE_SPREAD_DIAGNOSTIC in figures} == {
        "rude"
    }


def test_a_component_has_the_spread_of_its_least_certain_question() -> None:
    uses = [
        {**evaluator_use("tone"), "samples": 2},
        {**evaluator_use("rude"), "samples": 2},
        evaluator_use("once"),
    ]
    inputs = {name: {"verdicts_of": name} for name in ("tone", "rude", "once")}
    config = {"evaluators": uses, "components": {"own": {"inputs": inputs}}, "reward": {"own": 1.0}}
    plan = make_plan(config, task())
    scores = {"tone": iter([0.25, 0.5]), "rude": iter([1.0, 0.0]), "once": iter([1.0])}
    answers = {
        place: Verdict(score=next(scores[question.evaluator]))
        for question in plan.survey.questions
        for place in places(question, ["a"])
    }
    found = Scene(config, task(), plan, {}).rewards(["a"], answers)["a"].diagnostics
    assert {name: figures["spread over samples"] for name, figures in found.items()} == {
        "own": 1.0,
        "rude": 1.0,
        "tone": 0.25,
    }
