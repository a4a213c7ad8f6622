"""The estimate is Algorithm 1's, whatever the rows are called and in whatever order they come; and doubts about it."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import fitting
from jurygraph.aggregation.consensus.fitting import panel_structure
from jurygraph.aggregation.consensus.model import (
    FitProblem,
    FitSettings,
    Model,
    _extrapolate_em_steps,
    encode,
)
from jurygraph.errors import PlanError
from tests.aggregation.consensus.reference import Row, drawn, estimate, votes
from tests.rows import all_rows

NEAR = {"rtol": 1e-9, "atol": 1e-12}


def columns(rows: list[Row]) -> tuple[list[int], list[int], list[int]]:
    item, annotator, label = zip(*rows, strict=True)
    return list(item), list(annotator), list(label)


@given(
    votes(),
    st.integers(1, 8),
    st.one_of(st.just({}), st.dictionaries(st.integers(0, 9), st.integers(0, 2))),
)
def test_steps_equal_a_plain_implementation_of_the_algorithm(
    rows: list[Row], steps: int, gold: dict[int, int]
) -> None:
    gold = {item: truth for item, truth in gold.items() if item in columns(rows)[0]}
    fitted = consensus.fit(
        *columns(rows), preset="paper", n_classes=3, max_iter=steps, tol=1e-300, gold=gold
    )
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
        consensus.fit(*columns(each), preset="paper", n_classes=3, max_iter=5, tol=1e-300)
        for each in (rows, shuffled)
    )
    place = {item: at for at, item in enumerate(other.items)}
    np.testing.assert_allclose(
        one.posterior, other.posterior[[place[item] for item in one.items]], rtol=1e-7, atol=1e-9
    )


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


def test_no_accelerated_step_loses_likelihood() -> None:
    """Without a prior; some of the leaps on these labels would, and the plain step is kept in their place."""
    item, annotator, label, _ = drawn(12, 3, 2, seed=3, right=0.55)
    fits = [
        consensus.fit(item, annotator, label, prior_confusion=1.0, max_iter=most)
        for most in range(2, 20)
    ]
    assert (np.diff([one.log_likelihood for one in fits]) >= -1e-12).all()


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
        anchored = consensus.fit(
            item, annotator, label, n_classes=2, gold={i: int(truth[i]) for i in range(10)}
        )
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
            item,
            annotator,
            label,
            "paper",
            n_classes=2,
            gold={0: 0, 1: 0, 2: 1},
            diagonal=0.7,
            max_iter=1,
        )
        prior = [3 / 4, 1 / 4]  # item 3 is of class 0 by its one vote
        of_second = [[(0.7 + 1) / 3, (0.3 + 1) / 3], [0.3 / 2, (0.7 + 1) / 2]]
        joint = prior[0] * of_second[0][0], prior[1] * of_second[1][0]
        assert fitted.posterior[3, 0] == pytest.approx(joint[0] / sum(joint))

    @pytest.mark.parametrize(
        ("gold", "wrong"),
        [
            ({"x": 0}, "gold: there is no item 'x'"),
            ({0: 7}, "gold: 7 of item 0 is none of the classes"),
        ],
    )
    def test_an_unknown_gold_item_or_class_is_named(
        self, gold: dict[object, int], wrong: str
    ) -> None:
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
    own = {
        "prior_mu": 1.5,
        "prior_confusion": 1.0,
        "tol": 0.25,
        "max_iter": 1,
        "accelerated": False,
    }
    fitted = consensus.fit(*rows, n_classes=2.0, diagonal=0.625, **own)  # type: ignore[arg-type]
    preset = consensus.PRESETS["converged"]
    assert fitted.settings == preset._replace(**own, diagonal=0.625)  # type: ignore[arg-type]
    assert fitted.classes == [0, 1]
    assert consensus.fit(*rows).settings == preset
    assert consensus.fit(*rows, "paper").settings == consensus.PRESETS["paper"]


def test_hard_labels_have_the_scale_and_the_preset_that_is_passed() -> None:
    assert consensus.dawid_skene([0, 1], [0, 0], ["no", "yes"], classes=["yes", "no"]).classes == [
        "yes",
        "no",
    ]
    assert consensus.dawid_skene([0, 1], [0, 0], [0, 1], n_classes=3).classes == [0, 1, 2]
    with pytest.raises(PlanError, match="preset 'fast' is none of"):
        consensus.dawid_skene([0, 1], [0, 0], [0, 1], "fast")  # type: ignore[arg-type]


def test_an_estimate_that_did_not_converge_has_a_warning() -> None:
    item, annotator, label, _ = drawn(100, 3, 3, seed=4, right=0.5)
    for steps in (2, 4):
        fitted = consensus.fit(item, annotator, label, max_iter=steps)
        assert (fitted.converged, fitted.iterations) == (False, steps)
        assert any(f"not converged after {steps} steps" in one for one in fitted.warnings)


def test_paper_synthetic_starts_from_uniform_shares() -> None:
    """Two of three say 1 of every item; the majority's shares would make class 0 impossible at once."""
    rows = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4), np.tile([1, 1, 0], 4)
    by_vote, uniform = (
        consensus.fit(*rows, preset, n_classes=2, max_iter=1)
        for preset in ("paper", "paper-synthetic")
    )
    assert by_vote.posterior[0, 0] < 1e-8
    assert uniform.posterior[0, 0] == pytest.approx(0.2)
    assert uniform.log_likelihood == pytest.approx(
        4 * np.log(0.5 * 0.2 * 0.2 * 0.8 + 0.5 * 0.8 * 0.8 * 0.2)
    )


