"""The command line: `jurygraph COMMAND`. Results go to standard output, everything else to standard error."""

from jurygraph.cli.exit_codes import main

__all__ = ["main"]
