"""Files are replaced at once, with the mode that they should have."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from jurygraph.runs.store.atomic_files import write_atomically


def file_mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


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
    assert ((tmp_path / "rewards.csv").read_text(), file_mode(tmp_path / "rewards.csv")) == (
        "new",
        0o640,
    )


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "config.yaml").symlink_to("mine")
    write_atomically(tmp_path / "config.yaml", b"theirs")
    assert ((tmp_path / "mine").read_text(), (tmp_path / "config.yaml").read_text()) == (
        "mine",
        "theirs",
    )


def test_a_failed_write_leaves_the_old_file_alone(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    (tmp_path / "rewards.csv").write_text("old")
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomically(tmp_path / "rewards.csv", broken())
    assert caught.value.filename == str(tmp_path / "rewards.csv")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [
        ("rewards.csv", "old")
    ]
