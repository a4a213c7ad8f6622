"""Modules next to a config run only if the config names them by a dotted path."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import run_command, run_new_process, write_project

OPTIONAL = ("pyarrow", "matplotlib", "sentence_transformers", "gmpy2", "orjson", "uvloop")
"""Modules that ours, or libraries that we use, may look for."""

TASK = [{"id": "a", "query": "Ask.", "reference": "1", "responses": [{"id": "a/1", "text": "please, 1"}]}]


def write_modules(folder: Path, *names: str) -> None:
    """Write modules that leave a file behind when they are run."""
    for name in names:
        (folder / f"{name}.py").write_text(f"open({str(folder / 'ran')!r}, 'a').write('{name} ')\n")


COMMANDS = ("score", "doctor", "verify", "rescore")


def commands(folder: Path) -> list[tuple[object, ...]]:
    tasks, config = folder / "tasks.jsonl", folder / "jury.yaml"
    return [
        ("score", tasks, "--config", config, "--out", folder / "run", "--dry-run"),
        ("doctor", "--config", config),
        ("score", tasks, "--config", config, "--out", folder / "run"),
        ("verify", folder / "run", "--deep"),
        ("rescore", folder / "run", "--out", folder / "again", "--set", "scale=2"),
    ]


@pytest.mark.landing
@pytest.mark.parametrize(
    ("evaluator", "names"),
    [
        pytest.param("maths.accuracy", COMMANDS, marks=pytest.mark.exhaustive),
        pytest.param("manners.polite", COMMANDS, marks=pytest.mark.exhaustive),
        ("manners.polite", ("score", "verify")),
    ],
)
def test_modules_that_the_config_does_not_name_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evaluator: str, names: tuple[str, ...]
) -> None:
    write_project(tmp_path, TASK, f"evaluators: [{evaluator}]\n")
    write_modules(tmp_path, "jinja2", "diskcache", "json", "sitecustomize", *OPTIONAL)
    monkeypatch.chdir(tmp_path)
    for command in commands(tmp_path):
        if command[0] not in names or (names != COMMANDS and "--dry-run" in command):
            continue
        assert run_new_process(*command).code == 0, command
    assert not (tmp_path / "ran").exists()


def test_a_named_module_can_import_its_siblings(tmp_path: Path) -> None:
    write_project(tmp_path, TASK, "evaluators: [manners.polite]\n", "from wording import polite\n")
    (tmp_path / "wording.py").write_text(
        "from words import WORD\n\ndef polite(task, response):\n    return WORD in response.text\n"
    )
    (tmp_path / "words.py").write_text("WORD = 'please'\n")
    write_modules(tmp_path, "other")
    assert run_command("score", tmp_path / "tasks.jsonl", "--out", tmp_path / "run").code == 0
    shown = json.loads(run_command("show", tmp_path / "run", "--json").out)
    assert [verdict["score"] for verdict in shown["verdicts"]] == [1.0]
    assert run_command("verify", tmp_path / "run", "--deep").code == 0
    assert not (tmp_path / "ran").exists()


@pytest.mark.landing
@pytest.mark.parametrize(
    ("name", "config", "owner"),
    [
        ("json", "evaluators: [json.polite]\n", "a module of Python itself"),
        pytest.param(
            *("colorsys", "evaluators: [maths.accuracy, {use: colorsys.polite}]\n", "a module of Python itself"),
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            *("jinja2", "evaluators: [jinja2.polite]\n", "an installed module ("), marks=pytest.mark.exhaustive
        ),
        pytest.param(
            *("diskcache", "evaluators: [maths.accuracy]\nderivers: [diskcache.polite]\n", "an installed module ("),
            marks=pytest.mark.exhaustive,
        ),
        (
            "diskcache",
            "evaluators: [{use: checks.constraints, params: {functions: {one: diskcache.polite}}}]\n",
            "an installed module (",
        ),
    ],
)
def test_a_module_name_that_is_taken_is_refused_before_anything_runs(
    tmp_path: Path, name: str, config: str, owner: str
) -> None:
    write_project(tmp_path, TASK, config)
    write_modules(tmp_path, name)
    dry_run, doctor, *_ = commands(tmp_path)
    ended = run_new_process(*(doctor if name == "json" else dry_run))
    assert ended.code == 2
    assert f"{name}.py next to the config has the same name as {owner}" in ended.out + ended.err
    assert f"rename {name}.py" in ended.out + ended.err
    assert not (tmp_path / "ran").exists()


@pytest.mark.landing
def test_a_module_that_is_importable_anyway_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_project(tmp_path, TASK, "evaluators: [manners.polite]\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run_new_process("score", tmp_path / "tasks.jsonl", "--out", tmp_path / "run").code == 0


def test_a_folder_without_code_hides_no_installed_module(tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    write_project(tmp_path, TASK, "evaluators: [checks.tone.polite]\n")
    (tmp_path / "manners.py").rename(tmp_path / "checks" / "tone.py")
    assert run_command("score", tmp_path / "tasks.jsonl", "--out", tmp_path / "run").code == 0
    assert run_command("verify", tmp_path / "run", "--deep").code == 0
