"""The stability study of a deterministic judge: 60 responses in 60 variants each (DecompR, A.1)."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic
from typing import Any

from benchmarks.figure import Figure, at_most

RESPONSES, VERSIONS = 60, 12
PEOPLE = ("ann", "bob", "cyd", "dan", "eve")
CONFIG = """\
evaluators:
  - use: checks.constraints
"""


def measure() -> list[Figure]:
    """Seconds of the whole command, and that its noise is exactly 0."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "jury.yaml").write_text(CONFIG, encoding="utf-8")
        lines = [json.dumps(_task(number)) for number in range(RESPONSES)]
        (folder / "tasks.jsonl").write_text("\n".join(lines), encoding="utf-8")
        words = [
            "tasks.jsonl",
            "--config",
            "jury.yaml",
            "--versions",
            str(VERSIONS),
            "--out",
            "lab",
            "--json",
        ]
        command = [str(Path(sys.executable).with_name("jurygraph")), "study", "stability", *words]
        start = monotonic()
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        seconds = monotonic() - start
    found = json.loads(done.stdout)
    variants = sum(found["presentations"]["variants"].values())
    noise = max(unit["semantic"] for unit in found["units"])
    return [
        Figure("responses", len({unit["seed"] for unit in found["units"]}), ""),
        Figure("variants", variants, ""),
        at_most("made, scored and measured", seconds, "s", 60.0),
        at_most("σ²_Sem of a deterministic judge", noise, "", 0.0),
    ]


def _task(number: int) -> dict[str, Any]:
    meals = [{"day": day, "what": f"meal {number}-{day}", "price": 10 + day} for day in range(1, 6)]
    data = {
        "itinerary": meals,
        "stakeholders": {name: [f"a quiet table for {name}"] for name in PEOPLE},
        "summary": {name: {"budget": "met"} for name in PEOPLE},
        "shared": [
            {"item": "ferry", "serves": list(PEOPLE)},
            {"item": "park", "serves": list(PEOPLE)},
        ],
        "tradeoffs": [f"{name} rests in the afternoon" for name in PEOPLE],
    }
    check = {"count": "$.itinerary[*]", "between": [3, 8]}
    people = [
        {
            "id": name,
            "constraints": [{"id": "meals", "kind": "hard", "text": "meals", "check": check}],
        }
        for name in PEOPLE
    ]
    response = {"id": f"t{number}/a", "text": "-", "data": data}
    return {"id": f"t{number}", "query": "A trip.", "stakeholders": people, "responses": [response]}
