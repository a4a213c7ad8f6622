"""DecompR's stability study (section 3 and A.3): its measures, its theory (section 4), and the reports of both.

    σ²_Sem(s) = Var_{t,b}[score(s,t,b)]      σ²_Rep(s) = Var_r[score(s,r)]      CV(s) = √σ²_Sem(s) / mean(s)

A unit s is one response with its number of stakeholders and its quality band; t is a family of variants, b a version in
it, and r an exact repeat of one input. The paper names no divisor. Here every variance has the number of scores less 1:
with their number, a few repeats would seem less noisy than many variants, and a judge blind to wording sensitive to it.
Theorem 1 is about R̂ = Σ_i (w*_i + η_i)(u*_i + δ_i) + ε, where Σ_i η_i = 0. `measure_stability` has Tables 1, 2, 3, 5,
9 and 10, and `measure_signal_to_noise` SNR, signs of advantages, and decisions at a threshold.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from statistics import fmean
from typing import Any, NamedTuple, SupportsFloat

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.errors import InputError
from jurygraph.inference.clusters import Estimate, cluster_numbers, ratio_interval
from jurygraph.inference.positive import (
    ValuesByCluster,
    difference_of_positive_means,
    mean_of_positive_values,
    ratio_of_positive_means,
)
from jurygraph.messages import quote, suggest_known_name
from jurygraph.studies import symbols
from jurygraph.studies.conclusions import conclude_stability
from jurygraph.studies.presentations import (
    FAMILIES_OF_UNCHANGED_INPUTS,
    REWARD_PROTOCOL,
    Presentations,
    PresentationScore,
    StakeholderWeightsFromFile,
    check_stakeholder_weights,
    fixed_weights,
)
from jurygraph.studies.report import (
    Columns,
    FigureRows,
    Figures,
    IntervalCell,
    Plot,
    PlotSeries,
    Report,
    ReportSection,
    ReportSections,
    ReportTable,
    describe_range,
    format_cell,
    group_by,
    list_omissions,
    number_of_cell,
    omission_notes,
)
from jurygraph.studies.reward_noise import (
    RewardVarianceTerms,
    estimate_variance_terms,
    exchangeable_aggregation,
    needed_snr,
    observed_snr,
    sign_correctness,
)

_ROUNDING_ERROR = 1e-12
_TOO_FEW_DEGREES_OF_FREEDOM = 2
"""With as few degrees of freedom, the inverse of an estimated variance has no mean."""
UnitArrays = tuple[Floats, Floats, Floats]
"""The weights and the utilities of a unit's variants, [V, n] each, and their scores, [V]."""


def variance(scores: Sequence[float] | Floats) -> float:
    """Return Σ (score - mean)² / (V - 1) of V ≥ 2 scores, 0 where they differ by rounding alone (DecompR Eqs. 13, 14).

    Equal scores may differ in their last bits after a change of scale, and a deterministic judge has no variance.
    """
    values = np.asarray(scores, dtype=np.float64)
    centered = values - values.mean()
    estimate = float(np.sum(centered**2) / (len(values) - 1))
    scale = max(1.0, float(np.mean(values**2)))
    return 0.0 if estimate <= _ROUNDING_ERROR * _ROUNDING_ERROR * scale else estimate


def semantic_to_repeat(
    semantic_variances: ValuesByCluster, repeat_variances: ValuesByCluster, degrees_of_freedom: int
) -> Estimate | None:
    """Return S/R = mean σ²_Sem / mean σ²_Rep · (d - 2) / d with d = Σ (R - 1), the `degrees_of_freedom` of all repeats.

    The factor is that by which the inverse of an estimated variance is too large on average: exact for equal normal
    variances, and some per cent off for skewed ones. None for d ≤ 2, where that average does not exist.
    """
    if degrees_of_freedom <= _TOO_FEW_DEGREES_OF_FREEDOM:
        return None
    return ratio_of_positive_means(semantic_variances, repeat_variances, 1 - 2 / degrees_of_freedom)


def wording_variance(
    semantic_variances: ValuesByCluster, repeat_variances: ValuesByCluster
) -> Estimate | None:
    """Return mean σ²_Sem - mean σ²_Rep, the part of σ²_Sem that chance does not explain; 0 where it would be below."""
    part = difference_of_positive_means(semantic_variances, repeat_variances)
    if part is None:
        return None
    return part._replace(value=max(0.0, part.value)).within(0.0, math.inf)


def weight_shift(weights: Floats, mean_stakeholder_weights: Floats, utilities: Floats) -> Floats:
    """Return ΔR_w = Σ_i (w_i - w̄_i) û_i of one variant [n] or of several [V, n] (DecompR Eq. 1)."""
    return np.asarray(((weights - mean_stakeholder_weights) * utilities).sum(axis=-1))


