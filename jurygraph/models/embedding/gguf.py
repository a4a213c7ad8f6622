"""Embedders in a GGUF file, run in this process by llama.cpp."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

from jurygraph.aggregation.arrays import Floats
from jurygraph.errors import ConfigError
from jurygraph.models.backends.gguf import NO_LOG, Gguf, free_cores, library, start_server
from jurygraph.models.embedding.embedder import Embedder, normalize_vectors, sort_by_index
from jurygraph.models.faults import Fault

_CONTEXT = 2048
"""Most tokens of a text: all of it is processed at once, which takes memory."""

_TOO_LONG = "too large to process"
_NO_POOLING = "Pooling type 'none'"


class GgufEmbedder(Embedder):
    """Embeddings pooled as the GGUF file specifies, and by the mean if it specifies nothing.

    Raises `ConfigError` if it is not a readable GGUF file, or if xllamacpp is not installed.
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
        entries = await asyncio.get_running_loop().run_in_executor(self._thread, self._embed_in_thread, list(texts))
        return normalize_vectors(sort_by_index(entries, len(texts), self.name), len(texts), self.name)

    def close(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()
        self._server = None

    def _embed_in_thread(self, texts: list[str]) -> list[tuple[int, Any]]:
        try:
            self._server = self._server or self._start_server()
            answer = self._server.handle_embeddings({"input": texts})
        except ConfigError as error:
            raise Fault("unknown-model", str(error)) from None
        except TypeError as error:  # raised by the library for text that is not valid UTF-8
            raise Fault("rejected", f"{self.name} rejected the request: {error}") from None
        if "error" in answer:
            raise _fault(self.name, answer["error"])
        return [(entry["index"], entry["embedding"]) for entry in answer["data"]]

    def _start_server(self) -> Any:
        """Start a server with the pooling of the file, or by the mean if the file has none.

        Without pooling, the server rejects every request, even the first.
        """
        xllamacpp = library()
        server = self._load(xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_UNSPECIFIED)
        error = server.handle_embeddings({"input": ["a"]}).get("error")
        if error is None or _NO_POOLING not in error["message"]:
            return server
        return self._load(xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN)

    def _load(self, pooling: Any) -> Any:
        xllamacpp = library()
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(self._path)
        parameters.embedding = True
        parameters.pooling_type = pooling
        parameters.n_parallel = 1
        parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = _CONTEXT
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = max(1, free_cores() - 1)
        parameters.api_keys = [token_urlsafe()]  # the engine listens on a local port, even if it is used in process
        parameters.verbosity = NO_LOG
        try:
            return start_server(parameters)
        except RuntimeError:  # its message contains no reason
            problem = f"gguf: {self._path}: llama.cpp cannot load it"
            raise ConfigError(f"{problem}; it may be cut short, larger than the memory, or no embedder") from None


def _fault(name: str, error: dict[str, Any]) -> Fault:
    message = f"{name}: {error['message']}"
    if _TOO_LONG in error["message"]:
        return Fault("overflowed", message)
    return Fault("server" if error["code"] >= 500 else "rejected", message)
