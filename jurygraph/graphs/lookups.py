"""Calls of tools that a judge makes: what each becomes, whatever the judge asks for and whatever the tool does.

A tool that hangs is given up, one that raises has failed, a long result is cut. Each is an outcome that the judge is
told, and none ends the judging or gives credit.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

from jurygraph.errors import RUN_ENDING, InputError, TimeLimitExceeded
from jurygraph.graphs.answers import result_or_error
from jurygraph.graphs.context import GraphContext
from jurygraph.graphs.time_limits import CallTimeLimits, new_contextvars_context
from jurygraph.graphs.user_calls import UserCalls
from jurygraph.messages import Problem, suggest_known_name
from jurygraph.models.request import Fault, StoredLookup, ToolResult
from jurygraph.safety.gates import find_stopping_gate
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import Response, TaskView, ToolCall, digest_of
from jurygraph.schema.frozen_model import map_strings
from jurygraph.schema.lookup import LookupOutcome
from jurygraph.schema.task import chat_to_prompt_text, query_to_text
from jurygraph.schema.verdict import ResponseGate
from jurygraph.tools.documents import TextDocument
from jurygraph.tools.result import ROW_PREFIX_PATTERN
from jurygraph.tools.tool import Tool, ToolError, ToolInput, ToolSet
from jurygraph.tools.workspace import Workspace, open_workspace

OUTLINE_THRESHOLD_CHARACTERS = 20_000
"""Characters above which a judge that can read by a tool is shown an outline of a text."""
MAX_TOOL_RESULT_CHARACTERS = 8_000
"""The most characters of a result that a judge is shown."""
MISSING_WORKSPACE_FAILURE_KIND = "workspace"
"""The kind of failure where a workspace is not there."""
_MAX_MESSAGE_LENGTH = 500
_WITHHELD_RESULT_MESSAGE = "the result speaks to whoever judges, and is withheld"
_MAX_REDACTED_CHARACTERS = 2 * MAX_TOOL_RESULT_CHARACTERS  # a secret may begin before the cut


class ToolOutcome(NamedTuple):
    """An outcome of a call: the text that is shown, and the number of characters of the whole result."""

    outcome: LookupOutcome
    text: str
    length: int


@dataclass(frozen=True)
class Toolbox:
    """The tools of one judgement, by name; they see its view of the task, and its responses."""

    toolset: ToolSet
    task: TaskView
    responses: tuple[Response, ...]
    context: GraphContext

    def with_responses(self, responses: Sequence[Response]) -> Self:
        """Return one whose tools number these responses in this order."""
        return replace(self, responses=tuple(responses))

    def outline(self, value: Any) -> Any:
        """Return a variable of a prompt with an outline in the place of each long text that a tool can read."""
        return map_strings(value, lambda text: self.outlines.get(text, text))

    @cached_property
    def outlines(self) -> Mapping[str, str]:
        """Return what is shown of each text that is too long, where a tool reads the rest, by the text."""
        if not self.reads_documents:
            return {}
        document_by_text = {chat_to_prompt_text(self.task.query): "query"}
        for number, passage in enumerate(self.task.context or (), start=1):
            document_by_text[passage.text] = f"context_{number}"
        # last, since a text that is also the response is read by default
        document_by_text |= {response.text: "" for response in self.responses}
        return {
            text: TextDocument.from_text(text).outline(document)
            for text, document in document_by_text.items()
            if len(text) > OUTLINE_THRESHOLD_CHARACTERS
        }

    @property
    def reads_documents(self) -> bool:
        return any(tool.reads_documents for tool in self.toolset.tools.values())

    @property
    def sources(self) -> str:
        """Return the digest of what the tools see; of workspaces the names count, as their files may be many."""
        contents = [response.content_digest for response in self.responses]
        return digest_of([self.task.digest, contents])

    @cached_property
    def opened(self) -> "asyncio.Task[ToolInput]":
        """The input of all tools, whose parts none can change for others, from when it is first needed.

        A replay, which calls no tool, needs no workspace. Workspaces lie below the config's folder of
        them, without one below the current folder. Raises `Fault` for one
        that is not there.
        """
        return asyncio.create_task(self._open())

    async def _open(self) -> ToolInput:
        try:
            workspaces = await asyncio.to_thread(self._open_workspaces)
        except InputError as error:
            raise Fault(MISSING_WORKSPACE_FAILURE_KIND, str(error)) from None
        return ToolInput(deepcopy(self.task), deepcopy(self.responses), workspaces)

    def _open_workspaces(self) -> tuple[Workspace | None, ...]:
        folder = self.context.config.workspaces
        return tuple(
            None if response.workspace is None else open_workspace(folder, response.workspace)
            for response in self.responses
        )

    def to_tool_result(
        self, call: ToolCall, stored_lookup: StoredLookup, number: int
    ) -> ToolResult:
        """Return the result of a call as it may be quoted; a call without a result gives nothing to quote."""
        tool = self.toolset.tools.get(call.name)
        arguments = None if tool is None else tool.validate_arguments(call.arguments)
        if (
            tool is None
            or isinstance(arguments, Problem)
            or stored_lookup.lookup.outcome not in ("ok", "cut")
        ):
            return ToolResult(number, "", None)
        return ToolResult(
            number, tool.quotable(stored_lookup.result), tool.response_number_of_call(arguments)
        )

    async def run(self, call: ToolCall, redactor: Redactor, is_gated: bool) -> ToolOutcome:
        """Return what becomes of a call. Raises the errors that end a run.

        If it `is_gated`, a result or message that speaks to whoever judges is withheld.
        """
        outcome, text = await self._execute_tool_call(call)
        redacted_text = redactor.redact_text(
            text[:_MAX_REDACTED_CHARACTERS].encode("utf-8", "replace").decode()
        )
        is_truncated_result = (
            len(redacted_text) > MAX_TOOL_RESULT_CHARACTERS or len(text) > _MAX_REDACTED_CHARACTERS
        )
        redacted_text = redacted_text[:MAX_TOOL_RESULT_CHARACTERS]
        is_from_tool = outcome in ("ok", "refused", "error")
        if is_gated and is_from_tool and self._addresses_judge(call, redacted_text):
            return ToolOutcome("withheld", _WITHHELD_RESULT_MESSAGE, len(text))
        if is_truncated_result and outcome == "ok":
            outcome = "cut"
        return ToolOutcome(outcome, redacted_text, len(text))

    def _addresses_judge(self, call: ToolCall, result: str) -> bool:
        """Return whether words that no gate has read speak to whoever judges, where a gate stops responses that do."""
        gate: ResponseGate = "addresses-grader"
        tool = self.toolset.tools[call.name]
        arguments = tool.validate_arguments(call.arguments)
        if gate not in self.context.config.safety.gates or not tool.needs_gate(arguments):
            return False
        query = query_to_text(self.task.query)
        # a gate expects some orders at the beginning of a line, not after the number of a row
        words = ROW_PREFIX_PATTERN.sub(r"\g<0>\n", result)
        found = find_stopping_gate(words, (gate,), query=query, reference=self.task.reference)
        return found is not None

    async def _execute_tool_call(self, call: ToolCall) -> tuple[LookupOutcome, str]:
        tool = self.toolset.tools.get(call.name)
        if tool is None:
            return (
                "unknown-tool",
                f"there is no tool of this name; {suggest_known_name(call.name, self.toolset.tools)}",
            )
        if call.arguments is None:
            return "invalid-arguments", "the arguments are not the JSON of an object"
        arguments = tool.validate_arguments(call.arguments)
        if isinstance(arguments, Problem):
            where = f"{arguments.field}: " if arguments.path else ""
            return "invalid-arguments", f"{where}{arguments}"
        result = await self._call_tool(tool, partial(tool.run, await self.opened, arguments))
        if isinstance(result, str):
            return "ok", result
        if isinstance(result, RUN_ENDING):
            raise result
        if isinstance(result, ToolError):
            return "refused", str(result)[:_MAX_MESSAGE_LENGTH]
        if isinstance(result, Fault):
            return "not-called", str(result)
        if isinstance(result, TimeLimitExceeded):
            return "time-limit", str(result)
        if isinstance(result, BaseException):
            message = result_or_error(lambda: str(result))  # the user's code, too
            words = message if isinstance(message, str) else "it has no message"
            return "error", f"{type(result).__name__}: {words}"[:_MAX_MESSAGE_LENGTH]
        return "error", f"the tool returned {type(result).__name__}, and no text"

    async def _call_tool(self, tool: Tool, run: Callable[[], Any]) -> Any:
        """Return the result of a tool, or the exception in its place, within its limit of time."""
        limits = CallTimeLimits(f"tool {tool.name}", tool.timeout, self.context.threads)
        user_calls = UserCalls(lambda _: run(), [()], limits)
        new_contextvars_context(self.context.config.langsmith).run(user_calls.start)
        await asyncio.gather(*user_calls.tasks, return_exceptions=True)
        (answer,) = user_calls.collect_answers()
        return answer
