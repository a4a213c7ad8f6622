"""Call evaluators and derivers, and turn their answers and exceptions into verdicts and material.

User code runs in a fresh context: it inherits neither the package's clients nor its keys, and is not traced to
LangSmith unless the config enables that. (A thread that user code starts has a context of its own.)
"""

import asyncio
import contextvars
import inspect
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from langsmith import tracing_context

from jurygraph.agents.roles import Deriver, DeriverInput, Evaluator, EvaluatorInput, UndeclaredClient
from jurygraph.graphs.answer_validation import NO_MODEL_FAILURE, NO_MODEL_VERDICT, validate_answer, validate_material
from jurygraph.graphs.routing import DerivationTask, EvaluatorTask
from jurygraph.graphs.state import RunContext
from jurygraph.graphs.time_limits import CallLimits, clients_of, time_limit
from jurygraph.models.request import DERIVE, CallLog
from jurygraph.safety.evidence import search_off_loop
from jurygraph.schema import Material, RecordedVerdict, Survey

T = TypeVar("T")


def _copy_untraced_context() -> contextvars.Context:
    with tracing_context(enabled=False):
        return contextvars.copy_context()


_UNTRACED = contextvars.Context().run(_copy_untraced_context)
"""An otherwise empty context with tracing off: copying it is cheaper than turning tracing off on every call."""


def _fresh_context(langsmith: bool) -> contextvars.Context:
    return contextvars.Context() if langsmith else _UNTRACED.copy()


def start_isolated(function: Callable[[], Awaitable[T]], langsmith: bool) -> "asyncio.Task[T]":
    """Start a function as an asyncio task in a fresh context, traced to LangSmith only if `langsmith` is true.

    It inherits nothing: user code gets neither the package's clients nor its keys, and the package's graphs get
    neither the callbacks nor the checkpointer of a graph that calls them.
    """

    async def run() -> T:
        return await function()

    return asyncio.create_task(run(), context=_fresh_context(langsmith))


def run_isolated_sync(function: Callable[[], T], langsmith: bool) -> T:
    """Run a synchronous function in a fresh context (see `start_isolated`) and return its result."""
    return _fresh_context(langsmith).run(function)


async def answer_evaluator_tasks(
    evaluator_tasks: Sequence[EvaluatorTask], survey: Survey, context: RunContext
) -> list[RecordedVerdict]:
    """Return the verdicts on all evaluator tasks, stamped, with their calls and steps, in their order."""
    tasks_by_evaluator: dict[str, list[EvaluatorTask]] = defaultdict(list)
    inputs_by_evaluator: dict[str, list[EvaluatorInput]] = defaultdict(list)
    for evaluator_task in evaluator_tasks:
        tasks_by_evaluator[evaluator_task.question.evaluator].append(evaluator_task)
        inputs_by_evaluator[evaluator_task.question.evaluator].append(_make_input(evaluator_task, survey, context))

    async def answer_all() -> list[list[Any]]:
        answering = [_answer_evaluator(name, inputs, context) for name, inputs in inputs_by_evaluator.items()]
        # the most common case: a single evaluator needs no asyncio task of its own
        return [await answering[0]] if len(answering) == 1 else await asyncio.gather(*answering)

    answers_by_evaluator = await start_isolated(answer_all, context.config.langsmith)

    def to_verdicts() -> list[RecordedVerdict]:
        redactor, known = context.redactor, context.calls
        parts = zip(tasks_by_evaluator.values(), inputs_by_evaluator.values(), answers_by_evaluator, strict=True)
        return [
            inputs.call_log.add_to(verdict, known, inputs.steps)
            for part in parts
            for evaluator_task, inputs, answer in zip(*part, strict=True)
            for verdict in validate_answer(evaluator_task, answer, inputs.task, redactor)
        ]

    lengths = (len(response.text) for evaluator_task in evaluator_tasks for response in evaluator_task.responses)
    return await search_off_loop(to_verdicts, max(lengths, default=0))


async def derive_material(
    derivation_tasks: Sequence[DerivationTask], survey: Survey, context: RunContext
) -> list[Material]:
    """Return the material of all derivation tasks, in their order."""

    async def derive(task: DerivationTask) -> Any:
        deriver = context.derivers[task.derivation.deriver]
        if deriver.uses_model and context.config.model == "none":
            return Material(name=deriver.gives, status="failed", failure=NO_MODEL_FAILURE)
        view = survey.views[task.derivation.view]
        log, model = logs[task.derivation.gives, task.response.id], context.judge_client
        client: Any = model and model.logging_to(log, purpose=DERIVE)
        client = client if deriver.uses_model else UndeclaredClient(deriver.name)
        deriver_input = DeriverInput(view, task.response, task.material, client)
        (result,) = await _call_each(deriver.derive, [deriver_input], _limits(deriver, context))
        return result

    logs = {(task.derivation.gives, task.response.id): CallLog() for task in derivation_tasks}
    results = await start_isolated(lambda: asyncio.gather(*map(derive, derivation_tasks)), context.config.langsmith)

    def to_material() -> list[Material]:
        redactor, known = context.redactor, context.calls
        derived = [
            validate_material(task, result, redactor) for task, result in zip(derivation_tasks, results, strict=True)
        ]
        return [logs[material.name, material.response].add_to(material, known) for material in derived]

    return await search_off_loop(to_material, max((len(task.response.text) for task in derivation_tasks), default=0))


