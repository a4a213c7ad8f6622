"""Options that make a table the input of a command: the columns with its prompts, responses and more."""

from typing import TYPE_CHECKING, Annotated, Any

from jurygraph.cli.options import option
from jurygraph.cli.render.text import shell_quote
from jurygraph.errors import InputError
from jurygraph.messages import Problem, validate

if TYPE_CHECKING:
    from jurygraph.sources import TableColumns

_OPTIONS = {
    "prompt": "--prompt-column",
    "response": "--response-column",
    "reference": "--reference-column",
    "rubric": "--rubric-column",
    "id": "--id-column",
    "group_by": "--group-by",
    "agent": "--agent-column",
}
"""The option for each role of a column, in the order of the arguments of `choose_columns`."""


def _column(role: str, help_text: str) -> Any:
    return option("C", help_text, _OPTIONS[role])


PromptColumn = Annotated[str | None, _column("prompt", "Prompts of a table.")]
ResponseColumns = Annotated[
    list[str] | None, _column("response", "Responses of a table; repeat it for several agents.")
]
ReferenceColumn = Annotated[str | None, _column("reference", "References of a table.")]
RubricColumn = Annotated[str | None, _column("rubric", "Rubrics of a table: a criterion a line, or a JSON list.")]
IdColumn = Annotated[str | None, option("C", "Ids of a table's rows.", _OPTIONS["id"], show_default="row-1, row-2, …")]
GroupBy = Annotated[str | None, _column("group_by", "Table rows with the same value here are one task.")]
AgentColumn = Annotated[str | None, _column("agent", "Agents that wrote the responses of a table.")]


def choose_columns(*names: str | list[str] | None) -> "TableColumns | None":
    """Return the columns of a table by their options; None if no option is given. Raises `InputError`."""
    from jurygraph.sources import TableColumns

    given = {role: name for role, name in zip(_OPTIONS, names, strict=True) if name}
    for role in ("prompt", "response") if given else ():
        if role not in given:
            raise InputError(f"{_OPTIONS[role]}: is missing; a table needs a column of prompts and one of responses")
    columns = validate(TableColumns, given) if given else None
    if isinstance(columns, Problem):
        raise InputError(f"{_OPTIONS[str(columns.path[0])]}: {columns}")
    return columns


def columns_words(columns: "TableColumns | None") -> list[str]:
    """Return the options that name these columns, as they are typed."""
    roles = () if columns is None else columns.by_role
    return [f"{_OPTIONS[role]} {shell_quote(column)}" for role, column in roles]
