"""Votes as integer codes, expectation-maximisation of Dawid and Skene's model (STABLEVAL, Algorithm 1), and results.

Results are credit of items, scores of agents, error rates of annotators, and margins of a majority.
EM is in log space, and classes are the first axis of its arrays, so that work on one class is contiguous: γ [K,N],
μ [K], π [K,A·K], with columns annotator · K + label. Its N items are those that count; each has a label.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.arrays import Bools, Floats, Ints, as_finite, check_choice, check_shape
from jurygraph.errors import PlanError
from jurygraph.inference.clusters import (
    Bounds,
    bounded_interval,
    divide_or_nan,
    mean_interval,
    members_by_cluster,
)

ItemKey = Hashable
ItemKeys = Sequence[ItemKey]
GoldLabels = Mapping[Any, Any]
"""Known classes, by item."""
MAX_CONFUSION_CELLS = 2**28
"""Cells of all confusion matrices together; more would take over 2 GB."""


@dataclass(frozen=True)
class Votes:
    """Rows of (item, annotator, label) as codes, in their order.

    Abstentions are left out of `item`, `annotator` and `label` [L].

    `items` [N], `annotators` [A] and their codes are in the order of first appearance; `classes` [K] run from low to
    high with `has_ordered_classes`: passed in that order, or numbers. `item_code_by_row` has the items of all
    rows, including abstentions.
    """

    items: ItemKeys
    annotators: ItemKeys
    classes: ItemKeys
    has_ordered_classes: bool
    item: Ints
    annotator: Ints
    label: Ints
    item_code_by_row: Ints

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return N, A, K."""
        return len(self.items), len(self.annotators), len(self.classes)

    @property
    def abstention_count(self) -> int:
        return len(self.item_code_by_row) - len(self.item)

    @cached_property
    def repeated_rows(self) -> int:
        """Return the number of rows whose annotator labelled the same item before. They count as any other."""
        pairs = np.sort(self.item * len(self.annotators) + self.annotator)
        return int(np.count_nonzero(pairs[1:] == pairs[:-1]))

    @cached_property
    def has_label(self) -> Bools:
        """Return which items have a label, [N]."""
        return np.bincount(self.item, minlength=len(self.items)) > 0

    @property
    def labels_by_annotator(self) -> Ints:
        """Return the number of labels of each annotator, [A]."""
        return np.bincount(self.annotator, minlength=len(self.annotators))

    def constant_labels(self) -> dict[int, tuple[Any, int]]:
        """Return the class, and how often it is given, of each annotator who gives hardly another one, by code.

        It is 95 % of the labels and more, where the others' labels make that unlikely: those of the same items, with an
        imaginary one of this class and one of another, are taken as draws, which are of it so often with a probability
        below 1 %.
        """
        from scipy import special  # imported lazily: every `study` command would wait for it

        class_by_annotator = {}
        for code, label_count in enumerate(self.labels_by_annotator.tolist()):
            is_own = self.annotator == code
            counts = np.bincount(self.label[is_own], minlength=len(self.classes))
            commonest = int(counts.argmax())
            count = int(counts[commonest])
            if count < max(_MIN_CONSTANT_LABELS, _CONSTANT_SHARE * label_count):
                continue
            others_labels = self.label[~is_own & np.isin(self.item, self.item[is_own])]
            same_count = np.count_nonzero(others_labels == commonest)
            share = (same_count + 1) / (len(others_labels) + 2)
            is_unlikely = special.bdtrc(count - 1, label_count, share) < _CONSTANT_LABELS_LEVEL
            if len(others_labels) >= _MIN_CONSTANT_LABELS and is_unlikely:
                class_by_annotator[code] = self.classes[commonest], count
        return class_by_annotator

    def agreement_by_annotator(self) -> Floats:
        """Return the mean share of the others' labels of an item that are the annotator's, [A]; NaN without any."""
        sizes = self.counts.sum(axis=1)[self.item]
        is_shared = sizes > 1
        others = (self.counts[self.item, self.label] - 1)[is_shared] / (sizes[is_shared] - 1)
        annotators = self.annotator[is_shared]
        count = len(self.annotators)
        totals = np.bincount(annotators, minlength=count)
        return divide_or_nan(np.bincount(annotators, others, count), totals)

    @cached_property
    def counts(self) -> Ints:
        """Return how often each item got each label, [N,K]."""
        n, _, k = self.shape
        return np.bincount(self.item * k + self.label, minlength=n * k).reshape(n, k)

    @cached_property
    def matrix(self) -> Any:
        """Return how often each item got each label by each annotator, sparse, [N, A·K] by annotator · K + label."""
        from scipy.sparse import coo_array

        n, a, k = self.shape
        cells = self.annotator * k + self.label
        return coo_array((np.ones(len(cells)), (self.item, cells)), shape=(n, a * k)).tocsr()

    def select_labels(self, kept: Bools) -> "Votes":
        """Return these labels [L] only; items, annotators and classes keep their codes."""
        return replace(
            self, item=self.item[kept], annotator=self.annotator[kept], label=self.label[kept]
        )


