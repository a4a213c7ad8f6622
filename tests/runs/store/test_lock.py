"""One writer at a time; a second one is refused, and the holder is named."""

import errno
import fcntl
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.store.folder import acquire_lock, release_lock


def test_a_second_writer_is_refused_and_the_holder_named(tmp_path: Path) -> None:
    lock_file = acquire_lock(tmp_path / "run.lock")
    holder = f"process {os.getpid()} on {socket.gethostname()} since "
    message = rf"{re.escape(f'{tmp_path}: is being written by {holder}')}\d.*\(if that is your own process: close"
    with pytest.raises(InputError, match=message):
        acquire_lock(tmp_path / "run.lock")
    release_lock(lock_file)
    assert (tmp_path / "run.lock").read_bytes() == b"", "a released lock names nobody"
    release_lock(acquire_lock(tmp_path / "run.lock"))


@pytest.mark.landing
def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    script = "import sys, os, signal; from pathlib import Path; from jurygraph.runs.store.folder import acquire_lock\n"
    script += "held = acquire_lock(Path(sys.argv[1])); os.kill(os.getpid(), signal.SIGKILL)"
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "run.lock")], check=False)
    assert "pid" in (tmp_path / "run.lock").read_text(), "it had been held"
    release_lock(acquire_lock(tmp_path / "run.lock"))


def test_a_lock_outlives_any_number_of_killed_holders(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    for _ in range(3):
        acquire_lock(path).close()  # as the end of a killed process: nothing is taken back
        assert path.read_bytes().startswith(b'{"pid"')
    path.write_bytes(bytes(80) + path.read_bytes())
    release_lock(acquire_lock(path))


@pytest.mark.parametrize("content", [b"", b"\xff"])
def test_a_lock_without_a_holder_names_another_process(tmp_path: Path, content: bytes) -> None:
    lock_file = acquire_lock(tmp_path / "run.lock")
    lock_file.truncate(0)
    (tmp_path / "run.lock").write_bytes(content)
    with pytest.raises(InputError, match="is being written by another process"):
        acquire_lock(tmp_path / "run.lock")
    release_lock(lock_file)


def test_a_lock_that_its_holder_has_just_removed_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.lock"

    def lock_after_removal(file: IO[str], how: int) -> None:
        monkeypatch.undo()
        path.unlink()
        fcntl.flock(file, how)

    monkeypatch.setattr("fcntl.flock", lock_after_removal)
    lock_file = acquire_lock(path)
    assert os.path.samestat(path.stat(), os.fstat(lock_file.fileno()))
    release_lock(lock_file)


def test_a_lock_that_is_not_jurygraphs_is_refused_and_never_emptied(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("kept")
    linked = tmp_path / "linked" / "run.lock"
    foreign = tmp_path / "foreign" / "run.lock"
    for path in (linked, foreign):
        path.parent.mkdir()
    linked.hardlink_to(notes)
    foreign.write_text('{"pid": 1}')
    for path in (linked, foreign):
        problem = f"{re.escape(str(path))}: has other content than a lock"
        with pytest.raises(InputError, match=f"{problem}.*; move it out"):
            acquire_lock(path)
    assert (notes.read_text(), foreign.read_text()) == ("kept", '{"pid": 1}')


def test_a_folder_without_write_access_or_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "missing"
    wrong = f"{missing}: cannot be written (No such file or directory); name a folder that you may write to with --out"
    with pytest.raises(InputError, match=f"^{re.escape(wrong)}$"):
        acquire_lock(missing / "run.lock")

    def refuse(file: object, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    wrong = f"{tmp_path}: cannot be locked there (No locks available); name a folder on a local disk with --out"
    with pytest.raises(InputError, match=f"^{re.escape(wrong)}$"):
        acquire_lock(tmp_path / "run.lock")


def test_a_full_disk_is_named_and_the_lock_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, content: bytes, offset: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "run.lock"
    with monkeypatch.context() as full:
        full.setattr("os.pwrite", refuse)
        problem = f"{path}: cannot be written (No space left on device); free some space, or name another folder"
        with pytest.raises(InputError, match=re.escape(problem)):
            acquire_lock(path)
    release_lock(acquire_lock(path))


def test_a_lock_is_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        release_lock(acquire_lock(tmp_path / "run.lock"))
    finally:
        os.umask(before)
    assert (tmp_path / "run.lock").stat().st_mode & 0o777 == 0o600


def test_a_system_without_posix_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(InputError, match="use WSL"):
        acquire_lock(tmp_path / "run.lock")
