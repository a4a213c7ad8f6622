"""How a text reads, whatever it is written with: forms in which texts that look alike are alike."""

import re
import unicodedata

import re2

INVISIBLE = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""What leaves no mark, as a class of a pattern: controls that are no white space, Unicode's default-ignorable code
points (fillers, joiners, bidirectional marks, variation selectors, tags), blanks that are no white space, and half
characters."""

_INVISIBLE = re.compile(f"[{INVISIBLE}]+")
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())
_CONTROLS = dict.fromkeys((*range(9), *range(14, 32), 127))
_PLAINLY = dict(
    zip("‘’ʼ´“”„«»‐‑‒–—―−\u2028\u2029ıłŁđĐøØ\ufdfa\ufdfb", '\'\'\'\'"""""-------\n\nillddoo\u0635\u062c', strict=True)
)
"""The last two are phrases in one character, which normalising would write out: 1 MB of them would become 33 MB."""

_FANCY = re.compile(f"[{''.join(_PLAINLY)}]")
_STACK = re2.compile(r"\p{M}{8}\p{M}+")
"""More marks on one letter than any script sets. Normalising them takes the square of their number."""

_UNUSUAL = re2.compile(
    f"[{INVISIBLE.replace(chr(0xD800) + '-' + chr(0xDFFF), '')}{''.join(_PLAINLY)}]|{_STACK.pattern}"
)
_ACCENTS = re.compile("[\u0300-\u036f\u0640\u064b-\u065f\u0670]+")


def visible(text: str) -> str:
    """A text without its invisible characters."""
    return _INVISIBLE.sub("", text)


def folded(text: str) -> str:
    """A text in small letters without accents, in compatibility forms (NFKD, then NFC) and with plain quotation marks
    and dashes; what is invisible is gone. White space stays. Takes time in proportion to the text."""
    if text.isascii():
        return text.translate(_CONTROLS).lower()
    decomposed = unicodedata.normalize("NFKD", _tidied(text))
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed)).casefold()


def _tidied(text: str) -> str:
    """A text without what is invisible or heaped up, and with plain marks; most need nothing of it."""
    whole = text.encode("utf-8", "ignore").decode()
    if _UNUSUAL.search(whole) is None:
        return whole
    plain = _FANCY.sub(lambda found: _PLAINLY[found[0]], visible(whole))
    return str(_STACK.sub("", plain))


def letters(read: str) -> str:
    """The letters and digits of a folded text, with nothing between them."""
    if read.isascii():
        return read.encode().translate(None, _NO_LETTERS).decode()
    return "".join(filter(str.isalnum, read))
