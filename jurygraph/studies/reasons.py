"""Reasons of reviewers and of their judges: how similar they are, and to whose.

Texts are vectors of unit length: by words (TF-IDF), or by an embedder.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from jurygraph.arrays import Floats, Ints
from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.errors import InputError
from jurygraph.inference.clusters import Estimate, mean_with_cluster_interval, members_by_cluster
from jurygraph.models.embedding import MAX_TEXTS_PER_REQUEST, Embedder
from jurygraph.models.request import Fault
from jurygraph.safety.gates import fold_text
from jurygraph.studies.agreement import MIN_SHARED_ITEMS

TextVectorizer = Callable[[Sequence[str]], Any]
"""Returns unit rows [texts, D], dense or sparse; of a blank text zeros."""
_WORD_PATTERN = re.compile(r"\w+")
PERMUTATION_COUNT = 1999
_MIN_PAIRS_FOR_CORRELATION = 3
_MAX_UNKNOWN_SHARE = 0.05


def tf_idf(texts: Sequence[str]) -> Any:
    """Return a sparse matrix [texts, words] of unit rows: counts times 1 + ln((1 + N) / (1 + texts with the word))."""
    from scipy import sparse

    words_by_text = [_WORD_PATTERN.findall(fold_text(text)) for text in texts]
    rows = np.repeat(np.arange(len(texts)), [len(words) for words in words_by_text])
    column_by_word: dict[str, int] = {}
    columns = [
        column_by_word.setdefault(word, len(column_by_word))
        for word in chain.from_iterable(words_by_text)
    ]
    shape = (len(texts), max(1, len(column_by_word)))
    counts = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)  # summed by cell
    text_count_by_word = (counts > 0).sum(axis=0)
    weights = counts * (1.0 + np.log((1.0 + len(texts)) / (1.0 + text_count_by_word)))
    lengths = np.sqrt(weights.power(2).sum(axis=1))
    return sparse.diags_array(1.0 / np.where(lengths > 0.0, lengths, 1.0)) @ weights.tocsr()


class EmbeddedTexts:
    """Vectors of an embedder; each text is embedded once. Raises `InputError` where the embedder fails."""

    def __init__(self, embedder: Embedder, advance: ProgressCallback = ignore_progress) -> None:
        self._embedder = embedder
        self._advance = advance
        self._vectors: dict[str, Floats] = {}

    def __call__(self, texts: Sequence[str]) -> Floats:
        missing = [
            text for text in dict.fromkeys(texts) if text.strip() and text not in self._vectors
        ]
        try:
            asyncio.run(self._embed(missing))
        except Fault as fault:
            raise InputError(f"--embedder: {fault}") from None
        size = max(map(len, self._vectors.values()), default=1)
        zero_vector = np.zeros(size)
        return np.stack([self._vectors.get(text, zero_vector) for text in texts])

    async def _embed(self, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), MAX_TEXTS_PER_REQUEST):
            batch = texts[start : start + MAX_TEXTS_PER_REQUEST]
            vectors = await self._embedder.embed(batch)
            self._vectors |= zip(batch, vectors, strict=True)
            self._advance(len(batch))


def cosine_similarities(vectors: Any, rows: Ints, columns: Ints) -> Floats:
    """Return the cosines of rows of unit vectors, [rows, columns]."""
    matrix = vectors[rows] @ vectors[columns].T
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)


class MantelTest(NamedTuple):
    """The correlation over the `pairs` that both matrices have, and its two-sided p-value; None where undefined."""

    pairs: int
    correlation: float | None
    p: float | None


def relate_reasons(
    reviewer: Ints,
    item: Ints,
    score: Floats,
    reasons: Sequence[str],
    vectorize: TextVectorizer,
) -> MantelTest:
    """Return whether reviewers who agree more give more similar reasons, over pairs with ten common items.

    Similarity is the mean cosine of the reasons for common items, agreement less the mean distance of the scores.
    Arguments are of ratings [n]; those with a blank reason do not count.
    """
    row_indices_with_reason = np.flatnonzero([bool(reason.strip()) for reason in reasons])
    size = int(reviewer.max()) + 1
    common, similarity, agreement = np.zeros((3, size, size))
    vectors = vectorize([reasons[row] for row in row_indices_with_reason.tolist()])
    for positions in members_by_cluster(item[row_indices_with_reason]):
        rows = row_indices_with_reason[positions]
        scores = score[rows]
        pairs = np.ix_(reviewer[rows], reviewer[rows])
        common[pairs] += 1.0
        similarity[pairs] += cosine_similarities(vectors, positions, positions)
        agreement[pairs] -= np.abs(scores[:, None] - scores)
    number = np.where(common >= MIN_SHARED_ITEMS, common, np.nan)
    return mantel(similarity / number, agreement / number)


def mantel(first: Floats, second: Floats, seed: int = 0) -> MantelTest:
    """Return the correlation of two symmetric matrices [G, G], NaN where a pair is unknown, with its p-value.

    Pairs of members are not independent, so the members of one matrix are exchanged at random, all their pairs with
    them (Mantel 1967): p is (1 + hits) / (1 + 1999) of random permutations, drawn by `seed`. With few members few
    permutations differ, and with three it cannot be less than about 1/6. None if too many pairs are unknown.
    """
    upper = np.triu_indices(len(first), 1)
    values = first[upper]
    others = second[upper]
    pairs = int((~np.isnan(values + others)).sum())
    observed_correlation = _pearson_correlation(values, others)
    if np.isnan(observed_correlation):
        return MantelTest(pairs, None, None)
    rng = np.random.default_rng(seed)
    hits = 0
    undefined_count = 0
    for _ in range(PERMUTATION_COUNT):
        order = rng.permutation(len(second))
        permuted_matrix = second[np.ix_(order, order)]
        drawn_correlation = _pearson_correlation(values, permuted_matrix[upper])
        undefined_count += np.isnan(drawn_correlation)
        # What cannot be computed counts against the relation.
        hits += not abs(drawn_correlation) < abs(observed_correlation) - 1e-12
    if undefined_count > _MAX_UNKNOWN_SHARE * PERMUTATION_COUNT:
        return MantelTest(pairs, observed_correlation, None)
    return MantelTest(pairs, observed_correlation, (1 + hits) / (1 + PERMUTATION_COUNT))


def _pearson_correlation(first: Floats, second: Floats) -> float:
    has_both_values = ~np.isnan(first + second)
    a = first[has_both_values]
    b = second[has_both_values]
    if len(a) < _MIN_PAIRS_FOR_CORRELATION or np.ptp(a) == 0.0 or np.ptp(b) == 0.0:
        return np.nan
    return float(np.corrcoef(a, b)[0, 1])


class ReasonMatch(NamedTuple):
    """How near a judge's reasons are, as mean cosines over `cells`: to the person's `own`, and to `others`' of it.

    `difference` is the first less the second, with its interval over reviewers; above 0, the judge argues as the person
    does whom it predicts.
    """

    cells: int
    own: float | None
    others: float | None
    difference: Estimate | None


def match_reasons(
    reviewer: Ints,
    item: Ints,
    reasons: Sequence[str],
    judge_reasons: Sequence[str],
    vectorize: TextVectorizer,
) -> ReasonMatch:
    """Return whether a judge's reason for a rating is nearer to the person's own reason than to others' of the item.

    Arguments are of ratings [n]. A cell is a rating with both reasons, of an item for which another person gave one.
    """
    vectors = vectorize([*reasons, *judge_reasons])
    has_own_reason = np.array([bool(reason.strip()) for reason in reasons])
    has_both_values = has_own_reason & [bool(reason.strip()) for reason in judge_reasons]
    means = []
    units = []
    for row in np.flatnonzero(has_both_values):
        is_by_other = has_own_reason & (item == item[row]) & (reviewer != reviewer[row])
        if is_by_other.any():
            judge_row = np.array([len(reasons) + row])
            compared_rows = (np.array([row]), np.flatnonzero(is_by_other))
            means.append(
                [cosine_similarities(vectors, judge_row, rows).mean() for rows in compared_rows]
            )
            units.append(reviewer[row])
    if not means:
        return ReasonMatch(0, None, None, None)
    own, others = np.array(means).T.copy()
    difference = mean_with_cluster_interval(own - others, units)
    return ReasonMatch(len(own), float(own.mean()), float(others.mean()), difference)
