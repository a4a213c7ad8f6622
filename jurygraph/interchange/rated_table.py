"""Tables of rated texts: a row for each text that an annotator labelled."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean, quote
from jurygraph.schema import TaskLine
from jurygraph.schema.rating import RatedAnswer, RatedText, Rating, Vote
from jurygraph.sources.file_rows import NO_NAMES, NameByField
from jurygraph.sources.files import validate_at_location
from jurygraph.sources.people import EVERYBODY, PeopleChoice, select_people
from jurygraph.sources.ratings import (
    iter_file_columns,
    join_files,
    read_prompts,
    read_votes,
    unique_value_by_item,
)
from jurygraph.sources.table_rows import find_column

RATED_TABLE_COLUMNS = (*RatedText.model_fields, "reviewer", "score", "prompt")
"""What the columns of such a table may be called, or be mapped to."""


class _PlacedAnswer(RatedAnswer):
    location: str = Field(exclude=True)


class RatedTable(NamedTuple):
    """The tasks and the votes of a table, both in its order."""

    tasks: list[TaskLine]
    votes: list[RatedAnswer]


def read_rated_table(
    paths: Sequence[Path],
    columns: NameByField,
    options: NameByField = NO_NAMES,
    people: PeopleChoice = EVERYBODY,
) -> RatedTable:
    """Read tables with a text in each row, and a label that an annotator gave to it, as one.

    `columns` maps our names (`RATED_TABLE_COLUMNS`) to those of the file; `options` as for `read_ratings`.
    The `people` are those who count. The response to a task has the key of its vote as id; the task's reviewers are
    the annotators. Raises `InputError` with file, line and field, also if an item has two prompts
    or texts.
    """
    for name, column in columns.items():
        if name not in RATED_TABLE_COLUMNS:
            hint = (
                did_you_mean(name, RATED_TABLE_COLUMNS)
                or f"known: {', '.join(RATED_TABLE_COLUMNS)}"
            )
            if column in RATED_TABLE_COLUMNS:
                hint = f"did you mean {column}={name}?"
            raise InputError(f"--column {name}: is not a column of ratings; {hint}")
    files = []
    prompts: dict[str, str] = {}
    for path, file_columns in iter_file_columns(paths, columns, "prompt"):
        rating_columns = {name: file_columns[name] for name in file_columns if name != "prompt"}
        file = read_votes(path, rating_columns, options, model=RatedText)
        files.append(file)
        if find_column("prompt", {**file_columns, **file.unread_columns}):
            prompts |= read_prompts(path, {"prompt": "prompt", **file_columns})
    table = join_files(select_people(files, "annotator", people))
    votes = [vote for _, vote in table.rows]
    texts = {key: text for key, (text, _) in unique_value_by_item(table, "text").items()}
    ratings_by_item = defaultdict(list)
    for vote in votes:
        ratings_by_item[vote.item].append(vote)
    tasks = []
    for item, item_votes in ratings_by_item.items():
        names = [vote.annotator for vote in item_votes]
        tasks.append(item_to_task(table.path, item, item_votes, names, texts, prompts))
    answers: list[RatedAnswer] = []
    for position, vote in table.rows:
        fields = vote.model_dump()
        answers.append(_PlacedAnswer(**fields, prompt=prompts.get(vote.key), location=position))
    return RatedTable(tasks, answers)


def item_to_task(
    path: str,
    item: str,
    ratings: Sequence[Vote] | Sequence[Rating],
    people: Iterable[str],
    texts: Mapping[str, str],
    prompts: Mapping[str, str] = {},
) -> TaskLine:
    """Return the task of an item that people rated. Raises `InputError` where it cannot be one, as of two prompts."""
    first = ratings[0]
    agents = {rating.key: rating.agent for rating in ratings}
    queries = {prompts[key] for key in agents if key in prompts}
    if len(queries) > 1:
        raise InputError(f"{path}: item {quote(item)} has two prompts; give each item one")
    responses = [{"id": key, "text": texts[key], "agent": agent} for key, agent in agents.items()]
    content = {
        "id": item,
        "query": next(iter(queries), ""),
        "reviewers": sorted(set(people)),
        "group": first.group,
        "metadata": {} if first.domain is None else {"domain": first.domain},
        "responses": responses,
    }
    return validate_at_location(f"{path}, item {quote(item)}", TaskLine, content)
