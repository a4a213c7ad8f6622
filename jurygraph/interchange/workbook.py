"""Write a run as a workbook for Excel: a sheet that anybody can read, and one with everything.

The file is written here and not by a library, which would date it and take some texts for formulas. Every text is an
inline string, which no spreadsheet evaluates; one that looks like a formula is marked as text for who edits it, too.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from pydantic import JsonValue

from jurygraph.display import ProgressCallback
from jurygraph.errors import InputError
from jurygraph.explanation import Explanation
from jurygraph.messages import escape_lines
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
_NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_TOP = '<alignment vertical="top"/>'
_TOP_WRAPPED = '<alignment vertical="top" wrapText="1"/>'
_FONT = '<sz val="11"/><name val="Calibri"/>'
_BASE = 'fontId="0" fillId="0" borderId="0"'
_STYLES = (
    f'{_XML}<styleSheet xmlns="{_NAMESPACE}">'
    f'<fonts count="2"><font>{_FONT}</font><font><b/>{_FONT}</font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    f'<cellStyleXfs count="1"><xf numFmtId="0" {_BASE}/></cellStyleXfs><cellXfs count="6">'
    f'<xf numFmtId="0" {_BASE} xfId="0"/>'
    '<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/>'
    f'<xf numFmtId="0" {_BASE} xfId="0" applyAlignment="1">{_TOP_WRAPPED}</xf>'
    f'<xf numFmtId="2" {_BASE} xfId="0" applyNumberFormat="1" applyAlignment="1">{_TOP}</xf>'
    f'<xf numFmtId="9" {_BASE} xfId="0" applyNumberFormat="1" applyAlignment="1">{_TOP}</xf>'
    f'<xf numFmtId="49" {_BASE} xfId="0" quotePrefix="1" applyNumberFormat="1" applyAlignment="1">{_TOP_WRAPPED}</xf>'
    '</cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)
_PLAIN, _BOLD, _WRAPPED, _NUMBER, _PERCENT, _LIKE_FORMULA = range(6)
"""Positions in the styles above: a number has two decimals, and a percentage none."""


class SheetColumn(NamedTuple):
    """A column of a sheet: its title, its width in characters, and the style of its cells."""

    title: str
    width: int
    style: int = _PLAIN


class Sheet(NamedTuple):
    """A sheet; its rows have a value for each column, None for an empty cell."""

    name: str
    columns: Sequence[SheetColumn]
    rows: Iterable[Sequence[JsonValue]]


_READABLE = (
    SheetColumn("Response", 28, _WRAPPED),
    SheetColumn("Agent", 18, _WRAPPED),
    SheetColumn("Reward", 10, _NUMBER),
    SheetColumn("Judged", 10, _PERCENT),
    SheetColumn("What cost most", 90, _WRAPPED),
)


def read_losses(run: Run, report: ProgressCallback) -> list[Sequence[JsonValue]]:
    """Return a row of the readable sheet for every response, the lowest reward first, those without one last."""
    rows: list[tuple[float | None, Sequence[JsonValue]]] = []
    for trace in run.traces():
        questions = run.survey_outline_of(trace.task_id).questions
        explanation = Explanation(trace, run.decision_of(trace.task_id), questions)
        reward = trace.reward
        loss = describe_loss(explanation)
        cells = (trace.response_id, trace.agent, reward.value, reward.coverage, loss)
        rows.append((reward.value, cells))
        report(1)
    rows.sort(key=lambda row: (row[0] is None, row[0] or 0.0))
    return [cells for _, cells in rows]


def write_workbook(losses: Sequence[Sequence[JsonValue]], table: ExportTable, path: Path) -> None:
    """Write both sheets. Raises `InputError` where a sheet has no room for the columns."""
    names = list(table.columns)
    if len(names) > _MAX_COLUMNS:
        limit = f"{_MAX_COLUMNS} are all that a sheet has"
        raise InputError(f"{len(names)} columns: {limit}; use --to parquet, or leave out columns")
    every_row = ([row.get(name) for name in names] for rows in table.batches() for row in rows)
    sheets = [
        Sheet("Rewards", _READABLE, losses),
        Sheet("Everything", [SheetColumn(name, 16) for name in names], every_row),
    ]
    with ZipFile(path, "w") as archive:
        for name, content in _list_parts(sheets):
            entry = ZipInfo(name)  # with the date 1980: the same run gives the same bytes
            entry.compress_type = ZIP_DEFLATED
            with archive.open(entry, "w") as file:
                for text in content:
                    file.write(text.encode())


def _list_parts(sheets: Sequence[Sheet]) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the files of a workbook with their names."""
    types = f"{_PACKAGE}/content-types"
    office = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    overrides = [("workbook", "sheet.main"), ("styles", "styles")]
    overrides += [(f"worksheets/sheet{n}", "worksheet") for n in range(1, len(sheets) + 1)]
    listed = [
        f'<Override PartName="/xl/{part}.xml" ContentType="{office}.{kind}+xml"/>'
        for part, kind in overrides
    ]
    relations = "application/vnd.openxmlformats-package.relationships+xml"
    default = f'<Default Extension="rels" ContentType="{relations}"/>'
    yield "[Content_Types].xml", [f'{_XML}<Types xmlns="{types}">{default}', *listed, "</Types>"]
    yield "_rels/.rels", [_relate([("officeDocument", "xl/workbook.xml")])]
    targets = [("worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(sheets) + 1)]
    yield "xl/_rels/workbook.xml.rels", [_relate([*targets, ("styles", "styles.xml")])]
    tabs = [
        f'<sheet name={quoteattr(sheet.name)} sheetId="{n}" r:id="r{n}"/>'
        for n, sheet in enumerate(sheets, start=1)
    ]
    head = f'{_XML}<workbook xmlns="{_NAMESPACE}" xmlns:r="{_RELATIONS}"><sheets>'
    yield "xl/workbook.xml", [head, *tabs, "</sheets></workbook>"]
    yield "xl/styles.xml", [_STYLES]
    for number, sheet in enumerate(sheets, start=1):
        yield f"xl/worksheets/sheet{number}.xml", _write_sheet(sheet)


def _relate(targets: Sequence[tuple[str, str]]) -> str:
    links = [
        f'<Relationship Id="r{n}" Type="{_RELATIONS}/{kind}" Target="{target}"/>'
        for n, (kind, target) in enumerate(targets, start=1)
    ]
    return f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">{"".join(links)}</Relationships>'


def _write_sheet(sheet: Sheet) -> Iterator[str]:
    """Yield the content of a sheet, whose first row stays in sight."""
    pane = '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'
    view = f'<sheetViews><sheetView workbookViewId="0">{pane}</sheetView></sheetViews>'
    yield f'{_XML}<worksheet xmlns="{_NAMESPACE}">{view}<cols>'
    for number, column in enumerate(sheet.columns, start=1):
        yield f'<col min="{number}" max="{number}" width="{column.width}" customWidth="1"/>'
    titles = [_write_cell(column.title, _BOLD) for column in sheet.columns]
    yield f"</cols><sheetData><row>{''.join(titles)}</row>"
    for row in sheet.rows:
        cells = [
            _write_cell(value, column.style)
            for value, column in zip(row, sheet.columns, strict=True)
        ]
        yield f"<row>{''.join(cells)}</row>"
    yield "</sheetData></worksheet>"


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
