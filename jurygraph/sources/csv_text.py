"""Text in CSV cells: no spreadsheet runs it, and it comes back as it was."""

import re

CSV_QUOTED_CHARACTERS = "\r\n\t\v\f\x1c\x1d\x1e\x85\u2028\u2029;"
"""Characters that a reader may take for the end of a cell, which has to be quoted: line breaks, tabs and semicolons."""

_LINE_BREAK_PATTERN = f"[{CSV_QUOTED_CHARACTERS}]"
_FORMULA_SIGNS = "=+\\-@＝＋－＠﹦﹢﹣﹫"
_BLANKS_PATTERN = "[ \\0\u00a0\u1680\u180e\u2000-\u200f\u202f\u205f\u2060\u3000\ufeff]*"  # passed over by spreadsheets
_FORMULA_START_PATTERN = re.compile(
    rf"^{_BLANKS_PATTERN}'*(?={_LINE_BREAK_PATTERN})|(?:^|{_LINE_BREAK_PATTERN}){_BLANKS_PATTERN}'*(?=[{_FORMULA_SIGNS}])"
)
_NEUTRALISED_FORMULA_PATTERN = re.compile(
    rf"((?:^|{_LINE_BREAK_PATTERN}){_BLANKS_PATTERN}'*)'(?=[{_FORMULA_SIGNS}])|(^{_BLANKS_PATTERN}'*)'(?={_LINE_BREAK_PATTERN})"
)


def escape_formulas(text: str) -> str:
    """Insert an apostrophe before characters with which a spreadsheet may begin a formula.

    These are `=`, `+`, `-` and `@` at the start of the text or after a break in it, and a break at the start.
    """
    return _FORMULA_START_PATTERN.sub(r"\g<0>'", text)


def unescape_formulas(text: str) -> str:
    return _NEUTRALISED_FORMULA_PATTERN.sub(r"\1\2", text)
