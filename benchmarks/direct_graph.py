"""The nodes of a compiled graph without LangGraph: what is left of its cost is that of the nodes."""

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, get_type_hints

from langgraph.graph import END, START
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command


class DirectGraph:
    """Calls the nodes of a compiled graph in its order, those of a superstep concurrently, and updates a dict."""

    def __init__(self, graph: CompiledStateGraph[Any, Any, Any, Any]) -> None:
        builder = graph.builder
        self._nodes = {name: _call_of(node.runnable.afunc) for name, node in builder.nodes.items()}  # type: ignore[union-attr]
        self._edges = builder.edges
        self._entries = [entry.path.afunc for entry in builder.due_branch_names[START].values()]  # type: ignore[attr-defined]
        hints = get_type_hints(builder.state_schema, include_extras=True)
        self._reducers = {
            name: hint.__metadata__[0]
            for name, hint in hints.items()
            if hasattr(hint, "__metadata__")
        }

    async def ainvoke(
        self, start: Mapping[str, Any], context: Any, version: str = "v1", **_: Any
    ) -> Any:
        """Return the last state, in the form that the version of LangGraph's interface has for it."""
        state, runtime = dict(start), Runtime(context=context)
        names = self._after([START]) or [await enter(state, runtime) for enter in self._entries]
        while names and names != [END]:  # a sequence ends without an edge to END
            results = await asyncio.gather(*(self._nodes[name](state, runtime) for name in names))
            commands = [result for result in results if isinstance(result, Command)]
            goto = sorted({name for command in commands for name in _as_list(command.goto)})
            for result in results:
                self._update(
                    state, (result.update or {}) if isinstance(result, Command) else result
                )
            names = goto or self._after(names)
        return state if version == "v1" else SimpleNamespace(value=state)

    def _after(self, names: Sequence[str]) -> list[str]:
        return sorted({end for start, end in self._edges if start in names})

    def _update(self, state: dict[str, Any], update: Mapping[str, Any]) -> None:
        for name, value in update.items():
            reduce = self._reducers.get(name) if name in state else None
            state[name] = value if reduce is None else reduce(state[name], value)


def _call_of(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Return a node's function with two parameters, also if it takes the state alone."""
    if len(inspect.signature(function).parameters) == 2:
        return function
    return lambda state, runtime: function(state)


def _as_list(goto: Any) -> list[str]:
    return [goto] if isinstance(goto, str) else list(goto)
