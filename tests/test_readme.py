"""The README and the tour are run: their commands are typed, their evaluator is written to a file and used, and what
the README shows of a trace is compared."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import JURYGRAPH as COMMAND
from tests.command import run_command
from tests.models.server import run_server, status

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
ASKING = "--config judge.yaml"
"""What the commands have in them that ask the README's own judge."""
DEMO = "make demo"
SHOWN = dict(re.findall(r"^<!-- from: ([^\n]*) -->\n```text\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE))
"""What the README shows of the output of a command."""


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
    if command[0] == COMMAND:
        code, out, err = run_command(*command[1:], cwd=folder)
    else:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        code, out, err = done.returncode, done.stdout, done.stderr
    assert code == 0, f"{command}: {err}"
    return out


def pieces(shown: str) -> Iterator[list[str]]:
    """What a page shows of an output, word by word, between the lines that stand for what it leaves out."""
    for piece in re.split(r"^…$", shown, flags=re.MULTILINE):
        yield piece.split()


def test_what_the_readme_shows_is_what_comes_out(written: Path) -> None:
    told = {line: run(words(line), written) for line in commands(README) if ASKING not in line}
    assert len(SHOWN) == len(blocks(README, "text")) == 2
    for line, text in SHOWN.items():
        if line == DEMO:  # below
            continue
        rest = " ".join(told[line].split())  # the README wraps its lines
        for piece in filter(None, map(" ".join, pieces(text))):
            assert piece in rest, line
            rest = rest.partition(piece)[2]


@pytest.mark.exhaustive
def test_the_demo_begins_with_the_finding_of_the_readme(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    script = "from examples import demo; demo.OUT.mkdir(); demo.maths()"
    printed = run([sys.executable, "-c", script], tmp_path)
    finding = " ".join(printed[printed.index("→") :].split())
    assert finding.startswith(" ".join(SHOWN[DEMO].split()))


@pytest.mark.exhaustive
def test_the_commands_of_the_readme_and_the_tour_run_as_typed(written: Path) -> None:
    typed = [line for line in [*commands(README), *commands(TOUR)] if ASKING not in line]
    assert len(typed) == 41
    for example in ("maths", "consensus"):
        shutil.copytree(ROOT / "examples" / example, written / "examples" / example)
    for line in typed:
        run(words(line), written)
    assert (written / "my-jury" / "run").is_dir()


@pytest.mark.exhaustive
def test_what_the_judge_would_ask_is_reckoned_as_typed_and_nothing_is_sent(tmp_path: Path) -> None:
    score, attack, real = (line for line in [*commands(README), *commands(TOUR)] if ASKING in line)
    assert score.startswith("jurygraph score answers.csv --prompt-column question --response-column answer ")
    assert attack == "jurygraph attack --config judge.yaml --dry-run"
    assert real.startswith("jurygraph attack --config judge.yaml ")
    (tmp_path / "answers.csv").write_text("question,answer\n2 + 2?,Four.\n", encoding="utf-8")
    (config,) = (block for block in blocks(README, "yaml") if "model:" in block)
    with run_server(lambda body, number: status(500)) as server:
        there = re.sub(r"http://[^#]*", server.url, config)
        assert there != config
        (tmp_path / "judge.yaml").write_text(there, encoding="utf-8")
        told = [run(words(line), tmp_path) for line in (score, attack)]
    assert (["calls" in one for one in told], server.count) == ([True, True], 0)
    assert not (tmp_path / "judged").exists()


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The README's evaluator and config, saved as it says."""
    (tone,) = blocks(README, "python")
    (tmp_path / "tone.py").write_text(tone, encoding="utf-8")
    (tmp_path / "jury.yaml").write_text(blocks(README, "yaml")[0], encoding="utf-8")
    return tmp_path


@pytest.mark.landing
def test_the_evaluator_has_ten_lines_and_works_from_python(written: Path) -> None:
    (tone,), (script, _) = blocks(README, "python"), blocks(TOUR, "python")
    assert len(tone.splitlines()) <= 10
    (written / "use.py").write_text(script, encoding="utf-8")
    kind, *printed = run([sys.executable, "use.py"], written).splitlines()
    assert kind == "kind 1.15 ok {'accuracy': 1.0, 'patient': 0.5}"
    assert "blunt 0.0 ok {'accuracy': 0.0, 'patient': 0.0}" in printed
    assert "Lost 0.15: patient 0.5 of 1, weight 0.3 (steps shown: 1, as in “17 + 25 = 42”)." in printed
    assert "accuracy were met 1.0 1.0" in printed


@pytest.mark.landing
def test_a_stored_run_is_read_from_python(tmp_path: Path) -> None:
    for line in ("jurygraph init my-jury", "jurygraph score my-jury/tasks.jsonl --out my-jury/run"):
        assert line in [*commands(README), *commands(TOUR)]
        run(words(line), tmp_path)
    _, script = blocks(TOUR, "python")
    first, *lines = run([sys.executable, "-c", script], tmp_path).splitlines()
    shown = run([COMMAND, "show", "my-jury/run", "--json"], tmp_path).splitlines()
    traces = [json.loads(line) for line in shown]
    assert first == f"none True {len({trace['task_id'] for trace in traces})}"
    rewards, (query, *explained) = lines[: len(traces)], lines[len(traces) :]
    assert rewards == [f"{one['task_id']} {one['response_id']} {one['reward']['value']}" for one in traces]
    (hasty,) = (one for one in traces if one["response_id"] == "train/hasty")
    assert query.endswith(f" {hasty['reward']['value']}")
    verdicts = [
        f"{one['response_id']} {verdict['question']} {verdict['score']} {verdict['reason']}"
        for one in traces
        for verdict in one["verdicts"]
    ]
    assert explained[-len(verdicts) :] == verdicts
    assert explained[0] == "Response train/hasty by hasty to task train gets 0.6667."
    assert explained[-len(verdicts) - 1].endswith(" accuracy were met")


def test_the_evaluator_tells_the_responses_apart_and_gives_nothing_for_silence(written: Path) -> None:
    for line in commands(README)[:2] + [line for line in commands(README) if "jury.yaml" in line]:
        run(words(line), written)
    traces = map(json.loads, run([COMMAND, "show", "run", "--json"], written).splitlines())
    patient = {trace["response_id"]: trace["reward"]["components"]["patient"] for trace in traces}
    assert set(patient.values()) == {0.0, 0.5, 1.0}
    assert patient["cake/silent"] == 0.0


def test_the_readme_is_finished_in_two_screens() -> None:
    assert len(README.splitlines()) <= 120
