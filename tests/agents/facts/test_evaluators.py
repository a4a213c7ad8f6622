"""The evaluator `facts.confirmed`, used through a jury as users do."""

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from examples.group_trip.travelplanner import read_travelplanner
from jurygraph import InputError, Jury, PlanError, Response, Task, Verdict
from jurygraph.conformance import check_evaluator
from jurygraph.graphs.routing import ReusedResults
from jurygraph.schema import Plan, Stakeholder
from tests.agents.facts.examples import PLACES, make_facts, write_table
from tests.rows import all_rows

TRAIN = Path(__file__).parents[2] / "data" / "travelplanner" / "train.jsonl.gz"
TOOLS = "tests.agents.facts.examples"
RIGHT, WRONG, MOVED = "Coco Bambu, Rockford", "Coco Bambo, Rockford", "Subway, Rockford"


def jury(use: Any = "facts.confirmed", **params: Any) -> Jury:
    return Jury.from_config(
        {"evaluators": [use], "derivers": [{"use": "facts.claims", "params": params}]}
    )


def task(facts: Any = None, **fields: Any) -> Task:
    return Task(
        id="trip", query="Where to?", facts=make_facts() if facts is None else facts, **fields
    )


def response(*texts: str, name: str = "r") -> Response:
    return Response(id=name, text="", data=[{"meal": text} for text in texts])


def verdicts(
    made: Jury, planned_questions: Task, *responses: Response, plan: Plan | None = None
) -> list[Verdict]:
    with made:
        traces = made.score(planned_questions, responses, plan=plan)
    return [verdict for trace in traces for verdict in trace.verdicts]


def verdict(*texts: str, facts: Any = None, **params: Any) -> Verdict:
    (one,) = verdicts(jury(**params), task(facts), response(*texts))
    return one


@pytest.mark.parametrize(
    ("texts", "score"),
    [
        ([RIGHT], 1.0),
        ([RIGHT, WRONG], 0.5),
        ([WRONG, MOVED], 0.0),
        ([RIGHT, f"{RIGHT}, 72", MOVED], 2 / 3),
        ([RIGHT] * 9 + [MOVED], 0.5),
        ([RIGHT, "x"], 0.5),
    ],
)
def test_the_score_is_the_share_that_is_confirmed(texts: Sequence[str], score: float) -> None:
    given = verdict(*texts)
    different = len(set(texts))
    assert (given.score, given.met, given.scale) == (
        pytest.approx(score),
        score == 1.0,
        (0, different),
    )
    assert given.native == pytest.approx(score * different)


def test_a_kind_without_claims_is_not_judged_if_another_kind_has_some() -> None:
    facts = make_facts()
    facts["claims"]["drinks"] = {**facts["claims"]["meals"], "at": ["$[*].drink"]}
    found = {one.subject: one for one in verdicts(jury(), task(facts), response(RIGHT))}
    assert found["meals"].score == 1.0
    assert (found["drinks"].status, found["drinks"].reason) == (
        "abstained",
        "the response's data claims no drinks",
    )


@all_rows(
    "data",
    ["Coco Bambu, Rockford", 5, {"meal": RIGHT}, [], {}, "", [{"meal": "-"}], [{"meal": ""}]],
)
def test_data_that_claims_nothing_at_all_has_nothing_confirmed(data: Any) -> None:
    (given,) = verdicts(jury(), task(), Response(id="r", text=RIGHT, data=data))
    assert (given.score, given.met) == (0.0, False)
    assert given.reason == "the response's data claims nothing that could be looked up"


def test_a_response_without_data_is_not_judged() -> None:
    (given,) = verdicts(jury(), task(), Response(id="r", text=RIGHT))
    assert (given.status, given.reason) == ("abstained", "the response's data claims no meals")


# Audience and kinds

TWO_KINDS = make_facts()
TWO_KINDS["claims"]["snacks"] = {**TWO_KINDS["claims"]["meals"], "at": ["$[*].snack"]}


