"""The base class of tools, and what a tool may see: the view and the responses that its judge sees, and no more.

A tool returns text. What it cannot do is a `ToolError`, whose message goes to the judge; any other exception, a tool
that hangs and a result that is too long are outcomes, too, and none of them ends the judging.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict

from jurygraph.agents.roles import Configurable
from jurygraph.display import ShortRepr
from jurygraph.errors import ToolError as ToolError
from jurygraph.messages import validate
from jurygraph.schema import Response, TaskView, ToolSpec
from jurygraph.schema.frozen_model import FrozenModel, JsonFields
from jurygraph.tools.result import mask_tool_words
from jurygraph.tools.workspace import Workspace


class ToolArguments(FrozenModel):
    """Base class of the arguments of a tool, and none by itself; the docstring below a field is for the model."""

    model_config = ConfigDict(use_attribute_docstrings=True)


@dataclass(frozen=True, slots=True, repr=False)
class ToolInput(ShortRepr):
    """All that a tool may see: the judge's `task` view, its `responses` without names and labels, and their files.

    There is one response in scope `response`, two in `pair`, and all of them in `group`. A response without files has
    None as its workspace.
    """

    task: TaskView
    responses: tuple[Response, ...]
    workspaces: tuple[Workspace | None, ...] = ()

    def response_index_of_number(self, number: int) -> int:
        """Return the index of the response with this number, from 1. Raises ToolError if there is none."""
        if number > len(self.responses):
            raise ToolError(f"the last response is number {len(self.responses)}")
        return number - 1


@dataclass(frozen=True)
class ToolSet:
    """The tools of one evaluator or deriver, by name, and the limits of an investigation; None is the default."""

    tools: "Mapping[str, Tool]"
    max_steps: int | None = None
    max_tokens: int | None = None

    @cached_property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The records of all tools; each investigation needs them, and a schema takes .3 ms to make."""
        return tuple(tool.spec for tool in self.tools.values())


class Tool(Configurable, ABC):
    """A tool: set `name`, `description` and `Arguments`, a pydantic model, and implement `run`.

    Params of the config are those of `Params`, as for evaluators. A result never repeats words of the arguments: else a
    judge could search for what it wants to quote.

    `version` is part of every question that names the tool, so that another version asks anew. A tool is
    `deterministic` if equal arguments give equal results as long as nothing that it reads has changed; its calls are
    then made again by `verify --deep`. `reads_response` says that its results are words of the response, which may be
    quoted as such; `response_number_of_call` says for which arguments. A judge of which a tool `reads_documents` is
    shown an outline of long texts. `timeout` is its limit in seconds.
    """

    description: str
    Arguments: type[BaseModel] = ToolArguments
    deterministic = True
    reads_response = False
    reads_documents = False
    timeout: float = 10.0

    @property
    def parameters(self) -> JsonFields:
        """Return the JSON schema of the arguments, as models are shown it."""
        schema = self.Arguments.model_json_schema()
        schema.pop("title", None)
        schema.pop("description", None)
        for field in schema.get("properties", {}).values():
            field.pop("title", None)
        return schema

    def validate_arguments(self, arguments: Any) -> Any:
        """Return the arguments of a call as `run` gets them, or the `Problem` of those that are not of its schema."""
        return validate(self.Arguments, arguments)

    @property
    def spec(self) -> ToolSpec:
        """Return what a plan records of the tool."""
        return ToolSpec(
            name=self.name,
            version=self.version,
            description=self.description,
            parameters=self.parameters,
            deterministic=self.deterministic,
        )

    def task_file_digests(self, task: TaskView) -> Mapping[str, str]:
        """Return the SHA-256 of each file that the task gives the tool to read, by the field that names it.

        A plan records them. Raises PlanError if what the task gives the tool is wrong.
        """
        return {}

    def response_number_of_call(self, arguments: Any) -> int | None:
        """Return the number, from 1, of the response whose words the result has; None for other words."""
        return getattr(arguments, "response", 1) if self.reads_response else None

    def needs_gate(self, arguments: Any) -> bool:
        """Return whether a gate has to read the result of such a call, since none has read its words before."""
        return True

    def quotable(self, result: str) -> str:
        """Return a result with a mask of the same length for what are the tool's own words, and may not be quoted."""
        return result

    def close(self) -> None:
        """Release resources. Called when the jury is closed; may be called more than once."""

    @abstractmethod
    def run(self, inputs: ToolInput, arguments: Any) -> str | Awaitable[str]:
        """Return the result of a call; a plain function runs in a thread. Raises `ToolError` for what cannot be."""


class RowTool(Tool):
    """Base class of the tools whose results are headings and rows such as `12| words`, with words of the response."""

    version = "1"
    reads_response = True

    def quotable(self, result: str) -> str:
        return mask_tool_words(result)
