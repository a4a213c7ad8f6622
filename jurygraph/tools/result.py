"""Results of tools as text."""

import json
from typing import Any

from pydantic_core import to_jsonable_python


def to_json(value: Any) -> str:
    """Return compact JSON with sorted keys, whose words stand as they are."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def to_result(value: Any) -> str:
    """Return what a tool of the user returned: text as it is, else JSON, or `str` of what has none."""
    if isinstance(value, str):
        return value
    if isinstance(value, set | frozenset):  # whose order differs by process
        value = sorted(value, key=str)
    try:
        return to_json(to_jsonable_python(value, fallback=str))
    except (TypeError, ValueError, RecursionError):
        return str(value)
