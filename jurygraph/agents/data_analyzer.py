"""MACRM's Data Analyzer (§3): statistics of rewards over training steps, and tests for reward hacking.

The tests are self-starting (Hawkins 1987), for many series at once. Each score is compared with the mean and sd of
those before it: t has Student's distribution exactly, and is mapped to a normal score u. Without a change the u are
independent standard normal, from the first on. After a change, the running mean learns the new level, and u fades:
after a shift of δ sd behind n₀ scores, the next one, behind n, has mean δ w, w = n₀ / √(n (n + 1)). The CUSUMs are
weighted accordingly,

    C ← max(0, C + w (±u - k w)),

which is the likelihood ratio of a shift of 2 k sd that began when C was last 0. For w = 1 this is the usual CUSUM, so
the run length without a change is no shorter; learning while C is raised costs no more power than necessary. w is never
below ½, so that a CUSUM that rose early comes down again.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special, stats

from jurygraph.aggregation import fusion
from jurygraph.arrays import Bools, Floats, Ints
from jurygraph.errors import InputError
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Number, PositiveInt, StrictBool

MAX_ABSOLUTE_VALUE = (
    1e100  # the largest absolute value: sums of squares of larger ones would overflow
)
MIN_RELATIVE_SD = 1e-9  # the least sd, relative to the size of the number: below it differences are rounding errors
CONFLICT_PERCENTILE = 80.0
"""Percentile of D_pair above which components conflict (MACRM, Eqs. 5-6). If no value lies above it, its ties count:
for components with few values the percentile is often the maximum."""
_ROUNDING_ERROR = 1e-12
COMPONENT_SERIES_PREFIX = "component."

Direction = Literal["up", "down"]
StepName = float | int | str


class TrainingStep:
    """The rows of a training step, one per response.

    Args:
        rewards: [n], NaN if a reward failed.
        components: [n] each, by name; NaN if there is no value.
        lengths: [n], at least 0, in any unit.
        groups: [n] ids; the responses to one prompt are a group.
        degraded: [n], 1 where a reward lacks a verdict, else 0.
        name: what messages call the step; without one, its number from 1.

    Omitted columns are not watched.

    Raises:
        InputError: no row, columns of another shape, a value that is infinite or beyond 1e100, or a length below 0.
    """

    def __init__(
        self,
        rewards: ArrayLike,
        components: Mapping[str, ArrayLike] | None = None,
        lengths: ArrayLike | None = None,
        groups: Sequence[Any] | NDArray[Any] | None = None,
        name: StepName | None = None,
        degraded: ArrayLike | None = None,
    ) -> None:
        self.name = name
        self.rewards = _validate_column("rewards", rewards)
        row_count = len(self.rewards)
        self.components = {}
        for name, column in sorted((components or {}).items()):
            self.components[name] = _validate_column(f"component {name!r}", column, row_count)
        self.lengths = None if lengths is None else _validate_column("lengths", lengths, row_count)
        self.degraded = (
            None if degraded is None else _validate_column("degraded", degraded, row_count)
        )
        self.groups: Ints | None = None
        """The number of each row's group, [n]; None without groups."""
        if groups is not None:
            if len(groups) != row_count:
                raise InputError(
                    f"a step: groups has {len(groups)} ids for {row_count} rows; give one for each"
                )
            group_names = np.asarray(groups).astype(str)
            self.groups = np.unique(group_names, return_inverse=True)[1]
        if self.lengths is not None and (self.lengths < 0.0).any():
            raise InputError("a step: lengths has a value below 0")


def _validate_column(name: str, values: ArrayLike, row_count: int | None = None) -> Floats:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"a step: {name} are not all numbers; give NaN where there is none"
        ) from None
    if column.ndim != 1 or not column.size or row_count not in (None, column.size):
        expected_shape_text = "one value for each response"
        if row_count is not None:
            expected_shape_text = f"one value for each of {row_count} rewards"
        raise InputError(f"a step: {name} has shape {column.shape}; give {expected_shape_text}")
    if (np.abs(column) > MAX_ABSOLUTE_VALUE).any():
        raise InputError(
            f"a step: {name} has a value beyond ±{MAX_ABSOLUTE_VALUE:g}; give numbers of another unit"
        )
    return column


