"""Calls of tools that a judge makes: what each becomes, whatever the judge asks for and whatever the tool does.

A tool that hangs is given up, one that raises has failed, a long result is cut. Each is an outcome that the judge is
told, and none ends the judging or gives credit.
"""

import asyncio
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from jurygraph.errors import RUN_ENDING, InputError, TimeLimitExceeded
from jurygraph.graphs.answers import catch_errors
from jurygraph.graphs.time_limits import CallLimits, CallThreads, fresh_context
from jurygraph.graphs.user_calls import UserCalls
from jurygraph.messages import Problem, did_you_mean, validate
from jurygraph.models.request import Fault
from jurygraph.safety.gates import stopping_gate
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import Response, TaskView, ToolCall, ToolSpec, digest_of
from jurygraph.schema.lookup import LookupOutcome
from jurygraph.schema.task import query_text
from jurygraph.schema.verdict import ResponseGate
from jurygraph.tools.tool import Tool, ToolError, ToolInput

MAX_SHOWN = 20_000
"""Characters above which a judge that can read by a tool is shown an outline of a text."""
MAX_RESULT = 8_000
"""The most characters of a result that a judge is shown."""
WORKSPACE = "workspace"
"""The kind of failure where a workspace is not there."""
_MAX_MESSAGE = 500
_WITHHELD = "the result speaks to whoever judges, and is withheld"
_MAX_REDACTED = 2 * MAX_RESULT  # a secret may begin before the cut


class ToolOutcome(NamedTuple):
    """An outcome of a call: the text that is shown, and the number of characters of the whole result."""

    outcome: LookupOutcome
    text: str
    length: int


@dataclass(frozen=True, slots=True)
class _ToolRun:
    """The input of a tool as `UserCalls` needs it: it has no access to the model."""

    client: None = None


@dataclass(frozen=True)
class Toolbox:
    """The tools of one judgement, by name, and their `specs`; they see its view of the task, and its responses.

    Workspaces lie below `root`, without one below the current folder. If it `withholds_addresses`, a result that speaks
    to the judge is not shown: no gate has read it, unlike a response.
    """

    tools: Mapping[str, Tool]
    specs: tuple[ToolSpec, ...]
    task: TaskView
    responses: tuple[Response, ...]
    root: Path | None
    threads: CallThreads
    langsmith: bool
    withholds_addresses: bool = True

    @cached_property
    def outlines(self) -> Mapping[str, str]:
        """Return what is shown of each text that is too long, where a tool reads the rest, by the text."""
        if not any(tool.reads_documents for tool in self.tools.values()):
            return {}
        from jurygraph.tools.reading import outline  # few judges need it

        texts = [response.text for response in self.responses]
        texts += [passage.text for passage in self.task.context or ()]
        return {text: outline(text) for text in texts if len(text) > MAX_SHOWN}

    @property
    def sources(self) -> str:
        """Return the digest of what the tools see; of workspaces the names count, as their files may be many."""
        contents = [response.content_digest for response in self.responses]
        return digest_of([self.task.digest, contents])

    async def open(self) -> ToolInput:
        """Return the input of all tools. Raises `Fault` for a workspace that is not there."""
        if all(response.workspace is None for response in self.responses):
            return self._input((None,) * len(self.responses))
        try:
            workspaces = await asyncio.to_thread(self._open_workspaces)
        except InputError as error:
            raise Fault(WORKSPACE, str(error)) from None
        return self._input(workspaces)

    def _input(self, workspaces: tuple[Any, ...]) -> ToolInput:
        """Return an input whose parts no tool can change for others."""
        return ToolInput(deepcopy(self.task), deepcopy(self.responses), workspaces)

    def _open_workspaces(self) -> tuple[Any, ...]:
        from jurygraph.tools.workspace import open_workspace  # few judges need it

        return tuple(
            None if response.workspace is None else open_workspace(self.root, response.workspace)
            for response in self.responses
        )

    def response_of(self, call: ToolCall) -> int | None:
        """Return the number of the response whose words the result of a call has; None for other words."""
        tool = self.tools.get(call.name)
        arguments = None if tool is None else validate(tool.Arguments, call.arguments)
        if tool is None or isinstance(arguments, Problem):
            return None
        return tool.response_of(arguments)

    async def run(self, call: ToolCall, inputs: ToolInput, redactor: Redactor) -> ToolOutcome:
        """Return what becomes of a call. Raises the errors that end a run."""
        outcome, text = await self._run(call, inputs)
        shown = redactor.redact_text(text[:_MAX_REDACTED].encode("utf-8", "replace").decode())
        is_cut = len(shown) > MAX_RESULT or len(text) > _MAX_REDACTED
        shown = shown[:MAX_RESULT]
        if outcome == "ok" and self._addresses_judge(call, shown):
            return ToolOutcome("withheld", _WITHHELD, len(text))
        if is_cut and outcome == "ok":
            outcome = "cut"
        return ToolOutcome(outcome, shown, len(text))

    def _addresses_judge(self, call: ToolCall, result: str) -> bool:
        """Return whether a result speaks to whoever judges. Documents are what the prompt shows, behind its gates."""
        if not self.withholds_addresses or self.tools[call.name].reads_documents:
            return False
        query = query_text(self.task.query)
        reference = self.task.reference
        gates: tuple[ResponseGate, ...] = ("addresses-grader",)
        found = stopping_gate(result, gates, query=query, reference=reference)
        return found is not None

    async def _run(self, call: ToolCall, inputs: ToolInput) -> tuple[LookupOutcome, str]:
        tool = self.tools.get(call.name)
        if tool is None:
            hint = did_you_mean(call.name, self.tools) or f"there are {', '.join(self.tools)}"
            return "unknown-tool", f"there is no tool of this name; {hint}"
        if call.arguments is None:
            return "invalid-arguments", "the arguments are not the JSON of an object"
        arguments = validate(tool.Arguments, call.arguments)
        if isinstance(arguments, Problem):
            where = f"{arguments.field}: " if arguments.path else ""
            return "invalid-arguments", f"{where}{arguments}"
        result = await self._call(tool, partial(tool.run, inputs, arguments))
        if isinstance(result, str):
            return "ok", result
        if isinstance(result, RUN_ENDING):
            raise result
        if isinstance(result, ToolError):
            return "refused", str(result)[:_MAX_MESSAGE]
        if isinstance(result, TimeLimitExceeded | Fault):
            return "time-limit", str(result)
        if isinstance(result, BaseException):
            message = catch_errors(lambda: str(result))  # the user's code, too
            words = message if isinstance(message, str) else "it has no message"
            return "error", f"{type(result).__name__}: {words}"[:_MAX_MESSAGE]
        return "error", f"the tool returned {type(result).__name__}, and no text"

    async def _call(self, tool: Tool, run: Any) -> Any:
        """Return the result of a tool, or the exception in its place, within its limit of time."""
        limits = CallLimits(f"tool {tool.name}", tool.timeout, self.threads)
        calls = UserCalls(lambda _: run(), [_ToolRun()], limits)
        fresh_context(self.langsmith).run(calls.start)
        await asyncio.gather(*calls.tasks, return_exceptions=True)
        (answer,) = calls.read()
        return answer
