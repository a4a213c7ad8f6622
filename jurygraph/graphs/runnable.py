"""A jury in other people's graphs: as a langchain-core Runnable, as a node of a StateGraph, and as a stream of events.

A run in here is isolated from the graph around it: that graph's callbacks, checkpointer and clients do not reach the
judges. Its callbacks get the events of the scoring as custom events, which hold no key of a model.
"""

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from typing import Any

from langchain_core.callbacks import adispatch_custom_event
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.config import get_stream_writer

from jurygraph.errors import InputError
from jurygraph.graphs.events import Event, EventListener, RewardGiven, to_dict
from jurygraph.graphs.groups import Group
from jurygraph.messages import describe_type, did_you_mean
from jurygraph.schema import Response, Task, Trace
from jurygraph.schema.frozen_model import JsonFields, ReadOnlyFields

_RUNNABLE_INPUT_KEYS = ("task", "responses", "plan", "step", "phase")
_RUNNABLE_INPUT_HINT = (
    'give {"task": …, "responses": […]}, with "plan", "step" and "phase" if they matter'
)

ScoreEventStreamer = Callable[[Group], AsyncGenerator[Event, None]]
"""Scores a group and yields what happens; the last events are the rewards of its responses, in their order."""
IterateAsyncEvents = Callable[[AsyncGenerator[Event, None]], Iterator[Event]]
"""Yields what an asynchronous generator yields, for callers without an event loop."""
RunCoroutine = Callable[[Coroutine[Any, Any, list[Trace]]], list[Trace]]
"""Runs a coroutine, for callers without an event loop."""
WriteEvent = Callable[[dict[str, Any]], object]
"""Writes an event into the stream of the graph around; None where there is none."""


class JuryRunnable(RunnableLambda[Mapping[str, Any], list[Trace]]):
    """A jury as a Runnable: from `{"task": …, "responses": […]}` to the traces; `stream` yields events instead.

    A task is a `Task` or a mapping; a response a `Response`, a mapping, a text or a message. Where the jury records, a
    `step` and a `phase` name the group. In a chain that is streamed, what follows gets the traces. `invoke` raises
    InputError for another input, and the errors of `Jury.score`.
    """

    def __init__(
        self, score: ScoreEventStreamer, iterate_events: IterateAsyncEvents, run: RunCoroutine
    ) -> None:
        super().__init__(self._run_jury, self._arun_jury, name="jury")
        self._score = score
        self._iterate = iterate_events
        self._run = run

    def stream(
        self,
        input: ReadOnlyFields,  # noqa: A002 - as langchain-core names it
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[Any]:
        """Yield the events of the scoring."""
        return self._iterate(self._stream_run_events(input, config))

    async def astream(
        self,
        input: ReadOnlyFields,  # noqa: A002 - as langchain-core names it
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        async with aclosing(self._stream_run_events(input, config)) as events:
            async for event in events:
                yield event

    def _stream_run_events(
        self, content: ReadOnlyFields, config: RunnableConfig | None
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of a run that callbacks see as they see `ainvoke`."""
        return stream_events(lambda listener: self.ainvoke(content, config, listener=listener))

    def as_node(
        self, task: str, responses: str, traces: str, step: str | None, plan: str | None
    ) -> RunnableLambda[Any, JsonFields]:
        """Return the node that `Jury.as_node` describes."""

        keys = {"task": task, "responses": responses, "step": step}

        def read_state(state: Any) -> JsonFields:
            return {
                name: _get_state_value(state, key) for name, key in keys.items() if key is not None
            }

        def to_update(judged: list[Trace]) -> JsonFields:
            plans = {} if plan is None else {plan: judged[0].plan}
            return {traces: judged, **plans}

        def judge(state: Any, config: RunnableConfig) -> JsonFields:
            write = get_stream_writer()
            return to_update(self.invoke(read_state(state), config, write=write))

        async def ajudge(state: Any, config: RunnableConfig) -> JsonFields:
            write = get_stream_writer()
            return to_update(await self.ainvoke(read_state(state), config, write=write))

        return RunnableLambda(judge, ajudge, name=f"{self.name} node")

    def _run_jury(
        self, content: ReadOnlyFields, config: RunnableConfig, write: WriteEvent | None = None
    ) -> list[Trace]:
        return self._run(self._arun_jury(content, config, write))

    async def _arun_jury(
        self,
        content: ReadOnlyFields,
        config: RunnableConfig,
        write: WriteEvent | None = None,
        listener: EventListener | None = None,
    ) -> list[Trace]:
        traces = []
        async with aclosing(self._score(read_runnable_input(content))) as events:
            async for event in events:
                fields = to_dict(event)
                if write is not None:
                    write(fields)
                await adispatch_custom_event(event.event, fields, config=config)
                if listener is not None:
                    listener(event)
                if isinstance(event, RewardGiven):
                    traces.append(event.trace)
        return traces


async def stream_events(
    score: Callable[[EventListener], Any],
) -> AsyncGenerator[Event, None]:
    """Yield the events that `score` gives to its listener, while it runs; then raise its error, if it has one."""
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    scoring = asyncio.ensure_future(score(events.put_nowait))
    scoring.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        await scoring
    finally:
        scoring.cancel()


def read_runnable_input(value: Any) -> Group:
    """Return the input of a Runnable as a group. Raises InputError that names the key."""
    if not isinstance(value, Mapping):
        raise InputError(f"input: is {describe_type(value)}; {_RUNNABLE_INPUT_HINT}")
    for key in value:
        if key not in _RUNNABLE_INPUT_KEYS:
            hint = did_you_mean(str(key), _RUNNABLE_INPUT_KEYS) or _RUNNABLE_INPUT_HINT
            raise InputError(f"input: unknown key {key!r}; {hint}")
    for key in ("task", "responses"):
        if key not in value:
            raise InputError(f"input: {key!r} is missing; {_RUNNABLE_INPUT_HINT}")
    task = value["task"]
    if isinstance(task, Mapping):
        task = Task(**task)
    responses = value["responses"]
    if isinstance(responses, Sequence) and not isinstance(responses, str):
        responses = [_read_response(item) for item in responses]
    return Group(**{**value, "task": task, "responses": responses})


def _read_response(item: Any) -> Response | str:
    if isinstance(item, Mapping):
        return Response(**item)
    if isinstance(item, BaseMessage):
        return Response(messages=[item])
    response: Response | str = item
    return response


def _get_state_value(state: Any, key: str) -> Any:
    """Return a value of a graph's state, which may be a mapping, or a model or dataclass with fields."""
    try:
        return state[key] if isinstance(state, Mapping) else getattr(state, key)
    except (KeyError, AttributeError):
        raise InputError(f"state: has no {key!r}; name the keys in `as_node`") from None
