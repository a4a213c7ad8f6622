"""The project's key for the marks of fences: another key changes the sent marks and not the run."""

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.runs.integrity.deep_verification import verify_deep
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from tests.models.judge_scripts import response_in
from tests.models.server import Server
from tests.runs.sample_runs import verify_run, write_tasks
from tests.runs.test_calls import judge_config, run_session, stored_calls, tasks_with_rubrics

KEYS = ("", "a key of our own", "another one")


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(tmp_path, tasks_with_rubrics(2))


def set_key(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("JURYGRAPH_FENCE_KEY", key)


def sent_marks(server: Server, start: int) -> set[str]:
    """Return all marks of fences in the sent requests."""
    shown = [seen.body["messages"][1]["content"] for seen in server.requests[start:]]
    return {mark for text in shown for mark in re.findall(r"<<<\w+ ([0-9a-f]{16})\n", text)}


def test_keys_change_the_sent_marks_and_not_the_stored_calls(
    server: Server, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks, ids = [], []
    for place, key in enumerate(KEYS):
        set_key(monkeypatch, key)
        before = server.count
        run_session(tmp_path / f"run {place}", tasks, judge_config(server))
        marks.append(sent_marks(server, before))
        ids.append({request.digest for request, _ in stored_calls(tmp_path / f"run {place}")})
    assert len(set().union(*marks)) == sum(map(len, marks)) > 0
    assert ids[0] == ids[1] == ids[2]


def test_a_run_verifies_with_another_key(
    server: Server, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_key(monkeypatch, KEYS[1])
    run_session(tmp_path / "run", tasks, judge_config(server))
    monkeypatch.delenv("JURYGRAPH_FENCE_KEY")
    with closing(Run.open(tmp_path / "run")) as run:
        found = verify_deep(run, lambda count: None)
    assert found.recomputed == 2 * 2 * 5
    assert not any(found[2:])


def test_the_key_is_not_stored(
    server: Server, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_key(monkeypatch, "canary-of-a-fence")
    run_session(
        tmp_path / "run",
        tasks,
        judge_config(server, record=str(tmp_path / "calls.jsonl"), cache=True),
    )
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"canary-of-a-fence" in content for content in files)


SHORT = {"t0/r0": "42", "t0/r1": "It is 42, as\n42\nshows.", "t1/r0": "response 42", "t1/r1": "42"}
"""Short responses, and longer ones that contain them."""


@pytest.mark.parametrize("name", ["t0/r0", "t1/r0"])
def test_an_erasure_removes_the_calls_about_the_response_only(
    server: Server, tmp_path: Path, name: str
) -> None:
    given: list[dict[str, Any]] = tasks_with_rubrics(2)
    for line in given:
        for response in line["responses"]:
            response["text"] = SHORT[response["id"]]
    run_session(
        tmp_path / "run",
        write_tasks(tmp_path, given),
        {**judge_config(server), "safety": {"gates": []}},
    )
    before = [response_in(read_body(request)) for request, _ in stored_calls(tmp_path / "run")]
    erase(tmp_path / "run", "response", name, "")
    after = [response_in(read_body(request)) for request, _ in stored_calls(tmp_path / "run")]
    assert len(before) - len(after) == 2
    assert SHORT[name] in before
    assert all(before.count(text) == after.count(text) for text in before if text != SHORT[name])
    verify_run(tmp_path / "run")


def read_body(request: Any) -> dict[str, Any]:
    return {"messages": [{"content": message.content} for message in request.messages]}
