"""A panel at full width: 8 responses, 5 stakeholders, 12 criteria, 3 reviewers × 3 judges, and all specialists.

`python -m benchmarks.panel 2000` scores so many tasks; each is new, so that nothing is cached. The judge answers at
once and lives in a process of its own, and so do the workers that compare maths.
"""

import asyncio
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple
from unittest.mock import patch

from benchmarks.figure import Figure, at_most
from benchmarks.jobs import OpenedJob, open_job
from benchmarks.judging_server import QUOTED, run_judging_server
from jurygraph import Jury
from jurygraph.agents.data_analyzer import Analyzer
from jurygraph.runs.reports.estimate import ModelUsage, RemainingWork
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.forecasting import RemainingWorkEstimator
from jurygraph.studies.monitor import (
    iter_scored_groups,
    iter_training_steps,
    read_component_weights,
    split_steps_by_task_count,
)

TASKS, FIRST, RESPONSES, PEOPLE, CRITERIA = 60, 100, 8, 5, 12
REVIEWERS, JUDGES, RATED = ("ada", "ben", "cyd"), ("zero-shot", "aggregate", "personalized"), 30
IN_FLIGHT, A_STEP = 32, 2
WORDS = "the letter names a day and a place so each of us knows what to bring and what it costs to come along".split()
PAGE = 4096
GROWTH = 30.0
"""Maximum growth of memory in MB over several hundred tasks."""


class Spent(NamedTuple):
    """CPU seconds of this process for planning and for scoring, and MB of memory by task, as each is finished."""

    planning: float
    scoring: float
    memory: list[float]


def measure(tasks: int = TASKS) -> list[Figure]:
    """CPU of this process alone, over a whole run that would survive a power cut; and the estimate of a dry run."""
    folder = Path(tempfile.mkdtemp(prefix="jurygraph-panel-"))
    try:
        with (
            run_judging_server(0.0) as url,
            patch.dict(os.environ, JURYGRAPH_CACHE=f"{folder}/cache"),
        ):
            return _figures(folder, url, tasks)
    finally:
        shutil.rmtree(folder)