def _make_input(evaluator_task: EvaluatorTask, survey: Survey, context: RunContext) -> EvaluatorInput:
    question, log, model = evaluator_task.question, CallLog(), context.judge_client
    shown = evaluator_task.responses, evaluator_task.material, evaluator_task.sample
    client: Any = model and model.logging_to(log)
    client = client if context.evaluators[question.evaluator].uses_model else UndeclaredClient(question.evaluator)
    return EvaluatorInput(question, survey.views[question.view], *shown, client, log)


async def _answer_evaluator(name: str, inputs: Sequence[EvaluatorInput], context: RunContext) -> list[Any]:
    """Return the evaluator's answer for each input, or the exception that it raised."""
    evaluator = context.evaluators[name]
    if evaluator.uses_model and context.config.model == "none":
        return [NO_MODEL_VERDICT] * len(inputs)
    limits = _limits(evaluator, context)
    if evaluator.batched:
        return await _call_batched(evaluator, inputs, limits)
    return await _call_each(evaluator.answer, inputs, limits, evaluator.runs_inline and limits.seconds is None)


def _limits(component: Evaluator | Deriver, context: RunContext) -> CallLimits:
    return CallLimits(component.name, time_limit(component, context.config.calls), context.threads)


async def _call_batched(evaluator: Evaluator, inputs: Sequence[EvaluatorInput], limits: CallLimits) -> list[Any]:
    """Return the answer of a batch evaluator for each input; its exception takes the place of every answer."""
    (answers,) = await _call_each(evaluator.answer_all, [tuple(inputs)], limits)
    if isinstance(answers, Sequence):  # iterating a sequence can run user code too
        answers, _ = _start_call(list, answers)
    if isinstance(answers, BaseException):
        return [answers] * len(inputs)
    if not isinstance(answers, list) or len(answers) != len(inputs):
        return [ValueError(f"expected {len(inputs)} answers from `answer_all`, one for each input")] * len(inputs)
    return answers


async def _call_each(
    function: Callable[[Any], Any], inputs: Sequence[Any], limits: CallLimits, runs_inline: bool = False
) -> list[Any]:
    """Call a function with every input: coroutines concurrently, plain functions one after another in a thread.

    With `runs_inline`, a plain function is called in the event loop's own thread. An exception takes the place of its
    answer, and so does `CallLimits.excess` for a call that runs past its limit.
    """

    def start(each: Any) -> tuple[Any, bool]:
        result, is_awaitable = _start_call(function, each)
        if not is_awaitable:
            _close_logs(each)
        return result, is_awaitable

    async def finish(each: Any, result: Awaitable[Any]) -> Any:
        answering = _await_result(result)
        try:
            return await (answering if limits.seconds is None else limits.await_result(answering, each))
        finally:
            _close_logs(each)

    if (refusal := limits.threads.refusal(limits.owner)) is not None:
        return [refusal] * len(inputs)
    is_inline = runs_inline or inspect.iscoroutinefunction(function)
    started = [start(each) for each in inputs] if is_inline else await limits.call_in_thread(start, inputs, _close_logs)
    awaiting = [
        finish(each, result) for each, (result, is_awaitable) in zip(inputs, started, strict=True) if is_awaitable
    ]
    finished = await asyncio.gather(*awaiting, return_exceptions=True)
    for result in finished:
        if isinstance(result, KeyboardInterrupt):
            raise result
    answers = iter(finished)
    return [next(answers) if is_awaitable else result for result, is_awaitable in started]


def _close_logs(inputs: Any) -> None:
    """List no later calls with an input, or a batch of them: its answer is final."""
    for client in clients_of(inputs):
        client.close_logs()


def _start_call(function: Callable[[Any], Any], evaluator_input: Any) -> tuple[Any, bool]:
    """Return the function's result or exception, and whether the result still has to be awaited."""
    try:
        result = function(evaluator_input)
        return result, inspect.isawaitable(result)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - user code ends here: even its SystemExit is a failed verdict
        return error, False


async def _await_result(result: Awaitable[Any]) -> Any:
    """Return the result or the exception; a stray cancellation is left to the gather in `_call_each`."""
    try:
        return await result
    except (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 - as above
        return error
