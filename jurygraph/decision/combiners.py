"""Combiners: the role, and those that turn the verdicts of a component into its value by arithmetic."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from jurygraph import aggregation
from jurygraph.aggregation import gear, stakeholders
from jurygraph.arrays import Bools, Floats
from jurygraph.display import ShortRepr
from jurygraph.errors import GraphCycleError, JurygraphError, PlanError
from jurygraph.safety.redaction import describe_exception
from jurygraph.schema import ComponentInput, Edge, Question, SkippedQuestionTreatment
from jurygraph.schema.config import ExactInferenceMode
from jurygraph.schema.frozen_model import (
    JsonFields,
    JsonObject,
    ParamsModel,
    RawParams,
    UnitInterval,
    read_params,
)
from jurygraph.schema.task import NonNegativeNumber
from jurygraph.schema.verdict import MET_THRESHOLD

ValuesAndMask = tuple[Floats, Bools]
"""Values, and a mask of the places that have one."""


@dataclass(frozen=True, slots=True, repr=False)
class ScoreMatrix(ShortRepr):
    """Numbers for one input of a combiner: rows are responses, columns questions (or samples, opponents, variants).

    `value` [R,Q] in [0,1], where a cell without a verdict is filled by the failure rule; `met` [R,Q], whether it counts
    as met, by the judge's own answer if it gave one, filled in the same way; `judged` [R,Q], false for a filled cell
    and for a score that a response gate set; `applicable` [R,Q], false if the question was skipped by its `when`, had
    nothing to compare with, or is not applicable by its evaluator, which takes the cell out of numerator and
    denominator; `weight` [Q], the signed weights of the questions; `input_weight`, always positive, is the weight of
    the whole input among the component's inputs.
    """

    value: Floats
    met: Bools
    judged: Bools
    applicable: Bools
    weight: Floats
    input_weight: float = 1.0

    def mean(self) -> ValuesAndMask:
        """Return the mean over the applicable columns by |weight| [R], and a mask [R] of the rows with any applicable
        column."""
        return weighted_mean(self.value, np.where(self.applicable, np.abs(self.weight), 0.0))


def weighted_mean(values: Floats | Bools, weights: Floats) -> ValuesAndMask:
    """Return the mean over the last axis, 0 without any weight, and a mask of where there is a weight.

    `values` and `weights` have one shape, such as [R,N], and the weights are at least 0.
    """
    weight = aggregation.total(weights)
    has_positive_weight: Bools = np.greater(weight, 0.0)
    return aggregation.total(weights * values) / np.where(
        has_positive_weight, weight, 1.0
    ), has_positive_weight


def totals(values: ArrayLike, axis: int = -1) -> Floats:
    """Return the totals along an axis of an array of two axes or more."""
    return np.asarray(aggregation.total(values, axis=axis))


def count_true(mask: Bools, axis: int = -1) -> Floats:
    """Return how many cells of a mask are true along an axis."""
    return totals(np.where(mask, 1.0, 0.0), axis=axis)


InputMatrices = Mapping[str, ScoreMatrix]
"""The matrices of a component's inputs, by name."""

ComponentInputs = Mapping[str, ComponentInput]
"""The inputs of a component, by name."""

RowValuesByName = Mapping[str, Floats]
"""A number of each response, [R], by name."""

Prerequisites = Sequence[tuple[int, int, float | None]]
"""The places of inputs that depend on each other: parent, child, and λ, None for all or nothing."""

BoundArrays = tuple[Floats, Floats]
"""The least and the greatest value of each response, [R] each."""


@dataclass(frozen=True, slots=True, repr=False)
class Component(ShortRepr):
    """A component of the reward: value [R], the rows that have one, and its named parts [R] for the trace.

    `diagnostics` [R] are reported with the component but are not parts of it. In both, NaN means there is nothing to
    report; a part that has the name of an input is only reported where this input applies.
    """

    value: Floats
    present: Bools
    parts: RowValuesByName
    diagnostics: RowValuesByName = field(default_factory=dict)


