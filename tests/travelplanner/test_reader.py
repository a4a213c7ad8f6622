"""TravelPlanner's lines as tasks: what they hold, what is refused, and that the reference plans pass by arithmetic."""

import copy
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
from jurygraph.schema import TaskLine
from jurygraph.sources.importers import Imported, Note
from tests.travelplanner.audit import Audit, audit
from tests.travelplanner.test_queries import READ
from tests.travelplanner.train import TRAIN, lines

LINES = lines()
SMALL = LINES["01"]
JOINED = {
    "task": SMALL["id"],
    "stakeholders": [{"id": "ann", "constraints": [{"id": "short", "kind": "soft"}]}, {"id": "bob", "profile": "shy"}],
    "tensions": [{"between": ["ann", "bob"], "strength": 0.5}],
}


@pytest.fixture(scope="module")
def tasks() -> dict[str, TaskLine]:
    """All tasks, by the numbers in their ids."""
    return {task.id.rpartition("-")[2]: task for task in read_travelplanner(TRAIN)}


@pytest.fixture(scope="module")
def jury() -> Iterator[Jury]:
    with Jury.from_config({"evaluators": ["checks.constraints"], "derivers": ["facts.claims"]}) as made:
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
        wanted |= {f"house-rule-{rest['rule'].removeprefix('No ').replace(' ', '-')}"} if "rule" in rest else set()
        wanted |= {f"no-{rest['barred'].lower()}"} if "barred" in rest else set()
        assert (travellers.id, {constraint.id for constraint in travellers.constraints}) == ("travellers", wanted)


# Who travels


def test_stakeholders_are_joined_by_the_ids_of_the_tasks(tmp_path: Path) -> None:
    other = {"task": LINES["03"]["id"], "stakeholders": [{"id": "cem"}]}
    profiles = write_lines(tmp_path / "p.jsonl", other, JOINED)
    small, third = read_travelplanner(write_lines(tmp_path / "a.jsonl", SMALL, LINES["03"]), profiles)
    assert [one.model_dump(exclude_defaults=True) for one in small.stakeholders] == [
        {"id": "ann", "constraints": ({"id": "short", "kind": "soft"},)},
        {"id": "bob", "profile": "shy"},
    ]
    assert [(tension.between, tension.strength) for tension in small.tensions] == [(("ann", "bob"), 0.5)]
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
def test_stakeholders_that_do_not_fit_are_refused(tmp_path: Path, profiles: list[Any], words: str) -> None:
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
        ({"facts": {"Restaurants in Bangor": [1]}}, "field facts: has no list of rows in 'Restaurants in Bangor'"),
        ({"facts": []}, "field facts: is a list; write an object"),
        ({"plan": [1]}, "field plan[0]: is the number 1; write an object"),
        ({"plans": []}, "field plans: unknown; did you mean plan?"),
        ({"id": ""}, "field id: is empty"),
        ({"id": 5}, "field id: is the number 5; write text, in quotes"),
        ({"id": LINES["03"]["id"]}, "field id: is 'travelplanner-train-03' again, as in line 1; give each"),
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


def test_a_row_of_columns_is_the_task_of_its_query(tmp_path: Path, tasks: dict[str, TaskLine]) -> None:
    searches = [{"Description": name, "Content": content} for name, content in SMALL["facts"].items()]
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


def test_a_row_with_idx_and_without_facts_is_a_task_whose_plan_counts_its_days(tmp_path: Path) -> None:
    row = {"idx": 7, "query": f"For one person, {TRIP}.", "plan": [{"day": 1, "dinner": "-"}]}
    (imported,) = import_travelplanner(write_lines(tmp_path / "a.jsonl", row))
    assert isinstance(imported, Imported)
    assert imported.task is not None
    assert (imported.task.id, imported.task.facts) == ("7", None)
    assert imported.task.responses[0].data == [{"days": 1, "dinner": "-"}]
    assert imported.notes == (Note(FACTLESS, "7"),)


def test_rows_that_cannot_be_read_are_skipped_alone(tmp_path: Path) -> None:
    bad = [{**SMALL, "query": "Plan a trip."}, {**SMALL, "days": "x"}, {"id": "x"}]
    path = write_lines(tmp_path / "a.jsonl", bad[0], SMALL, *bad[1:], SMALL, LINES["03"])
    with path.open("a") as file:
        file.write("{")
    rows = list(import_travelplanner(path))
    assert [row.task.id for row in rows if isinstance(row, Imported) and row.task] == [SMALL["id"], LINES["03"]["id"]]
    assert [row.error for row in rows if isinstance(row, Skipped)] == [
        "a.jsonl, line 1, field query: has no budget such as $1,700",
        "a.jsonl, line 3, field days: is the text 'x'; write a whole number, without quotes",
        "a.jsonl, line 4, field query: is missing; every row needs it",
        "a.jsonl, line 5, field id: is 'travelplanner-train-01' again, as in line 2; give each row one id",
        "a.jsonl, line 7: is not valid JSON: Expecting property name enclosed in double quotes at column 2; each line "
        "is one whole JSON object",
    ]


def test_a_file_without_a_row_that_can_be_read_is_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", {**SMALL, "query": "?"}, {"id": "x"})
    with pytest.raises(InputError) as caught:
        list(import_travelplanner(path))
    first = "a.jsonl, line 1, field query: has no budget such as $1,700"
    assert str(caught.value) == f"a.jsonl: none of its 2 rows can be read; the first error: {first}"


