"""Summarize a run: rewards by agent, the outcomes of all verdicts, and what the means leave out."""

from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, inf
from typing import NamedTuple

from jurygraph.decision.decide import NO_MAJORITY_DIAGNOSTIC
from jurygraph.display import format_number
from jurygraph.messages import format_count, format_number_for_sentence, shorten
from jurygraph.runs.reports.bill import CallBill
from jurygraph.runs.reports.gates import GateCounts
from jurygraph.runs.run import Run
from jurygraph.runs.store.packing import (
    RecordTexts,
    StoredBody,
    compare_judges_by_question,
    count_by_component,
    unpack_failure_message,
    unpack_verdict_reason,
)
from jurygraph.runs.stored_groups import read_stored_groups
from jurygraph.schema import Failure, FailureCause, Question, Trace
from jurygraph.schema.frozen_model import JsonFields
from jurygraph.schema.verdict import CODE_LAYERS, GATED_LAYERS


def mean_without_none(values: Iterable[float | None]) -> float | None:
    """Return the mean, rounded once, of the values that are not None; None without any."""
    numbers = [value for value in values if value is not None]
    return fsum(numbers) / len(numbers) if numbers else None


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
        return mean_without_none(self.values)

    @property
    def coverage(self) -> float:
        return fsum(self.coverages) / self.responses

    def to_json(self) -> JsonFields:
        names = ("agent", "responses", "scored", "ok", "degraded", "failed", "mean", "coverage")
        return {name: getattr(self, name) for name in names}


RecordTextsReader = Callable[[], RecordTexts]


@dataclass
class FailureRow:
    """Verdicts that failed with the same cause and kind, by evaluator; `message` is of one on `response` to `task`.

    `judges` counts those of judges that are named.
    """

    cause: FailureCause
    kind: str
    message: str
    response: str
    task: str
    verdicts: int = 0
    evaluators: Counter[str] = field(default_factory=Counter)
    judges: Counter[str] = field(default_factory=Counter)

    @property
    def is_transient(self) -> bool:
        return Failure(cause=self.cause, kind=self.kind).is_transient

    @property
    def may_succeed_now(self) -> bool:
        """True if the same command may get a verdict; a request that is wrong needs another config or recording."""
        return self.is_transient and self.kind not in ("rejected", "unrecorded", "too-large")

    def to_json(self) -> JsonFields:
        return {
            **vars(self),
            "evaluators": _sort_by_name(self.evaluators),
            "judges": _sort_by_name(self.judges),
        }


def needs_quotation(verdict: StoredBody, question: Question) -> bool:
    """Return whether a stored verdict is a finding that needs a quotation (`RecordedVerdict.needs_quotation`)."""
    if "unsupported" in verdict:
        return True
    is_plain_no = (
        verdict.get("met") is False and "native" not in verdict and "responses" not in verdict
    )
    if is_plain_no or question.layer not in GATED_LAYERS:
        return False
    return any(is_quote_verified for _, _, _, is_quote_verified, *_ in verdict.get("evidence", ()))


class LowestReward(NamedTuple):
    """The lowest reward of a run, minus infinity for a failed one, the first response by id, and how many have it."""

    reward: float
    response_id: str
    responses: int

    @property
    def name(self) -> str:
        return "a failed one" if self.reward == -inf else "the lowest one"

    @property
    def tie(self) -> str:
        """Return how many share it, such as "one of 14 at 0"; empty for a single one."""
        state = "failed" if self.reward == -inf else f"at {format_number_for_sentence(self.reward)}"
        return f"one of {self.responses} {state}" if self.responses > 1 else ""


def find_lowest_reward(run: Run) -> LowestReward | None:
    """Return the lowest reward of a run as `Summary` does; None if it has none."""
    lowest = None
    for group in read_stored_groups(run):
        for trace in group.traces:
            lowest = _add_to_lowest(lowest, trace.response_id, trace.value)
    return lowest


def _add_to_lowest(
    lowest: LowestReward | None, response_id: str, value: float | None
) -> LowestReward:
    candidate = LowestReward(-inf if value is None else value, response_id, 1)
    if lowest is None:
        return candidate
    if lowest.reward == candidate.reward:
        first_id = min(lowest.response_id, response_id)
        return LowestReward(lowest.reward, first_id, lowest.responses + 1)
    return min(lowest, candidate)


