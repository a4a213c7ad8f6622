"""The recipe: signed weights, gates, scale and clip, refused when the plan is made rather than when it is too late."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from jurygraph.decision.combiners import Combiner, Component, Mean, ScoreMatrix
from jurygraph.decision.recipe import decision_key
from jurygraph.errors import ConfigError, PlanError
from jurygraph.jury import Jury
from jurygraph.schema import (
    Adjustment,
    Constraint,
    Must,
    Question,
    Reward,
    Stakeholder,
    Task,
    TaskView,
)
from tests.graphs.scripted import (
    ScriptedEvaluator,
    criterion,
    decide_rewards,
    evaluator_use,
    jury,
    make_plan,
    response,
    response_with,
    reward_responses,
    task,
)
from tests.rows import all_rows

PARTS = {name: evaluator_use(name) for name in ("accuracy", "format", "steps", "repetition")}
FOUR = {
    "evaluators": list(PARTS.values()),
    "reward": {"accuracy": 1.0, "format": 0.5, "steps": 0.5, "repetition": -0.2},
}


def reward_of(config: dict[str, Any], **script: Any) -> Reward:
    (reward,) = reward_responses(config, task(), response("a", **script))
    return reward


def test_signed_weights_count_as_terms_of_one_sum() -> None:
    reward = reward_of(FOUR, accuracy=1.0, format=0.5, steps=0.25, repetition=0.75)
    assert reward.value == pytest.approx(1.0 + 0.25 + 0.125 - 0.15)
    terms = [(t.name, t.weight, t.value, t.contribution) for t in reward.terms]
    assert terms == [
        ("accuracy", 1.0, 1.0, 1.0),
        ("format", 0.5, 0.5, 0.25),
        ("repetition", -0.2, 0.75, pytest.approx(-0.15)),
        ("steps", 0.5, 0.25, 0.125),
    ]
    assert reward.value == pytest.approx(
        sum(t.contribution for t in reward.terms if t.contribution is not None)
    )


SAID = {"accuracy": 0.0, "format": 0.5, "steps": 1.0, "repetition": 0.75}
PLAIN = 0.25 + 0.5 - 0.15


@pytest.mark.parametrize(
    ("gate", "after"),
    [
        ({"kind": "format", "below": 0.6}, 0.0),
        ({"kind": "format", "below": 0.5}, None),
        (
            {"kind": "precision", "auxiliary": ["format", "steps"], "fraction": 0.5},
            0.125 + 0.25 - 0.15,
        ),
        (
            {
                "kind": "precision",
                "auxiliary": ["format", "steps"],
                "fraction": 0.5,
                "component": "steps",
            },
            None,
        ),
        ({"kind": "repetition", "above": 0.5}, PLAIN * 0.25),
        ({"kind": "repetition", "above": 0.75}, None),
    ],
)
def test_a_gate_records_an_adjustment_only_if_it_changes_the_reward(
    gate: dict[str, Any], after: float | None
) -> None:
    reward = reward_of({**FOUR, "gates": [gate]}, **SAID)
    assert reward.value == pytest.approx(PLAIN if after is None else after)
    shown = (
        []
        if after is None
        else [(f"{gate['kind']} gate", pytest.approx(PLAIN), pytest.approx(after))]
    )
    assert [(a.name, a.before, a.after) for a in reward.adjustments] == shown


def test_gates_apply_in_one_order_whatever_the_config_says() -> None:
    gates = [
        {"kind": "repetition", "above": 0.5},
        {"kind": "precision", "auxiliary": ["steps"], "fraction": 0.0},
        {"kind": "format", "below": 0.1},
    ]
    rewards = [
        reward_of({**FOUR, "gates": order, "scale": 2.0}, **SAID) for order in (gates, gates[::-1])
    ]
    assert rewards[0] == rewards[1]
    assert [a.name for a in rewards[0].adjustments] == [
        "precision gate",
        "repetition gate",
        "scale",
    ]


def test_scale_and_clip_are_recorded_never_silent() -> None:
    config = {**FOUR, "reward": {"accuracy": 1.0}, "scale": 10.0, "clip": [-1.0, 4.0]}
    reward = reward_of(config, accuracy=0.5, format=0.0, steps=0.0, repetition=0.0)
    assert reward.value == 4.0
    assert reward.adjustments == (
        Adjustment(name="scale", before=0.5, after=5.0),
        Adjustment(name="clip", before=5.0, after=4.0),
    )


PLAIN_REWARD = {"reward": {"accuracy": 1.0}}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"reward": {"acuracy": 1.0}}, "no component 'acuracy'; did you mean accuracy?"),
        ({"reward": {"zzz": 1.0}}, "there are accuracy, format, repetition, steps"),
        (
            {},
            "reward: say how the components count, for instance {accuracy: 1.0}; there are ['accuracy', 'format'",
        ),
        (
            {"reward": {"accuracy": 0.0, "format": 0.0}},
            "every weight is 0, so nothing would count; give one component",
        ),
        (
            {**PLAIN_REWARD, "gates": [{"kind": "format", "component": "fromat", "below": 0.5}]},
            "gates[0]: there is no component 'fromat'; did you mean format?",
        ),
        (
            {
                **PLAIN_REWARD,
                "gates": [{"kind": "precision", "auxiliary": ["stepps"], "fraction": 0.5}],
            },
            "did you mean steps?",
        ),
        (
            {**PLAIN_REWARD, "gates": [{"kind": "format", "below": 0.1}] * 2},
            "two of kind 'format'; keep one",
        ),
    ],
)
def test_a_reward_that_cannot_count_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        jury(*PARTS.values(), **config)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("one", "other", "home"),
    [
        (evaluator_use("a.tone"), evaluator_use("b.tone"), "tone"),
        (
            evaluator_use("a.tone", audience="reviewer"),
            evaluator_use("b.tone", audience="reviewer"),
            "tone",
        ),
        (evaluator_use("a.rubric"), evaluator_use("a-rubric"), "a-rubric"),
        (evaluator_use("rubric"), evaluator_use("b.met", audience="criterion"), "rubric"),
        (evaluator_use("a.met", audience="criterion"), evaluator_use("rubric"), "rubric"),
        (
            evaluator_use("stakeholders"),
            evaluator_use("b.kind", audience="stakeholder"),
            "stakeholders",
        ),
    ],
)
def test_two_evaluators_do_not_give_one_component(one: Any, other: Any, home: str) -> None:
    with pytest.raises(ConfigError, match=f"would both give component '{home}'"):
        jury(one, other, reward={home: 1.0})


def test_two_evaluators_of_the_rubric_share_it() -> None:
    config = {
        "evaluators": [
            evaluator_use("a.met", audience="criterion"),
            evaluator_use("b.met", audience="criterion"),
        ]
    }
    (reward,) = reward_responses(
        config, task(criterion("x")), response_with("a", {"a.met@x": 0.0, "b.met@x": 1.0})
    )
    assert reward.value == 0.5


MET, KIND = (
    evaluator_use("met", audience="criterion"),
    evaluator_use("kind", audience="stakeholder"),
)


@pytest.mark.parametrize(
    ("config", "lacks"),
    [
        (
            {"evaluators": [MET, evaluator_use("tone")], "reward": {"rubric": 1.0, "tone": 1.0}},
            "rubric",
        ),
        (
            {
                "evaluators": [KIND, evaluator_use("tone")],
                "reward": {"stakeholders": 1.0, "tone": 1.0},
            },
            "stakeholders",
        ),
        (
            {
                "evaluators": [evaluator_use("peer", audience="reviewer"), evaluator_use("tone")],
                "reward": {"peer": 1, "tone": 1},
            },
            "peer",
        ),
        ({"evaluators": [MET]}, "rubric"),
        ({"evaluators": [KIND]}, "stakeholders"),
        (
            {
                "evaluators": [MET, evaluator_use("tone")],
                "reward": {"tone": 1.0},
                "gates": [
                    {
                        "kind": "precision",
                        "component": "tone",
                        "auxiliary": ["rubric"],
                        "fraction": 0.5,
                    }
                ],
            },
            "rubric",
        ),
    ],
)
def test_a_component_that_counts_and_that_the_task_does_not_have_is_refused(
    config: Any, lacks: str
) -> None:
    what = lacks if lacks in ("rubric", "stakeholders") else "question"
    wrong = f"'task'.*component '{lacks}', but the task has no {what} for it; "
    with pytest.raises(PlanError, match=wrong):
        make_plan(config, task())


class Predicts(ScriptedEvaluator):
    """Asks about the reviewers of a task."""

    audience = "reviewer"


def test_a_task_without_the_reviewers_that_a_judge_predicts_names_their_key() -> None:
    config = {
        "evaluators": [{"use": f"{__name__}:Predicts", "name": "people"}],
        "reward": {"people": 1},
    }
    with pytest.raises(PlanError, match=r"`task_defaults: \{reviewers: \[ann\]\}`"):
        make_plan(config, task())


class Silent(ScriptedEvaluator):
    """Asks about nobody but `a`."""

    audience = "criterion"

    def questions(self, view: TaskView) -> Sequence[Question]:
        return super().questions(view) if view.member == "a" else []


def test_a_criterion_without_a_question_is_refused() -> None:
    with pytest.raises(
        PlanError,
        match=r"'task': no evaluator has a question about 'b'; add one of that audience, or",
    ):
        make_plan({"evaluators": [f"{__name__}:Silent"]}, task(criterion("a"), criterion("b")))


@pytest.mark.parametrize("counts", ["weight", "gate", "own"])
def test_if_skipped_must_be_left_out_or_zero_for_screened_questions(counts: str) -> None:
    late = {**evaluator_use("late"), "when": {"question": "tone", "threshold": 0.5}}
    config: dict[str, Any] = {"evaluators": [evaluator_use("tone"), late], "reward": {"tone": 1.0}}
    if counts == "weight":
        config["reward"]["late"] = 1.0
    elif counts == "gate":
        config["gates"] = [{"kind": "format", "component": "late", "below": 0.5}]
    else:
        config |= {"components": {"own": {"inputs": {"x": "late"}}}, "reward": {"own": 1.0}}
    with pytest.raises(
        PlanError,
        match=r"if_skipped.*: question 'late' may be left out by its `when`: say whether .*left-out.*zero",
    ):
        make_plan(config, task())


@pytest.mark.parametrize(
    ("audience", "setting", "about"),
    [
        ("criterion", "rubric.if_skipped", task(criterion("m"))),
        ("stakeholder", "weights.if_skipped", task(stakeholders=[Stakeholder(id="m")])),
        ("reviewer", "panel.if_skipped", task(reviewers=["m"])),
    ],
)
def test_if_skipped_is_required_for_screened_questions_of_an_audience(
    audience: str, setting: str, about: Task
) -> None:
    late = {
        **evaluator_use("late", audience=audience),
        "when": {"question": "tone", "threshold": 0.5},
    }
    component = {"criterion": "rubric", "stakeholder": "stakeholders", "reviewer": "late"}[audience]
    config = {
        "evaluators": [late, evaluator_use("tone")],
        "reward": {component: 1.0},
        "weights": {"method": "uniform"},
    }
    problem = rf"{setting}: question 'late@m' may be left out by its `when`: say whether"
    with pytest.raises(PlanError, match=problem):
        make_plan(config, about)
    section = setting.partition(".")[0]
    config[section] = {**config.get(section, {}), "if_skipped": "zero"}
    spec = next(one for one in make_plan(config, about).decision.specs if one.name == component)
    assert {one.if_skipped for one in spec.inputs.values()} == {"zero"}


@pytest.mark.parametrize(("gated", "value"), [("left-out", 0.25), ("zero", 0.125)])
def test_a_question_that_is_left_out_leaves_the_mean_and_a_zero_does_not(
    gated: str, value: float
) -> None:
    late = {**evaluator_use("late"), "when": {"question": "tone", "threshold": 0.5}}
    inputs = {"x": "tone", "y": {"verdicts_of": "late", "if_skipped": gated}}
    config = {
        "evaluators": [evaluator_use("tone"), late],
        "components": {"own": {"inputs": inputs}},
        "reward": {"own": 1.0},
    }
    reward = reward_of(config, tone=0.25)
    assert (reward.value, reward.status, reward.coverage) == (value, "ok", 1.0)
    assert reward.counts.not_applicable == 1


class Picky(Mean):
    """A combiner that refuses its inputs by a message of its own."""

    name = "picky"

    def freeze(self, inputs: Any, params: Any) -> Any:
        raise PlanError("task 'task': picky about its inputs")


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (
            {"inputs": {"x": "tonne"}},
            r"own\.inputs\.x: task 'task' has no question or .* 'tonne'; did you mean tone\?",
        ),
        (
            {"inputs": {"x": "zzz"}},
            r"task 'task' has no question or evaluator 'zzz'; there are tone",
        ),
        (
            {"combiner": "product", "inputs": {"x": "tone"}},
            r"'task', component 'own': .*two inputs",
        ),
        (
            {"combiner": "mean", "inputs": {"x": "tone"}, "params": {"power": 2}},
            r"params\.power: unknown; leave it out",
        ),
        (
            {"combiner": f"{__name__}.Picky", "inputs": {"x": "tone"}},
            r"^task 'task': picky about its inputs$",
        ),
    ],
)
def test_a_component_with_unsuitable_inputs_is_refused(own: Any, message: str) -> None:
    config = {
        "evaluators": [evaluator_use("tone")],
        "components": {"own": own},
        "reward": {"own": 1.0},
    }
    with pytest.raises((ConfigError, PlanError), match=message):
        make_plan(config, task())


KNOTS = {"method": "isotonic", "labels": 9, "scores": [0.5], "calibrated": [0.6]}


@pytest.mark.parametrize(
    ("use", "settings", "message"),
    [
        (
            evaluator_use("tone", scope="pair"),
            {},
            "is about several responses; calibrate questions about one",
        ),
        (
            evaluator_use("tone"),
            {"reduce": "majority"},
            "input 'x' counts its votes, and votes are no scores; fold it",
        ),
    ],
)
def test_a_calibration_of_what_has_no_score_of_one_response_is_refused(
    use: Any, settings: Any, message: str
) -> None:
    own = {"inputs": {"x": {"verdicts_of": "tone", **settings}}}
    config = {
        "evaluators": [use],
        "components": {"own": own},
        "reward": {"own": 1.0},
        "calibration": {"tone": KNOTS},
    }
    with pytest.raises(ConfigError, match=f"calibration.tone: {message}"):
        make_plan(config, task())


def test_the_panel_says_how_sure_a_reviewers_judge_has_to_be_unless_the_input_does() -> None:
    sure = {"verdicts_of": "taste", "min_confidence": 0.25}
    config = {
        "evaluators": [evaluator_use("taste", audience="reviewer"), evaluator_use("tone")],
        "components": {"own": {"inputs": {"panel": "taste", "input": sure, "tone": "tone"}}},
        "reward": {"own": 1.0},
        "panel": {"min_confidence": 0.75},
    }
    spec = next(
        one for one in make_plan(config, task(reviewers=["r1"])).decision.specs if one.name == "own"
    )
    least = {name: one.min_confidence for name, one in spec.inputs.items()}
    assert least == {"panel": 0.75, "input": 0.25, "tone": 0.0}


def test_tasks_share_a_decision_unless_their_rubrics_weigh_otherwise() -> None:
    rubrics = [(criterion("a", weight), criterion("b")) for weight in (1.0, 3.0, 1.0)]
    with Jury.from_config({"evaluators": [evaluator_use("met", audience="criterion")]}) as made:
        first, heavier, again = (made.prepare(task(*rubric)).decision for rubric in rubrics)
    assert first is again
    assert [decision.specs[0].inputs["a"].input_weight for decision in (first, heavier)] == [
        1.0,
        3.0,
    ]


def test_only_what_no_decision_reads_is_left_out_of_its_key() -> None:
    survey = make_plan({"evaluators": [evaluator_use("tone")]}, task()).survey
    bad, good = criterion("bad", -1.0), criterion("good")
    tasks = [
        task(),
        task(good, bad),
        task(good, criterion("bad", -2.0)),
        task(good, criterion("worse", -1.0)),
        *(task(good, bad, edges=[("good", "bad", kind)]) for kind in ("weak", "strong")),
        *(task(stakeholders=[Stakeholder(id=name)]) for name in ("ann", "bob")),
        *(
            task(
                stakeholders=[
                    Stakeholder(id="ann", constraints=(Constraint(id="quiet", kind=kind),))
                ]
            )
            for kind in ("hard", "soft")
        ),
    ]
    weighed = [({"ann": 0.0}, {}), ({"ann": -0.0}, {}), ({"ann": 0.0}, {"ann": 1.0})]
    keys = [decision_key(about, survey, *each) for about in tasks for each in weighed]
    assert len(set(keys)) == len(keys) == 30
    same = task(good.model_copy(update={"text": "other words"}), bad)
    assert decision_key(same, survey, *weighed[0]) == keys[3]


@all_rows(
    ("weight", "gate", "direction"),
    [
        (2.0, {"kind": "repetition", "component": "tone", "above": 0.5}, 1),
        (-2.0, {"kind": "format", "component": "tone", "below": 0.5}, -1),
        (0.0, {"kind": "repetition", "component": "tone", "above": 0.5}, -1),
        (0.0, {"kind": "format", "component": "tone", "below": 0.5}, 1),
        (0.0, {"kind": "repetition", "component": "rude", "above": 0.5}, 1),
    ],
)
def test_a_component_without_weight_counts_against_where_it_is_the_repetition(
    weight: float, gate: Any, direction: int
) -> None:
    config = {
        "evaluators": [evaluator_use("tone"), evaluator_use("rude")],
        "reward": {"tone": weight, "rude": 1.0},
        "gates": [gate],
    }
    specs = {spec.name: spec.direction for spec in make_plan(config, task()).decision.specs}
    assert specs == {"tone": direction, "rude": 1}


def test_a_spec_knows_the_combiner_that_it_names() -> None:
    plan = make_plan({"evaluators": [evaluator_use("tone")]}, task())
    assert {type(spec.implementation) for spec in plan.decision.specs} == {Mean}


# DecompR, Table 4: one hard constraint, two soft and so on, so that d = (5, 1, 3); û as given.
TABLE_4 = [("a", 5, 0.40), ("b", 1, 0.95), ("c", 3, 0.80)]


@pytest.mark.parametrize(("method", "printed"), [("uniform", 0.72), ("calibrated", 0.55)])
def test_decompr_table_4_through_a_plan(method: str, printed: float) -> None:
    people = [
        Stakeholder(
            id=name, constraints=tuple(Constraint(id=f"{i}", kind="hard") for i in range(d))
        )
        for name, d, _ in TABLE_4
    ]
    temperature = {"temperature": 2.0} if method == "calibrated" else {}
    config = {"evaluators": [KIND], "weights": {"method": method, **temperature}}
    about = task(stakeholders=people)
    (spec,) = make_plan(config, about).decision.specs
    (reward,) = reward_responses(
        config, about, response_with("r", {f"kind@{name}": u for name, _, u in TABLE_4})
    )
    if method == "calibrated":
        assert [round(one.input_weight, 2) for one in spec.inputs.values()] == [0.67, 0.09, 0.24]
    assert reward.value == pytest.approx(printed, abs=0.005)
    assert reward.parts["stakeholders"] == {name: u for name, _, u in TABLE_4}


TABLE_5 = [  # acc, sim, fmt, step, rep and the final reward, as printed
    ((1.00, 1.00, 0.40, 0.00, 0.28), 0.69),
    ((0.00, 0.27, 1.00, 0.00, 0.00), 0.25),
    ((1.00, 1.00, 0.40, 0.50, 0.00), 0.80),
    ((0.00, 0.00, 0.40, 0.00, 0.51), 0.04),
]


DIAMOND = task(
    *map(criterion, ("r1", "r2", "r3", "r4", "r5")),
    edges=[
        ("r1", "r2", 0.2),
        ("r1", "r3", 0.2),
        ("r2", "r4", 0.2),
        ("r3", "r4", 0.2),
        ("r4", "r5", 0.2),
    ],
)
DIAMOND_SAID = {f"met@r{i}": 0.5 if i == 1 else 0.9 for i in range(1, 6)}


@pytest.mark.parametrize(
    ("rubric", "inference", "r4", "r5"),
    [
        ({}, "exact", 0.4341312, 0.492574464),
        ({"exact": "never"}, "one-pass", 0.3594816, 0.438826752),
    ],
)
def test_a_small_graph_is_inferred_exactly_unless_told_otherwise(
    rubric: dict[str, str], inference: str, r4: float, r5: float
) -> None:
    config = {"evaluators": [MET], "rubric": rubric}
    assert make_plan(config, DIAMOND).decision.specs[0].params["inference"] == inference
    (reward,) = reward_responses(config, DIAMOND, response_with("a", DIAMOND_SAID))
    q = reward.parts["rubric"]
    assert q["r1"] == 0.5
    assert q["r2"] == q["r3"] == pytest.approx(0.9 * 0.6)
    assert (q["r4"], q["r5"]) == pytest.approx((r4, r5), abs=1e-12)
    assert reward.value == pytest.approx(sum(q.values()) / 5)


@pytest.mark.parametrize(
    "how", ["gear", "flat", "hard-local", "hard-transitive", "mean", "product", "panel"]
)
def test_a_component_refuses_a_rubric_whose_weights_it_would_lose(how: str) -> None:
    gains = task(criterion("a", 0.75), criterion("b", 0.25))
    mixed, answers = (
        task(criterion("a", 0.75), criterion("b", -1.0)),
        response_with("r", {"met@a": 1.0, "met@b": 0.0}),
    )

    def reward_by(*inputs: str, about: Task = mixed) -> float | None:
        own = {
            "combiner": how,
            "inputs": {f"of-{number}": one for number, one in enumerate(inputs)},
        }
        config = {"evaluators": [MET], "components": {"g": own}, "reward": {"g": 1.0}}
        return reward_responses(config, about, answers)[0].value

    of_single_criteria = (
        [] if how in ("mean", "product", "panel") else [(("met@a", "met@b"), "of-1")]
    )
    for inputs, key in ((("met",), "of-0"), *of_single_criteria):
        problem = (
            f"task 'task', component 'g': combiner '{how}' would count the criteria of input '{key}' without their "
            'weights; give each .* component of its own, with the input `{verdicts_of: "met@CRITERION"}`'
        )
        with pytest.raises(PlanError, match=problem):
            reward_by(*inputs)
    if how != "product":  # which needs two inputs
        assert reward_by("met@a") == 1.0
    if how == "mean":
        assert reward_by("met", about=gains) == 0.5
        assert reward_by("met@b") == 0.0


# Settings of an evaluator for its component


def evaluator_with_shares(**settings: Any) -> dict[str, Any]:
    return evaluator_use(
        "rated", subjects=["big/a", "big/b", "small"], shares={"big": 2.5, "small": 1.0}, **settings
    )


def test_questions_have_the_weights_of_their_evaluator_and_its_shares_as_parts() -> None:
    plan = make_plan({"evaluators": [evaluator_with_shares()]}, task())
    (spec,) = plan.decision.specs
    assert {name: (one.input_weight, one.weights) for name, one in spec.inputs.items()} == {
        "big": (5.0, (2.5, 2.5)),
        "small": (1.0, (1.0,)),
    }
    script = {"rated/big/a": 1.0, "rated/big/b": 0.0, "rated/small": 1.0}
    (reward,) = reward_responses(
        {"evaluators": [evaluator_with_shares()]}, task(), response_with("a", script)
    )
    assert reward.value == pytest.approx((2.5 + 1.0) / 6.0)
    assert reward.parts == {"rated": {"big": 0.5, "small": 1.0}}


def test_an_evaluator_names_the_combiner_of_its_component() -> None:
    config = {"evaluators": [evaluator_with_shares(combiner="product")]}
    (reward,) = reward_responses(
        config,
        task(),
        response_with("a", {"rated/big/a": 1.0, "rated/big/b": 0.0, "rated/small": 0.5}),
    )
    assert reward.value == 0.25


class WeightsFromVerdicts(Combiner):
    """Takes its weights from verdicts."""

    name = "doubtful"
    has_fixed_weights = False
    needs_all_columns = True
    if_skipped = "left-out"

    def combine(self, matrices: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
        value, present = next(iter(matrices.values())).mean()
        return Component(value, present, {})


@pytest.mark.parametrize(("weight", "fixed"), [(1.0, False), (0.0, True)])
def test_a_reward_with_weights_from_a_judge_notes_it(weight: float, fixed: bool) -> None:
    own = {"combiner": "tests.decision.test_recipe:WeightsFromVerdicts", "inputs": {"tone": "tone"}}
    config = {
        "evaluators": [evaluator_use("tone")],
        "components": {"own": own},
        "reward": {"own": weight, "tone": 1.0},
    }
    (reward,) = reward_responses(config, task(), response("a", tone=0.5))
    assert reward.weights_fixed is fixed


def test_a_combiner_says_how_a_skipped_question_counts_unless_the_config_does() -> None:
    late = {**evaluator_use("late"), "when": {"question": "tone", "threshold": 0.5}}
    inputs = {"x": "late", "y": {"verdicts_of": "late", "if_skipped": "zero"}}
    own = {"combiner": "tests.decision.test_recipe:WeightsFromVerdicts", "inputs": inputs}
    config = {
        "evaluators": [evaluator_use("tone"), late],
        "components": {"own": own},
        "reward": {"own": 1.0},
    }
    spec = next(spec for spec in make_plan(config, task()).decision.specs if spec.name == "own")
    assert {name: one.if_skipped for name, one in spec.inputs.items()} == {
        "x": "left-out",
        "y": "zero",
    }


def test_a_combiner_that_keeps_columns_gets_them_unfolded() -> None:
    own = {
        "combiner": "tests.decision.test_recipe:WeightsFromVerdicts",
        "inputs": {"tone": {"verdicts_of": "tone", "reduce": "max"}},
    }
    config = {
        "evaluators": [evaluator_use("tone")],
        "components": {"own": own},
        "reward": {"own": 1.0},
    }
    spec = next(one for one in make_plan(config, task()).decision.specs if one.name == "own")
    assert spec.inputs["tone"].reduce is None


def test_a_combiner_is_told_which_reviewer_a_question_predicts() -> None:
    own = {"combiner": "consensus", "inputs": {"judge": "taste"}}
    config = {
        "evaluators": [evaluator_use("taste", audience="reviewer")],
        "components": {"own": own},
        "reward": {"own": 1.0},
    }
    spec = next(
        one
        for one in make_plan(config, task(reviewers=["r1", "r2"])).decision.specs
        if one.name == "own"
    )
    assert {name: one.reviewer for name, one in spec.inputs.items()} == {
        "judge@r1": "r1",
        "judge@r2": "r2",
    }


# Weights of a stakeholder's questions


ANN = Stakeholder(
    id="ann",
    constraints=(
        Constraint(id="quiet", kind="hard"),
        Constraint(id="cheap", kind="soft"),
        Constraint(id="near", kind="soft"),
    ),
)


def questions_about_ann(**weights: Any) -> Any:
    uses = [
        evaluator_use(
            "kind",
            audience="stakeholder",
            layer="model",
            subjects=["cheap", "mood", "near", "quiet"],
        ),
        evaluator_use("same", audience="stakeholder", layer="check"),
        evaluator_use(
            "asked", audience="stakeholder", layer="check", subjects=["diet"], shares={"diet": 0.0}
        ),
    ]
    config = {"evaluators": uses, "weights": {"method": "uniform", **weights}}
    (spec,) = make_plan(config, task(stakeholders=[ANN])).decision.specs
    return spec


def test_layers_share_a_stakeholders_utility_and_its_questions_the_layers_share() -> None:
    (one,) = questions_about_ann(layers={"model": 0.5, "check": 0.5}).inputs.values()
    assert dict(zip(one.questions, one.weights, strict=True)) == {
        **{f"kind/{subject}@ann": 0.125 for subject in ("cheap", "mood", "near", "quiet")},
        "same@ann": 0.5,
        "asked/diet@ann": 0.0,
    }


def test_the_places_of_hard_and_soft_constraints_and_of_questions_without_weight_are_frozen() -> (
    None
):
    spec = questions_about_ann(cap=0.25)
    questions = spec.inputs["ann"].questions
    kinds = ("hard", "soft", "collected")
    assert {kind: [questions[place] for place in spec.params[kind]["ann"]] for kind in kinds} == {
        "hard": ["kind/quiet@ann"],
        "soft": ["kind/cheap@ann", "kind/near@ann"],
        "collected": ["asked/diet@ann"],
    }
    assert spec.params["cap"] == 0.25
    assert "floor" not in spec.params
    assert questions_about_ann(welfare="egalitarian", floor=0.25).params["floor"] == 0.25


def test_a_component_of_reviewers_has_an_input_for_each() -> None:
    config = {"evaluators": [evaluator_use("taste", audience="reviewer")]}
    (spec,) = make_plan(config, task(reviewers=["r1", "r2"])).decision.specs
    questions = {name: one.questions for name, one in spec.inputs.items()}
    assert questions == {"r1": ("taste@r1",), "r2": ("taste@r2",)}


@pytest.mark.parametrize(("fold", "reduce"), [(None, "min"), ("median", "median")])
def test_the_fold_of_an_evaluator_comes_before_that_of_the_panel(
    fold: str | None, reduce: str
) -> None:
    config = {
        "evaluators": [{**evaluator_use("taste", audience="reviewer"), "fold": fold, "samples": 3}],
        "panel": {"reduce": "min"},
    }
    (spec,) = make_plan(config, task(reviewers=["r1"])).decision.specs
    assert spec.inputs["r1"].reduce == reduce


MET = evaluator_use("met", audience="criterion")


def test_a_must_of_a_rubric_or_of_the_config_is_a_gate_and_no_component() -> None:
    weights = {"x": 2.0, "y": 1.0}
    about = task(*(criterion(name, weight) for name, weight in weights.items()))
    in_config = make_plan({"evaluators": [MET], "criteria": {"y": {"must": True}}}, about)
    assert about.rubric is not None
    flagged = [c.model_copy(update={"must": c.id == "y"}) for c in about.rubric.criteria]
    rubric = about.rubric.model_copy(update={"criteria": tuple(flagged)})
    in_rubric = make_plan({"evaluators": [MET]}, about.model_copy(update={"rubric": rubric}))
    assert in_config.decision == in_rubric.decision
    assert in_config.survey == in_rubric.survey  # nobody who judges is told
    assert in_config.decision.gates == (Must(component="y"),)
    assert [spec.name for spec in in_config.decision.specs] == ["rubric"]
    off = {"evaluators": [MET], "criteria": {"y": {"must": False}}}
    plan = make_plan(off, about.model_copy(update={"rubric": rubric}))
    assert plan.decision == make_plan({"evaluators": [MET]}, about).decision
    reward = decide_rewards(in_config, {("met@x", "a"): 1.0, ("met@y", "a"): 0.0}, "a")["a"]
    assert (reward.value, reward.components) == (0.0, {"rubric": pytest.approx(2 / 3)})
    assert [change.name for change in reward.adjustments] == ["must y"]


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (
            {"criteria": {"z": {"must": True}}},
            "criteria.z.must: it is a penalty; say what has to hold instead",
        ),
        (
            {"evaluators": [MET, evaluator_use("x")], "reward": {"x": 1.0, "rubric": 1.0}},
            "criteria.x.must: another must or component has its name; rename one",
        ),
        (
            {"components": {"rubric": {"inputs": {"all": "met@x"}}}},
            "criteria.x.must: 'rubric' is of `components`; make a gate",
        ),
    ],
)
def test_a_criterion_that_cannot_be_a_must_is_refused_with_the_reason(
    config: dict[str, Any], problem: str
) -> None:
    config = {"evaluators": [MET], "criteria": {"x": {"must": True}}, **config}
    with pytest.raises(ConfigError, match=problem):
        make_plan(config, task(criterion("x"), criterion("z", -1.0)))


def test_two_musts_of_one_component_are_refused() -> None:
    config = {**FOUR, "gates": [{"kind": "must", "component": "format"}] * 2}
    with pytest.raises(ConfigError, match="two of kind 'must format'; keep one"):
        make_plan(config, task())
