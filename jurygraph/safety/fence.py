"""Fences around what somebody else wrote, so that nothing inside can pass for what stands outside."""

import hashlib

_MARK = 16


def fenced(text: str, name: str) -> str:
    """A text between two lines that say where it begins and ends.

    Their mark is a digest of the text, so that it is the same every time, and nobody can write a text that holds its
    own; should it be there all the same, another is drawn.
    """
    turn = 0
    while True:
        mark = hashlib.sha256(f"{turn} {name} {text}".encode("utf-8", "backslashreplace")).hexdigest()[:_MARK]
        if mark not in text:
            return f"<<<{name} {mark}\n{text}\n{name} {mark}>>>"
        turn += 1
