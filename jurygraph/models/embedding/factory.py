"""Open the embedder or reranker that an evaluator's params name.

sentence-transformers:NAME_OR_FOLDER    a model of the Hugging Face hub, or in a folder (extra `embeddings`)
sentence-transformers:package:NAME      the model in an installed package that is imported as NAME
openai-compatible:URL#model             a server with /embeddings (OpenAI's format) or /rerank (Jina's and Cohere's)
"""

from jurygraph.errors import ConfigError
from jurygraph.models.embedding.embedder import Embedder, Reranker
from jurygraph.models.factory import split_url_and_model
from jurygraph.models.package_files import PREFIX, find_model_folder

_MAX_LENGTH = 4_096  # most characters of a model's name; no path or address is longer
_USAGE = {
    "sentence-transformers": "sentence-transformers:NAME_OR_FOLDER",
    "openai-compatible": "openai-compatible:URL#model",
}


def open_embedder(spec: str) -> Embedder:
    """Return the embedder of this name, without loading or sending anything. Raises `ConfigError` if there is none."""
    kind, rest = _parse_spec("embedder", spec)
    if kind == "sentence-transformers":
        from jurygraph.models.embedding.sentence_transformer import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder(
            str(find_model_folder(rest.removeprefix(PREFIX))) if rest.startswith(PREFIX) else rest
        )
    from jurygraph.models.embedding.remote import Endpoint, RemoteEmbedder

    try:
        return RemoteEmbedder(Endpoint(*split_url_and_model(rest, "minilm")))
    except ValueError as error:
        raise ConfigError(f"embedder: {error}") from error


def open_reranker(spec: str, logits: bool = False) -> Reranker:
    """Return the reranker of this name, as `open_embedder` does; `logits` describes the scores of a server."""
    kind, rest = _parse_spec("ranker", spec)
    if kind == "sentence-transformers":
        from jurygraph.models.embedding.sentence_transformer import CrossEncoderReranker

        return CrossEncoderReranker(rest)
    from jurygraph.models.embedding.remote import Endpoint, RemoteReranker

    try:
        return RemoteReranker(Endpoint(*split_url_and_model(rest, "reranker")), logits)
    except ValueError as error:
        raise ConfigError(f"ranker: {error}") from error


def _parse_spec(role: str, spec: str) -> tuple[str, str]:
    if len(spec) > _MAX_LENGTH:
        raise ConfigError(f"{role}: the name has {len(spec):,} characters; name a model in {_MAX_LENGTH:,} or fewer")
    kind, _, rest = spec.partition(":")
    if kind not in _USAGE or not rest:
        prefix = f"{kind}:" if kind in _USAGE else "the name"  # the name itself may be a key
        raise ConfigError(f"{role}: {prefix} names no model; write one of {', '.join(_USAGE.values())}")
    if kind == "sentence-transformers" and "://" in rest:  # not repeated: it may contain a password
        raise ConfigError(f"{role}: {kind}: is not followed by an address; write {_USAGE[kind]}")
    return kind, rest
