"""STABLEVAL's tables of real votes (1, 2, 8 to 17 and 24 to 29): ours, and beside it what is printed.

    python -m examples.consensus.tables

The preset is `paper`, and the majority's ties go to the label that stands first in the file, as the authors had it.
Rows are those of the paper: of annotators and of ambiguous answers it prints the first ten.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from examples.consensus.votes import Ratings, ratings
from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import Consensus, MajorityVote

PUBLISHED: Mapping[str, Mapping[str, Mapping[str, str]]] = json.loads(
    (Path(__file__).parent / "published.json").read_text(encoding="utf-8")
)
"""What is printed, by set of votes, table and row."""
METHODS = {
    "majority": "Majority Vote",
    "dawid-skene": "Dawid-Skene (Hard)",
    "stableval": "Posterior Expected Credit",
}


class Line(NamedTuple):
    """A row of a table: ours, and as it is printed."""

    row: str
    ours: str
    printed: str


class Measured:
    """A set of votes, and all that the paper tells of it, as it prints it: by row."""

    def __init__(self, rows: Ratings) -> None:
        self._rows = rows
        self._votes = (rows.item, rows.annotator, rows.label)

    @cached_property
    def _fitted(self) -> Consensus:
        return consensus.fit(*self._votes, preset="paper")

    @cached_property
    def _majority(self) -> MajorityVote:
        return consensus.majority_vote(*self._votes, ties="first")

    def counts(self) -> dict[str, str]:
        """How many there are, and how far they agree."""
        items, annotators, _ = self._fitted.votes.shape
        agreeing = consensus.agreement(self._fitted.votes)
        labels = len(self._rows.label)
        return {
            "Total annotations": f"{labels:,}",
            "Unique responses": f"{items:,}",
            "Unique agents": f"{len(set(self._rows.agent))}",
            "Unique annotators": f"{annotators}",
            "Avg. annotations per response": f"{labels / items:.2f}",
            "Unanimous agreement": f"{agreeing.unanimous:.1%}",
            "Pairwise agreement": f"{agreeing.pairwise:.1%}",
        }

    def scores(self) -> dict[str, str]:
        """MV, DS, PEC, PEC less MV, and the number of answers."""
        return {
            agent: f"{mv:.3f} {ds:.3f} {pec:.3f} {round(pec - mv, 3) + 0.0:+.3f} {items}"
            for agent, (mv, ds, pec, items) in self._scores().items()
        }

    def stability(self) -> dict[str, str]:
        """Mean standard deviation and mean range of a rank over 50 subsets of 70 % of the annotators."""
        found = consensus.ranking_stability(*self._votes, self._rows.agent, preset="paper", seed=42)
        return {
            METHODS[method]: f"{one.rank_sd:.3f} {one.rank_range:.3f}"
            for method, one in found.items()
        }

    def annotators(self) -> dict[str, str]:
        """Accuracy, leniency and strictness."""
        found = self._fitted.annotators().items()
        return {
            str(who): f"{one.accuracy:.3f} {one.leniency:.3f} {one.strictness:.3f}"
            for who, one in found
        }

    def ambiguous(self) -> dict[str, str]:
        """Ambiguity, confidence and likeliest class of each answer."""
        ambiguity, labels = self._fitted.ambiguity(), self._fitted.likeliest_labels()
        return {
            str(item): f"{one:.3f} {1 - one:.3f} {label}"
            for item, one, label in zip(self._fitted.items, ambiguity, labels, strict=True)
        }

    def findings(self) -> dict[str, str]:
        """What changes from MV to PEC, and how ambiguous the answers are."""
        mv, _, pec, _ = (np.array(column) for column in zip(*self._scores().values(), strict=True))
        high = self._fitted.ambiguity() > consensus.HIGH_AMBIGUITY
        return {
            "Score correlation (MV vs PEC)": f"{np.corrcoef(mv, pec)[0, 1]:.3f}",
            "Maximum score change": f"{np.abs(pec - mv).max():.3f}",
            "Agents with rank changes": f"{(_ranks(mv) != _ranks(pec)).sum()} / {len(mv)}",
            "Average item ambiguity": f"{self._fitted.ambiguity().mean():.3f}",
            "Highly ambiguous items (> 0.3)": f"{high.sum()} ({high.mean():.2%})",
        }

    def _scores(self) -> dict[str, tuple[float, float, float, int]]:
        methods = (self._majority, self._fitted.hard_labels(), self._fitted)
        mv, ds, pec = (one.agent_scores(self._rows.agent, bootstrap=0) for one in methods)
        return {
            str(one): (mv[one].score, ds[one].score, pec[one].score, pec[one].items) for one in mv
        }


Part = tuple[str, Callable[[Measured], dict[str, str]]]
PARTS: Sequence[Part] = (
    ("the votes", Measured.counts),
    ("MV, DS, PEC, PEC-MV, answers", Measured.scores),
    ("rank: standard deviation, range", Measured.stability),
    ("accuracy, leniency, strictness", Measured.annotators),
    ("ambiguity, confidence, class", Measured.ambiguous),
    ("findings", Measured.findings),
)
"""What the tables of each set tell, in the order in which the paper has them."""


def main() -> None:
    for line in printed():
        print(line)


def printed() -> Iterator[str]:
    """Every table of every set, row by row."""
    for name in PUBLISHED:
        for title, lines in tables(name).items():
            yield f"{title:<64}printed"
            for row, ours, theirs in lines:
                yield f"  {row:<32}{ours:<30}{theirs}{'' if ours == theirs else '   differs'}"
            yield ""


def tables(name: str) -> dict[str, list[Line]]:
    """The tables of a set by title, their rows as the paper has them."""
    measured, found = Measured(ratings(name)), {}
    for (number, rows), (what, part) in zip(PUBLISHED[name].items(), PARTS, strict=True):
        ours = part(measured)
        found[f"{name}, Table {number}: {what}"] = [
            Line(row, ours[row], theirs) for row, theirs in rows.items()
        ]
    return found


def _ranks(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average ranks, 1 for the greatest."""
    above = (scores[:, None] < scores).sum(axis=1)
    level = (scores[:, None] == scores).sum(axis=1)
    return np.asarray(above + (level + 1) / 2)


if __name__ == "__main__":
    main()
