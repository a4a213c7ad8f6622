"""Points of a reward: what every term and each of its parts gained and lost. A penalty is best at 0."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import isclose
from typing import NamedTuple

from pydantic import Field

from jurygraph.agents.roles import shorten_quotes
from jurygraph.decision.decide import explain_notes
from jurygraph.explanation.terms import (
    Ballot,
    ExplainedTerm,
    ExplainedTrace,
    ExplainedVerdict,
    describe_judge_answer,
    describe_unsupported,
    describe_vote,
    missing_vote,
)
from jurygraph.messages import (
    format_factor_for_sentence,
    format_number_for_sentence,
    join_names,
    list_first,
    shorten,
)
from jurygraph.schema import (
    FrozenModel,
    GateResult,
    Reward,
    Trace,
)
from jurygraph.schema.frozen_model import Number, StrictBool
from jurygraph.schema.lookup import TOOL_SOURCE_PREFIX

MIN_POINTS_SHOWN = 0.5e-4
"""Points below this are printed as 0."""
_MAX_REASON_LENGTH = 300
_MAX_QUOTE_LENGTH = 120
_MAX_QUOTES_LISTED = 3
_SHORTFALL_OF_UNMET = 0.5
_MAX_REASONS_LISTED = 3
OPPOSITE_OPERATOR = {"<": "≥", ">": "≤"}
"""The sign of a gate that is passed, by the one that closes it."""

CriterionTexts = Mapping[tuple[str, str], str]
"""Names of criteria with their words, by the component that counts them and the name alone."""


class PointsLine(FrozenModel):
    """A summand of a reward or of a component: points = weight × value, once for each of `names`.

    `lost` are the points up to the best value: 1, or 0 for a penalty, whose signed weight is negative, or the value
    itself if it is better than that. `answer` is the judge's own value on its scale.
    `note` says how the value was computed, and `reason` why it is not the best; `is_filled_in` if the failure rule gave
    the value, since no verdict of a judge did.
    """

    component: str
    names: tuple[str, ...]
    points: Number
    lost: Number
    value: Number
    weight: Number
    answer: str = ""
    note: str = ""
    reason: str = ""
    parts: tuple["PointsLine", ...] = ()
    is_filled_in: StrictBool = Field(default=False, exclude=True)

    @property
    def has_loss(self) -> bool:
        """Return True if the points that were lost are printed as more than 0."""
        return self.lost >= MIN_POINTS_SHOWN

    @property
    def title(self) -> str:
        """Return the names; of what is filled in, that this is no judgement: nobody is to be blamed for an outage."""
        names = ", ".join(self.names)
        return f"{names} (filled in by the failure rule)" if self.is_filled_in else names

    @property
    def answer_with_value(self) -> str:
        """Return the answer, with the value in parentheses if it does not begin with that; empty without an answer."""
        value = format_number_for_sentence(self.value)
        is_value_said = self.answer.split(" ")[0] in ("", value)
        return self.answer if is_value_said else f"{self.answer} ({value})"

    def __str__(self) -> str:
        return self.describe({})

    def describe(self, criteria: CriterionTexts) -> str:
        """Describe the line so that its points follow from the numbers in it, with the words of these criteria."""
        is_penalty = self.weight < 0
        has_gained_points = not self.has_loss and (self.points > 0 or not is_penalty)
        points = f"Lost {format_number_for_sentence(self.lost)}"
        if has_gained_points:
            points = f"Gained {format_number_for_sentence(self.points)}"
        names = join_names(criteria.get((self.component, name), name) for name in self.names)
        if is_penalty:
            names = f"penalty {names}"
        answer = self.answer_with_value or format_number_for_sentence(self.value)
        if not (self.answer or is_penalty or self.value > 1):
            answer += " of 1"
        times = ""
        if len(self.names) > 1:
            names += ", each"
            times = f" × {len(self.names)}"
        text = (
            f"{points}: {names} {answer}, weight {format_factor_for_sentence(self.weight)}{times}"
        )
        if self.note:
            text += f"; {self.note}"
        if self.reason:
            text += f" ({self.reason})"
        return text


class _ComponentPart(NamedTuple):
    """A summand of a component, a question or an input: its value in [0, 1] times its signed share."""

    name: str
    value: float
    share: float
    verdicts: Sequence[ExplainedVerdict]
    note: str = ""


def build_term_line(component: ExplainedTerm) -> PointsLine:
    term = component.term
    parts = _component_summands(component)
    notes = [] if component.is_judged else ["not judged"]
    verdicts: Sequence[ExplainedVerdict] = ()
    if len(parts) == 1:
        (only_summand,) = parts
        notes.append(only_summand.note)
        verdicts = only_summand.verdicts
        parts = []  # the line of the component says it all
    elif not parts:
        notes += _describe_component_rule(component)
        verdicts = component.verdicts
    if component.combiner.counts_criteria:
        notes.append(component.combiner.describe_rule(component.params))
    if not component.is_judged and not component.undecided_juries_of(verdicts):
        verdicts = ()
    note = "; ".join(filter(None, notes))
    component_summand = _ComponentPart(term.name, term.value or 0.0, 1.0, verdicts, note)
    line = _points_line(component, component_summand, (term.name,))
    return line.model_copy(update={"parts": _part_lines(component, parts)})


def points_line_sort_key(line: PointsLine) -> tuple[float, float, Sequence[str]]:
    """Return the sort key of a line; what is printed alike is ordered by name."""
    return -round(line.lost, 4), -round(line.points, 4), line.names


def sort_part_lines(lines: Iterable[PointsLine]) -> list[PointsLine]:
    """Return the lines of all parts in order of cost; a line without parts stands for itself."""
    parts = chain.from_iterable(line.parts or (line,) for line in lines)
    return sorted(parts, key=points_line_sort_key)


def _points_line(
    component: ExplainedTerm, part: _ComponentPart, names: tuple[str, ...]
) -> PointsLine:
    weight = component.term.weight * part.share
    points = weight * part.value
    lost_points = max(weight, 0.0, points) - points
    verdict_effects = {verdict.effect for verdict in part.verdicts}
    answer = ""
    reason = ""
    predictions = [verdict for verdict in part.verdicts if verdict.prediction]
    undecided = component.undecided_juries_of(part.verdicts)
    unvoted_labels = {
        ballot.voting_verdicts[0].label for ballot in undecided if not ballot.is_worst_case
    }
    # without verdicts of its own, as where its parts have them, it is what its component is
    is_filled_in = not (component.is_judged and not part.verdicts) and all(
        verdict.effect in ("unjudged", "discarded") or verdict.label in unvoted_labels
        for verdict in part.verdicts
    )
    # where votes are split, a good one is no reason
    min_shortfall = _SHORTFALL_OF_UNMET if undecided else 0.0
    # Without a loss only what a person is predicted to give is explained: other lossless parts are alike, whatever
    # their scales are.
    if (
        lost_points >= MIN_POINTS_SHOWN
        or predictions
        or verdict_effects & {"unjudged", "discarded"}
    ):
        answer = "" if undecided else _describe_answer(component, part)
        reason = describe_losses(part.verdicts, min_shortfall) or next(
            map(describe_reason, predictions), ""
        )
    return PointsLine(
        component=component.term.name,
        names=names,
        points=points,
        lost=lost_points,
        value=part.value,
        weight=weight,
        answer=answer,
        note="; ".join(
            filter(None, (part.note, *_describe_judge_votes(component, part.verdicts, undecided)))
        ),
        reason=reason,
        is_filled_in=is_filled_in,
    )


def _describe_judge_votes(
    component: ExplainedTerm, verdicts: Sequence[ExplainedVerdict], undecided: Sequence[Ballot]
) -> Iterator[str]:
    """Yield the answers that have no majority, then of other questions the votes of judges that differ."""
    labels = {verdict.label for verdict in verdicts}
    undecided_labels = set()
    for ballot in undecided:
        label = ballot.voting_verdicts[0].label
        undecided_labels.add(label)
        on_question = f" on {label}" if len(labels) > 1 else ""
        rule = "worst case" if ballot.is_worst_case else "failure rule"
        yield f"no majority{on_question} ({ballot.answers}), so the {rule} counts"
    reductions = {use.reduce for use in component.inputs.values()}
    rule = ", and a majority decides" if reductions == {"majority"} else ""
    votes_by_label = defaultdict(list)
    for verdict in verdicts:
        if verdict.label not in undecided_labels and not missing_vote(verdict):
            votes_by_label[verdict.label].append(
                (_judge_name(verdict), describe_vote(verdict, True))
            )
    disagreement_texts = []
    for label, votes in votes_by_label.items():
        judges, answers = map(set, zip(*votes, strict=True))
        if len(judges) > 1 and len(answers) > 1:
            label_prefix = f"{label}: " if len(labels) > 1 else ""
            votes_text = ", ".join(f"{judge} {answer}" for judge, answer in votes)
            disagreement_texts.append(f"{label_prefix}{votes_text}")
    if disagreement_texts:
        yield f"judges differ{rule}: {'; '.join(list_first(disagreement_texts, _MAX_REASONS_LISTED))}"


def _judge_name(verdict: ExplainedVerdict) -> str:
    return verdict.verdict.judge or "the model"


def _describe_answer(component: ExplainedTerm, part: _ComponentPart) -> str:
    """Return the judge's own answer if the part has the value of a verdict, and all such verdicts the same answer.

    What is decided for the response loses a little where its judge is not sure: nobody should look for a fault there,
    nor in the judge where it is a prerequisite that takes most of it.
    """
    if part.verdicts and all(verdict.has_best_decision for verdict in part.verdicts):
        is_met = part.verdicts[0].verdict.met
        decision = "met" if is_met else "not met"
        judged = component.input_mean(part.name) if part.name in component.inputs else None
        if judged is None or isclose(judged, part.value, abs_tol=1e-9):
            return f"{decision}, but its score is not {is_met:d}"
        return f"{decision} ({format_number_for_sentence(judged)}), reduced by what it depends on"
    answers = {
        verdict.native
        for verdict in part.verdicts
        if verdict.effect != "discarded" and part.value == verdict.score
    }
    return (answers.pop() or "") if len(answers) == 1 else ""


def _part_lines(
    component: ExplainedTerm, parts: Sequence[_ComponentPart]
) -> tuple[PointsLine, ...]:
    """Return a line for each part of a component; parts that are alike in everything but their names share one."""
    names = []
    for part in parts:
        labels = {verdict.name for verdict in part.verdicts}
        names.append(min(labels) if len(labels) == 1 else part.name)
    counts = Counter(names)
    part_name_counts = Counter(part.name for part in parts)
    groups = defaultdict(list)
    for part, name in zip(parts, names, strict=True):
        line = _points_line(component, part, ())
        # Parts whose verdicts have the same name are told apart by their own, and those of a panel by their judge.
        unique_name = name if counts[name] == 1 else part.name
        judges = sorted(set(map(_judge_name, part.verdicts)))
        if part_name_counts[part.name] > 1 and judges:
            unique_name = f"{name} by {join_names(judges)}"
        groups[line].append(unique_name)
    lines = []
    for line, equal_line_names in groups.items():
        update = {
            "names": tuple(sorted(equal_line_names)),
            "points": line.points * len(equal_line_names),
            "lost": line.lost * len(equal_line_names),
        }
        lines.append(line.model_copy(update=update))
    return tuple(sorted(lines, key=points_line_sort_key))


def _component_summands(component: ExplainedTerm) -> list[_ComponentPart]:
    """Return the summands of a component; empty if it is not a sum of its inputs."""
    term = component.term
    is_sum = component.combiner.is_sum or len(component.inputs) == 1
    if term.value is None or not is_sum:
        return []
    values = component.parts
    if not values:
        applicable_inputs = component.inputs.keys() - component.inapplicable
        values = dict.fromkeys(applicable_inputs, term.value)
    # elsewhere the mean of a penalty alone has its weight without the sign
    has_signed_weights = component.combiner.counts_criteria
    weights = {
        name: use.signed_weight if has_signed_weights else use.input_weight
        for name, use in component.inputs.items()
        if name in values
    }
    total = sum(weight for weight in weights.values() if weight > 0)
    if total <= 0:
        return []
    # Nothing may lower a penalty.
    if term.weight < 0 and min(weights.values()) < 0:
        return []
    parts = []
    for name, weight in weights.items():
        parts += _component_parts_of_input(component, name, values[name], weight / total)
    value = sum(part.share * part.value for part in parts)
    best_total = sum(part.share for part in parts if part.share > 0)
    is_sum_exact = isclose(value, term.value, abs_tol=1e-9) and isclose(
        best_total, 1.0, abs_tol=1e-9
    )
    return parts if is_sum_exact else []


def _component_parts_of_input(
    component: ExplainedTerm, name: str, value: float, share: float
) -> list[_ComponentPart]:
    """Return the questions of an input if their mean is its value, else the whole input."""
    questions = list(component.question_means_of_input(name))
    verdicts = component.verdicts_of(name)
    total = sum(weight for _, weight, _ in questions)
    unreduced_mean = value
    if total:
        unreduced_mean = sum(weight * mean for _, weight, mean in questions) / total
    if not isclose(unreduced_mean, value, abs_tol=1e-9):
        note = _describe_reduction(component, name, unreduced_mean, value)
        return [_ComponentPart(name, value, share, verdicts, note)]
    if len(questions) < 2:
        return [
            _ComponentPart(name, value, share, verdicts, _describe_turn_reduction(component, name))
        ]
    parts = []
    for question, weight, mean in questions:
        note = _describe_turn_reduction(component, name, question)
        question_verdicts = component.verdicts_of(name, question)
        parts.append(
            _ComponentPart(question, mean, share * weight / total, question_verdicts, note)
        )
    return parts


_TURN_REDUCTION_PHRASES = {
    "mean": "the mean of its turns",
    "min": "the worst of its turns",
    "last": "its last turn",
    "first_failure": "the share of its turns before the first that fails",
}


def _describe_turn_reduction(
    component: ExplainedTerm, name: str, question: str | None = None
) -> str:
    """Return how the turns of a conversation gave an input, or one of its questions, its value."""
    use = component.inputs[name]
    turn_reductions = {
        reduction for judged, reduction in use.turns.items() if question in (None, judged)
    }
    phrase = _TURN_REDUCTION_PHRASES[turn_reductions.pop()] if len(turn_reductions) == 1 else ""
    is_penalty = use.signed_weight * component.term.weight < 0
    return phrase.replace("the share", "1 minus the share") if is_penalty else phrase


def _describe_reduction(
    component: ExplainedTerm, name: str, unreduced_mean: float, value: float
) -> str:
    """Describe what reduced the mean of an input: the prerequisites of a criterion, or the cap of a utility."""
    names = list(component.inputs)
    edges = component.combiner.prerequisites(component.params)
    parents = [
        _describe_prerequisite(component, names[parent], retention)
        for parent, child, retention in sorted(edges, key=lambda edge: edge[:2])
        if names[child] == name
    ]
    if parents:
        factor = format_number_for_sentence(value / unreduced_mean if unreduced_mean else 1.0)
        verdicts = component.verdicts_of(name)
        native = ""
        if len(verdicts) == 1 and verdicts[0].native:
            native = f" ({verdicts[0].native})"
        product = f"{format_number_for_sentence(unreduced_mean)}{native} × {factor}"
        return f"{format_number_for_sentence(value)} = {product}, by {'; '.join(parents)}"
    if not component.params.get("cap") or value >= unreduced_mean:
        return ""
    questions = component.inputs[name].questions
    caps = {
        verdict.verdict.subject: None
        for index in component.params.get("hard", {}).get(name, ())
        for verdict in component.verdicts_of(name, questions[index])
        if verdict.effect != "none"
    }
    mean = format_number_for_sentence(unreduced_mean)
    return f"{mean}, capped by its hard constraints: {join_names(caps)}"


def _describe_prerequisite(component: ExplainedTerm, name: str, retention: float | None) -> str:
    """Describe a prerequisite: its value, and how much of a child it leaves where it is not met."""
    value = component.parts.get(name)
    state = "without a value" if value is None else f"at {format_number_for_sentence(value)}"
    if name in component.unjudged:
        state = "not judged"
    missing = component.describe_missing_judgement(name)
    if missing:
        state += f" ({missing}: it counts as unmet for gains that depend on it, and as met for penalties)"
    if retention is not None:
        state += f", λ {format_number_for_sentence(retention)}"
    return f"{name} {state}"


def _describe_component_rule(component: ExplainedTerm) -> Iterator[str]:
    """Describe how a component that is no weighted mean follows from its parts."""
    if not component.parts:
        return
    combiner = component.combiner
    has_weighted_parts = combiner.aggregates_utilities and not combiner.is_product
    total = 1.0
    if has_weighted_parts:
        total = sum(component.inputs[name].input_weight for name in component.parts)
    values = []
    for name, value in component.parts.items():
        weight = component.diagnostics.get(f"weight of {name}")
        if has_weighted_parts:
            weight = component.inputs[name].input_weight / total
        remarks = [] if weight is None else [f"weight {format_number_for_sentence(weight)}"]
        remarks += ["not judged"] if component.is_unjudged_part(name) else []
        suffix = f" ({', '.join(remarks)})" if remarks else ""
        values.append(f"{name} {format_number_for_sentence(value)}{suffix}")
    separator = " × " if combiner.is_product else ", "
    yield separator.join(values)
    if component.inapplicable:
        yield f"{', '.join(component.inapplicable)} not applicable"
    if has_weighted_parts:
        yield combiner.describe_rule(component.params)
    if component.is_judged:
        yield from combiner.describe_value(
            component.params, component.diagnostics, component.is_filled_in
        )


def feedback_texts(
    explained_trace: ExplainedTrace, text_by_question: Mapping[str, str]
) -> list[str]:
    """Return what a better response would change, the costliest first: what was judged, the answer and its reason.

    What no judge decided is left out, as are decisions for the response: there is nothing to mend in the response.
    """
    lost_by_question: dict[str, float] = defaultdict(float)
    verdicts: list[ExplainedVerdict] = []
    for component in explained_trace.terms:
        term = component.term
        whole = _ComponentPart(term.name, term.value or 0.0, 1.0, component.verdicts)
        for part in _component_summands(component) or [whole]:
            line = _points_line(component, part, ())
            if not line.has_loss:
                continue
            verdicts += part.verdicts
            # of a part with several verdicts, each lost as much as it falls short
            shortfall = sum(verdict.score_shortfall for verdict in part.verdicts)
            for verdict in part.verdicts:
                share = verdict.score_shortfall / (shortfall or 1.0)
                lost_by_question[verdict.verdict.question] += line.lost * share
    verdicts.sort(key=lambda verdict: -lost_by_question[verdict.verdict.question])
    feedback = []
    for verdict in verdicts:
        if verdict.effect in ("deduction", "gated") and not verdict.has_best_decision:
            title = text_by_question.get(verdict.verdict.question) or verdict.label
            title = title.rstrip(" .") + " (a fault)" * (verdict.direction < 0)
            answer = describe_judge_answer(verdict.verdict)
            feedback.append(f"{title}: {answer}; {_describe_loss(verdict)}".removesuffix("; "))
    return list(dict.fromkeys(feedback))


def describe_losses(verdicts: Sequence[ExplainedVerdict], min_shortfall: float = 0.0) -> str:
    """Return why these verdicts are not at their best, each different reason once, with its count if there are more.

    Of more than fit into a line, the reasons that cost the most are shown, and those come first; otherwise decisions
    for the response come last. Verdicts nearer to their best than `min_shortfall` are left out.
    """
    has_several_subjects = len({verdict.label for verdict in verdicts}) > 1
    has_judges = len({verdict.verdict.judge for verdict in verdicts}) > 1
    labels = defaultdict(list)
    loss_by_text: dict[str, float] = defaultdict(float)
    # What is decided for the response loses a little where its judge is not sure.
    for verdict in sorted(verdicts, key=lambda verdict: verdict.has_best_decision):
        text = _describe_loss(verdict)
        if text and verdict.score_shortfall >= min_shortfall:
            names = [verdict.label] if has_several_subjects else []
            names += [_judge_name(verdict)] if has_judges else []
            labels[text].append(" by ".join(names))
            loss_by_text[text] += verdict.score_shortfall
    texts = list(labels)
    if len(texts) > _MAX_REASONS_LISTED:
        texts.sort(key=lambda text: -loss_by_text[text])
    loss_texts = []
    for text in texts:
        subjects = labels[text]
        names = list(dict.fromkeys(subjects))
        loss_text = text
        if has_several_subjects or has_judges:
            loss_text = f"{join_names(names)}: {text}"
        if len(subjects) > len(names):
            loss_text += f", {len(subjects)} times"
        loss_texts.append(loss_text)
    return "; ".join(list_first(loss_texts, _MAX_REASONS_LISTED))


def _describe_loss(verdict: ExplainedVerdict) -> str:
    if verdict.effect == "unjudged":
        return "not judged"
    if verdict.effect == "discarded":
        return "discarded"
    if verdict.effect == "gated":
        gate = str(verdict.verdict.gated_by)
        stop_reason = "an empty answer" if gate == "empty-response" else f"stopped by {gate}"
        return f"{stop_reason}, the worst score"
    if verdict.effect != "deduction":
        return ""
    loss = describe_reason(verdict)
    if verdict.worst_case_score is not None:
        return f"no quotation bears it out, counts {verdict.worst_case_score:g}: {loss}"
    if verdict.counted == verdict.score:
        return loss
    calibrated = (
        f"{format_number_for_sentence(verdict.score)}, calibrated to "
        f"{format_number_for_sentence(verdict.counted)}"
    )
    return ": ".join(filter(None, (calibrated, loss)))


def describe_reason(verdict: ExplainedVerdict) -> str:
    """Return the reason of a verdict and the quotations that support it, shortened."""
    # A stored reason counts from the response, but reads like the path in a row, which may begin earlier.
    reason = re.sub(
        r"\bmessages\[(\d+)\]\.(tool_calls\[\d+\]\.function\.arguments: )",
        r"message \1 of the response, \2",
        verdict.verdict.reason,
    )
    reason = shorten(reason.rstrip(" ."), _MAX_REASON_LENGTH)
    # Quotations of the response that were not found in it are left out.
    evidence = [e for e in verdict.verdict.evidence if e.verified or e.source != "response"]
    quotes = []
    for found in evidence:
        quote = shorten(found.quote, _MAX_QUOTE_LENGTH)
        message = ""
        if found.message not in (None, verdict.verdict.turn):  # a label names the turn
            message = f" in message {found.message} of the response"
        if quote in reason:
            quotes.append(message.removeprefix(" in "))
        elif found.source.startswith(TOOL_SOURCE_PREFIX):
            # Words that a tool found are not those of the response.
            quotes.append(f"“{quote}” ({found.source})")
        else:
            quotes.append(f"“{quote}”{message}")
    distinct_quotes = list(dict.fromkeys(filter(None, quotes)))
    listed_quotes = ", ".join(list_first(distinct_quotes, _MAX_QUOTES_LISTED))
    return ", as in ".join(filter(None, (reason, listed_quotes)))


def reward_sentences(explained_trace: ExplainedTrace, lines: Sequence[PointsLine]) -> Iterator[str]:
    """Return sentences on a reward: its points in order of cost, missing verdicts, and the range they leave open."""
    reward = explained_trace.trace.reward
    yield _reward_sentence(explained_trace.trace)
    yield from (f"Why: {note}." for note in explain_notes(reward.notes))
    largest_loss = max((line.lost for line in lines), default=0.0)
    later_gates = []
    for gate in reward.gates:
        if gate.before - gate.after > largest_loss:  # it decided, and what lines lost hardly counts
            yield _describe_gate(gate, explained_trace)
        else:
            later_gates.append(gate)
    yield from _point_sentences(explained_trace, lines)
    yield from (_describe_gate(gate, explained_trace) for gate in later_gates)
    yield from (f"{step}." for step in describe_scale_and_clip(explained_trace))
    if not reward.weights_fixed:
        yield "The weights were not fixed before the response was seen."
    yield from _verdict_sentences(explained_trace.verdicts)
    yield from _lookup_sentences(explained_trace)
    counts = explained_trace.counts
    judged = f"{counts.judged} judged"
    if counts.discarded:
        judged += f" ({counts.discarded} of them discarded)"
    gated_counts_text = "".join(f"{count} set by {name}, " for name, count in counts.gated.items())
    yield (
        f"Verdicts: {counts.total} requested; {judged}, {gated_counts_text}{counts.abstained} abstained, "
        f"{counts.failed} failed, {counts.not_applicable} not applicable."
    )
    verdict_effects = {verdict.effect for verdict in explained_trace.verdicts}
    has_missing_verdicts = not verdict_effects.isdisjoint({"unjudged", "discarded"})
    if reward.range is None:
        return
    low, high = reward.range
    if low != high:
        yield (
            "With what is missing the reward would be between "
            f"{format_number_for_sentence(low)} and {format_number_for_sentence(high)}."
        )
    elif has_missing_verdicts and reward.value is None:
        yield "The missing verdicts could not change the sum: it failed because they are missing."
    elif has_missing_verdicts:
        yield "The missing verdicts cannot change the reward."
    elif "gated" not in verdict_effects:
        yield "All verdicts are present."


def _lookup_sentences(explained_trace: ExplainedTrace) -> Iterator[str]:
    """Yield what judges looked up, step by step; verdicts of one investigation share a sentence."""
    lookup_by_id = {lookup.id: lookup for lookup in explained_trace.trace.lookups}
    labels = defaultdict(list)
    for verdict in explained_trace.verdicts:
        if verdict.verdict.lookups:
            labels[verdict.verdict.lookups].append(verdict.label)
    for names, subjects in labels.items():
        steps = []
        for name in names:
            lookup = lookup_by_id[name]
            outcome = "" if lookup.outcome == "ok" else f" ({lookup.outcome})"
            steps.append(f"{lookup.tool or 'a tool that is not there'}{outcome}")
        yield f"Looked up for {', '.join(subjects)}: {', then '.join(steps)}."
    labels_with_unused_tools = dict.fromkeys(
        verdict.label for verdict in explained_trace.verdicts if verdict.has_unused_tools
    )
    if labels_with_unused_tools:
        yield f"Looked up nothing for {', '.join(labels_with_unused_tools)}."


def _reward_sentence(trace: Trace) -> str:
    reward = trace.reward
    agent = f" by {trace.agent}" if trace.agent else ""
    subject = f"Response {trace.response_id}{agent} to task {trace.task_id}"
    if reward.value is not None:
        status = "" if reward.status == "ok" else ", a degraded reward"
        return f"{subject} gets {format_number_for_sentence(reward.value)}{status}."
    partial = ""
    if reward.partial is not None:
        partial = f"; the judged part alone would give {format_number_for_sentence(reward.partial)}"
    return f"{subject} gets no reward: it failed{partial}."


def _point_sentences(explained_trace: ExplainedTrace, lines: Sequence[PointsLine]) -> Iterator[str]:
    for line in lines:
        yield f"{line}."
        yield from (f"  {part}." for part in line.parts)
    if lines:
        reward = explained_trace.trace.reward
        start = "Sum:"
        if reward.value is None:
            start = "The sum would be"
            if reward.range is not None and reward.range[0] < reward.range[1]:
                rule = explained_trace.decision.rule
                start = f"With what is missing as the {rule} rule counts it, the sum would be"
        yield f"{start} {describe_points_sum(lines)}."
    absent_components = []
    weightless_components = []
    for component in explained_trace.terms:
        term = component.term
        if term.value is None and term.weight:  # of others the sentence on their verdicts tells it
            absent_components.append(term.name)
        elif not (term.value is None or term.weight or component.is_counted_elsewhere):
            value = format_number_for_sentence(term.value) if component.is_judged else "not judged"
            weightless_components.append(f"{term.name} {value}")
    if absent_components:
        yield f"Not applicable, no effect: {', '.join(absent_components)}."
    if weightless_components:
        yield f"Weight 0, no points: {', '.join(weightless_components)}."


def describe_points_sum(lines: Sequence[PointsLine]) -> str:
    best = format_number_for_sentence(sum(line.points + line.lost for line in lines))
    losses_text = "".join(
        f" - {format_number_for_sentence(line.lost)}" for line in lines if line.has_loss
    )
    return f"{best} at best{losses_text} = {format_number_for_sentence(sum(line.points for line in lines))}"


def describe_scale_and_clip(explained_trace: ExplainedTrace) -> Iterator[str]:
    """Yield how scale and clip changed the reward, if they did."""
    decision = explained_trace.decision
    for change in explained_trace.trace.reward.adjustments:
        before = format_number_for_sentence(change.before)
        after = format_number_for_sentence(change.after)
        if change.name == "scale":
            yield f"Scale: {before} × {format_factor_for_sentence(decision.scale)} = {after}"
        if change.name == "clip" and decision.clip is not None:
            low, high = map(format_number_for_sentence, decision.clip)
            yield f"Clip to {low} to {high}: {before} → {after}"


def describe_gate_state(gate: GateResult, reward: Reward) -> str:
    """Return what closes a gate or leaves it open, such as `precision gate: rubric 0.2446 < 0.5`."""
    name = f"{gate.title}: {gate.component}"
    if gate.value is None:
        return f"{name} not applicable"
    if gate.is_unjudged_must:
        return f"{name} not judged"
    measure = format_number_for_sentence(gate.value)
    value = {term.name: term.value for term in reward.terms}.get(gate.component, gate.value)
    counted = ""
    if gate.is_worst_case:
        counted = " at worst (verdicts are missing)"
    elif format_number_for_sentence(value) != measure:  # penalties took it below 0
        counted = f" (its {format_number_for_sentence(value)} counts as {measure})"
    sign = gate.op if _is_closed(gate, gate.value) else OPPOSITE_OPERATOR[gate.op]
    threshold = format_factor_for_sentence(gate.threshold)
    return f"{name} {measure}{counted} {sign} {threshold}"


def _is_closed(gate: GateResult, value: float) -> bool:
    return value < gate.threshold if gate.op == "<" else value > gate.threshold


def _describe_gate(gate: GateResult, explained_trace: ExplainedTrace) -> str:
    state = describe_gate_state(gate, explained_trace.trace.reward)
    state = f"{state[0].upper()}{state[1:]}"
    if gate.is_unjudged_must:
        return f"{state}: no reward without it."
    if gate.value is None or not _is_closed(gate, gate.value):
        return f"{state}: no effect."
    effect = f"reward {format_number_for_sentence(gate.after)} (before: {format_number_for_sentence(gate.before)})"
    specs = {spec.name: spec for spec in explained_trace.decision.all_specs}
    verdicts = explained_trace.verdicts_of_inputs(specs[gate.component].inputs.values())
    # The reason of a verdict that decided for the response is none for a gate.
    costly_verdicts = [v for v in verdicts if not v.has_best_decision]
    reason = describe_losses(costly_verdicts)
    if reason:
        effect += f" ({reason})"
    return f"{state} → {effect}."


def _verdict_sentences(verdicts: Sequence[ExplainedVerdict]) -> Iterator[str]:
    """Return a sentence for each reason why verdicts do not count as they were judged, with all of these verdicts."""
    groups = defaultdict(list)
    for verdict in verdicts:
        for heading, detail in _describe_effects(verdict):
            reason = shorten(detail.rstrip(" ."), _MAX_REASON_LENGTH)
            groups[heading, reason].append(f"{verdict.label} ({verdict.verdict.evaluator})")
    for (heading, reason), names in groups.items():
        sentence = heading
        if len(names) > 1:
            sentence += f" ({len(names)})"
        sentence += f": {join_names(dict.fromkeys(names))}"
        if reason:
            sentence += f": {reason}"
        yield f"{sentence}."


def _describe_effects(explained_verdict: ExplainedVerdict) -> Iterator[tuple[str, str]]:
    verdict = explained_verdict.verdict
    reason = verdict.reason
    if explained_verdict.effect == "gated":
        yield f"Response gate {verdict.gated_by}, the worst score", reason
    if explained_verdict.effect == "discarded":
        yield (
            "Discarded",
            f"confidence {verdict.confidence:.4f} is below {explained_verdict.required_confidence:.4f} "
            "(panel.min_confidence, or the input's own)",
        )
    if verdict.unsupported:
        yield "Unsupported", describe_unsupported(verdict)
    misquotes = [
        item.quote for item in verdict.evidence if item.source == "response" and not item.verified
    ]
    if misquotes:
        yield "Quotes what is not in the response", shorten_quotes(misquotes)
    if explained_verdict.effect == "not_applicable":
        gate = verdict.gated_by
        if gate is not None and gate not in reason:
            reason = ": ".join(filter(None, (f"because of {gate}", reason)))
        yield "Not applicable", reason
    if explained_verdict.effect == "unjudged":
        heading = f"Not judged, {verdict.status}"
        failure = verdict.failure
        if failure:
            # the message of an exception may say little without its type, as that of a KeyError
            kind = f", {failure.kind}" if failure.cause == "evaluator" else ""
            heading += (
                f" ({failure.describe_cause(bool(verdict.calls)).removesuffix(' failure')}{kind})"
            )
            # a reason given before the failure may say something else than the failure
            reason = failure.message or reason
        yield heading, reason
