"""Prompts: files that say what they need, rendered where what fills them is never a template."""

import re
from hashlib import sha256
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment
from ruamel.yaml.constructor import ConstructorError

from jurygraph.prompts import Prompt, load_prompt
from jurygraph.prompts.library import parse_prompt
from jurygraph.safety.fence import fenced

FOLDER = files("jurygraph.prompts")
SHIPPED = sorted(path.name.removesuffix(".md") for path in FOLDER.iterdir() if path.name.endswith(".md"))

VERSIONS = {
    "criteria": ("1", "19f0de039d0497378f287778a64e2f3ed330a36182a95e543a885de493cb3620"),
}
"""By id, the version of each prompt and the SHA-256 of its file. A version is part of every request's identity and of
the plans and runs that name it: one version is one text, for good."""

FILLED: dict[str, dict[str, Any]] = {
    "criteria": {
        "query": "Write a letter.",
        "reference": "Dear Ann, …",
        "criteria": [{"name": "criterion_1", "text": "It is short."}, {"name": "criterion_2", "text": "It is kind."}],
        "response": "Dear Ann",
    },
}
"""What each prompt can be filled with."""

every_prompt = pytest.mark.parametrize("name", SHIPPED)


def source(name: str) -> str:
    return FOLDER.joinpath(f"{name}.md").read_text(encoding="utf-8")


def prompt_of(body: str, variables: str = "[text]", front: str = "") -> Prompt:
    head = f'id: own\nversion: "1"\npurpose: try something\nvariables: {variables}\n{front}'
    return parse_prompt(f"---\n{head}---\n## user\n{body}\n")


def rendered(body: str, **variables: Any) -> str:
    (message,) = prompt_of(body).render(**variables)
    return message.content


# The prompts that are shipped


def test_there_are_prompts() -> None:
    assert "criteria" in SHIPPED


@every_prompt
def test_a_prompt_is_what_its_file_is_called(name: str) -> None:
    prompt = load_prompt(name)
    assert prompt.id == name
    assert prompt.purpose


@every_prompt
def test_a_text_that_changed_has_another_version(name: str) -> None:
    found = (load_prompt(name).version, sha256(source(name).encode()).hexdigest())
    assert name in VERSIONS, f"add to VERSIONS: {name!r}: {found}"
    known = VERSIONS[name]
    assert found == known, (
        f"{name}.md is not what it was when version {known[0]!r} was written down. If its text changed, give it "
        f"another version in its front matter, so that no answer to the old words passes for one to the new; "
        f"then write down here {name!r}: {found}"
    )


def test_no_prompt_is_written_down_that_is_not_there() -> None:
    assert sorted(VERSIONS) == SHIPPED
    assert sorted(FILLED) == SHIPPED


@every_prompt
def test_a_prompt_names_exactly_the_variables_that_it_uses(name: str) -> None:
    prompt = load_prompt(name)
    environment = ImmutableSandboxedEnvironment()
    environment.filters["fenced"] = fenced
    used = set().union(*(find_undeclared_variables(environment.parse(text)) for _, text in prompt.sections))
    assert used == set(prompt.variables)
    assert len(set(prompt.variables)) == len(prompt.variables)


@every_prompt
def test_a_prompt_renders_with_its_variables_and_without_none_of_them(name: str) -> None:
    prompt, filled = load_prompt(name), FILLED[name]
    assert filled.keys() == set(prompt.variables)
    assert [message.role for message in prompt.render(**filled)] == [role for role, _ in prompt.sections]
    for left_out in filled:
        with pytest.raises(UndefinedError, match=f"'{left_out}' is undefined"):
            prompt.render(**{key: value for key, value in filled.items() if key != left_out})


@every_prompt
def test_no_message_is_empty_and_no_template_is_left_in_it(name: str) -> None:
    for message in load_prompt(name).render(**FILLED[name]):
        assert message.content.strip()
        assert not re.search(r"{{|}}|{%|%}|{#|#}", message.content)


@every_prompt
def test_what_everybody_shares_comes_first_and_what_was_written_by_others_is_in_the_last_message(name: str) -> None:
    """So that a provider's cache of beginnings works, and a system message is ours alone."""
    sections = load_prompt(name).sections
    assert sections[0][0] == "system"
    assert all("{" not in text for role, text in sections if role == "system")
    assert sections[-1][0] == "user"


