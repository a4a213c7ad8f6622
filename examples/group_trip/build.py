"""Writes tasks.jsonl.gz: the groups of `profiles.py`, each with the reference plan and five plans with one fault each.

    python -m examples.group_trip.build TRAVELPLANNER_TRAIN.jsonl

A fault is made by changing the reference plan where somebody's need hangs on it, and nothing else that anybody needs.
"""

import copy
import gzip
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from examples.group_trip.profiles import TRAVELLERS
from examples.group_trip.travelplanner import read_travelplanner
from jurygraph import Jury, Response, Task, Trace

HERE = Path(__file__).parent
WHOLE = ("nights", "comes-home", "meals-in-place")
"""What the first of each group sees to for all: a bed a night, the way home, and tables where they are."""
MEALS = ("breakfast", "lunch", "dinner")
Plan = list[dict[str, Any]]
Row = dict[str, Any]


def main(source: str) -> None:
    tasks = {line.id: line for line in read_travelplanner(source)}
    with Jury.from_config(HERE / "jury.yaml") as jury:
        lines = [_line(jury, tasks[name], people) for name, people in TRAVELLERS.items()]
    content = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    with (
        (HERE / "tasks.jsonl.gz").open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
    ):
        packed.write(content.encode())


def _line(jury: Jury, imported: Any, people: dict[str, Any]) -> dict[str, Any]:
    line = imported.model_dump(mode="json", exclude_defaults=True)
    whole = [
        {**one, "restrictiveness": 0.2}
        for one in line["stakeholders"][0]["constraints"]
        if one["id"] in WHOLE
    ]
    line["stakeholders"] = [
        {"id": name, "profile": profile, "constraints": [*needs, *(whole if place == 0 else [])]}
        for place, (name, (profile, needs)) in enumerate(people.items())
    ]
    (reference,) = line.pop("responses")
    task = Task.model_validate(line)
    trip = Trip(jury, task, reference["data"])
    line["responses"] = [
        reference,
        *(_response(task, fault, plan) for fault, plan in trip.faulty()),
    ]
    return line


def _response(task: Task, fault: str, plan: Plan) -> dict[str, Any]:
    text = "\n".join(json.dumps(day, ensure_ascii=False) for day in plan)
    name = fault.replace(" ", "-")
    return {
        "id": f"{task.id}/{name}",
        "agent": name,
        "text": text,
        "data": plan,
        "labels": {"fault": fault},
    }


