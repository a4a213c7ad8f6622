"""Text width and line wrapping. Texts are untrusted and may contain anything."""

import json
import re
from collections.abc import Iterator
from itertools import accumulate
from unicodedata import category, combining, east_asian_width

from jurygraph.safety.text_folding import UNSEEN

SIZE = 12.0
"""Font size, in pixels."""
_NARROW, _BROAD = frozenset(" .,:;'|!ijlftrI()[]{}/\\-`\""), frozenset("mwMWQ@%&→▼")
_INVISIBLE = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff{UNSEEN}]")
_PIECES = re.compile("[^\\s\u2e80-\U0003ffff]+\\s*|\\S\\s*")


def escape_invisible(text: str) -> str:
    """Return the text in one line, with control and other invisible characters escaped."""
    return _INVISIBLE.sub(lambda found: json.dumps(found[0])[1:-1], " ".join(text.split()))


def wrap_text(text: str, room: float, most: int) -> list[str]:
    """Return the text in at most `most` lines no wider than `room` pixels; "…" replaces the rest."""
    lines = [""]
    for piece in _pieces(escape_invisible(text), room):
        if lines[-1] and _width((lines[-1] + piece).rstrip()) > room:
            if len(lines) == most:
                fitting = [end for end in accumulate(map(_advance, lines[-1].rstrip())) if end <= room - SIZE]
                return [*lines[:-1], lines[-1][: len(fitting)] + "…"]
            lines[-1] = lines[-1].rstrip()
            lines.append("")
        lines[-1] += piece
    return [*lines[:-1], lines[-1].rstrip()]


def _pieces(text: str, room: float) -> Iterator[str]:
    """Yield the parts between which a line may break: words, wide letters, and letters of words too long for a line.

    Combining marks stay with their base letter, as many as fit on one line with it.
    """
    part_of_line = ""
    for piece in _PIECES.findall(text):
        for part in (piece,) if _width(piece) <= room else piece:
            if part_of_line and not (category(part[0]).startswith("M") and _width(part_of_line + part) <= room):
                yield part_of_line
                part_of_line = ""
            part_of_line += part
    yield part_of_line


def _width(text: str) -> float:
    return sum(map(_advance, text))


def _advance(letter: str) -> float:
    """Return the width of a letter, the larger one among the usual fonts."""
    if combining(letter):
        return 0.2 * SIZE  # not 0, so that the number of marks in a line is limited
    if east_asian_width(letter) in "WF" or letter in _BROAD:
        return SIZE
    if letter in _NARROW:
        return 0.44 * SIZE
    return (0.76 if letter.isupper() else 0.64) * SIZE
