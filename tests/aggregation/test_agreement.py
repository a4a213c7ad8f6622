"""Agreement of labels: Cohen's kappa, and predictions against the truth."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.aggregation.agreement import Classification, classification, cohen_kappa, strict_majority
from jurygraph.errors import PlanError
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
    renamed = cohen_kappa([f"label {names[one]}" for one in first], [f"label {names[one]}" for one in second])
    assert renamed == pytest.approx(kappa, nan_ok=True)
    assert np.isnan(kappa) or -1.0 - 1e-12 <= kappa <= 1.0


# Classification


def test_metrics_equal_values_computed_by_hand() -> None:
    """a: precision 2 of 3, recall 2 of 2; b: 1 of 1, 1 of 2."""
    found = classification(["a", "a", "a", "b"], ["a", "a", "b", "b"])
    expected = (0.75, (2 / 3 + 1) / 2, (1 + 1 / 2) / 2, (4 / 5 + 2 / 3) / 2)
    assert found == pytest.approx(Classification(*expected), abs=1e-15)


def test_a_label_that_is_absent_on_one_side_counts_0() -> None:
    assert classification([0, 1], [0, 0]) == (0.5, 0.5, 0.25, pytest.approx(1 / 3))
    assert classification([0, 0], [0, 1]) == (0.5, 0.25, 0.5, pytest.approx(1 / 3))


def test_the_averaged_labels_may_be_fewer_or_more_than_those_that_occur() -> None:
    predicted, right = ["a", "none", "b"], ["a", "b", "b"]
    over = classification(predicted, right, labels=["a", "b"])
    assert over == pytest.approx((2 / 3, 1.0, 0.75, (1 + 2 / 3) / 2))
    assert classification(predicted, right).macro_recall == pytest.approx((1 + 0.5 + 0) / 3)
    assert classification(predicted, right, labels=["c"]) == (pytest.approx(2 / 3), 0.0, 0.0, 0.0)


@given(ratings)
def test_each_figure_is_a_share_and_all_are_1_for_the_truth(pairs: list[tuple[int, int]]) -> None:
    predicted, right = zip(*pairs, strict=True)
    assert all(0.0 <= figure <= 1.0 for figure in classification(predicted, right))
    assert classification(right, right) == pytest.approx((1.0, 1.0, 1.0, 1.0))
    other = classification(right, predicted)
    found = classification(predicted, right)
    assert (other.macro_recall, other.macro_f1) == pytest.approx((found.macro_precision, found.macro_f1))


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
    for function in (cohen_kappa, classification):
        with pytest.raises(PlanError, match=message):
            function(one, other)


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
    found = {"False": cohen_kappa(orig, label), "True": cohen_kappa(swap, label), "agreement": cohen_kappa(orig, swap)}
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
    return np.array([known[row[name]] if row[name] in known else float(row[name]) for row in RATINGS])


def majority() -> np.ndarray:
    votes = np.stack([column(f"annotator{each}") for each in (1, 2, 3)], axis=1)
    everybody = np.ones(votes.shape, dtype=np.bool_)
    winner, decided = strict_majority(votes, everybody, everybody)
    assert decided.all()
    return winner


def metrics_of(judge: np.ndarray) -> dict[str, float]:
    found = classification(judge, majority(), labels=[0.0, 1.0, 2.0])
    names = ("acc", "macroP", "macroR", "macroF1")
    return {name: round(figure, 4) for name, figure in zip(names, found, strict=True)}


def test_the_majority_of_the_annotators_is_the_published_one() -> None:
    assert majority().tolist() == column("maj").tolist()


@pytest.mark.parametrize("judge", ["gpt35", "pandalm7b"])
def test_pandalms_published_agreement(judge: str) -> None:
    """Garbage is a wrong label, and no class to average over."""
    kappa = round(cohen_kappa(column(judge), majority()), 4)
    assert metrics_of(column(judge)) | {"cohen_kappa_vs_majority": kappa} == PUBLISHED[judge]


def test_garbage_counted_as_a_tie_gives_the_published_agreement() -> None:
    assert metrics_of(column("gpt35", garbage=0.0)) == PUBLISHED["gpt35_garbage_as_tie"]


def test_the_agreement_between_the_annotators() -> None:
    pairs = {pair: [column(f"annotator{each}") for each in pair.split("-")] for pair in ("1-2", "1-3", "2-3")}
    assert {pair: round(cohen_kappa(*both), 4) for pair, both in pairs.items()} == PUBLISHED["iaa_cohen"]
