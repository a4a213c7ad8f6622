"""Redact the literal values of secrets: as written, and in the encodings in which requests, replies and logs hold them.

This is for accidents, such as an error that repeats a header. Code that hides a key on purpose is trusted code.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from pydantic import JsonValue

MIN_SECRET_LENGTH = 8
"""Minimum number of characters of a secret: shorter values occur in texts by chance."""

REDACTED = "[redacted]"


class Redactor:
    """Redacts secrets in texts.

    Each secret is found as written, escaped as in JSON (also in JSON within JSON) and as in URLs, and within base64 at
    any place. Secrets of less than 8 characters are ignored.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        usable = [secret for secret in secrets if len(secret) >= MIN_SECRET_LENGTH]
        forms = {form for secret in usable for form in _forms(secret)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    @property
    def has_secrets(self) -> bool:
        """True if there is anything to redact."""
        return self._pattern is not None

    def has_secret_in(self, text: str | bytes) -> bool:
        """Return whether a text contains a secret."""
        if self._pattern is None:
            return False
        decoded = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        return self._pattern.search(decoded) is not None

    def redact_text(self, value: str) -> str:
        """Return the text with each secret replaced by `[redacted]`."""
        return value if self._pattern is None else self._pattern.sub(REDACTED, value)

    def redact_json(self, value: "JsonValue") -> "JsonValue":
        """Return a JSON value with all its strings redacted, including field names."""
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, dict):
            return {self.redact_text(name): self.redact_json(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.redact_json(inner) for inner in value]
        return value


def _forms(secret: str) -> Iterator[str]:
    yield secret
    for ascii_only in (True, False):
        escaped = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield escaped
        yield json.dumps(escaped)[1:-1]
    raw = secret.encode("utf-8", "surrogatepass")
    yield from (quote(raw), quote(raw, safe=""), quote_plus(raw))
    for before in range(3):  # base64 writes three bytes as four characters; a secret may begin at any of the three
        encoded = base64.b64encode(bytes(before) + raw).decode()
        first = -(-before * 8 // 6)  # characters that hold bits of what is before or after it are left out
        last = (before + len(raw)) * 8 // 6
        yield encoded[first:last]
        yield encoded[first:last].translate(_URL_SAFE)


_URL_SAFE = str.maketrans("+/", "-_")


def is_possible_source(redacted: str, text: str) -> bool:
    """Return whether a redacted text may come from a text, that is, has the same pieces in order, with gaps between."""
    first, *others = redacted.split(REDACTED)
    if not others or not text.startswith(first):
        return False
    *inner, last = others
    place = len(first)
    for piece in inner:
        start = text.find(piece, place)
        if start < 0:
            return False
        place = start + len(piece)
    return text[place:].endswith(last)
