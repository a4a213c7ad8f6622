import asyncio
import gc
import gzip
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import active_children
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from jurygraph.agents.maths.answer import find_final_answer, find_reference_answer
from jurygraph.agents.maths.comparison import compare_answers, make_comparison_pool
from jurygraph.agents.worker_pool import WorkerDied, WorkerNotStarted, WorkerPool
from jurygraph.errors import TimeLimitExceeded
from tests.agents.maths.conftest import DEADLY, HANGING, UNSTARTED, InProcess

SOLUTIONS = Path(__file__).parents[2] / "data" / "gsm8k_solutions.jsonl.gz"
PATIENCE = 60  # seconds that a test waits before it calls the pool stuck
BOMB = "9^{9^{9^{9}}}"


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    with closing(make_comparison_pool(time_limit=20)) as opened:
        yield opened


def compare_all(pool: WorkerPool, *pairs: tuple[str, str]) -> list[str]:
    """Compare pairs at the same time; return the status of each, or the name of what is raised."""

    async def gather() -> list[object]:
        return await asyncio.gather(*(pool.call(*pair) for pair in pairs), return_exceptions=True)

    return [
        result if isinstance(result, str) else type(result).__name__
        for result in asyncio.run(gather())
    ]


def test_agrees_with_the_labels_of_real_solutions() -> None:
    found, labels = [], []
    for line in gzip.decompress(SOLUTIONS.read_bytes()).decode().splitlines():
        task = json.loads(line)
        reference = find_reference_answer(task["reference"]) or ""
        for response in task["responses"]:
            answer = find_final_answer(response["text"])
            found.append(answer is not None and compare_answers(answer.text, reference) == "equal")
            labels.append(response["metadata"]["is_correct"])
    assert len(labels) == 1600
    assert found == labels


@pytest.mark.landing
def test_workers_compare_as_this_process_does_and_survive_hostile_maths(pool: WorkerPool) -> None:
    equal = [(r"2\sqrt{2}", r"\sqrt{8}"), ("(x+1)^2", "x^2+2x+1"), (r"\{1,2\}", r"\{2,1\}")]
    different = [("[1,2]", "[1,2)"), ("y=18", "x=18"), ("18 \ud800", "18+x")]
    assert compare_all(pool, *equal) == ["equal"] * 3
    assert "equal" not in compare_all(pool, *different)
    harmless = [
        "9**9**9**9",
        r"\sqrt[10^9]{2}",
        "1" * 9999,
        r"\frac{1}{" * 100 + "1" + "}" * 100,
        "!" * 9000,
    ]
    found = compare_all(pool, *((text, "18") for text in harmless))
    assert set(found) <= {"different", "unparsed-answer", "WorkFailed"}


HOSTILE = [
    BOMB,
    "(" * 3000 + "1" + ")" * 3000,
    "(10^9)!",
    r"2^{10^{10}}",
    r"\binom{10^9}{10^8}",
    "9!!!!!",
]
HOSTILE += ["10^{-10^{10}}", r"\log(10^{10^{10}})"]


@pytest.mark.exhaustive
def test_hostile_maths_hits_the_time_limit_and_the_worker_is_replaced() -> None:
    with closing(make_comparison_pool(time_limit=3)) as opened:
        *hostile, harmless = compare_all(opened, *((text, "18") for text in (*HOSTILE, "9+9")))
        assert (hostile[0], harmless) == ("TimeLimitExceeded", "equal")
        # some are too large even to begin with
        assert set(hostile) <= {
            "TimeLimitExceeded",
            "WorkFailed",
        }


def test_a_failure_concerns_its_own_comparison_alone(pool: WorkerPool) -> None:
    pairs = [("9+9", "18"), (BOMB, "18"), (DEADLY, "4"), ("8+10", "18")]
    errors = [error.__name__ for error in (TimeLimitExceeded, WorkerDied)]
    assert compare_all(pool, *pairs) == ["equal", *errors, "equal"]


def test_workers_that_cannot_start_are_tried_again_only_if_they_once_could(
    pool: WorkerPool, processes: type[InProcess]
) -> None:
    unstarted = WorkerNotStarted.__name__
    assert [compare_all(pool, (UNSTARTED, "6")), compare_all(pool, ("9+9", "18"))] == [
        [unstarted],
        [unstarted],
    ]
    with closing(make_comparison_pool()) as opened:
        assert compare_all(opened, ("9+9", "18"), (UNSTARTED, "6")) == ["equal", unstarted]
        assert compare_all(opened, ("9+9", "18")) == ["equal"]
    assert processes.opened == 3


def test_closing_cancels_what_is_under_way_and_the_pool_can_be_used_again(pool: WorkerPool) -> None:
    async def close_meanwhile() -> list[object]:
        asyncio.get_running_loop().call_soon(asyncio.get_running_loop().call_soon, pool.close)
        waiting = (pool.call(HANGING, "2"), pool.call(HANGING, "2"))
        return await asyncio.gather(*waiting, return_exceptions=True)

    assert [type(result) for result in asyncio.run(close_meanwhile())] == [
        asyncio.CancelledError
    ] * 2
    pool.close()
    assert compare_all(pool, ("9+9", "18")) == ["equal"]


@pytest.mark.landing
def test_a_worker_killed_from_outside_is_replaced_and_a_forgotten_pool_is_closed() -> None:
    forgotten = make_comparison_pool(time_limit=20)
    assert compare_all(forgotten, ("8+10", "18")) == ["equal"]
    (process,) = active_children()
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join(PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while compare_all(forgotten, ("8+10", "18")) != ["equal"]:
        assert time.monotonic() < deadline
    (process,) = active_children()
    del forgotten
    gc.collect()
    # not `join`: a thread of the pool may have reaped it before
    assert wait([process.sentinel], PATIENCE), "it goes on"
