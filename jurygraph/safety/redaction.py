"""The one point that secrets pass on their way to any record: struck out there, in whatever form they stand."""

import base64
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import re2
from pydantic import JsonValue

SHORTEST = 8
"""Characters that a value must have to be taken for a secret: shorter ones stand in texts by chance."""

_INSTEAD = "[redacted]"
_NAMED_SO = re.compile(r".*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|JWT|CREDENTIALS?)(?:_.*|$)", re.DOTALL)
"""Names that end in one of these words, or have it before a `_`, as AWS_BEARER_TOKEN_BEDROCK has."""

_ADDRESSES = ("_PROXY", "_URL", "_URI", "_DSN", "_BASE", "_ENDPOINT", "_HOST")
_MEMORY = 1 << 28  # for RE2: a few hundred secrets, whole private keys among them

_SPECIAL = {" ": rb"\+", "\\": rb"\\+"} | {
    char: rb"\\+" + letter for char, letter in zip("\b\f\n\r\t", (b"b", b"f", b"n", b"r", b"t"), strict=True)
}
"""How else a character is written where the rule for all of them does not say it."""

_ALPHABET = {ord("+"): rb"(?:[+-]|%2[bB])", ord("/"): rb"(?:[/_]|%2[fF]|\\+/)"}
"""The two characters in which the alphabets of base64 differ, as they stand in URLs and JSON too."""

_SHARED = rb"(?:[A-Za-z0-9+/_-]|%2[bBfF]|\\+/)?"
_PADDING = rb"(?:=|%3[dD]){0,2}"


def found_in(environment: Mapping[str, str]) -> list[str]:
    """Secrets among environment variables, by their names: keys, tokens, passwords; and the passwords within URLs."""
    found: dict[str, None] = {}
    for name, value in environment.items():
        if _NAMED_SO.fullmatch(name.upper()):
            found[value.strip()] = None
        elif name.upper().endswith(_ADDRESSES):
            found |= dict.fromkeys(_passwords(value))
    return [secret for secret in found if len(secret) >= SHORTEST]


def _passwords(address: str) -> set[str]:
    """The password in a URL, as it stands there and as it is meant."""
    try:
        password = urlsplit(address.strip()).password or ""
    except ValueError:
        return set()
    return {password, unquote(password)}


class Redactor:
    """Strikes secrets out of texts: as they are, URL-encoded, escaped as in JSON, in hexadecimal and within base64.

    Secrets of less than 8 characters are left alone. The time it takes grows with a text and no faster.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = [form for secret in sorted(set(secrets)) if len(secret) >= SHORTEST for form in _forms(secret)]
        self._pattern = _compiled(b"|".join(forms)) if forms else None

    def text(self, value: str) -> str:
        """The text with `[redacted]` where a secret stood."""
        if self._pattern is None:
            return value
        content = value.encode("utf-8", "surrogatepass")  # texts of others may hold half characters
        redacted: bytes = self._pattern.sub(lambda _: _INSTEAD.encode(), content)
        return redacted.decode("utf-8", "surrogatepass")

    def value(self, value: JsonValue) -> JsonValue:
        """A JSON value with every string in it redacted, names of fields too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self.value(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.value(inner) for inner in value]
        return value

    def exception(self, error: BaseException) -> str:
        """What an exception says, and those that led to it, the last first; without the lines of code."""
        said = ("".join(traceback.format_exception_only(one)).strip() for one in _chain(error))
        return self.text("\nbecause of ".join(said))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and what led to it, as Python tells it."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def _compiled(pattern: bytes) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes, so that half characters pass
    options.longest_match = True  # of secrets that contain each other, the longer
    options.max_mem = _MEMORY
    options.log_errors = False
    return re2.compile(pattern, options)


def _forms(secret: str) -> Iterator[bytes]:
    """Patterns of every form in which a secret may stand in a text."""
    raw = secret.encode("utf-8", "surrogatepass")
    yield b"".join(map(_character, secret))
    yield b"(?i:%s)" % raw.hex().encode()
    for before in range(3):
        yield _base64(raw, before)


def _character(char: str) -> bytes:
    """One character: as it is, escaped as in JSON or by Python, however often, or URL-encoded."""
    raw = char.encode("utf-8", "surrogatepass")
    plain = char.isascii() and char.isalnum()
    forms = [raw if plain else rb"\\*" + re2.escape(raw), _escaped(raw, rb"(?:%%|\\+x)(?i:%s)", 1)]
    forms.append(_escaped(char.encode("utf-16-be", "surrogatepass"), rb"\\+u(?i:%s)", 2))
    if char in _SPECIAL:
        forms.append(_SPECIAL[char])
    return b"(?:%s)" % b"|".join(forms)


def _escaped(raw: bytes, escape: bytes, size: int) -> bytes:
    """Bytes in hexadecimal, each `size` of them behind an escape."""
    return b"".join(escape % raw[at : at + size].hex().encode() for at in range(0, len(raw), size))


def _base64(raw: bytes, before: int) -> bytes:
    """Base64 of any text that has these bytes in it, behind `before` others that share a group of three with them.

    The first and last characters may be shared with what stands around, so that any may stand there.
    """
    encoded = base64.b64encode(bytes(before) + raw).rstrip(b"=")
    first = (0, 2, 3)[before]
    shared_last = (before + len(raw)) % 3 != 0
    inner = b"".join(_ALPHABET.get(char, bytes([char])) for char in encoded[first : len(encoded) - shared_last])
    return (_SHARED if before else b"") + inner + (_SHARED if shared_last else b"") + _PADDING
