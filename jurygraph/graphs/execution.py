"""Call evaluators and derivers, and turn their answers and exceptions into verdicts and material.

User code runs in a fresh context: it inherits neither the package's clients nor its keys, and is not traced to
LangSmith unless the config enables that. (A thread that user code starts has a context of its own.)
"""

import asyncio
import contextvars
import inspect
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from langsmith import tracing_context

from jurygraph.agents.roles import Deriver, DeriverInput, Evaluator, EvaluatorInput, UndeclaredClient
from jurygraph.errors import RUN_ENDING
from jurygraph.graphs.answer_validation import (
    NO_MODEL_FAILURE,
    NO_MODEL_VERDICT,
    ReadVerdicts,
    catch_errors,
    validate_answer,
    validate_material,
)
from jurygraph.graphs.routing import DerivationTask, EvaluatorTask, make_stamp
from jurygraph.graphs.state import RunContext
from jurygraph.graphs.time_limits import CallLimits, Result, clients_of, time_limit
from jurygraph.models.request import DERIVE, CallLog
from jurygraph.safety.evidence import search_off_loop
from jurygraph.safety.redaction import Redactor
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


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of a function of user code, one with each input, in one context: those of an evaluator in one group, or of
    a deriver for one response.

    Coroutines run concurrently, each in an asyncio task of its own. Plain functions run one after another in a thread,
    or with `runs_inline` in the event loop's own. A function that `is_batched` has one input, of several parts, and
    returns a sequence of answers to them.
    """

    function: Callable[[Any], Any]
    inputs: Sequence[Any]
    limits: CallLimits
    runs_inline: bool = False
    is_batched: bool = False

    @property
    def _starts_in_loop(self) -> bool:
        return self.runs_inline or inspect.iscoroutinefunction(self.function)

    def start(self) -> list[Result]:
        """Start the calls in the current context; return the answer of each, or its asyncio task and true.

        Those in a thread are one task, which returns all their answers. An exception takes the place of its answer, and
        so does `CallLimits.excess` for a call that runs past its limit.
        """
        if not self._starts_in_loop:
            return [(asyncio.create_task(self._call_in_thread()), True)]
        if (refusal := self.limits.threads.refusal(self.limits.owner)) is not None:
            return [(refusal, False)] * len(self.inputs)
        return self._create_tasks([self._start_call(each) for each in self.inputs])

    def read(self, results: Sequence[Any]) -> Sequence[Any]:
        """Return all answers, from the results of what `start` returned; raise an error of the thread itself."""
        if not self._starts_in_loop:
            (results,) = results
            if isinstance(results, BaseException):
                raise results
        return _split_batch(results[0], len(self.inputs[0])) if self.is_batched else results

    async def _call_in_thread(self) -> list[Any]:
        started = await self.limits.call_in_thread(self._start_call, self.inputs, _close_logs)
        (answers,) = await _await_all([self._create_tasks(started)])
        return answers

    def _start_call(self, each: Any) -> Result:
        result, is_awaitable = _start_call(self.function, each)
        if not is_awaitable:
            _close_logs(each)
        return result, is_awaitable

    def _create_tasks(self, started: Sequence[Result]) -> list[Result]:
        """Return the results, with an asyncio task for each that has to be awaited."""
        return [
            (self._create_task(each, result), True) if is_awaitable else (result, False)
            for each, (result, is_awaitable) in zip(self.inputs, started, strict=True)
        ]

    def _create_task(self, each: Any, result: Awaitable[Any]) -> "asyncio.Task[Any]":
        task = asyncio.create_task(self._finish_call(each, result))
        if inspect.iscoroutine(result):  # Python warns of one that nobody awaits: the task may be cancelled at once
            task.add_done_callback(lambda _: _close_unstarted(result))
        return task

    async def _finish_call(self, each: Any, result: Awaitable[Any]) -> Any:
        answering = _await_result(result)
        try:
            return await (answering if self.limits.seconds is None else self.limits.await_result(answering, each))
        finally:
            _close_unstarted(answering)
            _close_logs(each)


def _close_unstarted(answer: Coroutine[Any, Any, Any]) -> None:
    if inspect.getcoroutinestate(answer) == inspect.CORO_CREATED:
        answer.close()


@dataclass(frozen=True, slots=True)
class GroupCalls:
    """The calls that a node makes for one group.

    `validate` turns the answers of each into what the node finds, with a redactor; `letters` is the length of the
    longest text that it searches.
    """

    calls: Sequence[Calls]
    validate: Callable[[Sequence[Sequence[Any]], Redactor], list[Any]]
    letters: int

    def read(self, results: Sequence[Sequence[Any]], redactor: Redactor) -> list[Any]:
        """Return what the node finds, from the results of the calls. Raises an error that ends the run."""
        answers = [calls.read(each) for calls, each in zip(self.calls, results, strict=True)]
        for answer in chain.from_iterable(answers):
            if isinstance(answer, RUN_ENDING):
                raise answer
        return self.validate(answers, redactor)


async def make_calls(groups: Sequence[GroupCalls], context: RunContext) -> list[list[Any] | BaseException]:
    """Make the calls of all groups at once; return what is found for each group, or its error.

    Calls of two groups, or of two evaluators, share no context. The redactor is for the environment after all calls,
    since the code that they run may have changed it.
    """
    langsmith = context.config.langsmith
    each = [calls for group in groups for calls in group.calls]
    results = iter(await _await_all([_fresh_context(langsmith).run(calls.start) for calls in each]))
    answered = [(group, [next(results) for _ in group.calls]) for group in groups]

    def validate_all() -> list[list[Any] | BaseException]:
        redactor = context.redactor
        return [catch_errors(partial(group.read, found, redactor)) for group, found in answered]

    longest = max((group.letters for group in groups), default=0)
    return await search_off_loop(partial(_fresh_context(langsmith).run, validate_all), longest)


async def _await_all(started: Sequence[Sequence[Result]]) -> list[list[Any]]:
    """Return what was started with the result, or the exception, of each asyncio task in its place."""
    tasks = [result for one in started for result, is_task in one if is_task]
    finished = await asyncio.gather(*tasks, return_exceptions=True)
    for result in finished:
        if isinstance(result, KeyboardInterrupt):
            raise result
    results = iter(finished)
    return [[next(results) if is_task else result for result, is_task in one] for one in started]


def evaluator_calls(evaluator_tasks: Sequence[EvaluatorTask], survey: Survey, context: RunContext) -> GroupCalls:
    """Return the calls for all evaluator tasks of a group; they become verdicts, stamped, with their calls and steps.

    The tasks of one evaluator and judge follow each other, in their order: a batch asks one model.
    """
    tasks_by_evaluator: dict[tuple[str, str | None], list[EvaluatorTask]] = defaultdict(list)
    for evaluator_task in evaluator_tasks:
        tasks_by_evaluator[evaluator_task.question.evaluator, evaluator_task.judge].append(evaluator_task)
    inputs = [_make_inputs(*who, tasks, survey, context) for who, tasks in tasks_by_evaluator.items()]

    def to_verdicts(answers: Sequence[Sequence[Any]], redactor: Redactor) -> list[RecordedVerdict]:
        questions = {evaluator_task.question.id: evaluator_task.question for evaluator_task in evaluator_tasks}
        stamps = {name: make_stamp(question, survey.views[question.view]) for name, question in questions.items()}
        known = context.calls
        read: ReadVerdicts = {}
        verdicts = []
        for (name, _), tasks, own_inputs, own_answers in zip(
            tasks_by_evaluator, tasks_by_evaluator.values(), inputs, answers, strict=True
        ):
            own: list[RecordedVerdict] = []
            for task, each, answer in zip(tasks, own_inputs, own_answers, strict=True):
                validated = validate_answer(task, answer, stamps[task.question.id], redactor, read)
                own += [each.call_log.add_to(verdict, known, each.steps) for verdict in validated]
            if context.first_answers is not None:
                context.first_answers.note(name, own)
            verdicts += own
        return verdicts

    calls = [_calls_of(*who, part, context) for who, part in zip(tasks_by_evaluator, inputs, strict=True)]
    letters = (len(response.text) for evaluator_task in evaluator_tasks for response in evaluator_task.responses)
    return GroupCalls(calls, to_verdicts, max(letters, default=0))


def deriver_calls(derivation_tasks: Sequence[DerivationTask], survey: Survey, context: RunContext) -> GroupCalls:
    """Return the calls for all derivation tasks of a group; they become material, in the order of the tasks."""
    logs = [CallLog() for _ in derivation_tasks]
    calls = [_derivation(task, log, survey, context) for task, log in zip(derivation_tasks, logs, strict=True)]

    def to_material(answers: Sequence[Sequence[Any]], redactor: Redactor) -> list[Material]:
        known = context.calls
        return [
            log.add_to(validate_material(task, result, redactor), known)
            for task, log, (result,) in zip(derivation_tasks, logs, answers, strict=True)
        ]

    return GroupCalls(calls, to_material, max((len(task.response.text) for task in derivation_tasks), default=0))


def _derivation(task: DerivationTask, log: CallLog, survey: Survey, context: RunContext) -> Calls:
    deriver = context.derivers[task.derivation.deriver]
    limits = _limits(deriver, context)
    model = context.judge_client
    if deriver.uses_model and context.config.model == "none":
        failed = Material(name=deriver.gives, status="failed", failure=NO_MODEL_FAILURE)
        return Calls(lambda _: failed, [()], limits, runs_inline=True)
    client: Any = model and model.logging_to(log, purpose=DERIVE)
    client = client if deriver.uses_model else UndeclaredClient(deriver.name)
    deriver_input = DeriverInput(survey.views[task.derivation.view], task.response, task.material, client)
    return Calls(deriver.derive, [deriver_input], limits)


def _make_inputs(
    name: str, judge: str | None, evaluator_tasks: Sequence[EvaluatorTask], survey: Survey, context: RunContext
) -> list[EvaluatorInput]:
    """Return an evaluator's input for each of its tasks, with a log of its own if the evaluator uses the model."""
    uses_model = context.evaluators[name].uses_model
    model = context.clients.get(judge)
    undeclared = UndeclaredClient(name)
    log = CallLog()
    inputs = []
    for task in evaluator_tasks:
        client: Any = undeclared
        if uses_model:
            log = CallLog()
            client = model and model.logging_to(log)
        view = survey.views[task.question.view]
        inputs.append(EvaluatorInput(task.question, view, task.responses, task.material, task.sample, client, log))
    return inputs


