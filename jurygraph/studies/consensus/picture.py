"""Plot of a consensus: agents with intervals, map of annotators, ambiguity of items, and stability."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jurygraph.aggregation.consensus import HIGH
from jurygraph.studies.consensus.models import ConsensusReport, MethodStability
from jurygraph.studies.plots import open_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_AGENTS, _MAX_NAMES, _MAX_VECTOR_MARKS = 25, 12, 2000
_SHORT_NAMES = {"majority": "majority", "dawid-skene": "Dawid–Skene", "stableval": "posterior"}
_INTERVAL_SOURCES = {"items": "items resampled", "prompts": "prompts resampled", "refits": "refitted"}


def draw(report: ConsensusReport, file: Path, form: str) -> None:
    """Write the four panels in the format of the suffix `form`; the same report gives the same file. Raises OSError."""
    with open_figure(file, form, (11.0, 8.0)) as figure:
        grid = figure.add_gridspec(2, 2)
        _draw_agents(figure.add_subplot(grid[0, 0]), report)
        _draw_annotators(figure, figure.add_subplot(grid[0, 1]), report)
        _draw_ambiguity(figure.add_subplot(grid[1, 0]), report)
        halves = grid[1, 1].subgridspec(1, 2)
        _draw_stability(figure.add_subplot(halves[0]), figure.add_subplot(halves[1]), report)


def _draw_agents(axes: "Axes", report: ConsensusReport) -> None:
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


def _draw_annotators(figure: "Figure", axes: "Axes", report: ConsensusReport) -> None:
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


def _draw_ambiguity(axes: "Axes", report: ConsensusReport) -> None:
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


def _draw_stability(first: "Axes", second: "Axes", report: ConsensusReport) -> None:
    """Draw both stability figures side by side: they need not rank the methods in the same order."""
    first.set(title="(d) mean τ_b (high: steady)")
    second.set(title="mean rank sd (low: steady)")
    if report.stability is None:
        for axes in (first, second):
            _draw_text(axes, "not measured")
        return
    methods = list(report.stability)
    _draw_bars(first, [_SHORT_NAMES[one] for one in methods], [report.stability[one].tau_b for one in methods])
    _draw_bars(second, [_SHORT_NAMES[one] for one in methods], [report.stability[one].rank_sd for one in methods])
    first.set_ylim(min(0.0, first.get_ylim()[0]), 1.1)
    second.set_ylim(0.0, max(0.1, second.get_ylim()[1]))
    first.set_xlabel(_subsets_label(next(iter(report.stability.values()))))


def _subsets_label(one: MethodStability) -> str:
    return f"{one.subsets} subsets of annotators"


def _draw_bars(axes: "Axes", names: Sequence[str], values: Sequence[float | None]) -> None:
    for index, value in enumerate(values):
        axes.bar(index, value or 0.0, color="0.8", edgecolor="0.2")
        text = "no telling" if value is None else f"{value:.3f}"
        axes.annotate(text, (index, value or 0.0), xytext=(0, 3), textcoords="offset points", ha="center")
    axes.set_xticks(range(len(names)), names, fontsize=7)
    axes.margins(y=0.15)


def _draw_text(axes: "Axes", text: str) -> None:
    """Draw a text instead of a panel that has no data."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color="0.4")
    axes.set_xticks([])
    axes.set_yticks([])
