"""Open the embedder or reranker that an evaluator's params name.

sentence-transformers:NAME_OR_FOLDER    a model of the Hugging Face hub, or in a folder (extra `embeddings`)
litellm:provider/model                  any provider of litellm
openai-compatible:URL#model             a server with /embeddings (OpenAI's format) or /rerank (Jina's and Cohere's)
gguf:PATH                               an embedder in a GGUF file, run in process by llama.cpp (extra `local`)
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from jurygraph.errors import ConfigError
from jurygraph.models.embedding.embedder import Embedder, Reranker
from jurygraph.models.embedding.remote import RemoteEmbedder, RemoteReranker, Server
from jurygraph.models.factory import PROVIDER_MODEL, split_url_and_model

T = TypeVar("T", Embedder, Reranker)
_MAX_LENGTH = 4_096
"""Most characters of a model's name; no path or address is longer."""


def open_embedder(spec: str) -> Embedder:
    """Return the embedder of this name, without loading or sending anything. Raises `ConfigError` if there is none."""
    return _open("embedder", spec, _EMBEDDERS)


def open_reranker(spec: str, logits: bool = False) -> Reranker:
    """Return the reranker of this name, as `open_embedder` does; `logits` describes the scores of a server."""
    return _open("ranker", spec, _rerankers(logits))


def _open(role: str, spec: str, kinds: Mapping[str, Callable[[str], T]]) -> T:
    if len(spec) > _MAX_LENGTH:
        raise ConfigError(f"{role}: the name has {len(spec):,} characters; name a model in {_MAX_LENGTH:,} or fewer")
    kind, _, rest = spec.partition(":")
    if kind not in kinds or not rest:
        choices = ", ".join(_USAGE[kind] for kind in kinds)
        prefix = f"{kind}:" if kind in _USAGE else "the name"  # the name itself may be a key
        raise ConfigError(f"{role}: {prefix} names no model; write one of {choices}")
    if kind in _LOCAL and "://" in rest:  # the message omits the address, which may contain a password
        raise ConfigError(f"{role}: {kind}: is not followed by an address; write {_USAGE[kind]}")
    try:
        return kinds[kind](rest)
    except ValueError as error:
        raise ConfigError(f"{role}: {error}") from error


def _local_embedder(rest: str) -> Embedder:
    from jurygraph.models.embedding.sentence_transformer import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(rest)


def _local_reranker(rest: str) -> Reranker:
    from jurygraph.models.embedding.sentence_transformer import CrossEncoderReranker

    return CrossEncoderReranker(rest)


def _gguf_embedder(rest: str) -> Embedder:
    from jurygraph.models.embedding.gguf import GgufEmbedder

    return GgufEmbedder(Path(rest))


def _litellm_server(rest: str) -> Server:
    from jurygraph.models.embedding.litellm import LiteLLMServer

    if not PROVIDER_MODEL.fullmatch(rest):
        raise ValueError("litellm: is followed by provider/model, such as openai/text-embedding-3-small")
    return LiteLLMServer(rest)


def _endpoint(rest: str) -> Server:
    from jurygraph.models.embedding.openai_compatible import Endpoint

    return Endpoint(*split_url_and_model(rest, "minilm"))


def _rerankers(logits: bool) -> Mapping[str, Callable[[str], Reranker]]:
    return {
        "sentence-transformers": _local_reranker,
        "litellm": lambda rest: RemoteReranker(_litellm_server(rest), logits),
        "openai-compatible": lambda rest: RemoteReranker(_endpoint(rest), logits),
    }


_EMBEDDERS: Mapping[str, Callable[[str], Embedder]] = {
    "sentence-transformers": _local_embedder,
    "litellm": lambda rest: RemoteEmbedder(_litellm_server(rest)),
    "openai-compatible": lambda rest: RemoteEmbedder(_endpoint(rest)),
    "gguf": _gguf_embedder,
}
_LOCAL = ("sentence-transformers", "gguf")
_USAGE = {
    "sentence-transformers": "sentence-transformers:NAME_OR_FOLDER",
    "litellm": "litellm:provider/model",
    "openai-compatible": "openai-compatible:URL#model",
    "gguf": "gguf:PATH",
}
