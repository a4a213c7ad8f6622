"""Prompts for models: versioned Markdown files with front matter and a section per message, rendered in a sandbox."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple, cast, get_args

from pydantic import Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from jurygraph.errors import InputError
from jurygraph.messages import first_validation_message, suggest_known_name
from jurygraph.safety.gates import FENCE_MARK_LENGTH, TextFence
from jurygraph.schema import FrozenModel, Message
from jurygraph.schema.conversation import RenderedText
from jurygraph.schema.frozen_model import Id, require_argument_type


class ShownExample(NamedTuple):
    """An example as shown: the reviewer's pseudonym, the text, the score, and optionally the reason and the prompt."""

    reviewer: str
    text: str
    score: str
    reason: str = ""
    prompt: str = ""


PromptRole = Message.model_fields["role"].annotation
_FENCE_PLACEHOLDER = "fence_of_this_rendering"
_FRAMEWORK_VARIABLES = frozenset({"fence", "reminder"})
_QUESTION_VARIABLE = "question"  # the variable of a base prompt that holds the prompt extending it


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """Options of rendering: `fence` puts foreign text inside a fence, made with `key`, whose marks have `mark_length`
    digits; `reminder` puts the question after the response instead of before it."""

    fence: bool = True
    reminder: bool = True
    key: bytes = b""
    mark_length: int = FENCE_MARK_LENGTH


DEFAULT_RENDER_OPTIONS = RenderOptions()


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
        base_prompt_needs = (
            () if base is None else (name for name in base.needs if name != _QUESTION_VARIABLE)
        )
        return (*base_prompt_needs, *self.variables)

    def render(
        self, render_options: RenderOptions = DEFAULT_RENDER_OPTIONS, **variables: Any
    ) -> RenderedPrompt:
        """Return the messages. Raises `jinja2.UndefinedError` if a variable is missing."""
        base = self.base
        if base is None:
            return self._render_sections(render_options, variables)
        values = tuple((name, variables[name]) for name in self.variables if name in variables)
        try:
            (question,), marks = _render_question(self, render_options, values)
        except TypeError:  # a variable is not hashable, so that nothing can be cached
            (question,), marks = self._render_sections(render_options, variables)
        variables_with_question = {**variables, _QUESTION_VARIABLE: question.content.strip()}
        rendered_prompt = base.render(render_options, **variables_with_question)
        all_fence_marks = dict.fromkeys((*marks, *rendered_prompt.marks))
        return RenderedPrompt(rendered_prompt.messages, tuple(all_fence_marks))

    def _render_sections(
        self, render_options: RenderOptions, variables: Mapping[str, Any]
    ) -> RenderedPrompt:
        fence = TextFence(render_options.key, render_options.fence, render_options.mark_length)
        filled_sections = {
            **variables,
            "fence": render_options.fence,
            "reminder": render_options.reminder,
            _FENCE_PLACEHOLDER: fence,
        }
        messages: list[Message] = []
        for (role, _), template in zip(self.sections, self._parse_templates, strict=True):
            try:
                content = template.render(filled_sections)
            except InputError as error:
                line = extract_tb(error.__traceback__)[
                    -2
                ].lineno  # of the template: it called a filter
                place = f"prompt {self.id!r}, line {line} of its section ## {role}"
                raise InputError(f"{place}: {error}") from error
            messages.append(Message(role=cast(Any, role), content=content))
        # after the templates, which draw the marks while they are rendered
        return RenderedPrompt(tuple(messages), tuple(fence.marks))

    @cached_property
    def _parse_templates(self) -> list[Any]:
        """Return the template of each message. Raises `jinja2.TemplateSyntaxError` if one is invalid."""
        templates = [_jinja_environment().from_string(text) for _, text in self.sections]
        for template in templates:
            # every rendering reads all of them, slowly from Jinja's ChainMap
            template.globals = dict(template.globals)
        return templates


@lru_cache(maxsize=1024)
def _render_question(
    prompt: Prompt, render_options: RenderOptions, variables: tuple[tuple[str, Any], ...]
) -> RenderedPrompt:
    """Render a prompt that extends another; cached, since many responses share a question.

    From the cache it takes .5 µs, else 5 to 12, and more with examples of a reviewer in it.
    """
    return prompt._render_sections(render_options, dict(variables))


@cache
def _jinja_environment() -> Any:
    """Return Jinja's environment. Imported lazily: only needed for rendering."""
    from jinja2 import StrictUndefined, pass_context
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    jinja_environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    jinja_environment.filters["fenced"] = pass_context(_fence_text)
    jinja_environment.filters["few_shot"] = pass_context(_render_shots)
    return jinja_environment


def _fence_text(context: Any, text: str, name: str) -> str:
    """Return a text inside the fence of the prompt; a conversation is introduced."""
    if isinstance(text, tuple):
        hint = (
            "write `{% for name, text in passages %}`, as each of `passages` has a name and a text"
        )
        raise InputError(f"`fenced({name!r})` gets a tuple, not a text; {hint}")
    fence: TextFence = context[_FENCE_PLACEHOLDER]
    fenced_text = fence.enclose(text, name)
    if not (isinstance(text, RenderedText) and text.has_turn_headers):
        return fenced_text
    conversation = _render_prompt_part("conversation", messages=fenced_text)
    if text.judged_message_index is None:
        return conversation
    return f"{_render_prompt_part('turn', message=text.judged_message_index)}\n\n{conversation}"


def _render_prompt_part(prompt_id: str, **variables: Any) -> str:
    """Return a prompt that is a part of others, with its variables filled in."""
    ((_, template),) = load_prompt(prompt_id).sections
    return str(_jinja_environment().from_string(template).render(**variables))