def _drop_missing(numbers: Floats) -> Floats:
    return numbers[~np.isnan(numbers)]


class SeriesMeasure(NamedTuple):
    """Series at a step, [S]: the `value` for people, and the `score` that is tested.

    `floor` is the least sd of a score's noise: the standard error that the step's own rows show.
    """

    value: Any
    score: Any
    floor: Any


MISSING_MEASURE = SeriesMeasure(np.nan, np.nan, np.nan)


def measure_mean(column: Floats, is_share: bool) -> SeriesMeasure:
    """Return the mean of the numbers in a column [n], each a number; NaN without one.

    A share in [0, 1] is tested as 2 arcsin √((n m + 3/8) / (n + 3/4)) (Anscombe 1948): near 0 and 1 shares are skewed,
    and their noise depends on their level; here neither. If all of its rows are equal, its floor is one flip.
    """
    values = _drop_missing(column)
    row_count = len(values)
    if not row_count:
        return MISSING_MEASURE
    mean = float(values.mean())
    standard_error = float(values.std()) / row_count**0.5
    if not is_share:
        return _build_series_measure(mean, mean, standard_error)

    def to_arcsine_score(share: float) -> float:
        successes = row_count * min(1.0, max(0.0, share))
        return float(2.0 * np.arcsin(np.sqrt((successes + 0.375) / (row_count + 0.75))))

    score = to_arcsine_score(mean)
    standard_error = standard_error or 1.0 / row_count
    arcsine_rise = to_arcsine_score(mean + standard_error) - score
    arcsine_fall = score - to_arcsine_score(mean - standard_error)
    return _build_series_measure(mean, score, max(arcsine_rise, arcsine_fall))


def _build_series_measure(value: float, score: float, floor: float) -> SeriesMeasure:
    return SeriesMeasure(value, score, max(floor, MIN_RELATIVE_SD * (1.0 + abs(score))))


def length_correlation(lengths: Floats, rewards: Floats, groups: Ints | None) -> float:
    """Return Pearson's r of the lengths' ranks and the rewards, of deviations from group means.

    Ranks are used because, if few rows differ in reward from their group, a single very long one would dominate. A hard
    prompt with long answers causes no correlation; longer answers to the same prompt with higher rewards do. NaN if
    either does not vary within any group.
    """
    has_both_values = ~(np.isnan(lengths) | np.isnan(rewards))
    ranks = stats.rankdata(lengths[has_both_values])  # ties share their mean rank
    rewards = rewards[has_both_values]
    group_indices = (
        np.zeros(len(rewards), dtype=np.intp) if groups is None else groups[has_both_values]
    )
    group_sizes = np.maximum(np.bincount(group_indices), 1)
    deviations = []
    for column in (ranks, rewards):
        group_means = np.bincount(group_indices, column) / group_sizes
        deviations.append(column - group_means[group_indices])
    x, y = deviations
    norm_product = np.sqrt(float(x @ x) * float(y @ y))
    if norm_product <= _ROUNDING_ERROR * max(1.0, float(rewards @ rewards)):
        return np.nan
    return float(x @ y / norm_product)


def flag_saturated_groups(rewards: Floats, groups: Ints) -> Floats:
    """Return 1 for groups with equal rewards, which give GRPO no signal, else 0, [g]; NaN for groups of one."""
    count = int(groups.max()) + 1  # before rows without a reward go: their groups have an entry too
    has_reward = ~np.isnan(rewards)
    groups = groups[has_reward]
    rewards = rewards[has_reward]
    high = np.full(count, -np.inf)
    low = np.full(count, np.inf)
    np.maximum.at(high, groups, rewards)
    np.minimum.at(low, groups, rewards)
    group_sizes = np.bincount(groups, minlength=count)
    return np.where(group_sizes > 1, high - low <= _ROUNDING_ERROR, np.nan)


def disagreement(step: TrainingStep, opposed_component_names: Sequence[str]) -> Floats:
    """Return D_pair [n] of the components `opposed_component_names`; NaN if one is missing."""
    columns = np.stack([step.components[name] for name in opposed_component_names], axis=-1)
    return np.asarray(fusion.disagreement(columns))


