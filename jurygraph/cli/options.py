"""Arguments and options shared by several commands, so that each has one name and one help text."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer
from typer.core import TyperCommand

from jurygraph.errors import InputError
from jurygraph.messages import Problem, quote, validate

if TYPE_CHECKING:
    from jurygraph.sources import TableColumns

T = TypeVar("T")


class CommandWithSingleColumns(TyperCommand):
    """A command that refuses a second column, or saved consensus: the parser takes the last, as if it were all.

    Other options may be given again, as scripts do to replace a value.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        parameters: list[Any] = self.make_parser(ctx).parse_args(list(args))[2]
        names = [parameter.opts[0] for parameter in parameters if not parameter.multiple]
        for name in names:
            if name.endswith(("-column", "-columns", "-ambiguous")) and names.count(name) > 1:
                raise InputError(
                    f"{name}: is given twice, under this name or another of it; give it once"
                )
        return super().parse_args(ctx, args)


def argument(metavar: str, help_text: str) -> Any:
    """Return an argument of a command; its help shows no default."""
    return typer.Argument(metavar=metavar, help=help_text, show_default=False)


def option(
    metavar: str | None,
    help_text: str,
    *names: str,
    show_default: str | bool = True,
    **settings: Any,
) -> Any:
    """Return an option of a command; its help shows the default, or what `show_default` says of one that is None."""
    return typer.Option(
        *names, metavar=metavar, help=help_text, show_default=show_default, **settings
    )


def column_option(help_text: str, *names: str, **settings: Any) -> Any:
    """Return an option that names a column; blanks around the name do not count."""
    return option("C", help_text, *names, parser=str.strip, **settings)


