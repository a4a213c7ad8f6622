"""Evaluators, derivers and combiners, and the base classes for custom ones."""
