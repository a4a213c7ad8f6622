"""Tools of the user's own: functions, LangChain tools and compiled graphs, without a class.

What such a tool returns may differ tomorrow, so that it is recorded, and not run again, unless the config says that it
is deterministic. Its version changes with its source, as that of an evaluator does.
"""

import inspect
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, get_type_hints

from pydantic import ConfigDict, Field, PydanticUserError, create_model

from jurygraph.agents.feedback import closure_digest
from jurygraph.agents.functions import source_version
from jurygraph.agents.registry import add_settings_to_version
from jurygraph.errors import ConfigError
from jurygraph.messages import Problem, shorten, suggest_known_name
from jurygraph.schema import digest_of
from jurygraph.schema.frozen_model import JsonFields, RawParams
from jurygraph.tools.result import to_result_text
from jurygraph.tools.tool import Tool, ToolArguments, ToolInput

_ARGUMENT_FIELD_PREFIX = "argument_"
_MAX_DESCRIPTION_CHARACTERS = 1000


class CustomTool(Tool):
    """Base class of the tools that are made of the user's own code, `target`."""

    deterministic = False

    def __init__(self, target: Any, name: str) -> None:
        super().__init__()
        self.target = target
        self.name = name

    def _set_version(self, source: str) -> None:
        """Set the version that the target writes down, else that of its source."""
        version = getattr(self.target, "version", None)
        self.version = version if isinstance(version, str) else source

    def _set_description(self, description: str | None, remedy: str) -> None:
        if not description or not description.strip():
            raise ConfigError(f"tool {self.name!r} has no description for the model; {remedy}")
        self.description = shorten(description.strip(), _MAX_DESCRIPTION_CHARACTERS)


class _FunctionArguments(ToolArguments):
    """Base class of the arguments of a function, below which no docstrings are looked for: no source has its fields."""

    model_config = ConfigDict(use_attribute_docstrings=False)


class FunctionTool(CustomTool):
    """A function, whose arguments are those of its signature, and whose docstring is for the model.

    An argument of the type `ToolInput` gets what the judge sees; `params` of the config are arguments, too. The model
    is shown neither.
    """

    def __init__(self, target: Callable[..., Any], name: str, params: RawParams) -> None:
        super().__init__(target, name)
        self._bound = dict(params)
        self._input_name: str | None = None
        self._set_description(inspect.getdoc(target), "write a docstring that says what it returns")
        values = closure_digest(target)
        source = source_version(target)
        self._set_version(f"{source} with {values}" if values else source)
        try:
            parameters = inspect.signature(target).parameters
            type_hints = get_type_hints(target, include_extras=True)
        except (NameError, TypeError, ValueError) as error:
            raise ConfigError(f"tool {name!r}: its signature cannot be read: {error}") from error
        unknown_params = sorted(params.keys() - parameters.keys())
        if unknown_params:
            hint = suggest_known_name(unknown_params[0], parameters)
            raise ConfigError(
                f"tool {name!r} has no argument {unknown_params[0]!r} for its params; {hint}"
            )
        fields: JsonFields = {}
        for argument, parameter in parameters.items():
            type_hint = type_hints.get(argument)
            if type_hint is ToolInput:
                self._input_name = argument
            elif argument not in self._bound:
                if type_hint is None or parameter.kind not in _NAMED_PARAMETER_KINDS:
                    raise ConfigError(
                        f"tool {name!r}: argument {argument!r} cannot be filled in by a model; "
                        f"give it a name and a type, such as `{argument}: str`"
                    )
                default = ... if parameter.default is parameter.empty else parameter.default
                # By an alias, since a model's own attributes, such as `copy`, are no names of fields.
                field = (type_hint, Field(default, alias=argument))
                fields[_ARGUMENT_FIELD_PREFIX + argument] = field
        try:
            self.Arguments = create_model(
                "FunctionArguments", __base__=_FunctionArguments, **fields
            )
            _ = self.parameters
        # pydantic raises many kinds of errors for a type without a schema, and the user's type may raise anything.
        except Exception as error:
            raise ConfigError(
                f"tool {name!r}: its types are not for JSON: {type(error).__name__}: "
                f"{shorten(str(error), 200)}; annotate with str, int, list[str] and such"
            ) from error

    def run(self, inputs: ToolInput, arguments: Any) -> str | Awaitable[str]:
        values = dict(self._bound)
        for field in type(arguments).model_fields:
            values[field.removeprefix(_ARGUMENT_FIELD_PREFIX)] = getattr(arguments, field)
        if self._input_name is not None:
            values[self._input_name] = inputs
        result = self.target(**values)
        return _await_result(result) if inspect.isawaitable(result) else to_result_text(result)


