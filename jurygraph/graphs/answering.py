"""Asking evaluators and derivers, so that whatever they do comes back as an answer or an exception to be taken in.

User code runs in a fresh context: it inherits neither our clients nor our keys, and nothing of it is traced to
LangSmith unless the config asks for that. (A thread that it starts by itself has a context of its own.)
"""

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from langsmith import tracing_context

from jurygraph.agents.roles import Ask, DeriverAsk, Evaluator
from jurygraph.errors import ConfigError, JurygraphError
from jurygraph.graphs.routing import Job, Slot
from jurygraph.graphs.state import Roster
from jurygraph.graphs.taking import NO_MODEL, NOBODY, take_answer, take_material
from jurygraph.safety.evidence import search_off_loop
from jurygraph.schema import Material, Survey, Verdict

T = TypeVar("T")


def _untraced() -> contextvars.Context:
    with tracing_context(enabled=False):
        return contextvars.copy_context()


_UNTRACED = contextvars.Context().run(_untraced)
"""A context that says nothing but that nothing is traced: to copy it costs less than to say so every time."""


def _fresh(langsmith: bool) -> contextvars.Context:
    return contextvars.Context() if langsmith else _UNTRACED.copy()


def begin_apart(work: Callable[[], Awaitable[T]], langsmith: bool) -> "asyncio.Task[T]":
    """Begin something in a fresh context, where nothing is traced to LangSmith unless that is asked for.

    What runs there inherits nothing: user code neither our clients nor our keys, our graphs neither the callbacks nor
    the checkpointer of a graph that calls us.
    """

    async def run() -> T:
        return await work()

    return asyncio.create_task(run(), context=_fresh(langsmith))


async def apart(work: Callable[[], Awaitable[T]], langsmith: bool) -> T:
    """As `begin_apart`, and wait for it."""
    return await begin_apart(work, langsmith)


def apart_now(work: Callable[[], T], langsmith: bool) -> T:
    """As `apart`, for what does not wait."""
    return _fresh(langsmith).run(work)


def open_evaluator(evaluator: Evaluator, langsmith: bool) -> None:
    """Open an evaluator. ConfigError naming it if it cannot be."""
    try:
        apart_now(evaluator.open, langsmith)
    except JurygraphError:
        raise
    except Exception as error:
        raise ConfigError(f"evaluator {evaluator.name!r} cannot be opened: {type(error).__name__}: {error}") from error


async def answer_slots(slots: Sequence[Slot], survey: Survey, roster: Roster) -> list[Verdict]:
    """The verdicts on all slots, stamped, in the order of the slots."""
    asked: dict[str, list[Slot]] = {}
    for slot in slots:
        asked.setdefault(slot.question.evaluator, []).append(slot)
    asking = [(roster.evaluators[name], own) for name, own in asked.items()]

    async def ask() -> list[list[Any]]:
        if len(asking) == 1:  # as in most groups: what runs alone needs no task of its own
            return [await _answers(*asking[0], survey, roster)]
        return await asyncio.gather(*(_answers(*one, survey, roster) for one in asking))

    answered = await apart(ask, roster.config.langsmith)

    def take() -> list[Verdict]:
        redactor = roster.redactor
        return [
            verdict
            for slots_of_one, answers in zip(asked.values(), answered, strict=True)
            for slot, answer in zip(slots_of_one, answers, strict=True)
            for verdict in take_answer(slot, answer, survey.views[slot.question.view], redactor)
        ]

    return await search_off_loop(take, max((len(one.text) for slot in slots for one in slot.responses), default=0))


async def derive_jobs(jobs: Sequence[Job], survey: Survey, roster: Roster) -> list[Material]:
    """The material of all jobs, in their order."""

    def ask(job: Job) -> DeriverAsk:
        return DeriverAsk(survey.views[job.derivation.view], job.response, job.material, roster.gateway)

    async def derived(job: Job) -> Any:
        deriver = roster.derivers[job.derivation.deriver]
        if deriver.asks_model and roster.config.model == "none":
            return Material(name=deriver.gives, status="failed", failure=NOBODY)
        (result,) = await _called(deriver.derive, [ask(job)], False)
        return result

    results = await apart(lambda: asyncio.gather(*map(derived, jobs)), roster.config.langsmith)

    def take() -> list[Material]:
        redactor = roster.redactor
        return [take_material(job, result, redactor) for job, result in zip(jobs, results, strict=True)]

    return await search_off_loop(take, max((len(job.response.text) for job in jobs), default=0))


async def _answers(evaluator: Evaluator, slots: Sequence[Slot], survey: Survey, roster: Roster) -> list[Any]:
    """What the evaluator gave for each slot, or the exception that it raised."""
    if evaluator.asks_model and roster.config.model == "none":
        return [NO_MODEL] * len(slots)
    asks = [
        Ask(slot.question, survey.views[slot.question.view], slot.responses, slot.material, slot.sample, roster.gateway)
        for slot in slots
    ]
    if evaluator.together:
        return await _all_called(evaluator, asks)
    return await _called(evaluator.answer, asks, evaluator.quick)


async def _all_called(evaluator: Evaluator, asks: Sequence[Ask]) -> list[Any]:
    """What it gave for each ask; what it raised stands in the place of all its answers."""
    (given,) = await _called(evaluator.answer_all, [tuple(asks)], False)
    answers, _ = _begun(_listed, given)  # even a sequence can be user code
    if isinstance(answers, BaseException):
        return [answers] * len(asks)
    if len(answers) != len(asks):
        return [ValueError(f"expected {len(asks)} answers from `answer_all`, one for each ask")] * len(asks)
    return list(answers)


def _listed(given: Any) -> list[Any]:
    if isinstance(given, BaseException):
        raise given
    return list(given) if isinstance(given, Sequence) else []


async def _called(function: Callable[[Any], Any], asks: Sequence[Any], quick: bool) -> list[Any]:
    """Call a function for every ask: coroutines side by side, plain functions one after another in one thread.

    A `quick` function is called right here. What it raises stands in the place of its answer.
    """
    if quick or inspect.iscoroutinefunction(function):
        begun = [_begun(function, ask) for ask in asks]
    else:
        begun = await asyncio.to_thread(lambda: [_begun(function, ask) for ask in asks])
    waiting = [_awaited(result) for result, waits in begun if waits]
    finished = await asyncio.gather(*waiting, return_exceptions=True)
    for result in finished:
        if isinstance(result, KeyboardInterrupt):
            raise result
    answers = iter(finished)
    return [next(answers) if waits else result for result, waits in begun]


def _begun(function: Callable[[Any], Any], ask: Any) -> tuple[Any, bool]:
    """What the function gave or raised, and whether it is still to be awaited."""
    try:
        result = function(ask)
        return result, inspect.isawaitable(result)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the boundary: even SystemExit from user code is a failed verdict
        return error, False


async def _awaited(result: Awaitable[Any]) -> Any:
    """A stray cancellation passes as one here and is caught by the gather above."""
    try:
        return await result
    except (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 - as above
        return error
