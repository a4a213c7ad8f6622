"""QAGS (W4ngatang/qags): workers' votes on whether an article supports each sentence of its summary."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from jurygraph.errors import InputError
from jurygraph.interchange.rows import NOT_EMPTY, ImportedRow, RowKey
from jurygraph.schema.frozen_model import StrPath
from jurygraph.schema.rating import Vote
from jurygraph.sources.files import TextFile, read_lines


class ImportedAnswer(ImportedRow):
    worker_id: RowKey
    response: Literal["yes", "no"]


class ImportedSentence(ImportedRow):
    sentence: str
    responses: tuple[ImportedAnswer, ...]


class ImportedSummary(ImportedRow):
    article: str
    summary_sentences: tuple[ImportedSentence, ...] = NOT_EMPTY


def read_qags(paths: Sequence[StrPath]) -> Iterator[Vote]:
    """Yield each worker's vote on each sentence, as STABLEVAL reads it: 1 supported, 0 not.

    Sentence 0 of the first summary is the item `cnn_1_sent0` of the agent `CNN`, and belongs to the group `cnn_1`. The
    files, of one set each (`.gz` too), are named after it: `mturk_cnndm.jsonl`, `mturk_xsum.jsonl`.

    Raises `InputError` for a name of neither set, or two files of one; for an invalid row, with file, line and field;
    or for a file without answers.
    """
    seen_dataset_names = set()
    for path in paths:
        names = [name for name in ("cnn", "xsum") if name in Path(path).name.lower()]
        if len(names) != 1 or names[0] in seen_dataset_names:
            raise InputError(
                f"{path}: its name does not say which set it is of, or that of another file; "
                "have either `cnn` or `xsum` in it, as in mturk_xsum.jsonl, and name one file of each set"
            )
        seen_dataset_names.update(names)
        votes = 0
        with TextFile(path) as file:
            for number, (_, summary) in enumerate(read_lines(file, ImportedSummary), start=1):
                for vote in _to_votes(f"{names[0]}_{number}", names[0].upper(), summary):
                    votes += 1
                    yield vote
        if not votes:
            raise InputError(
                f"{path}: holds no answers; name a file of QAGS's annotations, with `summary_sentences`"
            )


def _to_votes(group: str, agent: str, summary: ImportedSummary) -> Iterator[Vote]:
    for index, sentence in enumerate(summary.summary_sentences):
        for answer in sentence.responses:
            annotator = f"worker_{answer.worker_id}"
            label = float(answer.response == "yes")
            yield Vote(
                item=f"{group}_sent{index}",
                agent=agent,
                annotator=annotator,
                label=label,
                group=group,
            )
