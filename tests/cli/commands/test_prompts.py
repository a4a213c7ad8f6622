"""`jurygraph prompts`: the prompts of models can be read without reading code."""

import json
from pathlib import Path
from typing import Any

import pytest

from jurygraph.prompts import load_prompt, prompt_names, prompt_source
from tests.cli.conftest import Command, CommandResult
from tests.prompts.test_library import FILLED
from tests.rows import all_rows

PERSON = {"query": "Plan a trip.", "profile": "travels with a cat"}
CRITERIA = {"query": "q", "reference": None, "response": "r", "compact": False}
EXTRACT = {"query": "q", "reference": None, "response": "r"}
ON_SCALE = [{"name": "score", "text": "How kind?", "scale": ["1", "5"]}]
SCORING = {**CRITERIA, "dimension": "kindness", "counts": [], "step": None, "exclusion": None, "items": ON_SCALE}
SCORED = {"reviewer": "reviewer 1", "text": "Dear Ben", "score": "4"}
COMPARED = {"query": "q", "reference": None, "criterion": "How kind?", "compact": False}
NESTED = "[" * 100_000 + "]" * 100_000


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


def test_list_json_has_the_variables_of_each_prompt(run: Command) -> None:
    found = {one["id"]: one for one in json.loads(run("prompts", "list", "--json").out)}
    assert sorted(found) == list(prompt_names())
    assert found["criteria"]["variables"] == ["query", "reference", "response", "items", "compact"]
    assert found["criteria"]["edition"] == load_prompt("criteria").full_version


def test_show_prints_the_file(run: Command) -> None:
    assert run("prompts", "show", "judge").out == prompt_source("judge")


def test_render_prints_the_messages_that_a_model_receives(run: Command, person: Path) -> None:
    ended = run("prompts", "render", "profile", "--with", person)
    assert ended.code == 0, ended.err
    for message in load_prompt("profile").render(**PERSON).messages:
        assert f"## {message.role}\n{message.content}\n" in ended.out


def test_render_json_has_the_messages(run: Command, person: Path) -> None:
    found = json.loads(run("prompts", "render", "profile", "--with", person, "--json").out)
    assert found == [one.model_dump(mode="json") for one in load_prompt("profile").render(**PERSON).messages]


