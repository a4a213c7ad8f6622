"""The results of evaluators and derivers, verdicts and material, with their evidence, calls, gates and calibration."""

from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple, Self, get_args

from pydantic import Field, JsonValue, StringConstraints, model_validator

from jurygraph.schema.conversation import OMITTED_IF_EMPTY, OMITTED_IF_NONE
from jurygraph.schema.frozen_model import (
    EMPTY_OBJECT,
    Count,
    FrozenModel,
    Id,
    JsonObject,
    LongId,
    Number,
    NumberRange,
    PositiveInt,
    StoredModel,
    StrictBool,
    UnitInterval,
    digest_of,
)
from jurygraph.schema.task import Response

CalibrationMethod = Literal["isotonic", "platt"]


class ScoreCalibration(StoredModel):
    """A map from a judge's score to the mean label of people, linear between knots and constant outside of them.

    `scores` rise, and their `calibrated` values do not fall. `labels` is the number of responses that it was fitted to.
    """

    format: Literal["jurygraph-calibration/1"] = "jurygraph-calibration/1"
    method: CalibrationMethod
    labels: PositiveInt
    scores: tuple[UnitInterval, ...] = Field(min_length=1, max_length=1000)
    calibrated: tuple[UnitInterval, ...]

    @model_validator(mode="after")
    def _check_knots(self) -> Self:
        if len(self.calibrated) != len(self.scores):
            raise ValueError(
                f"`calibrated` has {len(self.calibrated)} values for {len(self.scores)} scores; give each one"
            )
        if any(left >= right for left, right in pairwise(self.scores)):
            raise ValueError("`scores` do not rise; write them from low to high, each once")
        if any(left > right for left, right in pairwise(self.calibrated)):
            raise ValueError("`calibrated` falls; a higher score never means less")
        return self


Layer = Literal["fact", "check", "model", "residual", "human"]
VerdictStatus = Literal["ok", "abstained", "failed", "not_applicable"]
FailureCause = Literal["response", "infrastructure", "evaluator"]
ResponseGate = Literal[
    "empty-response", "punctuation-only", "bare-opener", "reference-copy", "addresses-grader"
]
RESPONSE_GATES: tuple[ResponseGate, ...] = get_args(ResponseGate)
UnsupportedTreatment = Literal["worst-case", "tie", "stands"]
"""How a finding counts that needs a quotation from the response and has none."""
GROUP_OF_ONE_GATE_NAME = "group-of-one"
GATED_LAYERS = ("model", "residual")
"""Layers whose questions get their verdict from a gate that stops a response."""
CODE_LAYERS = ("fact", "check")
"""Layers whose evaluators abstain only where a task lacks what they need, and not because they cannot tell."""
TIME_LIMIT_FAILURE_KIND = "time-limit"
"""The kind of failure of a call that ran past its time limit."""
NO_VARIANT_GATE = "no-variant"
"""Marks questions about the variants of a response of which none could be made: they do not apply."""
NO_TURN_GATE = "no-turn"
"""Marks questions about the turns of a conversation in which an assistant says nothing: they do not apply."""
EMPTY_TURN_GATE = "empty-turn"
"""Marks questions about an empty turn of a conversation that has others: no merit is in it, and no fault. A merit
counts 0, so that silence is no way around a hard turn; a fault leaves the turn out, so that silence dilutes none."""
MISSING_FIELD_GATE = "missing-field"
"""Marks questions about a task that lacks what their evaluator needs, where the config leaves such tasks out."""


MET_THRESHOLD = 0.5
"""The lowest score at which a criterion counts as met, and as found in a response, without an explicit decision."""


class Failure(FrozenModel):
    """The reason why a judgement is missing.

    The cause is `response` if the response may have provoked it, `evaluator` if the code of an evaluator or deriver
    raised an exception or returned something else than it should, and else `infrastructure`.
    """

    cause: FailureCause
    kind: Id
    message: str = ""

    @property
    def is_transient(self) -> bool:
        """True if it may not happen again: it is not of the response, or a time limit, which depends on the machine."""
        return self.cause != "response" or self.kind == TIME_LIMIT_FAILURE_KIND

    def describe_cause(self, has_model_calls: bool) -> str:
        """Return what failed in words; where a model was asked, it is its reply that could not be used."""
        # past a time limit is the code that read it
        is_unusable_reply = has_model_calls and not self.is_transient
        return "unusable reply" if is_unusable_reply else f"{self.cause} failure"


class Evidence(FrozenModel):
    """A quotation, its offsets in characters, and whether it was found there.

    `of` is the place in derived data, as a JSONPath, that the quotation supports. `message` is the index of the message
    that has it, in a conversation.
    """

    quote: str
    start: Count | None = None
    end: Count | None = None
    source: str = "response"
    verified: StrictBool = False
    of: str | None = None
    message: Count | None = OMITTED_IF_NONE