def _render_shots(context: Any, shots: Sequence[ShownExample]) -> str:
    """Render examples one after another, their texts inside the fence of the prompt."""
    fence: TextFence = context[_FENCE_PLACEHOLDER]
    rendered_shots = []
    for shot in shots:
        prompt = shot.prompt and fence.enclose(shot.prompt, "prompt")
        text = fence.enclose(shot.text, "example")
        reason = shot.reason and fence.enclose(shot.reason, "reason")
        fenced_shot = shot._replace(text=text, reason=reason, prompt=prompt)
        rendered_shots.append(_render_shot(fenced_shot))
    return "\n\n".join(rendered_shots)


@lru_cache(maxsize=1024)
def _render_shot(shot: ShownExample) -> str:
    """Render an example; cached, since it is part of many prompts."""
    ((_, template),) = load_prompt("example").sections
    environment = _jinja_environment().overlay(trim_blocks=False, lstrip_blocks=False)
    example = str(environment.from_string(template).render(shot._asdict()))
    if not shot.prompt:
        return example
    return f"{_render_prompt_part('example-prompt', prompt=shot.prompt)}\n{example}"


def prompt_names() -> tuple[str, ...]:
    names = (path.name for path in files("jurygraph.prompts").iterdir())
    return tuple(sorted(name.removesuffix(".md") for name in names if name.endswith(".md")))


def read_prompt_source(name: str) -> str:
    """Return the source of a prompt. Raises `InputError` if there is none of that name."""
    names = prompt_names()
    if name not in names:
        raise InputError(f"there is no prompt {name!r}; {suggest_known_name(name, names)}")
    return files("jurygraph.prompts").joinpath(f"{name}.md").read_text(encoding="utf-8")


@lru_cache(maxsize=256)
def load_prompt(name: str) -> Prompt:
    """Return the prompt in `<name>.md` of this package. Raises `InputError` if there is none."""
    return parse_prompt(read_prompt_source(name))


def parse_prompt(text: str, **defaults: Any) -> Prompt:
    """Parse a prompt file: YAML between two lines of `---`, then a section `## system`, `## user`, … per message.

    `defaults` holds values for keys missing in the YAML. Raises ValueError for an invalid text; a prompt that extends
    another must have exactly one section, `## user`.
    """
    start, *front_matter_and_body = text.split("---\n", 2)
    if start or len(front_matter_and_body) != 2:
        raise ValueError(
            "a prompt begins with its front matter: a line `---`, `id: NAME` and more, and a line `---`"
        )
    metadata = YAML(typ="safe", pure=True).load(front_matter_and_body[0])
    if not isinstance(metadata, dict):
        raise ValueError("the front matter holds keys and values, such as `id: NAME`")
    sections = []
    for part in f"\n{front_matter_and_body[1]}".split("\n## ")[1:]:
        role, _, content = part.partition("\n")
        if role not in get_args(PromptRole):
            raise ValueError(
                f"a section is headed {role!r}; each is one of {', '.join(get_args(PromptRole))}"
            )
        sections.append((role, content.strip()))
    prompt = Prompt.model_validate({"sections": tuple(sections), **defaults, **metadata})
    if prompt.extends is not None and [role for role, _ in prompt.sections] != ["user"]:
        raise ValueError(
            f"prompt {prompt.id!r} extends {prompt.extends!r}; give it one section, headed `## user`"
        )
    return prompt


def read_prompt(file: Traversable | str) -> Prompt:
    """Read a prompt from a file, such as `Path(__file__).with_name("tone.md")`; a text is its path.

    Without a version in the front matter it gets one that changes with its text; without `variables` it has none.
    Raises `InputError` with the cause if the file is missing or no prompt, or if its templates use undeclared
    variables.
    """
    require_argument_type("file", file, str | Traversable, "give the path of a prompt")
    file = Path(file) if isinstance(file, str) else file
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise InputError(f"prompt {file.name} cannot be read: {error}") from error
    try:
        prompt = parse_prompt(text, version=sha256(text.encode()).hexdigest()[:12], variables=())
        _check_templates(prompt)
    except ValidationError as error:
        raise InputError(f"prompt {file.name}, {first_validation_message(error)}") from error
    except YAMLError as error:
        why = getattr(error, "problem", None) or " ".join(str(error).split())
        raise InputError(f"prompt {file.name}: its front matter is no YAML: {why}") from error
    except (ValueError, InputError) as error:
        raise InputError(f"prompt {file.name}: {error}") from error
    return prompt


def _check_templates(prompt: Prompt) -> None:
    """Raise now for a base without a place for a question, for errors that Jinja would raise while rendering, and for
    variables only the base prompt declares."""
    from jinja2 import TemplateSyntaxError
    from jinja2.meta import find_undeclared_variables

    base = prompt.base
    if base is not None and _QUESTION_VARIABLE not in base.variables:
        raise ValueError(f"{base.id!r} has no place for a question; extend `items` or `judge`")
    try:
        used_variables: set[str] = set()
        for template, (_, text) in zip(prompt._parse_templates, prompt.sections, strict=True):
            used_variables |= find_undeclared_variables(template.environment.parse(text))
    except TemplateSyntaxError as error:
        raise ValueError(f"line {error.lineno} of its section: {error.message}") from error
    undeclared_variables = sorted(used_variables.difference(_FRAMEWORK_VARIABLES, prompt.variables))
    if undeclared_variables:
        declared_variables_text = ", ".join((*prompt.variables, *undeclared_variables))
        raise ValueError(
            f"it uses {undeclared_variables[0]!r} and does not state it; write `variables: [{declared_variables_text}]`"
        )
