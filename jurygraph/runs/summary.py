"""What a run came to: rewards by agent, and what became of everything that was asked."""

from dataclasses import asdict, dataclass, field
from typing import Any

from jurygraph.schema import Call, Trace


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

    def add(self, trace: Trace) -> None:
        """Count one response."""
        reward = trace.reward
        self.responses += 1
        self.covered += reward.coverage
        setattr(self, reward.status, getattr(self, reward.status) + 1)
        if reward.value is not None:
            self.numbers += 1
            self.total += reward.value

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
class Bill:
    """The calls behind a run's verdicts, each once: those that were sent, and those that the cache answered.

    Costs are in US dollars: `billed` of what was sent, `saved` what the others cost once. `unpriced` are in neither.
    """

    sent: int = 0
    cached: int = 0
    unpriced: int = 0
    billed: float = 0.0
    saved: float = 0.0
    _seen: set[str] = field(default_factory=set, repr=False)

    def add(self, call: Call) -> None:
        """Count a call, unless it was counted already."""
        if call.id in self._seen:
            return
        self._seen.add(call.id)
        self.sent += not call.cache_hit
        self.cached += call.cache_hit
        self.unpriced += call.cost is None
        if call.cache_hit:
            self.saved += call.cost or 0.0
        else:
            self.billed += call.cost or 0.0

    def plain(self) -> dict[str, Any]:
        """The bill as JSON gives it."""
        return {name: getattr(self, name) for name in ("sent", "cached", "unpriced", "billed", "saved")}


@dataclass
class Summary:
    """Sums over the traces of a run, in their order. A verdict on an unordered pair stands in two, and counts once.

    `lowest` is the id of the response with the lowest reward; a failed reward counts as lower than any.
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
    _task: str | None = field(default=None, repr=False)
    _least: float = field(default=float("inf"), repr=False)

    def add(self, trace: Trace) -> None:
        """Count one trace."""
        self.agents.setdefault(trace.agent, AgentRow(trace.agent)).add(trace)
        self.tasks += trace.task_id != self._task
        self._task = trace.task_id
        self.responses += 1
        self.failed += trace.reward.status == "failed"
        self._count(trace)
        for call in trace.calls:
            self.bill.add(call)
        value = trace.reward.value if trace.reward.value is not None else float("-inf")
        if value < self._least:
            self._least, self.lowest = value, trace.response_id

    def _count(self, trace: Trace) -> None:
        own = [verdict for verdict in trace.verdicts if verdict.about == trace.response_id]
        statuses = [verdict.status for verdict in own]
        self.judged += statuses.count("ok")
        self.abstained += statuses.count("abstained")
        self.unanswered += statuses.count("failed")
        self.not_applicable += statuses.count("not_applicable")
        self.infrastructure += sum(
            v.failure is not None and v.failure.cause == "infrastructure" and v.status == "failed" for v in own
        )

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
            **({"calls": self.bill.plain()} if self.bill.sent or self.bill.cached else {}),
        }