def encode(
    item: ArrayLike,
    annotator: ArrayLike,
    label: ArrayLike,
    classes: ItemKeys | None = None,
) -> Votes:
    """Encode rows. A label that is None, NaN or "" is an abstention.

    Args:
        item, annotator, label: row by row, [rows]; numbers, strings, or other hashable values.
        classes: all labels, from low to high; by default those that occur, sorted.

    Raises:
        PlanError: lists of different lengths, empty lists, a label that is not a class, or only abstentions.
    """
    item_column = _column_to_list("item", item)
    annotator_column = _column_to_list("annotator", annotator)
    label_column = _column_to_list("label", label)
    if not len(item_column) == len(annotator_column) == len(label_column):
        raise PlanError(
            f"the columns differ in length: item {len(item_column)}, annotator "
            f"{len(annotator_column)}, label {len(label_column)}; give each row all three"
        )
    has_label = ~_missing_value_mask(label_column)
    if not has_label.any():
        raise PlanError(
            "there is no label: nothing but abstentions" if len(has_label) else "there are no rows"
        )
    item_codes, items = _encode_values("item", item_column)
    annotator_codes, annotators = _encode_values("annotator", annotator_column)
    if classes is not None:
        _refuse_large_confusions(len(annotators), len(classes))
    label_codes, scale, has_ordered_classes = _encode_labels(label_column, has_label, classes)
    _refuse_large_confusions(len(annotators), len(scale))
    return Votes(
        items=items,
        annotators=annotators,
        classes=scale,
        has_ordered_classes=has_ordered_classes,
        item=item_codes[has_label],
        annotator=annotator_codes[has_label],
        label=label_codes,
        item_code_by_row=item_codes,
    )


def _refuse_large_confusions(annotators: int, classes: int) -> None:
    if annotators * classes**2 > MAX_CONFUSION_CELLS:
        raise PlanError(
            f"{annotators} annotators and {classes} classes "
            f"have more than {MAX_CONFUSION_CELLS} cells of confusion; join classes that are alike"
        )


def _column_to_list(name: str, values: Any) -> list[Any]:
    """Return a column as a list of Python values. A list is not made an array: 1 and "1" would become the same."""
    if isinstance(values, list | tuple):
        return [value.item() if isinstance(value, np.generic) else value for value in values]
    column = np.asarray(values)
    if column.ndim != 1:
        raise PlanError(f"{name} has shape {column.shape} where one value a row is needed")
    return list(column.tolist())


def _missing_value_mask(values: Sequence[Any]) -> Bools:
    # NaN is not itself.
    is_missing = [value is None or value in ("", b"") or value != value for value in values]
    return np.array(is_missing, dtype=np.bool_)


def _encode_values(name: str, values: Sequence[Any]) -> tuple[Ints, list[Any]]:
    """Return the codes of a column, in the order of first appearance, and their values. PlanError if one is empty."""
    is_missing = _missing_value_mask(values)
    if is_missing.any():
        raise PlanError(f"{name}[{int(np.argmax(is_missing))}] is empty; name it")
    code_by_value: dict[Any, int] = {}
    try:
        codes = [code_by_value.setdefault(value, len(code_by_value)) for value in values]
    except TypeError as error:
        raise PlanError(f"{name}: {error}; give numbers or text") from error
    return np.array(codes, dtype=np.intp), list(code_by_value)