class WeightDriftSummary(NamedTuple):
    """The columns of DecompR's Table 3 for units with as many stakeholders.

    `mean_shift` and `p95_shift` are of |ΔR_w| over all variants, and `shift_range` is max - min of ΔR_w within a unit,
    averaged over units; all three as multiples of `spread`, σ: the units' mean standard deviation of the final score.
    `explained` is Σ Var[ΔR_w] / Σ Var[score] over units, with its interval over clusters. None where σ, or the mean of
    a coefficient of variation, is 0.
    Ranges within units are our reading: the shift of -0.688 in Table 9 alone would exceed Table 3's range, at the σ
    that Table 2 allows, if ranges were over all units.
    """

    units: int
    variants: int
    weight_cv: float | None
    utility_cv: float | None
    spread: float
    mean_shift: float | None
    p95_shift: float | None
    shift_range: float | None
    explained: Estimate | None


def diagnose_drift(units: Sequence[UnitArrays], clusters: Sequence[str]) -> WeightDriftSummary:
    """Return Table 3's diagnostics of at least one unit: its variants' weights and utilities [V, n], and scores [V].

    `clusters` has the cluster of each unit.
    """
    weights, utilities, scores = zip(*units, strict=True)
    mean_weights = [unit_weights.mean(axis=0) for unit_weights in weights]
    shifts = list(map(weight_shift, weights, mean_weights, utilities))
    score_variances = list(map(variance, scores))
    spread = float(np.mean(np.sqrt(score_variances)))
    sizes = np.abs(np.concatenate(shifts))
    cluster = cluster_numbers(clusters)
    explained_share = ratio_interval(
        np.bincount(cluster, list(map(variance, shifts))), np.bincount(cluster, score_variances)
    )

    def divide_by_score_spread(size: SupportsFloat) -> float | None:
        return float(size) / spread if spread else None

    return WeightDriftSummary(
        units=len(units),
        variants=len(sizes),
        weight_cv=_mean_variation_coefficient(weights),
        utility_cv=_mean_variation_coefficient(utilities),
        spread=spread,
        mean_shift=divide_by_score_spread(sizes.mean()),
        p95_shift=divide_by_score_spread(np.quantile(sizes, 0.95)),
        shift_range=divide_by_score_spread(np.mean(list(map(np.ptp, shifts)))),
        explained=explained_share and explained_share.within(0.0, math.inf),
    )


def _mean_variation_coefficient(units: Sequence[Floats]) -> float | None:
    """Return the mean over units and stakeholders of the coefficient of variation over variants."""
    sizes = np.abs(np.concatenate([values.mean(axis=0) for values in units]))
    deviations = np.concatenate([values.std(axis=0, ddof=1) for values in units])
    if not np.all(sizes > _ROUNDING_ERROR):
        return None
    return float(np.mean(deviations / sizes))


_ALL_BANDS_NAME = "all"
_TABLE_DIGITS = 2
_FEW_TASKS_THRESHOLD = 5


class ScoredResponseVariants(NamedTuple):
    """A unit s: the presentations of one response, as one judge scored them by one protocol."""

    judge: str
    quality: str
    cluster: str
    stakeholders: int
    rows: tuple[PresentationScore, ...]

    @property
    def variants(self) -> list[PresentationScore]:
        return [row for row in self.rows if row.is_variant]

    def select_families(self, families: set[str]) -> "ScoredResponseVariants":
        return self._replace(rows=tuple(row for row in self.rows if row.family in families))

    def semantic(self) -> float | None:
        """Return σ²_Sem over variants, the mean over their repeats; None for fewer than two variants."""
        return self._mean_variance(group_by(self.variants, attrgetter("repeat")))

    def repeat(self) -> float | None:
        """Return σ²_Rep over the repeats of an input, the mean over inputs; None where nothing is repeated."""
        return self._mean_variance(group_by(self.rows, attrgetter("input")))

    def repeat_freedom(self) -> int:
        """Return Σ (R - 1) over inputs with R scores, the degrees of freedom of σ²_Rep."""
        return len(self.rows) - len({row.input for row in self.rows})

    def cv(self) -> float | None:
        """Return √σ²_Sem / mean; None where either is unknown or the mean is 0."""
        semantic_variance = self.semantic()
        if semantic_variance is None:
            return None
        mean = fmean(row.score for row in self.variants)
        return None if mean == 0.0 else math.sqrt(semantic_variance) / abs(mean)

    def _mean_variance(self, groups: Mapping[Any, Sequence[PresentationScore]]) -> float | None:
        score_variances = [
            variance([row.score for row in rows]) for rows in groups.values() if len(rows) > 1
        ]
        return fmean(score_variances) if score_variances else None

    def weights_utilities_and_scores(
        self,
    ) -> tuple[list[PresentationScore], list[str], UnitArrays] | None:
        """Return variants with weights, the stakeholders, and arrays of weights, utilities [V, n] and scores [V].

        None for fewer than two of them.
        """
        rows = [row for row in self.variants if row.weights]
        if len(rows) < 2:
            return None
        people = sorted(rows[0].weights)
        weights = np.array([[row.weights[person] for person in people] for row in rows])
        utilities = np.array([[row.utilities[person] for person in people] for row in rows])
        scores = np.array([row.score for row in rows])
        return rows, people, (weights, utilities, scores)


