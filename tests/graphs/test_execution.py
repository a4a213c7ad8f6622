"""Whatever user code does becomes a verdict, and harms no other; whatever is not an estimate in [0, 1] is no score."""

import asyncio
import re
from typing import Any

import pytest
from pydantic import BaseModel

from jurygraph.agents.roles import Deriver, DeriverInput, Evaluator, EvaluatorInput
from jurygraph.schema import Material, RecordedVerdict, Response, TaskView, Trace, Verdict
from tests.graphs.scripted import (
    EXCEPTIONS,
    Broken,
    evaluator_use,
    find_verdict,
    jury,
    response,
    score_responses,
    task,
)
from tests.rows import all_rows


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even a message")


def invalid(task: TaskView, response: Response) -> Any:
    class Strict(BaseModel):
        number: int

    return Strict.model_validate({"number": "none"})


class Raises(Evaluator):
    """Raises the exception that its parameter names, from a thread or from a coroutine."""

    def __init__(self, what: str) -> None:
        self.what = what

    def answer(self, inputs: EvaluatorInput) -> Any:
        raise EXCEPTIONS[self.what](f"no {self.what} for you")


class RaisesLater(Raises):
    async def answer(self, inputs: EvaluatorInput) -> Any:
        await asyncio.sleep(0)
        raise EXCEPTIONS[self.what](f"no {self.what} for you")


class RaisesDeriving(Deriver):
    gives = "nothing"

    def __init__(self, what: str) -> None:
        self.what = what

    def derive(self, inputs: DeriverInput) -> Material:
        raise EXCEPTIONS[self.what](f"no {self.what} for you")


class RaisesDerivingLater(RaisesDeriving):
    async def derive(self, inputs: DeriverInput) -> Material:
        await asyncio.sleep(0)
        raise EXCEPTIONS[self.what](f"no {self.what} for you")


HERE = __name__


def score_with_sibling(*uses: Any, **config: Any) -> list[Trace]:
    """Two responses, judged by these and by a sibling whose verdicts must not suffer."""
    evaluators = [
        {"use": use, "name": f"odd{i}"} if isinstance(use, str) else use
        for i, use in enumerate(uses)
    ]
    settings = {
        "reward": {"tone": 1.0},
        "evaluators": [evaluator_use("tone"), *evaluators],
        **config,
    }
    traces = score_responses(settings, task(), response("a", tone=0.25), response("b", tone=0.75))
    assert [trace.reward.value for trace in traces] == [0.25, 0.75]
    return traces


# Python itself turns a StopIteration in a coroutine into a RuntimeError.
@all_rows("what", sorted(EXCEPTIONS))
@all_rows("use", [f"{HERE}:Raises", f"{HERE}:RaisesLater"])
def test_every_kind_of_exception_is_a_failed_verdict(use: str, what: str) -> None:
    what = what if use.endswith("Raises") or what != "StopIteration" else "Exception"
    for trace in score_with_sibling({"use": use, "name": "odd", "params": {"what": what}}):
        verdict = find_verdict(trace, "odd")
        assert (verdict.status, verdict.score, verdict.about) == ("failed", None, trace.response_id)
        assert verdict.failure is not None
        timed_out = what == "TimeLimitExceeded"
        assert verdict.failure.cause == ("response" if timed_out else "evaluator")
        assert verdict.failure.kind == ("time-limit" if timed_out else EXCEPTIONS[what].__name__)
        assert verdict.failure.message == verdict.reason != ""
        if what != "CancelledError":  # a cancelled task keeps no message
            place = r"test_execution\.py, line \d+, in \w+"
            assert re.fullmatch(rf"no {what} for you \({place}\)", verdict.reason)


@all_rows("use", [f"{HERE}:RaisesDeriving", f"{HERE}:RaisesDerivingLater"])
@all_rows("what", sorted(set(EXCEPTIONS) - {"StopIteration"}))
def test_every_kind_of_exception_in_a_deriver_is_failed_material(use: str, what: str) -> None:
    for trace in score_with_sibling(derivers=[{"use": use, "params": {"what": what}}]):
        (material,) = trace.material
        assert (material.name, material.response, material.status) == (
            "nothing",
            trace.response_id,
            "failed",
        )
        assert material.failure is not None
        assert material.failure.cause == (
            "response" if what == "TimeLimitExceeded" else "evaluator"
        )


