"""Embedders and rerankers: in this process by sentence-transformers, or of a server. An evaluator's params name one.

sentence-transformers:NAME_OR_FOLDER    a model of the Hugging Face hub, or in a folder (extra `embeddings`)
sentence-transformers:package:NAME      the model in an installed package that is imported as NAME
openai-compatible:URL#model             a server with /embeddings (OpenAI's format) or /rerank (Jina's and Cohere's)
"""

import asyncio
import hashlib
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from jurygraph.arrays import Floats
from jurygraph.concurrency import split_into_batches
from jurygraph.errors import ConfigError
from jurygraph.models.factory import PACKAGED_MODEL_PREFIX, find_model_folder, split_model_url
from jurygraph.models.limits import RetryPolicy, call_with_retries
from jurygraph.models.request import Fault
from jurygraph.safety.redaction import describe_exception
from jurygraph.schema import CallsConfig
from jurygraph.schema.frozen_model import JsonFields, Number
from jurygraph.sources.files import sha256_of_file

if TYPE_CHECKING:
    from jurygraph.models.backends.openai_compatible import OpenAICompatibleBackend

T = TypeVar("T")

MAX_TEXTS_PER_REQUEST = 32  # most texts or documents in one request: many servers accept no more
REQUEST_TIMEOUT_SECONDS = 60.0  # seconds for one request to a server
RETRY_POLICY = RetryPolicy()

_MODEL_NAME_FORM_BY_KIND = {
    "sentence-transformers": "sentence-transformers:NAME_OR_FOLDER",
    "openai-compatible": "openai-compatible:URL#model",
}
_MAX_MESSAGE_LENGTH = 300
_LIBRARY_LOGGER_NAMES = ("huggingface_hub", "sentence_transformers", "transformers")
_DIGEST_DIGITS = 16  # of the digest of a folder's files, by name and content, in its version
_QWEN3_RERANKER_TEMPLATE = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
    '<Instruct>: {{ messages | selectattr("role", "eq", "system") | map(attribute="content") | first'
    ' | default("Given a web search query, retrieve relevant passages that answer the query") }}\n'
    '<Query>: {{ messages | selectattr("role", "eq", "query") | map(attribute="content") | first }}\n'
    '<Document>: {{ messages | selectattr("role", "eq", "document") | map(attribute="content") | first }}'
    '<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>{{ "\\n\\n" }}'
)
"""The prompt of Qwen3-Reranker's model card, as a chat template of the roles `query` and `document`."""

_StrictIndex = Annotated[int, Field(strict=True)]


class _EmbedderOrReranker(ABC):
    """`name` is the model's name, and `version` identifies the model and the library or server that runs it."""

    name: str
    version: str

    def close(self) -> None:
        """Unload the model; may be called more than once, and the model may be used again afterwards."""


