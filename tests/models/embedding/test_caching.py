"""The cache of embeddings: each text is embedded once, and failures of single texts are isolated."""

import asyncio
from collections.abc import Sequence

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.models.embedding import BATCH_SIZE, CachingEmbedder, Embedder, normalize_vectors
from jurygraph.models.request import Fault
from tests.models.embedding.server import vector


class Counting(Embedder):
    """Count letters, as the test server does, and requests; `faults` are those of some texts."""

    name = version = "counting"

    def __init__(self, **faults: str) -> None:
        self.asked: list[list[str]] = []
        self.faults = faults
        self.closed = 0

    async def embed(self, texts: Sequence[str]) -> Floats:
        self.asked.append(list(texts))
        for text in texts:
            if text in self.faults:
                raise Fault(self.faults[text], f"{text}!")
        return normalize_vectors([vector(text) for text in texts], len(texts), self.name)

    def close(self) -> None:
        self.closed += 1


def embed_texts(remembering: CachingEmbedder, *texts: str) -> list[Floats | Fault]:
    return asyncio.run(remembering.embed(texts))


def test_many_texts_are_requested_in_batches() -> None:
    counting = Counting()
    embed_texts(CachingEmbedder(counting), *(f"text {n}" for n in range(2 * BATCH_SIZE + 1)))
    assert [len(batch) for batch in counting.asked] == [BATCH_SIZE, BATCH_SIZE, 1]


def test_an_overlong_text_fails_alone_and_is_requested_again() -> None:
    counting = Counting(long="overflowed")
    remembering = CachingEmbedder(counting)
    for _ in range(2):
        a, long, b = embed_texts(remembering, "a", "long", "t")
        assert isinstance(long, Fault)
        assert (long.kind, long.cause) == ("overflowed", "response")
        assert not isinstance(a, Fault)
        assert not isinstance(b, Fault)
    assert counting.asked == [["a", "long", "t"], ["a"], ["long"], ["t"], ["long"]]


def test_an_internal_failure_fails_the_whole_batch_and_is_not_cached() -> None:
    counting = Counting(t="connection")
    remembering = CachingEmbedder(counting)
    faults = embed_texts(remembering, "a", "t")
    assert [one.kind for one in faults if isinstance(one, Fault)] == ["connection", "connection"]
    counting.faults = {}
    assert not any(isinstance(one, Fault) for one in embed_texts(remembering, "a", "t"))


class Lengthening(Embedder):
    """Return vectors that grow by one number per request; zeros for the text `nothing`."""

    name = version = "lengthening"

    def __init__(self) -> None:
        self.asked = 0

    async def embed(self, texts: Sequence[str]) -> Floats:
        self.asked += 1
        return np.array([[float(text != "nothing")] * self.asked for text in texts])


def test_vectors_of_another_length_are_a_fault_that_names_both() -> None:
    remembering = CachingEmbedder(Lengthening())
    assert not isinstance(embed_texts(remembering, "a")[0], Fault)
    known, other = embed_texts(remembering, "a", "b")
    assert not isinstance(known, Fault)
    assert isinstance(other, Fault)
    assert (other.kind, other.cause) == ("unreadable", "infrastructure")
    assert str(other) == "lengthening: its vectors have 2 numbers now, and had 1 before"


def test_a_zero_vector_for_a_text_that_is_not_blank_fails_that_text_alone() -> None:
    tea, nothing = embed_texts(CachingEmbedder(Lengthening()), "tea", "nothing")
    assert not isinstance(tea, Fault)
    assert isinstance(nothing, Fault)
    assert (nothing.kind, "gives a vector of nothing" in str(nothing)) == ("unreadable", True)
