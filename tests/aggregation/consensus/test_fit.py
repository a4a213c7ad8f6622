"""The estimate is Algorithm 1's, whatever the rows are called and in whatever order they come."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.aggregation import consensus
from jurygraph.errors import PlanError
from tests.aggregation.consensus.reference import Row, drawn, estimate, votes
from tests.rows import all_rows

NEAR = {"rtol": 1e-9, "atol": 1e-12}


def columns(rows: list[Row]) -> tuple[list[int], list[int], list[int]]:
    item, annotator, label = zip(*rows, strict=True)
    return list(item), list(annotator), list(label)


@given(votes(), st.integers(1, 8), st.one_of(st.just({}), st.dictionaries(st.integers(0, 9), st.integers(0, 2))))
def test_steps_equal_a_plain_implementation_of_the_algorithm(rows: list[Row], steps: int, gold: dict[int, int]) -> None:
    gold = {item: truth for item, truth in gold.items() if item in columns(rows)[0]}
    fitted = consensus.fit(*columns(rows), preset="paper", n_classes=3, max_iter=steps, tol=1e-300, gold=gold)
    plain = estimate(rows, 3, fitted.iterations, gold)
    np.testing.assert_allclose(fitted.posterior, plain.posterior, **NEAR)
    np.testing.assert_allclose(fitted.prior, plain.prior, **NEAR)
    np.testing.assert_allclose(fitted.confusion, plain.confusion, **NEAR)
    assert fitted.log_likelihood == pytest.approx(plain.log_likelihood)


@given(votes(), st.randoms(use_true_random=False))
def test_no_order_of_the_rows_changes_more_than_rounding(rows: list[Row], random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = (
        consensus.fit(*columns(each), preset="paper", n_classes=3, max_iter=5, tol=1e-300) for each in (rows, shuffled)
    )
    place = {item: at for at, item in enumerate(other.items)}
    np.testing.assert_allclose(
        one.posterior, other.posterior[[place[item] for item in one.items]], rtol=1e-7, atol=1e-9
    )


@given(votes())
def test_names_of_any_kind_give_the_same_figures(rows: list[Row]) -> None:
    item, annotator, label = columns(rows)
    codes = consensus.fit(item, annotator, label, "paper", n_classes=3)
    words = consensus.fit(
        [f"item {one}" for one in item],
        [f"r{one}" for one in annotator],
        ["bad ok good".split()[one] for one in label],
        "paper",
        classes=["bad", "ok", "good"],
    )
    assert [f"item {one}" for one in codes.items] == list(words.items)
    np.testing.assert_array_equal(codes.posterior, words.posterior)
    assert codes.log_likelihood == words.log_likelihood


@pytest.mark.landing
@pytest.mark.parametrize("seed", range(6))
def test_accelerated_and_plain_steps_reach_the_same_estimate(seed: int) -> None:
    item, annotator, label, _ = drawn(120, 4, 3, seed, right=0.6)
    fast = consensus.fit(item, annotator, label, tol=1e-11)
    slow = consensus.fit(item, annotator, label, tol=1e-11, accelerated=False, max_iter=100_000)
    assert fast.converged
    assert fast.iterations < slow.iterations
    assert slow.converged
    np.testing.assert_allclose(fast.posterior, slow.posterior, atol=1e-7)
    np.testing.assert_allclose(fast.confusion, slow.confusion, atol=1e-7)
    assert fast.log_likelihood == pytest.approx(slow.log_likelihood, abs=1e-7)


def test_the_priors_count_in_every_m_step() -> None:
    """μ_c = (Σ γ + α-1) / (N + K(α-1)), and so for each row of π (Algorithm 1, lines 8-10)."""
    item, annotator, label = [0, 1, 2, 3], [0, 0, 0, 0], [0, 0, 0, 1]
    fitted = consensus.fit(
        item,
        annotator,
        label,
        n_classes=2,
        prior_mu=3.0,
        prior_confusion=5.0,
        accelerated=False,
        max_iter=1,
        tol=1e-300,
    )
    expected = [0.75 * 0.8 / (0.75 * 0.8 + 0.25 * 0.2), 0.75 * 0.2 / (0.75 * 0.2 + 0.25 * 0.8)]
    mass = 3 * expected[0] + expected[1]
    assert fitted.prior[0] == pytest.approx((mass + 2.0) / (4.0 + 4.0))
    assert fitted.confusion[0, 0, 0] == pytest.approx((3 * expected[0] + 4.0) / (mass + 8.0))


class TestGold:
    def test_the_class_of_a_gold_item_is_certain_and_teaches_the_confusions(self) -> None:
        """A liar is found out by items of which the truth is known."""
        draw = np.random.default_rng(0)
        truth = draw.integers(2, size=60)
        item = np.repeat(np.arange(60), 3)
        annotator = np.tile([0, 1, 2], 60)
        label = np.where(annotator == 2, truth[item], 1 - truth[item])  # two liars against one
        blind = consensus.fit(item, annotator, label, n_classes=2)
        anchored = consensus.fit(item, annotator, label, n_classes=2, gold={i: int(truth[i]) for i in range(10)})
        assert (blind.likeliest_labels() == truth).mean() < 0.1
        assert (anchored.likeliest_labels() == truth).all()
        np.testing.assert_array_equal(anchored.posterior[:10], np.eye(2)[truth[:10]])

    def test_a_gold_item_without_labels_is_certain(self) -> None:
        rows = [0, 0, 1, 1, 2, 3], [0, 1, 0, 1, 0, 1], [1, 1, 0, 1, None, None]
        fitted = consensus.fit(*rows, n_classes=2, gold={2: 0, 3: 1, 1: 1})
        assert fitted.gold.tolist() == [-1, 1, 0, 1]
        assert fitted.posterior[2:].tolist() == [[1.0, 0.0], [0.0, 1.0]]

    def test_annotators_start_from_their_labels_of_gold_items(self) -> None:
        """Beside the near-identity confusions, which weigh one label a row."""
        item, annotator, label = [0, 1, 2, 0, 1, 2, 3], [0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 1, 0]
        fitted = consensus.fit(
            item, annotator, label, "paper", n_classes=2, gold={0: 0, 1: 0, 2: 1}, diagonal=0.7, max_iter=1
        )
        prior = [3 / 4, 1 / 4]  # item 3 is of class 0 by its one vote
        of_second = [[(0.7 + 1) / 3, (0.3 + 1) / 3], [0.3 / 2, (0.7 + 1) / 2]]
        joint = prior[0] * of_second[0][0], prior[1] * of_second[1][0]
        assert fitted.posterior[3, 0] == pytest.approx(joint[0] / sum(joint))

    @pytest.mark.parametrize(
        ("gold", "wrong"),
        [({"x": 0}, "gold: there is no item 'x'"), ({0: 7}, "gold: 7 of item 0 is none of the classes")],
    )
    def test_an_unknown_gold_item_or_class_is_named(self, gold: dict[object, int], wrong: str) -> None:
        with pytest.raises(PlanError, match=wrong):
            consensus.fit([0, 1], [0, 0], [0, 1], gold=gold)


@all_rows(
    ("settings", "wrong"),
    [
        ({"preset": "fast"}, "preset 'fast' is none of converged, paper"),
        ({"prior_mu": 0.5}, "prior_mu is 0.5: at least 1 is needed"),
        ({"prior_mu": float("inf")}, "prior_mu is inf"),
        ({"prior_confusion": float("nan")}, "prior_confusion is nan"),
        ({"prior_confusion": 0.99}, "prior_confusion is 0.99"),
        ({"diagonal": 1.0}, "diagonal is 1.0: more than 0 and less than 1 is needed"),
        ({"diagonal": 0.0}, "diagonal is 0.0"),
        ({"tol": 0.0}, "tol is 0.0: more than 0 and less than 1 is needed"),
        ({"tol": 1.0}, "tol is 1.0"),
        ({"max_iter": 0}, "max_iter is 0: at least 1 is needed"),
        ({"n_classes": 1}, "n_classes is 1: 2 or more are needed"),
        ({"n_classes": True}, "n_classes is True: a whole number is needed"),
    ],
)
def test_settings_out_of_range_are_named(settings: dict[str, object], wrong: str) -> None:
    with pytest.raises(PlanError, match=f"^{wrong}"):
        consensus.fit([0, 1], [0, 0], [0, 1], **settings)  # type: ignore[arg-type]


def test_arguments_override_the_settings_of_the_preset() -> None:
    rows = [0, 1, 1], [0, 0, 1], [0, 1, 0]
    own = {"prior_mu": 1.5, "prior_confusion": 1.0, "tol": 0.25, "max_iter": 1, "accelerated": False}
    fitted = consensus.fit(*rows, n_classes=2.0, diagonal=0.625, **own)  # type: ignore[arg-type]
    preset = consensus.PRESETS["converged"]
    assert fitted.settings == preset._replace(**own, diagonal=0.625)  # type: ignore[arg-type]
    assert fitted.classes == [0, 1]
    assert consensus.fit(*rows).settings == preset
    assert consensus.fit(*rows, "paper").settings == consensus.PRESETS["paper"]


def test_an_estimate_that_did_not_converge_has_a_warning() -> None:
    item, annotator, label, _ = drawn(100, 3, 3, seed=4, right=0.5)
    fitted = consensus.fit(item, annotator, label, max_iter=2)
    assert not fitted.converged
    assert any("not converged after 2 steps" in one for one in fitted.warnings)


def test_paper_synthetic_starts_from_uniform_shares() -> None:
    """Two of three say 1 of every item; the majority's shares would make class 0 impossible at once."""
    rows = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4), np.tile([1, 1, 0], 4)
    by_vote, uniform = (
        consensus.fit(*rows, preset, n_classes=2, max_iter=1) for preset in ("paper", "paper-synthetic")
    )
    assert by_vote.posterior[0, 0] < 1e-8
    assert uniform.posterior[0, 0] == pytest.approx(0.2)
