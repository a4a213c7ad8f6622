"""Whose needs count how much: DecompR's weights, from the task alone."""

from typing import Any

import pytest

from jurygraph.errors import PlanError
from jurygraph.schema import Constraint, Stakeholder
from tests.graphs.scripted import evaluator_use, make_plan, response_with, reward_responses, task

PEOPLE = [Stakeholder(id="ann", profile="likes tea"), Stakeholder(id="bob", profile="hates tea")]


def stakeholder_with(
    name: str, *restrictiveness: float, soft: tuple[float, ...] = ()
) -> Stakeholder:
    hard = [
        Constraint(id=f"h{i}", kind="hard", restrictiveness=a)
        for i, a in enumerate(restrictiveness)
    ]
    wishes = [Constraint(id=f"s{i}", kind="soft", restrictiveness=a) for i, a in enumerate(soft)]
    return Stakeholder(id=name, constraints=(*hard, *wishes))


def weights_of(weights: dict[str, Any], **fields: Any) -> dict[str, float]:
    config = {"evaluators": [evaluator_use("kind", audience="stakeholder")], "weights": weights}
    (spec,) = make_plan(config, task(**fields)).decision.specs
    return {name: one.input_weight for name, one in spec.inputs.items()}


def test_calibrated_weights_follow_difficulty_and_the_plan_contains_its_terms() -> None:
    people = [stakeholder_with("ann", 1.0, 2.0, soft=(1.0,)), stakeholder_with("bob", soft=(0.5,))]
    tensions = [{"between": ["bob", "ann"], "strength": 0.5}]
    config = {
        "evaluators": [evaluator_use("kind", audience="stakeholder")],
        "weights": {"temperature": 2.0},
    }
    (spec,) = make_plan(config, task(stakeholders=people, tensions=tensions)).decision.specs
    pull = {"strength": 0.5, "why": []}
    assert spec.params["difficulty"] == {
        "ann": {
            "hard": 3.0,
            "soft": 1.0,
            "conflict": 0.5,
            "difficulty": 3.75,
            "tensions": {"bob": pull},
        },
        "bob": {
            "hard": 0.0,
            "soft": 0.5,
            "conflict": 0.5,
            "difficulty": 0.5,
            "tensions": {"ann": pull},
        },
    }
    assert spec.params["calibration"] == {"gamma": 0.5, "beta": 0.5, "temperature": 2.0}
    assert spec.inputs["ann"].input_weight == pytest.approx(
        1 / (1 + 2.718281828459045 ** ((0.5 - 3.75) / 2))
    )


def test_uniform_and_fixed_weights_sum_to_one() -> None:
    assert weights_of({"method": "uniform"}, stakeholders=PEOPLE) == {"ann": 0.5, "bob": 0.5}
    fixed = {"method": "fixed", "fixed": {"ann": 3.0, "bob": 1.0, "elsewhere": 9.0}}
    assert weights_of(fixed, stakeholders=PEOPLE) == {"ann": 0.75, "bob": 0.25}


def test_a_text_only_profile_cannot_be_calibrated_and_the_error_names_the_remedy() -> None:
    with pytest.raises(
        PlanError, match=r"'ann' has a profile in text alone.*constraints.*uniform or fixed"
    ):
        weights_of({}, stakeholders=PEOPLE)


def test_fixed_weights_must_cover_every_stakeholder() -> None:
    with pytest.raises(
        PlanError, match=r"'task'.*no weight for stakeholder 'bob'; add one, or set"
    ):
        weights_of({"method": "fixed", "fixed": {"ann": 1.0}}, stakeholders=PEOPLE)
    with pytest.raises(
        PlanError, match=r"no weight for stakeholder 'bob'; rename 'bobb' there, or set"
    ):
        weights_of({"method": "fixed", "fixed": {"ann": 1.0, "bobb": 1.0}}, stakeholders=PEOPLE)


def test_a_stakeholder_that_would_weigh_nothing_is_refused() -> None:
    people = [stakeholder_with("ann", 9.0), stakeholder_with("bob")]
    with pytest.raises(
        PlanError,
        match=r"'task': stakeholder 'bob' would get weight 0 .* set a higher weights\.temper",
    ):
        weights_of({"temperature": 0.01}, stakeholders=people)
    with pytest.raises(PlanError, match="'bob' would get weight 0"):
        weights_of({"method": "fixed", "fixed": {"ann": 1e300, "bob": 1e-300}}, stakeholders=PEOPLE)


