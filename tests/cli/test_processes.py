"""`score --processes`: the rewards of one process, whatever dies on the way."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from examples.panel.scripted_judge import NAME, replied
from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from tests.cli.conftest import run_command, write_project
from tests.models.server import Server, reply_with, run_server
from tests.rows import all_rows
from tests.runs.judge import judge_by_request
from tests.runs.sample_runs import trace_contents, verify_deeply, verify_run
from tests.runs.test_calls import judge_config, stored_calls, tasks_with_rubrics

ROOT = Path(__file__).parents[2]
TASKS = [
    {
        "id": f"t{number}",
        "query": f"What is {number} + 2?",
        "reference": str(number + 2),
        "responses": [
            {"id": f"t{number}/{extra}", "text": f"The answer is {number + 2 + extra}."}
            for extra in range(2)
        ],
    }
    for number in range(40)
]
CONFIG = "evaluators: [maths.accuracy]\n"
SLOW = """
import time
import jurygraph as jg

@jg.evaluator
def slow(task, response):
    time.sleep(0.05)
    return len(response.text) / 100
"""


def start(*words: object, cwd: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "jurygraph", *map(str, words)]
    return subprocess.Popen(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(*words: object, cwd: Path) -> tuple[int, str, str]:
    process = start(*words, cwd=cwd)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def digests(folder: Path) -> list[str]:
    with Run.open(folder) as run:
        return [trace.digest for trace in run.traces()]


def count_traces(folder: Path) -> int:
    try:
        with closing(Run.open(folder)) as run:
            return run.ledger.count_records("trace")
    except InputError:
        return 0  # it does not exist yet


def children(process: subprocess.Popen[str]) -> list[int]:
    """Return the processes of the shards, which are in groups of their own."""
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(name) for name in listed]


def is_alive(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.landing
def test_two_processes_give_the_run_of_one(tmp_path: Path) -> None:
    tasks = write_project(tmp_path / "project", TASKS, CONFIG) / "tasks.jsonl"
    whole = run_command("score", tasks, "--out", tmp_path / "whole", "--gate", "mean>=0.5")
    code, out, err = finish(
        "score", tasks, "--out", "run", "--processes", 2, "--gate", "mean>=0.5", cwd=tmp_path
    )
    assert (code, out) == (whole.code, whole.out), err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project", "run", "whole"]
    assert trace_contents(tmp_path / "run") == trace_contents(tmp_path / "whole")
    assert verify_deeply(tmp_path / "run") == verify_deeply(tmp_path / "whole")
    again = run_command("score", tasks, "--out", tmp_path / "run", "--processes", 3)
    assert again.code == 0
    assert "is complete; nothing to do" in again.err


def test_what_cannot_be_scored_in_shards_is_refused_at_once(tmp_path: Path) -> None:
    tasks = write_project(tmp_path / "project", TASKS[:2], CONFIG) / "tasks.jsonl"
    run_command("score", tasks, "--out", tmp_path / "part", "--limit", 1)
    run_command("score", tasks, "--out", tmp_path / "begun.shards" / "1", "--shard", "1/2")
    refused = {
        ("--processes", 2, "--limit", 1): "--limit: cannot be used with --processes",
        ("--processes", 2, "--shard", "1/2"): "--shard: cannot be used with --processes",
        ("--processes", 2, "--engine", "ray"): "--processes: is of this machine",
        ("--address", "auto"): "--address and --shards: are of --engine ray",
        ("--shard", "3/2"): "--shard: '3/2' is not a shard; write I/N",
        ("--out", "part", "--processes", 2): "part: contains a run already; name another folder",
        ("--out", "begun"): "begun.shards: has shards of begun, which are not complete",
        ("--out", "begun", "--processes", 3): "begun.shards: was begun with 2 shards",
    }
    problems = {}
    for words, problem in refused.items():
        typed = run_command("score", tasks, "--out", "run", *words, cwd=tmp_path)
        problems[words] = (typed.code, problem in typed.err and typed.err.count("\n") == 1)
    assert problems == dict.fromkeys(refused, (2, True))
    assert not (tmp_path / "run").exists()


@contextmanager
def judged_project(folder: Path, tasks: int) -> Iterator[tuple[Path, Server]]:
    with run_server(judge_by_request) as server:
        content = tasks_with_rubrics(tasks)
        config = json.dumps(judge_config(server))
        yield write_project(folder, content, config) / "tasks.jsonl", server


@pytest.mark.landing
def test_the_limits_of_shards_sum_up_to_those_of_the_command(tmp_path: Path) -> None:
    with judged_project(tmp_path / "project", 6) as (tasks, server):
        command = ("score", tasks, "--out", "run", "--processes", 2)
        code, _, err = finish(*command, "--max-calls", 5, cwd=tmp_path)
        assert (code, "the limit of" in err) == (4, True)
        assert len(server.requests) <= 5
        stored = {index: stored_calls(tmp_path / "run.shards" / index) for index in ("1", "2")}
        sent = len(server.requests)
        code, out, err = finish(*command, "--json", cwd=tmp_path)
        assert code == 0, err
        kept = sum(map(len, stored.values()))
        assert json.loads(out)["requests"]["number"] == len(server.requests) - sent == 24 - kept
        verify_run(tmp_path / "run")


@pytest.mark.exhaustive
@all_rows("killed", ["child", "parent", "interrupted"])
def test_whatever_is_killed_the_same_command_goes_on(tmp_path: Path, killed: str) -> None:
    folder = tmp_path / killed
    project = write_project(folder / "project", TASKS, "evaluators: [own.slow]\n")
    (project / "own.py").write_text(SLOW)
    command = ("score", project / "tasks.jsonl", "--out", "run", "--processes", 2)
    process = start(*command, cwd=folder)
    wait_until(lambda: count_traces(folder / "run.shards" / "1") > 2)
    wait_until(lambda: len(children(process)) == 2)  # the kernel may list one late
    shards = children(process)
    if killed == "child":
        os.kill(shards[0], signal.SIGKILL)
    else:
        process.send_signal(signal.SIGKILL if killed == "parent" else signal.SIGINT)
    _, err = process.communicate(timeout=60)
    wait_until(lambda: not any(map(is_alive, shards)), 10)
    expected = {"child": 3, "parent": -signal.SIGKILL, "interrupted": 130}
    assert process.returncode == expected[killed], err
    if killed == "child":
        assert "shard 1/2: was ended by signal 9\n" in err
        assert "1 of 2 shards are not complete; what was scored is kept in run.shards; run" in err
    if killed == "interrupted":
        assert "interrupted; finished tasks are kept in run.shards. Run the same command" in err
    scored = count_traces(folder / "run.shards")
    assert 2 < scored <= 80, "at Ctrl-C, the questions in flight are answered"
    code, _, err = finish(*command, cwd=folder)
    assert code == 0, err
    assert run_command("score", project / "tasks.jsonl", "--out", folder / "whole").code == 0
    assert digests(folder / "run") == digests(folder / "whole")
    assert not (folder / "run.shards").exists()


CRASHING = """
import os, sys
from pathlib import Path
from jurygraph.runs.store import ledger
from jurygraph.runs.store.ledger import Ledger

