"""Prompts of one's own: a file beside the evaluator that asks with it, checked as a whole before anything is asked."""

from hashlib import sha256
from importlib.resources.abc import Traversable

from pydantic import ValidationError
from ruamel.yaml.error import YAMLError

from jurygraph.errors import InputError
from jurygraph.prompts.library import Prompt, parse_prompt


def read_prompt(file: Traversable) -> Prompt:
    """The prompt in a file of one's own, such as `Path(__file__).with_name("tone.md")`.

    One whose front matter states no version gets one that changes with its text; one that states no variables has none.
    Raises `InputError`, which says what is wrong, where there is no such file or it is no prompt, also where its
    templates use what it does not state.
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
    """Refuse now what Jinja refuses only once something is asked, and a variable that would be the base's by chance."""
    from jinja2 import TemplateSyntaxError

    try:
        unknown = sorted(prompt.undeclared)
    except TemplateSyntaxError as error:
        raise ValueError(f"line {error.lineno} of its section: {error.message}") from error
    if unknown:
        stated = ", ".join((*prompt.variables, *unknown))
        raise ValueError(f"it uses {unknown[0]!r} and does not state it; write `variables: [{stated}]`")
