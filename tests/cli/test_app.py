"""The list of commands: the help knows each by name and summary, and imports none of them for it."""

import subprocess
import sys
from typing import Any

import pytest
import typer

from jurygraph.cli.app import COMMANDS, app
from tests.cli.conftest import Command

LOADED = "print(*sorted(name for name in sys.modules if name.startswith('jurygraph.cli.commands.')))"


def command_modules_loaded_by(*words: str) -> list[str]:
    script = f"import sys\nfrom jurygraph.cli import main\ntry: main({list(words)})\nexcept SystemExit: pass\n{LOADED}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


def test_the_help_imports_no_command() -> None:
    assert command_modules_loaded_by("--help") == []


def test_a_command_imports_its_own_module_alone() -> None:
    assert command_modules_loaded_by("show", "--help") == ["jurygraph.cli.commands.show"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_is_the_first_sentence_of_the_command_s_help(name: str) -> None:
    command: Any = typer.main.get_command(app).get_command(None, name)  # type: ignore[attr-defined]
    assert command.get_short_help_str(limit=200) == COMMANDS[name].summary


def test_the_help_lists_every_command_with_its_summary(run: Command) -> None:
    listed = " ".join(run("--help").out.partition("Commands:\n")[2].split())
    assert listed == " ".join(f"{name} {one.summary}" for name, one in COMMANDS.items())


def test_an_unknown_command_is_refused_with_the_nearest_one(run: Command) -> None:
    ended = run("shwo")
    assert ended.code == 2
    assert "Did you mean 'show'?" in ended.err