def find_conflict_threshold(pairs: Sequence[Floats]) -> float:
    """Return the least D_pair of a row in conflict, from those of the first steps; NaN without a number."""
    values = _drop_missing(np.concatenate(pairs))
    if not values.size:
        return np.nan
    values_above_percentile = values[
        values > np.percentile(values, CONFLICT_PERCENTILE) + MIN_RELATIVE_SD
    ]
    return float(values_above_percentile.min() if values_above_percentile.size else values.max())


def measure_spread(rewards: Floats) -> SeriesMeasure:
    """Return the sd of a step's rewards, tested as its logarithm; NaN with fewer than two.

    Its noise hardly depends on its level then: the standard error is about 1 / √(2 (n - 1)). A spread of 0 has no
    logarithm, and is not tested: few rewards of two values are often equal by chance.
    """
    values = _drop_missing(rewards)
    if len(values) < 2:
        return MISSING_MEASURE
    spread = float(values.std(ddof=1))
    if spread <= _ROUNDING_ERROR * (1.0 + float(np.abs(values).max())):
        return SeriesMeasure(0.0, np.nan, np.nan)
    return _build_series_measure(spread, float(np.log(spread)), (2.0 * (len(values) - 1)) ** -0.5)


def centered_rewards(step: TrainingStep) -> Floats:
    """Return the rewards of a step that are numbers, less their mean."""
    rewards = _drop_missing(step.rewards)
    return rewards - rewards.mean() if len(rewards) else rewards


def measure_shape(rewards: Floats, reference_rewards: Floats) -> SeriesMeasure:
    """Return how far a step's rewards, less their mean, are from those of the reference: Wasserstein's distance.

    That is the mean difference of rewards of equal rank. It is tested as its logarithm, since distances are skewed; a
    distance varies by about a quarter of itself. NaN with fewer than two rewards, without a reference, or at 0.
    """
    values = _drop_missing(rewards)
    if len(values) < 2 or not len(reference_rewards):
        return MISSING_MEASURE
    distance = float(stats.wasserstein_distance(values - values.mean(), reference_rewards))
    if distance <= _ROUNDING_ERROR:
        return MISSING_MEASURE
    return _build_series_measure(distance, float(np.log(distance)), 0.25)


class SeriesSpec(NamedTuple):
    """A series by name, with the direction that is bad, and whether it is tested as a share or by its logarithm."""

    name: str
    adverse: Direction
    is_share: bool = False
    is_tested_by_logarithm: bool = False

    def value_of_score(self, score: float) -> float:
        """Return the value that has this score; for a share, to within 1 / n."""
        if self.is_tested_by_logarithm:
            return float(np.exp(score))
        return float(np.sin(np.clip(score, 0.0, np.pi) / 2.0) ** 2) if self.is_share else score


OPPOSED_COMPONENTS = ("accuracy", "format", "steps")
"""The components whose disagreement is conflict, if at least two of them exist (MACRM)."""
CALIBRATION_STEPS = 20  # the number of steps after which it is known what conflict is, and how rewards are distributed


class StreamCalibration(NamedTuple):
    """Facts of a stream's first steps by which all are measured; `opposed` are components.

    `conflict_threshold` is the least D_pair of a row in conflict, and `rewards` are those of the first steps, less each
    step's mean; NaN, and empty, before they are known.
    """

    opposed: Sequence[str]
    conflict_threshold: float
    rewards: Floats


def find_shares(step: TrainingStep) -> dict[str, bool]:
    """Return whether the values of a component are all in [0, 1], for each that has values at this step."""
    return {
        name: not bool(((column < 0.0) | (column > 1.0)).any())
        for name, column in step.components.items()
        if not np.isnan(column).all()
    }


def learn_calibration(calibration_steps: Sequence[TrainingStep]) -> StreamCalibration:
    """Return the facts of the first step, or of the first twenty, all of which rewards and conflict need."""
    components = calibration_steps[0].components
    opposed_component_names = [name for name in OPPOSED_COMPONENTS if name in components]
    if len(opposed_component_names) < 2:
        opposed_component_names = []
    conflict_threshold = np.nan
    rewards = np.empty(0)
    if len(calibration_steps) >= CALIBRATION_STEPS:
        rewards = np.concatenate([centered_rewards(step) for step in calibration_steps])
        if opposed_component_names:
            pairs = [disagreement(step, opposed_component_names) for step in calibration_steps]
            conflict_threshold = find_conflict_threshold(pairs)
    return StreamCalibration(opposed_component_names, conflict_threshold, rewards)


