"""One writer at a time: a lock that lives as long as its file is open, so that no kill leaves it behind."""

import fcntl
import os
from pathlib import Path
from typing import IO

from jurygraph.errors import InputError


def hold(path: Path) -> IO[bytes]:
    """Lock a file that is never replaced, until it is closed. Raises `InputError` where another process holds it."""
    # Some file systems lock only what is open for writing; a complete run may be there for reading alone.
    file = path.open("r+b" if os.access(path, os.W_OK) else "rb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise InputError(f"{path.parent}: is being written by another process; wait until it ends") from None
    except OSError:
        pass  # a file system without locks: nothing can be told there
    return file
