import asyncio
import gc
import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import closing
from pathlib import Path

import pytest

from jurygraph.agents import worker_pool
from jurygraph.agents.maths.answer import final_answer, reference_answer
from jurygraph.agents.maths.comparison import compare
from jurygraph.agents.maths.pool import AnswerComparison, AnswerTooLong, EquivalencePool
from jurygraph.agents.worker_pool import PoolClosed, WorkerDied, WorkerNotStarted
from jurygraph.errors import TimeLimitExceeded
from tests.agents.maths.conftest import DEADLY, InProcessChannel

SOLUTIONS = Path(__file__).parents[2] / "data" / "gsm8k_solutions.jsonl.gz"
PATIENCE = 60  # seconds that a test waits before it calls the pool stuck
BOMB = "9^{9^{9^{9}}}"


@pytest.fixture
def pool() -> Iterator[EquivalencePool]:
    with closing(EquivalencePool(time_limit=20).open()) as opened:
        yield opened


def _status(used: EquivalencePool, answer: str, reference: str) -> str:
    return used.compare(answer, reference).result(PATIENCE).status


EQUAL = [
    *(("18", "18"), ("18.0", "18"), ("$18", "18"), ("1,000", "1000"), ("1/2", "0.5"), (r"\frac{1}{2}", "1/2")),
    *(("50%", "0.5"), ("x+1", "1+x"), ("(x+1)^2", "x^2+2x+1"), (r"2\sqrt{2}", r"\sqrt{8}"), ("sqrt(2)", "1.414214")),
    *((r"\pi", "pi"), ("(1,2)", "(1, 2)"), ("[1,2)", "[1, 2)"), ("18 apples", "18"), (r"\$70,000", "70000")),
    *(("3+15=18", "18"), ("18", "x=18"), ("x=17 or x=18", "18, 17"), (r"\{1,2\}", r"\{2,1\}"), ("(B)", "B")),
    *(("Monday", " monday "), ("3:2", "6:4"), ("10^3", "1000"), ("2^3", "8"), ("10^2", "100"), ("3³", "27")),
    *((r"\frac12^2", "0.25"), ("-2^2", "-4"), ("1.5^2", "2.25"), ("18^2", "324"), ("2 dozen", "24")),
    *(("1{,}5", "1.5"), ("–5", "-5"), ("minus 5", "-5"), ("½", "0.5"), ("1 000", "1000")),
]

DIFFERENT = [
    *(("19", "18"), ("18 or 20", "18"), ("17 or 18", "18"), ("18, 19", "18"), ("17=18", "18"), ("x=17=18", "x=18")),
    *(("x=17, x=18", "18"), ("y=18", "x=18"), ("5t", "5"), ("5", "5t"), ("2 million", "2"), ("(2,1)", "(1,2)")),
    *(("[1,2]", "[1,2)"), ("0.0000001", "0"), ("x<18", "18"), ("A", "B"), ("18^2", "18"), ("10^2", "10")),
    *(("3³", "3"), (r"\frac12^2", "0.5"), ("-2^2", "-2"), ("1.5^2", "1.5"), ("18 dozen", "18")),
    *(("18 hundreds", "18"), ("18 bn", "18"), ("$18 Mn", "18"), ("18 BC", "18"), ("18a", "18"), ("3a", "3")),
    *(("3s", "3"), ("2L", "2"), ("1{,}5", "15"), ("3{,}14", "314")),
]

UNPARSED = ["", "not 18 at all", "17 1", "18_20", "18:1", "18)", "1/0", "Monday", r"18 \text{ (not } 20)", "18\ud800"]
UNPARSED += [
    "18 nope",
    "18 of",
    "18 halved",
    "18 in debt",
    "18-",
    "18/",
    r"18 \mod 20",
    "18 XVII",
    "18 mil",
    "approx. 18",
]