# The checks against a second computation


def verdicts(jury: Jury, task: TaskLine, *plans: Any) -> list[dict[str, RecordedVerdict]]:
    """Return the verdicts on each plan, by the ids of the constraints."""
    task_alone, _ = task.split()
    responses = [Response(id=f"r{number}", text="", data=plan) for number, plan in enumerate(plans)]
    return [{verdict.subject: verdict for verdict in trace.verdicts} for trace in jury.score(task_alone, responses)]


def expected_results(name: str, found: Audit) -> dict[str, bool]:
    """Return which constraints hold, by a person's reading of the query and a second computation on the plan."""
    _, first, last, budget, rest = READ[name]
    held = {"days": found.days == last - first + 1, "budget": found.cost <= budget, "minimum-nights": found.nights}
    home = ORIGINS[name]
    held |= {
        "nights": found.beds == last - first,
        "sets-out": home in found.ends[0],
        "comes-home": home in found.ends[1],
    }
    held |= {f"{kind}-in-place": there for kind, there in found.in_place.items()}
    if "rule" in rest:
        rule = rest["rule"]
        allowed = all(rule not in rules.split(" & ") for rules in found.rules)
        held[f"house-rule-{rule.removeprefix('No ').replace(' ', '-')}"] = allowed
    if "room" in rest:
        held["room-type"] = set(found.rooms) == {rest["room"]}
    if "cuisines" in rest:
        held["cuisines"] = set(rest["cuisines"].split()) <= found.cuisines
    if "barred" in rest:
        held[f"no-{rest['barred'].lower()}"] = rest["barred"] not in found.modes
    return held


ORIGINS = dict(
    pair.split(" ", 1)
    for pair in (
        "00 St. Petersburg|01 Kansas City|03 New Orleans|04 Las Vegas|06 Santa Ana|07 Baton Rouge|09 Greer|10 Houston|"
        "12 Gulfport|13 Daytona Beach|15 Fort Lauderdale|16 Sacramento|18 Washington|19 Fort Lauderdale|21 New York|"
        "22 San Jose|24 Memphis|25 Santa Ana|27 St. Louis|28 Louisville|30 Houston|31 Bangor|33 Provo|34 Atlanta|"
        "36 Richmond|37 Sacramento|39 Denver|40 Indianapolis|42 Greensboro|43 Moline"
    ).split("|")
)
"""Where each trip begins and ends, as a person reads it."""


def amount(verdict: RecordedVerdict) -> float:
    found = re.search(r" is ([\d.]+)(?:, as asked|, not )", verdict.reason)
    assert found is not None, verdict.reason
    return float(found[1])


EACH_PLAN = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.exhaustive if place % 3 else ()) for place, name in enumerate(LINES)],
)
"""Every third plan; the others in `make test-exhaustive`."""


@EACH_PLAN
def test_a_reference_plan_passes_and_its_cost_matches_a_second_computation(
    name: str, tasks: dict[str, TaskLine], jury: Jury
) -> None:
    line = LINES[name]
    (found,) = verdicts(jury, tasks[name], line["plan"])
    audited = audit(line["facts"], line["plan"], READ[name][0])
    assert f"{amount(found['budget']):.2f}" == f"{audited.cost:.2f}"
    assert {subject: verdict.met for subject, verdict in found.items()} == expected_results(name, audited)
    assert {verdict.score for verdict in found.values()} == {1.0}


@EACH_PLAN
def test_other_plans_pass_and_fail_as_a_second_computation_says(
    name: str, tasks: dict[str, TaskLine], jury: Jury
) -> None:
    line = LINES[name]
    plans = list(altered_plans(line))
    assert len(plans) > 5
    for plan, found in zip(plans, verdicts(jury, tasks[name], *plans), strict=True):
        audited = audit(line["facts"], plan, READ[name][0])
        assert f"{amount(found['budget']):.2f}" == f"{audited.cost:.2f}"
        assert {subject: verdict.met for subject, verdict in found.items()} == expected_results(name, audited)


def altered_plans(line: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The reference plan with other stays, another way there, without its last day, and with other meals."""
    plan, facts = line["plan"], line["facts"]
    stay = plan[0]["accommodation"]
    city = stay.rpartition(", ")[2]
    for row in facts[f"Accommodations in {city.split('(')[0]}"][:6]:
        yield [
            {**day, "accommodation": f"{row['NAME']}, {city}"} if day["accommodation"] == stay else day for day in plan
        ]
    origin, destination = re.findall(r"(?:from|to) ([^,(]+?)(?:\([^)]*\))?(?= to |,)", plan[0]["transportation"])[:2]
    for mode in ("Self-driving", "Taxi"):
        if "cost: " in str(facts.get(f"{mode} from {origin} to {destination}")):
            way = f"{mode}, from {origin} to {destination}, duration: 1, distance: 1, cost: 1"
            yield [{**plan[0], "transportation": way}, *plan[1:]]
    yield plan[:-1]
    for row in facts[f"Restaurants in {city.split('(')[0]}"][:3]:
        yield [{**day, "dinner": f"{row['Name']}, {city}"} for day in copy.deepcopy(plan)]


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
    (found,) = verdicts(jury, tasks["01"], plan)
    assert {name for name, verdict in found.items() if verdict.score == 0.0} == failed
    assert text in found["budget"].reason
