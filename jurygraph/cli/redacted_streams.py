"""Redacted standard output and standard error: everything that Python writes there passes the redactor.

This covers results, messages, tracebacks, warnings, log records, uncaught errors in threads and event loops, and
output of user code, as text or bytes. It does not cover what child processes and C code write to the descriptors, nor
the bytes of an export, which are written as they are in the run.
"""

import io
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO, cast

from jurygraph.errors import InputError
from jurygraph.safety.redaction import Redactor, process_redactor

_MAX_BUFFERED = 1 << 16  # characters that are buffered before a line ends

_extra_secrets: set[str] = set()


def add_secrets(secrets: Sequence[str]) -> None:
    """Redact these secrets too, in addition to those of the environment: a model's key may have any name."""
    _extra_secrets.update(secrets)


def current_redactor() -> Redactor:
    """Return a redactor for the secrets known now: importing user code may have added some to the environment."""
    return process_redactor(_extra_secrets)


@contextmanager
def redirect_stdout_to_stderr() -> Iterator[None]:
    """Keep the output of user code, its child processes and C code out of a command's result."""
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


@contextmanager
def redacted_streams(for_good: bool) -> Iterator[None]:
    """Redact both streams; with `for_good` permanently, because exit handlers may write there too."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", RedactedStream(stream)) for stream in streams)
    if for_good:
        sys.__stdout__ = sys.stdout  # type: ignore[misc, assignment]
        sys.__stderr__ = sys.stderr  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, RedactedStream):
                stream.flush()
        if not for_good:
            sys.stdout, sys.stderr = streams


class RedactedStream:
    """A text stream that redacts whole lines, and on a flush also the text written so far."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._name = "standard error" if stream is sys.stderr else "standard output"
        self._is_full = False
        self._buffer: list[str] = []
        self._size = 0
        self._lock = threading.RLock()
        self.buffer = _RedactedBytes(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def encoding(self) -> str:
        """Return the encoding, but never ASCII: click bypasses an ASCII stream and writes to its bytes directly."""
        encoding = self._stream.encoding or "utf-8"
        return "utf-8" if encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968", "646") else encoding

    def write(self, text: str) -> int:
        """Buffer the text until a line ends. Text of one call is redacted together, because some keys span lines.

        Raises TypeError for bytes, like any text stream.
        """
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        with self._lock:
            self._buffer.append(text)
            self._size += len(text)
            if "\n" in text or self._size > _MAX_BUFFERED:
                self._emit()
        return len(text)

    def write_as_is(self, content: bytes) -> None:
        """Write bytes of an export without redaction, after the text written so far."""
        with self._lock:
            self.flush()
            with self._named_errors():
                self._stream.buffer.write(content)
                self._stream.buffer.flush()

    def writelines(self, lines: Sequence[str]) -> None:
        """Write the lines."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write the buffered text, including an unfinished line."""
        with self._lock:
            self._emit()
            with self._named_errors():
                self._stream.flush()

    def _emit(self) -> None:
        text = "".join(self._buffer)
        self._buffer = []
        self._size = 0
        if text:
            with self._named_errors():
                self._stream.write(current_redactor().redact_text(text))

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Say which stream cannot be written: a command that writes while it reads would blame a file that it reads.

        The error is raised once: nothing of what is left can be written, either.
        """
        try:
            yield
        except BrokenPipeError:  # of a reader such as `head`, which has seen enough: click ends the command quietly
            raise
        except OSError as error:
            if self._is_full:
                return
            self._is_full = True
            problem = f"cannot be written ({error.strerror}); send it to a place with room"
            raise InputError(f"{self._name}: {problem}") from None


class _RedactedBytes(io.RawIOBase):
    """Binary stream whose bytes are written to a redacted stream."""

    def __init__(self, stream: RedactedStream) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        """Write bytes as UTF-8 text; invalid bytes are escaped."""
        raw = bytes(content)
        self._stream.write(raw.decode("utf-8", "backslashreplace"))
        return len(raw)

    def flush(self) -> None:
        self._stream.flush()