def _encode_labels(
    label: Sequence[Any], has_label: Bools, classes: ItemKeys | None
) -> tuple[Ints, ItemKeys, bool]:
    codes, names = _encode_values("label", list(compress(label, has_label)))
    if classes is None:
        try:
            scale = sorted(names)
        except TypeError:
            kinds = ", ".join(sorted({type(name).__name__ for name in names}))
            raise PlanError(
                f"label: no order between {kinds}; write all labels alike, or name them in `classes`"
            ) from None
        has_ordered_classes = all(isinstance(name, int | float) for name in names)
    else:
        scale = list(classes)
        has_ordered_classes = True
    if len(set(scale)) < len(scale):
        raise PlanError(f"classes: one is there twice in {scale}; name each once, from low to high")
    code_by_class = {name: class_code for class_code, name in enumerate(scale)}
    for code, name in enumerate(names):
        if name not in code_by_class:
            row = int(np.flatnonzero(has_label)[np.argmax(codes == code)])
            classes_text = ", ".join(map(repr, scale[:20]))
            if len(scale) > 20:
                classes_text += f", … ({len(scale)})"
            raise PlanError(
                f"label[{row}] is {name!r}, which is none of the classes {classes_text}"
            )
    # From codes by first appearance to codes by the order of the classes.
    class_code_by_label_code = np.array([code_by_class[name] for name in names])
    return class_code_by_label_code[codes], scale, has_ordered_classes


def gold_class_codes(votes: Votes, gold: GoldLabels) -> Ints:
    """Return the class of each gold item, -1 for any other, [N]. PlanError for an unknown item or class."""
    index_by_item = {item: index for index, item in enumerate(votes.items)} if gold else {}
    code_by_label = {label: code for code, label in enumerate(votes.classes)}
    class_code_by_item = np.full(len(votes.items), -1)
    for item, truth in gold.items():
        if item not in index_by_item:
            raise PlanError(f"gold: there is no item {item!r}")
        if truth not in code_by_label:
            raise PlanError(
                f"gold: {truth!r} of item {item!r} is none of the classes {list(votes.classes)!r}"
            )
        class_code_by_item[index_by_item[item]] = code_by_label[truth]
    return class_code_by_item


FitPreset = Literal["converged", "paper", "paper-synthetic"]

_OBJECTIVE_RELATIVE_TOLERANCE = 1e-13
_CONSTANT_LABELS_LEVEL = 0.01
_MIN_CONSTANT_LABELS = 5
_CONSTANT_SHARE = 0.95
"""Relative fall of the objective that is within rounding error, so that the step is still accepted."""


class Model(NamedTuple):
    """The estimated parameters: the shares of the classes μ [K], and the confusions π [K,A·K]."""

    prior: Floats
    confusion: Floats


class FitSettings(NamedTuple):
    """Settings of the EM steps and of their start.

    Attributes:
        prior_mu, prior_confusion: Dirichlet α of μ and of each row of π, at least 1; 1 means no prior.
        floor: added to a probability before its logarithm is taken.
        convergence_on: the array of which the largest change in a step is compared with `tol`.
        tol: largest change at which the estimate counts as converged.
        max_iter: maximum number of steps.
        accelerated: extrapolate steps (SQUAREM); a step is kept only where the objective does not fall.
        prior_start: μ starts from the hard majority vote or uniform.
        diagonal: the diagonal of π at the start; the rest is shared equally.
    """

    prior_mu: float
    prior_confusion: float
    floor: float
    convergence_on: Literal["posterior", "confusion"]
    tol: float
    max_iter: int
    accelerated: bool
    prior_start: Literal["majority", "uniform"] = "majority"
    diagonal: float = 0.8


_PAPER_SETTINGS = FitSettings(1.0, 1.01, 1e-10, "posterior", 1e-6, 100, accelerated=False)
PRESETS: Mapping[FitPreset, FitSettings] = {
    "converged": _PAPER_SETTINGS._replace(
        floor=float(np.finfo(np.float64).tiny), tol=1e-9, max_iter=10_000, accelerated=True
    ),
    "paper": _PAPER_SETTINGS,
    "paper-synthetic": _PAPER_SETTINGS._replace(
        prior_confusion=1.0, convergence_on="confusion", prior_start="uniform"
    ),
}
"""`converged` runs until the estimate no longer changes; `paper` is the truncated estimate of STABLEVAL's tables of
real votes, and `paper-synthetic` that of its simulations."""


