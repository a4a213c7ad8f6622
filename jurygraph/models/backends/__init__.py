"""Backends: each reaches a model in one way."""