def measure_series(
    step: TrainingStep,
    calibration: StreamCalibration,
    shares: Mapping[str, bool],
    penalty_names: Collection[str],
) -> Iterator[tuple[SeriesSpec, SeriesMeasure]]:
    """Yield the series of a step, each with its measure, which is NaN if it has no value.

    `shares` says of each component that had values up to now whether it is a share.
    """
    yield SeriesSpec("reward", "down"), measure_mean(step.rewards, is_share=False)
    yield SeriesSpec("spread", "down", is_tested_by_logarithm=True), measure_spread(step.rewards)
    shape = measure_shape(step.rewards, calibration.rewards)
    yield SeriesSpec("shape", "up", is_tested_by_logarithm=True), shape
    for name, column in step.components.items():
        adverse: Direction = "up" if name in penalty_names else "down"
        is_share = shares.get(name, False)
        series = SeriesSpec(f"{COMPONENT_SERIES_PREFIX}{name}", adverse, is_share)
        yield series, measure_mean(column, series.is_share)
    failure_flags = np.where(np.isnan(step.rewards), 1.0, 0.0)
    yield SeriesSpec("failed", "up", is_share=True), measure_mean(failure_flags, is_share=True)
    if step.degraded is not None:
        yield (
            SeriesSpec("degraded", "up", is_share=True),
            measure_mean(step.degraded, is_share=True),
        )
    if step.lengths is not None:
        yield SeriesSpec("length", "up"), measure_mean(step.lengths, is_share=False)
        r = length_correlation(step.lengths, step.rewards, step.groups)
        yield (
            SeriesSpec("length_reward", "up"),
            _build_series_measure(r, r, len(step.rewards) ** -0.5),
        )
    if calibration.opposed and step.components.keys() >= set(calibration.opposed):
        excess = disagreement(step, calibration.opposed) - calibration.conflict_threshold
        flags = np.where(np.isnan(excess), np.nan, excess >= -MIN_RELATIVE_SD)
        yield SeriesSpec("conflict", "up", is_share=True), measure_mean(flags, is_share=True)
    if step.groups is not None:
        flags = flag_saturated_groups(step.rewards, step.groups)
        yield SeriesSpec("saturation", "up", is_share=True), measure_mean(flags, is_share=True)


CUSUM_REFERENCES = (0.25, 1.0)
"""Reference values k of the CUSUMs, in sd: tuned to shifts of 2 k, a lasting one of 0.5 sd and a sudden one of 2 sd. A
score that is far enough out exceeds the limit of the second one at once."""
TESTS_PER_SERIES = 2 * len(CUSUM_REFERENCES)
"""Number of tests per series: a CUSUM for each reference value, up and down."""
MIN_SCORES_BEFORE_TESTS = 10
"""The number of scores of a series before it is tested, at the start."""
_DEGREES_AFTER_ALARM = MIN_SCORES_BEFORE_TESTS - 2.0
"""The degrees of freedom that the sd keeps after an alarm, so that the third score is tested again: a fall that goes
on, or follows a harmless rise, would else hide in the ten scores that the new level is learned from."""
MIN_CUSUM_WEIGHT = 0.5
_MAX_NORMAL_SCORE = 8.0
_CUSUM_SIDE_SIGNS = np.array([1.0, -1.0])
_CUSUM_REFERENCE_COLUMN = np.array(CUSUM_REFERENCES)[:, None]


def average_run_length(k: float, h: float) -> float:
    """Return the ARL of a one-sided CUSUM of standard normal scores, reference value k > 0, limit h: Siegmund's
    approximation (1985), (exp(2 k b) - 2 k b - 1) / (2 k²), b = h + 1.166, which adds the overshoot at both ends."""
    b = h + 1.166
    return float((np.expm1(2 * k * b) - 2 * k * b) / (2 * k * k))


