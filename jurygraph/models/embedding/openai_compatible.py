"""A model of any server with OpenAI's embeddings or with Jina's and Cohere's rerank, on aiohttp.

These include vLLM, SGLang, llama.cpp and Infinity. The key is read from JURYGRAPH_API_KEY, if one is needed.
"""

import os
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter

from jurygraph.models.backends.http_guard import check_value_count
from jurygraph.models.backends.openai_compatible import OpenAICompatible
from jurygraph.models.embedding import remote
from jurygraph.schema import CallsConfig

_ANY_OBJECT = TypeAdapter(dict[str, Any])


class Endpoint(remote.Server):
    """POST {url}/embeddings and {url}/rerank. Raises `ValueError` as `OpenAICompatible` does."""

    def __init__(self, url: str, model: str) -> None:
        self.name = model
        self._url = self._backend(url).endpoint
        self.version = f"openai-compatible {model} at {self._url}"

    async def embed(self, texts: Sequence[str]) -> remote.Entries:
        reply = await self._post("embeddings", input=list(texts), encoding_format="float")
        return remote.read_entries(self.name, reply, "data", "embedding")

    async def rerank(self, query: str, documents: Sequence[str]) -> remote.Entries:
        reply = await self._post("rerank", query=query, documents=list(documents))
        return remote.read_entries(self.name, reply, "results", "relevance_score")

    async def _post(self, path: str, **fields: Any) -> Any:
        server = self._backend(self._url)
        try:
            reply = await server.post(path, {"model": self.name, **fields}, remote.TIMEOUT)
        finally:
            await server.close()
        check_value_count(reply.content)
        return server.parse(reply, _ANY_OBJECT)

    def _backend(self, url: str) -> OpenAICompatible:
        return OpenAICompatible(url, self.name, os.environ.get(CallsConfig().key) or None)