# Tensions that the constraints show


def difficulty_terms(*people: Stakeholder, tensions: Any = ()) -> dict[str, Any]:
    config = {"evaluators": [evaluator_use("kind", audience="stakeholder")]}
    (spec,) = make_plan(
        config, task(stakeholders=list(people), tensions=list(tensions))
    ).decision.specs
    return spec.params["difficulty"]  # type: ignore[return-value]


def stakeholder_with_check(name: str, **check: Any) -> Stakeholder:
    return Stakeholder(id=name, constraints=(Constraint(id="c", kind="hard", check=check),))


SIGHTS = [
    stakeholder_with_check("ann", count="sights", at_most=6),
    stakeholder_with_check("bob", count="sights", at_most=3),
    stakeholder_with_check("eve", text="x"),
]


def test_contradicting_constraints_are_a_conflict_named_in_the_plan() -> None:
    found = difficulty_terms(*SIGHTS)
    assert [found[name]["conflict"] for name in ("ann", "bob", "eve")] == [0.5, 0.5, 0.0]
    assert found["ann"]["tensions"] == {
        "bob": {"strength": 0.5, "why": ["c and c: the bounds 3 and 6 of one count differ"]}
    }
    assert "tensions" not in found["eve"]
    assert found["ann"]["difficulty"] == 1.0 + 0.5 * 0.5


def test_a_declared_tension_replaces_one_found_in_the_constraints() -> None:
    found = difficulty_terms(*SIGHTS, tensions=[{"between": ["bob", "ann"], "strength": 2.0}])
    assert found["bob"]["conflict"] == 2.0
    assert found["bob"]["tensions"] == {"ann": {"strength": 2.0, "why": []}}


def test_the_order_of_people_and_constraints_changes_no_weight() -> None:
    one, other = (difficulty_terms(*people) for people in (SIGHTS, SIGHTS[::-1]))
    assert one == other


# Layers, and caps


def utility_of(
    scores: dict[str, float], layers: dict[str, float] | None = None, **weights: Any
) -> float:
    """û of one person, whom three evaluators ask: facts, checks of two constraints, and a model of one's own."""
    hard, soft = Constraint(id="need", kind="hard"), Constraint(id="wish", kind="soft")
    config = {
        "evaluators": [
            evaluator_use("found", audience="stakeholder", layer="fact"),
            evaluator_use("kept", audience="stakeholder", layer="check", subjects=["need", "wish"]),
        ],
        "weights": {"method": "uniform", **({"layers": layers} if layers else {}), **weights},
    }
    about = task(stakeholders=[Stakeholder(id="ann", constraints=(hard, soft))])
    (reward,) = reward_responses(config, about, response_with("r", scores))
    assert reward.value is not None
    return reward.value


SCORES = {"found@ann": 0.6, "kept/need@ann": 1.0, "kept/wish@ann": 0.2}


def test_all_questions_weigh_alike_unless_layers_are_given_shares() -> None:
    assert utility_of(SCORES) == pytest.approx((0.6 + 1.0 + 0.2) / 3)


def test_a_layers_share_is_divided_among_its_questions() -> None:
    assert utility_of(SCORES, {"fact": 3.0, "check": 1.0}) == pytest.approx(0.75 * 0.6 + 0.25 * 0.6)
    assert utility_of(
        SCORES | {"found@ann": 0.0}, {"fact": 0.5, "check": 0.5, "model": 9.0}
    ) == pytest.approx(0.3)


def test_a_layer_without_a_share_is_refused() -> None:
    with pytest.raises(
        PlanError,
        match=r"weights\.layers gives no share to layer 'check'.*'ann' has questions; add one",
    ):
        utility_of(SCORES, {"fact": 1.0})


@pytest.mark.parametrize("weights", [{}, {"cap": "none"}])
def test_without_a_cap_which_decompr_does_not_have_a_violated_need_counts_as_its_score(
    weights: dict[str, Any],
) -> None:
    assert utility_of(SCORES | {"kept/need@ann": 0.0}, **weights) == pytest.approx(
        (0.6 + 0.0 + 0.2) / 3
    )
