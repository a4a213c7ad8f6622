"""Prompts as files: Markdown with front matter and a section per message, rendered in a sandbox, with examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple, cast, get_args

from pydantic import Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean
from jurygraph.safety.fence import Fence
from jurygraph.schema import FrozenModel, Message
from jurygraph.schema.frozen_model import Id


class Shot(NamedTuple):
    """An example as shown: the reviewer's pseudonym, the text, the score, and optionally the reason."""

    reviewer: str
    text: str
    score: str
    reason: str = ""


def render_examples(shots: Sequence[Shot], fence: Fence, template: str) -> str:
    """Render the examples one after another by `template` (Jinja)."""
    return "\n\n".join(_render_shot(template, *_fence_shot(shot, fence)) for shot in shots)


def _fence_shot(shot: Shot, fence: Fence) -> Shot:
    reason = fence.enclose(shot.reason, "reason") if shot.reason else ""
    return shot._replace(text=fence.enclose(shot.text, "example"), reason=reason)


@lru_cache(maxsize=1024)
def _render_shot(template: str, *values: str) -> str:
    """Render one example. Cached, since it is part of many prompts, and langchain-core compiles the template each time.

    Uses the message of langchain-core's few-shot template: its template for a single text would parse the shown values
    as a template again.
    """
    from langchain_core.prompts import FewShotChatMessagePromptTemplate  # imported lazily: only needed with examples

    example = dict(zip(Shot._fields, values, strict=True))
    few_shot = FewShotChatMessagePromptTemplate(examples=[example], example_prompt=_chat_template(template))
    (message,) = few_shot.format_messages()
    return str(message.content)


@cache
def _chat_template(template: str) -> Any:
    from langchain_core.prompts import ChatPromptTemplate

    return ChatPromptTemplate.from_messages([("human", template)], template_format="jinja2")


Role = Message.model_fields["role"].annotation
_HEADING = "## "
_FENCE = "fence_of_this_rendering"
_MANNER_VARIABLES = frozenset({"fence", "reminder"})
_QUESTION = "question"
"""The variable of a base prompt that holds the prompt extending it."""
_MAX_CACHED = 1024
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """Options of rendering: `fence` puts foreign text inside a fence, made with `key`; `reminder` puts the question
    after the response instead of before it."""

    fence: bool = True
    reminder: bool = True
    key: bytes = b""


DEFAULT_OPTIONS = RenderOptions()


class RenderedPrompt(NamedTuple):
    """Messages, and the marks of the fences in them, in the order in which they were drawn."""

    messages: tuple[Message, ...]
    marks: tuple[str, ...]


