"""What a tool sees in the tests, and a call of one."""

import asyncio
import inspect
from typing import Any

from jurygraph.messages import Problem
from jurygraph.schema import Response, TaskView, ToolUse
from jurygraph.tools.registry import load_tool
from jurygraph.tools.tool import Tool, ToolError, ToolInput
from jurygraph.tools.workspace import Workspace

VIEW = TaskView(id="t", query="Where is the tea?")


def tool_input(
    *texts: str, task: TaskView = VIEW, workspaces: tuple[Workspace | None, ...] = ()
) -> ToolInput:
    responses = (Response(id=f"r{number}", text=text) for number, text in enumerate(texts or ("",)))
    return ToolInput(task, tuple(responses), workspaces)


def call_tool(tool: Tool | str, inputs: ToolInput, **arguments: Any) -> str:
    """Return the result of a call; arguments are validated as those of a model are."""
    if isinstance(tool, str):
        tool = load_tool(ToolUse(use=tool))
    read_arguments = tool.validate_arguments(arguments)
    if isinstance(read_arguments, Problem):
        raise ToolError(str(read_arguments))
    result: Any = tool.run(inputs, read_arguments)
    if inspect.isawaitable(result):
        result = asyncio.run(await_result(result))
    assert isinstance(result, str)
    assert len(result) <= 8_000
    return result


async def await_result(result: Any) -> Any:
    return await result
