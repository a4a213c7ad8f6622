"""Asking evaluators and derivers, so that whatever they do becomes a verdict or material.

The one broad `except` of the graphs is here. User code runs in a fresh context: it inherits neither our clients nor our
keys, and nothing of it is traced to LangSmith unless the config asks for that.
"""

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

import numpy as np
from langsmith import tracing_context
from pydantic import ValidationError

from jurygraph.agents.functions import describe
from jurygraph.agents.roles import Ask, DeriverAsk, Evaluator
from jurygraph.errors import TimeLimitExceeded
from jurygraph.graphs.routing import Job, Slot, stamps
from jurygraph.graphs.state import Roster
from jurygraph.schema import Cause, Evidence, Failure, Material, Response, Survey, Verdict

T = TypeVar("T")
NO_MODEL = Verdict(
    status="abstained",
    reason="the config's model is none",
    failure=Failure(cause="infrastructure", kind="no-model", message="the config's model is none"),
)
FIELDS = frozenset(Verdict.model_fields)
LONGEST_MESSAGE = 500


async def apart(work: Callable[[], Awaitable[T]], langsmith: bool) -> T:
    """Run in a fresh context, where nothing is traced to LangSmith unless that is asked for.

    What runs there inherits nothing: user code neither our clients nor our keys, our graphs neither the callbacks nor
    the checkpointer of a graph that calls us.
    """

    async def run() -> T:
        with nullcontext() if langsmith else tracing_context(enabled=False):
            return await work()

    return await asyncio.create_task(run(), context=contextvars.Context())


async def answer_slots(slots: Sequence[Slot], survey: Survey, roster: Roster) -> list[Verdict]:
    """The verdicts on all slots, stamped, in the order of the slots."""
    asked: dict[str, list[Slot]] = {}
    for slot in slots:
        asked.setdefault(slot.question.evaluator, []).append(slot)
    answered = await apart(
        lambda: asyncio.gather(
            *(_answers(roster.evaluators[name], own, survey, roster) for name, own in asked.items())
        ),
        roster.config.langsmith,
    )
    stamped: list[Verdict] = []
    for slots_of_one, answers in zip(asked.values(), answered, strict=True):
        for slot, answer in zip(slots_of_one, answers, strict=True):
            stamped += _stamped(slot, answer, survey)
    return stamped


async def derive_jobs(jobs: Sequence[Job], survey: Survey, roster: Roster) -> list[Material]:
    """The material of all jobs, in their order."""

    def ask(job: Job) -> DeriverAsk:
        return DeriverAsk(survey.views[job.derivation.view], job.response, job.material)

    results = await apart(
        lambda: asyncio.gather(*(_called(roster.derivers[job.derivation.deriver].derive, [ask(job)]) for job in jobs)),
        roster.config.langsmith,
    )
    return [_material(job, result[0]) for job, result in zip(jobs, results, strict=True)]


async def _answers(evaluator: Evaluator, slots: Sequence[Slot], survey: Survey, roster: Roster) -> list[Any]:
    """What the evaluator gave for each slot, or the exception that it raised."""
    if evaluator.asks_model and roster.config.model == "none":
        return [NO_MODEL] * len(slots)
    asks = [
        Ask(slot.question, survey.views[slot.question.view], slot.responses, slot.material, slot.sample)
        for slot in slots
    ]
    if evaluator.quick:
        return [_caught(evaluator.answer, ask) for ask in asks]
    return await _called(evaluator.answer, asks)


async def _called(function: Callable[[Any], Any], asks: Sequence[Any]) -> list[Any]:
    """Call a function for every ask: coroutines side by side, plain functions one after another in one thread."""
    if inspect.iscoroutinefunction(function):
        begun: list[Any] = [function(ask) for ask in asks]
    else:
        begun = await asyncio.to_thread(lambda: [_caught(function, ask) for ask in asks])
    waiting = [_awaited(result) for result in begun if inspect.isawaitable(result)]
    finished = await asyncio.gather(*waiting, return_exceptions=True)
    for result in finished:
        if isinstance(result, KeyboardInterrupt):
            raise result
    answers = iter(finished)
    return [next(answers) if inspect.isawaitable(result) else result for result in begun]


def _caught(function: Callable[[Any], Any], ask: Any) -> Any:
    try:
        return function(ask)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the boundary: even SystemExit from user code is a failed verdict
        return error


