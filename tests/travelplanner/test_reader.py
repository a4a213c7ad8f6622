"""TravelPlanner's lines as tasks: what they hold, what is refused, and that the reference plans pass by arithmetic."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.group_trip.travelplanner import Skipped, import_travelplanner, read_travelplanner
from examples.group_trip.travelplanner.reader import FACTLESS
from jurygraph import InputError, Jury, RecordedVerdict, Response
from jurygraph.interchange.rows import ImportNote, ImportResult
from jurygraph.schema import TaskLine
from tests.rows import all_rows
from tests.travelplanner.test_queries import READ
from tests.travelplanner.train import TRAIN, lines

LINES = lines()
SMALL = LINES["01"]
JOINED = {
    "task": SMALL["id"],
    "stakeholders": [
        {"id": "ann", "constraints": [{"id": "short", "kind": "soft"}]},
        {"id": "bob", "profile": "shy"},
    ],
    "tensions": [{"between": ["ann", "bob"], "strength": 0.5}],
}


@pytest.fixture(scope="module")
def tasks() -> dict[str, TaskLine]:
    """All tasks, by the numbers in their ids."""
    return {task.id.rpartition("-")[2]: task for task in read_travelplanner(TRAIN)}


@pytest.fixture(scope="module")
def jury() -> Iterator[Jury]:
    with Jury.from_config(
        {"evaluators": ["checks.constraints"], "derivers": ["facts.claims"]}
    ) as made:
        yield made


def write_lines(path: Path, *values: Any) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def refusal(path: Path, stakeholders: Path | None = None) -> str:
    with pytest.raises(InputError) as caught:
        list(read_travelplanner(path, stakeholders))
    return str(caught.value)


# What a task holds


def test_every_line_is_a_task_with_its_plan_as_the_one_response(tasks: dict[str, TaskLine]) -> None:
    assert tasks.keys() == LINES.keys()
    for name, task in tasks.items():
        line = LINES[name]
        (response,) = task.responses
        assert (task.id, task.query, task.reference) == (line["id"], line["query"], None)
        assert (response.id, response.agent) == (f"{line['id']}/reference", "reference")
        assert json.dumps(response.data) == json.dumps(line["plan"])
        assert [json.loads(day) for day in response.text.splitlines()] == line["plan"]


def test_one_stakeholder_holds_the_constraints_of_the_query(tasks: dict[str, TaskLine]) -> None:
    for name, task in tasks.items():
        (travellers,) = task.stakeholders
        *_, rest = READ[name]
        wanted = {"days", "budget", "minimum-nights"} | {"cuisines"} & rest.keys()
        wanted |= {
            "nights",
            "sets-out",
            "comes-home",
            *(f"{kind}-in-place" for kind in ("meals", "attractions", "stays")),
        }
        wanted |= {"room-type"} if "room" in rest else set()
        wanted |= (
            {f"house-rule-{rest['rule'].removeprefix('No ').replace(' ', '-')}"}
            if "rule" in rest
            else set()
        )
        wanted |= {f"no-{rest['barred'].lower()}"} if "barred" in rest else set()
        assert (travellers.id, {constraint.id for constraint in travellers.constraints}) == (
            "travellers",
            wanted,
        )


# Who travels


def test_stakeholders_are_joined_by_the_ids_of_the_tasks(tmp_path: Path) -> None:
    other = {"task": LINES["03"]["id"], "stakeholders": [{"id": "cem"}]}
    profiles = write_lines(tmp_path / "p.jsonl", other, JOINED)
    small, third = read_travelplanner(
        write_lines(tmp_path / "a.jsonl", SMALL, LINES["03"]), profiles
    )
    assert [one.model_dump(exclude_defaults=True) for one in small.stakeholders] == [
        {"id": "ann", "constraints": ({"id": "short", "kind": "soft"},)},
        {"id": "bob", "profile": "shy"},
    ]
    assert [(tension.between, tension.strength) for tension in small.tensions] == [
        (("ann", "bob"), 0.5)
    ]
    assert [one.id for one in third.stakeholders] == ["cem"]


@pytest.mark.parametrize(
    ("profiles", "words"),
    [
        ([{**JOINED, "task": "travelplanner-train-02"}, JOINED],
         "p.jsonl, line 1, field task: there is no task 'travelplanner-train-02'; did you mean travel"),
        ([JOINED, {**JOINED, "task": "x"}],
         "p.jsonl, line 2, field task: there is no task 'x'; name a task of a.jsonl, or leave the line out"),
        ([], "a.jsonl, line 1, field id: is 'travelplanner-train-01', which p.jsonl does not have; add it"),
        ([JOINED, JOINED],
         "p.jsonl, line 2, field task: task 'travelplanner-train-01' is already in line 1; keep one of them"),
        ([{**JOINED, "stakeholder": []}], "p.jsonl, line 1, field stakeholder: unknown; did you mean stakeholders?"),
        ([{"task": "x"}], "p.jsonl, line 1, field stakeholders: is missing; profiles need it"),
        ([{**JOINED, "task": ""}], "p.jsonl, line 1, field task: is empty; write at least one character"),
        ([{**JOINED, "tensions": [{"between": ["ann", "bo"]}]}],
         "p.jsonl, line 1, field tensions[0].between[1]: names 'bo', which is not a stakeholder; did you mean 'bob'?"),
        ([{**JOINED, "stakeholders": [{"id": "ann"}, {"id": "ann"}], "tensions": []}],
         "p.jsonl, line 1, field stakeholders[1].id: is 'ann' again"),
    ],
)  # fmt: skip
def test_stakeholders_that_do_not_fit_are_refused(
    tmp_path: Path, profiles: list[Any], words: str
) -> None:
    given = write_lines(tmp_path / "p.jsonl", *profiles)
    assert refusal(write_lines(tmp_path / "a.jsonl", SMALL), given).startswith(words)


# What is refused


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"query": "Plan a trip."}, "field query: has no budget such as $1,700"),
        (
            {"query": "$900, March 1st to March 3rd, 2022, for 0 people."},
            "field query: states 0 people; write",
        ),
        ({"query": "$900 for 2 people."}, "field query: does not state its first and last day"),
        (
            {"facts": {"Hotels in Bangor": []}},
            "field facts: contains 'Hotels in Bangor', which is not a table of Travel",
        ),
        (
            {"facts": {"Restaurants in Bangor": [1]}},
            "field facts: has no list of rows in 'Restaurants in Bangor'",
        ),
        ({"facts": []}, "field facts: is a list; write an object"),
        ({"plan": [1]}, "field plan[0]: is the number 1; write an object"),
        ({"plans": []}, "field plans: unknown; did you mean plan?"),
        ({"id": ""}, "field id: is empty"),
        ({"id": 5}, "field id: is the number 5; write text, in quotes"),
        (
            {"id": LINES["03"]["id"]},
            "field id: is 'travelplanner-train-03' again, as in line 1; give each",
        ),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    path = write_lines(tmp_path / "a.jsonl", LINES["03"], {**SMALL, **change})
    assert refusal(path).startswith(f"a.jsonl, line 2, {words}")


# Published rows


TRIP = "a 3-day trip from Kansas City to Pensacola from March 27th to March 29th, 2022, with a budget of $900"
PUBLISHED = {
    "org": "Kansas City", "dest": "Pensacola", "days": "3", "visiting_city_number": "1",
    "date": "['2022-03-27', '2022-03-28', '2022-03-29']", "people_number": "1",
    "local_constraint": "{'house rule': None, 'cuisine': None, 'room type': None, 'transportation': None}",
    "budget": "900", "level": "easy",
}  # fmt: skip


def test_a_row_of_columns_is_the_task_of_its_query(
    tmp_path: Path, tasks: dict[str, TaskLine]
) -> None:
    searches = [
        {"Description": name, "Content": content} for name, content in SMALL["facts"].items()
    ]
    texts = {
        "reference_information": str(searches),
        "annotated_plan": str([{"org": "Kansas City"}, [*SMALL["plan"], {}]]),
    }
    with (tmp_path / "a.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*PUBLISHED, "query", *texts])
        writer.writeheader()
        writer.writerow({**PUBLISHED, "query": SMALL["query"], **texts})
    (task,) = read_travelplanner(tmp_path / "a.csv")
    assert (task.id, task.query, task.facts) == ("row-2", tasks["01"].query, tasks["01"].facts)
    assert task.stakeholders == tasks["01"].stakeholders
    assert task.responses[0].data == SMALL["plan"]
    about = {"org": "Kansas City", "dest": "Pensacola", "visiting_city_number": 1, "level": "easy"}
    assert task.metadata == about


def test_a_row_with_idx_and_without_facts_is_a_task_whose_plan_counts_its_days(
    tmp_path: Path,
) -> None:
    row = {"idx": 7, "query": f"For one person, {TRIP}.", "plan": [{"day": 1, "dinner": "-"}]}
    (imported,) = import_travelplanner(write_lines(tmp_path / "a.jsonl", row))
    assert isinstance(imported, ImportResult)
    assert imported.task is not None
    assert (imported.task.id, imported.task.facts) == ("7", None)
    assert imported.task.responses[0].data == [{"days": 1, "dinner": "-"}]
    assert imported.notes == (ImportNote(FACTLESS, "7"),)


def test_rows_that_cannot_be_read_are_skipped_alone(tmp_path: Path) -> None:
    bad = [{**SMALL, "query": "Plan a trip."}, {**SMALL, "days": "x"}, {"id": "x"}]
    path = write_lines(tmp_path / "a.jsonl", bad[0], SMALL, *bad[1:], SMALL, LINES["03"])
    with path.open("a") as file:
        file.write("{")
    rows = list(import_travelplanner(path))
    assert [row.task.id for row in rows if isinstance(row, ImportResult) and row.task] == [
        SMALL["id"],
        LINES["03"]["id"],
    ]
    assert [row.error for row in rows if isinstance(row, Skipped)] == [
        "a.jsonl, line 1, field query: has no budget such as $1,700",
        "a.jsonl, line 3, field days: is the text 'x'; write a whole number, without quotes",
        "a.jsonl, line 4, field query: is missing; every row needs it",
        "a.jsonl, line 5, field id: is 'travelplanner-train-01' again, as in line 2; give each row one id",
        "a.jsonl, line 7: is not valid JSON: Expecting property name enclosed in double quotes at column 2; each line "
        "is one whole JSON object, as `jq -c .` writes it, or `jq -c '.[]'` of an array",
    ]


def test_a_file_without_a_row_that_can_be_read_is_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", {**SMALL, "query": "?"}, {"id": "x"})
    with pytest.raises(InputError) as caught:
        list(import_travelplanner(path))
    first = "a.jsonl, line 1, field query: has no budget such as $1,700"
    assert str(caught.value) == f"a.jsonl: none of its 2 rows can be read; the first error: {first}"


# The checks of reference plans and of changed ones


COSTS = (
    "1608 890 1859 1530 3548 2256 3395 5394 4174 3530 2292 4666 1966 1001 12223 13865 13796 5752 9429 19306 1472 3089"
    " 1376 3579 8498 3515 7011 15009 3767 5402"
).split()
"""What each reference plan costs in dollars, by a second computation from the raw lines."""


def verdicts(jury: Jury, task: TaskLine, plan: Any) -> dict[str, RecordedVerdict]:
    """Return the verdicts on a plan, by the ids of the constraints."""
    task_alone, _ = task.split()
    (trace,) = jury.score(task_alone, [Response(id="r", text="", data=plan)])
    return {verdict.subject: verdict for verdict in trace.verdicts}


def cost_of(found: dict[str, RecordedVerdict]) -> str:
    stated = re.search(r" is ([\d.]+)(?:, as asked|, not )", found["budget"].reason)
    assert stated is not None, found["budget"].reason
    return stated[1]


def unmet(found: dict[str, RecordedVerdict]) -> set[str]:
    return {name for name, verdict in found.items() if verdict.score == 0.0}


@all_rows(("name", "cost"), list(zip(LINES, COSTS, strict=True)))
def test_a_reference_plan_passes_at_its_cost(
    name: str, cost: str, tasks: dict[str, TaskLine], jury: Jury
) -> None:
    found = verdicts(jury, tasks[name], LINES[name]["plan"])
    assert float(cost_of(found)) == float(cost)
    assert {verdict.score for verdict in found.values()} == {1.0}


LUXURY, PARK_SIDE = (
    "Pure luxury one bdrm + sofa bed on Central Park",
    "Park Side Zen Home - Terrace & next to CentralPark",
)
LEG = "from Houston to Fayetteville"
FLYING = f"Flight Number: F3923211, {LEG}, Departure Time: 14:30, Arrival Time: 16:17"


@all_rows(
    ("name", "words", "others", "cost", "failed"),
    [
        ("00", LUXURY, PARK_SIDE, 1622, {"minimum-nights"}),
        ("21", "A great place to crash.", "Cozy in Cobble Hill", 9767, {"house-rule-smoking"}),
        ("28", "City Living with a Home Town Feel.", "Spacious 1 BR W/ adjustable Queen bed. Comfy!", 16888,
         {"room-type"}),
        ("30", FLYING, f"Self-driving, {LEG}, duration: 1, distance: 1, cost: 1", 1363, {"no-self-driving"}),
        ("19", "Madly Bangalee", "Cool Basil", 963, set()),
        ("16", "Spacious private room close St. Barnabas Hospital", "FABULOUS SUNNY BEDROOM IN HARLEM", 5264,
         {"budget", "house-rule-parties", "minimum-nights"}),
    ],
)  # fmt: skip
def test_a_changed_plan_costs_and_fails_what_its_rows_say(
    name: str,
    words: str,
    others: str,
    cost: int,
    failed: set[str],
    tasks: dict[str, TaskLine],
    jury: Jury,
) -> None:
    days = [{**day} for day in LINES[name]["plan"]]
    for day in days:
        day.update(
            {
                field: text.replace(words, others)
                for field, text in day.items()
                if isinstance(text, str)
            }
        )
    found = verdicts(jury, tasks[name], days)
    assert (float(cost_of(found)), unmet(found)) == (cost, failed)


def test_a_plan_without_its_last_day_is_too_short_and_does_not_lead_home(
    tasks: dict[str, TaskLine], jury: Jury
) -> None:
    assert unmet(verdicts(jury, tasks["01"], SMALL["plan"][:-1])) == {"days", "comes-home"}


@pytest.mark.parametrize(
    ("column", "text", "failed"),
    [
        ("dinner", "The Golden Spoon, Pensacola(Florida)", {"budget", "meals-in-place"}),
        (
            "accommodation",
            "The Golden Inn, Pensacola(Florida)",
            {"budget", "minimum-nights", "nights", "stays-in-place"},
        ),
        (
            "transportation",
            "Taxi, from Kansas City to Atlantis, duration: 1, distance: 1, cost: 1",
            {"budget", "sets-out"},
        ),
        ("transportation", "by a friend's car", {"budget", "sets-out"}),
    ],
)
def test_invented_facts_of_a_plan_are_rejected(
    column: str, text: str, failed: set[str], tasks: dict[str, TaskLine], jury: Jury
) -> None:
    plan = [{**SMALL["plan"][0], column: text}, *SMALL["plan"][1:]]
    found = verdicts(jury, tasks["01"], plan)
    assert unmet(found) == failed
    assert text in found["budget"].reason
