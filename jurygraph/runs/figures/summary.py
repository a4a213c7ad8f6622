"""What a run came to: rewards by agent, and what became of everything that was asked."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from jurygraph.runs.canary import CanaryTally
from jurygraph.runs.figures.bill import Bill
from jurygraph.runs.outline import TraceOutline
from jurygraph.runs.store.packing import Body
from jurygraph.schema import Cause, Trace


@dataclass
class AgentRow:
    """The rewards of one agent's responses. The mean is over those rewards that are numbers."""

    agent: str | None
    responses: int = 0
    numbers: int = 0
    total: float = 0.0
    covered: float = 0.0
    ok: int = 0
    degraded: int = 0
    failed: int = 0

    def add(self, value: float | None, status: str, coverage: float) -> None:
        """Count one response by its reward."""
        self.responses += 1
        self.covered += coverage
        setattr(self, status, getattr(self, status) + 1)
        if value is not None:
            self.numbers += 1
            self.total += value

    @property
    def mean(self) -> float | None:
        """Mean reward; None where no reward is a number."""
        return self.total / self.numbers if self.numbers else None

    @property
    def coverage(self) -> float:
        """Mean share of the weight that was judged."""
        return self.covered / self.responses

    def plain(self) -> dict[str, Any]:
        """The row as JSON gives it."""
        row = asdict(self)
        del row["total"], row["covered"]
        return {**row, "mean": self.mean, "coverage": self.coverage}


@dataclass
class FailureRow:
    """Verdicts that failed in one way; `message` is what the first of them says."""

    cause: Cause
    kind: str
    message: str
    verdicts: int = 0


@dataclass
class Summary:
    """Sums over the traces of a run, in their order. A verdict on an unordered pair stands in two, and counts once.

    `lowest` is the id of the response with the lowest reward; a failed reward counts as lower than any. The `bill` is
    for whoever knows where the calls came from to fill; so are the `canaries`, None where none are mixed in.
    """

    agents: dict[str | None, AgentRow] = field(default_factory=dict)
    tasks: int = 0
    responses: int = 0
    failed: int = 0
    judged: int = 0
    abstained: int = 0
    unanswered: int = 0
    not_applicable: int = 0
    infrastructure: int = 0
    lowest: str | None = None
    bill: Bill = field(default_factory=Bill)
    canaries: CanaryTally | None = None
    _failures: dict[tuple[str, str], FailureRow] = field(default_factory=dict, repr=False)
    _task: str | None = field(default=None, repr=False)
    _least: float = field(default=float("inf"), repr=False)

    def add(self, trace: Trace) -> None:
        """Count one trace."""
        reward = trace.reward
        own = [verdict for verdict in trace.verdicts if verdict.about == trace.response_id]
        self._count_reward(trace, reward.value, reward.status, reward.coverage)
        self._count_statuses([verdict.status for verdict in own])
        for failure in (verdict.failure for verdict in own if verdict.status == "failed"):
            if failure is not None:
                self._failure(failure.cause, failure.kind, partial(getattr, failure, "message")).verdicts += 1

    def add_outline(self, outline: TraceOutline, message_of: Callable[[Body], str]) -> None:
        """Count one trace as it is stored; `message_of` reads what a failed verdict says."""
        self._count_reward(outline, outline.value, outline.status, outline.coverage)
        verdicts = outline.body["verdicts"]
        statuses = [verdict.get("status", "ok") for verdict in verdicts]
        self._count_statuses(statuses)
        for verdict, verdict_status in zip(verdicts, statuses, strict=True):
            if verdict_status == "failed" and "failure" in verdict:
                cause, kind = verdict["failure"]
                self._failure(cause, kind, partial(message_of, verdict)).verdicts += 1

    def _count_reward(self, of: Trace | TraceOutline, value: float | None, status: str, coverage: float) -> None:
        agent = of.agent
        if agent not in self.agents:
            self.agents[agent] = AgentRow(agent)
        self.agents[agent].add(value, status, coverage)
        self.tasks += of.task_id != self._task
        self._task = of.task_id
        self.responses += 1
        self.failed += status == "failed"
        least = value if value is not None else float("-inf")
        if least < self._least:
            self._least, self.lowest = least, of.response_id

    def _count_statuses(self, statuses: Sequence[str]) -> None:
        judged = statuses.count("ok")
        self.judged += judged
        if judged == len(statuses):
            return
        self.abstained += statuses.count("abstained")
        self.unanswered += statuses.count("failed")
        self.not_applicable += statuses.count("not_applicable")

    def _failure(self, cause: Cause, kind: str, message: Callable[[], str]) -> FailureRow:
        """Return the row in which a failure is to be counted; the `message` is asked for the first one alone."""
        self.infrastructure += cause == "infrastructure"
        if (cause, kind) not in self._failures:
            self._failures[cause, kind] = FailureRow(cause, kind, message())
        return self._failures[cause, kind]

    @property
    def failures(self) -> list[FailureRow]:
        """In which ways verdicts failed, the most frequent first."""
        return sorted(self._failures.values(), key=lambda row: -row.verdicts)

    @property
    def asked(self) -> int:
        """Judged, abstained, failed and not applicable: everything that was asked."""
        return self.judged + self.abstained + self.unanswered + self.not_applicable

    @property
    def error_rate(self) -> float:
        """Share of what was asked that failed for reasons of our own."""
        return self.infrastructure / self.asked if self.asked else 0.0

    def plain(self) -> dict[str, Any]:
        """The summary as JSON gives it."""
        counts = {
            "judged": self.judged,
            "abstained": self.abstained,
            "failed": self.unanswered,
            "not_applicable": self.not_applicable,
            "asked": self.asked,
        }
        return {
            "tasks": self.tasks,
            "responses": self.responses,
            "rewards_failed": self.failed,
            "agents": [row.plain() for row in self.agents.values()],
            "verdicts": counts,
            "error_rate": self.error_rate,
            "failures": [asdict(row) for row in self.failures],
            "calls": self.bill.plain(),
            "canaries": None if self.canaries is None else self.canaries.plain(),
        }