class Prompt(FrozenModel):
    """A prompt: its purpose, the variables that it needs, and its messages as templates.

    Tasks, rubrics and responses are values of its variables, never templates themselves. Every template may also test
    the variables `fence` and `reminder` (see `RenderOptions`). A prompt that `extends` another is its `question`, and
    needs that one's variables too.
    """

    id: Id
    version: Id
    purpose: Id
    variables: tuple[Id, ...]
    paper: str | None = None
    extends: Id | None = None
    sections: tuple[tuple[str, str], ...] = Field(min_length=1)

    @property
    def full_version(self) -> str:
        """Return the prompt's version and that of the base prompt: equal editions have equal words."""
        base = self.base
        return self.version if base is None else f"{self.version} in {base.id} {base.full_version}"

    @property
    def base(self) -> "Prompt | None":
        """Return the prompt that this one extends, or None."""
        return None if self.extends is None else load_prompt(self.extends)

    @property
    def needs(self) -> tuple[str, ...]:
        """Return all variables that rendering needs."""
        base = self.base
        shared = () if base is None else (name for name in base.needs if name != _QUESTION)
        return (*shared, *self.variables)

    @property
    def undeclared(self) -> frozenset[str]:
        """Return undeclared variables of the templates. Raises `jinja2.TemplateSyntaxError` if one is invalid."""
        return frozenset(name for _, _, used in self._templates for name in used).difference(self.variables)

    def render(self, manner: RenderOptions = DEFAULT_OPTIONS, **variables: Any) -> RenderedPrompt:
        """Return the messages. Raises `jinja2.UndefinedError` if a variable is missing."""
        base = self.base
        if base is None:
            return self._render_sections(manner, variables)
        (question,), marks = self._render_question(manner, variables)
        rendered = base.render(manner, **{**variables, _QUESTION: question.content.strip()})
        return RenderedPrompt(rendered.messages, tuple(dict.fromkeys((*marks, *rendered.marks))))

    def _render_question(self, manner: RenderOptions, variables: Mapping[str, Any]) -> RenderedPrompt:
        """Render the question part; cached if the variables are hashable, since many responses share a question."""
        key = manner, *(variables.get(name, _ABSENT) for name in self.variables)
        if not _is_hashable(key):
            return self._render_sections(manner, variables)
        if key not in self._questions:
            if len(self._questions) >= _MAX_CACHED:
                self._questions.clear()
            self._questions[key] = self._render_sections(manner, variables)
        return self._questions[key]

    def _render_sections(self, manner: RenderOptions, variables: Mapping[str, Any]) -> RenderedPrompt:
        fence = Fence(manner.key, manner.fence)
        filled = {**variables, "fence": manner.fence, "reminder": manner.reminder, _FENCE: fence}
        constant_messages = self._constant_messages[manner.fence, manner.reminder]
        messages = tuple(
            _build_message(role, template.render(filled)) if varies else constant_messages[index]
            for index, (role, template, varies) in enumerate(self._templates)
        )
        return RenderedPrompt(messages, tuple(fence.marks))

    @cached_property
    def _questions(self) -> dict[Any, RenderedPrompt]:
        return {}

    @cached_property
    def _templates(self) -> list[tuple[str, Any, set[str]]]:
        """Return the role and template of each message, and the variables that it depends on."""
        from jinja2.meta import find_undeclared_variables

        environment = _environment()
        return [
            (
                role,
                environment.from_string(text),
                find_undeclared_variables(environment.parse(text)) - _MANNER_VARIABLES,
            )
            for role, text in self.sections
        ]

    @cached_property
    def _constant_messages(self) -> Mapping[tuple[bool, bool], Mapping[int, Message]]:
        """Return the messages without variables, by their indices, for every manner."""
        return {
            (fence, reminder): {
                index: _build_message(role, template.render({"fence": fence, "reminder": reminder}))
                for index, (role, template, varies) in enumerate(self._templates)
                if not varies
            }
            for fence in (True, False)
            for reminder in (True, False)
        }


def _is_hashable(key: tuple[Any, ...]) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def _build_message(role: str, content: str) -> Message:
    return Message(role=cast(Any, role), content=content)


@cache
def _environment() -> Any:
    """Return Jinja's environment. Imported lazily: only needed for rendering."""
    from jinja2 import StrictUndefined, pass_context
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["fenced"] = pass_context(_fence_text)
    environment.filters["few_shot"] = pass_context(_few_shot)
    return environment


def _fence_text(context: Any, text: str, name: str) -> str:
    fence: Fence = context[_FENCE]
    return fence.enclose(text, name)


def _few_shot(context: Any, shots: Sequence[Shot]) -> str:
    ((_, template),) = load_prompt("example").sections
    return render_examples(shots, context[_FENCE], template)


def prompt_names() -> tuple[str, ...]:
    """Return the names of all prompts of this package."""
    names = (path.name for path in files("jurygraph.prompts").iterdir())
    return tuple(sorted(name.removesuffix(".md") for name in names if name.endswith(".md")))


def prompt_source(name: str) -> str:
    """Return the source of a prompt. Raises `InputError` if there is none of that name."""
    if name not in prompt_names():
        known = prompt_names()
        raise InputError(f"there is no prompt {name!r}; {did_you_mean(name, known) or 'there are ' + ', '.join(known)}")
    return files("jurygraph.prompts").joinpath(f"{name}.md").read_text(encoding="utf-8")


@lru_cache(maxsize=256)
def load_prompt(name: str) -> Prompt:
    """Return the prompt in `<name>.md` of this package. Raises `InputError` if there is none."""
    return parse_prompt(prompt_source(name))


def parse_prompt(text: str, **defaults: Any) -> Prompt:
    """Parse a prompt file: YAML between two lines of `---`, then a section `## system`, `## user`, … per message.

    `defaults` holds values for keys missing in the YAML. Raises ValueError for an invalid text; a prompt that extends
    another must have exactly one section, `## user`.
    """
    start, *front = text.split("---\n", 2)
    if start or len(front) != 2:
        raise ValueError("a prompt begins with its front matter: a line `---`, `id: NAME` and more, and a line `---`")
    metadata = YAML(typ="safe", pure=True).load(front[0])
    if not isinstance(metadata, dict):
        raise ValueError("the front matter holds keys and values, such as `id: NAME`")
    prompt = Prompt(sections=tuple(_sections(front[1])), **{**defaults, **metadata})
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
