"""`score --processes 2` beside one process, by rules and with judges that reply at once; merging, and its memory.

The commands run alternately, as a user types them: start, planning, merging and the printed result are included. The
rate of two processes needs two free cores; merging is measured in seconds of CPU, of which a busy machine takes none.
One judge is in the process that asks it. The other is a server, which takes a part of the same two cores, so that two
processes cannot have twice the rate of one: there is no target for it.
`python -m benchmarks.shards --seconds 60` takes tasks for about so many seconds of one process.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.figure import Figure, at_least, at_most
from benchmarks.judging_server import QUOTED, REASON, run_judging_server

TASKS, JUDGED_TASKS, ROUNDS = 6_000, 600, 2
RULES = "evaluators: [maths.accuracy, maths.repetition, maths.length]\nreward: {accuracy: 1}\n"
JUDGE = """\
model: {model}
evaluators: [criteria]
calls: {{cache: false, concurrency: 32}}
task_defaults:
  rubric: {{criteria: [{{id: kind, text: It is kind., weight: 1}}]}}
"""
IN_PROCESS = f"""\
import json
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

VERDICT = {{"reason": {REASON!r}, "quotes": [{QUOTED!r}], "met": True, "probability": 0.9}}


class AtOnce(BaseChatModel):
    _llm_type = "at-once"

    def _generate(self, *asked, **settings):
        reply = AIMessage(json.dumps({{"criterion_1": VERDICT}}))
        return ChatResult(generations=[ChatGeneration(message=reply)])

    async def _agenerate(self, *asked, **settings):
        return self._generate()


judge = AtOnce()
"""


def measure(
    tasks: int = TASKS, judged: int = JUDGED_TASKS, rounds: int = ROUNDS
) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rules.yaml").write_text(RULES)
        _write_tasks(folder / "rules.jsonl", tasks)
        yield from _compare(folder, "rules", "by rules", tasks, rounds, least=1.5)
        _score(folder, "rules", "shards/1", "--shard", "1/2")
        _score(folder, "rules", "shards/2", "--shard", "2/2")
        begun = _cpu_of_children()
        _score(folder, "rules", "again")
        scoring = _cpu_of_children() - begun
        begun = _cpu_of_children()
        _run(folder, "merge", "shards", "--out", "merged")
        merging = _cpu_of_children() - begun
        yield at_most(
            "merging, with its start, of scoring by rules", merging / scoring, "of CPU", 0.08
        )
        yield from _memory(folder, tasks)
        _write_tasks(folder / "judge.jsonl", judged)
        (folder / "at_once.py").write_text(IN_PROCESS)
        (folder / "judge.yaml").write_text(JUDGE.format(model="langchain:at_once.judge"))
        yield from _compare(folder, "judge", "a judge at once", judged, rounds, least=1.5)
        with run_judging_server(0.0) as url:
            (folder / "judge.yaml").write_text(JUDGE.format(model=f"openai-compatible:{url}#judge"))
            yield from _compare(folder, "judge", "a server at once", judged, rounds, least=None)


def _compare(
    folder: Path, name: str, label: str, tasks: int, rounds: int, least: float | None
) -> Iterator[Figure]:
    key = label.replace(" ", "-")
    ones: list[float] = []
    twos: list[float] = []
    for turn in range(rounds):
        ones.append(_score(folder, name, f"{key}-one-{turn}"))
        twos.append(_score(folder, name, f"{key}-two-{turn}", "--processes", "2"))
    yield Figure(f"{label}: one process", 2 * tasks / median(ones), "responses/s")
    ratio = median(one / two for one, two in zip(ones, twos, strict=True))
    comparison = f"{label}: two processes beside one", ratio, "of the rate"
    yield Figure(*comparison) if least is None else at_least(*comparison, least)


def _memory(folder: Path, tasks: int) -> Iterator[Figure]:
    """Yield how much more memory the merge of all tasks takes than that of a tenth."""
    _write_tasks(folder / "few.jsonl", tasks // 10)
    (folder / "few.yaml").write_text(RULES)
    _score(folder, "few", "few-shards/1", "--shard", "1/2")
    _score(folder, "few", "few-shards/2", "--shard", "2/2")
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from jurygraph.runs.workflows.merging import merge_shards\n"
        "merge_shards([Path(sys.argv[1])], Path(sys.argv[2]))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    peaks = []
    for shards in ("few-shards", "shards"):
        command = [sys.executable, "-c", script, shards, f"merged-{shards}"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        peaks.append(float(done.stdout))
    yield at_most(
        f"memory to merge {tasks:,} tasks, beside a tenth", peaks[1] - peaks[0], "MB more", 10.0
    )


def _write_tasks(path: Path, number: int) -> None:
    with path.open("w") as file:
        for task in range(number):
            responses = [
                {
                    "id": f"t{task}/{extra}",
                    "text": f"{QUOTED} Adding 2 to {task}: {task} + 2 = {task + 2 + extra}. "
                    f"The answer is {task + 2 + extra}.",
                }
                for extra in range(2)
            ]
            line = {"id": f"t{task}", "query": f"What is {task} + 2?", "reference": str(task + 2)}
            file.write(json.dumps({**line, "responses": responses}) + "\n")


def _score(folder: Path, name: str, out: str, *more: str) -> float:
    """Return the seconds that a command takes to score tasks into a run."""
    begun = perf_counter()
    _run(folder, "score", f"{name}.jsonl", "--config", f"{name}.yaml", "--out", out, *more)
    return perf_counter() - begun


def _run(folder: Path, *words: str) -> None:
    command = [sys.executable, "-m", "jurygraph", *words]
    environment = {**os.environ, "JURYGRAPH_CACHE": str(folder / "cache")}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    scale = options.seconds / 10.0
    for figure in measure(int(TASKS * scale), int(JUDGED_TASKS * scale), options.rounds):
        print(f"{figure.name:60} {figure.value:12.3f} {figure.unit:14} {figure.target}", flush=True)
