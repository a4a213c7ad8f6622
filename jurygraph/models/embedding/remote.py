"""Embedders and rerankers of a server, with retries."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pydantic import TypeAdapter

from jurygraph.arrays import Floats
from jurygraph.models.backends.openai_compatible import OpenAICompatible
from jurygraph.models.embedding.embedder import Embedder, Reranker, normalize_vectors, sort_by_index, validate_scores
from jurygraph.models.faults import Fault
from jurygraph.models.retries import RetryPolicy, call_with_retries
from jurygraph.schema import CallsConfig

TIMEOUT = 60.0  # seconds for one request
POLICY = RetryPolicy()

Path = Literal["embeddings", "rerank"]
ResultCheck = Callable[[Any, int, str], Floats]
_ANY_OBJECT = TypeAdapter(dict[str, Any])


class Endpoint:
    """POST {url}/embeddings and {url}/rerank of any server (vLLM, SGLang, llama.cpp, Infinity, OpenAI, …).

    The key is read from JURYGRAPH_API_KEY, if one is needed. Raises `ValueError` as `OpenAICompatible` does. The
    connections of a request are closed with it, because evaluators are closed outside of a loop, where connections
    cannot be closed.
    """

    def __init__(self, url: str, model: str) -> None:
        self.name = model
        self._url = self._backend(url).endpoint
        self.version = f"openai-compatible {model} at {self._url}"

    async def fetch(self, path: Path, fields: dict[str, Any], count: int, validate: ResultCheck) -> Floats:
        """Return `count` validated values in order, with retries. Raises `Fault` if the reply has others."""
        entries, value = ("data", "embedding") if path == "embeddings" else ("results", "relevance_score")

        async def once() -> Floats:
            reply = await self._post(path, fields)
            try:
                found = [(entry["index"], entry[value]) for entry in reply[entries]]
            except (LookupError, TypeError):
                problem = f"its reply has no {entries} with an index and {value} each"
                raise Fault("unreadable", f"{self.name}: {problem}") from None
            return validate(sort_by_index(found, count, self.name), count, self.name)

        return await call_with_retries(once, POLICY)

    async def _post(self, path: Path, fields: dict[str, Any]) -> Mapping[str, Any]:
        """Return the reply to one request, in OpenAI's format or in Jina's and Cohere's. Raises `Fault`."""
        form = {"encoding_format": "float"} if path == "embeddings" else {}
        server = self._backend(self._url)
        try:
            reply = await server.post(path, {"model": self.name, **fields, **form}, TIMEOUT)
        finally:
            await server.close()
        return server.parse(reply, _ANY_OBJECT)

    def _backend(self, url: str) -> OpenAICompatible:
        variable = CallsConfig().key
        return OpenAICompatible(url, self.name, os.environ.get(variable) or None, key_variable=variable)


class RemoteEmbedder(Embedder):
    """The embeddings of a server's model."""

    def __init__(self, server: Endpoint) -> None:
        self.name = server.name
        self.version = server.version
        self._server = server

    async def embed(self, texts: Sequence[str]) -> Floats:
        return await self._server.fetch("embeddings", {"input": list(texts)}, len(texts), normalize_vectors)


class RemoteReranker(Reranker):
    """The relevance scores of a server's model.

    The format of Jina and Cohere defines scores in [0, 1], and vLLM follows it; llama.cpp returns logits, except for
    Qwen3-Reranker, whose score it gives as the probability of "yes".
    """

    def __init__(self, server: Endpoint, logits: bool = False) -> None:
        self.name = server.name
        self.version = server.version
        self.logits = logits
        self._server = server

    async def score(self, query: str, documents: Sequence[str]) -> Floats:
        fields = {"query": query, "documents": list(documents)}
        return await self._server.fetch("rerank", fields, len(documents), validate_scores)
