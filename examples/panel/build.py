"""Writes tasks.jsonl: seven trips, five answers each.

python -m examples.panel.build
"""

import json
from pathlib import Path
from typing import Any

from examples.panel.trips import RUBRIC, TOWNS, Town, facts, stakeholders
from examples.panel.writers import WRITERS

HERE = Path(__file__).parent
REVIEWERS = ["hana", "ivo", "jun"]


def main() -> None:
    lines = "".join(json.dumps(line(town), ensure_ascii=False) + "\n" for town in TOWNS)
    (HERE / "tasks.jsonl").write_text(lines, encoding="utf-8")


def line(town: Town) -> dict[str, Any]:
    """A line of TASKS."""
    name = town.name.lower()
    return {
        "id": name,
        "query": town.query,
        "group": name,
        "metadata": {"domain": "trips"},
        "stakeholders": stakeholders(town),
        "rubric": RUBRIC,
        "reviewers": REVIEWERS,
        "facts": facts(town),
        "responses": [response(name, writer, town) for writer in WRITERS],
    }


def response(task: str, writer: str, town: Town) -> dict[str, Any]:
    text, data = WRITERS[writer](town)
    return {"id": f"{task}/{writer}", "agent": writer, "text": text, "data": data}


if __name__ == "__main__":
    main()
