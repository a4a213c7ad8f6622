"""The table of responses: what the URL asks for, as a query of the index. Pages follow each other by keys, not offsets.

An offset would count through all rows before it, and would repeat or skip rows while a run grows.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, starmap
from typing import Annotated, Any, NamedTuple, Self
from unicodedata import normalize
from urllib.parse import urlencode

from pydantic import Field, TypeAdapter, ValidationError

from jurygraph.display import is_filled_in
from jurygraph.errors import InputError
from jurygraph.messages import suggest_known_name
from jurygraph.viewer.index import RunIndex
from jurygraph.views.agents import NO_AGENT_LABEL
from jurygraph.views.rewards import ResponseSelection, find_question_id

ROWS_PER_PAGE = 50
NO_FAILURE_LABEL = "(too little judged, no failed verdict)"
"""The value of `failure` for responses that failed without a failed verdict."""
_MAX_GRID_COLUMNS = 40
_MAX_FIELDS, _MAX_LABEL_VALUES = 12, 30
"""A label of more values is no choice; each can be a column, whose values lead to their responses."""
_SQL_BY_STATUS = {
    "ok": "responses.status = 'ok'",
    "degraded": "responses.status = 'degraded'",
    "failed": "responses.status = 'failed'",
    "gated": "responses.gates <> ''",  # this and the next at any of those above
    "unsupported": "responses.unsupported > 0",
}
_FIXED_COLUMNS = ("response", "reward", "status", "task", "agent", "coverage")
"""The reward next to its response, so that both are to be seen on a narrow screen."""
_FIXED_GRID_COLUMNS = ("response", "reward", "status", "task", "agent")
_SQL_BY_COLUMN = {
    "response": "responses.name",
    "task": "tasks.name",
    "agent": "agents.name",
    "status": "responses.status || iif(responses.gates <> '', ', gated', '')",
    "reward": "responses.reward",
    "best": "responses.best",
    "coverage": "responses.coverage",
    "failed": "responses.failed",
    "unsupported": "responses.unsupported",
    "calls": "responses.calls",
    "cost": "responses.cost",
    "disagreement": "responses.disagreement",
    "gates": "nullif(responses.gates, '')",
    "at": "responses.at",
}
"""By fixed column: the expression of its value."""
_SQL_BY_KIND = {
    "component": "(SELECT counted FROM components WHERE component = {number} AND response = responses.number)",
    "question": "(SELECT score FROM verdicts WHERE question = {number} AND response = responses.number)",
    "label": "(SELECT {label_value} FROM labels WHERE label = {number} AND response = responses.number)",
}
"""By kind of name: the expression of the value in its column."""
_THRESHOLD_SQL_BY_KIND = {
    "component": """responses.number IN
        (SELECT response FROM components WHERE component = {number} AND counted {sign} ?)""",
    "question": f"{_SQL_BY_KIND['question']} {{sign}} ?",
    "label": """responses.number IN
        (SELECT response FROM labels WHERE label = {number} AND typeof(value) <> 'text' AND value {sign} ?)""",
}
"""By kind of name: the condition that the number in its column is on a side of a bound.

Values that are stored next to each other are read in one pass: twice as fast as to look each up.
"""
_FROM_JOINED_TABLES_SQL = """
    FROM responses LEFT JOIN names AS tasks ON tasks.number = responses.task
    LEFT JOIN names AS agents ON agents.number = responses.agent