def _figures(folder: Path, url: str, tasks: int) -> list[Figure]:
    _write_tasks(folder / "tasks.jsonl", tasks)
    _write_history(folder / "ratings.jsonl")
    config = _config(url, folder / "ratings.jsonl")
    with _open_job(folder, config) as opened:
        forecaster = RemainingWorkEstimator(opened.job, opened.stored_work)
        forecast = asyncio.run(forecaster.forecast(lambda count: None))
    with _open_job(folder, config) as opened:
        spent = asyncio.run(_scored(opened))
        summary = opened.summarize()
        verdicts = summary.verdicts
        whole = summary.failed + summary.failed_verdicts == 0
    assert whole, "every question has its verdict, and every response its reward"
    estimated, sent, first = _expected(forecast), _sent(folder / "run"), min(FIRST, tasks // 2)
    return [
        at_most(
            "a verdict, of code or model: planned, asked, durable",
            _ms(sum(spent[:2]), verdicts),
            "ms CPU",
            1.0,
        ),
        Figure("... planning, a task", _ms(spent.planning, tasks), "ms CPU"),
        Figure("... scoring, a call", _ms(spent.scoring, sent.calls), "ms CPU"),
        Figure("verdicts a task", verdicts / tasks, "verdicts"),
        Figure("... of which a model gives", forecast.model_verdicts / tasks, "verdicts"),
        Figure("calls a task", sent.calls / tasks, "calls"),
        at_most("calls, beside what --dry-run said", abs(sent.calls - estimated.calls), "calls", 0),
        at_most(
            "input tokens at 4 bytes each, beside it",
            abs(sent.tokens_in - estimated.tokens_in),
            "tokens",
            0,
        ),
        Figure(
            "output tokens, of those that --dry-run takes a reply for",
            sent.tokens_out / estimated.tokens_out,
            "share",
        ),
        at_most(
            f"memory: peak after task {first} against before",
            _growth(spent.memory, first),
            "MB",
            GROWTH,
        ),
        Figure(
            "watching the run afterwards, a response", _watched(folder / "run", tasks), "ms CPU"
        ),
    ]


def _sent(run: Path) -> ModelUsage:
    """Return the calls of a run, with the tokens that the server counted."""
    with closing(Run.open(run)) as opened:
        calls = [record.content["call"] for record in opened.ledger.records("call")]
    assert all(call["attempts"] == 1 for call in calls), (
        "nothing was cached, and nothing sent again"
    )
    return ModelUsage(
        len(calls),
        sum(call["tokens_in"] for call in calls),
        sum(call["tokens_out"] for call in calls),
    )


def _ms(seconds: float, number: int) -> float:
    return seconds / number * 1e3


def _growth(memory: list[float], first: int) -> float:
    return max(memory[first:]) - max(memory[:first])


@contextmanager
def _open_job(folder: Path, config: dict[str, Any]) -> Iterator[OpenedJob]:
    with (
        Jury.from_config(config) as jury,
        open_job(folder / "run", jury, folder / "tasks.jsonl") as opened,
    ):
        yield opened


def _expected(forecast: RemainingWork) -> ModelUsage:
    assert forecast.model is not None, "a model is asked"
    return forecast.model.expected


async def _scored(opened: OpenedJob) -> Spent:
    memory: list[float] = []
    start = process_time()
    scoring = await opened.plan()
    planned = process_time()
    await scoring.score(lambda count: memory.append(_resident()))
    return Spent(planned - start, process_time() - planned, memory)


def _resident() -> float:
    """Return the current memory of the process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


def _watched(run: Path, tasks: int) -> float:
    """Run the Data Analyzer over the run, as `watch` does."""
    start, analyzer = process_time(), Analyzer()
    steps = split_steps_by_task_count(iter_scored_groups(run), A_STEP)
    for step in iter_training_steps(steps, read_component_weights(run)):
        analyzer.observe(step)
    assert analyzer.step_count == tasks // A_STEP, "every step was watched"
    return _ms(process_time() - start, tasks * RESPONSES)


def _config(url: str, history: Path) -> dict[str, Any]:
    """The recipe: MACRM's four agents, a rubric under GEAR, stakeholders, and a panel fused by consensus."""
    dimensions = {"appeal": {"text": "Whether the reviewer would come.", "scale": [1, 5]}}
    shown = {"dimensions": dimensions, "history": str(history), "shots": 3}
    judges = [
        {"use": name, "params": {"dimensions": dimensions} if name == "zero-shot" else shown}
        for name in JUDGES
    ]
    panel = {"combiner": "consensus", "params": {"levels": [0.0, 0.25, 0.5, 0.75, 1.0]}}
    return {
        "preset": "macrm-vanilla-4",
        "model": f"openai-compatible:{url}#tiny",
        "evaluators": ["criteria", "preferences", "checks.constraints", *judges],
        "components": {"together": {**panel, "inputs": {name: name for name in JUDGES}}},
        "reward": {
            "rubric": 1.0,
            "stakeholders": 1.0,
            "together": 0.5,
            **dict.fromkeys(JUDGES, 0.1),
        },
        "weights": {"layers": {"check": 0.5, "model": 0.5}},
        "calls": {"concurrency": IN_FLIGHT},
    }


def _write_tasks(path: Path, tasks: int) -> None:
    draw = random.Random(0)
    with path.open("w") as file:
        for number in range(tasks):
            file.write(json.dumps(_task(number, draw)) + "\n")


def _task(number: int, draw: random.Random) -> dict[str, Any]:
    return {
        "id": f"t{number}",
        "query": f"Tell {PEOPLE} friends of meeting {number}: the day, the place, and what {number} seats at $3 cost.",
        "reference": f"{number * 3}",
        "stakeholders": [_person(place) for place in range(PEOPLE)],
        "reviewers": list(REVIEWERS),
        "rubric": _rubric(number),
        "responses": [_response(number, place, draw) for place in range(RESPONSES)],
    }


def _person(place: int) -> dict[str, Any]:
    """Return a stakeholder with two constraints for code and two for a model."""
    constraints = [
        {"id": "costs", "kind": "hard", "text": "says what it costs", "check": {"text": r"\$\d+"}},
        {
            "id": "stops",
            "kind": "soft",
            "text": "two stops",
            "check": {"count": "$.stops[*]", "at_least": 2},
        },
        {"id": "early", "kind": "hard", "text": f"is home by {place + 5} in the afternoon"},
        {"id": "quiet", "kind": "soft", "text": "would rather have it quiet"},
    ]
    return {
        "id": f"p{place}",
        "profile": f"comes from {place + 2} miles away, by bus",
        "constraints": constraints,
    }


def _rubric(number: int) -> dict[str, Any]:
    """A graph in which each criterion but the first needs the one at half its place."""
    criteria = [
        {"id": f"c{place:02}", "text": f"Point {place} of meeting {number} is told.", "weight": 1.0}
        for place in range(CRITERIA)
    ]
    kinds = ("weak", "strong")
    edges = [
        {"parent": f"c{place // 2:02}", "child": f"c{place:02}", "kind": kinds[place % 2]}
        for place in range(1, CRITERIA)
    ]
    return {"criteria": criteria, "edges": edges}


def _response(number: int, place: int, draw: random.Random) -> dict[str, Any]:
    sentences = [" ".join(draw.choices(WORDS, k=40)) for _ in range(4)]
    sums = f"A seat is $3, so {number} seats are {number} * 3 = {number * 3} dollars."
    return {
        "id": f"t{number}/{place}",
        "text": "\n".join([QUOTED, *sentences, sums, f"A: {number * 3}"]),
        "agent": f"agent-{place}",
        "data": {"stops": ["town hall", "park", "inn"][: 1 + place % 3]},
    }


def _write_history(path: Path) -> None:
    draw = random.Random(1)
    rows = [
        {
            "item": f"i{item}",
            "reviewer": who,
            "score": draw.randint(1, 5),
            "text": " ".join(draw.choices(WORDS, k=40)),
        }
        for who in REVIEWERS
        for item in range(RATED)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    from benchmarks.__main__ import print_figures

    sys.exit(print_figures(measure(*map(int, sys.argv[1:]))))
