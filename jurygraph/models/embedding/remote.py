"""Embedders and rerankers of a server, by any client, with retries."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from jurygraph.aggregation.arrays import Floats
from jurygraph.models.embedding.embedder import Embedder, Reranker, normalize_vectors, sort_by_index, validate_scores
from jurygraph.models.faults import Fault
from jurygraph.models.retries import RetryPolicy, call_with_retries

TIMEOUT = 60.0
"""Seconds for one request."""

POLICY = RetryPolicy()

Entries = list[tuple[Any, Any]]
"""Indices and values of a reply, neither of them validated."""


class Server(ABC):
    """A model of a server or provider: `version` identifies both. Each call is one attempt, and raises `Fault`.

    The connections of a request are closed with it, because evaluators are closed outside of a loop, where connections
    cannot be closed.
    """

    name: str
    version: str

    @abstractmethod
    async def embed(self, texts: Sequence[str]) -> Entries:
        """Return the vectors of texts, with their indices."""

    @abstractmethod
    async def rerank(self, query: str, documents: Sequence[str]) -> Entries:
        """Return the relevance scores of documents, with their indices."""


class RemoteEmbedder(Embedder):
    """The embeddings of a server's model."""

    def __init__(self, server: Server) -> None:
        self.name, self.version = server.name, server.version
        self._server = server

    async def embed(self, texts: Sequence[str]) -> Floats:
        async def once() -> Floats:
            vectors = sort_by_index(await self._server.embed(texts), len(texts), self.name)
            return normalize_vectors(vectors, len(texts), self.name)

        return (await call_with_retries(once, POLICY))[0]


class RemoteReranker(Reranker):
    """The relevance scores of a server's model.

    The format of Jina and Cohere defines scores in [0, 1], and vLLM follows it; llama.cpp returns logits.
    """

    def __init__(self, server: Server, logits: bool = False) -> None:
        self.name, self.version, self.logits = server.name, server.version, logits
        self._server = server

    async def score(self, query: str, documents: Sequence[str]) -> Floats:
        async def once() -> Floats:
            scores = sort_by_index(await self._server.rerank(query, documents), len(documents), self.name)
            return validate_scores(scores, len(documents), self.name)

        return (await call_with_retries(once, POLICY))[0]


def read_entries(name: str, reply: Mapping[str, Any], entries: str, value: str) -> Entries:
    """Return the indices and values of a reply. Raises `Fault` if it has none."""
    try:
        return [(entry["index"], entry[value]) for entry in reply[entries]]
    except (LookupError, TypeError):
        raise Fault("unreadable", f"{name}: its reply has no {entries} with an index and {value} each") from None
