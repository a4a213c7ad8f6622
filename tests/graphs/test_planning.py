"""What to ask, of whom and in which order, from the task alone."""

from typing import Any

import pytest

from jurygraph.errors import PlanError
from jurygraph.graphs.planning import view_task
from jurygraph.schema import Constraint, Question, Stakeholder, TaskView, WeightsConfig
from tests.graphs.cast import DATA, TOLD, Measure, Told, criterion, planned, task, told

PEOPLE = [Stakeholder(id="ann", profile="likes tea"), Stakeholder(id="bob", profile="hates tea")]


def waves_of(config: dict[str, Any]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    return [(wave.materials, wave.questions) for wave in planned(config, task()).survey.waves]


def test_what_waits_for_nothing_is_asked_at_once() -> None:
    config = {"evaluators": [told("b"), told("a")], "reward": {"a": 1.0}}
    assert waves_of(config) == [((), ("a", "b"))]


def test_waves_follow_needs_variants_and_gates() -> None:
    config = {
        "evaluators": [
            {"use": DATA, "name": "reads", "params": {"needs": ["half"]}},
            told("same", of="versions"),
            told("plain"),
            {**told("late"), "when": {"question": "reads", "threshold": 0.5}},
        ],
        "derivers": [f"tests.graphs.cast:{name}" for name in ("Half", "Measure", "Versions")],
        "reward": {"plain": 1.0},
    }
    assert waves_of(config) == [
        (("measure", "versions"), ("plain",)),
        (("half",), ("same",)),
        ((), ("reads",)),
        ((), ("late",)),
    ]


def refused(config: dict[str, Any]) -> str:
    with pytest.raises(PlanError) as error:
        planned({"reward": {"first": 1.0}, **config}, task())
    return str(error.value)


def test_a_cycle_of_gates_is_named() -> None:
    first = {**told("first"), "when": {"question": "second", "threshold": 0.5}}
    second = {**told("second"), "when": {"question": "first", "threshold": 0.5}}
    message = refused({"evaluators": [first, second]})
    assert "wait for each other" in message
    assert "first -> second -> first" in message or "second -> first -> second" in message


class Egg(Measure):
    gives, needs = "egg", ("hen",)


class Hen(Measure):
    gives, needs = "hen", ("egg",)


def test_a_cycle_of_materials_is_named() -> None:
    config = {"evaluators": [told("first")], "derivers": [f"{__name__}:Egg", f"{__name__}:Hen"]}
    message = refused(config)
    assert "egg -> hen -> egg" in message or "hen -> egg -> hen" in message


def test_a_question_that_waits_for_itself_is_refused() -> None:
    assert "first -> first" in refused({"evaluators": [told("first", when={"question": "first", "threshold": 0.5})]})


def test_an_unknown_gate_names_the_nearest_question() -> None:
    late = {**told("late"), "when": {"question": "frist", "threshold": 0.5}}
    message = refused({"evaluators": [told("first"), late]})
    assert "'late' waits for question 'frist', which nobody asks; did you mean 'first'?" in message


@pytest.mark.parametrize("how", [{"needs": ["mesure"]}, {"of": "mesure"}])
def test_unknown_material_names_the_nearest(how: dict[str, Any]) -> None:
    config = {"evaluators": [told("first", **how)], "derivers": ["tests.graphs.cast:Measure"]}
    assert "'first' needs material 'mesure', which no deriver gives; did you mean 'measure'?" in refused(config)


def test_a_deriver_that_needs_the_unknown_is_refused() -> None:
    message = refused({"evaluators": [told("first")], "derivers": ["tests.graphs.cast:Half"]})
    assert "'half' needs material 'measure', which no deriver gives" in message


def test_two_derivers_of_one_material_are_refused() -> None:
    twice = ["tests.graphs.cast:Measure", {"use": "tests.graphs.cast:Measure", "name": "again"}]
    assert "'measure', which another source gives already" in refused(
        {"evaluators": [told("first")], "derivers": twice}
    )


def test_two_questions_of_one_id_are_refused() -> None:
    assert "two questions have the id 'first/x'" in refused({"evaluators": [told("first", subjects=["x", "x"])]})


def test_variants_are_not_compared() -> None:
    config = {
        "evaluators": [told("first", of="versions", scope="pair")],
        "derivers": ["tests.graphs.cast:Versions"],
    }
    assert "scope is response, not pair" in refused(config)


class Impostor(Told):
    def questions(self, view: TaskView) -> list[Question]:
        return [self.question(view).model_copy(update={"evaluator": "somebody.else"})]


class Spy(Told):
    """Asks about one member of the audience with the view of another."""

    audience = "stakeholder"
    seen: TaskView | None = None

    def questions(self, view: TaskView) -> list[Question]:
        self.seen = self.seen or view
        return [self.question(view).model_copy(update={"view": self.seen.digest})]


def test_a_question_in_anothers_name_is_refused() -> None:
    config = {"evaluators": [{"use": f"{__name__}:Impostor", "name": "first"}]}
    assert "lists a question of 'somebody.else'" in refused(config)


def test_a_question_with_the_view_of_another_member_is_refused() -> None:
    config = {"evaluators": [{"use": f"{__name__}:Spy", "name": "first"}], "weights": {"method": "uniform"}}
    with pytest.raises(PlanError, match="another view"):
        planned(config, task(stakeholders=PEOPLE))


def test_a_view_holds_one_member_and_no_other() -> None:
    about = task(criterion("clear"), criterion("short"), stakeholders=PEOPLE, reviewers=["r2", "r1"])
    config = {
        "evaluators": [told(a, audience=a) for a in ("task", "stakeholder", "criterion", "reviewer")],
        "reward": {"task": 1.0},
        "weights": {"method": "uniform"},
    }
    survey = planned(config, about).survey
    members = {question.id: survey.views[question.view] for question in survey.questions}
    assert sorted(members) == [
        *("criterion@clear", "criterion@short", "reviewer@r1", "reviewer@r2", "stakeholder@ann", "stakeholder@bob"),
        "task",
    ]
    for question, view in members.items():
        others = {"ann", "bob", "clear", "short", "r1", "r2"} - {question.partition("@")[2]}
        assert not any(f'"id":"{other}"' in view.model_dump_json() for other in others)
    assert members["task"].about is None


def constrained(name: str, *restrictiveness: float, soft: tuple[float, ...] = ()) -> Stakeholder:
    hard = [Constraint(id=f"h{i}", kind="hard", restrictiveness=a) for i, a in enumerate(restrictiveness)]
    wishes = [Constraint(id=f"s{i}", kind="soft", restrictiveness=a) for i, a in enumerate(soft)]
    return Stakeholder(id=name, constraints=(*hard, *wishes))


def masses(weights: dict[str, Any], **fields: Any) -> dict[str, float]:
    config = {"evaluators": [told("kind", audience="stakeholder")], "weights": weights}
    (spec,) = planned(config, task(**fields)).decision.specs
    return {name: one.mass for name, one in spec.inputs.items()}


def test_calibrated_weights_follow_difficulty_and_its_terms_stand_in_the_plan() -> None:
    people = [constrained("ann", 1.0, 2.0, soft=(1.0,)), constrained("bob", soft=(0.5,))]
    tensions = [{"between": ["bob", "ann"], "strength": 0.5}]
    config = {"evaluators": [told("kind", audience="stakeholder")], "weights": {"temperature": 2.0}}
    (spec,) = planned(config, task(stakeholders=people, tensions=tensions)).decision.specs
    assert spec.params["difficulty"] == {
        "ann": {"hard": 3.0, "soft": 1.0, "conflict": 0.5, "difficulty": 3.75},
        "bob": {"hard": 0.0, "soft": 0.5, "conflict": 0.5, "difficulty": 0.5},
    }
    assert spec.inputs["ann"].mass == pytest.approx(1 / (1 + 2.718281828459045 ** ((0.5 - 3.75) / 2)))


def test_uniform_and_fixed_weights_sum_to_one() -> None:
    assert masses({"method": "uniform"}, stakeholders=PEOPLE) == {"ann": 0.5, "bob": 0.5}
    fixed = {"method": "fixed", "fixed": {"ann": 3.0, "bob": 1.0, "elsewhere": 9.0}}
    assert masses(fixed, stakeholders=PEOPLE) == {"ann": 0.75, "bob": 0.25}


def test_a_profile_in_text_alone_cannot_be_calibrated_and_the_error_says_what_to_do() -> None:
    with pytest.raises(PlanError, match=r"'ann' has a profile in text alone.*constraints.*uniform or fixed"):
        masses({}, stakeholders=PEOPLE)


def test_fixed_weights_leave_nobody_out() -> None:
    with pytest.raises(PlanError, match=r"'task'.*no weight for stakeholder 'bob'"):
        masses({"method": "fixed", "fixed": {"ann": 1.0}}, stakeholders=PEOPLE)


def test_weights_are_not_asked_for_where_nobody_asks_the_stakeholders() -> None:
    assert planned({"evaluators": [told("tone")]}, task(stakeholders=PEOPLE)).decision.specs[0].name == "tone"
    assert WeightsConfig().method == "calibrated"


def test_the_config_says_when_and_how_often_over_the_evaluators_own_word() -> None:
    use = {"use": TOLD, "name": "tone", "params": {"samples": 2, "when": {"question": "x", "threshold": 0.1}}}
    own = {"question": "gate", "threshold": 0.9}
    config = {"evaluators": [told("gate"), {**use, "samples": 5, "when": own}], "reward": {"gate": 1.0}}
    question = next(q for q in planned(config, task()).survey.questions if q.id == "tone")
    assert question.samples == 5
    assert question.when is not None
    assert (question.when.question, question.when.threshold) == ("gate", 0.9)


def test_how_much_something_counts_is_not_in_the_view_so_that_changing_it_asks_nothing_again() -> None:
    light = task(criterion("a", 1.0), criterion("b", -1.0))
    heavy = task(criterion("a", 7.0), criterion("b", -0.5))
    assert view_task(light, ["criterion"]) == view_task(heavy, ["criterion"])
    assert [getattr(view.about, "weight", None) for view in view_task(heavy, ["criterion"])] == [1.0, -1.0]
