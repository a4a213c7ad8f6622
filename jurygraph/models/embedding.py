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
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from jurygraph.arrays import Floats
from jurygraph.errors import ConfigError
from jurygraph.models.factory import PACKAGE_PREFIX, find_model_folder, split_url_and_model
from jurygraph.models.limits import RetryPolicy, call_with_retries
from jurygraph.models.request import Fault
from jurygraph.safety.redaction import process_redactor
from jurygraph.schema import CallsConfig
from jurygraph.schema.frozen_model import Number

if TYPE_CHECKING:
    from jurygraph.models.backends.openai_compatible import OpenAICompatible

T = TypeVar("T")

BATCH_SIZE = 32  # most texts or documents in one request: many servers accept no more
TIMEOUT_SECONDS = 60.0  # seconds for one request to a server
POLICY = RetryPolicy()

_MAX_LENGTH = 4_096  # most characters of a model's name; no path or address is longer
_MODEL_NAME_USAGE = {
    "sentence-transformers": "sentence-transformers:NAME_OR_FOLDER",
    "openai-compatible": "openai-compatible:URL#model",
}
_MAX_MESSAGE = 300
_LOGGERS = ("huggingface_hub", "sentence_transformers", "transformers")
_DIGEST_DIGITS = 16  # of the digest of a folder's files, by name and content, in its version
_QWEN3_TEMPLATE = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
    '<Instruct>: {{ messages | selectattr("role", "eq", "system") | map(attribute="content") | first'
    ' | default("Given a web search query, retrieve relevant passages that answer the query") }}\n'
    '<Query>: {{ messages | selectattr("role", "eq", "query") | map(attribute="content") | first }}\n'
    '<Document>: {{ messages | selectattr("role", "eq", "document") | map(attribute="content") | first }}'
    '<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>{{ "\\n\\n" }}'
)
"""The prompt of Qwen3-Reranker's model card, as a chat template of the roles `query` and `document`."""

_Index = Annotated[int, Field(strict=True)]


class _Model(ABC):
    """`name` is the model's name, and `version` identifies the model and the library or server that runs it."""

    name: str
    version: str

    def close(self) -> None:
        """Unload the model; may be called more than once, and the model may be used again afterwards."""