class Combiner(ShortRepr, ABC):
    """Base class of combiners: compute one component from matrices, with arithmetic that gives the same bits
    everywhere.

    `arrange_inputs` and then `freeze` run when the plan is made: `freeze` checks the inputs, and computes what needs
    more than + - × ÷ min max, comparisons and sorting (powers, for example). `combine` receives only its result and the
    matrices. If it `fuses_judges`, an input whose evaluator has several judges is one input for each of them. With
    `needs_all_columns` every opponent or sample has its own column. If `has_fixed_weights` is false, the
    weights come from a judge, and the reward says so. If `uses_other_rows` is true, a row also depends on other rows,
    so a value missing in one may change all. One that is `batched` may get the rows of many groups at once, in which
    each row is computed from itself alone. `if_skipped` says how questions that do not apply count if the config does
    not; None if the config has to say it. `Params` is the model of the config's params, with their types, bounds,
    defaults and descriptions.

    `explain` and `show` describe a component by the rest: with `is_sum` its value is the sum of its inputs by weight,
    so that each has points of its own; with `is_product` it is their product. With `counts_criteria` each input is a
    criterion, whose weight may be negative. With `aggregates_utilities` the inputs are stakeholders. With
    `ranks_contrasts` the diagnostics `pair 1`, … are the margins of contrasts.
    """

    name: ClassVar[str]
    version: str = "1"
    Params: ClassVar[type[ParamsModel]] = ParamsModel
    needs_all_columns: ClassVar[bool] = False
    fuses_judges: ClassVar[bool] = False
    has_fixed_weights: ClassVar[bool] = True
    uses_other_rows: ClassVar[bool] = False
    batched: ClassVar[bool] = False
    if_skipped: ClassVar[SkippedQuestionTreatment | None] = None
    is_sum: ClassVar[bool] = False
    is_product: ClassVar[bool] = False
    counts_criteria: ClassVar[bool] = False
    aggregates_utilities: ClassVar[bool] = False
    ranks_contrasts: ClassVar[bool] = False

    def validate_questions(self, questions: Sequence[Question], params: RawParams) -> None:
        """Check the questions of all inputs when the plan is made. Raises PlanError if the combiner cannot use them."""

    def arrange_inputs(
        self,
        inputs: ComponentInputs,
        reviewers: Mapping[str, str | None],
        params: RawParams,
    ) -> ComponentInputs:
        """Return the inputs as the plan has them, by name.

        `reviewers` has for every question the reviewer whom it predicts; None if it predicts nobody in particular.
        Raises PlanError if the inputs do not fit.
        """
        return inputs

    def freeze(self, inputs: ComponentInputs, params: RawParams) -> JsonFields:
        """Return the parameters to store in the plan: those of the config, or their defaults, unless overridden.

        Raises PlanError if the inputs or params do not fit.
        """
        frozen_params: JsonFields = self.read_params(params).model_dump(mode="json")
        return frozen_params

    def read_params(self, params: RawParams) -> Any:
        """Return the config's params as `Params`. Raises PlanError that names the first wrong one."""
        name = getattr(self, "name", type(self).__name__)  # a class of the user's may have none
        return read_params(f"combiner {name!r}", self.Params, params, PlanError)

    @abstractmethod
    def combine(self, matrices: InputMatrices, params: RawParams) -> Component:
        """Return the component of every response.

        If every question looks at one response only, each row is computed from that row only: other responses in the
        group or in a re-scored run do not change it.
        """

    def bounds(self, low: InputMatrices, high: InputMatrices, params: RawParams) -> BoundArrays:
        """Return the least and greatest component [R], from matrices with every unjudged value at 0 and at 1.

        Correct for a combiner that never decreases when a cell increases; other combiners override it.
        """
        return self.combine(low, params).value, self.combine(high, params).value

    def is_monotone_input(self, name: str) -> bool:
        """Return true if a higher score in the input of this name never lowers the component."""
        return True

    def prerequisites(self, params: RawParams) -> Prerequisites:
        """Return the places of inputs that depend on each other: parent, child, and λ, None for all or nothing."""
        return ()

    def input_names_by_part(self, params: RawParams) -> Mapping[str, Sequence[str]]:
        """Return the names of the inputs that each part is computed from, for parts that are no inputs themselves."""
        return {}

    def describe_rule(self, params: RawParams) -> str:
        """Describe how prerequisites are inferred, or how utilities become one number; empty without such a rule."""
        return ""

    def describe_inputs(self, params: RawParams) -> Sequence[str]:
        """Return what the inputs are taken to be about, one sentence each, where that is not plain from their names."""
        return ()

    def describe_value(
        self, params: RawParams, diagnostics: Mapping[str, float], is_filled_in: bool
    ) -> Sequence[str]:
        """Describe how the value follows from the parts, if it is neither a sum nor a product of them.

        `is_filled_in` if the failure rule gave a missing verdict a value.
        """
        return ()


