"""Plots of reports by matplotlib. The same plots give the same file."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jurygraph.errors import InputError
from jurygraph.studies.report import Plot, PlotSeries

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METADATA_BY_SUFFIX = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}
"""Metadata of the file by suffix: without dates, so that the same plot gives the same file."""
_STYLES = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"))
"""Lines and markers, which distinguish series without colour."""
_MAX_LARGE = 4
_MAX_LABELS = 12
_MAX_VECTOR_MARKS = 2000


def require_drawable(file: Path) -> None:
    """Raise `InputError` if the suffix is not a supported format, or if matplotlib is not installed."""
    if file.suffix not in METADATA_BY_SUFFIX:
        raise InputError(f"{file}: pictures end in {', '.join(METADATA_BY_SUFFIX)}; name one of these")
    try:
        import matplotlib  # noqa: F401 - only checks that it is installed
    except ImportError:
        raise InputError(f"{file}: drawing needs matplotlib; pip install 'jurygraph[plot]'") from None


def draw_plots(plots: Sequence[Plot], file: Path, suffix: str) -> None:
    """Write the panels, two in a row, in the format of a suffix. Raises OSError."""
    rows = -(-len(plots) // 2)
    columns = min(2, len(plots))
    height = 3.4 if len(plots) <= _MAX_LARGE else 1.6
    with open_figure(file, suffix, (5.0 * columns, height * rows)) as figure:
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, plot in zip(panels, plots, strict=False):
            _draw_panel(axes, plot)
        for axes in panels[len(plots) :]:
            axes.set_axis_off()


@contextmanager
def open_figure(file: Path, suffix: str, size: tuple[float, float]) -> Iterator["Figure"]:
    """Yield a figure to draw on, and write it afterwards in the format of a suffix; `size` is in inches.

    The same drawing gives the same file. Dollar signs in names are not parsed as mathematics. Raises OSError.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "jurygraph", "font.size": 8.0, "text.parse_math": False}):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        figure.savefig(file, format=suffix[1:], dpi=150, metadata=METADATA_BY_SUFFIX[suffix])


def _draw_heat_map(axes: "Axes", plot: Plot) -> None:
    rows = np.array([series.y for series in plot.series], dtype=np.float64)
    lowest = min(0.0, float(np.nan_to_num(rows).min()))
    axes.imshow(rows, cmap="Greys", vmin=lowest, vmax=1.0, aspect="auto")
    axes.set(title=plot.title, xlabel=plot.x_label, ylabel=plot.y_label)
    axes.set_xticks(range(len(plot.series[0].x)), [str(name) for name in plot.series[0].x], rotation=45)
    axes.set_yticks(range(len(rows)), [series.label for series in plot.series])
    for (row, column), value in np.ndenumerate(rows):
        text = f"{value:.2f}" if np.isfinite(value) else "-"
        is_dark = (value - lowest) / (1.0 - lowest) > 0.5
        axes.text(column, row, text, ha="center", va="center", color="white" if is_dark else "black")


def _draw_panel(axes: "Axes", plot: Plot) -> None:
    if plot.kind == "heat":
        _draw_heat_map(axes, plot)
        return
    for index, series in enumerate(plot.series):
        heights = np.array(series.y, dtype=np.float64)  # None, a gap, becomes NaN
        if plot.kind == "histogram":
            axes.hist(heights, bins=30, color="0.8", edgecolor="0.2", label=series.label)
        elif plot.kind == "bars":
            axes.bar(list(series.x), heights, color="0.8", edgecolor="0.2", label=series.label)
            _draw_points(axes, series, "none", "", "0.2")
        else:
            line, marker = _STYLES[index % len(_STYLES)]
            _draw_points(axes, series, line if plot.kind == "line" else "none", marker, f"C{index % 10}")
    for place, label in plot.marks:
        axes.axvline(place, color="0.5", linestyle=":", label=label)
    axes.set(title=plot.title, xlabel=plot.x_label, ylabel=plot.y_label)
    if any(isinstance(place, str) for series in plot.series for place in series.x):
        axes.tick_params(axis="x", rotation=45)
    labels = [series.label for series in plot.series] + [label for _, label in plot.marks]
    if len(labels) > 1 and len(labels) <= _MAX_LABELS:
        axes.legend()


def _draw_points(axes: "Axes", series: PlotSeries, line: str, marker: str, color: str) -> None:
    heights = np.array(series.y, dtype=np.float64)  # None, a gap, becomes NaN
    ends = None
    if series.low and series.high:
        low, high = np.array([series.low, series.high], dtype=np.float64)
        ends = np.nan_to_num([heights - low, high - heights]).clip(0.0)
    axes.errorbar(
        list(series.x),
        heights,
        yerr=ends,
        linestyle=line,
        marker=marker,
        markersize=3.0,
        color=color,
        capsize=3.0,
        label=series.label,
        rasterized=len(heights) > _MAX_VECTOR_MARKS,
    )
