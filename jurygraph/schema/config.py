"""The config of a jury: its evaluators, how their verdicts count, its calls to a model, and the purpose of its rewards.

It holds no secret.
"""

import re
from collections.abc import Mapping, Sequence, Set
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    field_serializer,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from jurygraph.messages import describe_value
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
    JsonObject,
    LongId,
    Number,
    PositiveInt,
    PositiveNumber,
    RisingRange,
    StrictBool,
    UnitInterval,
    iter_json_values,
)
from jurygraph.schema.lookup import ToolName
from jurygraph.schema.plan import (
    Condition,
    Escalation,
    FailureRule,
    GroupFailureRule,
    ReductionMethod,
    RewardGate,
    SkippedQuestionTreatment,
    TurnReduction,
    VoteRule,
    WelfareCombinerName,
)
from jurygraph.schema.task import NO_TASK_DEFAULTS, Audience, NonNegativeNumber, TaskDefaults
from jurygraph.schema.verdict import (
    MET_THRESHOLD,
    RESPONSE_GATES,
    Layer,
    ResponseGate,
    ScoreCalibration,
)

JudgePurpose = Literal["reward", "evaluation"]


class PurposeConfig(FrozenModel):
    """The purpose of the rewards. Rewards of an `evaluation` are not for training.

    `reward_judges` names the models that gave the rewards in training; empty if no model did. A judge that is one of
    them is refused, unless `same_judge` is `allow`; the traces then record it.
    """

    kind: JudgePurpose = "reward"
    reward_judges: (
        Annotated[tuple[Id, ...], AfterValidator(lambda names: tuple(sorted(set(names))))] | None
    ) = None
    same_judge: Literal["refuse", "allow"] = "refuse"

    @model_validator(mode="after")
    def _check_reward_judges(self) -> Self:
        if self.kind == "evaluation" and self.reward_judges is None:
            raise ValueError(
                "an evaluation lacks `reward_judges`; name the models that gave the rewards in training, or write [] "
                "where no model did"
            )
        if self.kind == "reward" and self.reward_judges is not None:
            raise ValueError(
                "`reward_judges` belongs to an evaluation; set `kind` to evaluation, or leave it out"
            )
        return self


class EvaluatorRecord(FrozenModel):
    """An evaluator's version and audience, and how its questions form a component of their own.

    `combiner` is the combiner of that component. `shares` are the weights of its questions by the first part of their
    subject, up to a slash; when empty, all questions weigh the same. Questions about a stakeholder with a share of 0
    count in no utility, and 1 in a component of the config that names the evaluator. `musts` are those of its criteria
    whose faults cost everything. `depends_on` is the digest of
    further inputs of its questions, such as a history that it read; empty without any.
    """

    version: str
    audience: Audience
    combiner: Id = "mean"
    shares: dict[Id, NonNegativeNumber] = EMPTY_OBJECT
    musts: tuple[Id, ...] = OMITTED_IF_EMPTY
    depends_on: str = ""


OpenUnitInterval = Annotated[float, Field(strict=True, gt=0.0, lt=1.0)]
ExactInferenceMode = Literal["auto", "ten-nodes", "always", "never"]


class ModelWithCode(FrozenModel):
    """A model whose field `code_field` names code; in Python it may be given the code itself, known by its name.

    `target` is then that object. It is in no digest, file or schema, so that the config stays plain data.
    """

    code_field: ClassVar[str]
    _cached_code: tuple[str, Any] = PrivateAttr(default=("", None))

    @property
    def target(self) -> Any:
        """Return the object that was given in the place of its name; None if the name was given."""
        name, target = self._cached_code
        return target if name == getattr(self, self.code_field) else None

    @model_validator(mode="wrap")
    @classmethod
    def _replace_code_by_name(cls, value: Any, build: ModelWrapValidatorHandler[Self]) -> Self:
        settings = value if isinstance(value, Mapping) else {cls.code_field: value}
        code = settings.get(cls.code_field)
        if isinstance(code, int | float):
            field_prefix = f"`{cls.code_field}` " if isinstance(value, Mapping) else ""
            raise ValueError(
                f"{field_prefix}is {describe_value(code)}; write a name in quotes, or in Python give a function, class "
                "or instance"
            )
        if cls.code_field == "model" and code is None and "model" in settings:
            raise ValueError("`model` is null; write 'none', or leave it out")
        if isinstance(code, _PLAIN_DATA_TYPES):
            return build(value)
        names = (getattr(code, "name", None), getattr(code, "__name__", None), type(code).__name__)
        name = next(name for name in names if isinstance(name, str) and name)
        model = build({**settings, cls.code_field: name})
        model._cached_code = name, code
        return model


