"""The embeddings and rerankings of any provider of litellm, by litellm ids (`provider/model`)."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from jurygraph.models.backends.http_guard import guard_requests
from jurygraph.models.backends.litellm import FIXED_ARGUMENTS, UNREADABLE, USING, LiteLLM, library
from jurygraph.models.embedding import remote
from jurygraph.models.faults import Fault


class LiteLLMServer(remote.Server):
    """A provider's model; its key is where litellm looks. Raises `ValueError` as `LiteLLM` does."""

    def __init__(self, model: str) -> None:
        address = LiteLLM(model).endpoint
        self.name = model
        self.version = f"litellm {version('litellm')} {model}" + (f" at {address}" if address else "")

    async def embed(self, texts: Sequence[str]) -> remote.Entries:
        reply = await _Provider(self.name).ask("aembedding", input=list(texts))
        return remote.read_entries(self.name, vars(reply), "data", "embedding")

    async def rerank(self, query: str, documents: Sequence[str]) -> remote.Entries:
        fields: dict[str, Any] = {"query": query, "documents": list(documents), "top_n": len(documents)}
        reply = await _Provider(self.name).ask("arerank", **fields)
        return remote.read_entries(self.name, vars(reply), "results", "relevance_score")


class _Provider(LiteLLM):
    """The connections of one request."""

    async def ask(self, function: str, **arguments: Any) -> Any:
        """Call a function of litellm with one HTTP request, and return its result. Raises `Fault`."""
        import httpx
        import openai

        call = getattr(library(), function)
        USING.add(self)
        with guard_requests(json=True) as exchange:
            try:
                async with asyncio.timeout(remote.TIMEOUT):
                    answer = await call(**arguments, **FIXED_ARGUMENTS, model=self.model)
                exchange.require_reply()
            except TimeoutError:
                raise Fault("timeout", f"{self.model}: no whole reply within {remote.TIMEOUT:g} s") from None
            except Fault as fault:
                raise self._prefix_model(fault) from None
            except (openai.OpenAIError, httpx.HTTPError, RuntimeError, *UNREADABLE) as error:
                raise self._fault(error, exchange) from None
            finally:
                await self.close()
        if any(map(_has_misread_value, exchange.bodies)):  # litellm converts true to 1.0
            raise Fault("unreadable", f"{self.model}: an index, a score or an embedding is not a number")
        return answer


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
