"""Writes ratings.csv.gz, texts.jsonl.gz and tasks.jsonl.gz from PandaLM's test set in pandalm/, and MSLR's mslr.csv.gz.

    python -m examples.reviewers.build

What PandaLM's annotators rated is a pair of responses to an instruction, so an item here is a pair. All pairs of one
instruction and input are a group: whoever knows what was said of one of them knows something of the others.
"""

import csv
import gzip
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
TEXTS, RATINGS = HERE / "pandalm" / "texts.jsonl.gz", HERE / "pandalm" / "ratings.csv.gz"
FACETS_OF_MSLR = HERE.parent / "consensus" / "mslr_facets.csv.gz"
ANNOTATORS = ("annotator1", "annotator2", "annotator3")
SCORES = {"1": -1, "0": 0, "2": 1}
"""PandaLM's labels (1 the first response is better, 2 the second, 0 neither) on a line from the first to the second."""
FEWEST_GROUPS = 3
"""A domain with fewer has hardly anything to show of the others of its groups."""
Row = dict[str, Any]


class Pair(NamedTuple):
    """Two responses to an instruction, what they are an example of, and what each annotator said."""

    item: str
    group: str
    domain: str
    query: str
    first: str
    second: str
    models: str
    scores: dict[str, int]

    @property
    def text(self) -> str:
        """Both responses as a judge is shown them."""
        return f"Response 1:\n{self.first}\n\nResponse 2:\n{self.second}"

    @property
    def both(self) -> dict[str, str]:
        """Both responses by themselves, for a judge that swaps them."""
        return {"first": self.first, "second": self.second}


def main() -> None:
    found = list(pairs())
    made = {"ratings.csv": ratings(found), "texts.jsonl": texts(found), "tasks.jsonl": tasks(found)}
    made["mslr.csv"] = ratings_of_mslr()
    for name, lines in made.items():
        with (
            (HERE / f"{name}.gz").open("wb") as file,
            gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
        ):
            packed.write("".join(lines).encode())


def pairs() -> Iterator[Pair]:
    """PandaLM's pairs, in its order."""
    with (
        gzip.open(TEXTS, "rt", encoding="utf-8") as said,
        gzip.open(RATINGS, "rt", encoding="utf-8") as rated,
    ):
        rows = list(zip(map(json.loads, said), csv.DictReader(rated), strict=True))
    groups: dict[tuple[str, str], str] = {}
    for text, rating in rows:
        assert text["idx"] == int(rating["idx"])
        group = groups.setdefault(
            (text["instruction"], text["input"]), f"instruction-{len(groups):03}"
        )
        yield Pair(
            item=f"pandalm-{text['idx']:03}",
            group=group,
            domain=rating["motivation_app"],
            query=f"{text['instruction']}\n\n{text['input']}".strip(),
            first=str(text["response1"]),
            second=str(text["response2"]),
            models=rating["cmp_key"],
            scores={name: SCORES[rating[name]] for name in ANNOTATORS},
        )


def ratings(found: Iterable[Pair]) -> Iterator[str]:
    """RATINGS in long form: what each annotator said of each pair."""
    columns = ["item", "annotator", "score", "dimension", "domain", "group"]
    return map(_csv_line, (columns, *(row for pair in found for row in _rated(pair))))


def ratings_of_mslr() -> Iterator[str]:
    """RATINGS of four facets of summaries by two annotators, from 0 to 2; summaries of one review are a group."""
    yield _csv_line(["item", "agent", "annotator", "score", "dimension", "group"])
    with gzip.open(FACETS_OF_MSLR, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for facet in ("fluency", "population", "intervention", "outcome"):
                yield _csv_line(
                    [
                        row["review_id"],
                        row["system"],
                        row["annotator"],
                        row[facet],
                        facet,
                        row["review_id"],
                    ]
                )


def _csv_line(values: list[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue()


def _rated(pair: Pair) -> Iterator[list[Any]]:
    for name, score in pair.scores.items():
        yield [pair.item, name, score, "preference", pair.domain, pair.group]


def texts(found: Iterable[Pair]) -> Iterator[str]:
    """TEXTS: a pair as a judge is shown it among the examples, with what it answers."""
    for pair in found:
        yield _line(
            {"item": pair.item, "text": f"Instruction:\n{pair.query}\n\n{pair.text}", **pair.both}
        )


def tasks(found: Iterable[Pair]) -> Iterator[str]:
    """One pair of every domain that has groups enough: of its first group, and not always the first of that."""
    domains: dict[str, dict[str, list[Pair]]] = {}
    for pair in found:
        domains.setdefault(pair.domain, {}).setdefault(pair.group, []).append(pair)
    chosen = [
        next(iter(groups.values())) for groups in domains.values() if len(groups) >= FEWEST_GROUPS
    ]
    for place, group in enumerate(chosen):
        yield _line(_task(group[place % len(group)]))


def _task(pair: Pair) -> Row:
    return {
        "id": pair.item,
        "query": pair.query,
        "reviewers": list(ANNOTATORS),
        "group": pair.group,
        "metadata": {"domain": pair.domain},
        "responses": [
            {
                "id": pair.item,
                "text": pair.text,
                "data": pair.both,
                "labels": {"models": pair.models, **pair.scores},
            }
        ],
    }


def _line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    main()
