"""Adjusted means: least squares, what they do not depend on, and how far they are from the truth in simulations."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import AdjustedMeans
from jurygraph.aggregation.consensus.fitting import tau_b
from jurygraph.aggregation.consensus.model import encode

PAGE = Path(__file__).parents[3] / "docs" / "consensus.md"
Row = tuple[object, object, float]


def adjust(rows: list[Row], classes: object = range(1, 6), **gold: int) -> AdjustedMeans:
    votes = encode(*map(list, zip(*rows, strict=True)), classes=classes)  # type: ignore[arg-type, misc]
    codes = np.array([gold.get(str(item), -1) for item in votes.items])
    return consensus.adjusted_means(votes, codes)


def means_of(rows: list[Row], classes: object = range(1, 6)) -> dict[object, float]:
    found = adjust(rows, classes)
    return dict(zip(found.items, found.means.tolist(), strict=True))


def test_the_leniency_of_annotators_is_taken_out_of_the_means_of_items() -> None:
    """Ann and Bo share an item, as do Cy and Dee: half of what they differ by there is taken for leniency."""
    rows: list[Row] = [
        ("a", "ann", 4),
        ("a", "bo", 3),
        ("b", "ann", 2),
        ("c", "bo", 2),
        ("e", "cy", 5),
        ("e", "dee", 3),
        ("f", "dee", 1),
        ("g", "eve", 1),
        ("g", "fay", 2),
    ]
    found = adjust(rows)
    np.testing.assert_allclose(found.means, [3.5, 1.75, 2.25, 23 / 6, 4 / 3, 1.5])
    np.testing.assert_allclose(found.leniency, [0.25, -0.25, 2 / 3, -1 / 3, -0.25, 0.25])
    assert found.credit(found.classes) == pytest.approx(found.means)  # type: ignore[arg-type]
    # the nearest class, and half way the one farther from the middle of the scale
    assert (found.likeliest_labels() + 1).tolist() == [4, 2, 2, 4, 1, 1]


def test_adjusted_means_are_those_of_least_squares() -> None:
    """Of 40 items and 6 annotators at random, and a chain of 120 annotators, by all equations: labels, and no leniency.

    The scale is wide, so that no mean is outside it.
    """
    rng = np.random.default_rng(4)
    chain = np.arange(119)
    raters = np.concatenate(
        [rng.integers(0, 6, 90), 6 + np.repeat(chain, 2) + np.tile((0, 1), 119)]
    )
    items = np.concatenate([rng.integers(0, 40, 90), 40 + np.repeat(chain, 2)])
    scores = rng.integers(40, 60, len(items)).astype(float)
    design = np.zeros((len(items) + 126, 159 + 126))
    design[np.arange(len(items)), items] = 1.0
    design[np.arange(len(items)), 159 + raters] = 1.0
    design[len(items) :, 159:] = np.eye(126)
    solution = np.linalg.lstsq(design, [*scores, *np.zeros(126)], rcond=None)[0]
    # over the labels of connected annotators, adjusted means are as high as labels
    for people, part in ((raters < 6, slice(40)), (raters >= 6, slice(40, 159))):
        solution[part] += scores[people].mean() - solution[items[people]].mean()
    rows = list(zip(items.tolist(), raters.tolist(), scores.tolist(), strict=True))
    for item, mean in means_of(rows, range(-600, 700)).items():
        assert mean == pytest.approx(solution[item], abs=1e-5)  # type: ignore[call-overload]


@st.composite
def connected_rows(draw: st.DrawFn) -> list[Row]:
    """Everybody labels the first item, and some of the others."""
    labels = st.integers(10, 20)
    people = draw(st.integers(2, 4))
    rows: list[Row] = [("i0", f"p{person}", draw(labels)) for person in range(people)]
    for item in range(1, draw(st.integers(2, 6))):
        for person in draw(st.sets(st.integers(0, people - 1), min_size=1)):
            rows.append((f"i{item}", f"p{person}", draw(labels)))
    return rows


@given(connected_rows(), st.integers(1, 4))
def test_names_and_order_change_no_mean_and_the_leniency_of_a_person_the_less_the_more_is_shared(
    rows: list[Row], gift: int
) -> None:
    """Who gives more stars to all moves the level of the panel, which is that of all labels, and nothing else."""
    scale = range(-100, 130)
    plain = adjust(rows * 100, scale)
    other = [(f"x{item}", f"y{person}", label) for item, person, label in reversed(rows)]
    assert means_of(other, scale) == pytest.approx(
        {f"x{item}": mean for item, mean in means_of(rows, scale).items()}
    )
    kinder = [(item, person, label + gift * (person == "p1")) for item, person, label in rows]
    found = adjust(kinder * 100, scale)
    level = gift * np.mean([person == "p1" for _, person, _ in rows])
    np.testing.assert_allclose(found.means, plain.means + level, atol=0.05 * gift)
    shift = np.array([gift * (person == "p1") for person in plain.votes.annotators]) - level
    np.testing.assert_allclose(found.leniency, plain.leniency + shift, atol=0.05 * gift)


def test_a_stray_label_of_a_new_person_moves_no_other_item_to_another_class() -> None:
    rows: list[Row] = [(item, person, 1 + item % 4) for item in range(6) for person in "ab"]
    found = adjust([*rows, (0, "new", 5)])
    assert (found.likeliest_labels() + 1).tolist() == [2, 2, 3, 4, 1, 2]
    assert list(found.doubts()) == [0]


@given(connected_rows())
def test_an_agents_score_is_the_mean_of_its_items_adjusted_means(rows: list[Row]) -> None:
    found = adjust(rows, range(10, 21))
    agent_by_item = {item: ("m", "n")[int(str(item)[1:]) % 2] for item in found.items}
    agents = [agent_by_item[item] for item, _, _ in rows]
    for agent, score in found.agent_scores(agents, found.classes).items():  # type: ignore[arg-type]
        means = [
            mean
            for item, mean in zip(found.items, found.means, strict=True)
            if agent_by_item[item] == agent
        ]
        assert score.score == pytest.approx(np.mean(means))


def test_what_is_labelled_less_or_apart_is_less_sure_and_unanimous_labels_are_not_certain() -> None:
    rows: list[Row] = []
    for item in range(12):
        rows += [(f"same{item}", person, 1 + item % 5) for person in ("ann", "bo")]
    rows += [("apart", "ann", 2), ("apart", "bo", 4), ("one", "ann", 3), ("gold", "bo", 2)]
    rows += [("alone", "zoe", 3), ("none", "ann", float("nan"))]
    found = adjust(rows, gold=4)
    error = dict(zip(found.items, found.standard_errors.tolist(), strict=True))
    # two labels apart by 2, the imaginary residual (4/5)², and ann and bo, who share 13 items
    variance = (2 + 0.8**2) / (1 + 29 - 16 - 2 * 6.5 / 7.5)
    residual = 2 * (1 - 1 / 13) ** 2 + 0  # of the pair whose leniency takes a part
    assert error["one"] == pytest.approx((variance * (1 + 1 / 7.5)) ** 0.5, rel=0.05)
    assert error["alone"] == pytest.approx((2 * variance) ** 0.5, rel=0.05)
    own = (4 * variance + residual) / 5
    assert error["apart"] == pytest.approx((own / 2 + variance / 2 / 7.5) ** 0.5, rel=0.05)
    assert 0.0 < error["same0"] < error["apart"]
    assert (error["gold"], error["none"]) == (0.0, 4.0)
    mean = dict(zip(found.items, found.means.tolist(), strict=True))
    assert mean["gold"] == 5
    assert list(found.doubts()) == ["apart", "one", "alone", "none"]


class _Simulated(NamedTuple):
    """Means over simulations: the share of intervals with the truth, errors in stars, and τ of the agents' order."""

    coverage: float
    error: float
    majority_error: float
    tau: float
    majority_tau: float
    doubtful_share: float


