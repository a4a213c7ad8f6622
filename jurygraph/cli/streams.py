"""The two streams of a command, without secrets, and results without the output of user code; its exit codes."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from enum import IntEnum

from jurygraph.safety.redaction import Redactor, make_process_redactor


class ExitCode(IntEnum):
    SUCCESS = 0
    SOME_FAILED = 1
    WRONG_INPUT = 2
    INCONCLUSIVE = 3
    BUDGET_EXCEEDED = 4
    INTEGRITY_ERROR = 5
    INTERNAL_ERROR = 70
    INTERRUPTED = 130
    BROKEN_PIPE = 141


_extra_secrets: set[str] = set()


def add_secrets_to_redact(secrets: Sequence[str]) -> None:
    """Redact these secrets too, in addition to those of the environment: a model's key may have any name."""
    _extra_secrets.update(secrets)


def make_current_redactor() -> Redactor:
    """Return a redactor for the secrets known now: importing user code may have added some to the environment."""
    return make_process_redactor(_extra_secrets)


@contextmanager
def redirect_stdout_to_stderr() -> Iterator[None]:
    """Keep the output of user code, its child processes and C code out of a command's result."""
    saved_stdout_descriptor = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(saved_stdout_descriptor, 1)
        os.close(saved_stdout_descriptor)
