"""A model server that goes away while a run is scored, and comes back; `tests/models/test_outages.py` has all cases."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.models.judge_scripts import judge_reply, rubric
from tests.models.server import Answer, run_server, slow
from tests.runs.sample_runs import write_tasks
from tests.runs.test_calls import judge_config, run_session

TASKS, RESPONSES = 60, 4
QUESTIONS = TASKS * RESPONSES


def judge_slowly(body: dict[str, Any], number: int) -> Answer:
    return slow(0.02, judge_reply(body))


@pytest.mark.exhaustive
def test_an_outage_of_five_seconds_fails_none_of_240_questions(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = []
    for number in range(TASKS):
        task = rubric("kind", name=f"t{number}", query=f"Write letter {number}.").model_dump(
            mode="json"
        )
        texts = [
            {"id": f"t{number}/{n}", "text": f"Letter {number}, {n}."} for n in range(RESPONSES)
        ]
        lines.append({**task, "responses": texts})
    tasks = write_tasks(tmp_path, lines)
    with run_server(judge_slowly) as first, ThreadPoolExecutor(1) as pool:
        scoring = pool.submit(run_session, tmp_path / "run", tasks, judge_config(first))
        asyncio.run(first.wait_for(QUESTIONS // 4))
        first.stop()
        time.sleep(4.8)
        with run_server(judge_slowly, first.port) as second:
            rewards = scoring.result(timeout=180)
    assert [reward["status"] for reward in rewards.values()] == ["ok"] * QUESTIONS
    assert ["wait for up to" in caplog.text, "answers again, after" in caplog.text] == [
        True,
        True,
    ]
    assert first.count + second.count <= QUESTIONS + 32, "those that were cut off are sent again"
