"""The base class of tools, and what a tool may see: the view and the responses that its judge sees, and no more.

A tool returns text. What it cannot do is a `ToolError`, whose message goes to the judge; any other exception, a tool
that hangs and a result that is too long are outcomes, too, and none of them ends the judging.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from jurygraph.display import Displayed
from jurygraph.errors import JurygraphError
from jurygraph.schema import Response, TaskView, ToolSpec
from jurygraph.schema.frozen_model import FrozenModel

if TYPE_CHECKING:
    from jurygraph.tools.workspace import Workspace


class ToolError(JurygraphError):
    """A tool cannot do what was asked, as a file that is not there; the message is for the judge."""


class NoArguments(FrozenModel):
    """The arguments of a tool that takes none."""


@dataclass(frozen=True, slots=True, repr=False)
class ToolInput(Displayed):
    """What a tool may see: the judge's `task` view, its `responses` without names and labels, and their `workspaces`.

    There is one response in scope `response`, two in `pair`, and all of them in `group`. A response without files has
    None as its workspace.
    """

    task: TaskView
    responses: tuple[Response, ...]
    workspaces: "tuple[Workspace | None, ...]" = ()


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The tools of one evaluator or deriver, by name, and the limits of an investigation; None is the default."""

    tools: "Mapping[str, Tool]"
    max_steps: int | None = None
    max_tokens: int | None = None

    def to_fields(self) -> dict[str, Any]:
        """Return the fields of a question or derivation that a plan fixes."""
        return {
            "tools": tuple(tool.spec for tool in self.tools.values()),
            "max_steps": self.max_steps,
            "max_tokens": self.max_tokens,
        }


class Tool(Displayed, ABC):
    """A tool: set `name`, `description` and `Arguments`, a pydantic model, and implement `run`.

    `version` is part of every question that names the tool, so that another version asks anew. A tool is
    `deterministic` if equal arguments give equal results as long as nothing that it reads has changed; its calls are
    then made again by `verify --deep`. `reads_response` says that its results are words of the response, which may be
    quoted as such. A judge of which a tool `reads_documents` is shown an outline of long texts. `timeout` is its limit
    in seconds.
    """

    name: str
    version: str = "1"
    description: str
    Arguments: ClassVar[type[FrozenModel]] = NoArguments
    deterministic: bool = True
    reads_response: bool = False
    reads_documents: bool = False
    timeout: float = 10.0

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments, as models are shown it."""
        schema = self.Arguments.model_json_schema()
        schema.pop("title", None)
        schema.pop("description", None)
        for field in schema.get("properties", {}).values():
            field.pop("title", None)
        return schema

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

    @abstractmethod
    def run(self, inputs: ToolInput, arguments: Any) -> str | Awaitable[str]:
        """Return the result of a call; a plain function runs in a thread. Raises `ToolError` for what cannot be."""
