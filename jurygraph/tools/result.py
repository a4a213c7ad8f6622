"""Results of tools as text."""

import inspect
import json
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from pydantic_core import to_jsonable_python


def to_json(value: Any) -> str:
    """Return compact JSON with sorted keys, whose words stand as they are."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def take_rows_that_fit(rows: Sequence[str], most: int) -> list[str]:
    """Return the first rows that have at most so many characters in all."""
    lengths = accumulate(map(len, rows))
    return [row for row, length in zip(rows, lengths, strict=True) if length <= most]


ROW_PREFIX_PATTERN = re.compile(r"^(?:[^\n]*?:)?\d+(?:\+\d+)?\| ", re.MULTILINE)
"""What a row such as `12| words` has before its words."""
MASK_CHARACTER = "\ufffc"
"""Stands for a character of the tool's own words, which nobody quotes: U+FFFC has no words itself."""


def mask_tool_words(result: str) -> str:
    """Return a result of the same length in which only the words of rows such as `12| words` are left.

    Headings and the places of rows are the tool's: to quote them would bear out anything.
    """
    lines = []
    for line in result.split("\n"):
        row = ROW_PREFIX_PATTERN.match(line)
        prefix_length = len(line) if row is None else row.end()
        lines.append(MASK_CHARACTER * prefix_length + line[prefix_length:])
    return MASK_CHARACTER.join(lines)


def to_result_text(value: Any) -> str:
    """Return what a tool of the user returned: text as it is, else JSON, or `str` of what has none.

    Raises TypeError for an error that was returned, and for what would have to be iterated.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, BaseException) or inspect.isgenerator(value) or inspect.isasyncgen(value):
        raise TypeError(f"the tool returned {type(value).__name__}, and no text")
    if isinstance(value, set | frozenset):  # whose order differs by process
        value = sorted(value, key=str)
    try:
        return to_json(to_jsonable_python(value, fallback=str))
    except (TypeError, ValueError, RecursionError):
        return str(value)
