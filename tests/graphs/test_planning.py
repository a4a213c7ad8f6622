"""Planning: views, questions and waves from the task alone."""

from typing import Any

import pytest

from jurygraph.errors import ConfigError, PlanError
from jurygraph.graphs.survey import view_task
from jurygraph.schema import Question, Stakeholder, TaskView
from tests.graphs.scripted import (
    DATA_READER,
    SCRIPTED,
    Measure,
    ScriptedEvaluator,
    criterion,
    evaluator_use,
    make_plan,
    task,
)

PEOPLE = [Stakeholder(id="ann", profile="likes tea"), Stakeholder(id="bob", profile="hates tea")]


def waves_of(config: dict[str, Any]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    return [(wave.materials, wave.questions) for wave in make_plan(config, task()).survey.waves]


def test_waves_follow_needs_variants_and_gates() -> None:
    config = {
        "evaluators": [
            {"use": DATA_READER, "name": "reads", "params": {"needs": ["half"]}},
            evaluator_use("same", material="versions"),
            evaluator_use("plain"),
            {**evaluator_use("late"), "when": {"question": "reads", "threshold": 0.5}},
        ],
        "derivers": [f"tests.graphs.scripted:{name}" for name in ("Half", "Measure", "Versions")],
        "reward": {"plain": 1.0},
    }
    assert waves_of(config) == [
        (("measure", "versions"), ("plain",)),
        (("half",), ("same",)),
        ((), ("reads",)),
        ((), ("late",)),
    ]


def refusal_message(config: dict[str, Any]) -> str:
    with pytest.raises(PlanError) as error:
        make_plan({"reward": {"first": 1.0}, **config}, task())
    return str(error.value)


def test_a_cycle_of_gates_is_named() -> None:
    first = {**evaluator_use("first"), "when": {"question": "second", "threshold": 0.5}}
    second = {**evaluator_use("second"), "when": {"question": "first", "threshold": 0.5}}
    message = refusal_message({"evaluators": [first, second]})
    assert "wait for each other" in message
    assert message.endswith("; leave out one `when`, `needs` or `material` of them")
    assert "first -> second -> first" in message or "second -> first -> second" in message


class Egg(Measure):
    gives, needs = "egg", ("hen",)


class Hen(Measure):
    gives, needs = "hen", ("egg",)


def test_a_cycle_of_materials_is_named() -> None:
    config = {
        "evaluators": [evaluator_use("first")],
        "derivers": [f"{__name__}:Egg", f"{__name__}:Hen"],
    }
    message = refusal_message(config)
    assert "egg -> hen -> egg" in message or "hen -> egg -> hen" in message


def test_an_unknown_gate_names_the_nearest_question() -> None:
    late = {**evaluator_use("late"), "when": {"question": "frist", "threshold": 0.5}}
    message = refusal_message({"evaluators": [evaluator_use("first"), late]})
    assert (
        "'late' waits for question 'frist', which no evaluator asks; did you mean 'first'?"
        in message
    )
    late["when"]["question"] = "zzz"
    message = refusal_message({"evaluators": [evaluator_use("first"), late]})
    assert "question 'zzz', which no evaluator asks; there are first, late" in message


@pytest.mark.parametrize("how", [{"needs": ["mesure"]}, {"material": "mesure"}])
def test_unknown_material_names_the_nearest_or_where_to_list_a_deriver(how: dict[str, Any]) -> None:
    uses = [evaluator_use("zero"), evaluator_use("first", **how)]
    config = {
        "evaluators": uses,
        "derivers": ["tests.graphs.scripted:Measure"],
        "reward": {"first": 1.0},
    }
    with pytest.raises(ConfigError) as error:
        make_plan(config, task())
    problem = "'first' needs material 'mesure', which no deriver gives; did you mean 'measure'?"
    assert str(error.value) == f"evaluators[1]: {problem}"
    del config["derivers"]
    with pytest.raises(ConfigError, match=r"gives; list one that does under `derivers`$"):
        make_plan(config, task())


def test_two_derivers_of_one_material_are_refused() -> None:
    twice = [
        "tests.graphs.scripted:Measure",
        {"use": "tests.graphs.scripted:Measure", "name": "again"},
    ]
    assert (
        "gives 'measure', which another source gives already; leave it out, or let it give another name"
        in refusal_message({"evaluators": [evaluator_use("first")], "derivers": twice})
    )


def test_two_questions_of_one_id_are_refused() -> None:
    assert "two questions have the id 'first/x'" in refusal_message(
        {"evaluators": [evaluator_use("first", subjects=["x", "x"])]}
    )


def test_variants_are_not_compared() -> None:
    config = {
        "evaluators": [evaluator_use("first", material="versions", scope="pair")],
        "derivers": ["tests.graphs.scripted:Versions"],
    }
    assert "scope is response, not pair" in refusal_message(config)


class Impostor(ScriptedEvaluator):
    def questions(self, view: TaskView) -> list[Question]:
        return [self.question(view).model_copy(update={"evaluator": "somebody.else"})]


class Spy(ScriptedEvaluator):
    """Asks about one member of the audience with the view of another."""

    audience = "stakeholder"
    seen: TaskView | None = None

    def questions(self, view: TaskView) -> list[Question]:
        self.seen = self.seen or view
        return [self.question(view).model_copy(update={"view": self.seen.digest})]


def test_a_question_of_another_evaluator_is_refused() -> None:
    config = {"evaluators": [{"use": f"{__name__}:Impostor", "name": "first"}]}
    assert "lists a question of 'somebody.else'; make each with `self.question`" in refusal_message(
        config
    )


def test_a_question_with_the_view_of_another_member_is_refused() -> None:
    config = {
        "evaluators": [{"use": f"{__name__}:Spy", "name": "first"}],
        "weights": {"method": "uniform"},
    }
    with pytest.raises(
        PlanError, match=r"another view .*; make it with `self.question` of that view"
    ):
        make_plan(config, task(stakeholders=PEOPLE))


def test_a_view_contains_only_its_own_member() -> None:
    about = task(
        criterion("clear"), criterion("short"), stakeholders=PEOPLE, reviewers=["r2", "r1"]
    )
    config = {
        "evaluators": [
            evaluator_use(a, audience=a) for a in ("task", "stakeholder", "criterion", "reviewer")
        ],
        "reward": {"task": 1.0},
        "weights": {"method": "uniform"},
    }
    survey = make_plan(config, about).survey
    members = {question.id: survey.views[question.view] for question in survey.questions}
    assert sorted(members) == [
        *(
            "criterion@clear",
            "criterion@short",
            "reviewer@r1",
            "reviewer@r2",
            "stakeholder@ann",
            "stakeholder@bob",
        ),
        "task",
    ]
    for question, view in members.items():
        others = {"ann", "bob", "clear", "short", "r1", "r2"} - {question.partition("@")[2]}
        assert not any(f'"id":"{other}"' in view.model_dump_json() for other in others)
    assert members["task"].about is None


def test_when_and_samples_of_the_config_override_the_evaluator() -> None:
    use = {
        "use": SCRIPTED,
        "name": "tone",
        "params": {"samples": 2, "when": {"question": "x", "threshold": 0.1}},
    }
    own = {"question": "gate", "threshold": 0.9}
    config = {
        "evaluators": [evaluator_use("gate"), {**use, "samples": 5, "when": own}],
        "reward": {"gate": 1.0},
    }
    question = next(q for q in make_plan(config, task()).survey.questions if q.id == "tone")
    assert question.samples == 5
    assert question.when is not None
    assert (question.when.question, question.when.threshold) == ("gate", 0.9)


def test_a_view_shows_only_the_sign_of_a_weight() -> None:
    light = task(criterion("a", 1.0), criterion("b", -1.0))
    heavy = task(criterion("a", 7.0), criterion("b", -0.5))
    assert view_task(light, ["criterion"]) == view_task(heavy, ["criterion"])
    assert [getattr(view.about, "weight", None) for view in view_task(heavy, ["criterion"])] == [
        1.0,
        -1.0,
    ]


class StandbyEvaluator(ScriptedEvaluator):
    """Asks only where nobody else does."""

    def _question(self, view: TaskView, subject: str | None) -> Question:
        return super()._question(view, subject).model_copy(update={"standby": True})


def standby_evaluator(*subjects: str, **params: Any) -> dict[str, Any]:
    own = {"audience": "stakeholder", "subjects": list(subjects), **params}
    return {"use": f"{__name__}:StandbyEvaluator", "name": "stands-by", "params": own}


def planned_questions(*uses: Any, **fields: Any) -> set[str]:
    config = {"evaluators": list(uses), "weights": {"method": "uniform"}}
    return {
        question.id
        for question in make_plan(config, task(stakeholders=PEOPLE, **fields)).survey.questions
    }


def test_a_standby_question_runs_if_no_other_question_covers_the_same_member_and_subject() -> None:
    assert planned_questions(standby_evaluator("tea")) == {"stands-by/tea@ann", "stands-by/tea@bob"}
    other = evaluator_use("other", audience="stakeholder", subjects=["tea"], members=["ann"])
    assert planned_questions(standby_evaluator("tea", "fish"), other) == {
        "other/tea@ann",
        *("stands-by/fish@ann", "stands-by/fish@bob", "stands-by/tea@bob"),
    }


PEOPLE = (
    Stakeholder(id="bob", profile="walks"),
    Stakeholder.model_validate(
        {
            "id": "ann",
            "constraints": [
                {"id": "z", "kind": "soft"},
                {"id": "a", "kind": "hard", "restrictiveness": 3.0},
            ],
        }
    ),
)


def test_the_view_of_everyone_is_sorted_by_id_and_has_no_weights() -> None:
    about = task(stakeholders=PEOPLE)
    (whole, view) = view_task(about, ["task", "everyone"])[::-1]
    assert (view.audience, view.about, whole.people) == ("everyone", None, ())
    assert [(one.id, [c.id for c in one.constraints]) for one in view.people] == [
        ("ann", ["a", "z"]),
        ("bob", []),
    ]
    assert {c.restrictiveness for one in view.people for c in one.constraints} == {1.0}
    turned = about.model_copy(update={"stakeholders": PEOPLE[::-1]})
    assert view_task(turned, ["everyone"]) == (view,)