TasksFileArgument = Annotated[str, argument("TASKS", "JSONL file of tasks, .gz too; - for stdin.")]
RunFolderArgument = Annotated[Path, argument("RUN", "Folder of a run.")]
ConfigFileOption = Annotated[
    Path | None,
    option("F", "Config.", show_default="jury.yaml next to TASKS, or in the current folder"),
]
ModelNameOption = Annotated[str | None, option("M", "Model, instead of the config's.")]
EdgesFileOption = Annotated[str | None, option("GRAPHS", "TASKS file with reviewed rubric graphs.")]
DryRunOption = Annotated[
    bool, option(None, "Say what it would do and cost; send and write nothing.", "--dry-run")
]
AllowFilesOutsideOption = Annotated[
    bool,
    option(None, "Allow table files outside the folder of the tasks.", "--allow-files-outside"),
]
MaxCostOption = Annotated[
    float | None, option("C", "Maximum cost of model requests in US dollars.", min=0)
]
MaxCallsOption = Annotated[int | None, option("N", "Maximum number of model requests.", min=0)]
GateConditionsOption = Annotated[
    list[str] | None,
    option("TEXT", "Conditions on the statistics; exit code 1 if one is missed.", "--gate"),
]
StepLabelOption = Annotated[
    str | None, option("L", "Group into steps by this label of the responses.")
]
PlotFileOption = Annotated[
    Path | None, option("F", "Write a plot: .svg, .png, .pdf (extra `plot`).", "--plot")
]
HtmlFileOption = Annotated[
    Path | None, option("F", "Write the report as a page of HTML, too.", "--html")
]
StatusOption = Annotated[
    Literal["ok", "degraded", "failed", "gated"] | None,
    option(
        None,
        "Only rewards with this status; gated: changed by a response gate or a reward gate.",
        "--status",
    ),
]
AgentOption = Annotated[str | None, option("A", "Only responses of this agent.", "--agent")]
LabelFilterOption = Annotated[
    list[str] | None,
    option(
        "NAME=VALUE",
        "Only responses with this label, such as step=312; repeat it for several, which all hold.",
        "--label",
    ),
]
ByLabelOption = Annotated[
    str | None, option("LABEL", "Compare the agents in each value of this label, too.", "--by")
]
WhereOption = Annotated[
    list[str] | None,
    option(
        "CONDITION",
        "Only responses where this holds: faithful<0.5, label.step=312; `and` joins several.",
        "--where",
    ),
]
SortColumnOption = Annotated[
    str | None, option("COLUMN", "Sort by a column; -COLUMN puts the greatest first.", "--sort")
]
MarkdownOption = Annotated[bool, option(None, "Print Markdown.", "--markdown")]
PortOption = Annotated[int, option(None, "Port; 0 takes a free one.", min=0, max=65535)]
JsonOption = Annotated[bool, option(None, "Print JSON.", "--json")]
RatingsFileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RATINGS", help="A file: CSV or JSONL (.gz too), Parquet, or Excel (.xlsx)."
    ),
]
RatingsFilesArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="RATINGS", help="Files: CSV or JSONL (.gz too), Parquet, or Excel (.xlsx)."
    ),
]
ItemColumnOption = Annotated[
    str | None, column_option("Column that names what was rated.", "--id-column", "--item")
]
ReviewerColumnOption = Annotated[
    str | None,
    column_option("Column that names who rated.", "--reviewer-column", "--reviewer", "--annotator"),
]
ScoreColumnOption = Annotated[
    str | None,
    column_option(
        "Column of scores or labels; of several questions, each as COLUMN or QUESTION=COLUMN, joined by commas.",
        "--target-column",
        "--score",
        "--label",
    ),
]
AgentColumnOption = Annotated[
    str | None, column_option("Column that names the agent.", "--agent-column", "--agent")
]
GroupColumnOption = Annotated[str | None, column_option("Column for `group`.", "--group")]
DimensionOption = Annotated[str | None, option("D", "Use this dimension only.")]
ClassWordsOption = Annotated[
    list[str] | None,
    option(
        "A,B",
        "Words that labels are, from low to high; of one question QUESTION=A,B; repeat it.",
    ),
]
KeepLastOption = Annotated[
    bool,
    option(
        None,
        "Of several labels of an item by a person, keep the last in the file, or files.",
        "--keep-last",
    ),
]
SameNamesOption = Annotated[
    bool,
    option(
        None,
        "Names of people that differ only in case or blanks are one: the spelling of most labels.",
        "--same-names",
    ),
]
SamePersonOption = Annotated[
    list[str] | None,
    option("OTHER=NAME", "Another name of a person, as petra_h=Petra; repeat it for others."),
]
LastByOption = Annotated[
    str | None,
    column_option("Keep the last of several labels by the time in this column, not by the row."),
]
WithoutOption = Annotated[str | None, option("A,B", "Leave out what these people rated.")]
LabelFilesOption = Annotated[
    list[str] | None,
    option(
        "F",
        "Labels of people: a file, repeated for several, or label.NAME of the runs.",
        "--labels",
    ),
]
ColumnNamesOption = Annotated[
    list[str] | None,
    option("NAME=C", "Column of the file for item, text, agent, label, …; repeat it.", "--column"),
]
COLUMN_OPTION_BY_RATING_FIELD = {
    **dict.fromkeys(("item", "id"), "--id-column"),
    **dict.fromkeys(("reviewer", "annotator"), "--reviewer-column"),
    **dict.fromkeys(("score", "label", "target"), "--target-column"),
}
"""The option that names the column of a field that ratings, votes or labels must have."""
LABEL_COLUMN_OPTIONS = {**COLUMN_OPTION_BY_RATING_FIELD, "agent": "--agent-column"}
"""The option that names the column of a field of labels that a judge is compared with."""


_PEOPLE_OPTIONS = {
    "without": (WithoutOption, None),
    "same_names": (SameNamesOption, False),
    "same_person": (SamePersonOption, None),
    "keep_last": (KeepLastOption, False),
    "last_by": (LastByOption, None),
}


def with_people_options(command: Callable[..., T]) -> Callable[..., T]:
    """Return a command that has the options of a `PeopleChoice`, at the end, for its parameter `people`."""
    parameters = dict(signature(command).parameters)
    del parameters["people"]

    @wraps(command)
    def command_with_options(**arguments: Any) -> T:
        from jurygraph.sources.people import PeopleChoice

        choice = {name: arguments.pop(name) for name in _PEOPLE_OPTIONS}
        return command(**arguments, people=PeopleChoice(**choice))

    options = make_parameters(_PEOPLE_OPTIONS)
    set_parameters(command_with_options, [*parameters.values(), *options])
    return command_with_options


def make_parameters(options: Mapping[str, tuple[Any, object]]) -> list[Parameter]:
    """Return parameters by their names, each with its annotation and default."""
    return [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in options.items()
    ]


def set_parameters(command: Callable[..., Any], parameters: Sequence[Parameter]) -> None:
    """Let typer read other parameters of a command than those of its function."""
    command.__dict__["__signature__"] = Signature(parameters)
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def list_option_words(values: Mapping[str, Any]) -> list[str]:
    """Return the words of a command for options with values: several of a list, none of what is empty."""
    words = []
    for name, value in values.items():
        for text in value if isinstance(value, list) else [value]:
            if text:
                words += [name] if text is True else [name, text]
    return words