_PLAIN_DATA_TYPES = (str, Mapping, Sequence, Set, FrozenModel, type(None))


class ModelWithShorthand(FrozenModel):
    """A model that may be written as a bare string, the value of its first field; other fields have their defaults."""

    @model_validator(mode="before")
    @classmethod
    def _expand_shorthand_value(cls, value: Any) -> Any:
        if not isinstance(value, str | Mapping | cls):
            raise ValueError(f"is {describe_value(value)}; write a name, in quotes, or an object")
        first = next(iter(cls.model_fields))
        if isinstance(value, Mapping) and len(value) == 1:
            (key,) = value
            if key not in cls.model_fields and first == "use":
                raise ValueError(
                    f"`{key}` unknown; write `use: {key}`, and what it takes below `params`"
                )
        return {first: value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string", "minLength": 1}, handler(core)]}


class ToolUse(ModelWithCode, ModelWithShorthand):
    """A tool of a judge, by name or dotted path; a bare name means `{use: name}`.

    `deterministic` says of a tool of your own that equal arguments give equal results, so that its calls are made again
    by `verify --deep`; otherwise they are only recorded. `timeout` is its limit in seconds.
    """

    code_field = "use"
    use: Id
    name: ToolName | None = None
    params: JsonObject = EMPTY_OBJECT
    deterministic: StrictBool | None = None
    timeout: PositiveNumber | None = None


class _EvaluatorOrDeriverUse(ModelWithCode, ModelWithShorthand):
    """An evaluator or deriver of the config; a bare name means `{use: name}`.

    `timeout` is the time limit of a call in seconds. It is no part of a question, because it decides if there is a
    verdict, not which one. `tools` are those that its model may call before it answers, in at most `max_steps` requests
    (default 8), with results of `max_tokens` together (16,000).
    """

    code_field = "use"
    use: Id
    name: Id | None = None
    params: JsonObject = EMPTY_OBJECT
    timeout: PositiveNumber | None = None
    tools: tuple[ToolUse, ...] = OMITTED_IF_EMPTY
    max_steps: Annotated[int, Field(strict=True, ge=2, le=100)] | None = OMITTED_IF_NONE
    max_tokens: PositiveInt | None = OMITTED_IF_NONE

    @model_validator(mode="after")
    def _require_tools_for_limits(self) -> Self:
        for name in ("max_steps", "max_tokens"):
            if getattr(self, name) is not None and not self.tools:
                raise ValueError(
                    f"`{name}` is for `tools`, and there are none; add some, or leave it out"
                )
        return self

    @property
    def known_as(self) -> str:
        """Return the name used in questions, verdicts and components."""
        return self.name or self.use.replace(":", ".")


class EvaluatorUse(_EvaluatorOrDeriverUse):
    """An evaluator by name, dotted path or entry point; `when`, `samples` and `material` override its own settings.

    `material` is the material whose variants it judges, not responses; the default name then ends with `-of-MATERIAL`.
    With `isolate: process` it runs in a process of its own, which is killed at its time limit. `judges` are names of
    `models`: each answers every question in the place of `model`. `fold` makes one value of the answers to a question,
    where an input does not say otherwise by a `reduce` other than `mean`. With `escalate` the judge `then` answers only
    where those of `first` are `unsure`, or `disagree`. `sees` is the part of a conversation that it is shown:
    `last_reply`, the default of checks, `without_reasoning`, that of models, or `full_trace`. With `scope: turn` it
    judges each turn of an assistant, and sees no later one; `turns` makes one value of them, by default the mean. With
    `if_missing: not_applicable` it leaves out tasks without what it needs, such as a reference or a rubric. With
    `reference: hidden` it does not see the task's reference, which others do.
    """

    when: Condition | None = None
    samples: PositiveInt | None = None
    material: Id | None = None
    isolate: Literal["process"] | None = None
    judges: tuple[Id, ...] = ()
    fold: Literal["mean", "median", "majority"] | None = None
    escalate: Escalation | None = None
    sees: VisiblePart | None = OMITTED_IF_NONE
    scope: Literal["turn"] | None = OMITTED_IF_NONE
    turns: TurnReduction | None = OMITTED_IF_NONE
    if_missing: Literal["not_applicable"] | None = OMITTED_IF_NONE
    reference: Literal["hidden"] | None = OMITTED_IF_NONE

    @property
    def all_judges(self) -> tuple[str, ...]:
        """Return the names of all models that it may ask by name, sorted."""
        return self.judges if self.escalate is None else self.escalate.judges

    @model_validator(mode="after")
    def _check_judges_and_turns(self) -> Self:
        if self.judges and set(self.judges) != set(self.all_judges):
            raise ValueError(
                "`judges` are others than those of `escalate`; name the same, or leave `judges` out"
            )
        if self.turns is not None and self.scope is None:
            raise ValueError("`turns` needs `scope: turn`; add it, or leave `turns` out")
        if self.scope is not None and self.material is not None:
            raise ValueError("`material` is a variant of a whole response; leave out it or `scope`")
        return self

    @field_validator("judges")
    @classmethod
    def _sort_unique(cls, judges: tuple[str, ...]) -> tuple[str, ...]:
        for judge in judges:
            if judges.count(judge) > 1:
                raise ValueError(
                    f"names {judge!r} twice; name each model once, and raise `samples` to ask it again"
                )
        return tuple(sorted(judges))

    @property
    def known_as(self) -> str:
        name = super().known_as
        return name if self.material is None or self.name else f"{name}-of-{self.material}"


class DeriverUse(_EvaluatorOrDeriverUse):
    """A deriver by dotted path or entry point."""


class InputConfig(ModelWithShorthand):
    """An input of a component: the questions of an evaluator, or one question by its id (`verdicts_of`).

    Verdicts of reviewers' judges with a confidence below `min_confidence` (default: that of `panel`) are discarded.
    """

    verdicts_of: LongId
    reduce: ReductionMethod | None = "mean"
    min_confidence: UnitInterval | None = None
    input_weight: PositiveNumber = 1.0
    if_skipped: SkippedQuestionTreatment | None = None


class ComponentConfig(ModelWithCode):
    """A component that the config defines: a combiner over named inputs."""

    code_field = "combiner"
    combiner: Id = "mean"
    inputs: dict[Id, InputConfig] = Field(min_length=1)
    params: JsonObject = EMPTY_OBJECT


def _check_utility_cap(value: object) -> object:
    if value != "none" and (
        isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1
    ):
        raise ValueError(f"is {describe_value(value)}; write none, or a number from 0 to 1")
    return value


UtilityCap = Annotated[UnitInterval | Literal["none"], BeforeValidator(_check_utility_cap)]
"""The limit of a utility if a hard constraint is violated, as a factor of the mean of the hard ones; or none."""


class WeightsConfig(FrozenModel):
    """The weights of stakeholders (DecompR Eqs. 9-10); `fixed` gives the weights, scaled to sum to 1.

    `layers` divides each utility û_i between the layers of its questions; inside a layer all questions count alike.
    Without `layers`, all questions count alike. With a number as `cap`, a violated hard constraint caps û_i at `cap`
    times the mean of the hard ones: this rule is ours, and the paper has none (`none`). `welfare` makes one number of
    the utilities: Σ w û (`stakeholders`); `egalitarian`, at most the least û if one is below the `floor`; or their
    product (`nash`). `if_skipped` says how a question skipped by its `when` counts.
    """

    method: Literal["calibrated", "uniform", "fixed"] = "calibrated"
    gamma: OpenUnitInterval = 0.5
    beta: OpenUnitInterval = 0.5
    temperature: PositiveNumber = 5.0
    fixed: dict[Id, PositiveNumber] = EMPTY_OBJECT
    layers: dict[Layer, PositiveNumber] = EMPTY_OBJECT
    cap: UtilityCap = "none"
    welfare: WelfareCombinerName = "stakeholders"
    floor: UnitInterval = 0.5
    if_skipped: SkippedQuestionTreatment | None = None

    @model_validator(mode="after")
    def _check_fixed_weights(self) -> Self:
        if (self.method == "fixed") != bool(self.fixed):
            raise ValueError(
                "`fixed` lists weights exactly when `method` is fixed; give both, or neither"
            )
        return self


class RubricConfig(FrozenModel):
    """The aggregation of a rubric's criteria (GEAR); `if_skipped` says how a criterion skipped by `when` counts.

    With `exact: auto`, `gear` infers exactly if at most ten criteria of a rubric depend on another; with `ten-nodes`,
    as the authors' scripts do (`exact_auto`), if it has at most ten criteria in all. `met_from` is the score from which
    hard gating takes a criterion as met, if its judge has not decided itself.
    """

    aggregation: Literal["flat", "gear", "hard-local", "hard-transitive"] = "gear"
    kappa: NonNegativeNumber = 1.0
    exact: ExactInferenceMode = "auto"
    met_from: UnitInterval = MET_THRESHOLD
    if_skipped: SkippedQuestionTreatment | None = None


class CriterionConfig(FrozenModel):
    """Replace what the rubric says of a criterion: the size of its `weight`, and whether it is a `must`.

    The sign of the weight is part of the question, and stays.
    """

    weight: Number | None = OMITTED_IF_NONE
    must: StrictBool | None = OMITTED_IF_NONE

    @field_validator("weight")
    @classmethod
    def _refuse_zero(cls, weight: float | None) -> float | None:
        if weight == 0:
            raise ValueError("is 0, so the criterion would not count; write a small weight")
        return weight


class PanelConfig(FrozenModel):
    """The aggregation of verdicts of reviewers' judges (Aggregate vs. Personalized Judges).

    Verdicts with less than `min_confidence` are discarded. `reduce` folds the samples of a question. With `majority`,
    more than half of them must agree: by `vote`, of those that are left after the discarded and the abstaining ones
    (`discard-first`), or of all that were requested (`all-seats`). A failed sample keeps its seat under both. `vote`
    holds for every input with `reduce: majority`. `if_skipped` says how a question skipped by its `when` counts.
    """

    min_confidence: UnitInterval = 0.8
    reduce: ReductionMethod = "majority"
    vote: VoteRule = "discard-first"
    if_skipped: SkippedQuestionTreatment | None = None


class AnnotationConfig(FrozenModel):
    """The annotation of rubrics without edges while planning (GEAR, Appendix A).

    `domain` is a description for the annotator, built-in or a text file. Each request has a `batch` of pairs of
    criteria, and each pair is asked about `votes` times.
    """

    domain: Id = "generic"
    votes: Annotated[int, Field(strict=True, ge=1, le=15)] = 1
    batch: Annotated[int, Field(strict=True, ge=1, le=64)] = 12


class FailureConfig(FrozenModel):
    """The effect of unjudged questions on the reward, and the share of failures that makes a run inconclusive."""

    rule: FailureRule = "conservative"
    min_coverage: UnitInterval = 0.8
    max_error_rate: UnitInterval = 0.1
    group_rule: GroupFailureRule | None = None


EvidencePolicy = Literal["required", "preferred", "off"]


class SafetyConfig(FrozenModel):
    """Defences of a judge. Disable one only to measure its effect (`jurygraph attack`).

    `fence` puts texts by others between marks that they cannot forge. `reminder` repeats the question after the
    response. `whole_reply` accepts or rejects a reply as a whole; without it, the first JSON object in the reply
    counts, whatever `calls.reply` says. `evidence` asks for a quotation from the response for what a model finds, once
    more if there is none; then the finding counts as the worst case if it is `required`, and stands if it is
    `preferred`. `gates` stop responses that need no model.
    """

    fence: StrictBool = True
    reminder: StrictBool = True
    whole_reply: StrictBool = True
    evidence: EvidencePolicy = "required"
    gates: Annotated[
        tuple[ResponseGate, ...],
        AfterValidator(lambda gates: tuple(gate for gate in RESPONSE_GATES if gate in gates)),
    ] = RESPONSE_GATES


_SECRET_NAME_PATTERN = re.compile(
    r"(?:.*[_-])?(?:api[_-]?key|secret|password|credentials?|authorization|jwt|headers|api[_-]?base|base[_-]?url"
    r"|access[_-]?key(?:[_-]?id)?|(?:session|access|bearer|security|ad|auth|refresh)[_-]?token)",
    re.IGNORECASE,
)
_RESERVED_PARAMETERS = frozenset(
    (
        "model",
        "messages",
        "response_format",
        "stream",
        "stream_options",
        "n",
        "tools",
        "tool_choice",
        "functions",
    )
)


def _check_environment_name(name: str) -> str:
    # the message leaves the value out: it may be the key itself
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):
        raise ValueError(
            "is not a name of an environment variable (in capitals); name the one that holds the key"
        )
    return name


