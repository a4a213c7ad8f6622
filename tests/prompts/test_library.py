"""Prompts are files that list their variables, whose values are never rendered as templates."""

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

from jurygraph.errors import InputError
from jurygraph.prompts import (
    Prompt,
    RenderedPrompt,
    RenderOptions,
    ShownExample,
    load_prompt,
    parse_prompt,
    prompt_names,
)
from tests.rows import all_rows

FOLDER = files("jurygraph.prompts")
SHIPPED = sorted(
    path.name.removesuffix(".md") for path in FOLDER.iterdir() if path.name.endswith(".md")
)

VERSIONS = {
    "checklist": ("1", "0f8a7e8b09e6a25b5ad6ed765eefc0b57a45e69defbdfc001fff2e5fde3de343"),
    "conclude": ("1", "e49edb94f41f1931d6204abff75a62a3d05e676157b67cb4fe042fd349e9ff55"),
    "comparison": ("1", "1cb45c010db7220b31d182a17c05be9899a5440780730770cee309e6b90c08db"),
    "contrast-check": ("2", "804ca20cd9b7b4955fe89621d47fafba714777c978c799d6e68f3320e74c9e4f"),
    "contrast": ("3", "22035415870882aad512e6364fe5969a5a1e371769153d6ef22cb24d809902cb"),
    "criteria": ("2", "eee4a8219f76d98b556be43881e91d6c3db672f46559d1b5f2308c7f79bdfdf5"),
    "decomposed": ("1", "31e797875f90e8edc7cee848aabaf798f8a71f255ff0855c1351188d00fe4acb"),
    "dimensions": ("1", "59ae15be16443925099ddaf53f3ca20434ca62f93a28ba0b7d60bbff6afc1d46"),
    "direct": ("2", "9d0f2751be87495e6308725f86692af68539b3fc27f894fee6deee01e0366b7b"),
    "context": ("1", "7157888af01639b715caa7d4b301a2bb7382c0a28ae2489a8117e75b0f3e399e"),
    "conversation": ("1", "b0b1513bad0c82b250a44b82a92b877d7807658a9c43474997113f919d3216b1"),
    "turn": ("1", "46a57d71e6c027180e3de3bef12ba4b99e09d5f5cca038c532e454c4213e864a"),
    "goal": ("1", "6ce0aa9f03bcd530635f44639e3263ff0a4312672ef59c02bd1b8fd787c3c3b7"),
    "example": ("1", "bf4b26a6b2657eece5d188dec46ca0d9ece229b1ee7a827afa73b152c716178b"),
    "example-prompt": ("1", "8a6cccbba0bb60596812ba2b9f0d4bac342adce058e450d3cfd43def02abe5be"),
    "extract": ("1", "9a54dc3697bea8e40230f33f7ac33410d67083ab501673ee0219e5f1a50378e5"),
    "graph-edges": ("2", "c706ae3f6ecc46de3e4e1b1ab7b87920012e5d35aea0d62d21d0aec6ec1eca12"),
    "graph-roles": ("2", "4dd9bb05f2d5ad79ebeca70b42d8cd7208a60a527d39d76d44599fe578e5861f"),
    "instructed-criteria": (
        "2-instructed",
        "b9b8efc2486f6bcf71718aa79bf878aad1e2f3b61f16349b570c9769aa4d62d8",
    ),
    "investigate": ("2", "abecd1016afc36a3476a759c4e842927131559f132d4a4015cb1e45dff08efd6"),
    "items": ("2", "5755ecd0c8ed77c001eedcf070dcd22e1dcdcaf1fdf73d41c1a4066df1b72351"),
    "judge": ("1", "d1e6df29f5235d01ca549bbb4516983f9a707e7b90d9ec927b25bc6f979b559a"),
    "listing": ("1", "6264dc800249ce5568a6623298c676645d5566dab1f90e22bdd8e44e0096b89f"),
    "pair": ("1", "09d1055776589f90e5e6fde9132f84a25f3299c6e452c4da757f9e81db43b97e"),
    "policy": ("1", "6410aac79662d4ff1c9c7a58ab6219f56d2312bcb14ed244c4c8613e95b2f907"),
    "preferences": ("1", "7b51ece73414f8706a019e1010d8491c8199b19ee09acc48626fd93ee7ed249c"),
    "presentation": ("2", "53080c9f53cbdac811efc571ede7bee94f1f99e3851c02973307aabea1c2a655"),
    "profile": ("2", "82bd6d1c86ad2a070a6c9c9f27cdfc0bbc913791183b6837c7e04ef92bac7696"),
    "protocol": ("1", "41f29be04391a8e6e2519436dd85f55aedb41c69601af887c705bb0cff20f63e"),
    "result": ("1", "f6195ec5c172d33f63090a1a1b6ff83def8a9f32cfe59964a48e831108766e98"),
    "reviewer": ("2", "7d694c258fc7e577326375bfb28ddf77529f919f8ee7d46e60990fe9bed38ab4"),
    "steps": ("1", "a314cad150feaed3282b9549e0fabd2f8626afb23b9ab96e2cd4c60cb1dbcf65"),
    "tensions": ("1", "1d3b460ec7b1e4ad34f29f2af8d3b30043140051a8f41f5c075284e655eede48"),
    "verification": ("2", "ea3e7573d8be73cb597fc62b5a0d4e7a39210ae38ebaf1d834130f32ad62f674"),
}
"""By id, the version of each prompt and the SHA-256 of its file. A version is part of every request's identity and of
the plans and runs that name it: one version is one text, for good."""

