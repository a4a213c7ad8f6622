"""A jury in other people's graphs: as a langchain-core Runnable, as a node of a StateGraph, and as a stream of events.

A run in here is isolated from the graph around it: that graph's callbacks, checkpointer and clients do not reach the
judges. Its callbacks get the events of the scoring as custom events, which hold no key of a model.
"""

import asyncio
from collections.abc import (
    AsyncGenerator,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from functools import partial
from typing import Any

from langchain_core.callbacks import adispatch_custom_event
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.graph import Edge, Graph, Node
from langgraph.config import get_stream_writer
from pydantic import BaseModel, create_model

from jurygraph.decision.recipe import component_sources, component_weights
from jurygraph.errors import InputError
from jurygraph.graphs.context import GraphContext
from jurygraph.graphs.events import EventListener, JuryEvent, RewardGiven, to_dict
from jurygraph.graphs.groups import Group
from jurygraph.messages import describe_type, did_you_mean
from jurygraph.schema import Response, Task, Trace
from jurygraph.schema.frozen_model import JsonFields, ReadOnlyFields

_RUNNABLE_INPUT_FIELDS: JsonFields = {
    **dict.fromkeys(("task", "responses"), (Any, ...)),
    **dict.fromkeys(("plan", "step", "phase"), (Any, None)),
}
"""The keys of the input, with a default for those that may be missing."""
_RUNNABLE_INPUT_HINT = (
    'give {"task": …, "responses": […]}, with "plan", "step" and "phase" if they matter'
)

ScoreGroup = Callable[[Group, EventListener], Coroutine[Any, Any, list[Trace]]]
"""Scores a group, and gives the listener what happens; the last events are the rewards, in the order of responses."""
WriteEvent = Callable[[dict[str, Any]], object]
"""Writes an event into the stream of the graph around; None where there is none."""


class JuryRunnable(RunnableLambda[Mapping[str, Any], list[Trace]]):
    """A jury as a Runnable: from `{"task": …, "responses": […]}` to the traces; `stream` yields events instead.

    A task is a `Task` or a mapping; a response a `Response`, a mapping, a text or a message. Where the jury records, a
    `step` and a `phase` name the group. In a chain that is streamed, what follows gets the traces. `invoke` raises
    InputError for another input, and the errors of `Jury.score`.
    """

    def __init__(
        self,
        context: GraphContext,
        score: ScoreGroup,
        iterate_events: Callable[[AsyncGenerator[JuryEvent, None]], Iterator[JuryEvent]],
        run: Callable[[Coroutine[Any, Any, Any]], list[Trace]],
    ) -> None:
        """Make it of what a jury scores with; `iterate_events` and `run` are for callers without an event loop."""
        super().__init__(self._run_jury, self._arun_jury, name="jury")
        self._context = context
        self._score = score
        self._iterate = iterate_events
        self._run = run

    def __repr__(self) -> str:
        return f"JuryRunnable({[*self._context.evaluators]})"

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        return create_model("JuryInput", **_RUNNABLE_INPUT_FIELDS)

    def get_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Return the jury as a drawing, however deep `xray` looks: evaluators, components with weights, reward."""
        records = {name: item.record for name, item in self._context.evaluators.items()}
        recipe = self._context.config
        sources = component_sources(recipe, records)
        weights = component_weights(recipe, list(sources))
        edges = [Edge("responses", f"evaluator {name}") for name in records]
        for name, evaluators in sources.items():
            component = f"component {name}"
            edges += [Edge(f"evaluator {evaluator}", component) for evaluator in evaluators]
            gates = [gate.kind for gate in recipe.gates if gate.component == name]
            label = ", gate: ".join([f"weight {weights[name]:g}", *gates])
            edges.append(Edge(component, "reward", label))
        graph = Graph(edges=edges)
        for edge in edges:
            for name in edge[:2]:
                graph.nodes[name] = Node(name, name, None, None)
        return graph

    # events are not what `invoke` returns, as langchain-core has it
    def stream(  # type: ignore[override]
        self,
        input: ReadOnlyFields,  # noqa: A002 - as langchain-core names it
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[JuryEvent]:
        """Yield the events of the scoring."""
        return self._iterate(self.astream(input, config))

    def astream(  # type: ignore[override]
        self,
        input: ReadOnlyFields,  # noqa: A002 - as langchain-core names it
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[JuryEvent, None]:
        """Return the events of a run that callbacks see as they see `ainvoke`."""
        return stream_events(lambda listener: self.ainvoke(input, config, listener=listener))

    def as_node(
        self, traces: str, plan: str | None, **input_keys: str | None
    ) -> RunnableLambda[Any, JsonFields]:
        """Return the node that `Jury.as_node` describes; the `input_keys` are those of the input in the state."""

        def read_state(state: Any) -> JsonFields:
            return {
                name: _get_state_value(state, key)
                for name, key in input_keys.items()
                if key is not None
            }

        def to_update(judged: list[Trace]) -> JsonFields:
            update: JsonFields = {traces: judged}
            if plan is not None:
                update[plan] = judged[0].plan
            return update

        def judge(state: Any, config: RunnableConfig) -> JsonFields:
            return to_update(self.invoke(read_state(state), config, write=get_stream_writer()))

        async def ajudge(state: Any, config: RunnableConfig) -> JsonFields:
            judged = await self.ainvoke(read_state(state), config, write=get_stream_writer())
            return to_update(judged)

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
        scoring = partial(self._score, read_runnable_input(content))
        async with aclosing(stream_events(scoring)) as events:
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
) -> AsyncGenerator[JuryEvent, None]:
    """Yield the events that `score` gives to its listener, while it runs; then raise its error, if it has one."""
    events: asyncio.Queue[JuryEvent | None] = asyncio.Queue()
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
        if key not in _RUNNABLE_INPUT_FIELDS:
            hint = did_you_mean(str(key), _RUNNABLE_INPUT_FIELDS) or _RUNNABLE_INPUT_HINT
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


def _read_response(item: Any) -> Any:
    """Return a mapping or a message as a Response; anything else as it is, for the group to accept or refuse."""
    if isinstance(item, Mapping):
        return Response(**item)
    if isinstance(item, BaseMessage):
        return Response(messages=[item])
    return item


def _get_state_value(state: Any, key: str) -> Any:
    """Return a value of a graph's state, which may be a mapping, or a model or dataclass with fields."""
    try:
        return state[key] if isinstance(state, Mapping) else getattr(state, key)
    except (KeyError, AttributeError):
        keys = sorted(state if isinstance(state, Mapping) else getattr(state, "__dict__", ()))
        raise InputError(
            f"state: has no {key!r}, only {keys}; name its keys in `as_node`"
        ) from None
