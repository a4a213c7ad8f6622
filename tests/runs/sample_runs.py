"""Runs made by a real jury, whose evaluators take their answers from the data of the responses."""

import asyncio
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import jurygraph as jg
from jurygraph.agents.roles import EvaluatorInput
from jurygraph.models import judge_client
from jurygraph.models.judge_client import make_repair_request
from jurygraph.models.request import Reply, Request
from jurygraph.runs.integrity import verification
from jurygraph.runs.integrity.deep_verification import DeepVerificationCounts, verify_deep
from jurygraph.runs.integrity.verification import Seal, VerificationResult, verify
from jurygraph.runs.reports.summary import Summary
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.branch import open_reused_run
from jurygraph.runs.workflows.planning import JobPlanner
from jurygraph.runs.workflows.rescoring import rescore
from jurygraph.runs.workflows.scoring import JobScorer
from jurygraph.runs.workflows.stored_work import StoredJobProgress
from jurygraph.runs.workflows.task_file_job import StopSwitch, TaskFileJob
from jurygraph.runs.workflows.totals import summarize_run
from jurygraph.schema import Trace
from jurygraph.sources import Shard, open_task_source
from jurygraph.sources.config import apply_settings
from jurygraph.sources.tasks import open_profiles
from tests.graphs.scripted import ScriptedEvaluator


class Outage:
    """A line to the server of `reached`, an evaluator of which each verdict fails while the line `is_down`."""

    is_down = True

    def evaluator(self) -> Any:
        @jg.evaluator(layer="check")
        def reached(task: jg.TaskView, response: jg.Response) -> float:
            if self.is_down:
                raise ConnectionError("the line is dead")
            return 1.0

        return reached


REQUESTED: list[tuple[str, tuple[str, ...], int]] = []
"""Requests to the evaluators: question, responses, sample."""

RECORDING = "tests.runs.sample_runs:RecordingEvaluator"


class RecordingEvaluator(ScriptedEvaluator):
    """A `Told` that records its requests, and gives a reason with a quotation."""

    def answer(self, inputs: EvaluatorInput) -> Any:
        REQUESTED.append(
            (inputs.question.id, tuple(response.id for response in inputs.responses), inputs.sample)
        )
        given = super().answer(inputs)
        if isinstance(given, float):
            text = inputs.responses[0].text
            evidence = (jg.Evidence(quote=text[:9], start=0, end=len(text[:9])),)
            return jg.Verdict(
                score=given, reason=f"{inputs.question.subject} of “{text}”", evidence=evidence
            )
        return given


def evaluator_config(name: str, **fields: Any) -> dict[str, Any]:
    params = {key: fields.pop(key) for key in ("scope", "pairs", "audience") if key in fields}
    return {"use": RECORDING, "name": name, "params": params, **fields}


SIMPLE_CONFIG: dict[str, Any] = {
    "evaluators": [
        evaluator_config("tone", samples=2),
        evaluator_config("same"),
        evaluator_config("late", when={"question": "same", "threshold": 0.5}),
    ],
    "components": {"late": {"inputs": {"late": {"verdicts_of": "late", "if_skipped": "zero"}}}},
    "reward": {"tone": 1.0, "same": 0.5, "late": -0.25},
}
"""A config in which no reward depends on another response."""

FULL_CONFIG: dict[str, Any] = {
    **SIMPLE_CONFIG,
    "evaluators": [
        *SIMPLE_CONFIG["evaluators"],
        evaluator_config("rank", scope="pair", pairs="unordered"),
        evaluator_config("place", scope="group"),
        evaluator_config("met", audience="criterion"),
        {"use": "tests.graphs.scripted:DataReader", "name": "reads", "params": {"needs": ["half"]}},
    ],
    "derivers": [
        {"use": "tests.graphs.scripted:Measure", "name": "measure"},
        {"use": "tests.graphs.scripted:Half", "name": "half"},
    ],
    "reward": {**SIMPLE_CONFIG["reward"], "rank": 0.5, "place": 0.125, "rubric": 1.0, "reads": 0.1},
    "clip": [-1.0, 2.0],
}
"""A config with pairs, groups, a rubric and material."""


def make_tasks(tasks: int = 4, size: int = 3, seed: int = 0) -> list[dict[str, Any]]:
    """Return tasks whose responses hold the answers about them; every third one of the first task is not judged."""
    draw = random.Random(seed)
    return [
        {
            "id": f"t{t}",
            "query": f"How would one say the number {t}, and to whom?",
            "reference": f"The reference of task {t}.",
            "rubric": {
                "criteria": [
                    {"id": "core", "text": "It is right.", "weight": 2.0},
                    {"id": "more", "text": "It is kind.", "weight": 1.0},
                ],
                "edges": [{"parent": "core", "child": "more", "kind": "strong"}],
            },
            "responses": [
                _response(f"t{t}/r{r}", draw, unjudged=t == 0 and r % 3 == 2) for r in range(size)
            ],
        }
        for t in range(tasks)
    ]


def _response(name: str, draw: random.Random, unjudged: bool) -> dict[str, Any]:
    script: dict[str, Any] = {
        key: round(draw.random(), 3) for key in ("same", "late", "rank", "place", "met", "measure")
    }
    script["tone"] = "abstained" if unjudged else [round(draw.random(), 3) for _ in range(2)]
    words = " ".join(draw.choices("one two three four five six seven eight".split(), k=8))
    return {
        "id": name,
        "text": f"«{words}» says {name}\nin two lines",
        "agent": f"agent {name[-1]}",
        "data": script,
        "labels": {"gold": name[-1]},
    }


