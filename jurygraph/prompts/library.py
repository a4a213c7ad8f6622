"""Prompts as files: Markdown with front matter, a section for each message, rendered where nothing can be run."""

from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any, cast, get_args

from pydantic import Field
from ruamel.yaml import YAML

from jurygraph.safety.fence import fenced
from jurygraph.schema import Message, Noun
from jurygraph.schema.noun import Id

Role = Message.model_fields["role"].annotation
_HEADING = "## "


class Prompt(Noun):
    """A prompt: what it is for, the variables that it needs, and its messages as templates.

    Tasks, rubrics and responses are data that fill its variables; they are never templates themselves.
    """

    id: Id
    version: Id
    purpose: Id
    variables: tuple[Id, ...]
    paper: str | None = None
    sections: tuple[tuple[str, str], ...] = Field(min_length=1)

    def render(self, **variables: Any) -> tuple[Message, ...]:
        """The messages. Raises `jinja2.UndefinedError` at a variable that is not given."""
        return tuple(
            one if isinstance(one, Message) else _message(one[0], one[1].render(**variables)) for one in self._parts
        )

    @cached_property
    def _parts(self) -> list[Message | tuple[str, Any]]:
        """Each section as a template, or as the message itself where no variable stands in it."""
        from jinja2.meta import find_undeclared_variables

        environment = _environment()
        return [
            (role, environment.from_string(text))
            if find_undeclared_variables(environment.parse(text))
            else _message(role, environment.from_string(text).render())
            for role, text in self.sections
        ]


def _message(role: str, content: str) -> Message:
    return Message(role=cast(Any, role), content=content)


@cache
def _environment() -> Any:
    """Jinja's, which loads when something is rendered: nobody pays for it who asks no model."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["fenced"] = fenced
    return environment


@lru_cache(maxsize=256)
def load_prompt(name: str) -> Prompt:
    """The prompt in `<name>.md` of this package."""
    return parse_prompt(files("jurygraph.prompts").joinpath(f"{name}.md").read_text(encoding="utf-8"))


def parse_prompt(text: str) -> Prompt:
    """A prompt from its file: YAML between two lines of `---`, then a section `## system`, `## user`, … a message."""
    _, front, body = text.split("---\n", 2)
    return Prompt(sections=tuple(_sections(body)), **YAML(typ="safe", pure=True).load(front))


def _sections(body: str) -> list[tuple[str, str]]:
    sections: list[tuple[str, str]] = []
    for part in f"\n{body}".split(f"\n{_HEADING}")[1:]:
        role, _, text = part.partition("\n")
        if role not in get_args(Role):
            raise ValueError(f"a section is headed {role!r}; each is one of {', '.join(get_args(Role))}")
        sections.append((role, text.strip()))
    return sections
