"""Places to eat at, as a table in every form, and what becomes of claims about them."""

import asyncio
import csv
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from langchain_core.tools import tool

from jurygraph.agents.facts.evaluators import Claims, load_facts
from jurygraph.agents.roles import DeriverInput
from jurygraph.schema import Response, TaskView

Rows = Sequence[Mapping[str, Any]]

PLACES: Rows = (
    {"name": "Coco Bambu", "city": "Rockford", "cost": 72},
    {"name": "Flying Mango", "city": "Rockford", "cost": 20},
    {"name": "Café Southall", "city": "Rockford", "cost": 56.5},
    {"name": "Subway", "city": "Peoria", "cost": 26},
)
FORM = {
    "table": "places",
    "pattern": r"(?P<name>[^,]+), (?P<city>[^,]+)(?:, (?P<cost>[^,]+(?:,\d+)?))?",
}
MEALS = {"at": ["$[*].meal"], "forms": [FORM]}
TEXT_SUFFIXES = (".csv", ".json", ".jsonl", ".csv.gz", ".json.gz", ".jsonl.gz")
SUFFIXES = (*TEXT_SUFFIXES, ".parquet")


def make_facts(
    rows: Rows = PLACES, claims: Mapping[str, Any] | None = None, **table: Any
) -> dict[str, Any]:
    """Facts of the places, whose meals are claimed; fields of the table and of the claims as given."""
    places = {
        "key": ["name", "city"],
        **({} if "file" in table or "tool" in table else {"rows": list(rows)}),
        **table,
    }
    return {"tables": {"places": places}, "claims": {"meals": {**MEALS, **(claims or {})}}}


def view(facts: Any, name: str = "trip") -> TaskView:
    return TaskView(id=name, query="Where to?", facts=facts)


def look_up_claims(
    facts: Any, data: Any, tools: Mapping[str, str] = {}
) -> dict[str, list[dict[str, Any]]]:
    """Return the findings of all claims in the data, by kind."""
    ask = DeriverInput(view(facts), Response(id="r", text="", data=data), {})
    return asyncio.run(Claims(tools=tools).derive(ask)).data  # type: ignore[return-value]


def meals(facts: Any, *texts: str, tools: Mapping[str, str] = {}) -> list[dict[str, Any]]:
    """Return the findings of claims with these texts."""
    return look_up_claims(facts, [{"meal": text} for text in texts], tools)["meals"]


def claim_outcomes(facts: Any, *texts: str, tools: Mapping[str, str] = {}) -> list[str]:
    return [one["found"] for one in meals(facts, *texts, tools=tools)]


def marks(facts: Any) -> Mapping[str, Any]:
    return load_facts(view(facts)).digest_params


def write_table(path: Path, rows: Rows) -> Path:
    """The rows in the form that the path's suffix names."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
    else:
        with (
            gzip.open(path, "wt", newline="")
            if path.suffix == ".gz"
            else path.open("w", newline="") as file
        ):
            if ".csv" in path.suffixes:
                writer = csv.DictWriter(file, columns)
                writer.writeheader()
                writer.writerows(rows)
            else:
                lines = [json.dumps(row) for row in rows]
                file.write(
                    "\n".join(lines) if ".jsonl" in path.suffixes else f"[{', '.join(lines)}]"
                )
    return path


@tool
def find_place(name: str, city: str) -> list[dict[str, Any]]:
    """The places of this name in this city."""
    return [dict(row) for row in PLACES if (row["name"], row["city"]) == (name, city)]


@tool
def find_alike(name: str, city: str) -> list[dict[str, Any]]:
    """Whatever looks like this name, wherever it is."""
    return [dict(row) for row in PLACES if str(row["name"])[:3] == name[:3]]


@tool
def find_words(name: str, city: str) -> str:
    """Something that is no row."""
    return f"{name} in {city}"


@tool
def find_trouble(name: str, city: str) -> list[dict[str, Any]]:
    """Nothing, ever."""
    raise ConnectionError("the guide cannot be reached")
