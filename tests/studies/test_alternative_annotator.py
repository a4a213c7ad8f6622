"""The alternative-annotator test: by another route, and what holds of any labels."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jurygraph.arrays import Floats
from jurygraph.studies.alternative_annotator import (
    AlternativeAnnotator,
    PersonLabels,
    compare_judge_with_people,
)
from jurygraph.studies.conclusions import conclude_judge
from jurygraph.studies.report import IntervalCell
from tests.examples import at_most


def people_of(
    table: Floats, judge: Floats, are_classes: bool = True, **changes: Any
) -> PersonLabels:
    """Labels [persons, items], NaN where a person gave none, and the judge's of each item."""
    persons, items = np.nonzero(~np.isnan(table))
    columns: dict[str, Any] = {
        "items": items,
        "tasks": items,
        "persons": persons,
        "labels": table[persons, items],
        "predictions": judge[items],
        "names": tuple(f"p{number}" for number in range(len(table))),
        "are_classes": are_classes,
    }
    return PersonLabels(**(columns | changes))


def drawn(seed: int, noise: float, are_classes: bool) -> tuple[Floats, Floats]:
    """Labels of five people, each of four fifths of 60 items, who err as often as each other, and a judge's."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 6, 60)
    errors = rng.random((6, 60)) < np.array([*[0.3] * 5, noise])[:, None]
    said = np.where(errors, rng.integers(1, 6, (6, 60)), truth).astype(np.float64)
    if are_classes:
        said = np.where(said > 3, 1.0, 0.0)
    table = said[:5].copy()
    table[rng.random((5, 60)) < 0.2] = np.nan
    return table, said[5]


def by_scipy(
    table: Floats, judge: Floats, are_classes: bool, epsilon: float
) -> tuple[Any, float, float]:
    """The paper's procedure as its authors' code has it, item by item."""
    p_values = []
    shares = []
    for person, labels in enumerate(table):
        wins: list[tuple[float, float]] = []
        for item in np.flatnonzero(~np.isnan(labels)):
            others = np.delete(table[:, item], person)
            others = others[~np.isnan(others)]
            if not len(others):
                continue
            alignments = []
            for value in (judge[item], labels[item]):
                near = (others == value).mean()
                far = -np.sqrt(((others - value) ** 2).mean())
                alignments.append(near if are_classes else far)
            wins.append((alignments[0] >= alignments[1], alignments[1] >= alignments[0]))
        of_judge, of_person = np.array(wins, dtype=np.float64).T
        p_values.append(stats.ttest_rel(of_person - epsilon, of_judge, alternative="less").pvalue)
        shares.append(of_judge.mean())
    adjusted = stats.false_discovery_control(p_values, method="by")
    return adjusted, float((adjusted <= 0.05).mean()), float(np.mean(shares))


@pytest.mark.parametrize("are_classes", [True, False])
@pytest.mark.parametrize("noise", [0.05, 0.3, 0.9])
def test_the_figures_are_those_of_scipys_paired_t_test(noise: float, are_classes: bool) -> None:
    for seed in range(3):
        table, judge = drawn(seed, noise, are_classes)
        found = compare_judge_with_people(people_of(table, judge, are_classes), 0.1)
        adjusted, winning_rate, advantage = by_scipy(table, judge, are_classes, 0.1)
        assert list(found.p.values()) == pytest.approx(adjusted.tolist())
        assert found.winning_rate == winning_rate
        assert found.advantage is not None
        assert found.advantage.value == pytest.approx(advantage)
        assert noise == 0.3 or (winning_rate > 0.0) == (noise < 0.3)


@settings(max_examples=at_most(30), deadline=None)
@given(st.integers(0, 10_000), st.floats(0.0, 1.0), st.booleans())
def test_a_judge_wins_more_with_more_leniency_and_nothing_depends_on_the_order_of_labels(
    seed: int, noise: float, are_classes: bool
) -> None:
    table, judge = drawn(seed, noise, are_classes)
    strict, lenient = (
        compare_judge_with_people(people_of(table, judge, are_classes), epsilon)
        for epsilon in (0.05, 0.3)
    )
    assert (strict.winning_rate or 0.0) <= (lenient.winning_rate or 0.0)
    assert strict.advantage == lenient.advantage
    assert strict.advantage is not None
    ends = [end for end in strict.advantage if end is not None]
    assert len(ends) in (1, 3)
    assert sorted([0.0, *ends, 1.0]) == [0.0, *sorted(ends), 1.0]
    straight = people_of(table, judge, are_classes)
    order = np.random.default_rng(seed).permutation(len(straight.labels))
    names = ("items", "tasks", "persons", "labels", "predictions")
    shuffled = {name: getattr(straight, name)[order] for name in names}
    mixed = compare_judge_with_people(people_of(table, judge, are_classes, **shuffled), 0.05)
    assert list(mixed.p.values()) == pytest.approx(list(strict.p.values()))


def test_judges_who_repeat_people_win_by_as_much_as_their_items_can_show() -> None:
    """Full agreement has no variance: of 30 items, ε = .1 could hide in (1 - .1)^30 of such draws, 4.2 %."""
    table = np.tile(np.arange(30) % 2.0, (3, 1))
    found = compare_judge_with_people(people_of(table, table[0]))
    assert list(found.p.values()) == pytest.approx([0.9**30 * 11 / 6] * 3)
    assert found.winning_rate == 0.0
    assert found.advantage == pytest.approx((1.0, 0.025 ** (1 / 30), 1.0))
    assert compare_judge_with_people(people_of(table, table[0]), 0.2).winning_rate == 1.0
    assert compare_judge_with_people(people_of(table, 1.0 - table[0]), 0.2).winning_rate == 0.0
    ties = people_of(table, table[0], tasks=np.zeros(90, dtype=int))
    assert compare_judge_with_people(ties).winning_rate == 0.0  # a single task shows nothing


def test_a_beaten_person_who_may_be_guessing_is_named_with_the_rate_without_them() -> None:
    """Of four people one guesses, and a fifth shares few items; the guesser is beaten, and the careful are not."""
    rng = np.random.default_rng(4)
    truth = rng.integers(1, 6, 60).astype(np.float64)
    table = np.tile(truth, (5, 1))
    table[3] = rng.integers(1, 6, 60)
    table[4, 20:] = np.nan
    judge = np.clip(truth + rng.integers(-1, 2, 60), 1, 5)
    test = compare_judge_with_people(people_of(table, judge, are_classes=False))
    assert (test.winning_rate, test.persons, test.left_out) == (0.25, 4, ["p4"])
    assert list(test.guessers) == ["p3"]
    assert test.winning_rate_without_guessers == 0.0
    figures = {"name": "j", "n": 60, "kappa": None, "rank_correlation": IntervalCell(0.9, 0.8, 1)}
    figures |= {"answers": 5, "scale": "ordered", "bias": None, "above_constant": None}
    figures |= {"constant": 3, "alternative_annotator": test._replace(winning_rate=0.5)}
    figures |= {"as_counted": None, "confusion": None}
    words, *_ = conclude_judge(figures, None)
    assert (
        "not compared, with fewer than 30 shared items: p4. Warning: may be guessing (correlation near 0, surely "
        "below 0.5): p3 "
    ) in words
    # with the guesser it would pass, which is not what a reader may take away
    assert words.startswith("j is not shown to be as near to people as a person is: ω 0.50 of 4 ")
    assert "; to leave out: --without p3, by which ω is 0.00. More items" in words
    opposite = compare_judge_with_people(people_of(table, 6.0 - judge, are_classes=False))
    assert (opposite.winning_rate, list(opposite.guessers)) == (0.0, ["p3"]), (
        "he is to be beaten, too"
    )
    others = people_of(table[1:], judge, are_classes=False)
    alone = compare_judge_with_people(others)
    assert list(alone.guessers) == ["p2"]
    assert alone.winning_rate_without_guessers is None  # two persons are too few
    figures["alternative_annotator"] = alone._replace(winning_rate=1.0)
    words, *_ = conclude_judge(figures, None)
    assert words.startswith("j is not shown to be as near to people as a person is: ω 1.00 of 3 ")
    assert (
        "by which there are too few persons to test. Labels of more persons may show it." in words
    )


def test_too_few_persons_or_items_are_not_tested_and_it_says_why() -> None:
    table, judge = drawn(0, 0.1, are_classes=True)
    cases = {
        "2 of 2 do, and the most is 37 items": table[:2],
        "0 of 5 do, and the most is 17 items": table[:, :20],
        "0 of 2 do, and the most is 1 item": np.ones((2, 1)),
        "no label has the name of its reviewer": np.full((0, 60), np.nan),
    }
    need = "it takes 3 persons who share 30 judged items with others, by name"
    for reason, labels in cases.items():
        found = compare_judge_with_people(people_of(labels, judge))
        assert (found.winning_rate, found.advantage) == (None, None)
        assert found.why == f"{need}; {reason}"


def test_only_a_judge_that_does_not_guess_may_stand_in_for_a_person() -> None:
    test = AlternativeAnnotator(0.1, 3, 40, {}, 1.0, IntervalCell(0.8, 0.7, 0.9))
    figures = {"name": "j", "n": 40, "answers": 5, "scale": "binary", "constant": 1}
    figures |= {"bias": None, "above_constant": None, "alternative_annotator": test}
    figures |= {"confusion": {"levels": [0.0, 1.0], "counts": [[20, 5], [3, 12]]}}
    for kappa, ending in {
        (0.1, -0.1, 0.3): "who are not near to each other: ω",
        (0.8, 0.7, 0.9): "and may stand in for one: ω",
    }.items():
        judge = {**figures, "kappa": IntervalCell(*kappa), "as_counted": None}
        words = " ".join(conclude_judge(judge, None))
        assert f"j is as near to people as a person is, {ending}" in words
        assert "Of 15 that people call 1 it calls 12 so, and of 25 that they call 0 20." in words
