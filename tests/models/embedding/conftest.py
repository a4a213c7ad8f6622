"""Tiny models, loaded once: the library that runs them takes seconds to import."""

import warnings
from pathlib import Path

import pytest

from tests.models.embedding import tiny


@pytest.fixture(scope="session")
def library() -> None:
    """Import sentence-transformers without the warnings of its dependencies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(
            "sentence_transformers", reason="the extra `embeddings` is not installed"
        )


@pytest.fixture(scope="session")
def embedder_folder(library: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_embedder(tmp_path_factory.mktemp("models") / "tiny-embedder")


@pytest.fixture(scope="session")
def cross_encoder_folder(library: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_cross_encoder(tmp_path_factory.mktemp("models") / "tiny-ranker")
