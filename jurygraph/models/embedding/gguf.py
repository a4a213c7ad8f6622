"""Embedders in a GGUF file, run in this process by llama.cpp."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

from jurygraph.errors import ConfigError
from jurygraph.models.backends.gguf import NO_LOG, Gguf, free_cores, library
from jurygraph.models.embedding.embedder import Embedder, Floats, by_index, unit_rows
from jurygraph.models.faults import Fault

_CONTEXT = 2048
"""Tokens of a text, at most: all of it is read at once, which takes memory."""

_TOO_LONG = "too large to process"
_NO_POOLING = "Pooling type 'none'"


class GgufEmbedder(Embedder):
    """Embeddings pooled as the GGUF file says, and by the mean where it says nothing.

    Raises `ConfigError` where it is no GGUF file that can be read, or xllamacpp is not installed.
    """

    def __init__(self, path: Path) -> None:
        file = Gguf(path)
        assert file.endpoint is not None
        self.name = file.model
        self.version = f"xllamacpp {library().__version__} {file.model} {file.endpoint}"
        self._path = path
        self._thread: ThreadPoolExecutor | None = None
        self._server: Any = None

    async def embed(self, texts: Sequence[str]) -> Floats:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="jurygraph-gguf-embedding")
        given = await asyncio.get_running_loop().run_in_executor(self._thread, self._embedded, list(texts))
        return unit_rows(by_index(given, len(texts), self.name), len(texts), self.name)

    def close(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()
        self._server = None

    def _embedded(self, texts: list[str]) -> list[tuple[int, Any]]:
        try:
            self._server = self._server or self._opened()
            answer = self._server.handle_embeddings({"input": texts})
        except ConfigError as error:
            raise Fault("unknown-model", str(error)) from None
        except TypeError as error:  # how the library refuses what is no UTF-8
            raise Fault("rejected", f"{self.name} cannot be asked this: {error}") from None
        if "error" in answer:
            raise _fault(self.name, answer["error"])
        return [(one["index"], one["embedding"]) for one in answer["data"]]

    def _opened(self) -> Any:
        """A server with the pooling of the file; one that has none refuses every request, this first one too."""
        xllamacpp = library()
        server = self._loaded(xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_UNSPECIFIED)
        error = server.handle_embeddings({"input": ["a"]}).get("error")
        if error is None or _NO_POOLING not in error["message"]:
            return server
        return self._loaded(xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN)

    def _loaded(self, pooling: Any) -> Any:
        xllamacpp = library()
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(self._path)
        parameters.embedding = True
        parameters.pooling_type = pooling
        parameters.n_parallel = 1
        parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = _CONTEXT
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = max(1, free_cores() - 1)
        parameters.api_keys = [token_urlsafe()]  # the engine listens on this machine, even if it is asked in process
        parameters.verbosity = NO_LOG
        try:
            return xllamacpp.Server(parameters)
        except RuntimeError:  # its message never says why
            wrong = f"gguf: {self._path}: llama.cpp cannot load it"
            raise ConfigError(f"{wrong}; it may be cut short, larger than the memory, or no embedder") from None


def _fault(name: str, error: dict[str, Any]) -> Fault:
    told = f"{name}: {error['message']}"
    if _TOO_LONG in error["message"]:
        return Fault("overflowed", told)
    return Fault("server" if error["code"] >= 500 else "rejected", told)