def compute_cusum_limits(arl: float, series: int) -> Floats:
    """Return limits of the CUSUMs [K] that give all tests of so many series together this ARL.

    Each has an equal share of the false alarms. Alarms of one test occur at a rate of 1 / ARL, and the rates add up;
    correlated tests raise fewer alarms. So the whole has at least the required ARL.
    """
    arl_per_test = arl * series * TESTS_PER_SERIES

    def find_cusum_limit(k: float) -> float:
        highest = 10.0 + np.log(arl_per_test) / k

        def log_arl_ratio(h: float) -> float:
            return float(np.log(average_run_length(k, h) / arl_per_test))

        return float(optimize.brentq(log_arl_ratio, 0.0, highest))

    return np.array([find_cusum_limit(k) for k in CUSUM_REFERENCES])


class Baseline(NamedTuple):
    """The number of scores learned, their mean, the sum of their squared deviations, and the mean of their floors.

    `squares` begins with those of `earlier_degrees` degrees of freedom, from before an alarm. Numbers for one series,
    arrays for many.
    """

    n: Any
    mean: Any
    squares: Any
    floor: Any
    earlier_degrees: Any

    @property
    def degrees(self) -> Any:
        """Return the degrees of freedom of the sd, at least 1."""
        return np.maximum(self.n - 1.0 + self.earlier_degrees, 1.0)

    def sd(self, floor: Any = 0.0) -> Any:
        """Return the sd, at least the noise that the rows of a step show, now (`floor`) or on average."""
        sd = np.sqrt(self.squares / self.degrees)
        return np.maximum(np.maximum(sd, self.floor), floor)

    def learn(self, measure: SeriesMeasure) -> "Baseline":
        has_score = ~np.isnan(measure.score)
        n = self.n + has_score
        divisor = np.maximum(n, 1.0)
        deviation = np.where(has_score, measure.score - self.mean, 0.0)
        mean = self.mean + deviation / divisor
        squared_deviation_sum = self.squares + deviation * np.where(
            has_score, measure.score - mean, 0.0
        )
        floor_deviation = np.where(has_score, measure.floor - self.floor, 0.0)
        floor = self.floor + floor_deviation / divisor
        return Baseline(n, mean, squared_deviation_sum, floor, self.earlier_degrees)


