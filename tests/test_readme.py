"""The README and the tour are run: their commands are typed, their evaluator is written to a file and used, and what
the README shows of a trace is compared."""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.models.server import serving, status

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
COMMAND = str(Path(sys.executable).with_name("jurygraph"))
ASKING = "--config judge.yaml"
"""What the commands have in them that ask the README's own judge."""


def blocks(page: str, *languages: str) -> list[str]:
    """The contents of a page's code blocks in any of these languages."""
    return re.findall(rf"^```(?:{'|'.join(languages)})\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)


def commands(page: str) -> list[str]:
    """Every line that a page has a reader type in a shell; each has to be one of ours, so that none goes untyped."""
    typed = [line for block in blocks(page, "sh", "bash") for line in block.splitlines()]
    assert [line for line in typed if not line.startswith("jurygraph ")] == []
    return typed


def words(line: str) -> list[str]:
    """A command as a shell would split it, without its comment."""
    return [COMMAND, *shlex.split(line, comments=True)[1:]]


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def pieces(shown: str) -> Iterator[list[str]]:
    """What a page shows of an output, word by word, between the lines that stand for what it leaves out."""
    for piece in re.split(r"^…$", shown, flags=re.MULTILINE):
        yield piece.split()


def test_the_trace_shown_is_the_one_that_the_first_project_gives(tmp_path: Path) -> None:
    *_, init, score, _, explain = commands(README)
    for line in (init, score):
        run(words(line), tmp_path)
    assert f"<!-- from: {explain} -->" in README
    told = " ".join(run(words(explain), tmp_path).split())  # the README wraps its lines
    (shown,) = blocks(README, "text")
    first, *rest = map(" ".join, pieces(shown))
    assert told.startswith(first)
    place = len(first)
    for piece in rest:
        place = told.index(piece, place) + len(piece)


@pytest.mark.slow
def test_the_commands_of_the_readme_and_the_tour_run_as_typed(tmp_path: Path) -> None:
    typed = [line for line in [*commands(README), *commands(TOUR)] if ASKING not in line]
    assert len(typed) == 30
    for example in ("maths", "consensus"):
        shutil.copytree(ROOT / "examples" / example, tmp_path / "examples" / example)
    for line in typed:
        run(words(line), tmp_path)
    assert (tmp_path / "my-jury" / "run").is_dir()


@pytest.mark.slow
def test_an_attack_on_the_judge_is_reckoned_as_typed_and_sends_nothing(tmp_path: Path) -> None:
    dry, real = (line for line in [*commands(README), *commands(TOUR)] if ASKING in line)
    assert dry == "jurygraph attack --config judge.yaml --dry-run"
    assert real.startswith("jurygraph attack --config judge.yaml ")
    (config,) = (block for block in blocks(README, "yaml") if "model:" in block)
    with serving(lambda body, number: status(500)) as server:
        there = re.sub(r"http://[^#]*", server.url, config)
        assert there != config
        (tmp_path / "judge.yaml").write_text(there, encoding="utf-8")
        told = run(words(dry), tmp_path)
    assert ("calls" in told, server.count) == (True, 0)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The README's evaluator and config, saved as it says."""
    (tone,) = blocks(README, "python")
    (tmp_path / "tone.py").write_text(tone, encoding="utf-8")
    (tmp_path / "jury.yaml").write_text(blocks(README, "yaml")[0], encoding="utf-8")
    return tmp_path


def test_the_evaluator_has_ten_lines_and_works_from_python(written: Path) -> None:
    (tone,), (script,) = blocks(README, "python"), blocks(TOUR, "python")
    assert len(tone.splitlines()) <= 10
    (written / "use.py").write_text(script, encoding="utf-8")
    kind, blunt = run([sys.executable, "use.py"], written).splitlines()
    assert kind == "kind 1.3 ok {'accuracy': 1.0, 'polite': 1.0}"
    assert blunt.startswith("blunt 0.2 ok")


def test_the_evaluator_works_on_the_command_line(written: Path) -> None:
    run([COMMAND, "init", "my-jury"], written)
    typed = re.search(r"`(jurygraph score my-jury/tasks.jsonl --config jury.yaml --out run)`", README)
    assert typed is not None
    run(words(typed[1]), written)
    assert "polite" in run([COMMAND, "show", "run"], written)


def test_the_readme_is_finished_in_two_screens() -> None:
    assert len(README.splitlines()) <= 105
