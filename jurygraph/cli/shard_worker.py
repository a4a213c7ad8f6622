"""The process of one shard, as the command of `score --processes` starts it: `python -m jurygraph.cli.shard_worker`.

It is the command `jurygraph`, and it ends when its parent does. The parent holds the other end of its input, which is
closed however the parent ends, on every POSIX system and without a clock; whatever was recorded until then is kept.
"""

import os
import sys
import threading
from multiprocessing import active_children

from jurygraph.cli import main

_INTERRUPTED_EXIT_CODE = 130  # as in `streams`, which is imported later


def exit_with_parent() -> None:
    """End this process once its input is closed; what it runs finds an empty input instead."""
    parent = os.dup(0)
    null_device = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null_device, 0)
    os.close(null_device)
    threading.Thread(target=_wait_for_parent_end, args=[parent], daemon=True).start()


def _wait_for_parent_end(parent: int) -> None:
    os.read(parent, 1)  # nothing is ever written
    for process in active_children():  # isolated evaluators and maths
        process.kill()
    os._exit(_INTERRUPTED_EXIT_CODE)


if __name__ == "__main__":
    if not sys.stdin.isatty():
        exit_with_parent()
    main()
