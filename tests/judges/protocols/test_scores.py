"""The protocols' scores are those of DecompR's formulas, worked out by hand, for one to eight people."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from jurygraph import Task, Trace
from tests.judges.criteria.scripted_judge import reply_in_turn
from tests.judges.protocols.trip import (
    ADAPTIVE,
    CHECKLIST,
    DIRECT,
    HOMES,
    NAMES,
    RUBRIC,
    UNIFORM,
    checklist,
    decomposed,
    direct,
    rubric,
    score_protocol,
    trip,
)

every_number = pytest.mark.parametrize("number", [1, 3, 8])
UTILITIES = (10, 1, "5.5", "8.2", 3, "9.9", "6.4", "2.1")
WEIGHTS: dict[int, Sequence[str]] = {
    1: ["1"],
    3: ["0.5", "0.3", "0.2"],
    8: ["0.3", "0.2", "0.1", "0.1", "0.1", "0.1", "0.05", "0.05"],
}


def as_fractions(values: Sequence[Any]) -> list[Fraction]:
    return [Fraction(value) for value in values]


def as_floats(values: Sequence[Any]) -> list[float]:
    return [float(value) for value in values]


def assert_score(trace: Trace, use: str, native: Fraction) -> None:
    """Assert that the reward is R as a share of the range from 1 to 10, with R as a diagnostic."""
    reward = trace.reward
    assert (reward.status, reward.coverage, reward.counts.failed) == ("ok", 1.0, 0)
    assert reward.value == pytest.approx(float((native - 1) / 9), abs=1e-12)
    assert reward.diagnostics[HOMES[use]]["R"] == pytest.approx(float(native), abs=1e-11)


@every_number
@pytest.mark.parametrize("value", [1, "3.7", 10])
def test_direct_is_the_given_score(number: int, value: Any) -> None:
    trace, bodies = score_protocol(direct(float(value)), DIRECT, trip(number))
    assert_score(trace, DIRECT, Fraction(value))
    (verdict,) = trace.verdicts
    assert (verdict.subject, verdict.native, verdict.scale) == (
        "overall",
        float(value),
        (1.0, 10.0),
    )
    assert (verdict.layer, verdict.stakeholder, trace.reward.weights_fixed, len(bodies)) == (
        "model",
        None,
        True,
        1,
    )


@every_number
def test_rubric_is_the_sum_of_five_dimensions_by_their_weights(number: int) -> None:
    values = [number, "8.5", 10, 1, "4.2"]
    trace, bodies = score_protocol(rubric(as_floats(values)), RUBRIC, trip(number))
    weighed = zip(("0.30", "0.25", "0.20", "0.15", "0.10"), values, strict=True)
    assert_score(
        trace,
        RUBRIC,
        sum((Fraction(weight) * Fraction(value) for weight, value in weighed), Fraction(0)),
    )
    assert {one.subject: one.native for one in trace.verdicts} == dict(
        zip(
            (
                "constraint_satisfaction",
                "information_credibility",
                "timeline_feasibility",
                "fairness",
                "conflict_resolution",
            ),
            as_floats(values),
            strict=True,
        )
    )
    assert (trace.reward.weights_fixed, len(bodies)) == (True, 1)


@every_number
def test_checklist_is_the_share_of_the_items_weights_that_is_met(number: int) -> None:
    own = [(place % 2 == 0, True, place % 3 == 0) for place in range(number)]
    met = {
        "B1": True,
        "B2": True,
        "B3": False,
        "C1": True,
        "C2": False,
        "C3": False,
        "D1": True,
        "D2": False,
    }
    met |= {"E1": False, "E2": True}
    trace, bodies = score_protocol(checklist(own, met.__getitem__), CHECKLIST, trip(number))
    reached = Fraction("2.5") * sum(map(sum, own)) + 2 * 2 + Fraction("1.5") + Fraction("1.5") + 1
    asked = Fraction("2.5") * 3 * number + 2 * 3 + Fraction("1.5") * 3 + Fraction("1.5") * 2 + 2
    assert_score(trace, CHECKLIST, reached / asked * 9 + 1)
    found = {one.subject: (one.score, one.met) for one in trace.verdicts}
    assert len(found) == 3 * number + 10
    for name, mets in zip(NAMES, own, strict=False):
        assert [found[f"A/{name}/{place}"] for place in (1, 2, 3)] == [
            (float(one), one) for one in mets
        ]
    assert {
        f"{name[0]}/{name[1]}": (float(one), one) for name, one in met.items()
    }.items() <= found.items()
    assert (trace.reward.weights_fixed, len(bodies)) == (True, 1)


@every_number
def test_decomposed_adaptive_is_the_sum_of_utilities_by_the_judges_own_weights(number: int) -> None:
    utilities, weights = UTILITIES[:number], WEIGHTS[number]
    trace, bodies = score_protocol(
        decomposed(as_floats(utilities), as_floats(weights)), ADAPTIVE, trip(number)
    )
    terms = (
        weight * utility
        for weight, utility in zip(as_fractions(weights), as_fractions(utilities), strict=True)
    )
    assert_score(trace, ADAPTIVE, sum(terms, Fraction(0)))
    assert trace.reward.parts[HOMES[ADAPTIVE]] == pytest.approx(
        {name: (float(utility) - 1) / 9 for name, utility in zip(NAMES, utilities, strict=False)},
        abs=1e-12,
    )
    assert {
        name: trace.reward.diagnostics[HOMES[ADAPTIVE]][f"weight of {name}"]
        for name in NAMES[:number]
    } == (pytest.approx(dict(zip(NAMES, as_floats(weights), strict=False)), abs=1e-12))
    assert (trace.reward.weights_fixed, len(bodies)) == (False, 1)


@every_number
def test_decomposed_uniform_is_the_mean_of_the_same_utilities(number: int) -> None:
    utilities = UTILITIES[:number]
    trace, bodies = score_protocol(
        decomposed(as_floats(utilities), as_floats(WEIGHTS[number])), UNIFORM, trip(number)
    )
    assert_score(trace, UNIFORM, sum(as_fractions(utilities)) / number)
    assert {one.subject: one.native for one in trace.verdicts} == {
        f"utility/{name}": float(utility) for name, utility in zip(NAMES, utilities, strict=False)
    }
    assert (trace.reward.weights_fixed, len(bodies)) == (True, 1)


# Who is there


def task_without_people() -> Task:
    return Task(id="letter", query="Write.")


def test_without_stakeholders_the_checklist_has_no_items_on_people_or_fairness() -> None:
    met = {
        "B1": True,
        "B2": False,
        "B3": False,
        "C1": True,
        "C2": True,
        "C3": True,
        "E1": True,
        "E2": False,
    }
    trace, (body,) = score_protocol(
        checklist([], met.__getitem__), CHECKLIST, task_without_people()
    )
    assert_score(trace, CHECKLIST, (2 + Fraction("4.5") + 1) / (6 + Fraction("4.5") + 2) * 9 + 1)
    assert {one.subject[0] for one in trace.verdicts} == set("BCE")
    shown = body["messages"][1]["content"]
    assert ("A. Hard" in shown, "D. Fairness" in shown, "# For whom" in shown) == (
        False,
        False,
        False,
    )


@pytest.mark.parametrize("use", [ADAPTIVE, UNIFORM])
def test_decomposed_has_no_questions_without_people(use: str) -> None:
    settings = {"evaluators": [use, "maths.length"], "reward": {"length": 1.0}}
    trace, bodies = score_protocol(direct(1.0), use, task_without_people(), settings=settings)
    assert ([one.evaluator for one in trace.verdicts], bodies) == (["maths.length"], [])


# Weights


@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        ([0.5, 0.49], [50 / 99, 49 / 99]),
        ([0.33, 0.33, 0.33], [1 / 3, 1 / 3, 1 / 3]),
        ([0.51, 0.52], [51 / 103, 52 / 103]),
        ([1, 0], [1.0, 0.0]),
    ],
)
def test_rounded_weights_are_shares_of_their_sum(weights: list[float], shares: list[float]) -> None:
    utilities = [9, 2, 4][: len(weights)]
    trace, bodies = score_protocol(decomposed(utilities, weights), ADAPTIVE, trip(len(weights)))
    found = {one.subject: one for one in trace.verdicts}
    for name, weight, share in zip(NAMES, weights, shares, strict=False):
        assert found[f"weight/{name}"].score == pytest.approx(share, abs=1e-12)
        assert (found[f"weight/{name}"].native, found[f"weight/{name}"].scale) == (
            weight,
            (0.0, 1.0),
        )
    expected = sum(
        share * (utility - 1) / 9 for share, utility in zip(shares, utilities, strict=True)
    )
    assert trace.reward.value == pytest.approx(expected, abs=1e-12)
    assert len(bodies) == 1


def test_the_component_is_the_mean_over_samples() -> None:
    """Σ w û of each reply, not of mean weights and mean utilities; the second reply is about bob first."""
    replies = reply_in_turn(
        decomposed([10, 1], [1, 0]), decomposed([10, 1], [1, 0]), decomposed([10, 1], [0.5, 0.5])
    )
    use = {"use": ADAPTIVE, "samples": 3}
    trace, bodies = score_protocol(replies, use, trip(2))
    assert len(bodies) == 3
    assert trace.reward.value == pytest.approx((1.0 + 1.0 + 0.5) / 3, abs=1e-12)
    assert trace.reward.parts[HOMES[ADAPTIVE]] == pytest.approx({"ann": 2 / 3, "bob": 1 / 3})
