"""QAGS (W4ngatang/qags): workers say of each sentence of a summary whether its article supports it. Rows become votes.

A row has `article` and `summary_sentences`; a sentence has `sentence` and `responses` (`worker_id`, `response`). Which
of the two sets it is of (summaries of CNN/DailyMail by Bottom-Up, of XSUM by BART) the name of the file alone says.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

from pydantic import Field

from jurygraph.errors import InputError
from jurygraph.schema.rating import Vote
from jurygraph.sources.files import TextFile
from jurygraph.sources.importers.rows import Key, Row
from jurygraph.sources.json_lines import read_lines

SETS = ("cnn", "xsum")
SUPPORTED = {"no": 0.0, "yes": 1.0}


class Answer(Row):
    """What a worker said of a sentence."""

    worker_id: Key
    response: Literal["yes", "no"]


class Sentence(Row):
    """A sentence of a summary, and what was said of it."""

    sentence: str
    responses: tuple[Answer, ...]


class Summary(Row):
    """An article and its summary."""

    article: str
    summary_sentences: tuple[Sentence, ...] = Field(min_length=1)


def read_qags(paths: Sequence[str | Path]) -> Iterator[Vote]:
    """What each worker said of each sentence, as STABLEVAL reads it: 1 supported, 0 not.

    Sentence 0 of the first summary is the item `cnn_1_sent0` of the agent `CNN`, and belongs to the group `cnn_1`.

    Args:
        paths: files of one set each (`.gz` too), named after it: `mturk_cnndm.jsonl`, `mturk_xsum.jsonl`.

    Raises:
        InputError: a name that says neither set, or two files of one; a line that is no such row, with file, line and
            field; or a file without answers.
    """
    files: dict[str, str | Path] = {}
    for path in paths:
        name = _set_of(path)
        if name in files:
            raise InputError(f"{path}: is of the set {name}, as {files[name]} is; name one file of each set")
        files[name] = path
    for name, path in files.items():
        yield from _votes(name, path)


def _set_of(path: str | Path) -> str:
    found = [name for name in SETS if name in Path(path).name.lower()]
    if len(found) != 1:
        raise InputError(
            f"{path}: its name does not say which set it is of; have `cnn` or `xsum` in it, as in mturk_xsum.jsonl"
        )
    return found[0]


def _votes(name: str, path: str | Path) -> Iterator[Vote]:
    answered = False
    with closing(TextFile(path)) as file:
        for number, (_, summary) in enumerate(read_lines(file, Summary), start=1):
            for place, sentence in enumerate(summary.summary_sentences):
                for answer in sentence.responses:
                    answered = True
                    yield Vote(
                        item=f"{name}_{number}_sent{place}",
                        agent=name.upper(),
                        annotator=f"worker_{answer.worker_id}",
                        label=SUPPORTED[answer.response],
                        group=f"{name}_{number}",
                    )
    if not answered:
        raise InputError(f"{path}: holds no answers; name a file of QAGS's annotations, with `summary_sentences`")