class Embedder(_Model):
    """Compute a vector for every text. The vector of a text does not depend on the other texts."""

    @abstractmethod
    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return the unit vectors [N, D] of up to `BATCH_SIZE` texts, in order; zero stays zero. Raises `Fault`."""


class Reranker(_Model):
    """Score documents by how well they answer a query. `logits` is True if a score is any number, not one in [0, 1]."""

    logits: bool

    @abstractmethod
    async def score(self, query: str, documents: Sequence[str]) -> Floats:
        """Return the raw scores [N] of up to `BATCH_SIZE` documents, in order. Raises `Fault`."""


def open_embedder(spec: str) -> Embedder:
    """Return the embedder of this name, without loading or sending anything. Raises `ConfigError` if there is none."""
    kind, rest = _parse_spec("embedder", spec)
    if kind == "sentence-transformers":
        folder = (
            find_model_folder(rest.removeprefix(PACKAGE_PREFIX))
            if rest.startswith(PACKAGE_PREFIX)
            else rest
        )
        return SentenceTransformerEmbedder(str(folder))
    try:
        return RemoteEmbedder(*split_url_and_model(rest, "minilm"))
    except ValueError as error:
        raise ConfigError(f"embedder: {error}") from error


def open_reranker(spec: str, logits: bool = False) -> Reranker:
    """Return the reranker of this name, as `open_embedder` does; `logits` describes the scores of a server."""
    kind, rest = _parse_spec("ranker", spec)
    if kind == "sentence-transformers":
        return CrossEncoderReranker(rest)
    try:
        return RemoteReranker(*split_url_and_model(rest, "reranker"), logits)
    except ValueError as error:
        raise ConfigError(f"ranker: {error}") from error


def _parse_spec(role: str, spec: str) -> tuple[str, str]:
    if len(spec) > _MAX_LENGTH:
        raise ConfigError(
            f"{role}: the name has {len(spec):,} characters; name a model in {_MAX_LENGTH:,} or fewer"
        )
    kind, _, rest = spec.partition(":")
    if kind not in _MODEL_NAME_USAGE or not rest:
        prefix = (
            f"{kind}:" if kind in _MODEL_NAME_USAGE else "the name"
        )  # the name itself may be a key
        raise ConfigError(
            f"{role}: {prefix} names no model; write one of {', '.join(_MODEL_NAME_USAGE.values())}"
        )
    if kind == "sentence-transformers" and "://" in rest:  # not repeated: it may contain a password
        raise ConfigError(
            f"{role}: {kind}: is not followed by an address; write {_MODEL_NAME_USAGE[kind]}"
        )
    return kind, rest


async def embed_each(embedder: Embedder, texts: Sequence[str]) -> list[Floats | Fault]:
    """Return for each text its vector [D], or the fault in its place. A text that comes twice is embedded once.

    A fault of cause `infrastructure` applies to a whole batch; one that a text provoked, such as by its length, to that
    text alone. A zero vector of a text that is not blank is a fault. Raises the errors that end a run.
    """
    vectors: dict[str, Floats | Fault] = {}
    distinct_texts = list(dict.fromkeys(texts))
    for start in range(0, len(distinct_texts), BATCH_SIZE):
        batch = distinct_texts[start : start + BATCH_SIZE]
        vectors |= zip(batch, await _embed_batch(embedder, batch), strict=True)
    return [vectors[text] for text in texts]


async def _embed_batch(embedder: Embedder, batch: Sequence[str]) -> list[Floats | Fault]:
    try:
        rows = await embedder.embed(batch)
    except Fault as fault:
        fault.raise_if_run_ends()
        if fault.cause == "infrastructure" or len(batch) == 1:
            return [fault] * len(batch)
        # A server refuses the batch and does not say for which of its texts.
        results: list[Floats | Fault] = []
        for text in batch:
            results += await _embed_batch(embedder, [text])
        return results
    empty_fault = Fault(
        "unreadable", f"{embedder.name}: gives a vector of nothing for a text that is not blank"
    )
    vectors: list[Floats | Fault] = []
    for text, row in zip(batch, rows, strict=True):
        is_empty = text.strip() and not np.any(row)
        vectors.append(empty_fault if is_empty else row)
    return vectors


def normalize_vectors(vectors: Any, count: int, name: str) -> Floats:
    """Return vectors [count, D] as float64, each divided by its length, or 0.

    Raises `Fault` unless there are `count` vectors of finite numbers of one length: then none is used.
    """
    problem = f"{name}: its embeddings are no vectors of finite numbers of one length"
    rows = _to_numbers(vectors, problem)
    if rows.ndim != 2 or rows.shape[0] != count or rows.shape[1] == 0:
        raise Fault("unreadable", f"{name}: expected {count} vectors, got the shape {rows.shape}")
    # scaled by the largest number first, so that no square overflows or underflows
    largest_number = np.abs(rows).max(axis=1, keepdims=True)
    rows = rows / np.where(largest_number > 0.0, largest_number, 1.0)
    squares = np.square(rows).sum(axis=1, keepdims=True)
    length = np.sqrt(squares)
    return np.asarray(rows / np.where(length > 0.0, length, 1.0))


def validate_scores(values: Any, count: int, name: str) -> Floats:
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


class _Vector(TypedDict):
    index: _Index
    embedding: list[Number]


class _Vectors(TypedDict):
    data: list[_Vector]


class _Score(TypedDict):
    index: _Index
    relevance_score: Number


class _Scores(TypedDict):
    results: list[_Score]


_EMBEDDINGS_ADAPTER = TypeAdapter(_Vectors)
_RANKING_ADAPTER = TypeAdapter(_Scores)


class _Remote(_Model):
    """A model of any server (vLLM, SGLang, llama.cpp, Infinity, OpenAI, …), by its URL.

    The key is read from JURYGRAPH_API_KEY, if one is needed. Raises `ValueError` as `OpenAICompatible` does. The
    connections of a request are closed with it, because evaluators are closed outside of a loop, where connections
    cannot be closed.
    """

    def __init__(self, url: str, model: str) -> None:
        self.name = model
        self._url = self._backend(url).endpoint
        self.version = f"openai-compatible {model} at {self._url}"

    async def _post(self, path: str, adapter: TypeAdapter[T], fields: dict[str, Any]) -> T:
        server = self._backend(self._url)
        try:
            reply = await server.post(path, {"model": self.name, **fields}, TIMEOUT_SECONDS)
        finally:
            await server.close()
        return server.parse(reply, adapter)

    def _sort_by_index(self, found: Sequence[tuple[int, T]], count: int) -> list[T]:
        """Return the values for the indices 0 to count - 1; they may arrive in any order."""
        indices = [index for index, _ in found]
        if sorted(indices) != list(range(count)):
            problem = f"it answered for {indices}, not once for each of {count}"
            raise Fault("unreadable", f"{self.name}: {problem}")
        values = dict(found)
        return [values[index] for index in range(count)]

    def _backend(self, url: str) -> "OpenAICompatible":
        from jurygraph.models.backends.openai_compatible import OpenAICompatible  # loads aiohttp

        variable = CallsConfig().key
        return OpenAICompatible(
            url, self.name, os.environ.get(variable) or None, key_variable=variable
        )


class RemoteEmbedder(_Remote, Embedder):
    """The embeddings of a server's model: POST {url}/embeddings."""

    async def embed(self, texts: Sequence[str]) -> Floats:
        async def once() -> Floats:
            reply = await self._post(
                "embeddings",
                _EMBEDDINGS_ADAPTER,
                {"input": list(texts), "encoding_format": "float"},
            )
            found = [(entry["index"], entry["embedding"]) for entry in reply["data"]]
            return normalize_vectors(self._sort_by_index(found, len(texts)), len(texts), self.name)

        return await call_with_retries(once, POLICY)


