"""Numbers and texts as the pages show them, and the shapes of their drawings, without markup."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from jurygraph.decision.decide import explain_notes
from jurygraph.display import format_cost, format_number
from jurygraph.explanation import Explanation
from jurygraph.explanation.points import (
    MIN_POINTS_SHOWN,
    PointsLine,
    describe_gate_state,
    sort_part_lines,
)
from jurygraph.explanation.terms import ExplainedVerdict
from jurygraph.messages import (
    escape_hidden_characters,
    escape_multiline_text,
    format_count,
    format_factor_for_sentence,
    format_number_for_sentence,
    format_time,
    plural_of,
    shell_quote,
    shorten,
)
from jurygraph.models.request import RESPONSE_CAUSED_FAULT_KINDS, RETRYABLE_FAULT_KINDS
from jurygraph.runs.calls import message_text
from jurygraph.schema import Evidence, Response, Task
from jurygraph.schema.conversation import RenderedText
from jurygraph.studies.ranking import format_reversal
from jurygraph.studies.report import ReportTable, as_interval
from jurygraph.views.agents import agent_label
from jurygraph.views.trace import TraceView, describe_failure


@dataclass(frozen=True, kw_only=True)
class WaterfallBar:
    """A bar of the waterfall: what a term lost, or what a gate, the scale or the clip made of the reward after that.

    A bar begins where the one before it ended: they lead from the best sum to the reward. `lost` are points of that
    sum, and less than 0 of what gained: the scale has lost none, and the clip what it takes more than of the best.
    """

    names: Sequence[str]
    title: str
    lost: float
    before: float
    after: float
    line: PointsLine | None = None

    @property
    def has_loss(self) -> bool:
        return self.lost >= MIN_POINTS_SHOWN


@dataclass(frozen=True, kw_only=True)
class RewardWaterfall:
    """The losses of a reward, from the best that its terms allow: terms, the largest first, then steps after their sum.

    `low` and `high` are the ends of the scale, `best` and `total` the sums of what could be gained and of what was,
    and `best_reward` what scale and clip make of `best`.
    """

    bars: Sequence[WaterfallBar]
    steps: Sequence[WaterfallBar]
    best: float
    total: float
    best_reward: float
    low: float
    high: float

    @property
    def losses_by_name(self) -> defaultdict[str, float]:
        """Return what each part, gate or clip lost, below 0 where it gained; 0 of a name that is not there."""
        losses: defaultdict[str, float] = defaultdict(float)
        for bar in (*self.bars, *self.steps):
            for name in bar.names:  # parts that are alike share a bar
                losses[name] += bar.lost / len(bar.names)
        return losses


def draw_waterfall(explanation: Explanation) -> RewardWaterfall:
    """Return the bars of a reward; a term that is a sum of parts has a bar for each of them instead."""
    decision = explanation.explained.decision
    best = sum(line.points + line.lost for line in explanation.lines)
    total = sum(line.points for line in explanation.lines)
    bars = []
    before = best
    for line in sort_part_lines(explanation.lines):
        after = before - line.lost
        bars.append(
            WaterfallBar(
                names=line.names,
                title=line.title,
                lost=line.lost,
                before=before,
                after=after,
                line=line,
            )
        )
        before = after
    best_reward = best * decision.scale
    if decision.clip is not None:
        best_reward = min(max(best_reward, decision.clip[0]), decision.clip[1])
    reward = explanation.trace.reward
    titles = {gate.step: describe_gate_state(gate, reward) for gate in reward.gates}
    steps = []
    for step in reward.adjustments:
        lost = step.before - step.after
        if step.name == "scale":
            lost = 0.0
        elif step.name == "clip":  # what it takes from the best reward, too, is no loss
            lost = (lost - (best * decision.scale - best_reward)) / decision.scale
        title = titles.get(step.name, step.name)
        steps.append(
            WaterfallBar(
                names=[step.name], title=title, lost=lost, before=step.before, after=step.after
            )
        )
    levels = [best, total, *(step.after for step in steps)]
    return RewardWaterfall(
        bars=bars,
        steps=steps,
        best=best,
        total=total,
        best_reward=best_reward,
        low=min(0.0, *levels),
        high=max(levels),
    )


_SMALL_SHARE_THRESHOLD = 0.2


def column_axis_ranges(table: ReportTable) -> dict[int, tuple[float, float]]:
    """Return the ends of a common scale for each column with estimates, by its index.

    They are those that the table shares between columns. In any other, all that are shown are in it, and 0; it goes up
    to 1 for shares that are not small.
    """
    scales = {}
    for index, title in enumerate(table.header):
        numbers = []
        for row in table.rows[: table.most]:
            estimate = as_interval(row[index]) or ()
            numbers += [number for number in estimate if number is not None]
        if numbers:
            low = min(0.0, *numbers)
            high = max(0.0, *numbers)
            end = 1.0 if _SMALL_SHARE_THRESHOLD < high <= 1.0 else high
            scales[index] = table.axes.get(title, (low, end))
    return scales


class MarkedText(NamedTuple):
    """A part of a text; `evidence` has the numbers of the quotations that cover it, counted from 1."""

    text: str
    evidence: Sequence[int]


def mark_evidence(
    text: str,
    evidence: Collection[Evidence],
    start: int,
    end: int,
    source: str = "response",
) -> list[MarkedText]:
    """Return a part of a text cut where quotations begin and end; those that were not found have no place in it."""
    spans = {
        number: range(found.start, found.end)
        for number, found in enumerate(evidence, start=1)
        if found.source == source and found.verified
        if found.start is not None and found.end is not None
    }
    edges = {start, end}
    for span in spans.values():
        edges |= {edge for edge in (span.start, span.stop) if start < edge < end}
    segments = []
    for segment_start, segment_end in pairwise(sorted(edges)):
        covering_quote_numbers = [number for number, span in spans.items() if segment_start in span]
        segments.append(MarkedText(text[segment_start:segment_end], covering_quote_numbers))
    return segments


class ShownMessage(NamedTuple):
    """A part of a response, or a passage: whose words they are (empty for a plain text), cut at quotations."""

    heading: str
    kind: str
    segments: Sequence[MarkedText]


def group_evidence(view: TraceView) -> dict[Evidence, list[ExplainedVerdict]]:
    """Return each quotation with the verdicts that rest on it, costly ones first; a page counts them from 1."""
    verdicts_by_quotation: dict[Evidence, list[ExplainedVerdict]] = {}
    for explained_verdict in view.verdicts:
        for evidence in dict.fromkeys(explained_verdict.verdict.evidence):
            verdicts_by_quotation.setdefault(evidence, []).append(explained_verdict)
    return verdicts_by_quotation


def mark_passages(task: Task | None, evidence: Collection[Evidence]) -> list[ShownMessage]:
    """Return the passages of a task's context, by the names that evidence has for them, with its quotations."""
    passages = {} if task is None else task.passages_by_name
    return [
        ShownMessage(name, "passage", mark_evidence(text, evidence, 0, len(text), source=name))
        for name, text in passages.items()
    ]


