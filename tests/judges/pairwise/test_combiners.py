"""Combiners of comparisons in both orders: shares of wins and ranks, and Bradley-Terry."""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph import PlanError
from jurygraph.agents.registry import load_combiner
from jurygraph.aggregation.pairwise import bradley_terry
from jurygraph.schema import ComponentInput
from tests.examples import at_most
from tests.judges.pairwise.groups import (
    Group,
    bounds,
    by_rank,
    combine_group,
    lists,
    pairs,
    values,
)

Draw = Callable[[st.SearchStrategy[Any]], Any]
COMPARING = [("win-share", {}), ("bradley-terry", {}), ("bradley-terry", {"prior": 2.0})]
LISTING = [("rank-share", {}), ("bradley-terry", {"shown": "lists"})]
every_pairs = pytest.mark.parametrize(("name", "params"), COMPARING, ids=str)


def diagnostic(group: Group, what: str, name: str = "win-share", **params: Any) -> list[float]:
    return [
        round(one, 12) for one in combine_group(name, group, **params).diagnostics[what].tolist()
    ]


# All is judged


def test_the_share_of_wins_goes_by_both_orders() -> None:
    group = pairs({"ab": 1, "ba": 0, "ac": 1, "ca": 1, "bc": 0.5, "cb": 0.5})
    assert values("win-share", group) == [0.75, 0.25, 0.5]


def test_diagnostics_report_flips_and_preference_for_the_first() -> None:
    group = pairs({"ab": 1, "ba": 1, "ac": 1, "ca": 0, "bc": 0, "cb": 0})
    assert diagnostic(group, "flips") == [0.5, 1.0, 0.5]
    assert diagnostic(group, "first") == [0.75, 0.5, 0.25]


@every_pairs
def test_a_judge_that_always_prefers_the_first_gives_equal_credit(
    name: str, params: dict[str, Any]
) -> None:
    group = pairs({one + other: 1.0 for one, other in permutations("abcd", 2)})
    found = combine_group(name, group, **params)
    assert found.value.tolist() == [0.5] * 4
    assert found.diagnostics["flips"].tolist() == [1.0] * 4
    assert found.diagnostics["first"].tolist() == [1.0] * 4


def test_bradley_terry_is_the_mean_probability_to_win() -> None:
    wins = np.array([[0, 1, 0.5], [0, 0, 1], [0.5, 0, 0]])
    group = pairs({"ab": 1, "ba": 0, "ac": 1, "ca": 1, "bc": 1, "cb": 0})
    p = bradley_terry(wins, 0.3)
    chances = [[p[i] / (p[i] + p[j]) for j in range(3) if j != i] for i in range(3)]
    found = combine_group("bradley-terry", group, prior=0.3)
    assert found.value == pytest.approx(np.array(chances).mean(axis=1), abs=1e-12)
    assert found.diagnostics["strength"] == pytest.approx(p, abs=1e-12)


# Listings


def test_the_share_of_places_goes_by_both_listings() -> None:
    assert values("rank-share", lists("abc", "abc")) == [1.0, 0.5, 0.0]
    assert values("rank-share", lists("abc", "bac")) == [0.75, 0.75, 0.0]
    assert values("rank-share", lists("abc", "cba")) == [0.5, 0.5, 0.5]


def test_a_ranking_equals_its_pairs() -> None:
    both = lists("bca", "bac")
    same = pairs({"ab": 0, "ba": 1, "bc": 1, "cb": 0, "ac": 0, "ca": 0})
    assert combine_group("bradley-terry", both, shown="lists").value == pytest.approx(
        combine_group("bradley-terry", same).value, abs=1e-12
    )
    assert values("rank-share", both) == values("win-share", same)


# What was not judged


@every_pairs
def test_a_missing_order_is_lost_for_both(name: str, params: dict[str, Any]) -> None:
    whole = by_rank("abc")
    for pair in ("ab", "ba"):
        found = combine_group(name, whole.with_scores(**{pair: None}), **params).value
        worse = [
            combine_group(name, whole.with_scores(**{pair: score}), **params).value
            for score in (0.0, 0.5, 1.0)
        ]
        for place in (0, 1):
            assert found[place] <= min(one[place] for one in worse) + 1e-12


def test_the_judged_part_consists_of_pairs_judged_in_both_orders() -> None:
    group = pairs({"ab": 1, "ba": None, "ac": 1, "ca": 0, "bc": 1, "cb": 0})
    assert combine_group("win-share", group, "partial").value.tolist() == [1.0, 1.0, 0.0]


# Whom a gate stopped


@every_pairs
@pytest.mark.parametrize("stopped", "abcd")
def test_a_response_that_a_gate_stopped_has_0_and_changes_nothing_for_the_others(
    stopped: str, name: str, params: dict[str, Any]
) -> None:
    left = "".join(one for one in "cabd" if one != stopped)
    alone = dict(zip(sorted(left), combine_group(name, by_rank(left), **params).value, strict=True))
    for scenario in ("counted", "low", "high", "partial"):
        found = combine_group(name, by_rank(left, stopped), scenario, **params)
        assert found.present.all()
        assert dict(zip("abcd", found.value, strict=True)) == pytest.approx(
            {**alone, stopped: 0.0}, abs=1e-12
        )


