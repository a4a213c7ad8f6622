"""What a user's code prints is no part of a command's result."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout


@contextmanager
def kept_off_stdout() -> Iterator[None]:
    """Send it to standard error: what Python prints, and what child processes and C code write to the descriptor."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
