"""Report models of a disagreement study."""

from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Count, Number, Unit


class GroupDifference(FrozenModel):
    """One column of MACRM's Table 4: the mean in High-div, in Low-div, and the difference with its 95 % interval.

    The interval's ends are None if there is nothing to resample: one task with one response, or no resample with
    samples of both.
    """

    name: str
    high: Number
    low: Number
    difference: Number
    difference_low: Number | None
    difference_high: Number | None


class Split(FrozenModel):
    """Samples by disagreement: the `high` samples with the greatest D_pair, and the rest.

    `cut` is the least D_pair in High-div. `tied_high` samples of High-div and `tied_low` of Low-div have exactly this
    value; the id decided between them. `empty` resamples of the intervals had samples of only one side, and were left
    out. `rows` are the reward, then the components.
    """

    high: Count
    low: Count
    cut: Unit
    tied_high: Count
    tied_low: Count
    resamples: Count
    empty: Count
    seed: Count
    rows: tuple[GroupDifference, ...]


class Correlation(FrozenModel):
    """Two components over all samples; without coefficients if one is constant, and `why` gives that reason."""

    first: str
    second: str
    pearson: Number | None
    spearman: Number | None
    why: str | None = None


class StepMeans(FrozenModel):
    """One step of MACRM's Fig. 3: its samples, (a) mean reward, (b) mean D_pair, (c) conflict rate (Eq. 7)."""

    step: Number
    samples: Count
    reward: Number
    disagreement: Unit
    conflict_rate: Unit


class Trend(FrozenModel):
    """Trend of a series over the steps.

    `slope` is the slope of the least-squares line, per unit of the step number. `kendall` is τ-b with the step and `p`
    its two-sided test (Mann-Kendall), None if the series is constant. `fluctuation` is the mean absolute change from
    one step to the next.
    """

    name: str
    first: Number
    last: Number
    slope: Number
    kendall: Number | None
    p: Number | None
    fluctuation: Number


class DisagreementReport(FrozenModel):
    """One run: D_pair over `components` of `samples` responses in `tasks` tasks.

    `threshold` is the percentile of all D_pair, by linear interpolation; a sample above it is a conflict. `steps` and
    `trends` are empty if the run is not cut into steps, `trends` also with one step. `left_out` counts responses by
    reason.
    """

    run: str
    components: tuple[str, ...]
    tasks: Count
    samples: Count
    percentile: Number
    threshold: Unit
    disagreement: Unit
    conflicts: Count
    conflict_rate: Unit
    split: Split
    correlations: tuple[Correlation, ...]
    steps: tuple[StepMeans, ...]
    trends: tuple[Trend, ...]
    left_out: dict[str, Count]
