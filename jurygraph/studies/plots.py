"""Plots of studies. Each is written in the format of the suffix `form`; the same input gives the same file."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jurygraph.aggregation.consensus import HIGH
from jurygraph.aggregation.consensus.resampling import Method
from jurygraph.arrays import Floats
from jurygraph.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from jurygraph.studies.consensus import ConsensusReport
    from jurygraph.studies.credit.study import CreditReport, Estimate
    from jurygraph.studies.disagreement import DisagreementReport
    from jurygraph.studies.monitor import WatchReport
    from jurygraph.studies.preference import PreferenceReport
    from jurygraph.studies.simulate import SimulationReport

METADATA_BY_SUFFIX = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}
"""Metadata of the file by suffix: without dates, so that the same plot gives the same file."""
_MAX_AGENTS, _MAX_NAMES, _MAX_VECTOR_MARKS = 25, 12, 2000
_SHORT_NAMES: Mapping[Method, str] = {"majority": "majority", "dawid-skene": "Dawid–Skene", "stableval": "posterior"}
_INTERVAL_SOURCES = {
    "items": "t over items",
    "prompts": "t over prompts",
    "refits": "t, with refits",
    "resampled-items": "items resampled",
    "resampled-prompts": "prompts resampled",
    "published-refits": "the paper's refits",
}
_BAR = 0.4
_STEP_PANELS = (
    ("reward", "(a) mean reward"),
    ("disagreement", "(b) mean D_pair"),
    ("conflict_rate", "(c) conflict rate, each run by its own τ"),
)
_LINE_STYLES = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"))
_STREAM_COLUMNS = 2


def require_drawable(file: Path) -> None:
    """Raise `InputError` if the suffix is not a supported format, or if matplotlib is not installed."""
    if file.suffix not in METADATA_BY_SUFFIX:
        raise InputError(f"{file}: pictures end in {', '.join(METADATA_BY_SUFFIX)}; name one of these")
    try:
        import matplotlib  # noqa: F401 - only checks that it is installed
    except ImportError:
        raise InputError(f"{file}: drawing needs matplotlib; pip install 'jurygraph[plot]'") from None


@contextmanager
def open_figure(file: Path, form: str, size: tuple[float, float], font: float = 9.0) -> Iterator["Figure"]:
    """Yield a figure to draw on, and write it afterwards in the format of the suffix `form`; `size` is in inches.

    The same drawing gives the same file. Dollar signs in names are not parsed as mathematics. Raises OSError.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "jurygraph", "font.size": font, "text.parse_math": False}):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        figure.savefig(file, format=form[1:], dpi=150, metadata=METADATA_BY_SUFFIX[form])


def draw_consensus(report: "ConsensusReport", file: Path, form: str) -> None:
    """Write agents with intervals, map of annotators, ambiguity of items, and stability. Raises OSError."""
    with open_figure(file, form, (11.0, 8.0)) as figure:
        grid = figure.add_gridspec(2, 2)
        _draw_agents(figure.add_subplot(grid[0, 0]), report)
        _draw_annotators(figure, figure.add_subplot(grid[0, 1]), report)
        _draw_ambiguity(figure.add_subplot(grid[1, 0]), report)
        halves = grid[1, 1].subgridspec(1, 2)
        _draw_stability(figure.add_subplot(halves[0]), figure.add_subplot(halves[1]), report)


def _draw_agents(axes: "Axes", report: "ConsensusReport") -> None:
    """Draw score and interval of each agent, the best on top."""
    ranked = sorted(report.agents.items(), key=lambda one: (-one[1].score, one[0]))
    selected = ranked[:_MAX_AGENTS][::-1]
    for row, (_, one) in enumerate(selected):
        if one.low is not None and one.high is not None:
            axes.plot([one.low, one.high], [row, row], color="0.5", linewidth=2.0)
        axes.plot(one.score, row, marker="o", color="C0", markeredgecolor="0.2")
    axes.set_yticks(range(len(selected)), [name for name, _ in selected])
    shown = "" if len(ranked) == len(selected) else f", the first {len(selected)} of {len(ranked)}"
    axes.set(
        xlabel=f"mean credit ({report.method}); 95 %, {_INTERVAL_SOURCES[report.intervals]}", title=f"(a) agents{shown}"
    )
    if not selected:
        _draw_text(axes, "no row names an agent")


