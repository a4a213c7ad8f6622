"""Summarize a run: rewards by agent, and the outcomes of all verdicts."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from jurygraph.runs.canary import CanaryTally
from jurygraph.runs.outline import TraceOutline
from jurygraph.runs.reports.estimate import Bill
from jurygraph.runs.store.packing import Body
from jurygraph.schema import Cause, Trace


@dataclass
class AgentRow:
    """The rewards of one agent's responses; the mean leaves out failed rewards."""

    agent: str | None
    responses: int = 0
    scored: int = 0
    total: float = 0.0
    coverage_sum: float = 0.0
    ok: int = 0
    degraded: int = 0
    failed: int = 0

    def add(self, value: float | None, status: str, coverage: float) -> None:
        """Count one response and its reward."""
        self.responses += 1
        self.coverage_sum += coverage
        setattr(self, status, getattr(self, status) + 1)
        if value is not None:
            self.scored += 1
            self.total += value

    @property
    def mean(self) -> float | None:
        """Return the mean reward; None where all rewards failed."""
        return self.total / self.scored if self.scored else None

    @property
    def coverage(self) -> float:
        """Return the mean judged share of the weight, in [0, 1]."""
        return self.coverage_sum / self.responses

    def to_json(self) -> dict[str, Any]:
        """Return the row as a JSON object."""
        row = asdict(self)
        del row["total"], row["coverage_sum"]
        return {**row, "mean": self.mean, "coverage": self.coverage}


@dataclass
class FailureRow:
    """Verdicts that failed with the same cause and kind; `message` is that of the first one."""

    cause: Cause
    kind: str
    message: str
    verdicts: int = 0


@dataclass
class Summary:
    """Sums over the traces of a run, in their order. A verdict on an unordered pair is in two traces and counts once.

    `lowest` is the id of the response with the lowest reward; a failed reward counts as the lowest. The `bill` and the
    `canaries` are filled by the caller, who knows the sources of the calls; `canaries` is None where none are mixed in.
    """

    agents: dict[str | None, AgentRow] = field(default_factory=dict)
    tasks: int = 0
    responses: int = 0
    failed: int = 0
    judged: int = 0
    abstained: int = 0
    failed_verdicts: int = 0
    not_applicable: int = 0
    infrastructure_failures: int = 0
    lowest: str | None = None
    bill: Bill = field(default_factory=Bill)
    canaries: CanaryTally | None = None
    _failures: dict[tuple[str, str], FailureRow] = field(default_factory=dict, repr=False)
    _last_task: str | None = field(default=None, repr=False)
    _lowest_value: float = field(default=float("inf"), repr=False)

    def add(self, trace: Trace) -> None:
        """Count one trace."""
        reward = trace.reward
        verdicts = [verdict for verdict in trace.verdicts if verdict.about == trace.response_id]
        self._count_reward(trace, reward.value, reward.status, reward.coverage)
        self._count_statuses([verdict.status for verdict in verdicts])
        for failure in (verdict.failure for verdict in verdicts if verdict.status == "failed"):
            if failure is not None:
                self._failure_row(failure.cause, failure.kind, partial(getattr, failure, "message")).verdicts += 1

    def add_outline(self, outline: TraceOutline, message_of: Callable[[Body], str]) -> None:
        """Count one stored trace; `message_of` reads the message of a failed verdict."""
        self._count_reward(outline, outline.value, outline.status, outline.coverage)
        verdicts = outline.body["verdicts"]
        statuses = [verdict.get("status", "ok") for verdict in verdicts]
        self._count_statuses(statuses)
        for verdict, verdict_status in zip(verdicts, statuses, strict=True):
            if verdict_status == "failed" and "failure" in verdict:
                cause, kind = verdict["failure"]
                self._failure_row(cause, kind, partial(message_of, verdict)).verdicts += 1

    def _count_reward(self, item: Trace | TraceOutline, value: float | None, status: str, coverage: float) -> None:
        agent = item.agent
        if agent not in self.agents:
            self.agents[agent] = AgentRow(agent)
        self.agents[agent].add(value, status, coverage)
        self.tasks += item.task_id != self._last_task
        self._last_task = item.task_id
        self.responses += 1
        self.failed += status == "failed"
        lowest_value = value if value is not None else float("-inf")
        if lowest_value < self._lowest_value:
            self._lowest_value, self.lowest = lowest_value, item.response_id

    def _count_statuses(self, statuses: Sequence[str]) -> None:
        judged = statuses.count("ok")
        self.judged += judged
        if judged == len(statuses):
            return
        self.abstained += statuses.count("abstained")
        self.failed_verdicts += statuses.count("failed")
        self.not_applicable += statuses.count("not_applicable")

    def _failure_row(self, cause: Cause, kind: str, message: Callable[[], str]) -> FailureRow:
        """Return the row in which a failure is counted; `message` is called only for the first failure of a row."""
        self.infrastructure_failures += cause == "infrastructure"
        if (cause, kind) not in self._failures:
            self._failures[cause, kind] = FailureRow(cause, kind, message())
        return self._failures[cause, kind]

    @property
    def failures(self) -> list[FailureRow]:
        """Return the failure rows, the most frequent first."""
        return sorted(self._failures.values(), key=lambda row: -row.verdicts)

    @property
    def verdicts(self) -> int:
        """Return the number of all verdicts: judged, abstained, failed and not applicable."""
        return self.judged + self.abstained + self.failed_verdicts + self.not_applicable

    @property
    def error_rate(self) -> float:
        """Return the share of all verdicts that failed because of infrastructure, in [0, 1]."""
        return self.infrastructure_failures / self.verdicts if self.verdicts else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the summary as a JSON object."""
        counts = {
            "judged": self.judged,
            "abstained": self.abstained,
            "failed": self.failed_verdicts,
            "not_applicable": self.not_applicable,
            "requested": self.verdicts,
        }
        return {
            "tasks": self.tasks,
            "responses": self.responses,
            "rewards_failed": self.failed,
            "agents": [row.to_json() for row in self.agents.values()],
            "verdicts": counts,
            "error_rate": self.error_rate,
            "failures": [asdict(row) for row in self.failures],
            "calls": self.bill.to_json(),
            "canaries": None if self.canaries is None else self.canaries.to_json(),
        }
