"""Redact secrets in texts, in whatever form they are written.

A text is compared in its plain form (`fold`: ASCII letters and digits in lower case), so that case, blanks, dashes,
dots, line breaks and invisible characters between the characters of a secret make no difference. Escapes (of JSON,
Python, URLs and HTML) are resolved first if a text has any. One RE2 search then finds all forms of all secrets, in time
linear in the length of the text.
"""

import base64
import re
from array import array
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pydantic import JsonValue

MIN_SECRET_LENGTH = 8
"""Minimum number of characters of a secret: shorter values occur in texts by chance."""

REDACTED = "[redacted]"
_MARK = REDACTED.encode()
_BARRIER = b"\xff" * len(_MARK)  # not a UTF-8 byte: no match spans text that is already redacted

_ALNUM = b"0123456789abcdefghijklmnopqrstuvwxyz"
_KEPT = _ALNUM + _ALNUM[10:].upper() + b"\xff"
_LOWER = bytes(range(256)).lower()
_DROPPED = bytes(byte for byte in range(256) if byte not in _KEPT)
_IS_KEPT = bytes(byte in _KEPT for byte in range(256))
_BASE64_ALPHABET = _KEPT[:-1] + b"+/-_"

_MAX_ESCAPE_LEVELS = 4  # levels of escapes within escapes
_MEMORY = 1 << 28  # memory limit of RE2, in bytes
_MIN_DISTINCT, _LONG_WORD, _LONG_NUMBER = 5, 12, 12
_MAX_SIMPLE_LENGTH = 256  # characters of a simple secret that are searched with escapes, since its pattern is large

_ESCAPE = re.compile(
    rb"%(?P<percent>[0-9A-Fa-f]{2})"
    rb"|(?P<backslashes>(?:\\\\)++)"
    rb"|\\u(?P<high>[dD][89abAB][0-9A-Fa-f]{2})\\u(?P<low>[dD][c-fC-F][0-9A-Fa-f]{2})"
    rb"|\\(?:x(?P<byte>[0-9A-Fa-f]{2})|u(?P<four>[0-9A-Fa-f]{4})|U(?P<eight>[0-9A-Fa-f]{8})|(?P<letter>[bfnrt\"'/]))"
    rb"|&(?:#(?P<decimal>[0-9]{1,7})|#[xX](?P<hex>[0-9A-Fa-f]{1,6})|(?P<entity>amp|quot|apos|lt|gt|nbsp));"
)
_LETTERS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_ENTITIES = {b"amp": b"&", b"quot": b'"', b"apos": b"'", b"lt": b"<", b"gt": b">", b"nbsp": b" "}

Span = tuple[int, int]


class _Form(NamedTuple):
    """An encoded form of a secret; flags tell if its first and last character also encode surrounding text."""

    first_shared: bool = False
    last_shared: bool = False


