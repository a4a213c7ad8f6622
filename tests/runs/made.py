"""Traces, plans and a jury made by hand, so that a run can be looked at without judging anything."""

from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace

from jurygraph.schema import (
    Config,
    Counts,
    Decision,
    EvaluatorUse,
    Failure,
    Plan,
    Response,
    Reward,
    Survey,
    Task,
    Term,
    Trace,
    Verdict,
)
from jurygraph.sources import FileMark, Work

CONFIG = Config(evaluators=(EvaluatorUse(use="own.tone"),))


def reward(value: float | None, status: str = "ok", coverage: float = 1.0, **fields) -> Reward:
    stated = {
        "value": value,
        "status": status,
        "partial": value,
        "coverage": coverage,
        "range": None if value is None else (value, value),
        "components": {"tone": value},
        "terms": (Term(name="tone", weight=1.0, value=value, contribution=value),),
        "counts": Counts(judged=1),
    }
    return Reward(**(stated | fields))


def trace(task: str, response: str, value: float | None = 0.5, **fields) -> Trace:
    stated = {
        "task_id": task,
        "response_id": response,
        "agent": "alice",
        "group": "g",
        "plan_digest": "p",
        "reward": reward(value, "ok" if value is not None else "failed"),
        "verdicts": (Verdict(question="own.tone", evaluator="own.tone", subject="tone", about=response, score=0.5),),
    }
    return Trace(**(stated | fields))


def failed_verdict(cause: str) -> Verdict:
    return Verdict(status="failed", failure=Failure(cause=cause, kind="Timeout"), question="own.tone", about="c")


def plan(task: Task, note: str = "") -> Plan:
    survey = Survey(views={}, questions=(), waves=())
    return Plan(
        task_id=task.id,
        task_digest=task.digest,
        survey=survey,
        decision=Decision(specs=(), min_coverage=0.5 if note else 0.8),
    )


def pairs(tasks: int = 4, responses: int = 2) -> list[tuple[Task, tuple[Response, ...]]]:
    return [
        (Task(id=f"t{i}", query="?"), tuple(Response(id=f"t{i}/r{j}", text="x") for j in range(responses)))
        for i in range(tasks)
    ]


def work(tasks: int = 4, responses: int = 2, sha256: str = "0" * 64) -> Work:
    return Work(pairs(tasks, responses), FileMark(name="tasks.jsonl", sha256=sha256))


class HandJury:
    """Stands in for a Jury: gives every response 0.5, remembers what it was asked, and may stop half-way."""

    def __init__(
        self, config: Config = CONFIG, version: str = "1", stop_after: int | None = None, note: str = ""
    ) -> None:
        self.config = config
        self.evaluators = {"own.tone": SimpleNamespace(name="own.tone", version=version, asks_model=False)}
        self.stop_after, self.note = stop_after, note
        self.planned: list[str] = []
        self.asked: list[str] = []

    async def aprepare(self, task: Task) -> Plan:
        self.planned.append(task.id)
        return plan(task, self.note)

    async def ascore_all(self, groups: Iterable[tuple[Task, Sequence[Response], Plan]]) -> AsyncIterator[list[Trace]]:
        for count, (task, responses, _) in enumerate(groups):
            if count == self.stop_after:
                raise KeyboardInterrupt
            self.asked.append(task.id)
            yield [trace(task.id, response.id) for response in responses]


def lines(folder: Path) -> list[bytes]:
    return (folder / "traces.jsonl").read_bytes().splitlines(keepends=True)
