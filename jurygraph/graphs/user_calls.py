"""Calls of user code: a function with its inputs, in threads or in the event loop, within its limits of time.

User code runs in a fresh context: it inherits neither the package's clients nor its keys, and is not traced to
LangSmith unless the config enables that. (A thread that user code starts has a context of its own.)
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from jurygraph.agents.roles import Configurable, EvaluatorInput
from jurygraph.concurrency import is_interrupt
from jurygraph.decision.combiners import raise_as_plan_error
from jurygraph.errors import RUN_ENDING
from jurygraph.graphs.answers import result_or_error
from jurygraph.graphs.time_limits import CallTimeLimits, ResultWithAwaitFlag, judge_clients_of

T = TypeVar("T")


def call_component_method(component: Configurable, method: Callable[..., T], *arguments: Any) -> T:
    """Return the result of a method besides those that answer. Raises PlanError naming both for an exception in it."""
    with raise_as_plan_error(f"`{method.__name__}` of {component.name!r}"):
        return method(*arguments)


@dataclass(slots=True)
class UserCalls:
    """Calls of a function of user code, one with each input, in one context: those of an evaluator in one group, or of
    a deriver for one response.

    Coroutines run concurrently, each in an asyncio task of its own. Plain functions run one after another in a thread,
    or with `runs_inline` in the event loop's own. With `is_batch_function` a function has one input, of several parts,
    and returns a sequence of answers to them. The input of an evaluator gets its answer to `report`; the function does
    that for the parts of a batch.
    """

    function: Callable[[Any], Any]
    inputs: Sequence[Any]
    limits: CallTimeLimits
    runs_inline: bool = False
    is_batch_function: bool = False
    _results_or_tasks: list[Any] = field(default_factory=list, init=False)
    """The answer of each call, or its asyncio task. Those in a thread are one task, with all their answers."""

    @property
    def _starts_in_event_loop(self) -> bool:
        return self.runs_inline or inspect.iscoroutinefunction(self.function)

    def start(self) -> None:
        """Start the calls in the current context.

        An exception takes the place of its answer, and so does a `TimeLimitExceeded` for a call that runs past its
        limit.
        """
        if not self._starts_in_event_loop:
            self._results_or_tasks = [asyncio.create_task(self._call_in_thread())]
        elif (refusal := self.limits.threads.find_call_refusal(self.limits.owner)) is not None:
            self._results_or_tasks = [refusal] * len(self.inputs)
        else:
            started = [self._start_call(call_input) for call_input in self.inputs]
            self._results_or_tasks = self._create_tasks(started)

    @property
    def tasks(self) -> "list[asyncio.Task[Any]]":
        return list(filter(_is_asyncio_task, self._results_or_tasks))

    def collect_answers(self) -> Sequence[Any]:
        """Return all answers, once the tasks are done; raise an error of the thread itself."""
        answers = _collect_results(self._results_or_tasks)
        if not self._starts_in_event_loop:
            (answers,) = answers
            if isinstance(answers, BaseException):
                raise answers
        return (
            _split_batch_answers(answers[0], len(self.inputs[0]))
            if self.is_batch_function
            else answers
        )

    async def _call_in_thread(self) -> list[Any]:
        started = await self.limits.call_in_thread(self._start_call, self.inputs, _close_call_logs)
        results = self._create_tasks(started)
        await asyncio.gather(*filter(_is_asyncio_task, results), return_exceptions=True)
        return _collect_results(results)

    def _start_call(self, call_input: Any) -> ResultWithAwaitFlag:
        """Return the function's result or exception, and whether the result still has to be awaited."""

        def start() -> ResultWithAwaitFlag:
            result = self.function(call_input)
            return result, inspect.isawaitable(result)

        # user code ends here: even its SystemExit is a failed verdict
        started = result_or_error(start)
        result, is_awaitable = (started, False) if isinstance(started, BaseException) else started
        if not is_awaitable:
            _close_call_logs(call_input)
        return result, is_awaitable

    def _create_tasks(self, started: Sequence[ResultWithAwaitFlag]) -> list[Any]:
        """Return the results, with an asyncio task in the place of each that has to be awaited."""
        return [
            self._create_task(call_input, result)
            if is_awaitable
            else self._report_call_result(call_input, result)
            for call_input, (result, is_awaitable) in zip(self.inputs, started, strict=True)
        ]

    def _create_task(self, call_input: Any, result: Awaitable[Any]) -> "asyncio.Task[Any]":
        task = asyncio.create_task(self._finish_call(call_input, result))
        # Python warns of one that nobody awaits: the task may be cancelled at once
        if inspect.iscoroutine(result):
            task.add_done_callback(lambda _: _close_unstarted_coroutine(result))
        return task

    async def _finish_call(self, call_input: Any, result: Awaitable[Any]) -> Any:
        answer_coroutine = _await_result(result)
        try:
            answer = await (
                answer_coroutine
                if self.limits.seconds is None
                else self.limits.await_result(answer_coroutine, call_input)
            )
        finally:
            _close_unstarted_coroutine(answer_coroutine)
            _close_call_logs(call_input)
        return self._report_call_result(call_input, answer)

    def _report_call_result(self, call_input: Any, result: Any) -> Any:
        """Return the result of a call, after it was reported."""
        if isinstance(call_input, EvaluatorInput) and not isinstance(result, RUN_ENDING):
            call_input.report(result)
        return result


def _close_unstarted_coroutine(answer: Coroutine[Any, Any, Any]) -> None:
    if inspect.getcoroutinestate(answer) == inspect.CORO_CREATED:
        answer.close()


def _is_asyncio_task(result: object) -> bool:
    """Return whether this is a task of ours: a task that user code gives as its answer was awaited."""
    return isinstance(result, asyncio.Task)


def _collect_results(started: Sequence[Any]) -> list[Any]:
    """Return the answers, with the result or the exception of each task, once it is done, in its place."""
    return [result_or_error(item.result) if _is_asyncio_task(item) else item for item in started]


def _split_batch_answers(answers: Any, count: int) -> list[Any]:
    """Return the answer of a batch evaluator for each of its inputs; its exception takes the place of every answer."""
    if isinstance(answers, Sequence):  # iterating a sequence can run user code too
        answers = result_or_error(partial(list, answers))
    if isinstance(answers, BaseException):
        return [answers] * count
    if not isinstance(answers, list) or len(answers) != count:
        error = ValueError(f"expected {count} answers from `answer_all`, one for each input")
        return [error] * count
    return answers


def _close_call_logs(inputs: Any) -> None:
    """List no later calls with an input, or a batch of them: its answer is final."""
    for client in judge_clients_of(inputs):
        client.close_call_logs()


async def _await_result(result: Awaitable[Any]) -> Any:
    """Return the result or the exception; a stray cancellation is that of its asyncio task."""
    try:
        return await result
    except (GeneratorExit, asyncio.CancelledError):
        raise
    except BaseException as error:
        if is_interrupt(error):
            raise
        return error
