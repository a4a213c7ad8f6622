"""The report of a study: its figures, and the tables, notes and plots that show them to any reader.

A study is a function that returns a `Report`. The figures are what `--json` prints; sections, notes and plots are what
a person reads, and are made from the same figures by the same function.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import chain
from operator import itemgetter
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from jurygraph.display import format_interval, format_number
from jurygraph.inference.sign_flips import holm
from jurygraph.messages import escape_hidden_characters
from jurygraph.schema import FrozenModel

_MARKDOWN_ESCAPES = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>|#~&"})
_GITHUB_REFERENCE_PATTERN = re.compile(
    r"(?<=@)|(?<=#)(?=\d)|(?<=GH-)|(?<=:)(?=//)|(?<=www)(?=[.])", re.I
)
"""Where a mention, the number of an issue or a link begins, which no backslash keeps GitHub from making one of."""


MAX_COLUMNS = 12
"""Most columns of a table that a person is shown; the others stand in tables below."""


class IntervalCell(NamedTuple):
    """A cell with an estimate and the ends of its interval; None if there is none."""

    value: float | None
    low: float | None
    high: float | None


Figures = dict[str, Any]
"""Figures of a study by their names, as `--json` prints them."""
FigureRows = Sequence[Figures]
"""Figures of the same names, such as those of each judge: the rows of a table."""
Columns = Mapping[str, str | Callable[[Figures], object]]
"""The titles of columns, each with the field of a row, or with a function of the row that returns the cell."""


@dataclass(frozen=True)
class ReportTable:
    """A table of a report.

    Attributes:
        header: a name for each column, with its unit where it has one; the first names what the rows are.
        rows: a cell for each column: a number, a text, an estimate (see `as_interval`), or None for what is unknown.
        left: number of columns of text, which come first.
        digits: decimals of floats.
        most: number of rows that a person is shown; None for all.
        axes: the ends of the axis on which a page draws the estimates of a column, by its title, where other columns
            share it; each other column has an axis for itself.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    left: int = 1
    digits: int = 4
    most: int | None = None
    axes: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Columns, rows: Iterable[Figures], **layout: Any) -> Self:
        """Return the table of records; `layout` has the other attributes."""
        getters = [
            itemgetter(column) if isinstance(column, str) else column for column in columns.values()
        ]
        cells = [[get(row) for get in getters] for row in rows]
        return cls(list(columns), cells, **layout)

    def cells(self) -> list[list[str]]:
        """Return the rows that a person is shown, as text."""
        return [[format_cell(cell, self.digits) for cell in row] for row in self.rows[: self.most]]

    def split_columns(self) -> Iterator[Self]:
        """Yield tables of twelve columns at most, each with the columns of text; a single one if it is no wider."""
        step = MAX_COLUMNS - self.left
        for start in range(self.left, max(len(self.header), self.left + 1), step):
            kept = [*range(self.left), *range(start, min(start + step, len(self.header)))]
            header = [self.header[index] for index in kept]
            rows = [[row[index] for index in kept] for row in self.rows]
            yield replace(self, header=header, rows=rows)

    @property
    def hidden_rows_lines(self) -> list[str]:
        """Return a line that counts the rows that a person is not shown, if there are any."""
        hidden_row_count = len(self.rows) - len(self.rows[: self.most])
        return [f"... and {hidden_row_count} more (--json)"] if hidden_row_count else []


ReportSection = str | ReportTable
"""A part of a report that is read from top to bottom: a line of text, or a table."""
ReportSections = Iterator[ReportSection]


@dataclass(frozen=True)
class PlotSeries:
    """A line, or a set of points or bars: `y` over `x`, with the ends of intervals if there are any.

    None is a gap. A histogram has values `y` alone.
    """

    label: str
    y: Sequence[float | None]
    x: Sequence[float | str] = ()
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()

    @classmethod
    def from_estimates_with_intervals(cls, label: str, by_name: Mapping[str, object]) -> Self:
        """Return a series of estimates with intervals, over their names."""
        columns: dict[str, list[float | None]] = {"y": [], "low": [], "high": []}
        for estimate in by_name.values():
            cell = as_interval(estimate) or (None, None, None)
            for column, end in zip(columns.values(), cell, strict=True):
                column.append(end)
        return cls(label, x=list(by_name), **columns)


class PlotShading(NamedTuple):
    """A part of the x axis in which something was found: from `start` to `end`, what it is, and whether it is bad."""

    start: float
    end: float
    label: str
    is_adverse: bool


