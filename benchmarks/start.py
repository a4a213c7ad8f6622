"""The start of commands: wall time from the start to the end of a process, as a multiple of importing LangGraph."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.figure import Figure, at_most
from benchmarks.judging_server import QUOTED, run_judging_server

ROUNDS = 10
IMPORT, LIMITS = 0.7, {"--help": 0.25, "score, by checks": 1.0, "score, by a model": 1.0}
"""Seconds to import LangGraph on the machine for which limits of commands are given, and these limits."""

TASK = {
    "id": "sum",
    "query": "How much is 6 x 7?",
    "reference": "42",
    "responses": [{"id": "a", "text": "A: 42.0"}],
}
LETTER = {
    "id": "letter",
    "query": "Write a letter.",
    "rubric": {"criteria": [{"id": "day", "text": "It says the day.", "weight": 1.0}]},
    "responses": [{"id": "b", "text": QUOTED}],
}


def measure() -> list[Figure]:
    """The best of ten rounds, in each of which every command runs once. `score` reads a file of one line."""
    with tempfile.TemporaryDirectory() as folder, run_judging_server(0.0) as url:
        rules = {
            "evaluators": ["maths.accuracy", "maths.format"],
            "reward": {"accuracy": 1.0, "format": 0.5},
        }
        model = {"evaluators": ["criteria"], "model": f"openai-compatible:{url}#tiny"}
        commands = {
            "--help": ["--help"],
            "score, by checks": ["score", _write(Path(folder, "checks"), TASK, rules)],
            "score, by a model": ["score", _write(Path(folder, "model"), LETTER, model)],
        }
        rounds = [_round(commands, Path(folder, str(number))) for number in range(ROUNDS)]
    best = {name: min(one[name] for one in rounds) for name in rounds[0]}
    base = best.pop("import")
    ratios = (
        at_most(f"jurygraph {name}", best[name] / base, "x", LIMITS[name] / IMPORT) for name in best
    )
    return [Figure("python -c 'import langgraph.graph'", base, "s"), *ratios]


def _write(folder: Path, task: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    folder.mkdir()
    (folder / "jury.yaml").write_text(json.dumps(config))
    (folder / "tasks.jsonl").write_text(json.dumps(task) + "\n")
    return str(folder / "tasks.jsonl")


def _round(commands: Mapping[str, Sequence[str]], folder: Path) -> dict[str, float]:
    """Return the wall seconds of each command, and of the import of LangGraph. Nothing is cached from another round."""
    seconds = {"import": _seconds([sys.executable, "-c", "import langgraph.graph"], folder)}
    script = str(Path(sys.executable).with_name("jurygraph"))
    for name, command in commands.items():
        out = ["--out", str(folder / name)] if "tasks.jsonl" in command[-1] else []
        seconds[name] = _seconds([script, *command, *out], folder)
    return seconds


def _seconds(command: Sequence[str], folder: Path) -> float:
    """Return the wall seconds of a process. Modules are compiled in the first round, as an installer does it."""
    environment = {
        name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    start = perf_counter()
    subprocess.run(
        command,
        check=True,
        capture_output=True,
        env={**environment, "JURYGRAPH_CACHE": str(folder / "cache")},
    )
    return perf_counter() - start
