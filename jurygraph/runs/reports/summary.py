"""Summarize a run: rewards by agent, and the outcomes of all verdicts."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from jurygraph.runs.canary import CanaryTally
from jurygraph.runs.reports.estimate import Bill
from jurygraph.runs.store.packing import count_discarded, unpack_message
from jurygraph.schema import Cause, Failure, Question


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


Content = Mapping[str, Any]
ReadTexts = Callable[[], Mapping[int, bytes]]
"""A function that returns the texts of a record by place."""


@dataclass
class FailureRow:
    """Verdicts that failed with the same cause and kind, by evaluator; `message` is that of the first one."""

    cause: Cause
    kind: str
    message: str
    verdicts: int = 0
    evaluators: dict[str, int] = field(default_factory=dict)

    @property
    def is_transient(self) -> bool:
        """Return whether the verdicts may not fail again."""
        return Failure(cause=self.cause, kind=self.kind).is_transient


@dataclass
class Summary:
    """Sums over the traces of a run, in their order. A verdict on an unordered pair is in two traces and counts once.
    A score without a judgement is `gated`, by the response gate that set it, and not `judged`.

    `discarded` are the judged verdicts that components discarded for low confidence, by component. `lowest` is the id
    of the response with the lowest reward; a failed reward counts as the lowest. The `bill` and the `canaries` are
    filled by the caller, who knows the sources of the calls; `canaries` is None where none are mixed in.
    """

    agents: dict[str | None, AgentRow] = field(default_factory=dict)
    tasks: int = 0
    responses: int = 0
    failed: int = 0
    judged: int = 0
    gated: Counter[str] = field(default_factory=Counter)
    abstained: int = 0
    failed_verdicts: int = 0
    not_applicable: int = 0
    infrastructure_failures: int = 0
    discarded: Counter[str] = field(default_factory=Counter)
    lowest: str | None = None
    bill: Bill = field(default_factory=Bill)
    canaries: CanaryTally | None = None
    _failures: dict[tuple[str, str], FailureRow] = field(default_factory=dict, repr=False)
    _last_task: str | None = field(default=None, repr=False)
    _lowest_value: float = field(default=float("inf"), repr=False)

    def add(
        self,
        task_id: str,
        response_id: str,
        questions: Sequence[Question],
        body: Content,
        reward: Content,
        read_texts: ReadTexts,
    ) -> None:
        """Count one trace as it is stored.

        `questions` are those of its survey, in order; `read_texts` returns its texts, with the messages of failures.
        """
        agent, value, status = body.get("agent"), reward["value"], reward.get("status", "ok")
        self.agents.setdefault(agent, AgentRow(agent)).add(value, status, reward.get("coverage", 1.0))
        self.tasks += task_id != self._last_task
        self._last_task = task_id
        self.responses += 1
        self.failed += status == "failed"
        lowest_value = value if value is not None else float("-inf")
        if lowest_value < self._lowest_value:
            self._lowest_value, self.lowest = lowest_value, response_id
        self.discarded.update(count_discarded(reward))
        for verdict in body["verdicts"]:
            self._count_verdict(verdict, questions[verdict["question"]].evaluator, read_texts)

    def _count_verdict(self, verdict: Content, evaluator: str, read_texts: ReadTexts) -> None:
        status = verdict.get("status", "ok")
        is_gated = status == "ok" and "gated_by" in verdict
        self.judged += status == "ok" and not is_gated
        self.gated.update([verdict["gated_by"]] if is_gated else ())
        self.abstained += status == "abstained"
        self.failed_verdicts += status == "failed"
        self.not_applicable += status == "not_applicable"
        if status == "failed" and "failure" in verdict:
            cause, kind = verdict["failure"]
            self.infrastructure_failures += cause == "infrastructure"
            if (cause, kind) not in self._failures:
                self._failures[cause, kind] = FailureRow(cause, kind, unpack_message(verdict, read_texts()))
            row = self._failures[cause, kind]
            row.verdicts += 1
            row.evaluators[evaluator] = row.evaluators.get(evaluator, 0) + 1

    @property
    def failures(self) -> list[FailureRow]:
        """Return the failure rows, the most frequent first."""
        return sorted(self._failures.values(), key=lambda row: -row.verdicts)

    @property
    def verdicts(self) -> int:
        """Return the number of all verdicts: judged, gated, abstained, failed and not applicable."""
        return self.judged + self.gated.total() + self.abstained + self.failed_verdicts + self.not_applicable

    @property
    def error_rate(self) -> float:
        """Return the share of all verdicts that failed because of infrastructure, in [0, 1]."""
        return self.infrastructure_failures / self.verdicts if self.verdicts else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the summary as a JSON object."""
        counts = {
            "judged": self.judged,
            "gated": self.gated.total(),
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
            "gated_by": dict(sorted(self.gated.items())),
            "discarded": dict(self.discarded),
            "error_rate": self.error_rate,
            "failures": [asdict(row) for row in self.failures],
            "calls": self.bill.to_json(),
            "canaries": None if self.canaries is None else self.canaries.to_json(),
        }
