"""A TASKS file of 1 GB: 20,000 responses of 50 kB, scored by rules; how much memory the command takes."""

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figure import Figure, at_most

TASKS, SIZE, CHARACTERS = 1_000, 20, 50_000
CONFIG = "evaluators: [maths.format, maths.length]\nreward: {format: 1.0, length: 0.5}\n"


def measure() -> list[Figure]:
    """Peak resident memory of the command's own process, in MB, and its wall time."""
    folder = Path(tempfile.mkdtemp(prefix="jurygraph-large-"))
    try:
        size = _write(folder / "tasks.jsonl")
        (folder / "jury.yaml").write_text(CONFIG)
        peak, seconds = _scored(folder)
        return [
            at_most(f"peak memory of scoring a file of {size / 1e9:.2f} GB", peak, "MB", 400),
            Figure("... and its time: checked whole, scored, stored", seconds, "s"),
        ]
    finally:
        shutil.rmtree(folder)


def _write(path: Path) -> int:
    words = " ".join(
        random.Random(0).choices(
            "so the price of each of 7 apples is 14 / 7 = 2 dollars".split(), k=20_000
        )
    )
    with path.open("w") as file:
        for task in range(TASKS):
            starts = [(task * SIZE + place) * 7 % 40_000 for place in range(SIZE)]
            responses = [
                {
                    "id": f"{task}/{place}",
                    "text": f"{place} {words[start : start + CHARACTERS - 20]}\nA: {task}",
                }
                for place, start in enumerate(starts)
            ]
            file.write(
                json.dumps({"id": f"task-{task}", "query": "How much?", "responses": responses})
                + "\n"
            )
    return path.stat().st_size


def _scored(folder: Path) -> tuple[float, float]:
    start = time.perf_counter()
    script = Path(sys.executable).with_name("jurygraph")
    command = [str(script), "score", str(folder / "tasks.jsonl"), "--out", str(folder / "run")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, peak_memory(process.pid))
        time.sleep(0.05)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return peak, time.perf_counter() - start


def peak_memory(pid: int) -> float:
    """The most that a process has held in memory, MB."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0  # it has just ended
    return next(
        (int(line.split()[1]) / 1e3 for line in status.splitlines() if line.startswith("VmHWM")),
        0.0,
    )
