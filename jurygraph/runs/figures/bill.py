"""What a run's calls cost, by where their replies came from, and what a sitting sent."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from jurygraph.runs.store.digests import Digests
from jurygraph.schema import Call

if TYPE_CHECKING:
    from jurygraph.jury import Jury

Source = Literal["sent", "cached", "carried", "replayed"]
SOURCES: tuple[Source, ...] = ("sent", "cached", "carried", "replayed")


@dataclass
class Tally:
    """So many, and what they cost in US dollars; what `unpriced` of them cost is not known, and not in it."""

    number: int = 0
    unpriced: int = 0
    cost: float = 0.0

    def add(self, cost: float | None) -> None:
        """Count one."""
        self.number += 1
        self.unpriced += cost is None
        self.cost += cost or 0.0

    def plain(self) -> dict[str, Any]:
        """As JSON gives it: a cost of which nothing is known is null, never 0."""
        known = self.unpriced < self.number or not self.number
        return {"number": self.number, "cost": self.cost if known else None, "unpriced": self.unpriced}


@dataclass
class Bill:
    """The calls behind a run's verdicts, each once, by where their replies came from.

    `sent` were billed to this run, in whichever sitting; `cached` cost once what they cost, in another run; `carried`
    over were billed to the run that this one was branched from, if to any; `replayed` are billed to nobody. Requests
    without a reply are in none of them.
    """

    tallies: dict[Source, Tally] = field(default_factory=lambda: {source: Tally() for source in SOURCES})
    _seen: Digests = field(default_factory=Digests, repr=False, compare=False)

    def add(self, call: Call, source: Source) -> None:
        """Count a call, unless it was counted already."""
        if call.id not in self._seen:
            self._seen.add(call.id)
            self.tallies[source].add(call.cost)

    def plain(self) -> dict[str, Any]:
        """The bill as JSON gives it."""
        return {source: tally.plain() for source, tally in self.tallies.items()}


def is_replay(jury: "Jury") -> bool:
    """Whether a recording answers, so that nothing is sent."""
    return jury.config.model.startswith("replay:")


def requests(jury: "Jury") -> Tally | None:
    """The requests that a jury has sent, those that failed too, and the most that they cost; None if it sends none.

    A jury is opened anew for each sitting.
    """
    if jury.gateway is None or is_replay(jury):
        return None
    budget = jury.gateway.budget
    return Tally(number=budget.calls, unpriced=budget.unpriced, cost=budget.spent)
