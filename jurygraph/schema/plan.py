"""Plans: everything that is fixed before a response is seen, namely the questions and how their answers count."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    field_validator,
    model_validator,
)

from jurygraph.display import ReprParts
from jurygraph.schema.conversation import (
    OMITTED_IF_EMPTY,
    OMITTED_IF_NONE,
    VisiblePart,
    is_empty_value,
)
from jurygraph.schema.frozen_model import (
    EMPTY_OBJECT,
    FrozenModel,
    Id,
    JsonFields,
    JsonObject,
    LongId,
    Number,
    NumberRange,
    PositiveInt,
    PositiveNumber,
    ReadOnlyFields,
    StrictBool,
    UnitInterval,
    digest_of,
)
from jurygraph.schema.lookup import ToolSpec
from jurygraph.schema.task import Audience, Profiles, Rubric, Task, TaskView, apply_profiles
from jurygraph.schema.verdict import (
    GATED_LAYERS,
    MET_THRESHOLD,
    Call,
    Layer,
    ResponseGate,
    ScoreCalibration,
)

EvaluatorScope = Literal["response", "pair", "group"]
QuestionScope = EvaluatorScope | Literal["turn"]
"""The scopes of evaluators, and `turn`: the config asks an evaluator of responses about each turn of an assistant."""
TurnReduction = Literal["mean", "min", "last", "first_failure"]
"""The value of a response from those of its turns: their mean, the worst of them, that of the last turn, or the share
of turns before the first one that is not met."""
PairOrder = Literal["ordered", "unordered"]
GraphBranchName = Literal["checks", "stakeholders", "criteria", "specialists", "judges"]
ReductionMethod = Literal["mean", "median", "min", "max", "majority"]
SkippedQuestionTreatment = Literal["left-out", "zero"]
WelfareCombinerName = Literal["stakeholders", "egalitarian", "nash"]
WELFARE_COMBINER_NAMES: tuple[str, ...] = get_args(WelfareCombinerName)
"""Names of the combiners that make one number of stakeholders' utilities."""
VoteRule = Literal["discard-first", "all-seats"]
"""The seats of a majority vote: without those that discarded or abstaining votes leave, or all that were requested."""
SUBMITTED_MATERIAL_NAME = "submitted"
"""Value of `Question.material` where the submitted responses are judged, not variants."""


class Condition(FrozenModel):
    """Ask a question only where another one's verdicts about the same response pass a threshold."""

    question: LongId
    op: Literal[">=", ">", "<=", "<"] = ">="
    threshold: Number
    reduce: Literal["mean", "min", "max", "median"] = "mean"
    on: Literal["score", "native"] = "score"


def _wrap_name_in_list(names: object) -> object:
    return [names] if isinstance(names, str) else names


class Escalation(FrozenModel):
    """Ask the judges `first`, and the judge `then` only where they are not enough; its answers count in their place.

    They `disagree` if two of their verdicts on the same differ (on met where this is all that they say, else on the
    score), or if one is missing. They are `unsure` if a verdict is missing or lacks the quotation that it needs, or if
    its score is at most `band` from 0.5.
    """

    first: Annotated[tuple[Id, ...], BeforeValidator(_wrap_name_in_list)] = Field(min_length=1)
    then: Id
    when: Literal["disagree", "unsure"]
    band: Annotated[float, Field(strict=True, ge=0.0, le=0.5)] = 0.2

    @model_validator(mode="after")
    def _require_distinct_judges(self) -> Self:
        if self.then in self.first or len(set(self.first)) < len(self.first):
            raise ValueError("names a judge twice; `then` is another one than those of `first`")
        return self

    @property
    def judges(self) -> tuple[str, ...]:
        return tuple(sorted({*self.first, self.then}))