SHOWN = {"query": "Write a letter.", "reference": "Dear Ann, …", "response": "Dear Ann"}
ITEMS = {
    "items": [
        {"name": "item_1", "text": "It is short.", "parts": False, "scale": None},
        {"name": "item_2", "text": "How kind?", "parts": False, "scale": ("1", "10")},
        {
            "name": "item_3",
            "text": "Both.\npart_1: one\npart_2: other",
            "parts": True,
            "scale": None,
        },
    ],
    "compact": False,
}
PEOPLE = [
    {"name": "person_1", "text": "- hard: no cats"},
    {"name": "person_2", "text": "- soft: cats"},
]
KNOWN = [{"name": "facts", "text": "{}"}, {"name": "passage 1", "text": "Ann is kind."}]
COMPARED = {
    "query": "Write a letter.",
    "reference": "Dear Ann, …",
    "responses": [{"name": "A", "text": "Dear Ann"}, {"name": "B", "text": "Dear Ben"}],
}
FILLED: dict[str, dict[str, Any]] = {
    "policy": {},
    "judge": {**SHOWN, "question": "Is it kind?"},
    "items": {**SHOWN, **ITEMS, "question": "# Criteria"},
    "criteria": {**SHOWN, **ITEMS},
    "instructed-criteria": {**SHOWN, **ITEMS, "instructions": "Be strict."},
    "preferences": {**SHOWN, **ITEMS, "profile": "likes cats"},
    "extract": {
        **SHOWN,
        "kinds": {
            "meals": {
                "name": {
                    "about": "its name",
                    "number": False,
                    "context": False,
                    "optional": False,
                    "one_of": (),
                }
            }
        },
    },
    "tensions": {
        "query": "Write a letter.",
        "people": [
            {"name": "stakeholder_1", "text": "- hard: no cats"},
            {"name": "stakeholder_2", "text": "- soft: cats"},
        ],
    },
    "context": {**SHOWN, **ITEMS, "passages": (("passage 1 (letters.md)", "Letters begin so."),)},
    "profile": {"query": "Write a letter.", "profile": "likes cats"},
    "graph-roles": {
        "query": "Write a letter.",
        "domain": "- It is a letter.",
        "about": '{"domain": "letters"}',
        "rubric": '{"id": "a"}',
        "asked": '"a"',
    },
    "goal": {**SHOWN, **ITEMS},
    "graph-edges": {
        "query": "Write a letter.",
        "domain": "- It is a letter.",
        "about": '{"domain": "letters"}',
        "worked_examples": "- parent, child: none.",
        "criteria": '{"id": "a"}',
        "pairs": '{"parent": "a", "child": "b"}',
    },
    "checklist": {**SHOWN, **ITEMS, "profile": "likes cats"},
    "reviewer": {
        **SHOWN,
        "items": [{"name": "score", "text": "How kind?", "parts": False, "scale": ("1", "5")}],
        "step": 0.5,
        "exclusion": 0.0,
        "compact": False,
        "dimension": "kindness",
        "examples": (
            ShownExample("reviewer 1", "Dear Ben", "4", "it is warm"),
            ShownExample("reviewer 2", "Sir", "2", prompt="Write to the king."),
        ),
    },
    "conversation": {"messages": "[0] user:\nHello"},
    "turn": {"message": 4},
    "investigate": {
        "tools": [{"name": "read", "description": "Read.", "schema": "{}"}],
        "rounds": 7,
        "native": False,
        "responses": 2,
        "passages": 1,
    },
    "result": {
        "number": 1,
        "tool": "read",
        "outcome": "ok",
        "note": "It is cut.",
        "result": "Dear Ann",
    },
    "conclude": {},
    "example": {"reviewer": "reviewer 1", "text": "Dear Ben", "score": "4", "reason": "it is warm"},
    "example-prompt": {"prompt": "Write to the king."},
    "protocol": {**SHOWN, "people": PEOPLE, "question": "Is it kind?"},
    "direct": {**SHOWN, "people": PEOPLE},
    "dimensions": {**SHOWN, "people": PEOPLE},
    "verification": {**SHOWN, "people": PEOPLE, "names": ("person_1", "person_2")},
    "decomposed": {**SHOWN, "people": PEOPLE},
    "steps": {
        **SHOWN,
        "steps": [{"name": "step_1", "text": "Dear"}, {"name": "step_2", "text": "Ann"}],
        "facts": '{"name": "Ann"}',
    },
    "comparison": {**COMPARED, "question": "Which is kinder?"},
    "pair": {**COMPARED, "criterion": "How kind?", "compact": False},
    "contrast": {**SHOWN, "edits": ("number", "step", "answer", "entity", "fact"), "known": KNOWN},
    "contrast-check": {**COMPARED, "known": KNOWN},
    "presentation": {
        "response": "Dear Ann",
        "statements": [{"name": "s1", "text": "It is kind."}],
        "operation": "Say it in other words.",
    },
    "listing": {**COMPARED, "criterion": "How kind?", "names": ("A", "B"), "compact": False},
}
"""What each prompt can be filled with."""

