"""Texts in CSV cells that no spreadsheet runs as a formula, and the same texts again when such a file is read."""

import re

_BREAKS = r"\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029;"
"""What a reader of lines or of other separators may take for the end of a cell: line breaks, tabs and semicolons."""

QUOTED = "\r\n\t\v\f\x1c\x1d\x1e\x85\u2028\u2029;"
"""The same, as characters: cells that hold one are to be quoted."""

_SIGNS = "=+\\-@＝＋－＠"
_FORMULA = re.compile(rf"^[ \0]*'*(?=[{_BREAKS}])|(?:^|[{_BREAKS}])[ \0]*'*(?=[{_SIGNS}])")
_NEUTRAL = re.compile(rf"((?:^|[{_BREAKS}])[ \0]*'*)'(?=[{_SIGNS}])|(^[ \0]*'*)'(?=[{_BREAKS}])")


def neutralise(text: str) -> str:
    """The text with an apostrophe before every `=`, `+`, `-` or `@` that begins it or follows a break in it, and before
    a break that begins it."""
    return _FORMULA.sub(r"\g<0>'", text)


def restore(text: str) -> str:
    """The text that was neutralised."""
    return _NEUTRAL.sub(lambda found: found[1] if found[2] is None else found[2], text)
