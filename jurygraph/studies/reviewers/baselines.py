"""Judges that predict the ratings of reviewers without a model.

Each rating is predicted from others (leave-one-out): never from a rating of the same item or of its group, except that
`item-mean` and `rater-offset` use what others gave the very item. Own ratings are those of the same dimension and
domain, as for the judges with a model.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from jurygraph.arrays import Bools, Floats, Ints
from jurygraph.errors import InputError
from jurygraph.judges.examples import rated_text
from jurygraph.models.embedding import BATCH_SIZE, Embedder
from jurygraph.models.request import Fault
from jurygraph.safety.text_folding import fold_text
from jurygraph.sources.ratings import Ratings
from jurygraph.studies.agreement import LEAST_SHARED, ScoredPart

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


OWN = ("own-history", "neighbours")
PEERS = ("item-mean", "rater-offset")
"""Judges that use what other reviewers gave the judged item."""
NO_MODEL = (*OWN, *PEERS)
_NEAR = 0.9
"""Cosine from which two texts are nearly the same, so that the one's score would give away the other's."""
_ROWS = 256  # limits memory


@dataclass(frozen=True)
class Predictions:
    """Predictions of a judge with a number of examples: `values` [S, n] for S seeds, NaN without a prediction.

    Attributes:
        judge: its name.
        shots: examples that it was shown; None for all that there are, or where it has none.
        left_out: number of ratings without a prediction, by reason.
        calls, cost: of the model, US dollars; None for the cost if a price is unknown.
        reasons: a text for each rating, [n], empty without one; or none at all.
    """

    judge: str
    shots: int | None
    values: Floats
    left_out: Mapping[str, int] = field(default_factory=dict)
    calls: int = 0
    cost: float | None = 0.0
    reasons: Sequence[str] = ()

    @property
    def answered(self) -> Bools:
        """The ratings that have a prediction, [n]."""
        return np.asarray(~np.isnan(self.values).any(axis=0))


def texts_of(ratings: Ratings, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of rated items by key: those in the ratings, or else in `texts`; blank ones are left out."""
    found = {rating.key: rated_text(rating, texts) or "" for _, rating in ratings.rows}
    return {key: text for key, text in found.items() if text.strip()}


def predict(
    part: ScoredPart,
    judges: Sequence[str],
    shots: Sequence[int],
    seeds: int,
    texts: Mapping[str, str],
    vectorize: Vectorizer = tf_idf,
) -> Iterator[Predictions]:
    """Yield the predictions of judges without a model, for each number of examples that changes them.

    `own-history` is the mean of own scores: of so many, drawn for each rating and seed, and of all. `neighbours` is the
    mean of the own scores of the items whose `texts` (by key) are the most similar. `item-mean` is the mean of what the
    others gave the item, and `rater-offset` adds how far the reviewer's other scores are above those means.
    """
    counts = sorted({shot for shot in shots if shot > 0})
    if "own-history" in judges:
        drawn = [_from_own(part, counts, _draws(seed)) for seed in range(seeds)] if counts else []
        for place, count in enumerate(counts):
            yield Predictions("own-history", count, np.stack([one[place] for one in drawn]))
        yield Predictions("own-history", None, _mean_of_others(part.score, _pool(part), _keyed(part, part.group))[None])
    if "neighbours" in judges and counts:
        similar = _from_own(part, counts, _Similarity(part, texts, vectorize))
        for place, count in enumerate(counts):
            yield Predictions("neighbours", count, similar[place][None])
    by_peers = _mean_of_others(part.score, part.item, np.arange(len(part.score)))
    if "item-mean" in judges:
        yield Predictions("item-mean", None, by_peers[None])
    if "rater-offset" in judges:
        offset = _mean_of_others(part.score - by_peers, _pool(part), _keyed(part, part.group))
        yield Predictions("rater-offset", None, (by_peers + offset)[None])


def _pool(part: ScoredPart) -> Ints:
    """Return a number for each reviewer and domain, [n]."""
    return part.reviewer * len(part.domains) + part.domain


def _keyed(part: ScoredPart, group: Ints) -> Ints:
    """Return a number for each pool and group, [n]."""
    return np.asarray(np.unique(np.stack([_pool(part), group]), axis=1, return_inverse=True)[1]).ravel()


def _mean_of_others(values: Floats, pool: Ints, part: Ints) -> Floats:
    """Return the mean of a pool's values without those of one part of it, [n]; NaN where none are left.

    `part` numbers the parts of pools, none in two of them. Values that are NaN do not count.
    """
    known = ~np.isnan(values)
    given = np.where(known, values, 0.0)
    number = np.bincount(pool, known)[pool] - np.bincount(part, known)[part]
    sums = np.bincount(pool, given)[pool] - np.bincount(part, given)[part]
    return np.asarray(np.divide(sums, number, out=np.full(len(values), np.nan), where=number > 0.0))


def _from_own(part: ScoredPart, counts: Sequence[int], order: Any) -> list[Floats]:
    """Return, for each count, the mean of so many own scores, those of the least `order`; of fewer where there are."""
    found = [np.full(len(part.score), np.nan) for _ in counts]
    pools = _pool(part)
    by_pool = np.argsort(pools, kind="stable")
    for own in np.split(by_pool, np.flatnonzero(np.diff(pools[by_pool])) + 1):
        for start in range(0, len(own), _ROWS):
            rows = own[start : start + _ROWS]
            keys = np.where(part.group[rows, None] == part.group[own], np.inf, order(rows, own))
            first = np.argsort(keys, axis=1, kind="stable")[:, : counts[-1]]
            sums = np.cumsum(part.score[own][first], axis=1)
            usable = np.isfinite(keys).sum(axis=1)
            for values, count in zip(found, counts, strict=True):
                used = np.minimum(count, usable)
                last = np.take_along_axis(sums, np.maximum(used - 1, 0)[:, None], axis=1)[:, 0]
                values[rows] = np.where(used > 0, last / np.maximum(used, 1), np.nan)
    return found


def _draws(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return lambda rows, own: rng.random((len(rows), len(own)))


class _Similarity:
    """Order own items by the cosine of their texts: inf for the judged text nearly repeated, and without a text."""

    def __init__(self, part: ScoredPart, texts: Mapping[str, str], vectorize: Vectorizer) -> None:
        self._vectors = vectorize([texts.get(key, "") for key in part.items])
        self._item = part.item
        self._has_text = np.array([key in texts for key in part.items])

    def __call__(self, rows: Ints, own: Ints) -> Floats:
        judged = self._item[rows]
        others = self._item[own]
        similar = cosines(self._vectors, judged, others)
        usable = (similar < _NEAR) & self._has_text[judged][:, None] & self._has_text[others]
        return np.where(usable, -similar, np.inf)
