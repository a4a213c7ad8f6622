"""`jurygraph prompts`: list, print and render the prompts that models get."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from json import loads
from typing import Annotated, Any, NamedTuple

import typer

from jurygraph.agents.extraction.spec import read_kinds
from jurygraph.cli.options import AsJson, argument, option
from jurygraph.cli.render.text import format_table, print_json, print_result, print_result_lines
from jurygraph.errors import ConfigError, InputError
from jurygraph.messages import describe_value, did_you_mean, shorten
from jurygraph.prompts import Prompt, RenderOptions, Shot, load_prompt, prompt_names, prompt_source
from jurygraph.safety.fence import project_key
from jurygraph.safety.known_secrets import process_redactor
from jurygraph.schema import Message
from jurygraph.sources.files import TextFile


class _ObjectList(NamedTuple):
    """Schema of a variable that is a list of objects: required texts, further fields with their defaults."""

    texts: Sequence[str]
    rest: Mapping[str, Any] = {}
    may_be_empty: bool = False

    def __str__(self) -> str:
        return f"{', '.join(f'`{name}`' for name in self.texts[:-1])} and `{self.texts[-1]}`"


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
Name = Annotated[str, argument("PROMPT", "Name of a prompt.")]


@prompts.command("list")
def list_prompts(json: AsJson = False) -> None:
    """List the prompts and their purposes.

    A prompt may extend another. The version of a prompt is part of the identity of every call: a changed text has a
    new version.

    \b
    Example:
        jurygraph prompts list
    """
    found = [load_prompt(name) for name in prompt_names()]
    if json:
        fields = ("id", "version", "extends", "purpose", "paper")
        print_json(
            [
                {
                    **{name: getattr(prompt, name) for name in fields},
                    "edition": prompt.full_version,
                    "variables": list(prompt.needs),
                }
                for prompt in found
            ]
        )
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
    print_result(prompt_source(name).rstrip("\n"))


@prompts.command("render")
def render_prompt(
    name: Name,
    values: Annotated[str, option("F", "JSON file with its variables; - for stdin.", "--with")],
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
    messages = _render(load_prompt(name), values)
    if json:
        print_json([message.model_dump(mode="json") for message in messages])
        return
    for message in messages:
        print_result(f"## {message.role}\n{message.content}\n")


def _render(prompt: Prompt, file: str) -> tuple[Message, ...]:
    """Render a prompt with the variables in a file. Raises `InputError` if they do not fit."""
    from jinja2 import TemplateError

    variables = _load_variables(prompt, file)
    try:
        return prompt.render(RenderOptions(key=project_key()), **variables).messages
    except (TemplateError, TypeError, ValueError, AttributeError, RecursionError) as error:
        why = shorten(process_redactor().redact_text(f"{type(error).__name__}: {error}"), 120)
        raise InputError(f"{file}: prompt {prompt.id!r} cannot be rendered with these variables: {why}") from None


def _load_variables(prompt: Prompt, file: str) -> dict[str, Any]:
    """Return the variables in a file. Raises `InputError` if they are not those of the prompt."""
    variables = _load_object(file)
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
    if name in _OBJECT_LISTS:
        schema = _OBJECT_LISTS[name]
        is_list = isinstance(value, list) and bool(value or schema.may_be_empty)
        _require(is_list, name, value, f"a list of objects with {schema}")
        entries = [_validate_entry(f"{name}[{place}]", entry, schema) for place, entry in enumerate(value)]
        return [Shot(**entry) for entry in entries] if name == "examples" else entries
    if name in ("names", "edits"):
        _require(isinstance(value, list), name, value, "a list of texts")
        for place, text in enumerate(value):
            _require(isinstance(text, str), f"{name}[{place}]", text, "a text")
        return tuple(value)
    if name == "kinds":
        try:
            return read_kinds(value)
        except ConfigError as error:
            raise ValueError(f"{name}, as the records of {error}") from None
    expected, description = _SCALARS.get(name, (str | None, "a text"))
    is_valid = isinstance(value, expected) and (expected is bool or not isinstance(value, bool))
    _require(is_valid, name, value, description)
    return value


def _require(is_valid: bool, place: str, value: Any, expected: str) -> None:
    if not is_valid:
        raise ValueError(f"{place}: expected {expected}, got {describe_value(value)}")


def _validate_entry(place: str, value: Any, schema: _ObjectList) -> dict[str, Any]:
    _require(isinstance(value, dict), place, value, f"an object with {schema}")
    known = (*schema.texts, *schema.rest)
    for field in value:
        if field not in known:
            hint = did_you_mean(field, known) or f"known: {', '.join(known)}"
            raise ValueError(f"{place}: unknown field {field!r}; {hint}")
    entry = {**schema.rest, **value}
    for field in (*schema.texts, *(field for field, default in schema.rest.items() if isinstance(default, str))):
        _require(isinstance(entry.get(field), str), f"{place}.{field}", entry.get(field), "a text")
    return entry


def _load_object(file: str) -> dict[str, Any]:
    expected = "expected an object with the prompt's variables"
    try:
        with closing(TextFile(file)) as source:
            content = loads("\n".join(line.text for line in source.lines()))
    except RecursionError:
        raise InputError(f"{file}: is nested too deeply; {expected}") from None
    except ValueError as error:
        raise InputError(f"{file}: is not valid JSON: {error}; {expected}") from None
    if not isinstance(content, dict):
        raise InputError(f"{file}: expected a JSON object with the prompt's variables")
    return content