def split_response_at_quotes(
    response: Response | None, evidence: Collection[Evidence]
) -> list[ShownMessage]:
    """Return a response as its messages, or as one text, with its quotations; none if it was erased."""
    if response is None:
        return []
    text = response.text
    if not isinstance(text, RenderedText):
        return [ShownMessage("", "text", mark_evidence(text, evidence, 0, len(text)))]
    return [
        ShownMessage(
            heading=header.strip("\n :→"),
            kind=turn.role if turn.kind == "text" else turn.kind,
            segments=mark_evidence(text, evidence, turn.start, turn.end),
        )
        for turn, (header, _) in zip(text.turns, text.blocks(), strict=True)
    ]


def percent_of_scale(value: float, low: float, high: float) -> float:
    """Return where a value lies between two ends, in percent of the way; one outside lies at an end."""
    return min(max(100.0 * (value - low) / (high - low or 1.0), 0.0), 100.0)


def format_percent(share: float | None, digits: int = 0) -> str:
    return "–" if share is None else f"{100.0 * share:.{digits}f} %"


def format_cell(value: Any) -> str:
    """Format a cell of the table."""
    if value is None:
        return "–"
    return (
        format_number(value) if isinstance(value, float) else escape_hidden_characters(str(value))
    )


def format_signed(value: float | None) -> str:
    """Format a difference with its sign."""
    return "–" if value is None else f"{round(value, 4) + 0.0:+.4f}"


_OUTAGE_KINDS = RETRYABLE_FAULT_KINDS - {"timeout"}  # which code may have, too


def format_failure(name: str) -> str:
    """Format the name of a failure: of a reply that could not be used, the response is the cause at most."""
    cause, _, kind = name.partition(" ")
    if cause == "response" and kind in RESPONSE_CAUSED_FAULT_KINDS:
        return f"unusable reply, {kind}"
    return f"no reply, {kind}" if cause == "infrastructure" and kind in _OUTAGE_KINDS else name


def cut(text: str, length: int | None) -> str:
    """Return a text, or the beginning of one that is longer than `length`, if there is such a bound."""
    return text if length is None else shorten(text, length)


def say_once(reason: str, told: dict[str, bool]) -> str:
    """Return a reason without the long clauses that were told on the page before, and add its own to these.

    Checks of many people and constraints fail by one fact, which each of their reasons ends with.
    """
    clauses = []
    for clause in reason.split("; "):
        clauses.append("as above" if clause in told else clause)
        if len(clause) > _MAX_CLAUSE_REPEATED:
            told[clause] = True
    return "; ".join(clauses)


def split_long_runs(text: str) -> list[str]:
    """Return a text cut after each 100 characters without a space, where a page lets a line break.

    To lay out one such run in narrow lines takes a browser the square of its length.
    """
    return list(filter(None, _LONG_RUN_PATTERN.split(text)))


_LONG_RUN_PATTERN = re.compile(r"(\S{100})(?=\S)")
_MAX_CLAUSE_REPEATED = 40
"""Characters of a clause that is as quickly read again as a reference to it."""
TEMPLATE_FILTERS: Mapping[str, Callable[..., str | float | list[str]]] = {
    "number": format_number,
    "count_of": format_count,
    "plural": plural_of,
    "percent": format_percent,
    "time": format_time,
    "cost": format_cost,
    "place": percent_of_scale,
    "cell": format_cell,
    "agent": agent_label,
    "signed": format_signed,
    "failure": format_failure,
    "turn": format_reversal,
    "factor": format_factor_for_sentence,
    "plain": format_number_for_sentence,
    "explained": explain_notes,
    "unscored": describe_failure,
    "visible": escape_hidden_characters,
    "lines": escape_multiline_text,
    "pieces": split_long_runs,
    "message_text": message_text,
    "shorten": shorten,
    "shell": shell_quote,
    "cut": cut,
    "once": say_once,
    "as_json": partial(json.dumps, indent=2, ensure_ascii=False),
}
"""By name in a template. `visible` makes control, invisible and direction characters readable as escapes."""
