"""The README is run: its commands are typed, its evaluator is written to a file and used, its trace is compared."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.server import serving, status

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND = str(Path(sys.executable).with_name("jurygraph"))


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def commands() -> list[str]:
    return [line for block in blocks("sh") for line in block.splitlines() if line.startswith("jurygraph")]


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def test_the_trace_shown_is_the_one_that_the_example_gives(tmp_path: Path) -> None:
    example = shutil.copytree(ROOT / "examples" / "maths", tmp_path / "maths")
    run([COMMAND, "score", str(example / "tasks.jsonl"), "--out", "run", "--limit", "25"], tmp_path)
    typed = re.search(r"<!-- from: (.*?) -->", README)
    assert typed is not None
    response = shlex.split(typed[1])[-1]
    told = run([COMMAND, "explain", "run", "--response", response], tmp_path)
    assert told.split() == blocks("text")[0].split()  # the README wraps its lines


@pytest.mark.slow
def test_the_commands_of_the_first_project_run_as_typed(tmp_path: Path) -> None:
    typed = [line for line in commands() if "--config judge.yaml" not in line]
    assert len(typed) == 27
    for example in ("maths", "consensus"):
        shutil.copytree(ROOT / "examples" / example, tmp_path / "examples" / example)
    for line in typed:
        run([COMMAND, *shlex.split(line)[1:]], tmp_path)
    assert (tmp_path / "my-jury" / "run").is_dir()


@pytest.mark.slow
def test_an_attack_on_the_judge_is_reckoned_as_typed_and_sends_nothing(tmp_path: Path) -> None:
    dry, real = (line for line in commands() if "--config judge.yaml" in line)
    assert dry == "jurygraph attack --config judge.yaml --dry-run"
    assert real.startswith("jurygraph attack --config judge.yaml ")
    (config,) = (block for block in blocks("yaml") if "model:" in block)
    with serving(lambda body, number: status(500)) as server:
        there = re.sub(r"http://[^#]*", server.url, config)
        assert there != config
        (tmp_path / "judge.yaml").write_text(there, encoding="utf-8")
        told = run([COMMAND, *shlex.split(dry)[1:]], tmp_path)
    assert ("calls" in told, server.count) == (True, 0)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The README's evaluator and config, saved as it says."""
    tone, _ = blocks("python")
    (tmp_path / "tone.py").write_text(tone, encoding="utf-8")
    (tmp_path / "jury.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    return tmp_path


def test_the_evaluator_has_ten_lines_and_works_from_python(written: Path) -> None:
    tone, script = blocks("python")
    assert len([line for line in tone.splitlines() if line.strip()]) <= 10
    (written / "use.py").write_text(script, encoding="utf-8")
    kind, blunt = run([sys.executable, "use.py"], written).splitlines()
    assert kind == "kind 1.3 ok {'accuracy': 1.0, 'polite': 1.0}"
    assert blunt.startswith("blunt 0.2 ok")


def test_the_evaluator_works_on_the_command_line(written: Path) -> None:
    run([COMMAND, "init", "my-jury"], written)
    typed = re.search(r"`(jurygraph score my-jury/tasks.jsonl --config jury.yaml --out run)`", README)
    assert typed is not None
    run([COMMAND, *shlex.split(typed[1])[1:]], written)
    assert "polite" in run([COMMAND, "show", "run"], written)


def test_the_links_between_the_readme_and_the_tree_hold() -> None:
    for path in re.findall(r"`((?:examples|tests|jurygraph|benchmarks)/[\w./-]+)`", README):
        assert (ROOT / path).exists(), path
