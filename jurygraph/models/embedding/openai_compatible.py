"""Embedders and rerankers of any server with OpenAI's embeddings or with Jina's and Cohere's rerank, on aiohttp.

These include vLLM, SGLang, llama.cpp, text-embeddings-inference and Infinity. The key is read from JURYGRAPH_API_KEY,
if one is needed.
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

from jurygraph.aggregation.arrays import Floats
from jurygraph.models.backends.http_guard import LARGEST, check_value_count
from jurygraph.models.backends.openai_compatible import OpenAICompatible
from jurygraph.models.backends.server_errors import parse_error
from jurygraph.models.embedding.embedder import (
    TIMEOUT,
    Embedder,
    Reranker,
    normalize_vectors,
    sort_by_index,
    validate_scores,
)
from jurygraph.models.faults import Fault
from jurygraph.models.retries import RetryPolicy, call_with_retries
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
            entries = [(entry["index"], entry["embedding"]) for entry in answer["data"]]
            return normalize_vectors(sort_by_index(entries, len(texts), self.name), len(texts), self.name)

        return (await call_with_retries(once, _POLICY))[0]


class EndpointReranker(Reranker):
    """POST {url}/rerank in Jina's and Cohere's format. Raises `ValueError` as `OpenAICompatible` does.

    The format defines a `relevance_score` in [0, 1], and Cohere, Jina and vLLM follow it; llama.cpp returns logits.
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
            entries = [(entry["index"], entry["relevance_score"]) for entry in answer["results"]]
            return validate_scores(sort_by_index(entries, len(documents), self.name), len(documents), self.name)

        return (await call_with_retries(once, _POLICY))[0]


class _Path(OpenAICompatible):
    """Another path of a server, with the connections of one request.

    They are closed with it, because evaluators are closed outside of a loop, where connections cannot be closed.
    """

    def __init__(self, url: str, model: str, path: str) -> None:
        super().__init__(url, model, _key())
        self._address = URL(f"{self.endpoint}/{path}")

    async def post(self, body: Mapping[str, Any], answer: TypeAdapter[Any]) -> Any:
        """Send the request, and return the whole parsed reply. Raises `Fault`."""
        try:
            async with asyncio.timeout(TIMEOUT):
                reply = await self._answer(_to_json_bytes(body))
        except TimeoutError:
            raise self._fault("timeout", f"no whole reply within {TIMEOUT:g} s") from None
        except aiohttp.ClientResponseError as error:
            raise self._fault("unreadable", f"the response is not HTTP: {error.message}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._fault("connection", f"{error}" or type(error).__name__) from None
        finally:
            await self.close()
        if not 200 <= reply.status < 300:
            raise self._complaint_fault(reply.status, reply.headers, parse_error(reply.content))
        if len(reply.content) > LARGEST:
            raise self._fault("too-large", f"the reply has more than {LARGEST >> 20} MiB")
        check_value_count(reply.content)
        try:
            return answer.validate_json(reply.content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            location = ".".join(map(str, first["loc"])) or "the body"
            raise self._fault("unreadable", f"the reply is not in the format: {location}: {first['msg']}") from None


def _endpoint(url: str, model: str) -> str:
    endpoint = OpenAICompatible(url, model, _key()).endpoint
    assert endpoint is not None
    return endpoint


def _key() -> str | None:
    return os.environ.get(CallsConfig().key) or None


def _to_json_bytes(body: Mapping[str, Any]) -> bytes:
    try:
        return to_json(body)
    except PydanticSerializationError as error:
        raise Fault("rejected", f"the request cannot be written as JSON in UTF-8: {error}") from None
