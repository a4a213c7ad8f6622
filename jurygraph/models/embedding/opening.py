"""From the name of a model in an evaluator's params to an embedder or a reranker.

sentence-transformers:NAME_OR_FOLDER    a model of the Hugging Face hub, or in a folder (extra `embeddings`)
litellm:provider/model                  any provider that litellm knows
openai-compatible:URL#model             a server with /embeddings (OpenAI's format) or /rerank (Jina's and Cohere's)
gguf:PATH                               an embedder in a GGUF file, run in process by llama.cpp (extra `local`)
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from jurygraph.errors import ConfigError
from jurygraph.models.embedding.embedder import Embedder, Reranker

T = TypeVar("T", Embedder, Reranker)
_LONGEST = 4_096
"""Characters of what is stated; no path or address is longer."""

_OF_A_PROVIDER = re.compile(r"[\w-]+/\S+")


def open_embedder(stated: str) -> Embedder:
    """The embedder that is stated. Nothing is loaded or sent yet. Raises `ConfigError` where it cannot be one."""
    return _opened("embedder", stated, _EMBEDDERS)


def open_reranker(stated: str, logits: bool = False) -> Reranker:
    """The reranker that is stated, as `open_embedder` does; `logits` says what the scores of a server are."""
    return _opened("ranker", stated, {kind: _reranker(make, logits) for kind, make in _RERANKERS.items()})


def _opened(role: str, stated: str, kinds: Mapping[str, Callable[[str], T]]) -> T:
    if len(stated) > _LONGEST:
        raise ConfigError(
            f"{role}: what is stated has {len(stated):,} characters; name a model in {_LONGEST:,} or fewer"
        )
    kind, _, rest = stated.partition(":")
    if kind not in kinds or not rest:
        known = ", ".join(_WRITTEN[kind] for kind in kinds)
        shown = f"{kind}:" if kind in _WRITTEN else "what is stated"  # which may be a key
        raise ConfigError(f"{role}: {shown} names no model; write one of {known}")
    if kind in _LOCAL and "://" in rest:  # with a password in it, maybe
        raise ConfigError(f"{role}: {kind}: is not followed by an address; write {_WRITTEN[kind]}")
    try:
        return kinds[kind](rest)
    except ValueError as error:
        raise ConfigError(f"{role}: {error}") from error


def _local_embedder(rest: str) -> Embedder:
    from jurygraph.models.embedding.sentence_transformer import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(rest)


def _litellm_embedder(rest: str) -> Embedder:
    from jurygraph.models.embedding.litellm import LiteLLMEmbedder

    return LiteLLMEmbedder(_of_a_provider(rest))


def _endpoint_embedder(rest: str) -> Embedder:
    from jurygraph.models.embedding.openai_compatible import EndpointEmbedder

    return EndpointEmbedder(*_url_and_model(rest))


def _gguf_embedder(rest: str) -> Embedder:
    from jurygraph.models.embedding.gguf import GgufEmbedder

    return GgufEmbedder(Path(rest))


def _local_reranker(rest: str, logits: bool) -> Reranker:
    from jurygraph.models.embedding.sentence_transformer import CrossEncoderReranker

    return CrossEncoderReranker(rest)


def _litellm_reranker(rest: str, logits: bool) -> Reranker:
    from jurygraph.models.embedding.litellm import LiteLLMReranker

    return LiteLLMReranker(_of_a_provider(rest), logits)


def _endpoint_reranker(rest: str, logits: bool) -> Reranker:
    from jurygraph.models.embedding.openai_compatible import EndpointReranker

    return EndpointReranker(*_url_and_model(rest), logits)


def _reranker(make: Callable[[str, bool], Reranker], logits: bool) -> Callable[[str], Reranker]:
    return lambda rest: make(rest, logits)


def _of_a_provider(model: str) -> str:
    if not _OF_A_PROVIDER.fullmatch(model):
        raise ValueError("litellm: is followed by provider/model, such as openai/text-embedding-3-small")
    return model


def _url_and_model(rest: str) -> tuple[str, str]:
    url, _, model = rest.partition("#")
    if not url or not model:
        raise ValueError("openai-compatible: is followed by URL#model, such as http://127.0.0.1:8000/v1#minilm")
    return url, model


_EMBEDDERS: Mapping[str, Callable[[str], Embedder]] = {
    "sentence-transformers": _local_embedder,
    "litellm": _litellm_embedder,
    "openai-compatible": _endpoint_embedder,
    "gguf": _gguf_embedder,
}
_RERANKERS: Mapping[str, Callable[[str, bool], Reranker]] = {
    "sentence-transformers": _local_reranker,
    "litellm": _litellm_reranker,
    "openai-compatible": _endpoint_reranker,
}
_LOCAL = ("sentence-transformers", "gguf")
_WRITTEN = {
    "sentence-transformers": "sentence-transformers:NAME_OR_FOLDER",
    "litellm": "litellm:provider/model",
    "openai-compatible": "openai-compatible:URL#model",
    "gguf": "gguf:PATH",
}