class Embedder(_EmbedderOrReranker):
    """Compute a vector for every text. The vector of a text does not depend on the other texts."""

    @abstractmethod
    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return the unit vectors [N, D] of up to `MAX_TEXTS_PER_REQUEST` texts, in order; zero stays zero. Raises
        `Fault`."""


class Reranker(_EmbedderOrReranker):
    """Score documents by how well they answer a query. `logits` is True if a score is any number, not one in [0, 1]."""

    logits: bool

    @abstractmethod
    async def score(self, query: str, documents: Sequence[str]) -> Floats:
        """Return the raw scores [N] of up to `MAX_TEXTS_PER_REQUEST` documents, in order. Raises `Fault`."""


def open_embedder(spec: str) -> Embedder:
    """Return the embedder of this name, without loading or sending anything. Raises `ConfigError` if there is none."""
    kind, rest = _parse_model_spec("embedder", spec)
    if kind == "sentence-transformers":
        if rest.startswith(PACKAGED_MODEL_PREFIX):
            rest = str(find_model_folder(rest.removeprefix(PACKAGED_MODEL_PREFIX)))
        return SentenceTransformerEmbedder(rest)
    try:
        return RemoteEmbedder(*split_model_url(rest, "minilm"))
    except ValueError as error:
        raise ConfigError(f"embedder: {error}") from error


def open_reranker(spec: str, logits: bool = False) -> Reranker:
    """Return the reranker of this name, as `open_embedder` does; `logits` describes the scores of a server."""
    kind, rest = _parse_model_spec("ranker", spec)
    if kind == "sentence-transformers":
        return CrossEncoderReranker(rest)
    try:
        return RemoteReranker(*split_model_url(rest, "reranker"), logits)
    except ValueError as error:
        raise ConfigError(f"ranker: {error}") from error


def _parse_model_spec(role: str, spec: str) -> tuple[str, str]:
    kind, _, rest = spec.partition(":")
    if kind not in _MODEL_NAME_FORM_BY_KIND or not rest:
        # the name itself may be a key
        prefix = f"{kind}:" if kind in _MODEL_NAME_FORM_BY_KIND else "the name"
        raise ConfigError(
            f"{role}: {prefix} names no model; write one of {', '.join(_MODEL_NAME_FORM_BY_KIND.values())}"
        )
    if kind == "sentence-transformers" and "://" in rest:  # not repeated: it may contain a password
        raise ConfigError(
            f"{role}: {kind}: is not followed by an address; write {_MODEL_NAME_FORM_BY_KIND[kind]}"
        )
    return kind, rest


async def embed_distinct_texts(embedder: Embedder, texts: Sequence[str]) -> list[Floats | Fault]:
    """Return for each text its vector [D], or the fault in its place. A text that comes twice is embedded once.

    A fault of cause `infrastructure` applies to a whole batch; one that a text provoked, such as by its length, to that
    text alone. A zero vector of a text that is not blank is a fault. Raises the errors that end a run.
    """
    distinct_texts = list(dict.fromkeys(texts))
    rows = await send_in_batches(embedder.embed, distinct_texts)
    zero_vector_fault = Fault(
        "unreadable", f"{embedder.name}: gives a vector of nothing for a text that is not blank"
    )
    vectors = dict(zip(distinct_texts, rows, strict=True))
    for text, row in vectors.items():
        if not isinstance(row, Fault) and text.strip() and not np.any(row):
            vectors[text] = zero_vector_fault
    return [vectors[text] for text in texts]


async def send_in_batches(
    send: Callable[[Sequence[str]], Awaitable[Floats]],
    texts: Sequence[str],
    size: int = MAX_TEXTS_PER_REQUEST,
) -> list[Any | Fault]:
    """Return for each text its row of what `send` gives for a batch, or the fault in its place.

    A server refuses a batch and does not say for which of its texts: those are sent one by one then. Raises the errors
    that end a run.
    """
    rows: list[Any] = []
    for batch in split_into_batches(texts, size):
        try:
            rows.extend(await send(batch))  # `+=` would be that of NumPy
        except Fault as fault:
            fault.raise_if_run_ends()
            if fault.cause == "infrastructure" or len(batch) == 1:
                rows += [fault] * len(batch)
            else:
                rows += await send_in_batches(send, batch, size=1)
    return rows


def normalize_vectors(vectors: Any, count: int, name: str) -> Floats:
    """Return vectors [count, D] as float64, each divided by its length, or 0.

    Raises `Fault` unless there are `count` vectors of finite numbers of one length: then none is used.
    """
    problem = f"{name}: its embeddings are no vectors of finite numbers of one length"
    rows = _to_numbers(vectors, problem)
    if rows.ndim != 2 or rows.shape[0] != count or rows.shape[1] == 0:
        raise Fault("unreadable", f"{name}: expected {count} vectors, got the shape {rows.shape}")
    # scaled by the largest number first, so that no square overflows or underflows
    row_maxima = np.abs(rows).max(axis=1, keepdims=True)
    rows = rows / np.where(row_maxima > 0.0, row_maxima, 1.0)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0.0, length, 1.0))


def validate_relevance_scores(values: Any, count: int, name: str) -> Floats:
    """Return scores [count] as float64. Raises `Fault` unless there are `count` finite numbers: then none is used."""
    scores = _to_numbers(values, f"{name}: its scores are no finite numbers")
    if scores.shape != (count,):
        raise Fault(
            "unreadable", f"{name}: expected {count} scores, one per document, got {scores.shape}"
        )
    return scores


def _to_numbers(values: Any, problem: str) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):  # lists of different lengths, or no numbers
        raise Fault("unreadable", problem) from None
    if not np.isfinite(numbers).all():
        raise Fault("unreadable", problem)
    return numbers


class _IndexedEmbedding(TypedDict):
    index: _StrictIndex
    embedding: list[Number]


class _EmbeddingsReply(TypedDict):
    data: list[_IndexedEmbedding]


class _IndexedRelevanceScore(TypedDict):
    index: _StrictIndex
    relevance_score: Number


class _RankingReply(TypedDict):
    results: list[_IndexedRelevanceScore]


_EMBEDDINGS_REPLY_ADAPTER = TypeAdapter(_EmbeddingsReply)
_RANKING_REPLY_ADAPTER = TypeAdapter(_RankingReply)


class _RemoteModel(_EmbedderOrReranker):
    """A model of any server (vLLM, SGLang, llama.cpp, Infinity, OpenAI, …), by its URL.

    The key is read from JURYGRAPH_API_KEY, if one is needed. Raises `ValueError` as `OpenAICompatibleBackend` does. The
    connections of a request are closed with it, because evaluators are closed outside of a loop, where connections
    cannot be closed.
    """

    def __init__(self, url: str, model: str) -> None:
        self.name = model
        self._url = self._make_server_backend(url).endpoint
        self.version = f"openai-compatible {model} at {self._url}"

    async def _post(self, path: str, reply_adapter: TypeAdapter[T], fields: JsonFields) -> T:
        server = self._make_server_backend(self._url)
        try:
            reply = await server.post(path, {"model": self.name, **fields}, REQUEST_TIMEOUT_SECONDS)
        finally:
            await server.close()
        return server.parse_http_reply(reply, reply_adapter)

    def _sort_by_index(self, entries: Sequence[Any], field: str, count: int) -> list[Any]:
        """Return a field of the entries with the indices 0 to count - 1, which may arrive in any order."""
        indices = [entry["index"] for entry in entries]
        if sorted(indices) != list(range(count)):
            raise Fault(
                "unreadable",
                f"{self.name}: it answered for {indices}, not once for each of {count}",
            )
        return [entry[field] for entry in sorted(entries, key=itemgetter("index"))]

    def _make_server_backend(self, url: str) -> "OpenAICompatibleBackend":
        from jurygraph.models.backends.openai_compatible import (
            OpenAICompatibleBackend,  # loads aiohttp
        )

        key_variable = CallsConfig().key
        return OpenAICompatibleBackend(
            url, self.name, os.environ.get(key_variable) or None, key_variable=key_variable
        )


class RemoteEmbedder(_RemoteModel, Embedder):
    """The embeddings of a server's model: POST {url}/embeddings."""

    async def embed(self, texts: Sequence[str]) -> Floats:
        async def once() -> Floats:
            reply = await self._post(
                "embeddings",
                _EMBEDDINGS_REPLY_ADAPTER,
                {"input": list(texts), "encoding_format": "float"},
            )
            vectors = self._sort_by_index(reply["data"], "embedding", len(texts))
            return normalize_vectors(vectors, len(texts), self.name)

        return await call_with_retries(once, RETRY_POLICY)


