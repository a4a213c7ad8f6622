"""Writes tasks, the verdicts of two published judges, and the labels of people, from PandaLM's test set.

    python -m examples.judge_labels.build FOLDER

PandaLM's codes are 1 (the first response is better), 2 (the second) and 0 (neither). That is no scale: as numbers a tie
would be the farthest from the second. So they are recoded first: 1 for the first, 0.5 for a tie, 0 for the second.
"""

import csv
import gzip
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1]
PANDALM = EXAMPLES / "reviewers" / "pandalm"
PREFERENCE = {"1": 1.0, "0": 0.5, "Tie": 0.5, "2": 0.0, "first": 1.0, "tie": 0.5, "second": 0.0}
PEOPLE = ("annotator1", "annotator2", "annotator3")
JUDGES = ("gpt35", "pandalm7b")
Row = dict[str, Any]


def main(folder: str) -> None:
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    with gzip.open(PANDALM / "ratings.csv.gz", "rt", encoding="utf-8") as file:
        rated = list(csv.DictReader(file))
    texts = read_lines(PANDALM / "texts.jsonl.gz")
    tasks = [to_task(row, text) for row, text in zip(rated, texts, strict=True)]
    (out / "tasks.jsonl").write_text(
        "".join(json.dumps(task) + "\n" for task in tasks), encoding="utf-8"
    )
    write_labels(
        out / "people.csv",
        ([row["idx"], who, PREFERENCE[row[who]]] for row in rated for who in PEOPLE),
    )
    recorded = read_lines(EXAMPLES / "real_judge" / "tasks.jsonl.gz")
    people = (
        (task["id"], "most", PREFERENCE[task["responses"][0]["labels"]["people"]])
        for task in recorded
    )
    write_labels(out / "people_of_real_judge.csv", people)


def read_lines(path: Path) -> list[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def to_task(row: Row, text: Row) -> Row:
    """The pair as a task; what a judge said of it, as a preference or None, is in the metadata for `verdicts.py`."""
    query = "\n\n".join(filter(None, (text["instruction"], text["input"])))
    said = {name: PREFERENCE.get(row[name]) for name in JUDGES}
    responses = [
        {"id": f"{row['idx']}-{place}", "text": str(text[f"response{place}"])} for place in (1, 2)
    ]
    return {"id": row["idx"], "query": query, "metadata": said, "responses": responses}


def write_labels(path: Path, labels: Iterable[tuple[Any, ...] | list[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(("id", "other", "reviewer", "target"))
        table.writerows((f"{pair}-1", f"{pair}-2", who, target) for pair, who, target in labels)


if __name__ == "__main__":
    main(*sys.argv[1:])
