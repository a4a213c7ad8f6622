"""Plot of a credit study: leakage and preservation under each rule, and the effect of κ on them and on the reward."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jurygraph.studies.credit.report import CreditReport, Estimate
from jurygraph.studies.plots import open_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(report: CreditReport, file: Path, form: str) -> None:
    """Write the plot in the format of the suffix `form`; the same report gives the same file. Raises OSError."""
    with open_figure(file, form, (9.0, 6.5)) as figure:
        (sweep_axes, reward_axes), (leakage_axes, preservation_axes) = figure.subplots(2, 2)
        _draw_sweep(sweep_axes, report, [("leakage", "o", "-")], "leakage")
        _draw_sweep(
            reward_axes, report, [("preservation", "s", "-"), ("reward", "^", "--")], "preservation, mean reward"
        )
        methods = report.methods
        _draw_bars(leakage_axes, "leakage (95 %)", list(methods), [one.leakage for one in methods.values()])
        _draw_bars(
            preservation_axes, "preservation (95 %)", list(methods), [one.preservation for one in methods.values()]
        )


def _draw_sweep(axes: "Axes", report: CreditReport, figures: Sequence[tuple[str, str, str]], title: str) -> None:
    """Draw one line for each figure of GEAR against κ; markers and line styles distinguish them without colour."""
    for name, mark, stroke in figures:
        points = [(float(kappa), getattr(one, name)) for kappa, one in report.ablations.kappas.items()]
        defined = [(kappa, value) for kappa, value in points if value is not None]
        label = "mean reward" if name == "reward" else name
        if defined:
            axes.plot([k for k, _ in defined], [v for _, v in defined], marker=mark, linestyle=stroke, label=label)
    axes.axvline(report.kappa, color="0.7", linestyle=":", label=f"the run's κ, {report.kappa:g}")
    axes.set(xlabel="κ", title=title)
    axes.legend()


def _draw_bars(axes: "Axes", title: str, names: Sequence[str], estimates: Sequence[Estimate]) -> None:
    """Draw one bar with its interval for each rule; no bar without a case."""
    for index, one in enumerate(estimates):
        if one.value is None:
            axes.annotate("no case", (index, 0.0), xytext=(0, 4), textcoords="offset points", ha="center")
            continue
        axes.bar(index, one.value, color="0.8", edgecolor="0.2", yerr=_error_bar(one), capsize=4)
    axes.set_xticks(range(len(names)), names)
    axes.set(title=title, ylim=(0.0, None))


def _error_bar(one: Estimate) -> Any:
    """Return the distances from the value to both ends of its interval; None without an interval."""
    if one.value is None or one.low is None or one.high is None:
        return None
    return [[max(0.0, one.value - one.low)], [max(0.0, one.high - one.value)]]
