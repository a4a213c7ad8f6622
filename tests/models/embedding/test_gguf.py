"""llama.cpp as an embedder, real: a tiny model whose vectors are noise."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from jurygraph.models.embedding.embedder import Embedder
from jurygraph.models.embedding.factory import open_embedder
from jurygraph.models.faults import Fault
from tests.models.tiny_gguf import write_tiny

pytestmark = pytest.mark.heavy

TEXTS = ("the answer is 42", "the answer is 43", "zebra", "解 😀")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="module")
def embedder(tiny: Path) -> Iterator[Embedder]:
    made = open_embedder(f"gguf:{tiny}")
    yield made
    made.close()


def test_a_model_without_pooling_is_pooled_by_the_mean(embedder: Embedder) -> None:
    rows = asyncio.run(embedder.embed(TEXTS))
    assert rows.shape == (4, 64)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1.0] * 4)
    assert rows[0] @ rows[1] > rows[0] @ rows[2]


def test_the_version_names_the_engine_and_the_digest_of_the_file(embedder: Embedder) -> None:
    assert embedder.name == "tiny.gguf"
    assert embedder.version.startswith("xllamacpp ")
    assert "sha256:" in embedder.version


def test_an_overlong_text_is_a_fault_of_the_response(embedder: Embedder) -> None:
    with pytest.raises(Fault, match="too large") as caught:
        asyncio.run(embedder.embed(["a", "b " * 3_000]))
    assert (caught.value.kind, caught.value.cause) == ("overflowed", "response")


def test_a_truncated_model_file_is_an_infrastructure_fault(tmp_path: Path, tiny: Path) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(tiny.read_bytes()[:3_000])
    made = open_embedder(f"gguf:{path}")
    with pytest.raises(Fault, match="cannot load it") as caught:
        asyncio.run(made.embed(["a"]))
    assert (caught.value.kind, caught.value.cause) == ("unknown-model", "infrastructure")
    made.close()
