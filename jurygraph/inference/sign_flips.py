"""Paired tests that flip the signs of whole tasks.

If two runs do not differ, the differences of a task are as likely as their negatives, all together, however the
responses of the task depend on each other. So the distribution of Σ_g ± t_g over the signs of the G tasks, given the
tasks' own sums t_g, is exact: of differences for a mean, of gained minus lost decisions for
McNemar's. A task whose sum is 0 changes nothing.

Several p-values are adjusted for their number (Holm).
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.arrays import Floats, Ints, as_finite

MAX_ENUMERATED_TASKS = 20
"""Most tasks whose signs are enumerated."""
MAX_DISTRIBUTION_ADDITIONS = 100_000_000
"""Most additions for the exact distribution of whole numbers, if there are too many tasks to enumerate."""
RANDOM_FLIP_COUNT = 20_000
"""Number of random flips beyond; the standard error of a p-value of .05 is .0015."""
MAX_SAMPLED_TASKS = 5_000
"""Most tasks whose signs are drawn; of more the sum is normal to more digits than 20,000 flips show."""
_CELLS_PER_BATCH = 2_000_000
ROUNDING_TOLERANCE = 1e-12
"""Numbers that differ by less are equal: sums in another order differ in their last bits."""


def sign_flip_p(sums: ArrayLike, seed: int = 0) -> float | None:
    """Return the two-sided p-value of Σ sums, P(|Σ ± t_g| >= |Σ t_g|), from the sum of each task, [G].

    It is exact for up to 20 tasks with a sum other than 0, and for whole numbers as long as that is feasible; else of
    20,000 random flips and the observed one, (1 + hits) / (1 + flips), by NumPy's PCG64 of `seed`; and for over 5,000
    tasks of similar size, the normal tail. Its least value is 2^(1 - G) of the tasks that can be flipped; of random
    flips, 1 / 20,001. Neither the order of the tasks nor the direction of the difference changes it. None without a
    task to flip.
    """
    values = nonzero_sums(sums)
    if not len(values):
        return None
    sizes = np.sort(np.abs(values))
    largest_size = float(sizes[-1])
    # Scaled, no sum overflows.
    scaled_sizes = sizes / largest_size
    observed_sum = abs(math.fsum(values / largest_size))
    spread = math.fsum(scaled_sizes)
    has_whole_numbers_only = (sizes == np.round(sizes)).all()
    if spread * largest_size * len(sizes) <= MAX_DISTRIBUTION_ADDITIONS and has_whole_numbers_only:
        return _tail_probability_of_integers(sizes.astype(np.intp), round(abs(math.fsum(values))))
    # equal sums can differ in their last bits
    sum_threshold = observed_sum - ROUNDING_TOLERANCE * spread
    if sum_threshold <= 0.0:
        return 1.0
    variance = math.fsum(scaled_sizes**2)
    if (
        len(sizes) > MAX_SAMPLED_TASKS and variance > len(sizes) / 100
    ):  # no few tasks carry all of it
        return math.erfc(observed_sum / math.sqrt(2.0 * variance))
    if len(sizes) <= MAX_ENUMERATED_TASKS:
        is_as_extreme_as_observed = np.abs(_sums_of_all_flips(scaled_sizes)) >= sum_threshold
        return float(is_as_extreme_as_observed.mean())
    return _sampled_tail_probability(scaled_sizes, sum_threshold, seed)


def nonzero_sums(sums: ArrayLike) -> Floats:
    """Return the sums that are not 0. A sum of up to 1e-12, or 1e-12 of the largest, is a rounding error."""
    values = as_finite("sums", sums)
    largest_value = float(np.abs(values).max(initial=0.0))
    return values[np.abs(values) > ROUNDING_TOLERANCE * max(1.0, largest_value)]


def _tail_probability_of_integers(sizes: Ints, observed_sum: int) -> float:
    """Return P(|Σ ± s_g| >= observed) for whole sizes [G], ascending, by adding up the distribution, sign by sign."""
    probability_by_sum = np.ones(1)  # of each sum of the flipped sizes
    for size in sizes:
        kept = np.pad(probability_by_sum, (0, size))
        flipped = np.pad(probability_by_sum, (size, 0))
        probability_by_sum = 0.5 * (kept + flipped)
    if observed_sum == 0:
        return 1.0
    # The sum is the spread less twice what is flipped, and its distribution is symmetric.
    max_flipped_sum = (int(sizes.sum()) - observed_sum) // 2
    return min(1.0, 2.0 * math.fsum(probability_by_sum[: max_flipped_sum + 1]))


def _sums_of_all_flips(values: Floats) -> Floats:
    """Return the sums [2^n] of values [n] under all flips."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums - value, sums + value])
    return sums


def _sampled_tail_probability(values: Floats, sum_threshold: float, seed: int) -> float:
    """Return the share of random flips of at least `sum_threshold`; a random byte flips eight tasks at once."""
    padding = np.zeros(-len(values) % 8)
    rows_of_eight = np.concatenate([values, padding]).reshape(-1, 8)
    all_bytes = np.arange(256, dtype=np.uint8)
    byte_bits = np.unpackbits(all_bytes[:, None], axis=1, bitorder="little")
    sign_patterns = 2.0 * byte_bits - 1.0  # [256, 8]
    sums = rows_of_eight @ sign_patterns.T  # [rows, 256]
    rng = np.random.default_rng(seed)
    extreme_flip_count = 0
    batch = max(1, _CELLS_PER_BATCH // len(sums))
    for start in range(0, RANDOM_FLIP_COUNT, batch):
        flip_count = min(batch, RANDOM_FLIP_COUNT - start)
        drawn_bytes = rng.integers(0, 256, (flip_count, len(sums)), dtype=np.uint8)
        flipped_sums = np.zeros(flip_count)
        for sums_by_byte_value, byte_values in zip(sums, drawn_bytes.T, strict=True):
            flipped_sums += sums_by_byte_value.take(byte_values)
        extreme_flip_count += int(np.count_nonzero(np.abs(flipped_sums) >= sum_threshold))
    return (1 + extreme_flip_count) / (1 + RANDOM_FLIP_COUNT)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Holm's adjusted p-values (1979), in the order given: the chance of any false alarm is at most the level.

    A missing p-value was no test: it stays None and does not count.
    """
    p = np.array(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")  # what is missing, NaN, comes last
    tests = len(p_values) - p_values.count(None)
    # The least is multiplied by the number of tests, the next by one fewer; none becomes less than one before it.
    multiplied_p = p[order] * np.arange(tests, tests - len(p), -1)
    p[order] = np.minimum(1.0, np.maximum.accumulate(multiplied_p))
    return [None if math.isnan(adjusted_p) else adjusted_p for adjusted_p in p.tolist()]
