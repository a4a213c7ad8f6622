"""Nearest changes that would matter: decide again, each time with one verdict at its best value, or one gate passed."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from jurygraph.decision.combiner import Combiners
from jurygraph.decision.decide import compute_rewards, is_independent
from jurygraph.decision.group_result import ROUNDING
from jurygraph.errors import InputError, TraceMismatch
from jurygraph.explanation.terms import ExplainedTrace, ExplainedVerdict
from jurygraph.messages import format_plain
from jurygraph.schema import Decision, FrozenModel, Question, RecordedVerdict, Reward, Trace
from jurygraph.schema.frozen_model import Number
from jurygraph.schema.plan import SUBMITTED
from jurygraph.schema.verdict import NO_VARIANT, RESPONSE_GATES

_Key = tuple[str, ...]
_Revision = Callable[[RecordedVerdict], RecordedVerdict]


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


@dataclass(frozen=True)
class Redecision:
    """Decides the reward of a response again, from the verdicts of its group."""

    decision: Decision
    questions: Sequence[Question]
    group: Sequence[Trace]
    combiners: Combiners

    def changes(self, explained: ExplainedTrace) -> list[Change]:
        """Return all single changes, those that gain most first.

        Raises InputError if other responses of the group are needed, and TraceMismatch if the verdicts do not give the
        reward of the trace.
        """
        trace = explained.trace
        submitted = {question.id for question in self.questions if question.material == SUBMITTED}  # not on variants
        named = ((one.about, *one.responses) for one in trace.verdicts if one.question in submitted)
        is_known = {trace.response_id}.union(*named) <= {one.response_id for one in self.group}
        if not is_known and not is_independent(self.decision, self.questions):
            raise InputError(
                f"the reward of response {trace.response_id!r} depends on the other responses of its group; "
                "write `trace.explain(group=traces)` with the traces of all of them"
            )
        now = self._decide(trace, self.decision, lambda verdict: verdict)
        if now.value != trace.reward.value:
            shown, found = format_plain(trace.reward.value), format_plain(now.value)
            problem = f"the trace of response {trace.response_id!r} has reward {shown}, and its verdicts give {found}"
            raise TraceMismatch(f"{problem} under this decision; give the plan of its run")
        changes = [*self._verdict_changes(explained), *self._gate_changes(trace)]
        return sorted(changes, key=lambda one: (-(one.gain or 0.0), -(one.value or 0.0), one.condition))

    def _decide(self, trace: Trace, decision: Decision, revise: _Revision) -> Reward:
        """Return the reward of a response after its verdicts were revised."""
        group = self.group if any(one.response_id == trace.response_id for one in self.group) else (trace,)
        own = [verdict for one in group for verdict in one.verdicts if verdict.about == one.response_id]
        names = [one.response_id for one in group]
        rewards = compute_rewards(decision, self.questions, names, list(map(revise, own)), self.combiners)
        return rewards[names.index(trace.response_id)]

    def _verdict_changes(self, explained: ExplainedTrace) -> Iterator[Change]:
        groups: dict[_Key, list[ExplainedVerdict]] = defaultdict(list)
        for one in explained.verdicts:
            if one.verdict.status != "not_applicable" and one.verdict.gated_by != NO_VARIANT:  # else none to change
                groups[_key(one.verdict)].append(one)
        labels = Counter(verdicts[0].label for verdicts in groups.values())
        for key, verdicts in groups.items():
            first = verdicts[0]
            label = first.label if labels[first.label] == 1 else f"{first.label} ({_describe_key(key)})"
            gate = key[1] if first.verdict.gated_by in RESPONSE_GATES else None
            options = [{one.verdict.question: _best_score(one) for one in verdicts}]
            if gate is None:  # the other end may be the best, where it depends on the judge or counts in two components
                options.append({question: 1.0 - score for question, score in options[0].items()})
            rewards = [self._decide(explained.trace, self.decision, _revision(key, one)).value for one in options]
            value, best = max(zip(rewards, options, strict=True), key=lambda one: (one[0] is not None, one[0] or 0.0))
            yield Change(
                kind="response gate" if gate else "verdict",
                name=gate or first.label,
                question="" if gate else first.verdict.question,
                condition=_describe_gate(gate, len(verdicts)) if gate else _describe_best(first, label, *best.values()),
                value=value,
                gain=_gain(explained.trace.reward, value),
            )

    def _gate_changes(self, trace: Trace) -> Iterator[Change]:
        for gate, result in zip(self.decision.gates, trace.reward.gates, strict=True):
            others = tuple(other for other in self.decision.gates if other is not gate)
            opened = self.decision.model_copy(update={"gates": others})
            value = self._decide(trace, opened, lambda verdict: verdict).value
            limit = f"{'≤' if result.op == '>' else '≥'} {format_plain(result.threshold)}"
            yield Change(
                kind="reward gate",
                name=f"{gate.kind} gate",
                condition=f"the {gate.kind} gate were passed ({result.component} {limit})",
                value=value,
                gain=_gain(trace.reward, value),
            )


def _key(verdict: RecordedVerdict) -> _Key:
    """Return the identity of a verdict without its sample; all verdicts that one gate settled share theirs."""
    if verdict.gated_by in RESPONSE_GATES:
        return verdict.about, verdict.gated_by or ""
    return verdict.about, verdict.question, *verdict.responses


def _describe_key(key: _Key) -> str:
    """Return the question of a verdict, and the variant that it is about if it is not about the response itself."""
    about, question, *responses = key
    return f"{question} of {responses[0]}" if len(responses) == 1 and responses[0] != about else question


def _best_score(one: ExplainedVerdict) -> float:
    """Return the score that is best for the response of the verdict, which may be the other one of a pair."""
    best = 0.0 if one.direction < 0 else 1.0
    return 1.0 - best if one.is_mirrored else best


def _revision(key: _Key, best: Mapping[str, float]) -> _Revision:
    """Return a function that gives verdicts of this key the scores in `best`, by question; others it leaves alone."""

    def revise(verdict: RecordedVerdict) -> RecordedVerdict:
        if _key(verdict) != key:
            return verdict
        score = best[verdict.question]
        fields = {"score": score, "met": score == 1.0, "status": "ok", "failure": None, "gated_by": None}
        return verdict.model_copy(update={**fields, "confidence": None})

    return revise


def _gain(reward: Reward, value: float | None) -> float | None:
    return None if value is None or reward.value is None else value - reward.value


def _describe_best(one: ExplainedVerdict, label: str, score: float) -> str:
    best = int(1.0 - score if one.is_mirrored else score)
    if one.verdict.met is not None and one.native is None:
        return f"{label} were {'met' if best else 'not met'}"
    scale = one.verdict.scale
    if one.native is None or scale is None:
        return f"{label} were {best}"
    return f"{label} were {scale[best]:g} on a scale of {scale[0]:g} to {scale[1]:g}"


def _describe_gate(gate: str, verdicts: int) -> str:
    return f"{gate} had not stopped it, and all {verdicts} verdicts that it settled were at their best"