Units = Sequence[ScoredResponseVariants]
"""Several units s, such as those of a protocol, or of a number of stakeholders."""
PresentationMeasure = Callable[[ScoredResponseVariants], float | None]
MEASURE_BY_NAME: Mapping[str, PresentationMeasure] = {
    "semantic": ScoredResponseVariants.semantic,
    "repeat": ScoredResponseVariants.repeat,
    "cv": ScoredResponseVariants.cv,
}


def units_by_protocol(
    rows: Iterable[PresentationScore],
) -> Mapping[str, Units]:
    protocol_units = defaultdict(list)
    for members in group_by(rows, attrgetter("protocol", "unit")).values():
        first = members[0]
        unit = ScoredResponseVariants(
            first.judge,
            first.quality,
            first.task or first.seed,
            first.stakeholders,
            tuple(members),
        )
        protocol_units[first.protocol].append(unit)
    return dict(protocol_units)


def measure_stability(
    presentations: Presentations,
    quality_bands: Sequence[str] = (),
    file_weights: StakeholderWeightsFromFile | None = None,
) -> Report:
    """Return the measures of scores by protocol.

    The figures are, each as a list: `units` (σ²_Sem, σ²_Rep and CV of each), `noise` (their means by judge, quality
    and number of stakeholders), `ratios` (Growth, S/R and the part of wording alone by judge and quality), `protocols`,
    `families` and `weightings` (σ²_Sem by number of stakeholders, and Growth), `drift`, and the `worst` shift by
    weights.

    Args:
        quality_bands: those that count; all if empty. The paper's Tables 2, 5 and 10 have medium and high alone.
        file_weights: weights of a file, for Table 5.

    Raises:
        InputError: no unit has two variants, or no score is of a chosen quality.
    """
    rows = _select_presentations_by_quality(presentations, quality_bands)
    protocol_units = units_by_protocol(rows)
    units_of_all_protocols = list(chain.from_iterable(protocol_units.values()))
    sizes = sorted({unit.stakeholders for unit in units_of_all_protocols})
    if all(unit.semantic() is None for unit in units_of_all_protocols):
        hint = "label each response with `seed` and `family`, and give every seed at least two variants"
        omission_text = list_omissions(presentations.left_out)
        if omission_text:
            hint = f"{omission_text}; `jurygraph explain RUN --response ID` says why"
        raise InputError(
            f"{', '.join(presentations.sources)}: no response has two scored variants; {hint}"
        )
    weight_notes = []
    if file_weights is not None:
        weight_notes = list(check_stakeholder_weights(file_weights, rows))
    figures: Figures = {"sources": presentations.sources, "stakeholders": sizes}
    names = ("units", "noise", "ratios", "protocols", "families", "weightings", "drift", "worst")
    figures |= {name: [] for name in names}
    sections: list[ReportSection] = [_variants_summary_sentence(rows)]
    for protocol, units in protocol_units.items():
        for unit in units:
            unit_figures = {
                "protocol": protocol,
                "judge": unit.judge,
                "seed": unit.rows[0].seed,
                "quality": unit.quality,
                "stakeholders": unit.stakeholders,
                "variants": len({row.input for row in unit.variants}),
                **{name: measure(unit) for name, measure in MEASURE_BY_NAME.items()},
            }
            figures["units"].append(unit_figures)
        sections += _noise_tables(protocol, units, sizes, figures)
    protocols = protocol_units if len(protocol_units) > 1 else {}
    sections.append(
        _table_by_stakeholder_count(
            "Table 2: σ²_Sem by protocol", "protocols", {}, protocols, sizes, figures
        )
    )
    for protocol, units in protocol_units.items():
        common = {"protocol": protocol}
        title = f"Table 10: {protocol}, σ²_Sem by family"
        units_by_family = _units_by_family(units)
        sections.append(
            _table_by_stakeholder_count(title, "families", common, units_by_family, sizes, figures)
        )
        title = f"Table 5: {protocol}, σ²_Sem by weights on the same û"
        units_by_weighting = _units_by_weighting(units, file_weights)
        sections.append(
            _table_by_stakeholder_count(
                title, "weightings", common, units_by_weighting, sizes, figures
            )
        )
        sections += _weight_drift_sections(protocol, units, sizes, figures)
    figures["left_out"] = presentations.left_out
    notes = [*_notes(presentations, units_of_all_protocols, figures["ratios"]), *weight_notes]
    plot = _noise_plot(figures["noise"], len(sizes))
    tasks = len({unit.cluster for unit in units_of_all_protocols})
    conclusion = list(conclude_stability(figures["ratios"], tasks))
    return Report(figures, sections, notes, [plot], conclusion, symbols.WORDING_SYMBOL_MEANINGS)


