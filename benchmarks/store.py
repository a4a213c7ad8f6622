"""The run store: 100,000 traces of 6 verdicts written durably, verified, and re-scored, each by its own command."""

import asyncio
import hashlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from benchmarks.figure import Figure, at_least, at_most
from jurygraph import Jury, RecordedVerdict, Response, Task, Trace
from jurygraph.decision.decide import compute_rewards
from jurygraph.graphs.traces import group_digest
from jurygraph.runs.run import Run
from jurygraph.runs.store.header import RunExtent, RunHeader
from jurygraph.runs.store.ledger import Writer
from jurygraph.runs.writable_run import WritableRun, append_close_record
from jurygraph.schema import EvaluatorRecord, Plan
from jurygraph.schema.trace import group_verdicts_by_response, question_score_statistics
from jurygraph.sources import FileDigest

TRACES, SIZE = 100_000, 8
CONFIG = {
    "evaluators": [
        f"maths.{name}"
        for name in ("accuracy", "calculation", "format", "steps", "repetition", "length")
    ],
    "reward": {
        "accuracy": 1.0,
        "calculation": 0.5,
        "format": 0.5,
        "steps": 0.5,
        "repetition": -0.2,
        "length": 0.1,
    },
}
WORDS = "the price of seven apples is 14 dollars so each one costs two and they pay".split()


def measure() -> list[Figure]:
    """Seconds of wall time; writing counts from traces in memory to traces that would survive a power cut."""
    folder = Path(tempfile.mkdtemp(prefix="jurygraph-store-"))
    run, same, other = folder / "run", folder / "same", folder / "other"
    other_weight = "--set", "reward.steps=0.25"
    try:
        durable, plain = asyncio.run(write_run(run))
        figures = [
            at_least(f"{TRACES:,} traces written durably", durable, "traces/s", 2000),
            Figure("... as JSON lines, neither chained nor synced", plain, "traces/s"),
            at_most("verify, every reward recomputed", _seconds("verify", run), "s", 40),
            at_most("rescore, same settings", _seconds("rescore", run, "--out", same), "s", 40),
            at_most(
                "rescore, other weights",
                _seconds("rescore", run, "--out", other, *other_weight),
                "s",
                40,
            ),
            at_most("size of a re-scored run", 100 * _size(other) / _size(run), "% of the run", 15),
        ]
        assert _rewards(run) == _rewards(same), (
            "re-scoring with unchanged settings gives the same bits"
        )
        return figures
    finally:
        shutil.rmtree(folder)


async def write_run(
    folder: Path, count: int = TRACES, seed: str = "", is_labelled: bool = False
) -> tuple[float, float]:
    """Write a run; traces a second, by the store and as plain lines. Another `seed` draws other verdicts.

    Labelled responses have a step and a domain.
    """
    with Jury.from_config(CONFIG) as jury:
        tasks = [
            Task(
                id=f"task-{number}",
                query=f"How much is {number} apples at 2 dollars?",
                reference=str(2 * number),
            )
            for number in range(count // SIZE)
        ]
        header = RunHeader(
            tasks=FileDigest(name="made.jsonl", sha256="0" * 64),
            config=jury.config,
            evaluators={
                name: EvaluatorRecord(version=one.version, audience=one.audience)
                for name, one in jury.evaluators.items()
            },
            combiners={name: one.version for name, one in jury.combiners.items()},
            extent=RunExtent(tasks=len(tasks), responses=count),
        )
        run = WritableRun.create(folder, header, "0" * 32)
        plans = [await jury.aprepare(task) for task in tasks]
        for task, plan in zip(tasks, plans, strict=True):
            run.ledger.append(*run.plan_drafts(task, plan))
        run.ledger.commit()
        seconds = plain = 0.0
        writer = Writer(run.ledger)
        for chunk in range(0, len(plans), 500):
            groups = [
                (plan, *_group(plan, jury, seed, is_labelled))
                for plan in plans[chunk : chunk + 500]
            ]
            start = perf_counter()
            for plan, traces, responses in groups[:-1]:
                writer.append(run.group_drafts(plan, traces, responses))
            await writer.append_durably(run.group_drafts(*groups[-1]))
            seconds += perf_counter() - start
            start = perf_counter()
            with (folder.parent / "plain.jsonl").open("a") as lines:
                for _, traces, _ in groups:
                    lines.writelines(trace.model_dump_json() + "\n" for trace in traces)
            plain += perf_counter() - start
        writer.close()
        append_close_record(run)
        run.close()
    return count / seconds, count / plain


def _group(
    plan: Plan, jury: Jury, seed: str, is_labelled: bool
) -> tuple[list[Trace], list[Response]]:
    """A group with verdicts drawn at random, and the rewards that they give."""
    draw = random.Random(plan.task_id + seed)
    number = int(plan.task_id.rpartition("-")[2])
    labels = {"step": number // 32, "domain": f"domain {number % 6}"} if is_labelled else {}
    responses = [
        Response(
            id=f"{plan.task_id}/{place}",
            text=" ".join(draw.choices(WORDS, k=60)),
            agent=f"agent-{place % 4}",
            labels=labels,
        )
        for place in range(SIZE)
    ]
    verdicts = [
        RecordedVerdict(
            question=q.id,
            evaluator=q.evaluator,
            version=q.version,
            layer=q.layer,
            subject=q.subject,
            about=r.id,
            responses=(r.id,),
            score=score,
            met=score >= 0.5,
            reason=f"{q.subject}: {score:.3f} of what was asked for is there",
        )
        for r in responses
        for q in plan.survey.questions
        for score in [draw.random()]
    ]
    names = [response.id for response in responses]
    rewards = compute_rewards(plan.decision, plan.survey.questions, names, verdicts, jury.combiners)
    mine, statistics = (
        group_verdicts_by_response(plan.survey.questions, names, verdicts),
        question_score_statistics(plan.survey.questions, ((v.question, v.score) for v in verdicts)),
    )
    digest = group_digest(responses)
    return [
        Trace(
            task_id=plan.task_id,
            response_id=r.id,
            agent=r.agent,
            labels=r.labels,
            group=digest,
            plan_digest=plan.digest,
            reward=reward,
            verdicts=tuple(mine[r.id]),
            statistics=statistics,
        )
        for r, reward in zip(responses, rewards, strict=True)
    ], responses


def _seconds(*command: object) -> float:
    start = perf_counter()
    script = Path(sys.executable).with_name("jurygraph")
    subprocess.run([str(script), *map(str, command)], check=True, capture_output=True)
    return perf_counter() - start


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def _rewards(folder: Path) -> str:
    """A digest of all rewards as they are stored."""
    digest = hashlib.sha256()
    for record in Run.open(folder).ledger.records("trace"):
        digest.update(json.dumps(record.content["reward"]).encode())
    return digest.hexdigest()
