"""Scoring the 1,600 real GSM8K solutions: by the whole jury, and by command."""

import asyncio
import gc
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

from benchmarks.figure import Figure, at_least
from jurygraph import Group, Jury
from jurygraph.sources import read_tasks

ROOT = Path(__file__).parent.parent
TASKS = ROOT / "tests" / "data" / "gsm8k_solutions.jsonl.gz"
CONFIG = ROOT / "examples" / "maths" / "jury.yaml"


def measure() -> list[Figure]:
    """Responses a second of wall time, from plan to trace; and the command, with start-up, reading and writing."""
    with Jury.from_config(CONFIG) as jury:
        wall, cpu, count = asyncio.run(_scored(jury))
    command = _by_command()
    return [
        at_least(f"{count:,} solutions, from plan to trace", count / wall, "responses/s", 500),
        Figure("CPU of this process (the worker apart), a response", cpu / count * 1e3, "ms CPU"),
        Figure(
            "`jurygraph score`, with start-up, reading and writing", count / command, "responses/s"
        ),
    ]


async def _scored(jury: Jury) -> tuple[float, float, int]:
    work = read_tasks(TASKS)
    await jury.ascore(*work[0])  # what is loaded once is loaded, as it is in a long run
    start, cpu, count = perf_counter(), process_time(), 0
    groups = [Group(task, responses, await jury.aprepare(task)) for task, responses in work]
    gc.freeze()  # as the command does
    async for traces in jury.ascore_many(groups):
        count += len(traces)
    return perf_counter() - start, process_time() - cpu, count


def _by_command() -> float:
    with tempfile.TemporaryDirectory() as folder:
        score = [
            str(Path(sys.executable).with_name("jurygraph")),
            "score",
            str(TASKS),
            "--config",
            str(CONFIG),
        ]
        start = perf_counter()
        subprocess.run([*score, "--out", f"{folder}/run"], check=True, capture_output=True)
        return perf_counter() - start
