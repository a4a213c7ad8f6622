"""The inputs of a verdict: where none of them changed, another plan may carry the verdict over."""

from typing import Any

import pytest

from jurygraph.runs.workflows.branch import InputDigests, input_digests
from jurygraph.schema import Constraint, Stakeholder, Task
from tests.graphs.cast import DATA, Half, Measure, Versions, criterion, planned, task, told


class OtherMeasure(Measure):
    version = "2"


class OtherHalf(Half):
    version = "2"


class OtherVersions(Versions):
    version = "2"


def config(*derivers: str, **changes: dict[str, Any]) -> dict[str, Any]:
    """Plain, screened, pair and sampled questions, and some that rest on material; `changes` to a use by its name."""
    own = {name: f"tests.graphs.cast:{name}" for name in ("Measure", "Half", "Versions")}
    own |= {name.removeprefix("Other"): f"{__name__}:{name}" for name in derivers}
    uses = [
        told("plain"),
        {**told("late"), "when": {"question": "plain", "threshold": 0.5}},
        told("better", scope="pair"),
        told("kind", audience="stakeholder"),
        {"use": DATA, "name": "reads", "params": {"needs": ["half"]}},
        told("same", of="versions"),
    ]
    return {
        "evaluators": [{**use, **changes.get(use["name"], {})} for use in uses],
        "derivers": list(own.values()),
        "reward": {"plain": 1.0},
        "weights": {"method": "uniform"},
    }


def people(wish: str) -> Task:
    constraint = Constraint(id="wish", text=wish, kind="soft")
    return task(stakeholders=[Stakeholder(id="ann"), Stakeholder(id="bob", constraints=(constraint,))])


def based(settings: dict[str, Any], about: Task | None = None) -> InputDigests:
    return input_digests(planned(settings, about or people("tea")).survey)


def changed(one: InputDigests, other: InputDigests) -> tuple[set[str], set[str]]:
    """The questions and the material whose basis is not the same."""
    return tuple(  # type: ignore[return-value]
        {name for name in old if old[name] != new[name]}
        for old, new in ((one.questions, other.questions), (one.material, other.material))
    )


BEFORE = config()


def test_a_plan_made_again_has_the_same_basis() -> None:
    assert based(BEFORE) == based(BEFORE)
    assert set(based(BEFORE).material) == {"measure", "half", "versions"}


@pytest.mark.parametrize(
    ("deriver", "questions", "material"),
    [
        ("OtherMeasure", {"reads"}, {"measure", "half"}),
        ("OtherHalf", {"reads"}, {"half"}),
        ("OtherVersions", {"same"}, {"versions"}),
    ],
)
def test_another_deriver_changes_only_what_is_downstream(deriver: str, questions: set[str], material: set[str]) -> None:
    assert changed(based(BEFORE), based(config(deriver))) == (questions, material)


@pytest.mark.parametrize(
    "change",
    [
        {"late": {"when": {"question": "plain", "threshold": 0.9}}},
        {"late": {"when": None}},
        {"plain": {"samples": 5}},
        {"same": {"when": {"question": "plain", "threshold": 0.1}, "samples": 2}},
    ],
)
def test_whether_and_how_often_it_is_asked_changes_no_basis(change: dict[str, Any]) -> None:
    assert changed(based(BEFORE), based(config(**change))) == (set(), set())


def test_with_whom_a_pair_is_asked_changes_no_basis() -> None:
    survey = planned(BEFORE, people("tea")).survey
    turned = tuple(q.model_copy(update={"pairs": "unordered"}) for q in survey.questions)
    assert input_digests(survey.model_copy(update={"questions": turned})) == input_digests(survey)


@pytest.mark.parametrize("change", [{"seed": 1}, {"version": "2"}, {"params": {"limit": 3}}, {"layer": "fact"}])
def test_other_changes_of_a_question_change_its_basis(change: dict[str, Any]) -> None:
    survey = planned(BEFORE, people("tea")).survey
    other = tuple(q.model_copy(update=change) if q.id == "plain" else q for q in survey.questions)
    assert changed(input_digests(survey), input_digests(survey.model_copy(update={"questions": other}))) == (
        {"plain"},
        set(),
    )


def test_another_constraint_of_bob_changes_only_questions_about_bob() -> None:
    assert changed(based(BEFORE, people("tea")), based(BEFORE, people("coffee"))) == ({"kind@bob"}, set())


def test_another_query_changes_the_basis_of_everything() -> None:
    one, other = based(BEFORE), based(BEFORE, people("tea").model_copy(update={"query": "What is left?"}))
    assert changed(one, other) == (set(one.questions), set(one.material))


def test_how_much_a_criterion_counts_changes_no_basis() -> None:
    met = {"evaluators": [told("met", audience="criterion")]}
    light, heavy = (input_digests(planned(met, task(criterion("x", weight))).survey) for weight in (1.0, 7.0))
    assert light == heavy