class RunnableTool(CustomTool):
    """A LangChain tool, or a compiled graph, whose arguments are the fields of its input."""

    def __init__(self, target: Any, name: str) -> None:
        super().__init__(target, name)
        if is_langchain_tool(target):
            call_schema = target.tool_call_schema
            is_dict_schema = isinstance(call_schema, dict)
            schema = call_schema if is_dict_schema else call_schema.model_json_schema()
            self._set_version(_compute_code_version(target))
            # Its fields alone: what it has computed and keeps is no setting.
            fields = {name: getattr(target, name) for name in type(target).model_fields}
            add_settings_to_version(self, SimpleNamespace(**fields))
            self._set_description(target.description, "set its `description`")
        else:
            schema = self._read_input_schema()
            self._set_version(_compute_graph_version(target))
            self._set_description(schema.get("description") or f"Run {name}.", "describe its input")
        if "properties" not in schema:
            raise ConfigError(
                f"tool {name!r}: its input has no named fields; give a tool or graph whose input is a mapping"
            )
        self._schema = {"additionalProperties": False, **schema}
        self._schema.pop("title", None)
        self._schema.pop("description", None)
        # Imported lazily: only needed for such tools.
        from jsonschema import Draft202012Validator

        self._validator = Draft202012Validator(self._schema)

    def _read_input_schema(self) -> JsonFields:
        try:
            schema: JsonFields = self.target.get_input_jsonschema()
        except (PydanticUserError, NameError, TypeError) as error:
            raise ConfigError(
                f"tool {self.name!r}: its input has no schema: {shorten(str(error), 200)}"
            ) from error
        return schema

    @property
    def parameters(self) -> JsonFields:
        return self._schema

    def validate_arguments(self, arguments: Any) -> Any:
        for error in self._validator.iter_errors(arguments):
            return Problem(tuple(error.path), error.message[:300])
        return arguments

    def run(self, inputs: ToolInput, arguments: JsonFields) -> Awaitable[str]:
        return _await_result(self.target.ainvoke(arguments))


def is_langchain_tool(target: Any) -> bool:
    """Return true if a Runnable behaves like a LangChain `BaseTool`; does not import langchain-core."""
    return hasattr(target, "tool_call_schema") and hasattr(target, "args_schema")


_NAMED_PARAMETER_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


async def _await_result(result: Awaitable[Any]) -> str:
    return to_result_text(await result)


def _compute_graph_version(graph: Any) -> str:
    """Return a version that changes with the modules of the functions that are a graph's nodes."""
    nodes = getattr(getattr(graph, "builder", None), "nodes", {})
    versions = {
        name: _compute_code_version(getattr(node, "runnable", None)) for name, node in nodes.items()
    }
    return digest_of(versions)[:12] if versions else "1"


def _compute_code_version(runnable: Any) -> str:
    """Return the version of the function that a Runnable runs, or else of its class."""
    names = ("func", "coroutine", "afunc")
    functions = filter(None, (getattr(runnable, name, None) for name in names))
    return source_version(next(functions, type(runnable)))