Combiners = Mapping[str, Combiner]
"""The combiners of a config, by name."""


@contextmanager
def raise_as_plan_error(owner: str) -> Iterator[None]:
    """Re-raise an exception from user code as a PlanError that names its owner."""
    try:
        yield
    except JurygraphError:
        raise
    except Exception as error:
        raise PlanError(
            f"{owner} failed: {describe_exception(error)}; fix it, or use another one"
        ) from error


def input_means(matrices: InputMatrices) -> ValuesAndMask:
    """Return the mean of every input as columns [R,I], and a mask [R,I] of the inputs that apply."""
    inputs = matrices.values()
    if all(matrix.value.shape[1] == 1 for matrix in inputs):
        # The criteria of a rubric, at once: 20 of them take 16 µs instead of 190, and each group has this three or four
        # times. The bits are those of `weighted_mean`: + 0.0 is the start of its sum, which makes 0.0 of -0.0.
        value = np.concatenate([matrix.value for matrix in inputs], axis=1)
        applicable = np.concatenate([matrix.applicable for matrix in inputs], axis=1)
        sizes = np.abs(np.concatenate([matrix.weight for matrix in inputs]))
        weight = np.where(applicable, sizes, 0.0)
        has_positive_weight = weight > 0.0
        return (weight * value + 0.0) / np.where(
            has_positive_weight, weight, 1.0
        ), has_positive_weight
    means = [matrix.mean() for matrix in inputs]
    values, present = zip(*means, strict=True)
    return np.stack(values, axis=1), np.stack(present, axis=1)


def _parts(matrices: InputMatrices, values: Floats) -> dict[str, Floats]:
    return dict(zip(matrices, values.T, strict=True))


def _input_weights(matrices: InputMatrices, has_value: Bools) -> Floats:
    """Return the weight of every input where it applies, else 0, [R,I]."""
    input_weights = np.array([matrix.input_weight for matrix in matrices.values()])
    return np.where(has_value, input_weights, 0.0)


class Mean(Combiner):
    """Mean of the inputs that apply, weighted by their `input_weight`."""

    name = "mean"
    version = "1"
    batched = True
    is_sum = True

    def combine(self, matrices: InputMatrices, params: RawParams) -> Component:
        values, has_value = input_means(matrices)
        parts = _parts(matrices, values) if len(matrices) > 1 else {}
        return Component(*weighted_mean(values, _input_weights(matrices, has_value)), parts)


class Product(Combiner):
    """Product of the inputs: with accuracy and a length factor, MACRM's cosine-scaled reward. All must apply."""

    name = "product"
    version = "1"
    batched = True
    is_product = True

    def freeze(self, inputs: ComponentInputs, params: RawParams) -> JsonFields:
        if len(inputs) < 2:
            raise PlanError(
                "combiner 'product' multiplies two inputs or more; add one, or use 'mean'"
            )
        return super().freeze(inputs, params)

    def combine(self, matrices: InputMatrices, params: RawParams) -> Component:
        values, has_value = input_means(matrices)
        product = reduce(np.multiply, values.T)  # left to right
        return Component(product, np.asarray(has_value.all(axis=1)), _parts(matrices, values))


