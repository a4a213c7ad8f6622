"""Embeds many texts, each once, and keeps what one text does from harming another."""

from collections.abc import Sequence

import numpy as np

from jurygraph.models.embedding.embedder import AT_ONCE, Embedder, Floats
from jurygraph.models.faults import Fault

MOST = 512
"""Vectors that are kept; those used longest ago go first."""


class Remembering:
    """An embedder that knows the texts it was asked about last, such as the reference of a group."""

    def __init__(self, embedder: Embedder, most: int = MOST) -> None:
        self.embedder = embedder
        self._most = most
        self._known: dict[str, Floats] = {}
        self._length: int | None = None

    async def embed(self, texts: Sequence[str]) -> list[Floats | Fault]:
        """For each text its vector [D], or the fault in its place.

        A fault of our own takes all that was asked beside it; one that a text provoked, as one that is too long does,
        takes that text alone. A vector of nothing, of a text that is not blank, is a fault, and so are vectors of
        another length than those before.
        """
        found: dict[str, Floats | Fault] = {text: self._known[text] for text in texts if text in self._known}
        new = [text for text in dict.fromkeys(texts) if text not in found]
        for start in range(0, len(new), AT_ONCE):
            batch = new[start : start + AT_ONCE]
            found |= zip(batch, await self._embedded(batch), strict=True)
        self._keep(found)
        return [found[text] for text in texts]

    async def _embedded(self, batch: Sequence[str]) -> list[Floats | Fault]:
        try:
            rows = self._of_one_length(await self.embedder.embed(batch))
            return [self._something(text, row) for text, row in zip(batch, rows, strict=True)]
        except Fault as fault:
            if fault.cause == "infrastructure" or len(batch) == 1:
                return [fault] * len(batch)
        return [one for text in batch for one in await self._embedded([text])]

    def _of_one_length(self, rows: Floats) -> Floats:
        """Vectors of another length come from another model: none can be compared with those that are known."""
        length = rows.shape[1]
        self._length = self._length or length
        if length != self._length:
            wrong = f"its vectors have {length} numbers now, and had {self._length} before"
            raise Fault("unreadable", f"{self.embedder.name}: {wrong}")
        return rows

    def _something(self, text: str, vector: Floats) -> Floats | Fault:
        if np.any(vector) or not text.strip():
            return vector
        return Fault("unreadable", f"{self.embedder.name}: gives a vector of nothing for a text that is not blank")

    def _keep(self, found: dict[str, Floats | Fault]) -> None:
        for text, vector in found.items():
            self._known.pop(text, None)  # so that it stands last
            if not isinstance(vector, Fault):
                self._known[text] = vector
        for text in list(self._known)[: max(0, len(self._known) - self._most)]:
            del self._known[text]

    def close(self) -> None:
        """Let go of the model and of what is known."""
        self._known.clear()
        self._length = None
        self.embedder.close()
