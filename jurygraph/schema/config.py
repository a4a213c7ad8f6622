"""The config of a jury: its evaluators, and how their verdicts count."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, GetJsonSchemaHandler, JsonValue, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from jurygraph.schema.calls import CallsConfig
from jurygraph.schema.frozen_model import Flag, FrozenModel, Id, LongId, Number, Positive, PositiveInt, Unit
from jurygraph.schema.plan import Condition, GroupRule, Reduction, RewardGate, Rule, SkippedRule
from jurygraph.schema.purpose import PurposeConfig
from jurygraph.schema.safety import CanaryConfig, SafetyConfig
from jurygraph.schema.task import NonNegative
from jurygraph.schema.verdict import Layer

Share = Annotated[float, Field(strict=True, gt=0.0, lt=1.0)]
Welfare = Literal["stakeholders", "egalitarian", "nash"]
"""Names of the combiners that aggregate utilities."""


class NamedModel(FrozenModel):
    """A model that may be written as a bare string, the value of its first field; other fields have their defaults."""

    @model_validator(mode="before")
    @classmethod
    def _expand_bare_name(cls, value: Any) -> Any:
        return {next(iter(cls.model_fields)): value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string", "minLength": 1}, handler(core)]}


class _PluginUse(NamedModel):
    """An evaluator or deriver of the config; a bare name means `{use: name}`."""

    use: Id
    name: Id | None = None
    params: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def known_as(self) -> str:
        """Return the name used in questions, verdicts and components."""
        return self.name or self.use.replace(":", ".")


class EvaluatorUse(_PluginUse):
    """An evaluator by name, dotted path or entry point; `when`, `samples` and `material` override its own settings.

    `material` names the material whose variants it judges instead of the responses; its default name then ends with
    `-of-` and this material.
    """

    when: Condition | None = None
    samples: PositiveInt | None = None
    material: Id | None = None

    @property
    def known_as(self) -> str:
        """Return the name used in questions, verdicts and components."""
        name = super().known_as
        return name if self.material is None or self.name else f"{name}-of-{self.material}"


class DeriverUse(_PluginUse):
    """A deriver by dotted path or entry point."""


class InputConfig(NamedModel):
    """An input of a component: the questions of an evaluator, or one question by its id (`verdicts_of`).

    Verdicts of reviewers' judges with a confidence below `min_confidence` are discarded; the default is that of
    `panel`.
    """

    verdicts_of: LongId
    reduce: Reduction | None = "mean"
    min_confidence: Unit | None = None
    input_weight: Positive = 1.0
    if_skipped: SkippedRule | None = None


class ComponentConfig(FrozenModel):
    """A component that the config defines: a combiner over named inputs."""

    combiner: Id = "mean"
    inputs: dict[Id, InputConfig] = Field(min_length=1)
    params: dict[str, JsonValue] = Field(default_factory=dict)


class WeightsConfig(FrozenModel):
    """The weights of stakeholders (DecompR Eqs. 9-10); `fixed` gives the weights, scaled to sum to 1.

    `layers` divides each utility û_i between the layers of its questions; inside a layer all questions count alike.
    Without `layers`, all questions count alike. A violated hard constraint caps û_i at `cap` times the mean of the hard
    ones. `welfare` makes one number of the utilities: Σ w û (`stakeholders`); `egalitarian`, at most the least û if one
    is below the `floor`; or their product (`nash`). `if_skipped` says how a question skipped by its `when` counts.
    """

    method: Literal["calibrated", "uniform", "fixed"] = "calibrated"
    gamma: Share = 0.5
    beta: Share = 0.5
    temperature: Positive = 5.0
    fixed: dict[Id, Positive] = Field(default_factory=dict)
    layers: dict[Layer, Positive] = Field(default_factory=dict)
    cap: Unit = 0.5
    welfare: Welfare = "stakeholders"
    floor: Unit = 0.5
    if_skipped: SkippedRule | None = None

    @model_validator(mode="after")
    def _require_weights_exactly_when_fixed(self) -> Self:
        if (self.method == "fixed") != bool(self.fixed):
            raise ValueError("`fixed` lists weights exactly when `method` is fixed; give both, or neither")
        return self


class RubricConfig(FrozenModel):
    """The aggregation of a rubric's criteria (GEAR); `if_skipped` says how a criterion skipped by `when` counts."""

    aggregation: Literal["flat", "gear", "hard-local", "hard-transitive"] = "gear"
    kappa: NonNegative = 1.0
    if_skipped: SkippedRule | None = None


class PanelConfig(FrozenModel):
    """The aggregation of verdicts of reviewers' judges (Aggregate vs. Personalized Judges).

    Verdicts with less than `min_confidence` are discarded. `reduce` folds the samples of a question: with `majority`,
    more than half of all samples must remain and agree. `if_skipped` says how a question skipped by its `when` counts.
    """

    min_confidence: Unit = 0.8
    reduce: Reduction = "majority"
    if_skipped: SkippedRule | None = None


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

    rule: Rule = "conservative"
    min_coverage: Unit = 0.8
    max_error_rate: Unit = 0.1
    group_rule: GroupRule | None = None


class Config(FrozenModel):
    """The config of a jury. Unknown keys are refused; `reward` may be left out if there is one component."""

    version: Literal[1] = 1
    purpose: PurposeConfig = PurposeConfig()
    model: str = "none"
    evaluators: tuple[EvaluatorUse, ...] = Field(min_length=1)
    derivers: tuple[DeriverUse, ...] = ()
    components: dict[Id, ComponentConfig] = Field(default_factory=dict)
    reward: dict[Id, Number] = Field(default_factory=dict)
    gates: tuple[RewardGate, ...] = ()
    scale: Positive = 1.0
    clip: tuple[Number, Number] | None = None
    weights: WeightsConfig = WeightsConfig()
    rubric: RubricConfig = RubricConfig()
    panel: PanelConfig = PanelConfig()
    annotation: AnnotationConfig | None = None
    failure: FailureConfig = FailureConfig()
    calls: CallsConfig = CallsConfig()
    safety: SafetyConfig = SafetyConfig()
    canary: CanaryConfig | None = None
    langsmith: Flag = False

    @model_validator(mode="after")
    def _require_ascending_clip(self) -> Self:
        if self.clip is not None and not self.clip[0] < self.clip[1]:
            raise ValueError("`clip` does not rise; write the lower end first, such as [0, 1]")
        return self
