"""Changes that would matter to a reward, each decided again: one verdict at its best value or the opposite decision, or
one gate passed."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from jurygraph.decision.combiners import Combiners
from jurygraph.decision.decide import (
    ROUNDING_TOLERANCE,
    compute_rewards,
    has_independent_rows,
)
from jurygraph.errors import InputError, TraceMismatch
from jurygraph.explanation.points import OPPOSITE_OPERATOR
from jurygraph.explanation.terms import (
    ExplainedTrace,
    ExplainedVerdict,
)
from jurygraph.messages import (
    format_factor_for_sentence,
    format_number_for_sentence,
    join_names,
)
from jurygraph.schema import (
    Decision,
    FrozenModel,
    Question,
    RecordedVerdict,
    Trace,
)
from jurygraph.schema.frozen_model import Number
from jurygraph.schema.plan import SUBMITTED_MATERIAL_NAME
from jurygraph.schema.verdict import EMPTY_TURN_GATE, MET_THRESHOLD, RESPONSE_GATES

ChangeKind = Literal["verdict", "response gate", "reward gate"]
_MAX_CHANGES_LISTED = 10
_VerdictGroupKey = tuple[str, ...]
_ScoresToTry = Mapping[str, float]
"""Scores to try, by question."""
_TriedOption = tuple[float | None, _ScoresToTry]
"""The reward that scores would give, None if it fails, and these."""


class Change(FrozenModel):
    """A change of one verdict (with all its samples) or of one gate, and the reward that the decision then gives.

    A decision that is at its best has a change for the opposite one, and a graded answer one for either end. `value` is
    None if the reward then fails, and `gain` if it fails with or without the change. `question` is that of the verdict,
    empty for a gate. `condition` has it too where several changes have the same `name`.
    """

    kind: ChangeKind
    name: str
    question: str = ""
    condition: str
    value: Number | None
    gain: Number | None

    @property
    def raises_reward(self) -> bool:
        """Return True if the change leads to a higher reward, or to a reward where there is none."""
        return self.value is not None if self.gain is None else self.gain > ROUNDING_TOLERANCE

    def __str__(self) -> str:
        gain = ""
        if self.gain is not None:
            sign = "+" if self.gain > 0.0 else "-"
            gain = f" ({sign}{format_factor_for_sentence(abs(self.gain))})"
        return f"If {self.condition}: {format_number_for_sentence(self.value)}{gain}."


def find_what_if_changes(
    explained_trace: ExplainedTrace,
    questions: Sequence[Question],
    read_group_traces: Callable[[], Sequence[Trace]],
    combiners: Combiners,
) -> list[Change]:
    """Return all single changes, those that gain most first.

    Raises InputError if other responses of the group are needed, and TraceMismatch if the verdicts do not give the
    reward of the trace.
    """
    trace = explained_trace.trace
    group: Sequence[Trace] = (trace,)
    if not has_independent_rows(explained_trace.decision, questions, combiners):
        group = read_group_traces()
        _require_group(trace, group, questions)
    names = [member.response_id for member in group]
    recorded_verdicts = list(distinct_verdicts(group))
    current_decision = explained_trace.decision

    def decide(decision: Decision, verdicts: Sequence[RecordedVerdict]) -> float | None:
        rewards = compute_rewards(decision, questions, names, verdicts, combiners)
        return rewards[names.index(trace.response_id)].value

    current_reward = decide(current_decision, recorded_verdicts)
    if current_reward != trace.reward.value:
        raise TraceMismatch(
            f"the trace of response {trace.response_id!r} has reward "
            f"{format_number_for_sentence(trace.reward.value)}, and its verdicts give "
            f"{format_number_for_sentence(current_reward)} under this decision; give the plan of its run"
        )
    changes = []

    def add(
        kind: ChangeKind, name: str, condition: str, value: float | None, question: str = ""
    ) -> None:
        gain = None if value is None or current_reward is None else value - current_reward
        changes.append(
            Change(
                kind=kind, name=name, question=question, condition=condition, value=value, gain=gain
            )
        )

    groups = group_verdicts_by_change(explained_trace.verdicts)
    labels = Counter(verdicts[0].label for verdicts in groups.values())
    for key, verdicts in groups.items():
        tried_options = []
        for scores in _scores_to_try(verdicts):
            revised_verdicts = [
                revise(v, scores[v.question]) if _verdict_group_key(v) == key else v
                for v in recorded_verdicts
            ]
            tried_options.append((decide(current_decision, revised_verdicts), scores))
        tried_options.sort(key=lambda option: (option[0] is None, -(option[0] or 0.0)))
        first = verdicts[0]
        if first.verdict.gated_by in RESPONSE_GATES:
            gate_name = key[1]
            condition = (
                f"{gate_name} had not stopped it, and all {len(verdicts)} verdicts that it settled "
                "were at their best"
            )
            add("response gate", gate_name, condition, tried_options[0][0])
            continue
        question = first.verdict.question
        label = _unique_label(first, labels)
        for value, scores in _select_changes(verdicts, tried_options, current_reward):
            condition = f"{label} were {_describe_score_option(verdicts, scores[question])}"
            add("verdict", first.label, condition, value, question)
    for gate, result in zip(current_decision.gates, trace.reward.gates, strict=True):
        rest = tuple(other for other in current_decision.gates if other is not gate)
        value = decide(current_decision.model_copy(update={"gates": rest}), recorded_verdicts)
        limit = f"{OPPOSITE_OPERATOR[result.op]} {format_number_for_sentence(result.threshold)}"
        condition = f"the {gate.title} were passed ({result.component} {limit})"
        add("reward gate", gate.step, condition, value)
    return sorted(
        changes,
        key=lambda change: (-(change.gain or 0.0), -(change.value or 0.0), change.condition),
    )


def _select_changes(
    verdicts: Sequence[ExplainedVerdict],
    tried_options: Sequence[_TriedOption],
    current_reward: float | None,
) -> Sequence[_TriedOption]:
    """Return the best option, and the other one if that was decided or the answer is graded; none that is there."""
    question = verdicts[0].verdict.question
    best_value, best_scores = tried_options[0]
    recorded_scores = {verdict.verdict.score for verdict in verdicts}
    met_answers = {verdict.verdict.met for verdict in verdicts}
    is_answered = all(verdict.effect in ("none", "deduction") for verdict in verdicts)
    has_two_ways = _unanimous_answer(verdicts) is (best_scores[question] == 1.0)
    # of verdicts that differ, what counts may be at its best
    has_two_ways |= len(met_answers) > 1 and best_value == current_reward
    options = tried_options
    if is_answered:
        has_two_ways |= not any(verdict.verdict.is_binary_verdict for verdict in verdicts)
        options = [option for option in options if recorded_scores != {option[1][question]}]
    return options[: 1 + has_two_ways]


def distinct_verdicts(group: Sequence[Trace]) -> Iterator[RecordedVerdict]:
    """Yield each verdict once: one on a pair is in the traces of both responses, and is about one of them."""
    for member in group:
        yield from (v for v in member.verdicts if v.about == member.response_id)


def group_verdicts_by_change(
    verdicts: Sequence[ExplainedVerdict],
) -> dict[_VerdictGroupKey, list[ExplainedVerdict]]:
    """Return the verdicts that one change changes, by their key; without those that do not apply, or of empty turns.

    The page tries the scores of the same ones.
    """
    groups = defaultdict(list)
    for verdict in verdicts:
        is_judgeable = verdict.verdict.gated_by != EMPTY_TURN_GATE
        if is_judgeable and verdict.verdict.status != "not_applicable":
            groups[_verdict_group_key(verdict.verdict)].append(verdict)
    return groups


def _unique_label(explained_verdict: ExplainedVerdict, labels: Mapping[str, int]) -> str:
    """Return the label of a verdict, where others have it with its question, and with the variant that it is about."""
    if labels[explained_verdict.label] == 1:
        return explained_verdict.label
    verdict = explained_verdict.verdict
    where = verdict.question
    if len(verdict.responses) == 1 and verdict.responses[0] != verdict.about:
        where = f"{where} of {verdict.responses[0]}"
    return f"{explained_verdict.label} ({where})"


def change_sentences(changes: Sequence[Change], has_reward: bool = True) -> Iterator[str]:
    useful_changes = [change for change in changes if change.raises_reward]
    harmful_changes = [
        change for change in reversed(changes) if (change.gain or 0.0) < -ROUNDING_TOLERANCE
    ]
    for changes_of_sign in (useful_changes, harmful_changes):
        yield from map(str, changes_of_sign[:_MAX_CHANGES_LISTED])
        if len(changes_of_sign) > _MAX_CHANGES_LISTED:
            yield f"... and {len(changes_of_sign) - _MAX_CHANGES_LISTED} more (--json)."
    effect = "raise it" if has_reward else "give it a reward"
    lowering_text = f", {len(harmful_changes)} would lower it" if harmful_changes else ""
    unchanged_count = len(changes) - len(useful_changes) - len(harmful_changes)
    unchanged_text = f", {unchanged_count} would change nothing" if unchanged_count else ""
    yield (
        f"{len(useful_changes)} of {len(changes)} single changes would {effect}{lowering_text}"
        f"{unchanged_text}."
    )


def _require_group(trace: Trace, group: Sequence[Trace], questions: Sequence[Question]) -> None:
    # Verdicts on variants compare no responses of the group.
    submitted_response_question_ids = {
        question.id for question in questions if question.material == SUBMITTED_MATERIAL_NAME
    }
    needed_ids = {trace.response_id}
    for verdict in trace.verdicts:
        if verdict.question in submitted_response_question_ids:
            needed_ids |= {verdict.about, *verdict.responses}
    if not needed_ids <= {member.response_id for member in group}:
        raise InputError(
            f"the reward of response {trace.response_id!r} depends on the other responses of its group; "
            "write `trace.explain(group=traces)` with the traces of all of them"
        )


def _verdict_group_key(verdict: RecordedVerdict) -> _VerdictGroupKey:
    """Return the identity of a verdict without its sample; all verdicts that one gate settled share theirs."""
    if verdict.gated_by in RESPONSE_GATES:
        return verdict.about, verdict.gated_by or ""
    turn = () if verdict.turn is None else (str(verdict.turn),)
    return verdict.about, verdict.question, *verdict.responses, *turn


def _scores_to_try(verdicts: Sequence[ExplainedVerdict]) -> Iterator[_ScoresToTry]:
    """Return the scores to try: the best for the response, and unless a gate settled them the other end.

    That may be the better one where it depends on the judge, or where a question counts in two components.
    """
    best = {
        verdict.verdict.question: float((verdict.direction >= 0) != verdict.is_mirrored)
        for verdict in verdicts
    }
    yield best
    if verdicts[0].verdict.gated_by not in RESPONSE_GATES:
        yield {question: 1.0 - score for question, score in best.items()}


def revise(verdict: RecordedVerdict, score: float) -> RecordedVerdict:
    """Return a verdict as if its judge had given another score, in [0, 1]; its reason is not of that one."""
    update: dict[str, Any] = dict.fromkeys(("failure", "gated_by", "unsupported", "confidence"))
    update |= {"score": score, "met": score >= MET_THRESHOLD, "status": "ok"}
    update |= {"reason": "a score that was tried", "evidence": ()}
    if verdict.scale is not None and isinstance(verdict.native, int | float):
        low, high = verdict.scale
        update["native"] = low + score * (high - low)
    return verdict.model_copy(update=update)


def _unanimous_answer(verdicts: Sequence[ExplainedVerdict]) -> bool | None:
    """Return what all verdicts on a question decided; None where they differ, are graded or do not count."""
    met_answers = set()
    for explained_verdict in verdicts:
        counts = not explained_verdict.is_mirrored and explained_verdict.effect != "discarded"
        met_answers.add(
            explained_verdict.verdict.met
            if counts and explained_verdict.verdict.is_binary_verdict
            else None
        )
    return met_answers.pop() if len(met_answers) == 1 else None


def _describe_score_option(verdicts: Sequence[ExplainedVerdict], score: float) -> str:
    """Describe a score to try; one that was decided alone loses its doubt: `certainly met (1 instead of 0.9)`."""
    description = _describe_score(verdicts[0], score)
    recorded_score_texts = sorted(
        {
            format_number_for_sentence(explained_verdict.verdict.score)
            for explained_verdict in verdicts
        }
    )
    if _unanimous_answer(verdicts) is not (score == 1.0) or recorded_score_texts == [
        format_number_for_sentence(score)
    ]:
        return description
    return (
        f"certainly {description} ({format_number_for_sentence(score)} instead of "
        f"{join_names(recorded_score_texts)})"
    )


def _describe_score(verdict: ExplainedVerdict, score: float) -> str:
    best = int(1.0 - score if verdict.is_mirrored else score)
    scale = verdict.verdict.scale
    if verdict.native is not None and scale is not None:
        return f"{scale[best]:g} on a scale of {scale[0]:g} to {scale[1]:g}"
    if verdict.score is None:  # on a scale that no answer names
        return f"{best} of 1"
    if verdict.verdict.met is None:
        return str(best)
    return "met" if best else "not met"
