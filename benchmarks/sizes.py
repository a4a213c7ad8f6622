"""Large inputs: CPU time and peak memory of each command, in a process of its own.

`python -m benchmarks sizes` takes a run of 10,000 responses; `python -m benchmarks.sizes 200000` one of so many.
"""

import asyncio
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.__main__ import print_figures
from benchmarks.figure import Figure, at_most
from benchmarks.jobs import open_job
from benchmarks.large import peak_memory
from jurygraph import Evaluator, Jury
from jurygraph.agents.functions import REGISTERED_EVALUATORS
from jurygraph.agents.roles import EvaluatorInput

CRITERIA, CHAIN, GROUP, RESPONSES = 10_000, 5_000, 4_096, 10_000
SECONDS, MEGABYTES = 5.0, 300.0
RULES = {"evaluators": ["maths.format", "maths.length"], "reward": {"format": 1.0, "length": 0.5}}
DIVERSITY = {"evaluators": ["optimizer.diversity"], "reward": {"diversity": 1.0}}
RUBRIC = {"evaluators": ["by-place"], "rubric": {"aggregation": "gear"}, "reward": {"rubric": 1.0}}


class ByPlace(Evaluator):
    """Scores a criterion by its place in the rubric."""

    name, audience, runs_inline = "by-place", "criterion", True

    def answer(self, inputs: EvaluatorInput) -> float:
        return int(str(inputs.task.member)[1:]) % 10 / 10


def measure(responses: int = RESPONSES) -> Iterator[Figure]:
    """Return CPU seconds, user and system, and megabytes at the peak."""
    REGISTERED_EVALUATORS["by-place"] = ByPlace()  # type: ignore[assignment]  # as if it had been a function
    folder = Path(tempfile.mkdtemp(prefix="jurygraph-sizes-"))
    try:
        yield from _rubrics(folder)
        yield from _groups(folder)
        yield from _responses(folder, responses)
        yield from _blanks(folder)
    finally:
        shutil.rmtree(folder)


def _rubrics(folder: Path) -> Iterator[Figure]:
    runs = [
        _score(folder / name, [_task(0, 1, _chain(CRITERIA))], RUBRIC)
        for name in ("rubric", "again")
    ]
    yield from _command(
        f"explain a rubric of {CRITERIA:,} criteria", "explain", runs[0], "--response", "0/0"
    )
    yield from _command(f"compare two runs of {CRITERIA:,} criteria", "compare", *runs)
    star = [(0, n) for n in range(1, CHAIN)]
    far = [(n, n + CHAIN // 2) for n in range(CHAIN // 2)]
    shapes = {
        "a chain": _chain(CHAIN),
        "a star": _graph(CHAIN, star),
        "a chain and a star": _graph(CHAIN, [*_links(CHAIN), *star[1:]]),
        "a chain and far edges": _graph(CHAIN, [*_links(CHAIN), *far]),
    }
    for name, rubric in shapes.items():
        tasks = _write(folder / f"{name}.jsonl", [_task(0, 1, rubric)])
        diagram = folder / f"{name}.mmd"
        yield from _command(
            f"the Mermaid of {name} of {CHAIN:,}", "graph", "--task", tasks, "-o", diagram
        )


def _groups(folder: Path) -> Iterator[Figure]:
    run = _score(folder / "group", [_task(0, GROUP)], DIVERSITY)
    yield from _command(f"verify a group of {GROUP:,} with diversity", "verify", run)


def _responses(folder: Path, responses: int) -> Iterator[Figure]:
    tasks = folder / "many" / "tasks.jsonl"
    run = _score(folder / "many", [_task(number, 8) for number in range(responses // 8)], RULES)
    yield from _command(f"show {responses:,} responses", "show", run)
    yield from _command(f"go on with a finished run of {responses:,}", "score", tasks, "--out", run)
    nowhere = folder / "many" / "none"
    yield from _command(
        f"a dry run of {responses:,}", "score", tasks, "--dry-run", "--out", nowhere
    )


def _blanks(folder: Path) -> Iterator[Figure]:
    blanks = folder / "blanks.jsonl.gz"
    with gzip.open(blanks, "wb", compresslevel=1) as file:
        for _ in range(200):
            file.write(b"\n" * 1_000_000)
    (folder / "jury.yaml").write_text(json.dumps(RULES))
    yield from _command(
        "200 million blank lines, refused",
        "score",
        blanks,
        "--dry-run",
        "--out",
        folder / "none",
        ended=2,
    )


def _task(number: int, responses: int, rubric: Mapping[str, Any] | None = None) -> dict[str, Any]:
    texts = [
        f"step {place}: 2 + {number} = {number + 2}, so it is done. A: {place}"
        for place in range(responses)
    ]
    given = [{"id": f"{number}/{place}", "text": text} for place, text in enumerate(texts)]
    task = {"id": f"t{number}", "query": "How much is it?", "responses": given}
    return task if rubric is None else {**task, "rubric": rubric}


def _chain(criteria: int) -> dict[str, Any]:
    return _graph(criteria, _links(criteria))


def _links(criteria: int) -> list[tuple[int, int]]:
    return [(n, n + 1) for n in range(criteria - 1)]


def _graph(criteria: int, edges: Iterable[tuple[int, int]]) -> dict[str, Any]:
    return {
        "criteria": [
            {"id": f"c{n}", "text": f"Criterion {n} holds.", "weight": 1.0} for n in range(criteria)
        ],
        "edges": [
            {"parent": f"c{parent}", "child": f"c{child}", "kind": "weak"}
            for parent, child in edges
        ],
    }


def _write(path: Path, tasks: Iterable[Mapping[str, Any]]) -> Path:
    with path.open("w") as file:
        file.writelines(json.dumps(task) + "\n" for task in tasks)
    return path


def _score(folder: Path, tasks: Iterable[Mapping[str, Any]], config: Mapping[str, Any]) -> Path:
    """Score tasks into a run in this process, and return its folder."""
    folder.mkdir()
    (folder / "jury.yaml").write_text(json.dumps(config))

    async def both() -> None:
        scoring = await opened.plan()
        await scoring.score(lambda _: None)

    with (
        Jury.from_config(config) as jury,
        open_job(folder / "run", jury, _write(folder / "tasks.jsonl", tasks)) as opened,
    ):
        asyncio.run(both())
    return folder / "run"


def _command(name: str, *command: object, ended: int = 0) -> list[Figure]:
    script = Path(sys.executable).with_name("jurygraph")
    process = subprocess.Popen(
        [str(script), *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    peak = 0.0
    while (done := os.wait4(process.pid, os.WNOHANG))[0] == 0:
        # what wait4 tells would hold that of this process, too
        peak = max(peak, peak_memory(process.pid))
        time.sleep(0.02)
    process.returncode = os.waitstatus_to_exitcode(done[1])
    if process.returncode != ended:
        raise RuntimeError(
            f"jurygraph {' '.join(map(str, command))} ended with {process.returncode}"
        )
    return [
        at_most(name, done[2].ru_utime + done[2].ru_stime, "s CPU", SECONDS),
        at_most("... at its peak", peak, "MB", MEGABYTES),
    ]


if __name__ == "__main__":
    sys.exit(1 if print_figures(measure(int(sys.argv[1]) if sys.argv[1:] else RESPONSES)) else 0)
