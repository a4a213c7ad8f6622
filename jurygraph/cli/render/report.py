"""Command of a study: the runs that it reads, and its report as text, JSON, Markdown, a page of HTML and a plot."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

from jurygraph.cli.options import (
    HtmlFileOption,
    JsonOption,
    MarkdownOption,
    PlotFileOption,
    make_parameters,
    set_parameters,
)
from jurygraph.cli.output_files import (
    refuse_unwritable,
    refuse_unwritable_page,
    write_output,
    write_output_with,
)
from jurygraph.cli.render.plots import METADATA_BY_SUFFIX, can_draw_plots, draw_plots
from jurygraph.cli.render.text import (
    command_line,
    escape_line,
    format_table,
    print_message,
    print_messages,
    print_report,
    print_result,
    print_result_lines,
    progress,
)
from jurygraph.cli.streams import make_current_redactor
from jurygraph.display import ProgressCallback
from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.sources.files import refuse_repeated_sources
from jurygraph.studies.report import Plot, Report, ReportTable

T = TypeVar("T")
_OPTION_BY_OUTPUT_KIND = {
    "plot": (PlotFileOption, None),
    "html": (HtmlFileOption, None),
    "markdown": (MarkdownOption, False),
    "json": (JsonOption, False),
}


@dataclass(frozen=True, kw_only=True)
class ReportOutputOptions:
    """The forms in which a report is wanted. Raises `InputError`, before any work, if one of them is impossible.

    `title` is the heading of the page of HTML. `sign` adds a seal to a page, of Markdown or HTML.
    """

    json: bool = False
    markdown: bool = False
    plot: Path | None = None
    html: Path | None = None
    title: str = ""
    sources: tuple[str, ...] = ()
    sign: Callable[[str], str] = str

    def __post_init__(self) -> None:
        if self.json and self.markdown:
            raise InputError("--json and --markdown: one result has one form; remove one of them")
        if self.plot is not None:
            if self.plot.suffix not in METADATA_BY_SUFFIX:
                suffixes_text = ", ".join(METADATA_BY_SUFFIX)
                raise InputError(f"{self.plot}: pictures end in {suffixes_text}; name one of these")
            if not can_draw_plots():
                raise InputError(
                    f"{self.plot}: drawing needs matplotlib; pip install 'jurygraph[plot]'"
                )
            refuse_unwritable(self.plot, *self.sources)
        if self.html is not None:
            refuse_unwritable_page(str(self.html), *self.sources)

    def write(self, report: Report) -> None:
        """Write the files of the report, then print it and its notes: who reads the first lines alone has all files."""
        self.write_report_files(report)
        if self.json:
            print_report(True, report.to_json(), ())
        elif self.markdown:
            # a secret that were removed later would break the seal
            page = make_current_redactor().redact_text(report.to_markdown(command_line.get()))
            print_result(self.sign(page).removesuffix("\n"))
        else:
            print_result_lines(format_report_lines(report.content))
        if not self.markdown:  # a page has its notes
            print_messages(report.notes)
        print_messages(report.hints)

    def write_report_files(self, report: Report) -> None:
        """Write the page and the plot that are wanted; panels in which nothing is to be seen are left out."""
        nonempty_plots = [plot for plot in report.plots if plot.has_visible_values]
        if self.html is not None:
            self._write_page(report, nonempty_plots)
        if self.plot is None:
            return
        if not nonempty_plots:
            print_message(f"{self.plot}: not written, because there is nothing to draw")
        else:
            suffix = self.plot.suffix
            write_output_with(
                str(self.plot), lambda draft_path: draw_plots(nonempty_plots, draft_path, suffix)
            )

    def _write_page(self, report: Report, panels: Sequence[Plot]) -> None:
        from jurygraph.viewer.documents import render_study

        plot_pictures = []
        if can_draw_plots():
            for plot in panels:
                svg_buffer = BytesIO()
                draw_plots([plot], svg_buffer, ".svg")
                plot_pictures.append((plot.title, svg_buffer.getvalue()))
        elif panels:
            print_message(
                f"{self.html}: without plots, which need matplotlib; pip install 'jurygraph[plot]'"
            )
        page = render_study(report, self.title, command_line.get(), plot_pictures)
        write_output(str(self.html), [self.sign(page).encode()])
        print_message(f"wrote {self.html}")


def make_report_command(
    study: Callable[..., Report | None],
    title: str = "",
    kinds: Sequence[str] = tuple(_OPTION_BY_OUTPUT_KIND),
) -> Callable[..., None]:
    """Return the command of a study: its parameters, and an option for each of the forms `kinds` of its report.

    What is impossible is refused before the study begins. A study that itself needs such an option has a parameter for
    it, or one for the `output`; one that returns None has printed its result. `title` is the heading of the page, with
    parameters of the study in braces; by default it is the name of the command.
    """
    study_parameters = signature(study).parameters
    parameters = []
    for name, parameter in study_parameters.items():
        if name not in (*_OPTION_BY_OUTPUT_KIND, "output"):
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
    parameters += make_parameters({name: _OPTION_BY_OUTPUT_KIND[name] for name in kinds})

    @wraps(study)
    def command(**arguments: Any) -> None:
        output = ReportOutputOptions(
            **{kind: arguments[kind] for kind in kinds},
            title=title.format_map(arguments) or study.__name__.replace("_", " ").capitalize(),
            sources=tuple(_list_source_files(arguments)),
        )
        arguments["output"] = output
        report = study(**{name: arguments[name] for name in study_parameters})
        if report is not None:
            output.write(report)

    set_parameters(command, parameters)
    return command


def _list_source_files(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths among the arguments of a command, but for those of its own files."""
    for name, value in arguments.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str | Path) and name not in ("plot", "html"):
                yield str(item)


def format_report_lines(sections: Iterable[str | ReportTable]) -> Iterator[str]:
    """Return the lines of a report for a terminal, with an empty line around each table."""
    previous = None
    for section in sections:
        is_table_section = isinstance(section, ReportTable)
        if previous is not None and (is_table_section or isinstance(previous, ReportTable)):
            yield ""
        if isinstance(section, ReportTable):
            yield from format_table(section.header, section.cells(), section.left)
            yield from section.hidden_rows_lines
        else:
            yield escape_line(section)
        previous = section


def read_from_each_run(
    run_folders: Sequence[Path], read: Callable[[Run, ProgressCallback], T]
) -> list[T]:
    """Return what a study reads of each run, with a progress bar for each. Raises `InputError` for one named twice."""
    refuse_repeated_sources(run_folders)
    results = []
    for folder in run_folders:
        with (
            Run.open(folder) as run,
            progress("reading", run.tasks_scored, "tasks") as advance,
        ):
            results.append(read(run, advance))
    return results