"""
_HAS_WORDS_SQL = """responses.task IN (SELECT rowid FROM queries WHERE queries MATCH ?)
    OR responses.number IN (SELECT rowid FROM texts WHERE texts MATCH ?)"""
"""The tasks first, which are fewer: the texts of their responses are not looked up."""
_FAILED_WITHOUT_REASON_SQL = "responses.status = 'failed' AND responses.failed = 0"
_COUNT_SQL_BY_FIELD = {
    "status": """SELECT status, count(*) FROM responses GROUP BY status UNION ALL
        SELECT 'gated', count(*) FROM responses WHERE gates <> '' HAVING count(*) UNION ALL
        SELECT 'unsupported', count(*) FROM responses WHERE unsupported > 0 HAVING count(*) ORDER BY 2 DESC, 1""",
    "agent": f"""SELECT coalesce(names.name, '{NO_AGENT_LABEL}'), count(*) FROM responses
        LEFT JOIN names ON names.number = agent GROUP BY agent ORDER BY 2 DESC, 1""",
    "failure": f"""SELECT names.name, count(DISTINCT response) FROM verdicts JOIN names ON names.number = failure
        WHERE failure IS NOT NULL GROUP BY failure UNION ALL SELECT '{NO_FAILURE_LABEL}', count(*) FROM responses
        WHERE {_FAILED_WITHOUT_REASON_SQL} HAVING count(*) ORDER BY 2 DESC, 1""",
}
"""By field: its values, the most frequent first, each with the number of responses that have it."""
_COUNT_LABEL_VALUES_SQL = (
    "SELECT text, count(*) FROM labels WHERE label = ? GROUP BY value, text LIMIT ?"
)
_SEARCH_WORD_PATTERN = re.compile(r"[^\W_]+")
_MAX_EXCERPT_START = 24
"""Characters before a hit: a page clips an excerpt to its column, where the hit is to be seen."""
_RowNumber = Annotated[int, Field(ge=0, lt=1 << 63)]  # what SQLite can hold
_PAGE_CURSOR_ADAPTER: TypeAdapter[tuple[str | int | float | None, int]]
_PAGE_CURSOR_ADAPTER = TypeAdapter(tuple[str | int | float | None, _RowNumber])
"""The value of the sorted column in the last row of a page, and the number of its response."""


@dataclass(frozen=True, kw_only=True)
class TableQuery:
    """The selection, order and columns of the table, as they stand in the URL; an empty text selects everything.

    Attributes:
        search: words of the query, the response, a reason or a label; all of them must occur.
        status: ok, degraded or failed; `gated` for any that a gate changed, and `unsupported` for any with a finding
            that no quotation bears out.
        failure: cause and kind of a failed verdict.
        sort: the name of a column, after a minus for the reverse order; values that are missing come last. Without
            it, rows are in the order of the tasks.
        columns: names of more columns, by commas.
        grid: a component, whose questions are columns with the score of each response.
        after: the key of the last row of the page before.
        where: conditions that all hold, as those of `show --where`.
        labels: by `label.NAME`: the values, as text, of labels that a response must have.
    """

    search: str = ""
    status: str = ""
    agent: str = ""
    task: str = ""
    failure: str = ""
    sort: str = ""
    columns: str = ""
    grid: str = ""
    after: str = ""
    where: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_url(cls, parameters: Mapping[str, str], where: Iterable[str] = ()) -> Self:
        """Return the query of a URL, where a condition may stand several times."""
        labels = {
            name: text for name, text in parameters.items() if text and name.startswith("label.")
        }
        texts = {name: parameters[name] for name in TEXT_PARAMETERS if name in parameters}
        return cls(**texts, where=tuple(filter(None, where)), labels=labels)

    def to_url(self, **changes: str) -> str:
        """Return the query with some changes as the part of a URL after the question mark; a change begins anew."""
        parameters = {**self.parameters, "labels": "", "after": "", **changes}
        return urlencode({name: text for name, text in parameters.items() if text}, doseq=True)

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the query by its names in a URL, each label among them."""
        return {**vars(self), **self.labels}

    @property
    def sort_column(self) -> str:
        return self.sort.removeprefix("-")

    @property
    def is_descending(self) -> bool:
        return self.sort.startswith("-")


TEXT_PARAMETERS = [name for name, value in vars(TableQuery()).items() if value == ""]


class TextExcerpt(NamedTuple):
    """A line of a response: how its text begins, or a hit of the search with what stands `before` and `after` it.

    `source` says where the hit is, empty for the text of the response.
    """

    source: str
    before: str
    hit: str
    after: str


class ResponseRow(NamedTuple):
    """A row: the number of the response in the index, its id and task, the best possible reward, values by column.

    `filled_in` are the columns of components whose value is that of the failure rule.
    """

    number: int
    response: str
    task: str
    best: float
    values: Sequence[Any]
    filled_in: Collection[str]
    excerpt: TextExcerpt


@dataclass(frozen=True, kw_only=True)
class TablePage:
    """A page of the table. `following` is the key of the next page, empty on the last; `total` counts all rows."""

    query: TableQuery
    columns: Sequence[str]
    rows: Sequence[ResponseRow]
    total: int
    following: str