class FindingCounts(NamedTuple):
    """The numbers of findings of a run that need a quotation, and of those that have none in the response."""

    quotable: int = 0
    unsupported: int = 0

    @property
    def fact(self) -> str | None:
        """Return a sentence where more than a fifth have none, as with a judge that paraphrases; None elsewhere."""
        if 5 * self.unsupported <= self.quotable:
            return None
        return (
            f"{self.unsupported} of {self.quotable} findings had no quotation that counts (letter by letter from what "
            "it is about: eight letters, or a whole line), and count as the worst score by default"
        )

    @property
    def warning(self) -> str | None:
        """Return the same with what to do about it."""
        remedy = (
            "if your judge paraphrases, or judges a tone, write `safety: {evidence: preferred}`"
        )
        return self.fact and f"{self.fact}; {remedy}"


def count_findings(run: Run, responses: Container[str]) -> FindingCounts:
    """Count the findings that need a quotation, of some responses of a run; this reads no texts."""
    quotable = unsupported = 0
    for group in read_stored_groups(run):
        questions = run.source.survey_without_texts(group.survey).questions
        for trace in group.traces:
            for verdict in trace.body["verdicts"] if trace.response_id in responses else ():
                if not verdict.get("superseded"):
                    quotable += needs_quotation(verdict, questions[verdict["question"]])
                    unsupported += "unsupported" in verdict
    return FindingCounts(quotable, unsupported)


def count_trace_findings(traces: Iterable[Trace]) -> FindingCounts:
    """Count the findings of traces that need a quotation, as `count_findings` does those of a run."""
    verdicts = [
        verdict
        for trace in traces
        for verdict in trace.verdicts
        if verdict.needs_quotation and not verdict.superseded
    ]
    unsupported_count = sum(verdict.unsupported is not None for verdict in verdicts)
    return FindingCounts(len(verdicts), unsupported_count)


THRESHOLD_FIGURE_NAMES = (
    "responses",
    "failed",
    "degraded",
    "mean",
    "coverage",
    "error_rate",
    "unsupported",
)
"""The figures of a run that a threshold (`score --gate`) can name."""


class FailedRewards(NamedTuple):
    """Failed rewards, which no mean contains, apart from the others.

    They `differ` if the values of a component are others, on average and beyond chance: `mean_failed` of the `judged`
    ones in which it was judged, and `mean_others` of the rewards that did not fail. Else the last four are None.
    """

    failed: int
    differ: bool
    component: str | None = None
    judged: int | None = None
    mean_failed: float | None = None
    mean_others: float | None = None

    @property
    def warning(self) -> str | None:
        """Return a sentence where they differ, so that means that leave them out say something else; None elsewhere."""
        if not self.differ:
            return None
        return (
            f"means mislead: they leave out {format_count(self.failed, 'failed reward')}, whose mean on "
            f"{self.component} is {format_number(self.mean_failed)} ({self.judged} judged), against "
            f"{format_number(self.mean_others)} of the others"
        )


class ComponentValuesByOutcome:
    """The values of each component as it was judged, of failed rewards and of the others."""

    def __init__(self, number_failed: int = 0) -> None:
        self._values: dict[str, tuple[array[float], array[float]]] = {}
        self._number_failed = number_failed

    def add(self, reward: StoredBody, components: Sequence[str | None]) -> None:
        has_failed = reward["value"] is None
        self._number_failed += has_failed
        judged = reward.get("components") or reward["terms"]
        for name, value in zip(components, judged, strict=False):
            if name is not None and value is not None:
                self.add_value(name, value, has_failed)

    def add_value(self, component: str, value: float, has_failed: bool) -> None:
        self._values.setdefault(component, (array("d"), array("d")))[has_failed].append(value)

    @property
    def failed(self) -> FailedRewards:
        """Return whether the failed rewards differ from the others, by the first component in which they do."""
        from jurygraph.inference.clusters import (
            is_mean_difference_significant,  # lazily: it loads NumPy
        )

        judged_in_both = {name: values for name, values in self._values.items() if all(values)}
        for name, (others, failed) in judged_in_both.items():
            if is_mean_difference_significant(failed, others, tests=len(judged_in_both)):
                means = map(mean_without_none, (failed, others))
                return FailedRewards(self._number_failed, True, name, len(failed), *means)
        return FailedRewards(self._number_failed, False)


