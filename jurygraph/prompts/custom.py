"""Custom prompts: a file next to its evaluator, validated completely before it is used."""

from hashlib import sha256
from importlib.resources.abc import Traversable

from pydantic import ValidationError
from ruamel.yaml.error import YAMLError

from jurygraph.errors import InputError
from jurygraph.prompts.library import Prompt, parse_prompt


def read_prompt(file: Traversable) -> Prompt:
    """Read a prompt from a file, such as `Path(__file__).with_name("tone.md")`.

    Without a version in the front matter it gets one that changes with its text; without `variables` it has none.
    Raises `InputError` with the cause if the file is missing or no prompt, or if its templates use undeclared
    variables.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise InputError(f"prompt {file.name} cannot be read: {error}") from error
    try:
        prompt = parse_prompt(text, version=sha256(text.encode()).hexdigest()[:12], variables=())
        _check_base(prompt)
        _check_templates(prompt)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"prompt {file.name}, {where}: {first['msg']}") from error
    except YAMLError as error:
        why = getattr(error, "problem", None) or " ".join(str(error).split())
        raise InputError(f"prompt {file.name}: its front matter is no YAML: {why}") from error
    except (ValueError, InputError) as error:
        raise InputError(f"prompt {file.name}: {error}") from error
    return prompt


def _check_base(prompt: Prompt) -> None:
    base = prompt.base
    if base is not None and "question" not in base.variables:
        raise ValueError(f"{base.id!r} has no place for a question; extend `items` or `judge`")


def _check_templates(prompt: Prompt) -> None:
    """Raise now for errors that Jinja would raise while rendering, and for variables only the base prompt declares."""
    from jinja2 import TemplateSyntaxError

    try:
        unknown = sorted(prompt.undeclared)
    except TemplateSyntaxError as error:
        raise ValueError(f"line {error.lineno} of its section: {error.message}") from error
    if unknown:
        declared = ", ".join((*prompt.variables, *unknown))
        raise ValueError(f"it uses {unknown[0]!r} and does not state it; write `variables: [{declared}]`")
