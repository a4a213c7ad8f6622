"""Runs that the command line makes."""

from tests.cli.conftest import project, run, scored

__all__ = ["project", "run", "scored"]