def compare_failed_rewards(run: Run) -> FailedRewards:
    """Compare the failed rewards of a run with the others; this reads no texts."""
    values = ComponentValuesByOutcome()
    for group in read_stored_groups(run):
        for trace in group.traces:
            values.add(trace.reward, trace.comparable_names)
    return values.failed


_Abstention = tuple[str, str]
"""A response on which an evaluator abstained, and why."""


class _UnansweredTasks(NamedTuple):
    """The number of tasks on which an evaluator only abstained, and the abstention on the first response there."""

    number: int
    first_abstention: _Abstention


@dataclass
class Summary:
    """Sums over the traces of a run. A verdict on an unordered pair is in two traces and counts once.
    A score without a judgement is `gated`, by the response gate that set it, and not `judged`. Of the `quotable`
    findings of models, which need a quotation from the response, those without one are `unsupported`, by effect.
    Verdicts that are `misquoting`, such as those of code, quote what is not in the response.
    Verdicts that are `superseded` by those of another judge count nowhere else but among the questions
    `judged_by_several`, of which some are `judged_differently`. `unanswered_tasks` are those on all of
    whose responses an evaluator of facts or checks abstained, by evaluator.
    Of the examples for judges of reviewers, `leaking_examples` would have given a response away, and were not shown:
    each counts once for a response.
    Of the responses that were `investigated`, by judges with tools, one or more looked nothing up for those `unseen`.
    `unmade_lookups` has, by tool, the response of each call that was not made because earlier ones of the tool hang.

    Groups may be added in any order: agents, components and evaluators are listed by name. The `bill` and the `gates`
    are filled by the caller, who knows the sources of the calls; so are the `optional_evaluators`, which `if_missing`
    may leave out.
    """

    optional_evaluators: Sequence[str] = ()
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
    judged_by_several: int = 0
    judged_differently: int = 0
    misquoting: int = 0
    leaking_examples: int = 0
    investigated: int = 0
    unseen: list[str] = field(default_factory=list)
    unmade_lookups: dict[str, list[str]] = field(default_factory=dict)
    infrastructure_failures: int = 0
    bill: CallBill = field(default_factory=CallBill)
    gates: GateCounts = field(default_factory=GateCounts)
    _rows_by_agent: dict[str | None, AgentRow] = field(default_factory=dict, repr=False)
    _discarded_counts: Counter[str] = field(default_factory=Counter, repr=False)
    undecided_counts: Counter[str] = field(default_factory=Counter, repr=False)
    _failure_rows: dict[tuple[str, str], FailureRow] = field(default_factory=dict, repr=False)
    _parts: ComponentValuesByOutcome = field(
        default_factory=ComponentValuesByOutcome, compare=False, repr=False
    )
    _last_task_id: str | None = field(default=None, compare=False, repr=False)
    # on the last task: evaluators that gave an answer, and the first abstention of each
    _answering: set[str] = field(default_factory=set, compare=False, repr=False)
    _abstentions: dict[str, _Abstention] = field(default_factory=dict, compare=False, repr=False)
    # on all tasks
    _abstention_counts: Counter[str] = field(default_factory=Counter, compare=False, repr=False)
    _first_abstentions: dict[str, _Abstention] = field(
        default_factory=dict, compare=False, repr=False
    )
    _unanswered_before: "dict[str, _UnansweredTasks]" = field(
        default_factory=dict, compare=False, repr=False
    )
    lowest: LowestReward | None = field(default=None, repr=False)

    def add(
        self,
        task_id: str,
        response_id: str,
        questions: Sequence[Question],
        body: StoredBody,
        reward: StoredBody,
        read_texts: RecordTextsReader,
        components: Sequence[str | None],
    ) -> None:
        """Count one trace as it is stored.

        `questions` are those of its survey, and `components` the names of those to compare, in order; `read_texts`
        returns its texts, with the messages of failures.
        """
        agent = body.get("agent")
        value = reward["value"]
        status = reward.get("status", "ok")
        agent_row = self._rows_by_agent.setdefault(agent, AgentRow(agent))
        agent_row.add(value, status, reward.get("coverage", 1.0))
        if task_id != self._last_task_id:
            self.tasks += 1
            self._last_task_id = task_id
            self._unanswered_before = self._unanswered_by_evaluator
            self._answering.clear()
            self._abstentions.clear()
        self.responses += 1
        self.failed += status == "failed"
        self._parts.add(reward, components)
        self.lowest = _add_to_lowest(self.lowest, response_id, value)
        self._discarded_counts.update(count_by_component(reward, "discarded"))
        self.undecided_counts.update(count_by_component(reward, NO_MAJORITY_DIAGNOSTIC))
        compared = compare_judges_by_question(body["verdicts"])
        self.judged_by_several += len(compared)
        self.judged_differently += sum(answers_differ for _, answers_differ in compared)
        with_tools = [
            verdict
            for verdict in body["verdicts"]
            if questions[verdict["question"]].tools and verdict.get("calls")
        ]
        self.investigated += bool(with_tools)
        if not all(verdict.get("lookups") for verdict in with_tools):
            self.unseen.append(response_id)
        for lookup in body.get("lookups", ()):
            if lookup["outcome"] == "not-called":
                self.unmade_lookups.setdefault(lookup["tool"], []).append(response_id)
        leaking_examples = set()  # the verdicts of several samples or reviewers drop the same ones
        for verdict in body["verdicts"]:
            self._count_verdict(verdict, questions[verdict["question"]], response_id, read_texts)
            for use in verdict.get("examples", ()):
                if use["dropped"] is not None:
                    leaking_examples.add(use["fingerprint"])
        self.leaking_examples += len(leaking_examples)

    def _count_verdict(
        self, verdict: StoredBody, question: Question, response: str, read_texts: RecordTextsReader
    ) -> None:
        if verdict.get("superseded"):
            self.superseded += 1
            return
        status = verdict.get("status", "ok")
        is_gated = status == "ok" and "gated_by" in verdict
        is_judged = status == "ok" and not is_gated
        self.judged += is_judged
        if is_gated:
            self.gated[verdict["gated_by"]] += 1
        self.quotable += needs_quotation(verdict, question)
        if "unsupported" in verdict:
            self.unsupported[verdict["unsupported"]] += 1
        self.misquoting += any(
            source == "response" and not is_verified
            for _, _, source, is_verified, *_ in verdict.get("evidence", ())
        )
        self.abstained += status == "abstained"
        self.failed_verdicts += status == "failed"
        self.not_applicable += status == "not_applicable"
        has_abstained = status == "abstained" and "failure" not in verdict
        # no model is called where the task lacks what the question needs
        is_model_called = is_judged or status == "failed" or "call" in verdict
        if question.layer in CODE_LAYERS or (
            question.evaluator in self.optional_evaluators and has_abstained != is_model_called
        ):
            name = question.evaluator
            self._abstention_counts[name] += has_abstained
            if not has_abstained:
                self._answering.add(name)
            elif name not in self._abstentions or response < self._abstentions[name][0]:
                reason = unpack_verdict_reason(verdict, read_texts())
                self._abstentions[name] = response, reason
                first = self._first_abstentions.get(name, (response, reason))
                self._first_abstentions[name] = min(first, (response, reason))
        if status == "failed" and "failure" in verdict:
            cause, kind = verdict["failure"]
            self.infrastructure_failures += cause == "infrastructure"
            row = self._failure_rows.setdefault(
                (cause, kind), FailureRow(cause, kind, "", response, "")
            )
            # the same response, in whatever order groups end
            if not row.verdicts or response < row.response:
                row.message = unpack_failure_message(verdict, read_texts())
                row.response = response
                row.task = self._last_task_id or ""
            row.verdicts += 1
            row.evaluators[question.evaluator] += 1
            if "judge" in verdict:
                row.judges[verdict["judge"]] += 1

    @property
    def findings(self) -> FindingCounts:
        return FindingCounts(self.quotable, self.unsupported.total())

    @property
    def _unanswered_by_evaluator(self) -> "dict[str, _UnansweredTasks]":
        unanswered = {**self._unanswered_before}
        for name, abstention in self._abstentions.items():
            if name not in self._answering:
                earlier = unanswered.get(name, _UnansweredTasks(0, abstention))
                first = min(earlier.first_abstention, abstention)
                unanswered[name] = _UnansweredTasks(earlier.number + 1, first)
        return unanswered

    @property
    def unanswered_tasks(self) -> Counter[str]:
        return Counter(
            {name: tasks.number for name, tasks in self._unanswered_by_evaluator.items()}
        )

    @property
    def unanswered(self) -> list[str]:
        """Return a sentence on each evaluator that abstained, with its first reason; and what to do on whole tasks."""
        sentences = []
        for name, (number, (response, reason)) in sorted(self._unanswered_by_evaluator.items()):
            detail = f" (first {response}: {shorten(reason, 200)})" if reason else ""
            way_out = "a function returns jg.Verdict.not_applicable(…)"
            if name in self.optional_evaluators:
                way_out = "`if_missing: not_applicable`"
            sentences.append(
                f"{name}: abstained on {number} of {self.tasks} tasks{detail}; give them what it needs, or let it "
                f"not apply where they lack that ({way_out}), or take {name} out"
            )
        for name, (response, reason) in sorted(self._first_abstentions.items()):
            if name not in (*self._unanswered_by_evaluator, *self.optional_evaluators):
                times = format_count(self._abstention_counts[name], "time")
                reason = shorten(reason, 200) or "without a reason"
                sentences.append(f"{name}: abstained {times} (first {response}: {reason})")
        return sentences

    @property
    def agents(self) -> dict[str | None, AgentRow]:
        names = sorted(self._rows_by_agent, key=lambda name: (name is None, name or ""))
        return {name: self._rows_by_agent[name] for name in names}

    @property
    def left_out(self) -> FailedRewards:
        return self._parts.failed

    @property
    def figures(self) -> dict[str, float | None]:
        """Return the figures that thresholds refer to, by `THRESHOLD_FIGURE_NAMES`; the mean leaves out failed rewards.

        None where nothing shows a figure: that no finding is unsupported says little where there was none.
        """
        coverages: list[float] = []
        values: list[float] = []
        degraded_reward_count = 0
        for row in self._rows_by_agent.values():
            coverages += row.coverages
            values += row.values
            degraded_reward_count += row.degraded
        error_rate = self.error_rate if self.verdicts else None
        unsupported_share = self.unsupported.total() / self.quotable if self.quotable else None
        return {
            "responses": self.responses,
            "failed": self.failed,
            "degraded": degraded_reward_count,
            "mean": mean_without_none(values),
            "coverage": mean_without_none(coverages),
            "error_rate": error_rate,
            "unsupported": unsupported_share,
        }

    @property
    def discarded(self) -> dict[str, int]:
        return _sort_by_name(self._discarded_counts)

    @property
    def failures(self) -> list[FailureRow]:
        return sorted(
            self._failure_rows.values(), key=lambda row: (-row.verdicts, row.cause, row.kind)
        )

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
    def error_rate(self) -> float:
        """Return the share of all verdicts that failed because of infrastructure, in [0, 1]."""
        return self.infrastructure_failures / self.verdicts if self.verdicts else 0.0

    def to_json(self) -> JsonFields:
        counts = {
            "judged": self.judged,
            "gated": self.gated.total(),
            "abstained": self.abstained,
            "failed": self.failed_verdicts,
            "not_applicable": self.not_applicable,
            "requested": self.verdicts,
        }
        agents = [row.to_json() for row in self.agents.values()]
        failures = [row.to_json() for row in self.failures]
        return {
            "tasks": self.tasks,
            "responses": self.responses,
            "rewards_failed": self.failed,
            "left_out": self.left_out._asdict(),
            "agents": agents,
            "verdicts": counts,
            "gated_by": _sort_by_name(self.gated),
            "quotable": self.quotable,
            "unsupported": _sort_by_name(self.unsupported),
            "unanswered_tasks": _sort_by_name(self.unanswered_tasks),
            "discarded": self.discarded,
            "error_rate": self.error_rate,
            "failures": failures,
            "calls": self.bill.to_json(),
        }


def _sort_by_name(counts: Mapping[str, int]) -> dict[str, int]:
    """Return counts in the order of their names, so that it does not depend on the order in which groups end."""
    return dict(sorted(counts.items()))
