"""User code isolated, in threads and with time limits.

A coroutine that runs past its limit is cancelled. A thread cannot be ended, so its call is given up:
`TimeLimitExceeded` is its answer, a late result is dropped, and another thread goes on. An evaluator with too many
threads that hang is not called any more. A call that waits for the model at its limit ends with a `Fault`, because the
response is not to blame for that.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context, copy_context
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from langsmith import tracing_context

from jurygraph.agents.roles import CODE_TIME_LIMIT_SECONDS, Deriver, Evaluator
from jurygraph.concurrency import DaemonThreads, ThreadCall
from jurygraph.errors import TimeLimitExceeded
from jurygraph.models.request import Fault
from jurygraph.schema import CallsConfig
from jurygraph.schema.verdict import GATED_LAYERS, TIME_LIMIT_FAILURE_KIND

if TYPE_CHECKING:
    from jurygraph.models.judge_client import JudgeClient

T = TypeVar("T")

OWN_MODEL_TIMEOUT_SECONDS = 600.0
"""Seconds for a call of user code with a model of its own."""
MAX_HANGING_THREADS = 4
"""Number of hanging threads from which on an evaluator or deriver is not called any more."""
_CANCELLATION_TIMEOUT_SECONDS = 0.5  # seconds for a cancelled coroutine to end

ABANDONED_ASYNCIO_TASKS: list["asyncio.Task[Any]"] = []
"""Tasks that ignored their cancellation. They are kept, because to destroy one runs its code, which may hang again."""
ResultWithAwaitFlag = tuple[Any, bool]
"""The result or exception of a call, and true if it still has to be awaited."""


def time_limit(component: Evaluator | Deriver, calls: CallsConfig) -> float | None:
    """Return the seconds for one call of an evaluator or deriver; None without a limit.

    One that uses the config's model has `CODE_TIME_LIMIT_SECONDS` on top of the deadline of a group, and without a
    deadline no limit but those of its requests.
    """
    if component.timeout is not None:
        return component.timeout
    if component.bounds_its_time or (isinstance(component, Evaluator) and component.runs_inline):
        return None
    if component.uses_model:
        return None if calls.deadline is None else calls.deadline + CODE_TIME_LIMIT_SECONDS
    has_own_model = isinstance(component, Evaluator) and component.layer in GATED_LAYERS
    return OWN_MODEL_TIMEOUT_SECONDS if has_own_model else CODE_TIME_LIMIT_SECONDS


def may_take_long(component: Evaluator | Deriver) -> bool:
    """Return whether its answers may take long and exist nowhere but in their traces, unlike the calls of a model."""
    if component.uses_model:
        return False
    return component.may_take_long or time_limit(component, CallsConfig()) is not None


def _copy_untraced_context() -> Context:
    with tracing_context(enabled=False):
        return copy_context()


_UNTRACED_CONTEXT = Context().run(_copy_untraced_context)
"""An otherwise empty context with tracing off: copying it is cheaper than turning tracing off on every call."""


def new_contextvars_context(traces_to_langsmith: bool) -> Context:
    """Return an empty context, in which nothing is traced unless `traces_to_langsmith` is true."""
    return Context() if traces_to_langsmith else _UNTRACED_CONTEXT.copy()


def start_in_new_context(
    function: Callable[[], Awaitable[T]], traces_to_langsmith: bool
) -> "asyncio.Task[T]":
    """Start a function as an asyncio task in a fresh context, traced to LangSmith only if `traces_to_langsmith` is
    true.

    It inherits nothing: user code gets neither the package's clients nor its keys, and the package's graphs get
    neither the callbacks nor the checkpointer of a graph that calls them.
    """

    async def run() -> T:
        return await function()

    return asyncio.create_task(run(), context=new_contextvars_context(traces_to_langsmith))


def judge_clients_of(inputs: Any) -> list["JudgeClient"]:
    """Return the clients of an input, or of a batch of them; none where no model may be used."""
    batch = inputs if isinstance(inputs, tuple) else (inputs,)
    return [call_input.client for call_input in batch if call_input.client]


class UserCallThreads(DaemonThreads):
    """The threads of a jury's evaluators and derivers, which count those that hang, by the name of their owner."""

    def __init__(self) -> None:
        super().__init__()
        self._hanging: dict[str, list[ThreadCall]] = {}
        self._refused: set[str] = set()

    def abandon_hanging(self, owner: str, calls: Sequence[ThreadCall]) -> None:
        """Abandon unfinished calls that ran past their time limit. With too many that hang, `owner` is refused."""
        earlier = [call for call in self._hanging.get(owner, ()) if not call.future.done()]
        self._hanging[owner] = [*earlier, *self.abandon_calls(calls)]
        if len(self._hanging[owner]) >= MAX_HANGING_THREADS:
            self._refused.add(owner)

    def find_call_refusal(self, owner: str) -> Fault | None:
        """Return the reason why `owner` is not called any more; None if it is."""
        if owner not in self._refused:
            return None
        return Fault(
            "hanging",
            f"it is not called any more: {MAX_HANGING_THREADS} of its calls ran past their time limit and still hang; "
            "correct it, raise its `timeout`, or set `isolate: process` for an evaluator, which can then be ended",
        )