class SupportedProbabilities(NamedTuple):
    """q, the part of each criterion's probability that its parents leave, [R,C] each: if all criteria that are not
    judged count as unmet, and if they count as met."""

    if_unmet: Floats
    if_met: Floats


class _Rubric(Combiner):
    """R = Σ w_i q_i / Σ_{w_i>0} w_i over the criteria that apply (GEAR Eq. 14); the q_i are the parts.

    `rubric` in the config sets the params of the task's own rubric.
    """

    class Params(ParamsModel):
        edges: tuple[Edge, ...] = ()
        """The prerequisites: parent, child, kind and retention."""
        kappa: NonNegativeNumber = 1.0
        """How strongly a prerequisite counts that is not met; only `gear` uses it."""
        exact: ExactInferenceMode = "auto"
        """`auto`: exact inference up to ten criteria with a parent; `ten-nodes`: up to ten criteria, as GEAR's scripts;
        `always`; `never`: the one-pass update of GEAR. Only `gear` uses it."""
        met_from: UnitInterval = MET_THRESHOLD
        """The score from which a prerequisite is met whose judge has not decided itself. Only hard gating uses it."""

    version = "1"
    batched = True
    is_sum = True
    counts_criteria = True
    uses_edges: ClassVar[bool] = True

    def freeze(self, inputs: ComponentInputs, params: RawParams) -> JsonFields:
        settings: _Rubric.Params = self.read_params(params)
        if not any(criterion.weights[0] > 0 for criterion in inputs.values()):
            raise PlanError(
                "the rubric has no criterion of positive weight, so no reward can be formed from it; give one a "
                "positive weight, or, for faults alone, make them `params.criteria` of an evaluator whose component "
                "has a negative weight under `reward`, such as `reward: {rude: -0.3}`"
            )
        names = list(inputs)
        edges = []
        if self.uses_edges:
            # Sorted, so that their order in a file has no effect.
            edges = sorted(settings.edges, key=lambda edge: (edge.parent, edge.child))
        parents, children = gear.edges(names, [(edge.parent, edge.child) for edge in edges])
        try:
            gear.compile(len(names), parents, children, names)
        except GraphCycleError as error:
            error.args = (f"{error}; leave out one of these edges",)
            raise
        retention = []
        for edge in edges:
            base: dict[str, float] = {}
            if edge.retention is not None:  # it replaces the base of the edge's kind
                base[edge.kind] = edge.retention
            (factor,) = gear.retention([edge.kind], settings.kappa, base)
            retention.append(float(factor))
        return {"parents": parents.tolist(), "children": children.tolist(), "retention": retention}

    def combine(self, matrices: InputMatrices, params: RawParams) -> Component:
        p, has_value = input_means(matrices)
        weights = signed_weights(matrices)
        judged = are_criteria_judged(matrices)
        support = self._supported_probabilities(matrices, judged, p, params)
        # An unjudged parent never helps: it supports no gain, and it does support a penalty.
        q = np.where(weights > 0, support.if_unmet, support.if_met)
        value, present = _weighted_reward(q, weights, has_value)
        return Component(value, present, _parts(matrices, q))

    def bounds(self, low: InputMatrices, high: InputMatrices, params: RawParams) -> BoundArrays:
        """Interval arithmetic: the least uses q from 0-fill where w>0 and 1-fill where w<0; the greatest the reverse.

        The 1-fill is propagated, and never below the value that counts under the rule for unjudged parents.
        """
        p_low, has_value = input_means(low)
        p_high, _ = input_means(high)
        weights = signed_weights(low)
        has_positive_weight = weights > 0
        filled_low = self._supported_probabilities(low, has_value, p_low, params)
        # A criterion that a gate stopped supports no gain.
        judged_low = self._supported_probabilities(low, are_criteria_judged(low), p_low, params)
        filled_high = self._supported_probabilities(high, has_value, p_high, params)
        judged_high = self._supported_probabilities(high, are_criteria_judged(high), p_high, params)
        q_low = np.where(
            has_positive_weight,
            np.minimum(filled_low.if_unmet, judged_low.if_unmet),
            np.minimum(filled_low.if_met, judged_low.if_met),
        )
        greatest_gain = np.maximum(filled_high.if_unmet, judged_high.if_unmet)
        q_high = np.where(has_positive_weight, greatest_gain, judged_high.if_met)
        least, _ = _weighted_reward(
            np.where(has_positive_weight, q_low, q_high), weights, has_value
        )
        greatest, _ = _weighted_reward(
            np.where(has_positive_weight, q_high, q_low), weights, has_value
        )
        return least, greatest

    def prerequisites(self, params: RawParams) -> Prerequisites:
        edges = zip(params.get("parents", ()), params.get("children", ()), strict=True)
        return [(parent, child, None) for parent, child in edges]

    def _supported_probabilities(
        self, matrices: InputMatrices, judged: Bools, p: Floats, params: RawParams
    ) -> SupportedProbabilities:
        """Return the part of p [R,C] that the parents leave, given which criteria are `judged` [R,C]; all of p without
        parents."""
        return SupportedProbabilities(p, p)


