"""The two streams of a command, without secrets, and results without the output of user code; its exit codes."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from enum import IntEnum

from jurygraph.safety.redaction import Redactor, process_redactor


class ExitCode(IntEnum):
    DONE = 0
    SOME_FAILED = 1
    WRONG_INPUT = 2
    INCONCLUSIVE = 3
    BUDGET = 4
    INTEGRITY = 5
    BUG = 70
    INTERRUPTED = 130
    NOBODY_READS = 141


_extra_secrets: set[str] = set()


def add_secrets(secrets: Sequence[str]) -> None:
    """Redact these secrets too, in addition to those of the environment: a model's key may have any name."""
    _extra_secrets.update(secrets)


def current_redactor() -> Redactor:
    """Return a redactor for the secrets known now: importing user code may have added some to the environment."""
    return process_redactor(_extra_secrets)


@contextmanager
def redirect_stdout_to_stderr() -> Iterator[None]:
    """Keep the output of user code, its child processes and C code out of a command's result."""
    saved_stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(saved_stdout, 1)
        os.close(saved_stdout)
