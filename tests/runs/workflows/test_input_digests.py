"""Digests of the inputs of a verdict: with equal digests, another plan can carry the verdict over."""

from typing import Any

import pytest

from jurygraph.runs.workflows.branch import InputDigests, input_digests
from jurygraph.schema import Constraint, Stakeholder, Task
from tests.graphs.scripted import DATA_READER, Half, Measure, Versions, criterion, evaluator_use, make_plan, task


class OtherMeasure(Measure):
    version = "2"


class OtherHalf(Half):
    version = "2"


class OtherVersions(Versions):
    version = "2"


def config_with(*derivers: str, **changes: dict[str, Any]) -> dict[str, Any]:
    """Return a config with plain, screened, pair and sampled questions, and some that need material."""
    own = {name: f"tests.graphs.scripted:{name}" for name in ("Measure", "Half", "Versions")}
    own |= {name.removeprefix("Other"): f"{__name__}:{name}" for name in derivers}
    uses = [
        evaluator_use("plain"),
        {**evaluator_use("late"), "when": {"question": "plain", "threshold": 0.5}},
        evaluator_use("better", scope="pair"),
        evaluator_use("kind", audience="stakeholder"),
        {"use": DATA_READER, "name": "reads", "params": {"needs": ["half"]}},
        evaluator_use("same", material="versions"),
    ]
    return {
        "evaluators": [{**use, **changes.get(use["name"], {})} for use in uses],
        "derivers": list(own.values()),
        "reward": {"plain": 1.0},
        "weights": {"method": "uniform"},
    }


def task_with_wish(wish: str) -> Task:
    constraint = Constraint(id="wish", text=wish, kind="soft")
    return task(stakeholders=[Stakeholder(id="ann"), Stakeholder(id="bob", constraints=(constraint,))])


def digests_of(settings: dict[str, Any], about: Task | None = None) -> InputDigests:
    return input_digests(make_plan(settings, about or task_with_wish("tea")).survey)


def changed_digests(one: InputDigests, other: InputDigests) -> tuple[set[str], set[str]]:
    """Return the questions and the material whose digests differ."""
    return tuple(  # type: ignore[return-value]
        {name for name in old if old[name] != new[name]}
        for old, new in ((one.questions, other.questions), (one.material, other.material))
    )


BEFORE = config_with()


@pytest.mark.parametrize(
    ("deriver", "questions", "material"),
    [
        ("OtherMeasure", {"reads"}, {"measure", "half"}),
        ("OtherHalf", {"reads"}, {"half"}),
        ("OtherVersions", {"same"}, {"versions"}),
    ],
)
def test_another_deriver_changes_only_dependent_digests(deriver: str, questions: set[str], material: set[str]) -> None:
    assert changed_digests(digests_of(BEFORE), digests_of(config_with(deriver))) == (questions, material)


@pytest.mark.parametrize(
    "change",
    [
        {"late": {"when": {"question": "plain", "threshold": 0.9}}},
        {"late": {"when": None}},
        {"plain": {"samples": 5}},
        {"same": {"when": {"question": "plain", "threshold": 0.1}, "samples": 2}},
    ],
)
def test_conditions_and_samples_change_no_digest(change: dict[str, Any]) -> None:
    assert changed_digests(digests_of(BEFORE), digests_of(config_with(**change))) == (set(), set())


@pytest.mark.parametrize("change", [{"version": "2"}, {"params": {"limit": 3}}, {"layer": "fact"}])
def test_other_changes_of_a_question_change_its_digest(change: dict[str, Any]) -> None:
    survey = make_plan(BEFORE, task_with_wish("tea")).survey
    other = tuple(q.model_copy(update=change) if q.id == "plain" else q for q in survey.questions)
    assert changed_digests(input_digests(survey), input_digests(survey.model_copy(update={"questions": other}))) == (
        {"plain"},
        set(),
    )


def test_another_constraint_of_bob_changes_only_questions_about_bob() -> None:
    assert changed_digests(digests_of(BEFORE, task_with_wish("tea")), digests_of(BEFORE, task_with_wish("coffee"))) == (
        {"kind@bob"},
        set(),
    )


def test_another_query_changes_every_digest() -> None:
    one, other = (
        digests_of(BEFORE),
        digests_of(BEFORE, task_with_wish("tea").model_copy(update={"query": "What is left?"})),
    )
    assert changed_digests(one, other) == (set(one.questions), set(one.material))


def test_the_weight_of_a_criterion_changes_no_digest() -> None:
    met = {"evaluators": [evaluator_use("met", audience="criterion")]}
    light, heavy = (input_digests(make_plan(met, task(criterion("x", weight))).survey) for weight in (1.0, 7.0))
    assert light == heavy
