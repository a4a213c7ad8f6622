"""Time limits for evaluators and derivers: which limit applies, and what happens to a call that runs past it.

A coroutine is cancelled. A thread cannot be ended, so its call is given up: `TimeLimitExceeded` is its answer, a late
result is dropped, and another thread goes on. An evaluator with too many threads that hang is not called any more. A
call that waits for the model at its limit ends with a `Fault`, because the response is not to blame for that.
"""

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from jurygraph.agents.roles import CODE_LIMIT, Deriver, Evaluator
from jurygraph.concurrency import DaemonThreads, ThreadCall
from jurygraph.decision.combiner import as_plan_error
from jurygraph.errors import TimeLimitExceeded
from jurygraph.models.faults import Fault
from jurygraph.schema import CallsConfig
from jurygraph.schema.verdict import GATED_LAYERS, TIME_LIMIT

if TYPE_CHECKING:
    from jurygraph.models.judge_client import JudgeClient

OWN_MODEL_LIMIT = 600.0
"""Seconds for a call of user code with a model of its own."""
MAX_HANGING = 4
"""Number of hanging threads from which on an evaluator or deriver is not called any more."""
_CANCELLING = 0.5  # seconds for a cancelled coroutine to end

LEFT_ALONE: list["asyncio.Task[Any]"] = []
"""Tasks that ignored their cancellation. They are kept, because to destroy one runs its code, which may hang again."""

T = TypeVar("T")
Result = tuple[Any, bool]
"""The result or exception of a call, and true if it still has to be awaited."""


def time_limit(component: Evaluator | Deriver, calls: CallsConfig) -> float | None:
    """Return the seconds for one call of an evaluator or deriver; None without a limit.

    One that uses the config's model has `CODE_LIMIT` on top of the deadline of a group, and without a deadline no limit
    but those of its requests.
    """
    if component.timeout is not None:
        return component.timeout
    if component.bounds_its_time or (isinstance(component, Evaluator) and component.runs_inline):
        return None
    if component.uses_model:
        return None if calls.deadline is None else calls.deadline + CODE_LIMIT
    has_own_model = isinstance(component, Evaluator) and component.layer in GATED_LAYERS
    return OWN_MODEL_LIMIT if has_own_model else CODE_LIMIT


def may_take_long(component: Evaluator | Deriver) -> bool:
    """Return whether its answers may take long and exist nowhere but in their traces, unlike the calls of a model."""
    if component.uses_model:
        return False
    return component.may_take_long or time_limit(component, CallsConfig()) is not None


def call_within_limit(component: Evaluator | Deriver, method: Callable[..., T], *arguments: Any) -> T:
    """Return the result of a method besides those that answer; in a thread, unless its class bounds its time.

    Raises TimeLimitExceeded after the default limit of the component, or its own if that is longer; and PlanError with
    the method and the component for any other exception in it.
    """
    with as_plan_error(f"`{method.__name__}` of {component.name!r}"):
        if _bounds_its_time(method):
            return method(*arguments)
        context = copy_context()
        seconds = max(CODE_LIMIT, time_limit(component, CallsConfig()) or 0.0)
        future: Future[T] = DaemonThreads(1).submit(lambda: context.run(method, *arguments))
        if not wait([future], seconds).not_done:
            return future.result()
    hint = "correct it, or raise its `timeout`"
    problem = f"`{method.__name__}` of {component.name!r} ran past its time limit of {seconds:g} s"
    raise TimeLimitExceeded(f"{problem}; {hint}")


def _bounds_its_time(method: Any) -> bool:
    """Return whether the class that defines a method bounds its time; the defaults of the roles do little."""
    classes = type(getattr(method, "__self__", None)).__mro__
    author: Any = next((each for each in classes if method.__name__ in vars(each)), None)
    return author in (Evaluator, Deriver) or getattr(author, "bounds_its_time", False)


def clients_of(inputs: Any) -> list["JudgeClient"]:
    """Return the clients of an input, or of a batch of them; none where no model may be used."""
    batch = inputs if isinstance(inputs, tuple) else (inputs,)
    return [each.client for each in batch if each.client]


