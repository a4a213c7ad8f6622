"""Annotators left out and items drawn anew: how far rankings, scores and annotators move."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, rankdata

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus.resampling import _stability, tau_b
from jurygraph.errors import PlanError
from tests.aggregation.consensus.reference import drawn


def panel(seed: int = 0, items: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    item, annotator, label, _ = drawn(items, 6, 3, seed, right=0.6)
    return item, annotator, label, np.array(["a", "b", "c", "d"])[item % 4]


def sparse_panel() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """With an agent and an annotator of the last item alone, which not every resample has."""
    item, annotator, label, agent = panel(seed=4, items=24)
    agent = np.where(item == 23, "e", agent)
    return tuple(
        np.append(one, last) for one, last in zip((item, annotator, label, agent), (23, 6, 1, "e"), strict=True)
    )


def score_rows(many: int) -> st.SearchStrategy[list[float]]:
    return st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, float("nan")]), min_size=many, max_size=many)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12))
def test_tau_b_equals_scipys_kendalltau(pairs: list[tuple[int, int]]) -> None:
    first, second = (np.array(one, dtype=np.float64) for one in zip(*pairs, strict=True))
    np.testing.assert_allclose(tau_b(first, second), kendalltau(first, second).statistic, atol=1e-12)


def tau_by_scipy(first: np.ndarray, second: np.ndarray) -> float:
    both = np.isfinite(first) & np.isfinite(second)
    return float(kendalltau(first[both], second[both]).statistic) if both.sum() > 1 else float("nan")


def mean_of(figures: list[float]) -> Any:
    known = [one for one in figures if not np.isnan(one)]
    return pytest.approx(np.mean(known) if known else float("nan"), nan_ok=True)


@given(st.integers(1, 4).flatmap(lambda many: st.lists(score_rows(many), min_size=2, max_size=6)), st.data())
def test_an_agent_counts_in_the_subsets_that_have_it(rows: list[list[float]], data: st.DataObject) -> None:
    """The figures by SciPy, subset by subset; NaN for an agent without an item there."""
    scores = np.array(rows)
    whole = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=len(rows[0]), max_size=len(rows[0])))
    )
    found = _stability(scores, whole)
    ranks = np.array([rankdata(-one, nan_policy="omit") for one in scores])
    by_agent = [column[~np.isnan(column)] for column in ranks.T]
    assert found.tau_b == mean_of([tau_by_scipy(whole, one) for one in scores])
    assert found.rank_sd == mean_of([own.std(ddof=1) for own in by_agent if len(own) > 1])
    assert found.rank_range == mean_of([np.ptp(own) for own in by_agent if len(own)])
    assert found.score_shift == mean_of(list(np.abs(scores - whole).ravel()))
    assert found.subsets == len(rows)


@pytest.mark.parametrize(
    ("scores", "figures"),
    [
        ([[0.5, np.nan], [np.nan, 1.0]], (np.nan, np.nan, 0.0, 0.25, 2)),
        ([[np.nan, np.nan], [np.nan, np.nan]], (np.nan, np.nan, np.nan, np.nan, 2)),
    ],
)
def test_statistics_that_no_subset_defines_are_nan(scores: list[list[float]], figures: tuple[float, ...]) -> None:
    np.testing.assert_allclose(_stability(np.array(scores), np.array([0.0, 1.0])), figures)


@pytest.mark.parametrize(
    ("items_of_d", "own"),
    [
        (15, {}),
        (1, {}),
        (15, {"values": [0.0, 1.0, 5.0], "ties": "highest", "classes": [2, 0, 1], "gold": {3: 0, 40: 2, 41: 1}}),
    ],
)
def test_the_four_statistics_equal_those_of_single_subsets(items_of_d: int, own: dict[str, Any]) -> None:
    item, annotator, label, agent = panel()
    agent = np.where((agent == "d") & (item >= 4 * items_of_d), "a", agent)
    found = consensus.ranking_stability(item, annotator, label, agent, subsets=7, preset="paper", seed=11, **own)
    draw = np.random.RandomState(11)
    known = {"classes": own.get("classes", range(3)), "gold": own.get("gold")}

    def scores(kept: np.ndarray, method: str) -> np.ndarray:
        rows = np.isin(annotator, kept)
        columns = item[rows], annotator[rows], label[rows]
        if method == "majority":
            one = consensus.majority_vote(*columns, own.get("ties", "first"), **known)
        else:
            fit = consensus.fit(*columns, "paper", **known)
            one = fit if method == "stableval" else fit.hard_labels()  # type: ignore[assignment]
        by_agent = one.agent_scores(agent[rows], own.get("values"), bootstrap=0)
        return np.array([by_agent[name].score for name in "abcd"])

    subsets = [draw.choice(6, 4, replace=False) for _ in range(7)]
    for method, figures in found.items():
        each = np.array([scores(kept, method) for kept in subsets])
        whole = scores(np.arange(6), method)
        ranks = np.array([rankdata(-one) for one in each])
        taus = np.array([kendalltau(whole, one).statistic for one in each])
        assert figures.tau_b == pytest.approx(np.nanmean(taus))
        assert figures.rank_sd == pytest.approx(ranks.std(axis=0, ddof=1).mean())
        assert figures.rank_range == pytest.approx(np.ptp(ranks, axis=0).mean())
        assert figures.score_shift == pytest.approx(np.abs(each - whole).mean())
        assert figures.subsets == 7


def test_processes_change_nothing_and_report_each_subset() -> None:
    item, annotator, label, agent = panel()
    reports: list[int] = []
    one = consensus.ranking_stability(item, annotator, label, agent, subsets=6)
    two = consensus.ranking_stability(item, annotator, label, agent, subsets=6, jobs=2, report=reports.append)
    assert one == two
    assert sum(reports) == 6


def test_by_default_50_subsets_of_70_percent_are_drawn_with_seed_42_and_scored_once() -> None:
    item, annotator, label, _ = drawn(12, 3, 2, seed=0, right=0.9)
    reports: list[int] = []
    rows = item, annotator, label, np.array(["a", "b"])[item % 2]
    found = consensus.ranking_stability(*rows, report=reports.append)
    defaults = {"subsets": 50, "fraction": 0.7, "seed": 42, "preset": "converged", "ties": "first", "jobs": 1}
    np.testing.assert_equal(found, consensus.ranking_stability(*rows, **defaults))  # type: ignore[arg-type]
    assert reports == [1, 1, 1, 47]  # there are three pairs of three annotators
    assert {figures.subsets for figures in found.values()} == {50}


@pytest.mark.parametrize("own", [{"subsets": 2}, {"subsets": 2, "fraction": 0.2}, {"subsets": 2, "seed": 2**32 - 1}])
def test_the_smallest_subsets_have_statistics(own: dict[str, Any]) -> None:
    item, annotator, label, agent = panel()
    reports: list[int] = []
    found = consensus.ranking_stability(item, annotator, label, agent, **own, preset="paper", report=reports.append)
    assert {figures.subsets for figures in found.values()} == {2}
    assert reports == [1, 1]


def test_all_annotators_every_time_is_perfectly_stable() -> None:
    item, annotator, label, agent = panel()
    for figures in consensus.ranking_stability(item, annotator, label, agent, subsets=3, fraction=1.0).values():
        assert figures.tau_b == pytest.approx(1.0)
        assert figures.rank_sd == figures.rank_range == 0.0
        assert figures.score_shift == pytest.approx(0.0, abs=1e-9)


def test_an_agent_that_a_subset_lacks_counts_in_the_others() -> None:
    item, annotator, label, agent = panel()
    alone = np.where((agent == "d") & (annotator > 0), None, label.astype(object))  # annotator 0 alone labels d
    found = consensus.ranking_stability(item, annotator, alone, agent, subsets=12, fraction=0.5, classes=range(3))
    assert all(np.isfinite(figures[:4]).all() for figures in found.values())


def test_gold_items_stay_gold_in_every_subset() -> None:
    item, annotator, label, agent = panel()
    gold = {i: i % 3 for i in range(60)}
    for figures in consensus.ranking_stability(item, annotator, label, agent, subsets=3, gold=gold).values():
        assert figures.rank_sd == figures.score_shift == 0.0


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"subsets": 1}, "subsets is 1: at least 2 are needed"),
        ({"fraction": 0.0}, "fraction is 0.0: more than 0 and at most 1 is needed"),
        ({"fraction": 1.01}, "fraction is 1.01"),
        ({"fraction": 0.1}, "a share of 0.1 of 6 annotators is empty; take a larger fraction"),
        ({"jobs": 0}, "jobs is 0"),
        ({"seed": 2**32}, "seed is 4294967296: a whole number from 0 to 4294967295 is needed"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_invalid_subset_settings_are_refused(settings: dict[str, float], wrong: str) -> None:
    item, annotator, label, agent = panel()
    with pytest.raises(PlanError, match=f"^{wrong}"):
        consensus.ranking_stability(item, annotator, label, agent, **settings)  # type: ignore[arg-type]


def test_one_agent_has_no_ranking() -> None:
    item, annotator, label, _ = panel()
    with pytest.raises(PlanError, match="there is one agent, 'x': a ranking needs two"):
        consensus.ranking_stability(item, annotator, label, ["x"] * len(item))


class TestRefits:
    def test_refitted_intervals_are_wider_than_item_bootstraps_for_uncertain_confusions(self) -> None:
        item, annotator, label, agent = panel(seed=2)
        fitted = consensus.fit(item, annotator, label)
        alone = fitted.agent_scores(agent)
        refitted = consensus.refit_intervals(fitted, agent, resamples=100)
        wide, narrow = (
            np.mean([one.high - one.low for one in scores.values()])  # type: ignore[operator]
            for scores in (refitted.agents, alone)
        )
        assert wide > narrow
        assert {name: one.score for name, one in refitted.agents.items()} == {
            name: one.score for name, one in alone.items()
        }

    def test_a_resample_is_a_fit_of_the_rows_that_it_draws(self) -> None:
        """Two resamples: their percentiles lie between their two scores, which a fit of copied rows gives."""
        item, annotator, label, agent = panel(seed=4, items=24)
        fitted = consensus.fit(item, annotator, label, tol=1e-12)
        found = consensus.refit_intervals(fitted, agent, resamples=2, seed=7)
        draw = np.random.default_rng(7)
        scores = []
        for _ in range(2):
            picked = draw.integers(24, size=24)
            rows = np.concatenate([np.flatnonzero(item == one) for one in picked])
            copies = np.repeat(np.arange(24), [np.count_nonzero(item == one) for one in picked])
            again = consensus.fit(copies, annotator[rows], label[rows], classes=range(3), start=fitted, tol=1e-12)
            scores.append({name: one.score for name, one in again.agent_scores(agent[rows], bootstrap=0).items()})
        for name, one in found.agents.items():
            low, high = np.percentile([each[name] for each in scores], [2.5, 97.5])
            assert one.low == pytest.approx(low, abs=1e-6)
            assert one.high == pytest.approx(high, abs=1e-6)

    def test_the_published_resamples_count_an_item_once_and_start_anew(self) -> None:
        item, annotator, label, agent = sparse_panel()
        fitted = consensus.fit(item, annotator, label, "paper")
        values = [0.0, 1.0, 5.0]
        found = consensus.refit_intervals(fitted, agent, values=values, as_published=True)
        draw = np.random.RandomState(42)
        scores = []
        for _ in range(10):
            rows = np.isin(item, draw.choice(24, 24, replace=True))
            again = consensus.fit(item[rows], annotator[rows], label[rows], "paper", classes=range(3))
            scores.append({k: v.score for k, v in again.agent_scores(agent[rows], values, bootstrap=0).items()})
        for name, one in found.agents.items():
            low, high = np.nanpercentile([each.get(name, np.nan) for each in scores], [2.5, 97.5])
            assert (one.low, one.high) == (pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6))
            assert one.score == fitted.agent_scores(agent, values, bootstrap=0)[name].score

    def test_an_annotator_has_the_intervals_of_its_own_accuracy_leniency_and_strictness(self) -> None:
        item, annotator, label, agent = sparse_panel()
        fitted = consensus.fit(item, annotator, label, "paper")
        found = consensus.refit_intervals(fitted, agent, as_published=True).annotators
        draw = np.random.RandomState(42)
        drawn_rows = [np.isin(item, draw.choice(24, 24, replace=True)) for _ in range(10)]
        again = [
            consensus.fit(item[rows], annotator[rows], label[rows], "paper", classes=range(3)).annotators()
            for rows in drawn_rows
        ]
        assert list(found) == list(fitted.annotators())
        for name, intervals in found.items():
            each = [[one[name].accuracy, one[name].leniency, one[name].strictness] for one in again if name in one]
            np.testing.assert_allclose(np.transpose(intervals), np.percentile(each, [2.5, 97.5], axis=0), atol=1e-6)

    def test_by_default_200_resamples_of_items_are_drawn_with_seed_0(self) -> None:
        item, annotator, label, agent = panel(items=8)
        fitted = consensus.fit(item, annotator, label, "paper", max_iter=1)
        reports: list[int] = []
        found = consensus.refit_intervals(fitted, agent, report=reports.append)
        assert reports == [1] * 200
        defaults = {"resamples": 200, "seed": 0, "prompt": item, "as_published": False, "jobs": 1}
        assert consensus.refit_intervals(fitted, agent, **defaults) == found

    def test_items_of_one_prompt_are_drawn_together(self) -> None:
        """Of two prompts: both, or one of them twice."""
        item, annotator, label, _ = panel(items=8)
        fitted = consensus.fit(item, annotator, label, "paper")
        found = consensus.refit_intervals(fitted, ["x"] * len(item), resamples=40, prompt=item % 2, as_published=False)
        scores = []
        for one in ([0, 0], [0, 1], [1, 1]):
            rows = np.concatenate([np.flatnonzero(item % 2 == prompt) for prompt in one])
            copies = item[rows] + 100 * np.arange(2).repeat(len(rows) // 2)
            again = consensus.fit(copies, annotator[rows], label[rows], "paper", classes=range(3), start=fitted)
            scores.append(float(again.credit().mean()))
        assert found.agents["x"].low == pytest.approx(min(scores), abs=1e-6)
        assert found.agents["x"].high == pytest.approx(max(scores), abs=1e-6)

    def test_an_agent_or_annotator_in_no_resample_has_no_interval(self) -> None:
        item, annotator, label, agent = panel(items=24)
        silent = [*item, 99], [*annotator, 7], [*label, None]
        fitted = consensus.fit(*silent, "paper", classes=range(3))
        found = consensus.refit_intervals(fitted, [*agent, "mute"], resamples=3)
        assert np.isnan(found.annotators[7]).all()
        assert np.isfinite(found.annotators[0]).all()
        assert list(found.agents) == ["a", "b", "c", "d"]

    def test_gold_items_stay_gold(self) -> None:
        item, annotator, label, agent = panel()
        fitted = consensus.fit(item, annotator, label, gold=dict.fromkeys(range(60), 0))
        found = consensus.refit_intervals(fitted, agent, resamples=3)
        assert all((one.low, one.high) == (0.0, 0.0) for one in found.agents.values())

    def test_one_resample_is_refused(self) -> None:
        item, annotator, label, agent = panel()
        with pytest.raises(PlanError, match=r"^resamples is 1: at least 2 are needed"):
            consensus.refit_intervals(consensus.fit(item, annotator, label), agent, resamples=1)