OURS = {"question", "instructions", "domain", "worked_examples", "operation"}
"""Variables whose texts nobody else wrote: another prompt of ours, and what we or the user say of a field."""

MANNERS = [
    RenderOptions(fence, reminder, b"a key")
    for fence in (True, False)
    for reminder in (True, False)
]
every_manner = pytest.mark.parametrize(
    "manner", MANNERS, ids=lambda manner: f"{manner.fence}-{manner.reminder}"
)

PARTS = (
    "conversation",
    "turn",
    "example",
    "example-prompt",
    "investigate",
    "result",
    "conclude",
)
"""Parts of other prompts, which get texts that are inside a fence already, and the steps of an investigation."""
POLICY = "policy"
"""The system prompt of a policy, which no judge gets."""
every_prompt = pytest.mark.parametrize("name", SHIPPED)
every_request = pytest.mark.parametrize(
    "name", [name for name in SHIPPED if name not in (*PARTS, POLICY)]
)
"""All but what is a part of a request: what fills that is fenced where it is laid out."""


def source(name: str) -> str:
    return FOLDER.joinpath(f"{name}.md").read_text(encoding="utf-8")


def prompt_of(body: str, variables: str = "[text]", front: str = "") -> Prompt:
    head = f'id: own\nversion: "1"\npurpose: try something\nvariables: {variables}\n{front}'
    return parse_prompt(f"---\n{head}---\n## user\n{body}\n")


def render_template(body: str, **variables: Any) -> str:
    (message,) = prompt_of(body).render(**variables).messages
    return message.content


def message_texts(name: str, manner: RenderOptions = MANNERS[0], **filled: Any) -> str:
    """The last message of a prompt, which is the user's."""
    return load_prompt(name).render(manner, **FILLED[name] | filled).messages[-1].content


# The prompts that are shipped


@every_prompt
def test_a_prompt_has_the_name_of_its_file(name: str) -> None:
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


def test_every_recorded_version_belongs_to_a_prompt() -> None:
    assert sorted(VERSIONS) == SHIPPED
    assert sorted(FILLED) == SHIPPED


