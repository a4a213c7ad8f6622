"""Embedders and cross-encoders by sentence-transformers, in this process: from the Hugging Face hub or a folder."""

import hashlib
import logging
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from jurygraph.arrays import Floats
from jurygraph.errors import ConfigError
from jurygraph.models.embedding.embedder import Embedder, LocalModel, Reranker, normalize_vectors, validate_scores
from jurygraph.safety.redaction import process_redactor

_MAX_MESSAGE = 300
_LOGGERS = ("huggingface_hub", "sentence_transformers", "transformers")
_SILENT = logging.CRITICAL + 1
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


class _SentenceTransformersModel(LocalModel):
    """A model by its name or folder, loaded at the first use.

    Raises `ConfigError` if the extra is not installed, or if a name that looks like a folder is none.
    """

    def __init__(self, named: str) -> None:
        self.name, self.version = _identify(named)
        self._named = named

    def load(self) -> Any:
        try:
            with _silence_loading():
                return self.open().eval()
        except Exception as error:  # noqa: BLE001 - a broken file may raise anything
            message = " ".join(process_redactor().redact_text(f"{type(error).__name__}: {error}").split())
            problem = f"sentence-transformers cannot load it: {message[:_MAX_MESSAGE]}"
            raise ConfigError(f"{self.name}: {problem}") from None

    @abstractmethod
    def open(self) -> Any:
        """Return the model of sentence-transformers, imported here. May raise anything."""


class SentenceTransformerEmbedder(_SentenceTransformersModel, Embedder):
    """Sentence embeddings of a model; a text longer than its input is truncated."""

    def open(self) -> Any:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(self._named)

    async def embed(self, texts: Sequence[str]) -> Floats:
        def embed(model: Any) -> Any:  # one text at a time: in a batch, padding would change a vector's last digits
            return model.encode(list(texts), batch_size=1, show_progress_bar=False, convert_to_numpy=True)

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

        model = CrossEncoder(self._named)
        if model.num_labels != 1:
            raise ValueError(f"it gives {model.num_labels} numbers for a document, and a reranker gives one")
        if "document" in (model.tokenizer.chat_template or ""):
            return model
        if getattr(model[0].config, "model_type", None) == "qwen3":
            return CrossEncoder(self._named, processor_kwargs={"chat_template": _QWEN3_TEMPLATE})
        if isinstance(model[-1], LogitScore):
            raise ValueError("it is a language model without a template for a query and a document")
        return model

    async def score(self, query: str, documents: Sequence[str]) -> Floats:
        def score(model: Any) -> Any:
            import torch

            pairs = [(query, _without_marks(document, model.tokenizer.get_added_vocab())) for document in documents]
            return model.predict(pairs, batch_size=1, show_progress_bar=False, activation_fn=torch.nn.Identity())

        return validate_scores(await self.call(score), len(documents), self.name)


def _without_marks(document: str, marks: Iterable[str]) -> str:
    """Return the document with a blank inside each of the model's own marks, so that it cannot end itself."""
    for mark in marks:
        document = document.replace(mark, f"{mark[0]} {mark[1:]}")
    return document


@contextmanager
def _silence_loading() -> Iterator[None]:
    """Suppress the progress bar of loading, and the log of every attempt to reach a hub."""
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


def _identify(named: str) -> tuple[str, str]:
    """Return the name of a model, and its version with that of the library, for a folder with a digest of its files."""
    try:
        library = f"sentence-transformers {version('sentence-transformers')}"
    except PackageNotFoundError:
        problem = "is not installed; run pip install 'jurygraph[embeddings]'"
        raise ConfigError(f"sentence-transformers: {problem}") from None
    folder = _folder(named)
    if folder is None:
        return named, f"{library} {named}"
    name = Path(named).resolve().name
    digest = hashlib.sha256()
    for path in sorted(file for file in folder.rglob("*") if file.is_file()):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return name, f"{library} {name} sha256:{digest.hexdigest()[:_DIGEST_DIGITS]}"


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
