"""The results: a reward with all its terms, a trace with everything that led to it, and statistics of a group."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, Literal

from pydantic import Field, computed_field

from jurygraph.display import ReprParts
from jurygraph.errors import ConfigError, TraceMismatch
from jurygraph.schema.config import JudgePurpose, PurposeConfig
from jurygraph.schema.conversation import OMITTED_IF_EMPTY
from jurygraph.schema.frozen_model import (
    EMPTY_OBJECT,
    Count,
    FrozenModel,
    JsonFields,
    JsonObject,
    Number,
    NumberRange,
    StoredModel,
    StrictBool,
    UnitInterval,
    digest_of,
)
from jurygraph.schema.lookup import Lookup
from jurygraph.schema.plan import NamedGate, Plan, Question
from jurygraph.schema.verdict import Call, Material, RecordedVerdict


class Term(FrozenModel):
    """One summand of a reward: the component's value times its signed weight."""

    name: str
    weight: Number
    value: Number | None
    contribution: Number | None


class Counts(FrozenModel):
    """The numbers of verdicts by outcome; the four add up to `total`."""

    judged: Count = 0
    abstained: Count = 0
    failed: Count = 0
    not_applicable: Count = 0

    @property
    def total(self) -> int:
        return self.judged + self.abstained + self.failed + self.not_applicable


class Adjustment(FrozenModel):
    """A change of the reward by a gate, the scale or the clip, in the order applied."""

    name: str
    before: Number
    after: Number


class GateResult(NamedGate):
    """The effect of a reward gate: the component (or criterion) that it reads, and the reward before and after it.

    The gate acts if the component's `value`, in [0, 1], is below or above (`op`) its `threshold`; `value` is None if
    the component is not applicable. If missing verdicts could change the component, `is_worst_case` is true, and
    `value` is the possible one that leads to the lowest reward; of a must, if they could break it.
    """

    kind: Literal["format", "precision", "repetition", "must"]
    component: str
    value: UnitInterval | None
    op: Literal["<", ">"]
    threshold: UnitInterval
    before: Number
    after: Number
    is_worst_case: StrictBool = False

    @property
    def is_unjudged_must(self) -> bool:
        return self.kind == "must" and self.is_worst_case


class Reward(FrozenModel):
    """The reward of a response: a pure function of the decision and the group's verdicts.

    `value` is None if `status` is failed. `partial` is the value of the judged part alone, and `range` bounds the
    values that the unjudged part could lead to. `notes` are the reasons for a degraded or failed reward. By component,
    `parts` are its parts, and `diagnostics` are numbers about it that have no effect. `gates` are all reward gates of
    the decision, also those that changed nothing; `adjustments` are the steps that changed the reward.
    """

    value: Number | None
    status: Literal["ok", "degraded", "failed"]
    partial: Number | None = Field(repr=False)
    coverage: UnitInterval
    range: NumberRange | None
    components: dict[str, Number | None]
    terms: tuple[Term, ...] = Field(repr=False)
    counts: Counts = Field(repr=False)
    parts: dict[str, dict[str, Number]] = EMPTY_OBJECT
    diagnostics: dict[str, dict[str, Number]] = EMPTY_OBJECT
    adjustments: tuple[Adjustment, ...] = ()
    gates: tuple[GateResult, ...] = ()
    weights_fixed: StrictBool = True
    notes: tuple[str, ...] = ()


class Purpose(FrozenModel):
    """The purpose of a trace's reward, if not training.

    `judge` is the model used, or several by commas; `reward_judges` gave the rewards in training; `same_judge` is true
    if it is one of them.
    """

    kind: JudgePurpose
    judge: str | None
    reward_judges: tuple[str, ...]
    same_judge: StrictBool

    @property
    def description(self) -> str:
        reward_judges = ", ".join(self.reward_judges) or "no model"
        judge = self.judge or "no model"
        same_judge_note = (
            ", which is one of them (allowed by the config)" if self.same_judge else ""
        )
        return f"{self.kind} of what was trained on rewards of {reward_judges}, by {judge}{same_judge_note}"


def determine_purpose(
    config: PurposeConfig, judges: Iterable[str], served: Iterable[str] = ()
) -> Purpose | None:
    """Return the purpose of rewards by these models (none at all: no model), whose replies named `served`.

    None for training.
    """
    if config.kind == "reward":
        return None
    reward_judges = config.reward_judges or ()
    names = list(dict.fromkeys(judges))
    is_same_judge = not {_normalise_model_name(name) for name in (*names, *served)}.isdisjoint(
        map(_normalise_model_name, reward_judges)
    )
    judge = ", ".join(names) or None
    return Purpose(
        kind=config.kind, judge=judge, reward_judges=reward_judges, same_judge=is_same_judge
    )


def permitted_purpose(
    config: PurposeConfig, judges: Iterable[str], served: Iterable[str] = ()
) -> Purpose | None:
    """Return the purpose of rewards as `determine_purpose` does.

    Raises ConfigError where the judge is one of those that gave the rewards in training, and that is refused.
    """
    purpose = determine_purpose(config, judges, served)
    if purpose is not None and purpose.same_judge and config.same_judge == "refuse":
        raise ConfigError(
            f"purpose.reward_judges: {purpose.judge!r} (or who answers for it) would evaluate what was trained on its "
            "own rewards; name another model, or set same_judge: allow, which every trace then tells"
        )
    return purpose