class Price(FrozenModel):
    """Prices of a model's tokens, in US dollars per million."""

    input: NonNegativeNumber
    output: NonNegativeNumber

    @model_validator(mode="before")
    @classmethod
    def _require_fields(cls, price: Any) -> Any:
        if not isinstance(price, Mapping | Price):
            raise ValueError(
                f"is {describe_value(price)}; write what a million tokens of prompts and of replies cost, as in "
                "{input: 0.25, output: 2}"
            )
        return price


ReplyJsonMode = Literal["strict", "one-object"]
"""What of a reply may count: the whole of it, or also the only JSON object among words."""


class OutageConfig(FrozenModel):
    """When requests wait for a model server that does not answer, and for how long.

    `after` is the number of failures in a row (no connection, no answer in time, 5xx) that count as an outage: at most
    as many as the attempts, if these are several. `wait` is the seconds for which requests wait in one outage before
    they fail, and `first` those for a server that never answered and takes no connection. With a `wait` of 0 there are
    no outages: each request fails after its own attempts.
    """

    after: PositiveInt = 8
    wait: NonNegativeNumber = 300.0
    first: PositiveNumber = 5.0


class CallsConfig(FrozenModel):
    """Settings of the calls to a model: parameters, limits and prices; times are in seconds.

    `parameters` go to the provider unchanged (temperature is 0 unless given). `form` sets how replies are held to their
    schema where the endpoint differs from the usual, and `tools` how it is given those of a judge. `timeout` applies to
    each of at most `attempts`, `deadline` to everything that a group of responses needs. `context` is the number of
    tokens that a gguf model reads and writes for one request. `key` names the environment variable with the key of
    an OpenAI-compatible server. `cache` keeps replies for other runs; `record` is a file for `replay:`. `reply`
    says what counts: the whole reply (`strict`), or also the only JSON object among words. With `system: joined`
    the system text begins the first user message, for a model without that role.
    """

    parameters: JsonObject = EMPTY_OBJECT
    max_tokens: PositiveInt = 1024
    form: Literal["native", "instructed"] | None = None
    tools: Literal["native", "instructed"] | None = OMITTED_IF_NONE
    reply: ReplyJsonMode = "strict"
    system: Literal["separate", "joined"] = "separate"
    timeout: PositiveNumber = 60.0
    deadline: PositiveNumber | None = None
    attempts: PositiveInt = 4
    outage: OutageConfig = OutageConfig()
    concurrency: PositiveInt = 32
    requests_per_minute: PositiveNumber | None = None
    tokens_per_minute: PositiveNumber | None = None
    context: PositiveInt = 4096
    key: Annotated[str, AfterValidator(_check_environment_name)] = "JURYGRAPH_API_KEY"
    cache: StrictBool = True
    record: Id | None = None
    prices: dict[Id, Price] = EMPTY_OBJECT

    @field_validator("parameters")
    @classmethod
    def _validate_call_parameters(cls, parameters: JsonObject) -> JsonObject:
        for path, _ in iter_json_values(parameters):
            name = str(path[-1]) if path else ""  # without a path, it is all of them
            if _SECRET_NAME_PATTERN.fullmatch(name):
                raise ValueError(
                    f"`{name}` is a secret or an address, and a config holds none; set the environment variable that "
                    "the provider's client reads"
                )
        names = list(parameters)
        extra_body = parameters.get("extra_body")
        if isinstance(extra_body, dict):
            names += extra_body
        for name in names:
            if name in _RESERVED_PARAMETERS:
                raise ValueError(f"`{name}` is for the calls themselves to set; leave it out")
        # the highest possible cost of a reply is computed from these limits
        for name in ("max_tokens", "max_completion_tokens"):
            limit = parameters.get(name)
            if limit is not None and (type(limit) is not int or limit < 1):
                raise ValueError(f"`{name}` is not a whole number of tokens from 1 on; write one")
        is_max_tokens_null = parameters.get("max_tokens", 1) is None
        if is_max_tokens_null and parameters.get("max_completion_tokens") is None:
            raise ValueError(
                "`max_tokens` is null, and nothing else limits a reply; write `max_completion_tokens` too"
            )
        return parameters


