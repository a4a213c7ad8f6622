"""The conformance suite passes good evaluators and catches each planted fault by the rule that is meant for it."""

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from types import ModuleType
from typing import Any, ClassVar

import pytest
from langgraph.graph import END, START, StateGraph

import jurygraph as jg
from jurygraph import EvaluatorInput, Material, Question, Response, Task, TaskView, Verdict
from jurygraph.conformance import ODD_TEXTS, check_evaluator
from jurygraph.graphs import planning
from tests.models.server import run_server, status

TASK = Task.model_validate(
    {
        "id": "t",
        "query": "Plan a trip.",
        "reference": "a train",
        "stakeholders": [
            {"id": "ann", "constraints": [{"id": "z", "kind": "hard"}, {"id": "a", "kind": "soft"}]},
            {"id": "bo", "constraints": [{"id": "c", "kind": "soft"}]},
        ],
        "rubric": {
            "criteria": [
                {"id": "c2", "text": "It is kind.", "weight": 2},
                {"id": "c1", "text": "It is short.", "weight": 1},
            ],
            "edges": [{"parent": "c2", "child": "c1", "kind": "weak"}],
        },
        "reviewers": ["r2", "r1"],
        "facts": {"towns": [{"name": "Rome", "far": True}], "days": 2},
    }
)
RESPONSES = [
    Response(id="r1", text="Take a train to Rome.", data={"town": "Rome", "days": 2}),
    Response(id="r2", text="Stay at home, all of you, and read."),
    Response(id="r3", text="Walk."),
]
GROUPS = [(TASK, RESPONSES)]
ODD = len(ODD_TEXTS)


