"""Annotators left out and items drawn anew: how far rankings, scores and annotators move."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, rankdata

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus.stability import tau_b
from jurygraph.errors import PlanError
from tests.aggregation.consensus.reference import drawn


def panel(seed: int = 0, items: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    item, annotator, label, _ = drawn(items, 6, 3, seed, right=0.6)
    return item, annotator, label, np.array(["a", "b", "c", "d"])[item % 4]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12))
def test_tau_b_is_kendalls(pairs: list[tuple[int, int]]) -> None:
    first, second = (np.array(one, dtype=np.float64) for one in zip(*pairs, strict=True))
    np.testing.assert_allclose(tau_b(first, second), kendalltau(first, second).statistic, atol=1e-12)


@pytest.mark.parametrize("items_of_d", [15, 1])
def test_the_four_figures_are_those_of_subsets_one_by_one(items_of_d: int) -> None:
    item, annotator, label, agent = panel()
    agent = np.where((agent == "d") & (item >= 4 * items_of_d), "a", agent)
    found = consensus.ranking_stability(item, annotator, label, agent, subsets=7, preset="paper", seed=11)
    draw = np.random.RandomState(11)

    def scores(kept: np.ndarray, method: str) -> np.ndarray:
        rows = np.isin(annotator, kept)
        own = item[rows], annotator[rows], label[rows]
        if method == "majority":
            one = consensus.majority_vote(*own, "first", classes=range(3))
        else:
            fit = consensus.fit(*own, "paper", classes=range(3))
            one = fit if method == "stableval" else fit.hard()  # type: ignore[assignment]
        by_agent = one.agent_scores(agent[rows], bootstrap=0)
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
    told: list[int] = []
    one = consensus.ranking_stability(item, annotator, label, agent, subsets=6)
    two = consensus.ranking_stability(item, annotator, label, agent, subsets=6, jobs=2, report=told.append)
    assert one == two
    assert sum(told) == 6


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
        ({"subsets": 1}, "subsets is 1: at least 2"),
        ({"fraction": 0.0}, "fraction is 0.0"),
        ({"fraction": 0.1}, "of 6 annotators is nobody"),
        ({"jobs": 0}, "jobs is 0"),
        ({"seed": 2**32}, "seed is 4294967296: a whole number from 0 to 4294967295 is needed"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(settings: dict[str, float], wrong: str) -> None:
    item, annotator, label, agent = panel()
    with pytest.raises(PlanError, match=wrong):
        consensus.ranking_stability(item, annotator, label, agent, **settings)  # type: ignore[arg-type]


def test_one_agent_has_no_ranking() -> None:
    item, annotator, label, _ = panel()
    with pytest.raises(PlanError, match="there is one agent, 'x': a ranking needs two"):
        consensus.ranking_stability(item, annotator, label, ["x"] * len(item))


class TestRefits:
    def test_they_are_wider_than_the_bootstrap_of_items_where_confusions_are_unsure(self) -> None:
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
        item, annotator, label, agent = panel(seed=4, items=24)
        fitted = consensus.fit(item, annotator, label, "paper")
        values = [0.0, 1.0, 5.0]
        found = consensus.refit_intervals(fitted, agent, values=values, published=True)
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
        item, annotator, label, agent = panel(seed=4, items=24)
        fitted = consensus.fit(item, annotator, label, "paper")
        found = consensus.refit_intervals(fitted, agent, published=True).annotators
        draw = np.random.RandomState(42)
        drawn_rows = [np.isin(item, draw.choice(24, 24, replace=True)) for _ in range(10)]
        again = [
            consensus.fit(item[rows], annotator[rows], label[rows], "paper", classes=range(3)).annotators()
            for rows in drawn_rows
        ]
        assert list(found) == list(fitted.annotators())
        for name, intervals in found.items():
            each = [[one[name].accuracy, one[name].leniency, one[name].strictness] for one in again]
            np.testing.assert_allclose(np.transpose(intervals), np.percentile(each, [2.5, 97.5], axis=0), atol=1e-6)

    def test_gold_items_stay_gold(self) -> None:
        item, annotator, label, agent = panel()
        fitted = consensus.fit(item, annotator, label, gold=dict.fromkeys(range(60), 0))
        found = consensus.refit_intervals(fitted, agent, resamples=3)
        assert all((one.low, one.high) == (0.0, 0.0) for one in found.agents.values())

    def test_one_resample_is_refused(self) -> None:
        item, annotator, label, agent = panel()
        with pytest.raises(PlanError, match="resamples is 1"):
            consensus.refit_intervals(consensus.fit(item, annotator, label), agent, resamples=1)
