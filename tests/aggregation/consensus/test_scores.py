"""Results from posteriors: credit, agent scores with intervals, annotators."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.aggregation import consensus
from jurygraph.errors import PlanError
from jurygraph.inference import clusters
from tests.aggregation.consensus.reference import drawn


@cache
def fit_panel(items: int = 60, seed: int = 0) -> tuple[consensus.Consensus, np.ndarray]:
    item, annotator, label, _ = drawn(items, 4, 3, seed)
    return consensus.fit(item, annotator, label), np.array(["a", "b", "c"])[item % 3]


@given(st.lists(st.floats(-10, 10), min_size=3, max_size=3))
def test_credit_is_the_posterior_mean_of_the_class_values(values: list[float]) -> None:
    one, _ = fit_panel()
    by_hand = [sum(p * v for p, v in zip(row, values, strict=True)) for row in one.posterior]
    np.testing.assert_allclose(one.credit(values), by_hand, atol=1e-9)
    np.testing.assert_allclose(one.credit(), one.credit([0.0, 0.5, 1.0]), atol=1e-12)


def test_unordered_text_labels_have_no_default_credit() -> None:
    one = consensus.fit([0, 1], [0, 0], ["red", "blue"], max_iter=1)
    with pytest.raises(
        PlanError, match=r"^the labels 'blue', 'red' have no order; name them from low to high"
    ):
        one.credit()
    many = consensus.majority_vote(
        range(11), [0] * 11, [f"label {10 + place}" for place in range(11)]
    )
    with pytest.raises(
        PlanError, match=r"^the labels 'label 10', .*'label 18', 'label 19' have no order"
    ):
        many.credit()
    assert one.credit([1.0, 0.0]).tolist() == one.posterior[:, 0].tolist()
    with pytest.raises(PlanError, match=r"^values has shape \(3,\) where \(2,\) is needed"):
        one.credit([1.0, 0.0, 0.5])


def test_a_scale_of_one_class_requires_values() -> None:
    one = consensus.majority_vote(["x", "y"], [0, 0], ["yes", "yes"])
    with pytest.raises(
        PlanError, match=r"^every label is 'yes', which gives no credit; name all classes"
    ):
        one.credit()
    assert one.credit([3.0]).tolist() == [3.0, 3.0]
    assert consensus.majority_vote([0, 1], [0, 0], [5, 7]).credit().tolist() == [0.0, 1.0]
    with pytest.raises(PlanError, match=r"^values\[0\] is nan"):
        one.credit([float("nan")])


def test_an_agents_score_is_the_mean_credit_of_its_items() -> None:
    one, agent = fit_panel()
    credit = one.credit()
    scores = one.agent_scores(agent)
    for place, name in enumerate("abc"):
        own = credit[place::3].copy()
        assert scores[name].score == own.mean()
        assert scores[name].items == 20
        assert scores[name].low < scores[name].score < scores[name].high  # type: ignore[operator]


def test_the_ends_of_the_scale_are_the_credits_of_the_classes() -> None:
    one, agent = fit_panel(15)
    values = np.array([-3.0, 4.0, 1.0])
    for name, score in one.agent_scores(agent, values).items():
        other = one.agent_scores(agent, 10.0 * values + 7.0)[name]
        assert other[:3] == pytest.approx(tuple(10.0 * end + 7.0 for end in score[:3]))  # type: ignore[operator]
        assert score.low >= -3.0  # type: ignore[operator]
        assert score.high <= 4.0  # type: ignore[operator]


@pytest.mark.parametrize("at_once", [2**22, 10, 1])
def test_each_agent_has_draws_of_its_own_and_the_percentiles_of_their_means(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draw all resamples in one batch or in several."""
    monkeypatch.setattr(clusters, "DRAWS_PER_BATCH", at_once)
    item, annotator, label, _ = drawn(24, 4, 3, seed=0)
    one = consensus.fit(item, annotator, label)
    agent, prompt = np.array(["a", "b", "c"])[item % 3], item // 6
    scores = one.agent_scores(agent, bootstrap=7, seed=3, prompt=prompt, interval="bootstrap")
    for place, name in enumerate("abc"):
        own = one.credit()[place::3].reshape(4, 2)  # four prompts of two items
        drawn_prompts = np.random.default_rng([3, place]).integers(4, size=(7, 4))
        low, high = np.percentile([own[each].mean() for each in drawn_prompts], [2.5, 97.5])
        assert scores[name] == (
            pytest.approx(own.mean()),
            pytest.approx(low),
            pytest.approx(high),
            8,
        )


def test_items_without_a_label_count_for_no_agent_by_any_interval() -> None:
    item, annotator, label, _ = drawn(60, 4, 3, seed=0)
    agent = np.array(["a", "b", "c"])[item % 3]
    more = [*item, 100, 101], [*annotator, 0, 1], [*label, None, None]
    silent = consensus.fit(*more, classes=range(3))
    scores = silent.agent_scores([*agent, "a", "mute"])
    assert scores == consensus.fit(item, annotator, label, classes=range(3)).agent_scores(agent)
    refitted = consensus.refit_intervals(silent, [*agent, "a", "mute"], resamples=20)
    assert list(refitted.agents) == ["a", "b", "c"]
    assert refitted.agents["a"].low < scores["a"].score < refitted.agents["a"].high  # type: ignore[operator]


@pytest.mark.parametrize(
    ("agent", "wrong"),
    [
        (["a", "b", "c"], r"^item 0 has the agents 'a' and 'b'; give each agent items of its own"),
        (["a", "a"], "^agent has 2 rows where the labels have 3; give one for each"),
        (["a", None, "a"], r"^agent\[1\] is empty"),
        ([["a"], ["b"], ["a"]], "^agent: unhashable type: 'list'; give numbers or text"),
    ],
)
def test_columns_that_do_not_fit_are_refused(agent: list[str], wrong: str) -> None:
    one = consensus.fit([0, 0, 1], [0, 1, 0], [0, 1, 1], n_classes=2)
    with pytest.raises(PlanError, match=wrong):
        one.agent_scores(agent)
    with pytest.raises(PlanError, match=wrong.replace("agent", "prompt")):
        one.agent_scores(["x"] * 3, prompt=agent)


def test_annotator_rates_are_computed_from_the_confusions() -> None:
    one, _ = fit_panel()
    for place, quality in enumerate(one.annotators().values()):
        matrix = one.confusion[place]
        assert quality[:3] == pytest.approx(
            (np.diag(matrix).mean(), matrix[:, -1].mean(), matrix[:, 0].mean())
        )
        assert quality.labels == 60


def test_ambiguity_is_1_minus_the_largest_posterior() -> None:
    one, _ = fit_panel()
    np.testing.assert_allclose(one.ambiguity(), 1 - one.posterior.max(axis=1))
    np.testing.assert_array_equal(one.hard_labels().ambiguity(), 0.0)
    np.testing.assert_array_equal(one.hard_labels().likeliest_labels(), one.likeliest_labels())
    item, annotator, label, _ = drawn(60, 4, 3, 0)
    np.testing.assert_array_equal(
        consensus.dawid_skene(item, annotator, label).posterior, one.hard_labels().posterior
    )
