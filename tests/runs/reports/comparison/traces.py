"""Traces with given rewards and verdicts."""

from collections.abc import Iterable, Sequence

from hypothesis import settings
from hypothesis import strategies as st

from jurygraph.runs.reports.comparison import Comparison, compare
from jurygraph.schema import Counts, RecordedVerdict, Reward, Trace

unhurried = settings(deadline=None)  # the first call loads scipy
tenths = st.integers(-10, 10).map(lambda tenth: tenth / 10)
Pairs = Sequence[tuple[float | None, float | None]]


def trace(task: str, response: str, value: float | None = 0.5, **fields) -> Trace:
    status = "failed" if value is None else "ok"
    reward = Reward(
        value=value, status=status, partial=value, coverage=1.0, range=None, components={}, terms=(), counts=Counts()
    )
    defaults = {"agent": "alice", "group": "g", "plan_digest": "p", "reward": reward, "verdicts": ()}
    return Trace(task_id=task, response_id=response, **(defaults | fields))


def run(values: Iterable[float | None], per_task: int = 1, **fields) -> list[Trace]:
    return [trace(f"t{i // per_task:03}", f"r{i:03}", value, **fields) for i, value in enumerate(values)]


def compare_rewards(pairs: Pairs, per_task: int = 1, **settings) -> Comparison:
    return compare(run((a for a, _ in pairs), per_task), run((b for _, b in pairs), per_task), **settings)


def compare_deltas(deltas: Iterable[float], per_task: int = 1) -> Comparison:
    return compare_rewards([(0.0, float(delta)) for delta in deltas], per_task)


def verdict(question: str, about: str, score: float | None = None, **fields) -> RecordedVerdict:
    status = "abstained" if score is None else "ok"
    return RecordedVerdict(
        **({"question": question, "about": about, "responses": (about,), "status": status} | fields), score=score
    )


def traces_with_verdicts(*verdicts: RecordedVerdict, response: str = "r") -> list[Trace]:
    return [trace("t", response, verdicts=verdicts)]