def test_every_stakeholder_may_be_requested() -> None:
    people = (Stakeholder(id="b"), Stakeholder(id="a"))
    use = {"use": "facts.confirmed", "params": {"audience": "stakeholder"}}
    given = verdicts(jury(use), task(TWO_KINDS, stakeholders=people), response(RIGHT, WRONG))
    scores = {(one.stakeholder, one.subject, one.layer): one.score for one in given}
    assert {who: score for who, score in scores.items() if score is not None} == {
        ("a", "meals", "fact"): 0.5,
        ("b", "meals", "fact"): 0.5,
    }
    assert len(scores) == 4


# Tools


def test_a_tool_of_the_config_is_called() -> None:
    given = verdict(
        RIGHT, WRONG, facts=make_facts(tool="maps"), tools={"maps": f"{TOOLS}.find_alike"}
    )
    assert (given.score, given.reason) == (
        0.5,
        "1 of 2 meals are confirmed; 'Coco Bambo, Rockford' is not there in places",
    )


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        ({"maps": f"{TOOLS}.find_trouble"}, "the guide cannot be reached"),
        ({"maps": f"{TOOLS}.find_words"}, "facts table 'places': its tool gave str"),
    ],
)
def test_a_tool_without_an_answer_earns_nothing(tools: Mapping[str, str], problem: str) -> None:
    given = verdict(RIGHT, facts=make_facts(tool="maps"), tools=dict(tools))
    assert (given.status, given.score) == ("failed", None)
    assert given.failure is not None
    assert given.failure.cause != "response"
    assert problem in given.failure.message


@pytest.mark.parametrize(
    ("tools", "hint"),
    [
        ({}, "list it in the params of facts.claims"),
        ({"map": f"{TOOLS}.find_place"}, "did you mean map?"),
    ],
)
def test_a_tool_that_the_config_does_not_list_is_refused(
    tools: Mapping[str, str], hint: str
) -> None:
    with pytest.raises(PlanError) as caught:
        verdict(RIGHT, facts=make_facts(tool="maps"), tools=dict(tools))
    assert str(caught.value) == (
        f"task 'trip': facts.tables.places.tool: there is no tool 'maps' in the config; {hint}, as tools: "
        "{name: package.tool}"
    )


# Files


def test_a_plan_is_refused_if_its_file_has_changed(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", PLACES)
    facts = task(make_facts(file=str(path)))
    with jury() as made:
        plan = made.prepare(facts)
        (right,) = made.score(facts, [response(RIGHT)], plan=plan)
        write_table(path, [*PLACES, {"name": "Coco Bambo", "city": "Rockford", "cost": 1}])
        with pytest.raises(
            InputError, match=r"was made with other facts: the input of deriver 'facts\.claims'"
        ):
            made.score(facts, [response(WRONG)], plan=plan)
        (planned_again,) = made.score(facts, [response(WRONG)])
    assert right.verdicts[0].score == planned_again.verdicts[0].score == 1.0


def test_material_from_another_file_is_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", PLACES)
    facts = task(make_facts(file=str(path)))
    with jury() as made:
        (before,) = made.score(facts, [response(RIGHT)])
        write_table(path, PLACES[1:])
        recalled = ReusedResults({}, {("claims", "r"): before.material[0]})
        (after,) = asyncio.run(made.ascore(facts, [response(RIGHT)], reused_results=recalled))
    assert (after.verdicts[0].status, after.verdicts[0].score) == ("failed", None)


# Real trips


def test_it_conforms(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing remembered, since facts whose keys were turned are the same facts."""
    monkeypatch.setattr("jurygraph.agents.facts.evaluators._MAX_CACHED_ENTRIES", 0)
    groups = [line.split() for line in itertools.islice(read_travelplanner(TRAIN), 2)]
    assert check_evaluator("facts.confirmed", groups, ["facts.claims"]) > 50
