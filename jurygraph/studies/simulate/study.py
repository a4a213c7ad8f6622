"""The simulations of STABLEVAL as one study: Tables 4 to 7 next to the paper's numbers, and both propositions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from jurygraph.aggregation.consensus.resampling import METHODS, Method
from jurygraph.arrays import Floats
from jurygraph.display import format_number
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Count, Number, PositiveInt, Unit
from jurygraph.studies.report import Plot, PlotSeries, Report, ReportTable
from jurygraph.studies.simulate.figures import MethodFigures
from jurygraph.studies.simulate.propositions import FRACTION, MODEL, SIZES, SUBSETS, SubsetShifts, measure_shifts
from jurygraph.studies.simulate.published import CONFIGURATIONS, THINNED, Cells, Configuration, Sweep
from jurygraph.studies.simulate.recovery import recovery
from jurygraph.studies.simulate.thinning import measure_thinning

Part = Sweep | Literal["propositions"]
PARTS: tuple[Part, ...] = (*get_args(Sweep), "propositions")
PER_CENT = 100.0
PER_MILLE = 1000.0
_NORMAL = 1.959963984540054
_TABLES = (("mse", "Table 4: MSE, 10⁻³", 2), ("accuracy", "Table 6: in order, %", 1), ("tau_b", "Table 7: τ_b", 3))


class SimulatedMean(FrozenModel):
    """The mean of a figure over the seeds, its standard error (None with one seed), and the paper's number."""

    mean: Number
    error: Number | None
    paper: Number | None = None

    def text(self, digits: int) -> str:
        """Return the mean, with its standard error in parentheses."""
        mean = format_number(self.mean, digits)
        return mean if self.error is None else f"{mean} ({format_number(self.error, digits)})"


ByMethod = dict[Method, SimulatedMean]


class RecoveryRow(FrozenModel):
    """A configuration in Tables 4, 6 and 7: MSE of the agents' scores in 10⁻³, pairs of agents in order in %, τ_b."""

    name: str
    sweep: Sweep
    mse: ByMethod
    accuracy: ByMethod
    tau_b: ByMethod


class ThinningRow(FrozenModel):
    """A row of Table 5: τ_b of the ranking by `kept` of an item's `labels` with that by all of them."""

    name: str
    labels: PositiveInt
    kept: PositiveInt
    tau_b: ByMethod


class ShiftRow(FrozenModel):
    """Scores by all annotators compared with those by a random subset, for one number of `items` of each agent.

    By method, `shift` is max_a |S_R(a) - S_R'(a)|, which Proposition 2 lets go to 0; `limit` is the value that it goes
    to under the model; `tau_b` is that between the two rankings; and `same_order` the share of subsets that change none
    of the order. `decided_by_one` is the share of the items whose majority leads by one vote (Proposition 1).
    """

    items: PositiveInt
    decided_by_one: Unit
    shift: ByMethod
    limit: ByMethod
    tau_b: ByMethod
    same_order: dict[Method, Unit]


class SimulationReport(Report):
    """Means over `seeds` seeds from `seed` on. A part that was not chosen is empty.

    `above_majority` counts the rows in which the MSE of each other method is above the majority's, and
    `above_majority_in_paper` those of the same rows in the paper's Table 4. `fraction` is the share of the annotators
    in a subset, and `subsets` the number of subsets of each evaluation.
    """

    seed: Count
    seeds: PositiveInt
    recovery: tuple[RecoveryRow, ...]
    thinning: tuple[ThinningRow, ...]
    propositions: tuple[ShiftRow, ...]
    above_majority: dict[Method, Count]
    above_majority_in_paper: dict[Method, Count]
    fraction: Unit = FRACTION
    subsets: PositiveInt = SUBSETS

    def _sections(self) -> Iterator[str | ReportTable]:
        last = self.seed + self.seeds - 1
        means = f"seed {last}" if self.seeds == 1 else f"means over seeds {self.seed} to {last} (standard error)"
        yield f"{means}, and the paper's number"
        columns = [title for method in METHODS for title in (method, "paper")]
        for name, title, digits in _TABLES:
            rows = [[row.name, *_beside_paper(getattr(row, name), digits)] for row in self.recovery]
            yield ReportTable([title, *columns], rows, digits=digits)
            if rows and name == "mse":
                ours = _join_counts(self.above_majority)
                theirs = _join_counts(self.above_majority_in_paper)
                yield f"above the majority's, of {len(rows)} rows: {ours}; in the paper: {theirs}"
        rows = [[f"{row.name}: {row.kept} of {row.labels}", *_beside_paper(row.tau_b, 3)] for row in self.thinning]
        yield ReportTable(["Table 5: τ_b with fewer labels", *columns], rows, digits=3)
        if self.propositions:
            yield from self._proposition_sections()

    def _proposition_sections(self) -> Iterator[str | ReportTable]:
        subset = f"{self.fraction:.0%} of the annotators, {self.subsets} subsets for each seed"
        yield f"propositions: scores by all annotators and by {subset}; no item is ambiguous"
        shifts: list[list[object]] = []
        orders: list[list[object]] = []
        for row in self.propositions:
            changes = [cell for method in METHODS for cell in (row.shift[method].text(4), row.limit[method].mean)]
            shifts.append([row.items, *changes])
            ranks = [
                cell for method in METHODS for cell in (row.tau_b[method].text(4), f"{row.same_order[method]:.1%}")
            ]
            orders.append([row.items, row.decided_by_one, *ranks])
        header = [title for method in METHODS for title in (method, "limit")]
        yield ReportTable(["largest change of a score, by items of an agent", *header], shifts)
        header = [title for method in METHODS for title in (f"τ_b {method}", "unchanged")]
        yield ReportTable(["order, by items of an agent", "decided by one", *header], orders)

    def _plots(self) -> Iterator[Plot]:
        if self.recovery:
            names = [row.name for row in self.recovery]
            series = []
            for method in METHODS:
                means = [row.mse[method] for row in self.recovery]
                margins = [_NORMAL * (one.error or 0.0) for one in means]
                low = [one.mean - margin for one, margin in zip(means, margins, strict=True)]
                high = [one.mean + margin for one, margin in zip(means, margins, strict=True)]
                series.append(PlotSeries(method, [one.mean for one in means], names, low, high))
                series.append(PlotSeries(f"{method}, paper", [one.paper for one in means], names))
            yield Plot("error of agents' scores", "points", series, y_label="MSE, 10⁻³")
        if self.propositions:
            items = [row.items for row in self.propositions]
            series = []
            for method in METHODS:
                series.append(PlotSeries(method, [row.shift[method].mean for row in self.propositions], items))
                limits = [row.limit[method].mean for row in self.propositions]
                series.append(PlotSeries(f"{method}, limit", limits, items))
            title = f"largest change by {self.fraction:.0%} of the annotators"
            yield Plot(title, "line", series, x_label="items of an agent", has_log_scale=True)


