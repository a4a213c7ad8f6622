"""Replacement files have unpredictable names, and those of killed writers are removed."""

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from jurygraph.runs.store.atomic_files import remove_leftovers, write_atomically

KILLED = """
import os, signal, sys
from pathlib import Path
from jurygraph.runs.store.atomic_files import write_atomically
def lines():
    yield b"a text of somebody" * 10000
    {then}
write_atomically(Path(sys.argv[1]), lines())
"""


def file_mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def find_replacements(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.endswith(".draft")]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_private_file_is_readable_by_its_owner_only(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "private", b"text")
        write_atomically(tmp_path / "usual", b"text", private=False)
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert file_mode(tmp_path / "private") == 0o600
    assert file_mode(tmp_path / "usual") == 0o666 & ~umask


def test_a_replaced_public_file_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "rewards.csv").write_text("old")
    (tmp_path / "rewards.csv").chmod(0o640)
    write_atomically(tmp_path / "rewards.csv", b"new", private=False)
    assert ((tmp_path / "rewards.csv").read_text(), file_mode(tmp_path / "rewards.csv")) == ("new", 0o640)


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "config.yaml").symlink_to("mine")
    write_atomically(tmp_path / "config.yaml", b"theirs")
    assert ((tmp_path / "mine").read_text(), (tmp_path / "config.yaml").read_text()) == ("mine", "theirs")


@pytest.mark.landing
def test_the_replacement_file_of_a_killed_writer_is_removed_by_the_next_one(tmp_path: Path) -> None:
    script = KILLED.format(then="os.kill(os.getpid(), signal.SIGKILL)")
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "a.jsonl")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(find_replacements(tmp_path)) == 1
    write_atomically(tmp_path / "b.jsonl", b"")
    assert find_replacements(tmp_path) == []


@pytest.mark.landing
def test_the_replacement_file_of_a_running_writer_is_kept(tmp_path: Path) -> None:
    script = KILLED.format(then="print(flush=True); sys.stdin.read()")
    words = [sys.executable, "-c", script, str(tmp_path / "a.jsonl")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        remove_leftovers(tmp_path)
        assert len(find_replacements(tmp_path)) == 1
        writer.communicate()
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_replacement_files_are_removed_next_to_lookalikes(tmp_path: Path) -> None:
    (tmp_path / ".jurygraph-0000000000000000.draft").symlink_to("nowhere")
    leftover = tmp_path / ".jurygraph-0123456789abcdef.draft"
    leftover.write_text("words of a response")
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".jurygraph-0000000000000000.draft"]


def test_a_file_is_written_without_support_for_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    write_atomically(tmp_path / "seal.json", b"text")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("seal.json", b"text")]
