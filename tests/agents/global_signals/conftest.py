"""Tiny models of sentence-transformers, and a server that embeds and ranks."""

from tests.models.embedding.conftest import cross_encoder_folder, embedder_folder, library

__all__ = ["cross_encoder_folder", "embedder_folder", "library"]
