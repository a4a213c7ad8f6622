"""The conformance suite passes good evaluators and catches each planted fault by the rule that is meant for it."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from time import process_time
from typing import Any

import pytest

import jurygraph as jg
from jurygraph import EvaluatorInput, Material, Question, Response, Task, TaskView, Verdict
from jurygraph.conformance import ODD_RESPONSE_TEXTS, check_evaluator
from jurygraph.graphs import survey

TASK = Task.model_validate(
    {
        "id": "t",
        "query": "Plan a trip.",
        "reference": "a train",
        "stakeholders": [
            {
                "id": "ann",
                "constraints": [{"id": "z", "kind": "hard"}, {"id": "a", "kind": "soft"}],
            },
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
ODD = len(ODD_RESPONSE_TEXTS)


def length(response: Response) -> float:
    return min(1.0, len(response.text) / 100)


def evaluator(answer: Callable[[EvaluatorInput], Any], **attributes: Any) -> type[jg.Evaluator]:
    """Return a class of evaluators with this answer and these attributes."""
    return type(
        "Planted", (jg.Evaluator,), {"answer": lambda self, inputs: answer(inputs), **attributes}
    )


# Good ones


def compare(inputs: EvaluatorInput) -> float:
    first, second = map(length, inputs.responses)
    return 0.5 if first == second else float(first > second)


def share_among(inputs: EvaluatorInput) -> Sequence[float]:
    longest = max(map(length, inputs.responses)) or 1.0
    return [length(one) / longest for one in inputs.responses]


def abstain_or_blame(inputs: EvaluatorInput) -> Verdict:
    text = inputs.response.text
    if len(text) > 1000:
        return Verdict.fail("too-long", "over 1,000 characters", cause="response")
    return Verdict(score=1.0) if "train" in text else Verdict.abstain("no means of travel")


def ask_nobody(inputs: EvaluatorInput) -> float:
    raise AssertionError("there is no model to ask")


OF_EACH = len(RESPONSES) + ODD


@pytest.mark.parametrize(
    ("good", "verdicts"),
    [
        (evaluator(lambda inputs: length(inputs.response)), OF_EACH),
        *(
            (evaluator(lambda inputs: length(inputs.response), audience=audience), 2 * OF_EACH)
            for audience in ("stakeholder", "criterion", "reviewer")
        ),
        (evaluator(compare, scope="pair"), 3 * 2 + ODD * (ODD - 1)),
        (evaluator(share_among, scope="group"), OF_EACH),
        (evaluator(abstain_or_blame), OF_EACH),
        (evaluator(ask_nobody, uses_model=True), OF_EACH),
    ],
)
def test_a_good_evaluator_passes(good: type[jg.Evaluator], verdicts: int) -> None:
    assert check_evaluator(good, GROUPS) == verdicts


class Words(jg.Deriver):
    gives = "words"

    def derive(self, inputs: jg.DeriverInput) -> Material:
        return Material(name="words", data=len(inputs.response.text.split()))


def test_an_evaluator_of_material_passes_with_its_deriver() -> None:
    wordy = evaluator(lambda inputs: float(inputs.material[0]["words"].data > 3), needs=("words",))
    assert check_evaluator(wordy, GROUPS, derivers=[Words]) == OF_EACH


# Planted faults


class Growing(jg.Evaluator):
    """Asks more each time."""

    def __init__(self) -> None:
        self.plans = count(1)

    def questions(self, view: TaskView) -> list[Question]:
        return [self.question(view, str(i)) for i in range(next(self.plans))]

    def answer(self, inputs: EvaluatorInput) -> float:
        return 1.0


class AmongOthers(jg.Evaluator):
    """Compare responses by keeping the inputs of concurrent calls, as an evaluator must not."""

    def __init__(self, score: Callable[[Response, Sequence[Response]], bool]) -> None:
        self.batched: list[Response] = []
        self.score = score

    async def answer(self, inputs: EvaluatorInput) -> float:
        self.batched.append(inputs.response)
        await self.let_others_go_on()
        company = list(self.batched)
        await self.let_others_go_on()
        self.batched.clear()
        return float(self.score(inputs.response, company))

    async def let_others_go_on(self) -> None:
        for _ in range(100):
            await asyncio.sleep(0)


class FirstCriterion(jg.Evaluator):
    """Numbers the criteria in the order in which it meets them, which are two to a plan."""

    audience = "criterion"

    def __init__(self) -> None:
        self.met = count()

    def questions(self, view: TaskView) -> list[Question]:
        return [self.question(view, params={"place": next(self.met) % 2})]

    def answer(self, inputs: EvaluatorInput) -> float:
        return float(inputs.question.params["place"])  # type: ignore[arg-type]


def counting(answer: Callable[[int], Any]) -> type[jg.Evaluator]:
    times = count(1)
    return evaluator(lambda inputs: answer(next(times)))


def with_first_key(first_of: Callable[[EvaluatorInput], str]) -> type[jg.Evaluator]:
    return evaluator(
        lambda inputs: float(first_of(inputs) in ("towns", "town")) if inputs.response.data else 0.0
    )


def broken_on(text: str) -> type[jg.Evaluator]:
    def answer(inputs: EvaluatorInput) -> float:
        if inputs.response.text == text:
            raise IndexError("no first word")
        return 1.0

    return evaluator(answer)


def about_first_constraint(inputs: EvaluatorInput) -> float:
    return float(inputs.task.about.constraints[0].id == "z")  # type: ignore[union-attr]


def is_longest(response: Response, company: Sequence[Response]) -> bool:
    return length(response) == max(map(length, company))


REORDERED = "differs with the task's parts in reverse order: score "
FAULTS: list[tuple[Any, str]] = [
    (counting(lambda time: 1 / time), r"Planted about 'r\d' differs when repeated: score "),
    (
        counting(lambda time: Verdict(score=1.0, reason=f"asked {time} times")),
        r"differs when repeated: reason 'asked \d times'",
    ),
    (Growing, "3 verdicts, but 6 when repeated"),
    (AmongOthers(is_longest), "differs with each response alone: score 0.0 / 1.0"),
    (with_first_key(lambda inputs: next(iter(inputs.task.facts))), f"{REORDERED}1.0 / 0.0"),
    (with_first_key(lambda inputs: next(iter(inputs.response.data))), f"{REORDERED}1.0 / 0.0"),
    (
        broken_on(ODD_RESPONSE_TEXTS[0]),
        f"Planted breaks on {ODD_RESPONSE_TEXTS[0][:40]!r}: no first word",
    ),
    *(
        (
            evaluator(lambda inputs, score=score: score),
            rf"breaks on '.*': a score lies in \[0, 1\], not at {score}",
        )
        for score in (1.5, float("nan"))
    ),
    (
        evaluator(lambda inputs: "good"),
        "breaks on '.*': expected a Verdict, a number or a boolean, got str",
    ),
    (evaluator(lambda inputs: Verdict(status="abstained")), "abstained without a reason"),
    (evaluator(lambda inputs: Verdict(score=1.0, reason="\ud800")), "cannot be written as JSON"),
]


@pytest.mark.parametrize(
    ("faulty", "message"), FAULTS, ids=lambda one: one[:40] if isinstance(one, str) else ""
)
def test_a_fault_is_caught_by_its_rule(faulty: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_evaluator(faulty, GROUPS)


def test_an_order_that_the_machine_hides_is_caught_where_the_machine_is_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It shows every group in one order, and sorts what a view is about."""
    monkeypatch.setattr(
        "jurygraph.graphs.groups.sort_responses_by_content",
        lambda given: tuple(r.without_metadata() for r in given),
    )
    monkeypatch.setattr(survey, "sort_by_id", tuple)
    for faulty, message in (
        (
            AmongOthers(lambda one, others: one.id == others[0].id),
            "differs with the responses in reverse order: score ",
        ),
        (
            evaluator(about_first_constraint, audience="stakeholder"),
            rf"@ann about 'r\d' {REORDERED}1.0 / 0.0",
        ),
        (FirstCriterion, REORDERED),
    ):
        with pytest.raises(AssertionError, match=message):
            check_evaluator(faulty, GROUPS)


def test_a_call_that_hangs_is_caught() -> None:
    async def it(task: TaskView, response: Response) -> float:
        await asyncio.Event().wait()
        return 1.0

    with pytest.raises(
        AssertionError, match=r"breaks on .*: 'it' ran past its time limit of 0\.05 s"
    ):
        check_evaluator({"use": it, "timeout": 0.05}, GROUPS)


def test_a_response_that_takes_long_is_caught_by_its_beginning_and_length() -> None:
    def answer(inputs: EvaluatorInput) -> float:
        start = process_time()
        while inputs.response.text.startswith("99") and process_time() - start < 0.2:
            pass
        return 1.0

    with pytest.raises(
        AssertionError, match=r"20000 characters that begins '9999.*isolate: process"
    ):
        check_evaluator(evaluator(answer), GROUPS, max_cpu_seconds=0.15)


def test_an_evaluator_without_questions_is_caught() -> None:
    with pytest.raises(AssertionError, match="got no question"):
        check_evaluator(evaluator(lambda inputs: 1.0), [])