class ModelUse(ModelWithCode, ModelWithShorthand):
    """A model that evaluators name in their `judges`; a bare name means `{model: name}`.

    `calls` replace those settings of the config's `calls` for this model.
    """

    code_field = "model"
    model: Id
    calls: CallsConfig = CallsConfig()

    @field_serializer("calls", mode="wrap")
    def _serialize_set_fields(
        self, calls: CallsConfig, write: SerializerFunctionWrapHandler
    ) -> Any:
        """Leave out what the config's `calls` decide, so that a stored config is read as the same one."""
        return {
            name: value for name, value in write(calls).items() if name in calls.model_fields_set
        }

    @field_validator("model")
    @classmethod
    def _require_model(cls, model: str) -> str:
        if model == "none":
            raise ValueError("is none, which answers nothing; name a model")
        return model


class Config(ModelWithCode):
    """The config of a jury. Unknown keys are refused; `reward` may be left out if there is one component.

    `models` are further models, by the names that evaluators give in `judges`; all else is for `model`. `criteria` have
    other weights of criteria, and musts, by their ids, in every rubric that has them. `calibration` has a map for
    questions, by their ids, whose scores count calibrated. `workspaces` is the folder of the responses' files.
    """

    code_field = "model"
    version: Literal[1] = 1
    purpose: PurposeConfig = PurposeConfig()
    model: str = "none"
    models: dict[Id, ModelUse] = EMPTY_OBJECT
    evaluators: tuple[EvaluatorUse, ...] = Field(min_length=1)
    derivers: tuple[DeriverUse, ...] = ()
    components: dict[Id, ComponentConfig] = EMPTY_OBJECT
    reward: dict[Id, Number] = EMPTY_OBJECT
    gates: tuple[RewardGate, ...] = ()
    scale: PositiveNumber = 1.0
    clip: RisingRange | None = None
    weights: WeightsConfig = WeightsConfig()
    rubric: RubricConfig = RubricConfig()
    criteria: dict[Id, CriterionConfig] = Field(default_factory=dict, exclude_if=is_empty_value)
    task_defaults: TaskDefaults = NO_TASK_DEFAULTS
    panel: PanelConfig = PanelConfig()
    calibration: dict[LongId, ScoreCalibration] = EMPTY_OBJECT
    annotation: AnnotationConfig | None = None
    failure: FailureConfig = FailureConfig()
    calls: CallsConfig = CallsConfig()
    safety: SafetyConfig = SafetyConfig()
    langsmith: StrictBool = False
    workspaces: Id | None = OMITTED_IF_NONE

    @property
    def judges(self) -> tuple[str | None, ...]:
        """Return the names of all models that are asked: None for `model`, unless it is none, and those of judges."""
        default = () if self.model == "none" else (None,)
        names = {name for use in self.evaluators for name in use.all_judges}
        return (*default, *sorted(names))

    @property
    def judging_models(self) -> str:
        """Return the names of all judging models, joined by commas; `none` without any."""
        return ", ".join(name or self.model for name in self.judges) or "none"

    @property
    def has_tools(self) -> bool:
        """True if a judge or a reader of responses may look things up."""
        return any(use.tools for use in (*self.evaluators, *self.derivers))

    @property
    def evaluators_with_criteria(self) -> frozenset[str]:
        """Return the names of the evaluators that have criteria of their own, in place of the task's rubric."""
        return frozenset(use.known_as for use in self.evaluators if use.params.get("criteria"))

    def with_failure_rule(self, rule: FailureRule) -> Self:
        return self.model_copy(update={"failure": self.failure.model_copy(update={"rule": rule})})

    def call_settings_of(self, judge: str | None) -> CallsConfig:
        """Return the settings of the calls to one of the `models`; None means `model`."""
        if judge is None:
            return self.calls
        calls = self.models[judge].calls
        update = {name: getattr(calls, name) for name in calls.model_fields_set}
        return self.calls.model_copy(update=update)

    @property
    def escalated_only_models(self) -> frozenset[str]:
        """Return the names of the models that answer only where others are not enough (`escalate`)."""
        escalations = [use.escalate for use in self.evaluators if use.escalate is not None]
        first_choices = [use.judges for use in self.evaluators if use.escalate is None]
        first_choices += [escalation.first for escalation in escalations]
        fallback_models = frozenset(escalation.then for escalation in escalations)
        return fallback_models.difference(*first_choices)