def test_fences_are_marked_with_the_key_of_the_project(
    run: Command, person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run("prompts", "render", "profile", "--with", person).out
    monkeypatch.setenv("JURYGRAPH_FENCE_KEY", "a key of our own")
    assert run("prompts", "render", "profile", "--with", person).out != before


@all_rows(
    "content, wrong",
    [
        ("{", "is not valid JSON"),
        ("[]", "expected a JSON object"),
        (NESTED, "is nested too deeply"),
        ('{"query": "Plan."}', "missing variable 'profile'; prompt 'profile' needs query, profile"),
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


def render(run: Command, folder: Path, name: str, filled: dict[str, Any]) -> CommandResult:
    (folder / "it.json").write_text(json.dumps(filled))
    return run("prompts", "render", name, "--with", folder / "it.json")


def test_items_need_a_name_and_a_text_and_can_have_a_scale(run: Command, tmp_path: Path) -> None:
    items = [{"name": "kind", "text": "It is kind."}, {"name": "style", "text": "It fits.", "scale": [1, 10]}]
    ended = render(run, tmp_path, "criteria", {**CRITERIA, "items": items})
    assert ended.code == 0, ended.err
    assert "- kind: say whether it is `met`" in ended.out
    assert "- style: give as `value` a number from 1 (not at all) to 10 (wholly)" in ended.out


@all_rows("name", prompt_names())
def test_every_prompt_can_be_rendered_from_json(run: Command, tmp_path: Path, name: str) -> None:
    filled = {
        key: [one._asdict() for one in FILLED[name][key]] if key == "examples" else FILLED[name][key]
        for key in FILLED[name]
    }
    (tmp_path / "it.json").write_text(json.dumps(filled))
    ended = run("prompts", "render", name, "--with", tmp_path / "it.json", "--json")
    assert ended.code == 0, ended.err
    messages = load_prompt(name).render(**FILLED[name]).messages
    assert json.loads(ended.out) == [one.model_dump(mode="json") for one in messages]


@all_rows("name, variable", [("direct", "people"), ("verification", "names"), ("reviewer", "examples")])
def test_optional_lists_can_be_empty(run: Command, tmp_path: Path, name: str, variable: str) -> None:
    filled = {**SCORING, "people": [], "names": [], "examples": [], variable: []}
    needed = {key: value for key, value in filled.items() if key in load_prompt(name).needs}
    ended = render(run, tmp_path, name, needed)
    assert ended.code == 0, ended.err


def test_an_example_can_have_a_reason(run: Command, tmp_path: Path) -> None:
    examples = [{**SCORED, "reason": "it is warm"}, {**SCORED, "reviewer": "reviewer 2"}]
    ended = render(run, tmp_path, "reviewer", {**SCORING, "examples": examples})
    assert ended.out.count("it is warm") == ended.out.count("The score of reviewer 2: 4") == 1


def test_kinds_have_the_form_of_a_config(run: Command, tmp_path: Path) -> None:
    kinds = {"meals": {"name": "the restaurant", "day": {"about": "its number", "number": True}}}
    ended = render(run, tmp_path, "extract", {**EXTRACT, "kinds": kinds})
    assert ended.code == 0, ended.err
    assert "- `name`: the restaurant\n- `day`: its number (a number)" in ended.out


@all_rows(
    "name, filled, wrong",
    [
        ("criteria", {**CRITERIA, "items": "a"}, "variable items: expected a list of objects with `name` and `text`"),
        ("criteria", {**CRITERIA, "items": []}, "variable items: expected a list of objects with `name` and `text`"),
        (
            "criteria",
            {**CRITERIA, "items": ["a"]},
            "expected a list of objects with `name` and `text`; items[0]: is the text 'a'; write an object",
        ),
        (
            "criteria",
            {**CRITERIA, "items": [{"name": "a"}]},
            "`name` and `text`; items[0].text: is missing; every item needs it",
        ),
        (
            "criteria",
            {**CRITERIA, "items": [{"name": "a", "text": "b", "scale": 5}]},
            "prompt 'criteria' cannot be rendered with these variables: UndefinedError: ",
        ),
        (
            "criteria",
            {**CRITERIA, "items": [], "compact": "no"},
            "variable compact: expected true or false, got the text 'no'",
        ),
        ("profile", {**PERSON, "query": 5}, "variable query: expected a text, got the number 5"),
        ("profile", {**PERSON, "profile": None}, "prompt 'profile' cannot be rendered with these variables: TypeError"),
        ("tensions", {"query": "q", "people": {"ann": "x"}}, "variable people: expected a list of objects with"),
        (
            "criteria",
            {**CRITERIA, "items": [{"name": "a", "text": "b", "part": True}]},
            "items[0].part: unknown; did you mean parts?",
        ),
        (
            "reviewer",
            {**SCORING, "examples": {}},
            "variable examples: expected a list of objects with `reviewer`, `text` and `score`",
        ),
        (
            "reviewer",
            {**SCORING, "examples": [{**SCORED, "score": 4}]},
            "examples[0].score: is the number 4; write text",
        ),
        (
            "reviewer",
            {**SCORING, "examples": [{**SCORED, "reason": 4}]},
            "examples[0].reason: is the number 4; write text",
        ),
        (
            "reviewer",
            {**SCORING, "examples": [{**SCORED, "resaon": ""}]},
            "examples[0].resaon: unknown; did you mean reason?",
        ),
        (
            "reviewer",
            {**SCORING, "examples": [], "step": "1"},
            "variable step: expected a number or null, got the text '1'",
        ),
        ("reviewer", {**SCORING, "examples": [], "step": True}, "variable step: expected a number or null, got true"),
        (
            "reviewer",
            {**SCORING, "examples": [], "counts": [{"score": "4", "number": 0}]},
            "variable counts: expected a list of objects with `score` and `number`; counts[0].number",
        ),
        (
            "pair",
            {**COMPARED, "responses": []},
            "variable responses: expected a list of objects with `name` and `text`",
        ),
        (
            "listing",
            {**COMPARED, "responses": [{"name": "A", "text": "a"}], "names": "A, B"},
            "variable names: expected a list of texts, got the text 'A, B'",
        ),
        (
            "listing",
            {**COMPARED, "responses": [{"name": "A", "text": "a"}], "names": ["A", 2]},
            "variable names: expected a list of texts; names[1]: is the number 2; write text",
        ),
        ("extract", {**EXTRACT, "kinds": ["meals"]}, "variable kinds, as the params of extract: records: "),
        ("extract", {**EXTRACT, "kinds": {"meals": {"a b": "c"}}}, "records.meals.a b: a name begins with a letter"),
    ],
)
def test_a_variable_of_the_wrong_type_is_named_without_a_traceback(
    run: Command, tmp_path: Path, name: str, filled: dict[str, Any], wrong: str
) -> None:
    ended = render(run, tmp_path, name, filled)
    assert (ended.code, ended.out) == (2, "")
    assert wrong in ended.err
    assert len(ended.err.splitlines()) == 1


def test_an_unknown_prompt_is_refused_with_the_nearest(run: Command) -> None:
    ended = run("prompts", "show", "criterion")
    assert (ended.code, ended.err) == (2, "error: there is no prompt 'criterion'; did you mean criteria?\n")