def _units_by_family(
    units: Units,
) -> dict[str, Units]:
    """Return the units with the variants of a family alone, by its name, and after these the units themselves."""
    units_by_family: dict[str, Units] = {}
    for name in sorted(_families_in_units(units).difference(FAMILIES_OF_UNCHANGED_INPUTS)):
        units_by_family[name] = [unit.select_families({name}) for unit in units]
    units_by_family["all variants"] = units
    return units_by_family


def _select_presentations_by_quality(
    presentations: Presentations, quality_bands: Sequence[str]
) -> list[PresentationScore]:
    known_quality_bands = list(dict.fromkeys(row.quality for row in presentations.rows))
    for name in quality_bands:
        if name not in known_quality_bands:
            hint = suggest_known_name(name, known_quality_bands)
            source = ", ".join(presentations.sources)
            raise InputError(f"{source}: no score has the quality {quote(name)}; {hint}")
    return [row for row in presentations.rows if not quality_bands or row.quality in quality_bands]


def _units_with_stakeholder_count(units: Units, stakeholders: int) -> Units:
    return [unit for unit in units if unit.stakeholders == stakeholders]


def _measures_by_cluster(units: Units, measure: PresentationMeasure) -> ValuesByCluster:
    """Return the measure of the units that have it, by cluster."""
    measures_by_cluster = defaultdict(list)
    for unit in units:
        value = measure(unit)
        if value is not None:
            measures_by_cluster[unit.cluster].append(value)
    return measures_by_cluster


def _mean_measure(units: Units, stakeholders: int, measure: PresentationMeasure) -> Estimate | None:
    """Return the mean of a measure over the units with so many stakeholders."""
    chosen = _units_with_stakeholder_count(units, stakeholders)
    return mean_of_positive_values(_measures_by_cluster(chosen, measure))


def _growths(
    units: Units,
    sizes: Sequence[int],
    measure: PresentationMeasure = ScoredResponseVariants.semantic,
) -> Figures:
    """Return the mean of a measure at the largest over that at the smallest number of stakeholders, in two ways.

    A.3's Growth is the ratio of the two means as they are. Some families are undefined for few stakeholders, so that
    its ends are of different families; the other ratio, ours, is over the families that both ends have.
    """
    if len(sizes) < 2:
        return {"growth": None, "growth_same_families": None}
    ends = [_units_with_stakeholder_count(units, size) for size in (sizes[-1], sizes[0])]
    families = set.intersection(*map(_families_in_units, ends))
    ends_of_common_families = [[unit.select_families(families) for unit in end] for end in ends]

    def growth(above: Units, below: Units) -> Estimate | None:
        return ratio_of_positive_means(
            _measures_by_cluster(above, measure), _measures_by_cluster(below, measure)
        )

    return {"growth": growth(*ends), "growth_same_families": growth(*ends_of_common_families)}


def _families_in_units(units: Units) -> set[str]:
    rows = chain.from_iterable(unit.rows for unit in units)
    return {row.family for row in rows}


_QUALITY_BANDS_BY_ROW = {"All (Med+High)": ("med", "medium", "high"), "All (Low)": ("low",)}
"""The rows of Table 1 that pool judges, by name, and the bands of quality in them."""


def _units_by_noise_row(units: Units) -> Mapping[tuple[str, str], Units]:
    """Return the units of each row of Table 1 by judge and quality; where there are several, the last has all units."""
    rows = group_by(units, attrgetter("judge", "quality"))
    if len(rows) > 1:
        for name, quality_bands in _QUALITY_BANDS_BY_ROW.items():
            pooled_units = [unit for unit in units if unit.quality.casefold() in quality_bands]
            if pooled_units:
                rows[name, "-"] = pooled_units
        rows[_ALL_BANDS_NAME, _ALL_BANDS_NAME] = list(units)
    return rows


