"""`show` and `explain` list the contrasts that were ranked incorrectly."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command, run_command

CONFIG = """
derivers: [synthesizer]
evaluators: [maths.accuracy, {use: maths.accuracy, material: contrasts}]
components:
  enhanced:
    combiner: contrast
    inputs: {accuracy: maths.accuracy, accuracy-of-contrasts: maths.accuracy-of-contrasts}
reward: {accuracy: 1.0, enhanced: 0.5}
"""
TEXT = "Ann buys 3*4=12 eggs.\nShe sells 12/2=6 eggs.\nA: 6"
TASK = {
    "id": "eggs",
    "query": "Ann buys 3 boxes of 4 eggs and sells half of them. How many are left?",
    "reference": "A: 6",
    "responses": [{"id": "right", "text": TEXT}, {"id": "wrong", "text": "A: 7"}],
}


@pytest.fixture(scope="module")
def contrast_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("contrasts")
    (folder / "tasks.jsonl").write_text(json.dumps(TASK) + "\n", encoding="utf-8")
    (folder / "jury.yaml").write_text(CONFIG, encoding="utf-8")
    ended = run_command("score", folder / "tasks.jsonl", "--config", folder / "jury.yaml", "--out", folder / "run")
    assert ended.code == 0, ended.err
    return folder / "run"


@pytest.mark.parametrize("command", ["show", "explain"])
@pytest.mark.exhaustive
def test_a_contrast_that_was_ranked_incorrectly_is_listed_with_its_edit(
    contrast_run: Path, run: Command, command: str
) -> None:
    text = run(command, contrast_run, "--response", "right").out
    assert "enhanced: 1 of 3 contrasts score less than the response" in text
    assert "ranked incorrectly: ~number-1 (3*4 is 12, not 13) scores the same as the response" in text
    assert "ranked incorrectly: ~step-1" in text
    assert "~answer-1 (" not in text


def test_a_contrast_gives_no_reason_for_lost_points(contrast_run: Path, run: Command) -> None:
    text = run("explain", contrast_run, "--response", "right").out
    (line,) = (line for line in text.splitlines() if line.startswith("Lost"))
    assert line.startswith("Lost 0.3333: enhanced 0.3333 of 1, weight 0.5")