class RemoteReranker(_RemoteModel, Reranker):
    """The relevance scores of a server's model: POST {url}/rerank.

    The format of Jina and Cohere defines scores in [0, 1], and vLLM follows it; llama.cpp returns logits, except for
    Qwen3-Reranker, whose score it gives as the probability of "yes".
    """

    def __init__(self, url: str, model: str, logits: bool = False) -> None:
        super().__init__(url, model)
        self.logits = logits

    async def score(self, query: str, documents: Sequence[str]) -> Floats:
        async def once() -> Floats:
            reply = await self._post(
                "rerank", _RANKING_REPLY_ADAPTER, {"query": query, "documents": list(documents)}
            )
            scores = self._sort_by_index(reply["results"], "relevance_score", len(documents))
            return validate_relevance_scores(scores, len(documents), self.name)

        return await call_with_retries(once, RETRY_POLICY)


class _SentenceTransformersModel(_EmbedderOrReranker):
    """A model by its name or folder, loaded at the first use, in its own thread, where one call runs at a time.

    After a failed load, which may take long, there is no new attempt until it is closed. Raises `ConfigError` if the
    extra is not installed, or if a name that looks like a folder is none.
    """

    def __init__(self, name_or_path: str) -> None:
        self.name, self.version = _identify_model(name_or_path)
        self._name_or_path = name_or_path
        self._thread: ThreadPoolExecutor | None = None
        self._model: Any = None
        self._error: str | None = None

    @abstractmethod
    def open(self) -> Any:
        """Return the model of sentence-transformers, imported here. May raise anything."""

    async def call(self, function: Callable[[Any], Any]) -> Any:
        """Call a function of the model. Raises `Fault`, of kind `unknown-model` if the model cannot be loaded."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="jurygraph-embedding")
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, lambda: function(self._loaded_model())
        )

    def close(self) -> None:  # after the calls under way have ended
        thread = self._thread
        self._thread = None
        if thread is not None:
            thread.shutdown()
        self._model = None
        self._error = None

    def _loaded_model(self) -> Any:
        if self._model is None and self._error is None:
            try:
                with _silence_model_loading():
                    self._model = self.open().eval()
            except Exception as error:  # noqa: BLE001 - a broken file may raise anything
                message = " ".join(describe_exception(error).split())
                self._error = f"{self.name}: sentence-transformers cannot load it: {message[:_MAX_MESSAGE_LENGTH]}"
        if self._error is not None:
            raise Fault("unknown-model", self._error)
        return self._model


class SentenceTransformerEmbedder(_SentenceTransformersModel, Embedder):
    """Sentence embeddings of a model; a text longer than its input is truncated."""

    def open(self) -> Any:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(self._name_or_path)

    async def embed(self, texts: Sequence[str]) -> Floats:
        # one text at a time: in a batch, padding would change a vector's last digits
        def embed(model: Any) -> Any:
            return model.encode(
                list(texts), batch_size=1, show_progress_bar=False, convert_to_numpy=True
            )

        return normalize_vectors(await self.call(embed), len(texts), self.name)


class CrossEncoderReranker(_SentenceTransformersModel, Reranker):
    """Logits of a cross-encoder: of its one label, or of "yes" against "no" for a language model that ranks.

    A model of Qwen3 whose folder brings no template for a query and a document, such as Qwen3-Reranker as it was first
    published or its conversion to a classifier, gets that of Qwen3-Reranker. Without one, sentence-transformers would
    refuse it, or score the bare texts.
    """

    logits = True

    def open(self) -> Any:
        from sentence_transformers import CrossEncoder
        from sentence_transformers.cross_encoder.modules import LogitScore

        model = CrossEncoder(self._name_or_path)
        if model.num_labels != 1:
            raise ValueError(
                f"it gives {model.num_labels} numbers for a document, and a reranker gives one"
            )
        if "document" in (model.tokenizer.chat_template or ""):
            return model
        if getattr(model[0].config, "model_type", None) == "qwen3":
            return CrossEncoder(
                self._name_or_path, processor_kwargs={"chat_template": _QWEN3_RERANKER_TEMPLATE}
            )
        if isinstance(model[-1], LogitScore):
            raise ValueError("it is a language model without a template for a query and a document")
        return model

    async def score(self, query: str, documents: Sequence[str]) -> Floats:
        def score(model: Any) -> Any:
            import torch

            pairs = [
                (query, _break_special_tokens(document, model.tokenizer.get_added_vocab()))
                for document in documents
            ]
            return model.predict(
                pairs, batch_size=1, show_progress_bar=False, activation_fn=torch.nn.Identity()
            )

        return validate_relevance_scores(await self.call(score), len(documents), self.name)


def _break_special_tokens(document: str, marks: Iterable[str]) -> str:
    """Return the document with a blank inside each of the model's own marks, so that it cannot end itself."""
    for mark in marks:
        document = document.replace(mark, f"{mark[0]} {mark[1:]}")
    return document