@every_prompt
def test_a_prompt_names_exactly_the_variables_that_it_uses(name: str) -> None:
    prompt = load_prompt(name)
    environment = ImmutableSandboxedEnvironment()
    environment.filters["fenced"] = str
    used = set().union(
        *(find_undeclared_variables(environment.parse(text)) for _, text in prompt.sections)
    )
    assert used - {"fence", "reminder"} == set(prompt.variables)
    assert len(set(prompt.needs)) == len(prompt.needs)


@every_prompt
def test_a_prompt_needs_all_of_its_variables(name: str) -> None:
    prompt, filled = load_prompt(name), FILLED[name]
    assert filled.keys() == set(prompt.needs)
    roles = ["user"] if name in PARTS else ["system", "user"]
    if name == POLICY:
        roles = ["system"]
    assert [message.role for message in prompt.render(**filled).messages] == roles
    for left_out in filled:
        with pytest.raises(UndefinedError, match=f"'{left_out}' is undefined"):
            prompt.render(**{key: value for key, value in filled.items() if key != left_out})


@every_request
def test_foreign_text_is_in_the_last_message_only(name: str) -> None:
    """So that a provider's cache of beginnings works, and a system message is ours alone."""
    system, _ = load_prompt(name).render(**FILLED[name]).messages
    others = {
        key: "other" if isinstance(value, str) else value for key, value in FILLED[name].items()
    }
    assert load_prompt(name).render(**others).messages[0] == system


@every_request
def test_foreign_text_is_fenced(name: str) -> None:
    """Each string that fills the prompt, and each text of an item or example, is between marks."""
    filled = {key: value for key, value in FILLED[name].items() if key not in OURS}
    texts = [value for value in filled.values() if isinstance(value, str)]
    texts += [one["text"] for value in filled.values() if isinstance(value, list) for one in value]
    texts += [
        text
        for one in filled.get("examples", ())
        for text in (one.prompt, one.text, one.reason)
        if text
    ]
    texts += [text for passage in filled.get("passages", ()) for text in passage]
    found = [
        re.search(rf"<<<(\w+) ([0-9a-f]{{16}})\n{re.escape(text)}\n\1 \2>>>", message_texts(name))
        for text in texts
    ]
    assert None not in found
    marks = load_prompt(name).render(MANNERS[0], **FILLED[name]).marks
    assert sorted(one[2] for one in found if one is not None) == sorted(marks)


# What fills a prompt is data


TEMPLATES = [
    "{{ 7*7 }}",
    "{% if true %}49{% endif %}",
    "}}{{",
]


@pytest.mark.parametrize("text", TEMPLATES)
@every_request
def test_a_template_in_foreign_text_is_not_rendered(name: str, text: str) -> None:
    filled = {
        key: f"before {text} after" for key, value in FILLED[name].items() if isinstance(value, str)
    }
    assert message_texts(name, **filled).count(f"before {text} after") == len(filled)


@given(st.text(st.characters(codec="utf-8")))
def test_any_text_is_rendered_unchanged(text: str) -> None:
    assert render_template("<{{ text }}>", text=text) == f"<{text}>"


# The sandbox


@all_rows(
    "body",
    [
        "{{ text.__class__ }}",
        "{{ text.__class__.__mro__[1].__subclasses__() }}",
        "{{ text.format.__globals__ }}",
        "{{ '{0.__class__}'.format(text) }}",
    ],
)
def test_a_template_cannot_reach_attributes_of_its_values(body: str) -> None:
    with pytest.raises((SecurityError, UndefinedError)):
        render_template(body, text="a")


def test_a_template_cannot_change_a_value() -> None:
    values = ["a"]
    with pytest.raises(SecurityError):
        render_template("{{ text.append('b') }}", text=values)
    assert values == ["a"]


@pytest.mark.parametrize(
    "body", ["{{ nobody }}", "{% if nobody %}{% endif %}", "{{ text.nobody }}", "{{ text[3] }}"]
)
def test_a_missing_variable_is_an_error(body: str) -> None:
    with pytest.raises(UndefinedError):
        render_template(body, text="a")


# The files


