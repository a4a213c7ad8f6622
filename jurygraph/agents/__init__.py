"""Roles, evaluators by code, derivers and specialists, and the path by which they and all judges ask a model."""
