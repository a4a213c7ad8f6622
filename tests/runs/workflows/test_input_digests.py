"""Digests of the inputs of a verdict: with equal digests, another plan can carry the verdict over."""

from typing import Any

from jurygraph.runs.workflows.branch import InputDigests, digest_survey_inputs
from jurygraph.schema import Constraint, Stakeholder, Task
from tests.graphs.scripted import (
    DATA_READER,
    Half,
    Measure,
    Versions,
    criterion,
    evaluator_use,
    make_plan,
    task,
)
from tests.rows import all_rows


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
    return task(
        stakeholders=[Stakeholder(id="ann"), Stakeholder(id="bob", constraints=(constraint,))]
    )


def digests_of(settings: dict[str, Any], about: Task | None = None) -> InputDigests:
    return digest_survey_inputs(make_plan(settings, about or task_with_wish("tea")).survey)


def changed_digests(one: InputDigests, other: InputDigests) -> tuple[set[str], set[str]]:
    """Return the questions and the material whose digests differ."""
    return tuple(  # type: ignore[return-value]
        {name for name in old if old[name] != new[name]}
        for old, new in ((one.questions, other.questions), (one.material, other.material))
    )


WITH_TEA = task_with_wish("tea")
BEFORE = digests_of(config_with())
EVERYTHING = set(BEFORE.questions), set(BEFORE.material)


@all_rows(
    "config, about, questions, material",
    [
        (config_with("OtherMeasure"), WITH_TEA, {"reads"}, {"measure", "half"}),
        (config_with("OtherHalf"), WITH_TEA, {"reads"}, {"half"}),
        (config_with("OtherVersions"), WITH_TEA, {"same"}, {"versions"}),
        (
            config_with(late={"when": {"question": "plain", "threshold": 0.9}}),
            WITH_TEA,
            set(),
            set(),
        ),
        (config_with(late={"when": None}, plain={"samples": 5}), WITH_TEA, set(), set()),
        (config_with(), task_with_wish("coffee"), {"kind@bob"}, set()),
        (config_with(), WITH_TEA.model_copy(update={"query": "What is left?"}), *EVERYTHING),
    ],
)
def test_only_the_digests_of_what_depends_on_a_change_are_others(
    config: dict[str, Any], about: Task, questions: set[str], material: set[str]
) -> None:
    assert changed_digests(BEFORE, digests_of(config, about)) == (questions, material)


@all_rows("change", [{"version": "2"}, {"params": {"limit": 3}}, {"layer": "fact"}])
def test_other_changes_of_a_question_change_its_digest(change: dict[str, Any]) -> None:
    survey = make_plan(config_with(), WITH_TEA).survey
    other = tuple(q.model_copy(update=change) if q.id == "plain" else q for q in survey.questions)
    changed = changed_digests(
        BEFORE, digest_survey_inputs(survey.model_copy(update={"questions": other}))
    )
    assert changed == ({"plain"}, set())


def test_the_weight_of_a_criterion_changes_no_digest() -> None:
    met = {"evaluators": [evaluator_use("met", audience="criterion")]}
    light, heavy = (
        digest_survey_inputs(make_plan(met, task(criterion("x", weight))).survey)
        for weight in (1.0, 7.0)
    )
    assert light == heavy
