"""Judges of one reviewer, such as `aggregate` and `personalized`, next to each other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, groupby
from statistics import fmean

import numpy as np

from jurygraph.arrays import Floats, Ints
from jurygraph.runs.reports.comparison.figures import ConstructorPair
from jurygraph.runs.reports.comparison.pairing import Verdicts
from jurygraph.runs.reports.comparison.responses import Judge, Slot

_Scores = Mapping[str, tuple[Ints, Floats]]
"""Keys and scores of a run by question; the keys of one response and its opponents are the same for all questions."""


def pair_constructors(
    a: Verdicts, b: Verdicts, slots: Sequence[Slot], judges: Iterable[Judge]
) -> Iterator[ConstructorPair]:
    """Yield every two judges of a reviewer and dimension: within each run that has both, else across the runs."""
    is_same = np.array_equal(a.keys, b.keys) and np.array_equal(a.scores, b.scores)
    ordered = sorted(judges)
    scores = {run: _scores_by_question(verdicts, slots) for run, verdicts in zip("AB", (a, b), strict=True) if ordered}
    for _, group in groupby(ordered, key=lambda judge: judge[:2]):
        for pair in combinations(group, 2):
            within = [row for run in ("A" if is_same else "AB") for row in _compare_judges(pair, scores, run, run)]
            across = (row for order in (pair, pair[::-1]) for row in _compare_judges(order, scores, "A", "B"))
            yield from within or across


def _scores_by_question(verdicts: Verdicts, slots: Sequence[Slot]) -> _Scores:
    names = {name: place for place, name in enumerate(sorted({question for question, _ in slots}))}
    first = {shown: place for place, (_, shown) in reversed([*enumerate(slots)])}
    question, shown = np.array([(names[name], first[responses]) for name, responses in slots]).T
    own = verdicts.keys % len(slots)
    order = np.argsort(question[own], kind="stable")
    ends = np.searchsorted(question[own][order], np.arange(1, len(names)))
    columns = (np.split(column[order], ends) for column in (verdicts.keys - own + shown[own], verdicts.scores))
    return dict(zip(names, zip(*columns, strict=True), strict=True))


def _compare_judges(judges: Sequence[Judge], scores: Mapping[str, _Scores], *runs: str) -> Iterator[ConstructorPair]:
    """Yield the pair of two judges, each in its run, if they judged one response or more in common."""
    (keys, a), (other_keys, b) = (scores[run][question] for (*_, question), run in zip(judges, runs, strict=True))
    _, rows, other_rows = np.intersect1d(keys, other_keys, assume_unique=True, return_indices=True)
    a = a[rows]
    b = b[other_rows]
    if len(rows):
        names = (*judges[0][:3], judges[1][2])
        means = (fmean(a), fmean(b), fmean(np.abs(b - a)))
        yield ConstructorPair(*names, (runs[0], runs[1]), len(rows), *means)
