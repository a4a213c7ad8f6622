"""Embedders in a GGUF file, run in this process by llama.cpp."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jurygraph.arrays import Floats
from jurygraph.models.backends.gguf import Gguf, engine_fault, library, start_server
from jurygraph.models.embedding.embedder import Embedder, LocalModel, normalize_vectors, sort_by_index
from jurygraph.models.faults import Fault

_CONTEXT = 2048  # most tokens of a text: all of it is processed at once, which takes memory


class GgufEmbedder(LocalModel, Embedder):
    """Embeddings pooled as the GGUF file specifies, and by the mean if it specifies nothing.

    Raises `ConfigError` if it is not a readable GGUF file, or if xllamacpp is not installed.
    """

    def __init__(self, path: Path) -> None:
        file = Gguf(path)
        self.name = file.model
        self.version = f"xllamacpp {library().__version__} {file.model} {file.endpoint}"
        self._path = path

    async def embed(self, texts: Sequence[str]) -> Floats:
        def embed(server: Any) -> Any:
            try:
                return server.handle_embeddings({"input": list(texts)})
            except TypeError as error:  # raised by the library for text that is not valid UTF-8
                raise Fault("rejected", f"{self.name} rejected the request: {error}") from None

        answer = await self.call(embed)
        if "error" in answer:
            raise engine_fault(answer["error"], self.name)
        entries = [(entry["index"], entry["embedding"]) for entry in answer["data"]]
        return normalize_vectors(sort_by_index(entries, len(texts), self.name), len(texts), self.name)

    def load(self) -> Any:
        """Start a server with the pooling of the file, or by the mean if it has none, without which it rejects all."""
        pooling = library().llama_pooling_type
        settings: dict[str, Any] = dict.fromkeys(("n_ctx", "n_batch", "n_ubatch"), _CONTEXT)
        settings |= {"embedding": True, "n_parallel": 1}
        hint = "larger than the memory, or no embedder"
        server = start_server(self._path, hint, pooling_type=pooling.LLAMA_POOLING_TYPE_UNSPECIFIED, **settings)
        error = server.handle_embeddings({"input": ["a"]}).get("error")
        if error is None or "Pooling type 'none'" not in error["message"]:
            return server
        return start_server(self._path, hint, pooling_type=pooling.LLAMA_POOLING_TYPE_MEAN, **settings)
