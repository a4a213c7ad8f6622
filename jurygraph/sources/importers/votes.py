"""Files of people's labels: QAGS's answers as votes, and tables of rated texts as tasks and votes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field

from jurygraph.errors import InputError
from jurygraph.messages import Problem, did_you_mean, quote, validate
from jurygraph.schema import TaskLine
from jurygraph.schema.rating import RatedText, Rating, Vote
from jurygraph.sources.files import TextFile, read_lines
from jurygraph.sources.importers.rows import ImportedRow, Key
from jurygraph.sources.ratings import read_rated_texts, read_texts

# QAGS (W4ngatang/qags): workers' votes on whether an article supports each sentence of its summary


class Answer(ImportedRow):
    """A worker's answer about a sentence."""

    worker_id: Key
    response: Literal["yes", "no"]


class Sentence(ImportedRow):
    """A sentence of a summary, and the answers about it."""

    sentence: str
    responses: tuple[Answer, ...]


class ImportedSummary(ImportedRow):
    """An article and its summary."""

    article: str
    summary_sentences: tuple[Sentence, ...] = Field(min_length=1)


def read_qags(paths: Sequence[str | Path]) -> Iterator[Vote]:
    """Yield each worker's vote on each sentence, as STABLEVAL reads it: 1 supported, 0 not.

    Sentence 0 of the first summary is the item `cnn_1_sent0` of the agent `CNN`, and belongs to the group `cnn_1`. The
    files, of one set each (`.gz` too), are named after it: `mturk_cnndm.jsonl`, `mturk_xsum.jsonl`.

    Raises `InputError` for a name of neither set, or two files of one; for an invalid row, with file, line and field;
    or for a file without answers.
    """
    seen: set[str] = set()
    for path in paths:
        names = [name for name in ("cnn", "xsum") if name in Path(path).name.lower()]
        if len(names) != 1 or names[0] in seen:
            hint = "have either `cnn` or `xsum` in it, as in mturk_xsum.jsonl, and name one file of each set"
            raise InputError(f"{path}: its name does not say which set it is of, or that of another file; {hint}")
        seen.update(names)
        votes = 0
        with closing(TextFile(path)) as file:
            for number, (_, summary) in enumerate(read_lines(file, ImportedSummary), start=1):
                for vote in _votes(f"{names[0]}_{number}", names[0].upper(), summary):
                    votes += 1
                    yield vote
        if not votes:
            raise InputError(f"{path}: holds no answers; name a file of QAGS's annotations, with `summary_sentences`")


def _votes(group: str, agent: str, summary: ImportedSummary) -> Iterator[Vote]:
    for index, sentence in enumerate(summary.summary_sentences):
        for answer in sentence.responses:
            annotator = f"worker_{answer.worker_id}"
            label = float(answer.response == "yes")
            yield Vote(item=f"{group}_sent{index}", agent=agent, annotator=annotator, label=label, group=group)


# Tables of rated texts

COLUMNS = (*RatedText.model_fields, "reviewer", "score", "prompt")
"""What the columns of such a table may be called, or be mapped to."""


class RatedTable(NamedTuple):
    """The tasks and the votes of a table, both in its order."""

    tasks: list[TaskLine]
    votes: list[RatedText]


def read_rated_table(path: str | Path, columns: Mapping[str, str]) -> RatedTable:
    """Read a table with a text in each row, and a label that an annotator gave to it.

    `columns` maps our names (`COLUMNS`) to those of the file. The response to a task has the key of its vote as id; the
    task's reviewers are the annotators. Raises `InputError` with file, line and field, also if an item has two prompts.
    """
    for name in columns:
        if name not in COLUMNS:
            hint = did_you_mean(name, COLUMNS) or f"known: {', '.join(COLUMNS)}"
            raise InputError(f"--column {name}: is not a column of ratings; {hint}")
    named = {name: column for name, column in columns.items() if name != "prompt"}
    file = read_rated_texts(path, named)
    votes = [vote for _, vote in file.rows]
    keys = {name: columns[name] for name in ("item", "agent") if name in columns}
    texts = read_texts(path, keys | {"text": columns.get("text", "text")})
    prompt = columns.get("prompt", "prompt" if "prompt" in file.unread else None)
    prompts = {} if prompt is None else read_texts(path, keys | {"text": prompt})
    by_item: dict[str, list[RatedText]] = {}
    for vote in votes:
        by_item.setdefault(vote.item, []).append(vote)
    for item, rated in by_item.items():
        if len({prompts.get(vote.key) for vote in rated}) > 1:
            raise InputError(f"{path}, field {prompt}: item {quote(item)} has two prompts; give each item one")
    tasks = [
        item_to_task(str(path), item, rated, [vote.annotator for vote in rated], texts, prompts)
        for item, rated in by_item.items()
    ]
    return RatedTable(tasks, votes)


def item_to_task(
    path: str,
    item: str,
    rated: Sequence[Vote] | Sequence[Rating],
    people: Iterable[str],
    texts: Mapping[str, str],
    prompts: Mapping[str, str] = {},
) -> TaskLine:
    """Return the task of an item that people rated. Raises `InputError` where it cannot be one."""
    first = rated[0]
    agents = {one.key: one.agent for one in rated}
    content = {
        "id": item,
        "query": prompts.get(first.key, ""),
        "reviewers": sorted(set(people)),
        "group": first.group,
        "metadata": {} if first.domain is None else {"domain": first.domain},
        "responses": [{"id": key, "text": texts[key], "agent": agent} for key, agent in agents.items()],
    }
    task = validate(TaskLine, content)
    if isinstance(task, Problem):
        raise InputError(f"{path}, item {quote(item)}, field {task.field}: {task}")
    return task