class DriftTests:
    """The tests of S series, of `shape` [..., S]; leading axes hold that many streams in parallel."""

    def __init__(self, shape: tuple[int, ...], cusum_limits: Floats) -> None:
        self.limits = cusum_limits
        self.baseline = Baseline(*np.zeros((len(Baseline._fields), *shape)))
        cusum_shape = (*shape, len(CUSUM_REFERENCES), 2)
        self.cusum = np.zeros(cusum_shape)
        """By reference value and side, up first."""
        self.baseline_at_zero = Baseline(*np.zeros((len(Baseline._fields), *cusum_shape)))
        """The baseline when each CUSUM was last 0."""
        self.last_zero_step = np.zeros(cusum_shape)

    def test_step_scores(self, step: int, measure: SeriesMeasure) -> Floats:
        """Test the scores [..., S] of a step against earlier ones, and learn them.

        Return the normal scores [..., S], within ±8; NaN where there is no score, or the series is not tested yet.
        """
        known_count = self.baseline.n + self.baseline.earlier_degrees
        is_tested = ~np.isnan(measure.score) & (known_count >= MIN_SCORES_BEFORE_TESTS)
        expected = np.where(is_tested, self.baseline.mean, np.nan)
        sd = self.baseline.sd(np.where(is_tested, measure.floor, 1.0))
        n = self.baseline.n
        t = (measure.score - expected) / sd / np.sqrt(1.0 + 1.0 / np.maximum(n, 2.0))
        # Of the lower tail: near 1, a probability has no digits left to tell scores apart.
        tail_probability = special.stdtr(self.baseline.degrees, -np.abs(t))
        u: Floats = np.sign(t) * np.minimum(-special.ndtri(tail_probability), _MAX_NORMAL_SCORE)
        self._update_cusums(step, np.where(is_tested, u, 0.0), is_tested)
        self.baseline = self.baseline.learn(measure)
        return u

    @property
    def cusum_to_limit_ratio(self) -> Floats:
        """Return each CUSUM as a multiple of its limit, [..., S, K, 2]."""
        return self.cusum / self.limits[:, None]

    @property
    def has_alarm(self) -> Bools:
        """Return which series have a CUSUM above its limit, [..., S]."""
        return np.asarray((self.cusum_to_limit_ratio > 1.0).any(axis=(-2, -1)))

    def _update_cusums(self, step: int, u: Floats, is_tested: Bools) -> None:
        is_cusum_zero = self.cusum <= 0.0
        new_baseline = Baseline(*(statistic[..., None, None] for statistic in self.baseline))
        at_zero = np.where(is_cusum_zero, new_baseline, self.baseline_at_zero)
        self.baseline_at_zero = Baseline(*at_zero)
        self.last_zero_step = np.where(is_cusum_zero, step - 1, self.last_zero_step)
        n = np.maximum(new_baseline.n, 1.0)
        w = np.maximum(self.baseline_at_zero.n / np.sqrt(n * (n + 1.0)), MIN_CUSUM_WEIGHT)
        cusum_increment = w * (_CUSUM_SIDE_SIGNS * u[..., None, None] - _CUSUM_REFERENCE_COLUMN * w)
        grown_cusum = np.maximum(self.cusum + cusum_increment, 0.0)
        self.cusum = np.where(is_tested[..., None, None], grown_cusum, self.cusum)

    def restart_series(self, should_restart: Bools) -> None:
        """Learn the level of these series anew. Their sd begins with the least of those before, since the others have
        learned the change."""
        before = self.baseline_at_zero
        squares = (before.squares / before.degrees).min(axis=(-2, -1)) * _DEGREES_AFTER_ALARM
        restarted = Baseline(0.0, 0.0, squares, 0.0, _DEGREES_AFTER_ALARM)
        self.baseline = Baseline(
            *(
                np.where(should_restart, new, old)
                for new, old in zip(restarted, self.baseline, strict=True)
            )
        )
        self.cusum = np.where(should_restart[..., None, None], 0.0, self.cusum)


FIRST_TESTED_STEP = MIN_SCORES_BEFORE_TESTS + 1  # the first step at which anything is tested
MAX_ARL = 1e9
CALIBRATED_SERIES_NAMES = ("shape", "conflict")
"""Series that compare with the first steps, and have no value in them."""
MAX_STEPS_BETWEEN_RELATED_ALERTS = 50  # the number of steps within which changes are related

ACCURACY_SERIES_NAME = "component.accuracy"
_SERIES_OF_HACKING = ("reward", "format", "length", "length_reward")
HACK_SERIES_NAMES = ("reward", ACCURACY_SERIES_NAME, "length", "length_reward")
"""Series of which two, at least, tell of a hack together."""
_STEPS_BEFORE_CHANGE = 40
_LATEST_STEP_COUNT = 5
"""Steps before a change, and latest ones, whose mean scores are compared."""
# the change from which a series has clearly moved, in sd of the steps before
MIN_CLEAR_CHANGE_SD = 1.5
MIN_FOLLOWING_REWARD_RATIO = 0.65
MAX_STEADY_REWARD_RATIO = 0.25
"""The reward fell with accuracy from the first of these shares of its fall on, each in its own sd, as an honest reward
does; it holds if it fell by less than the second."""


class Alert(FrozenModel):
    """A change in a series that chance does not explain.

    `step` is when the alert was raised, and `since` the estimated first step of the change: by their names, as in the
    sentence; `step_number` and `since_number` count them from 1. `before` and `after` are the levels, `size` their
    signed distance in sd of the step's statistic. A `hack` is based on the changes listed in `evidence`. An `adverse`
    alert is a bad sign; others are expected in training.
    """

    step: StepName
    step_number: PositiveInt
    series: str
    kind: Literal["change", "hack"]
    direction: Direction
    since: StepName
    since_number: PositiveInt
    before: Number
    after: Number
    size: Number
    adverse: StrictBool
    sentence: str
    evidence: tuple[str, ...] = ()