class Trip:
    """A reference plan, and the search for changes of it that do just one harm."""

    def __init__(self, jury: Jury, task: Task, plan: Plan) -> None:
        self.jury, self.task, self.plan = jury, task, plan
        self.prepared = jury.prepare(task)
        self.tables: dict[str, list[Row]] = {
            name: t["rows"] for name, t in task.facts["tables"].items()
        }
        self.harmless = self.unmet(plan)

    def faulty(self) -> Iterator[tuple[str, Plan]]:
        """Each fault with the plan that has it."""
        yield "invented restaurant", self.invented()
        yield (
            "budget broken",
            self.first("budget broken", self.dearer(), lambda subject: subject == "budget"),
        )
        yield (
            "cuisine dropped",
            self.first("cuisine dropped", self.without(), lambda s: s in ("cuisines", "taste")),
        )
        yield (
            "house rule broken",
            self.first("house rule broken", self.other_stays(), lambda s: s.endswith("-allowed")),
        )
        yield "impossible leg", self.impossible()

    def first(self, fault: str, plans: Iterator[Plan], meant: Callable[[str], bool]) -> Plan:
        """The first plan that leaves unmet what is meant, and nothing else that the reference meets."""
        hard = {
            (s.id, c.id) for s in self.task.stakeholders for c in s.constraints if c.kind == "hard"
        }
        for plan in plans:
            harmed = self.unmet(plan) - self.harmless
            if harmed & hard and all(meant(subject) for _, subject in harmed):
                return plan
        raise SystemExit(f"{self.task.id}: no plan is found with {fault}")

    def unmet(self, plan: Plan) -> set[tuple[str | None, str]]:
        """Who has which constraint unmet, or meets a fact that is none."""
        (trace,) = self.score(plan)
        return {(v.stakeholder, v.subject) for v in trace.verdicts if v.met is not True}

    def score(self, plan: Plan) -> list[Trace]:
        return self.jury.score(self.task, [Response(id="plan", text="", data=plan)], self.prepared)

    def invented(self) -> Plan:
        plan = copy.deepcopy(self.plan)
        day = next(day for day in reversed(plan) if day["dinner"] != "-")
        day["dinner"] = "The Gilded Lantern, " + day["dinner"].rsplit(", ", 1)[1]
        return plan

    def impossible(self) -> Plan:
        plan = copy.deepcopy(self.plan)
        origin = plan[-1]["current_city"].removeprefix("from ").split(" to ")[0]
        times = "Departure Time: 10:00, Arrival Time: 12:10"
        plan[-1]["transportation"] = f"Flight Number: F0000000, from {origin} to Honolulu, {times}"
        return plan

    def dearer(self) -> Iterator[Plan]:
        """Dearer stays, the dearest first; then dearer tables."""
        yield from self.stays(sorted(self.tables["accommodations"], key=lambda row: -row["price"]))
        yield from self.dinners(
            sorted(self.tables["restaurants"], key=lambda row: -row["Average Cost"])
        )

    def other_stays(self) -> Iterator[Plan]:
        """Another stay, and if that is too dear, a meal less a day."""
        for plan in self.stays(sorted(self.tables["accommodations"], key=lambda row: row["price"])):
            yield plan
            for meal in MEALS:
                yield [{**day, meal: "-"} for day in plan]

    def stays(self, rows: list[Row]) -> Iterator[Plan]:
        """Another stay in one city."""
        for row in rows:
            plan = copy.deepcopy(self.plan)
            for day in plan:
                name, _, city = day["accommodation"].rpartition(", ")
                if name and city.split("(")[0] == row["city"]:
                    day["accommodation"] = f"{row['NAME']}, {city}"
            yield plan

    def dinners(self, rows: list[Row]) -> Iterator[Plan]:
        """The dear tables of each city, one after another, at every dinner there."""
        plan = copy.deepcopy(self.plan)
        for row in rows:
            for day in plan:
                city = day["dinner"].rpartition(", ")[2]
                taken = {day[meal].rpartition(", ")[0] for day in plan for meal in MEALS}
                if city.split("(")[0] == row["City"] and row["Name"] not in taken:
                    day["dinner"] = f"{row['Name']}, {city}"
                    yield copy.deepcopy(plan)
                    break

    def without(self) -> Iterator[Plan]:
        """Plans in which a cuisine that somebody needs is served nowhere, its meals taken elsewhere in the city."""
        needed = [
            cuisine
            for person in self.task.stakeholders
            for constraint in person.constraints
            if constraint.id == "cuisines" and constraint.check
            for cuisine in constraint.check["includes"]
        ]
        yield from map(self.cooked_without, needed)

    def cooked_without(self, cuisine: str) -> Plan:
        """Each meal with the cuisine taken where it costs no more and the rest is most alike; or nowhere."""
        plan = copy.deepcopy(self.plan)
        rows = sorted(self.tables["restaurants"], key=lambda row: row["row"])
        first = {(row["Name"], row["City"]): row for row in reversed(rows)}
        for day in plan:
            for meal in MEALS:
                name, _, city = day[meal].rpartition(", ")
                town = city.split("(")[0]
                eaten = first.get((name, town))
                if eaten is not None and cuisine in eaten["Cuisines"]:
                    taken = {each[at].rpartition(", ")[0] for each in plan for at in MEALS}
                    others = [
                        row for row in rows if row["City"] == town and row["Name"] not in taken
                    ]
                    fit = [
                        row
                        for row in others
                        if cuisine not in row["Cuisines"] and cheaper(row, eaten)
                    ]
                    best = max(fit, key=lambda row: len(kinds(row) & kinds(eaten)), default=None)
                    day[meal] = "-" if best is None else f"{best['Name']}, {city}"
        return plan


def cheaper(one: Row, other: Row) -> bool:
    return bool(one["Average Cost"] <= other["Average Cost"])


def kinds(row: Row) -> set[str]:
    return set(row["Cuisines"].split(", "))


if __name__ == "__main__":
    main(sys.argv[1])