@dataclass(frozen=True)
class Plot:
    """A panel of the plot of a report: series of one kind on the same axes, with vertical `marks` by their label.

    The title says what the panel shows, as a sentence with its numbers. A heat map has a series for each row, of values
    up to 1 over the same names of columns.
    """

    title: str
    kind: Literal["line", "points", "bars", "histogram", "heat"]
    series: Sequence[PlotSeries]
    x_label: str = ""
    y_label: str = ""
    marks: Sequence[tuple[float, str]] = ()
    shaded_ranges: Sequence[PlotShading] = ()

    @classmethod
    def bars_of_estimates(cls, subject: str, label: str, by_name: Mapping[str, object]) -> Self:
        """Return a bar for each of some estimates with its interval; the title says how far they go."""
        series = PlotSeries.from_estimates_with_intervals(label, by_name)
        title = describe_range(subject, by_name)
        return cls(title, "bars", [series], y_label=f"{label}, 95 % interval")

    @property
    def has_visible_values(self) -> bool:
        """Return whether there is something to see: a number, and in lines of several points a change."""
        numbers = [[value for value in series.y if value is not None] for series in self.series]
        if self.kind != "line":
            return any(numbers)
        return any(len(values) == 1 or len(set(values)) > 1 for values in numbers)


@dataclass
class Report:
    """The result of a study; its sections, notes and plots are kept as lists.

    Attributes:
        figures: every figure by name. Named tuples, dataclasses and models are objects in JSON, and NaN is null.
        sections: lines and tables, in the order in which they are read; empty tables are left out.
        conclusion: what the figures say, in sentences; they come first, and are a figure of their own in JSON.
        symbol_meanings: what each Greek letter means; those that are printed are explained once, below their first use.
        notes: what was omitted, and limits of the figures.
        plots: the panels of the plot; none if there is nothing to draw.
        hints: what to do next, for who is at the terminal.
    """

    figures: Figures
    sections: Iterable[ReportSection] = ()
    notes: Iterable[str] = ()
    plots: Iterable[Plot] = ()
    conclusion: Sequence[str] = ()
    symbol_meanings: Mapping[str, str] = field(default_factory=dict)
    hints: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.sections = [
            section for section in self.sections if isinstance(section, str) or section.rows
        ]
        self.notes = list(self.notes)
        self.plots = list(self.plots)

    @property
    def tables(self) -> list[ReportTable]:
        return [section for section in self.sections if isinstance(section, ReportTable)]

    @property
    def content(self) -> ReportSections:
        """Yield what a person reads: the conclusion, then the sections, with each symbol explained once."""
        unexplained_symbols = dict(self.symbol_meanings)
        for part in (self.conclusion, *([section] for section in self.sections)):
            for section in part:
                yield from [section] if isinstance(section, str) else section.split_columns()
            printed_text = " ".join(text for section in part for text in _texts_of_section(section))
            for symbol in [
                name for name in unexplained_symbols if _contains_symbol(printed_text, name)
            ]:
                yield f"{symbol}: {unexplained_symbols.pop(symbol)}"

    def to_json(self) -> Figures:
        """Return the figures, and the conclusion if there is one."""
        figures = {name: _to_json_value(value) for name, value in self.figures.items()}
        if self.conclusion:
            figures["conclusion"] = list(self.conclusion)
        return figures

    def to_markdown(self, command: str = "") -> str:
        """Return sections and notes as Markdown, below the command that made them. Texts cannot add markup."""
        blocks = [f"`{escape_hidden_characters(command).replace('`', ' ')}`"] if command else []
        for section in self.content:
            if isinstance(section, str):
                blocks.append(_escape_markdown(section))
            else:
                blocks.append("\n".join(_table_lines(section)))
        if self.notes:
            blocks.append("\n".join(f"- {_escape_markdown(note)}" for note in self.notes))
        return "\n\n".join(blocks) + "\n"


def _texts_of_section(section: ReportSection) -> list[str]:
    """Return the line, or the titles and the texts of a table."""
    if isinstance(section, str):
        return [section]
    return [*section.header, *chain.from_iterable(section.cells())]


def _contains_symbol(text: str, symbol: str) -> bool:
    # σ is no part of σ²_Sem, which is a symbol of its own.
    return re.search(rf"(?<!\w){re.escape(symbol)}(?![\w²])", text) is not None


def _to_json_value(value: Any) -> Any:
    if isinstance(value, np.generic):  # a number of NumPy's
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, FrozenModel):
        return value.model_dump(mode="json")
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _to_json_value(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json_value(inner) for inner in value]
    return value


