"""`jurygraph demo`: figures of runs that were scored here, and the page of the response that the findings are about."""

import json
import re
from pathlib import Path

import pytest

from jurygraph.cli.commands import demo
from tests.command import run_command


@pytest.mark.landing
def test_the_demo_shows_three_findings_each_of_runs_that_it_scored(tmp_path: Path) -> None:
    typed = run_command("demo", cwd=tmp_path)
    assert typed.code == 0, typed.err
    assert len(re.findall("^  → ", typed.out, re.MULTILINE)) == 9
    ((response, page),) = re.findall(
        r"^(\S+), from its text to its reward: (\S+)$", typed.out, re.MULTILINE
    )
    run = tmp_path / "demo-run" / "maths"
    shown = run_command("show", run, "--response", response, "--json").out
    assert f"a low reward says why: {json.loads(shown)['reward']['value']:.2f}, for" in typed.out
    assert response in (tmp_path / page).read_text(encoding="utf-8")
    again = run_command("demo", cwd=tmp_path)
    assert again.out == typed.out, "what was scored is kept"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--all"], "--all: needs the examples of the repository; run it in a checkout of it"),
        ([], "nowhere: is missing; install jurygraph again"),
    ],
)
def test_missing_examples_are_named(
    arguments: list[str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "_EXAMPLE_FOLDERS", (Path("nowhere"),))
    typed = run_command("demo", *arguments, cwd=tmp_path)
    assert (typed.code, typed.err.strip()) == (2, f"error: {problem}")
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_folder_for_the_runs(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine", encoding="utf-8")
    typed = run_command("demo", "notes", cwd=tmp_path)
    assert (typed.code, typed.err.strip()) == (
        2,
        "error: notes: is a file; name a folder for the runs",
    )