STEPS = Path(os.environ["STEPS"])


def counted(function):
    def step(self, *arguments):
        role = "shard" if "shards" in str(self.path) else "parent"
        done = STEPS.with_name(f"{role}.{os.getpid()}")
        with done.open("a") as file:
            file.write(".")
        wanted = os.environ.get("CRASH")
        if wanted == f"{role} {done.stat().st_size}" and not STEPS.exists():
            STEPS.touch()
            os.kill(os.getpid(), 9)
        return function(self, *arguments)
    return step


for name in ("_insert_records", "commit", "close_as_plain_file"):
    setattr(Ledger, name, counted(getattr(Ledger, name)))
"""


@pytest.mark.exhaustive
def test_a_crash_at_each_write_step_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """A shard's process, then the merging parent, is killed before each step that writes its ledger."""
    with judged_project(tmp_path / "project", 3) as (tasks, server):
        (tmp_path / "sitecustomize.py").write_text(CRASHING)

        def score(name: str, crash: str) -> tuple[int, str, list[Any]]:
            before = len(server.requests)
            environment = {
                "STEPS": str(tmp_path / name / "crashed"),
                "CRASH": crash,
                "PYTHONPATH": str(tmp_path),
            }
            command = [sys.executable, "-m", "jurygraph", "score", str(tasks), "--out", "run"]
            done = subprocess.run(
                [*command, "--processes", "2", "--max-calls", "40"],
                cwd=tmp_path / name,
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            return done.returncode, done.stderr, server.requests[before:]

        (tmp_path / "unbroken").mkdir()
        code, err, requests = score("unbroken", "")
        assert (code, len(requests)) == (0, 12), err
        whole = digests(tmp_path / "unbroken" / "run")
        for role, expected in (("shard", 3), ("parent", -signal.SIGKILL)):
            steps = [path.stat().st_size for path in (tmp_path / "unbroken").glob(f"{role}.*")]
            assert steps
            for step in range(1, max(steps) + 1):
                name = f"{role}-{step}"
                (tmp_path / name).mkdir()
                code, err, first = score(name, f"{role} {step}")
                if not (tmp_path / name / "crashed").exists():
                    assert role == "shard", "records may share a commit"
                    continue
                shards = tmp_path / name / "run.shards"
                kept: set[str] = set()
                if shards.is_dir():
                    assert code == expected, err
                    members = [path for path in shards.iterdir() if count_records(path)]
                    for member in members:
                        kept |= {request_of(call) for call, _ in stored_calls(member)}
                code, err, second = score(name, f"{role} {step}")
                assert code == 0, (name, first, err)
                assert kept.isdisjoint(identity(received.body) for received in second)
                assert max(len(first), len(second)) <= 40
                assert digests(tmp_path / name / "run") == whole
                assert not shards.exists()
                verify_run(tmp_path / name / "run")


def count_records(folder: Path) -> int:
    try:
        with closing(Run.open(folder)) as run:
            return run.ledger.count
    except InputError:
        return 0


def request_of(call: Any) -> str:
    return json.dumps([[message.role, message.content] for message in call.messages])


def identity(body: dict[str, Any]) -> str:
    return json.dumps([[message["role"], message["content"]] for message in body["messages"]])


@pytest.mark.exhaustive
@all_rows("name", ["maths", "group_trip", "panel"])
def test_the_examples_have_the_same_digests_in_shards(tmp_path: Path, name: str) -> None:
    """A digest has the latency of each call, so that the replies of the panel's judge come from the cache."""
    folder = ROOT / "examples" / name
    tasks = next(folder.glob("tasks.jsonl*"))

    def answer(body: dict[str, Any], number: int) -> Any:
        return reply_with(json.dumps(replied(body), ensure_ascii=False), served=NAME)

    with run_server(answer) as server:
        judge = ("--model", f"openai-compatible:{server.url}#{NAME}") if name == "panel" else ()

        def score(*words: object) -> list[str]:
            typed = run_command("score", tasks, *judge, *words, cwd=tmp_path)
            assert typed.code in (0, 1), typed.err
            return digests(tmp_path / str(words[1]))

        score("--out", f"{name}-filling-the-cache")
        whole = score("--out", f"{name}-whole")
        for count in (2, 5):
            for index in range(1, count + 1):
                score("--out", f"{name}-{count}/{index}", "--shard", f"{index}/{count}")
            merged = f"{name}-{count}-merged"
            run_command("merge", f"{name}-{count}", "--out", merged, cwd=tmp_path)
            assert digests(tmp_path / merged) == whole
            assert sorted(digests(tmp_path / f"{name}-{count}")) == sorted(whole)
            verify_deeply(tmp_path / merged)
