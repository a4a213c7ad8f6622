"""The base class of combiners, which compute one component of the reward from numbers alone, and their arrays."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from jurygraph import aggregation
from jurygraph.arrays import Bools, Floats
from jurygraph.display import Displayed
from jurygraph.errors import JurygraphError, PlanError
from jurygraph.safety.redaction import process_redactor
from jurygraph.schema import ComponentInput, Question, SkippedRule
from jurygraph.schema.frozen_model import ParamsModel, PlainParams, read_params


@dataclass(frozen=True, slots=True, repr=False)
class ScoreMatrix(Displayed):
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

    def mean(self) -> tuple[Floats, Bools]:
        """Return the mean over the applicable columns by |weight| [R], and a mask [R] of the rows with any applicable
        column."""
        return weighted_mean(self.value, np.where(self.applicable, np.abs(self.weight), 0.0))


def weighted_mean(values: Floats | Bools, weights: Floats) -> tuple[Floats, Bools]:
    """Return the mean of the columns of each row [R], 0 without any weight, and a mask [R] of the rows with a weight.

    `values` and `weights` are [R,N], and the weights at least 0.
    """
    weight = aggregation.total(weights)
    has_weight: Bools = np.greater(weight, 0.0)
    return aggregation.total(weights * values) / np.where(has_weight, weight, 1.0), has_weight


Matrices = Mapping[str, ScoreMatrix]
"""The matrices of a component's inputs, by name."""


@dataclass(frozen=True, slots=True, repr=False)
class Component(Displayed):
    """A component of the reward: value [R], the rows that have one, and its named parts [R] for the trace.

    `diagnostics` [R] are reported with the component but are not parts of it. In both, NaN means there is nothing to
    report; a part that has the name of an input is only reported where this input applies.
    """

    value: Floats
    present: Bools
    parts: Mapping[str, Floats]
    diagnostics: Mapping[str, Floats] = field(default_factory=dict)


class Combiner(Displayed, ABC):
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
    if_skipped: ClassVar[SkippedRule | None] = None
    is_sum: ClassVar[bool] = False
    is_product: ClassVar[bool] = False
    counts_criteria: ClassVar[bool] = False
    aggregates_utilities: ClassVar[bool] = False
    ranks_contrasts: ClassVar[bool] = False

    def check_questions(self, questions: Sequence[Question], params: PlainParams) -> None:
        """Check the questions of all inputs when the plan is made. Raises PlanError if the combiner cannot use them."""

    def arrange_inputs(
        self, inputs: Mapping[str, ComponentInput], reviewers: Mapping[str, str | None], params: PlainParams
    ) -> Mapping[str, ComponentInput]:
        """Return the inputs as the plan has them, by name.

        `reviewers` has for every question the reviewer whom it predicts; None if it predicts nobody in particular.
        Raises PlanError if the inputs do not fit.
        """
        return inputs

    def freeze(self, inputs: Mapping[str, ComponentInput], params: PlainParams) -> dict[str, Any]:
        """Return the parameters to store in the plan: those of the config, or their defaults, unless overridden.

        Raises PlanError if the inputs or params do not fit.
        """
        frozen: dict[str, Any] = self.read_params(params).model_dump(mode="json")
        return frozen

    def read_params(self, params: PlainParams) -> Any:
        """Return the config's params as `Params`. Raises PlanError that names the first wrong one."""
        name = getattr(self, "name", type(self).__name__)  # a class of the user's may have none
        return read_params(f"combiner {name!r}", self.Params, params, PlanError)

    @abstractmethod
    def combine(self, matrices: Matrices, params: PlainParams) -> Component:
        """Return the component of every response.

        If every question looks at one response only, each row is computed from that row only: other responses in the
        group or in a re-scored run do not change it.
        """

    def bounds(self, low: Matrices, high: Matrices, params: PlainParams) -> tuple[Floats, Floats]:
        """Return the least and greatest component [R], from matrices with every unjudged value at 0 and at 1.

        Correct for a combiner that never decreases when a cell increases; other combiners override it.
        """
        return self.combine(low, params).value, self.combine(high, params).value

    def has_direction(self, name: str) -> bool:
        """Return true if a higher score in the input of this name never lowers the component."""
        return True

    def prerequisites(self, params: PlainParams) -> Sequence[tuple[int, int, float | None]]:
        """Return the places of inputs that depend on each other: parent, child, and λ, None for all or nothing."""
        return ()

    def part_inputs(self, params: PlainParams) -> Mapping[str, Sequence[str]]:
        """Return the names of the inputs that each part is computed from, for parts that are no inputs themselves."""
        return {}

    def describe_rule(self, params: PlainParams) -> str:
        """Describe how prerequisites are inferred, or how utilities become one number; empty without such a rule."""
        return ""

    def describe_inputs(self, params: PlainParams) -> Sequence[str]:
        """Return what the inputs are taken to be about, one sentence each, where that is not plain from their names."""
        return ()

    def describe_value(
        self, params: PlainParams, diagnostics: Mapping[str, float], is_filled_in: bool
    ) -> Sequence[str]:
        """Describe how the value follows from the parts, if it is neither a sum nor a product of them.

        `is_filled_in` if the failure rule gave a missing verdict a value.
        """
        return ()


Combiners = Mapping[str, Combiner]
"""The combiners of a config, by name."""


@contextmanager
def as_plan_error(owner: str) -> Iterator[None]:
    """Re-raise an exception from user code as a PlanError that names its owner."""
    try:
        yield
    except JurygraphError:
        raise
    except Exception as error:
        message = process_redactor().redact_text(f"{type(error).__name__}: {error}")
        raise PlanError(f"{owner} failed: {message}; fix it, or use another one") from error