class Flat(_Rubric):
    """q = p: the rubric without its graph."""

    name = "flat"
    uses_edges = False


class Gear(_Rubric):
    """q_i = p_i · E[Π (z_j + (1 − z_j)·λ_ji)] over the parents' events z_j (GEAR Eq. 11), or with Π E (Eq. 12).

    With `exact: auto`, the default, Eq. 11 is used up to ten criteria with a parent; with `never`, always Eq. 12. The
    plan stores which of the two in `inference`.

    With `always`, more than twenty criteria with a parent are a `PlanError`.
    """

    name = "gear"
    version = "3"

    def freeze(self, inputs: ComponentInputs, params: RawParams) -> JsonFields:
        frozen_params = super().freeze(inputs, params)
        exact_inference_setting: ExactInferenceMode = self.read_params(params).exact
        graph = _compiled_graph(len(inputs), frozen_params)
        is_exact_inference = is_inferred_exactly(graph, exact_inference_setting)
        if is_exact_inference and graph.criteria_with_parent_count > gear.MAX_ENUMERATED_CHILDREN:
            raise PlanError(
                f"{graph.criteria_with_parent_count} criteria of the rubric have a parent, and exact inference takes "
                f"{gear.MAX_ENUMERATED_CHILDREN} at most; write `exact: auto` instead of `{exact_inference_setting}`"
            )
        return {**frozen_params, "inference": "exact" if is_exact_inference else "one-pass"}

    def prerequisites(self, params: RawParams) -> Prerequisites:
        return list(zip(params["parents"], params["children"], params["retention"], strict=True))

    def describe_rule(self, params: RawParams) -> str:
        if not params["parents"]:
            return ""
        return "exact inference" if params["inference"] == "exact" else "one-pass update"

    def _supported_probabilities(
        self, matrices: InputMatrices, judged: Bools, p: Floats, params: RawParams
    ) -> SupportedProbabilities:
        graph = _compiled_graph(p.shape[1], params)
        is_exact_inference = params["inference"] == "exact"
        return marginals(graph, p, params["retention"], judged, is_exact_inference)


def is_inferred_exactly(graph: gear.Graph, inference: ExactInferenceMode) -> bool:
    """Return whether `gear` infers a graph's marginals exactly under this setting."""
    if inference == "auto":
        return graph.criteria_with_parent_count <= gear.MAX_EXACT_CHILDREN
    if inference == "ten-nodes":
        return graph.n <= gear.MAX_EXACT_NODES
    return inference == "always"


def marginals(
    graph: gear.Graph,
    p: Floats,
    retention: ArrayLike,
    judged: Bools,
    is_exact_inference: bool,
) -> SupportedProbabilities:
    """Return q, [R,C], by exact inference or by Eq. 12, if all criteria that are not `judged` [R,C] count as unmet, and
    if they count as met: for gains and for penalties, however many edges lie between (our reading).

    Applied edge by edge, the gain left under an unjudged prerequisite would spare a penalty that depends on it.
    """
    infer_marginals = graph.exact_marginals if is_exact_inference else graph.marginals
    if judged.all():
        q = infer_marginals(p, retention)
        return SupportedProbabilities(q, q)
    return SupportedProbabilities(
        if_unmet=infer_marginals(p, retention, judged, 0.0),
        if_met=infer_marginals(p, retention, judged, 1.0),
    )