async def _awaited(result: Awaitable[Any]) -> Any:
    """A stray cancellation passes as one here and is caught by the gather above."""
    try:
        return await result
    except (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 - as above
        return error


def _stamped(slot: Slot, answer: Any, survey: Survey) -> list[Verdict]:
    stamp = stamps(slot.question, survey.views[slot.question.view])
    shown = tuple(r.id for r in slot.responses)
    verdicts = [_verdict(one) for one in _one_each(answer, slot)]
    return [
        stamp(_with_checked_evidence(verdict, response), about, shown, slot.sample)
        for verdict, about, response in zip(verdicts, slot.about, slot.responses, strict=False)
    ]


def _one_each(answer: Any, slot: Slot) -> list[Any]:
    """One answer for each response that a verdict is about."""
    for_all = isinstance(answer, BaseException) or (isinstance(answer, Verdict) and answer.status != "ok")
    if slot.question.scope != "group" or for_all:
        return [answer] * len(slot.about)
    if not isinstance(answer, Sequence | np.ndarray) or len(answer) != len(slot.about):
        wrong = ValueError(f"expected a sequence of {len(slot.about)} verdicts, one for each response of the group")
        return [wrong] * len(slot.about)
    return list(answer)


def _verdict(answer: Any) -> Verdict:
    """What an evaluator gave, as a verdict; anything off the range or kind is a failed one, never a score."""
    if isinstance(answer, BaseException):
        return _failed(answer)
    if isinstance(answer, bool | np.bool_):
        return Verdict(score=float(answer), met=bool(answer))
    if isinstance(answer, int | float | np.integer | np.floating):
        answer = _scored(float(answer))
    if not isinstance(answer, Verdict):
        return _malformed(f"expected a Verdict, a number or a boolean, got {type(answer).__name__}")
    if answer.status == "not_applicable":
        return _malformed("not_applicable is for staged screening alone: abstain instead")
    try:
        # one that was copied or constructed was never checked
        checked = Verdict.model_validate({name: value for name, value in vars(answer).items() if name in FIELDS})
    except ValidationError as error:
        return _malformed(describe(error))
    written = "".join([checked.reason, str(checked.native), *(e.quote for e in checked.evidence)])
    if not written.isascii() and written != written.encode("utf-8", "replace").decode("utf-8"):
        return _malformed("its text holds half of a surrogate pair, which cannot be written")
    return checked


def _scored(score: float) -> Verdict:
    try:
        return Verdict(score=score)
    except ValidationError:
        return _malformed(f"a score lies in [0, 1], not at {score}")


def _malformed(message: str) -> Verdict:
    return Verdict.failed("malformed", message)


def _failed(error: BaseException) -> Verdict:
    failure = failure_of(error)
    return Verdict(status="failed", failure=failure, reason=failure.message)


def failure_of(error: BaseException) -> Failure:
    """A time limit on code that reads the response was perhaps provoked by it; all else is our own trouble."""
    cause: Cause = "response" if isinstance(error, TimeLimitExceeded) else "infrastructure"
    message = _message(error)
    kind = "time-limit" if isinstance(error, TimeLimitExceeded) else type(error).__name__
    return Failure(cause=cause, kind=kind, message=message[:LONGEST_MESSAGE] or kind)


def _message(error: BaseException) -> str:
    try:
        return describe(error) if isinstance(error, ValidationError) else str(error)
    except Exception as worse:  # noqa: BLE001 - user code too
        return f"it has no message: {type(worse).__name__}"


def _with_checked_evidence(verdict: Verdict, response: Response) -> Verdict:
    """Quotations from the response are `verified` when they stand where they say, or anywhere if they say nothing."""
    if not verdict.evidence:
        return verdict
    return verdict.model_copy(update={"evidence": tuple(_checked(e, response.text) for e in verdict.evidence)})


def _checked(evidence: Evidence, text: str) -> Evidence:
    if evidence.source != "response":
        return evidence
    start, end = evidence.start, evidence.end
    if start is None or end is None:
        start = text.find(evidence.quote)
        end = start + len(evidence.quote)
    if start < 0 or text[start:end] != evidence.quote:
        return evidence.model_copy(update={"verified": False})
    return evidence.model_copy(update={"verified": True, "start": start, "end": end})


def _material(job: Job, result: Any) -> Material:
    if isinstance(result, Material) and result.name == job.derivation.gives:
        if len({variant.response.id for variant in result.variants}) == len(result.variants):
            return result.model_copy(update={"response": job.response.id})
        result = ValueError(f"two variants in material {result.name!r} have the same id")
    if not isinstance(result, BaseException):
        result = ValueError(f"expected material {job.derivation.gives!r}, got {type(result).__name__}")
    failure = failure_of(result)
    return Material(name=job.derivation.gives, response=job.response.id, status="failed", failure=failure)
