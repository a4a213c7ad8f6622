"""The command line: `jurygraph COMMAND`. Results go to standard output, everything else to standard error."""

from jurygraph.cli.entry_point import main

__all__ = ["main"]
