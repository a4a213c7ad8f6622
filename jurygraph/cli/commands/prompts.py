"""`jurygraph prompts`: list, print and render the prompts that models get."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from jurygraph.cli.options import AsJson
from jurygraph.cli.render.text import format_table, print_json, print_result, print_result_lines
from jurygraph.errors import ConfigError, InputError

if TYPE_CHECKING:
    from jurygraph.prompts import Prompt
    from jurygraph.schema import Message

_MAX_MESSAGE = 120


class _ObjectList(NamedTuple):
    """Schema of a variable that is a list of objects.

    Attributes:
        texts: fields that are required, and are texts.
        rest: further fields with their defaults.
        may_be_empty: whether the list may be empty.
    """

    texts: Sequence[str]
    rest: Mapping[str, Any] = {}
    may_be_empty: bool = False

    def __str__(self) -> str:
        first, last = ", ".join(f"`{name}`" for name in self.texts[:-1]), self.texts[-1]
        return f"{first} and `{last}`"


_OBJECT_LISTS: Mapping[str, _ObjectList] = {
    "items": _ObjectList(("name", "text"), {"parts": False, "scale": None}),
    "people": _ObjectList(("name", "text"), may_be_empty=True),
    "responses": _ObjectList(("name", "text")),
    "steps": _ObjectList(("name", "text")),
    "examples": _ObjectList(("reviewer", "text", "score"), {"reason": ""}, may_be_empty=True),
}
_SCALARS: Mapping[str, tuple[Any, str]] = {
    "compact": (bool, "true or false"),
    "step": (int | float | None, "a number or null"),
}
"""Variables that are neither texts nor lists: the type of each, and its name in messages."""

prompts = typer.Typer(name="prompts", help="List, show or render the prompts of models.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="PROMPT", help="Name of a prompt.", show_default=False)]


@prompts.command("list")
def list_prompts(json: AsJson = False) -> None:
    """List the prompts and their purposes.

    A prompt may extend another. The version of a prompt is part of the identity of every call: a changed text has a
    new version.

    \b
    Example:
        jurygraph prompts list
    """
    from jurygraph.prompts import load_prompt, prompt_names

    found = [load_prompt(name) for name in prompt_names()]
    if json:
        print_json([_prompt_json(prompt) for prompt in found])
        return
    rows = [[prompt.id, prompt.version, prompt.extends or "-", prompt.purpose] for prompt in found]
    print_result_lines(format_table(["prompt", "version", "extends", "purpose"], rows, left=4))


@prompts.command("show")
def show_prompt(name: Name) -> None:
    """Print a prompt's file: front matter and templates.

    \b
    Example:
        jurygraph prompts show criteria
    """
    from jurygraph.prompts import prompt_source

    print_result(prompt_source(name).rstrip("\n"))


@prompts.command("render")
def render_prompt(
    name: Name,
    values: Annotated[
        str, typer.Option("--with", metavar="F", help="JSON file with its variables; - for stdin.", show_default=False)
    ],
    json: AsJson = False,
) -> None:
    """Print the messages of a rendered prompt.

    They are the messages that a model receives; fences are marked with the project's key, JURYGRAPH_FENCE_KEY. Most
    variables are texts. Lists of objects are `items` (what is judged), each with `name` and `text`, and optionally
    `parts` (true) or `scale` ([low, high]); `people` (may be []), `responses` and `steps`, each with `name` and `text`;
    `examples` (may be []), each with `reviewer`, `text`, `score` (a text too) and optionally `reason`. `names` is a
    list of texts, `compact` true or false, `step` a number or null, `kinds` the records of extract as in a config.

    \b
    Example:
        echo '{"query": "Plan a trip.", "profile": "travels with a cat"}' | jurygraph prompts render profile --with -
        jurygraph prompts render criteria --with criteria.json
    where criteria.json contains
        {"query": "Say hello.", "reference": null, "response": "Hello, Ann!", "compact": false,
         "items": [{"name": "kind", "text": "It is kind."}]}
    """
    from jurygraph.prompts import load_prompt

    messages = _render(load_prompt(name), values)
    if json:
        print_json([message.model_dump(mode="json") for message in messages])
        return
    for message in messages:
        print_result(f"## {message.role}\n{message.content}\n")


def _render(prompt: "Prompt", file: str) -> "tuple[Message, ...]":
    """Render a prompt with the variables in a file. Raises `InputError` if they do not fit."""
    from jinja2 import TemplateError

    from jurygraph.messages import shorten
    from jurygraph.prompts import RenderOptions
    from jurygraph.safety.fence import project_key
    from jurygraph.safety.known_secrets import process_redactor

    variables = _load_variables(prompt, file)
    try:
        return prompt.render(RenderOptions(key=project_key()), **variables).messages
    except (TemplateError, TypeError, ValueError, AttributeError, RecursionError) as error:
        why = shorten(process_redactor().redact_text(f"{type(error).__name__}: {error}"), _MAX_MESSAGE)
        raise InputError(f"{file}: prompt {prompt.id!r} cannot be rendered with these variables: {why}") from None


def _prompt_json(prompt: "Prompt") -> dict[str, Any]:
    front_matter = {name: getattr(prompt, name) for name in ("id", "version", "extends", "purpose", "paper")}
    return {**front_matter, "edition": prompt.full_version, "variables": list(prompt.needs)}


def _load_variables(prompt: "Prompt", file: str) -> dict[str, Any]:
    """Return the variables in a file. Raises `InputError` if they are not those of the prompt."""
    from jurygraph.messages import did_you_mean

    variables: dict[str, Any] = _load_object(file)
    missing = [name for name in prompt.needs if name not in variables]
    if missing:
        needed = f"prompt {prompt.id!r} needs {', '.join(prompt.needs)} (null if there is none)"
        raise InputError(f"{file}: missing variable {missing[0]!r}; {needed}")
    for name in variables:
        if name not in prompt.needs:
            hint = did_you_mean(name, prompt.needs) or f"known: {', '.join(prompt.needs)}"
            raise InputError(f"{file}: prompt {prompt.id!r} has no variable {name!r}; {hint}")
    try:
        return {name: _validate_variable(name, value) for name, value in variables.items()}
    except ValueError as error:
        raise InputError(f"{file}: prompt {prompt.id!r}, variable {error}") from None


def _validate_variable(name: str, value: Any) -> Any:
    """Validate a variable and return it as its prompt expects it. Raises ValueError that names it."""
    from jurygraph.messages import describe_value
    from jurygraph.prompts import Shot

    if name in _OBJECT_LISTS:
        entries = _validate_entries(name, value)
        return [Shot(**entry) for entry in entries] if name == "examples" else entries
    if name in ("names", "edits"):
        return _validate_names(name, value)
    if name == "kinds":
        return _validate_kinds(name, value)
    expected, description = _SCALARS.get(name, (str | None, "a text"))
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
        raise ValueError(f"{name}: expected {description}, got {describe_value(value)}")
    return value


def _validate_kinds(name: str, value: Any) -> Any:
    from jurygraph.agents.extraction.spec import read_kinds

    try:
        return read_kinds(value)
    except ConfigError as error:
        raise ValueError(f"{name}, as the records of {error}") from None


def _validate_names(name: str, value: Any) -> tuple[str, ...]:
    from jurygraph.messages import describe_value

    if not isinstance(value, list):
        raise ValueError(f"{name}: expected a list of texts, got {describe_value(value)}")
    for place, text in enumerate(value):
        if not isinstance(text, str):
            raise ValueError(f"{name}[{place}]: expected a text, got {describe_value(text)}")
    return tuple(value)


def _validate_entries(name: str, value: Any) -> list[dict[str, Any]]:
    from jurygraph.messages import describe_value

    schema = _OBJECT_LISTS[name]
    if not isinstance(value, list) or not (value or schema.may_be_empty):
        raise ValueError(f"{name}: expected a list of objects with {schema}, got {describe_value(value)}")
    return [_validate_entry(f"{name}[{place}]", entry, schema) for place, entry in enumerate(value)]


def _validate_entry(place: str, value: Any, schema: _ObjectList) -> dict[str, Any]:
    from jurygraph.messages import describe_value, did_you_mean

    if not isinstance(value, dict):
        raise ValueError(f"{place}: expected an object with {schema}, got {describe_value(value)}")
    known = (*schema.texts, *schema.rest)
    for field in value:
        if field not in known:
            hint = did_you_mean(field, known) or f"known: {', '.join(known)}"
            raise ValueError(f"{place}: unknown field {field!r}; {hint}")
    entry = {**schema.rest, **value}
    for field in (*schema.texts, *(field for field, default in schema.rest.items() if isinstance(default, str))):
        if not isinstance(entry.get(field), str):
            raise ValueError(f"{place}.{field}: expected a text, got {describe_value(entry.get(field))}")
    return entry


def _load_object(file: str) -> dict[str, Any]:
    import json
    from contextlib import closing

    from jurygraph.sources.files import TextFile

    try:
        with closing(TextFile(file)) as source:
            content = json.loads("\n".join(line.text for line in source.lines()))
    except RecursionError:
        raise InputError(f"{file}: is nested too deeply; expected an object with the prompt's variables") from None
    except ValueError as error:
        raise InputError(
            f"{file}: is not valid JSON: {error}; expected an object with the prompt's variables"
        ) from None
    if not isinstance(content, dict):
        raise InputError(f"{file}: expected a JSON object with the prompt's variables")
    return content
