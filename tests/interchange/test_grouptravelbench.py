"""GroupTravelBench: people as stakeholders, and what they want as constraints. All rows are invented for the tests."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph import Jury, Response
from jurygraph.agents.checks.evaluators import iter_stated_values
from jurygraph.interchange.grouptravelbench import GroupTrip
from jurygraph.schema import Stakeholder
from tests.interchange.published import (
    GROUPTRAVELBENCH,
    import_rows,
    notes_of,
    tasks,
    write_rows,
)

FORM = "grouptravelbench"
CITY = "city_specific_preferences.甲市"


def people_of(path: Path, row: dict[str, Any] = GROUPTRAVELBENCH[0]) -> dict[str, Stakeholder]:
    (task,) = tasks(FORM, path, row)
    return {person.id: person for person in task.stakeholders}


def changed(**preference: Any) -> dict[str, Any]:
    """The first row with other preferences of User1."""
    row = deepcopy(GROUPTRAVELBENCH[0])
    row["user_preferences"]["User1"]["preference"] = preference
    return row


def test_a_trip_is_a_task_whose_query_has_nobodys_own_words(tmp_path: Path) -> None:
    first, second = tasks(FORM, tmp_path / "in.jsonl", *GROUPTRAVELBENCH)
    assert (first.id, second.id) == ("task_a", "7")
    assert first.query == f"{GROUPTRAVELBENCH[0]['query']}\n{GROUPTRAVELBENCH[0]['context']}"
    assert second.query == "A day out for two"
    assert (first.rubric, first.responses, first.tensions) == (None, (), ())
    assert first.metadata == {
        "metadata": GROUPTRAVELBENCH[0]["metadata"],
        "difficulty_score": 2.5,
        "difficulty_type": "easy",
    }
    assert second.metadata == {}
    assert notes_of(FORM, tmp_path / "in.jsonl", *GROUPTRAVELBENCH) == []


def test_a_date_that_the_context_leaves_out_is_in_the_query(tmp_path: Path) -> None:
    (task,) = tasks(
        FORM, tmp_path / "in.jsonl", {**GROUPTRAVELBENCH[0], "context": "出发城市：丙市"}
    )
    assert task.query == f"{GROUPTRAVELBENCH[0]['query']}\n出发城市：丙市\n2031-04-05"


def test_a_profile_has_the_persons_own_role_and_statement_alone(tmp_path: Path) -> None:
    people = people_of(tmp_path / "in.jsonl")
    assert {name: person.profile for name, person in people.items()} == {
        "User1": "姐姐\n甲塔我一定要去。",
        "User2": "弟弟\n我最多花1800元。",
    }


def test_the_strong_tier_is_hard_and_the_weak_one_soft(tmp_path: Path) -> None:
    people = people_of(tmp_path / "in.jsonl")
    assert [(c.id, c.kind, c.text, c.restrictiveness) for c in people["User2"].constraints] == [
        (
            "global_constraints.avg_budget: 1800",
            "hard",
            "The trip costs this person 1800 yuan at most.",
            1.0,
        ),
        (
            "global_constraints.transport.prefer: 轮船",
            "soft",
            "Travel between cities is preferably by 轮船.",
            1.0,
        ),
        (
            "global_constraints.transport.avoid: 飞机",
            "soft",
            "Travel between cities is preferably not by 飞机.",
            1.0,
        ),
        (
            "global_constraints.transport.reject: 自驾",
            "hard",
            "Travel between cities is never by 自驾.",
            1.0,
        ),
        (
            "global_constraints.intensity.max_poi_per_day: 2",
            "hard",
            "There are at most 2 attractions a day.",
            1.0,
        ),
        (
            "global_constraints.intensity.max_active_hours: 7.5",
            "hard",
            "Attractions and travel within a city take at most 7.5 hours a day.",
            1.0,
        ),
        (
            "global_constraints.hotel_preference.avoid: 青旅",
            "soft",
            "Hotels are preferably not of the kind 青旅.",
            1.0,
        ),
    ]
    assert [(c.id, c.kind) for c in people["User1"].constraints] == [
        ("global_constraints.avg_budget: 2500", "hard"),
        ("global_constraints.transport.must: 高铁", "hard"),
        ("global_constraints.transport.must: 轮船", "hard"),
        ("global_constraints.hotel_preference.prefer: 民宿", "soft"),
        (f"{CITY}.attractions.must_visit: 甲塔", "hard"),
        (f"{CITY}.attractions.reject_visit: 旧矿", "hard"),
        (f"{CITY}.attractions.category_pref.positive: 园林", "soft"),
        (f"{CITY}.attractions.category_pref.negative: 鬼屋", "soft"),
        (f"{CITY}.food.must_eat: 面", "hard"),
        (f"{CITY}.food.prefer_eat: 粥", "soft"),
        (f"{CITY}.food.avoid_eat: 辣", "soft"),
        (f"{CITY}.food.reject_eat: 生食", "hard"),
        ("city_specific_preferences.乙县.attractions.must_visit: 甲塔", "hard"),
    ]
    assert people["User1"].constraints[-1].text == "乙县: 甲塔 is visited."


def test_what_is_left_out_is_reported(tmp_path: Path) -> None:
    odd = changed(
        global_constraints={
            "avg_budget": 0,
            "pets": ["dog"],
            "transport": {"must": ["tram", "tram"], "love": ["bike"]},
        },
        city_specific_preferences={
            "甲市": {"shops": {"must": ["books"]}, "avg_budget": 3},
            "乙县": None,
        },
        moods=["merry"],
    )
    odd["user_preferences"]["User3"] = {"role": "child", "preference": {"global_constraints": None}}
    unread = "preferences in fields that are not read are left out"
    assert notes_of(FORM, tmp_path / "in.jsonl", odd) == [
        (unread, "task_a: User1 global_constraints.pets"),
        (unread, "task_a: User1 global_constraints.transport.love"),
        (unread, f"task_a: User1 {CITY}.shops.must"),
        (unread, f"task_a: User1 {CITY}.avg_budget"),
        (unread, "task_a: User1 moods"),
    ]
    people = people_of(tmp_path / "in.jsonl", odd)
    assert [c.id for c in people["User1"].constraints] == [
        "global_constraints.transport.must: tram"
    ]
    assert list(people) == ["User2", "User1"]


def test_a_trip_on_which_nobody_wants_anything_makes_no_task(tmp_path: Path) -> None:
    row = {
        "task_id": "t",
        "query": "Q",
        "user_preferences": {"Ann": {"role": "", "preference": {}}},
    }
    first, second = import_rows(FORM, write_rows(tmp_path / "in.jsonl", GROUPTRAVELBENCH[0], row))
    assert first.task is not None
    assert second.task is None
    assert second.notes[-1] == ("tasks in which nobody states a preference are left out", "t")


# Preference completeness, from a table that an agent keeps to what `checks.collected` reports


def completeness(path: Path, tables: Any) -> float:
    (task,) = tasks(FORM, path, GROUPTRAVELBENCH[0])
    # without a model nothing else has a verdict
    config = {"evaluators": ["preferences", "checks.collected"]}
    with Jury.from_config(config) as jury:
        (trace,) = jury.score(
            task.split()[0], [Response(id="r", text="A plan.", data={"preferences": tables})]
        )
    return trace.reward.diagnostics["stakeholders"]["preference completeness"]


def test_the_profiles_themselves_are_a_complete_table_and_nothing_is_an_empty_one(
    tmp_path: Path,
) -> None:
    everything = {
        name: user["preference"] for name, user in GROUPTRAVELBENCH[0]["user_preferences"].items()
    }
    assert completeness(tmp_path / "in.jsonl", everything) == 100.0
    assert completeness(tmp_path / "in.jsonl", {}) == 0.0


def test_completeness_is_the_recall_that_the_benchmark_defines(tmp_path: Path) -> None:
    tables = {
        "User1": {
            # 2 of 4
            "global_constraints": {
                "avg_budget": 2500.0,
                "transport": {"must": ["轮船", "马车"]},
            },
            # 1 of 9
            "city_specific_preferences": {"乙县": {"attractions": {"must_visit": ["甲塔"]}}},
        },
        # 0 of 7
        "User2": {"global_constraints": {"avg_budget": 1700, "transport": {"must": ["轮船"]}}},
        "User9": {"global_constraints": {"avg_budget": 1800}},
    }
    assert completeness(tmp_path / "in.jsonl", tables) == pytest.approx(100 * 3 / 20)


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=8)
entries = st.lists(texts, max_size=3, unique=True)
limits = st.integers(0, 9000) | st.floats(0.0, 24.0) | st.none()
foods = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("must_eat", "prefer_eat", "reject_eat"), entries)
)
preferences = st.fixed_dictionaries(
    {
        "global_constraints": st.fixed_dictionaries(
            {
                "avg_budget": limits,
                "transport": st.none() | st.fixed_dictionaries({"must": entries, "avoid": entries}),
            }
        ),
        "city_specific_preferences": st.dictionaries(
            texts, st.fixed_dictionaries({"food": foods}), max_size=3
        ),
    }
)


@given(preferences)
def test_every_constraint_is_found_in_the_table_that_it_was_read_from(
    preference: dict[str, Any],
) -> None:
    users = {"Ann": {"role": "", "preference": preference}}
    row = GroupTrip.model_validate({"task_id": "t", "query": "Q", "user_preferences": users})
    content, _ = row.to_content()
    found = set(iter_stated_values(preference))
    wanted = {
        one["id"]
        for person in (content or {}).get("stakeholders", ())
        for one in person["constraints"]
    }
    assert wanted <= found
    assert {name for name in found - wanted if not name.endswith(": 0")} == set()
