"""Resolve the names of `tools` in a config: jurygraph's own, plug-ins, and dotted paths or objects of the user."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from jurygraph.agents.functions import is_runnable
from jurygraph.agents.registry import (
    BUILTIN_TOOL_PATHS,
    add_settings_to_version,
    find_target,
    load_components_by_name,
    make_instance,
    prefix_config_errors,
)
from jurygraph.agents.roles import Deriver, Evaluator
from jurygraph.errors import ConfigError
from jurygraph.schema import DeriverUse, EvaluatorUse, ToolUse, digest_of
from jurygraph.schema.lookup import ToolName
from jurygraph.tools.custom import FunctionTool, RunnableTool, is_langchain_tool
from jurygraph.tools.tool import Tool, ToolSet

_TOOL_NAME_ADAPTER = TypeAdapter(ToolName)


def attach_toolsets_to_evaluators(
    key: str,
    uses: Iterable[EvaluatorUse | DeriverUse],
    owner_by_name: Mapping[str, Evaluator | Deriver],
) -> None:
    """Give evaluators or derivers their tools. Raises ConfigError with the key of a faulty one."""
    for index, use in enumerate(uses):
        if not use.tools:
            continue
        owner = owner_by_name[use.known_as]
        if not owner.uses_model:
            raise ConfigError(
                f"{key}[{index}].tools: {use.known_as!r} asks no model; leave them out"
            )
        with prefix_config_errors(f"{key}[{index}]."):
            tools = load_tools(use.tools)
        owner.toolset = ToolSet(tools, use.max_steps, use.max_tokens)


def load_tools(uses: Iterable[ToolUse]) -> dict[str, Tool]:
    """Return the tools of an evaluator by name, in their order. Raises ConfigError with the index of a faulty one."""
    return load_components_by_name("tools", load_tool, uses)


def load_tool(use: ToolUse) -> Tool:
    """Return the tool that the config names, set up with its params. Raises ConfigError if there is none."""
    tool = _make_tool(use, find_target("tool", use))
    is_builtin = use.target is None and use.use in BUILTIN_TOOL_PATHS
    if is_builtin and use.deterministic is not None:
        raise ConfigError(
            f"`deterministic` is for tools of your own, and {use.use!r} is known to be; leave it out"
        )
    for attribute in ("description", *(() if use.name else ("name",))):
        if not isinstance(getattr(tool, attribute, None), str):
            raise ConfigError(f"{use.use!r} has no `{attribute}`; set it in its class")
    tool.name = _check_name(use.name or tool.name)
    if use.params:
        tool.version += f" with {digest_of(use.params)[:12]}"
    if use.deterministic is not None:
        tool.deterministic = use.deterministic
    tool.timeout = use.timeout or tool.timeout
    return tool


def _make_tool(use: ToolUse, target: Any) -> Tool:
    kind: type = target if inspect.isclass(target) else type(target)
    if issubclass(kind, Tool):
        tool: Tool = make_instance("tool", use.use, target, use.params, (Tool,))
        if target is use.target:
            add_settings_to_version(tool, target)
        return tool
    if inspect.isroutine(target):
        return FunctionTool(target, _check_name(use.name or target.__name__), use.params)
    if is_runnable(target):
        if use.params:
            raise ConfigError(
                f"tool {use.use!r} is a Runnable and takes no params; bind them to it instead"
            )
        return RunnableTool(target, use.name or _name_of_runnable(use, target))
    raise ConfigError(
        f"{use.use!r} is no tool: it is a {kind.__name__}; write a function with a docstring, subclass "
        "jurygraph.Tool, or name a LangChain tool or a compiled graph"
    )


def _name_of_runnable(use: ToolUse, target: Any) -> str:
    """Return the name of a LangChain tool or a graph, which by itself is called LangGraph: that says nothing."""
    if is_langchain_tool(target):
        return str(target.name)
    if use.target is None:
        return use.use.replace(":", ".").rpartition(".")[2]
    raise ConfigError(
        f"{use.use!r} is a graph without a name; add `name`, by which the model calls it"
    )


def _check_name(name: str) -> str:
    try:
        return _TOOL_NAME_ADAPTER.validate_python(name)
    except ValidationError:
        raise ConfigError(
            f"{name!r} is no name of a tool; set `name` to letters, digits, _ and -, 64 at most"
        ) from None
