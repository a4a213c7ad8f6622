"""The command line: `jurygraph COMMAND`. Results go to standard output, everything else to standard error."""

import atexit
import gc
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["main"]

_INTERRUPTED_EXIT_CODE = 130  # as in `streams`, which is imported later


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command and exit with its code; Ctrl-C ends it with code 130, also while modules are imported."""
    interrupt_handler = _CommandInterruptHandler()
    if argv is None:
        # Searching for cycles takes a sixth of a command's start, and each search through all modules a quarter second.
        gc.set_threshold(100_000, 50, 100)
        # A last search through all modules would find only what ends with the process.
        atexit.register(gc.freeze)
    if argv is None and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt_handler)
    try:
        # Imported lazily: that takes a noticeable time.
        from jurygraph.cli.app import main as run_command

        run_command(argv)
    except BaseException:
        # While the interpreter ends, a second Ctrl-C would kill it with another code.
        if interrupt_handler.was_interrupted:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_INTERRUPTED_EXIT_CODE)
        raise


class _CommandInterruptHandler:
    """The handler of Ctrl-C outside of long work: the first ends the command in good order, the second at once.

    Long work has a handler of its own (`interrupts.py`): it ends an event loop, which it must not do by raising, and
    its imports take long.
    """

    was_interrupted = False

    def __call__(self, signal_number: int, frame: Any) -> None:
        if self.was_interrupted:
            os._exit(_INTERRUPTED_EXIT_CODE)
        self.was_interrupted = True
        os.write(2, b"stopping; press again to stop now\n")
        raise KeyboardInterrupt
