"""The simulations of STABLEVAL as one study: Tables 4 to 7 next to the paper's numbers, and both propositions.

The part `decompr` is the theory of another paper, DecompR's.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from jurygraph.aggregation.consensus.resampling import METHODS, Method
from jurygraph.arrays import Floats
from jurygraph.display import format_number
from jurygraph.studies.report import Plot, PlotSeries, Report, ReportTable
from jurygraph.studies.simulate.decompr import decompr_sections, simulate_decompr
from jurygraph.studies.simulate.propositions import FRACTION, MODEL, SIZES, SUBSETS, measure_shifts
from jurygraph.studies.simulate.published import CONFIGURATIONS, THINNED, Cells, Configuration, Sweep
from jurygraph.studies.simulate.recovery import FIGURES, measure_thinning, recovery

Part = Sweep | Literal["propositions", "decompr"]
PARTS: tuple[Part, ...] = (*get_args(Sweep), "propositions", "decompr")
UNITS = {"mse": 1000.0, "accuracy": 100.0, "tau_b": 1.0}
"""What each figure is multiplied by."""
_NORMAL = 1.959963984540054
_TABLES = (("mse", "Table 4: MSE, 10⁻³", 2), ("accuracy", "Table 6: in order, %", 1), ("tau_b", "Table 7: τ_b", 3))


class SimulatedMean(NamedTuple):
    """The mean of a figure over the seeds, its standard error (None with one seed), and the paper's number."""

    mean: float
    error: float | None
    paper: float | None = None

    def text(self, digits: int) -> str:
        """Return the mean, with its standard error in parentheses."""
        mean = format_number(self.mean, digits)
        return mean if self.error is None else f"{mean} ({format_number(self.error, digits)})"


ByMethod = dict[Method, SimulatedMean]
Row = dict[str, Any]
Advance = Callable[[int], None]


@dataclass(frozen=True)
class SimulationStudy:
    """A choice of parts, and the seeds of their evaluations.

    Attributes:
        parts: sweeps of the paper, `propositions`, and `decompr`.
        seeds: number of evaluations of each configuration, at least 1.
        seed: the first seed; the others follow it.
        jobs: number of processes; the results do not depend on it.
    """

    parts: Sequence[Part] = field(default=PARTS)
    seeds: int = 100
    seed: int = 0
    jobs: int = 1

    @property
    def configurations(self) -> Mapping[str, Configuration]:
        """Return the configurations of the chosen sweeps, by name."""
        return {name: one for name, one in CONFIGURATIONS.items() if one.sweep in self.parts}

    @property
    def size(self) -> int:
        """Return the number of evaluations that `run` simulates."""
        distinct = len({one.setting for one in self.configurations.values()})
        thinned = sum(name in self.configurations for name in THINNED)
        return self.seeds * (distinct + thinned + len(SIZES) * ("propositions" in self.parts))

    def run(self, report: Advance = lambda evaluations: None) -> Report:
        """Simulate and measure; `report` is called with 1 after each evaluation. A part that was not chosen is empty.

        - `recovery` (Tables 4, 6 and 7), by configuration: MSE of the agents' scores in 10⁻³, pairs of agents in order
          in %, τ_b. `above_majority` counts the rows in which the MSE of each other method is above the majority's, and
          `above_majority_in_paper` those of the same rows in the paper's Table 4.
        - `thinning` (Table 5): τ_b of the ranking by `kept` of an item's `labels` with that by all of them.
        - `propositions`: scores by all annotators compared with those by a random subset, a `fraction` of them in
          `subsets` subsets of each evaluation, for numbers of `items` of each agent. By method, `shift` is
          max_a |S_R(a) - S_R'(a)|, which Proposition 2 lets go to 0; `limit` is the value that it goes to under the
          model; `tau_b` is that between the two rankings; and `same_order` the share of subsets that change none of the
          order. `decided_by_one` is the share of the items whose majority leads by one vote (Proposition 1).
        - `decompr`: Theorem 1's `terms` and the `signs` of Proposition 2, each by formula and for each seed.
        """
        rows = self._recovery_rows(report)
        thinning = list(self._thinning_rows(report))
        propositions = list(self._shift_rows(report)) if "propositions" in self.parts else []
        decompr = simulate_decompr(self._seeds) if "decompr" in self.parts else {}
        ours = _count_above({method: one.mean for method, one in row["mse"].items()} for row in rows)
        papers = _count_above(_by_method(one.mse) for one in self.configurations.values())
        figures = {
            "seed": self.seed,
            "seeds": self.seeds,
            "recovery": rows,
            "thinning": thinning,
            "propositions": propositions,
            "decompr": decompr,
            "above_majority": ours,
            "above_majority_in_paper": papers,
            "fraction": FRACTION,
            "subsets": SUBSETS,
        }
        last = self.seed + self.seeds - 1
        means = f"seed {last}" if self.seeds == 1 else f"means over seeds {self.seed} to {last} (standard error)"
        counts = f"{_join_counts(ours)}; in the paper: {_join_counts(papers)}"
        sections: list[str | ReportTable] = [f"{means}, and the paper's number"]
        columns = [title for method in METHODS for title in (method, "paper")]
        for name, title, digits in _TABLES:
            cells = [[row["name"], *_beside_paper(row[name], digits)] for row in rows]
            sections.append(ReportTable([title, *columns], cells, digits=digits))
            if rows and name == "mse":
                sections.append(f"above the majority's, of {len(rows)} rows: {counts}")
        cells = [
            [f"{row['name']}: {row['kept']} of {row['labels']}", *_beside_paper(row["tau_b"], 3)] for row in thinning
        ]
        sections.append(ReportTable(["Table 5: τ_b with fewer labels", *columns], cells, digits=3))
        if propositions:
            sections += _proposition_sections(propositions)
        if decompr:
            sections += decompr_sections(decompr)
        return Report(figures, sections, plots=list(_plots(rows, propositions)))

    @property
    def _seeds(self) -> range:
        return range(self.seed, self.seed + self.seeds)

    def _recovery_rows(self, report: Advance) -> list[Row]:
        rows = []
        settings = {name: one.setting for name, one in self.configurations.items()}
        for name, found in recovery(settings, self._seeds, self.jobs, report).items():
            one = CONFIGURATIONS[name]
            row: Row = {"name": name, "sweep": one.sweep}
            for place, figure in enumerate(FIGURES):
                row[figure] = _means(UNITS[figure] * found[:, :, place], getattr(one, figure))
            rows.append(row)
        return rows

    def _thinning_rows(self, report: Advance) -> Iterator[Row]:
        for name, one in self.configurations.items():
            if name in THINNED:
                kept, printed = THINNED[name]
                found = measure_thinning(one.setting, kept, self._seeds, self.jobs, report)
                yield {"name": name, "labels": one.setting.labels, "kept": kept, "tau_b": _means(found, printed)}

    def _shift_rows(self, report: Advance) -> Iterator[Row]:
        for items in SIZES:
            setting = MODEL.model_copy(update={"items": items})
            found = measure_shifts(setting, self._seeds, self.jobs, report)
            row: Row = {"items": items, "decided_by_one": float(found.decided_by_one.mean())}
            for name, values in (("shift", found.shift), ("limit", found.limit), ("tau_b", found.tau_b)):
                by_method = zip(METHODS, values.mean(axis=1).T, strict=True)
                row[name] = {method: _mean(by_seed) for method, by_seed in by_method}
            same = (found.tau_b > 1.0 - 1e-9).mean(axis=(0, 1)).tolist()
            yield row | {"same_order": dict(zip(METHODS, same, strict=True))}