def _calls_of(name: str, judge: str | None, inputs: Sequence[EvaluatorInput], context: RunContext) -> Calls:
    evaluator = context.evaluators[name]
    limits = _limits(evaluator, context)
    if evaluator.uses_model and judge is None and context.config.model == "none":
        return Calls(lambda _: NO_MODEL_VERDICT, inputs, limits, runs_inline=True)
    if evaluator.batched:
        return Calls(evaluator.answer_all, [tuple(inputs)], limits, is_batched=True)
    return Calls(evaluator.answer, inputs, limits, evaluator.runs_inline and limits.seconds is None)


def _limits(component: Evaluator | Deriver, context: RunContext) -> CallLimits:
    return CallLimits(component.name, time_limit(component, context.config.calls), context.threads)


def _split_batch(answers: Any, count: int) -> list[Any]:
    """Return the answer of a batch evaluator for each of its inputs; its exception takes the place of every answer."""
    if isinstance(answers, Sequence):  # iterating a sequence can run user code too
        answers = catch_errors(partial(list, answers))
    if isinstance(answers, BaseException):
        return [answers] * count
    if not isinstance(answers, list) or len(answers) != count:
        return [ValueError(f"expected {count} answers from `answer_all`, one for each input")] * count
    return answers


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
    """Return the result or the exception; a stray cancellation is left to the gather in `_await_all`."""
    try:
        return await result
    except (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 - as above
        return error
