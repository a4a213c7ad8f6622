"""Embedders and rerankers of a server or a provider, by its HTTP client, with retries."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Literal

from pydantic import TypeAdapter

from jurygraph.arrays import Floats
from jurygraph.models.backends.litellm import LiteLLM
from jurygraph.models.backends.openai_compatible import OpenAICompatible
from jurygraph.models.embedding.embedder import Embedder, Reranker, normalize_vectors, sort_by_index, validate_scores
from jurygraph.models.factory import PROVIDER_MODEL, split_url_and_model
from jurygraph.models.faults import Fault
from jurygraph.models.retries import RetryPolicy, call_with_retries
from jurygraph.schema import CallsConfig

TIMEOUT = 60.0  # seconds for one request
POLICY = RetryPolicy()

Path = Literal["embeddings", "rerank"]
ResultCheck = Callable[[Any, int, str], Floats]
_ANY_OBJECT = TypeAdapter(dict[str, Any])


class Server(ABC):
    """A model of a server or provider: `version` identifies both.

    The connections of a request are closed with it, because evaluators are closed outside of a loop, where connections
    cannot be closed.
    """

    name: str
    version: str

    @abstractmethod
    async def post(self, path: Path, fields: dict[str, Any]) -> Mapping[str, Any]:
        """Return the reply to one request, in OpenAI's format or in Jina's and Cohere's. Raises `Fault`."""

    async def fetch(self, path: Path, fields: dict[str, Any], count: int, validate: ResultCheck) -> Floats:
        """Return `count` validated values in order, with retries. Raises `Fault` if the reply has others."""
        entries, value = ("data", "embedding") if path == "embeddings" else ("results", "relevance_score")

        async def once() -> Floats:
            reply = await self.post(path, fields)
            try:
                found = [(entry["index"], entry[value]) for entry in reply[entries]]
            except (LookupError, TypeError):
                problem = f"its reply has no {entries} with an index and {value} each"
                raise Fault("unreadable", f"{self.name}: {problem}") from None
            return validate(sort_by_index(found, count, self.name), count, self.name)

        return await call_with_retries(once, POLICY)


class RemoteEmbedder(Embedder):
    """The embeddings of a server's model."""

    def __init__(self, server: Server) -> None:
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

    def __init__(self, server: Server, logits: bool = False) -> None:
        self.name = server.name
        self.version = server.version
        self.logits = logits
        self._server = server

    async def score(self, query: str, documents: Sequence[str]) -> Floats:
        fields = {"query": query, "documents": list(documents)}
        return await self._server.fetch("rerank", fields, len(documents), validate_scores)


class Endpoint(Server):
    """POST {url}/embeddings and {url}/rerank of any server (vLLM, SGLang, llama.cpp, Infinity, …).

    The key is read from JURYGRAPH_API_KEY, if one is needed. Raises `ValueError` as `OpenAICompatible` does.
    """

    def __init__(self, url: str, model: str) -> None:
        self.name = model
        self._url = self._backend(url).endpoint
        self.version = f"openai-compatible {model} at {self._url}"

    async def post(self, path: Path, fields: dict[str, Any]) -> Mapping[str, Any]:
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


class LiteLLMServer(Server):
    """A provider's model, by its litellm id; its key is where litellm looks. Raises `ValueError` as `LiteLLM` does."""

    def __init__(self, model: str) -> None:
        self._provider = LiteLLM(model)
        address = self._provider.endpoint
        self.name = model
        self.version = f"litellm {version('litellm')} {model}" + (f" at {address}" if address else "")

    async def post(self, path: Path, fields: dict[str, Any]) -> Mapping[str, Any]:
        function = "aembedding" if path == "embeddings" else "arerank"
        most = {"top_n": len(fields["documents"])} if path == "rerank" else {}
        try:
            return await self._provider.call(function, {**fields, **most}, TIMEOUT, _read_litellm_reply)
        finally:
            await self._provider.close()


def find_server(kind: str, rest: str) -> Server:
    """Return the server of a name of this kind. Raises `ValueError` if the name has another form."""
    if kind == "openai-compatible":
        return Endpoint(*split_url_and_model(rest, "minilm"))
    if not PROVIDER_MODEL.fullmatch(rest):
        raise ValueError("litellm: is followed by provider/model, such as openai/text-embedding-3-small")
    return LiteLLMServer(rest)


def _read_litellm_reply(reply: Any, content: Any) -> Mapping[str, Any]:
    """Return the fields of a reply. Raises `Fault` if litellm converted a value in it, such as true to 1.0."""
    entries = content.get("results") or content.get("data") if isinstance(content, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            vector = entry.get("embedding")
            values = [entry.get("relevance_score", 0.0), *(vector if isinstance(vector, list) else ())]
            if type(entry.get("index", 0)) is not int or any(type(value) not in (int, float) for value in values):
                raise Fault("unreadable", "an index, a score or an embedding is not a number")
    fields: Mapping[str, Any] = vars(reply)
    return fields
