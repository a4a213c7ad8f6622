"""Embed many texts, each once, and isolate the failures of single texts."""

from collections.abc import Sequence

import numpy as np

from jurygraph.aggregation.arrays import Floats
from jurygraph.models.embedding.embedder import BATCH_SIZE, Embedder
from jurygraph.models.faults import Fault

MAX_CACHED = 512
"""Most vectors in the cache; the least recently used are dropped first."""


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
        than before.
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