def test_a_prompt_has_a_message_for_each_section() -> None:
    prompt = parse_prompt(
        '---\nid: own\nversion: "1"\npurpose: p\nvariables: [text]\n---\n'
        "## system\nBe kind.\n\n## user\n\n# {{ text }}\n---\nas it stands\n\n## assistant\nYes.\n"
    )
    messages = prompt.render(text="Hello").messages
    assert [(message.role, message.content) for message in messages] == [
        ("system", "Be kind."),
        ("user", "# Hello\n---\nas it stands"),
        ("assistant", "Yes."),
    ]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('---\nid: own\nversion: "1"\npurpose: p\nvariables: []\n---\nno section\n', "sections"),
        ('---\nversion: "1"\npurpose: p\nvariables: []\n---\n## user\nHello\n', "id"),
        ("---\nid: own\nversion: 1\npurpose: p\nvariables: []\n---\n## user\nHello\n", "version"),
        (
            '---\nid: own\nversion: "1"\npurpose: p\nvariables: []\nmore: 1\n---\n## user\nHello\n',
            "more",
        ),
    ],
)
def test_missing_and_unknown_keys_of_the_front_matter_are_refused(text: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        parse_prompt(text)


def test_front_matter_constructs_no_objects() -> None:
    with pytest.raises(ConstructorError):
        prompt_of("Hello", front="paper: !!python/object/apply:os.getcwd []\n")


# A prompt within another


def test_a_prompt_is_the_question_of_the_base_that_it_extends() -> None:
    text = message_texts("criteria")
    assert text.startswith("# Task\n")
    assert (
        text.index("# Response")
        < text.index("# Criteria")
        < text.index("item_1:")
        < text.index("# What to give")
    )
    assert (
        load_prompt("criteria").render(**FILLED["criteria"]).messages[0]
        == (load_prompt("judge").render(**FILLED["judge"]).messages[0])
    )


def test_the_full_version_names_the_version_of_the_base() -> None:
    judge, items, criteria = (load_prompt(name) for name in ("judge", "items", "criteria"))
    assert judge.full_version == judge.version
    assert (
        criteria.full_version
        == f"{criteria.version} in items {items.version} in judge {judge.version}"
    )


def test_a_prompt_with_a_base_has_one_user_section() -> None:
    front = '---\nid: own\nversion: "1"\npurpose: p\nvariables: []\nextends: judge\n---\n'
    with pytest.raises(
        ValueError, match="prompt 'own' extends 'judge'; give it one section, headed `## user`"
    ):
        parse_prompt(f"{front}## system\nA\n\n## user\nB\n")


# The manner


@every_manner
def test_a_prompt_mentions_the_fence_only_if_there_is_one(manner: RenderOptions) -> None:
    rendered = load_prompt("criteria").render(manner, **FILLED["criteria"])
    error_text = " ".join(message.content for message in rendered.messages)
    assert (
        bool(rendered.marks)
        == manner.fence
        == ("<<<" in error_text)
        == ("stands between two marks" in error_text)
    )


def test_only_the_fence_marks_depend_on_the_key() -> None:
    def without_marks(rendered: RenderedPrompt) -> list[str]:
        return [
            re.sub("|".join(rendered.marks), "mark", message.content)
            for message in rendered.messages
        ]

    one, other = (
        load_prompt("criteria").render(RenderOptions(key=key), **FILLED["criteria"])
        for key in (b"1", b"2")
    )
    assert set(one.marks).isdisjoint(other.marks)
    assert without_marks(one) == without_marks(other)


# What providers can keep


JUDGING = sorted(name for name in prompt_names() if " in judge " in load_prompt(name).full_version)


def test_prompts_about_a_task_share_a_prefix_up_to_the_response() -> None:
    """A provider that keeps the beginning of a prompt has read it once for all evaluators, batches and responses."""
    assert {"criteria", "preferences", "checklist", "direct", "decomposed"} <= set(JUDGING)
    beginnings = set()
    for name in JUDGING:
        for response in ("Dear Ann", "Dear Bo, and more of it"):
            system, user = (
                load_prompt(name).render(**FILLED[name] | {"response": response}).messages
            )
            beginnings.add((system.content, user.content.split("<<<response ")[0]))
    assert len(beginnings) == 1


# Names


def test_an_unknown_prompt_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(
        InputError, match=r"there is no prompt 'criterias'; did you mean criteria\?"
    ):
        load_prompt("criterias")
