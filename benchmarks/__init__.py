"""Figures of speed, each with its target: `python -m benchmarks [NAME ...]`."""
