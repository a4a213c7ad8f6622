"""Prompts as files: Markdown with front matter, a section for each message, rendered where nothing can be run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple, cast, get_args

from pydantic import Field
from ruamel.yaml import YAML

from jurygraph.errors import InputError
from jurygraph.prompts.examples import Shot, lay_out
from jurygraph.safety.fence import Fence
from jurygraph.schema import Message, Noun
from jurygraph.schema.noun import Id
from jurygraph.sources.complaint import nearest

Role = Message.model_fields["role"].annotation
_HEADING = "## "
_FENCE = "fence_of_this_rendering"
_MANNER = frozenset({"fence", "reminder"})
_QUESTION = "question"
"""What a prompt is in the one that it extends."""
_MOST_KEPT = 1024
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Manner:
    """How prompts are written: whether what others wrote stands within a fence, made with this key, and whether what is
    asked stands behind the response (`reminder`) or before it."""

    fence: bool = True
    reminder: bool = True
    key: bytes = b""


USUAL = Manner()


class Rendered(NamedTuple):
    """Messages, and the marks of the fences in them, in the order in which they were drawn."""

    messages: tuple[Message, ...]
    marks: tuple[str, ...]


class Prompt(Noun):
    """A prompt: what it is for, the variables that it needs, and its messages as templates.

    Tasks, rubrics and responses are data that fill its variables; they are never templates themselves. Every template
    may also ask whether there is a `fence` or a `reminder` (see `Manner`). One that `extends` another is the `question`
    in it, and needs that one's variables too.
    """

    id: Id
    version: Id
    purpose: Id
    variables: tuple[Id, ...]
    paper: str | None = None
    extends: Id | None = None
    sections: tuple[tuple[str, str], ...] = Field(min_length=1)

    @property
    def edition(self) -> str:
        """Its version, and that of the one it extends: where both are the same, so is every word."""
        base = self.base
        return self.version if base is None else f"{self.version} in {base.id} {base.edition}"

    @property
    def base(self) -> "Prompt | None":
        """The prompt that it extends."""
        return None if self.extends is None else load_prompt(self.extends)

    @property
    def needs(self) -> tuple[str, ...]:
        """All variables that it takes to render it."""
        base = self.base
        shared = () if base is None else (name for name in base.needs if name != _QUESTION)
        return (*shared, *self.variables)

    @property
    def undeclared(self) -> frozenset[str]:
        """What its templates use beside its variables. Raises `jinja2.TemplateSyntaxError` where one is no template."""
        return frozenset(name for _, _, used in self._templates for name in used).difference(self.variables)

    def render(self, manner: Manner = USUAL, **variables: Any) -> Rendered:
        """The messages. Raises `jinja2.UndefinedError` at a variable that is not given."""
        base = self.base
        if base is None:
            return self._rendered(manner, variables)
        (question,), marks = self._as_question(manner, variables)
        around = base.render(manner, **{**variables, _QUESTION: question.content.strip()})
        return Rendered(around.messages, tuple(dict.fromkeys((*marks, *around.marks))))

    def _as_question(self, manner: Manner, variables: Mapping[str, Any]) -> Rendered:
        """The same question is asked of many responses, so it is kept, where its variables can be told apart."""
        key = manner, *(variables.get(name, _ABSENT) for name in self.variables)
        if not _can_be_kept(key):
            return self._rendered(manner, variables)
        if key not in self._questions:
            if len(self._questions) >= _MOST_KEPT:
                self._questions.clear()
            self._questions[key] = self._rendered(manner, variables)
        return self._questions[key]

    def _rendered(self, manner: Manner, variables: Mapping[str, Any]) -> Rendered:
        fence = Fence(manner.key, manner.fence)
        filled = {**variables, "fence": manner.fence, "reminder": manner.reminder, _FENCE: fence}
        same = self._same[manner.fence, manner.reminder]
        messages = tuple(
            _message(role, template.render(filled)) if varies else same[place]
            for place, (role, template, varies) in enumerate(self._templates)
        )
        return Rendered(messages, tuple(fence.marks))

    @cached_property
    def _questions(self) -> dict[Any, Rendered]:
        return {}

    @cached_property
    def _templates(self) -> list[tuple[str, Any, set[str]]]:
        """The role and template of each message, and the variables that it hangs on."""
        from jinja2.meta import find_undeclared_variables

        environment = _environment()
        return [
            (role, environment.from_string(text), find_undeclared_variables(environment.parse(text)) - _MANNER)
            for role, text in self.sections
        ]

    @cached_property
    def _same(self) -> Mapping[tuple[bool, bool], Mapping[int, Message]]:
        """The messages that hang on no variable, by their places, for every manner."""
        return {
            (fence, reminder): {
                place: _message(role, template.render({"fence": fence, "reminder": reminder}))
                for place, (role, template, varies) in enumerate(self._templates)
                if not varies
            }
            for fence in (True, False)
            for reminder in (True, False)
        }


def _can_be_kept(key: tuple[Any, ...]) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def _message(role: str, content: str) -> Message:
    return Message(role=cast(Any, role), content=content)


@cache
def _environment() -> Any:
    """Jinja's, which loads when something is rendered: nobody pays for it who asks no model."""
    from jinja2 import StrictUndefined, pass_context
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["fenced"] = pass_context(_fenced)
    environment.filters["few_shot"] = pass_context(_few_shot)
    return environment