def _draw_annotators(figure: "Figure", axes: "Axes", report: "ConsensusReport") -> None:
    """Draw leniency against strictness; size shows the number of labels, lightness the accuracy."""
    annotators = list(report.annotators.items())
    max_labels = max(one.labels for _, one in annotators)
    points = axes.scatter(
        [one.strictness for _, one in annotators],
        [one.leniency for _, one in annotators],
        s=[12.0 + 150.0 * one.labels / max(1, max_labels) for _, one in annotators],
        c=[one.accuracy for _, one in annotators],
        cmap="viridis",
        edgecolors="0.2",
        linewidths=0.5,
        alpha=0.85,
        rasterized=len(annotators) > _MAX_VECTOR_MARKS,
    )
    if len(annotators) <= _MAX_NAMES:
        for name, one in annotators:
            axes.annotate(name, (one.strictness, one.leniency), xytext=(5, 5), textcoords="offset points", fontsize=7)
    figure.colorbar(points, ax=axes, label="accuracy")
    axes.set(xlabel="strictness", ylabel="leniency", title=f"(b) annotators, size by labels (at most {max_labels})")
    axes.margins(0.15)


def _draw_ambiguity(axes: "Axes", report: "ConsensusReport") -> None:
    """Draw a histogram of items by ambiguity, on a logarithmic scale, because most items have none."""
    values = [one.ambiguity for one in report.items.values()]
    highest = 1.0 - 1.0 / len(report.classes)
    axes.hist(values, bins=30, range=(0.0, highest), color="0.8", edgecolor="0.2", log=True)
    high_count = sum(value > HIGH for value in values)
    axes.axvline(HIGH, color="0.3", linestyle="--", label=f"above {HIGH:g}: {high_count} of {len(values)}")
    axes.set(xlabel="1 - greatest posterior", ylabel="items (log scale)", title=f"(c) ambiguity ({report.method})")
    axes.set_ylim(bottom=0.7)
    axes.yaxis.set_major_formatter(lambda count, _: f"{count:g}")  # the default formatter writes powers as mathematics
    axes.yaxis.set_minor_formatter(lambda count, _: "")
    axes.legend()


def _draw_stability(first: "Axes", second: "Axes", report: "ConsensusReport") -> None:
    """Draw both stability figures side by side: they need not rank the methods in the same order."""
    first.set(title="(d) mean τ_b (high: steady)")
    second.set(title="mean rank sd (low: steady)")
    if report.stability is None:
        for axes in (first, second):
            _draw_text(axes, "not measured")
        return
    methods = [_SHORT_NAMES[method] for method in report.stability]
    kinds = [("0.85", report.stability), ("0.6", report.stability_with_items or {})]
    for axes, name in ((first, "tau_b"), (second, "rank_sd")):
        for kind, (shade, figures) in enumerate(kinds):
            for index, one in enumerate(figures.values()):
                value, place = getattr(one, name), index + _BAR * (kind - 0.5) * bool(report.stability_with_items)
                axes.bar(place, value or 0.0, _BAR, color=shade, edgecolor="0.2")
                text = "no telling" if value is None else f"{value:.3f}"
                axes.annotate(
                    text, (place, value or 0.0), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=6
                )
        axes.set_xticks(range(len(methods)), methods, fontsize=7)
        axes.margins(y=0.15)
    first.set_ylim(min(0.0, first.get_ylim()[0]), 1.1)
    second.set_ylim(0.0, max(0.1, second.get_ylim()[1]))
    first.set_xlabel(f"{next(iter(report.stability.values())).subsets} subsets of annotators")
    if report.stability_with_items is not None:
        second.set_xlabel("dark: with items drawn too")