class _HardGatingRubric(_Rubric):
    """q_i = p_i if the parents' decisions hold, else 0."""

    mode: ClassVar[Literal["local", "transitive"]]

    def freeze(self, inputs: ComponentInputs, params: RawParams) -> JsonFields:
        met_from = self.read_params(params).met_from
        frozen_params = super().freeze(inputs, params)
        if met_from != MET_THRESHOLD:  # plans without it keep their digests
            frozen_params["met_from"] = met_from
        return frozen_params

    def _supported_probabilities(
        self, matrices: InputMatrices, judged: Bools, p: Floats, params: RawParams
    ) -> SupportedProbabilities:
        graph = _compiled_graph(p.shape[1], params)
        met = _are_criteria_met(matrices)
        return SupportedProbabilities(
            if_unmet=graph.hard_gating(p, mode=self.mode, met=met & judged),
            if_met=graph.hard_gating(p, mode=self.mode, met=met | ~judged),
        )


class HardLocal(_HardGatingRubric):
    """Hard gating by the judge's own answer on each parent (the baseline of GEAR)."""

    name = "hard-local"
    mode = "local"


class HardTransitive(_HardGatingRubric):
    """Hard gating by each parent's gated decision: the same as λ = 0."""

    name = "hard-transitive"
    mode = "transitive"


_compile_cached_graph = lru_cache(maxsize=256)(gear.compile)


def _compiled_graph(size: int, params: RawParams) -> gear.Graph:
    """Return the graph of so many criteria with the prerequisites of a plan's params."""
    return _compile_cached_graph(size, tuple(params["parents"]), tuple(params["children"]))


def signed_weights(matrices: InputMatrices) -> Floats:
    """Return the signed weights of the criteria, [C]."""
    weights = [
        criterion.input_weight if criterion.weight[0] > 0 else -criterion.input_weight
        for criterion in matrices.values()
    ]
    return np.array(weights)


def are_criteria_judged(matrices: InputMatrices) -> Bools:
    """Return which criteria were judged, [R,C]: every applicable cell is judged, and at least one cell applies."""
    columns = []
    for criterion in matrices.values():
        is_fully_judged = (criterion.judged | ~criterion.applicable).all(axis=1)
        columns.append(is_fully_judged & criterion.applicable.any(axis=1))
    return np.stack(columns, axis=1)


def _are_criteria_met(matrices: InputMatrices) -> Bools:
    """Return the judges' own answers, [R,C]: met in at least half of the applicable cells."""
    columns = []
    for criterion in matrices.values():
        applicable = np.where(criterion.applicable, 1.0, 0.0)
        met_count = aggregation.total(applicable * criterion.met)
        columns.append(met_count * 2 >= aggregation.total(applicable))
    return np.stack(columns, axis=1)


def _weighted_reward(q: Floats, weights: Floats, has_value: Bools) -> ValuesAndMask:
    """Return Eq. 14 [R] over the criteria that have a value, and a mask [R] of the rows with one of positive weight."""
    size = np.where(has_value, weights, 0.0)
    positive_weight_total = aggregation.total(np.maximum(size, 0.0))
    present: Bools = np.greater(positive_weight_total, 0.0)
    return aggregation.total(size * q) / np.where(present, positive_weight_total, 1.0), present


