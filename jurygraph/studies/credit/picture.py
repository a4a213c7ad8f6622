"""The study drawn: leakage and preservation under each rule, and what κ does to them and to the reward."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jurygraph.studies.credit.report import CreditReport, Estimate
from jurygraph.studies.plots import plotted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(report: CreditReport, file: Path, form: str) -> None:
    """Write the picture of a study in the form of a suffix; the same report gives the same file. Raises OSError."""
    with plotted(file, form, (9.0, 6.5)) as figure:
        (over_kappa, credit), (leaked, kept) = figure.subplots(2, 2)
        _sweep(over_kappa, report, [("leakage", "o", "-")], "leakage")
        _sweep(credit, report, [("preservation", "s", "-"), ("reward", "^", "--")], "preservation, mean reward")
        methods = report.methods
        _bars(leaked, "leakage (95 %)", list(methods), [one.leakage for one in methods.values()])
        _bars(kept, "preservation (95 %)", list(methods), [one.preservation for one in methods.values()])


def _sweep(axes: "Axes", report: CreditReport, figures: Sequence[tuple[str, str, str]], title: str) -> None:
    """One line for each figure of GEAR against κ; marks and strokes tell them apart without colour."""
    for name, mark, stroke in figures:
        points = [(float(kappa), getattr(one, name)) for kappa, one in report.ablations.kappas.items()]
        drawn = [(kappa, value) for kappa, value in points if value is not None]
        label = "mean reward" if name == "reward" else name
        if drawn:
            axes.plot([k for k, _ in drawn], [v for _, v in drawn], marker=mark, linestyle=stroke, label=label)
    axes.axvline(report.kappa, color="0.7", linestyle=":", label=f"the run's κ, {report.kappa:g}")
    axes.set(xlabel="κ", title=title)
    axes.legend()


def _bars(axes: "Axes", title: str, names: Sequence[str], estimates: Sequence[Estimate]) -> None:
    """One bar for each rule, with its interval; none where there was no case."""
    for place, one in enumerate(estimates):
        if one.value is None:
            axes.annotate("no case", (place, 0.0), xytext=(0, 4), textcoords="offset points", ha="center")
            continue
        axes.bar(place, one.value, color="0.8", edgecolor="0.2", yerr=_reach(one), capsize=4)
    axes.set_xticks(range(len(names)), names)
    axes.set(title=title, ylim=(0.0, None))


def _reach(one: Estimate) -> Any:
    """How far the interval reaches to either side of the bar's end."""
    if one.value is None or one.low is None or one.high is None:
        return None
    return [[max(0.0, one.value - one.low)], [max(0.0, one.high - one.value)]]
