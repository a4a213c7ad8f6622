"""A model of any server with OpenAI's embeddings or with Jina's and Cohere's rerank, on aiohttp.

These include vLLM, SGLang, llama.cpp and Infinity. The key is read from JURYGRAPH_API_KEY, if one is needed.
"""

import os
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import FailFast, Field, TypeAdapter
from typing_extensions import TypedDict  # pydantic takes typing's own from Python 3.12 on

from jurygraph.models.backends.http_guard import check_value_count
from jurygraph.models.backends.openai_compatible import OpenAICompatible
from jurygraph.models.embedding import remote
from jurygraph.schema import CallsConfig

_Place = Annotated[int, Field(strict=True, ge=0)]
_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class _Vector(TypedDict):
    index: _Place
    embedding: Annotated[list[_Number], FailFast()]


class _Embeddings(TypedDict):
    data: Annotated[list[_Vector], FailFast()]


class _Score(TypedDict):
    index: _Place
    relevance_score: _Number


class _Ranking(TypedDict):
    results: Annotated[list[_Score], FailFast()]


_EMBEDDINGS = TypeAdapter(_Embeddings)
_RANKING = TypeAdapter(_Ranking)


class Endpoint(remote.Server):
    """POST {url}/embeddings and {url}/rerank. Raises `ValueError` as `OpenAICompatible` does."""

    def __init__(self, url: str, model: str) -> None:
        self.name = model
        self._url = self._backend(url).endpoint
        self.version = f"openai-compatible {model} at {self._url}"

    async def embed(self, texts: Sequence[str]) -> remote.Entries:
        reply = await self._post("embeddings", _EMBEDDINGS, input=list(texts), encoding_format="float")
        return [(entry["index"], entry["embedding"]) for entry in reply["data"]]

    async def rerank(self, query: str, documents: Sequence[str]) -> remote.Entries:
        reply = await self._post("rerank", _RANKING, query=query, documents=list(documents))
        return [(entry["index"], entry["relevance_score"]) for entry in reply["results"]]

    async def _post(self, path: str, answer: TypeAdapter[Any], **fields: Any) -> Any:
        server = self._backend(self._url)
        try:
            reply = await server.post(path, {"model": self.name, **fields}, remote.TIMEOUT)
        finally:
            await server.close()
        check_value_count(reply.content)
        return server.parse(reply, answer)

    def _backend(self, url: str) -> OpenAICompatible:
        return OpenAICompatible(url, self.name, os.environ.get(CallsConfig().key) or None)