def fit_settings_from_preset(preset: FitPreset, **setting_overrides: Any) -> FitSettings:
    """Return a preset with the settings that are not None. PlanError for an unknown preset or a value out of range."""
    if preset not in PRESETS:
        raise PlanError(f"preset {preset!r} is none of {', '.join(PRESETS)}")
    changes = {name: value for name, value in setting_overrides.items() if value is not None}
    settings = PRESETS[preset]._replace(**changes)
    for name in ("prior_mu", "prior_confusion"):
        value = getattr(settings, name)
        if not 1.0 <= value < np.inf:
            raise PlanError(f"{name} is {value}: at least 1 is needed, which is no prior")
    for name in ("diagonal", "tol"):
        value = getattr(settings, name)
        if not 0.0 < value < 1.0:
            raise PlanError(f"{name} is {value}: more than 0 and less than 1 is needed")
    if settings.max_iter < 1:
        raise PlanError(f"max_iter is {settings.max_iter}: at least 1 is needed")
    return settings


class ModelFit(NamedTuple):
    """The estimate: `posterior` is γ [K,N] of the last E-step, `objective` the log-likelihood plus log-priors."""

    model: Model
    posterior: Floats
    log_likelihood: float
    objective: float
    converged: bool
    iterations: int


class _EStepResult(NamedTuple):
    posterior: Floats
    log_likelihood: float
    objective: float


def fit_model(
    votes: Votes, weight: Floats, settings: FitSettings, gold: Ints, start: Model | None = None
) -> ModelFit:
    """Fit the items that count; `weight` [N] is how often each does, 0 for one without a label.

    `gold` [N] is the class of a gold item, -1 for any other; `start` replaces the usual start.
    """
    if len(votes.classes) < 2:
        raise PlanError(
            f"every label is {votes.classes[0]!r}: at least two classes are needed; name the whole scale"
        )
    weighted_item_indices = np.flatnonzero(weight)
    problem = FitProblem(
        votes.matrix[weighted_item_indices],
        votes.counts[weighted_item_indices],
        weight[weighted_item_indices],
        settings,
        gold[weighted_item_indices],
    )
    return problem.run(start)


