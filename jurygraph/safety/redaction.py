"""Strikes secrets out of texts, in whatever form they are written.

A text is compared in its plain form (`fold`: letters and digits of ASCII alone, in lower case), so that upper and lower
case, blanks, dashes, dots, line breaks and invisible characters between the characters of a secret make no difference.
Escapes (of JSON, Python, URLs and HTML) are resolved first where a text has any. Then one search of RE2 for all forms
of all secrets is enough: its time grows with the text and no faster.
"""

import base64
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pydantic import JsonValue

SHORTEST = 8
"""Characters that a value must have to be taken for a secret: shorter ones stand in texts by chance."""

REDACTED = "[redacted]"
_MARK = REDACTED.encode()
_BARRIER = b"\xff" * len(_MARK)  # no byte of UTF-8: nothing is found across what was redacted before

_ALNUM = b"0123456789abcdefghijklmnopqrstuvwxyz"
_KEPT = _ALNUM + _ALNUM[10:].upper() + b"\xff"
_LOWER = bytes(range(256)).lower()
_DROPPED = bytes(byte for byte in range(256) if byte not in _KEPT)
_IS_KEPT = bytes(byte in _KEPT for byte in range(256))
_OF_BASE64 = _KEPT[:-1] + b"+/-_"

_MOST_ESCAPES = 4  # levels of escapes within escapes
_MEMORY = 1 << 28  # bytes that RE2 may take
_FEWEST_DISTINCT, _LONG_WORD, _LONG_NUMBER = 5, 12, 12
_LONGEST_SIMPLE = 256  # characters of a simple secret that are looked for with escapes: its pattern is large

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
    """An encoded form of a secret: whether its first and last character may be shared with what stands around it."""

    first_shared: bool = False
    last_shared: bool = False


class Redactor:
    """Strikes secrets out of texts.

    Of each secret these forms are found: as written, with escapes (JSON, Python, URL, HTML), in hexadecimal, and within
    base64 and base32; and, unless it is too simple (see `_is_distinctive`), in upper or lower case, reversed, and with
    anything but letters and digits between its characters. Secrets of less than 8 characters are left alone.

    Redacting a text twice gives the same text as redacting it once.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        known = dict.fromkeys(secret for secret in secrets if len(secret) >= SHORTEST)
        self._forms: dict[bytes, _Form] = {}
        written: set[bytes] = set()
        simple: list[bytes] = []
        for secret in known:
            raw = secret.encode("utf-8", "surrogatepass")
            written.add(raw)
            for form, shared in _folded_forms(raw):
                _add_form(self._forms, form, shared)
            if not _is_distinctive(fold(raw)):
                simple.append(b"".join(map(_character, secret[:_LONGEST_SIMPLE])))
        self._folded = _any_of(map(re.escape, self._forms))
        self._written = _any_of(map(re.escape, written))
        self._simple = _any_of(simple)

    @property
    def has_secrets(self) -> bool:
        """Whether there is anything to strike out."""
        return self._written is not None

    def finds(self, text: str | bytes) -> bool:
        """Whether a secret stands in a text in any form; JSON counts as a text, whatever escapes it has."""
        if self._written is None:
            return False
        raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        return self._finds(raw.replace(_MARK, _BARRIER))

    def text(self, value: str) -> str:
        """Return the text with `[redacted]` in the place of every secret."""
        if self._written is None:
            return value
        raw = value.encode("utf-8", "surrogatepass")  # a text may hold half characters
        barred = raw.replace(_MARK, _BARRIER)
        if not self._finds(barred):
            return value
        while spans := self._spans(barred):
            barred = _replaced(barred, spans)
        return barred.replace(_BARRIER, _MARK).decode("utf-8", "surrogatepass")

    def value(self, value: "JsonValue") -> "JsonValue":
        """Return a JSON value with every string in it redacted, names of fields too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self.value(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.value(inner) for inner in value]
        return value

    def _finds(self, raw: bytes) -> bool:
        if self._folded.search(fold(raw)) or (self._simple is not None and self._simple.search(raw)):
            return True
        return any(self._folded.search(fold(one)) or self._written.search(one) for one in _unescaped(raw))

    def _spans(self, raw: bytes) -> list[Span]:
        """Where secrets stand in a text, in bytes, in order and apart from each other."""
        found = [] if self._simple is None else [match.span() for match in self._simple.finditer(raw)]
        found += self._spans_in(raw)
        for resolved in _resolved(raw):
            found += [resolved.origin(span) for span in self._spans_in(resolved.content)]
        return _merged(found)

    def _spans_in(self, raw: bytes) -> Iterator[Span]:
        yield from (match.span() for match in self._written.finditer(raw))
        folded = fold(raw)
        matches = list(self._folded.finditer(folded))
        if matches:
            places = array("Q", compress(range(len(raw)), raw.translate(_IS_KEPT)))
            for match in matches:
                start, end = places[match.start()], places[match.end() - 1] + 1
                yield _with_shared(raw, start, end, self._forms[match.group()])