async def cancels_itself(task: TaskView, response: Response) -> float:
    me = asyncio.current_task()
    assert me is not None
    me.cancel()
    await asyncio.sleep(0)
    return 1.0


async def cancels_itself_at_the_last(task: TaskView, response: Response) -> float:
    me = asyncio.current_task()
    assert me is not None
    me.cancel()
    return 1.0


@pytest.mark.parametrize("name", ["cancels_itself", "cancels_itself_at_the_last"])
def test_a_task_that_cancels_itself_cancels_nothing_else(name: str) -> None:
    for trace in score_with_sibling(f"{HERE}.{name}"):
        failure = find_verdict(trace, "odd0").failure
        assert failure is not None
        assert (failure.cause, failure.kind) == ("evaluator", "CancelledError")


def unprintable(task: TaskView, response: Response) -> float:
    raise Unprintable


def long_winded(task: TaskView, response: Response) -> float:
    raise RuntimeError("x" * 100_000)


def test_an_error_without_a_message_or_with_a_huge_one_is_a_failed_verdict() -> None:
    for trace in score_with_sibling(
        f"{HERE}.unprintable", f"{HERE}.long_winded", f"{HERE}.invalid"
    ):
        assert "no message" in find_verdict(trace, "odd0").reason
        assert 0 < len(find_verdict(trace, "odd1").reason) < 1000
        assert "number" in find_verdict(trace, "odd2").reason


GIVEN: dict[str, Any] = {
    "nothing": None,
    "not a number": float("nan"),
    "infinity": float("inf"),
    "too much": 1.5,
    "too little": -0.1,
    "a string": "0.5",
    "a list": [0.5],
    "complex": 1j,
    "recorded": RecordedVerdict(score=0.5),
    "copied": Verdict(score=0.5).model_copy(update={"score": 1.5}),
    "copied to text": Verdict(score=0.5).model_copy(update={"score": "0.5"}),
    "scoreless": Verdict.model_construct(status="ok", score=None),
    "faultless": Verdict.model_construct(status="failed"),
    "evidence of nothing": Verdict(score=0.5).model_copy(update={"evidence": ("x",)}),
    "native of nothing": Verdict(score=0.5).model_copy(update={"native": float("nan")}),
}


class Gives(Evaluator):
    def __init__(self, what: str) -> None:
        self.what = what

    def answer(self, inputs: EvaluatorInput) -> Any:
        return GIVEN[self.what]


class GivesLater(Gives):
    async def answer(self, inputs: EvaluatorInput) -> Any:
        return GIVEN[self.what]


@all_rows("use", [f"{HERE}:Gives", f"{HERE}:GivesLater"])
@all_rows("what", sorted(GIVEN))
def test_a_value_that_is_not_an_estimate_is_never_a_score(use: str, what: str) -> None:
    for trace in score_with_sibling({"use": use, "name": "odd", "params": {"what": what}}):
        verdict = find_verdict(trace, "odd")
        assert (verdict.status, verdict.score) == ("failed", None)
        assert verdict.failure is not None
        assert (verdict.failure.cause, verdict.failure.kind) == ("evaluator", "malformed")
        assert trace.digest


class GivesGroup(Evaluator):
    scope = "group"

    def __init__(self, what: Any) -> None:
        self.what = what

    def answer(self, inputs: EvaluatorInput) -> Any:
        return self.what


@pytest.mark.parametrize("what", [[0.5], [0.5, 0.5, 0.5], [], 0.5, None, {"a": 0.5, "b": 0.5}])
def test_a_group_question_requires_one_verdict_for_each_response(what: Any) -> None:
    for trace in score_with_sibling(
        {"use": f"{HERE}:GivesGroup", "name": "odd", "params": {"what": what}}
    ):
        verdict = find_verdict(trace, "odd")
        assert verdict.status == "failed"
        assert "2 verdicts" in verdict.reason


def breaks_on_a(task: TaskView, response: Response) -> float:
    if response.id == "a":
        raise Broken
    return 1.0


async def breaks_on_a_later(task: TaskView, response: Response) -> float:
    await asyncio.sleep(0)
    return breaks_on_a(task, response)


@pytest.mark.parametrize("name", ["breaks_on_a", "breaks_on_a_later"])
def test_a_failing_response_affects_no_other(name: str) -> None:
    assert [find_verdict(t, "odd0").status for t in score_with_sibling(f"{HERE}.{name}")] == [
        "failed",
        "ok",
    ]


