"""Rewards without the judge: answers that a response gate keeps from it, and faults that a must does not forgive.

Coverage counts the verdict of a gate as given; whoever reads a mean should know that no judge gave it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

from jurygraph.runs.run import Run
from jurygraph.runs.stored_groups import TraceWithoutTexts, read_stored_groups
from jurygraph.schema.verdict import RESPONSE_GATES


@dataclass
class GateCounts:
    """The number of responses, and of those that each gate set, by its name in a trace: `must safe`."""

    responses: int = 0
    numbers: Counter[str] = field(default_factory=Counter)

    @classmethod
    def begin(cls, run: Run) -> Self:
        """Return the counts before the first response of a run, with 0 for each of its gates."""
        gates = {gate.step for decision in run.decisions() for gate in decision.gates}
        return cls(numbers=Counter(dict.fromkeys(gates, 0)))

    @classmethod
    def read(cls, run: Run) -> Self:
        """Return the counts of a whole run; this reads no texts."""
        counts = cls.begin(run)
        for group in read_stored_groups(run):
            for trace in group.traces:
                counts.add(trace)
        return counts

    def add(self, trace: TraceWithoutTexts) -> None:
        self.responses += 1
        # of a conversation that is stopped at a turn, the judge has read the earlier ones
        self.numbers.update([*(trace.gate_losses if trace.body.get("calls") else trace.gates)])

    def describe(self) -> Iterator[str]:
        """Yield a sentence on the answers that the judge never read, and one on each must."""
        unread = {gate: self.numbers[gate] for gate in RESPONSE_GATES if self.numbers[gate]}
        if unread:
            counts = ", ".join(f"{number} by {gate}" for gate, number in unread.items())
            answers = f"{sum(unread.values())} of {self.responses} answers"
            yield f"{answers} were never read by the judge, but stopped: {counts}"
        for gate, number in sorted(self.numbers.items()):
            if gate.startswith("must "):
                effect = f"costs the whole reward, which set {number} of {self.responses} rewards"
                yield f"{gate[5:]} is a must: a fault there {effect}"