class CallThreads(DaemonThreads):
    """The threads of a jury's evaluators and derivers, which count those that hang, by the name of their owner."""

    def __init__(self) -> None:
        super().__init__()
        self._hanging: dict[str, list[ThreadCall]] = {}
        self._refused: set[str] = set()

    def give_up(self, owner: str, calls: Sequence[ThreadCall]) -> None:
        """Abandon unfinished calls that ran past their time limit. With too many that hang, `owner` is refused."""
        earlier = [call for call in self._hanging.get(owner, ()) if not call.future.done()]
        self._hanging[owner] = [*earlier, *self.abandon(calls)]
        if len(self._hanging[owner]) >= MAX_HANGING:
            self._refused.add(owner)

    def refusal(self, owner: str) -> Fault | None:
        """Return the reason why `owner` is not called any more; None if it is."""
        if owner not in self._refused:
            return None
        hint = "correct it, raise its `timeout`, or set `isolate: process` for an evaluator, which can then be ended"
        problem = f"it is not called any more: {MAX_HANGING} of its calls ran past their time limit and still hang"
        return Fault("hanging", f"{problem}; {hint}")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The limits of the calls of one evaluator or deriver, `owner`: seconds for each, or None, and their threads."""

    owner: str
    seconds: float | None
    threads: CallThreads

    def excess(self, inputs: Any) -> TimeLimitExceeded | Fault:
        """Return the error that takes the place of the answer of a call with these inputs."""
        problem = f"{self.owner!r} ran past its time limit of {self.seconds:g} s"
        if any(client.is_waiting for client in clients_of(inputs)):
            return Fault(TIME_LIMIT, f"{problem} while it waited for the model; raise its `timeout`")
        return TimeLimitExceeded(problem)

    async def call_in_thread(
        self, call: Callable[[Any], Result], inputs: Sequence[Any], finish: Callable[[Any], None]
    ) -> list[Result]:
        """Return the results of `call` for all inputs, made one after another in a thread; in others after a hang.

        The input of a call that hangs is given to `finish`.
        """
        results: list[Result] = []
        while len(results) < len(inputs):
            if (refusal := self.threads.refusal(self.owner)) is not None:
                return results + [(refusal, False)] * (len(inputs) - len(results))
            results += await self._call_until_hanging(_CallSequence(call, inputs[len(results) :], self))
            if not results[-1][1]:
                finish(inputs[len(results) - 1])
        return results

    async def _call_until_hanging(self, sequence: "_CallSequence") -> list[Result]:
        with self.threads.record_calls() as made:
            future = asyncio.get_running_loop().run_in_executor(self.threads, copy_context().run, sequence.run)
        try:
            while not (await asyncio.wait({future}, timeout=sequence.seconds_left()))[0]:
                if sequence.stop_if_late():
                    self.threads.give_up(self.owner, made)
                    return sequence.results
            future.result()
            return sequence.results
        finally:
            sequence.stop()
            future.cancel()
            self.threads.abandon(made)

    async def await_result(self, result: Awaitable[Any], inputs: Any) -> Any:
        """Return the awaited result, or `excess`; the work is cancelled then, and left alone if it goes on."""
        with self.threads.record_calls() as made:
            task = asyncio.ensure_future(_timed(result))
        try:
            if (await asyncio.wait({task}, timeout=self.seconds))[0]:
                value, seconds = await task
                if self.seconds is None or seconds < self.seconds:  # one that never awaits is not cancelled
                    return value
            return self.excess(inputs)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=_CANCELLING)
                self.threads.give_up(self.owner, made)
            if not task.done():  # it caught the cancellation: asyncio would wait for it when the loop is closed
                asyncio._unregister_task(task)
                LEFT_ALONE.append(task)


async def _timed(result: Awaitable[T]) -> tuple[T, float]:
    """Return the awaited result, and the seconds since its first step."""
    began = monotonic()
    return await result, monotonic() - began


@dataclass(slots=True, eq=False)
class _CallSequence:
    """Calls with `inputs`, one after another in a thread; `results` are those of the calls that ended."""

    call: Callable[[Any], Result]
    inputs: Sequence[Any]
    limits: CallLimits
    results: list[Result] = field(default_factory=list)
    _began: float = math.inf
    _is_stopped: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        """Make the calls until the sequence is stopped. A result that comes late is replaced by `excess`."""
        for each in self.inputs:
            with self._lock:
                if self._is_stopped:
                    return
                self._began = monotonic()
            result = self.call(each)
            with self._lock:
                if self._is_stopped:
                    return
                self.results.append((self.limits.excess(each), False) if self._seconds_left() == 0.0 else result)
                self._began = math.inf

    def stop(self) -> None:
        """Make no further call, and drop the result of the call under way."""
        with self._lock:
            self._is_stopped = True

    def stop_if_late(self) -> bool:
        """Return true if the call under way is late; then stop, with `excess` as the last result."""
        with self._lock:
            self._is_stopped = self._seconds_left() == 0.0
            if self._is_stopped:
                self.results.append((self.limits.excess(self.inputs[len(self.results)]), False))
            return self._is_stopped

    def seconds_left(self) -> float | None:
        """Return the seconds until the call under way is late; None without a limit, and all before it begins."""
        with self._lock:
            return self._seconds_left()

    def _seconds_left(self) -> float | None:
        limit = self.limits.seconds
        if limit is None or self._began == math.inf:
            return limit
        return max(0.0, limit - (monotonic() - self._began))
