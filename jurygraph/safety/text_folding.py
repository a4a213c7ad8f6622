"""Normal forms of text, in which texts that look alike are equal."""

import json
import re
import unicodedata

import re2

INVISIBLE = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Invisible characters as a regex class: controls that are not white space, Unicode's default-ignorable code points
(fillers, joiners, bidirectional marks, variation selectors, tags), blanks that are not white space, and surrogates."""

_INVISIBLE = re.compile(f"[{INVISIBLE}]+")
_NON_ALPHANUMERIC = bytes(code for code in range(128) if not chr(code).isalnum())
_CONTROLS = dict.fromkeys((*range(9), *range(14, 32), 127))
_REPLACEMENTS = dict(
    zip("‘’ʼ´“”„«»‐‑‒–—―−\u2028\u2029ıłŁđĐøØ\ufdfa\ufdfb", '\'\'\'\'"""""-------\n\nillddoo\u0635\u062c', strict=True)
)
"""The last two are phrases in one character, which normalising would expand: 1 MB of them would become 33 MB."""

_REPLACEABLE = re.compile(f"[{''.join(_REPLACEMENTS)}]")
_STACK = re2.compile(r"\p{M}{8}\p{M}+")
"""More marks on one letter than any script uses. Normalising them takes the square of their number."""

_UNUSUAL = re2.compile(
    f"[{INVISIBLE.replace(chr(0xD800) + '-' + chr(0xDFFF), '')}{''.join(_REPLACEMENTS)}]|{_STACK.pattern}"
)
_ACCENTS = re.compile("[\u0300-\u036f\u0640\u064b-\u065f\u0670]+")


def remove_invisible(text: str) -> str:
    """Return a text without its invisible characters."""
    return _INVISIBLE.sub("", text)


def fold_text(text: str) -> str:
    """Return a text in lower case without accents or invisible characters, in compatibility forms (NFKD, then NFC),
    with plain quotation marks and dashes. White space is kept. Takes time proportional to the length of the text."""
    if text.isascii():
        return text.translate(_CONTROLS).lower()
    text = text.encode("utf-8", "ignore").decode()
    if _UNUSUAL.search(text) is not None:  # few texts have invisible characters, stacked marks or other punctuation
        plain = _REPLACEABLE.sub(lambda found: _REPLACEMENTS[found[0]], remove_invisible(text))
        text = str(_STACK.sub("", plain))
    decomposed = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed)).casefold()


def letters_and_digits(read: str) -> str:
    """Return the letters and digits of a folded text, with nothing between them."""
    if read.isascii():
        return read.encode().translate(None, _NON_ALPHANUMERIC).decode()
    return "".join(filter(str.isalnum, read))


UNSEEN = "\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f"
"""A regex class of characters that affect a terminal or a line reader but are invisible to a person."""

_HIDDEN = re.compile(f"[\x00-\x1f{UNSEEN}]")


def escape_hidden(line: str) -> str:
    """Return a line with control and invisible characters as escapes, so that it cannot control a terminal."""
    if line.isascii() and line.isprintable():  # fast path: true of nearly every id and number
        return line
    return _HIDDEN.sub(lambda match: json.dumps(match[0])[1:-1], line)
