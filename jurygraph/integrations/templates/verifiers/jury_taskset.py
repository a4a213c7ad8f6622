"""A taskset with the tasks of tasks.jsonl, whose ids come back with the rewards."""

import json
from pathlib import Path

import verifiers.v1 as vf

HERE = Path(__file__).parent


class JuryTaskData(vf.TaskData):
    reference: str | None = None


def load_data() -> list[JuryTaskData]:
    lines = (HERE / "tasks.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [
        JuryTaskData(id=row["id"], prompt=row["query"], reference=row.get("reference"))
        for row in rows
    ]
