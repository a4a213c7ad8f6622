"""Annotators left out and items drawn anew: how far rankings, scores and annotators move."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, rankdata
from scipy.stats import t as student

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import Consensus, ItemPosteriors
from jurygraph.aggregation.consensus.fitting import _stability
from jurygraph.aggregation.consensus.model import Model, encode, fit_model
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
        np.append(one, last)
        for one, last in zip((item, annotator, label, agent), (23, 6, 1, "e"), strict=True)
    )


def fit_from(fitted: Consensus, item: Any, annotator: Any, label: Any) -> ItemPosteriors:
    """Fit rows of the same annotators, starting from an earlier estimate."""
    votes = encode(item, annotator, label, fitted.classes)
    place = [fitted.votes.annotators.index(name) for name in votes.annotators]
    start = Model(
        fitted.prior, fitted.confusion[place].transpose(1, 0, 2).reshape(len(fitted.prior), -1)
    )
    items = len(votes.items)
    found = fit_model(votes, np.ones(items), fitted.settings, np.full(items, -1), start)
    return ItemPosteriors(votes, found.posterior.T)


def score_rows(many: int) -> st.SearchStrategy[list[float]]:
    return st.lists(
        st.sampled_from([0.0, 0.5, 1.0, 2.0, float("nan")]), min_size=many, max_size=many
    )


def tau_by_scipy(first: np.ndarray, second: np.ndarray) -> float:
    both = np.isfinite(first) & np.isfinite(second)
    return (
        float(kendalltau(first[both], second[both]).statistic) if both.sum() > 1 else float("nan")
    )


def mean_of(figures: list[float]) -> Any:
    known = [one for one in figures if not np.isnan(one)]
    return pytest.approx(np.mean(known) if known else float("nan"), nan_ok=True)


@given(
    st.integers(1, 4).flatmap(lambda many: st.lists(score_rows(many), min_size=2, max_size=6)),
    st.data(),
)
def test_an_agent_counts_in_the_subsets_that_have_it(
    rows: list[list[float]], data: st.DataObject
) -> None:
    """The figures by SciPy, subset by subset; NaN for an agent without an item there."""
    scores = np.array(rows)
    whole = np.array(
        data.draw(
            st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=len(rows[0]), max_size=len(rows[0]))
        )
    )
    found = _stability(scores, whole)
    ranks = np.array([rankdata(-one, nan_policy="omit") for one in scores])
    by_agent = [column[~np.isnan(column)] for column in ranks.T]
    assert found.tau_b == mean_of([tau_by_scipy(whole, one) for one in scores])
    assert found.rank_sd == mean_of([own.std(ddof=1) for own in by_agent if len(own) > 1])
    assert found.rank_range == mean_of([np.ptp(own) for own in by_agent if len(own)])
    assert found.score_shift == mean_of(list(np.abs(scores - whole).ravel()))
    assert found.subsets == len(rows)


@pytest.mark.landing
@pytest.mark.parametrize(
    ("items_of_d", "own"),
    [
        (15, {}),
        (15, {"values": [0.0, 1.0, 5.0], "classes": [2, 0, 1], "gold": {3: 0, 40: 2, 41: 1}}),
    ],
)
def test_the_four_statistics_equal_those_of_single_subsets(
    items_of_d: int, own: dict[str, Any]
) -> None:
    item, annotator, label, agent = panel()
    agent = np.where((agent == "d") & (item >= 4 * items_of_d), "a", agent)
    found = consensus.ranking_stability(
        item, annotator, label, agent, subsets=7, preset="paper", seed=11, **own
    )
    draw = np.random.RandomState(11)
    known = {"classes": own.get("classes", range(3)), "gold": own.get("gold")}

    def scores(kept: np.ndarray, method: str) -> np.ndarray:
        rows = np.isin(annotator, kept)
        columns = item[rows], annotator[rows], label[rows]
        if method == "majority":
            one = consensus.majority_vote(*columns, "first", **known)
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


class TestItemsDrawnToo:
    def test_a_draw_scores_the_rows_of_its_annotators_with_copies_of_its_items(self) -> None:
        item, annotator, label, agent = panel(items=24)
        prompt = item // 4
        rows = item, annotator, label, agent
        settings: dict[str, Any] = {
            "subsets": 5,
            "seed": 11,
            "preset": "paper",
            "classes": range(3),
        }
        found = consensus.ranking_stability(*rows, **settings, with_items=True, prompt=prompt)[
            "stableval"
        ]
        subsets, prompts = (
            np.random.RandomState(11),
            np.random.default_rng(11).integers(6, size=(5, 6)),
        )
        scores = []
        for drawn_prompts in prompts:
            kept = np.isin(annotator, subsets.choice(6, 4, replace=False))
            chosen = [np.flatnonzero(kept & (prompt == one)) for one in drawn_prompts]
            copies = np.concatenate([item[one] + 100 * place for place, one in enumerate(chosen)])
            own = np.concatenate(chosen)
            again = consensus.fit(copies, annotator[own], label[own], "paper", classes=range(3))
            by_agent = again.agent_scores(agent[own], bootstrap=0)
            scores.append([by_agent[name].score if name in by_agent else np.nan for name in "abcd"])
        whole = consensus.fit(item, annotator, label, "paper").agent_scores(agent, bootstrap=0)
        expected = _stability(np.array(scores), np.array([whole[name].score for name in "abcd"]))
        np.testing.assert_allclose(found, expected, atol=1e-6)

    def test_agents_are_compared_on_the_same_prompts(self) -> None:
        """Two agents with the same labels are always equal, unless each has items of its own."""
        item, annotator, label, _ = drawn(30, 4, 3, seed=1)
        rows = (
            np.append(item, item + 30),
            np.tile(annotator, 2),
            np.tile(label, 2),
            np.repeat(["a", "b"], len(item)),
        )
        settings: dict[str, Any] = {"subsets": 8, "with_items": True, "preset": "paper"}
        together = consensus.ranking_stability(*rows, **settings, prompt=rows[0] % 30)["majority"]
        apart = consensus.ranking_stability(*rows, **settings)["majority"]
        assert together.rank_sd == 0.0 < apart.rank_sd

    def test_a_draw_without_a_label_ranks_nobody(self) -> None:
        """Only one annotator labelled anything; the subset of the other has no label."""
        rows = (
            [0, 1, 2, 3, 0],
            ["x", "x", "x", "x", "y"],
            [0, 1, 1, 0, None],
            ["a", "b", "a", "b", "a"],
        )
        found = consensus.ranking_stability(
            *rows, subsets=10, fraction=0.5, with_items=True, classes=range(2)
        )
        assert found["stableval"].score_shift == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"subsets": 1}, "subsets is 1: at least 2 are needed"),
        ({"fraction": 0.0}, "fraction is 0.0: more than 0 and at most 1 is needed"),
        ({"fraction": 0.1}, "a share of 0.1 of 6 annotators is empty; take a larger fraction"),
        ({"seed": 2**32}, "seed is 4294967296: a whole number from 0 to 4294967295 is needed"),
    ],
)
def test_invalid_subset_settings_are_refused(settings: dict[str, float], wrong: str) -> None:
    item, annotator, label, agent = panel()
    with pytest.raises(PlanError, match=f"^{wrong}"):
        consensus.ranking_stability(item, annotator, label, agent, **settings)  # type: ignore[arg-type]
    assert (
        consensus.ranking_stability(item, annotator, label, agent, subsets=2)["majority"].subsets
        == 2
    )


class TestRefits:
    @pytest.mark.landing
    def test_an_agents_interval_has_the_variance_of_its_items_and_what_refitting_adds(self) -> None:
        item, annotator, label, agent = panel(seed=2)
        fitted = consensus.fit(item, annotator, label)
        without, found = (
            fitted.agent_scores(agent),
            consensus.refit_intervals(fitted, agent, resamples=50).agents,
        )
        draw = np.random.default_rng(0)
        samples = []
        for picked in draw.integers(60, size=(50, 60)):
            rows = np.concatenate([np.flatnonzero(item == one) for one in picked])
            copies = np.repeat(np.arange(60), 6)
            again = fit_from(fitted, copies, annotator[rows], label[rows])
            refitted = again.agent_scores(agent[rows], bootstrap=0)
            same = [fitted.credit()[picked[picked % 4 == place]].mean() for place in range(4)]
            samples.append([[refitted[name].score for name in "abcd"], same])
        again_var, same_var = np.var(samples, axis=0, ddof=1)
        t = student.ppf(0.975, 15 + 1)  # 15 items of an agent, and two imaginary ones
        for place, name in enumerate("abcd"):
            half, wide = ((one[name].high - one[name].low) / 2 for one in (without, found))
            assert wide**2 == pytest.approx(
                half**2 + t**2 * max(0.0, again_var[place] - same_var[place]), rel=1e-3
            )
            assert (found[name].high + found[name].low) == pytest.approx(
                without[name].high + without[name].low
            )

    def test_the_published_resamples_count_an_item_once_and_start_anew(self) -> None:
        item, annotator, label, agent = sparse_panel()
        fitted = consensus.fit(item, annotator, label, "paper")
        values = [0.0, 1.0, 5.0]
        found = consensus.refit_intervals(fitted, agent, values=values, as_published=True)
        draw = np.random.RandomState(42)
        scores = []
        for _ in range(10):
            rows = np.isin(item, draw.choice(24, 24, replace=True))
            again = consensus.fit(
                item[rows], annotator[rows], label[rows], "paper", classes=range(3)
            )
            scores.append(
                {
                    k: v.score
                    for k, v in again.agent_scores(agent[rows], values, bootstrap=0).items()
                }
            )
        for name, one in found.agents.items():
            low, high = np.nanpercentile([each.get(name, np.nan) for each in scores], [2.5, 97.5])
            assert (one.low, one.high) == (
                pytest.approx(low, abs=1e-6),
                pytest.approx(high, abs=1e-6),
            )
            assert one.score == fitted.agent_scores(agent, values, bootstrap=0)[name].score

    def test_resamples_that_are_all_alike_give_an_annotator_no_interval(self) -> None:
        item, annotator = (
            one.ravel() for one in np.meshgrid(np.arange(10), np.arange(5), indexing="ij")
        )
        fitted = consensus.fit(item, annotator, np.ones(50, dtype=int), classes=[0, 1])
        assert np.isnan(
            consensus.refit_intervals(fitted, item % 2, resamples=5).annotators[0]
        ).all()

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
        assert consensus.refit_intervals(fitted, agent, resamples=2).agents == fitted.agent_scores(
            agent
        )

    def test_one_resample_is_refused(self) -> None:
        item, annotator, label, agent = panel(items=8)
        with pytest.raises(PlanError, match=r"^resamples is 1: at least 2 are needed"):
            consensus.refit_intervals(
                consensus.fit(item, annotator, label, "paper"), agent, resamples=1
            )


def test_resamples_without_any_label_tell_nothing_and_end_nothing() -> None:
    """As of a table that is filled in for two of ten items: one resample in nine has neither."""
    item = np.repeat(np.arange(10), 3)
    annotator = np.tile(["a", "b", "c"], 10)
    label = [0, 0, 1, 1, 1, 0] + [None] * 24
    fitted = consensus.fit(item, annotator, label, classes=[0, 1])
    intervals = consensus.refit_intervals(fitted, ["x"] * 30, resamples=40).annotators
    assert np.isfinite(intervals["c"]).all()
