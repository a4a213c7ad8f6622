"""Run the shards of a command: as processes of this machine, or as tasks of Ray on many machines.

A shard is the command `jurygraph score --shard I/N` in a folder of its own, which resumes by itself. So an engine
starts commands and tells how they ended; nothing else passes between them and this process.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from jurygraph.cli.streams import ExitCode
from jurygraph.errors import InputError

_SHARD_STOP_SECONDS = 12.0
"""A command that was interrupted ends within 8 seconds by itself."""
_RAY_START_ATTEMPTS = 2
_RAY_START_SECONDS = 150.0
"""Time for both attempts; Ray's own limit on one is a minute, and a start that hangs has none."""
_RAY_TASK_RETRIES = 3
_RAY_SOCKET_FOLDER = "/tmp"
"""Ray puts sockets into a folder below it, whose paths may have 107 bytes: that of TMPDIR may be too long."""


class ShardCommand(NamedTuple):
    """A command that scores a shard into a run; files next to the run get its output and its messages."""

    shard: str
    run: Path
    arguments: Sequence[str]

    @property
    def output(self) -> Path:
        return self.run.with_name(f"{self.run.name}.json")

    @property
    def messages(self) -> Path:
        return self.run.with_name(f"{self.run.name}.log")

    @property
    def last_message(self) -> str:
        lines = self.messages.read_text(errors="replace").splitlines()
        errors = [line for line in lines if line.startswith("error: ")]
        return ["ended without a message", *lines, *errors][-1]


def _start_process(command: ShardCommand, folder: Path) -> subprocess.Popen[bytes]:
    """Start a command that ends when this process does, in a group of its own, which Ctrl-C does not reach."""
    arguments = [sys.executable, "-m", "jurygraph.cli.shard_worker", *command.arguments]
    with (
        (folder / command.output).open("wb") as output,
        (folder / command.messages).open("wb") as messages,
    ):
        return subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=messages,
            cwd=folder,
            process_group=0,
        )


def _interrupt_processes(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.send_signal(signal.SIGINT)
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_SHARD_STOP_SECONDS)


def _kill_process(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None, "it is the pipe that tells of this process"
    process.stdin.close()
    process.kill()
    process.wait()


class LocalShardEngine:
    """Runs each command in a process of this machine, all at once."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, commands: Sequence[ShardCommand]) -> None:
        for command in commands:
            self._processes.append(_start_process(command, Path.cwd()))

    def wait(self, seconds: float) -> list[int | None]:
        """Wait until a command ends, at most so many seconds.

        Return the exit code of each command: None while it runs, and a negative one if it was killed.
        """
        running_processes = [process for process in self._processes if process.poll() is None]
        if running_processes:
            with suppress(subprocess.TimeoutExpired):
                running_processes[0].wait(seconds)
        return [process.poll() for process in self._processes]

    def interrupt(self) -> None:
        """Let all commands end in good order, as Ctrl-C does, and wait for that."""
        _interrupt_processes([process for process in self._processes if process.poll() is None])

    def close(self) -> None:
        """End whatever still runs."""
        for process in self._processes:
            _kill_process(process)


def run_shard_command(command: ShardCommand, folder: Path) -> int:
    """Run a command in a worker of Ray, and return its exit code. Cancelled, it ends in good order."""
    process = _start_process(command, folder)
    try:
        return process.wait()
    except BaseException:
        _interrupt_processes([process])
        raise
    finally:
        _kill_process(process)


class RayShardEngine:
    """Runs each command as a task of Ray, on the machines of a cluster that share the folders of this one.

    A task whose worker or machine is lost is repeated elsewhere, where its run resumes; but none is with
    `has_request_limits`, because a repeated command would have the whole of its limits again.
    """

    def __init__(self, address: str | None, has_request_limits: bool) -> None:
        """Connect to the cluster at an address, or start one on this machine. Raises `InputError` if that fails."""
        try:
            import ray
        except ImportError:
            raise InputError(
                "--engine ray: Ray is not installed; install it: pip install 'jurygraph[ray]'"
            ) from None
        self._ray: Any = ray
        self._retries = 0 if has_request_limits else _RAY_TASK_RETRIES
        self._ray_tasks: list[Any] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._connect_to_ray(address)

    @property
    def core_count(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def _connect_to_ray(self, address: str | None) -> None:
        settings: dict[str, Any] = {"address": address}
        if address is None:
            self._folder = tempfile.TemporaryDirectory(prefix="jg", dir=_RAY_SOCKET_FOLDER)
            settings = {"address": "local", "_temp_dir": self._folder.name}
            settings["include_dashboard"] = False
        problem = ""
        # A machine that is too busy may start half a cluster and wait for the rest: then nothing else ends the command.
        watchdog_timer = threading.Timer(_RAY_START_SECONDS, _exit_without_ray)
        watchdog_timer.daemon = True
        watchdog_timer.start()
        try:
            for _ in range(_RAY_START_ATTEMPTS):
                try:
                    self._ray.init(log_to_driver=False, logging_level="error", **settings)
                    return
                except Exception as error:  # noqa: BLE001 - whatever Ray raises, there is no cluster
                    problem = f"{type(error).__name__}: {error}".splitlines()[0]
                    self._ray.shutdown()
        finally:
            watchdog_timer.cancel()
        self.close()
        raise InputError(
            f"--engine ray: Ray did not start or connect ({problem}); look after the cluster, "
            "or use --processes N"
        )

    def start(self, commands: Sequence[ShardCommand]) -> None:
        run = self._ray.remote(num_cpus=1, max_retries=self._retries)(run_shard_command)
        self._ray_tasks = [run.remote(command, Path.cwd()) for command in commands]

    def wait(self, seconds: float) -> list[int | None]:
        ended_tasks, _ = self._ray.wait(
            self._ray_tasks, num_returns=len(self._ray_tasks), timeout=seconds
        )
        return [
            self._read_exit_code(task) if task in ended_tasks else None for task in self._ray_tasks
        ]

    def _read_exit_code(self, task: Any) -> int:
        try:
            code: int = self._ray.get(task)
            return code
        except self._ray.exceptions.RayError:
            return -signal.SIGKILL  # its worker was lost, each time

    def interrupt(self) -> None:
        for task in self._ray_tasks:
            self._ray.cancel(task)
        self._ray.wait(
            self._ray_tasks, num_returns=len(self._ray_tasks), timeout=_SHARD_STOP_SECONDS
        )

    def close(self) -> None:
        self._ray.shutdown()
        if self._folder is not None:
            with suppress(OSError):  # a process of the cluster may still write its log
                self._folder.cleanup()


def _exit_without_ray() -> None:
    os.write(
        2,
        b"error: --engine ray: Ray did not start within 150 s; use --processes N, or a less busy machine\n",
    )
    os._exit(ExitCode.WRONG_INPUT)
