"""Whatever Python writes to the streams of the command line is redacted, line by line."""

import errno
import io
import subprocess
import sys
import threading

import click
import pytest

from jurygraph import InputError
from jurygraph.cli.redacted_streams import redacted_streams
from jurygraph.cli.render.text import print_result

SECRET = "sk-canary-0123456789abcdef"


@pytest.fixture(autouse=True)
def _a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_API_KEY", SECRET)


def test_a_line_written_in_pieces_is_redacted(capsys: pytest.CaptureFixture[str]) -> None:
    with redacted_streams(for_good=False):
        print("the key", SECRET[:9], sep=": ", end="")
        print(SECRET[9:], "is wrong")
        sys.stderr.writelines([f"{SECRET}\n", "second\n"])
        print("no end", SECRET, end="", file=sys.stderr)
    assert capsys.readouterr() == ("the key: [redacted] is wrong\n", "[redacted]\nsecond\nno end [redacted]")


def test_a_key_of_many_lines_is_redacted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    key = "-----BEGIN KEY-----\nabcdefgh12345678\nijklmnop87654321\n-----END KEY-----"
    monkeypatch.setenv("CANARY_API_KEY", key)
    with redacted_streams(for_good=False):
        print("the key:", key)
    assert capsys.readouterr().out == "the key: [redacted]\n"


def test_the_streams_are_restored(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    with redacted_streams(for_good=False):
        assert (sys.stdout, sys.stderr) != before
    assert (sys.stdout, sys.stderr) == before


def test_an_exception_of_a_thread_is_redacted(capsys: pytest.CaptureFixture[str]) -> None:
    with redacted_streams(for_good=False):
        threading.__excepthook__(threading.ExceptHookArgs((ValueError, ValueError(SECRET), None, None)))
    text = capsys.readouterr().err
    assert "ValueError: [redacted]" in text
    assert SECRET not in text


def ascii_stdout(monkeypatch: pytest.MonkeyPatch) -> io.TextIOWrapper:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    return stream


def written_to(stream: io.TextIOWrapper) -> bytes:
    content: bytes = stream.buffer.getvalue()  # type: ignore[attr-defined]
    return content


def test_bytes_are_redacted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = ascii_stdout(monkeypatch)
    with redacted_streams(for_good=False):
        assert sys.stdout.encoding == "utf-8"  # so that click writes to it, and not to the bytes below
        sys.stdout.buffer.write(SECRET[:9].encode())
        sys.stdout.buffer.write(SECRET[9:].encode())
        click.echo(f" {SECRET}\xff".encode("latin-1"))
        with pytest.raises(TypeError):
            sys.stdout.write(b"")  # type: ignore[call-overload]
    assert written_to(stream) == b"[redacted] [redacted]\\xff\n"


def test_an_export_is_written_unchanged_after_earlier_text(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = ascii_stdout(monkeypatch)
    with redacted_streams(for_good=False):
        print("first", end=" ")
        print_result(SECRET.encode())
    assert written_to(stream) == b"first " + SECRET.encode() + b"\n"


class Full(io.StringIO):
    """A stream on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def print_a_result() -> None:
    with redacted_streams(for_good=False):
        print("a result")


def test_a_stream_without_room_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error would otherwise be taken for one of the files that a command reads meanwhile."""
    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(InputError, match=r"^standard output: cannot be written \(No space left on device\); send"):
        print_a_result()


@pytest.mark.landing
def test_the_original_streams_are_redacted_in_a_process_of_its_own() -> None:
    script = """
import os, sys
from jurygraph.cli.redacted_streams import redacted_streams
with redacted_streams(for_good=True):
    sys.__stdout__.write(os.environ["CANARY_API_KEY"])
    sys.__stderr__.buffer.write(os.environ["CANARY_API_KEY"].encode())
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert (ended.stdout, ended.stderr) == (b"[redacted]", b"[redacted]")
