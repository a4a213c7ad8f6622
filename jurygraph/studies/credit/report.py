"""The tables, notes and plots of a credit study, from its figures."""

from collections.abc import Iterator, Mapping
from typing import Any

from jurygraph.display import format_number
from jurygraph.messages import shorten
from jurygraph.studies.credit.cases import EDGE_KINDS
from jurygraph.studies.report import IntervalCell, Plot, PlotSeries, Report, ReportTable, omission_notes

_MAX_LOSSES = 10
_MAX_REASON = 120
_MANY_TASKS = 20
"""Number of tasks from which intervals over tasks hold for skewed figures too."""
_BOTH = ("leakage", "preservation")
_VARIANT = (*_BOTH, "reward", "change")
Figures = dict[str, Any]


def report_credit(figures: Figures) -> Report:
    """Return the report with these figures, which `CreditStudy.run` describes."""
    sections = [*_rule_sections(figures), *_ablation_sections(figures["ablations"]), _exactness_table(figures["exact"])]
    if not figures["losses"]:
        sections.append("no criterion lost credit")
    rows = []
    for loss in figures["losses"]:
        edge = (loss["parent"], loss["kind"], shorten(loss["reason"], _MAX_REASON))
        amounts = (loss["mean_loss"], loss["most"], loss["max_loss_response"])
        rows.append((loss["task"], loss["criterion"], *edge, *amounts))
    texts = ("largest losses: task", "criterion", "needs", "kind", "reason")
    header = (*texts, "mean loss", "maximum", "of response")
    sections.append(ReportTable(header, rows, left=len(texts), most=_MAX_LOSSES))
    return Report(figures, sections, list(_notes(figures)), list(_plots(figures)))


def _rule_sections(figures: Figures) -> Iterator[str | ReportTable]:
    census = figures["census"]
    totals = f"{census['examples']} responses to {census['rubrics']} rubrics, {census['graphs']} of them with edges"
    yield f"{totals}, {census['exact']} inferred exactly; κ = {figures['kappa']:g}"
    yield f"cases: edges with a child that is met: {', '.join(EDGE_KINDS)}; 95 % intervals over tasks"
    methods = figures["methods"]
    titles = ("leakage (95 %)", "preservation (95 %)")
    rows = [[name, *_cells(one), one["reward"], one["change"]] for name, one in methods.items()]
    yield ReportTable(("rule", *titles, "mean reward", "change from flat"), rows)
    rows = [[name, *_cells(one), _cell(one["reward"])] for name, one in figures["differences"].items()]
    yield ReportTable(("gear less", *titles, "mean reward (95 %)"), rows)
    for figure, cases in (("leakage", "violated"), ("preservation", "satisfied")):
        by_rule = [{**one["kinds"], "all kinds": one} for one in methods.values()]
        rows = []
        for kind in by_rule[0]:
            estimates = [one[kind][figure] for one in by_rule]
            counts = (estimates[0]["cases"], estimates[0]["tasks"])
            rows.append([kind, *counts, *(one["value"] for one in estimates)])
        yield ReportTable((f"{figure} by kind of edge", cases, "tasks", *methods), rows)


def _cell(estimate: Mapping[str, Any]) -> IntervalCell:
    return IntervalCell(estimate["value"], estimate["low"], estimate["high"])


def _cells(diagnosis: Mapping[str, Any]) -> list[IntervalCell]:
    return [_cell(diagnosis[name]) for name in _BOTH]


def _ablation_sections(ablations: Figures) -> Iterator[str | ReportTable]:
    random = ablations["random"]
    untyped = ablations["untyped"]
    variants = {f"random graphs, {len(random['by_seed'])} seeds": random["mean"]}
    variants[f"untyped, λ = {untyped['retention']:.4g}"] = untyped
    variants |= {f"κ = {kappa}": one for kappa, one in ablations["kappas"].items()}
    rows = [[name, *(one[figure] for figure in _VARIANT)] for name, one in variants.items()]
    yield ReportTable(("variant of gear", *_BOTH, "mean reward", "change from flat"), rows)
    rewards = [one["reward"] for one in random["by_seed"].values()]
    span = f"{format_number(min(rewards))} to {format_number(max(rewards))}"
    unchanged = f"{random['unchanged']} of {random['graphs']} equal the annotated graph"
    yield f"random graphs: mean rewards {span}; {unchanged}"


def _exactness_table(exact: Figures) -> ReportTable:
    correlation = exact["reward_correlation"]
    rows = [
        ("graph-response pairs", exact["pairs"]),
        ("omitted: over 20 with a parent", exact["too_large"]),
        ("omitted: not fully judged", exact["unjudged"]),
        ("mean criteria per pair", exact["criteria"]),
        ("marginal MAE", _format_small(exact["marginal_mae"])),
        ("reward MAE", _format_small(exact["reward_mae"])),
        ("1 - reward correlation", _format_small(None if correlation is None else max(0.0, 1.0 - correlation))),
    ]
    return ReportTable(("exact against approximate inference", ""), rows)


def _format_small(value: float | None) -> str:
    """Format with two significant digits: with four decimals most of these would be 0."""
    return "-" if value is None else f"{value:.2g}"


def _notes(figures: Figures) -> Iterator[str]:
    census = figures["census"]
    yield from omission_notes(census["left_out"])
    if census["unjudged"]:
        edges = f"{census['unjudged']} of {census['edges']} edges"
        yield f"no cases: {edges} with an end that was not judged or does not apply"
    if figures["kappa"] == 0:
        yield "the run has κ = 0, which makes GEAR flat aggregation"
    tasks = {name: figures["methods"]["gear"][name]["tasks"] for name in _BOTH}
    few = [f"{name} {count}" for name, count in tasks.items() if count < _MANY_TASKS]
    if few:
        limit = f"fewer than {_MANY_TASKS}, intervals are approximate, and with one there is none"
        yield f"tasks with a case: {', '.join(few)}; with {limit}"


def _plots(figures: Figures) -> Iterator[Plot]:
    variants = figures["ablations"]["kappas"].values()
    kappas = [float(kappa) for kappa in figures["ablations"]["kappas"]]
    marks = [(figures["kappa"], "the run's κ")]
    for names in (("leakage",), ("preservation", "reward")):
        series = [PlotSeries(name, [one[name] for one in variants], kappas) for name in names]
        yield Plot(f"{' and '.join(names)} by κ", "line", series, x_label="κ", marks=marks)
    for name in _BOTH:
        estimates = {rule: _cell(one[name]) for rule, one in figures["methods"].items()}
        yield Plot(f"{name} (95 %)", "bars", [PlotSeries.with_intervals(name, estimates)])
