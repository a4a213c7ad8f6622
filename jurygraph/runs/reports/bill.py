"""Costs of a run's calls by the source of their replies, and of the requests of a session."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from jurygraph.runs.store.digests import Digests
from jurygraph.schema import Call

if TYPE_CHECKING:
    from jurygraph.jury import Jury

ReplySource = Literal["sent", "cached", "carried", "replayed"]
SOURCES: tuple[ReplySource, ...] = ("sent", "cached", "carried", "replayed")


@dataclass
class CallCosts:
    """A number of calls and their cost in US dollars, without the `unpriced` calls, whose cost is not known."""

    number: int = 0
    unpriced: int = 0
    cost: float = 0.0

    def add(self, cost: float | None) -> None:
        """Count one call; its cost is None where the price is not known."""
        self.number += 1
        self.unpriced += cost is None
        self.cost += cost or 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the tally as a JSON object; a cost is null, not 0, where the cost of no call is known."""
        known = self.unpriced < self.number or not self.number
        return {"number": self.number, "cost": self.cost if known else None, "unpriced": self.unpriced}


@dataclass
class Bill:
    """The calls behind a run's verdicts, each counted once, by the source of their replies.

    `sent` calls were billed to this run, in any of its sessions. `cached` replies were billed earlier, to another run.
    `carried` calls were billed, if at all, to the run that this one was branched from. `replayed` calls are not billed.
    Requests without a reply are not counted.
    """

    tallies: dict[ReplySource, CallCosts] = field(default_factory=lambda: {source: CallCosts() for source in SOURCES})
    _seen: Digests = field(default_factory=Digests, repr=False, compare=False)

    def add(self, call: Call, source: ReplySource) -> None:
        """Count a call, unless it was counted already."""
        if call.id not in self._seen:
            self._seen.add(call.id)
            self.tallies[source].add(call.cost)

    def to_json(self) -> dict[str, Any]:
        """Return the bill as a JSON object."""
        return {source: tally.to_json() for source, tally in self.tallies.items()}


def is_replay(jury: "Jury") -> bool:
    """Return whether a recording answers, so that nothing is sent."""
    return jury.config.model.startswith("replay:")


def count_requests(jury: "Jury") -> CallCosts | None:
    """Return the requests that a jury has sent, including failed ones, and an upper bound on their cost.

    None if the jury sends none. The requests are those of one session, because each session opens a new jury.
    """
    if jury.gateway is None or is_replay(jury):
        return None
    budget = jury.gateway.budget
    return CallCosts(number=budget.calls, unpriced=budget.unpriced, cost=budget.spent)