class Analyzer:
    """Watch one stream of steps. It keeps three numbers for each step and series.

    Args:
        arl: the average number of steps between false alarms of the whole analyzer, from 10 to 1e9. Beyond that, limits
            lie in a tail that no statistic follows.
        penalties: the components whose rise is bad.
    """

    def __init__(self, arl: float = 10_000.0, penalties: Collection[str] = ("repetition",)) -> None:
        if not 10.0 <= arl <= MAX_ARL:
            raise InputError(f"arl: expected a number of steps from 10 to {MAX_ARL:g}, got {arl:g}")
        self.arl = arl
        self.penalties = penalties
        self.series: tuple[SeriesSpec, ...] = ()
        self.values: list[Floats] = []
        """Of each step, the values [S] in the order of the series."""
        self.step_names: list[StepName] = []
        """Of each step, its name, or else its number from 1."""
        self.normal_scores: list[Floats] = []
        self.alerts: list[Alert] = []
        self._scores: list[Floats] = []
        self._shares: dict[str, bool] = {}
        self._first_steps: list[TrainingStep] = []
        self._last_alert: dict[str, Alert] = {}
        self._last_hack_step = -np.inf

    @property
    def step_count(self) -> int:
        return len(self.values)

    def observe(self, step: TrainingStep) -> tuple[Alert, ...]:
        """Process a step and return its alerts, the combined diagnosis last.

        Raises `InputError` if its series differ from those of earlier steps.
        """
        if not self.series:
            self._calibration = learn_calibration([step])
        self._shares = find_shares(step) | self._shares
        measured_series = list(
            measure_series(step, self._calibration, self._shares, self.penalties)
        )
        series = tuple(series_spec for series_spec, _ in measured_series)
        if not self.series:
            self.tests = DriftTests((len(series),), compute_cusum_limits(self.arl, len(series)))
        else:
            self._require_same_series(series)
        self.series = series
        measure = SeriesMeasure(*np.array([numbers for _, numbers in measured_series]).T)
        self.values.append(measure.value)
        self.step_names.append(self.step_count if step.name is None else step.name)
        self._scores.append(measure.score)
        self.normal_scores.append(self.tests.test_step_scores(self.step_count, measure))
        has_alarm = self.tests.has_alarm
        alerts = [self._build_alert(int(index)) for index in np.flatnonzero(has_alarm)]
        self._last_alert |= {alert.series: alert for alert in alerts}
        hack_alert = self._diagnose_hacking()
        if hack_alert is not None:
            if self.step_count - self._last_hack_step > MAX_STEPS_BETWEEN_RELATED_ALERTS:
                alerts.append(hack_alert)  # and not a continuing one
            self._last_hack_step = self.step_count
        self.tests.restart_series(has_alarm)
        if self.step_count <= CALIBRATION_STEPS:
            self._first_steps.append(step)
            self._calibration = learn_calibration(self._first_steps)
        self.alerts += alerts
        return tuple(alerts)

    def _require_same_series(self, step_series: Sequence[SeriesSpec]) -> None:
        names = {series.name for series in step_series}
        differing_names = sorted(names ^ {series.name for series in self.series})
        if differing_names:
            verb_text = "lack" if differing_names[0] in names else "have"
            raise InputError(
                f"step {self.step_count + 1}: the steps before {verb_text} the series "
                f"{differing_names[0]!r}; give every step the same, with NaN where there is no number"
            )

    def _build_alert(self, index: int) -> Alert:
        """Return the alert of a series, by the CUSUM that exceeds its limit by the largest factor."""
        series = self.series[index]
        tests = self.tests
        reference, direction_index = divmod(int(np.argmax(tests.cusum_to_limit_ratio[index])), 2)
        test = (index, reference, direction_index)
        baseline_before = Baseline(
            *(float(statistic[test]) for statistic in tests.baseline_at_zero)
        )
        baseline_now = Baseline(*(float(statistic[index]) for statistic in tests.baseline))
        # The mean of the scores since the change: those learned now without those learned before it.
        score = (baseline_now.n * baseline_now.mean - baseline_before.n * baseline_before.mean) / (
            baseline_now.n - baseline_before.n
        )
        size = (score - baseline_before.mean) / float(baseline_before.sd())
        before = series.value_of_score(baseline_before.mean)
        after = series.value_of_score(score)
        step = self.step_names[-1]
        since_number = int(tests.last_zero_step[test]) + 1
        since = self.step_names[since_number - 1]
        direction = "down" if direction_index else "up"
        verb_text = "falls" if direction_index else "rises"
        sentence = (
            f"step {step}: {series.name} {verb_text} since about step {since}, "
            f"from {before:.4g} to {after:.4g} ({size:+.3g} sd of a step)"
        )
        return Alert(
            step=step,
            step_number=self.step_count,
            series=series.name,
            kind="change",
            direction=direction,
            since=since,
            since_number=since_number,
            before=before,
            after=after,
            size=size,
            adverse=direction == series.adverse,
            sentence=sentence,
        )

    def _diagnose_hacking(self) -> Alert | None:
        """Return the hack that recent alerts show together, each of which alone may be harmless."""
        accuracy_alert = self._recent_alert(ACCURACY_SERIES_NAME, "down")
        if accuracy_alert is not None and (
            evidence := self._find_reward_divergence(accuracy_alert.since_number)
        ):
            return self._explain_hacking(accuracy_alert, evidence)
        length_alert = self._recent_alert("length", "up")
        if length_alert is not None and self._recent_alert("length_reward", "up") is not None:
            return self._explain_hacking(length_alert, ["length rises", "length_reward rises"])
        return None

    def _recent_alert(self, series: str, direction: str) -> Alert | None:
        alert = self._last_alert.get(series)
        if alert is None or alert.direction != direction:
            return None
        is_recent = self.step_count - alert.step_number <= MAX_STEPS_BETWEEN_RELATED_ALERTS
        return alert if is_recent else None

    def _find_reward_divergence(self, since: int) -> list[str]:
        """Return the evidence that the reward did not follow a fall of accuracy; empty if it did, or accuracy is back.

        Other series count if they rose since the same step.
        """
        moves = self.measure_series_changes(since)
        accuracy_move = moves[ACCURACY_SERIES_NAME]
        reward_move = moves["reward"]
        has_accuracy_fallen = accuracy_move < -MIN_CLEAR_CHANGE_SD
        is_reward_above = reward_move > MIN_FOLLOWING_REWARD_RATIO * accuracy_move
        if not has_accuracy_fallen or not is_reward_above:
            return []
        risen = [name for name in _SERIES_OF_HACKING if moves[name] > MIN_CLEAR_CHANGE_SD]
        evidence = [f"{name} rises" for name in risen if name in ("reward", "format")]
        if "reward" not in risen and reward_move > MAX_STEADY_REWARD_RATIO * accuracy_move:
            evidence.append("reward holds")
        length_evidence = [f"{name} rises" for name in risen if name.startswith("length")]
        return ["accuracy falls", *evidence, *length_evidence] if evidence else []

    def measure_series_changes(self, since: int) -> dict[str, float]:
        """Return how far each series has moved: the latest scores from those before a step, in sd; 0 if unknown."""
        before = np.array(self._scores[max(0, since - 1 - _STEPS_BEFORE_CHANGE) : since - 1])
        latest = np.array(self._scores[max(since - 1, self.step_count - _LATEST_STEP_COUNT) :])
        moves = dict.fromkeys(_SERIES_OF_HACKING, 0.0)
        for index, series in enumerate(self.series):
            earlier_values = _drop_missing(before[:, index])
            latest_values = _drop_missing(latest[:, index])
            if len(earlier_values) > 1 and len(latest_values):
                sd = max(earlier_values.std(ddof=1), self.tests.baseline.floor[index])
                moves[series.name] = float(latest_values.mean() - earlier_values.mean()) / sd
        return moves | {"format": moves.get("component.format", 0.0)}

    def _explain_hacking(self, first_alert: Alert, evidence: Sequence[str]) -> Alert:
        step = self.step_names[-1]
        sentence = (
            f"step {step}: the reward looks hacked, since about step {first_alert.since}: "
            f"{', '.join(evidence)}"
        )
        return first_alert.model_copy(
            update={
                "step": step,
                "step_number": self.step_count,
                "kind": "hack",
                "adverse": True,
                "sentence": sentence,
                "evidence": tuple(evidence),
            }
        )
