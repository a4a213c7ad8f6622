"""Rewards without the judge: answers that a response gate keeps from it, and faults that a must does not forgive.

Coverage counts the verdict of a gate as given; whoever reads a mean should know that no judge gave it.
"""

from collections import Counter
from dataclasses import dataclass, field

from jurygraph.runs.run import Run
from jurygraph.runs.store.packing import StoredBody
from jurygraph.runs.stored_groups import read_stored_groups
from jurygraph.schema.verdict import RESPONSE_GATES

GATES_WITH_FALSE_ALARMS = ("reference-copy", "addresses-grader")
"""Those that stop good answers to some tasks (docs/safety.md); what the others stop has no content."""


@dataclass
class GateCounts:
    """How many answers the judge never read, by the response gate that stopped them, and what each must set."""

    responses: int = 0
    unread: Counter[str] = field(default_factory=Counter)
    steps: Counter[str] = field(default_factory=Counter)
    """Changed rewards by the step from sum to reward, such as `must safe`."""

    def add(self, body: StoredBody, reward: StoredBody) -> None:
        """Count a stored response. One of which the judge was asked anything, such as an earlier turn, was read."""
        self.responses += 1
        if not body.get("calls"):
            gates = {verdict.get("gated_by") for verdict in body["verdicts"]}
            self.unread.update([gate for gate in RESPONSE_GATES if gate in gates][:1])
        if reward["value"] is not None:
            self.steps.update(step for step, *_ in reward.get("adjustments", ()))

    @property
    def sentences(self) -> list[str]:
        sentences = []
        if self.unread:
            counts = ", ".join(f"{number} by {gate}" for gate, number in self.unread.most_common())
            sentences.append(
                f"{self.unread.total()} of {self.responses} answers were never read by the judge, but stopped: {counts}"
            )
        for step, number in sorted(self.steps.items()):
            kind, _, component = step.partition(" ")
            if kind == "must":
                sentences.append(
                    f"{component} is a must: a fault there costs the whole reward, which set {number} of "
                    f"{self.responses} rewards"
                )
        return sentences


def count_gates(run: Run) -> GateCounts:
    """Count what gates did in a run, also the musts that set no reward; this reads no texts."""
    counts = GateCounts()
    for decision in run.decisions():
        counts.steps.update(dict.fromkeys((gate.step for gate in decision.gates), 0))
    for group in read_stored_groups(run):
        for trace in group.traces:
            counts.add(trace.body, trace.reward)
    return counts
