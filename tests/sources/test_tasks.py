"""Valid TASKS files."""

import gzip
import io
import json
import os
import sys
import threading
from pathlib import Path

import pytest

from jurygraph.errors import InputError
from jurygraph.graphs.groups import Group
from jurygraph.schema import Response, Task
from jurygraph.sources import open_task_source, read_tasks
from jurygraph.sources.tasks import open_profiles

EGGS = {
    "id": "eggs",
    "query": "How many?",
    "reference": "9",
    "responses": [{"id": "e1", "text": "9", "agent": "a"}],
}
TRAIN = {
    "id": "train",
    "query": "How far?",
    "responses": [{"id": "t1", "text": "1"}, {"id": "t2", "text": ""}],
}


def lines(*values: dict) -> str:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def ids(pairs) -> list[tuple[str, list[str]]]:
    return [(task.id, [response.id for response in responses]) for task, responses in pairs]


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_text(lines(EGGS, TRAIN))
    return path


def test_each_line_gives_a_task_and_its_responses_in_the_order_of_the_file(tasks: Path):
    pairs = read_tasks(tasks)
    assert ids(pairs) == [("eggs", ["e1"]), ("train", ["t1", "t2"])]
    task, responses = pairs[0]
    assert task.reference == "9"
    assert responses[0].agent == "a"


def test_responses_may_be_texts_with_the_ids_that_python_gives_them(tmp_path: Path):
    path = tmp_path / "texts.jsonl"
    texts = ["Nine.", {"id": "own", "text": "Ten."}, ""]
    path.write_text(lines({**EGGS, "responses": texts}))
    ((task, responses),) = read_tasks(path)
    group = Group(task, ["Nine.", Response(id="own", text="Ten."), ""])
    assert responses == tuple(group.responses)
    assert [response.id for response in responses] == ["eggs/1", "own", "eggs/3"]


def test_a_rubric_may_be_lines_or_texts_and_is_the_same_rubric(tmp_path: Path):
    texts = ["It is short.", "It names a season."]
    criteria = [{"id": f"c{n}", "text": text, "weight": 1} for n, text in enumerate(texts, 1)]
    forms = [{"criteria": criteria}, criteria, texts, "\n".join(texts) + "\n", json.dumps(texts)]
    for form in forms:
        path = tmp_path / "rubrics.jsonl"
        path.write_text(lines({**EGGS, "rubric": form}))
        ((task, _),) = read_tasks(path)
        assert task == Task.model_validate({**task.model_dump(), "rubric": forms[0]})


@pytest.mark.parametrize("name", ["tasks.jsonl.gz", "packed"])
def test_a_gzip_file_is_read_whatever_its_name(tmp_path: Path, name: str):
    path = tmp_path / name
    path.write_bytes(gzip.compress(lines(EGGS, TRAIN).encode()))
    assert ids(read_tasks(path)) == [("eggs", ["e1"]), ("train", ["t1", "t2"])]


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + lines(EGGS).encode(),
        lines(EGGS).replace("\n", "\r\n").encode(),
        ("\n   \n" + lines(EGGS) + "\n\n").encode(),
        lines(EGGS).rstrip("\n").encode(),
    ],
    ids=["byte-order mark", "CRLF", "blank lines", "no line end"],
)
def test_changes_by_editors_do_no_harm(tmp_path: Path, content: bytes):
    (tmp_path / "tasks.jsonl").write_bytes(content)
    assert ids(read_tasks(tmp_path / "tasks.jsonl")) == [("eggs", ["e1"])]


def test_line_separators_inside_a_text_end_no_line(tmp_path: Path):
    text = "one\u2028two\x85three"
    (tmp_path / "tasks.jsonl").write_text(lines({**EGGS, "query": text}), encoding="utf-8")
    assert read_tasks(tmp_path / "tasks.jsonl")[0][0].query == text


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch):
    given = io.TextIOWrapper(io.BytesIO(lines(EGGS).encode()))
    monkeypatch.setattr(sys, "stdin", given)
    with open_task_source("-") as work:
        assert ids(work.pairs()) == [("eggs", ["e1"])]
        assert work.tasks_file.name == "standard input"
    chat = {"messages": [{"role": "user", "content": "Eggs?"}]}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines(chat).encode())))
    with pytest.raises(InputError, match="messages: unknown; chats are read from a file that is"):
        open_task_source("-")


def test_tasks_and_profiles_cannot_share_standard_input(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines(EGGS).encode())))
    shared = pytest.raises(
        InputError,
        match="tasks, responses and profiles cannot share standard input; put all but one",
    )
    with open_task_source("-") as tasks, shared, open_profiles("-", tasks):
        pass


def test_a_pipe_is_spooled_first(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(lines(EGGS),))
    writer.start()
    assert ids(read_tasks(pipe)) == [("eggs", ["e1"])]
    writer.join()


def test_responses_may_be_in_a_separate_file_in_any_order(tmp_path: Path):
    (tmp_path / "tasks.jsonl").write_text(
        lines({"id": "a", "query": "?"}, {"id": "b", "query": "?", "responses": []})
    )
    apart = [{"task": "b", "id": "b1", "text": "x"}, {"task": "a", "id": "a1", "text": "y"}]
    (tmp_path / "answers.jsonl").write_text(lines(*apart, {"task": "b", "id": "b2", "text": "z"}))
    pairs = read_tasks(tmp_path / "tasks.jsonl", tmp_path / "answers.jsonl")
    assert ids(pairs) == [("a", ["a1"]), ("b", ["b1", "b2"])]
