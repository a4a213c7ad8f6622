"""How far PandaLM's annotators agree with each other, and its two model judges with their majority. No model is asked.

The intervals, of 95 %, keep the pairs of an instruction together: up to ten pairs have the same one.

python examples/reviewers/agreement.py
"""

import csv
import gzip
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from jurygraph.aggregation.agreement import cohen_kappa, kappa_interval, strict_majority
from jurygraph.inference.clusters import share_interval

FOLDER = Path(__file__).parent
RATINGS, INSTRUCTIONS = FOLDER / "pandalm" / "ratings.csv.gz", FOLDER / "ratings.csv.gz"
ANNOTATORS = ("annotator1", "annotator2", "annotator3")
JUDGES = {"gpt35": "GPT-3.5", "pandalm7b": "PandaLM-7B"}
LABELS = ("0", "1", "2")
"""No response is better, the first is, the second is. A judge whose reply could not be read said `garbage`: wrong."""


def main() -> None:
    rows, ratings = read_rows(RATINGS), read_rows(INSTRUCTIONS)
    instruction_of = {row["item"]: row["group"] for row in ratings}
    instructions = [instruction_of[f"pandalm-{int(row['idx']):03}"] for row in rows]
    for line in lines(
        {name: [row[name] for row in rows] for name in (*ANNOTATORS, *JUDGES)}, instructions
    ):
        print(line)


def read_rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def lines(said: Mapping[str, Sequence[str]], instructions: Sequence[str]) -> Iterator[str]:
    """The figures, from what each annotator and each judge said of every pair."""
    votes = np.array([said[name] for name in ANNOTATORS], dtype=np.float64).T
    everywhere = np.ones(votes.shape, dtype=np.bool_)
    majority = strict_majority(votes, has_vote=everywhere, seats=everywhere)
    yield f"{len(votes)} pairs; two of the three annotators say the same on {majority.decided.sum()}."
    yield "Cohen's kappa between annotators:"
    for one, other in combinations(ANNOTATORS, 2):
        yield f"  {one} and {other}  {_kappa(said[one], said[other], instructions)}"
    yield "Model judges against the majority:"
    truth = [f"{value:g}" for value in majority.value]
    yield f"  {'':<10}  precision  recall      F1  {'accuracy':<25}  kappa"
    for name, shown in JUDGES.items():
        predicted = ["0" if one == "Tie" else one for one in said[name]]
        yield f"  {shown:<10}  {_figures(predicted, truth, instructions)}"


def _figures(predicted: Sequence[str], truth: Sequence[str], instructions: Sequence[str]) -> str:
    """The means of precision, recall and F1 over the labels, accuracy, and kappa."""
    right = np.array(predicted) == np.array(truth)
    clusters = np.unique(instructions, return_inverse=True)[1]
    accuracy = share_interval(np.bincount(clusters, right), np.bincount(clusters))
    assert accuracy is not None
    share = _with_interval(float(right.mean()), accuracy.low, accuracy.high)
    return f"{_macro_means(predicted, truth)}  {share}  {_kappa(predicted, truth, instructions)}"


def _macro_means(predicted: Sequence[str], truth: Sequence[str]) -> str:
    """The means of precision, recall and F1 over the labels; each label is predicted and true somewhere."""
    hits = np.array(
        [
            sum(one == other == label for one, other in zip(predicted, truth, strict=True))
            for label in LABELS
        ]
    )
    guessed = np.array([list(predicted).count(label) for label in LABELS])
    true = np.array([list(truth).count(label) for label in LABELS])
    precision = float((hits / guessed).mean())
    recall = float((hits / true).mean())
    f1 = float((2 * hits / (guessed + true)).mean())
    return f"{precision:9.4f}  {recall:6.4f}  {f1:6.4f}"


def _kappa(first: Sequence[str], second: Sequence[str], instructions: Sequence[str]) -> str:
    found = kappa_interval(first, second, tasks=instructions)
    assert found is not None
    return _with_interval(cohen_kappa(first, second), found.low, found.high)


def _with_interval(value: float, low: float | None, high: float | None) -> str:
    return f"{value:.4f} ({low:.4f} to {high:.4f})"


if __name__ == "__main__":
    main()
