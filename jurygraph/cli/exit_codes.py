"""Exit codes of the command line."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit code of a command, and the reason for it."""

    DONE = 0
    SOME_FAILED = 1
    WRONG_INPUT = 2
    INCONCLUSIVE = 3
    BUDGET = 4
    INTEGRITY = 5
    BUG = 70
    INTERRUPTED = 130
    NOBODY_READS = 141
