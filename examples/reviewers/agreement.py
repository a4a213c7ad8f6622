"""How far PandaLM's annotators agree with each other, and its two model judges with their majority. No model is asked.

python examples/reviewers/agreement.py
"""

import csv
import gzip
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from jurygraph.aggregation.agreement import classification, cohen_kappa, strict_majority

RATINGS = Path(__file__).parent / "pandalm" / "ratings.csv.gz"
ANNOTATORS = ("annotator1", "annotator2", "annotator3")
JUDGES = {"gpt35": "GPT-3.5", "pandalm7b": "PandaLM-7B"}
LABELS = ("0", "1", "2")
"""No response is better, the first is, the second is. A judge whose reply could not be read said `garbage`: wrong."""


def main() -> None:
    with gzip.open(RATINGS, "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for line in lines({name: [row[name] for row in rows] for name in (*ANNOTATORS, *JUDGES)}):
        print(line)


def lines(said: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The figures, from what each annotator and each judge said of every pair."""
    votes = np.array([said[name] for name in ANNOTATORS], dtype=np.float64).T
    everywhere = np.ones(votes.shape, dtype=np.bool_)
    majority = strict_majority(votes, has_vote=everywhere, seats=everywhere)
    yield f"{len(votes)} pairs; two of the three annotators say the same on {majority.decided.sum()}."
    yield "Cohen's kappa between annotators:"
    for one, other in combinations(ANNOTATORS, 2):
        yield f"  {one} and {other}  {cohen_kappa(said[one], said[other]):.4f}"
    yield "Model judges against the majority:"
    truth = [f"{value:g}" for value in majority.value]
    yield f"  {'':<10}  accuracy  precision  recall      F1   kappa"
    for name, shown in JUDGES.items():
        yield f"  {shown:<10}  {_figures(['0' if one == 'Tie' else one for one in said[name]], truth)}"


def _figures(predicted: Sequence[str], truth: Sequence[str]) -> str:
    """Accuracy, the means of precision, recall and F1 over the labels, and kappa."""
    found = classification(predicted, truth, labels=LABELS)
    means = f"{found.macro_precision:9.4f}  {found.macro_recall:6.4f}  {found.macro_f1:6.4f}"
    return f"{found.accuracy:8.4f}  {means}  {cohen_kappa(predicted, truth):6.4f}"


if __name__ == "__main__":
    main()