def fits_redacted(redacted: str, text: str) -> bool:
    """Whether a redacted text may have come of a text: the same pieces in the same order, and between them anything."""
    first, *others = redacted.split(REDACTED)
    if not others or not text.startswith(first):
        return False
    *inner, last = others
    place = len(first)
    for piece in inner:
        found = text.find(piece, place)
        if found < 0:
            return False
        place = found + len(piece)
    return text.endswith(last) and len(text) - len(last) >= place


def fold(raw: bytes) -> bytes:
    """The letters and digits of ASCII in a text, in lower case."""
    return raw.translate(_LOWER, _DROPPED)


def _is_distinctive(folded: bytes) -> bool:
    """Whether a secret can be told from ordinary text by its letters and digits alone.

    It has 8 of them or more, 5 different ones, and letters and digits both, or 12 of one kind.
    """
    if len(folded) < SHORTEST or len(set(folded)) < _FEWEST_DISTINCT:
        return False
    if folded.isdigit():
        return len(folded) >= _LONG_NUMBER
    return len(folded) >= _LONG_WORD or not folded.isalpha()


def _folded_forms(raw: bytes) -> Iterator[tuple[bytes, _Form]]:
    """The forms of a secret that are looked for in folded text."""
    plain = fold(raw)
    if _is_distinctive(plain):
        yield plain, _Form()
        yield plain[::-1], _Form()
    yield raw.hex().encode(), _Form()
    yield from _within_encoding(raw, base64.b64encode, bits=6)
    yield from _within_encoding(raw, base64.b32encode, bits=5)


def _within_encoding(raw: bytes, encode: Any, bits: int) -> Iterator[tuple[bytes, _Form]]:
    """Yield how a secret looks within an encoded text, whose characters hold so many bits.

    It may begin at any byte of a group. Characters that hold bits of what stands around it are left out and marked as
    shared. At least 7 letters and digits are left.
    """
    for before in range(bits):
        first, bits_before = divmod(before * 8, bits)
        last, bits_behind = divmod((before + len(raw)) * 8, bits)
        encoded = encode(bytes(before) + raw)[first:last]
        first_shared = bits_before > 0
        yield fold(encoded[first_shared:]), _Form(first_shared, bits_behind > 0)


def _add_form(forms: dict[bytes, _Form], form: bytes, shared: _Form) -> None:
    known = forms.get(form, _Form())
    forms[form] = _Form(known.first_shared or shared.first_shared, known.last_shared or shared.last_shared)


def _with_shared(raw: bytes, start: int, end: int, form: _Form) -> Span:
    """A place with the shared characters and the padding of an encoding that stand directly beside it."""
    if form.first_shared and start > 0 and raw[start - 1] in _OF_BASE64:
        start -= 1
    if form.last_shared:
        if end < len(raw) and raw[end] in _OF_BASE64:
            end += 1
        while raw[end : end + 1] == b"=":
            end += 1
    return start, end


def _any_of(patterns: Iterable[bytes]) -> Any:
    """One pattern for several, None where there are none; of those that contain each other the longer is found."""
    listed = sorted(patterns)
    if not listed:
        return None
    import re2  # imported lazily: most commands know no secret

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes, so that half characters pass
    options.longest_match = True
    options.max_mem = _MEMORY
    options.log_errors = False
    return re2.compile(b"|".join(listed), options)