class Question(FrozenModel):
    """One question about every response (or turn, pair, or group) of the task.

    `view` is the digest of the TaskView that the evaluator sees. `material` names the material whose variants are
    judged instead of the submitted responses. `pairs` selects the pairs of a pair question: every ordered pair, or each
    pair once, whose verdict then counts as s for the first response and 1 - s for the second. A `standby` question is
    used only if no other question covers the same member of its audience and the same subject. `judges` are the models
    that each answer it, by their sorted names; none means the config's `model`. With `escalate` only some of them
    answer first. `sees` is the part of a conversation that is shown; None is the default of the layer. With
    `names_turn`, prompts say which message is judged: of a question about turns that shows what came before, unless it
    was planned before prompts did. One with `missing` does not apply, as its task lacks that. With a hidden
    `reference` its evaluator gets the view without the task's reference. `tools` are those that the model may call, in
    at most `max_steps` requests with results of `max_tokens`, before its verdict.
    """

    id: LongId
    evaluator: Id
    version: str
    subject: Id
    view: str
    branch: GraphBranchName = "checks"
    layer: Layer = "check"
    scope: QuestionScope = "response"
    material: Id = SUBMITTED_MATERIAL_NAME
    needs: tuple[Id, ...] = ()
    when: Condition | None = None
    pairs: PairOrder = "ordered"
    samples: PositiveInt = 1
    params: JsonObject = EMPTY_OBJECT
    standby: StrictBool = False
    judges: tuple[Id, ...] = ()
    escalate: Escalation | None = None
    sees: VisiblePart | None = OMITTED_IF_NONE
    names_turn: StrictBool = Field(default=False, exclude_if=is_empty_value)
    missing: str | None = OMITTED_IF_NONE
    reference: Literal["hidden"] | None = OMITTED_IF_NONE
    tools: tuple[ToolSpec, ...] = OMITTED_IF_EMPTY
    max_steps: PositiveInt | None = OMITTED_IF_NONE
    max_tokens: PositiveInt | None = OMITTED_IF_NONE

    @property
    def is_about_variants(self) -> bool:
        """Return whether variants are judged, and not the responses that were submitted."""
        return self.material != SUBMITTED_MATERIAL_NAME

    @property
    def is_about_unordered_pairs(self) -> bool:
        """Return whether it is asked about each pair once, and its verdict counts for both responses."""
        return self.scope == "pair" and self.pairs == "unordered"

    @property
    def shown_part(self) -> VisiblePart:
        """Return the part of a conversation that is shown: checks read the answer, and models the whole work."""
        default: VisiblePart = "without_reasoning" if self.layer in GATED_LAYERS else "last_reply"
        return self.sees or default

    @property
    def first_judges(self) -> tuple[str | None, ...]:
        """Return the judges that answer first; None means the config's `model`, or no model."""
        if self.escalate is not None:
            return self.escalate.first
        return self.judges or (None,)

    @property
    def seats(self) -> int:
        """Return the number of verdicts on one combination of responses: each judge's samples."""
        return self.samples * max(1, len(self.judges))

    def asks_for(self, judge: str | None, sample: int) -> bool:
        """Return whether a judge is to give a verdict of that number."""
        return judge in (self.judges or (None,)) and sample < self.samples

    def seat(self, judge: str | None, sample: int) -> int:
        """Return the place of a verdict among the seats; one that no judge gave has the first."""
        if judge is None:
            return sample
        return self.judges.index(judge) * self.samples + sample


class Derivation(FrozenModel):
    """The part of one deriver in a survey: it makes the material `gives` from the material that it `needs`."""

    gives: Id
    deriver: Id
    version: str
    view: str
    needs: tuple[Id, ...] = ()
    params: JsonObject = EMPTY_OBJECT
    tools: tuple[ToolSpec, ...] = OMITTED_IF_EMPTY
    max_steps: PositiveInt | None = OMITTED_IF_NONE
    max_tokens: PositiveInt | None = OMITTED_IF_NONE


class Wave(FrozenModel):
    """Work that can run at the same time: names of material to derive and ids of questions to answer."""

    materials: tuple[Id, ...] = ()
    questions: tuple[LongId, ...] = ()


class Survey(FrozenModel):
    """All questions about a task, with the material that they need. `views` are keyed by their digests.

    If a response gate in `gates` stops a response, its model and residual questions get the worst verdict with no call.
    """

    views: dict[str, TaskView]
    derivations: tuple[Derivation, ...] = ()
    questions: tuple[Question, ...]
    waves: tuple[Wave, ...]
    gates: tuple[ResponseGate, ...] = ()

    @cached_property
    def escalating_questions(self) -> tuple[Question, ...]:
        """The questions that another judge may get as well."""
        return tuple(question for question in self.questions if question.escalate is not None)

    @cached_property
    def without_texts(self) -> "SurveyWithoutTexts":
        """Surveys of tasks that differ in their texts alone share it."""
        return SurveyWithoutTexts.of(self)


