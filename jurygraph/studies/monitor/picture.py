"""Plot of a watched stream: every series over the steps, with its alerts."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jurygraph.agents.data_analyzer import Alert
from jurygraph.aggregation.arrays import Floats
from jurygraph.studies.monitor.watch import WatchReport
from jurygraph.studies.plots import open_figure

_COLUMNS = 2


def draw(report: WatchReport, history: Mapping[str, Floats], file: Path, form: str) -> None:
    """Write the picture in the format of the suffix `form`; the same stream gives the same file. Raises OSError."""
    rows = -(-len(history) // _COLUMNS)
    with open_figure(file, form, (9.0, 1.4 * rows + 0.6), font=8.0) as figure:
        panels = figure.subplots(rows, _COLUMNS, sharex=True, squeeze=False).ravel()
        for axes, (name, values) in zip(panels, history.items(), strict=False):
            axes.plot(np.arange(1, len(values) + 1), values, color="0.2", linewidth=0.8)
            axes.set_title(name, loc="left")
            for alert in report.alerts:
                if alert.series == name or alert.kind == "hack":
                    axes.axvline(alert.step, **_line_style(alert))
        for axes in panels[len(history) :]:
            axes.set_axis_off()
        figure.supxlabel("step; solid: adverse, dashed: not, dotted: hack")


def _line_style(alert: Alert) -> dict[str, str]:
    """Return the line style of an alert; line styles distinguish alerts without colour too."""
    if alert.kind == "hack":
        return {"color": "C3", "linestyle": ":"}
    return {"color": "C3", "linestyle": "-"} if alert.adverse else {"color": "C0", "linestyle": "--"}