def _fenced(context: Any, text: str, name: str) -> str:
    fence: Fence = context[_FENCE]
    return fence.around(text, name)


def _few_shot(context: Any, shots: Sequence[Shot]) -> str:
    ((_, template),) = load_prompt("example").sections
    return lay_out(shots, context[_FENCE], template)


def prompt_names() -> tuple[str, ...]:
    """The names of all prompts of this package."""
    found = (path.name for path in files("jurygraph.prompts").iterdir())
    return tuple(sorted(name.removesuffix(".md") for name in found if name.endswith(".md")))


def prompt_source(name: str) -> str:
    """The file of a prompt. Raises `InputError` where there is none of that name."""
    if name not in prompt_names():
        known = prompt_names()
        raise InputError(f"there is no prompt {name!r}; {nearest(name, known) or 'there are ' + ', '.join(known)}")
    return files("jurygraph.prompts").joinpath(f"{name}.md").read_text(encoding="utf-8")


@lru_cache(maxsize=256)
def load_prompt(name: str) -> Prompt:
    """The prompt in `<name>.md` of this package. Raises `InputError` where there is none."""
    return parse_prompt(prompt_source(name))


def parse_prompt(text: str, **usual: Any) -> Prompt:
    """A prompt from its file: YAML between two lines of `---`, then a section `## system`, `## user`, … a message.

    `usual` stands where the YAML states nothing. Raises ValueError where it is no such text; one that extends another
    has a section `## user` alone.
    """
    start, *front = text.split("---\n", 2)
    if start or len(front) != 2:
        raise ValueError("a prompt begins with its front matter: a line `---`, `id: NAME` and more, and a line `---`")
    stated = YAML(typ="safe", pure=True).load(front[0])
    if not isinstance(stated, dict):
        raise ValueError("the front matter holds keys and values, such as `id: NAME`")
    prompt = Prompt(sections=tuple(_sections(front[1])), **{**usual, **stated})
    if prompt.extends is not None and [role for role, _ in prompt.sections] != ["user"]:
        raise ValueError(f"prompt {prompt.id!r} extends {prompt.extends!r}; give it one section, headed `## user`")
    return prompt


def _sections(body: str) -> list[tuple[str, str]]:
    sections: list[tuple[str, str]] = []
    for part in f"\n{body}".split(f"\n{_HEADING}")[1:]:
        role, _, text = part.partition("\n")
        if role not in get_args(Role):
            raise ValueError(f"a section is headed {role!r}; each is one of {', '.join(get_args(Role))}")
        sections.append((role, text.strip()))
    return sections
