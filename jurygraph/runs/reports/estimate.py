"""Estimate what a run would cost: its remaining questions and verdicts, and the requests, tokens and dollars for them.

The estimate's assumptions are a low, an expected and a worst case. A token is 5, 4 or 1 bytes of input; the chat
template adds no, no or `MAX_TEMPLATE_TOKENS_PER_MESSAGE` tokens per message; a reply has 40, 150 or the maximum number
of tokens. The low case leaves out the schema of the answer, which some endpoints do not show to their model. In the
worst case every reply is repaired once, for which the model reads it again. A judge with tools looks up nothing, twice,
or as often as it may; where its first reply is known, the worst case alone has what other results may bring. Not
included are failed attempts that are sent again, discounts (batches, a provider's cache), and requests that depend on a
reply which is not known yet, except repairs.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from jurygraph.agents.roles import Evaluator
from jurygraph.arrays import Ints
from jurygraph.models.gateway import Gateways, message_byte_count, request_byte_count
from jurygraph.models.limits import MAX_TEMPLATE_TOKENS_PER_MESSAGE, cost, max_reply_tokens_of
from jurygraph.models.request import CallSink, Request
from jurygraph.schema import Message, Plan, Question, RecordedVerdict, Response
from jurygraph.schema.frozen_model import JsonFields, require_argument_type

if TYPE_CHECKING:
    from jurygraph.graphs.groups import Group, GroupLike
    from jurygraph.jury import Jury

ESTIMATE_ASSUMPTIONS = (
    "estimates: a token is taken for 5, 4 or 1 bytes, a reply for 40, 150 or all tokens that it may have; "
    "worst: every reply is repaired once, and a judge with tools looks things up as often as it may; not included: "
    "retries of failed requests, and requests that depend on a reply not known yet"
)

_ASSUMED_LOOKUPS_PER_INVESTIGATION = 2
_ASSUMED_RESULT_TOKENS = 300  # tokens


@dataclass(frozen=True)
class ModelUsage:
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

    low: ModelUsage = ModelUsage()
    expected: ModelUsage = ModelUsage()
    worst: ModelUsage = ModelUsage()
    from_cache: int = 0
    from_run: int = 0
    by_model: Mapping[str | None, tuple[ModelUsage, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return what `jurygraph score --dry-run` prints, which lays it out above this room."""
        layout = import_module("jurygraph.cli.render.summary")
        return "\n".join(layout.format_estimate_lines(self)).strip()

    def to_json(self) -> JsonFields:
        """Return the estimate as a JSON object; the cases of each of several models are under its name."""
        content = asdict(self)
        by_model = content.pop("by_model")
        cases = ("low", "expected", "worst")
        usage_by_model = {
            name or "model": dict(zip(cases, usages, strict=True))
            for name, usages in by_model.items()
        }
        return {**content, "models": usage_by_model} if usage_by_model else content


class CallCostEstimator:
    """Sums up requests, each once: those without a reply, and the numbers with one in the sink (of a run) or cache.

    Models in `conditional_model_names` answer only after others: the low case has none of their requests, the others
    all.
    """

    def __init__(
        self,
        gateways: Gateways,
        sink: CallSink | None = None,
        conditional_model_names: Collection[str] = (),
    ) -> None:
        self._gateways = gateways
        self._conditional_names = conditional_model_names
        self._sink = sink
        self._added: set[int] = set()
        """64-bit hashes, which take less memory than millions of digests."""
        self._sums = {name: np.zeros((3, 3), dtype=np.int64) for name in gateways}
        """The calls, input and output tokens of each model, a row for each of the three cases."""
        self._with_reply: Counter[str] = Counter()

    def add(self, requests: Iterable[Request]) -> None:
        """Add the requests that are new."""
        answered_messages: set[Sequence[Message]] = set()
        for request in requests:
            if hash(request.digest) in self._added:
                continue
            self._added.add(hash(request.digest))
            name = self._gateways.model_name_of(request)
            gateway = self._gateways[name]
            source = gateway.find_reply_source(request, self._sink)
            usages = _estimate_usage_cases(request, gateway.settings.max_tokens)
            if _messages_before_last_reply(request) in answered_messages:
                # the worst case of its investigation has been added with the first request
                usages[2] = 0
            if source:
                self._with_reply[source] += 1
                answered_messages.add(request.messages)
                if request.asks_for_verdict:
                    continue
                # its lookups may be made again, and show the judge something else
                usages[:2] = 0
            elif name in self._conditional_names:
                usages[0] = 0
            self._sums[name] += usages

    def estimate(self, factor: float = 1.0) -> CallEstimate:
        """Return the sums, times a factor where the requests are a sample of all."""
        by_model = {name: self._usage_cases_of(name, factor) for name in self._gateways}
        low, expected, worst_usage = (
            _sum_usage(case) for case in zip(*by_model.values(), strict=True)
        )
        cases = {} if len(by_model) == 1 else by_model  # of one model they are those of all
        return CallEstimate(
            low,
            expected,
            worst_usage,
            round(factor * self._with_reply["cache"]),
            round(factor * self._with_reply["sink"]),
            cases,
        )

    def _usage_cases_of(self, name: str | None, factor: float) -> tuple[ModelUsage, ...]:
        price = self._gateways[name].price
        sums = np.rint(factor * self._sums[name]).astype(np.int64)
        return tuple(
            ModelUsage(calls, input_tokens, output_tokens, cost(price, input_tokens, output_tokens))
            for calls, input_tokens, output_tokens in sums.tolist()
        )


