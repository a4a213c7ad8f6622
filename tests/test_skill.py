"""SKILL.md and the scripts that whoever has read it and `--help` alone would write."""

import re
from pathlib import Path
from typing import Any

import pytest

from jurygraph.cli.app import COMMANDS, root_command
from tests.pages import ROOT, follow
from tests.test_pages import answer_anything

SKILL = (ROOT / "jurygraph" / "SKILL.md").read_text(encoding="utf-8")
SCRIPTS = ROOT / "examples" / "scripts"


def test_the_skill_names_commands_and_options_that_exist() -> None:
    typed = re.findall(r"`jurygraph ([a-z]+)([^`]*)`", SKILL)
    assert len({name for name, _ in typed}) > 15
    for name, arguments in typed:
        assert name in COMMANDS
        command: Any = root_command.get_command(None, name)  # type: ignore[attr-defined]
        if hasattr(command, "commands"):  # a group, such as `study`
            command = command.commands[arguments.split()[0]]
        options = {option for param in command.params for option in param.opts}
        assert set(re.findall(r"--[a-z-]+", arguments)) <= options, name


@pytest.mark.landing
@pytest.mark.parametrize("script", ["compose", "reviewers", "audit"])
def test_a_script_for_each_use_runs(script: str, tmp_path: Path) -> None:
    lines = (SCRIPTS / f"{script}.sh").read_text(encoding="utf-8").splitlines()
    commands = [line for line in lines if not line.startswith("#")]
    assert len(follow("```sh\n" + "\n".join(commands) + "\n```", tmp_path, answer_anything)) > 8