def _noise_tables(
    protocol: str, units: Units, sizes: Sequence[int], figures: Figures
) -> Iterator[ReportTable]:
    """Yield Table 1, σ²_Rep and σ²_Sem by number of stakeholders, and what it says of wording at the largest number."""
    cells: list[list[object]] = []
    ratios = []
    for (judge, quality), members in _units_by_noise_row(units).items():
        band = {"protocol": protocol, "judge": judge, "quality": quality}
        row: list[object] = [judge, quality]
        for size in sizes:
            means = {}
            for name, measure in MEASURE_BY_NAME.items():
                means[name] = _mean_measure(members, size, measure)
            row += map(number_of_cell, (means["repeat"], means["semantic"]))
            figures["noise"].append({**band, "stakeholders": size, **means})
        cells.append(row)
        largest_units = _units_with_stakeholder_count(members, sizes[-1])
        semantic_variances = _measures_by_cluster(largest_units, ScoredResponseVariants.semantic)
        repeat_variances = _measures_by_cluster(largest_units, ScoredResponseVariants.repeat)
        freedom = sum(unit.repeat_freedom() for unit in largest_units)
        ratio = {
            **band,
            **_growths(members, sizes),
            "semantic_to_repeat": semantic_to_repeat(semantic_variances, repeat_variances, freedom),
            "repeat_freedom": freedom,
            "wording_alone": wording_variance(semantic_variances, repeat_variances),
        }
        ratios.append(ratio)
    figures["ratios"] += ratios
    header = [f"Table 1: {protocol}", "quality"]
    for size in sizes:
        header += [f"σ²_Rep n={size}", "σ²_Sem"]
    digits = variance_table_digits(chain.from_iterable(cells))
    yield ReportTable(header, cells, left=2, digits=digits)
    digits = variance_table_digits(ratio["wording_alone"] for ratio in ratios)
    columns: Columns = {
        f"Table 1: {protocol}": "judge",
        "quality": "quality",
        "Growth (A.3)": "growth",
        "same families": "growth_same_families",
        f"S/R n={sizes[-1]}": "semantic_to_repeat",
        "d": "repeat_freedom",
        "σ²_Sem - σ²_Rep": lambda ratio: format_cell(ratio["wording_alone"], digits),
    }
    yield ReportTable.of(columns, ratios, left=2, digits=_TABLE_DIGITS)


def _table_by_stakeholder_count(
    title: str,
    name: str,
    common: Figures,
    units_by_key: Mapping[str, Units],
    sizes: Sequence[int],
    figures: Figures,
) -> ReportTable:
    """Return a table of σ²_Sem by number of stakeholders and its Growth, with a row for each choice of units.

    Table 10 ends with σ²_Rep of the same units.
    """
    rows = [(key, units, ScoredResponseVariants.semantic) for key, units in units_by_key.items()]
    if name == "families":
        rows.append(("exact repeats", units_by_key["all variants"], ScoredResponseVariants.repeat))
    cells: list[list[object]] = []
    for key, units, measure in rows:
        means = {size: _mean_measure(units, size, measure) for size in sizes}
        growth_ratios = _growths(units, sizes, measure)
        figures[name].append({**common, "name": key, "variance": means, **growth_ratios})
        growth_cells = [format_cell(growth, _TABLE_DIGITS) for growth in growth_ratios.values()]
        cells.append([key, *means.values(), *growth_cells])
    header = [title, *(f"n={size}" for size in sizes), "Growth (A.3)", "same families"]
    return ReportTable(header, cells, digits=variance_table_digits(chain.from_iterable(cells)))


def _units_by_weighting(
    units: Units, file_weights: StakeholderWeightsFromFile | None
) -> Mapping[str, Units]:
    """Return the units with the scores that each weighting gives the same utilities, by its name (Table 5)."""
    units_by_weighting = defaultdict(list)
    for unit in units:
        if not all(row.utilities for row in unit.rows):
            continue
        rows: dict[str, list[PresentationScore]] = defaultdict(list)
        if unit.rows[0].weights:
            rows["by the judge"] += unit.rows
        for row in unit.rows:
            utilities = np.array(list(row.utilities.values()))
            for name, weights in fixed_weights(row, file_weights).items():
                score = float(weights @ utilities)
                rows[name].append(row.model_copy(update={"score": score}))
        for name, reweighted_rows in rows.items():
            units_by_weighting[name].append(unit._replace(rows=tuple(reweighted_rows)))
    return units_by_weighting


def variance_table_digits(cells: Iterable[object], least_digits: int = _TABLE_DIGITS) -> int:
    """Return the decimals of a table of variances: the paper's two, and more where all are below 0.1."""
    largest_value = max((abs(number_of_cell(cell) or 0.0) for cell in cells), default=0.0)
    if largest_value == 0.0 or largest_value >= 0.1:
        return least_digits
    return max(least_digits, 4, 1 - math.floor(math.log10(largest_value)))


def _weight_drift_sections(
    protocol: str, units: Units, sizes: Sequence[int], figures: Figures
) -> ReportSections:
    """Yield Table 3, and the variant with the largest shift by weights, Table 9."""
    cells = []
    shifts_by_unit = []
    for size in sizes:
        clusters = []
        arrays = []
        for unit in _units_with_stakeholder_count(units, size):
            stakeholder_arrays = unit.weights_utilities_and_scores()
            if stakeholder_arrays is not None:
                clusters.append(unit.cluster)
                arrays.append(stakeholder_arrays[2])
                shifts_by_unit.append(_find_largest_weight_shift(*stakeholder_arrays))
        if clusters:
            summary = diagnose_drift(arrays, clusters)
            figures["drift"].append(
                {"protocol": protocol, "stakeholders": size, **summary._asdict()}
            )
            cells.append([size, *summary])
    header = (
        f"Table 3: {protocol}, n",
        "units",
        "variants",
        "w CV",
        "û CV",
        "σ",
        "mean |ΔR_w|/σ",
        "P95 |ΔR_w|/σ",
        "range/σ",
        "w Var share",
    )
    yield ReportTable(header, cells, digits=3)
    if shifts_by_unit:
        largest = max(shifts_by_unit, key=lambda shift: abs(shift["shift"]))
        figures["worst"].append(largest)
        variant = f"{largest['family']} {largest['version']} of {largest['seed']}"
        yield f"Table 9: largest shift by weights, {protocol}: {variant}, by {largest['judge']}"
        shifts = [[name, *person.values()] for name, person in largest["stakeholders"].items()]
        shifts.append(["total shift", None, None, None, None, largest["shift"]])
        yield ReportTable(("stakeholder", "w", "w̄", "Δw", "û", "Δw × û"), shifts, digits=3)


