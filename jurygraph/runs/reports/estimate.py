"""Costs of a session: its forecast, an estimate before any request is sent, and the costs of the calls made.

The estimate's assumptions are a low, an expected and a worst case. A token is 5, 4 or 1 bytes of input; the chat
template adds no, no or `TEMPLATE_TOKENS` tokens per message; a reply has 40, 150 or the maximum number of tokens. The
low case leaves out the schema of the answer, which some endpoints do not show to their model. In the worst case every
reply is repaired once, for which the model reads it again. Not included are failed attempts that are sent again,
discounts (batches, a provider's cache), and requests that depend on an earlier reply, except repairs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from jurygraph.agents.roles import Evaluator
from jurygraph.models.budget import TEMPLATE_TOKENS, Price, cost, reply_limit
from jurygraph.models.gateway import Gateway, request_size, size_of_messages
from jurygraph.models.request import CallSink, Request
from jurygraph.runs.store.digests import Digests
from jurygraph.schema import Call, Plan, Question, RecordedVerdict

if TYPE_CHECKING:
    from jurygraph.jury import Jury


ASSUMPTIONS = (
    "estimates: a token is taken for 5, 4 or 1 bytes, a reply for 40, 150 or all tokens that it may have; "
    "worst: every reply is repaired once; retries of failed requests are not included"
)
_REPAIR = 1024
"""Maximum number of tokens that tell a model the errors in its reply."""


@dataclass(frozen=True)
class CallLoad:
    """Numbers of model calls and of input and output tokens, and their cost in US dollars (None if unknown)."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None


@dataclass(frozen=True)
class CallEstimate:
    """The model calls needed in addition to those that are known; the assumptions are those of this module."""

    low: CallLoad = CallLoad()
    expected: CallLoad = CallLoad()
    worst: CallLoad = CallLoad()


class Estimator:
    """Sums up requests: each once, and only those without a reply in the sink (of a run) or the cache."""

    def __init__(self, gateway: Gateway, sink: CallSink | None = None) -> None:
        self._gateway = gateway
        self._sink = sink
        self._seen = Digests()
        self._sum = CallEstimate()

    def add(self, requests: Iterable[Request]) -> None:
        """Add the requests that are new."""
        for request in requests:
            if request.digest not in self._seen and not self._gateway.is_stored(request, self._sink):
                self._sum = _add_estimates(self._sum, _estimate(request, self._gateway.limits.max_tokens))
            self._seen.add(request.digest)

    def estimate(self) -> CallEstimate:
        """Return the sum of all requests so far, with its cost."""
        price = self._gateway.price
        return CallEstimate(*(_add_cost(load, price) for load in (self._sum.low, self._sum.expected, self._sum.worst)))


def _estimate(request: Request, max_tokens: int) -> CallEstimate:
    input_tokens, max_reply = request_size(request), reply_limit(request.parameters, max_tokens)
    min_input = size_of_messages(request)
    max_input = input_tokens + TEMPLATE_TOKENS * len(request.messages)
    repair = max_input + max_reply + TEMPLATE_TOKENS * 2 + _REPAIR
    return CallEstimate(
        low=CallLoad(1, -(-min_input // 5), min(40, max_reply)),
        expected=CallLoad(1, -(-input_tokens // 4), min(150, max_reply)),
        worst=CallLoad(2, max_input + repair, 2 * max_reply),
    )


def _add_estimates(first: CallEstimate, second: CallEstimate) -> CallEstimate:
    return CallEstimate(
        _add_loads(first.low, second.low),
        _add_loads(first.expected, second.expected),
        _add_loads(first.worst, second.worst),
    )


def _add_loads(first: CallLoad, second: CallLoad) -> CallLoad:
    return CallLoad(
        first.calls + second.calls, first.tokens_in + second.tokens_in, first.tokens_out + second.tokens_out
    )


def _add_cost(load: CallLoad, price: Price | None) -> CallLoad:
    return CallLoad(load.calls, load.tokens_in, load.tokens_out, cost(price, load.tokens_in, load.tokens_out))


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


@dataclass(frozen=True)
class Forecast:
    """The remaining work. `model_verdicts` is the part of `verdicts` that a model would give.

    `verdicts` is an upper bound: staged screening (`when`) may leave some out. The variants of a response, whose number
    is not known in advance, count as one. `model` is the estimate of the calls to a model, None with model none.
    """

    tasks: int = 0
    responses: int = 0
    questions: int = 0
    verdicts: int = 0
    model_verdicts: int = 0
    model: "CallEstimate | None" = None

    def with_group(
        self, plan: Plan, size: int, evaluators: Mapping[str, Evaluator], known: Iterable[RecordedVerdict] = ()
    ) -> "Forecast":
        """Return the forecast with one more task and a group of this size; verdicts in `known` are not counted."""
        questions = plan.survey.questions
        known_counts = Counter(verdict.question for verdict in known)
        remaining = {
            question.id: max(0, _count_verdicts(question, size) - known_counts[question.id]) for question in questions
        }
        return replace(
            self,
            tasks=self.tasks + 1,
            responses=self.responses + size,
            questions=self.questions + len(questions),
            verdicts=self.verdicts + sum(remaining.values()),
            model_verdicts=self.model_verdicts
            + sum(remaining[q.id] for q in questions if evaluators[q.evaluator].uses_model),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the forecast as a JSON object."""
        return asdict(self)


def without_model_conditions(plan: Plan, evaluators: Mapping[str, Evaluator]) -> Plan:
    """Return the plan without the conditions (`when`) that depend on a model's verdict."""
    questions = plan.survey.questions
    model_judged = {question.id for question in questions if evaluators[question.evaluator].uses_model}
    unconditional = [
        question.model_copy(update={"when": None})
        if question.when and question.when.question in model_judged
        else question
        for question in questions
    ]
    return plan.model_copy(update={"survey": plan.survey.model_copy(update={"questions": tuple(unconditional)})})


def _count_verdicts(question: Question, size: int) -> int:
    if question.scope == "response":
        return size * question.samples
    if size == 1:
        return 1  # one verdict that there is nothing to compare with
    pairs = size * (size - 1) // (1 if question.pairs == "ordered" else 2)
    expected = (pairs if question.scope == "pair" else size) * question.samples
    # A response to which the question does not apply gets one such verdict instead of those of its pairs.
    may_be_skipped = question.when is not None or question.needs or question.of != "submitted"
    return max(expected, size) if may_be_skipped else expected
