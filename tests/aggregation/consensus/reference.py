"""STABLEVAL's Algorithm 1 in plain Python, item by item and label by label, and random votes."""

from math import exp, log
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

Row = tuple[int, int, int]
FLOOR = 1e-10


class Estimate(NamedTuple):
    posterior: list[list[float]]
    prior: list[float]
    confusion: list[list[list[float]]]
    log_likelihood: float


def estimate(
    rows: list[Row], k: int, steps: int, gold: dict[int, int], alpha: float = 1.01
) -> Estimate:
    """Run `steps` steps of the paper's preset. The labels of gold items count at the start."""
    items = list(dict.fromkeys(item for item, _, _ in rows))
    annotators = list(dict.fromkeys(annotator for _, annotator, _ in rows))
    prior = [0.0] * k
    for one in items:
        votes = [sum(label == c for item, _, label in rows if item == one) for c in range(k)]
        prior[gold.get(one, votes.index(max(votes)))] += 1 / len(items)
    off = 0.2 / (k - 1)
    confusion = [[[0.8 if c == o else off for o in range(k)] for c in range(k)] for _ in annotators]
    for item, annotator, label in rows:
        if item in gold:
            confusion[annotators.index(annotator)][gold[item]][label] += 1.0
    confusion = [[[cell / sum(row) for cell in row] for row in matrix] for matrix in confusion]
    posterior: list[list[float]] = []
    likelihood = 0.0
    for _ in range(steps):
        joints = [_joint(one, rows, annotators, prior, confusion) for one in items]
        posterior = [
            _shares(joint, gold.get(one)) for one, joint in zip(items, joints, strict=True)
        ]
        evidence = (
            _evidence(joint, gold.get(one)) for one, joint in zip(items, joints, strict=True)
        )
        likelihood = sum(evidence)
        prior = [sum(row[c] for row in posterior) / len(items) for c in range(k)]
        confusion = [_maximise(one, rows, items, posterior, k, alpha) for one in annotators]
    return Estimate(posterior, prior, confusion, likelihood)


def _joint(
    item: int,
    rows: list[Row],
    annotators: list[int],
    prior: list[float],
    confusion: list[list[list[float]]],
) -> list[float]:
    joint = [log(share + FLOOR) for share in prior]
    for one, annotator, label in rows:
        if one == item:
            of = confusion[annotators.index(annotator)]
            joint = [value + log(of[c][label] + FLOOR) for c, value in enumerate(joint)]
    return joint


def _shares(joint: list[float], known: int | None) -> list[float]:
    if known is not None:
        return [float(c == known) for c in range(len(joint))]
    sizes = [exp(value - max(joint)) for value in joint]
    return [size / sum(sizes) for size in sizes]


def _evidence(joint: list[float], known: int | None) -> float:
    return log(sum(map(exp, joint))) if known is None else joint[known]


def _maximise(
    annotator: int,
    rows: list[Row],
    items: list[int],
    posterior: list[list[float]],
    k: int,
    alpha: float,
) -> list[list[float]]:
    matrix = []
    for c in range(k):
        counts = [alpha - 1.0] * k
        for item, by, label in rows:
            if by == annotator:
                counts[label] += posterior[items.index(item)][c]
        matrix.append([count / sum(counts) for count in counts])
    return matrix


def votes(k: int = 3, most: int = 40) -> st.SearchStrategy[list[Row]]:
    """Rows of (item, annotator, label), in any order, with repeats."""
    row = st.tuples(st.integers(0, 9), st.integers(0, 4), st.integers(0, k - 1))
    return st.lists(row, min_size=1, max_size=most)


def drawn(
    items: int, annotators: int, k: int, seed: int, right: float = 0.7
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Item, annotator and label columns of a full panel whose labels are right so often, and the true classes."""
    draw = np.random.default_rng(seed)
    truth = draw.integers(k, size=items)
    item, annotator = (
        one.ravel() for one in np.meshgrid(np.arange(items), np.arange(annotators), indexing="ij")
    )
    wrong = (truth[item] + draw.integers(1, k, size=len(item))) % k
    label = np.where(draw.random(len(item)) < right, truth[item], wrong)
    return item, annotator, label, truth