def _find_largest_weight_shift(
    rows: Sequence[PresentationScore], people: Sequence[str], arrays: UnitArrays
) -> Figures:
    """Return the variant with the largest shift by weights, that shift, and its breakdown by stakeholder."""
    weights, utilities, _ = arrays
    means = weights.mean(axis=0)
    shifts = weight_shift(weights, means, utilities)
    index = int(np.abs(shifts).argmax())
    utility = utilities[index]
    change = weights[index] - means
    table = np.array([weights[index], means, change, utility, change * utility]).T.tolist()
    names = ("weight", "mean_weight", "change", "utility", "product")
    shift_by_stakeholder = {
        person: dict(zip(names, terms, strict=True))
        for person, terms in zip(people, table, strict=True)
    }
    variant = rows[index]
    return {
        "protocol": variant.protocol,
        "judge": variant.judge,
        "seed": variant.seed,
        "family": variant.family,
        "version": variant.version,
        "shift": shifts[index],
        "stakeholders": shift_by_stakeholder,
    }


def _noise_plot(noise: FigureRows, sizes: int) -> Plot:
    """Return σ²_Sem over numbers of stakeholders, of all judges and bands of quality: the last rows of a protocol."""
    series = []
    variances_by_protocol = {}
    for protocol, rows in groupby(noise, itemgetter("protocol")):
        variance_by_stakeholder_count = {}
        for row in list(rows)[-sizes:]:
            size = str(row["stakeholders"])
            variance_by_stakeholder_count[size] = row["semantic"]
            variances_by_protocol[f"{protocol}, {size} stakeholders"] = row["semantic"]
        series.append(
            PlotSeries.from_estimates_with_intervals(protocol, variance_by_stakeholder_count)
        )
    digits = variance_table_digits(variances_by_protocol.values())
    title = describe_range("The noise of wording, σ²_Sem,", variances_by_protocol, digits)
    return Plot(title, "points", series, x_label="stakeholders", y_label="σ²_Sem, 95 % interval")


def _variants_summary_sentence(rows: Sequence[PresentationScore]) -> str:
    variants = [row for row in rows if row.is_variant]
    inputs = len({(row.seed, *row.input) for row in variants})
    families = len({row.family for row in variants})
    responses = len({row.seed for row in rows})
    return (
        f"{responses} responses in {inputs} variants, of {families} families; scores from 1 to 10"
    )


def _notes(presentations: Presentations, units: Units, ratios: FigureRows) -> Iterator[str]:
    yield from omission_notes(presentations.left_out)
    seeds_with_one_variant = {unit.rows[0].seed for unit in units if unit.semantic() is None}
    if seeds_with_one_variant:
        yield f"omitted from σ²_Sem, responses with fewer than two scored variants: {len(seeds_with_one_variant)}"
    if all(unit.repeat() is None for unit in units):
        yield (
            "no input was scored twice, so σ²_Rep and S/R are not measured; score with `samples: 5` "
            "and the param `rotate: false`"
        )
    elif any(0 < row["repeat_freedom"] <= _TOO_FEW_DEGREES_OF_FREEDOM for row in ratios):
        yield (
            f"S/R is not given for d = Σ (R - 1) ≤ {_TOO_FEW_DEGREES_OF_FREEDOM}: it has no mean "
            "there; score more repeats"
        )
    tasks = len({unit.cluster for unit in units})
    if tasks < _FEW_TASKS_THRESHOLD:
        yield f"tasks: {tasks}; with fewer than {_FEW_TASKS_THRESHOLD}, the intervals are rough"


_MAX_ROWS_LISTED = 20
_STABLE_DECISION_PROBABILITY = 0.95
"""The probability with which a decision at a threshold should be the same for the next wording."""


class GroupSignal(NamedTuple):
    """A group of G responses to a task: its SNR, P(correct sign), and the variants to average for the wanted P.

    All three are of one noisy draw of each reward. `variance` is that of these G rewards, with divisor G - 1.
    `variants` is None where no number is enough, because the rewards differ by no more than noise explains.
    """

    task: str
    group: int
    variance: float
    noise: float
    has_own_noise: bool
    snr: float
    sign_correct: float
    variants: int | None