class _Welfare(Combiner):
    """Base class of the welfare rules: each `input_weight` is the weight w_i, frozen before any response was seen.

    The plan sets the params of the default component. The parts are the û_i; the diagnostics are those of the group.
    """

    class Params(ParamsModel):
        hard: dict[str, list[int]] = Field(default_factory=dict)
        """The places of each stakeholder's questions about hard constraints."""
        soft: dict[str, list[int]] = Field(default_factory=dict)
        """Those about soft constraints."""
        collected: dict[str, list[int]] = Field(default_factory=dict)
        """Those about preferences that the response recorded, which do not count in û_i."""
        cap: UnitInterval | None = None
        """With a violated hard constraint, the most that û_i may be, times the mean of the hard ones."""
        difficulty: JsonObject = Field(default_factory=dict)
        """For the record: the terms that the weights come from."""
        calibration: JsonObject = Field(default_factory=dict)
        """For the record: the settings that the weights come from."""

    version = "2"
    batched = True
    is_sum = True
    aggregates_utilities = True

    def describe_rule(self, params: RawParams) -> str:
        return "the sum of w × û"

    def freeze(self, inputs: ComponentInputs, params: RawParams) -> JsonFields:
        weights = [spec_input.input_weight for spec_input in inputs.values()]
        total = float(aggregation.total(weights))
        if abs(total - 1.0) > stakeholders.SUM_TOLERANCE:
            raise PlanError(
                f"combiner {self.name!r} has inputs whose weights sum to {total}; choose weights that sum to 1"
            )
        settings: _Welfare.Params = self.read_params(params)
        return settings.model_dump(mode="json", exclude_unset=True)

    def combine(self, matrices: InputMatrices, params: RawParams) -> Component:
        hard_indices_by_input = params.get("hard", {})
        cap = params.get("cap")
        columns = []
        for name, matrix in matrices.items():
            hard_criterion_indices = list(hard_indices_by_input.get(name, ()))
            columns.append(_stakeholder_utility(matrix, hard_criterion_indices, cap))
        utility, has_utility = (np.stack(arrays, axis=1) for arrays in zip(*columns, strict=True))
        weight = _input_weights(matrices, has_utility)
        present = np.asarray(has_utility.any(axis=1))
        # Weights of all members sum to 1 already: dividing by their rounded sum would change bits.
        is_weight_sum_one = has_utility.all(axis=1) | ~present
        scale = np.where(is_weight_sum_one, 1.0, aggregation.total(weight))
        value = self._combine_utilities(weight / scale[:, None], utility, has_utility, params)
        diagnostics = _group_diagnostics(utility, has_utility, matrices, params)
        return Component(value, present, _parts(matrices, utility), diagnostics)

    def _combine_utilities(
        self, weight: Floats, utility: Floats, has_utility: Bools, params: RawParams
    ) -> Floats:
        """Return R [R] from the weights, the utilities and the mask of utilities that exist, each [R,n]: Σ w_i û_i."""
        return totals(weight * utility)


class Stakeholders(_Welfare):
    """R = Σ w_i û_i (DecompR Eq. 2). If all of a stakeholder's questions were gated out, the weights of the others are
    scaled up to sum to 1."""

    name = "stakeholders"


class Egalitarian(_Welfare):
    """R = Σ w_i û_i if every û_i reaches the `floor`; otherwise no more than the least û_i."""

    class Params(_Welfare.Params):
        floor: UnitInterval
        """The least û_i that leaves the weighted sum as it is."""

    name = "egalitarian"

    def describe_rule(self, params: RawParams) -> str:
        return f"{super().describe_rule(params)}, at most the lowest û if that is below {params['floor']:.4f}"

    def _combine_utilities(
        self, weight: Floats, utility: Floats, has_utility: Bools, params: RawParams
    ) -> Floats:
        weighted_utility = super()._combine_utilities(weight, utility, has_utility, params)
        least_utility = stakeholders.minimum(np.where(has_utility, utility, 1.0))
        return np.where(
            least_utility < params["floor"],
            np.minimum(weighted_utility, least_utility),
            weighted_utility,
        )


class Nash(_Welfare):
    """R = Π û_i, Nash's product with a disagreement point of 0: it uses no weights, and a single 0 makes it 0."""

    name = "nash"
    is_sum = False
    is_product = True

    def describe_rule(self, params: RawParams) -> str:
        return "the product of all û, regardless of w"

    def _combine_utilities(
        self, weight: Floats, utility: Floats, has_utility: Bools, params: RawParams
    ) -> Floats:
        return reduce(np.multiply, np.where(has_utility, utility, 1.0).T)