def simulate(
    people: int, fewest: int, is_balanced: bool, leniency: float | None, seeds: int = 100
) -> _Simulated:
    """Simulate 60 answers of three agents, with up to three labels each; None: one person is lenient by a star.

    Stars are rounded from the truth, a leniency, and an error of .7. Unbalanced, an agent's answers go to one person
    four times as often as to another. The truth of a mean includes the leniency of the panel, which no label tells.
    """
    figures = []
    agents = np.arange(60) % 3
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        truth = np.clip(2.8 + 0.4 * agents + rng.normal(0.0, 1.0, 60), 1.0, 5.0)
        gifts = np.zeros(people)
        gifts[0] = 1.0
        if leniency is not None:
            gifts = rng.normal(0.0, leniency, people)
        rows: list[Row] = []
        for item in range(60):
            chances = np.ones(people)
            if not is_balanced:
                chances[agents[item]] = 4.0
            labels = min(people, int(rng.integers(fewest, 4)))
            for person in rng.choice(people, labels, replace=False, p=chances / chances.sum()):
                star = np.rint(truth[item] + gifts[person] + rng.normal(0.0, 0.7))
                rows.append((item, int(person), float(np.clip(star, 1, 5))))
        columns: Any = [list(column) for column in zip(*rows, strict=True)]
        votes = encode(*columns, classes=range(1, 6))
        found = consensus.adjusted_means(votes, np.full(60, -1))
        majority = consensus.majority_vote(*columns, classes=range(1, 6)).credit(range(1, 6))
        level = gifts[[person for _, person, _ in rows]].mean()
        target = np.clip(truth + level, 1.0, 5.0)
        errors = np.abs(found.means - target)
        scores = [np.bincount(agents, one) / 20 for one in (truth, found.means, majority)]
        figures.append(
            (
                np.mean(errors <= 1.96 * found.standard_errors),
                errors.mean(),
                np.abs(majority - target).mean(),
                tau_b(scores[0], scores[1]),
                tau_b(scores[0], scores[2]),
                len(found.doubts()) / 60,
            )
        )
    return _Simulated(*np.nanmean(figures, axis=0).tolist())


