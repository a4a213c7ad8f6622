"""Embedders and rerankers of any provider of litellm, by litellm ids (`provider/model`)."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from jurygraph.aggregation.arrays import Floats
from jurygraph.models.backends.http_guard import guard_requests
from jurygraph.models.backends.litellm import CLIENT_TIMEOUT, UNREADABLE, USING, LiteLLM, library
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

_POLICY = RetryPolicy()


class LiteLLMEmbedder(Embedder):
    """Embeddings of a provider's model; its key is where litellm looks. Raises `ValueError` as `LiteLLM` does."""

    def __init__(self, model: str) -> None:
        self.name = model
        self.version = _version(model)

    async def embed(self, texts: Sequence[str]) -> Floats:
        async def once() -> Floats:
            answer = await _Provider(self.name).ask("aembedding", input=list(texts))
            entries = _read_entries(self.name, answer, "data", "embedding")
            return normalize_vectors(sort_by_index(entries, len(texts), self.name), len(texts), self.name)

        return (await call_with_retries(once, _POLICY))[0]


class LiteLLMReranker(Reranker):
    """Relevance scores of a provider's model. Raises `ValueError` as `LiteLLM` does."""

    def __init__(self, model: str, logits: bool = False) -> None:
        self.name = model
        self.version = _version(model)
        self.logits = logits

    async def score(self, query: str, documents: Sequence[str]) -> Floats:
        async def once() -> Floats:
            count = len(documents)
            answer = await _Provider(self.name).ask("arerank", query=query, documents=list(documents), top_n=count)
            entries = _read_entries(self.name, answer, "results", "relevance_score")
            return validate_scores(sort_by_index(entries, len(documents), self.name), len(documents), self.name)

        return (await call_with_retries(once, _POLICY))[0]


class _Provider(LiteLLM):
    """The connections of one request.

    They are closed with it, because evaluators are closed outside of a loop, where connections cannot be closed.
    """

    async def ask(self, function: str, **arguments: Any) -> Any:
        """Call a function of litellm with one HTTP request, and return its result. Raises `Fault`."""
        import httpx
        import openai

        call = getattr(library(), function)
        USING.add(self)
        with guard_requests(json=True) as exchange:
            try:
                async with asyncio.timeout(TIMEOUT):
                    answer = await call(**arguments, **self._fixed_arguments())
                exchange.require_reply()
            except TimeoutError:
                raise Fault("timeout", f"{self.model}: no whole reply within {TIMEOUT:g} s") from None
            except Fault as fault:
                raise self._prefix_model(fault) from None
            except (openai.OpenAIError, httpx.HTTPError, RuntimeError, *UNREADABLE) as error:
                raise self._fault(error, exchange) from None
            finally:
                await self.close()
        if any(map(_has_misread_value, exchange.bodies)):  # litellm converts true to 1.0
            raise Fault("unreadable", f"{self.model}: an index, a score or an embedding is not a number")
        return answer

    def _fixed_arguments(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "timeout": CLIENT_TIMEOUT,
            "max_retries": 0,
            "num_retries": 0,
            "caching": False,
            "no-log": True,
        }


def _has_misread_value(body: bytes) -> bool:
    """Return True if a reply has a value that its reader would convert to a number: true and "0.9", or an index 0.0."""
    try:
        reply = json.loads(body)
    except ValueError:  # litellm reports it
        return False
    entries = reply.get("results") or reply.get("data") if isinstance(reply, dict) else None
    return isinstance(entries, list) and any(_has_non_number(entry) for entry in entries if isinstance(entry, dict))


def _has_non_number(entry: Mapping[str, Any]) -> bool:
    vector = entry.get("embedding")
    values = [entry.get("relevance_score", 0.0), *(vector if isinstance(vector, list) else ())]
    return type(entry.get("index", 0)) is not int or any(type(value) not in (int, float) for value in values)


def _version(model: str) -> str:
    address = LiteLLM(model).endpoint
    return f"litellm {version('litellm')} {model}" + (f" at {address}" if address else "")


def _read_entries(model: str, answer: Any, entries: str, value: str) -> list[tuple[int, Any]]:
    """Return the indices and values of a reply. Raises `Fault` if it has none."""
    try:
        return [(entry["index"], entry[value]) for entry in getattr(answer, entries)]
    except (AttributeError, LookupError, TypeError):
        raise Fault("unreadable", f"{model}: its reply has no {entries} with an index and {value} each") from None
