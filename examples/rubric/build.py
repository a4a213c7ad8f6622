"""Writes tasks.jsonl.gz: ten of WritingBench's English queries with their rubrics, and two poor responses to each.

    python -m examples.rubric.build RUBRICS.jsonl.gz

The responses are made by rule, of the query's own words: no model and no person wrote to the task.
"""

import gzip
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CHOSEN = (187, 208, 140, 176, 448, 23, 369, 382, 481, 406)
"""The queries, by WritingBench's index."""
MARK = "7-8"
"""The level that a response has to reach, of WritingBench's 1-2 to 9-10."""
SMALL = {"and", "of", "the"}
OUTLINE = "an outline: what the query asks for, part by part, with none of it written"
EVASIVE = "evasive: talks about the task, praises the answer to come, and gives none"
PARTS = 6
Row = dict[str, Any]


def main(source: str | Path) -> None:
    with gzip.open(source, "rt", encoding="utf-8") as file:
        rows = {row["index"]: row for row in map(json.loads, file)}
    content = "".join(json.dumps(_line(rows[index]), ensure_ascii=False) + "\n" for index in CHOSEN)
    with (HERE / "tasks.jsonl.gz").open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(content.encode())


def _line(row: Row) -> Row:
    name, query = f"writingbench-{row['index']}", row["query"]
    return {
        "id": name,
        "query": query,
        "rubric": {"criteria": [_criterion(one) for one in row["checklist"]]},
        "metadata": {"domains": [row["domain1"], row["domain2"]]},
        "responses": [
            _response(name, "outline", outline(query), OUTLINE),
            _response(name, "evasive", evasive(query), EVASIVE),
        ],
    }


def _criterion(stated: Row) -> Row:
    """A criterion of ten levels as one of two: whether the response reaches the mark."""
    mark = f"It is met where the response reaches at least this level: {stated[MARK]}"
    return {"id": short(stated["name"]), "text": f"{stated['criteria_description']} {mark}", "weight": 1.0}


def short(name: str) -> str:
    """The first two words of a criterion's name that say something."""
    words = [word for word in re.findall("[a-z]+", name.lower()) if word not in SMALL]
    return "-".join(words[:2])


def _response(task: str, agent: str, text: str, made: str) -> Row:
    return {"id": f"{task}/{agent}", "agent": agent, "text": text, "labels": {"made": made}}


def outline(query: str) -> str:
    """The parts of the query, one after another."""
    steps = ["An opening that says what this is about", *_parts(query), "An ending that comes back to the opening"]
    return "Outline\n" + "\n".join(f"{number}. {step}." for number, step in enumerate(steps, 1))


def evasive(query: str) -> str:
    """Words about the answer, for which nothing need be known but what is asked for."""
    return (
        f"Thank you for this interesting task. It says: {_parts(query)[0]}. That is never easy, and there is much to "
        "be said for doing it with care. What I give here is complete, vivid and as long as it was asked to be, "
        "and it meets every expectation that one could have of it."
    )


def _parts(query: str) -> list[str]:
    """The query's sentences without their courtesies and numbers, as far as they are whole thoughts."""
    sentences: Iterable[str] = re.split(r"(?<=[.?:;])\s+|\n+", query)
    bare = (re.sub(r"^(\d\)|\d\.|Note:|Please( help me)?|Could you please help me)\s*", "", one) for one in sentences)
    parts = [one.strip().rstrip(".?:;") for one in bare]
    return [one for one in parts if len(one.split()) > 2][:PARTS]


if __name__ == "__main__":
    main(sys.argv[1])