def test_intervals_of_simulated_stars_contain_the_truth_and_means_are_nearer_to_it_than_votes() -> (
    None
):
    panels = [
        simulate(people, fewest, is_balanced, leniency=0.4, seeds=30)
        for people in (3, 5)
        for fewest in (1, 2)
        for is_balanced in (True, False)
    ]
    panels.append(simulate(60, 2, True, leniency=0.4, seeds=30))
    for panel in panels:
        assert 0.93 < panel.coverage < 0.96
        assert panel.error < 0.93 * panel.majority_error
        assert panel.doubtful_share < 0.5
    page = " ".join(PAGE.read_text("utf-8").split())
    lenient = simulate(4, 2, is_balanced=False, leniency=None)
    assert (
        f"a mean absolute error of {lenient.error:.2f} of a star where the majority has "
        f"{lenient.majority_error:.2f}, and τ of the agents is {lenient.tau:.2f} for {lenient.majority_tau:.2f}"
    ).replace("0.", ".") in page
    assert "truth in 93 to 95 %" in page
    assert round(lenient.coverage, 2) == 0.94


def test_standard_errors_now_and_after_one_more_label_are_those_of_the_formula() -> None:
    """As docs/consensus.md has it."""
    draw = np.random.default_rng(2)
    item = np.repeat(np.arange(12), 3)[:-1]
    person = np.concatenate([draw.permutation(4)[:3] for _ in range(12)])[:-1]
    label = draw.integers(1, 6, len(item))
    label[:2] = 1, 5
    votes = encode(item, person, label, (1, 2, 3, 4, 5))
    found = consensus.adjusted_means(votes, np.full(12, -1))
    rows, people = votes.item, votes.annotator
    numbers = votes.label + 1.0
    n = np.bincount(rows)
    own_means = (
        np.bincount(rows, numbers - found.leniency[people]) / n
    )  # before they are cut to the scale
    squares = (numbers - own_means[rows] - found.leniency[people]) ** 2
    shared = np.bincount(people, 1 - 1 / n[rows])
    freedom = 1 + len(rows) - len(n) - (shared / (1 + shared)).sum()
    variance = (squares.sum() + (4 / 5) ** 2) / freedom
    variances = (4 * variance + np.bincount(rows, squares)) / (3 + n)
    leniency_errors = np.bincount(rows, 1 / (1 + shared[people]))
    errors = np.sqrt(variances / n + variance / n**2 * leniency_errors)
    assert found.standard_errors == pytest.approx(errors, abs=1e-8)
    leniency_errors += np.mean(1 / (1 + shared[people]))
    errors = np.sqrt(variances / (n + 1) + variance / (n + 1) ** 2 * leniency_errors)
    assert found.further_errors == pytest.approx(errors, abs=1e-8)
    (_, now), (_, then) = found.expected_errors()
    assert then < now