@dataclass(frozen=True, kw_only=True)
class ScoreGrid:
    """The scores of a page's responses on the questions of a component.

    Attributes:
        questions: those that responses of the page were asked, most of them first; only as many as have room.
        omitted: the number of further ones.
        cells: by the name of a response and a question: the mean of the scores, None where no verdict has one.
        penalties: those of the cells that lower the reward, the more the higher their score is.
    """

    questions: Sequence[str]
    omitted: int
    cells: Mapping[tuple[str, str], float | None]
    penalties: Collection[tuple[str, str]]


class FilterValueCount(NamedTuple):
    """A value that rows may be selected by, with the number of responses that have it."""

    value: str
    responses: int


def read_table_page(index: RunIndex, query: TableQuery, rows: int = ROWS_PER_PAGE) -> TablePage:
    """Return a page of the table. Raises `InputError` for an unknown column."""
    columns = list_columns(index, query)
    conditions = list(_sql_conditions(index, query))
    values = list(chain.from_iterable(texts for _, texts in conditions))
    # Tasks are numbered in their order, which is that of `jurygraph show`.
    key = "responses.task"
    if query.sort:
        key = column_sql_expression(index, query.sort_column, label_value="value")
    position = ""
    if query.after:
        position, after = _page_start_condition(query)
        values += after
    # Only the key is computed for every row, and once: SQLite keeps a table that is named twice. All columns of all
    # rows would take ten times as long, and counting apart as long again, but for all rows in the order of a column.
    hint = "" if conditions or position else "NOT"
    where = " AND ".join(["TRUE", *(condition for condition, _ in conditions)])
    direction = "DESC" if query.is_descending else "ASC"
    found = index.fetch_rows(
        f"WITH keys AS {hint} MATERIALIZED"
        f" (SELECT responses.number AS number, {key} AS key {_FROM_JOINED_TABLES_SQL} WHERE {where})"
        f" SELECT number, key, (SELECT count(*) FROM keys) FROM keys {position}"
        f" ORDER BY key {direction} NULLS LAST, number LIMIT ?",
        *values,
        rows + 1,
    )
    total = found[0][2] if found else 0
    next_page_cursor = ""
    if len(found) > rows:
        number, value, _ = found[rows - 1]
        next_page_cursor = json.dumps([value, number])
    numbers = [number for number, *_ in found[:rows]]
    table_rows = _read_rows(index, numbers, columns, query.search)
    return TablePage(
        query=query, columns=columns, rows=table_rows, total=total, following=next_page_cursor
    )


def _read_rows(
    index: RunIndex, numbers: Sequence[int], columns: Sequence[str], search: str
) -> list[ResponseRow]:
    """Return the rows of responses, in the order of their numbers here."""
    components = index.names("component")
    judged_columns = [name for name in columns if name in components if name not in _SQL_BY_COLUMN]
    expressions = [column_sql_expression(index, column) for column in columns]
    expressions += [
        _SQL_BY_KIND["component"].format(number=components[column]).replace("counted", "judged")
        for column in judged_columns
    ]
    found = index.fetch_rows(
        f"SELECT responses.number, responses.name, responses.best, tasks.name, {', '.join(expressions)}"
        f" {_FROM_JOINED_TABLES_SQL} WHERE responses.number IN ({', '.join('?' * len(numbers))})",
        *numbers,
    )
    rows = {}
    for number, name, best, task, *values in found:
        counted_values = dict(zip(columns, values, strict=False))
        filled_in = [
            column
            for column, judged in zip(judged_columns, values[len(columns) :], strict=True)
            if is_filled_in(judged, counted_values[column])
        ]
        excerpt = _find_excerpt(index.read_searched_texts(number, search and task), search)
        rows[number] = ResponseRow(
            number, name, task, best, values[: len(columns)], filled_in, excerpt
        )
    return [rows[number] for number in numbers]