def _replaced(raw: bytes, spans: Sequence[Span]) -> bytes:
    parts, end = [], 0
    for start, stop in spans:
        parts += [raw[end:start], _BARRIER]
        end = stop
    return b"".join([*parts, raw[end:]])


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _may_have_escapes(raw: bytes) -> bool:
    return b"\\" in raw or b"%" in raw or b"&" in raw


def _unescaped(raw: bytes) -> Iterator[bytes]:
    """A text with its escapes resolved, then with those that were within them resolved too, and so on."""
    for _ in range(_MOST_ESCAPES):
        if not _may_have_escapes(raw):
            return
        before, raw = raw, _ESCAPE.sub(_meant, raw)
        if raw == before:
            return
        yield raw


def _resolved(raw: bytes) -> "Iterator[_Resolved]":
    """As `_unescaped`, and where everything stands in the text."""
    starts = array("Q", range(len(raw)))
    resolved = _Resolved(raw, starts, starts[1:] + array("Q", [len(raw)]))
    for _ in range(_MOST_ESCAPES):
        before, resolved = resolved, resolved.further()
        if resolved.content == before.content:
            return
        yield resolved


class _Resolved(NamedTuple):
    """A text with its escapes resolved, and where in the text each of its bytes begins and ends."""

    content: bytes
    starts: "array[int]"
    ends: "array[int]"

    def further(self) -> "_Resolved":
        """With the escapes resolved that it still has."""
        content, starts, ends, end = bytearray(), array("Q"), array("Q"), 0
        for match in _ESCAPE.finditer(self.content):
            start, stop = match.span()
            meant = _meant(match)
            content += self.content[end:start] + meant
            starts += self.starts[end:start] + array("Q", [self.starts[start]]) * len(meant)
            ends += self.ends[end:start] + array("Q", [self.ends[stop - 1]]) * len(meant)
            end = stop
        return _Resolved(bytes(content + self.content[end:]), starts + self.starts[end:], ends + self.ends[end:])

    def origin(self, span: Span) -> Span:
        """Where in the text a place stands."""
        return self.starts[span[0]], self.ends[span[1] - 1]


def _meant(match: "re.Match[bytes]") -> bytes:
    """The bytes that an escape stands for."""
    kind = match.lastgroup
    assert kind is not None
    said = match[kind]
    if kind == "backslashes":
        return said[: len(said) // 2]
    if kind in ("percent", "byte"):
        return bytes.fromhex(said.decode()).replace(b"\xff", b" ")  # which is the barrier's
    if kind == "low":
        return bytes.fromhex((match["high"] + said).decode()).decode("utf-16-be").encode()
    if kind == "letter":
        return _LETTERS.get(said, said)
    if kind == "entity":
        return _ENTITIES[said]
    return _of_code(int(said, 10 if kind == "decimal" else 16))


def _of_code(code: int) -> bytes:
    return chr(code).encode("utf-8", "surrogatepass") if code < 0x110000 else b" "


def _character(char: str) -> bytes:
    """A pattern for one character: as it is, escaped as in JSON or by Python, however often, or URL-encoded."""
    raw = char.encode("utf-8", "surrogatepass")
    plain = char.isascii() and char.isalnum()
    forms = [raw if plain else rb"\\*" + re.escape(raw), _hex_escaped(raw, rb"(?:%%|\\+x)(?i:%s)", 1)]
    forms.append(_hex_escaped(char.encode("utf-16-be", "surrogatepass"), rb"\\+u(?i:%s)", 2))
    if char in _SPECIAL:
        forms.append(_SPECIAL[char])
    return b"(?:%s)" % b"|".join(forms)


_SPECIAL = {" ": rb"\+", "\\": rb"\\+"} | {
    char: rb"\\+" + letter for char, letter in zip("\b\f\n\r\t", (b"b", b"f", b"n", b"r", b"t"), strict=True)
}
"""How else a character is written where the rule for all of them does not say it."""


def _hex_escaped(raw: bytes, escape: bytes, size: int) -> bytes:
    """Bytes in hexadecimal, each `size` of them behind an escape."""
    return b"".join(escape % raw[at : at + size].hex().encode() for at in range(0, len(raw), size))