class SurveyWithoutTexts(FrozenModel):
    """A survey without its texts: views are referenced by their places, so that many tasks can share one."""

    members: tuple[tuple[Audience, str | None], ...]
    derivations: tuple[Derivation, ...]
    questions: tuple[Question, ...]
    waves: tuple[Wave, ...]
    gates: tuple[ResponseGate, ...] = ()

    @classmethod
    def of(cls, survey: Survey) -> Self:
        indices = {digest: str(index) for index, digest in enumerate(survey.views)}
        members = tuple((view.audience, view.member) for view in survey.views.values())
        return cls(members=members, **_rename_views(survey, indices))

    @cached_property
    def identity_fields_by_question(self) -> Mapping[str, tuple[int, ReadOnlyFields]]:
        """Return the place of each question, by id, and the fields that all its verdicts share."""
        identities = {}
        for index, question in enumerate(self.questions):
            audience, member = self.members[int(question.view)]
            identities[question.id] = (
                index,
                get_question_identity_fields(question, audience, member),
            )
        return identities

    def with_views(self, views: Sequence[TaskView]) -> Survey:
        digests = {str(index): view.digest for index, view in enumerate(views)}
        views_by_digest = dict(zip(digests.values(), views, strict=True))
        survey = Survey(views=views_by_digest, **_rename_views(self, digests))
        # what the cached property would make again, with its digest
        vars(survey)["without_texts"] = self
        return survey


def _rename_views(survey: Survey | SurveyWithoutTexts, names: Mapping[str, str]) -> JsonFields:
    """Return the parts that a survey has with or without texts, with other names of its views."""
    derivations = [
        derivation.model_copy(update={"view": names[derivation.view]})
        for derivation in survey.derivations
    ]
    questions = [
        question.model_copy(update={"view": names[question.view]}) for question in survey.questions
    ]
    return {
        "derivations": tuple(derivations),
        "questions": tuple(questions),
        "waves": survey.waves,
        "gates": survey.gates,
    }


class ComponentInput(FrozenModel):
    """The questions whose verdicts are an input of a combiner, each with its weight.

    `reduce` folds the columns of one question (judges, samples, opponents, variants) into one value; None keeps them
    all. With `majority` this is the value of more than half of the seats that `vote` counts; without a majority the
    question counts as abstained. If it `has_judges`, verdicts that say only whether something is met vote by that, and
    a vote without a majority is the worst case, unless a missing verdict could have decided it. A verdict with a
    confidence below `min_confidence`, in [0, 1], counts as abstained as well.
    `if_skipped` says if a question that is not applicable is left out of numerator and denominator (`left-out`), or
    counts 0 (`zero`). `reviewer` is the one whom the questions predict, for a combiner that fuses judges per reviewer.
    With a `judge`, only the verdicts of this one of a question's judges count.
    `calibration` has the maps of questions whose scores are calibrated before they count; a calibrated score of 0.5 or
    more is met. `turns` says for questions about turns how a response's value follows from those of its turns, after
    `reduce` has folded the judges and samples of each turn.
    """

    questions: tuple[LongId, ...]
    weights: tuple[Number, ...]
    reduce: ReductionMethod | None = "mean"
    vote: VoteRule = "discard-first"
    has_judges: StrictBool = False
    min_confidence: UnitInterval = 0.0
    input_weight: PositiveNumber = 1.0
    if_skipped: SkippedQuestionTreatment = "left-out"
    reviewer: Id | None = None
    judge: Id | None = None
    calibration: dict[LongId, ScoreCalibration] = EMPTY_OBJECT
    turns: dict[LongId, TurnReduction] = Field(default_factory=dict, exclude_if=is_empty_value)

    @property
    def weighted_questions(self) -> Iterable[tuple[str, float]]:
        """Return the questions, each with its weight."""
        return zip(self.questions, self.weights, strict=True)

    def of_question(self, name: str) -> Self:
        """Return the input with one of its questions alone."""
        weight = self.weights[self.questions.index(name)]
        return self.model_copy(update={"questions": (name,), "weights": (weight,)})

    @property
    def signed_weight(self) -> float:
        """Return the weight of the input, negative for a penalty of a rubric."""
        return -self.input_weight if self.weights and self.weights[0] < 0 else self.input_weight


class ImplementationHolder:
    """The object behind a name in a model; it takes part in no digest, schema, comparison or pickle of that model."""

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ImplementationHolder)

    def __reduce__(self) -> tuple[Any, ...]:
        return ImplementationHolder, ()


