"""What evaluators need of a model that embeds texts or ranks documents, and what is taken of what it gives."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jurygraph.models.faults import Fault

Floats = NDArray[np.float64]

TIMEOUT = 60.0
"""Seconds for one request to a server."""

AT_ONCE = 32
"""Texts or documents in one request, at most: many servers take no more."""


class _Model(ABC):
    """`name` is the model's, and `version` tells the model and the library or server that runs it."""

    name: str
    version: str

    def close(self) -> None:
        """Let go of the model; may be called more than once, and used again afterwards."""


class Embedder(_Model):
    """Gives every text a vector. What a text gets does not hang on the others beside it."""

    @abstractmethod
    async def embed(self, texts: Sequence[str]) -> Floats:
        """The vectors [N, D] of up to `AT_ONCE` texts, in their order, each of length 1, or 0 where it is of nothing.

        Raises `Fault`, and then gives no vector at all.
        """


class Reranker(_Model):
    """Scores documents by how well they answer a query. `logits` says that a score is any number, not one in [0, 1]."""

    logits: bool

    @abstractmethod
    async def score(self, query: str, documents: Sequence[str]) -> Floats:
        """The raw scores [N] of up to `AT_ONCE` documents, in their order.

        Raises `Fault`, and then gives no score at all.
        """


def unit_rows(given: Any, count: int, name: str) -> Floats:
    """Vectors [count, D] as float64, each divided by its length, or 0.

    Raises `Fault` where these are not so many vectors of one length of finite numbers: none of them is taken then.
    Booleans and text are no numbers.
    """
    rows = _numbers(given)
    if rows is None:
        raise Fault("unreadable", f"{name}: its embeddings are no vectors of numbers of one length")
    if rows.ndim != 2 or rows.shape[0] != count or rows.shape[1] == 0:
        raise Fault("unreadable", f"{name}: {count} vectors were asked for, and what came has the shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise Fault("unreadable", f"{name}: an embedding holds a number that is not finite")
    largest = np.abs(rows).max(axis=1, keepdims=True)  # by which first, so that no square is too large or too small
    rows = rows / np.where(largest > 0.0, largest, 1.0)
    length = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    return np.asarray(rows / np.where(length > 0.0, length, 1.0))


def all_scores(given: Any, count: int, name: str) -> Floats:
    """Scores [count] as float64. Raises `Fault` where these are not so many finite numbers: none is taken then."""
    scores = _numbers(given)
    if scores is None:
        raise Fault("unreadable", f"{name}: its scores are no numbers")
    if scores.shape != (count,):
        raise Fault("unreadable", f"{name}: one score for each of {count} documents was asked for, not {scores.shape}")
    if not np.isfinite(scores).all():
        raise Fault("unreadable", f"{name}: a score is not finite")
    return scores


def _numbers(given: Any) -> Floats | None:
    """An array of numbers as float64, and None for anything else: NumPy would take a boolean and "0.9" for numbers."""
    if isinstance(given, np.ndarray):
        return given.astype(np.float64) if given.dtype.kind in "iuf" else None
    try:
        return np.asarray(given, dtype=np.float64) if _of_numbers(given) else None
    except (OverflowError, TypeError, ValueError):  # lists of different lengths; or an integer that is too large
        return None


def _of_numbers(given: Any) -> bool:
    if isinstance(given, list | tuple):
        return all(map(_of_numbers, given))
    if isinstance(given, np.ndarray | np.generic):
        return given.dtype.kind in "iuf"
    return isinstance(given, int | float) and not isinstance(given, bool)


def by_index(given: Sequence[tuple[Any, Any]], count: int, name: str) -> list[Any]:
    """What came for the places 0 to count - 1, in their order; they may come in any.

    Raises `Fault` where a place is no integer, is missing, is there twice or was not asked for: nothing is taken then.
    """
    places = [place for place, _ in given]
    if not all(type(place) is int for place in places) or sorted(places) != list(range(count)):
        raise Fault("unreadable", f"{name}: it answered for {places}, not once for each of {count}")
    found = dict(given)
    return [found[place] for place in range(count)]
