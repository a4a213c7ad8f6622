"""`jurygraph study simulate`: STABLEVAL's simulations and propositions next to the paper's numbers."""

import os
from collections.abc import Iterator, Sequence
from typing import Annotated, get_args

import typer

from jurygraph.aggregation.consensus.resampling import METHODS, Method
from jurygraph.cli.options import AsJson, PlotFile, option
from jurygraph.cli.output_files import refuse_picture, write_output_with
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.text import format_number, print_report, table_section
from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean
from jurygraph.studies.plots import draw_simulation
from jurygraph.studies.simulate.published import Sweep
from jurygraph.studies.simulate.study import (
    PARTS,
    ByMethod,
    Part,
    ShiftRow,
    SimulatedMean,
    SimulationReport,
    SimulationStudy,
)

_TABLES = (("mse", "Table 4: MSE, 10⁻³", 2), ("accuracy", "Table 6: in order, %", 1), ("tau_b", "Table 7: τ_b", 3))
_PARTS_HELP = f"Sweeps to simulate: {', '.join(get_args(Sweep))}; or propositions."


def simulate(
    parts: Annotated[
        list[str] | None,
        typer.Argument(metavar="PART", help=_PARTS_HELP, show_default="all"),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Evaluations of each configuration.")] = 100,
    seed: Annotated[int, typer.Option(min=0, metavar="S", help="The first seed; the others follow it.")] = 0,
    jobs: Annotated[int | None, option("N", "Processes.", show_default="one for each CPU", min=1)] = None,
    plot: PlotFile = None,
    json: AsJson = False,
) -> None:
    """Simulate annotators and measure what is recovered (STABLEVAL, Tables 4 to 7, Propositions 1 and 2).

    Six agents with 500 items each are labelled by five of 30 annotators: normal, strict, lenient and guessing ones. A
    sweep varies one property: labels of an item, gaps between agents, the pool of annotators, or hard items. Majority
    vote, hard Dawid-Skene and posterior expected credit are compared with the truth. Each mean has its standard error
    in parentheses, and the paper's number follows. `propositions` compares the scores by all annotators with those by
    70 % of them, for more and more items, under the paper's own model. All parts take some minutes at 100 seeds.

    Exit codes: 0 done; 2 invalid input, such as an unknown part.

    \b
    Example:
        jurygraph study simulate labels hard --seeds 10
        jurygraph study simulate propositions --seeds 20 --plot propositions.svg
        jurygraph study simulate --json
    """
    refuse_picture(plot)
    study = SimulationStudy(_choose_parts(parts or PARTS), seeds, seed, jobs or os.cpu_count() or 1)
    with progress("simulating", study.size, "evaluations") as advance:
        report = study.run(advance)
    print_report(json, report, _report_lines(report))
    if plot is not None:
        write_output_with(str(plot), lambda draft: draw_simulation(report, draft, plot.suffix))


def _choose_parts(names: Sequence[str]) -> tuple[Part, ...]:
    for name in names:
        if name not in PARTS:
            hint = did_you_mean(name, PARTS) or f"name some of {', '.join(PARTS)}"
            raise InputError(f"unknown part {name!r}; {hint}")
    return tuple(part for part in PARTS if part in names)


def _report_lines(report: SimulationReport) -> Iterator[str]:
    last = report.seed + report.seeds - 1
    means = f"seed {last}" if report.seeds == 1 else f"means over seeds {report.seed} to {last} (standard error)"
    yield f"{means}, and the paper's number"
    for name, title, digits in _TABLES:
        rows = [[row.name, *_cells(getattr(row, name), digits)] for row in report.recovery]
        yield from table_section([title, *_columns()], rows, digits=digits)
        if rows and name == "mse":
            ours, theirs = _above(report.above_majority), _above(report.above_majority_in_paper)
            yield f"above the majority's, of {len(rows)} rows: {ours}; in the paper: {theirs}"
    rows = [[f"{row.name}: {row.kept} of {row.labels}", *_cells(row.tau_b, 3)] for row in report.thinning]
    yield from table_section(["Table 5: τ_b with fewer labels", *_columns()], rows, digits=3)
    if report.propositions:
        yield from _proposition_lines(report)


def _columns() -> list[str]:
    return [title for method in METHODS for title in (method, "paper")]


def _cells(means: ByMethod, digits: int) -> Iterator[object]:
    for one in means.values():
        yield _format_mean(one, digits)
        yield one.paper


def _format_mean(one: SimulatedMean, digits: int) -> str:
    mean = format_number(one.mean, digits)
    return mean if one.error is None else f"{mean} ({format_number(one.error, digits)})"


def _above(counts: dict[Method, int]) -> str:
    return ", ".join(f"{method} {count}" for method, count in counts.items())


def _proposition_lines(report: SimulationReport) -> Iterator[str]:
    rows = report.propositions
    yield ""
    subset = f"{report.fraction:.0%} of the annotators, {report.subsets} subsets for each seed"
    yield f"propositions: scores by all annotators and by {subset}; no item is ambiguous"
    header = ["items of an agent", *(title for method in METHODS for title in (method, "limit"))]
    shifts: list[Sequence[object]] = [[row.items, *_shift_cells(row)] for row in rows]
    yield from table_section(["largest change of a score:", *header[1:]], shifts)
    header = ["order:", "decided by one", *(title for method in METHODS for title in (f"τ_b {method}", "unchanged"))]
    orders: list[Sequence[object]] = [[row.items, row.decided_by_one, *_order_cells(row)] for row in rows]
    yield from table_section(header, orders)


def _shift_cells(row: ShiftRow) -> Iterator[object]:
    for method in METHODS:
        yield _format_mean(row.shift[method], 4)
        yield row.limit[method].mean


def _order_cells(row: ShiftRow) -> Iterator[object]:
    for method in METHODS:
        yield _format_mean(row.tau_b[method], 4)
        yield f"{row.same_order[method]:.1%}"
