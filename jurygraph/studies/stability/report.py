"""The report of the stability study: Tables 1, 2, 3, 5, 9 and 10 of DecompR, in its layout, from your own scores."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.errors import InputError
from jurygraph.inference.clusters import Estimate
from jurygraph.messages import did_you_mean, quote
from jurygraph.studies.report import Plot, PlotSeries, Report, ReportTable, as_interval, format_cell, omission_notes
from jurygraph.studies.stability.measures import (
    mean_of_units,
    ratio_of_means,
    summarize_drift,
    variance,
    weight_shift,
)
from jurygraph.studies.stability.rows import (
    OwnWeights,
    Presentations,
    PresentationScore,
    check_weights,
    fixed_weights,
)

Figures = dict[str, Any]
_ALL = "all"
_DIGITS = 2
_FEW_TASKS = 5


class SeedUnit(NamedTuple):
    """A unit s: the presentations of one response, as one judge scored them by one protocol."""

    judge: str
    quality: str
    cluster: str
    stakeholders: int
    rows: tuple[PresentationScore, ...]

    @property
    def variants(self) -> list[PresentationScore]:
        return [row for row in self.rows if row.is_variant]

    def with_families(self, families: set[str]) -> "SeedUnit":
        return self._replace(rows=tuple(row for row in self.rows if row.family in families))

    def semantic(self, ddof: int = 0) -> float | None:
        """Return σ²_Sem over variants, the mean over their repeats; None for fewer than two variants."""
        return _mean_variance(_group(self.variants, attrgetter("repeat")), ddof)

    def repeat(self, ddof: int = 0) -> float | None:
        """Return σ²_Rep over the repeats of an input, the mean over inputs; None where nothing is repeated."""
        return _mean_variance(_group(self.rows, attrgetter("input")), ddof)

    def cv(self, ddof: int = 0) -> float | None:
        """Return √σ²_Sem / mean; None where either is unknown or the mean is 0."""
        semantic = self.semantic(ddof)
        mean = fmean(row.score for row in self.variants) if semantic is not None else 0.0
        return None if semantic is None or mean == 0.0 else math.sqrt(semantic) / abs(mean)

    def weight_arrays(self) -> tuple[list[PresentationScore], list[str], tuple[Floats, Floats, Floats]] | None:
        """Return variants with weights, the stakeholders, and arrays of weights, utilities [V, n] and scores [V].

        None for fewer than two of them.
        """
        rows = [row for row in self.variants if row.weights]
        if len(rows) < 2:
            return None
        people = sorted(rows[0].weights)
        weights = np.array([[row.weights[person] for person in people] for row in rows])
        utilities = np.array([[row.utilities[person] for person in people] for row in rows])
        return rows, people, (weights, utilities, np.array([row.score for row in rows]))


Measure = Callable[[SeedUnit, int], float | None]
MEASURES: Mapping[str, Measure] = {"semantic": SeedUnit.semantic, "repeat": SeedUnit.repeat, "cv": SeedUnit.cv}


def units_by_protocol(rows: Iterable[PresentationScore]) -> dict[str, list[SeedUnit]]:
    """Return the units of each protocol."""
    found: dict[str, list[SeedUnit]] = {}
    for (protocol, _), own in _group(rows, attrgetter("protocol", "unit")).items():
        first = own[0]
        unit = SeedUnit(first.judge, first.quality, first.task or first.seed, first.stakeholders, tuple(own))
        found.setdefault(protocol, []).append(unit)
    return found


@dataclass(frozen=True)
class StabilityStudy:
    """A choice of what is compared.

    Attributes:
        qualities: quality bands that count; all if empty. The paper's Tables 2, 5 and 10 have medium and high alone.
        own_weights: weights of a file, for Table 5.
        ddof: divisor V - ddof of every variance.
    """

    qualities: Sequence[str] = ()
    own_weights: OwnWeights | None = None
    ddof: int = 0

    def report(self, presentations: Presentations) -> Report:
        """Return the measures of scores by protocol.

        The figures are, each as a list: `units` (σ²_Sem, σ²_Rep and CV of each), `noise` (their means by judge, quality
        and number of stakeholders), `ratios` (Growth and S/R by judge and quality), `protocols`, `families` and
        `weightings` (σ²_Sem by number of stakeholders, and Growth), `drift`, and the `worst` shift by weights.

        Raises:
            InputError: no unit has two variants, or no score is of a chosen quality.
        """
        rows = self._chosen(presentations)
        by_protocol = units_by_protocol(rows)
        every_unit = [unit for units in by_protocol.values() for unit in units]
        sizes = sorted({unit.stakeholders for unit in every_unit})
        if all(unit.semantic() is None for unit in every_unit):
            hint = "label each response with `seed` and `family`, and give every seed at least two variants"
            raise InputError(f"{', '.join(presentations.sources)}: no response has two scored variants; {hint}")
        notes = list(_notes(presentations, every_unit))
        if self.own_weights is not None:
            people = {row.task: row.utilities.keys() for row in rows if row.utilities and row.task is not None}
            notes += filter(None, [check_weights(self.own_weights, people)])
        figures: Figures = {"sources": presentations.sources, "stakeholders": sizes, "units": []}
        figures |= {name: [] for name in ("noise", "ratios", "protocols", "families", "weightings", "drift", "worst")}
        sections: list[str | ReportTable] = [_headline(rows)]
        for protocol, units in by_protocol.items():
            figures["units"] += [self._unit_figures(protocol, unit) for unit in units]
            sections.append(self._noise_table(protocol, units, sizes, figures))
        protocols = by_protocol if len(by_protocol) > 1 else {}
        sections.append(self._table("Table 2: σ²_Sem by protocol", "protocols", {}, protocols, sizes, figures))
        for protocol, units in by_protocol.items():
            common = {"protocol": protocol}
            named = {name: [unit.with_families({name}) for unit in units] for name in _families(units)}
            title = f"Table 10: {protocol}, σ²_Sem by family"
            sections.append(self._table(title, "families", common, {**named, "all variants": units}, sizes, figures))
            title = f"Table 5: {protocol}, σ²_Sem by weights on the same û"
            sections.append(self._table(title, "weightings", common, self._reweighted(units), sizes, figures))
            sections += _drift_sections(protocol, units, sizes, figures)
        figures["left_out"] = presentations.left_out
        return Report(figures, sections, notes, [_plot(figures["noise"], list(by_protocol), len(sizes))])

    def _chosen(self, presentations: Presentations) -> list[PresentationScore]:
        known = list(dict.fromkeys(row.quality for row in presentations.rows))
        for name in self.qualities:
            if name not in known:
                hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
                raise InputError(f"{', '.join(presentations.sources)}: no score has the quality {quote(name)}; {hint}")
        return [row for row in presentations.rows if not self.qualities or row.quality in self.qualities]

    def _unit_figures(self, protocol: str, unit: SeedUnit) -> Figures:
        named = {"protocol": protocol, "judge": unit.judge, "seed": unit.rows[0].seed, "quality": unit.quality}
        variants = len({row.input for row in unit.variants})
        found = {name: measure(unit, self.ddof) for name, measure in MEASURES.items()}
        return {**named, "stakeholders": unit.stakeholders, "variants": variants, **found}

    def _by_cluster(self, units: Iterable[SeedUnit], size: int, measure: Measure) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for unit in units:
            value = measure(unit, self.ddof) if unit.stakeholders == size else None
            if value is not None:
                found.setdefault(unit.cluster, []).append(value)
        return found

    def _growth(
        self, units: Sequence[SeedUnit], sizes: Sequence[int], measure: Measure = SeedUnit.semantic
    ) -> Estimate | None:
        """Return the mean of a measure at the largest over that at the smallest number, by families that both have."""
        if len(sizes) < 2:
            return None
        ends = [[unit for unit in units if unit.stakeholders == size] for size in (sizes[-1], sizes[0])]
        most, least = ({row.family for unit in own for row in unit.rows} for own in ends)
        common = [unit.with_families(most & least) for unit in units]
        return ratio_of_means(*(self._by_cluster(common, size, measure) for size in (sizes[-1], sizes[0])))

    def _noise_table(
        self, protocol: str, units: Sequence[SeedUnit], sizes: Sequence[int], figures: Figures
    ) -> ReportTable:
        """Return Table 1: σ²_Rep and σ²_Sem by number of stakeholders, Growth, and S/R at the largest number."""
        bands = _group(units, attrgetter("judge", "quality"))
        bands |= {(_ALL, _ALL): list(units)} if len(bands) > 1 else {}
        cells = []
        for (judge, quality), own in bands.items():
            of_band = {"protocol": protocol, "judge": judge, "quality": quality}
            row: list[object] = [judge, quality]
            for size in sizes:
                found = {name: mean_of_units(self._by_cluster(own, size, one)) for name, one in MEASURES.items()}
                row += [mean and mean.value for mean in (found["repeat"], found["semantic"])]
                figures["noise"].append({**of_band, "stakeholders": size, **found})
            growth = self._growth(own, sizes)
            ratio = ratio_of_means(
                *(self._by_cluster(own, sizes[-1], measure) for measure in (SeedUnit.semantic, SeedUnit.repeat))
            )
            figures["ratios"].append({**of_band, "growth": growth, "semantic_to_repeat": ratio})
            cells.append([*row, _ratio_cell(growth), _ratio_cell(ratio)])
        header = [f"Table 1: {protocol}", "quality"]
        for size in sizes:
            header += [f"σ²_Rep n={size}", "σ²_Sem"]
        digits = variance_digits(value for row in cells for value in row[2:-2])
        return ReportTable([*header, "Growth", f"S/R n={sizes[-1]}"], cells, left=2, digits=digits)

    def _table(
        self,
        title: str,
        name: str,
        common: Figures,
        units_of: Mapping[str, Sequence[SeedUnit]],
        sizes: Sequence[int],
        figures: Figures,
    ) -> ReportTable:
        """Return a table of σ²_Sem by number of stakeholders and its Growth, with a row for each choice of units.

        Table 10 ends with σ²_Rep of the same units.
        """
        rows = [(key, units, SeedUnit.semantic) for key, units in units_of.items()]
        if name == "families":
            rows.append(("exact repeats", units_of["all variants"], SeedUnit.repeat))
        cells = []
        for key, units, measure in rows:
            means = {size: mean_of_units(self._by_cluster(units, size, measure)) for size in sizes}
            growth = self._growth(units, sizes, measure)
            figures[name].append({**common, "name": key, "variance": means, "growth": growth})
            cells.append([key, *means.values(), _ratio_cell(growth)])
        digits = variance_digits(value for row in cells for value in row[1:-1])
        return ReportTable([title, *(f"n={size}" for size in sizes), "Growth"], cells, digits=digits)

    def _reweighted(self, units: Sequence[SeedUnit]) -> dict[str, list[SeedUnit]]:
        """Return the units with the scores that each weighting gives the same utilities, by its name (Table 5)."""
        found: dict[str, list[SeedUnit]] = {}
        for unit in (one for one in units if all(row.utilities for row in one.rows)):
            rows: dict[str, list[PresentationScore]] = {"by the judge": list(unit.rows)} if unit.rows[0].weights else {}
            for row in unit.rows:
                people = tuple(row.utilities)
                utilities = np.array([row.utilities[person] for person in people])
                for name, weights in fixed_weights(people, row.difficulty, row.task, self.own_weights).items():
                    score = float(weights @ utilities)
                    rows.setdefault(name, []).append(row.model_copy(update={"score": score}))
            for name, own in rows.items():
                found.setdefault(name, []).append(unit._replace(rows=tuple(own)))
        return found


def variance_digits(cells: Iterable[object], least: int = _DIGITS) -> int:
    """Return the decimals of a table of variances: the paper's two, and more where all are below 0.1."""
    values = [estimate.value if (estimate := as_interval(cell)) else cell for cell in cells]
    largest = max((abs(value) for value in values if isinstance(value, float)), default=0.0)
    return least if largest == 0.0 or largest >= 0.1 else max(least, 4, 1 - math.floor(math.log10(largest)))


