"""`jurygraph prompts`: the prompts of models can be read without reading code."""

import json
from pathlib import Path
from typing import Any

import pytest

from jurygraph.agents.registry import BUILTIN_EVALUATOR_PATHS
from jurygraph.prompts import load_prompt, prompt_names, read_prompt_source
from tests.cli.conftest import Command
from tests.prompts.test_library import FILLED
from tests.rows import all_rows

PERSON = {"query": "Plan a trip.", "profile": "travels with a cat"}
CRITERIA = {"query": "q", "reference": None, "response": "r", "compact": False}
EXTRACT = {"query": "q", "reference": None, "response": "r"}
NESTED = "[" * 100_000 + "]" * 100_000


@pytest.fixture
def person(tmp_path: Path) -> Path:
    path = tmp_path / "person.json"
    path.write_text(json.dumps(PERSON))
    return path


def test_list_has_every_prompt_with_its_version_purpose_and_variables(run: Command) -> None:
    lines = run("prompts", "list").out.splitlines()
    found = {one["id"]: one for one in json.loads(run("prompts", "list", "--json").out)}
    assert sorted(found) == list(prompt_names())
    for name in prompt_names():
        prompt = load_prompt(name)
        (line,) = (line for line in lines if line.split()[:2] == [name, prompt.version])
        assert prompt.purpose in line
    assert found["criteria"]["variables"] == ["query", "reference", "response", "items", "compact"]
    assert found["criteria"]["edition"] == load_prompt("criteria").full_version


def test_show_prints_the_file(run: Command) -> None:
    assert run("prompts", "show", "judge").out == read_prompt_source("judge")
    ended = run("prompts", "show", "criterion")
    assert (ended.code, ended.err) == (
        2,
        "error: there is no prompt 'criterion'; did you mean criteria?\n",
    )
    goal = "the evaluator of that name asks with the prompt goal"
    ended = run("prompts", "show", "goal_reached")
    assert ended.err == f"error: there is no prompt 'goal_reached'; {goal}\n"
    for name in BUILTIN_EVALUATOR_PATHS.keys() - {*prompt_names()}:
        assert f"error: there is no prompt {name!r}; " in run("prompts", "show", name).err


def test_render_prints_the_messages_that_a_model_receives(run: Command, person: Path) -> None:
    ended = run("prompts", "render", "profile", "--with", person)
    assert ended.code == 0, ended.err
    for message in load_prompt("profile").render(**PERSON).messages:
        assert f"## {message.role}\n{message.content}\n" in ended.out


def test_fences_are_marked_with_the_key_of_the_project(
    run: Command, person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run("prompts", "render", "profile", "--with", person).out
    monkeypatch.setenv("JURYGRAPH_FENCE_KEY", "a key of our own")
    assert run("prompts", "render", "profile", "--with", person).out != before


@all_rows("name", prompt_names())
def test_every_prompt_can_be_rendered_from_json(run: Command, tmp_path: Path, name: str) -> None:
    filled = {
        key: [one._asdict() for one in FILLED[name][key]]
        if key == "examples"
        else FILLED[name][key]
        for key in FILLED[name]
    }
    (tmp_path / "it.json").write_text(json.dumps(filled))
    ended = run("prompts", "render", name, "--with", tmp_path / "it.json", "--json")
    assert ended.code == 0, ended.err
    messages = load_prompt(name).render(**FILLED[name]).messages
    assert json.loads(ended.out) == [one.model_dump(mode="json") for one in messages]


def test_the_example_of_the_help_can_be_rendered(run: Command, tmp_path: Path) -> None:
    shown = run("prompts", "render", "--help").out.partition("criteria.json contains")[2]
    (tmp_path / "criteria.json").write_text(shown[shown.index("{") : shown.rindex("}") + 1])
    ended = run("prompts", "render", "criteria", "--with", tmp_path / "criteria.json")
    assert (ended.code, "It is kind." in ended.out) == (0, True), ended.err


def test_a_file_that_is_not_utf_8_is_named_with_its_byte(run: Command, tmp_path: Path) -> None:
    (tmp_path / "it.json").write_bytes(b'{"query": "q", "profile":\n "Caf\xe9"}')
    ended = run("prompts", "render", "profile", "--with", tmp_path / "it.json")
    assert (ended.code, "it.json, line 2: byte 6 (0xe9) is not UTF-8; save" in ended.err) == (
        2,
        True,
    )


CANNOT = "cannot be rendered with these variables: "


@all_rows(
    "name, content, wrong",
    [
        ("profile", "{", "is not valid JSON"),
        ("profile", NESTED, "is not valid JSON (recursion limit"),
        ("profile", [], "is a list; the variables are a JSON object; prompt"),
        (
            "profile",
            {"query": "Plan."},
            "missing variable 'profile'; prompt 'profile' needs query, profile",
        ),
        (
            "profile",
            {**PERSON, "profil": ""},
            "there is no variable 'profil'; did you mean profile?",
        ),
        ("profile", {**PERSON, "query": 5}, CANNOT),
        ("profile", {**PERSON, "profile": None}, f"{CANNOT}TypeError"),
        ("criteria", {**CRITERIA, "items": ["a"]}, CANNOT),
        ("criteria", {**CRITERIA, "items": [{"name": "a"}]}, CANNOT),
        (
            "criteria",
            {**CRITERIA, "items": [{"name": "a", "text": "b", "scale": 5}]},
            f"{CANNOT}UndefinedError: ",
        ),
        (
            "reviewer",
            {**FILLED["reviewer"], "examples": [{"reviewer": "ann", "resaon": ""}]},
            CANNOT,
        ),
        (
            "extract",
            {**EXTRACT, "kinds": ["meals"]},
            "variable kinds, as the params of extract: records: ",
        ),
        (
            "extract",
            {**EXTRACT, "kinds": {"meals": {"a b": "c"}}},
            "records.meals.a b: a name begins with a letter",
        ),
    ],
)
def test_variables_that_do_not_fit_are_refused_in_one_sentence(
    run: Command, tmp_path: Path, name: str, content: Any, wrong: str
) -> None:
    (tmp_path / "it.json").write_text(content if isinstance(content, str) else json.dumps(content))
    ended = run("prompts", "render", name, "--with", tmp_path / "it.json")
    assert (ended.code, ended.out) == (2, "")
    assert wrong in ended.err
    assert len(ended.err.splitlines()) == 1
