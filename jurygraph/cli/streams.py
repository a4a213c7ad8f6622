"""Standard output and error of the command line, redacted: whatever Python writes there passes the redactor.

That holds for results, messages, tracebacks, warnings, log records, what threads and event loops say of errors that
nobody caught, and what a user's code prints, as text or as bytes. It does not hold for what child processes and C code
write to the descriptors, nor for bytes of an export, which are as they are in the run.
"""

import io
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from jurygraph.safety.redaction import Redactor

_MOST_HELD = 1 << 16  # characters of a line without an end

_given: set[str] = set()


def also_redact(secrets: Sequence[str]) -> None:
    """Strike out these, too, beside the secrets of the environment: the key of a model may have any name."""
    _given.update(secrets)


def known_redactor() -> "Redactor":
    """With the environment as it is now: what user code imports may add to it."""
    from jurygraph.safety.known_secrets import process_redactor

    return process_redactor(_given)


@contextmanager
def redacted_streams(for_good: bool) -> Iterator[None]:
    """Redact both streams; `for_good` leaves them so, as what runs at the end of the process may write there, too."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", RedactedStream(stream)) for stream in streams)
    if for_good:
        sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, RedactedStream):
                stream.flush()
        if not for_good:
            sys.stdout, sys.stderr = streams


class RedactedStream:
    """A text stream that redacts whole lines, and what was written when it is flushed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._held: list[str] = []
        self._size = 0
        self._lock = threading.RLock()
        self.buffer = _RedactedBytes(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def encoding(self) -> str:
        """Never ASCII: click would go round a stream that is, and write to the bytes below it."""
        known = self._stream.encoding or "utf-8"
        return "utf-8" if known.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968", "646") else known

    def write(self, text: str) -> int:
        """Hold the text until a line ends. What is written at once stays together: some keys have many lines.

        Raises TypeError for bytes, as any text stream does.
        """
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        with self._lock:
            self._held.append(text)
            self._size += len(text)
            if "\n" in text or self._size > _MOST_HELD:
                self._emit()
        return len(text)

    def write_as_is(self, content: bytes) -> None:
        """Write bytes of an export behind what was written so far, as they are in the run."""
        with self._lock:
            self.flush()
            self._stream.buffer.write(content)
            self._stream.buffer.flush()

    def writelines(self, lines: Sequence[str]) -> None:
        """Write the lines."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write what is held, the beginning of a line too."""
        with self._lock:
            self._emit()
            self._stream.flush()

    def _emit(self) -> None:
        held, self._held, self._size = "".join(self._held), [], 0
        if held:
            self._stream.write(known_redactor().text(held))


class _RedactedBytes(io.RawIOBase):
    """Bytes that are written to a redacted stream."""

    def __init__(self, stream: RedactedStream) -> None:
        self._stream = stream

    def writable(self) -> bool:
        """Bytes can be written, and not read."""
        return True

    def write(self, content: Any) -> int:
        """Write bytes as text of UTF-8; others are shown as escapes."""
        raw = bytes(content)
        self._stream.write(raw.decode("utf-8", "backslashreplace"))
        return len(raw)

    def flush(self) -> None:
        """Write what is held."""
        self._stream.flush()