def _find_excerpt(texts: Mapping[str, str], search: str) -> TextExcerpt:
    """Return the first hit, or how the response begins where it is found by an id or in another spelling."""
    words = "|".join(
        word if _is_unspaced(word) else rf"{word}\b"
        for word in _SEARCH_WORD_PATTERN.findall(normalize("NFC", search))
    )
    for source, text in texts.items() if words else ():
        hit = re.search(rf"(?i)\b({words})(.*)", text)
        if hit is not None:
            return TextExcerpt(source, text[: hit.start()][-_MAX_EXCERPT_START:], hit[1], hit[2])
    return TextExcerpt("", "", "", texts[""])


def build_component_score_grid(index: RunIndex, page: TablePage) -> ScoreGrid:
    """Return the grid of a page by the component of its query. Raises `InputError` for an unknown component."""
    components = index.names("component")
    name = page.query.grid
    if name not in components:
        raise InputError(f"there is no component {name!r}; {suggest_known_name(name, components)}")
    marks = ", ".join("?" * len(page.rows))
    # Of questions about turns no verdict has the score that counts: only those about a whole response are shown.
    found = index.fetch_rows(
        "SELECT responses.name, asked.name, max(verdicts.score) FROM responses"
        " JOIN verdicts ON verdicts.response = responses.number"
        " JOIN names AS asked ON asked.number = verdicts.question AND asked.kind = 'question'"
        f" WHERE responses.number IN ({marks})"
        " AND EXISTS (SELECT 1 FROM inputs WHERE component = ? AND question = verdicts.question)"
        " GROUP BY responses.number, verdicts.question ORDER BY verdicts.question",
        *(row.number for row in page.rows),
        components[name],
    )
    # First the questions that most responses were asked: with rubrics of their own, tasks share few.
    counts = Counter(question for _, question, _ in found)
    questions = [question for question, _ in counts.most_common()]
    cells = {(response, question): score for response, question, score in found}
    return ScoreGrid(
        questions=questions[:_MAX_GRID_COLUMNS],
        omitted=len(questions[_MAX_GRID_COLUMNS:]),
        cells=cells,
        penalties=_find_penalty_cells(index, page, cells),
    )


