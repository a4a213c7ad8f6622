"""Rewards without the judge: answers that a response gate keeps from it, and faults that a must does not forgive.

Coverage counts the verdict of a gate as given; whoever reads a mean should know that no judge gave it.
"""

from collections import Counter
from itertools import chain
from typing import NamedTuple

from jurygraph.runs.run import Run
from jurygraph.runs.stored_groups import read_stored_groups
from jurygraph.schema.verdict import RESPONSE_GATES

GATES_WITH_FALSE_ALARMS = ("reference-copy", "addresses-grader")
"""Those that stop good answers to some tasks (docs/safety.md); what the others stop has no content."""


class GateCounts(NamedTuple):
    """How many of the responses each gate set, by its name in a trace: `reference-copy`, `must safe`."""

    responses: int
    numbers: Counter[str]

    @property
    def unread(self) -> dict[str, int]:
        """Return how many answers the judge never read, by the response gate that stopped them."""
        return {gate: self.numbers[gate] for gate in RESPONSE_GATES if self.numbers[gate]}

    @property
    def sentences(self) -> list[str]:
        sentences = []
        if self.unread:
            counts = ", ".join(f"{number} by {gate}" for gate, number in self.unread.items())
            sentences.append(
                f"{sum(self.unread.values())} of {self.responses} answers were never read by the judge, but stopped: "
                f"{counts}"
            )
        for gate, number in sorted(self.numbers.items()):
            if gate.startswith("must "):
                sentences.append(
                    f"{gate[5:]} is a must: a fault there costs the whole reward, which set {number} of "
                    f"{self.responses} rewards"
                )
        return sentences


def count_gates(run: Run) -> GateCounts:
    """Count what gates did in a run, also the musts that set no reward; this reads no texts."""
    numbers = Counter[str]()
    for decision in run.decisions():
        numbers.update(dict.fromkeys((gate.step for gate in decision.gates), 0))
    responses = 0
    for trace in chain.from_iterable(group.traces for group in read_stored_groups(run)):
        responses += 1
        gates = {*trace.gate_losses} if trace.value is not None else set()
        # of a conversation that is stopped at a turn, the judge has read the earlier ones
        if not trace.body.get("calls"):
            gates.update(trace.gates[:1])
        numbers.update(gates)
    return GateCounts(responses, numbers)
