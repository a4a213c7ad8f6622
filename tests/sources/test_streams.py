"""Files of any size use little memory, and a line that is read again is the one that was validated."""

import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jurygraph import InputError
from jurygraph.sources import TaskSource, open_task_source, read_tasks


def task(name: str, *texts: str) -> str:
    responses = [{"id": f"{name}/{place}", "text": text} for place, text in enumerate(texts)]
    return json.dumps({"id": name, "query": "?", "responses": responses}, ensure_ascii=False) + "\n"


def answer(name: str, response: str, text: str = "x") -> str:
    return json.dumps({"task": name, "id": response, "text": text}) + "\n"


def ids(work: TaskSource, *numbers: int | None) -> list[tuple[str, list[str]]]:
    return [
        (task.id, [response.id for response in responses])
        for task, responses in work.pairs(*numbers)
    ]


THREE = task("a", "é") + "\n" + task("b", "1", "2") + "\r\n" + task("c", "", "long " * 1000)
WHOLE = [("a", ["a/0"]), ("b", ["b/0", "b/1"]), ("c", ["c/0", "c/1"])]


@pytest.fixture(params=["plain", "marked", "packed", "apart"])
def work(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TaskSource]:
    """The same work in files of several kinds."""
    tasks, responses = tmp_path / "tasks.jsonl", None
    if request.param == "plain":
        tasks.write_bytes(THREE.encode())
    elif request.param == "marked":
        tasks.write_bytes(b"\xef\xbb\xbf" + THREE.encode())
    elif request.param == "packed":
        tasks.write_bytes(gzip.compress(THREE.encode()))
    else:
        responses = tmp_path / "answers.jsonl"
        tasks.write_text("\n".join([task("a"), task("b"), "", task("c")]))
        pairs = [("c", "c/0"), ("b", "b/0"), ("a", "a/0"), ("c", "c/1"), ("b", "b/1")]
        responses.write_text("".join(answer(*pair) for pair in pairs))
    with open_task_source(tasks, responses) as work:
        yield work


def test_pairs_come_in_task_order_each_time(work: TaskSource):
    assert ids(work) == WHOLE
    assert ids(work) == WHOLE


def test_another_thread_may_read(work: TaskSource):
    read: list[tuple[str, list[str]]] = []
    thread = threading.Thread(target=lambda: read.extend(ids(work)))
    thread.start()
    thread.join()
    assert read == WHOLE


@pytest.mark.parametrize(
    ("start", "stop", "extent"),
    [
        (0, None, (3, 5)),
        (0, 1, (1, 1)),
        (1, 2, (1, 2)),
        (1, None, (2, 4)),
        (0, 9, (3, 5)),
        (3, None, (0, 0)),
    ],
)
def test_a_range_of_tasks_is_read_and_counted_as_python_counts(
    work: TaskSource, start: int, stop: int | None, extent
):
    assert ids(work, start, stop) == WHOLE[start:stop]
    assert work.extent(start, stop) == extent


def test_the_line_of_a_task_is_found(tmp_path: Path):
    (tmp_path / "tasks.jsonl").write_bytes(THREE.encode())
    with open_task_source(tmp_path / "tasks.jsonl") as work:
        assert [work.place(name) for name in ("a", "b", "c", "d")] == [
            "line 1",
            "line 3",
            "line 5",
            None,
        ]


class TestAFileThatChanges:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "tasks.jsonl"
        path.write_bytes(THREE.encode())
        return path

    def test_is_refused_when_it_was_appended_to(self, path: Path):
        with open_task_source(path) as work:
            pairs = work.pairs()
            next(pairs)
            with path.open("a") as file:
                file.write(task("d", "x"))
            with pytest.raises(
                InputError, match=r"^tasks.jsonl: changed while it was read; .* score again$"
            ):
                next(pairs)

    def test_is_refused_when_it_was_cut(self, path: Path):
        with open_task_source(path) as work:
            os.truncate(path, 10)
            with pytest.raises(InputError, match="changed while it was read"):
                next(work.pairs())

    def test_is_refused_when_other_bytes_of_the_same_size_were_written(self, path: Path):
        with open_task_source(path) as work:
            path.write_bytes(THREE.replace("long", "LONG").encode())
            with pytest.raises(InputError, match="changed while it was read"):
                list(work.pairs())

    def test_is_read_as_it_was_when_another_file_takes_its_name(self, path: Path, tmp_path: Path):
        with open_task_source(path) as work:
            (tmp_path / "new").write_text(task("new", "x"))
            os.replace(tmp_path / "new", path)
            assert ids(work) == WHOLE

    def test_is_accepted_if_it_was_a_gzip_file_unpacked_earlier(self, path: Path):
        path.write_bytes(gzip.compress(THREE.encode()))
        with open_task_source(path) as work:
            path.write_bytes(b"")
            assert ids(work) == WHOLE


@pytest.mark.landing
def test_nothing_is_left_in_the_folder_for_temporary_files(tmp_path: Path):
    (tmp_path / "temporary").mkdir()
    (tmp_path / "tasks.jsonl").write_bytes(gzip.compress(THREE.encode()))
    ended = child(
        tmp_path, "work = open_task_source('tasks.jsonl'); os._exit(len(os.listdir('temporary')))"
    )
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_a_large_file_costs_little_memory(tmp_path: Path):
    with (tmp_path / "tasks.jsonl").open("w") as file:
        for number in range(400):
            file.write(task(f"t{number}", *[str(number) * 20_000] * 3))
    assert (tmp_path / "tasks.jsonl").stat().st_size > 60_000_000
    ended = child(
        tmp_path,
        "work = open_task_source('tasks.jsonl'); print(sum(1 for _ in work.pairs())); print(peak())",
    )
    tasks, megabytes = map(int, ended.stdout.split())
    assert tasks == 400
    assert megabytes < 100


@pytest.mark.landing
def test_missing_space_for_temporary_files_is_reported(tmp_path: Path):
    (tmp_path / "packed.jsonl").write_bytes(gzip.compress(task("a", "x" * 10**7).encode()))
    ended = child(tmp_path, "limit(1 << 20); open_task_source('packed.jsonl')")
    assert "jurygraph.errors.InputError: there is no space for temporary files (" in ended.stderr
    assert ended.stderr.endswith(
        "; set TMPDIR to a folder that has more than the files to read need\n"
    )


def child(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Another process, so that its memory and its limit on the size of files are its own."""
    setting = f"""
import os, resource, sys
from jurygraph.sources import open_task_source

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

def peak():
    status = open("/proc/self/status").read()  # what getrusage gives counts the memory of the parent as well
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024

{code}
"""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", setting],
        cwd=folder,
        env={
            **os.environ,
            "TMPDIR": str(folder / "temporary"),
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_list_of_all_pairs_is_the_same(tmp_path: Path):
    (tmp_path / "tasks.jsonl").write_bytes(THREE.encode())
    with open_task_source(tmp_path / "tasks.jsonl") as work:
        assert read_tasks(tmp_path / "tasks.jsonl") == list(work.pairs())
