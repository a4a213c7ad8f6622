"""Embedders and cross-encoders by sentence-transformers, in this process: from the Hugging Face hub or a folder."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from jurygraph.aggregation.arrays import Floats
from jurygraph.errors import ConfigError
from jurygraph.models.embedding.embedder import Embedder, Reranker, normalize_vectors, validate_scores
from jurygraph.models.faults import Fault
from jurygraph.safety.known_secrets import process_redactor

T = TypeVar("T")
_EXTRA = "sentence-transformers: is not installed; run pip install 'jurygraph[embeddings]'"
_MAX_MESSAGE = 300
_LOGGERS = ("huggingface_hub", "sentence_transformers", "transformers")
_SILENT = logging.CRITICAL + 1
_DIGEST_DIGITS = 16
"""Hexadecimal digits of a folder's digest in its version."""


class SentenceTransformerEmbedder(Embedder):
    """Sentence embeddings of a model by its name or folder, loaded at the first use.

    A text longer than the model's input is truncated. Raises `ConfigError` if the extra is not installed, or if a name
    that looks like a folder is none.
    """

    def __init__(self, named: str) -> None:
        self.name = _display_name(named)
        self.version = _version(named)
        self._model = _ModelThread(self.name, lambda library: library.SentenceTransformer(named))

    async def embed(self, texts: Sequence[str]) -> Floats:
        return normalize_vectors(await self._model.ask(lambda model: _embed(model, texts)), len(texts), self.name)

    def close(self) -> None:
        self._model.close()


class CrossEncoderReranker(Reranker):
    """Logits of a cross-encoder by its name or folder, with the loading and the errors of the embedder."""

    logits = True

    def __init__(self, named: str) -> None:
        self.name = _display_name(named)
        self.version = _version(named)
        self._model = _ModelThread(self.name, lambda library: _require_one_label(library.CrossEncoder(named)))

    async def score(self, query: str, documents: Sequence[str]) -> Floats:
        scores = await self._model.ask(lambda model: _score(model, query, documents))
        return validate_scores(scores, len(documents), self.name)

    def close(self) -> None:
        self._model.close()


class _ModelThread:
    """A model in its own thread, where one call runs at a time, because its tokenizer is not thread-safe.

    After a failed load, which may take long, there is no new attempt until it is closed.
    """

    def __init__(self, name: str, load: Callable[[Any], Any]) -> None:
        self._name = name
        self._load = load
        self._thread: ThreadPoolExecutor | None = None
        self._model: Any = None
        self._error: str | None = None

    async def ask(self, function: Callable[[Any], T]) -> T:
        """Load the model if needed, and return its result. Raises `Fault`, `unknown-model` if it cannot be loaded."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="jurygraph-embedding")
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: function(self._get_model()))

    def close(self) -> None:
        """Unload the model, after the calls under way have ended."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()
        self._model = self._error = None

    def _get_model(self) -> Any:
        if self._model is None and self._error is None:
            try:
                self._model = _load_model(self._load)
            except Exception as error:  # noqa: BLE001 - a broken file may raise anything
                message = " ".join(process_redactor().redact_text(f"{type(error).__name__}: {error}").split())[
                    :_MAX_MESSAGE
                ]
                self._error = f"{self._name}: sentence-transformers cannot load it: {message}"
        if self._error is not None:
            raise Fault("unknown-model", self._error)
        return self._model


def _load_model(load: Callable[[Any], Any]) -> Any:
    import sentence_transformers

    with _silence_loading():
        return load(sentence_transformers).eval()


def _embed(model: Any, texts: Sequence[str]) -> Any:
    """Embed one text at a time: in a batch, padding would change the last digits of a vector."""
    return model.encode(list(texts), batch_size=1, show_progress_bar=False, convert_to_numpy=True)


def _score(model: Any, query: str, documents: Sequence[str]) -> Any:
    import torch

    pairs = [(query, document) for document in documents]
    return model.predict(pairs, batch_size=1, show_progress_bar=False, activation_fn=torch.nn.Identity())


def _require_one_label(model: Any) -> Any:
    if model.num_labels != 1:
        raise ValueError(f"it gives {model.num_labels} numbers for a document, and a reranker gives one")
    return model


@contextmanager
def _silence_loading() -> Iterator[None]:
    """Suppress the progress bar of loading weights, and the log of every attempt to reach a hub.

    The fault reports the error once.
    """
    from transformers.utils import logging as drawing

    drawn = drawing.is_progress_bar_enabled()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    drawing.disable_progress_bar()
    for logger in loggers:
        logger.setLevel(_SILENT)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if drawn:
            drawing.enable_progress_bar()


def _display_name(named: str) -> str:
    return Path(named).resolve().name if _folder(named) else named


def _version(named: str) -> str:
    """Return the version of the library and the model: for a folder the digest of its files, for the hub the name."""
    try:
        library = f"sentence-transformers {version('sentence-transformers')}"
    except PackageNotFoundError:
        raise ConfigError(_EXTRA) from None
    folder = _folder(named)
    return f"{library} {_display_name(named)}" + (f" sha256:{_digest(folder)[:_DIGEST_DIGITS]}" if folder else "")


def _folder(named: str) -> Path | None:
    """Return the folder of this name, None for a name on the hub, which is `name` or `owner/name`."""
    try:
        path = Path(named).expanduser()
        if path.is_dir():
            return path
        exists = path.exists()
    except (OSError, RuntimeError):
        problem = "the name is too long for a folder's, or in the home of a user who is not known"
        raise ConfigError(f"sentence-transformers: {problem}; name a folder that holds a model") from None
    if exists or path.is_absolute() or named.startswith((".", "~")) or named.count("/") > 1:
        raise ConfigError(f"sentence-transformers: {named}: there is no such folder; name one that holds a model")
    return None


def _digest(folder: Path) -> str:
    """Return the digest of the names and contents of all files in a folder."""
    digest = hashlib.sha256()
    for path in sorted(file for file in folder.rglob("*") if file.is_file()):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()
