"""Writes tasks.jsonl.gz: the reference plan of each trip of group_trip, with what it does for everybody.

    python -m examples.stability.build

The plan is cut to its places, so that small models read it quickly; whether each need is met is what group_trip's
facts and checks find.
"""

import gzip
import json
from pathlib import Path
from typing import Any

from jurygraph import Jury, Response, Task
from jurygraph.sources import read_tasks

HERE = Path(__file__).parent
TRIP = HERE.parent / "group_trip"


def main() -> None:
    with Jury.from_config(TRIP / "jury.yaml") as jury:
        lines = [
            _line(jury, task, responses[0])
            for task, responses in read_tasks(TRIP / "tasks.jsonl.gz")
        ]
    content = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    with (
        (HERE / "tasks.jsonl.gz").open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
    ):
        packed.write(content.encode())


def _line(jury: Jury, task: Task, reference: Response) -> dict[str, Any]:
    (trace,) = jury.score(task, [reference])
    scores = {(one.stakeholder, one.subject): one.score for one in trace.verdicts}
    people = {person.id: person for person in task.stakeholders}
    days: Any = reference.data
    data = {
        "itinerary": [{"day": day["days"], "where": day["current_city"]} for day in days],
        "stakeholders": {name: [person.profile] for name, person in people.items()},
        "summary": {
            name: {str(one.text): _status(scores[name, one.id]) for one in person.constraints}
            for name, person in people.items()
        },
    }
    shown = [
        {
            "id": name,
            "profile": person.profile,
            "constraints": [
                {"id": one.id, "kind": one.kind, "text": one.text} for one in person.constraints
            ],
        }
        for name, person in people.items()
    ]
    text = f"{len(people)} travellers, {len(days)} days; see the data."
    response = {"id": f"{task.id}/reference", "text": text, "data": data}
    return {"id": task.id, "query": task.query, "stakeholders": shown, "responses": [response]}


def _status(score: float | None) -> str:
    return "met" if score == 1.0 else "in part" if score else "not met"


if __name__ == "__main__":
    main()
