"""`jurygraph power` against closed forms: of an intraclass correlation, and of Student's t test."""

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from jurygraph.aggregation.agreement import krippendorff_alpha
from jurygraph.arrays import Floats
from jurygraph.inference.clusters import find_least_count
from jurygraph.studies.agreement import read_parts
from jurygraph.studies.power import (
    PowerStudy,
    ReviewerAndItemEffects,
    estimate_gap_effects,
    simulate_power,
)
from tests.rows import all_rows
from tests.studies.figures import figures_of
from tests.studies.reviewers.test_baselines import random_rows, to_ratings


@all_rows("correlation", [0.3, 0.6])
def test_items_for_a_width_are_those_of_an_intraclass_correlation(correlation: float) -> None:
    """With k ratings of each item, its error is √(2 / k(k-1)) (1-ρ) (1 + (k-1) ρ) / √(n-1) (Fisher)."""
    rng = np.random.default_rng(1)
    true = rng.normal(size=(600, 1)) * np.sqrt(correlation)
    given = 0.5 * np.round(
        2.0 * true + 2.0 * rng.normal(size=(600, 3)) * np.sqrt(1.0 - correlation)
    )
    rows = [
        {"item": f"i{item}", "reviewer": f"r{who}", "score": float(given[item, who])}
        for item in range(600)
        for who in range(3)
    ]
    (two, three) = figures_of(
        PowerStudy(0.06, level="interval").report(read_parts([to_ratings(rows)]))
    ).alpha
    for one in (two, three):
        k = one.per_item
        correlation = krippendorff_alpha(given.T, "interval")  # that of these very ratings
        factor = (
            np.sqrt(2.0 / (k * (k - 1.0))) * (1.0 - correlation) * (1.0 + (k - 1.0) * correlation)
        )
        assert one.needed == pytest.approx((1.96 * factor / 0.06) ** 2 + 1.0, rel=0.15)


def test_reviewers_for_a_difference_are_those_of_student_s_test() -> None:
    rng = np.random.default_rng(2)
    centre = rng.normal(size=400)
    centre /= centre.std()
    gaps = centre[:, None] + rng.normal(size=(400, 40)) * 2.0
    effects = effects_of(gaps)
    for reviewers, ratings in ((12, 4), (30, 10)):
        expected = TTestPower().power(0.6 / np.sqrt(1.0 + 4.0 / ratings), reviewers, 0.05)
        assert simulate_power(effects, 0.6, reviewers, ratings, 0) == pytest.approx(
            expected, abs=0.035
        )
    needed = find_least_count(
        lambda number: simulate_power(effects, 0.6, number, 4, 0) >= 0.8, 1000
    )
    assert needed == pytest.approx(
        TTestPower().solve_power(0.6 / np.sqrt(2.0), None, 0.05, 0.8), abs=3
    )
    assert (
        find_least_count(lambda number: simulate_power(effects, 0.01, 12, number, 0) >= 0.8, 64)
        is None
    )


def effects_of(gaps: Floats) -> ReviewerAndItemEffects:
    reviewer, item = np.indices(gaps.shape).reshape(2, -1)
    return estimate_gap_effects((gaps - gaps.mean()).ravel(), reviewer, item)


def test_errors_that_an_item_has_for_all_reviewers_need_items() -> None:
    """Where items alone differ, the power is that of Student's test over items, however many reviewers there are."""
    centre = np.random.default_rng(4).normal(size=25)
    effects = effects_of(np.tile(centre / centre.std(), (30, 1)) + 0.01)
    expected = TTestPower().power(0.6, 25, 0.05)
    for reviewers in (30, 60, 200):
        assert simulate_power(effects, 0.6, reviewers, 25, 0) == pytest.approx(expected, abs=0.035)
    assert (
        find_least_count(lambda number: simulate_power(effects, 0.3, number, 25, 0) >= 0.8, 256)
        is None
    )


def test_what_gaps_consist_of_is_found_without_what_chance_adds() -> None:
    rng = np.random.default_rng(5)
    gaps = (
        0.5 * rng.normal(size=(60, 1))
        + 0.8 * rng.normal(size=(1, 60))
        + 2.0 * rng.normal(size=(60, 60))
    )
    kept = rng.random(gaps.shape) < 0.3
    reviewer, item = np.nonzero(kept)
    effects = estimate_gap_effects(gaps[kept] - gaps[kept].mean(), reviewer, item)
    spreads = [part.std() for part in effects]
    assert spreads == [
        pytest.approx(0.5, abs=0.15),
        pytest.approx(0.8, abs=0.2),
        pytest.approx(2.0, abs=0.1),
    ]
    alone = estimate_gap_effects(gaps[kept] - gaps[kept].mean(), reviewer, np.arange(len(reviewer)))
    assert not alone.items.any()


def test_ratings_that_never_differ_tell_no_number_of_items() -> None:
    rows = [{"item": f"i{n}", "reviewer": who, "score": n % 5} for n in range(40) for who in "ab"]
    report = PowerStudy(0.1).report(read_parts([to_ratings(rows)]))
    assert [row.needed for row in figures_of(report).alpha] == [None]
    assert " is enough, or no two of these ratings of an item differ; " in report.sections[0]


def test_one_reviewer_is_said_and_curves_are_drawn() -> None:
    alone = [row for row in random_rows(1, items=40) if row["reviewer"] == "r1"]
    report = PowerStudy(difference=0.1).report(read_parts([to_ratings(alone)]))
    assert (figures_of(report).differences, report.plots) == ([], [])
    assert report.notes[0] == "all: has one reviewer; a difference needs ratings of several"
    report = PowerStudy(0.2).report(read_parts([to_ratings(random_rows(3, items=80))]))
    (plot,) = report.plots
    assert [line.label for line in plot.series] == ["2 ratings of an item", "3 ratings of an item"]
    for line, row in zip(plot.series, figures_of(report).alpha, strict=True):
        assert (list(line.x)[-1], list(line.y)[-1]) == (
            row.curve[-1]["items"],
            row.curve[-1].half_width,
        )
