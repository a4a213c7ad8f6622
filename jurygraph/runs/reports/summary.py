"""Summarize a run: rewards by agent, the outcomes of all verdicts, and its costs, estimated before and counted after.

The estimate's assumptions are a low, an expected and a worst case. A token is 5, 4 or 1 bytes of input; the chat
template adds no, no or `TEMPLATE_TOKENS` tokens per message; a reply has 40, 150 or the maximum number of tokens. The
low case leaves out the schema of the answer, which some endpoints do not show to their model. In the worst case every
reply is repaired once, for which the model reads it again. Not included are failed attempts that are sent again,
discounts (batches, a provider's cache), and requests that depend on a reply which is not known yet, except repairs.
"""

import operator
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import fsum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from jurygraph.agents.roles import Evaluator
from jurygraph.models.gateway import UNBILLED, Gateways, request_size, size_of_messages
from jurygraph.models.limits import TEMPLATE_TOKENS, cost, reply_limit
from jurygraph.models.request import CallSink, Request
from jurygraph.runs.store.packing import count_discarded, unpack_message
from jurygraph.schema import Call, Cause, Failure, Plan, Question, RecordedVerdict, Response
from jurygraph.schema.frozen_model import require_type
from jurygraph.schema.verdict import CODE_LAYERS, GATED_LAYERS

if TYPE_CHECKING:
    from jurygraph.graphs.state import Group, GroupLike
    from jurygraph.jury import Jury

ASSUMPTIONS = (
    "estimates: a token is taken for 5, 4 or 1 bytes, a reply for 40, 150 or all tokens that it may have; "
    "worst: every reply is repaired once; not included: retries of failed requests, and requests that depend on a "
    "reply not known yet"
)


@dataclass(frozen=True)
class CallLoad:
    """Numbers of model calls and of input and output tokens, and their cost in US dollars (None if unknown)."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None


@dataclass(frozen=True)
class CallEstimate:
    """The model calls needed in addition to those that are known; the assumptions are those of this module.

    `from_cache` and `from_run` are the numbers of requests with a reply in the cache, and in recorded calls. `by_model`
    has the three cases of each of several models, by its name in `models`; that of the config's `model` is None.
    """

    low: CallLoad = CallLoad()
    expected: CallLoad = CallLoad()
    worst: CallLoad = CallLoad()
    from_cache: int = 0
    from_run: int = 0
    by_model: Mapping[str | None, tuple[CallLoad, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as a JSON object; the cases of each of several models are under its name."""
        content = asdict(self)
        by_model = content.pop("by_model")
        cases = ("low", "expected", "worst")
        named = {
            name or "model": dict(zip(cases, loads, strict=True))
            for name, loads in by_model.items()
        }
        return {**content, "models": named} if named else content


class Estimator:
    """Sums up requests, each once: those without a reply, and the numbers with one in the sink (of a run) or cache.

    Models in `only_then` answer only after others: the low case has none of their requests, the others all.
    """

    def __init__(
        self, gateways: Gateways, sink: CallSink | None = None, only_then: Collection[str] = ()
    ) -> None:
        self._gateways = gateways
        self._only_then = only_then
        self._sink = sink
        self._seen: set[int] = (
            set()
        )  # 64-bit hashes, which take less memory than millions of digests
        self._sums = {name: [[0, 0, 0] for _ in range(3)] for name in gateways}
        self._known: Counter[str] = Counter()

    def add(self, requests: Iterable[Request]) -> bool:
        """Add the requests that are new; return whether any of these requests, new or not, has no reply."""
        lacks_reply = False
        for request in requests:
            name = self._gateways.name_of(request)
            gateway = self._gateways[name]
            source = gateway.reply_source(request, self._sink)
            lacks_reply |= source is None
            if hash(request.digest) in self._seen:
                continue
            self._seen.add(hash(request.digest))
            if source is not None:
                self._known[source] += 1
                continue
            loads = _loads(request, gateway.limits.max_tokens)
            if name in self._only_then:
                loads = ((0, 0, 0), *loads[1:])
            self._sums[name] = [
                list(map(operator.add, *pair)) for pair in zip(self._sums[name], loads, strict=True)
            ]
        return lacks_reply

    def estimate(self) -> CallEstimate:
        by_model = {name: self._cases_of(name) for name in self._gateways}
        low, expected, worst = (_sum_loads(case) for case in zip(*by_model.values(), strict=True))
        known = self._known["cache"], self._known["sink"]
        return CallEstimate(low, expected, worst, *known, {} if len(by_model) == 1 else by_model)

    def _cases_of(self, name: str | None) -> tuple[CallLoad, ...]:
        price = self._gateways[name].price
        return tuple(
            CallLoad(calls, read, sent, cost(price, read, sent))
            for calls, read, sent in self._sums[name]
        )


