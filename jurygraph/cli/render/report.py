"""Command of a study: the runs that it reads, its report as text, JSON or Markdown, and its plot by matplotlib.

The same plot gives the same file.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from jurygraph.cli.options import AsJson, AsMarkdown, PlotFile
from jurygraph.cli.output_files import refuse_unwritable, write_output_with
from jurygraph.cli.render.text import (
    command_line,
    escape_line,
    format_table,
    print_message,
    print_report,
    print_result,
    print_result_lines,
    progress,
)
from jurygraph.display import ProgressCallback
from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.studies.report import Plot, PlotSeries, Report, ReportTable, refuse_repeated

if TYPE_CHECKING:
    from matplotlib.axes import Axes


T = TypeVar("T")
_FORMS = {"plot": (PlotFile, None), "markdown": (AsMarkdown, False), "json": (AsJson, False)}


@dataclass(frozen=True, kw_only=True)
class ReportOutput:
    """The forms in which a report is wanted. Raises `InputError`, before any work, if one of them is impossible."""

    json: bool = False
    markdown: bool = False
    plot: Path | None = None
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.json and self.markdown:
            raise InputError("--json and --markdown: one result has one form; remove one of them")
        if self.plot is not None:
            if self.plot.suffix not in METADATA_BY_SUFFIX:
                suffixes = ", ".join(METADATA_BY_SUFFIX)
                raise InputError(f"{self.plot}: pictures end in {suffixes}; name one of these")
            try:
                import matplotlib  # noqa: F401 - only checks that it can be imported
            except ImportError:
                raise InputError(
                    f"{self.plot}: drawing needs matplotlib; pip install 'jurygraph[plot]'"
                ) from None
            refuse_unwritable(str(self.plot), *self.sources)

    def write(self, report: Report) -> None:
        """Print the report and its notes, and write its plot."""
        if self.json:
            print_report(True, report.to_json(), ())
        elif self.markdown:
            print_result(report.to_markdown(command_line.get()).removesuffix("\n"))
        else:
            print_result_lines(report_lines(report.sections))
        if not self.markdown:  # a page has its notes
            for note in report.notes:
                print_message(note)
        self.draw(report.plots)

    def draw(self, plots: Iterable[Plot]) -> None:
        """Write the plot if one is wanted and there is something to draw."""
        panels = tuple(plots)
        if self.plot is not None and not panels:
            print_message(f"{self.plot}: not written, because there is nothing to draw")
        elif self.plot is not None:
            suffix = self.plot.suffix
            write_output_with(str(self.plot), lambda draft: draw_plots(panels, draft, suffix))


def report_command(study: Callable[..., Report | None]) -> Callable[..., None]:
    """Return the command of a study: its parameters, and an option for each form of the report that it returns.

    What is impossible is refused before the study begins. A study that itself needs such an option has a parameter for
    it; one that returns None has printed its result.
    """
    study_parameters = signature(study).parameters
    parameters = []
    for name, parameter in study_parameters.items():
        if name not in _FORMS:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
    for name, (annotation, default) in _FORMS.items():
        parameters.append(
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )

    @wraps(study)
    def command(**arguments: Any) -> None:
        output = ReportOutput(
            json=arguments["json"],
            markdown=arguments["markdown"],
            plot=arguments["plot"],
            sources=tuple(_source_files(arguments)),
        )
        report = study(**{name: arguments[name] for name in study_parameters})
        if report is not None:
            output.write(report)

    command.__dict__["__signature__"] = Signature(parameters)  # which typer reads
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _source_files(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths among the arguments of a command, but for that of its plot."""
    for value in arguments.values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Path) and item != arguments["plot"]:
                yield str(item)


def report_lines(sections: Iterable[str | ReportTable]) -> Iterator[str]:
    """Return the lines of a report for a terminal, with an empty line around each table."""
    previous: str | ReportTable | None = None
    for section in sections:
        is_table = isinstance(section, ReportTable)
        if previous is not None and (is_table or isinstance(previous, ReportTable)):
            yield ""
        if isinstance(section, ReportTable):
            yield from format_table(section.header, section.cells(), section.left)
            yield from section.omission
        else:
            yield escape_line(section)
        previous = section


def read_runs(folders: Sequence[Path], read: Callable[[Run, ProgressCallback], T]) -> list[T]:
    """Return what a study reads of each run, with a progress bar for each. Raises `InputError` for one named twice."""
    refuse_repeated(folders)
    results = []
    for folder in folders:
        with (
            closing(Run.open(folder)) as run,
            progress("reading", run.tasks_scored, "tasks") as advance,
        ):
            results.append(read(run, advance))
    return results


METADATA_BY_SUFFIX = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}
"""Metadata of the file by suffix: without dates, so that the same plot gives the same file."""
_STYLES = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"))
"""Lines and markers, which distinguish series without colour."""
_MAX_LARGE = 4
_MAX_LABELS = 12


def draw_plots(plots: Sequence[Plot], file: Path, suffix: str) -> None:
    """Write the panels, two in a row, in the format of a suffix. Raises OSError.

    Dollar signs in names are not parsed as mathematics.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = -(-len(plots) // 2)
    columns = min(2, len(plots))
    height = 3.4 if len(plots) <= _MAX_LARGE else 1.6
    with mpl.rc_context({"svg.hashsalt": "jurygraph", "font.size": 8.0, "text.parse_math": False}):
        figure = Figure(figsize=(5.0 * columns, height * rows), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, plot in zip(panels, plots, strict=False):
            _draw_panel(axes, plot)
        for axes in panels[len(plots) :]:
            axes.set_axis_off()
        figure.savefig(file, format=suffix[1:], dpi=150, metadata=METADATA_BY_SUFFIX[suffix])


def _draw_heat_map(axes: "Axes", plot: Plot) -> None:
    rows = np.array([series.y for series in plot.series], dtype=np.float64)
    lowest = min(0.0, float(np.nan_to_num(rows).min()))
    axes.imshow(rows, cmap="Greys", vmin=lowest, vmax=1.0, aspect="auto")
    axes.set(title=plot.title, xlabel=plot.x_label, ylabel=plot.y_label)
    columns = [str(name) for name in plot.series[0].x]
    axes.set_xticks(range(len(columns)), columns, rotation=45)
    axes.set_yticks(range(len(rows)), [series.label for series in plot.series])
    for (row, column), value in np.ndenumerate(rows):
        text = f"{value:.2f}" if np.isfinite(value) else "-"
        is_dark = (value - lowest) / (1.0 - lowest) > 0.5
        color = "white" if is_dark else "black"
        axes.text(column, row, text, ha="center", va="center", color=color)


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
            if plot.kind != "line":
                line = "none"
            _draw_points(axes, series, line, marker, f"C{index % 10}")
    for x, label in plot.marks:
        axes.axvline(x, color="0.5", linestyle=":", label=label)
    axes.set(title=plot.title, xlabel=plot.x_label, ylabel=plot.y_label)
    ticks = chain.from_iterable(series.x for series in plot.series)
    if any(isinstance(tick, str) for tick in ticks):
        axes.tick_params(axis="x", rotation=45)
    label_count = len(plot.series) + len(plot.marks)
    if 1 < label_count <= _MAX_LABELS:
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
    )