def _draw_text(axes: "Axes", text: str) -> None:
    """Draw a text instead of a panel that has no data."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color="0.4")
    axes.set_xticks([])
    axes.set_yticks([])


def draw_credit(report: "CreditReport", file: Path, form: str) -> None:
    """Write leakage and preservation under each rule, and the effect of κ on them and on the reward. Raises OSError."""
    with open_figure(file, form, (9.0, 6.5)) as figure:
        (sweep_axes, reward_axes), (leakage_axes, preservation_axes) = figure.subplots(2, 2)
        _draw_sweep(sweep_axes, report, [("leakage", "o", "-")], "leakage")
        lines = [("preservation", "s", "-"), ("reward", "^", "--")]
        _draw_sweep(reward_axes, report, lines, "preservation, mean reward")
        for axes, name in ((leakage_axes, "leakage"), (preservation_axes, "preservation")):
            estimates = {rule: getattr(one, name) for rule, one in report.methods.items()}
            _draw_estimates(axes, f"{name} (95 %)", estimates)


def _draw_sweep(axes: "Axes", report: "CreditReport", figures: Sequence[tuple[str, str, str]], title: str) -> None:
    """Draw one line for each figure of GEAR against κ; markers and line styles distinguish them without colour."""
    for name, mark, stroke in figures:
        points = [(float(kappa), getattr(one, name)) for kappa, one in report.ablations.kappas.items()]
        if defined := [point for point in points if point[1] is not None]:
            label = "mean reward" if name == "reward" else name
            axes.plot(*zip(*defined, strict=True), marker=mark, linestyle=stroke, label=label)
    axes.axvline(report.kappa, color="0.7", linestyle=":", label=f"the run's κ, {report.kappa:g}")
    axes.set(xlabel="κ", title=title)
    axes.legend()


def _draw_estimates(axes: "Axes", title: str, estimates: "Mapping[str, Estimate]") -> None:
    """Draw one bar with its interval for each rule; no bar without a case."""
    for index, one in enumerate(estimates.values()):
        if one.value is None:
            axes.annotate("no case", (index, 0.0), xytext=(0, 4), textcoords="offset points", ha="center")
            continue
        ends: Any = None
        if one.low is not None and one.high is not None:
            ends = [[max(0.0, one.value - one.low)], [max(0.0, one.high - one.value)]]
        axes.bar(index, one.value, color="0.8", edgecolor="0.2", yerr=ends, capsize=4)
    axes.set_xticks(range(len(estimates)), list(estimates))
    axes.set(title=title, ylim=(0.0, None))


def draw_disagreement(reports: "Sequence[DisagreementReport]", file: Path, form: str) -> None:
    """Write the panels of MACRM's Fig. 3 over the steps, with a line for each run. Raises OSError."""
    with open_figure(file, form, (11.0, 3.6)) as figure:
        for axes, (name, title) in zip(figure.subplots(1, len(_STEP_PANELS)), _STEP_PANELS, strict=True):
            for index, one in enumerate(reports):
                stroke, mark = _LINE_STYLES[index % len(_LINE_STYLES)]
                steps, series = [each.step for each in one.steps], [getattr(each, name) for each in one.steps]
                axes.plot(steps, series, linestyle=stroke, marker=mark, markersize=3.0, label=one.run)
            axes.set(xlabel="step", title=title)
        axes.set_ylim(0.0, max(0.4, *(1.1 * each.conflict_rate for one in reports for each in one.steps)))
        axes.legend()


