"""Runs and ratings without a true difference, whose members resemble each other: how often does a study find one?

Each function simulates one data set, gives it to the study itself, and returns whether a true null was rejected, or
whether an interval contained the true value.
"""

import numpy as np

from jurygraph.studies.agreement import ScoredPart
from jurygraph.studies.reviewers import Predictions, report


def compare_judges(reviewers: int, items: int, shared: float, seed: int) -> bool:
    """Return whether `study reviewers` tells two judges apart that are equally good.

    The errors of each judge are normal, and `shared` is the part of their variance that an item has for all reviewers.
    """
    rng = np.random.default_rng((seed, reviewers, items, round(100 * shared)))
    reviewer, item = np.indices((reviewers, items)).reshape(2, -1)
    scores = rng.integers(1, 6, len(item)).astype(float)
    names = tuple(map(str, range(reviewers)))
    keys = tuple(map(str, range(items)))
    part = ScoredPart(None, names, keys, ("",), reviewer, item, item, np.zeros_like(item), scores)
    judges = []
    for name in ("first", "second"):
        of_items = rng.normal(size=items)
        errors = np.sqrt(shared) * of_items[item] + np.sqrt(1.0 - shared) * rng.normal(size=len(item))
        judges.append(Predictions(name, None, (scores + errors)[None]))
    (difference,) = report([(part, judges)], "interval").figures["differences"]
    p = difference["absolute_p"]
    return p is not None and p <= 0.05
