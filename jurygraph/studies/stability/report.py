"""The report of the stability study: Tables 1, 2, 3, 5, 9 and 10 of DecompR, in its layout, from your own scores."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from jurygraph.errors import InputError
from jurygraph.inference.clusters import Estimate
from jurygraph.messages import did_you_mean, quote
from jurygraph.studies.report import IntervalCell, Plot, PlotSeries, Report, ReportTable, omission_notes
from jurygraph.studies.stability.measures import (
    WeightDrift,
    mean_of_units,
    ratio_of_means,
    summarize_drift,
    variance,
    weight_drift,
)
from jurygraph.studies.stability.rows import Presentations, PresentationScore
from jurygraph.studies.stability.weightings import OwnWeights, fixed_weights

Rows = Sequence[PresentationScore]
Figures = dict[str, Any]
_ALL = "all"
_DIGITS = 2
_FEW_TASKS = 5


@dataclass(frozen=True, slots=True)
class UnitNoise:
    """The noise of one unit s: `semantic` is σ²_Sem, `repeat` σ²_Rep, and `cv` CV; None where it is not defined."""

    cluster: str
    stakeholders: int
    semantic: float | None
    repeat: float | None
    cv: float | None


class _Unit(NamedTuple):
    """The presentations of a response as one judge scored them by one protocol."""

    judge: str
    quality: str
    cluster: str
    stakeholders: int
    rows: tuple[PresentationScore, ...]


class _SizeRow(NamedTuple):
    """A row of a table: mean σ²_Sem over units by number of stakeholders, and its growth."""

    semantic: dict[int, Estimate | None]
    growth: Estimate | None

    def cells(self, name: str) -> list[object]:
        return [name, *map(_cell, self.semantic.values()), _ratio_cell(self.growth)]


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
        and number of stakeholders), `growth` and `semantic_to_repeat` by judge and quality, `families`, `weightings`,
        `drift`, and the `worst` shift by weights.

        Raises:
            InputError: no unit has two variants, or no score is of a chosen quality.
        """
        rows = self._chosen(presentations)
        by_protocol = {name: _units(own) for name, own in _group(rows, attrgetter("protocol"))}
        sizes = sorted({row.stakeholders for row in rows})
        if not any(_semantic(unit.rows, self.ddof) is not None for units in by_protocol.values() for unit in units):
            hint = "label each response with `seed` and `family`, and give every seed at least two variants"
            raise InputError(f"{', '.join(presentations.sources)}: no response has two scored variants; {hint}")
        figures: Figures = {"sources": list(presentations.sources), "stakeholders": sizes}
        figures |= {name: [] for name in ("units", "noise", "ratios", "families", "weightings", "drift", "worst")}
        sections: list[str | ReportTable] = [_headline(rows)]
        for protocol, units in by_protocol.items():
            noise = [self._noise_of(unit) for unit in units]
            figures["units"] += [_unit_figures(protocol, *pair) for pair in zip(units, noise, strict=True)]
            sections.append(self._noise_table(protocol, units, noise, sizes, figures))
        sections.append(self._protocol_table(by_protocol, sizes))
        for protocol, units in by_protocol.items():
            sections.append(self._family_table(protocol, units, sizes, figures))
            sections.append(self._weighting_table(protocol, units, sizes, figures))
            sections += self._drift_sections(protocol, units, sizes, figures)
        figures["left_out"] = presentations.left_out
        return Report(figures, sections, self._all_notes(presentations, by_protocol), _plots(figures))

    def _chosen(self, presentations: Presentations) -> Rows:
        known = list(dict.fromkeys(row.quality for row in presentations.rows))
        for quality in self.qualities:
            if quality not in known:
                hint = did_you_mean(quality, known) or f"there are {', '.join(known) or 'none'}"
                raise InputError(
                    f"{', '.join(presentations.sources)}: no score has the quality {quote(quality)}; {hint}"
                )
        return [row for row in presentations.rows if not self.qualities or row.quality in self.qualities]

    def _noise_of(self, unit: _Unit) -> UnitNoise:
        semantic = _semantic(unit.rows, self.ddof)
        mean = fmean(row.score for row in unit.rows if row.is_variant) if semantic is not None else 0.0
        cv = None if semantic is None or mean == 0.0 else semantic**0.5 / abs(mean)
        return UnitNoise(unit.cluster, unit.stakeholders, semantic, _repeat(unit.rows, self.ddof), cv)

    def _noise_table(
        self, protocol: str, units: Sequence[_Unit], noise: Sequence[UnitNoise], sizes: Sequence[int], figures: Figures
    ) -> ReportTable:
        """Return Table 1: σ²_Rep and σ²_Sem by number of stakeholders, Growth, and S/R at the largest number."""
        of_row: dict[tuple[str, str], list[int]] = {}
        for place, unit in enumerate(units):
            of_row.setdefault((unit.judge, unit.quality), []).append(place)
        if len(of_row) > 1:
            of_row[_ALL, _ALL] = list(range(len(units)))
        cells = []
        for (judge, quality), places in of_row.items():
            row: list[object] = [judge, quality]
            own = [noise[place] for place in places]
            of_band: Figures = {"protocol": protocol, "judge": judge, "quality": quality}
            for size in sizes:
                found: Figures = {name: _mean(own, name, size) for name in ("repeat", "semantic", "cv")}
                row += [_value(found["repeat"]), _value(found["semantic"])]
                figures["noise"].append({**of_band, "stakeholders": size, **found})
            growth = self._growth([units[place] for place in places], sizes)
            largest = sizes[-1]
            ratio = ratio_of_means(_by_cluster(own, "semantic", largest), _by_cluster(own, "repeat", largest))
            figures["ratios"].append({**of_band, "growth": growth, "semantic_to_repeat": ratio})
            cells.append([*row, _ratio_cell(growth), _ratio_cell(ratio)])
        header = [f"Table 1: {protocol}", "quality"]
        for size in sizes:
            header += [f"σ²_Rep n={size}", "σ²_Sem"]
        return ReportTable([*header, "Growth", f"S/R n={sizes[-1]}"], cells, left=2, digits=_DIGITS)

    def _semantic_by_cluster(self, units: Sequence[_Unit], size: int) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for unit in units:
            semantic = _semantic(unit.rows, self.ddof) if unit.stakeholders == size else None
            if semantic is not None:
                found.setdefault(unit.cluster, []).append(semantic)
        return found

    def _growth(self, units: Sequence[_Unit], sizes: Sequence[int]) -> Estimate | None:
        """Return mean σ²_Sem at the largest over that at the smallest number, over families that both numbers have."""
        if len(sizes) < 2:
            return None
        least, most = [
            {row.family for unit in units if unit.stakeholders == size for row in unit.rows if row.is_variant}
            for size in (sizes[0], sizes[-1])
        ]
        common = _only_families(units, least & most)
        return ratio_of_means(self._semantic_by_cluster(common, sizes[-1]), self._semantic_by_cluster(common, sizes[0]))

    def _row_by_size(self, units: Sequence[_Unit], sizes: Sequence[int]) -> _SizeRow:
        means = {size: mean_of_units(self._semantic_by_cluster(units, size)) for size in sizes}
        return _SizeRow(means, self._growth(units, sizes))

    def _protocol_table(self, by_protocol: Mapping[str, Sequence[_Unit]], sizes: Sequence[int]) -> ReportTable:
        cells = []
        for protocol, units in by_protocol.items():
            cells.append(self._row_by_size(units, sizes).cells(protocol))
        return _table("Table 2: σ²_Sem by protocol", sizes, cells if len(cells) > 1 else [])

    def _family_table(
        self, protocol: str, units: Sequence[_Unit], sizes: Sequence[int], figures: Figures
    ) -> ReportTable:
        """Return Table 10: the variance over the versions of each family, and that over exact repeats."""
        families = sorted({row.family for unit in units for row in unit.rows if row.is_variant})
        cells = []
        for name in families:
            found = self._row_by_size(_only_families(units, {name}), sizes)
            figures["families"].append({"protocol": protocol, "family": name, **found._asdict()})
            cells.append(found.cells(name))
        noise = [self._noise_of(unit) for unit in units]
        repeats = [_mean(noise, "repeat", size) for size in sizes]
        ends = [_by_cluster(noise, "repeat", size) for size in (sizes[-1], sizes[0])]
        growth = ratio_of_means(*ends) if len(sizes) > 1 else None
        cells.append(["exact repeat", *map(_cell, repeats), _ratio_cell(growth)])
        cells.append(self._row_by_size(units, sizes).cells("all variants"))
        return _table(f"Table 10: {protocol}, σ²_Sem by family", sizes, cells)

    def _weighting_table(
        self, protocol: str, units: Sequence[_Unit], sizes: Sequence[int], figures: Figures
    ) -> ReportTable:
        """Return Table 5: σ²_Sem of the same utilities under the judge's weights and under fixed ones."""
        estimated = [unit for unit in units if all(row.utilities for row in unit.rows)]
        names = dict.fromkeys(name for unit in estimated for row in unit.rows for name in self._weighted(row))
        cells = []
        for name in names:
            found = self._row_by_size([self._reweighted(unit, name) for unit in estimated], sizes)
            figures["weightings"].append({"protocol": protocol, "weights": name, **found._asdict()})
            cells.append(found.cells(name))
        return _table(f"Table 5: {protocol}, σ²_Sem by weights on the same û", sizes, cells)

    def _reweighted(self, unit: _Unit, name: str) -> _Unit:
        scores = [(row, self._weighted(row).get(name)) for row in unit.rows]
        rows = [row.model_copy(update={"score": score}) for row, score in scores if score is not None]
        return unit._replace(rows=tuple(rows))

    def _weighted(self, row: PresentationScore) -> dict[str, float]:
        """Return the score of a row under each weighting that is defined for it."""
        people = tuple(row.utilities)
        utilities = np.array([row.utilities[person] for person in people])
        found = {"by the judge": row.score} if row.weights else {}
        weights = fixed_weights(people, row.difficulty, row.task, self.own_weights)
        return found | {name: float(one @ utilities) for name, one in weights.items()}

    def _drift_sections(
        self, protocol: str, units: Sequence[_Unit], sizes: Sequence[int], figures: Figures
    ) -> Iterator[str | ReportTable]:
        """Yield Table 3, and the breakdown of the variant with the largest shift, Table 9."""
        drifts = [(unit, *found) for unit in units if (found := _drift(unit)) is not None]
        cells: list[list[object]] = []
        for size in sizes:
            own = [drift for unit, _, drift in drifts if unit.stakeholders == size]
            if own:
                summary = summarize_drift(own)
                figures["drift"].append({"protocol": protocol, "stakeholders": size, **summary._asdict()})
                cells.append([str(size), *summary])
        header = ("units", "variants", "w CV", "û CV", "σ", "mean |ΔR_w|/σ", "P95 |ΔR_w|/σ", "range/σ", "w Var share")
        yield ReportTable([f"Table 3: {protocol}, n", *header], cells, digits=3)
        if drifts:
            yield from _worst_sections(protocol, drifts, figures)

    def _all_notes(self, presentations: Presentations, by_protocol: Mapping[str, Sequence[_Unit]]) -> list[str]:
        notes = list(omission_notes(presentations.left_out))
        units = [unit for of_protocol in by_protocol.values() for unit in of_protocol]
        tasks = len({unit.cluster for unit in units})
        if all(_repeat(unit.rows, self.ddof) is None for unit in units):
            hint = "score with `samples: 5` and the param `rotate: false`"
            notes.append(f"no input was scored twice, so σ²_Rep and S/R are not measured; {hint}")
        if tasks < _FEW_TASKS:
            notes.append(f"{tasks} tasks: with fewer than {_FEW_TASKS}, the intervals are rough")
        single = sum(_semantic(unit.rows, self.ddof) is None for unit in units)
        if single:
            notes.append(f"omitted from σ²_Sem, responses with fewer than two scored variants: {single}")
        return notes