def measure_signal_to_noise(
    presentations: Presentations,
    protocol: str | None = None,
    correct: float = 0.9,
    cut: float | None = None,
) -> Report:
    """Return Propositions 1 and 2 and Theorem 1 for the groups of runs.

    The figures are the `groups`; `together`, the SNR of all groups and P(correct sign) at it, with intervals over
    tasks; `terms` by number of stakeholders where the judge gives weights and utilities; and the `flips` of decisions.
    How many groups are below the wanted probability is no figure: of each there is one draw, whose SNR may be far from
    the true one.

    Args:
        protocol: component, or `reward`; by default the reward, or the first protocol.
        correct: the wanted probability of a correct sign, above .5 and below 1.
        cut: threshold of a decision, on the scale from 1 to 10; None for no decisions.

    Raises:
        InputError: an unknown protocol, no variants, or no task with two responses.
    """
    source = ", ".join(presentations.sources)
    protocol_units = units_by_protocol(presentations.rows)
    name = protocol or REWARD_PROTOCOL
    if not protocol and name not in protocol_units:
        name = next(iter(protocol_units), name)
    if name not in protocol_units:
        hint = suggest_known_name(name, protocol_units)
        raise InputError(f"{source}: no score is of {quote(name)}; {hint}")
    units = protocol_units[name]
    wording_variances = _measures_by_cluster(units, ScoredResponseVariants.semantic)
    if not wording_variances:
        raise InputError(
            f"{source}: no response has two scored variants; label them with `seed` and `family`"
        )
    pooled_noise = fmean(chain.from_iterable(wording_variances.values()))
    groups = list(_signals_by_group(units, pooled_noise, correct))
    if not groups:
        raise InputError(
            f"{source}: no task has two responses, so that there is no group to compare"
        )
    pooled_signal = _measure_pooled_signal(groups, wording_variances)
    terms = list(_variance_terms_by_stakeholder_count(units))
    flips: list[Figures] = []
    if cut is not None:
        for unit in units:
            flips += _count_flips(unit, cut)
    figures = {"protocol": name, "correct": correct, "groups": groups, "together": pooled_signal}
    figures |= {"terms": terms, "flips": flips}
    signs = PlotSeries("groups", [group.sign_correct for group in groups])
    marks = [(correct, "wanted")]
    likely_correct_group_count = sum((sign or 0.0) >= correct for sign in signs.y)
    title = f"The sign is right with P ≥ {correct:g} in {likely_correct_group_count} of {len(groups)} groups"
    plot = Plot(title, "histogram", [signs], "P(correct sign)", "groups", marks=marks)
    return Report(
        figures,
        _signal_sections(figures, cut),
        _signal_to_noise_notes(presentations, groups),
        [plot],
        symbol_meanings=symbols.WORDING_SYMBOL_MEANINGS,
    )


def _signal_sections(figures: Figures, cut: float | None) -> ReportSections:
    groups = figures["groups"]
    yield f"{figures['protocol']}: {len(groups)} groups, scores from 1 to 10"
    together = list(figures["together"].items())
    yield ReportTable(["of all groups together", "value (95 %)"], together, digits=3)
    columns = {
        "task": "task",
        "G": "group",
        "Var[R]": "variance",
        "σ²_ξ": "noise",
        "SNR": "snr",
        "P(correct sign)": "sign_correct",
        f"variants for {figures['correct']:g}": "variants",
    }
    rows = [group._asdict() for group in sorted(groups, key=attrgetter("sign_correct"))]
    digits = variance_table_digits((group.noise for group in groups), 3)
    yield ReportTable.of(columns, rows, digits=digits, most=_MAX_ROWS_LISTED)
    columns = {
        "Theorem 1: n": "stakeholders",
        "I estimation": "estimation",
        "II weights": "aggregation",
        "III shared": "shared",
        "cross": "cross",
        "sum": "sum",
        "Var[score]": "variance",
        "II by Prop. 1": "exchangeable",
    }
    digits = variance_table_digits((row["variance"] for row in figures["terms"]), 4)
    yield ReportTable.of(columns, figures["terms"], digits=digits)
    if cut is None:
        return
    flips = figures["flips"]
    flipped_share = itemgetter("flips")
    flipped_responses = sorted(filter(flipped_share, flips), key=flipped_share, reverse=True)
    yield f"decisions at {cut:g}: {len(flipped_responses)} of {len(flips)} responses flip with some wording"
    columns = {
        "response that flips": "seed",
        "mean score": "mean",
        "share of variants": "flips",
        f"variants for {_STABLE_DECISION_PROBABILITY:g}": "variants",
    }
    yield ReportTable.of(columns, flipped_responses, digits=3, most=_MAX_ROWS_LISTED)