class ComponentSpec(FrozenModel):
    """One component of the reward: its combiner, its inputs, and its signed weight.

    `direction` is -1 if a higher component means a lower reward: an unjudged cell is then filled in the opposite
    direction, for example with 1 instead of 0 as the worst case. A plan made in this process also has the combiner
    itself, as `implementation`.
    """

    name: Id
    weight: Number
    direction: Literal[1, -1] = 1
    combiner: Id
    version: str
    inputs: dict[str, ComponentInput]
    params: JsonObject = EMPTY_OBJECT
    _implementation: ImplementationHolder = PrivateAttr(default_factory=ImplementationHolder)

    @property
    def implementation(self) -> Any:
        """Return the combiner; None if the spec was read from a file or another process."""
        return self._implementation.value

    @property
    def has_prerequisites(self) -> bool:
        """Return whether a criterion depends on another one, by an edge of the rubric."""
        return bool(self.params.get("parents"))

    @property
    def questions(self) -> list[str]:
        """Return the ids of the questions of all inputs."""
        return list(chain.from_iterable(use.questions for use in self.inputs.values()))

    @property
    def met_from(self) -> float:
        """Return the score from which something is met whose judge has not decided itself, in [0, 1]."""
        met_from = self.params.get("met_from")
        return float(met_from) if isinstance(met_from, int | float) else MET_THRESHOLD

    @field_validator("inputs")
    @classmethod
    def _sort_by_name(cls, inputs: dict[str, ComponentInput]) -> dict[str, ComponentInput]:
        """Sort inputs by name, because params may refer to inputs by position and a store may reorder keys."""
        return dict(sorted(inputs.items()))


class NamedGate(FrozenModel):
    """The names of a reward gate, and of what it did to a reward. There is one gate of a kind, but several musts."""

    kind: str
    component: Id

    @property
    def title(self) -> str:
        return "must" if self.kind == "must" else f"{self.kind} gate"

    @property
    def step(self) -> str:
        """Return the name of its step from the sum to the reward."""
        return f"must {self.component}" if self.kind == "must" else self.title

    @property
    def key(self) -> str:
        return self.step.removesuffix(" gate")


class FormatGate(NamedGate):
    """The reward is 0 if the component is below a threshold (MACRM, our reading of F)."""

    kind: Literal["format"] = "format"
    component: Id = "format"
    below: UnitInterval


class PrecisionShaping(NamedGate):
    """The auxiliary components count a fraction of their weight if the answer is wrong (MACRM, our reading)."""

    kind: Literal["precision"] = "precision"
    component: Id = "accuracy"
    below: UnitInterval = 0.5
    auxiliary: Annotated[tuple[Id, ...], AfterValidator(lambda names: tuple(sorted(names)))] = (
        Field(min_length=1)
    )
    fraction: UnitInterval


class RepetitionControl(NamedGate):
    """The reward is multiplied by 1 - R_rep if repetition is above a threshold (MACRM, our reading)."""

    kind: Literal["repetition"] = "repetition"
    component: Id = "repetition"
    above: UnitInterval


class Must(NamedGate):
    """The reward is at most 0 if the component is below a threshold, and fails where that was not judged."""

    kind: Literal["must"] = "must"
    below: UnitInterval = 0.5


RewardGate = Annotated[
    FormatGate | PrecisionShaping | RepetitionControl | Must, Field(discriminator="kind")
]
FailureRule = Literal["conservative", "gear", "strict", "decisive"]
GroupFailureRule = Literal["drop-criterion"]


class Decision(FrozenModel):
    """The rules by which verdicts become a reward: weights, combiners, gates, scale, clip and the failure rule.

    `musts` are single criteria that gates read, of weight 0: they are no components of the reward.
    """

    specs: tuple[ComponentSpec, ...]
    musts: tuple[ComponentSpec, ...] = OMITTED_IF_EMPTY
    gates: tuple[RewardGate, ...] = ()
    scale: PositiveNumber = 1.0
    clip: NumberRange | None = None
    rule: FailureRule = "conservative"
    min_coverage: UnitInterval = 0.8
    group_rule: GroupFailureRule | None = None
    weights_fixed: StrictBool = True

    @property
    def all_specs(self) -> tuple[ComponentSpec, ...]:
        return (*self.musts, *self.specs)

    @property
    def effective_specs(self) -> tuple[ComponentSpec, ...]:
        """Return the specs that can change a reward: those with a weight other than 0, and those that a gate reads."""
        gates = {gate.component for gate in self.gates}
        return tuple(spec for spec in self.all_specs if spec.weight != 0 or spec.name in gates)