def converging_models(distance: float, ratio: float, steps: int) -> list[Model]:
    """So many models on their way to a limit, each nearer to it by the same ratio."""
    limit = Model(np.array([0.6, 0.4]), np.array([[0.7, 0.3, 0.8, 0.2], [0.4, 0.6, 0.1, 0.9]]))
    prior, confusion = (
        np.array([1.0, -1.0]),
        np.array([[1.0, -1.0, -1.0, 1.0], [-1.0, 1.0, 1.0, -1.0]]),
    )
    left = [distance * ratio**step for step in range(steps)]
    return [Model(limit.prior + far * prior, limit.confusion + far * confusion) for far in left]


@given(st.floats(-0.05, 0.05).filter(lambda far: abs(far) > 1e-3), st.floats(0.1, 0.9))
def test_extrapolating_geometric_steps_reaches_their_limit(distance: float, ratio: float) -> None:
    """A geometric series: the leap of scheme S3 ends at its limit, at once."""
    leapt = _extrapolate_em_steps(*converging_models(distance, ratio, 3))
    (limit,) = converging_models(0.0, 1.0, 1)
    np.testing.assert_allclose(leapt.prior, limit.prior, atol=1e-9)
    np.testing.assert_allclose(leapt.confusion, limit.confusion, atol=1e-9)


@pytest.mark.parametrize("ratio", [1.0, -0.5, -1.0])
def test_steps_that_do_not_shrink_are_not_extrapolated(ratio: float) -> None:
    """Without a bend there is no limit to leap to; where the steps turn back, the plain ones are nearer to it."""
    steps = (
        converging_models(0.04, ratio, 3) if ratio < 0 else [*converging_models(0.0, 1.0, 1)] * 3
    )
    assert _extrapolate_em_steps(*steps) is None


def test_the_objective_adds_the_log_density_of_both_priors() -> None:
    """Without its constant: (α_μ - 1) Σ log μ + (α_π - 1) Σ log π."""
    coded = encode([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 0], range(2))
    rules = FitSettings(3.0, 1.5, 1e-300, "posterior", 1e-9, 10, accelerated=False)
    model = Model(np.array([0.6, 0.4]), np.array([[0.7, 0.3, 0.8, 0.2], [0.4, 0.6, 0.1, 0.9]]))
    found = FitProblem(coded.matrix, coded.counts, np.ones(2), rules, np.full(2, -1)).e_step(model)
    first = 0.6 * 0.7 * 0.8 + 0.4 * 0.4 * 0.1  # both say 0
    second = 0.6 * 0.3 * 0.8 + 0.4 * 0.6 * 0.1  # 1 and 0
    assert found.log_likelihood == pytest.approx(np.log(first) + np.log(second))
    priors = 2.0 * np.log(model.prior).sum() + 0.5 * np.log(model.confusion).sum()
    assert found.objective == pytest.approx(found.log_likelihood + priors)


def warnings_of(item: object, annotator: object, label: object, k: int = 3) -> str:
    return "; ".join(consensus.fit(item, annotator, label, n_classes=k).warnings)  # type: ignore[arg-type]


