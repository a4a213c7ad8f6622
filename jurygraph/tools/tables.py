"""`look_up`: rows of the tables in a task's `facts`. Claims, references and metadata are in no result."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jurygraph.agents.facts.evaluators import table_file_digests
from jurygraph.agents.facts.tables import FactTableSpec, RowValues, are_equal, normalise_text
from jurygraph.messages import suggest_known_name
from jurygraph.schema import TaskView
from jurygraph.schema.frozen_model import EMPTY_OBJECT, PositiveInt
from jurygraph.sources.table_rows import read_rows
from jurygraph.tools.result import take_rows_that_fit, to_json
from jurygraph.tools.tool import Tool, ToolArguments, ToolError, ToolInput

MAX_RETURNED_ROWS = 50
MAX_ROW_CHARACTERS = 7_500


class LookUpArguments(ToolArguments):
    table: str | None = None
    """The table; without one, the result is a list of the tables and their columns."""
    where: dict[str, str | float | bool | None] = EMPTY_OBJECT
    """The value that a row must have, by column; numbers by value, words whatever their case."""
    first_row: PositiveInt = 1
    """The number of the first matching row that is shown."""


class LookUpTool(Tool):
    """Return the rows of a table of facts that have some values."""

    name = "look_up"
    version = "1"
    description = "Look up rows in the tables of facts that belong to the task. Returns them as lines of JSON."
    Arguments = LookUpArguments

    def task_file_digests(self, task: TaskView) -> Mapping[str, str]:
        return table_file_digests(task)

    def run(self, inputs: ToolInput, arguments: LookUpArguments) -> str:
        specs: Any = (inputs.task.facts or {}).get("tables")
        if not specs:
            raise ToolError("the task has no tables")
        tables = {name: FactTableSpec.model_validate(spec) for name, spec in specs.items()}
        if arguments.table is None:
            return "\n".join(_describe_fact_table(name, tables[name]) for name in sorted(tables))
        if arguments.table not in tables:
            raise ToolError(
                f"there is no such table; {suggest_known_name(arguments.table, sorted(tables))}"
            )
        return _look_up_rows(tables[arguments.table], arguments.where, arguments.first_row)


def _read_rows(table: FactTableSpec) -> Iterator[RowValues]:
    if table.tool is not None:
        raise ToolError("another tool has the rows of this table, which cannot be looked up here")
    if table.file is None:
        yield from table.rows or ()
        return
    # Planning has read it: one that cannot be read by now is an error, and not what the tool answers.
    yield from (row for _, row in read_rows(Path(table.file)))


def _describe_fact_table(name: str, table: FactTableSpec) -> str:
    if table.tool is not None:
        return to_json({"table": name, "rows": "cannot be looked up here"})
    columns: set[str] = set()
    number = 0
    for row in _read_rows(table):
        columns.update(row)
        number += 1
    return to_json({"table": name, "key": table.key, "columns": sorted(columns), "rows": number})[
        :MAX_ROW_CHARACTERS
    ]


def _look_up_rows(table: FactTableSpec, where: RowValues, first_row: int) -> str:
    columns: set[str] = set()
    lines = []
    total = 0
    for row in _read_rows(table):
        columns.update(row)
        if not all(
            column in row and _are_values_equal(row[column], value)
            for column, value in where.items()
        ):
            continue
        total += 1
        if first_row <= total < first_row + MAX_RETURNED_ROWS:
            lines.append(to_json(row))
    unknown_columns = sorted(where.keys() - columns)
    if unknown_columns:
        hint = suggest_known_name(unknown_columns[0], sorted(columns))
        raise ToolError(f"there is no such column; {hint}"[:MAX_ROW_CHARACTERS])
    if total and not lines:
        raise ToolError(f"the last matching row is number {total}; ask for one before")
    shown_lines = take_rows_that_fit(lines, MAX_ROW_CHARACTERS)
    if lines and not shown_lines:
        shown_lines = [f"{lines[0][:MAX_ROW_CHARACTERS]}\n[this row is cut]"]
    next_row_number = first_row + len(shown_lines)
    rows = [f"[{total:,} matching rows]", *shown_lines]
    if next_row_number <= total:
        rows.append(f"[more follow: read on with first_row={next_row_number}]")
    return "\n".join(rows)


def _are_values_equal(value: Any, requested_value: Any) -> bool:
    if are_equal(value, requested_value):
        return True
    are_words = isinstance(value, str) and isinstance(requested_value, str)
    return (
        are_words and normalise_text(value).casefold() == normalise_text(requested_value).casefold()
    )