def _stakeholder_utility(
    matrix: ScoreMatrix, hard_criterion_indices: list[int], cap: float | None
) -> ValuesAndMask:
    """Return û_i [R] and a mask of the rows that have one."""
    utility, has_utility = matrix.mean()
    if not hard_criterion_indices or cap is None:
        return utility, has_utility
    applicable = matrix.applicable[:, hard_criterion_indices]
    mean_hard_score, _ = weighted_mean(
        matrix.value[:, hard_criterion_indices], np.where(applicable, 1.0, 0.0)
    )
    violates_constraint = (applicable & ~matrix.met[:, hard_criterion_indices]).any(axis=1)
    capped_utility = np.minimum(utility, cap * mean_hard_score)
    return np.where(violates_constraint, capped_utility, utility), has_utility


PREFERENCE_COMPLETENESS_DIAGNOSTIC = "preference completeness"
_GROUP_STATISTIC_FUNCTIONS: Mapping[str, Callable[[Floats], Any]] = {
    "group utility": stakeholders.group_utility,
    "least utility": stakeholders.minimum,
    "gini": stakeholders.gini,
    "jain": stakeholders.jain,
}


def _group_diagnostics(
    utility: Floats, has_utility: Bools, matrices: InputMatrices, params: RawParams
) -> dict[str, Floats]:
    """Return figures of the group: mean and least û, Gini and Jain, the share of soft constraints addressed, and the
    two of GroupTravelBench. Only utilities that exist, and constraints that apply, count; NaN where there are none.

    Group fairness is NaN unless each member has a utility and all its verdicts: min / max over the others would be
    too high, and a verdict that is missing makes utilities more alike where it lowers the highest.
    """
    diagnostics = {name: np.full(len(utility), np.nan) for name in _GROUP_STATISTIC_FUNCTIONS}
    # Rows with the same members are computed at once.
    for members in np.unique(has_utility, axis=0):
        if not members.any():
            continue
        rows = np.flatnonzero((has_utility == members).all(axis=1))
        utilities = utility[np.ix_(rows, np.flatnonzero(members))]
        for name, compute_statistic in _GROUP_STATISTIC_FUNCTIONS.items():
            diagnostics[name][rows] = compute_statistic(utilities)
    # By input: the rows [R] in which every cell that counts was judged.
    is_judged = [
        (matrix.judged | ~matrix.applicable | (matrix.weight == 0.0)).all(axis=1)
        for matrix in matrices.values()
    ]
    is_group_judged = np.all([has_utility.all(axis=1), *is_judged], axis=0)
    fairness = stakeholders.group_fairness(utility)
    diagnostics["group fairness"] = np.where(is_group_judged, fairness, np.nan)
    if params.get("soft"):
        met_count, applicable_criterion_count = map(
            aggregation.total, _count_met_criteria(matrices, params["soft"])
        )
        share = np.where(
            np.greater(applicable_criterion_count, 0.0),
            met_count / np.maximum(applicable_criterion_count, 1.0),
            np.nan,
        )
        diagnostics["preferences addressed"] = share
    if params.get("collected"):
        met_count, applicable_criterion_count = _count_met_criteria(matrices, params["collected"])
        completeness = stakeholders.preference_completeness(met_count, applicable_criterion_count)
        diagnostics[PREFERENCE_COMPLETENESS_DIAGNOSTIC] = np.asarray(completeness)
    return diagnostics


def _count_met_criteria(
    matrices: InputMatrices, columns: Mapping[str, Sequence[int]]
) -> BoundArrays:
    """Return how many of these columns are met, and how many apply, by input, [R,n] each."""
    met_counts = []
    applicable_criterion_counts = []
    for name, positions in columns.items():
        column_indices = list(positions)
        applicable = matrices[name].applicable[:, column_indices]
        met = applicable & matrices[name].met[:, column_indices]
        met_counts.append(count_true(met))
        applicable_criterion_counts.append(count_true(applicable))
    return np.stack(met_counts, axis=1), np.stack(applicable_criterion_counts, axis=1)
