"""Requests to language models and embedding models, and their replies."""