def _beside_paper(means: ByMethod, digits: int) -> Iterator[object]:
    for one in means.values():
        yield one.text(digits)
        yield one.paper


def _join_counts(counts: Mapping[Method, int]) -> str:
    return ", ".join(f"{method} {count}" for method, count in counts.items())


@dataclass(frozen=True)
class SimulationStudy:
    """A choice of parts, and the seeds of their evaluations.

    Attributes:
        parts: sweeps of the paper, and `propositions`.
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

    def run(self, report: Callable[[int], None] = lambda evaluations: None) -> SimulationReport:
        """Simulate and measure; `report` is called with 1 after each evaluation."""
        rows = tuple(self._recovery_rows(report))
        return SimulationReport(
            seed=self.seed,
            seeds=self.seeds,
            recovery=rows,
            thinning=tuple(self._thinning_rows(report)),
            propositions=tuple(self._shift_rows(report)) if "propositions" in self.parts else (),
            above_majority=_count_above([{name: one.mean for name, one in row.mse.items()} for row in rows]),
            above_majority_in_paper=_count_above([_by_method(one.mse) for one in self.configurations.values()]),
        )

    @property
    def _seeds(self) -> range:
        return range(self.seed, self.seed + self.seeds)

    def _recovery_rows(self, report: Callable[[int], None]) -> Iterator[RecoveryRow]:
        settings = {name: one.setting for name, one in self.configurations.items()}
        for name, found in recovery(settings, self._seeds, self.jobs, report).items():
            one = CONFIGURATIONS[name]
            yield RecoveryRow(
                name=name,
                sweep=one.sweep,
                mse=_means(found, "mse", one.mse, PER_MILLE),
                accuracy=_means(found, "accuracy", one.accuracy, PER_CENT),
                tau_b=_means(found, "tau_b", one.tau_b),
            )

    def _thinning_rows(self, report: Callable[[int], None]) -> Iterator[ThinningRow]:
        for name, one in self.configurations.items():
            if name in THINNED:
                kept, printed = THINNED[name]
                found = measure_thinning(one.setting, kept, self._seeds, self.jobs, report)
                means = _means(found, "tau_b", printed)
                yield ThinningRow(name=name, labels=one.setting.labels, kept=kept, tau_b=means)

    def _shift_rows(self, report: Callable[[int], None]) -> Iterator[ShiftRow]:
        for items in SIZES:
            setting = MODEL.model_copy(update={"items": items})
            yield _shift_row(items, measure_shifts(setting, self._seeds, self.jobs, report))


def _shift_row(items: int, found: SubsetShifts) -> ShiftRow:
    same = (found.tau_b > 1.0 - 1e-9).mean(axis=(0, 1)).tolist()
    columns = {
        name: {method: _mean(by_seed) for method, by_seed in zip(METHODS, values.mean(axis=1).T, strict=True)}
        for name, values in (("shift", found.shift), ("limit", found.limit), ("tau_b", found.tau_b))
    }
    share = float(found.decided_by_one.mean())
    same_order = dict(zip(METHODS, same, strict=True))
    return ShiftRow(items=items, decided_by_one=share, same_order=same_order, **columns)


def _means(found: MethodFigures, figure: str, printed: Cells, unit: float = 1.0) -> ByMethod:
    return {method: _mean(unit * found.by_seed(method, figure), paper) for method, paper in _by_method(printed).items()}


def _mean(by_seed: Floats, paper: float | None = None) -> SimulatedMean:
    """Return the mean of a figure by seed, [S]."""
    error = float(by_seed.std(ddof=1) / np.sqrt(len(by_seed))) if len(by_seed) > 1 else None
    return SimulatedMean(mean=float(by_seed.mean()), error=error, paper=paper)


def _by_method(cells: Cells) -> dict[Method, float]:
    return dict(zip(METHODS, cells, strict=True))


def _count_above(rows: Sequence[Mapping[Method, float]]) -> dict[Method, int]:
    """Count the rows in which a method has more than the majority."""
    return {method: sum(row[method] > row["majority"] for row in rows) for method in METHODS[1:]}
