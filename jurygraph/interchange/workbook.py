"""Write a run as a workbook for Excel: two sheets that anybody can read, and one with everything.

The file is written here and not by a library, which would date it and take some texts for formulas. Every text is an
inline string, which no spreadsheet evaluates; one that looks like a formula is marked as text for who edits it, too.
"""

import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from pydantic import JsonValue

from jurygraph.display import ProgressCallback
from jurygraph.errors import InputError
from jurygraph.explanation import Explanation
from jurygraph.inference.clusters import ratio_interval
from jurygraph.messages import escape_lines
from jurygraph.runs.outline import read_groups
from jurygraph.runs.reports.units import unit_of
from jurygraph.runs.run import Run
from jurygraph.runs.tables import ExportTable, to_text
from jurygraph.views.trace import describe_loss

MAX_ROWS = 1_048_576
_MAX_COLUMNS = 16_384
_MAX_TEXT = 32_767  # UTF-16 units in a cell
_MAX_INTEGER = 2**53  # whole numbers above are rounded, which an id must not be
_NO_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")
_ESCAPE_LIKE = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
"""What Excel would read as a character that cannot be written, such as `_x003D_`."""
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_HEAD = f"""{_XML}<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">
<sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>
</sheetView></sheetViews><cols>"""
"""The beginning of a sheet, whose first row stays in sight."""
_PLAIN, _BOLD, _WRAPPED, _NUMBER, _PERCENT, _LIKE_FORMULA = range(6)
"""Positions of the styles in workbook.toml."""


class SheetColumn(NamedTuple):
    """A column of a sheet: its title, its width in characters, and the style of its cells."""

    title: str
    width: int
    style: int = _PLAIN


_READABLE = (
    SheetColumn("Response", 28, _WRAPPED),
    SheetColumn("Question", 40, _WRAPPED),
    SheetColumn("Agent", 18, _WRAPPED),
    SheetColumn("Reward", 10, _NUMBER),
    SheetColumn("Judged", 10, _PERCENT),
    SheetColumn("What cost most", 90, _WRAPPED),
)


_AGENTS = (
    SheetColumn("Agent", 28, _WRAPPED),
    *(SheetColumn(name, 12, _NUMBER) for name in ("Mean reward", "From (95 %)", "To (95 %)")),
    *(SheetColumn(name, 11) for name in ("Responses", "Tasks", "Failed")),
)

SheetRows = Sequence[Sequence[JsonValue]]


def read_agents(run: Run) -> SheetRows:
    """Return a row of the sheet of agents for each, the best first; the interval is over tasks, or groups of tasks."""
    rewards: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    responses = Counter[str]()
    for group in read_groups(run):
        unit = unit_of(run, group.record.key)
        for trace in group.traces:
            agent = trace.agent or "(no agent)"
            responses[agent] += 1
            rewards[agent][unit] += () if trace.value is None else (trace.value,)
    rows = []
    for agent, by_unit in rewards.items():
        sizes = list(map(len, by_unit.values()))
        value, low, high, *_ = ratio_interval(list(map(sum, by_unit.values())), sizes) or [None] * 3
        failed = responses[agent] - sum(sizes)
        rows.append((agent, value, low, high, responses[agent], len(sizes), failed))
    rows.sort(key=lambda row: float("-inf") if row[1] is None else row[1], reverse=True)
    return rows


def read_losses(run: Run, report: ProgressCallback) -> list[Sequence[JsonValue]]:
    """Return a row of the readable sheet for every response, the lowest reward first, those without one last."""
    rows: list[tuple[float | None, Sequence[JsonValue]]] = []
    for trace in run.traces():
        questions = run.survey_outline_of(trace.task_id).questions
        explanation = Explanation(trace, run.decision_of(trace.task_id), questions)
        reward = trace.reward
        loss = describe_loss(explanation)
        # This sheet is for reading: the other one has all digits, such as those of 0.48000000000000004.
        value = None if reward.value is None else round(reward.value, 4)
        query = run.short_query(trace.task_id)
        cells = (trace.response_id, query, trace.agent, value, round(reward.coverage, 4), loss)
        rows.append((reward.value, cells))
        report(1)
    rows.sort(key=lambda row: (row[0] is None, row[0] or 0.0))
    return [cells for _, cells in rows]


def write_workbook(losses: SheetRows, agents: SheetRows, table: ExportTable, path: Path) -> None:
    """Write the three sheets. Raises `InputError` where a sheet has no room for the columns."""
    names = list(table.columns)
    if len(names) > _MAX_COLUMNS:
        limit = f"{_MAX_COLUMNS} are all that a sheet has"
        raise InputError(f"{len(names)} columns: {limit}; use --to parquet, or leave out columns")
    every_row = ([row.get(name) for name in names] for rows in table.batches() for row in rows)
    every_column = [SheetColumn(name, 16) for name in names]
    parts: dict[str, Iterable[str]] = {
        name: (_XML, text.replace("\n", "")) for name, text in _read_parts().items()
    }
    parts["xl/worksheets/sheet1.xml"] = _write_sheet(_READABLE, losses)
    parts["xl/worksheets/sheet2.xml"] = _write_sheet(_AGENTS, agents)
    parts["xl/worksheets/sheet3.xml"] = _write_sheet(every_column, every_row)
    with ZipFile(path, "w") as archive:
        for name, content in parts.items():
            entry = ZipInfo(name)  # with the date 1980: the same run gives the same bytes
            entry.compress_type = ZIP_DEFLATED
            with archive.open(entry, "w") as file:
                file.writelines(text.encode() for text in content)


def _read_parts() -> dict[str, str]:
    return tomllib.loads(
        files("jurygraph.interchange").joinpath("workbook.toml").read_text("utf-8")
    )


def _write_sheet(
    columns: Sequence[SheetColumn], rows: Iterable[Sequence[JsonValue]]
) -> Iterator[str]:
    """Yield the content of a sheet; a row has a value for each column, None for an empty cell."""
    yield _HEAD
    for number, column in enumerate(columns, start=1):
        yield f'<col min="{number}" max="{number}" width="{column.width}" customWidth="1"/>'
    yield "</cols><sheetData>"
    yield _write_row((column.title, _BOLD) for column in columns)
    for row in rows:
        styles = [column.style for column in columns]
        yield _write_row(zip(row, styles, strict=True))
    yield "</sheetData></worksheet>"


def _write_row(cells: Iterable[tuple[JsonValue, int]]) -> str:
    written = [_write_cell(value, style) for value, style in cells]
    return f"<row>{''.join(written)}</row>"


def _write_cell(value: JsonValue, style: int) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, bool):
        return f'<c s="{style}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < _MAX_INTEGER):
        return f'<c s="{style}"><v>{value!r}</v></c>'
    text = _NO_XML.sub(lambda match: json.dumps(match[0])[1:-1], escape_lines(to_text(value)))
    units = text.encode("utf-16-le")
    if len(units) > 2 * _MAX_TEXT:
        text = units[: 2 * (_MAX_TEXT - 1)].decode("utf-16-le", "ignore") + "…"
    if text.startswith(("=", "+", "-", "@")) and style != _BOLD:
        style = _LIKE_FORMULA
    content = escape(_ESCAPE_LIKE.sub("_x005F_", text))
    return f'<c s="{style}" t="inlineStr"><is><t xml:space="preserve">{content}</t></is></c>'