def describe_range(subject: str, by_name: Mapping[str, object], digits: int = 2) -> str:
    """Return a sentence with the least and the greatest of estimates, or of numbers, and their names."""
    numbers = {name: number_of_cell(cell) for name, cell in by_name.items()}
    values = {name: number for name, number in numbers.items() if number is not None}
    if not values:
        return f"{subject} was not measured"
    sorted_names = sorted(values, key=values.__getitem__)
    name_of_least, name_of_greatest = sorted_names[0], sorted_names[-1]
    lowest = f"{subject} is {format_number(values[name_of_least], digits)} for {name_of_least}"
    if len(values) == 1:
        return lowest
    return (
        f"{lowest}, up to {format_number(values[name_of_greatest], digits)} for {name_of_greatest}"
    )


def describe_series(subject: str, unit: str, series: PlotSeries) -> str:
    """Return a sentence with the first and the last number of a series, whose x counts or measures `unit`."""
    points = [
        (at, value) for at, value in zip(series.x, series.y, strict=True) if value is not None
    ]
    if not points:
        return f"{subject} was not measured"
    (start, first), (end, last) = points[0], points[-1]
    first_clause = f"{subject} is {format_number(first, 2)} at {unit} {_format_tick(start)}"
    if len(points) == 1:
        return first_clause
    return f"{first_clause}, and {format_number(last, 2)} at {unit} {_format_tick(end)}"


def _format_tick(x: float | str) -> str:
    return x if isinstance(x, str) else f"{x:g}"


def as_interval(cell: object) -> IntervalCell | None:
    """Return the estimate of a mapping or an object that has `value`, `low` and `high`; None for anything else."""
    names = IntervalCell._fields
    if isinstance(cell, Mapping):
        return IntervalCell(*(cell[name] for name in names)) if cell.keys() >= set(names) else None
    if not all(hasattr(cell, name) for name in names):
        return None
    return IntervalCell(*(getattr(cell, name) for name in names))


def number_of_cell(cell: object) -> float | None:
    """Return the number of a cell, of an estimate its value; None for anything else."""
    estimate = as_interval(cell)
    value = cell if estimate is None else estimate.value
    return value if isinstance(value, int | float) else None


def format_cell(cell: object, digits: int = 4) -> str:
    """Return a cell as text: floats with `digits` decimals, and a dash for None and NaN.

    An estimate that has `digits` itself has so many.
    """
    estimate = as_interval(cell)
    if estimate is not None:
        return format_interval(*estimate, getattr(cell, "digits", digits))
    if cell is None or isinstance(cell, float):
        return format_number(None if cell != cell else cell, digits)
    return str(cell)


def group_by(items: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    """Return the items of each key, in the order in which the keys appear."""
    groups = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return dict(groups)


def adjust_p_values(rows: FigureRows, name: str) -> list[Figures]:
    """Return rows whose p-values of this name allow for the number of rows (Holm)."""
    adjusted_p_values = holm([row[name] for row in rows])
    return [{**row, name: p} for row, p in zip(rows, adjusted_p_values, strict=True)]


def name_rows(figures_by_name: Mapping[str, Figures]) -> list[Figures]:
    """Return the rows of a table, each with its `name`."""
    return [{"name": name, **figures} for name, figures in figures_by_name.items()]


def list_omissions(left_out: Mapping[str, int]) -> str:
    """Return why something was omitted, with counts, as a part of a sentence; empty if nothing was."""
    return "; ".join(f"{reason}: {count}" for reason, count in left_out.items())


def omission_notes(left_out: Mapping[str, int], prefix: str = "") -> Iterator[str]:
    """Yield a note for each reason why something was omitted, with its count."""
    return (f"{prefix}omitted, {reason}: {count}" for reason, count in left_out.items())


def _table_lines(table: ReportTable) -> Iterator[str]:
    yield _format_markdown_row(map(_escape_markdown, table.header))
    yield _format_markdown_row(
        "---" if index < table.left else "---:" for index in range(len(table.header))
    )
    for row in table.cells():
        yield _format_markdown_row(map(_escape_markdown, row))
    yield from (f"\n{line}" for line in table.hidden_rows_lines)


def _format_markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape_markdown(text: str) -> str:
    escaped_text = escape_hidden_characters(text).translate(_MARKDOWN_ESCAPES)
    return _GITHUB_REFERENCE_PATTERN.sub("&#8203;", escaped_text)  # a space without width
