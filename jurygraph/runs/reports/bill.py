"""Count what a run has cost: the calls behind its verdicts, and the requests that a jury has sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from jurygraph.display import format_cost
from jurygraph.messages import format_count
from jurygraph.models.gateway import UNBILLED_FAULT_KINDS
from jurygraph.schema import Call
from jurygraph.schema.frozen_model import JsonFields

if TYPE_CHECKING:
    from jurygraph.jury import Jury
    from jurygraph.runs.run import Run

ReplySource = Literal["sent", "cached", "carried", "replayed", "unanswered"]
REPLY_SOURCES: tuple[ReplySource, ...] = get_args(ReplySource)


def source_of_reply(run: "Run", call: Call) -> ReplySource:
    """Return the source of a reply, as far as the run tells it; a call without a record in a branch is carried over."""
    if call.fault is not None:
        return "unanswered"
    if run.header.branch is not None and run.ledger.find("call", call.id) is None:
        return "carried"
    return "cached" if call.cache_hit else "sent"


@dataclass
class CallCosts:
    """A number of calls and their cost in US dollars, without the `unpriced` calls, whose cost is not known.

    Of requests, `faults` has the numbers of those that failed, by the kind of fault.
    """

    number: int = 0
    unpriced: int = 0
    cost: float = 0.0
    faults: Mapping[str, int] = field(default_factory=dict)

    def add(self, cost: float | None) -> None:
        """Count one call; its cost is None where the price is not known."""
        self.number += 1
        self.unpriced += cost is None
        self.cost += cost or 0.0

    def to_json(self) -> JsonFields:
        """Return the tally as a JSON object; a cost is null, not 0, where the cost of no call is known."""
        has_known_cost = self.unpriced < self.number or not self.number
        cost = self.cost if has_known_cost else None
        return {"number": self.number, "cost": cost, "unpriced": self.unpriced}


@dataclass
class CallBill:
    """The calls behind a run's verdicts, each counted once, by the source of their replies.

    `sent` calls were billed to this run, `cached` replies earlier to another run, `carried` calls, if at all, to the
    run that this one was branched from, and `replayed` calls to none. `unanswered` calls, whose reply did not come in
    time, may have been billed. `models` has the bill of each model by its name in the config, or by its own.
    """

    costs_by_source: dict[ReplySource, CallCosts] = field(
        default_factory=lambda: {source: CallCosts() for source in REPLY_SOURCES}
    )
    models: "dict[str, CallBill]" = field(default_factory=dict)
    _counted_call_digests: set[int] = field(default_factory=set, repr=False, compare=False)

    def add(self, call: Call, source: ReplySource, model: str | None = None) -> None:
        """Count a call, unless it was counted already; in the bill of its model, too, if that is named."""
        if model is not None:
            self.models.setdefault(model, CallBill()).add(call, source)
        digest = hash((call.id, source == "unanswered"))  # another verdict may have the reply
        if digest not in self._counted_call_digests:
            self._counted_call_digests.add(digest)
            # earlier attempts may have failed in another way
            is_unbilled = call.fault in UNBILLED_FAULT_KINDS and call.attempts == 1
            self.costs_by_source[source].add(0.0 if is_unbilled else call.cost)

    def describe(self) -> str:
        """Return how many calls the judgements took, what they cost whoever paid, and what was paid for this run."""
        all_costs = self.costs_by_source.values()
        number = sum(costs.number for costs in all_costs)
        parts = [f"{format_count(number, 'call')} of models" if number else "no call of a model"]
        kept = self.costs_by_source["cached"].number + self.costs_by_source["carried"].number
        unanswered = self.costs_by_source["unanswered"]
        unpriced = sum(costs.unpriced for costs in all_costs) - unanswered.unpriced
        if unpriced < number - unanswered.number:
            parts.append(format_cost(sum(costs.cost for costs in all_costs)))
            if kept:
                paid = format_cost(self.costs_by_source["sent"].cost + unanswered.cost)
                parts.append(f"of which {paid} was paid now")
        if kept:
            parts.append(f"{kept} answered from the cache or an earlier run")
        if unpriced:
            parts.append(f"{unpriced} without a known price")
        if unanswered.number:
            parts.append(f"{unanswered.number} without a reply")
        return ", ".join(parts)

    def to_json(self) -> JsonFields:
        models = {name: bill.to_json() for name, bill in sorted(self.models.items())}
        content: JsonFields = {
            source: call_costs.to_json() for source, call_costs in self.costs_by_source.items()
        }
        return {**content, "models": models} if models else content


def count_requests(jury: "Jury") -> CallCosts | None:
    """Return the requests that a jury has sent, including failed ones, and an upper bound on their cost.

    None if the jury sends none. The requests are those of one session, because each session opens a new jury.
    """
    if not jury.gateways or jury.gateways.is_recording:
        return None
    budget = jury.gateways.budget
    return CallCosts(budget.calls, budget.unpriced, budget.spent, budget.faults)