def _find_penalty_cells(
    index: RunIndex, page: TablePage, cells: Collection[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Return the cells of a grid whose weight is negative: rubrics of other tasks may weigh a question otherwise."""
    tasks = {row.response: row.task for row in page.rows}
    negative = set()
    for task in set(tasks.values()):
        for spec in index.run.decision_of(task).specs:
            for use in spec.inputs.values():
                if spec.name == page.query.grid and spec.weight * use.signed_weight < 0.0:
                    negative |= {(task, question) for question in use.questions}
    return {cell for cell in cells if (tasks[cell[0]], cell[1]) in negative}


def list_columns(index: RunIndex, query: TableQuery) -> list[str]:
    """Return the columns of a page: the fixed ones, the components where there is no grid, and those chosen."""
    chosen = [name for name in query.columns.split(",") if name]
    fixed_columns = (
        _FIXED_GRID_COLUMNS if query.grid else (*_FIXED_COLUMNS, *index.names("component"))
    )
    return list(dict.fromkeys([*fixed_columns, *chosen]))


def column_sql_expression(index: RunIndex, column: str, label_value: str = "text") -> str:
    """Return the SQL expression of a column's value, of a label its text or its `value`, in whose order it is sorted.

    Raises `InputError` for an unknown column.
    """
    if column in _SQL_BY_COLUMN:
        return _SQL_BY_COLUMN[column]
    return _fill_in_number(index, column, _SQL_BY_KIND, label_value=label_value)


def _fill_in_number(
    index: RunIndex, column: str, sql_by_kind: Mapping[str, str], **texts: str
) -> str:
    """Return the SQL of a column's kind with its number and some texts. Raises `InputError` for an unknown column."""
    columns = list(_SQL_BY_COLUMN)
    for kind, sql in sql_by_kind.items():
        numbers = index.names(kind)
        name = column
        if kind == "question":
            name = find_question_id(column.removeprefix("question."), numbers)
        if name in numbers:
            return sql.format(number=numbers[name], **texts)
        columns += numbers
    raise InputError(f"there is no column {column!r}; {suggest_known_name(column, columns)}")


def filter_values_by_field(index: RunIndex) -> dict[str, list[FilterValueCount]]:
    """Return the statuses, agents and failures of a run by the field of the query, the most frequent first.

    Values of labels follow, in their order, of the first labels that have several, but not too many to choose from.
    """
    counts = {name: index.fetch_rows(query) for name, query in _COUNT_SQL_BY_FIELD.items()}
    for column, number in index.names("label").items():
        rows = index.fetch_rows(_COUNT_LABEL_VALUES_SQL, number, _MAX_LABEL_VALUES + 1)
        if 1 < len(rows) <= _MAX_LABEL_VALUES and len(counts) < _MAX_FIELDS:
            counts[column] = rows
    return {name: list(starmap(FilterValueCount, rows)) for name, rows in counts.items()}


def _sql_conditions(index: RunIndex, query: TableQuery) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the conditions of a query, each with its values. Raises `InputError` for an unknown status or column."""
    selection = ResponseSelection(where=query.where)
    labels = [(f"label.{name}", text) for name, text in selection.labels]
    for column, text in (*query.labels.items(), *labels):
        yield f"{column_sql_expression(index, column)} = ?", [text]
    for name, sign, bound in selection.thresholds:
        yield _threshold_condition(index, name, sign), [bound]
    if query.search.strip():
        yield _search_condition(index, query.search.strip())
    if query.status:
        if query.status not in _SQL_BY_STATUS:
            raise InputError(
                f"there is no status {query.status!r}; {suggest_known_name(query.status, _SQL_BY_STATUS)}"
            )
        yield _SQL_BY_STATUS[query.status], ()
    if query.agent:
        yield "coalesce(agents.name, ?) = ?", [NO_AGENT_LABEL, query.agent]
    if query.task:
        yield "tasks.name = ?", [query.task]
    if query.failure == NO_FAILURE_LABEL:
        yield _FAILED_WITHOUT_REASON_SQL, ()
    elif query.failure:
        condition = "responses.number IN (SELECT response FROM verdicts WHERE failure = ?)"
        yield condition, [index.names("failure").get(query.failure, -1)]


def _threshold_condition(index: RunIndex, column: str, sign: str) -> str:
    """Return the condition on the number of a column. SQLite has every text above every number: it meets none."""
    if column in _SQL_BY_COLUMN:
        value = _SQL_BY_COLUMN[column]
        return f"typeof({value}) <> 'text' AND {value} {sign} ?"
    return _fill_in_number(index, column, _THRESHOLD_SQL_BY_KIND, sign=sign)


def _search_condition(index: RunIndex, search_text: str) -> tuple[str, Sequence[str]]:
    """Return the condition that a response or its task has this id, or all of these words, with its values."""
    index.complete()
    # By its number, so that no row is joined with the name of its task.
    task = "SELECT number FROM names WHERE kind = 'task' AND name = ?"
    condition = f"responses.task = ({task}) OR responses.name = ?"
    # As the index cuts texts into words: it has no positions, so that nothing between them may be asked for.
    words = _SEARCH_WORD_PATTERN.findall(normalize("NFC", search_text))
    values = [search_text] * 2
    if words:
        condition = f"{_HAS_WORDS_SQL} OR {condition}"
        terms = [f'"{word}"{"*" * _is_unspaced(word)}' for word in words]
        values = [" ".join(terms)] * 2 + values
    return f"({condition})", values


def _is_unspaced(word: str) -> bool:
    """Return whether a word ends in Chinese, Japanese or Thai: without spaces, the index has it with what follows.

    Such a word is found where a line or a clause begins with it; in its midst the index, which has no more, has none.
    """
    return _UNSPACED_CHARACTER_PATTERN.match(word[-1]) is not None


_UNSPACED_CHARACTER_PATTERN = re.compile("[\u0e00-\u0eff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def _page_start_condition(query: TableQuery) -> tuple[str, list[Any]]:
    """Return the clause for rows after the key of a page, and its values. Raises `InputError` for a wrong key."""
    try:
        value, number = _PAGE_CURSOR_ADAPTER.validate_json(query.after)
    except ValidationError:
        raise InputError(f"after: {query.after!r} is no key of a page; begin without it") from None
    if value is None:
        return "WHERE key IS NULL AND number > ?", [number]
    sign = "<" if query.is_descending else ">"
    condition = f"WHERE key {sign} ? OR (key = ? AND number > ?) OR key IS NULL"
    return condition, [value, value, number]