def _group(things: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for thing in things:
        found.setdefault(key(thing), []).append(thing)
    return found


def _mean_variance(groups: Mapping[Any, Sequence[PresentationScore]], ddof: int) -> float | None:
    found = [variance([row.score for row in rows], ddof) for rows in groups.values() if len(rows) > 1]
    return fmean(found) if found else None


def _families(units: Sequence[SeedUnit]) -> list[str]:
    return sorted({row.family for unit in units for row in unit.variants})


def _drift_sections(
    protocol: str, units: Sequence[SeedUnit], sizes: Sequence[int], figures: Figures
) -> Iterator[str | ReportTable]:
    """Yield Table 3, and the variant with the largest shift by weights, Table 9."""
    cells: list[list[object]] = []
    worst: list[tuple[float, PresentationScore, Figures]] = []
    for size in sizes:
        of_size = [(unit.cluster, unit.weight_arrays()) for unit in units if unit.stakeholders == size]
        found = [(cluster, own) for cluster, own in of_size if own is not None]
        if found:
            clusters = [cluster for cluster, _ in found]
            summary = summarize_drift([arrays for _, (_, _, arrays) in found], clusters)
            figures["drift"].append({"protocol": protocol, "stakeholders": size, **summary._asdict()})
            cells.append([str(size), *summary[:-1], summary.explained])
        worst += [_worst_variant(*own) for _, own in found]
    header = ("units", "variants", "w CV", "û CV", "σ", "mean |ΔR_w|/σ", "P95 |ΔR_w|/σ", "range/σ", "w Var share")
    yield ReportTable([f"Table 3: {protocol}, n", *header], cells, digits=3)
    if worst:
        shift, row, people = max(worst, key=lambda one: abs(one[0]))
        of_row = {"protocol": protocol, "judge": row.judge, "seed": row.seed, "family": row.family}
        figures["worst"].append({**of_row, "version": row.version, "shift": shift, "stakeholders": people})
        yield f"Table 9: largest shift by weights, {protocol}: {row.family} {row.version} of {row.seed}, by {row.judge}"
        breakdown = [(name, *one.values()) for name, one in people.items()]
        columns = ("stakeholder", "w", "w̄", "Δw", "û", "Δw × û")
        yield ReportTable(columns, [*breakdown, ("total shift", *[None] * 4, shift)], digits=3)


def _worst_variant(
    rows: Sequence[PresentationScore], people: Sequence[str], arrays: tuple[Floats, Floats, Floats]
) -> tuple[float, PresentationScore, Figures]:
    """Return the largest shift by weights among variants, its variant, and the breakdown by stakeholder."""
    weights, utilities, _ = arrays
    means = weights.mean(axis=0)
    shift = weight_shift(weights, means, utilities)
    place = int(np.abs(shift).argmax())
    columns = [weights[place], means, weights[place] - means, utilities[place]]
    columns.append(columns[2] * columns[3])
    names = ("weight", "mean_weight", "change", "utility", "product")
    table = np.array(columns).T.tolist()
    breakdown = {person: dict(zip(names, row, strict=True)) for person, row in zip(people, table, strict=True)}
    return float(shift[place]), rows[place], breakdown


def _ratio_cell(found: Estimate | None) -> object:
    return None if found is None else format_cell(found, _DIGITS)


def _plot(noise: Sequence[Figures], protocols: Sequence[str], sizes: int) -> Plot:
    """Return σ²_Sem over numbers of stakeholders, of all judges and bands of quality: the last rows of a protocol."""
    series = []
    for protocol in protocols:
        rows = [row for row in noise if row["protocol"] == protocol][-sizes:]
        series.append(PlotSeries.with_intervals(protocol, {str(row["stakeholders"]): row["semantic"] for row in rows}))
    return Plot("σ²_Sem by stakeholders (95 %)", "points", series, x_label="stakeholders", y_label="σ²_Sem")


def _headline(rows: Sequence[PresentationScore]) -> str:
    variants = [row for row in rows if row.is_variant]
    inputs = len({(row.seed, *row.input) for row in variants})
    families = len({row.family for row in variants})
    return (
        f"{len({row.seed for row in rows})} responses in {inputs} variants, of {families} families; scores from 1 to 10"
    )


def _notes(presentations: Presentations, units: Sequence[SeedUnit]) -> Iterator[str]:
    yield from omission_notes(presentations.left_out)
    single = {unit.rows[0].seed for unit in units if unit.semantic() is None}
    if single:
        yield f"omitted from σ²_Sem, responses with fewer than two scored variants: {len(single)}"
    if all(unit.repeat() is None for unit in units):
        hint = "score with `samples: 5` and the param `rotate: false`"
        yield f"no input was scored twice, so σ²_Rep and S/R are not measured; {hint}"
    tasks = len({unit.cluster for unit in units})
    if tasks < _FEW_TASKS:
        yield f"{tasks} tasks: with fewer than {_FEW_TASKS}, the intervals are rough"
