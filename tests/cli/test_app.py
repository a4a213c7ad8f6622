"""The list of commands: the help knows each by name and summary, and a command imports what it needs alone."""

import importlib
import logging
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from jurygraph.cli.app import COMMANDS, COMMANDS_BY_HEADING, main, root_command
from tests.cli.conftest import Command, write_project
from tests.rows import all_rows

LOADED = (
    "print(*sorted(name for name in sys.modules if name.startswith('jurygraph.cli.commands.')))"
)
AS_SCRIPT = """
import atexit, gc, sys
from jurygraph.cli import main

def report():
    names = {name.partition(".")[0] for name in sys.modules}
    print(gc.get_freeze_count() > 0, gc.get_stats()[2]["collections"], *names)

atexit.register(report)  # before `main` registers what is to be done later: what is registered first is done last
main()
"""
TASK = {
    "id": "sum",
    "query": "How much is 6 x 7?",
    "reference": "42",
    "responses": [{"id": "a", "text": "A: 42.0"}],
}
MODELS = {
    "aiohttp",
    "jinja2",
    "litellm",
    "openai",
    "xllamacpp",
    "sentence_transformers",
    "torch",
    "transformers",
}
MATHEMATICS = {"sympy", "math_verify", "latex2sympy2_extended", "scipy"}
FILES = {"pandas", "pyarrow", "matplotlib", "cryptography"}
MACHINES = {
    "langgraph",
    "langchain_core",
    "langsmith",
    "numpy",
    "pydantic",
    "asyncio",
    "sqlite3",
    "ruamel",
    "diskcache",
}


def command_modules_loaded_by(*words: str) -> list[str]:
    script = f"import sys\nfrom jurygraph.cli import main\ntry: main({list(words)})\nexcept SystemExit: pass\n{LOADED}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1].split()


def libraries_loaded_by(*words: object) -> set[str]:
    """Run a command as its script does, and return the top-level names of what it has imported."""
    script = [sys.executable, "-c", AS_SCRIPT, *map(str, words)]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    is_frozen, searches, *names = done.stdout.splitlines()[-1].split()
    assert (is_frozen, searches) == ("True", "0"), (
        "of all objects for cycles, at the start or at the end"
    )
    return set(names)


@pytest.mark.landing
def test_the_help_imports_no_library_but_that_of_the_command_line() -> None:
    assert not libraries_loaded_by("--help") & (MODELS | MATHEMATICS | FILES | MACHINES)


@pytest.mark.landing
def test_scoring_with_checks_alone_imports_no_library_for_models(tmp_path: Path) -> None:
    project = write_project(
        tmp_path, [TASK], "evaluators: [maths.accuracy, maths.format]\nreward: {accuracy: 1.0}\n"
    )
    loaded = libraries_loaded_by("score", project / "tasks.jsonl", "--out", project / "run")
    assert "langgraph" in loaded
    assert not loaded & (MODELS | MATHEMATICS | FILES)


@pytest.mark.landing
def test_a_model_on_a_server_needs_no_library_of_other_providers(tmp_path: Path) -> None:
    config = "model: openai-compatible:http://127.0.0.1:9#tiny\nevaluators: [criteria]\n"
    task = TASK | {"rubric": {"criteria": [{"id": "right", "text": "It is right.", "weight": 1.0}]}}
    project = write_project(tmp_path, [task], config)
    loaded = libraries_loaded_by(
        "score", project / "tasks.jsonl", "--out", project / "run", "--dry-run"
    )
    assert not loaded & ((MODELS | MATHEMATICS | FILES) - {"aiohttp", "jinja2"})


@pytest.mark.landing
def test_the_help_imports_no_command() -> None:
    assert command_modules_loaded_by("--help") == []


@pytest.mark.landing
def test_a_command_imports_its_own_module_alone() -> None:
    assert command_modules_loaded_by("show", "--help") == ["jurygraph.cli.commands.show"]


@all_rows("name", COMMANDS)
def test_a_summary_is_the_first_sentence_of_the_command_s_help(name: str) -> None:
    command: Any = root_command.get_command(None, name)  # type: ignore[attr-defined]
    assert command.get_short_help_str(limit=200) == COMMANDS[name]


def test_the_help_lists_every_command_with_its_summary(run: Command) -> None:
    assert sorted(chain(*COMMANDS_BY_HEADING.values())) == sorted(COMMANDS)
    printed = " ".join(run("--help").out.split())
    for heading, names in COMMANDS_BY_HEADING.items():
        listed = " ".join(f"{name} {COMMANDS[name]}" for name in names)
        assert f" {heading}: {listed}" in printed


def test_a_script_ends_with_the_exit_code_after_graphs_were_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its end looks for tasks that were abandoned, by a name that no type checker follows."""
    time_limits = importlib.import_module("jurygraph.graphs.time_limits")
    # with those that another test has abandoned, it would end this process
    monkeypatch.setattr(time_limits, "ABANDONED_ASYNCIO_TASKS", [])
    monkeypatch.setattr(sys, "argv", ["jurygraph", "--version"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0


def test_an_unknown_command_is_refused_with_the_nearest_one(run: Command) -> None:
    ended = run("shwo")
    assert ended.code == 2
    assert "Did you mean 'show'?" in ended.err


def test_a_notice_on_a_file_is_printed_once_by_a_command() -> None:
    """Files are read several times; a server may have other troubles again."""
    message = "a.xlsx: of 2 sheets the first is read"
    handler = logging.lastResort
    assert handler is not None
    for _ in range(2):
        with pytest.raises(SystemExit):
            main(["--version"])
        for name, expected in (("jurygraph.sources.files", [True, False]), ("x", [True, True])):
            fields = {"name": name, "levelno": logging.WARNING, "msg": message}
            printed = [bool(handler.filter(logging.makeLogRecord(fields))) for _ in range(2)]
            assert printed == expected
