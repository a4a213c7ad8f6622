"""`jurygraph study`: the measurements of the papers, applied to your own runs."""

from collections.abc import Iterator
from contextlib import closing
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli.commands.disagreement import disagreement
from jurygraph.cli.options import AsJson, PlotFile, Resamples, RunFolder
from jurygraph.cli.output_files import refuse_picture, write_output_with
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.text import (
    escape_line,
    format_number,
    format_table,
    print_json,
    print_message,
    print_result_lines,
)

if TYPE_CHECKING:
    from jurygraph.studies.credit.models import CreditReport, Estimate, Variant

study = typer.Typer(
    name="study",
    help="Apply the measurements of the papers to runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_MAX_LOSSES, _MAX_REASON = 10, 120


class EdgeKinds(StrEnum):
    """Kinds of edges whose cases count."""

    all = "all"
    prerequisite = "prerequisite"
    activation = "activation"


@study.callback()
def _studies() -> None:
    """Apply the measurements of the papers to runs."""


study.command()(disagreement)


@study.command()
def credit(
    run: RunFolder,
    kinds: Annotated[EdgeKinds, typer.Option(help="Kinds of edges to count.")] = EdgeKinds.all,
    seeds: Annotated[int, typer.Option(min=0, metavar="N", help="Random graphs per rubric.")] = 20,
    resamples: Resamples = 1000,
    seed: Annotated[int, typer.Option(min=0, metavar="S", help="Seed of the bootstrap and the random graphs.")] = 0,
    plot: PlotFile = None,
    json: AsJson = False,
) -> None:
    """Measure false credit over the edges of rubrics (GEAR).

    A criterion that is met while its parent is not is a leakage case; the credit that a rule leaves it, as a share of
    the rubric's total weight, is leakage. If both are met, the remaining share of the child's own score is
    preservation. Flat aggregation, both hard gates and GEAR are compared on the run's verdicts, with 95 % bootstrap
    intervals over responses; so are random and untyped graphs, values of κ, and exact inference. The criteria with the
    largest losses come last. No request is sent, and nothing is written except the plot. `--json` prints every
    statistic and every criterion.

    Exit codes: 0 done; 2 invalid input, such as a run without a rubric that has edges.

    \b
    Example:
        jurygraph study credit run
        jurygraph study credit run --kinds activation --plot credit.svg
    """
    from jurygraph.runs.run import Run
    from jurygraph.studies.credit import ACTIVATION, EDGE_KINDS, PREREQUISITE, CreditStudy, Settings, read_sheets
    from jurygraph.studies.plots import draw_credit

    refuse_picture(plot)
    counted = {EdgeKinds.all: EDGE_KINDS, EdgeKinds.prerequisite: PREREQUISITE, EdgeKinds.activation: ACTIVATION}
    with closing(Run.open(run)) as opened, progress("reading", opened.tasks_scored, "tasks") as report:
        sheets = read_sheets(opened, report)
    measuring = CreditStudy(sheets, Settings(kinds=counted[kinds], seeds=seeds, resamples=resamples, seed=seed))
    with progress("measuring", measuring.size, "passes over a task") as report:
        results = measuring.run(report)
    if json:
        print_json(results.model_dump(mode="json"))
    else:
        print_result_lines(_report_lines(results))
    _print_omissions(results)
    if plot is not None:
        write_output_with(str(plot), lambda draft: draw_credit(results, draft, plot.suffix))


def _print_omissions(report: "CreditReport") -> None:
    for reason, count in report.census.left_out.items():
        print_message(f"omitted, {reason}: {count}")
    if report.census.unjudged:
        edges = f"{report.census.unjudged} of {report.census.edges} edges"
        print_message(f"no cases: {edges} with an end that was not judged or does not apply")
    if report.kappa == 0:
        print_message("the run has κ = 0, which makes GEAR flat aggregation")
    empty = max(one.empty_resamples for each in report.methods.values() for one in (each.leakage, each.preservation))
    if empty:
        print_message(f"{empty} of {report.resamples} resamples had no case and were omitted from an interval")


def _report_lines(report: "CreditReport") -> Iterator[str]:
    census = report.census
    totals = f"{census.examples} responses to {census.rubrics} rubrics, {census.graphs} of them with edges"
    yield f"{totals}; κ = {report.kappa:g}"
    draws = f"95 % intervals: {report.resamples} resamples, seed {report.seed}"
    yield f"cases: edges with a child that is met: {', '.join(report.kinds)}; {draws}"
    yield ""
    yield from _method_table(report)
    yield ""
    yield from _kind_tables(report)
    yield ""
    yield from _ablation_table(report)
    yield ""
    yield from _exactness_table(report)
    yield ""
    yield from _loss_lines(report)


def _method_table(report: "CreditReport") -> list[str]:
    rows = [
        [name, _format_interval(one.leakage), _format_interval(one.preservation), one.reward, one.change]
        for name, one in report.methods.items()
    ]
    return format_table(["rule", "leakage (95 %)", "preservation (95 %)", "mean reward", "change from flat"], rows)


def _format_interval(estimate: "Estimate") -> str:
    if estimate.low is None or estimate.high is None:
        return format_number(estimate.value)
    return f"{format_number(estimate.value)} ({format_number(estimate.low)}-{format_number(estimate.high)})"


def _kind_tables(report: "CreditReport") -> Iterator[str]:
    """Return leakage, then preservation, by kind of edge and over all kinds, with a column for each rule."""
    for name, cases in (("leakage", "violated"), ("preservation", "satisfied")):
        columns = [{**one.kinds, "all kinds": one} for one in report.methods.values()]
        rows = [
            [kind, getattr(columns[0][kind], name).cases, *(getattr(column[kind], name).value for column in columns)]
            for kind in columns[0]
        ]
        yield from format_table([f"{name} by kind of edge", cases, *report.methods], rows)
        if name == "leakage":
            yield ""


def _ablation_table(report: "CreditReport") -> Iterator[str]:
    ablations = report.ablations
    rows: list[list[object]] = []
    if ablations.random is not None:
        rows.append(_variant_row(f"random graphs, {len(ablations.random.by_seed)} seeds", ablations.random.mean))
    rows.append(_variant_row(f"untyped, λ = {ablations.untyped.retention:.4g}", ablations.untyped))
    rows += [_variant_row(f"κ = {kappa}", one) for kappa, one in ablations.kappas.items()]
    yield from format_table(["variant of gear", "leakage", "preservation", "mean reward", "change from flat"], rows)
    if ablations.random is not None:
        each, random = ablations.random.by_seed.values(), ablations.random
        low, high = min(one.reward for one in each), max(one.reward for one in each)
        yield (
            f"random graphs: mean rewards {format_number(low)} to {format_number(high)}; "
            f"{random.unchanged} of {random.graphs} equal the annotated graph"
        )


def _variant_row(name: str, one: "Variant") -> list[object]:
    return [name, one.leakage, one.preservation, one.reward, one.change]


def _exactness_table(report: "CreditReport") -> list[str]:
    exact = report.exact
    rows: list[list[object]] = [
        ["graph-response pairs", exact.pairs],
        ["omitted: more than 20 criteria", exact.too_large],
        ["omitted: not fully judged", exact.unjudged],
        ["mean criteria per pair", exact.criteria],
        ["marginal MAE", _format_small(exact.marginal_mae)],
        ["reward MAE", _format_small(exact.reward_mae)],
        ["1 - reward correlation", _format_small(_short_of_one(exact.reward_correlation))],
    ]
    return format_table(["exact against approximate inference", ""], rows)


def _short_of_one(correlation: float | None) -> float | None:
    return None if correlation is None else max(0.0, 1.0 - correlation)


def _format_small(value: float | None) -> str:
    """Format with two significant digits: with four decimals most of these would be 0."""
    return "-" if value is None else f"{value:.2g}"


def _loss_lines(report: "CreditReport") -> Iterator[str]:
    """Return the criteria that lost most: the loss, and the edge that caused it, in two lines each."""
    if not report.losses:
        yield "no criterion lost credit"
        return
    yield "largest losses, as a share of the rubric's total weight"
    for loss in report.losses[:_MAX_LOSSES]:
        most = f"maximum {format_number(loss.most)} (response {loss.max_loss_response})"
        amount = f"mean {format_number(loss.mean_loss)}, {most}"
        needs = f"needs {loss.parent} ({loss.kind}, λ = {loss.retention:.4g})"
        yield escape_line(f"task {loss.task}, {loss.criterion}: {amount}")
        yield f"    {escape_line(f'{needs}: {loss.reason}' if loss.reason else needs, _MAX_REASON)}"
    if len(report.losses) > _MAX_LOSSES:
        yield f"... and {len(report.losses) - _MAX_LOSSES} more (--json)"