class ExampleUse(FrozenModel):
    """An example from a reviewer's history, shown to a judge, or `dropped` for the reason given.

    `fingerprint` is the digest of the whole example, which itself stays in the history.
    """

    item: LongId
    reviewer: Id
    score: Number
    fingerprint: str
    dropped: str | None = None


class Swap(FrozenModel):
    """The scores of a pair of texts in the `given` order and with the two `swapped`: score = (given + 1 - swapped) / 2.

    `call` is the one in the swapped order.
    """

    given: UnitInterval
    swapped: UnitInterval
    call: str | None = None


class CallUse(FrozenModel):
    """A model call that was made for a verdict or material, and its purpose: a short name, never text of a response.

    It is `judge` or `derive`, a node of a graph, or named by the author; a `repair` is of the call before it.
    """

    id: Id
    purpose: Annotated[str, StringConstraints(min_length=1, max_length=64)]


class Step(FrozenModel):
    """A step of a graph that is an evaluator: the name of its node, and its duration in seconds, None if unfinished."""

    name: Id
    duration: Number | None = None


class Verdict(FrozenModel):
    """One judgement as an evaluator returns it: a score in [0, 1], or the reason why there is none.

    `score` is a number exactly if `status` is `ok`. A question is `not_applicable` if its evaluator returns that, if
    its `when` skipped it, or if there is nothing to compare with. `native` is the judge's own value, on `scale`. `call`
    is the id of the model call whose reply became the verdict. `examples` are those chosen for the judge, shown or
    dropped. `swap` holds the scores in both orders of a pair that was judged in both. `unsupported` marks a finding
    for which the model quoted nothing from the response, and says how it counts (`SafetyConfig.evidence`).
    """

    score: UnitInterval | None = None
    met: StrictBool | None = None
    native: StrictBool | Number | str | None = None
    scale: NumberRange | None = None
    confidence: UnitInterval | None = None
    status: VerdictStatus = "ok"
    failure: Failure | None = None
    reason: str = ""
    evidence: tuple[Evidence, ...] = ()
    call: str | None = None
    examples: tuple[ExampleUse, ...] = ()
    swap: Swap | None = None
    unsupported: UnsupportedTreatment | None = None

    @classmethod
    def _read_arguments(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments with a True or False as `score`, which code may give, as 1 or 0."""
        score = fields.get("score")
        return {**fields, "score": float(score)} if isinstance(score, bool) else fields

    @model_validator(mode="after")
    def _check_score_and_failure(self) -> Self:
        if (self.status == "ok") != (self.score is not None):
            if self.score is None:
                raise ValueError(
                    "`score` is missing; give one, or return Verdict.abstain, .fail or .not_applicable"
                )
            raise ValueError(
                f"`score` is {self.score:g}; leave it out where the status is {self.status}"
            )
        if self.status == "failed" and self.failure is None:
            raise ValueError("a failed verdict needs a `failure`")
        return self

    @property
    def counts_as_met(self) -> bool:
        """True if the judge says that it is met; without an answer of its own, if the score is 0.5 or more."""
        if self.met is not None:
            return self.met
        return self.score is not None and self.score >= MET_THRESHOLD

    @property
    def is_worst_case(self) -> bool:
        """True if it counts as the worst case, in whatever direction its score counts."""
        return self.unsupported == "worst-case"

    @property
    def is_binary_verdict(self) -> bool:
        """True if it only says whether something is met, with what probability: no grade, and no tie."""
        is_numeric_grade = isinstance(self.native, int | float) and not isinstance(
            self.native, bool
        )
        return (
            self.met is not None
            and self.score is not None
            and self.scale is None
            and not is_numeric_grade
            and self.met == (self.score >= MET_THRESHOLD)
        )

    @classmethod
    def abstain(cls, reason: str) -> Self:
        """Return a verdict of a judge that cannot decide: the question counts as unjudged."""
        return cls(status="abstained", reason=reason)

    @classmethod
    def not_applicable(cls, reason: str) -> Self:
        """Return a verdict on a question that has no meaning here: it counts like one that a `when` skipped."""
        return cls(status="not_applicable", reason=reason)

    @classmethod
    def fail(cls, kind: str, message: str, cause: FailureCause = "infrastructure") -> Self:
        """Return a verdict for a judgement that could not be made."""
        return cls(
            status="failed",
            failure=Failure(cause=cause, kind=kind, message=message),
            reason=message,
        )


class VerdictKey(NamedTuple):
    """The identity of a verdict in its group: question, response it is about, responses as shown, sample and judge.

    `turn` is the index of the message, where the question is about turns.
    """

    question: str
    about: str
    responses: tuple[str, ...]
    sample: int
    judge: str | None = None
    turn: int | None = None

    @property
    def sort_key(self) -> tuple[str, str, int, tuple[str, ...], str, int]:
        """Return the key of the canonical order: each judge's samples on a turn follow each other, as in the table."""
        turn = -1 if self.turn is None else self.turn
        return self.question, self.about, turn, self.responses, self.judge or "", self.sample

    @property
    def judged(self) -> tuple[str, str, tuple[str, ...], int | None]:
        """Return what is judged: the key without the judge and the sample."""
        return self.question, self.about, self.responses, self.turn


class VerdictIdentity(FrozenModel):
    """The identity of a recorded verdict: its question, its evaluator, and the responses judged.

    `about` is the id of the response that the verdict belongs to. `responses` are the ids of all responses shown, in
    order; empty if the evaluator was not called. `judge` is the name of the model, one of several. `turn` is the index
    of the message that a question about turns is about; the evaluator saw the conversation up to this message.
    """

    question: str = ""
    evaluator: str = Field(default="", repr=False)
    version: str = Field(default="", repr=False)
    layer: Layer = Field(default="check", repr=False)
    subject: str = Field(default="", repr=False)
    stakeholder: str | None = None
    reviewer: str | None = None
    about: str = ""
    responses: tuple[str, ...] = Field(default=(), repr=False)
    sample: Count = 0
    judge: Id | None = None
    turn: Count | None = OMITTED_IF_NONE

    @property
    def key(self) -> VerdictKey:
        return VerdictKey(
            self.question, self.about, self.responses, self.sample, self.judge, self.turn
        )


class RecordedVerdict(Verdict, VerdictIdentity):
    """A verdict as traces contain it: the evaluator's judgement, with the fields that jurygraph adds.

    `gated_by` names what kept the evaluator from being called: a response gate, the question of the evaluator's `when`,
    `group-of-one` where a comparison has no second response, `no-variant` and `no-turn` where there is no variant or
    turn to judge, or `missing-field` where the task lacks what the evaluator needs. A
    `superseded` verdict does not count, because another judge answered after it (`Escalation`). `calls` are all model
    calls made for it, in the order of their requests, `steps` those of a graph, and `lookups` the ids of its calls of
    tools: evidence from the third has the source `tool:3`.
    """

    gated_by: str | None = None
    superseded: StrictBool = False
    calls: tuple[CallUse, ...] = ()
    steps: tuple[Step, ...] = ()
    lookups: tuple[Id, ...] = OMITTED_IF_EMPTY

    @property
    def calls_with_purpose(self) -> list[CallUse]:
        """The calls, with a purpose of its own for that in the swapped order."""
        purposes = {} if self.swap is None else {self.swap.call: "swapped order"}
        return [
            use.model_copy(update={"purpose": purposes.get(use.id, use.purpose)})
            for use in self.calls
        ]

    @property
    def needs_quotation(self) -> bool:
        """True for a finding of a model that a quotation from the response has to bear out, whether it has one or not.

        What a judge quotes where it finds a criterion not met needs none: then the verdict has no number of its own.
        """
        if self.unsupported is not None:
            return True
        compares_responses = self.responses != (self.about,)
        has_value = self.native is not None and not isinstance(self.native, str)
        if self.met is False and not has_value and not compares_responses:
            return False
        return self.layer in GATED_LAYERS and any(item.verified for item in self.evidence)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the verdict without the durations of its steps."""
        return digest_of(self.model_dump(mode="json", exclude={"steps": {"__all__": {"duration"}}}))


class Variant(FrozenModel):
    """A response made from another one by a recorded edit."""

    response: Response
    edit: JsonValue = None


class Material(FrozenModel):
    """The result of a deriver for one response: structured data or variants. Never a score.

    `note` says how it was made, for example what was left out. jurygraph sets `calls` and `lookups`, as for a verdict.
    """

    name: Id
    response: str = ""
    status: Literal["ok", "failed"] = "ok"
    data: JsonValue = None
    variants: tuple[Variant, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    failure: Failure | None = None
    note: str = ""
    call: str | None = None
    calls: tuple[CallUse, ...] = ()
    lookups: tuple[Id, ...] = OMITTED_IF_EMPTY

    @model_validator(mode="after")
    def _check_failure_status(self) -> Self:
        if (self.status == "failed") != (self.failure is not None):
            raise ValueError("material has a `failure` exactly when its status is failed")
        return self


def has_transient_failure(result: Verdict | Material) -> bool:
    """Return whether infrastructure failed, so that the result is worth requesting again."""
    return result.failure is not None and result.failure.is_transient


class Call(FrozenModel):
    """One request to a model, as sent and billed. `cost` is None if the price is unknown.

    With `cache_hit` nothing was billed; `cost` is the original one. A call without a reply has a `fault`: the kind of
    the last one, or `cut-off` if the answer was final before a reply came (its `attempts` are not known then). It may
    have been billed.
    """

    id: Id
    provider: str
    model: str
    served: str | None = None
    endpoint: str | None = None
    parameters: JsonObject = EMPTY_OBJECT
    prompt: str | None = None
    prompt_version: str | None = None
    tokens_in: Count | None = None
    tokens_out: Count | None = None
    cost: Number | None = None
    latency: Number | None = None
    cache_hit: StrictBool = False
    attempts: Count = 1
    fault: Id | None = None
