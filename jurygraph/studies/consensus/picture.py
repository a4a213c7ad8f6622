"""A consensus drawn: agents with their intervals, the map of annotators, how ambiguous items are, and stability."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jurygraph.aggregation.consensus import HIGH
from jurygraph.studies.consensus.findings import ConsensusReport, Stable
from jurygraph.studies.plots import plotted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_AGENTS, _MOST_NAMED, _MOST_MARKS = 25, 12, 2000
_SHORT = {"majority": "majority", "dawid-skene": "Dawid–Skene", "stableval": "posterior"}
_OF = {"items": "items resampled", "prompts": "prompts resampled", "refits": "refitted"}


def draw(report: ConsensusReport, file: Path, form: str) -> None:
    """Write the four panels in the form of a suffix; the same report gives the same file. Raises OSError."""
    with plotted(file, form, (11.0, 8.0)) as figure:
        grid = figure.add_gridspec(2, 2)
        _agents(figure.add_subplot(grid[0, 0]), report)
        _annotators(figure, figure.add_subplot(grid[0, 1]), report)
        _ambiguity(figure.add_subplot(grid[1, 0]), report)
        halves = grid[1, 1].subgridspec(1, 2)
        _stability(figure.add_subplot(halves[0]), figure.add_subplot(halves[1]), report)


def _agents(axes: "Axes", report: ConsensusReport) -> None:
    """Score and interval of each agent, the best on top."""
    ranked = sorted(report.agents.items(), key=lambda one: (-one[1].score, one[0]))
    drawn = ranked[:_MOST_AGENTS][::-1]
    for place, (_, one) in enumerate(drawn):
        if one.low is not None and one.high is not None:
            axes.plot([one.low, one.high], [place, place], color="0.5", linewidth=2.0)
        axes.plot(one.score, place, marker="o", color="C0", markeredgecolor="0.2")
    axes.set_yticks(range(len(drawn)), [name for name, _ in drawn])
    shown = "" if len(ranked) == len(drawn) else f", the first {len(drawn)} of {len(ranked)}"
    axes.set(xlabel=f"mean credit ({report.method}); 95 %, {_OF[report.intervals]}", title=f"(a) agents{shown}")
    if not drawn:
        _say(axes, "no row names an agent")


def _annotators(figure: "Figure", axes: "Axes", report: ConsensusReport) -> None:
    """Leniency against strictness; the more labels, the larger, and the more accurate, the lighter."""
    everyone = list(report.annotators.items())
    most = max(one.labels for _, one in everyone)
    marks = axes.scatter(
        [one.strictness for _, one in everyone],
        [one.leniency for _, one in everyone],
        s=[12.0 + 150.0 * one.labels / max(1, most) for _, one in everyone],
        c=[one.accuracy for _, one in everyone],
        cmap="viridis",
        edgecolors="0.2",
        linewidths=0.5,
        alpha=0.85,
        rasterized=len(everyone) > _MOST_MARKS,
    )
    if len(everyone) <= _MOST_NAMED:
        for name, one in everyone:
            axes.annotate(name, (one.strictness, one.leniency), xytext=(5, 5), textcoords="offset points", fontsize=7)
    figure.colorbar(marks, ax=axes, label="accuracy")
    axes.set(xlabel="strictness", ylabel="leniency", title=f"(b) annotators, size by labels (at most {most})")
    axes.margins(0.15)


def _ambiguity(axes: "Axes", report: ConsensusReport) -> None:
    """How many items are how ambiguous, on a logarithmic scale: most are not at all."""
    values = [one.ambiguity for one in report.items.values()]
    highest = 1.0 - 1.0 / len(report.classes)
    axes.hist(values, bins=30, range=(0.0, highest), color="0.8", edgecolor="0.2", log=True)
    high = sum(value > HIGH for value in values)
    axes.axvline(HIGH, color="0.3", linestyle="--", label=f"above {HIGH:g}: {high} of {len(values)}")
    axes.set(xlabel="1 - greatest posterior", ylabel="items (log scale)", title=f"(c) ambiguity ({report.method})")
    axes.set_ylim(bottom=0.7)
    axes.yaxis.set_major_formatter(lambda count, _: f"{count:g}")  # the usual one writes powers as mathematics
    axes.yaxis.set_minor_formatter(lambda count, _: "")
    axes.legend()


def _stability(first: "Axes", second: "Axes", report: ConsensusReport) -> None:
    """Both figures side by side: they need not rank the methods alike."""
    first.set(title="(d) mean τ_b (high: steady)")
    second.set(title="mean rank sd (low: steady)")
    if report.stability is None:
        for axes in (first, second):
            _say(axes, "not measured")
        return
    methods = list(report.stability)
    _bars(first, [_SHORT[one] for one in methods], [report.stability[one].tau_b for one in methods])
    _bars(second, [_SHORT[one] for one in methods], [report.stability[one].rank_sd for one in methods])
    first.set_ylim(min(0.0, first.get_ylim()[0]), 1.1)
    second.set_ylim(0.0, max(0.1, second.get_ylim()[1]))
    first.set_xlabel(_subsets(next(iter(report.stability.values()))))


def _subsets(one: Stable) -> str:
    return f"{one.subsets} subsets of annotators"


def _bars(axes: "Axes", names: Sequence[str], values: Sequence[float | None]) -> None:
    for place, value in enumerate(values):
        axes.bar(place, value or 0.0, color="0.8", edgecolor="0.2")
        told = "no telling" if value is None else f"{value:.3f}"
        axes.annotate(told, (place, value or 0.0), xytext=(0, 3), textcoords="offset points", ha="center")
    axes.set_xticks(range(len(names)), names, fontsize=7)
    axes.margins(y=0.15)


def _say(axes: "Axes", words: str) -> None:
    """Words in place of a panel that has nothing to show."""
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color="0.4")
    axes.set_xticks([])
    axes.set_yticks([])
