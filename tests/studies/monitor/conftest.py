"""Runs that the command line makes."""

from tests.cli.conftest import project, run, scored_folder, scored_once

__all__ = ["project", "run", "scored_folder", "scored_once"]
