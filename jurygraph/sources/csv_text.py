"""Escape texts in CSV cells so that no spreadsheet runs them as a formula, and restore them on reading."""

import re

_BREAKS = r"\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029;"
"""Characters that a reader may take for the end of a cell: line breaks, tabs and semicolons."""

QUOTED_CHARACTERS = "\r\n\t\v\f\x1c\x1d\x1e\x85\u2028\u2029;"
"""The same as characters: a cell that contains one has to be quoted."""

_SIGNS = "=+\\-@＝＋－＠"
_FORMULA = re.compile(rf"^[ \0]*'*(?=[{_BREAKS}])|(?:^|[{_BREAKS}])[ \0]*'*(?=[{_SIGNS}])")
_NEUTRALISED = re.compile(rf"((?:^|[{_BREAKS}])[ \0]*'*)'(?=[{_SIGNS}])|(^[ \0]*'*)'(?=[{_BREAKS}])")


def escape_formulas(text: str) -> str:
    """Insert an apostrophe before characters with which a spreadsheet may begin a formula.

    These are `=`, `+`, `-` and `@` at the start of the text or after a break in it, and a break at the start.
    """
    return _FORMULA.sub(r"\g<0>'", text)


def unescape_formulas(text: str) -> str:
    """Return the text before it was neutralised."""
    return _NEUTRALISED.sub(lambda match: match[1] if match[2] is None else match[2], text)
