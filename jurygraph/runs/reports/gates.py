"""Rewards without the judge: answers that a response gate keeps from it, and faults that a must does not forgive.

Coverage counts the verdict of a gate as given; whoever reads a mean should know that no judge gave it.
"""

from collections import Counter
from collections.abc import Iterator

from jurygraph.runs.run import Run
from jurygraph.runs.stored_groups import read_stored_groups
from jurygraph.schema.verdict import RESPONSE_GATES


def describe_gates(responses: int, numbers: Counter[str]) -> Iterator[str]:
    """Yield a sentence on the answers that the judge never read, and one on each must; see `count_gates`."""
    unread = {gate: numbers[gate] for gate in RESPONSE_GATES if numbers[gate]}
    if unread:
        counts = ", ".join(f"{number} by {gate}" for gate, number in unread.items())
        yield f"{sum(unread.values())} of {responses} answers were never read by the judge, but stopped: {counts}"
    for gate, number in sorted(numbers.items()):
        if gate.startswith("must "):
            effect = f"costs the whole reward, which set {number} of {responses} rewards"
            yield f"{gate[5:]} is a must: a fault there {effect}"


def count_gates(run: Run) -> tuple[int, Counter[str]]:
    """Return how many responses a run has, and how many of them each gate set, by its name in a trace: `must safe`.

    Musts that set no reward are there, too. This reads no texts.
    """
    numbers = Counter({gate.step: 0 for decision in run.decisions() for gate in decision.gates})
    responses = 0
    for group in read_stored_groups(run):
        responses += len(group.traces)
        for trace in group.traces:
            # of a conversation that is stopped at a turn, the judge has read the earlier ones
            gates = trace.gate_losses if trace.body.get("calls") else trace.gates
            numbers.update([*gates])
    return responses, numbers
