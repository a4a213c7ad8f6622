"""Where a text may hide what it says: in characters that nobody sees, look-alikes, spaced letters, comments, codes."""

import re
from base64 import b64decode
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

import re2

from jurygraph.safety.folding import folded


class View(NamedTuple):
    """One way to read a text, folded. `hidden` says where it stood, if readers do not see it; `run_together` where
    it has lost the spaces between its words."""

    read: bytes
    hidden: str = ""
    run_together: bool = False


_CYRILLIC_AND_GREEK = (
    "аa вb сc ԁd еe ғf ԍg һh нh іi јj кk ӏl мm пn оo рp ԛq гr ѕs тt иu цu уy ѵv ѡw ԝw хx ҳx ьb "
    "αa βb γy εe ηn ιi κk νv οo ρp σo τt υu χx ωw μu"
)
_ARMENIAN = "օo ոn սu հh ցg զq յj"
_LISU = "ꓐb ꓑp ꓓd ꓔt ꓖg ꓗk ꓙj ꓚc ꓜz ꓝf ꓟm ꓠn ꓡl ꓢs ꓣr ꓦv ꓧh ꓪw ꓫx ꓬy ꓮa ꓰe ꓲi ꓳo ꓴu"
_CHEROKEE = "Ꭰd Ꭱr Ꭲt Ꭵi Ꭺa Ꭻj Ꭼe Ꮃw Ꮇm Ꮋh Ꮆg Ꮓz Ꮟb Ꮢr Ꮩv Ꮪs Ꮮl Ꮯc Ꮲp Ꮶk"
_OTHERS = "ɑa ɡg ᴀa ʙb ᴄc ᴅd ᴇe ꜰf ɢg ʜh ɪi ᴊj ᴋk ʟl ᴍm ɴn ᴏo ᴘp ʀr ꜱs ᴛt ᴜu ᴠv ᴡw ʏy ᴢz"
_BOXED = [f"{chr(first + at)}{chr(ord('a') + at)}" for first in (0x1F150, 0x1F170, 0x1F1E6) for at in range(26)]
_FOREIGN_PAIRS = [*_CYRILLIC_AND_GREEK.split(), *_ARMENIAN.split()]
_ODD_PAIRS = [*_OTHERS.split(), *_LISU.split(), *_CHEROKEE.split(), *_BOXED]
_LOOKS_LIKE = {ord(pair[0]): pair[1] for pair in (*_FOREIGN_PAIRS, *_ODD_PAIRS)}
"""Latin letters by what looks like them and is not made so by folding."""

_FOREIGN, _ODD = ("".join(pair[0] for pair in pairs) for pairs in (_FOREIGN_PAIRS, _ODD_PAIRS))
_MIXED = re2.compile(f"[a-z][{_FOREIGN}]|[{_FOREIGN}][a-z]|[{_ODD}]")
"""Where a word is not of one alphabet."""

_SELECTED = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_TAGS = re2.compile("[\U000e0020-\U000e007e]+")
_SELECTORS = re2.compile(f"[{_SELECTED}]{{4,}}")
_COMMENT = re2.compile(rb"<!--((?s:.*?))(?:-->|\z)|\[(?://|comment)\]: ?#([^\n]*)")
_CODE = re2.compile(rb"[A-Za-z0-9+/_-]{24,}(?:\r?\n[A-Za-z0-9+/_-]+)*")
_LETTER, _BREAK = r"[^\s[:punct:]\d]", r"[\s[:punct:]]{1,3}"
_SPACED = re2.compile(f"{_LETTER}(?:{_BREAK}{_LETTER}){{9,}}")
_BREAKS = re.compile(rb"[\s!-/:-@\[-`{-~]+")
_BACKWARDS = re2.compile(rb"erongi|snoitcurtsni|redarg|rotaulave|egduj|erocs|skram|airetirc|esnopser|rewsna")
_TURNED = re2.compile("[\u202d\u202e\u2066\u2067]")


def views(text: str, read: str) -> Iterator[View]:
    """A text, and all that is hidden in it; `read` is the text folded. Takes time in proportion to the text."""
    raw, content = text.encode("utf-8", "replace"), read.encode()
    yield View(content)
    if not read.isascii() and _MIXED.search(content) is not None:
        yield View(read.translate(_LOOKS_LIKE).encode())
    if b"&#" in raw:
        yield View(folded(unescape(text)).encode())
    hidden = {
        "in characters that nobody sees": _unseen(raw),
        "in a comment": _commented(content),
        "in base64": _coded(raw),
        "backwards": read[::-1] if _TURNED.search(raw) is not None or _backwards(content) else "",
    }
    yield from (View(folded(said).encode(), where) for where, said in hidden.items() if said)
    if spaced := b"\n".join(_BREAKS.sub(b"", found[0]) for found in _SPACED.finditer(content)):
        yield View(spaced, "in spaced letters", run_together=True)


def _unseen(raw: bytes) -> str:
    """What tags and variation selectors spell, of which the one are ASCII and the other bytes."""
    tagged = ("".join(chr(ord(char) - 0xE0000) for char in run.decode()) for run in _TAGS.findall(raw))
    selected = (bytes(map(_byte, run.decode())).decode("utf-8", "ignore") for run in _SELECTORS.findall(raw))
    return "\n".join([*tagged, *selected])


def _byte(selector: str) -> int:
    code = ord(selector)
    return code - 0xFE00 if code < 0xE0100 else code - 0xE0100 + 16


def _commented(content: bytes) -> str:
    return b"\n".join(found[1] or found[2] for found in _COMMENT.finditer(content)).decode()


def _coded(raw: bytes) -> str:
    """What base64 says, in either alphabet."""
    return "\n".join(filter(None, (_decoded(found[0]) for found in _CODE.finditer(raw))))


def _decoded(code: bytes) -> str:
    """The text that base64 holds; none where it holds no text."""
    plain = b"".join(code.split()).translate(bytes.maketrans(b"-_", b"+/"))
    start = b64decode(plain[:24]).decode("utf-8", "replace")[:-1]  # the last letter may be cut
    if "\ufffd" in start or not all(map(str.isprintable, start.split())):
        return ""
    return b64decode(plain[: len(plain) // 4 * 4]).decode("utf-8", "ignore")


def _backwards(content: bytes) -> bool:
    """Whether two words of those that are looked for are written from their ends."""
    first = _BACKWARDS.search(content)
    return first is not None and any(found[0] != first[0] for found in _BACKWARDS.finditer(content))
