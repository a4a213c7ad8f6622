"""Embedders and cross-encoders by sentence-transformers, in this process: of the Hugging Face hub, or in a folder."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from jurygraph.errors import ConfigError
from jurygraph.models.embedding.embedder import Embedder, Floats, Reranker, all_scores, unit_rows
from jurygraph.models.faults import Fault
from jurygraph.safety.known_secrets import process_redactor

T = TypeVar("T")
_EXTRA = "sentence-transformers: is not installed; run pip install 'jurygraph[embeddings]'"
_LONGEST_MESSAGE = 300
_LOGGERS = ("huggingface_hub", "sentence_transformers", "transformers")
_SILENT = logging.CRITICAL + 1
_PIECE = 16
"""Hexadecimal digits of a folder's digest that its version tells."""


class SentenceTransformerEmbedder(Embedder):
    """Sentence embeddings of a model by its name or folder, loaded when they are first asked for.

    A text longer than the model reads counts by its beginning. Raises `ConfigError` where the extra is not installed,
    or what is named like a folder is none.
    """

    def __init__(self, named: str) -> None:
        self.name = _name(named)
        self.version = _version(named)
        self._model = _Loaded(self.name, lambda library: library.SentenceTransformer(named))

    async def embed(self, texts: Sequence[str]) -> Floats:
        return unit_rows(await self._model.ask(lambda model: _embedded(model, texts)), len(texts), self.name)

    def close(self) -> None:
        self._model.close()


class CrossEncoderReranker(Reranker):
    """Logits of a cross-encoder by its name or folder, loaded and refused as an embedder is."""

    logits = True

    def __init__(self, named: str) -> None:
        self.name = _name(named)
        self.version = _version(named)
        self._model = _Loaded(self.name, lambda library: _of_one_label(library.CrossEncoder(named)))

    async def score(self, query: str, documents: Sequence[str]) -> Floats:
        given = await self._model.ask(lambda model: _ranked(model, query, documents))
        return all_scores(given, len(documents), self.name)

    def close(self) -> None:
        self._model.close()


class _Loaded:
    """A model in a thread of its own, where one thing is worked on at a time: its tokenizer bears no other way.

    One that could not be loaded is not tried again, as that may take long, until it is closed.
    """

    def __init__(self, name: str, load: Callable[[Any], Any]) -> None:
        self._name = name
        self._load = load
        self._thread: ThreadPoolExecutor | None = None
        self._model: Any = None
        self._wrong: str | None = None

    async def ask(self, about: Callable[[Any], T]) -> T:
        """What the model says, once it is loaded. Raises `Fault`, `unknown-model` where it cannot be loaded."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="jurygraph-embedding")
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: about(self._opened()))

    def close(self) -> None:
        """Once what is under way has ended."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()
        self._model = self._wrong = None

    def _opened(self) -> Any:
        if self._model is None and self._wrong is None:
            try:
                self._model = _loaded(self._load)
            except Exception as error:  # noqa: BLE001 - a broken file raises what its reader likes
                told = " ".join(process_redactor().text(f"{type(error).__name__}: {error}").split())[:_LONGEST_MESSAGE]
                self._wrong = f"{self._name}: sentence-transformers cannot load it: {told}"
        if self._wrong is not None:
            raise Fault("unknown-model", self._wrong)
        return self._model


def _loaded(load: Callable[[Any], Any]) -> Any:
    import sentence_transformers

    with _quietly():
        return load(sentence_transformers).eval()


def _embedded(model: Any, texts: Sequence[str]) -> Any:
    """One text at a time: what a text gets differs in its last digits by how far its neighbours fill it up."""
    return model.encode(list(texts), batch_size=1, show_progress_bar=False, convert_to_numpy=True)


def _ranked(model: Any, query: str, documents: Sequence[str]) -> Any:
    import torch

    pairs = [(query, document) for document in documents]
    return model.predict(pairs, batch_size=1, show_progress_bar=False, activation_fn=torch.nn.Identity())


def _of_one_label(model: Any) -> Any:
    if model.num_labels != 1:
        raise ValueError(f"it gives {model.num_labels} numbers for a document, and a reranker gives one")
    return model


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the bar that is drawn while weights are loaded, and without what is logged of every try to reach a hub:
    what went wrong is told once, by the fault."""
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


def _name(named: str) -> str:
    return Path(named).resolve().name if _folder(named) else named


def _version(named: str) -> str:
    """Of the library and the model: of a folder, the digest of its files; of the hub, what is named."""
    try:
        library = f"sentence-transformers {version('sentence-transformers')}"
    except PackageNotFoundError:
        raise ConfigError(_EXTRA) from None
    folder = _folder(named)
    return f"{library} {_name(named)}" + (f" sha256:{_digest(folder)[:_PIECE]}" if folder else "")


def _folder(named: str) -> Path | None:
    """The folder that is named, and None for a name of the hub, which is `name` or `owner/name`."""
    try:
        path = Path(named).expanduser()
        if path.is_dir():
            return path
        there = path.exists()
    except (OSError, RuntimeError):
        wrong = "the name is too long for a folder's, or in the home of a user who is not known"
        raise ConfigError(f"sentence-transformers: {wrong}; name a folder that holds a model") from None
    if there or path.is_absolute() or named.startswith((".", "~")) or named.count("/") > 1:
        raise ConfigError(f"sentence-transformers: {named}: there is no such folder; name one that holds a model")
    return None


def _digest(folder: Path) -> str:
    """Of the names and contents of all files in a folder."""
    digest = hashlib.sha256()
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()
