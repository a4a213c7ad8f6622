"""Nearest changes that would matter: decide again, each time with one verdict at its best value, or one gate passed."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from jurygraph.decision.combiners import Combiners
from jurygraph.decision.decide import ROUNDING, compute_rewards, has_independent_rows
from jurygraph.errors import InputError, TraceMismatch
from jurygraph.explanation.terms import ExplainedTrace, ExplainedVerdict
from jurygraph.messages import format_factor, format_plain
from jurygraph.schema import Decision, FrozenModel, Question, RecordedVerdict, Trace
from jurygraph.schema.frozen_model import Number
from jurygraph.schema.plan import SUBMITTED
from jurygraph.schema.verdict import RESPONSE_GATES

_MOST_CHANGES = 10
_Key = tuple[str, ...]
_Scores = Mapping[str, float]
"""Scores to try, by question."""


class Change(FrozenModel):
    """A change of one verdict (with all its samples) or of one gate, and the reward that the decision then gives.

    `value` is None if the reward then fails, and `gain` if it fails with or without the change. `question` is that of
    the verdict, empty for a gate. `condition` has it too where several changes have the same `name`.
    """

    kind: Literal["verdict", "response gate", "reward gate"]
    name: str
    question: str = ""
    condition: str
    value: Number | None
    gain: Number | None

    @property
    def matters(self) -> bool:
        """Return True if the change leads to a higher reward, or to a reward where there is none."""
        return self.value is not None if self.gain is None else self.gain > ROUNDING


def find_changes(
    explained: ExplainedTrace,
    questions: Sequence[Question],
    read_group: Callable[[], Sequence[Trace]],
    combiners: Combiners,
) -> list[Change]:
    """Return all single changes, those that gain most first.

    Raises InputError if other responses of the group are needed, and TraceMismatch if the verdicts do not give the
    reward of the trace.
    """
    trace = explained.trace
    is_independent = has_independent_rows(explained.decision, questions, combiners)
    group = (trace,) if is_independent else read_group()
    if not is_independent:
        _require_group(trace, group, questions)
    names = [one.response_id for one in group]
    own = [verdict for one in group for verdict in one.verdicts if verdict.about == one.response_id]

    def decide(decision: Decision, key: _Key = (), scores: _Scores | None = None) -> float | None:
        verdicts = own if scores is None else [_revise(one, scores) if _key(one) == key else one for one in own]
        rewards = compute_rewards(decision, questions, names, verdicts, combiners)
        return rewards[names.index(trace.response_id)].value

    now = decide(explained.decision)
    if now != trace.reward.value:
        expected = f"has reward {format_plain(trace.reward.value)}, and its verdicts give {format_plain(now)}"
        problem = f"the trace of response {trace.response_id!r} {expected}"
        raise TraceMismatch(f"{problem} under this decision; give the plan of its run")
    groups: dict[_Key, list[ExplainedVerdict]] = defaultdict(list)
    for verdict in explained.verdicts:
        if verdict.verdict.status != "not_applicable":
            groups[_key(verdict.verdict)].append(verdict)
    labels = Counter(verdicts[0].label for verdicts in groups.values())
    changes = []
    for key, verdicts in groups.items():
        tried = [(decide(explained.decision, key, scores), scores) for scores in _options(verdicts)]
        value, scores = max(tried, key=lambda one: (one[0] is not None, one[0] or 0.0))
        first = verdicts[0]
        question = first.verdict.question
        if first.verdict.gated_by in RESPONSE_GATES:
            text = f"{key[1]} had not stopped it, and all {len(verdicts)} verdicts that it settled were at their best"
            change = Change(kind="response gate", name=key[1], condition=text, value=value, gain=_gain(value, now))
        else:
            shown = first.verdict.responses
            where = question if len(shown) != 1 or shown[0] == key[0] else f"{question} of {shown[0]}"  # of a variant
            label = first.label if labels[first.label] == 1 else f"{first.label} ({where})"
            text = f"{label} were {_describe_score(first, scores[question])}"
            change = Change(
                kind="verdict", name=first.label, question=question, condition=text, value=value, gain=_gain(value, now)
            )
        changes.append(change)
    for gate, result in zip(explained.decision.gates, trace.reward.gates, strict=True):
        rest = tuple(other for other in explained.decision.gates if other is not gate)
        value = decide(explained.decision.model_copy(update={"gates": rest}))
        limit = f"{'≤' if result.op == '>' else '≥'} {format_plain(result.threshold)}"
        text = f"the {gate.kind} gate were passed ({result.component} {limit})"
        gate_name = f"{gate.kind} gate"
        changes.append(Change(kind="reward gate", name=gate_name, condition=text, value=value, gain=_gain(value, now)))
    return sorted(changes, key=lambda one: (-(one.gain or 0.0), -(one.value or 0.0), one.condition))


def to_sentences(changes: Sequence[Change]) -> Iterator[str]:
    """Return sentences on the changes that gain most, and the number of those that gain something."""
    useful = [one for one in changes if one.matters]
    for one in useful[:_MOST_CHANGES]:
        gain = "" if one.gain is None else f" (+{format_factor(one.gain)})"
        yield f"If {one.condition}: {format_plain(one.value)}{gain}."
    if len(useful) > _MOST_CHANGES:
        yield f"... and {len(useful) - _MOST_CHANGES} more (--json)."
    yield f"{len(useful)} of {len(changes)} single changes would raise it."


def _require_group(trace: Trace, group: Sequence[Trace], questions: Sequence[Question]) -> None:
    submitted = {question.id for question in questions if question.material == SUBMITTED}  # not on variants
    compared = {name for one in trace.verdicts if one.question in submitted for name in (one.about, *one.responses)}
    if not {trace.response_id, *compared} <= {one.response_id for one in group}:
        raise InputError(
            f"the reward of response {trace.response_id!r} depends on the other responses of its group; "
            "write `trace.explain(group=traces)` with the traces of all of them"
        )


def _key(verdict: RecordedVerdict) -> _Key:
    """Return the identity of a verdict without its sample; all verdicts that one gate settled share theirs."""
    if verdict.gated_by in RESPONSE_GATES:
        return verdict.about, verdict.gated_by or ""
    return verdict.about, verdict.question, *verdict.responses


def _options(verdicts: Sequence[ExplainedVerdict]) -> Iterator[_Scores]:
    """Return the scores to try: the best for the response, and unless a gate settled them the other end.

    That may be the better one where it depends on the judge, or where a question counts in two components.
    """
    best = {one.verdict.question: float((one.direction >= 0) != one.is_mirrored) for one in verdicts}
    yield best
    if verdicts[0].verdict.gated_by not in RESPONSE_GATES:
        yield {question: 1.0 - score for question, score in best.items()}


def _revise(verdict: RecordedVerdict, scores: _Scores) -> RecordedVerdict:
    score = scores[verdict.question]
    unset = dict.fromkeys(("failure", "gated_by", "unsupported", "confidence"))
    return verdict.model_copy(update={"score": score, "met": score == 1.0, "status": "ok", **unset})


def _describe_score(one: ExplainedVerdict, score: float) -> str:
    best = int(1.0 - score if one.is_mirrored else score)
    scale = one.verdict.scale
    if one.native is not None and scale is not None:
        return f"{scale[best]:g} on a scale of {scale[0]:g} to {scale[1]:g}"
    return ("not met", "met")[best] if one.verdict.met is not None else str(best)


def _gain(value: float | None, now: float | None) -> float | None:
    return None if value is None or now is None else value - now