def _sum_loads(loads: Sequence[CallLoad]) -> CallLoad:
    """Return the sum of loads; its cost is known if that of each with calls is."""
    costs = [load.cost for load in loads if load.calls]
    total = None if None in costs else sum(cost or 0.0 for cost in costs)
    if not costs:
        total = loads[0].cost
    tokens = sum(load.tokens_in for load in loads), sum(load.tokens_out for load in loads)
    return CallLoad(sum(load.calls for load in loads), *tokens, total)


def _loads(request: Request, max_tokens: int) -> tuple[tuple[int, int, int], ...]:
    """Return the calls, input and output tokens of a request in the low, expected and worst case."""
    input_tokens = request_size(request)
    max_reply = reply_limit(request.parameters, max_tokens)
    max_input = input_tokens + TEMPLATE_TOKENS * len(request.messages)
    repair = (
        max_input + max_reply + TEMPLATE_TOKENS * 2 + 1024
    )  # at most so many to tell the errors in the reply
    return (
        (1, -(-size_of_messages(request) // 5), min(40, max_reply)),
        (1, -(-input_tokens // 4), min(150, max_reply)),
        (2, max_input + repair, 2 * max_reply),
    )


ReplySource = Literal["sent", "cached", "carried", "replayed", "unanswered"]
SOURCES: tuple[ReplySource, ...] = get_args(ReplySource)


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
        return {
            "number": self.number,
            "cost": self.cost if known else None,
            "unpriced": self.unpriced,
        }


@dataclass
class Bill:
    """The calls behind a run's verdicts, each counted once, by the source of their replies.

    `sent` calls were billed to this run, `cached` replies earlier to another run, `carried` calls, if at all, to the
    run that this one was branched from, and `replayed` calls to none. `unanswered` calls, whose reply did not come in
    time, may have been billed. `models` has the bill of each of several models by its name in the config.
    """

    tallies: dict[ReplySource, CallCosts] = field(
        default_factory=lambda: {source: CallCosts() for source in SOURCES}
    )
    models: "dict[str, Bill]" = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set, repr=False, compare=False)

    def add(self, call: Call, source: ReplySource, model: str | None = None) -> None:
        """Count a call, unless it was counted already; in the bill of its model, too, if that is named."""
        if model is not None:
            self.models.setdefault(model, Bill()).add(call, source)
        seen = hash((call.id, source == "unanswered"))  # another verdict may have the reply
        if seen not in self._seen:
            self._seen.add(seen)
            is_free = (
                call.fault in UNBILLED and call.attempts == 1
            )  # earlier attempts may have failed in another way
            self.tallies[source].add(0.0 if is_free else call.cost)

    def to_json(self) -> dict[str, Any]:
        models = {name: bill.to_json() for name, bill in sorted(self.models.items())}
        content: dict[str, Any] = {
            source: tally.to_json() for source, tally in self.tallies.items()
        }
        return {**content, "models": models} if models else content


def count_requests(jury: "Jury") -> CallCosts | None:
    """Return the requests that a jury has sent, including failed ones, and an upper bound on their cost.

    None if the jury sends none. The requests are those of one session, because each session opens a new jury.
    """
    if not jury.gateways or jury.gateways.is_recording:
        return None
    budget = jury.gateways.budget
    return CallCosts(number=budget.calls, unpriced=budget.unpriced, cost=budget.spent)


@dataclass
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
    model: CallEstimate | None = None

    def add_group(
        self,
        questions: Sequence[Question],
        responses: Sequence[Response],
        evaluators: Mapping[str, Evaluator],
        known: Iterable[RecordedVerdict] = (),
    ) -> None:
        """Add one more task and a group of responses; verdicts in `known` are not counted."""
        known_counts = Counter(verdict.question for verdict in known)
        remaining = [
            (q, max(0, _count_verdicts(q, responses) - known_counts[q.id])) for q in questions
        ]
        self.tasks += 1
        self.responses += len(responses)
        self.questions += len(questions)
        self.verdicts += sum(number for _, number in remaining)
        self.model_verdicts += sum(
            number for q, number in remaining if evaluators[q.evaluator].uses_model
        )


def estimate_costs(jury: "Jury", items: "Iterable[GroupLike]") -> CallEstimate:
    """Return the model calls, tokens and dollars that scoring these groups would take; nothing is sent.

    Items are those of `Jury.score_many`. Without a model there are no calls. Raises InputError and PlanError as
    `score_many` does.
    """
    # Imported lazily: they load the graph library, which the summary of a stored run does not need.
    from jurygraph.graphs.state import read_groups
    from jurygraph.jury import Jury

    require_type("jury", jury, Jury, "give a jg.Jury")
    return jury.run(_estimate_costs(jury, read_groups("items", items)))


async def _estimate_costs(jury: "Jury", groups: "Iterable[Group]") -> CallEstimate:
    from jurygraph.planner import Planner  # lazily, as above

    if not jury.gateways:
        return CallEstimate()
    planner = Planner(jury)
    estimator = Estimator(jury.gateways, only_then=jury.config.only_then)
    for group in groups:
        task = jury.config.task_defaults.complete(group.task)
        plan = group.plan
        if plan is None:
            plan, first = await planner.aestimate_plan(task)
            estimator.add(first)
        if plan is not None:
            unconditional = without_model_conditions(plan, jury.evaluators)
            estimator.add(await planner.aestimate_requests(task, group.responses, unconditional))
    return estimator.estimate()


def without_model_conditions(plan: Plan, evaluators: Mapping[str, Evaluator]) -> Plan:
    """Return the plan without the conditions (`when`) that depend on a model's verdict."""
    questions = plan.survey.questions
    model_judged = {
        question.id for question in questions if evaluators[question.evaluator].uses_model
    }
    unconditional = tuple(
        q.model_copy(update={"when": None}) if q.when and q.when.question in model_judged else q
        for q in questions
    )
    return plan.model_copy(
        update={"survey": plan.survey.model_copy(update={"questions": unconditional})}
    )


def _count_verdicts(question: Question, responses: Sequence[Response]) -> int:
    if question.scope == "turn":
        # A response without a turn gets one verdict, that the question does not apply.
        return sum(len(one.assistant_turns) * question.seats or 1 for one in responses)
    size = len(responses)
    if question.scope == "response":
        return size * question.seats
    if size == 1:
        return 1  # one verdict that there is nothing to compare with
    pairs = size * (size - 1) // (1 if question.pairs == "ordered" else 2)
    expected = (pairs if question.scope == "pair" else size) * question.seats
    # A response to which the question does not apply gets one such verdict instead of those of its pairs.
    may_be_skipped = question.when is not None or question.needs or question.material != "submitted"
    return max(expected, size) if may_be_skipped else expected


@dataclass
class AgentRow:
    """The rewards of one agent's responses; the mean leaves out failed rewards.

    Both means are rounded once, so that they do not depend on the order in which groups end.
    """

    agent: str | None
    responses: int = 0
    ok: int = 0
    degraded: int = 0
    failed: int = 0
    values: "array[float]" = field(default_factory=lambda: array("d"), repr=False)
    coverages: "array[float]" = field(default_factory=lambda: array("d"), repr=False)

    def add(self, value: float | None, status: str, coverage: float) -> None:
        self.responses += 1
        self.coverages.append(coverage)
        setattr(self, status, getattr(self, status) + 1)
        if value is not None:
            self.values.append(value)

    @property
    def scored(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float | None:
        """Return the mean reward; None where all rewards failed."""
        return fsum(self.values) / self.scored if self.scored else None

    @property
    def coverage(self) -> float:
        return fsum(self.coverages) / self.responses

    def to_json(self) -> dict[str, Any]:
        names = ("agent", "responses", "scored", "ok", "degraded", "failed", "mean", "coverage")
        return {name: getattr(self, name) for name in names}


Content = Mapping[str, Any]
ReadTexts = Callable[[], Mapping[int, bytes]]
"""A function that returns the texts of a record by place."""


@dataclass
class FailureRow:
    """Verdicts that failed with the same cause and kind, by evaluator; `message` is that of one on `response`."""

    cause: Cause
    kind: str
    message: str
    response: str
    verdicts: int = 0
    evaluators: dict[str, int] = field(default_factory=dict)

    @property
    def is_transient(self) -> bool:
        return Failure(cause=self.cause, kind=self.kind).is_transient

    @property
    def may_succeed_now(self) -> bool:
        """True if the same command may get a verdict; a request that is wrong needs another config or recording."""
        return self.is_transient and self.kind not in ("rejected", "unrecorded", "too-large")


def _is_quoted_finding(verdict: Content) -> bool:
    """Return whether a verdict is a finding that needs a quotation and has one.

    What a judge quotes where it finds a criterion not met needs none: then the verdict has no number of its own.
    """
    is_plain_no = (
        verdict.get("met") is False and "native" not in verdict and "responses" not in verdict
    )
    return not is_plain_no and any(
        verified for _, _, _, verified, *_ in verdict.get("evidence", ())
    )


GATE_NAMES = ("responses", "failed", "degraded", "mean", "coverage", "error_rate", "unsupported")
"""The figures of a run that a threshold (`score --gate`) can name."""


class FailedRewards(NamedTuple):
    """Failed rewards, which no mean contains, beside the others.

    They `differ` if the values of a component are others, on average and beyond chance: `mean_failed` of the `judged`
    ones in which it was judged, and `mean_others` of the rewards that did not fail. Else the last four are None.
    """

    failed: int
    differ: bool
    component: str | None = None
    judged: int | None = None
    mean_failed: float | None = None
    mean_others: float | None = None


class JudgedParts:
    """The values of each component as it was judged, of failed rewards and of the others."""

    def __init__(self) -> None:
        self._failed: dict[str, array[float]] = {}
        self._others: dict[str, array[float]] = {}
        self._number_failed = 0

    def add(self, reward: Content, components: Sequence[str]) -> None:
        has_failed = reward["value"] is None
        self._number_failed += has_failed
        values = self._failed if has_failed else self._others
        judged = reward.get("components") or reward["terms"]
        for name, value in zip(components, judged, strict=False):
            if value is not None:
                values.setdefault(name, array("d")).append(value)

    @property
    def failed(self) -> FailedRewards:
        """Return whether the failed rewards differ from the others, by the first component in which they do."""
        from jurygraph.inference.clusters import means_differ  # lazily: it loads NumPy

        shared = [name for name in self._failed if name in self._others]
        for name in shared:
            failed = self._failed[name]
            others = self._others[name]
            if means_differ(failed, others, tests=len(shared)):
                means = fsum(failed) / len(failed), fsum(others) / len(others)
                return FailedRewards(self._number_failed, True, name, len(failed), *means)
        return FailedRewards(self._number_failed, False)


@dataclass
class Summary:
    """Sums over the traces of a run. A verdict on an unordered pair is in two traces and counts once.
    A score without a judgement is `gated`, by the response gate that set it, and not `judged`. Of the `quotable`
    findings of models, which need a quotation from the response, those without one are `unsupported`, by effect.
    Verdicts that are `superseded` by those of another judge count nowhere else. `unanswered_tasks` are those on all of
    whose responses an evaluator of facts or checks abstained, by evaluator: it lacks what it needs of the task.

    Groups may be added in any order: agents, components and evaluators are listed by name. The `bill` is
    filled by the caller, who knows the sources of the calls.
    """

    tasks: int = 0
    responses: int = 0
    failed: int = 0
    judged: int = 0
    gated: Counter[str] = field(default_factory=Counter)
    quotable: int = 0
    unsupported: Counter[str] = field(default_factory=Counter)
    abstained: int = 0
    failed_verdicts: int = 0
    not_applicable: int = 0
    superseded: int = 0
    infrastructure_failures: int = 0
    bill: Bill = field(default_factory=Bill)
    _agents: dict[str | None, AgentRow] = field(default_factory=dict, repr=False)
    _discarded: Counter[str] = field(default_factory=Counter, repr=False)
    _failures: dict[tuple[str, str], FailureRow] = field(default_factory=dict, repr=False)
    _parts: JudgedParts = field(default_factory=JudgedParts, compare=False, repr=False)
    _last_task: str | None = field(default=None, compare=False, repr=False)
    _unanswered: Counter[str] = field(default_factory=Counter, compare=False, repr=False)
    _has_only_abstained: dict[str, bool] = field(
        default_factory=dict, compare=False, repr=False
    )  # on the last task
    _lowest: tuple[float, str] | None = field(default=None, repr=False)

    def add(
        self,
        task_id: str,
        response_id: str,
        questions: Sequence[Question],
        body: Content,
        reward: Content,
        read_texts: ReadTexts,
        components: Sequence[str],
    ) -> None:
        """Count one trace as it is stored.

        `questions` are those of its survey, and `components` the names of those of its decision, in order; `read_texts`
        returns its texts, with the messages of failures.
        """
        agent = body.get("agent")
        value = reward["value"]
        status = reward.get("status", "ok")
        self._agents.setdefault(agent, AgentRow(agent)).add(
            value, status, reward.get("coverage", 1.0)
        )
        if task_id != self._last_task:
            self.tasks += 1
            self._last_task = task_id
            self._unanswered = self.unanswered_tasks
            self._has_only_abstained = {}
        self.responses += 1
        self.failed += status == "failed"
        self._parts.add(reward, components)
        own = (float("-inf") if value is None else value), response_id
        self._lowest = own if self._lowest is None else min(self._lowest, own)
        self._discarded.update(count_discarded(reward))
        for verdict in body["verdicts"]:
            self._count_verdict(verdict, questions[verdict["question"]], response_id, read_texts)

    def _count_verdict(
        self, verdict: Content, question: Question, response: str, read_texts: ReadTexts
    ) -> None:
        if verdict.get("superseded"):
            self.superseded += 1
            return
        status = verdict.get("status", "ok")
        is_gated = status == "ok" and "gated_by" in verdict
        self.judged += status == "ok" and not is_gated
        if is_gated:
            self.gated[verdict["gated_by"]] += 1
        self.quotable += "unsupported" in verdict or (
            question.layer in GATED_LAYERS and _is_quoted_finding(verdict)
        )
        if "unsupported" in verdict:
            self.unsupported[verdict["unsupported"]] += 1
        self.abstained += status == "abstained"
        self.failed_verdicts += status == "failed"
        self.not_applicable += status == "not_applicable"
        if question.layer in CODE_LAYERS:
            has_abstained = status == "abstained" and "failure" not in verdict
            has_only_abstained = self._has_only_abstained.get(question.evaluator, True)
            self._has_only_abstained[question.evaluator] = has_abstained and has_only_abstained
        if status == "failed" and "failure" in verdict:
            cause, kind = verdict["failure"]
            self.infrastructure_failures += cause == "infrastructure"
            row = self._failures.setdefault((cause, kind), FailureRow(cause, kind, "", response))
            if (
                not row.verdicts or response < row.response
            ):  # the same one, in whatever order groups end
                row.message = unpack_message(verdict, read_texts())
                row.response = response
            row.verdicts += 1
            row.evaluators[question.evaluator] = row.evaluators.get(question.evaluator, 0) + 1

    @property
    def unanswered_tasks(self) -> Counter[str]:
        return self._unanswered + Counter(
            name for name, is_true in self._has_only_abstained.items() if is_true
        )

    @property
    def agents(self) -> dict[str | None, AgentRow]:
        names = sorted(self._agents, key=lambda name: (name is None, name or ""))
        return {name: self._agents[name] for name in names}

    @property
    def lowest(self) -> str | None:
        """Return the id of the response with the lowest reward, None without any; a failed reward is the lowest."""
        return None if self._lowest is None else self._lowest[1]

    @property
    def left_out(self) -> FailedRewards:
        return self._parts.failed

    @property
    def figures(self) -> dict[str, float | None]:
        """Return the figures that thresholds refer to, by `GATE_NAMES`; the mean leaves out failed rewards.

        None where nothing shows a figure: that no finding is unsupported says little where there was none.
        """
        coverages = [coverage for row in self._agents.values() for coverage in row.coverages]
        values = [value for row in self._agents.values() for value in row.values]
        return {
            "responses": self.responses,
            "failed": self.failed,
            "degraded": sum(row.degraded for row in self._agents.values()),
            "mean": fsum(values) / len(values) if values else None,
            "coverage": fsum(coverages) / len(coverages) if coverages else None,
            "error_rate": self.error_rate if self.verdicts else None,
            "unsupported": self.unsupported_share if self.quotable else None,
        }

    @property
    def discarded(self) -> dict[str, int]:
        return dict(sorted(self._discarded.items()))

    @property
    def failures(self) -> list[FailureRow]:
        return sorted(self._failures.values(), key=lambda row: (-row.verdicts, row.cause, row.kind))

    @property
    def verdicts(self) -> int:
        """Return the number of all verdicts: judged, gated, abstained, failed and not applicable."""
        return (
            self.judged
            + self.gated.total()
            + self.abstained
            + self.failed_verdicts
            + self.not_applicable
        )

    @property
    def unsupported_share(self) -> float:
        """Return the share of the findings that need a quotation and have none, in [0, 1]."""
        return self.unsupported.total() / self.quotable if self.quotable else 0.0

    @property
    def error_rate(self) -> float:
        """Return the share of all verdicts that failed because of infrastructure, in [0, 1]."""
        return self.infrastructure_failures / self.verdicts if self.verdicts else 0.0

    def to_json(self) -> dict[str, Any]:
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
            "left_out": self.left_out._asdict(),
            "agents": [row.to_json() for row in self.agents.values()],
            "verdicts": counts,
            "gated_by": dict(sorted(self.gated.items())),
            "quotable": self.quotable,
            "unsupported": dict(sorted(self.unsupported.items())),
            "unanswered_tasks": dict(sorted(self.unanswered_tasks.items())),
            "discarded": self.discarded,
            "error_rate": self.error_rate,
            "failures": [
                {**asdict(row), "evaluators": dict(sorted(row.evaluators.items()))}
                for row in self.failures
            ],
            "calls": self.bill.to_json(),
        }
