"""Similarity of texts: of items, for the neighbours of one, and of reasons, against the agreement of reviewers."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jurygraph.arrays import Floats, Ints
from jurygraph.errors import InputError
from jurygraph.models.embedding import BATCH_SIZE, Embedder
from jurygraph.models.request import Fault
from jurygraph.safety.gates import fold_text
from jurygraph.studies.agreement import LEAST_SHARED

Vectorizer = Callable[[Sequence[str]], Any]
"""Returns unit rows [texts, D], dense or sparse; of a blank text zeros."""
_WORD = re.compile(r"\w+")
PERMUTATIONS = 1999
_LEAST_PAIRS = 3
_MOST_UNKNOWN = 0.05


def tf_idf(texts: Sequence[str]) -> Any:
    """Return a sparse matrix [texts, words] of unit rows: counts times 1 + ln((1 + N) / (1 + texts with the word))."""
    from scipy import sparse

    column_of: dict[str, int] = {}
    cells: list[tuple[int, int, int]] = []
    for row, text in enumerate(texts):
        for word, count in Counter(_WORD.findall(fold_text(text))).items():
            cells.append((row, column_of.setdefault(word, len(column_of)), count))
    rows, columns, counts = np.array(cells, dtype=np.intp).reshape(-1, 3).T
    idf = 1.0 + np.log((1.0 + len(texts)) / (1.0 + np.bincount(columns, minlength=len(column_of))))
    weights = counts * idf[columns]
    lengths = np.sqrt(np.bincount(rows, weights**2, minlength=len(texts)))
    return sparse.csr_array((weights / lengths[rows], (rows, columns)), shape=(len(texts), max(1, len(column_of))))


class EmbeddedTexts:
    """Vectors of an embedder; each text is embedded once. Raises `InputError` where the embedder fails."""

    def __init__(self, embedder: Embedder, advance: Callable[[int], None] = lambda texts: None) -> None:
        self._embedder = embedder
        self._advance = advance
        self._known: dict[str, Floats] = {}

    def __call__(self, texts: Sequence[str]) -> Floats:
        missing = [text for text in dict.fromkeys(texts) if text.strip() and text not in self._known]
        try:
            asyncio.run(self._embed(missing))
        except Fault as fault:
            raise InputError(f"--embedder: {fault}") from None
        size = max((len(vector) for vector in self._known.values()), default=1)
        return np.stack([self._known.get(text, np.zeros(size)) for text in texts])

    async def _embed(self, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), BATCH_SIZE):
            batch = texts[start : start + BATCH_SIZE]
            self._known |= zip(batch, await self._embedder.embed(batch), strict=True)
            self._advance(len(batch))


def cosines(vectors: Any, rows: Ints, columns: Ints) -> Floats:
    """Return the cosines of rows of unit vectors, [rows, columns]."""
    product = vectors[rows] @ vectors[columns].T
    return product.toarray() if hasattr(product, "toarray") else np.asarray(product)


class MantelTest(NamedTuple):
    """The correlation over the `pairs` that both matrices have, and its two-sided p-value; None where undefined."""

    pairs: int
    correlation: float | None
    p: float | None


def relate_reasons(
    reviewer: Ints, item: Ints, score: Floats, reasons: Sequence[str], vectorize: Vectorizer, seed: int = 0
) -> MantelTest:
    """Return whether reviewers who agree more give more similar reasons, over pairs with ten common items.

    Similarity is the mean cosine of the reasons for common items, agreement less the mean distance of the scores.
    Arguments are of ratings [n]; those with a blank reason do not count.
    """
    given = np.flatnonzero([bool(reason.strip()) for reason in reasons])
    size = int(reviewer.max()) + 1
    sums = np.zeros((3, size, size))
    vectors = vectorize([reasons[row] for row in given.tolist()])
    order = np.argsort(item[given], kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(item[given[order]])) + 1):
        rows = given[places]
        own = score[rows]
        pairs = np.ix_(reviewer[rows], reviewer[rows])
        sums[0][pairs] += 1.0
        sums[1][pairs] += cosines(vectors, places, places)
        sums[2][pairs] -= np.abs(own[:, None] - own)
    number = np.where(sums[0] >= LEAST_SHARED, sums[0], np.nan)
    return mantel(sums[1] / number, sums[2] / number, seed)


def mantel(first: Floats, second: Floats, seed: int = 0) -> MantelTest:
    """Return the correlation of two symmetric matrices [G, G], NaN where a pair is unknown, with its p-value.

    Pairs of members are not independent, so the members of one matrix are exchanged at random, all their pairs with
    them (Mantel 1967): p is (1 + hits) / (1 + 1999) of random permutations, drawn by `seed`. With few members few
    permutations differ, and with three it cannot be less than about 1/6. None if too many pairs are unknown.
    """
    upper = np.triu_indices(len(first), 1)
    values = first[upper]
    pairs = int((~np.isnan(values) & ~np.isnan(second[upper])).sum())
    observed = _correlation(values, second[upper])
    if np.isnan(observed):
        return MantelTest(pairs, None, None)
    rng = np.random.default_rng(seed)
    hits = 0
    unknown = 0
    for _ in range(PERMUTATIONS):
        order = rng.permutation(len(second))
        drawn = _correlation(values, second[np.ix_(order, order)][upper])
        unknown += np.isnan(drawn)
        # What cannot be computed counts against the relation.
        hits += not abs(drawn) < abs(observed) - 1e-12
    if unknown > _MOST_UNKNOWN * PERMUTATIONS:
        return MantelTest(pairs, observed, None)
    return MantelTest(pairs, observed, (1 + hits) / (1 + PERMUTATIONS))


def _correlation(first: Floats, second: Floats) -> float:
    known = ~np.isnan(first) & ~np.isnan(second)
    a = first[known]
    b = second[known]
    if len(a) < _LEAST_PAIRS or np.ptp(a) == 0.0 or np.ptp(b) == 0.0:
        return np.nan
    return float(np.corrcoef(a, b)[0, 1])