class Waits(Evaluator):
    """Waits until it is cancelled, and remembers that it was."""

    began: asyncio.Event
    cancelled = False

    async def answer(self, inputs: EvaluatorInput) -> float:
        Waits.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            Waits.cancelled = True
            raise
        return 1.0


def test_cancelling_a_score_from_outside_cancels_it() -> None:
    async def scene() -> None:
        Waits.began, Waits.cancelled = asyncio.Event(), False
        with jury(f"{HERE}:Waits") as made:
            scoring = asyncio.create_task(made.ascore(task(), [response("a")]))
            await Waits.began.wait()
            scoring.cancel()
            with pytest.raises(asyncio.CancelledError):
                await scoring

    asyncio.run(scene())
    assert Waits.cancelled


def interrupts(task: TaskView, response: Response) -> float:
    raise KeyboardInterrupt


async def interrupts_later(task: TaskView, response: Response) -> float:
    await asyncio.sleep(0)
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["interrupts", "interrupts_later"])
def test_an_interrupt_that_user_code_raises_is_a_failed_verdict(name: str) -> None:
    with jury(evaluator_use("tone"), f"{HERE}.{name}", reward={"tone": 1.0}) as made:
        (trace,) = made.score(task(), [response("a", tone=1.0)])
    failures = [verdict.failure.kind for verdict in trace.verdicts if verdict.failure is not None]
    assert (failures, trace.reward.value) == (["KeyboardInterrupt"], 1.0)


class SetsField(Evaluator):
    """Sets a field that jurygraph sets."""

    version = "1"

    def __init__(self, field: str, value: Any) -> None:
        self.field, self.value = field, value

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        fields = {"score": 1.0, self.field: self.value}
        return Verdict(**fields) if inputs.response.id == "a" else Verdict.model_validate(fields)


@all_rows("field", sorted(RecordedVerdict.model_fields.keys() - Verdict.model_fields.keys()))
def test_an_evaluator_that_sets_a_recorded_field_fails_with_a_reason(field: str) -> None:
    config = {
        "evaluators": [{"use": f"{HERE}:SetsField", "params": {"field": field, "value": "x"}}]
    }
    traces = score_responses(config, task(), response("a"), response("b"))
    for verdict in (verdict for trace in traces for verdict in trace.verdicts):
        assert (verdict.status, verdict.score) == ("failed", None)
        assert re.search(rf"\b{field}: (unknown|Extra inputs)", verdict.reason)


class SetsByCopy(Evaluator):
    """Sets fields that jurygraph sets, past the validation."""

    version = "1"

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        identity = {
            "question": "q",
            "evaluator": "e",
            "about": "z",
            "responses": ("z",),
            "sample": 7,
        }
        return Verdict(score=1.0).model_copy(update={**identity, "gated_by": "empty-response"})


def test_jurygraph_sets_the_identity_of_a_verdict_not_the_evaluator() -> None:
    (trace,) = score_responses({"evaluators": [f"{HERE}:SetsByCopy"]}, task(), response("a"))
    (verdict,) = trace.verdicts
    name = f"{HERE}.SetsByCopy"
    assert (verdict.question, verdict.evaluator, verdict.version, verdict.layer) == (
        name,
        name,
        "1",
        "check",
    )
    assert (verdict.subject, verdict.stakeholder, verdict.reviewer) == ("SetsByCopy", None, None)
    assert (verdict.about, verdict.responses, verdict.sample, verdict.gated_by) == (
        "a",
        ("a",),
        0,
        None,
    )


def test_without_a_model_its_questions_abstain_and_the_reward_has_the_coverage() -> None:
    by_model = {"layer": "model", "uses_model": True}
    config = {
        "evaluators": [evaluator_use("judge", **by_model), evaluator_use("tone")],
        "reward": {"judge": 0.25, "tone": 0.75},
    }
    (trace,) = score_responses(
        {**config, "failure": {"min_coverage": 0.5}}, task(), response("a", tone=1.0)
    )
    verdict = find_verdict(trace, "judge")
    assert (verdict.status, verdict.layer) == ("abstained", "model")
    assert verdict.failure is not None
    assert verdict.failure.kind == "no-model"
    assert (trace.reward.status, trace.reward.coverage, trace.reward.value) == (
        "degraded",
        0.75,
        0.75,
    )
    assert trace.reward.range == (0.75, 1.0)
