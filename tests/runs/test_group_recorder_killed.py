"""A process that records in four threads and is killed loses nothing that it had been told is stored."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from jurygraph.runs.integrity.deep_verification import verify_deep
from jurygraph.runs.integrity.verification import verify
from jurygraph.runs.run import Run

pytestmark = pytest.mark.exhaustive

KILLS = 10
GROUPS = 200

PROGRAM = f"""\
import os, sys
from concurrent.futures import ThreadPoolExecutor
import jurygraph as jg

def score(number):
    task = jg.Task(id=f"eggs-{{number % 50}}", query="How many?", reference="9")
    traces = jury.score(task, ["9", str(number)], step=number // 50)
    os.write(1, (" ".join(trace.response_id for trace in traces) + "\\n").encode())

with jg.Jury(evaluators=["maths.accuracy"], record=sys.argv[1]) as jury:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(score, range({GROUPS})))
"""


def test_a_killed_recording_loses_nothing_and_is_gone_on_with(tmp_path: Path) -> None:
    draw = random.Random(5)
    program = [sys.executable, "-c", PROGRAM, str(tmp_path / "run")]
    returned: set[str] = set()
    for _ in range(KILLS):
        with subprocess.Popen(
            program, stdout=subprocess.PIPE, text=True, env=os.environ
        ) as process:
            assert process.stdout is not None
            for _ in range(draw.randrange(1, GROUPS)):  # the stored groups come first, unasked
                returned |= set(process.stdout.readline().split())
            process.kill()
        if not returned:
            continue
        with Run.open(tmp_path / "run") as run:
            verify(run, lambda count: None)
            stored = [trace.response_id for trace in run.traces()]
        assert len(stored) == len(set(stored)), "nothing is stored twice"
        assert returned <= set(stored), json.dumps(sorted(returned - set(stored)))
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
    with Run.open(tmp_path / "run") as run:
        verify_deep(run, lambda count: None)
        assert len(list(run.traces())) == 2 * GROUPS
        assert run.planned_task_count == 50
