"""Embedders and rerankers of any server that speaks OpenAI's embeddings or Jina's and Cohere's rerank, on aiohttp.

vLLM, SGLang, llama.cpp, text-embeddings-inference and Infinity do. The key stands in JURYGRAPH_API_KEY, if one is
needed.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import aiohttp
from pydantic import FailFast, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json
from typing_extensions import TypedDict  # pydantic takes typing's own from Python 3.12 on
from yarl import URL

from jurygraph.models.backends.complaints import complaint_in
from jurygraph.models.backends.http_guard import LARGEST, require_few_values
from jurygraph.models.backends.openai_compatible import OpenAICompatible
from jurygraph.models.embedding.embedder import (
    TIMEOUT,
    Embedder,
    Floats,
    Reranker,
    all_scores,
    by_index,
    unit_rows,
)
from jurygraph.models.faults import Fault
from jurygraph.models.retries import RetryPolicy, attempted
from jurygraph.schema import CallsConfig

_POLICY = RetryPolicy()
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


class EndpointEmbedder(Embedder):
    """POST {url}/embeddings in OpenAI's format. Raises `ValueError` as `OpenAICompatible` does."""

    def __init__(self, url: str, model: str) -> None:
        self.name = model
        self._url = _endpoint(url, model)
        self.version = f"openai-compatible {model} at {self._url}"

    async def embed(self, texts: Sequence[str]) -> Floats:
        body = {"model": self.name, "input": list(texts), "encoding_format": "float"}

        async def once() -> Floats:
            answer = await _Path(self._url, self.name, "embeddings").post(body, _EMBEDDINGS)
            given = [(one["index"], one["embedding"]) for one in answer["data"]]
            return unit_rows(by_index(given, len(texts), self.name), len(texts), self.name)

        return (await attempted(once, _POLICY))[0]


class EndpointReranker(Reranker):
    """POST {url}/rerank in Jina's and Cohere's format. Raises `ValueError` as `OpenAICompatible` does.

    By that format a `relevance_score` lies in [0, 1], and so it does at Cohere, Jina and vLLM; llama.cpp gives logits.
    """

    def __init__(self, url: str, model: str, logits: bool = False) -> None:
        self.name = model
        self._url = _endpoint(url, model)
        self.version = f"openai-compatible {model} at {self._url}"
        self.logits = logits

    async def score(self, query: str, documents: Sequence[str]) -> Floats:
        body = {"model": self.name, "query": query, "documents": list(documents)}

        async def once() -> Floats:
            answer = await _Path(self._url, self.name, "rerank").post(body, _RANKING)
            given = [(one["index"], one["relevance_score"]) for one in answer["results"]]
            return all_scores(by_index(given, len(documents), self.name), len(documents), self.name)

        return (await attempted(once, _POLICY))[0]


class _Path(OpenAICompatible):
    """Another path of a server, and the connections of one request: a jury's evaluators are closed without a loop, in
    which these could be."""

    def __init__(self, url: str, model: str, path: str) -> None:
        super().__init__(url, model, _key())
        self._address = URL(f"{self.endpoint}/{path}")

    async def post(self, body: Mapping[str, Any], answer: TypeAdapter[Any]) -> Any:
        """The whole reply, read. Raises `Fault`."""
        try:
            async with asyncio.timeout(TIMEOUT):
                got = await self._answer(_written(body))
        except TimeoutError:
            raise self._fault("timeout", f"no whole reply within {TIMEOUT:g} s") from None
        except aiohttp.ClientResponseError as error:
            raise self._fault("unreadable", f"what came is no HTTP: {error.message}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._fault("connection", f"{error}" or type(error).__name__) from None
        finally:
            await self.close()
        if not 200 <= got.status < 300:
            raise self._complained(got.status, got.headers, complaint_in(got.content))
        if len(got.content) > LARGEST:
            raise self._fault("too-large", f"the reply has more than {LARGEST >> 20} MiB")
        require_few_values(got.content)
        try:
            return answer.validate_json(got.content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "the body"
            raise self._fault("unreadable", f"the reply is not in the format: {where}: {first['msg']}") from None


def _endpoint(url: str, model: str) -> str:
    endpoint = OpenAICompatible(url, model, _key()).endpoint
    assert endpoint is not None
    return endpoint


def _key() -> str | None:
    return os.environ.get(CallsConfig().key) or None


def _written(body: Mapping[str, Any]) -> bytes:
    try:
        return to_json(body)
    except PydanticSerializationError as error:
        raise Fault("rejected", f"the request cannot be written as JSON in UTF-8: {error}") from None