@pytest.mark.landing
@pytest.mark.parametrize(("annotators", "cells", "unknowns"), [(1, 2, 8), (2, 8, 14)])
def test_fewer_than_three_annotators_are_not_identifiable(
    annotators: int, cells: int, unknowns: int
) -> None:
    item, annotator, label, _ = drawn(50, annotators, 3, seed=0)
    who = "one annotator is" if annotators == 1 else f"{annotators} annotators are"
    sentence = f"{who} not identifiable: {cells} free cells for {unknowns} unknowns"
    assert sentence in warnings_of(item, annotator, label)
    assert sentence in str(consensus.too_small(encode(item, annotator, label, range(3))))


@pytest.mark.parametrize(
    ("items", "warning"),
    [
        (
            149,
            "too few labels to learn how each annotator errs: the panel's depth "
            "is 74.5, and 75 is needed, which takes about 3 more labels, of new items (now 447)",
        ),
        (150, None),
    ],
)
def test_a_depth_of_75_is_enough(items: int, warning: str | None) -> None:
    """Three labels of each item for six free cells, times one label beyond two."""
    item, annotator, label, _ = drawn(items, 3, 2, seed=0)
    assert consensus.too_small(encode(item, annotator, label, range(2))) == warning


@all_rows("classes", [1, 2, 4])
@all_rows(("annotators", "beyond_two"), [(1, 0), (2, 0), (3, 1), (5, 3)])
def test_depth_is_labels_a_cell_times_labels_of_an_item_beyond_two(
    classes: int, annotators: int, beyond_two: int
) -> None:
    item, annotator = np.repeat(np.arange(12), annotators), np.tile(np.arange(annotators), 12)
    coded = encode(item, annotator, np.zeros(len(item), int), range(classes))
    cells = annotators * classes * max(1, classes - 1)
    assert panel_structure(coded).depth == pytest.approx(12 * annotators / cells * beyond_two)


def test_unconnected_annotators_are_named_and_the_largest_part_counts() -> None:
    item, annotator, label, _ = drawn(600, 4, 3, seed=1, right=0.8)
    stray = [*item, 9001, 9001], [*annotator, "s", "t"], [*label, 0, 1]
    assert (
        panel_structure(encode(*stray, range(3))).is_annotator_connected.tolist()
        == [True] * 4 + [False] * 2
    )
    assert "no item connects the others with s, t: only the class shares join them" in warnings_of(
        *stray
    )
    assert consensus.too_small(encode(*stray, range(3))) is None
    apart = np.where(annotator < 2, item, item + 1000)
    assert "2 annotators are not identifiable" in warnings_of(apart, annotator, label)


def test_repeated_rows_and_abstentions_do_not_change_the_depth() -> None:
    item, annotator, label, _ = drawn(60, 3, 3, seed=2)
    depth = panel_structure(encode(item, annotator, label, range(3))).depth
    assert depth == pytest.approx(180 / (3 * 6) * 1)
    twice = (np.tile(one, 2) for one in (item, annotator, label))
    assert panel_structure(encode(*twice, range(3))).depth == pytest.approx(depth)
    silent = [*item, 0, 1], [*annotator, "s", "t"], [*label, None, None]
    assert panel_structure(encode(*silent, range(3))).depth == pytest.approx(depth)
    assert (
        panel_structure(encode(*silent, range(3))).is_annotator_connected.tolist()
        == [True] * 3 + [False] * 2
    )


def test_annotators_with_fewer_labels_than_classes_are_named() -> None:
    item, annotator, label, _ = drawn(100, 4, 3, seed=2, right=0.8)
    once = [*item, 0, 0, 1, 2], [*annotator, 9, 8, 8, 8], [*label, 0, 0, 1, 2]
    assert warnings_of(*once) == "fewer labels than classes: little is known of 9"
    for many, named in (
        (8, "10, 11, 12, 13, 14 and 3 more"),
        (6, "10, 11, 12, 13, 14 and 1 more"),
        (5, "13, 14"),
    ):
        warning = warnings_of(
            [*item, *range(many)], [*annotator, *range(10, 10 + many)], [*label, *[0] * many]
        )
        assert warning.endswith(named)
    assert warnings_of([*item, 0, 1, 2], [*annotator, 9, 9, 9], [*label, 0, 1, 2]) == ""


def test_classes_with_very_few_labels_are_named_with_what_they_do_to_accuracies() -> None:
    item, annotator, label, _ = drawn(100, 4, 3, seed=2, right=0.8)
    once = {"item": [*item, 7], "annotator": [*annotator, 3], "label": [*label, 3]}
    right = consensus.fit(item, annotator, label).annotators()[0].accuracy
    fitted = consensus.fit(**once, classes=range(5))
    (warning,) = (one for one in fitted.warnings if "class" in one)
    assert warning.startswith("classes with very few labels: 3 (3's of 7), 4 (none): their share")
    assert fitted.annotators()[0].accuracy < right - 0.1
    known = consensus.fit(**once, classes=range(5), gold={0: 3, 1: 4})
    assert not any("very few" in one for one in known.warnings)


