"""Agreement of labels: kappa, alpha and the strict majority."""

import csv
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.aggregation.agreement import (
    alpha_interval,
    cohen_kappa,
    krippendorff_alpha,
    strict_majority,
)
from jurygraph.errors import PlanError
from jurygraph.inference.agreement import MeasurementLevel
from tests.rows import all_rows

DATA = Path(__file__).parents[1] / "data"
ratings = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


# Kappa


def test_kappa_of_a_confusion_table_equals_cohens_value() -> None:
    """20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: p_o = .7, p_e = .5."""
    first = ["yes"] * 25 + ["no"] * 25
    second = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    assert cohen_kappa(first, second) == pytest.approx(0.4, abs=1e-15)


def test_kappa_is_not_a_number_where_chance_agrees_as_well() -> None:
    assert np.isnan(cohen_kappa(["a", "a"], ["a", "a"]))


@given(ratings, st.permutations(range(4)))
def test_kappa_does_not_depend_on_the_order_of_annotators_or_label_names(
    pairs: list[tuple[int, int]], names: list[int]
) -> None:
    first, second = zip(*pairs, strict=True)
    kappa = cohen_kappa(first, second)
    assert cohen_kappa(second, first) == pytest.approx(kappa, nan_ok=True)
    renamed = cohen_kappa(
        [f"label {names[one]}" for one in first], [f"label {names[one]}" for one in second]
    )
    assert renamed == pytest.approx(kappa, nan_ok=True)
    assert np.isnan(kappa) or -1.0 - 1e-12 <= kappa <= 1.0


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ([], [], r"two lists of one length are needed"),
        ([1], [1, 2], r"has shape \(1,\) and \w+ \(2,\)"),
        ([[1]], [[1]], r"has shape \(1, 1\)"),
        (["1"], [1], "labels of one kind are needed"),
    ],
)
def test_invalid_pairs_of_label_lists_are_refused(one: Any, other: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        cohen_kappa(one, other)


# LLMBar: 65 evaluators on five sets (see tests/data/README.md)

with gzip.open(DATA / "llmbar" / "verdicts.jsonl.gz", "rt", encoding="utf-8") as lines:
    ENTRIES = [json.loads(line) for line in lines]
with gzip.open(DATA / "llmbar" / "statistics.json.gz", "rt", encoding="utf-8") as file:
    STATISTICS = json.load(file)


@all_rows("entry", ENTRIES)
def test_llmbars_kappas(entry: dict[str, str]) -> None:
    """As published: whatever is not 1, a 2 or garbage, is read as 0 before it is compared with labels of 1 and 2."""
    published = STATISTICS[f"{entry['subset']}|{entry['evaluator']}|{entry['mode']}"]
    orig, swap = ([int(winner == "1") for winner in entry[order]] for order in ("orig", "swap"))
    label = [int(one) for one in entry["label"]]
    found = {
        "False": cohen_kappa(orig, label),
        "True": cohen_kappa(swap, label),
        "agreement": cohen_kappa(orig, swap),
    }
    found["average"] = (found["False"] + found["True"]) / 2
    expected = {name: published[f"kappa_{name}"] for name in found}
    assert found == pytest.approx(expected, abs=1e-12)


# PandaLM: three annotators and two model judges on 999 pairs (see tests/data/README.md)

with gzip.open(DATA / "pandalm" / "ratings.csv.gz", "rt", encoding="utf-8") as file:
    RATINGS = list(csv.DictReader(file))
PUBLISHED = json.loads((DATA / "pandalm" / "published.json").read_text(encoding="utf-8"))
GARBAGE = 3.0


def column(name: str, garbage: float = GARBAGE) -> np.ndarray:
    """A rater's labels as numbers: 1 and 2 for the response preferred, 0 for a tie, another for what is none."""
    known = {"Tie": 0.0, "garbage": garbage}
    return np.array(
        [known[row[name]] if row[name] in known else float(row[name]) for row in RATINGS]
    )


def majority_of_annotators() -> np.ndarray:
    votes = np.stack([column(f"annotator{each}") for each in (1, 2, 3)], axis=1)
    everybody = np.ones(votes.shape, dtype=np.bool_)
    winner, decided = strict_majority(votes, everybody, everybody)
    assert decided.all()
    return winner


def test_the_majority_of_the_annotators_is_the_published_one() -> None:
    assert majority_of_annotators().tolist() == column("maj").tolist()


@pytest.mark.parametrize("judge", ["gpt35", "pandalm7b"])
def test_pandalms_published_agreement(judge: str) -> None:
    assert (
        round(cohen_kappa(column(judge), majority_of_annotators()), 4)
        == PUBLISHED[judge]["cohen_kappa_vs_majority"]
    )


def test_the_agreement_between_the_annotators() -> None:
    pairs = {
        pair: [column(f"annotator{each}") for each in pair.split("-")]
        for pair in ("1-2", "1-3", "2-3")
    }
    assert {pair: round(cohen_kappa(*both), 4) for pair, both in pairs.items()} == PUBLISHED[
        "iaa_cohen"
    ]


# Krippendorff's alpha


def test_alpha_equals_the_krippendorff_package_on_random_ratings_with_gaps() -> None:
    """200 matrices of 2 to 12 raters, 3 to 60 items and 2 to 9 levels, whole or uneven, with up to 80 % of gaps."""
    rng = np.random.default_rng(0)
    compared = 0
    while compared < 200:
        count = rng.integers(2, 10)
        levels = np.sort(rng.normal(50.0, 20.0, count)) if compared % 2 else np.arange(count)
        shape = (rng.integers(2, 13), rng.integers(3, 61))
        ratings = rng.choice(levels, shape).astype(np.float64)
        ratings[rng.random(shape) < rng.uniform(0.0, 0.8)] = np.nan
        for level in get_args(MeasurementLevel):
            ours = krippendorff_alpha(ratings, level)
            if np.isnan(ours):
                break
            assert ours == pytest.approx(
                krippendorff.alpha(ratings, level_of_measurement=level), abs=1e-12
            )
        else:
            compared += 1


def test_alpha_of_krippendorffs_own_example_has_the_published_values() -> None:
    """Four observers and twelve units (Krippendorff 2011, C)."""
    gap = np.nan
    ratings = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, gap, gap, gap],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, gap, 3],
        [gap, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, gap],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, gap],
    ]
    found = [krippendorff_alpha(ratings, level) for level in ("nominal", "ordinal", "interval")]
    assert found == pytest.approx([0.743, 0.815, 0.849], abs=5e-4)
    words = [[None if np.isnan(one) else f"level {one}" for one in row] for row in ratings]
    assert krippendorff_alpha(words, "nominal") == pytest.approx(found[0], abs=1e-15)


