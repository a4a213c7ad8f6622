"""Runs commands in processes of their own, each forked from one process that has already imported the package.

Each command has its own working directory, environment and streams, and sees nothing of the commands before it; only
the time of the imports is saved. A test of what is imported, or of signals, starts a new process instead.
"""

import atexit
import gc
import json
import os
import pkgutil
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

JURYGRAPH = str(Path(sys.executable).with_name("jurygraph"))


def run_forked(*arguments: object, cwd: Path | None = None) -> tuple[int, str, str]:
    """Run a command and return its exit code and what it wrote to standard output and standard error."""
    with TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("out", "err")]
        request = {
            "arguments": [str(argument) for argument in arguments],
            "cwd": str(cwd or Path.cwd()),
            "environment": dict(os.environ),
            "streams": [str(path) for path in streams],
        }
        server = _start_server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        out, err = (path.read_text(encoding="utf-8") for path in streams)
        return code, out, err


@cache
def _start_server() -> subprocess.Popen[str]:
    server = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)
    return server


def _import_package() -> None:
    package = import_module("jurygraph")
    for module in pkgutil.walk_packages(package.__path__, "jurygraph."):
        if "templates" not in module.name and not module.name.endswith("__main__"):
            import_module(module.name)


def _serve() -> bool:
    """Fork a process for each request; return true in the process that runs it, and false at the end."""
    while line := sys.stdin.readline():
        if child := os.fork():
            _, status = os.waitpid(child, 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
        else:
            _become(json.loads(line))
            return True
    return False


def _become(request: dict[str, Any]) -> None:
    """Take over the arguments, the working directory, the environment and the streams of a request."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, path in enumerate((os.devnull, *request["streams"])):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv[:] = [JURYGRAPH, *request["arguments"]]


if __name__ == "__main__":
    sys.path[0] = str(Path(JURYGRAPH).parent)
    _import_package()
    gc.freeze()
    if _serve():
        from jurygraph.cli import main

        main()
