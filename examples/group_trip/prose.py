"""Writes prose.jsonl.gz: the plans of tasks.jsonl.gz in words alone, and their claims as `extract` finds them there.

    python -m examples.group_trip.prose

Each plan is in one of the layouts of `layouts.py`, in turn. One traveller of each group wishes what no check decides.
"""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from examples.group_trip.layouts import LAYOUTS, read_days

HERE = Path(__file__).parent
UNHURRIED = {"id": "unhurried", "kind": "soft", "text": "an unhurried pace, with time to sit"}
"""The wish of the last traveller of each group."""


def main() -> None:
    with gzip.open(HERE / "tasks.jsonl.gz", "rt", encoding="utf-8") as file:
        groups = [json.loads(line) for line in file]
    lines = [in_words(with_a_wish(group), turn) for turn, group in enumerate(groups)]
    content = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    with (
        (HERE / "prose.jsonl.gz").open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
    ):
        packed.write(content.encode())


def with_a_wish(line: Mapping[str, Any]) -> dict[str, Any]:
    """The line with a wish that only somebody who reads can judge."""
    *others, last = line["stakeholders"]
    return {
        **line,
        "stakeholders": [*others, {**last, "constraints": [*last["constraints"], UNHURRIED]}],
    }


def in_words(line: Mapping[str, Any], turn: int = 0) -> dict[str, Any]:
    """The line of a task, its responses without data: each says the same in a layout, the first in the `turn`th."""
    layouts = list(LAYOUTS)
    responses = [
        told(response, layouts[(turn + place) % len(layouts)])
        for place, response in enumerate(line["responses"])
    ]
    return {**of_records(line), "responses": responses}


def told(response: Mapping[str, Any], layout: str) -> dict[str, Any]:
    """A response that tells its plan in words alone."""
    labels = {**response.get("labels", {}), "layout": layout}
    said = {name: value for name, value in response.items() if name != "data"}
    return {**said, "text": LAYOUTS[layout](read_days(response["data"])), "labels": labels}


def of_records(line: Mapping[str, Any]) -> dict[str, Any]:
    """The line of a task, asking of extracted records what it asked of days."""
    dates = line["facts"]["claims"]["legs"]["beside"]["FlightDate"]["map"]
    facts = {**line["facts"], "claims": claims(dates)}
    return {
        **line,
        "facts": facts,
        "stakeholders": [_counting_records(one) for one in line["stakeholders"]],
    }


def _counting_records(stakeholder: Mapping[str, Any]) -> dict[str, Any]:
    return {**stakeholder, "constraints": [_of_records(one) for one in stakeholder["constraints"]]}


def _of_records(constraint: Mapping[str, Any]) -> dict[str, Any]:
    counts_days = constraint.get("check", {}).get("count") == "$[*]"
    return (
        {**constraint, "check": {**constraint["check"], "count": "$.days[*]"}}
        if counts_days
        else {**constraint}
    )


def claims(dates: Mapping[str, str]) -> dict[str, Any]:
    """How extracted records are read: meals, attractions, stays by nights in a row, and legs. `dates` are by day."""
    spent = {"day": {"field": "day"}, "where": {"field": "where"}}
    leg = {"day": {"field": "day"}, "FlightDate": {"field": "day", "map": dict(dates)}}
    ends = {"OriginCityName": {"field": "origin"}, "DestCityName": {"field": "destination"}}
    times = {"DepTime": {"field": "departs"}, "ArrTime": {"field": "arrives"}}
    return {
        "meals": _places("meals", "restaurants", {"City": {"field": "city"}, **spent}),
        "attractions": _places("attractions", "attractions", {"City": {"field": "city"}, **spent}),
        "stays": {
            **_places("stays", "accommodations", {"city": {"field": "city"}, **spent}),
            "merged": "nights",
        },
        "legs": {
            "at": ["$.drives[*].mode", "$.flights[*].number"],
            "forms": [
                {
                    "table": "drives",
                    "pattern": "(?P<mode>Self-driving|Taxi)",
                    "within": {"cost": 0.05},
                },
                {
                    "table": "flights",
                    "pattern": "(?P<number>.+)",
                    "columns": {"number": "Flight Number"},
                    "states": {"mode": "Flight"},
                },
            ],
            "beside": {**leg, **ends, **times, "cost": {"field": "cost"}},
            "order": "day",
        },
    }


def _places(kind: str, table: str, beside: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "at": [f"$.{kind}[*].name"],
        "forms": [{"table": table}],
        "beside": dict(beside),
        "order": "day",
    }


if __name__ == "__main__":
    main()