def statuses(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    return {pair: compare(*pair)[0] for pair in pairs}


def test_equal_answers() -> None:
    assert statuses(EQUAL) == dict.fromkeys(EQUAL, "equal")


def test_different_answers() -> None:
    assert statuses(DIFFERENT) == dict.fromkeys(DIFFERENT, "different")


def test_unparsed_answers() -> None:
    answers, references = [(text, "18") for text in UNPARSED], [("18", text) for text in UNPARSED]
    assert statuses(answers) == dict.fromkeys(answers, "unparsed-answer")
    assert statuses(references) == dict.fromkeys(references, "unparsed-reference") | {("18", "18:1"): "unparsed-answer"}


def test_an_empty_answer_equals_nothing() -> None:
    assert compare("", "")[0] == "unparsed-reference"


@pytest.mark.landing
def test_workers_compare_as_this_process_does(pool: EquivalencePool) -> None:
    futures = [pool.compare(*pair) for pair in (*EQUAL, *DIFFERENT)]
    found = [future.result(PATIENCE).status for future in futures]
    assert found == ["equal"] * len(EQUAL) + ["different"] * len(DIFFERENT)


def test_agrees_with_the_labels_of_real_solutions() -> None:
    found, labels = [], []
    for line in gzip.decompress(SOLUTIONS.read_bytes()).decode().splitlines():
        task = json.loads(line)
        reference = reference_answer(task["reference"]) or ""
        for response in task["responses"]:
            answer = final_answer(response["text"])
            found.append(answer is not None and compare(answer.text, reference)[0] == "equal")
            labels.append(response["metadata"]["is_correct"])
    assert len(labels) == 1600
    assert found == labels


HOSTILE = [BOMB, "(" * 3000 + "1" + ")" * 3000, "(10^9)!", r"2^{10^{10}}", r"\binom{10^9}{10^8}", "9!!!!!"]
HOSTILE += ["10^{-10^{10}}", r"\log(10^{10^{10}})"]
HARMLESS_IN_THE_END = ["9**9**9**9", r"\sqrt[10^9]{2}", "1" * 9999, r"\frac{1}{" * 100 + "1" + "}" * 100, "!" * 9000]


@pytest.mark.exhaustive
def test_hostile_maths_hits_the_time_limit_and_the_worker_is_replaced() -> None:
    with closing(EquivalencePool(time_limit=3).open()) as opened:
        for text in HOSTILE:
            with pytest.raises(TimeLimitExceeded):
                opened.compare(text, "18").result(PATIENCE)
        assert _status(opened, "9+9", "18") == "equal"


@pytest.mark.landing
def test_other_hostile_maths_earns_nothing(pool: EquivalencePool) -> None:
    found = {text: _status(pool, text, "18") for text in HARMLESS_IN_THE_END}
    assert set(found.values()) <= {"different", "unparsed-answer", "error"}


def test_the_rest_of_a_batch_survives_a_bomb(pool: EquivalencePool) -> None:
    futures = [pool.compare(BOMB if i == 20 else f"{i}+0", "64") for i in range(64)]
    wait(futures, PATIENCE)
    assert isinstance(futures[20].exception(), TimeLimitExceeded)
    assert {future.result().status for future in futures[:20] + futures[21:]} == {"different"}


@pytest.mark.parametrize("text", ["1" * 10**6, "(" * 10**5])
def test_a_long_text_is_not_sent_to_the_worker(pool: EquivalencePool, text: str) -> None:
    for answer, reference in ((text, "1"), ("1", text)):
        with pytest.raises(AnswerTooLong):
            pool.compare(answer, reference).result(0)


def test_many_submissions_from_many_threads(pool: EquivalencePool) -> None:
    results: list[bool] = []

    def submit(number: int) -> None:
        futures = [pool.compare(f"{i}.0", str(number)) for i in range(20)]
        results.extend((f.result(PATIENCE).status == "equal") == (i == number) for i, f in enumerate(futures))

    threads = [threading.Thread(target=submit, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 200


def test_the_same_pair_is_shared_but_each_caller_has_a_future(pool: EquivalencePool) -> None:
    blocker = blocked(pool)
    first, second = pool.compare("3*6", "18"), pool.compare("3*6", "18")
    assert first.cancel()
    InProcessChannel.time_is_over.set()
    assert second.result(PATIENCE).status == "equal"
    assert pool.compare("3*6", "18").result(0) == AnswerComparison("equal", "expressions")
    assert isinstance(blocker.exception(PATIENCE), TimeLimitExceeded)


def blocked(pool: EquivalencePool) -> Future[AnswerComparison]:
    """Send a bomb whose time is over once `time_is_over`; return its future when the worker is at it."""
    InProcessChannel.time_is_over.clear()
    future = pool.compare(BOMB, "18")
    assert InProcessChannel.bombs_begun.acquire(timeout=PATIENCE)
    return future


def test_cancelled_futures_leave_the_dispatcher_alive(pool: EquivalencePool) -> None:
    futures = [blocked(pool), *(pool.compare(BOMB, str(i)) for i in range(2))]
    futures += [pool.compare(f"{i}+0", "7") for i in range(50)]
    for future in futures[1:]:
        future.cancel()
    InProcessChannel.time_is_over.set()
    assert not wait(futures, PATIENCE).not_done
    with pytest.raises(CancelledError):
        futures[5].result()
    assert _status(pool, "9+9", "18") == "equal"


@pytest.mark.landing
def test_a_worker_killed_from_outside_is_replaced(pool: EquivalencePool) -> None:
    assert _status(pool, "8+10", "18") == "equal"
    os.kill(_only_process(pool), signal.SIGKILL)
    futures = [pool.compare(f"{i}+1", "18") for i in range(40)]
    os.kill(_only_process(pool), signal.SIGKILL)
    assert [future.result(PATIENCE).status for future in futures].count("equal") == 1


def test_a_comparison_that_kills_two_workers_fails(pool: EquivalencePool) -> None:
    with pytest.raises(WorkerDied):
        pool.compare(DEADLY, "4").result(PATIENCE)
    assert _status(pool, "9+9", "18") == "equal"


def test_a_worker_that_cannot_start_fails_every_future(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise FileNotFoundError("/nonexistent/python")

    monkeypatch.setattr(worker_pool, "Channel", fail)
    with closing(EquivalencePool().open()) as opened:
        for _ in range(2):
            with pytest.raises(WorkerNotStarted, match="cannot start"):
                opened.compare("1", "2").result(PATIENCE)


@pytest.mark.landing
def test_a_worker_reports_why_it_cannot_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "math_verify.py").write_text("raise ImportError('no such thing')")
    monkeypatch.setattr(worker_pool, "_ROOT", f"{tmp_path}{os.pathsep}{worker_pool._ROOT}")
    with (
        closing(EquivalencePool().open()) as opened,
        pytest.raises(WorkerNotStarted, match="no such thing"),
    ):
        opened.compare("1", "2").result(PATIENCE)


def test_two_event_loops() -> None:
    async def compare_all(used: EquivalencePool) -> list[str]:
        waiting = [asyncio.wrap_future(used.compare(f"{i}+1", "18")) for i in range(30)]
        return [comparison.status for comparison in await asyncio.gather(*waiting)]

    with closing(EquivalencePool(workers=2, time_limit=20).open()) as opened:
        for _ in range(2):
            assert asyncio.run(compare_all(opened)).count("equal") == 1


def test_a_cancelled_task_leaves_the_pool_usable(pool: EquivalencePool) -> None:
    async def give_up() -> None:
        future = asyncio.wrap_future(blocked(pool))
        asyncio.get_running_loop().call_soon(future.cancel)
        await future

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(give_up())
    InProcessChannel.time_is_over.set()
    assert _status(pool, "9+9", "18") == "equal"


@pytest.mark.landing
def test_close_is_idempotent_and_leaves_no_process() -> None:
    opened = EquivalencePool(workers=2, time_limit=PATIENCE)
    assert _status(opened.open(), "9+9", "18") == "equal"
    waiting = opened.compare(BOMB, "18")
    processes = [each.process for each in opened._shared.channels]
    opened.close()
    opened.close()
    assert len(processes) == 2
    assert all(process.poll() is not None for process in processes)
    with pytest.raises(PoolClosed):
        waiting.result(0)


def test_a_closed_pool_fails_what_waits_and_refuses_the_rest(pool: EquivalencePool) -> None:
    waiting = blocked(pool)
    pool.close()
    pool.close()
    with pytest.raises(PoolClosed):
        waiting.result(0)
    for again in (pool.open, lambda: pool.compare("1", "1"), lambda: pool.compare("1" * 10**5, "1")):
        with pytest.raises(PoolClosed):
            again()


@pytest.mark.landing
def test_a_forgotten_pool_is_closed() -> None:
    forgotten = EquivalencePool(time_limit=20).open()
    assert _status(forgotten, "9+9", "18") == "equal"
    (process,) = (each.process for each in forgotten._shared.channels)
    del forgotten
    gc.collect()
    assert process.wait(PATIENCE) is not None


LEFT_OPEN = """
from jurygraph.agents.maths.comparison import compare
from jurygraph.agents.maths.pool import EquivalencePool
used = EquivalencePool(time_limit=1)
used.compare("9+9", "18").result(60)
print([each.process.pid for each in used._shared.channels][0], flush=True)
{last}
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "last",
    [
        "",
        f"used.compare('{BOMB}', '1'); import os; os.kill(os.getpid(), 9)",
    ],
)
def test_no_orphan_survives_its_parent(last: str) -> None:
    ran = subprocess.run([sys.executable, "-c", LEFT_OPEN.format(last=last)], capture_output=True, timeout=PATIENCE)
    worker = int(ran.stdout)
    deadline = time.monotonic() + PATIENCE
    while _runs(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(worker)


@pytest.mark.parametrize(("workers", "limit"), [(0, 1), (1, 0), (1, -1), (1, float("inf")), (1, float("nan"))])
def test_invalid_settings_are_refused(workers: int, limit: float) -> None:
    with pytest.raises(ValueError, match="are needed"):
        EquivalencePool(workers, limit)


def _only_process(used: EquivalencePool) -> int:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        alive = [each.process.pid for each in list(used._shared.channels) if each.process.poll() is None]
        if alive:
            return alive[0]
    raise AssertionError("no worker runs")


def _runs(process_id: int) -> bool:
    """Return true if the process runs; a zombie does not."""
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