def _messages_before_last_reply(request: Request) -> Sequence[Message]:
    """Return the messages of the request from which an investigation goes on with this one; none if it begins one."""
    messages = request.messages if request.investigation else ()
    while messages and messages[-1].role != "assistant":
        messages = messages[:-1]
    return messages[:-1]


def _sum_usage(usages: Sequence[ModelUsage]) -> ModelUsage:
    """Return the sum of loads; its cost is known if that of each with calls is."""
    costs = [usage.cost for usage in usages if usage.calls]
    total = None if None in costs else sum(cost or 0.0 for cost in costs)
    if not costs:
        total = usages[0].cost
    calls = sum(usage.calls for usage in usages)
    tokens_in = sum(usage.tokens_in for usage in usages)
    tokens_out = sum(usage.tokens_out for usage in usages)
    return ModelUsage(calls, tokens_in, tokens_out, total)


def _estimate_usage_cases(request: Request, max_tokens: int) -> Ints:
    """Return the calls, input and output tokens of a request in the low, expected and worst case, [3,3]."""
    input_tokens = request_byte_count(request)
    max_reply_tokens = max_reply_tokens_of(request.parameters, max_tokens)
    max_input_tokens = input_tokens + MAX_TEMPLATE_TOKENS_PER_MESSAGE * len(request.messages)
    # at most 1024 to describe the errors in the reply
    repair = max_input_tokens + max_reply_tokens + MAX_TEMPLATE_TOKENS_PER_MESSAGE * 2 + 1024
    low_input_tokens = -(-message_byte_count(request) // 5)  # rounded up
    expected_input_tokens = -(-input_tokens // 4)
    steps = result_tokens = 0
    if request.investigation is not None:
        steps = request.investigation.steps_left
        result_tokens = request.investigation.tokens_left * 4
    assumed_lookup_count = min(_ASSUMED_LOOKUPS_PER_INVESTIGATION, steps)
    assumed_result_tokens = assumed_lookup_count * _ASSUMED_RESULT_TOKENS
    # each step reads again all questions and results before it
    found = result_tokens + steps * (max_reply_tokens + 2 * MAX_TEMPLATE_TOKENS_PER_MESSAGE)
    low = 1, low_input_tokens, min(40, max_reply_tokens)
    expected = (
        1 + assumed_lookup_count,
        (1 + assumed_lookup_count) * (expected_input_tokens + assumed_result_tokens),
        (1 + assumed_lookup_count) * min(150, max_reply_tokens),
    )
    worst = (
        2 + steps,
        (1 + steps) * (max_input_tokens + found) + repair + found,
        (2 + steps) * max_reply_tokens,
    )
    return np.array([low, expected, worst])


@dataclass
class RemainingWork:
    """The remaining work. `model_verdicts` is the part of `verdicts` that a model would give.

    `verdicts` is an upper bound: staged screening (`when`) may leave some out. The variants of a response, whose number
    is not known in advance, count as one. `model` is the estimate of the calls to a model, None with model none. Of a
    branch, `reused` verdicts are those of the other run, and `requested` has the numbers of the others by evaluator and
    subject, such as the id of a criterion; `with_tools` of them are by judges that look things up.
    """

    tasks: int = 0
    responses: int = 0
    questions: int = 0
    verdicts: int = 0
    model_verdicts: int = 0
    model: CallEstimate | None = None
    reused: int = 0
    requested: dict[str, Counter[str]] = field(default_factory=dict)
    with_tools: int = 0

    def to_json(self, is_branched_run: bool = False) -> JsonFields:
        """Return the forecast as a JSON object; only of a branch with what is reused and requested again."""
        content = {**vars(self), "model": self.model and self.model.to_json()}
        if not is_branched_run:
            del content["reused"], content["requested"], content["with_tools"]
        return content

    def add_group(
        self,
        questions: Sequence[Question],
        responses: Sequence[Response],
        evaluators: Mapping[str, Evaluator],
        reusable_verdicts: Iterable[RecordedVerdict] = (),
        settled: Mapping[str, int] = {},
    ) -> None:
        """Add one more task and a group of responses.

        Verdicts that can be reused are not counted, if their judge and sample still count, nor those that a gate or a
        condition settles, by question: one such verdict is of all judges.
        """
        question_by_id = {question.id: question for question in questions}
        reusable_counts = Counter(
            verdict.question
            for verdict in reusable_verdicts
            if question_by_id[verdict.question].asks_for(verdict.judge, verdict.sample)
        )
        self.tasks += 1
        self.responses += len(responses)
        self.questions += len(questions)
        for question in questions:
            missing = _count_verdicts(question, responses) - reusable_counts[question.id]
            missing -= settled.get(question.id, 0) * question.seats
            remaining_verdict_count = max(0, missing)
            self.verdicts += remaining_verdict_count
            self.reused += reusable_counts[question.id]
            if remaining_verdict_count:
                numbers = self.requested.setdefault(question.evaluator, Counter())
                numbers[question.subject] += remaining_verdict_count
                self.with_tools += remaining_verdict_count if question.tools else 0
            if evaluators[question.evaluator].uses_model:
                self.model_verdicts += remaining_verdict_count


def estimate_costs(jury: "Jury", items: "Iterable[GroupLike]") -> CallEstimate:
    """Return the model calls, tokens and dollars that scoring these groups would take; nothing is sent.

    Items are those of `Jury.score_many`. Without a model there are no calls. Raises InputError and PlanError as
    `score_many` does.
    """
    # Imported lazily: they load the graph library, which the summary of a stored run does not need.
    from jurygraph.graphs.groups import to_groups
    from jurygraph.jury import Jury

    require_argument_type("jury", jury, Jury, "give a jg.Jury")
    return jury.run(_estimate_costs(jury, to_groups("items", items)))


async def _estimate_costs(jury: "Jury", groups: "Iterable[Group]") -> CallEstimate:
    from jurygraph.planner import Planner  # lazily, as above

    if not jury.gateways:
        return CallEstimate()
    planner = Planner(jury)
    cost_estimator = CallCostEstimator(
        jury.gateways, conditional_model_names=jury.config.escalated_only_models
    )
    for group in groups:
        task = jury.config.task_defaults.complete(group.task)
        plan = group.plan
        if plan is None:
            plan, first = await planner.aestimate_plan(task)
            cost_estimator.add(first)
        if plan is not None:
            unconditional_plan = without_model_conditions(plan, jury.evaluators)
            cost_estimator.add(
                await planner.aestimate_requests(task, group.responses, unconditional_plan)
            )
    return cost_estimator.estimate()


def without_model_conditions(plan: Plan, evaluators: Mapping[str, Evaluator]) -> Plan:
    """Return the plan without the conditions (`when`) that depend on a model's verdict."""
    questions = plan.survey.questions
    model_judged_ids = {
        question.id for question in questions if evaluators[question.evaluator].uses_model
    }
    unconditional_questions = []
    for question in questions:
        if question.when and question.when.question in model_judged_ids:
            question = question.model_copy(update={"when": None})
        unconditional_questions.append(question)
    survey = plan.survey.model_copy(update={"questions": tuple(unconditional_questions)})
    return plan.model_copy(update={"survey": survey})


def _count_verdicts(question: Question, responses: Sequence[Response]) -> int:
    if question.scope == "turn":
        # A response without a turn gets one verdict, that the question does not apply.
        numbers = (len(response.assistant_turn_indices) * question.seats for response in responses)
        return sum(number or 1 for number in numbers)
    size = len(responses)
    if question.scope == "response":
        return size * question.seats
    if size == 1:
        return 1  # one verdict that there is nothing to compare with
    pairs = size * (size - 1) // (1 if question.pairs == "ordered" else 2)
    expected = (pairs if question.scope == "pair" else size) * question.seats
    # A response to which the question does not apply gets one such verdict instead of those of its pairs.
    can_skip_question = (
        question.when is not None or question.needs or question.material != "submitted"
    )
    return max(expected, size) if can_skip_question else expected
