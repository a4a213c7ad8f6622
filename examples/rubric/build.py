"""Writes tasks.jsonl.gz and readings.csv from WritingBench's rubrics and from cases/, a file for each query.

    python -m examples.rubric.build RUBRICS.jsonl.gz

A case adds to WritingBench's five criteria: some of our own, roles, the edges with a reason each, and three responses
with our reading of each criterion. Its edges and planted cases are written `parent -> child`.
"""

import csv
import gzip
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

HERE = Path(__file__).parent
CASES = HERE / "cases"
LEVELS = ("1-2", "3-4", "5-6", "7-8", "9-10")
SMALL = {"and", "of", "the"}
Row = dict[str, Any]


def main(source: str | Path) -> None:
    with gzip.open(source, "rt", encoding="utf-8") as file:
        made = [(row, _case(_name(row))) for row in map(json.loads, file)]
    lines = (json.dumps(task(row, case), ensure_ascii=False) + "\n" for row, case in made)
    with (
        (HERE / "tasks.jsonl.gz").open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
    ):
        packed.write("".join(lines).encode())
    (HERE / "readings.csv").write_text(_csv(readings(made)), encoding="utf-8", newline="")


def _name(row: Row) -> str:
    return f"writingbench-{row['index']}"


def _case(name: str) -> Row:
    found: Row = YAML(typ="safe").load(CASES / f"{name}.yaml")
    return found


def task(row: Row, case: Row) -> Row:
    """A task with its rubric, its graph and its responses."""
    name = _name(row)
    own = [{"id": one, **stated} for one, stated in case["own"].items()]
    return {
        "id": name,
        "query": row["query"],
        "rubric": {
            "criteria": [*(_criterion(one, case["roles"]) for one in row["checklist"]), *own],
            "edges": [_edge(pair, *why) for pair, why in case["edges"].items()],
        },
        "metadata": {"domains": [row["domain1"], row["domain2"]]},
        "responses": [
            _response(name, agent, stated) for agent, stated in case["responses"].items()
        ],
    }


def _criterion(stated: Row, roles: dict[str, str]) -> Row:
    name = short(stated["name"])
    return {
        "id": name,
        "text": stated["criteria_description"],
        "weight": 1.0,
        "role": roles[name],
        "scale": [1, 10],
        "anchors": {level: stated[level] for level in LEVELS},
    }


def short(name: str) -> str:
    """The first two words of a criterion's name that say something."""
    words = [word for word in re.findall("[a-z]+", name.lower()) if word not in SMALL]
    return "-".join(words[:2])


def _edge(pair: str, kind: str, reason: str) -> Row:
    parent, child = pair.split(" -> ")
    return {"parent": parent, "child": child, "kind": kind, "reason": reason}


def _response(name: str, agent: str, stated: Row) -> Row:
    labels = {"made": stated["made"], "planted": stated["planted"]}
    return {"id": f"{name}/{agent}", "agent": agent, "text": stated["text"], "labels": labels}


def readings(made: Iterable[tuple[Row, Row]]) -> Iterator[list[Any]]:
    """What we found: a row for each response and criterion, the value as it stands on the criterion's scale."""
    yield ["response", "criterion", "value", "reason"]
    for row, case in made:
        for agent, stated in case["responses"].items():
            for criterion, (value, reason) in stated["readings"].items():
                yield [f"{_name(row)}/{agent}", criterion, value, reason]


def _csv(rows: Iterable[list[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


if __name__ == "__main__":
    main(sys.argv[1])
