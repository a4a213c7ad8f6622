"""Differences of the verdicts by question, and the decisions that flipped."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from jurygraph.arrays import Ints
from jurygraph.runs.reports.comparison.differences import adjusted_fields, paired_difference
from jurygraph.runs.reports.comparison.figures import Flip, QuestionDelta
from jurygraph.runs.reports.comparison.pairing import Verdicts
from jurygraph.runs.reports.comparison.responses import Slot

_DECIMALS = 12  # means over other numbers of samples can differ in their last bits


class _Question(NamedTuple):
    """The rows of a question's paired verdicts, and the numbers of its verdicts in A only and in B only."""

    name: str
    rows: Ints
    only: tuple[int, int]


class PairedVerdicts:
    """The verdicts on the responses in both runs; `tasks` has the number of the task of each of the responses."""

    def __init__(self, a: Verdicts, b: Verdicts, slots: Sequence[Slot], ids: Sequence[str], tasks: Ints) -> None:
        self._slots = slots
        self._ids = ids
        self._tasks = tasks
        self.keys, in_a, in_b = np.intersect1d(a.keys, b.keys, assume_unique=True, return_indices=True)
        self._before = a.scores[in_a]
        self._after = b.scores[in_b]
        self.to_met = (b.votes[in_b] > 0) & (a.votes[in_a] < 0)
        self.to_unmet = (b.votes[in_b] < 0) & (a.votes[in_a] > 0)
        self.flipped = self.to_met | self.to_unmet
        self.unequal_samples = int((a.samples[in_a] != b.samples[in_b]).sum())
        self._only_a, self._only_b = np.setdiff1d(a.keys, self.keys, True), np.setdiff1d(b.keys, self.keys, True)

    def by_question(self) -> list[QuestionDelta]:
        """Return a row for each question that has a verdict in either run, ordered by name."""
        found = [question for question in self._split_by_question() if len(question.rows) + sum(question.only)]
        tasks = self._tasks[self.keys // max(1, len(self._slots))]
        differences = [paired_difference(self._before[q.rows], self._after[q.rows], tasks[q.rows]) for q in found]
        return [
            QuestionDelta(
                question=question.name,
                **fields,
                to_met=int(self.to_met[question.rows].sum()),
                to_unmet=int(self.to_unmet[question.rows].sum()),
                largest_delta=self._largest_delta(question.rows),
                only_a=question.only[0],
                only_b=question.only[1],
            )
            for question, fields in zip(found, adjusted_fields(differences), strict=True)
        ]

    def _split_by_question(self) -> Iterator[_Question]:
        names = sorted({question for question, _ in self._slots})
        places = {name: place for place, name in enumerate(names)}
        of_slot = np.array([places[question] for question, _ in self._slots], dtype=np.intp)
        judged, *only = (of_slot[keys % len(of_slot)] for keys in (self.keys, self._only_a, self._only_b))
        order = np.argsort(judged, kind="stable")
        ends = np.searchsorted(judged[order], np.arange(len(names) + 1))
        counts = zip(*(np.bincount(column, minlength=len(names)).tolist() for column in only), strict=True)
        for name, (first, last), one_sided in zip(names, pairwise(ends.tolist()), counts, strict=True):
            yield _Question(name, order[first:last], one_sided)

    def _largest_delta(self, rows: Ints) -> float | None:
        return float(np.abs(self._after[rows] - self._before[rows]).max().round(_DECIMALS)) if len(rows) else None

    def flips(self) -> Iterator[Flip]:
        """Yield every verdict whose decision flipped."""
        columns = (column[self.flipped].tolist() for column in (self.keys, self._before, self._after, self.to_met))
        for key, before, after, met in zip(*columns, strict=True):
            place, slot = divmod(key, len(self._slots))
            question, shown = self._slots[slot]
            response = self._ids[place]
            yield Flip(question, response, (response,) if shown is None else shown, before, after, met)
