"""Interfaces of embedders and rerankers, a cache of vectors, the base of local models, and checks of results."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.errors import ConfigError
from jurygraph.models.faults import Fault

T = TypeVar("T")

BATCH_SIZE = 32  # most texts or documents in one request: many servers accept no more
MAX_CACHED = 512  # most vectors in the cache; the least recently used are dropped first


class _Model(ABC):
    """`name` is the model's name, and `version` identifies the model and the library or server that runs it."""

    name: str
    version: str

    def close(self) -> None:
        """Unload the model; may be called more than once, and the model may be used again afterwards."""


class Embedder(_Model):
    """Compute a vector for every text. The vector of a text does not depend on the other texts."""

    @abstractmethod
    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return the unit vectors [N, D] of up to `BATCH_SIZE` texts, in order; zero stays zero. Raises `Fault`."""


class Reranker(_Model):
    """Score documents by how well they answer a query. `logits` is True if a score is any number, not one in [0, 1]."""

    logits: bool

    @abstractmethod
    async def score(self, query: str, documents: Sequence[str]) -> Floats:
        """Return the raw scores [N] of up to `BATCH_SIZE` documents, in order. Raises `Fault`."""


class CachingEmbedder:
    """An embedder with a cache of the most recent texts, such as the reference of a group."""

    def __init__(self, embedder: Embedder, most: int = MAX_CACHED) -> None:
        self.embedder = embedder
        self._most = most
        self._cache: dict[str, Floats] = {}
        self._length: int | None = None

    async def embed(self, texts: Sequence[str]) -> list[Floats | Fault]:
        """Return for each text its vector [D], or the fault in its place.

        A fault of cause `infrastructure` applies to the whole batch; one that a text provoked, such as by its length,
        to that text alone. A zero vector of a text that is not blank is a fault, and so are vectors of another length
        than before. Raises the errors that end a run.
        """
        vectors: dict[str, Floats | Fault] = {text: self._cache[text] for text in texts if text in self._cache}
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        for start in range(0, len(missing), BATCH_SIZE):
            batch = missing[start : start + BATCH_SIZE]
            vectors |= zip(batch, await self._embed_batch(batch), strict=True)
        for text, vector in vectors.items():
            self._cache.pop(text, None)  # move it to the end
            if not isinstance(vector, Fault):
                self._cache[text] = vector
        for text in list(self._cache)[: max(0, len(self._cache) - self._most)]:
            del self._cache[text]
        return [vectors[text] for text in texts]

    async def _embed_batch(self, batch: Sequence[str]) -> list[Floats | Fault]:
        name = self.embedder.name
        try:
            rows = await self.embedder.embed(batch)
            length = rows.shape[1]
            self._length = self._length or length
            if length != self._length:  # another model gave them, so they cannot be compared
                problem = f"its vectors have {length} numbers now, and had {self._length} before"
                raise Fault("unreadable", f"{name}: {problem}")
        except Fault as fault:
            fault.raise_if_run_ends()
            if fault.cause == "infrastructure" or len(batch) == 1:
                return [fault] * len(batch)
            return [result for text in batch for result in await self._embed_batch([text])]
        empty = Fault("unreadable", f"{name}: gives a vector of nothing for a text that is not blank")
        is_empty = (text.strip() and not np.any(row) for text, row in zip(batch, rows, strict=True))
        return [empty if lacks else row for row, lacks in zip(rows, is_empty, strict=True)]

    def close(self) -> None:
        """Unload the model and clear the cache."""
        self._cache.clear()
        self._length = None
        self.embedder.close()


class LocalModel(_Model):
    """A model in this process, in its own thread, where one call runs at a time, because few are thread-safe.

    After a failed load, which may take long, there is no new attempt until it is closed.
    """

    _thread: ThreadPoolExecutor | None = None
    _model: Any = None
    _error: str | None = None

    @abstractmethod
    def load(self) -> Any:
        """Return the model of the library. Raises `ConfigError` if it cannot be loaded."""

    async def call(self, function: Callable[[Any], T]) -> T:
        """Call a function of the model. Raises `Fault`, of kind `unknown-model` if the model cannot be loaded."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="jurygraph-embedding")
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: function(self._loaded_model()))

    def close(self) -> None:  # after the calls under way have ended
        thread = self._thread
        self._thread = None
        if thread is not None:
            thread.shutdown()
        self._model = self._error = None

    def _loaded_model(self) -> Any:
        if self._model is None and self._error is None:
            try:
                self._model = self.load()
            except ConfigError as error:
                self._error = str(error)
        if self._error is not None:
            raise Fault("unknown-model", self._error)
        return self._model


def normalize_vectors(vectors: Any, count: int, name: str) -> Floats:
    """Return vectors [count, D] as float64, each divided by its length, or 0.

    Raises `Fault` unless there are `count` vectors of finite numbers of one length: then none is used. Booleans and
    text are no numbers.
    """
    rows = _to_numbers(vectors, f"{name}: its embeddings are no vectors of finite numbers of one length")
    if rows.ndim != 2 or rows.shape[0] != count or rows.shape[1] == 0:
        raise Fault("unreadable", f"{name}: expected {count} vectors, got the shape {rows.shape}")
    largest = np.abs(rows).max(axis=1, keepdims=True)  # scale by it first, so that no square overflows or underflows
    rows = rows / np.where(largest > 0.0, largest, 1.0)
    length = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    return np.asarray(rows / np.where(length > 0.0, length, 1.0))


def validate_scores(values: Any, count: int, name: str) -> Floats:
    """Return scores [count] as float64. Raises `Fault` unless there are `count` finite numbers: then none is used."""
    scores = _to_numbers(values, f"{name}: its scores are no finite numbers")
    if scores.shape != (count,):
        raise Fault("unreadable", f"{name}: expected {count} scores, one per document, got {scores.shape}")
    return scores


def _to_numbers(values: Any, problem: str) -> Floats:
    """Return finite numbers as float64. Raises `Fault` for all else, where NumPy would convert True and "0.9"."""
    try:
        array = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)  # which keeps the types
        if array.dtype.kind in "iuf" or {type(each) for each in array.flat} <= {int, float}:
            numbers = array.astype(np.float64)
            if np.isfinite(numbers).all():
                return numbers
    except (OverflowError, TypeError, ValueError):  # lists of different lengths; or an integer that is too large
        pass
    raise Fault("unreadable", problem)


def sort_by_index(entries: Sequence[tuple[Any, Any]], count: int, name: str) -> list[Any]:
    """Return the values for the indices 0 to count - 1, in order; they may arrive in any order.

    Raises `Fault` if an index is not an integer, is missing, occurs twice or was not requested: then none is used.
    """
    indices = [index for index, _ in entries]
    if not all(type(index) is int for index in indices) or sorted(indices) != list(range(count)):
        raise Fault("unreadable", f"{name}: it answered for {indices}, not once for each of {count}")
    values = dict(entries)
    return [values[index] for index in range(count)]