class CallTimeLimits(NamedTuple):
    """The limits of the calls of one evaluator or deriver, `owner`: seconds for each, or None, and their threads."""

    owner: str
    seconds: float | None
    threads: UserCallThreads

    def time_limit_error(self, inputs: Any) -> TimeLimitExceeded | Fault:
        """Return the error that takes the place of the answer of a call with these inputs."""
        problem = f"{self.owner!r} ran past its time limit of {self.seconds:g} s"
        if any(client.has_waiting_request for client in judge_clients_of(inputs)):
            return Fault(
                TIME_LIMIT_FAILURE_KIND,
                f"{problem} while it waited for the model; raise its `timeout`",
            )
        return TimeLimitExceeded(problem)

    async def call_in_thread(
        self,
        call: Callable[[Any], ResultWithAwaitFlag],
        inputs: Sequence[Any],
        finish: Callable[[Any], None],
    ) -> list[ResultWithAwaitFlag]:
        """Return the results of `call` for all inputs, made one after another in a thread, and in one context.

        The input of a call that hangs is given to `finish`, and the next one gets another thread.
        """
        context = copy_context()
        results: list[ResultWithAwaitFlag] = []
        for call_input in inputs:
            refusal = self.threads.find_call_refusal(self.owner)
            if refusal is not None:
                return results + [(refusal, False)] * (len(inputs) - len(results))
            result, is_timed_out = await self._call_in_time(partial(context.run, call, call_input))
            if is_timed_out:
                # before `finish`, after which no request is waited for
                result = self.time_limit_error(call_input), False
                finish(call_input)
                context = context.copy()  # the call that hangs is still in the other
            results.append(result)
        return results

    async def _call_in_time(self, call: Callable[[], ResultWithAwaitFlag]) -> tuple[Any, bool]:
        """Return the result of a call in a thread, and whether it ran past the limit, which begins when it does."""
        with self.threads.record_calls() as thread_calls:
            future = asyncio.get_running_loop().run_in_executor(self.threads, call)
        thread_call = thread_calls[0]
        try:
            while not (await asyncio.wait({future}, timeout=self._seconds_left(thread_call)))[0]:
                if self._seconds_left(thread_call) == 0.0:
                    self.threads.abandon_hanging(self.owner, thread_calls)
                    return None, True
            return (
                future.result(),
                self.seconds is not None and thread_call.duration >= self.seconds,
            )
        finally:
            future.cancel()
            self.threads.abandon_calls(thread_calls)

    def _seconds_left(self, call: ThreadCall) -> float | None:
        """Return the seconds until a call is late; None without a limit, and all of them before it begins."""
        return None if self.seconds is None else max(0.0, self.seconds - call.duration)

    async def await_result(self, result: Awaitable[Any], inputs: Any) -> Any:
        """Return the awaited result, or `excess`; the work is cancelled then, and left alone if it goes on."""
        with self.threads.record_calls() as thread_calls:
            task = asyncio.ensure_future(_measure_seconds(result))
        try:
            if (await asyncio.wait({task}, timeout=self.seconds))[0]:
                value, seconds = await task
                # one that never awaits is not cancelled
                if self.seconds is None or seconds < self.seconds:
                    return value
            return self.time_limit_error(inputs)
        finally:
            if not task.done():
                task.cancel()
                try:
                    await asyncio.wait({task}, timeout=_CANCELLATION_TIMEOUT_SECONDS)
                finally:  # also where this is cancelled again meanwhile
                    self.threads.abandon_hanging(self.owner, thread_calls)
                    # it caught the cancellation: asyncio would wait for it when the loop is closed
                    if not task.done():
                        asyncio._unregister_task(task)
                        ABANDONED_ASYNCIO_TASKS.append(task)


async def _measure_seconds(result: Awaitable[T]) -> tuple[T, float]:
    """Return the awaited result, and the seconds since its first step."""
    start_time = monotonic()
    return await result, monotonic() - start_time
