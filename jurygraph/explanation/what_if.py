"""Nearest changes that would matter: decide again, each time with one verdict at its best value, or one gate passed."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from jurygraph.decision.combiners import Combiners
from jurygraph.decision.decide import ROUNDING, compute_rewards, has_independent_rows
from jurygraph.errors import InputError, TraceMismatch
from jurygraph.explanation.terms import ExplainedTrace, ExplainedVerdict
from jurygraph.messages import format_plain
from jurygraph.schema import Decision, FrozenModel, Question, RecordedVerdict, Reward, Trace
from jurygraph.schema.frozen_model import Number
from jurygraph.schema.plan import SUBMITTED
from jurygraph.schema.verdict import RESPONSE_GATES

_Key = tuple[str, ...]
_Revision = Callable[[RecordedVerdict], Mapping[str, Any]]
"""Returns the fields of a verdict that change."""

_Decided = tuple[float | None, Mapping[str, float]]
"""A reward, and the scores by question that lead to it."""


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
    """Decides the reward of a response again, from its verdicts, or those of its group if these can change it."""

    explained: ExplainedTrace
    questions: Sequence[Question]
    read_group: Callable[[], Sequence[Trace]]
    combiners: Combiners

    def changes(self) -> list[Change]:
        """Return all single changes, those that gain most first.

        Raises InputError if other responses of the group are needed, and TraceMismatch if the verdicts do not give the
        reward of the trace.
        """
        trace = self.explained.trace
        self._require_group()
        groups = self._verdicts_by_key()
        options = [(key, best) for key, verdicts in groups.items() for best in _options(verdicts)]
        now, *rewards = self._decide(self.explained.decision, [_keep, *(_revision(*option) for option in options)])
        if now != trace.reward.value:
            shown = format_plain(trace.reward.value)
            found = format_plain(now)
            problem = f"the trace of response {trace.response_id!r} has reward {shown}, and its verdicts give {found}"
            raise TraceMismatch(f"{problem} under this decision; give the plan of its run")
        decided: dict[_Key, list[_Decided]] = defaultdict(list)
        for (key, best), reward in zip(options, rewards, strict=True):
            decided[key].append((reward, best))
        changes = [*self._verdict_changes(groups, decided), *self._gate_changes()]
        return sorted(changes, key=lambda one: (-(one.gain or 0.0), -(one.value or 0.0), one.condition))

    @cached_property
    def _is_independent(self) -> bool:
        return has_independent_rows(self.explained.decision, self.questions, self.combiners)

    @cached_property
    def _group(self) -> Sequence[Trace]:
        return (self.explained.trace,) if self._is_independent else self.read_group()

    def _require_group(self) -> None:
        if self._is_independent:
            return
        trace = self.explained.trace
        submitted = {question.id for question in self.questions if question.material == SUBMITTED}  # not on variants
        named = ((one.about, *one.responses) for one in trace.verdicts if one.question in submitted)
        if not {trace.response_id}.union(*named) <= {one.response_id for one in self._group}:
            raise InputError(
                f"the reward of response {trace.response_id!r} depends on the other responses of its group; "
                "write `trace.explain(group=traces)` with the traces of all of them"
            )

    def _decide(self, decision: Decision, revisions: Sequence[_Revision]) -> list[float | None]:
        own = [verdict for one in self._group for verdict in one.verdicts if verdict.about == one.response_id]
        names = [one.response_id for one in self._group]
        place = names.index(self.explained.trace.response_id)
        decided = []
        for revise in revisions:
            revised = [one.model_copy(update=revise(one)) for one in own]
            decided.append(compute_rewards(decision, self.questions, names, revised, self.combiners)[place].value)
        return decided

    def _verdicts_by_key(self) -> dict[_Key, list[ExplainedVerdict]]:
        groups: dict[_Key, list[ExplainedVerdict]] = defaultdict(list)
        for one in self.explained.verdicts:
            if one.verdict.status != "not_applicable":
                groups[_key(one.verdict)].append(one)
        return groups

    def _verdict_changes(
        self, groups: Mapping[_Key, Sequence[ExplainedVerdict]], decided: Mapping[_Key, Sequence[_Decided]]
    ) -> Iterator[Change]:
        labels = Counter(verdicts[0].label for verdicts in groups.values())
        for key, verdicts in groups.items():
            first = verdicts[0]
            label = first.label if labels[first.label] == 1 else f"{first.label} ({_describe_key(key)})"
            gate = key[1] if first.verdict.gated_by in RESPONSE_GATES else None
            value, best = max(decided[key], key=lambda one: (one[0] is not None, one[0] or 0.0))
            yield Change(
                kind="response gate" if gate else "verdict",
                name=gate or first.label,
                question="" if gate else first.verdict.question,
                condition=_describe_gate(gate, len(verdicts)) if gate else _describe_best(first, label, *best.values()),
                value=value,
                gain=_gain(self.explained.trace.reward, value),
            )

    def _gate_changes(self) -> Iterator[Change]:
        reward = self.explained.trace.reward
        decision = self.explained.decision
        for gate, result in zip(decision.gates, reward.gates, strict=True):
            others = tuple(other for other in decision.gates if other is not gate)
            (value,) = self._decide(decision.model_copy(update={"gates": others}), [_keep])
            limit = f"{'≤' if result.op == '>' else '≥'} {format_plain(result.threshold)}"
            yield Change(
                kind="reward gate",
                name=f"{gate.kind} gate",
                condition=f"the {gate.kind} gate were passed ({result.component} {limit})",
                value=value,
                gain=_gain(reward, value),
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


def _options(verdicts: Sequence[ExplainedVerdict]) -> Iterator[Mapping[str, float]]:
    """Return the scores to try by question: the best, and unless a gate settled them the other end.

    That may be the better one where it depends on the judge, or where a question counts in two components.
    """
    best = {one.verdict.question: _best_score(one) for one in verdicts}
    yield best
    if verdicts[0].verdict.gated_by not in RESPONSE_GATES:
        yield {question: 1.0 - score for question, score in best.items()}


def _revision(key: _Key, best: Mapping[str, float]) -> _Revision:
    """Return a revision that gives verdicts of this key the scores in `best`, by question; others it leaves alone."""

    def revise(verdict: RecordedVerdict) -> Mapping[str, Any]:
        if _key(verdict) != key:
            return {}
        score = best[verdict.question]
        fields = {
            "score": score,
            "met": score == 1.0,
            "status": "ok",
            "failure": None,
            "gated_by": None,
            "unsupported": None,
        }
        return {**fields, "confidence": None}

    return revise


def _keep(verdict: RecordedVerdict) -> Mapping[str, Any]:
    return {}


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