def _means(found: Floats, printed: Cells) -> ByMethod:
    """Return the means of figures [S,M] next to the paper's numbers."""
    papers = _by_method(printed).items()
    return {method: _mean(by_seed, paper) for by_seed, (method, paper) in zip(found.T, papers, strict=True)}


def _mean(by_seed: Floats, paper: float | None = None) -> SimulatedMean:
    error = float(by_seed.std(ddof=1) / np.sqrt(len(by_seed))) if len(by_seed) > 1 else None
    return SimulatedMean(float(by_seed.mean()), error, paper)


def _by_method(cells: Cells) -> dict[Method, float]:
    return dict(zip(METHODS, cells, strict=True))


def _count_above(rows: Iterable[Mapping[Method, float]]) -> dict[Method, int]:
    counted = list(rows)
    return {method: sum(row[method] > row["majority"] for row in counted) for method in METHODS[1:]}


def _join_counts(counts: Mapping[Method, int]) -> str:
    return ", ".join(f"{method} {count}" for method, count in counts.items())


def _beside_paper(means: ByMethod, digits: int) -> Iterator[object]:
    for one in means.values():
        yield one.text(digits)
        yield one.paper


def _proposition_sections(rows: Sequence[Row]) -> list[str | ReportTable]:
    shifts = []
    orders = []
    for row in rows:
        changes: list[object] = []
        ranks: list[object] = []
        for method in METHODS:
            changes += [row["shift"][method].text(4), row["limit"][method].mean]
            ranks += [row["tau_b"][method].text(4), f"{row['same_order'][method]:.1%}"]
        shifts.append([row["items"], *changes])
        orders.append([row["items"], row["decided_by_one"], *ranks])
    subset = f"{FRACTION:.0%} of the annotators, {SUBSETS} subsets for each seed"
    limits = [title for method in METHODS for title in (method, "limit")]
    unchanged = [title for method in METHODS for title in (f"τ_b {method}", "unchanged")]
    return [
        f"propositions: scores by all annotators and by {subset}; no item is ambiguous",
        ReportTable(["largest change of a score, by items of an agent", *limits], shifts),
        ReportTable(["order, by items of an agent", "decided by one", *unchanged], orders),
    ]


def _plots(recovered: Sequence[Row], propositions: Sequence[Row]) -> Iterator[Plot]:
    if recovered:
        names = [row["name"] for row in recovered]
        series = []
        for method in METHODS:
            means = [row["mse"][method] for row in recovered]
            low = [one.mean - _NORMAL * (one.error or 0.0) for one in means]
            high = [one.mean + _NORMAL * (one.error or 0.0) for one in means]
            series.append(PlotSeries(method, [one.mean for one in means], names, low, high))
            series.append(PlotSeries(f"{method}, paper", [one.paper for one in means], names))
        yield Plot("error of agents' scores", "points", series, y_label="MSE, 10⁻³")
    if propositions:
        items = [row["items"] for row in propositions]
        series = []
        for method in METHODS:
            series.append(PlotSeries(method, [row["shift"][method].mean for row in propositions], items))
            series.append(PlotSeries(f"{method}, limit", [row["limit"][method].mean for row in propositions], items))
        title = f"largest change by {FRACTION:.0%} of the annotators"
        yield Plot(title, "line", series, x_label="items of an agent", has_log_scale=True)
