"""The project's key for the marks of fences: with another one a model is sent other marks, and a run stays as it is."""

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.runs.integrity.deep_verification import verify_deep
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from tests.models.judging import response_in
from tests.models.server import Server
from tests.runs.made import checked, write_tasks
from tests.runs.test_calls import kept, lines, plain, sit

KEYS = ("", "a key of our own", "another one")


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(tmp_path, lines(2))


def with_key(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("JURYGRAPH_FENCE_KEY", key)


def marks_of(server: Server, start: int) -> set[str]:
    """All marks of fences in what was sent."""
    shown = [seen.body["messages"][1]["content"] for seen in server.requests[start:]]
    return {mark for text in shown for mark in re.findall(r"<<<\w+ ([0-9a-f]{16})\n", text)}


def test_with_each_key_other_marks_are_sent_and_the_calls_are_the_same(
    server: Server, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks, ids = [], []
    for place, key in enumerate(KEYS):
        with_key(monkeypatch, key)
        before = server.count
        sit(tmp_path / f"run {place}", tasks, plain(server))
        marks.append(marks_of(server, before))
        ids.append({request.digest for request, _ in kept(tmp_path / f"run {place}")})
    assert len(set().union(*marks)) == sum(map(len, marks)) > 0
    assert ids[0] == ids[1] == ids[2]


def test_a_run_is_gone_on_with_under_another_key(
    server: Server, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_key(monkeypatch, KEYS[1])
    sit(tmp_path / "run", tasks, plain(server), limit=1)
    before = server.count
    with_key(monkeypatch, KEYS[2])
    sit(tmp_path / "run", tasks, plain(server))
    assert server.count == 2 * before
    checked(tmp_path / "run")


def test_a_cache_knows_what_was_asked_under_another_key(
    server: Server, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for place, key in enumerate(KEYS):
        with_key(monkeypatch, key)
        found.append(sit(tmp_path / f"run {place}", tasks, plain(server, cache=True)))
        if place == 0:
            asked = server.count
    assert server.count == asked > 0
    assert found[0] == found[1] == found[2]


def test_a_recording_is_replayed_under_another_key(
    server: Server, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_key(monkeypatch, KEYS[1])
    recording = tmp_path / "calls.jsonl"
    recorded = sit(tmp_path / "run", tasks, plain(server, record=str(recording)))
    with_key(monkeypatch, KEYS[2])
    replayed = sit(tmp_path / "again", tasks, {"model": f"replay:{recording}", "evaluators": ["criteria"]})
    assert replayed == recorded


def test_a_run_verifies_under_another_key_from_its_replies(
    server: Server, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_key(monkeypatch, KEYS[1])
    sit(tmp_path / "run", tasks, plain(server))
    monkeypatch.delenv("JURYGRAPH_FENCE_KEY")
    with closing(Run.open(tmp_path / "run")) as run:
        found = verify_deep(run, lambda count: None)
    assert found.recomputed == 2 * 2 * 5
    assert found[2:] == (0, 0, 0)


def test_the_key_is_in_no_record(server: Server, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_key(monkeypatch, "canary-of-a-fence")
    sit(tmp_path / "run", tasks, plain(server, record=str(tmp_path / "calls.jsonl"), cache=True))
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"canary-of-a-fence" in content for content in files)


# What is erased


SHORT = [
    ("t0/r0", "42"),
    ("t0/r1", "It is 42, as\n42\nshows."),
    ("t1/r0", "response 42"),
    ("t1/r1", "42"),
    ("t2/r0", '"42"\\n'),
    ("t2/r1", "42 it is, says the response.\n42\nresponse"),
]
"""Short responses, and longer ones that hold them."""


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("name", ["t0/r0", "t2/r0", "t1/r0"])
def test_what_is_erased_takes_the_calls_about_it_and_no_others(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, key: str
) -> None:
    given: list[dict[str, Any]] = lines(3)
    texts = dict(SHORT)
    for line in given:
        for response in line["responses"]:
            response["text"] = texts[response["id"]]
    with_key(monkeypatch, key)
    sit(tmp_path / "run", write_tasks(tmp_path, given), {**plain(server), "safety": {"gates": []}})
    before = [response_in(_body(request)) for request, _ in kept(tmp_path / "run")]
    with_key(monkeypatch, "another one again")
    erase(tmp_path / "run", "response", name, "")
    after = [response_in(_body(request)) for request, _ in kept(tmp_path / "run")]
    assert texts[name] in before
    assert sorted(after) == sorted(text for text in before if text != texts[name])
    checked(tmp_path / "run")


def _body(request: Any) -> dict[str, Any]:
    return {"messages": [{"content": message.content} for message in request.messages]}
