"""How much room a text takes, and how it is cut into lines that fit. Texts are untrusted and may hold anything."""

import json
import re
from collections.abc import Iterator
from itertools import accumulate
from unicodedata import category, combining, east_asian_width

from jurygraph.safety.unseen import UNSEEN

SIZE = 12.0
"""Of a letter, in pixels."""
_NARROW, _BROAD = frozenset(" .,:;'|!ijlftrI()[]{}/\\-`\""), frozenset("mwMWQ@%&→▼")
_NEVER_SEEN = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff{UNSEEN}]")
_PIECES = re.compile("[^\\s\u2e80-\U0003ffff]+\\s*|\\S\\s*")


def plain(text: str) -> str:
    """The text in one line, with control and other unseen characters written as escapes."""
    return _NEVER_SEEN.sub(lambda found: json.dumps(found[0])[1:-1], " ".join(text.split()))


def wrapped(text: str, room: float, most: int) -> list[str]:
    """The text in lines no wider than `room`, in pixels, and no more than `most` of them; "…" stands for the rest."""
    lines = [""]
    for piece in _pieces(plain(text), room):
        if lines[-1] and _width((lines[-1] + piece).rstrip()) > room:
            if len(lines) == most:
                return [*lines[:-1], _cut(lines[-1].rstrip(), room)]
            lines[-1] = lines[-1].rstrip()
            lines.append("")
        lines[-1] += piece
    return [*lines[:-1], lines[-1].rstrip()]


def _pieces(text: str, room: float) -> Iterator[str]:
    """What may stand on a line of its own: a word, a wide letter, or each letter of a word that fits on no line.

    Combining marks stay with what they stand on, as many as fit on one line with it.
    """
    whole = ""
    for piece in _PIECES.findall(text):
        for part in (piece,) if _width(piece) <= room else piece:
            if whole and not (category(part[0]).startswith("M") and _width(whole + part) <= room):
                yield whole
                whole = ""
            whole += part
    yield whole


def _cut(line: str, room: float) -> str:
    """As much of a line as fits before "…"."""
    return line[: sum(width <= room - SIZE for width in accumulate(map(_advance, line)))] + "…"


def _width(text: str) -> float:
    return sum(map(_advance, text))


def _advance(letter: str) -> float:
    """A letter's width, at that of the broader among the usual fonts."""
    if combining(letter):
        return 0.2 * SIZE  # so that no line holds any number of them
    if east_asian_width(letter) in "WF" or letter in _BROAD:
        return SIZE
    if letter in _NARROW:
        return 0.44 * SIZE
    return (0.76 if letter.isupper() else 0.64) * SIZE
