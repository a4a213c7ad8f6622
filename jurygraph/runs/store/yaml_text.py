"""Write plain values as YAML for people; ruamel.yaml takes twenty times as long, a third of a short run."""

import json
import re
from collections.abc import Iterator
from typing import Any

_PLAIN = re.compile(r"[A-Za-z][\w./-]*(?:[ :][\w./-]+)*", re.ASCII)
_READ_AS_OTHER = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
"""Words that YAML 1.1 or 1.2 reads as something else than a text."""


def to_yaml(mapping: dict[str, Any]) -> str:
    """Return a mapping of JSON values, which is not empty, as YAML in block style and in the given order."""
    return "".join(f"{line}\n" for line in _block_lines(mapping, ""))


def _block_lines(block: Any, indent: str) -> Iterator[str]:
    is_list = isinstance(block, list)
    entries = [("-", value) for value in block] if is_list else [(f"{_scalar(key)}:", block[key]) for key in block]
    for start, value in entries:
        if not isinstance(value, dict | list) or not value:
            yield f"{indent}{start} {_scalar(value)}"
            continue
        deeper = indent if isinstance(value, list) and not is_list else f"{indent}  "
        lines = _block_lines(value, deeper)
        yield f"{indent}{start} {next(lines).lstrip()}" if is_list else f"{indent}{start}"
        yield from lines


def _scalar(value: Any) -> str:
    """Return a value in one line; a text that YAML could read otherwise is quoted as in JSON, which is YAML, too."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _READ_AS_OTHER:
        return value
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and "." not in text:
        return text.replace("e", ".0e")  # YAML 1.1 reads 1e-05 as a text
    return "".join(letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in text)
