"""sentence-transformers with tiny models that the test creates."""

import asyncio
import shutil
from pathlib import Path

import numpy as np
import pytest

from jurygraph.arrays import Floats
from jurygraph.models.embedding import open_embedder, open_reranker
from jurygraph.models.request import Fault
from tests.models.embedding import tiny

pytestmark = pytest.mark.heavy

TEXTS = ("the answer is 42", "the answer is 43", "zebra", "", "word " * 500, "解 😀 \x00")


def embed_texts(folder: Path, *texts: str) -> Floats:
    embedder = open_embedder(f"sentence-transformers:{folder}")
    try:
        return asyncio.run(embedder.embed(texts))
    finally:
        embedder.close()


def scores(folder: Path, query: str, *documents: str) -> Floats:
    reranker = open_reranker(f"sentence-transformers:{folder}")
    try:
        return asyncio.run(reranker.score(query, documents))
    finally:
        reranker.close()


def test_a_folder_gives_vectors_of_length_1(embedder_folder: Path) -> None:
    rows = embed_texts(embedder_folder, *TEXTS)
    assert (rows.shape, rows.dtype) == ((len(TEXTS), 32), np.float64)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1.0] * len(TEXTS))
    assert rows[0] @ rows[1] > rows[0] @ rows[2]


def test_the_vector_of_a_text_does_not_depend_on_other_texts_or_time(embedder_folder: Path) -> None:
    together = embed_texts(embedder_folder, *TEXTS)
    turned = embed_texts(embedder_folder, *TEXTS[::-1])
    assert together.tolist() == turned[::-1].tolist()
    assert embed_texts(embedder_folder, TEXTS[1]).tolist() == together[1:2].tolist()


def test_the_version_of_a_folder_contains_its_name_and_a_digest(
    embedder_folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(embedder_folder, tmp_path / embedder_folder.name)
    one, other = (
        open_embedder(f"sentence-transformers:{embedder_folder}"),
        open_embedder(f"sentence-transformers:{copy}"),
    )
    assert one.name == "tiny-embedder"
    assert one.version == other.version
    (copy / "config.json").write_text("{}")
    assert open_embedder(f"sentence-transformers:{copy}").version != one.version


def test_a_cross_encoder_returns_logits_whatever_activation_its_config_sets(
    cross_encoder_folder: Path,
) -> None:
    import torch
    from sentence_transformers import CrossEncoder

    documents = TEXTS[:3]
    raw = scores(cross_encoder_folder, "what is the answer", *documents)
    activated = CrossEncoder(str(cross_encoder_folder), activation_fn=torch.nn.Sigmoid()).predict(
        [("what is the answer", document) for document in documents]
    )
    assert 1 / (1 + np.exp(-raw)) == pytest.approx(activated, abs=1e-6)
    assert open_reranker(f"sentence-transformers:{cross_encoder_folder}").logits


def test_a_classifier_with_several_labels_is_refused_as_a_reranker(
    library: None, tmp_path: Path
) -> None:
    folder = tiny.write_cross_encoder(tmp_path / "classes", labels=3)
    with pytest.raises(Fault, match="gives 3 numbers for a document") as caught:
        scores(folder, "q", "a")
    assert (caught.value.kind, caught.value.cause) == ("unknown-model", "infrastructure")


@pytest.mark.parametrize(
    "file", ["model.safetensors", "tokenizer.json", "config.json", "modules.json"]
)
@pytest.mark.parametrize("content", [b"", b"\x07\x00", b"{", b"[1]", b"\xff" * 400])
def test_a_broken_folder_is_read_once_and_fails_every_request(
    embedder_folder: Path, tmp_path: Path, file: str, content: bytes
) -> None:
    folder = shutil.copytree(embedder_folder, tmp_path / "broken")
    (folder / file).write_bytes(content)
    embedder = open_embedder(f"sentence-transformers:{folder}")
    with pytest.raises(Fault, match=r"^broken: sentence-transformers cannot load it: ") as caught:
        asyncio.run(embedder.embed(["a"]))
    assert (caught.value.kind, caught.value.cause) == ("unknown-model", "infrastructure")
    shutil.copy(embedder_folder / file, folder / file)
    with pytest.raises(Fault, match="cannot load it"):
        asyncio.run(embedder.embed(["a"]))
    embedder.close()
    assert asyncio.run(embedder.embed(["a"])).shape == (1, 32)
    embedder.close()