def test_annotators_count_by_their_labels_in_the_usual_label_of_a_class() -> None:
    votes = encode([0, 1, 2, 0, 3], [0, 0, 0, 1, 1], [0, 1, 1, 1, 0], range(2))
    gold = np.full(4, -1)
    own, other = [[0.9, 0.1], [0.1, 0.9]], [[0.0, 1.0], [0.2, 0.8]]
    for many, warning in (
        ([own, other], []),
        ([other, own], ["what the model takes for class 0 is called 1 more often"]),
    ):
        found = [
            one.partition(":")[0]
            for one in fitting.list_fit_warnings(votes, np.array(many), None, gold)
        ]
        assert [one for one in found if "the model takes" in one] == warning


def labels_by_item(rows: list[Row]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for item, _, label in rows:
        found.setdefault(item, []).append(label)
    return found


@given(votes())
def test_the_leader_wins_and_ties_follow_the_tie_rule(rows: list[Row]) -> None:
    item, annotator, label = columns(rows)
    for place, own in enumerate(labels_by_item(rows).values()):
        counts = Counter(own)
        # in the order of the rows
        leaders = [one for one, many in counts.items() if many == max(counts.values())]
        expected = {"first": leaders[0], "highest": max(leaders)}
        for ties, leader in expected.items():
            voted = consensus.majority_vote(item, annotator, label, ties, classes=range(3))  # type: ignore[arg-type]
            assert voted.posterior[place].tolist() == np.eye(3)[leader].tolist()
        shared = consensus.majority_vote(item, annotator, label, classes=range(3))
        assert shared.posterior[place].tolist() == [
            1 / len(leaders) if c in leaders else 0.0 for c in range(3)
        ]
        assert shared.tied[place] == (len(leaders) > 1)
        two = sorted([*counts.values(), 0])[-2:]
        assert shared.margin[place] == two[1] - two[0]


@given(votes())
def test_agreement_is_counted_over_all_pairs_of_rows(rows: list[Row]) -> None:
    item, annotator, label = columns(rows)
    found = consensus.agreement(encode(item, annotator, label, range(3)))
    pairwise = [
        np.mean([a == b for a, b in combinations(own, 2)]) if len(own) > 1 else 1.0
        for own in labels_by_item(rows).values()
    ]
    assert found.pairwise == pytest.approx(np.mean(pairwise))
    assert found.unanimous == pytest.approx(
        np.mean([len(set(own)) == 1 for own in labels_by_item(rows).values()])
    )


@given(votes())
def test_without_one_vote_an_item_of_margin_one_changes_or_is_tied(rows: list[Row]) -> None:
    """Proposition 1, for items that nobody labelled twice."""
    once = list(
        {(item, annotator): (item, annotator, label) for item, annotator, label in rows}.values()
    )
    voted = consensus.majority_vote(*columns(once), classes=range(3))
    for place, item in enumerate(voted.items):
        winner = int(voted.posterior[place].argmax())
        own = [row for row in once if row[0] == item]
        turns = False
        for row in own:
            rest = Counter(label for _, by, label in own if by != row[1])
            turns |= (
                max(rest.values(), default=0) > rest[winner]
                or list(rest.values()).count(rest[winner]) > 1
                or not rest
            )
        if not voted.tied[place]:
            assert turns == (item in voted.items_decided_by_one_vote())


def test_an_item_without_a_label_has_equal_probabilities() -> None:
    voted = consensus.majority_vote([0, 1], [0, 0], [1, None], "first", classes=[0, 1])
    assert voted.posterior[1].tolist() == [0.5, 0.5]
    assert not voted.tied[1]


def test_other_ties_are_refused() -> None:
    with pytest.raises(
        PlanError, match=r"^ties is 'coin': one of shared, first, highest is needed"
    ):
        consensus.majority_vote([0], [0], [0], "coin", classes=[0, 1])  # type: ignore[arg-type]


def test_a_gold_class_overrides_the_votes() -> None:
    voted = consensus.majority_vote(
        [0, 0, 1, 2], [0, 1, 0, 0], [1, 1, 0, 0], classes=[0, 1], gold={0: 0, 1: 1}
    )
    assert voted.posterior.tolist() == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
