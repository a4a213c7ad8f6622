"""`jurygraph study`: the measurements of the papers, applied to your own runs and to simulations."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jurygraph.cli.commands.study_preference import preference
from jurygraph.cli.commands.study_reliability import reliability
from jurygraph.cli.commands.study_simulate import simulate
from jurygraph.cli.options import AsJson, PlotFile, RunFolder, StepLabel, option
from jurygraph.cli.output_files import refuse_picture, write_output_with
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.text import (
    escape_line,
    format_interval,
    format_number,
    format_table,
    omission_line,
    print_message,
    print_report,
    table_section,
)
from jurygraph.errors import InputError
from jurygraph.inference.series import MIN_STEPS
from jurygraph.runs.run import Run
from jurygraph.studies.disagreement import DisagreementReport, StepRule, read_samples
from jurygraph.studies.disagreement import report as measure
from jurygraph.studies.plots import draw_credit, draw_disagreement

if TYPE_CHECKING:
    from jurygraph.studies.credit.study import CreditReport, Estimate, Variant

study = typer.Typer(
    help="Apply the measurements of the papers, to runs or simulations.", no_args_is_help=True, rich_markup_mode=None
)
study.command()(preference)
study.command()(reliability)
study.command()(simulate)

_MAX_STEPS, _MAX_LOSSES, _MAX_REASON = 30, 10, 120
_MANY_TASKS = 20
"""Number of tasks from which intervals over tasks hold for skewed figures too."""
_MAX_CORRECTED, _MIN_CORRECTED = 0.5, 50
"""Autocorrelations above the first are not fully corrected in trends of fewer steps than the second."""
_SERIES_TITLES = {"reward": "mean reward", "disagreement": "mean D_pair", "conflict_rate": "conflict rate"}


@study.command()
def disagreement(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs.", show_default=False)],
    components: Annotated[
        str | None, option("A,B", "Components to compare.", show_default="accuracy,format,steps, or all that count")
    ] = None,
    step_label: StepLabel = None,
    every: Annotated[int | None, option("N", "Group into steps of N tasks.", min=1)] = None,
    percentile: Annotated[
        float, typer.Option(metavar="P", help="Percentile of D_pair above which a response is a conflict.")
    ] = 80.0,
    plot: PlotFile = None,
    json: AsJson = False,
) -> None:
    """Measure where a reward's components disagree (MACRM, 4.5).

    D_pair is the mean absolute difference between the components of a response. A response above the 80th percentile
    of its own run is a conflict; the 20 % of responses with the largest D_pair are compared with the rest. With steps,
    mean reward, mean D_pair and conflict rate are reported by step. No request is sent, and nothing is written except
    the plot. `--json` prints every statistic.

    Exit codes: 0 done; 2 invalid input, such as a run with fewer than two components.

    \b
    Example:
        jurygraph study disagreement run
        jurygraph study disagreement macrm multi-head --step-label step --plot disagreement.svg
    """
    cut = StepRule(step_label, every)
    if plot is not None and not cut.has_steps:
        raise InputError("--plot: the plot needs steps; add --step-label or --every")
    refuse_picture(plot)
    names = tuple(name.strip() for name in components.split(",")) if components is not None else ()
    reports = []
    for folder in runs:
        with closing(Run.open(folder)) as run, progress("reading", run.tasks_scored, "tasks") as advance:
            samples = read_samples(run, cut, names, advance)
        reports.append(measure(samples, percentile))
    content = {"runs": [one.model_dump(mode="json") for one in reports]}
    print_report(json, content, _disagreement_lines(reports))
    _print_disagreement_omissions(reports)
    if plot is not None:
        write_output_with(str(plot), lambda draft: draw_disagreement(reports, draft, plot.suffix))


def _print_disagreement_omissions(reports: Sequence[DisagreementReport]) -> None:
    for one in reports:
        for reason, count in one.left_out.items():
            print_message(f"{one.run}: omitted, {reason}: {count}")
        split = one.split
        if split.tied_low:
            ties = f"{split.tied_high} High-div and {split.tied_low} Low-div responses tie at D_pair {split.cut:.4g}"
            print_message(f"{one.run}: {ties}; ties are split by id")
        _print_trend_limits(one)
    if len({one.components for one in reports}) > 1:
        print_message("the runs have different components; choose common ones with --components")


def _print_trend_limits(report: DisagreementReport) -> None:
    """Say where the p-value of a trend cannot be corrected for autocorrelation; docs/disagreement.md has figures."""
    steps = len(report.steps)
    if report.trends and steps < MIN_STEPS:
        print_message(f"{report.run}: p assumes independent steps; {MIN_STEPS} steps are needed to see if they are")
    for trend in report.trends:
        if steps < _MIN_CORRECTED and (trend.autocorrelation or 0.0) > _MAX_CORRECTED:
            title, rho = _SERIES_TITLES[trend.name], trend.autocorrelation
            limit = f"p is too small for {steps} steps with an autocorrelation of {rho:.2f}"
            print_message(f"{report.run}: {title}: {limit}; a tenth or more of such series have p < .05 by chance")


def _disagreement_lines(reports: Sequence[DisagreementReport]) -> Iterator[str]:
    rows = [
        [one.run, one.samples, one.disagreement, one.threshold, one.conflicts, one.conflict_rate] for one in reports
    ]
    threshold = f"τ ({reports[0].percentile:g}th pct)"
    yield from format_table(["run", "responses", "mean D_pair", threshold, "conflicts", "conflict rate"], rows)
    for report in reports:
        yield ""
        of = f"of {report.samples} responses to {report.tasks} tasks"
        yield escape_line(f"{report.run}: {', '.join(report.components)}, {of}")
        yield from _run_tables(report)


def _run_tables(report: DisagreementReport) -> Iterator[str]:
    split = report.split
    rows: list[list[object]] = [
        [row.name, row.high, row.low, format_interval(row.difference, row.difference_low, row.difference_high)]
        for row in split.rows
    ]
    header = ["mean", f"High-div ({split.high})", f"Low-div ({split.low})", "difference (95 %)"]
    yield from table_section(header, rows)
    has_note = any(pair.why for pair in report.correlations)
    rows = [
        [
            f"{pair.first}, {pair.second}",
            format_interval(pair.pearson, pair.pearson_low, pair.pearson_high),
            format_interval(pair.spearman, pair.spearman_low, pair.spearman_high),
            *([pair.why] if has_note else []),
        ]
        for pair in report.correlations
    ]
    yield from table_section(
        ["correlation", "Pearson (95 %)", "Spearman (95 %)", *(["note"] if has_note else [])], rows
    )
    rows = [
        [f"{step.step:g}", step.samples, step.reward, step.disagreement, step.conflict_rate] for step in report.steps
    ]
    yield from table_section(["step", "responses", *_SERIES_TITLES.values()], rows, most=_MAX_STEPS)
    rows = [
        [
            _SERIES_TITLES[one.name],
            one.first,
            one.last,
            f"{one.slope:.2g}",
            one.kendall,
            one.autocorrelation,
            one.p,
            one.fluctuation,
        ]
        for one in report.trends
    ]
    header = ["over steps", "first", "last", "slope", "Kendall τ-b", "lag-1 ρ", "p", "mean |change|"]
    yield from table_section(header, rows)


@study.command()
def credit(
    run: RunFolder,
    kinds: Annotated[
        Literal["all", "prerequisite", "activation"], typer.Option(help="Kinds of edges to count.")
    ] = "all",
    seeds: Annotated[int, typer.Option(min=0, metavar="N", help="Random graphs per rubric.")] = 20,
    seed: Annotated[int, typer.Option(min=0, metavar="S", help="Seed of the random graphs.")] = 0,
    plot: PlotFile = None,
    json: AsJson = False,
) -> None:
    """Measure false credit over the edges of rubrics (GEAR).

    A criterion that is met while its parent is not is a leakage case; the credit that a rule leaves it, as a share of
    the rubric's total weight, is leakage. If both are met, the remaining share of the child's own score is
    preservation. Flat aggregation, both hard gates and GEAR are compared on the run's verdicts, with 95 % intervals
    over tasks, and so are GEAR's differences from the other rules; then random and untyped graphs, values of κ, and
    exact inference. The criteria with the largest losses come last. No request is sent, and nothing is written except
    the plot. `--json` prints every statistic and every criterion.

    Exit codes: 0 done; 2 invalid input, such as a run without a rubric that has edges.

    \b
    Example:
        jurygraph study credit run
        jurygraph study credit run --kinds activation --plot credit.svg
    """
    from jurygraph.studies.credit import ACTIVATION, EDGE_KINDS, PREREQUISITE, CreditStudy, Settings, read_sheets

    refuse_picture(plot)
    counted = {"all": EDGE_KINDS, "prerequisite": PREREQUISITE, "activation": ACTIVATION}
    with closing(Run.open(run)) as opened, progress("reading", opened.tasks_scored, "tasks") as advance:
        sheets = read_sheets(opened, advance)
    measuring = CreditStudy(sheets, Settings(kinds=counted[kinds], seeds=seeds, seed=seed))
    with progress("measuring", measuring.size, "passes over a task") as advance:
        report = measuring.run(advance)
    print_report(json, report, _credit_lines(report))
    _print_credit_omissions(report)
    if plot is not None:
        write_output_with(str(plot), lambda draft: draw_credit(report, draft, plot.suffix))


def _print_credit_omissions(report: "CreditReport") -> None:
    census = report.census
    for reason, count in census.left_out.items():
        print_message(f"omitted, {reason}: {count}")
    if census.unjudged:
        edges = f"{census.unjudged} of {census.edges} edges"
        print_message(f"no cases: {edges} with an end that was not judged or does not apply")
    if report.kappa == 0:
        print_message("the run has κ = 0, which makes GEAR flat aggregation")
    gear = report.methods["gear"]
    tasks = {"leakage": gear.leakage.tasks, "preservation": gear.preservation.tasks}
    if few := [f"{name} {count}" for name, count in tasks.items() if count < _MANY_TASKS]:
        limit = f"fewer than {_MANY_TASKS}, intervals are approximate, and with one there is none"
        print_message(f"tasks with a case: {', '.join(few)}; with {limit}")


def _credit_lines(report: "CreditReport") -> Iterator[str]:
    census, methods = report.census, report.methods
    totals = f"{census.examples} responses to {census.rubrics} rubrics, {census.graphs} of them with edges"
    totals += f", {census.exact} inferred exactly"
    yield f"{totals}; κ = {report.kappa:g}"
    yield f"cases: edges with a child that is met: {', '.join(report.kinds)}; 95 % intervals over tasks"
    rows: list[list[object]] = [
        [name, _format_estimate(one.leakage), _format_estimate(one.preservation), one.reward, one.change]
        for name, one in methods.items()
    ]
    yield from table_section(["rule", "leakage (95 %)", "preservation (95 %)", "mean reward", "change from flat"], rows)
    yield from _difference_table(report)
    columns = [{**one.kinds, "all kinds": one} for one in methods.values()]
    for name, cases in (("leakage", "violated"), ("preservation", "satisfied")):
        rows = []
        for kind in columns[0]:
            estimates: list[Estimate] = [getattr(column[kind], name) for column in columns]
            rows.append([kind, estimates[0].cases, estimates[0].tasks, *(one.value for one in estimates)])
        yield from table_section([f"{name} by kind of edge", cases, "tasks", *methods], rows)
    yield from _ablation_table(report)
    yield from _exactness_table(report)
    yield ""
    yield from _loss_lines(report)


def _difference_table(report: "CreditReport") -> Iterator[str]:
    figures = ("leakage", "preservation", "reward")
    rows: list[list[object]] = [
        [name, *(_format_estimate(getattr(one, figure)) for figure in figures)]
        for name, one in report.differences.items()
    ]
    return table_section(["gear less", "leakage (95 %)", "preservation (95 %)", "mean reward (95 %)"], rows)


def _format_estimate(estimate: "Estimate") -> str:
    return format_interval(estimate.value, estimate.low, estimate.high)


def _ablation_table(report: "CreditReport") -> Iterator[str]:
    random, untyped = report.ablations.random, report.ablations.untyped
    variants: list[tuple[str, Variant]] = [
        (f"untyped, λ = {untyped.retention:.4g}", untyped),
        *((f"κ = {kappa}", one) for kappa, one in report.ablations.kappas.items()),
    ]
    if random is not None:
        variants.insert(0, (f"random graphs, {len(random.by_seed)} seeds", random.mean))
    rows = [[name, one.leakage, one.preservation, one.reward, one.change] for name, one in variants]
    yield from table_section(["variant of gear", "leakage", "preservation", "mean reward", "change from flat"], rows)
    if random is not None:
        rewards = [one.reward for one in random.by_seed.values()]
        span = f"{format_number(min(rewards))} to {format_number(max(rewards))}"
        equal = f"{random.unchanged} of {random.graphs} equal the annotated graph"
        yield f"random graphs: mean rewards {span}; {equal}"


def _exactness_table(report: "CreditReport") -> Iterator[str]:
    exact, correlation = report.exact, report.exact.reward_correlation
    rows: list[list[object]] = [
        ["graph-response pairs", exact.pairs],
        ["omitted: over 20 with a parent", exact.too_large],
        ["omitted: not fully judged", exact.unjudged],
        ["mean criteria per pair", exact.criteria],
        ["marginal MAE", _format_small(exact.marginal_mae)],
        ["reward MAE", _format_small(exact.reward_mae)],
        ["1 - reward correlation", _format_small(None if correlation is None else max(0.0, 1.0 - correlation))],
    ]
    return table_section(["exact against approximate inference", ""], rows)


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
    yield from omission_line(len(report.losses), _MAX_LOSSES)