def _normalise_model_name(name: str) -> str:
    """Return the last part of a model's name, such as `qwen3-8b` of `hosted/Qwen3-8B`."""
    return name.casefold().rpartition("#")[2].rpartition("/")[2]


class Trace(StoredModel):
    """The reward of one response, and everything that led to it. `purpose` is set if it is not for training.

    `group` is the digest of the ids and contents of the group's responses. `digest` covers all fields except
    `previous`, which chains the records of a run, the latencies of calls and the durations of steps and lookups. A
    trace with a digest that does not match its content is refused with `TraceMismatch`.
    """

    task_id: str
    response_id: str
    agent: str | None = None
    group: str
    labels: JsonObject = EMPTY_OBJECT
    plan_digest: str
    reward: Reward
    verdicts: tuple[RecordedVerdict, ...]
    calls: tuple[Call, ...] = ()
    lookups: tuple[Lookup, ...] = OMITTED_IF_EMPTY
    material: tuple[Material, ...] = ()
    statistics: JsonObject = EMPTY_OBJECT
    purpose: Purpose | None = None
    previous: str | None = None
    plan: Plan | None = Field(default=None, exclude=True, repr=False)

    def _repr_parts(self) -> ReprParts:
        yield from (("task", self.task_id), ("response", self.response_id))
        yield from (("reward", self.reward.value), ("status", self.reward.status))
        yield from (("components", self.reward.components), ("verdicts", len(self.verdicts)))

    def _repr_html_(self) -> str | None:
        """Return what the reward lost and why; None without its plan, which says what was possible."""
        if self.plan is None or self.plan.digest != self.plan_digest:
            return None
        html: str = self.explain()._repr_html_()
        return html

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def digest(self) -> str:
        """SHA-256 of the trace's content."""
        content = self.model_dump(mode="json", exclude={"digest", "previous"})
        for call in content["calls"]:
            del call["latency"]
        for lookup in content.get("lookups", ()):
            del lookup["duration"]
        for verdict in content["verdicts"]:
            for step in verdict["steps"]:
                del step["duration"]
        return digest_of(content)

    def to_dict(self) -> JsonFields:
        """Return the JSON object that `jurygraph show --json` prints for a stored trace: all fields except the plan."""
        return self.model_dump(mode="json")

    @property
    def gated(self) -> Counter[str]:
        """Return the numbers of verdicts with a score but no judgement, by what set it; `counts.judged` has them."""
        scored = [verdict for verdict in self.verdicts if verdict.status == "ok"]
        return Counter(verdict.gated_by for verdict in scored if verdict.gated_by is not None)

    def explain(self, plan: Plan | None = None, *, group: Sequence["Trace"] = ()) -> Any:
        """Return the `Explanation` of the reward; `jurygraph.explain` describes the arguments and errors."""
        # by its public name: this room imports nothing above
        explain = import_module("jurygraph").explain
        return explain(self, plan, group=group)

    def _digest_mismatch(self, stored_digest: str) -> Exception:
        return TraceMismatch(
            f"trace of response {self.response_id!r} has digest {self.digest}, not {stored_digest}"
        )


def group_verdicts_by_response(
    questions: Sequence[Question], responses: Sequence[str], verdicts: Sequence[RecordedVerdict]
) -> dict[str, list[RecordedVerdict]]:
    """Return each response's verdicts, in their order; one on an unordered pair belongs to both responses."""
    unordered_pair_question_ids = {q.id for q in questions if q.is_about_unordered_pairs}
    verdicts_by_response: dict[str, list[RecordedVerdict]] = {name: [] for name in responses}
    for verdict in verdicts:
        verdicts_by_response[verdict.about].append(verdict)
        if verdict.question in unordered_pair_question_ids and verdict.responses:
            verdicts_by_response[verdict.responses[1]].append(verdict)
    return verdicts_by_response


def question_score_statistics(
    questions: Sequence[Question], scored: Iterable[tuple[str, float | None]]
) -> JsonFields:
    """Return, for every question, the number of judged verdicts and the mean, lowest and highest score in the group.

    `scored` gives the question id and the score of every verdict of the group; the score is None where there is none.
    A question with equal lowest and highest scores does not separate the responses of this group.
    """
    scores: dict[str, list[float]] = defaultdict(list)
    for question, score in scored:
        if score is not None:
            scores[question].append(score)
    statistics: JsonFields = {
        q.id: {"judged": 0, "mean": None, "low": None, "high": None} for q in questions
    }
    for name, values in scores.items():
        values.sort()
        total = 0.0
        for value in values:  # as `aggregation.total` adds, which is slower for a few numbers
            total += value
        statistics[name] = {
            "judged": len(values),
            "mean": total / len(values),
            "low": values[0],
            "high": values[-1],
        }
    return {"questions": statistics}
