"""The server as a process: killed, it goes on with its run; asked to end, it ends when its work has."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from jurygraph.integrations.client import RewardClient
from jurygraph.runs.run import Run
from tests.command import JURYGRAPH
from tests.models.judge_scripts import judge_reply
from tests.models.server import Answer, Server, run_server
from tests.server.conftest import TASK

pytestmark = pytest.mark.landing

TEXTS = [f"letter {number}" for number in range(4)]


def _judge(body: dict[str, Any], number: int) -> Answer:
    return judge_reply(body)


@contextmanager
def _serve(folder: Path, judge: Server) -> "Iterator[tuple[subprocess.Popen[str], str]]":
    config = {
        "model": f"openai-compatible:{judge.url}#tiny",
        "evaluators": ["criteria"],
        "calls": {"cache": False},
    }
    (folder / "jury.yaml").write_text(json.dumps(config))
    command = [JURYGRAPH, "serve", "--port", "0", "--out", "run"]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def _score(url: str, text: str, step: int) -> Any:
    body = {"task": TASK, "responses": [text], "step": step}
    request = Request(f"{url}/v1/score", json.dumps(body).encode())
    with urlopen(request) as reply:
        content = json.load(reply)
    for trace in content["traces"]:
        del trace["previous"]  # its place in the run, which it has once it is stored
    return content


def _score_cohort(url: str, texts: Sequence[str]) -> list[Any]:
    """Return the rewards and the id of each member, which come in requests of their own, as a trainer's do."""

    async def score() -> list[Any]:
        client = RewardClient(url)
        requests = [
            client.score([text], task=TASK, step=7, cohort_size=len(texts)) for text in texts
        ]
        replies = await asyncio.gather(*requests)
        return [(reply.rewards, reply.traces[0]["response_id"]) for reply in replies]

    return asyncio.run(score())


def test_a_killed_server_goes_on_with_its_run_and_sends_no_recorded_call_again(
    tmp_path: Path,
) -> None:
    with run_server(_judge) as judge:
        with _serve(tmp_path, judge) as (process, url):
            before = [_score(url, text, step) for step, text in enumerate(TEXTS)]
            cohort = _score_cohort(url, TEXTS)
            assert sorted(_score_cohort(url, TEXTS[::-1])) == sorted(cohort), "a trainer's restart"
            process.send_signal(signal.SIGKILL)
        assert judge.count == len(TEXTS)
        with _serve(tmp_path, judge) as (process, url):
            again = [_score(url, text, step) for step, text in enumerate(TEXTS)]
            assert again == before
            # another step of the same response has the reply of the first
            _score(url, TEXTS[0], 9)
            assert sorted(_score_cohort(url, TEXTS)) == sorted(cohort)
            assert judge.count == len(TEXTS)
            _score_cohort(url, [*TEXTS[:-1], "a new sample"])
        assert judge.count == len(TEXTS) + 1
    names = [f"{step}/1" for step in range(4)]
    names += [f"7/{position}" for position in (1, 2, 3, 4)]
    names += ["9/1", *(f"session=2:7/{position}" for position in (1, 2, 3, 4))]
    with Run.open(tmp_path / "run") as run:
        assert [trace.response_id for trace in run.traces()] == [f"letter@{name}" for name in names]


def test_a_server_that_is_asked_to_end_answers_what_it_has(tmp_path: Path) -> None:
    with (
        run_server(_judge, together=2) as judge,
        _serve(tmp_path, judge) as (process, url),
        ThreadPoolExecutor() as threads,
    ):
        scored = threads.submit(_score, url, TEXTS[0], 1)
        judge._wait_for(1)
        process.send_signal(signal.SIGTERM)
        judge.release()
        assert scored.result()["rewards"] == [0.9]
        assert process.wait() == 0
    log = (tmp_path / "log").read_text()
    for line in (
        "config: jury.yaml; token: none, as only this machine gets in\n"
        "tasks: those of requests; record: run\n",
        f"judge: tiny at {judge.url}, which can be reached\n",
        "ended: 1 group scored, 1 reward, 0 of them failed\n",
    ):
        assert line in log
    with Run.open(tmp_path / "run") as run:
        assert [trace.response_id for trace in run.traces()] == ["letter@1/1"]
