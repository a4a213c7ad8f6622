"""Embedders and rerankers of any provider that litellm knows, by their litellm ids (`provider/model`)."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from jurygraph.models.backends.litellm import LONGEST_TIMEOUT, UNREADABLE, USING, LiteLLM, library
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

_POLICY = RetryPolicy()

_BY_OPENAI = frozenset({"openai", "together_ai", "nvidia_nim", "litellm_proxy"})
"""Providers whose embeddings litellm asks for by OpenAI's client, at addresses and with keys that are told alike."""

_BY_HTTP = frozenset(
    {
        "cohere",
        "cohere_chat",
        "dashscope",
        "hosted_vllm",
        "infinity",
        "jina_ai",
        "openrouter",
        "perplexity",
        "snowflake",
        "volcengine",
        "voyage",
        "watsonx",
    }
)
"""Providers whose embeddings litellm asks for by its own client, and takes ours instead. For all others it makes one
that follows redirects."""


class LiteLLMEmbedder(Embedder):
    """Embeddings of a provider's model; its key is where litellm looks. Raises `ValueError` as `LiteLLM` does."""

    def __init__(self, model: str) -> None:
        self.name = model
        self.version = _version(model)

    async def embed(self, texts: Sequence[str]) -> Floats:
        async def once() -> Floats:
            answer = await _Provider(self.name).ask("aembedding", input=list(texts))
            given = _read(self.name, answer, "data", "embedding")
            return unit_rows(by_index(given, len(texts), self.name), len(texts), self.name)

        return (await attempted(once, _POLICY))[0]


class LiteLLMReranker(Reranker):
    """Relevance scores of a provider's model. Raises `ValueError` as `LiteLLM` does."""

    def __init__(self, model: str, logits: bool = False) -> None:
        self.name = model
        self.version = _version(model)
        self.logits = logits

    async def score(self, query: str, documents: Sequence[str]) -> Floats:
        async def once() -> Floats:
            every = len(documents)
            answer = await _Provider(self.name).ask("arerank", query=query, documents=list(documents), top_n=every)
            given = _read(self.name, answer, "results", "relevance_score")
            return all_scores(by_index(given, len(documents), self.name), len(documents), self.name)

        return (await attempted(once, _POLICY))[0]


class _Provider(LiteLLM):
    """The connections of one request: a jury's evaluators are closed without a loop, in which these could be."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._bodies: list[bytes] = []  # of replies, as they came: their readers make 1.0 of true

    async def ask(self, function: str, **arguments: Any) -> Any:
        """What a function of litellm's answers, after one HTTP request. Raises `Fault`."""
        import httpx
        import openai

        call = getattr(library(), function)
        client = None
        USING.add(self)
        try:
            client = self._client(function)
            async with asyncio.timeout(TIMEOUT):
                answer = await call(**arguments, **self._always(), client=client)
        except TimeoutError:
            raise Fault("timeout", f"{self.model}: no whole reply within {TIMEOUT:g} s") from None
        except (openai.OpenAIError, httpx.HTTPError, RuntimeError, *UNREADABLE) as error:
            raise self._fault(error) from None
        finally:
            if client is not None:
                await client.close()
            await self.close()
        if any(map(_misread, self._bodies)):
            raise Fault("unreadable", f"{self.model}: an index, a score or an embedding holds what is no number")
        return answer

    def _client(self, function: str) -> Any:
        """A client that follows no redirect, as texts would go to another server; None where it makes its own."""
        _, provider, key, address = library().get_llm_provider(self.model)
        if function == "aembedding" and provider in _BY_OPENAI:
            return _of_openai(key, address, self._keep)
        if function == "aembedding" and provider not in _BY_HTTP:
            return None
        from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

        return AsyncHTTPHandler(timeout=LONGEST_TIMEOUT, event_hooks={"response": [self._keep]}, follow_redirects=False)

    async def _keep(self, response: Any) -> None:
        self._bodies.append(await response.aread())

    def _always(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "timeout": LONGEST_TIMEOUT,
            "max_retries": 0,
            "num_retries": 0,
            "caching": False,
            "no-log": True,
        }


def _of_openai(key: str | None, address: str | None, keep: Callable[[Any], Any]) -> Any:
    """OpenAI's client as litellm makes it, but one that follows no redirect; None without a key."""
    import openai
    from litellm.llms.openai.common_utils import BaseOpenAILLM, get_openai_credentials

    found = get_openai_credentials(api_base=address, api_key=key)
    if not found.api_key:
        return None  # of which litellm says what is missing, before anything is sent
    connections = BaseOpenAILLM.get_async_http_client()
    assert connections is not None
    connections.follow_redirects = False
    connections.event_hooks = {"response": [keep]}
    return openai.AsyncOpenAI(
        api_key=found.api_key,
        base_url=found.api_base,
        organization=found.organization,
        http_client=connections,
        timeout=LONGEST_TIMEOUT,
        max_retries=0,
    )


def _misread(body: bytes) -> bool:
    """Whether a reply holds what its reader takes for a number and is none: true and "0.9", or a place 0.0."""
    try:
        reply = json.loads(body)
    except ValueError:  # of which litellm tells
        return False
    entries = reply.get("results") or reply.get("data") if isinstance(reply, dict) else None
    return isinstance(entries, list) and any(_no_numbers(one) for one in entries if isinstance(one, dict))


def _no_numbers(entry: Mapping[str, Any]) -> bool:
    vector = entry.get("embedding")
    given = [entry.get("relevance_score", 0.0), *(vector if isinstance(vector, list) else ())]
    return type(entry.get("index", 0)) is not int or any(type(one) not in (int, float) for one in given)


def _version(model: str) -> str:
    address = LiteLLM(model).endpoint
    return f"litellm {version('litellm')} {model}" + (f" at {address}" if address else "")


def _read(model: str, answer: Any, entries: str, value: str) -> list[tuple[int, Any]]:
    """The places and values of a reply. Raises `Fault` where it has none such."""
    try:
        return [(one["index"], one[value]) for one in getattr(answer, entries)]
    except (AttributeError, LookupError, TypeError):
        raise Fault("unreadable", f"{model}: its reply has no {entries} with an index and {value} each") from None