class Plan(FrozenModel):
    """A survey and a decision, frozen from the task alone and reused for every response to it.

    `task_digest` is the digest of the original task, with unordered parts sorted. `profiles` are the constraints and
    tensions that were read from profiles in text, and `rubric` is the task's rubric with its annotated graph; the
    survey and the decision are made from the task together with them. `files` are the SHA-256 of the files that tools
    read, by the fields of the task that name them. `calls` are the calls made while planning; they are not part of the
    stored plan or its digest.
    """

    task_id: Id
    task_digest: str
    survey: Survey
    decision: Decision
    profiles: Profiles | None = None
    rubric: Rubric | None = None
    files: dict[str, str] = Field(default_factory=dict, exclude_if=is_empty_value)
    calls: tuple[Call, ...] = Field(default=(), exclude=True, repr=False)

    @cached_property
    def digest(self) -> str:
        content = self.model_dump(mode="json", exclude={"decision": True, "survey": {"views"}})
        # the decision and the views are parts of many plans: their JSON is computed once
        content["decision"] = self.decision.json_object
        content["survey"]["views"] = {
            digest: view.json_object for digest, view in self.survey.views.items()
        }
        return digest_of(content)

    @property
    def checked_weight_share(self) -> float:
        """Return the share of the reward's absolute weight that depends on facts and checks, in [0, 1]."""
        questions = self.survey.questions
        layers = {question.id: (question.layer, question.seats) for question in questions}
        checked_weight_total = total = 0.0
        for spec in self.decision.specs:
            input_weight = checked_input_weight = 0.0
            for use in spec.inputs.values():
                checked_weight, size = _sum_checked_weight(use, layers)
                if size:
                    input_weight += use.input_weight
                    checked_input_weight += use.input_weight * checked_weight / size
            if input_weight:
                checked_weight_total += abs(spec.weight) * (checked_input_weight / input_weight)
            total += abs(spec.weight)
        return checked_weight_total / total if total else 0.0

    @property
    def lacks_lookup_tables(self) -> bool:
        """Return whether the tool `look_up` is given to a judge, and the task has no table for it."""
        toolsets = [question.tools for question in self.survey.questions]
        toolsets += [derivation.tools for derivation in self.survey.derivations]
        uses_lookup_tool = any(tool.name == "look_up" for tool in chain.from_iterable(toolsets))
        views = self.survey.views.values()
        return uses_lookup_tool and not any((view.facts or {}).get("tables") for view in views)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the user should know before responses are scored by this plan; one sentence each.

        DecompR (5.2) layers the signals of a utility by decreasing determinism, "thus most reward mass comes from
        deterministic or low-variance components".
        """
        has_welfare_component = any(
            spec.combiner in WELFARE_COMBINER_NAMES and spec.weight for spec in self.decision.specs
        )
        # sums of floats: exactly half is enough
        if not has_welfare_component or self.checked_weight_share >= 0.5 - 1e-9:
            return ()
        return (
            f"{100 * self.checked_weight_share:.3g} % of the reward's absolute weight depends on "
            "facts and checks, the rest "
            "on models or people; DecompR keeps most of it on facts and checks: give constraints a `check`, or raise "
            "`fact` and `check` in weights.layers",
        )

    def _repr_parts(self) -> ReprParts:
        reward = {spec.name: spec.weight for spec in self.decision.specs if spec.weight}
        yield from (
            ("task", self.task_id),
            ("questions", len(self.survey.questions)),
            ("reward", reward),
        )
        yield "digest", self.digest[:12]


def _sum_checked_weight(
    spec_input: ComponentInput, layers: Mapping[str, tuple[Layer, int]]
) -> tuple[float, float]:
    """Return the absolute weight of an input's questions that are facts or checks, and of all its questions."""
    checked_weight_total = total = 0.0
    for question, weight in spec_input.weighted_questions:
        layer, verdict_count = layers[question]
        columns = verdict_count if spec_input.reduce is None else 1  # a folded question counts once
        size = abs(weight) * columns
        if layer in ("fact", "check"):
            checked_weight_total += size
        total += size
    return checked_weight_total, total


def task_as_planned(
    task: Task, profiles: Profiles | None = None, rubric: Rubric | None = None
) -> Task:
    """Return the task that its plan was made from: with the constraints read from profiles and the rubric's graph."""
    task = apply_profiles(task, profiles)
    return task if rubric is None else task.model_copy(update={"rubric": rubric})


def get_question_identity_fields(
    question: Question, audience: Audience, member: str | None
) -> JsonFields:
    """Return the fields of a recorded verdict that identify its question and the member of its audience."""
    return {
        "question": question.id,
        "evaluator": question.evaluator,
        "version": question.version,
        "layer": question.layer,
        "subject": question.subject,
        "stakeholder": member if audience == "stakeholder" else None,
        "reviewer": member if audience == "reviewer" else None,
    }
