"""Drafts: nobody can guess or link to them, and those of killed writers are removed."""

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from jurygraph.runs.store.drafts import open_draft, remove_leftovers, write_atomically

KILLED = """
import os, signal, sys
from pathlib import Path
from jurygraph.runs.store.drafts import write_atomically
def lines():
    yield b"a text of somebody" * 10000
    {then}
write_atomically(Path(sys.argv[1]), lines())
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def drafts(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.endswith(".draft")]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_private_file_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "private", b"text")
        write_atomically(tmp_path / "usual", b"text", private=False)
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert mode(tmp_path / "private") == 0o600
    assert mode(tmp_path / "usual") == 0o666 & ~umask


def test_a_file_that_is_not_private_keeps_its_mode_when_it_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "rewards.csv").write_text("old")
    (tmp_path / "rewards.csv").chmod(0o640)
    write_atomically(tmp_path / "rewards.csv", b"new", private=False)
    assert ((tmp_path / "rewards.csv").read_text(), mode(tmp_path / "rewards.csv")) == ("new", 0o640)


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "config.yaml").symlink_to("mine")
    write_atomically(tmp_path / "config.yaml", b"theirs")
    assert ((tmp_path / "mine").read_text(), (tmp_path / "config.yaml").read_text()) == ("mine", "theirs")


def test_a_draft_has_another_name_each_time_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    with open_draft(tmp_path / "a") as one, open_draft(tmp_path / "b") as other:
        assert one.name != other.name
        assert {mode(one), mode(other)} == {0o600}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_draft_of_a_killed_writer_is_removed_by_the_next(tmp_path: Path) -> None:
    script = KILLED.format(then="os.kill(os.getpid(), signal.SIGKILL)")
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "a.jsonl")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(drafts(tmp_path)) == 1
    write_atomically(tmp_path / "b.jsonl", b"")
    assert drafts(tmp_path) == []


def test_a_draft_whose_writer_lives_stays(tmp_path: Path) -> None:
    script = KILLED.format(then="print(flush=True); sys.stdin.read()")
    words = [sys.executable, "-c", script, str(tmp_path / "a.jsonl")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        remove_leftovers(tmp_path)
        assert len(drafts(tmp_path)) == 1
        writer.communicate()
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_what_only_looks_like_a_draft_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    name = ".jurygraph-0123456789abcdef.draft"
    (tmp_path / name).symlink_to("mine")
    (tmp_path / ".jurygraph-notes.draft").write_text("mine")
    os.mkfifo(tmp_path / ".jurygraph-0123456789abcdee.draft")
    remove_leftovers(tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


def test_what_only_looks_like_a_draft_keeps_none_that_is_one(tmp_path: Path) -> None:
    (tmp_path / ".jurygraph-0000000000000000.draft").symlink_to("nowhere")
    leftover = tmp_path / ".jurygraph-0123456789abcdef.draft"
    leftover.write_text("words of a response")
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".jurygraph-0000000000000000.draft"]


def test_a_file_whose_folder_is_missing_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_atomically(tmp_path / "missing" / "seal.json", b"text")
    assert (caught.value.filename, caught.value.filename2) == (str(tmp_path / "missing" / "seal.json"), None)


def test_a_file_is_written_where_none_can_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    write_atomically(tmp_path / "seal.json", b"text")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("seal.json", b"text")]
