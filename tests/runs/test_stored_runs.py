"""Runs that earlier versions stored are opened, verified, gone on with and shown by this one."""

import json
import zipfile
from pathlib import Path

import pytest

import jurygraph as jg
from jurygraph.runs.run import Run
from tests.command import run_command
from tests.runs.sample_runs import verify_deeply
from tests.runs.stored_runs import (
    ARCHIVES,
    CHAT,
    CHATS,
    EMPTY_REPLIES,
    RECORDED_TASK,
    TASKS,
    TOOL,
    TURNS_TASK,
    archive,
    empty_replies_jury,
    make,
    make_empty_replies,
    polite_jury,
    score,
    score_chats,
    turns_jury,
)

RUNS = {
    "part": 2,
    "whole": 6,
    "branched": 6,
    "rescored": 6,
    "erased": 6,
    "recorded": 3,
    "ranks": 4,
    "chats": 1,
    "turns": 1,
}
"""The kinds of stored runs, each with its number of traces."""
WITHOUT_CONVERSATIONS = "0.1.0-hub.zip"
CONVERSATIONS = sorted(
    path.name for path in ARCHIVES.glob("*.zip") if path.name != WITHOUT_CONVERSATIONS
)
TOOLS_AS_LABELS = "0.1.0-chat-labels.zip"


def run(*arguments: object) -> str:
    done = run_command(*arguments)
    assert done.code == 0, done.err
    return done.out


def extract(name: str, folder: Path) -> Path:
    with zipfile.ZipFile(ARCHIVES / name) as file:
        file.extractall(folder)
    return folder


@pytest.fixture(params=[WITHOUT_CONVERSATIONS, *CONVERSATIONS])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return extract(request.param, tmp_path)


def test_every_stored_run_is_opened_verified_and_shown(stored: Path) -> None:
    has_conversations = (stored / "chats.jsonl").exists()
    kinds = set(RUNS) if has_conversations else set(RUNS) - {"chats", "turns"}
    assert {path.name for path in stored.iterdir() if path.is_dir()} == kinds
    for name in sorted(kinds):
        run("verify", stored / name)
        shown = json.loads(run("show", stored / name, "--json").splitlines()[0])
        assert f"reward    {shown['reward']['value']:.4f}" in run(
            "show", stored / name, "--response", shown["response_id"]
        )
        with Run.open(stored / name) as opened:
            assert len(list(opened.traces())) == RUNS[name], name
    rewards = [trace["reward"]["value"] for trace in _traces(stored / "whole")]
    assert rewards == [1.0, 0.0] * 3
    assert [trace["reward"]["value"] for trace in _traces(stored / "rescored")] == [0.5, 0.0] * 3
    assert "erased" in run("show", stored / "erased", "--response", "four/wrong")


def _traces(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in run("export", folder, "--to", "jsonl").splitlines()]


def test_stored_runs_are_gone_on_with(stored: Path) -> None:
    score(stored, "part")
    with Run.open(stored / "part") as opened:
        assert opened.tasks_scored == len(TASKS)
    run("verify", stored / "part")
    with polite_jury(record=stored / "recorded") as jury:
        again = jury.score(RECORDED_TASK, ["Ann, please wait.", "Wait."], step=1)
        assert [trace.reward.value for trace in again] == [1.0, 0.0]
        assert isinstance(jury.config.model, str)
        traces = jury.score(RECORDED_TASK, ["Ann, please wait."])
        assert [trace.response_id for trace in traces] == ["letter@2/1"]
    run("verify", stored / "recorded")


@pytest.mark.parametrize("archive_name", CONVERSATIONS)
def test_stored_conversations_are_gone_on_with(archive_name: str, tmp_path: Path) -> None:
    """Where the run kept the tools as labels, those of the rest are labels as well."""
    stored = extract(archive_name, tmp_path)
    score_chats(stored)
    run("verify", stored / "chats")
    with Run.open(stored / "chats") as opened:
        scored = list(opened.scored_responses())
        tasks = [opened.task(trace.task_id) for trace, _ in scored]
    assert [trace.reward.components["kind"] for trace, _ in scored] == [1.0, 0.0]
    assert len(scored) == len(CHATS)
    are_labels = archive_name == TOOLS_AS_LABELS
    for (trace, response), task in zip(scored, tasks, strict=True):
        assert ("tools" in trace.labels) == are_labels
        assert (task is not None and task.tools is not None) != are_labels
        assert trace.reward.components["valid"] == (None if are_labels else 1.0)
        assert response is not None
        assert response.messages[0].tool_calls[0].name == TOOL["function"]["name"]
    with turns_jury(record=stored / "turns") as jury:
        for step, name in ((1, "chat"), (2, "next")):  # the first group is stored
            jury.score(TURNS_TASK, [jg.Response(id=name, messages=CHAT)], step=step)
    run("verify", stored / "turns")
    with Run.open(stored / "turns") as opened:
        scored = list(opened.scored_responses())
    assert [trace.response_id for trace, _ in scored] == ["chat", "next"]
    for trace, response in scored:
        assert trace.reward.value == 0.5  # the first of two turns is polite
        assert [verdict.turn for verdict in trace.verdicts] == [0, 0, 4, 4]
        assert response is not None
        assert "They want a hat." in response.text
    assert "in turn 4" in run("explain", stored / "turns", "--response", "chat")


def test_a_run_that_an_empty_last_message_stopped_is_verified_and_gone_on_with(
    tmp_path: Path,
) -> None:
    stored = extract("early/empty-replies.zip", tmp_path) / "run"
    run("verify", stored)
    assert verify_deeply(stored).recomputed == 4
    with empty_replies_jury(record=stored) as jury:
        for step, name in ((1, "chat"), (2, "next")):  # the first group is stored
            jury.score(TURNS_TASK, [jg.Response(id=name, messages=EMPTY_REPLIES)], step=step)
    assert verify_deeply(stored).recomputed == 4 + 4
    with Run.open(stored) as opened:
        traces = [trace for trace, _ in opened.scored_responses()]
    assert [
        [verdict.gated_by for verdict in trace.verdicts if verdict.gated_by] for trace in traces
    ] == [["empty-response"] * 2, ["empty-turn"]]
    assert [trace.reward.value for trace in traces] == pytest.approx([-0.5 / 3, 1.0])
    make_empty_replies(tmp_path / "new")


def test_a_new_archive_has_each_kind(tmp_path: Path) -> None:
    make(tmp_path)
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == set(RUNS)
    assert len(archive(tmp_path)) < 100_000
    assert isinstance(Run.open(tmp_path / "ranks").config, jg.Config)