@every_prompt
def test_everything_that_others_wrote_is_fenced(name: str) -> None:
    """Marks of what stands in it: each string that fills the prompt, and each text of a criterion."""
    filled = FILLED[name]
    texts = [value for value in filled.values() if isinstance(value, str)]
    texts += [one["text"] for value in filled.values() if isinstance(value, list) for one in value]
    shown = load_prompt(name).render(**filled)[-1].content
    for text in texts:
        assert re.search(rf"<<<(\w+ [0-9a-f]{{16}})\n{re.escape(text)}\n\1>>>", shown), text


@every_prompt
def test_a_prompt_is_parsed_once(name: str) -> None:
    assert load_prompt(name) is load_prompt(name)


# What fills a prompt is data


TEMPLATES = [
    "{{ 7*7 }}",
    "{% if true %}49{% endif %}",
    "{# gone #}",
    "{{ query }}",
    "{% raw %}",
    "{{ nobody }}",
    "}}{{",
]


@pytest.mark.parametrize("text", TEMPLATES)
@every_prompt
def test_a_template_in_what_others_wrote_stays_text(name: str, text: str) -> None:
    filled = FILLED[name] | {
        key: f"before {text} after" for key, value in FILLED[name].items() if isinstance(value, str)
    }
    shown = load_prompt(name).render(**filled)[-1].content
    assert shown.count(f"before {text} after") == sum(isinstance(value, str) for value in filled.values())


@given(st.text(st.characters(codec="utf-8")))
def test_any_text_is_shown_as_it_is(text: str) -> None:
    assert rendered("<{{ text }}>", text=text) == f"<{text}>"


# The sandbox


@pytest.mark.parametrize(
    "body",
    [
        "{{ text.__class__ }}",
        "{{ text.__class__.__mro__[1].__subclasses__() }}",
        "{{ text['__class__'] }}",
        "{{ text | attr('__class__') }}",
        "{{ text.format.__globals__ }}",
        "{{ '{0.__class__}'.format(text) }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ self.__init__.__globals__ }}",
    ],
)
def test_a_template_reaches_nothing_behind_its_values(body: str) -> None:
    with pytest.raises((SecurityError, UndefinedError)):
        rendered(body, text="a")


def test_a_template_changes_no_value() -> None:
    values = ["a"]
    with pytest.raises(SecurityError):
        rendered("{{ text.append('b') }}", text=values)
    assert values == ["a"]


@pytest.mark.parametrize("body", ["{{ nobody }}", "{% if nobody %}{% endif %}", "{{ text.nobody }}", "{{ text[3] }}"])
def test_what_is_not_given_is_an_error_and_never_an_empty_text(body: str) -> None:
    with pytest.raises(UndefinedError):
        rendered(body, text="a")


# The files


def test_a_prompt_has_a_message_for_each_section() -> None:
    prompt = parse_prompt(
        '---\nid: own\nversion: "1"\npurpose: p\nvariables: [text]\n---\n'
        "## system\nBe kind.\n\n## user\n\n# {{ text }}\n---\nas it stands\n\n## assistant\nYes.\n"
    )
    messages = prompt.render(text="Hello")
    assert [(message.role, message.content) for message in messages] == [
        ("system", "Be kind."),
        ("user", "# Hello\n---\nas it stands"),
        ("assistant", "Yes."),
    ]


def test_a_section_of_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="a section is headed 'judge'; each is one of system, user, assistant, tool"):
        prompt_of("Hello\n\n## judge\nHow so?")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('---\nid: own\nversion: "1"\npurpose: p\nvariables: []\n---\nno section\n', "sections"),
        ('---\nversion: "1"\npurpose: p\nvariables: []\n---\n## user\nHello\n', "id"),
        ("---\nid: own\nversion: 1\npurpose: p\nvariables: []\n---\n## user\nHello\n", "version"),
        ('---\nid: own\nversion: "1"\npurpose: p\nvariables: []\nmore: 1\n---\n## user\nHello\n', "more"),
    ],
)
def test_front_matter_that_lacks_something_or_says_more_is_refused(text: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        parse_prompt(text)


def test_front_matter_makes_no_objects() -> None:
    with pytest.raises(ConstructorError):
        prompt_of("Hello", front="paper: !!python/object/apply:os.getcwd []\n")


def test_a_changed_text_is_another_prompt() -> None:
    assert prompt_of("Hello").digest != prompt_of("Hello!").digest
    assert prompt_of("Hello").digest == prompt_of("Hello").digest