@pytest.fixture(autouse=True)
def install_module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module in which a test plants its evaluators: a config names them by their path."""
    module = ModuleType("planted")
    monkeypatch.setitem(sys.modules, "planted", module)
    return module


def check(module: ModuleType, it: Any, groups: Any = GROUPS, **more: Any) -> int:
    module.it = it  # type: ignore[attr-defined]
    return check_evaluator("planted.it", groups, **more)


def length(response: Response) -> float:
    return min(1.0, len(response.text) / 100)


# With a model


def test_a_failing_model_is_reported_as_such() -> None:
    with run_server(lambda body, number: status(400)) as server:
        model = f"openai-compatible:{server.url}#tiny"
        with pytest.raises(AssertionError, match=r"breaks on .* 400: planted"):
            check_evaluator("criteria", GROUPS, model=model)


# Good ones


@pytest.mark.parametrize(("audience", "members"), [("task", 1), ("stakeholder", 2), ("criterion", 2), ("reviewer", 2)])
def test_an_evaluator_of_any_audience_passes(install_module: ModuleType, audience: Any, members: int) -> None:
    class Good(jg.Evaluator):
        def answer(self, inputs: EvaluatorInput) -> float:
            return length(inputs.response)

    Good.audience = audience
    assert check(install_module, Good) == members * (len(RESPONSES) + ODD)


def test_an_evaluator_of_pairs_passes(install_module: ModuleType) -> None:
    class Longer(jg.Evaluator):
        scope = "pair"

        def answer(self, inputs: EvaluatorInput) -> float:
            first, second = map(length, inputs.responses)
            return 0.5 if first == second else float(first > second)

    assert check(install_module, Longer) == 3 * 2 + ODD * (ODD - 1)


def test_an_evaluator_of_groups_passes(install_module: ModuleType) -> None:
    class Share(jg.Evaluator):
        scope = "group"

        def answer(self, inputs: EvaluatorInput) -> Sequence[float]:
            longest = max(map(length, inputs.responses)) or 1.0
            return [length(r) / longest for r in inputs.responses]

    assert check(install_module, Share) == len(RESPONSES) + ODD


def test_an_evaluator_that_abstains_or_blames_the_response_passes(install_module: ModuleType) -> None:
    def it(task: TaskView, response: Response) -> Verdict:
        if len(response.text) > 1000:
            return Verdict.fail("too-long", "over 1,000 characters", cause="response")
        return Verdict(score=1.0) if "train" in response.text else Verdict.abstain("no means of travel")

    assert check(install_module, it) == len(RESPONSES) + ODD


def test_a_graph_passes_although_its_steps_take_longer_once(install_module: ModuleType) -> None:
    durations = iter(range(1_000_000))

    async def measure(state: dict[str, Any]) -> dict[str, Any]:
        for _ in range(next(durations)):
            await asyncio.sleep(0)
        return {"score": 1.0}

    graph = StateGraph(dict).add_node("measure", measure).add_edge(START, "measure").add_edge("measure", END)
    it = jg.evaluator(graph.compile(), name="measured", layer="check")
    assert check(install_module, it) == len(RESPONSES) + ODD


def test_a_judge_passes_without_a_model(install_module: ModuleType) -> None:
    class Judge(jg.Evaluator):
        uses_model = True

        def answer(self, inputs: EvaluatorInput) -> float:
            raise AssertionError("there is no model to ask")

    assert check(install_module, Judge) == len(RESPONSES) + ODD


def test_an_evaluator_of_material_passes_with_its_deriver(install_module: ModuleType) -> None:
    class Words(jg.Deriver):
        gives = "words"

        def derive(self, inputs: jg.DeriverInput) -> Material:
            return Material(name="words", data=len(inputs.response.text.split()))

    class Wordy(jg.Evaluator):
        needs = ("words",)

        def answer(self, inputs: EvaluatorInput) -> float:
            return float(inputs.material[0]["words"].data > 3)  # type: ignore[operator]

    install_module.words = Words  # type: ignore[attr-defined]
    assert check(install_module, Wordy, derivers=["planted.words"]) == len(RESPONSES) + ODD


# Planted faults


def violation(module: ModuleType, it: Any, message: str, groups: Any = GROUPS) -> None:
    with pytest.raises(AssertionError, match=message):
        check(module, it, groups)


def test_a_score_that_changes_on_repetition_is_caught(install_module: ModuleType) -> None:
    times = count(1)

    def it(task: TaskView, response: Response) -> float:
        return 1 / next(times)

    violation(install_module, it, r"planted\.it about 'r\d' differs when repeated: score ")


def test_a_reason_that_changes_on_repetition_is_caught(install_module: ModuleType) -> None:
    times = count(1)

    def it(task: TaskView, response: Response) -> Verdict:
        return Verdict(score=1.0, reason=f"asked {next(times)} times")

    violation(install_module, it, r"differs when repeated: reason 'asked \d times'")


def test_a_number_of_verdicts_that_changes_is_caught(install_module: ModuleType) -> None:
    class Growing(jg.Evaluator):
        plans: ClassVar[Iterator[int]] = count(1)

        def questions(self, view: TaskView) -> list[Question]:
            return [self.question(view, str(i)) for i in range(next(self.plans))]

        def answer(self, inputs: EvaluatorInput) -> float:
            return 1.0

    violation(install_module, Growing, "3 verdicts, but 6 when repeated")


class _GroupScore(jg.Evaluator):
    """Compare responses by keeping the inputs of concurrent calls, as an evaluator must not."""

    def __init__(self) -> None:
        self.batched: list[Response] = []

    async def answer(self, inputs: EvaluatorInput) -> float:
        self.batched.append(inputs.response)
        await self.let_others_go_on()
        company = list(self.batched)
        await self.let_others_go_on()
        self.batched.clear()
        return self.score(inputs.response, company)

    async def let_others_go_on(self) -> None:
        for _ in range(100):
            await asyncio.sleep(0)

    def score(self, response: Response, company: Sequence[Response]) -> float:
        raise NotImplementedError


def test_a_score_that_depends_on_the_other_responses_is_caught(install_module: ModuleType) -> None:
    class Longest(_GroupScore):
        def score(self, response: Response, company: Sequence[Response]) -> float:
            return float(length(response) == max(map(length, company)))

    violation(install_module, Longest, "differs with each response alone: score 0.0 / 1.0")


def test_a_score_that_depends_on_the_order_of_the_responses_is_caught(
    install_module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine shows every group in one order, so the machine has to be broken first."""
    monkeypatch.setattr("jurygraph.group.sort_responses", lambda given: tuple(one.strip_metadata() for one in given))

    class First(_GroupScore):
        def score(self, response: Response, company: Sequence[Response]) -> float:
            return float(response.id == company[0].id)

    violation(install_module, First, "differs with the responses in reverse order: score ")


