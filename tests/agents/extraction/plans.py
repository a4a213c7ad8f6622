"""TravelPlanner's 30 reference plans in words, and tasks that read what is taken out of them."""

from functools import cache
from pathlib import Path
from typing import Any

from examples.group_trip.layouts import LAYOUTS, read_days
from examples.group_trip.prose import of_records
from examples.group_trip.travelplanner import read_travelplanner
from jurygraph import Task
from jurygraph.agents.extraction import FieldSpecsByKind, RecordParams
from jurygraph.sources import read_config
from tests.travelplanner.train import TRAIN, lines

CONFIG = Path(__file__).parents[3] / "examples" / "group_trip" / "prose.yaml"
RECORDS: Any = read_config(CONFIG).derivers[0].params["records"]
KINDS: FieldSpecsByKind = RecordParams(records=RECORDS).records
LINES = lines()
EVERY = [(name, layout) for name in LINES for layout in LAYOUTS]
"""Each plan in each layout."""


@cache
def in_words(name: str, layout: str) -> str:
    """A reference plan as text."""
    return LAYOUTS[layout](read_days(LINES[name]["plan"]))


@cache
def import_tasks() -> dict[str, dict[str, Any]]:
    """The lines of all tasks, by the numbers in their ids."""
    tasks = {task.id.rpartition("-")[2]: task for task in read_travelplanner(TRAIN)}
    return {
        name: task.model_dump(mode="json", exclude_defaults=True) for name, task in tasks.items()
    }


@cache
def task_of_records(name: str) -> Task:
    """The task of a plan, its claims read out of records."""
    line = of_records(import_tasks()[name])
    return Task.model_validate(
        {field: value for field, value in line.items() if field != "responses"}
    )
