"""Keep output of user code out of a command's result."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout


@contextmanager
def redirect_stdout_to_stderr() -> Iterator[None]:
    """Redirect standard output to standard error: Python's prints, and output of child processes and C code."""
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