def test_alpha_is_not_a_number_where_nothing_can_differ() -> None:
    assert np.isnan(krippendorff_alpha([[1.0, np.nan], [np.nan, 2.0]]))  # no item has two ratings
    # all that are compared are equal
    assert np.isnan(krippendorff_alpha([[1.0, 1.0, 3.0], [1.0, 1.0, np.nan]]))
    assert alpha_interval([[1.0, 1.0], [1.0, 1.0]]) is None


@pytest.mark.parametrize("level", get_args(MeasurementLevel))
def test_the_interval_of_alpha_is_that_of_the_jackknife_over_items(level: MeasurementLevel) -> None:
    rng = np.random.default_rng(1)
    ratings = np.clip(rng.normal(0.0, 1.0, 40) + rng.normal(0.0, 0.7, (4, 40)), -2.0, 2.0).round()
    ratings[rng.random((4, 40)) < 0.3] = np.nan
    estimate = alpha_interval(ratings, level)
    assert estimate is not None
    assert estimate.value == krippendorff_alpha(ratings, level)
    assert estimate.low is not None
    paired = np.flatnonzero((~np.isnan(ratings)).sum(axis=0) > 1)
    without = np.array(
        [krippendorff_alpha(np.delete(ratings, item, axis=1), level) for item in paired]
    )
    error = np.sqrt((len(paired) - 1) / len(paired) * ((without - estimate.value) ** 2).sum())
    assert (estimate.error, estimate.clusters) == (pytest.approx(error, abs=1e-12), len(paired))
    assert estimate.low < estimate.value < 1.0


@all_rows(
    "ratings, level, message",
    [
        ([[1.0, 2.0]], "ratio", "level is 'ratio': one of nominal, ordinal, interval is needed"),
        ([1.0, 2.0], "ordinal", r"ratings has shape \(2,\) where \[raters, items\] is needed"),
        ([["bad", "good"]], "ordinal", "ratings holds <U4 where numbers are needed"),
        (
            [[1.0, np.inf]],
            "interval",
            "ratings has an infinite number: give NaN where a rater did not rate an item",
        ),
    ],
)
def test_wrong_ratings_are_refused(ratings: Any, level: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        krippendorff_alpha(ratings, level)


VOTES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, None]), min_size=1, max_size=7)
"""A row of seats; None abstains."""


def majority(*votes: float | None) -> float | None:
    """Return the winning value of one row of votes, None without a majority."""
    value = np.array([[0.0 if vote is None else vote for vote in votes]])
    cast = np.array([[vote is not None for vote in votes]])
    found = strict_majority(value, cast, np.ones_like(cast))
    return float(found.value[0]) if found.decided[0] else None


def test_a_judge_that_was_not_requested_does_not_count() -> None:
    value, cast = np.array([[1.0, 0.0, 0.0]]), np.array([[True, True, True]])
    found = strict_majority(value, cast, np.array([[True, False, False]]))
    assert (found.value.tolist(), found.decided.tolist()) == ([1.0], [True])


@given(VOTES)
def test_the_majority_equals_a_simple_count(votes: list[float | None]) -> None:
    counted = Counter(vote for vote in votes if vote is not None)
    winners = [value for value, count in counted.items() if 2 * count > len(votes)]
    assert majority(*votes) == (winners[0] if winners else None)


@given(
    st.lists(VOTES, min_size=1, max_size=4).map(
        lambda rows: [(row + [None] * 7)[:7] for row in rows]
    )
)
def test_each_row_is_decided_by_itself(rows: list[list[float | None]]) -> None:
    value = np.array([[vote or 0.0 for vote in row] for row in rows])
    cast = np.array([[vote is not None for vote in row] for row in rows])
    found = strict_majority(value, cast, np.ones_like(cast))
    each = [float(v) if d else None for v, d in zip(found.value, found.decided, strict=True)]
    assert each == [majority(*row) for row in rows]
