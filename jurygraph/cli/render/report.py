"""Command of a study: the runs that it reads, its report as text, JSON or Markdown, and its plot."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, TypeVar

from jurygraph.cli.options import AsJson, AsMarkdown, PlotFile
from jurygraph.cli.output_files import refuse_unwritable, write_output_with
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.text import (
    command_line,
    escape_line,
    format_table,
    omission_line,
    print_message,
    print_report,
    print_result,
    print_result_lines,
)
from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.studies.plots import draw_plots, require_drawable
from jurygraph.studies.report import Plot, Report, ReportTable

T = TypeVar("T")
_FORMS = {"plot": (PlotFile, None), "markdown": (AsMarkdown, False), "json": (AsJson, False)}


@dataclass(frozen=True)
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
            require_drawable(self.plot)
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
    own = signature(study).parameters
    parameters = [one.replace(kind=Parameter.KEYWORD_ONLY) for name, one in own.items() if name not in _FORMS]
    for name, (annotation, default) in _FORMS.items():
        parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation))

    @wraps(study)
    def command(**arguments: Any) -> None:
        inputs = [one for value in arguments.values() for one in (value if isinstance(value, list) else [value])]
        sources = tuple(str(one) for one in inputs if isinstance(one, Path) and one != arguments["plot"])
        output = ReportOutput(arguments["json"], arguments["markdown"], arguments["plot"], sources)
        report = study(**{name: arguments[name] for name in own})
        if report is not None:
            output.write(report)

    command.__dict__["__signature__"] = Signature(parameters)  # which typer reads
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def report_lines(sections: Iterable[str | ReportTable]) -> Iterator[str]:
    """Return the lines of a report for a terminal, with an empty line around each table."""
    previous: str | ReportTable | None = None
    for section in sections:
        is_table = isinstance(section, ReportTable)
        if previous is not None and (is_table or isinstance(previous, ReportTable)):
            yield ""
        if isinstance(section, ReportTable):
            yield from format_table(section.header, section.cells(), section.left)
            yield from omission_line(len(section.rows), section.most)
        else:
            yield escape_line(section)
        previous = section


def read_runs(folders: Iterable[Path], read: Callable[[Run, Callable[[int], None]], T]) -> list[T]:
    """Return what a study reads of each run, with a progress bar for each."""
    results = []
    for folder in folders:
        with closing(Run.open(folder)) as run, progress("reading", run.tasks_scored, "tasks") as advance:
            results.append(read(run, advance))
    return results