def _group(rows: Rows, key: Callable[[PresentationScore], Any]) -> Iterator[tuple[Any, Rows]]:
    found: dict[Any, list[PresentationScore]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return iter(found.items())


def _units(rows: Rows) -> list[_Unit]:
    units = []
    for _, own in _group(rows, attrgetter("unit")):
        first = own[0]
        units.append(_Unit(first.judge, first.quality, first.task or first.seed, first.stakeholders, tuple(own)))
    return units


def _semantic(rows: Rows, ddof: int) -> float | None:
    """Return σ²_Sem, the variance over variants, as a mean over their repeats; None for fewer than two variants."""
    variants = sorted((row for row in rows if row.is_variant), key=attrgetter("repeat"))
    scores = [[row.score for row in own] for _, own in groupby(variants, key=attrgetter("repeat"))]
    found = [variance(own, ddof) for own in scores if len(own) > 1]
    return fmean(found) if found else None


def _repeat(rows: Rows, ddof: int) -> float | None:
    """Return σ²_Rep: the variance over exact repeats of an input, the mean over inputs that have any."""
    by_input = [[row.score for row in own] for _, own in _group(rows, attrgetter("input"))]
    found = [variance(own, ddof) for own in by_input if len(own) > 1]
    return fmean(found) if found else None


def _only_families(units: Sequence[_Unit], families: set[str]) -> list[_Unit]:
    return [unit._replace(rows=tuple(row for row in unit.rows if row.family in families)) for unit in units]


def _drift(unit: _Unit) -> tuple[Sequence[PresentationScore], WeightDrift] | None:
    rows = [row for row in unit.rows if row.is_variant and row.weights]
    if len(rows) < 2:
        return None
    people = sorted(rows[0].weights)
    weights = np.array([[row.weights[person] for person in people] for row in rows])
    utilities = np.array([[row.utilities[person] for person in people] for row in rows])
    return rows, weight_drift(weights, utilities, np.array([row.score for row in rows]))


def _worst_sections(
    protocol: str, drifts: Sequence[tuple[_Unit, Rows, WeightDrift]], figures: Figures
) -> Iterator[str | ReportTable]:
    unit, rows, drift = max(drifts, key=lambda one: float(np.abs(one[2].shift).max()))
    place = int(np.abs(drift.shift).argmax())
    row = rows[place]
    people = sorted(row.weights)
    cells = []
    for person, mean in zip(people, drift.mean_weights.tolist(), strict=True):
        change = row.weights[person] - mean
        cells.append((person, row.weights[person], mean, change, row.utilities[person], change * row.utilities[person]))
    shift = float(drift.shift[place])
    names = ("stakeholder", "weight", "mean_weight", "change", "utility", "product")
    figures["worst"].append(
        {
            "protocol": protocol,
            "judge": unit.judge,
            "seed": row.seed,
            "family": row.family,
            "version": row.version,
            "shift": shift,
            "stakeholders": [dict(zip(names, one, strict=True)) for one in cells],
        }
    )
    title = f"Table 9: {protocol}, {row.seed}"
    yield ReportTable([title, "w", "w̄", "Δw", "û", "Δw × û"], [*cells, ("total shift", *[None] * 4, shift)], digits=3)
    yield f"largest shift by weights: {row.family} {row.version} of {row.seed}, judge {unit.judge}"


def _by_cluster(noise: Sequence[UnitNoise], name: str, size: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for one in noise:
        value = getattr(one, name)
        if one.stakeholders == size and value is not None:
            found.setdefault(one.cluster, []).append(value)
    return found


def _mean(noise: Sequence[UnitNoise], name: str, size: int) -> Estimate | None:
    return mean_of_units(_by_cluster(noise, name, size))


def _value(found: Estimate | None) -> float | None:
    return None if found is None else found.value


def _cell(found: Estimate | None) -> IntervalCell | None:
    return None if found is None else IntervalCell(found.value, found.low, found.high)


def _ratio_cell(found: Estimate | None) -> object:
    return "∞" if found is not None and found.value == float("inf") else _cell(found)


def _table(title: str, sizes: Sequence[int], cells: Sequence[Sequence[object]]) -> ReportTable:
    return ReportTable([title, *(f"n={size}" for size in sizes), "Growth"], cells, digits=_DIGITS)


def _headline(rows: Rows) -> str:
    variants = {(*row.unit, *row.input) for row in rows if row.is_variant}
    seeds = {row.seed for row in rows}
    families = {row.family for row in rows if row.is_variant}
    return f"{len(seeds)} responses in {len(variants)} variants of {len(families)} families; scores from 1 to 10"


def _unit_figures(protocol: str, unit: _Unit, noise: UnitNoise) -> Figures:
    return {
        "protocol": protocol,
        "judge": unit.judge,
        "seed": unit.rows[0].seed,
        "quality": unit.quality,
        "stakeholders": unit.stakeholders,
        "variants": len({row.input for row in unit.rows if row.is_variant}),
        "semantic": noise.semantic,
        "repeat": noise.repeat,
        "cv": noise.cv,
    }


def _plots(figures: Figures) -> list[Plot]:
    sizes = [str(size) for size in figures["stakeholders"]]
    panels = []
    for protocol in dict.fromkeys(row["protocol"] for row in figures["noise"]):
        own = [row for row in figures["noise"] if row["protocol"] == protocol]
        last = (own[-1]["judge"], own[-1]["quality"])
        rows = [row for row in own if (row["judge"], row["quality"]) == last]
        series = [
            PlotSeries(
                label,
                [_value(row[name]) for row in rows],
                sizes,
                [row[name] and row[name].low for row in rows],
                [row[name] and row[name].high for row in rows],
            )
            for name, label in (("semantic", "σ²_Sem, variants"), ("repeat", "σ²_Rep, exact repeats"))
        ]
        panels.append(Plot(protocol, "bars", series, x_label="stakeholders", y_label="variance of the score"))
    return panels