# Bounds


@st.composite
def draw_groups(draw: Draw, listed: bool) -> tuple[Group, Group]:
    """A group with verdicts missing and responses stopped, and the same with every missing one as it may turn out."""
    names = "abcd"[: draw(st.integers(2, 4))]
    stopped = draw(st.sets(st.sampled_from(names), max_size=1)) if len(names) > 2 else set()
    asked = [name for name in names if name not in stopped]
    said: dict[tuple[str, Any], float] = {}
    if listed:
        for turn in (0, 1):
            ranking = draw(st.permutations(asked))
            said |= {(name, turn): 1 - ranking.index(name) / (len(asked) - 1) for name in asked}
        missing = {place for place in said if draw(st.sampled_from([True, False, False]))}
    else:
        said = {pair: draw(st.sampled_from([0.0, 0.5, 1.0])) for pair in permutations(asked, 2)}
        missing = {pair for pair in said if draw(st.booleans())}
    holes = {place: None if place in missing else score for place, score in said.items()}
    return Group(names, holes, stopped, listed), Group(names, said, stopped, listed)


@pytest.mark.landing
@pytest.mark.parametrize(
    ("name", "params", "listed"),
    [(*one, False) for one in COMPARING] + [(*one, True) for one in LISTING],
    ids=str,
)
@settings(max_examples=at_most(75), deadline=None)
@given(data=st.data())
def test_the_bounds_hold_for_any_unjudged_verdicts(
    name: str, params: dict[str, Any], listed: bool, data: st.DataObject
) -> None:
    holes, whole = data.draw(draw_groups(listed))
    least, greatest = bounds(name, holes, **params)
    for value in (
        combine_group(name, whole, **params).value,
        combine_group(name, holes, **params).value,
    ):
        assert (least - 1e-12 <= value).all()
        assert (value <= greatest + 1e-12).all()
    assert (least >= 0).all()
    assert (greatest <= 1).all()


@pytest.mark.parametrize(("name", "listed"), [("win-share", False), ("rank-share", True)])
@settings(max_examples=at_most(75), deadline=None)
@given(data=st.data())
def test_nothing_is_gained_by_being_unjudged(name: str, listed: bool, data: st.DataObject) -> None:
    holes, whole = data.draw(draw_groups(listed))
    assert (combine_group(name, holes).value <= combine_group(name, whole).value).all()
    assert (combine_group(name, holes).value == bounds(name, holes)[0]).all()


@settings(max_examples=at_most(50), deadline=None)
@given(data=st.data())
def test_no_response_gains_by_its_own_unjudged_pairs_in_bradley_terry(data: st.DataObject) -> None:
    _, whole = data.draw(draw_groups(False))
    one = data.draw(st.sampled_from(sorted(whole.names)))
    said = {
        pair: None if one in pair and data.draw(st.booleans()) else score
        for pair, score in whole.said.items()
    }
    place = sorted(whole.names).index(one)
    holes = Group(whole.names, said, whole.stopped)
    assert (
        combine_group("bradley-terry", holes).value[place]
        <= combine_group("bradley-terry", whole).value[place] + 1e-9
    )


# Any group


@settings(max_examples=at_most(40), deadline=None)
@given(st.data())
def test_shares_of_wins_average_one_half(data: st.DataObject) -> None:
    said = {pair: data.draw(st.sampled_from([0.0, 0.5, 1.0])) for pair in permutations("abcd", 2)}
    for name, params in COMPARING:
        assert combine_group(name, Group("abcd", said), **params).value.sum() == pytest.approx(
            2.0, abs=1e-9
        )


@settings(max_examples=at_most(40), deadline=None)
@given(st.data())
def test_names_do_not_matter(data: st.DataObject) -> None:
    said = {
        pair: data.draw(st.sampled_from([0.0, 0.5, 1.0, None])) for pair in permutations("abcd", 2)
    }
    moved = dict(zip("abcd", data.draw(st.permutations("abcd")), strict=True))
    renamed = {(moved[one], moved[other]): score for (one, other), score in said.items()}
    for name, params in COMPARING:
        before = dict(
            zip("abcd", combine_group(name, Group("abcd", said), **params).value, strict=True)
        )
        after = dict(
            zip("abcd", combine_group(name, Group("abcd", renamed), **params).value, strict=True)
        )
        assert {moved[one]: value for one, value in before.items()} == pytest.approx(
            after, abs=1e-9
        )


# What a combiner refuses


def test_it_reads_one_question() -> None:
    for name in ("win-share", "rank-share", "bradley-terry"):
        with pytest.raises(PlanError, match="reads the verdicts of one question, not of 2"):
            load_combiner(name).freeze(
                {"e": ComponentInput(questions=("q", "r"), weights=(1.0, 1.0))}, {}
            )
