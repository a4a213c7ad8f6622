"""Ratings that are noise: how often does `study agreement` find the paper's pattern in them?"""

import numpy as np

from jurygraph.schema.rating import Rating
from jurygraph.sources.file_rows import FileRows
from jurygraph.studies.agreement import report


def find_pattern(reviewers: int, items: int, levels: int, seed: int, size: int = 1) -> bool:
    """Return whether the pattern is said to be there in scores that are drawn at random, 1 to `levels`.

    Items of a group, `size` of them, get the same scores, but from each reviewer others.
    """
    rng = np.random.default_rng((seed, reviewers, items, levels, size))
    scores = np.repeat(rng.integers(1, levels + 1, (reviewers, items // size)), size, axis=1)
    rows: list[tuple[str, Rating]] = []
    for (reviewer, item), score in np.ndenumerate(scores):
        group = None if size == 1 else f"g{item // size}"
        rating = Rating(item=f"i{item}", reviewer=f"r{reviewer}", score=float(score), group=group)
        rows.append((f"row {len(rows)}", rating))
    lines = report([FileRows("noise", tuple(rows), {})]).sections
    return any(
        isinstance(line, str) and "pattern" in line and " is there" in line for line in lines
    )