def task_line(task: jg.Task, responses: Sequence[jg.Response]) -> dict[str, Any]:
    """Return a task with its responses as they stand on a line of a file of tasks."""
    return {
        **task.model_dump(mode="json"),
        "responses": [response.model_dump(mode="json") for response in responses],
    }


def write_tasks(
    folder: Path, content: Sequence[Mapping[str, Any]], name: str = "tasks.jsonl"
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(
        "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in content), encoding="utf-8"
    )
    return path


class ScoredWork(NamedTuple):
    """A job, and what it found stored when it began; the summary and the possible rewards are those of its end."""

    job: TaskFileJob
    stored_work: StoredJobProgress
    summary: Summary


def score(
    folder: Path,
    tasks: Path,
    config: Mapping[str, Any] | Path = SIMPLE_CONFIG,
    limit: int | None = None,
    branch: Path | None = None,
    stop_after: int | None = None,
    shard: Shard | None = None,
) -> ScoredWork:
    """Score a file of tasks into a run; `stop_after` interrupts it after that number of groups."""

    def report(_: int) -> None:
        nonlocal groups
        groups += 1
        if groups == stop_after:
            raise KeyboardInterrupt

    groups = 0
    with scored_session(folder, tasks, config, branch, limit, shard=shard, report=report) as scored:
        return scored


@contextmanager
def open_job(
    folder: Path,
    tasks: Path,
    config: Mapping[str, Any] | Path = SIMPLE_CONFIG,
    branch: Path | None = None,
    limit: int | None = None,
    profiles: Path | None = None,
    shard: Shard | None = None,
    **limits: Any,
) -> Iterator[tuple[TaskFileJob, StoredJobProgress]]:
    """Open a file of tasks and the run in a folder; `limits` are those of the jury."""
    with (
        jg.Jury.from_config(config, **limits) as jury,
        open_task_source(tasks, defaults=jury.config.task_defaults, shard=shard) as source,
        open_profiles(profiles, source) as by_hand,
        open_reused_run(branch, jury) as reused,
    ):
        job = TaskFileJob(
            folder=folder, jury=jury, source=source, limit=limit, branch=reused, profiles=by_hand
        )
        with StoredJobProgress(job) as stored_work:
            yield job, stored_work


async def plan(job: TaskFileJob, stored_work: StoredJobProgress) -> JobScorer:
    """Plan what is left of a job, and return the scoring that follows."""
    switch = StopSwitch(job.jury.gateways)
    planning = JobPlanner(job=job, stored_work=stored_work, stop_switch=switch)
    planned = await planning.plan(lambda count: None)
    return JobScorer(job=job, stored_work=stored_work, planned_tasks=planned, stop_switch=switch)


async def plan_and_score(
    job: TaskFileJob,
    stored_work: StoredJobProgress,
    report: Callable[[int], None] = lambda count: None,
) -> Summary:
    """Score what is left of a job, as `jurygraph score` does."""
    if not stored_work.is_finished:
        scoring = await plan(job, stored_work)
        await scoring.score(report)
    assert stored_work.run is not None
    return summarize_run(job.jury, stored_work.run)


@contextmanager
def scored_session(
    *arguments: Any, report: Callable[[int], None] = lambda count: None, **more: Any
) -> Iterator[ScoredWork]:
    """Yield a job of `open_job` that is scored."""
    REQUESTED.clear()
    with open_job(*arguments, **more) as (job, stored_work):
        summary = asyncio.run(plan_and_score(job, stored_work, report))
        yield ScoredWork(job, stored_work, summary)


def traces_of(folder: Path) -> list[Trace]:
    """Return the traces of a run, whose file is closed again."""
    with Run.open(folder) as run:
        return list(run.traces())


def trace_contents(folder: Path) -> list[str]:
    """Return the traces of a run as JSON, without their place in the chain."""
    return [
        trace.model_copy(update={"previous": None}).model_dump_json() for trace in traces_of(folder)
    ]


def verify_run(folder: Path, **expected: Any) -> VerificationResult:
    """Verify a run."""
    with closing(Run.open(folder)) as run:
        return verify(run, lambda count: None, **expected)


def verify_deeply(folder: Path) -> DeepVerificationCounts:
    """Verify the verdicts of a run."""
    with closing(Run.open(folder)) as run:
        return verify_deep(run, lambda count: None)


def word_repairs_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let replies be sent back in other words than those of the code."""

    def word_otherwise(request: Request, reply: Reply, problem: str) -> Request:
        return make_repair_request(request, reply, f"once more, {problem}")

    monkeypatch.setattr(judge_client, "make_repair_request", word_otherwise)


def rescore_run(folder: Path, other: Path, *settings: str) -> Path:
    """Rescore a run into another folder, and return that."""
    with closing(Run.open(folder)) as run:
        rescore(run, other, apply_settings(run.config, settings), lambda count: None)
    return other


def seal_run(folder: Path, key_file: Path) -> Seal:
    """Seal a run."""
    with closing(Run.open(folder)) as run:
        return verification.seal(run, key_file, lambda count: None)
