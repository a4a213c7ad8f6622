"""`jurygraph score --rewards-from`: an evaluation of what was trained on the rewards of a run (GEAR, D.6)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.models.judge_scripts import config, judge_reply, responses, rubric
from tests.models.server import Server, run_server
from tests.runs.sample_runs import task_line, write_tasks


@pytest.fixture
def server() -> Iterator[Server]:
    with run_server(lambda body, number: judge_reply(body, served=f"{body['model']}-1")) as running:
        yield running


@pytest.fixture
def train(tmp_path: Path, server: Server, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of `tiny` in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_tasks(tmp_path, [task_line(rubric("kind"), responses("a long and kind letter"))])
    Path("jury.yaml").write_text(json.dumps(config(server.url, cache=False)))
    assert run("score", "tasks.jsonl", "--out", "train").code == 0


@pytest.mark.usefixtures("train")
def test_the_judge_of_the_training_is_refused_before_anything_is_asked(
    run: Command, server: Server
) -> None:
    count_before = server.count
    ended = run("score", "tasks.jsonl", "--out", "eval", "--rewards-from", "train")
    assert (ended.code, ended.out) == (2, "")
    assert (
        "'tiny' (or who answers for it) would evaluate what was trained on its own rewards; name"
        in ended.err
    )
    assert (Path("eval").exists(), server.count) == (False, count_before)


@pytest.mark.usefixtures("train")
def test_another_judge_evaluates_and_both_are_named(run: Command, server: Server) -> None:
    other = f"openai-compatible:{server.url}#large"
    ended = run(
        "score", "tasks.jsonl", "--out", "eval", "--rewards-from", "train", "--model", other
    )
    purpose = "purpose: evaluation of what was trained on rewards of tiny, tiny-1, by large"
    assert (ended.code, purpose in ended.err) == (0, True)
    assert purpose in run("show", "eval", "--response", "letter/0").out
