"""Fences around what somebody else wrote, so that nothing inside can pass for what stands outside."""

import hmac
import os
from dataclasses import dataclass, field
from itertools import count

MARK = 16
"""Letters of a mark."""


def project_key() -> bytes:
    """The project's key for the marks of fences, from the environment; empty where there is none."""
    return os.fsencode(os.environ.get("JURYGRAPH_FENCE_KEY", ""))


@dataclass(frozen=True, slots=True)
class Fence:
    """Sets texts between marks, and remembers which: `marks`, in the order in which they were drawn.

    A mark is an HMAC of the project's `key` and the text: the same every time, so that caches and recordings work, and
    in no text, since nobody can write one that holds its own; should it be there all the same, another is drawn.
    Without a key the marks are still in no text, but anybody can work out those of a text that is known.
    Nothing is set between marks where the fence is not `up`.
    """

    key: bytes = b""
    up: bool = True
    marks: list[str] = field(default_factory=list)

    def around(self, text: str, name: str) -> str:
        """The text between two lines that say where it begins and ends."""
        if not self.up:
            return text
        mark = self._mark(text, name)
        if mark not in self.marks:
            self.marks.append(mark)
        before, behind = fence_around(text, name)
        return f"{before}{mark}{behind}{mark}>>>"

    def _mark(self, text: str, name: str) -> str:
        """Return the first of the marks for this text that is not in it."""
        texts = (f"{turn} {name} {text}".encode("utf-8", "backslashreplace") for turn in count())
        marks = (hmac.digest(self.key or _NO_KEY, one, "sha256").hex()[:MARK] for one in texts)
        return next(mark for mark in marks if mark not in text)


_NO_KEY = b"jurygraph"


def fence_around(text: str, name: str) -> tuple[str, str]:
    """What stands before the mark and behind it in every fence around a text, whatever the mark."""
    return f"<<<{name} ", f"\n{text}\n{name} "