def draw_stream(report: "WatchReport", history: Mapping[str, Floats], file: Path, form: str) -> None:
    """Write every series of a watched stream over the steps, with its alerts. Raises OSError."""
    rows = -(-len(history) // _STREAM_COLUMNS)
    with open_figure(file, form, (9.0, 1.4 * rows + 0.6), font=8.0) as figure:
        panels = figure.subplots(rows, _STREAM_COLUMNS, sharex=True, squeeze=False).ravel()
        for axes, (name, values) in zip(panels, history.items(), strict=False):
            axes.plot(np.arange(1, len(values) + 1), values, color="0.2", linewidth=0.8)
            axes.set_title(name, loc="left")
            for alert in report.alerts:
                if alert.kind == "hack":
                    axes.axvline(alert.step, color="C3", linestyle=":")
                elif alert.series == name:
                    color, stroke = ("C3", "-") if alert.adverse else ("C0", "--")
                    axes.axvline(alert.step, color=color, linestyle=stroke)
        for axes in panels[len(history) :]:
            axes.set_axis_off()
        figure.supxlabel("step; solid: adverse, dashed: not, dotted: hack")


def draw_simulation(report: "SimulationReport", file: Path, form: str) -> None:
    """Write the MSE of the simulated configurations, and the change of scores over the items. Raises OSError."""
    panels = [draw for draw, rows in ((_draw_recovery, report.recovery), (_draw_shifts, report.propositions)) if rows]
    with open_figure(file, form, (5.5 * len(panels), 4.5)) as figure:
        for axes, draw in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            draw(axes, report)


def _draw_recovery(axes: "Axes", report: "SimulationReport") -> None:
    names = [row.name for row in report.recovery]
    for index, (method, label) in enumerate(_SHORT_NAMES.items()):
        mark, color = _LINE_STYLES[index][1], f"C{index}"
        means = [row.mse[method] for row in report.recovery]
        errors = [1.96 * (one.error or 0.0) for one in means]
        axes.errorbar(names, [one.mean for one in means], errors, fmt=mark, color=color, capsize=3, label=label)
        axes.plot(names, [one.paper or np.nan for one in means], mark, color=color, markerfacecolor="none")
    axes.set(ylabel="MSE, 10⁻³", title="error of agents' scores; filled: ours, hollow: the paper's")
    axes.tick_params(axis="x", rotation=90)
    axes.legend()


def _draw_shifts(axes: "Axes", report: "SimulationReport") -> None:
    items = [row.items for row in report.propositions]
    for index, (method, label) in enumerate(_SHORT_NAMES.items()):
        mark, color = _LINE_STYLES[index][1], f"C{index}"
        shifts, limits = (
            [getattr(row, name)[method].mean for row in report.propositions] for name in ("shift", "limit")
        )
        axes.plot(items, shifts, marker=mark, color=color, label=label)
        axes.plot(items, limits, linestyle=":", color=color)
    axes.set_xscale("log")
    axes.set_xticks(items, [str(count) for count in items])
    axes.set_xticks([], minor=True)
    axes.set_ylim(bottom=0.0)
    axes.set(xlabel="items of an agent", title="largest change by 70 % of the annotators; dotted: limits")
    axes.legend()


def draw_preference(report: "PreferenceReport", file: Path, form: str) -> None:
    """Write the accuracy of each category with its interval, a panel for each benchmark. Raises OSError."""
    count = len(report.benchmarks)
    with open_figure(file, form, (1.0 + 4.5 * count, 3.6)) as figure:
        for axes, one in zip(figure.subplots(1, count, squeeze=False)[0], report.benchmarks, strict=True):
            rows = [row for row in (*one.categories, one.overall) if row.accuracy is not None]
            accuracy = [row.accuracy or 0.0 for row in rows]
            below = [max(0.0, value - (row.low or 0.0)) for value, row in zip(accuracy, rows, strict=True)]
            above = [max(0.0, (row.high or 0.0) - value) for value, row in zip(accuracy, rows, strict=True)]
            axes.bar([row.name for row in rows], accuracy, color="0.8", edgecolor="0.2", yerr=[below, above], capsize=4)
            axes.axhline(0.5, color="0.5", linestyle=":")
            axes.set(title=f"{one.benchmark}: accuracy (95 %)", ylim=(0.0, 1.0))
            axes.tick_params(axis="x", rotation=30)