class Redactor:
    """Redacts secrets in texts.

    These forms of each secret are found: as written, with escapes (JSON, Python, URL, HTML), in hexadecimal, and within
    base64 and base32; and, unless it is too simple (see `_is_distinctive`), in upper or lower case, reversed, and with
    other characters between its letters and digits. Secrets of less than 8 characters are ignored.

    Redacting a text twice gives the same text as redacting it once.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        usable = dict.fromkeys(secret for secret in secrets if len(secret) >= MIN_SECRET_LENGTH)
        self._forms: dict[bytes, _Form] = {}
        written: set[bytes] = set()
        simple: list[bytes] = []
        for secret in usable:
            raw = secret.encode("utf-8", "surrogatepass")
            written.add(raw)
            for form, shared in _folded_forms(raw):
                known = self._forms.get(form, _Form())
                self._forms[form] = _Form(*(any(flags) for flags in zip(known, shared, strict=True)))
            if not _is_distinctive(fold(raw)):
                simple.append(b"".join(map(_character_pattern, secret[:_MAX_SIMPLE_LENGTH])))
        self._folded = _any_of(map(re.escape, self._forms))
        self._written = _any_of(map(re.escape, written))
        self._simple = _any_of(simple)

    @property
    def has_secrets(self) -> bool:
        """True if there is anything to redact."""
        return self._written is not None

    def has_secret_in(self, text: str | bytes) -> bool:
        """Return whether a text contains a secret in any form; JSON counts as text, whatever its escapes."""
        if self._written is None:
            return False
        raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        return self._finds_secret(raw.replace(_MARK, _BARRIER))

    def redact_text(self, value: str) -> str:
        """Return the text with each secret replaced by `[redacted]`."""
        if self._written is None:
            return value
        raw = value.encode("utf-8", "surrogatepass")  # a text may contain lone surrogates
        barred = raw.replace(_MARK, _BARRIER)
        if not self._finds_secret(barred):
            return value
        while spans := self._spans(barred):
            ends, starts = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(barred)]
            barred = _BARRIER.join(barred[end:start] for end, start in zip(ends, starts, strict=True))
        return barred.replace(_BARRIER, _MARK).decode("utf-8", "surrogatepass")

    def redact_json(self, value: "JsonValue") -> "JsonValue":
        """Return a JSON value with all its strings redacted, including field names."""
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, dict):
            return {self.redact_text(name): self.redact_json(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.redact_json(inner) for inner in value]
        return value

    def _finds_secret(self, raw: bytes) -> bool:
        if self._folded.search(fold(raw)) or (self._simple is not None and self._simple.search(raw)):
            return True
        return any(self._folded.search(fold(text)) or self._written.search(text) for text in _unescape(raw))

    def _spans(self, raw: bytes) -> list[Span]:
        """Return the spans of secrets in a text, in bytes, in order and without overlap."""
        spans = [] if self._simple is None else [match.span() for match in self._simple.finditer(raw)]
        spans += self._spans_in(raw)
        starts = array("Q", range(len(raw)))
        ends = starts[1:] + array("Q", [len(raw)])
        for content in _unescape(raw):
            starts, ends = _resolved_places(raw, starts, ends)
            spans += [(starts[start], ends[end - 1]) for start, end in self._spans_in(content)]
            raw = content
        merged: list[Span] = []
        for start, end in sorted(spans):
            if merged and start < merged[-1][1]:
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            else:
                merged.append((start, end))
        return merged

    def _spans_in(self, raw: bytes) -> Iterator[Span]:
        yield from (match.span() for match in self._written.finditer(raw))
        folded = fold(raw)
        matches = list(self._folded.finditer(folded))
        if matches:
            places = array("Q", compress(range(len(raw)), raw.translate(_IS_KEPT)))
            for match in matches:
                start, end = places[match.start()], places[match.end() - 1] + 1
                yield _extend_span(raw, start, end, self._forms[match.group()])


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


def fold(raw: bytes) -> bytes:
    """Return the ASCII letters and digits of a text, in lower case."""
    return raw.translate(_LOWER, _DROPPED)


def _is_distinctive(folded: bytes) -> bool:
    """Return whether a secret can be distinguished from ordinary text by its letters and digits alone.

    It must have at least 8 of them, 5 of them different, and both letters and digits or 12 of one kind.
    """
    if len(folded) < MIN_SECRET_LENGTH or len(set(folded)) < _MIN_DISTINCT:
        return False
    if folded.isdigit():
        return len(folded) >= _LONG_NUMBER
    return len(folded) >= _LONG_WORD or not folded.isalpha()


def _folded_forms(raw: bytes) -> Iterator[tuple[bytes, _Form]]:
    plain = fold(raw)
    if _is_distinctive(plain):
        yield plain, _Form()
        yield plain[::-1], _Form()
    yield raw.hex().encode(), _Form()
    yield from _within_encoding(raw, base64.b64encode, bits=6)
    yield from _within_encoding(raw, base64.b32encode, bits=5)


def _within_encoding(raw: bytes, encode: Any, bits: int) -> Iterator[tuple[bytes, _Form]]:
    """Yield the forms of a secret within an encoded text, whose characters hold `bits` bits each.

    The secret may begin at any byte of a group. Characters that also hold bits of the surrounding text are left out and
    marked as shared. At least 7 letters and digits are left.
    """
    for before in range(bits):
        first, bits_before = divmod(before * 8, bits)
        last, bits_behind = divmod((before + len(raw)) * 8, bits)
        encoded = encode(bytes(before) + raw)[first:last]
        first_shared = bits_before > 0
        yield fold(encoded[first_shared:]), _Form(first_shared, bits_behind > 0)


def _extend_span(raw: bytes, start: int, end: int, form: _Form) -> Span:
    """Return a span extended by the adjacent shared characters and padding of an encoding."""
    if form.first_shared and start > 0 and raw[start - 1] in _BASE64_ALPHABET:
        start -= 1
    if form.last_shared:
        if end < len(raw) and raw[end] in _BASE64_ALPHABET:
            end += 1
        while raw[end : end + 1] == b"=":
            end += 1
    return start, end


def _any_of(patterns: Iterable[bytes]) -> Any:
    """Return one pattern for several, None if there are none; the longest match is found."""
    listed = sorted(patterns)
    if not listed:
        return None
    import re2  # imported lazily: most commands have no secret

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes, so that lone surrogates pass
    options.longest_match = True
    options.max_mem = _MEMORY
    options.log_errors = False
    return re2.compile(b"|".join(listed), options)


def _unescape(raw: bytes) -> Iterator[bytes]:
    """Yield a text with its escapes resolved, then with the escapes within them resolved too, and so on."""
    for _ in range(_MAX_ESCAPE_LEVELS):
        if not (b"\\" in raw or b"%" in raw or b"&" in raw):
            return
        before, raw = raw, _ESCAPE.sub(_decode_escape, raw)
        if raw == before:
            return
        yield raw


def _resolved_places(raw: bytes, starts: "array[int]", ends: "array[int]") -> "tuple[array[int], array[int]]":
    """Return where each byte of a text begins and ends in the original text once its escapes are resolved."""
    resolved_starts, resolved_ends, end = array("Q"), array("Q"), 0
    for match in _ESCAPE.finditer(raw):
        start, stop = match.span()
        length = len(_decode_escape(match))
        resolved_starts += starts[end:start] + array("Q", [starts[start]]) * length
        resolved_ends += ends[end:start] + array("Q", [ends[stop - 1]]) * length
        end = stop
    return resolved_starts + starts[end:], resolved_ends + ends[end:]


def _decode_escape(match: "re.Match[bytes]") -> bytes:
    kind = match.lastgroup
    assert kind is not None
    content = match[kind]
    if kind == "backslashes":
        return content[: len(content) // 2]
    if kind in ("percent", "byte"):
        return bytes.fromhex(content.decode()).replace(b"\xff", b" ")  # 0xff is reserved for the barrier
    if kind == "low":
        return bytes.fromhex((match["high"] + content).decode()).decode("utf-16-be").encode()
    if kind == "letter":
        return _LETTERS.get(content, content)
    if kind == "entity":
        return _ENTITIES[content]
    code = int(content, 10 if kind == "decimal" else 16)
    return chr(code).encode("utf-8", "surrogatepass") if code < 0x110000 else b" "


def _character_pattern(char: str) -> bytes:
    """Return a pattern for one character: as it is, escaped once or repeatedly as in JSON or Python, or URL-encoded."""
    raw = char.encode("utf-8", "surrogatepass")
    plain = char.isascii() and char.isalnum()
    forms = [raw if plain else rb"\\*" + re.escape(raw), _hex_escape(raw, rb"(?:%%|\\+x)(?i:%s)", 1)]
    forms.append(_hex_escape(char.encode("utf-16-be", "surrogatepass"), rb"\\+u(?i:%s)", 2))
    if char in _SPECIAL:
        forms.append(_SPECIAL[char])
    return b"(?:%s)" % b"|".join(forms)


_SPECIAL = {" ": rb"\+", "\\": rb"\\+"} | {
    char: rb"\\+" + letter for char, letter in zip("\b\f\n\r\t", (b"b", b"f", b"n", b"r", b"t"), strict=True)
}
"""Additional patterns for characters that the general rule does not cover."""


def _hex_escape(raw: bytes, escape: bytes, size: int) -> bytes:
    """Return bytes in hexadecimal, with an escape before each `size` of them."""
    return b"".join(escape % raw[at : at + size].hex().encode() for at in range(0, len(raw), size))