@contextmanager
def _silence_model_loading() -> Iterator[None]:
    """Suppress the progress bar of loading, and the log of every attempt to reach a hub."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    levels = {name: logging.getLogger(name).level for name in _LIBRARY_LOGGER_NAMES}
    for name in _LIBRARY_LOGGER_NAMES:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def _identify_model(name_or_path: str) -> tuple[str, str]:
    """Return the name of a model, and its version with that of the library, for a folder with a digest of its files."""
    try:
        library_version_text = f"sentence-transformers {version('sentence-transformers')}"
    except PackageNotFoundError:
        raise ConfigError(
            "sentence-transformers: is not installed; run pip install 'jurygraph[embeddings]'"
        ) from None
    folder = _find_model_folder(name_or_path)
    if folder is None:
        return name_or_path, f"{library_version_text} {name_or_path}"
    name = Path(name_or_path).resolve().name
    digest = hashlib.sha256()
    for path in sorted(file for file in folder.rglob("*") if file.is_file()):
        content_digest = sha256_of_file(path)
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content_digest}\n".encode())
    return name, f"{library_version_text} {name} sha256:{digest.hexdigest()[:_DIGEST_DIGITS]}"


def _find_model_folder(name_or_path: str) -> Path | None:
    """Return the folder of this name, None for a name on the hub, which is `name` or `owner/name`."""
    path = os.path.expanduser(name_or_path)
    if os.path.isdir(path):
        return Path(path)
    if (
        os.path.exists(path)
        or os.path.isabs(path)
        or name_or_path.startswith((".", "~"))
        or name_or_path.count("/") > 1
    ):
        raise ConfigError(
            f"sentence-transformers: {name_or_path}: there is no such folder; name one that holds a model"
        )
    return None
