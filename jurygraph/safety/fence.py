"""Fences around untrusted text, so that nothing inside can pass for text outside."""

import hmac
import os
from dataclasses import dataclass, field
from itertools import count

MARK_LENGTH = 16
"""Length of a mark in hexadecimal digits."""

SHORT_MARK_LENGTH = 8
"""Length where tokens are dear: a guess at the mark of another text is right once in 2^32."""

_NO_KEY = b"jurygraph"


def project_key() -> bytes:
    """Return the project's key for the marks of fences from the environment; empty if there is none."""
    return os.fsencode(os.environ.get("JURYGRAPH_FENCE_KEY", ""))


@dataclass(frozen=True, slots=True)
class Fence:
    """Encloses texts in marks, and lists the marks in `marks`, in the order in which they were made.

    A mark is an HMAC of the project's `key` and the text. It is always the same, so that caches and recordings work,
    and it is not in the text, since no author can include the mark of a text in that text; if it is there by chance,
    another is made. Without a key, marks are still not in the texts, but anyone can compute the mark of a known text.
    Nothing is enclosed if the fence is not `is_enabled`. A mark has `mark_length` hexadecimal digits.
    """

    key: bytes = b""
    is_enabled: bool = True
    mark_length: int = MARK_LENGTH
    marks: list[str] = field(default_factory=list)

    def enclose(self, text: str, name: str) -> str:
        """Return the text between two lines that show where it begins and ends."""
        if not self.is_enabled:
            return text
        for turn in count():
            content = f"{turn} {name} {text}".encode("utf-8", "backslashreplace")
            mark = hmac.digest(self.key or _NO_KEY, content, "sha256").hex()[: self.mark_length]
            if mark not in text:
                break
        if mark not in self.marks:
            self.marks.append(mark)
        return f"<<<{name} {mark}\n{text}\n{name} {mark}>>>"
