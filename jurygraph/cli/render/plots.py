"""The plot of a report by matplotlib: the same plot gives the same file."""

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from textwrap import fill
from typing import IO, TYPE_CHECKING

import numpy as np

from jurygraph.studies.report import Plot, PlotSeries

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METADATA_BY_SUFFIX = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}
"""Metadata of the file by suffix: without dates, so that the same plot gives the same file."""
_LINE_STYLES_AND_MARKERS = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"))
"""Lines and markers, which distinguish series without colour."""
_MAX_LARGE_PANELS = 4
_MAX_LEGEND_LABELS = 12
_TITLE_WIDTH = 60
"""Characters of a line of a title, which is a sentence."""
_BAD_VALUE_COLOR = "#c8452d"
"""The colour of what is bad, as on the pages."""


def can_draw_plots() -> bool:
    """Return whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw_plots(plots: Sequence[Plot], file: Path | IO[bytes], suffix: str) -> None:
    """Write the panels, two in a row, in the format of a suffix. Raises OSError.

    Dollar signs in names are not parsed as mathematics.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = -(-len(plots) // 2)
    columns = min(2, len(plots))
    row_height = 3.4 if len(plots) <= _MAX_LARGE_PANELS else 1.9
    with mpl.rc_context({"svg.hashsalt": "jurygraph", "font.size": 8.0, "text.parse_math": False}):
        figure = Figure(figsize=(5.0 * columns, row_height * rows), layout="constrained")
        panel_axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, plot in zip(panel_axes, plots, strict=False):
            _draw_panel(axes, plot)
        for axes in panel_axes[len(plots) :]:
            axes.set_axis_off()
        figure.savefig(file, format=suffix[1:], dpi=150, metadata=METADATA_BY_SUFFIX[suffix])


def _draw_heat_map(axes: "Axes", plot: Plot) -> None:
    rows = np.array([series.y for series in plot.series], dtype=np.float64)
    lowest = min(0.0, float(np.nan_to_num(rows).min()))
    axes.imshow(rows, cmap="Greys", vmin=lowest, vmax=1.0, aspect="auto")
    _label_axes(axes, plot)
    columns = [str(name) for name in plot.series[0].x]
    axes.set_xticks(range(len(columns)), columns)
    _slant_names(axes)
    axes.set_yticks(range(len(rows)), [series.label for series in plot.series])
    for (row, column), value in np.ndenumerate(rows):
        text = f"{value:.2f}" if np.isfinite(value) else "-"
        is_dark_cell = (value - lowest) / (1.0 - lowest) > 0.5
        color = "white" if is_dark_cell else "black"
        axes.text(column, row, text, ha="center", va="center", color=color)


def _draw_panel(axes: "Axes", plot: Plot) -> None:
    if plot.kind == "heat":
        _draw_heat_map(axes, plot)
        return
    for index, series in enumerate(plot.series):
        y_values = np.array(series.y, dtype=np.float64)  # None, a gap, becomes NaN
        if plot.kind == "histogram":
            axes.hist(y_values, bins=30, color="0.8", edgecolor="0.2", label=series.label)
        elif plot.kind == "bars":
            axes.bar(list(series.x), y_values, color="0.8", edgecolor="0.2", label=series.label)
            _draw_series(axes, series, "none", "", "0.2")
        else:
            line, marker = _LINE_STYLES_AND_MARKERS[index % len(_LINE_STYLES_AND_MARKERS)]
            if plot.kind != "line":
                line = "none"
            _draw_series(axes, series, line, marker, f"C{index % 10}")
    for part in plot.shaded_ranges:
        color = _BAD_VALUE_COLOR if part.is_adverse else "0.5"
        axes.axvspan(part.start, part.end, color=color, alpha=0.18, linewidth=0.0)
        _write_above_axis(axes, part.start, part.label)
    for x, label in plot.marks:
        axes.axvline(x, color="0.5", linestyle=":")
        _write_above_axis(axes, x, label)
    _label_axes(axes, plot)
    x_values = chain.from_iterable(series.x for series in plot.series)
    if any(isinstance(x_value, str) for x_value in x_values):
        axes.margins(x=0.1)
        _slant_names(axes)
    if 1 < len(plot.series) <= _MAX_LEGEND_LABELS:
        axes.legend()


def _slant_names(axes: "Axes") -> None:
    """Slant the names below the x axis, each with its end below its tick."""
    for name in axes.get_xticklabels():
        name.set(rotation=45, ha="right", rotation_mode="anchor")


def _label_axes(axes: "Axes", plot: Plot) -> None:
    axes.set_title(fill(plot.title, _TITLE_WIDTH), loc="left")
    axes.set(xlabel=plot.x_label, ylabel=plot.y_label)


def _write_above_axis(axes: "Axes", x: float, label: str) -> None:
    """Write what a part of the x axis is at its beginning, at the top."""
    axes.annotate(
        label,
        (x, 0.98),
        xytext=(3, 0),
        xycoords=axes.get_xaxis_transform(),
        textcoords="offset points",
        va="top",
        fontsize="small",
        color="0.3",
    )


def _draw_series(axes: "Axes", series: PlotSeries, line: str, marker: str, color: str) -> None:
    y_values = np.array(series.y, dtype=np.float64)  # None, a gap, becomes NaN
    ends = None
    if series.low and series.high:
        low, high = np.array([series.low, series.high], dtype=np.float64)
        ends = np.nan_to_num([y_values - low, high - y_values]).clip(0.0)
    axes.errorbar(
        list(series.x),
        y_values,
        yerr=ends,
        linestyle=line,
        marker=marker,
        markersize=3.0,
        color=color,
        capsize=3.0,
        label=series.label,
    )