class RemoteReranker(_Remote, Reranker):
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
                "rerank", _RANKING_ADAPTER, {"query": query, "documents": list(documents)}
            )
            found = [(entry["index"], entry["relevance_score"]) for entry in reply["results"]]
            return validate_scores(
                self._sort_by_index(found, len(documents)), len(documents), self.name
            )

        return await call_with_retries(once, POLICY)


class _SentenceTransformersModel(_Model):
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
                with _silence_loading():
                    self._model = self.open().eval()
            except Exception as error:  # noqa: BLE001 - a broken file may raise anything
                message = " ".join(
                    process_redactor().redact_text(f"{type(error).__name__}: {error}").split()
                )
                self._error = (
                    f"{self.name}: sentence-transformers cannot load it: {message[:_MAX_MESSAGE]}"
                )
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
                self._name_or_path, processor_kwargs={"chat_template": _QWEN3_TEMPLATE}
            )
        if isinstance(model[-1], LogitScore):
            raise ValueError("it is a language model without a template for a query and a document")
        return model

    async def score(self, query: str, documents: Sequence[str]) -> Floats:
        def score(model: Any) -> Any:
            import torch

            pairs = [
                (query, _without_marks(document, model.tokenizer.get_added_vocab()))
                for document in documents
            ]
            return model.predict(
                pairs, batch_size=1, show_progress_bar=False, activation_fn=torch.nn.Identity()
            )

        return validate_scores(await self.call(score), len(documents), self.name)


def _without_marks(document: str, marks: Iterable[str]) -> str:
    """Return the document with a blank inside each of the model's own marks, so that it cannot end itself."""
    for mark in marks:
        document = document.replace(mark, f"{mark[0]} {mark[1:]}")
    return document


@contextmanager
def _silence_loading() -> Iterator[None]:
    """Suppress the progress bar of loading, and the log of every attempt to reach a hub."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    levels = {name: logging.getLogger(name).level for name in _LOGGERS}
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def _identify_model(name_or_path: str) -> tuple[str, str]:
    """Return the name of a model, and its version with that of the library, for a folder with a digest of its files."""
    try:
        library = f"sentence-transformers {version('sentence-transformers')}"
    except PackageNotFoundError:
        problem = "is not installed; run pip install 'jurygraph[embeddings]'"
        raise ConfigError(f"sentence-transformers: {problem}") from None
    folder = _folder(name_or_path)
    if folder is None:
        return name_or_path, f"{library} {name_or_path}"
    name = Path(name_or_path).resolve().name
    digest = hashlib.sha256()
    for path in sorted(file for file in folder.rglob("*") if file.is_file()):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return name, f"{library} {name} sha256:{digest.hexdigest()[:_DIGEST_DIGITS]}"


def _folder(name_or_path: str) -> Path | None:
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