@pytest.mark.parametrize(
    "first_of", [lambda inputs: next(iter(inputs.task.facts)), lambda inputs: next(iter(inputs.response.data))]
)
def test_a_score_that_depends_on_the_order_of_keys_is_caught(
    install_module: ModuleType, first_of: Callable[[EvaluatorInput], str]
) -> None:
    class Peeking(jg.Evaluator):
        def answer(self, inputs: EvaluatorInput) -> float:
            return float(first_of(inputs) in ("towns", "town")) if inputs.response.data else 0.0

    violation(install_module, Peeking, "differs with the task's parts in reverse order: score 1.0 / 0.0")


def test_a_score_that_depends_on_the_order_of_constraints_is_caught(
    install_module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine sorts what a view is about, so the machine has to be broken first."""
    monkeypatch.setattr(planning, "sort_by_id", tuple)

    class FirstConstraint(jg.Evaluator):
        audience = "stakeholder"

        def answer(self, inputs: EvaluatorInput) -> float:
            return float(inputs.task.about.constraints[0].id == "z")  # type: ignore[union-attr]

    violation(
        install_module,
        FirstConstraint,
        r"@ann about 'r\d' differs with the task's parts in reverse order: score 1.0 / 0.0",
    )


def test_a_score_that_depends_on_the_order_of_criteria_is_caught(
    install_module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "sort_by_id", tuple)

    class FirstCriterion(jg.Evaluator):
        audience = "criterion"

        def questions(self, view: TaskView) -> list[Question]:
            """Numbers the criteria in the order in which it meets them, which are two to a plan."""
            self.met = getattr(self, "met", -1) + 1
            return [self.question(view, params={"place": self.met % 2})]

        def answer(self, inputs: EvaluatorInput) -> float:
            return float(inputs.question.params["place"])  # type: ignore[arg-type]

    violation(install_module, FirstCriterion, "differs with the task's parts in reverse order: score ")


@pytest.mark.parametrize("broken_on", [ODD_TEXTS[0], RESPONSES[1].text], ids=["the empty response", "a real one"])
def test_an_exception_is_caught_with_the_text_that_causes_it(install_module: ModuleType, broken_on: str) -> None:
    def it(task: TaskView, response: Response) -> float:
        if response.text == broken_on:
            raise IndexError("no first word")
        return 1.0

    violation(install_module, it, f"planted.it breaks on {broken_on[:40]!r}: no first word")


def test_a_call_that_hangs_is_caught() -> None:
    async def it(task: TaskView, response: Response) -> float:
        await asyncio.Event().wait()
        return 1.0

    with pytest.raises(AssertionError, match=r"breaks on .*: 'it' ran past its time limit of 0\.05 s"):
        check_evaluator({"use": it, "timeout": 0.05}, GROUPS)


@pytest.mark.parametrize("score", [1.5, -0.1, float("nan"), float("inf")])
def test_a_score_out_of_range_is_caught(install_module: ModuleType, score: float) -> None:
    violation(
        install_module, lambda task, response: score, rf"breaks on '.*': a score lies in \[0, 1\], not at {score}"
    )


def test_an_answer_of_the_wrong_type_is_caught(install_module: ModuleType) -> None:
    violation(
        install_module,
        lambda task, response: "good",
        "breaks on '.*': expected a Verdict, a number or a boolean, got str",
    )


def test_a_verdict_without_score_and_reason_is_caught(install_module: ModuleType) -> None:
    violation(install_module, lambda task, response: Verdict(status="abstained"), "abstained without a reason")


def test_a_verdict_that_does_not_survive_writing_is_caught(install_module: ModuleType) -> None:
    half_a_character = "\ud800"
    spoiled = Verdict(score=1.0, reason=half_a_character)
    violation(install_module, lambda task, response: spoiled, "cannot be written as JSON")


def test_an_evaluator_without_questions_is_caught(install_module: ModuleType) -> None:
    violation(install_module, lambda task, response: 1.0, "got no question", groups=[])