def select_named_columns(**columns: str | None) -> dict[str, str]:
    return {name: column for name, column in columns.items() if column}


def parse_column_options(pairs: Sequence[str] | None) -> dict[str, str]:
    """Return the columns by the names that `--column NAME=COLUMN` gives to them."""
    columns = {}
    for pair in pairs or ():
        name, _, column = pair.partition("=")
        columns[name] = column.strip()
        if not (name and columns[name]):
            raise InputError(f"--column {pair}: expected NAME=COLUMN, such as label=stars")
    return columns


_COLUMN_OPTION_BY_ROLE = {
    "prompt": "--prompt-column",
    "response": "--response-column",
    "reference": "--reference-column",
    "rubric": "--rubric-column",
    "id": "--id-column",
    "group_by": "--group-by",
    "agent": "--agent-column",
    "messages": "--messages-column",
    "response_from": "--response-from",
    "context": "--context-column",
    "workspace": "--workspace-column",
    "group": "--group-column",
}
"""The option for each role of a column."""


def role_option(role: str, help_text: str, **settings: Any) -> Any:
    """Return the option for the column of a role; its help shows what `option` shows."""
    return column_option(help_text, _COLUMN_OPTION_BY_ROLE[role], **settings)


def _parse_response_start(text: str) -> int | str:
    if text.isdecimal():
        return int(text)
    if text != "first-reply":
        raise typer.BadParameter(f"is {quote(text)}; write the index of a message, or first-reply")
    return text


ResponseStartOption = Annotated[
    Any,
    option(
        "N",
        "Index of the message with which the response begins; `first-reply` is the first of an assistant.",
        _COLUMN_OPTION_BY_ROLE["response_from"],
        show_default="after the last user's",
        parser=_parse_response_start,
    ),
]


GroupByOption = Annotated[
    str | None, role_option("group_by", "Table rows with the same value here are one task.")
]

ConfigSettingsOption = Annotated[
    list[str] | None, option("KEY=VALUE", "Setting of the config; can be repeated.", "--set")
]


def build_table_columns(
    tasks: str, /, no_prompt: bool = False, **names: str | int | list[str] | None
) -> "TableColumns | None":
    """Return the columns of the table `tasks` by their roles; None if none is named. Raises `InputError`.

    With `no_prompt`, its texts answer none.
    """
    from jurygraph.sources import TableColumns
    from jurygraph.sources.task_tables import chat_file_columns, missing_column_options_error

    column_by_role = {role: name for role, name in names.items() if name not in (None, [], "")}
    if no_prompt:
        if "prompt" in column_by_role:
            raise InputError("--no-prompt: is given beside --prompt-column; remove one of them")
        column_by_role["prompt"] = ""
    has_text_columns = bool(column_by_role.keys() & {"prompt", "response", "messages"})
    chats = chat_file_columns(tasks) if column_by_role and not has_text_columns else None
    if chats is not None and chats.messages is not None:
        column_by_role["messages"] = chats.messages  # a file of chats needs no option for them
    elif column_by_role.keys() == {"response_from"}:
        column_by_role["messages"] = "messages"
    columns = validate(TableColumns, column_by_role) if column_by_role else None
    if isinstance(columns, Problem):
        if tasks != "-":
            _refuse_missing_or_empty_file(tasks)
            if not has_text_columns:
                raise missing_column_options_error(tasks)
        raise InputError(f"{_COLUMN_OPTION_BY_ROLE[str(columns.path[0])]}: {columns}")
    return columns


def _refuse_missing_or_empty_file(path: str) -> None:
    """Raise `InputError` for a file that is not there, or has nothing: it says more than that a column is missing."""
    from jurygraph.sources.files import explain_unreadable_file

    with explain_unreadable_file(path):
        size = Path(path).stat().st_size
    if size == 0:
        raise InputError(f"{path}: has no rows; name a file with one at least")


def format_column_arguments(columns: "TableColumns | None") -> list[str]:
    """Return the options that name the columns of a table, word by word."""
    if columns is None:
        return []
    values = {option: getattr(columns, role) for role, option in _COLUMN_OPTION_BY_ROLE.items()}
    values[_COLUMN_OPTION_BY_ROLE["response"]] = list(columns.response)
    if columns.response_from is not None:  # which may be 0
        values[_COLUMN_OPTION_BY_ROLE["response_from"]] = str(columns.response_from)
    return list_option_words({**values, "--no-prompt": columns.prompt == ""})
