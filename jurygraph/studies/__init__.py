"""Experiments over juries and runs: what a judge withstands, measured."""