@dataclass(frozen=True)
class FitProblem:
    """EM by given settings.

    `matrix` [N, A·K] has the labels of the items, `counts` [N,K] their sums over annotators, `weight` [N] how often
    each item counts, and `gold` [N] the class of a gold item, -1 for any other.
    """

    matrix: Any
    counts: Ints
    weight: Floats
    settings: FitSettings
    gold: Ints

    @cached_property
    def _transposed_matrix(self) -> Any:
        """`matrix` by label, made once: a step multiplies it by a row for each class."""
        return self.matrix.T

    @cached_property
    def _gold_items(self) -> Ints:
        return np.flatnonzero(self.gold >= 0)

    def run(self, start: Model | None = None) -> ModelFit:
        """Run steps from the usual start, or another one, to convergence or `max_iter`."""
        majority = self.counts.argmax(axis=1)  # ties to the lowest class
        winner = np.where(self.gold >= 0, self.gold, majority)
        classes = np.arange(self.counts.shape[1])
        initial_posterior = np.asarray(classes[:, None] == winner, dtype=np.float64)  # [K,N]
        model = start or self._near_identity_model(initial_posterior)
        if self.settings.accelerated:
            return self._run_accelerated_em(model)
        return self._run_plain_em(model, initial_posterior)

    def _near_identity_model(self, initial_posterior: Floats) -> Model:
        """Return μ by the settings, and near-identity confusions, which weigh as much as one label, with gold labels.

        So an annotator whose gold labels are mostly the opposite class starts with such confusions.
        """
        k = len(initial_posterior)
        near_identity_matrix = np.full((k, k), (1.0 - self.settings.diagonal) / (k - 1))
        np.fill_diagonal(near_identity_matrix, self.settings.diagonal)
        confusion = np.tile(near_identity_matrix, self.matrix.shape[1] // k)
        if len(self._gold_items):
            weighted_gold_classes = initial_posterior * self.weight * (self.gold >= 0)
            confusion += np.stack([self._transposed_matrix @ row for row in weighted_gold_classes])
        if self.settings.prior_start == "uniform":
            prior = np.full(k, 1.0 / k)
        else:
            prior = initial_posterior @ self.weight / self.weight.sum()
        return Model(prior, _normalize_confusion_rows(confusion))

    def e_step(self, model: Model) -> _EStepResult:
        """Return the E-step: γ_ic ∝ μ_c Π π_r[c, y_ir]."""
        floor = self.settings.floor
        joint_probability = np.empty((len(model.prior), len(self.weight)))
        shares = np.log(model.prior + floor)
        for index, log_confusion in enumerate(np.log(model.confusion + floor)):
            np.add(self.matrix @ log_confusion, shares[index], out=joint_probability[index])
        max_log_probability = joint_probability.max(axis=0)
        gold_cells = (self.gold[self._gold_items], self._gold_items)
        # A copy, since `joint` is changed in place below.
        gold_log_likelihood = joint_probability[gold_cells]
        joint_probability -= (
            max_log_probability  # so that no power overflows, and one of each item is 1
        )
        np.exp(joint_probability, out=joint_probability)
        normaliser = joint_probability.sum(axis=0)
        joint_probability /= normaliser
        log_likelihood = np.log(normaliser) + max_log_probability
        if len(self._gold_items):
            joint_probability[:, self._gold_items] = 0.0
            joint_probability[gold_cells] = 1.0
            log_likelihood[self._gold_items] = gold_log_likelihood
        # A dot product would start BLAS threads on every core.
        fit = float((self.weight * log_likelihood).sum())
        return _EStepResult(joint_probability, fit, fit + self._log_prior(model))

    def m_step(self, posterior: Floats) -> Model:
        """Return the M-step, with Dirichlet smoothing; a row of π without any data is uniform."""
        settings = self.settings
        k = len(posterior)
        weighted_posterior = posterior * self.weight
        prior = weighted_posterior.sum(axis=1) + (settings.prior_mu - 1.0)
        counts = np.stack([self._transposed_matrix @ row for row in weighted_posterior])
        counts += settings.prior_confusion - 1.0
        confusion = counts.reshape(k, -1, k)
        row_sum = confusion.sum(axis=2, keepdims=True)
        is_empty_row = row_sum <= 0.0
        confusion = np.where(
            is_empty_row, 1.0 / k, confusion / np.where(is_empty_row, 1.0, row_sum)
        )
        return Model(prior / prior.sum(), confusion.reshape(k, -1))

    def _log_prior(self, model: Model) -> float:
        tiny = np.finfo(np.float64).tiny
        shares = float(np.log(model.prior + tiny).sum())
        confusions = float(np.log(model.confusion + tiny).sum())
        settings = self.settings
        return (settings.prior_mu - 1.0) * shares + (settings.prior_confusion - 1.0) * confusions

    def _run_plain_em(self, model: Model, posterior: Floats) -> ModelFit:
        steps = 0
        while True:
            expected = self.e_step(model)
            next_model = self.m_step(expected.posterior)
            steps += 1
            arrays_compared = (expected.posterior, posterior)
            if self.settings.convergence_on == "confusion":
                arrays_compared = (next_model.confusion, model.confusion)
            change = _largest_absolute_change(*arrays_compared)
            model = next_model
            posterior = expected.posterior
            if change < self.settings.tol or steps == self.settings.max_iter:
                return ModelFit(model, *expected, change < self.settings.tol, steps)

    def _run_accelerated_em(self, model: Model) -> ModelFit:
        """Run SQUAREM (Varadhan and Roland 2008, scheme S3): two steps, then an extrapolation of them."""
        expected = self.e_step(model)
        steps = 1
        while True:
            first = self.m_step(expected.posterior)
            after = self.e_step(first)
            steps += 1
            change = _largest_absolute_change(after.posterior, expected.posterior)
            if change < self.settings.tol or steps >= self.settings.max_iter:
                return ModelFit(first, *after, change < self.settings.tol, steps)
            second = self.m_step(after.posterior)
            model = _extrapolate_em_steps(model, first, second) or second
            expected = self.e_step(model)
            steps += 1
            is_extrapolation_accepted = (
                expected.objective
                >= after.objective - _OBJECTIVE_RELATIVE_TOLERANCE * abs(after.objective)
            )
            if model is not second and not is_extrapolation_accepted:
                model = second
                expected = self.e_step(second)
                steps += 1


def _largest_absolute_change(new_values: Floats, old: Floats) -> float:
    difference = new_values - old
    return float(max(difference.max(), -difference.min()))


def _extrapolate_em_steps(origin: Model, first: Model, second: Model) -> Model | None:
    """Return the extrapolation of two steps, or None if it goes no further than they do. An entry that would not be
    positive keeps its value after the second step."""
    # Of both arrays of a model: a is at the origin, b after one step and c after two, d and t the first and second
    # differences.
    step = [b - a for a, b in zip(origin, first, strict=True)]
    second_difference = [c - b - d for b, c, d in zip(first, second, step, strict=True)]
    step_norm = _euclidean_length(step)
    second_difference_norm = _euclidean_length(second_difference)
    if second_difference_norm == 0.0 or step_norm <= second_difference_norm:
        return None
    factor = step_norm / second_difference_norm
    extrapolated_arrays = []
    for a, d, t, c in zip(origin, step, second_difference, second, strict=True):
        extrapolated_array = a + 2.0 * factor * d + factor * factor * t
        extrapolated_arrays.append(np.where(extrapolated_array > 0.0, extrapolated_array, c))
    prior, confusion = extrapolated_arrays
    return Model(prior / prior.sum(), _normalize_confusion_rows(confusion))


def _euclidean_length(arrays: Sequence[Floats]) -> np.float64:
    """Return the Euclidean length of all entries together."""
    squares = [float((array * array).sum()) for array in arrays]
    length: np.float64 = np.sqrt(sum(squares))
    return length


def _normalize_confusion_rows(confusion: Floats) -> Floats:
    k = len(confusion)
    rows = confusion.reshape(k, -1, k)
    return np.asarray((rows / rows.sum(axis=2, keepdims=True)).reshape(k, -1))


IntervalMethod = Literal["t", "bootstrap"]

HIGH_AMBIGUITY = 0.3
"""Values above this are high ambiguity (STABLEVAL, Tables 12, 17, 23, 29)."""


class AgentScore(NamedTuple):
    """An agent's mean credit, its 95 % interval (None where it cannot be computed), and the number of its items."""

    score: float
    low: float | None
    high: float | None
    items: int


class AnnotatorQuality(NamedTuple):
    """Error rates of an annotator, and the number of its labels.

    `accuracy` is the mean of the diagonal of π, `leniency` of its last column (the highest class, whatever is true),
    and `strictness` of its first.
    """

    accuracy: float
    leniency: float
    strictness: float
    labels: int


@dataclass(frozen=True)
class ItemPosteriors:
    """Items with a probability of each class: `posterior` [N,K], in the order of `votes.items` and `votes.classes`."""

    votes: Votes
    posterior: Floats

    @property
    def items(self) -> ItemKeys:
        return self.votes.items

    @property
    def classes(self) -> ItemKeys:
        return self.votes.classes

    def credit(self, values: ArrayLike | None = None) -> Floats:
        """Return Σ_c γ_ic v(c), [N]; `values` v [K] is by default c/(K-1). PlanError if the classes have no order."""
        return self.posterior @ class_credit_values(self.votes, values)

    def ambiguity(self) -> Floats:
        """Return 1 - max_c γ_ic, [N], in [0, 1-1/K]; high above .3.

        The paper's text names the entropy, but all its tables use this.
        """
        return np.asarray(1.0 - self.posterior.max(axis=1))

    def doubts(self) -> dict[ItemKey, str]:
        """Return why items are in doubt, by item, for those that are."""
        return dict.fromkeys(
            select_items(self.items, self.ambiguity() > HIGH_AMBIGUITY), "ambiguous"
        )

    def likeliest_labels(self) -> Ints:
        """Return the code of the likeliest class of each item, [N]; ties go to the lowest."""
        return np.asarray(self.posterior.argmax(axis=1))

    def agent_scores(
        self,
        agent: ArrayLike,
        values: ArrayLike | None = None,
        bootstrap: int = 1000,
        seed: int = 0,
        prompt: ArrayLike | None = None,
        interval: IntervalMethod = "t",
    ) -> dict[ItemKey, AgentScore]:
        """Return S(a), the mean credit of an agent's items, with a 95 % interval, by agent in the order of appearance.

        Items without a label do not count, and an agent with no other items is left out.

        The interval is of the mean expected credit over the population from which the items (or the prompts, if passed)
        are drawn. It does not include the uncertainty of the confusions; `refit_intervals` does.

        Args:
            agent: the agent that produced the item, row by row as in `item`.
            values: v [K], by default c/(K-1).
            bootstrap: number of resamples for `interval="bootstrap"`; 0 gives no interval of either kind.
            seed: seed of the resamples.
            prompt: the unit that is drawn in place of items, row by row: all items of one prompt belong together.
            interval: `t`, by `bounded_interval`, also for few items; or `bootstrap`, percentiles of resamples with
                replacement (Algorithm 1, lines 18-21), which for five items contains their target in some 55 %.

        Raises:
            PlanError: an item with two agents or two prompts, or columns or arguments that do not fit.
        """
        if bootstrap < 0 or bootstrap == 1:
            raise PlanError(
                f"bootstrap is {bootstrap}: 0, for no interval, or at least 2 is needed"
            )
        check_choice("interval", interval, get_args(IntervalMethod))
        credit_by_class = class_credit_values(self.votes, values)
        items_by_agent_and_prompt = group_items_by_agent(self.votes, agent, prompt)

        def bounds(index: int, sums: Floats, sizes: Ints) -> Bounds:
            if interval == "t" and bootstrap:
                return t_interval_of_mean_credit(credit_by_class, sums, sizes)
            return mean_interval(sums, sizes, bootstrap, (seed, index))

        return score_agents(
            self, self.posterior @ credit_by_class, items_by_agent_and_prompt, bounds
        )


@dataclass(frozen=True)
class Consensus(ItemPosteriors):
    """A fitted model.

    `prior` [K] has the class shares and `confusion` [A,K,K] the confusions (annotator, true class, label), in the order
    of `votes.annotators`; `gold` [N] is the known class of an item, -1 for any other; `warnings` names reasons for
    doubt.
    """

    prior: Floats
    confusion: Floats
    log_likelihood: float
    converged: bool
    iterations: int
    settings: FitSettings
    gold: Ints
    warnings: tuple[str, ...]

    def annotators(self) -> dict[ItemKey, AnnotatorQuality]:
        """Return the error rates of each annotator, in the order of appearance."""
        votes = self.votes
        columns = [*error_rates(self.confusion).tolist(), votes.labels_by_annotator.tolist()]
        return dict(zip(votes.annotators, map(AnnotatorQuality, *columns), strict=True))

    def gold_labels_by_annotator(self) -> Ints:
        """Return how many labels of gold items are right, and how many there are, [A,2]."""
        votes = self.votes
        truth = self.gold[votes.item]
        counts = np.zeros((len(votes.annotators), 2), dtype=np.int64)
        np.add.at(counts, votes.annotator, np.stack([truth == votes.label, truth >= 0], axis=1))
        return counts

    def hard_labels(self) -> ItemPosteriors:
        """Return Dawid and Skene's hard labels: the likeliest class of each item, as certain."""
        return ItemPosteriors(self.votes, np.eye(len(self.classes))[self.likeliest_labels()])


@dataclass(frozen=True)
class MajorityVote(ItemPosteriors):
    """The majority's class of each item.

    `posterior` [N,K] is certain; if ties are shared, each of n tied classes has 1/n. `tied` [N] marks items with
    several leading classes; `margin` [N] is the number of votes by which the first class leads the second. An item with
    margin 1 changes or becomes tied if one annotator is left out: ranks by majority are not stable there (STABLEVAL,
    Proposition 1). An item without a label has equal probabilities and margin 0; of a gold item no vote decides, and
    its margin is 0.
    """

    tied: Bools
    margin: Ints

    def tied_items(self) -> list[ItemKey]:
        """Return the items for which several classes have the majority."""
        return select_items(self.items, self.tied)

    def items_decided_by_one_vote(self) -> list[ItemKey]:
        """Return the items that one vote decides, in their order."""
        return select_items(self.items, self.margin == 1)

    def doubts(self) -> dict[ItemKey, str]:
        decided_by_one = self.items_decided_by_one_vote()
        is_unlabelled = ~self.votes.has_label & (self.posterior.max(axis=1) < 1.0)
        return (
            dict.fromkeys(self.tied_items(), "tie")
            | dict.fromkeys(decided_by_one, "one vote decides")
            | dict.fromkeys(select_items(self.items, is_unlabelled), "no label")
        )


def select_items(items: ItemKeys, is_selected: Bools) -> list[ItemKey]:
    """Return the items that a mask [N] selects, in their order."""
    return [items[index] for index in np.flatnonzero(is_selected).tolist()]


def class_credit_values(votes: Votes, values: ArrayLike | None) -> Floats:
    """Return v [K]. Raises PlanError for values that do not fit, or for none if the classes have no order."""
    k = len(votes.classes)
    if values is not None:
        numbers = as_finite("values", values)
        check_shape("values", numbers, (k,))
        return numbers
    if k < 2:
        raise PlanError(
            f"every label is {votes.classes[0]!r}, which gives no credit; name all classes, or `values`"
        )
    if not votes.has_ordered_classes:
        raise PlanError(
            f"the labels {', '.join(map(repr, votes.classes[:10]))} have no order; name them from low to high in "
            "`classes`, or give each its credit in `values`"
        )
    return np.arange(k) / (k - 1)


def error_rates(confusion: Floats) -> Floats:
    """Return accuracy, leniency and strictness of confusions [A,K,K], [3,A]: means of diagonal, last, first column."""
    cells = [np.einsum("acc->ac", confusion), confusion[:, :, -1], confusion[:, :, 0]]
    return np.array([cell.mean(axis=1) for cell in cells])


def score_agents(
    item_posteriors: ItemPosteriors,
    credit_by_item: Floats,
    items_by_agent_and_prompt: "ItemAgentsAndPrompts",
    bounds: Callable[[int, Floats, Ints], Bounds],
) -> dict[ItemKey, AgentScore]:
    """Return the scores of the agents by the `credit_by_item` of items [N]; agents without a labelled item are left
    out.

    `bounds` gets the agent's code, and the sum of credit and the number of items of each of its prompts.
    """
    labelled_items = np.flatnonzero(item_posteriors.votes.has_label)
    scores = {}
    for members in members_by_cluster(items_by_agent_and_prompt.agent[labelled_items]):
        items = labelled_items[members]
        index = int(items_by_agent_and_prompt.agent[items[0]])
        prompts = items_by_agent_and_prompt.prompt[items]
        _, unit, size = np.unique(prompts, return_inverse=True, return_counts=True)
        sums = np.bincount(unit, credit_by_item[items]).astype(np.float64)
        low, high = bounds(index, sums, size)
        score = float(credit_by_item[items].mean())
        name = items_by_agent_and_prompt.agents[index]
        scores[name] = AgentScore(score, low, high, len(items))
    return scores


def t_interval_of_mean_credit(
    values: Floats, sums: Floats, sizes: Ints, added_variance: float = 0.0
) -> Bounds:
    """Return the interval of an agent's mean credit from its prompts; `values` [K] bound the credit of an item."""
    lowest = float(values.min())
    highest = float(values.max())
    estimate = bounded_interval(sums, sizes, lowest, highest, added_variance)
    assert estimate is not None, "an agent that is scored has items"
    return estimate.low, estimate.high


class ItemAgentsAndPrompts(NamedTuple):
    """The agent and the prompt of each item, as codes [N] in the order of first appearance."""

    agents: ItemKeys
    agent: Ints
    prompt: Ints

    def mean_credit(self, credit: Floats, times: Floats | Ints) -> Floats:
        """Return the mean credit of each agent, [G]; NaN for one without an item that was drawn.

        `times` [N] is how often each item was drawn, and `credit` [N'] that of the items that were.
        """
        is_item_drawn = times > 0
        agent = self.agent[is_item_drawn]
        weight = times[is_item_drawn]
        size = np.bincount(agent, weight, len(self.agents))
        sums = np.bincount(agent, weight * credit, len(self.agents))
        return np.where(size > 0, sums / np.maximum(size, 1.0), np.nan)


def group_items_by_agent(
    votes: Votes, agent: ArrayLike, prompt: ArrayLike | None
) -> ItemAgentsAndPrompts:
    """Return the agent and the prompt of every item, from columns row by row. PlanError if an item has two."""
    agent_codes, agents = _encode_item_column(votes, "agent", agent)
    prompt_code_by_item = np.arange(len(votes.items))  # each item is a prompt of its own
    if prompt is not None:
        prompt_code_by_item, _ = _encode_item_column(votes, "prompt", prompt)
    return ItemAgentsAndPrompts(agents, agent_codes, prompt_code_by_item)


def _encode_item_column(votes: Votes, name: str, column: ArrayLike) -> tuple[Ints, ItemKeys]:
    codes, names = _encode_values(name, _column_to_list(name, column))
    if len(codes) != len(votes.item_code_by_row):
        raise PlanError(
            f"{name} has {len(codes)} rows where the labels have {len(votes.item_code_by_row)}; give one for each"
        )
    value_code_by_item = np.empty(len(votes.items), dtype=np.intp)
    # Backwards, so that the first row of an item decides.
    value_code_by_item[votes.item_code_by_row[::-1]] = codes[::-1]
    is_code_different = codes != value_code_by_item[votes.item_code_by_row]
    if is_code_different.any():
        row = int(np.argmax(is_code_different))
        item = votes.item_code_by_row[row]
        both_names_text = f"{names[value_code_by_item[item]]!r} and {names[codes[row]]!r}"
        raise PlanError(
            f"item {votes.items[item]!r} has the {name}s {both_names_text}; give each {name} items of its own"
        )
    return value_code_by_item, names