def _measure_pooled_signal(
    groups: Sequence[GroupSignal], wording_variances: ValuesByCluster
) -> dict[str, IntervalCell | None]:
    """Return the mean signal of groups over the mean noise of responses, and P(correct sign) at this SNR.

    The expected variance of G observed rewards, with divisor G - 1, is Var_j[Δ_j] · G / (G - 1) + σ²_ξ. So the SNR is
    (mean variance / mean σ²_ξ - 1) (1 - 1/G), of groups of the mean size; its interval is the ratio's, over tasks.
    """
    reward_variances = defaultdict(list)
    for group in groups:
        reward_variances[group.task].append(group.variance)
    ratio = ratio_of_positive_means(reward_variances, wording_variances)
    if ratio is None:
        return {"SNR": None, "P(correct sign)": None}
    size = round(fmean(group.group for group in groups))
    snrs = []
    signs = []
    for end in ratio[:3]:
        snr = None if end is None else max(0.0, end - 1.0) * (1.0 - 1.0 / size)
        snrs.append(snr)
        signs.append(None if snr is None else sign_correctness(snr, size))
    return {"SNR": IntervalCell(*snrs), "P(correct sign)": IntervalCell(*signs)}


def _signals_by_group(units: Units, pooled_noise: float, correct: float) -> Iterator[GroupSignal]:
    for (_, task), members in group_by(units, attrgetter("judge", "cluster")).items():
        size = len(members)
        if size < 2:
            continue
        noise_variances = _measures_by_cluster(members, ScoredResponseVariants.semantic).get(
            task, []
        )
        noise = fmean(noise_variances) if noise_variances else pooled_noise
        rewards = np.array([_original_score(unit) for unit in members])
        snr = observed_snr(rewards, noise)
        variants = None
        if snr > 0.0:
            variants = max(1, math.ceil(needed_snr(correct, size) / snr))
        sign = sign_correctness(snr, size)
        spread = float(np.var(rewards, ddof=1))
        yield GroupSignal(task, size, spread, noise, bool(noise_variances), snr, sign, variants)


def _original_score(unit: ScoredResponseVariants) -> float:
    """Return the score of the response as it is, or of its first variant where only variants were scored."""
    return next((row.score for row in unit.rows if not row.is_variant), unit.rows[0].score)


def _variance_terms_by_stakeholder_count(
    units: Units,
) -> Iterator[Figures]:
    """Yield the means over units of Theorem 1's terms, and of Proposition 1's Term II, by number of stakeholders."""
    # the weight of one alone cannot drift
    for size in sorted({unit.stakeholders for unit in units} - {0, 1}):
        figures_by_unit = []
        for unit in _units_with_stakeholder_count(units, size):
            stakeholder_arrays = unit.weights_utilities_and_scores()
            if stakeholder_arrays is not None:
                weights, utilities, scores = stakeholder_arrays[2]
                drift = float(np.mean(np.var(weights, axis=0, ddof=1)))
                figures_by_unit.append(
                    (
                        float(np.var(scores, ddof=1)),
                        exchangeable_aggregation(utilities.mean(axis=0), drift),
                        *estimate_variance_terms(weights, utilities, scores),
                    )
                )
        if figures_by_unit:
            total, exchangeable, *terms = map(fmean, zip(*figures_by_unit, strict=True))
            means = RewardVarianceTerms(*terms)
            yield {
                "stakeholders": size,
                "units": len(figures_by_unit),
                **means._asdict(),
                "sum": means.total,
                "variance": total,
                "exchangeable": exchangeable,
            }


def _count_flips(unit: ScoredResponseVariants, cut: float) -> Iterator[Figures]:
    """Yield the share of a response's variants on the other side of the cut than their mean, and what makes it stable.

    With normal noise, the mean of K variants is on one side with probability Φ(√K |mean - cut| / σ).
    """
    scores = np.array([row.score for row in unit.variants])
    if len(scores) < 2:
        return
    mean = float(scores.mean())
    share = float(np.mean((scores >= cut) != (mean >= cut)))
    distance_to_cut = abs(mean - cut)
    variants = None
    if distance_to_cut:
        variants = max(
            1,
            math.ceil(
                needed_snr(_STABLE_DECISION_PROBABILITY) * variance(scores) / distance_to_cut**2
            ),
        )
    yield {"seed": unit.rows[0].seed, "mean": mean, "flips": share, "variants": variants}


def _signal_to_noise_notes(
    presentations: Presentations, groups: Sequence[GroupSignal]
) -> Iterator[str]:
    yield from omission_notes(presentations.left_out)
    groups_without_own_noise_count = sum(not group.has_own_noise for group in groups)
    if groups_without_own_noise_count:
        yield f"groups without variants, which take the mean noise of the others: {groups_without_own_noise_count}"
    yield (
        "SNR and P(correct sign) of a single group are of one draw of its noise; how many groups have the wanted "
        "probability cannot be told from them"
    )
    if any(group.snr == 0.0 for group in groups):
        yield "SNR 0: the rewards differ by no more than wording explains; no number of variants is known to mend it"
    yield "averaging repeats of one wording does not reduce σ²_ξ; noise that all wordings share is not seen here"
