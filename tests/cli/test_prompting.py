"""`jurygraph prompts`: what models are told can be read without reading code."""

import json
from pathlib import Path

import pytest

from jurygraph.prompts import load_prompt, prompt_names, prompt_source
from tests.cli.conftest import Command

PERSON = {"query": "Plan a trip.", "profile": "travels with a cat"}


@pytest.fixture
def person(tmp_path: Path) -> Path:
    path = tmp_path / "person.json"
    path.write_text(json.dumps(PERSON))
    return path


def test_list_names_every_prompt_with_its_version_and_purpose(run: Command) -> None:
    ended = run("prompts", "list")
    assert ended.code == 0
    for name in prompt_names():
        prompt = load_prompt(name)
        assert any(line.split()[:2] == [name, prompt.version] for line in ended.out.splitlines())
        assert prompt.purpose in ended.out


def test_list_as_json_says_what_each_needs(run: Command) -> None:
    found = {one["id"]: one for one in json.loads(run("prompts", "list", "--json").out)}
    assert sorted(found) == list(prompt_names())
    assert found["criteria"]["variables"] == ["query", "reference", "response", "items", "compact"]
    assert found["criteria"]["edition"] == load_prompt("criteria").edition


def test_show_prints_the_file(run: Command) -> None:
    assert run("prompts", "show", "judge").out == prompt_source("judge")


def test_render_prints_the_messages_that_a_model_would_read(run: Command, person: Path) -> None:
    ended = run("prompts", "render", "profile", "--with", person)
    assert ended.code == 0, ended.err
    for message in load_prompt("profile").render(**PERSON).messages:
        assert f"## {message.role}\n{message.content}\n" in ended.out


def test_render_as_json_gives_the_messages(run: Command, person: Path) -> None:
    found = json.loads(run("prompts", "render", "profile", "--with", person, "--json").out)
    assert found == [one.model_dump(mode="json") for one in load_prompt("profile").render(**PERSON).messages]


def test_the_marks_are_made_with_the_projects_key(run: Command, person: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run("prompts", "render", "profile", "--with", person).out
    monkeypatch.setenv("JURYGRAPH_FENCE_KEY", "a key of our own")
    assert run("prompts", "render", "profile", "--with", person).out != before


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("{", "is no JSON"),
        ("[]", "is no JSON object"),
        ('{"query": "Plan."}', "has no 'profile'; prompt 'profile' needs query, profile"),
        ('{"query": "Plan.", "profile": "", "profil": ""}', "has no variable 'profil'; did you mean profile?"),
    ],
)
def test_variables_that_do_not_fit_are_refused_in_one_sentence(
    run: Command, tmp_path: Path, content: str, wrong: str
) -> None:
    (tmp_path / "it.json").write_text(content)
    ended = run("prompts", "render", "profile", "--with", tmp_path / "it.json")
    assert (ended.code, ended.out) == (2, "")
    assert wrong in ended.err
    assert len(ended.err.splitlines()) == 1


def test_something_that_is_missing_within_a_variable_is_named(run: Command, tmp_path: Path) -> None:
    filled = {"query": "q", "reference": None, "response": "r", "compact": False, "items": [{"name": "a"}]}
    (tmp_path / "it.json").write_text(json.dumps(filled))
    ended = run("prompts", "render", "criteria", "--with", tmp_path / "it.json")
    assert ended.code == 2
    assert "something that prompt 'criteria' shows is missing" in ended.err


def test_a_prompt_that_there_is_not_is_refused_and_the_nearest_named(run: Command) -> None:
    ended = run("prompts", "show", "criterion")
    assert (ended.code, ended.err) == (2, "error: there is no prompt 'criterion'; did you mean criteria?\n")
