"""How a scripted judge reads a request: the messages and the schema of the reply, and nothing else."""

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

_FENCED = re.compile(r"<<<(\w+) ([0-9a-f]{16})\n(.*?)\n\1 \2>>>", re.DOTALL)
_QUESTION = re.compile(r"^# (?:Criteria|For whom|What is left to ask)$", re.MULTILINE)
_RESPONSE = re.compile(r"^# Response$\s*", re.MULTILINE)
_TASK = re.compile(r"^# Task$\s*", re.MULTILINE)
_REFERENCE = re.compile(r"^# A reference$\s*", re.MULTILINE)
_ANOTHER_SPEAKS = re.compile(
    r"^\W*(?:end of (?:the )?(?:response|answer|submission)|/?response\b|system\b|user\b|assistant\b|inst\b|im_start"
    r"|human\b|evaluator\b|judge\b|instructions?\b|note to\b|what to give\b|criteria\b|task\b)",
    re.IGNORECASE | re.MULTILINE,
)
"""Lines that seem to say that the response ends, and that somebody else speaks now."""


class Reading:
    """A request as it reads: the task, a reference, the response, the items to be judged, and all that is said.

    `outside` is what stands around the response; for whoever is taken in by lines that seem to end it, that begins
    there. Between two marks nothing is taken for an end but the mark.
    """

    def __init__(self, body: Mapping[str, Any], taken_in: bool = False) -> None:
        system, first, *later = [message["content"] for message in body["messages"]]
        self.schema: Mapping[str, Any] = body["response_format"]["json_schema"]["schema"]["properties"]
        self.later = later
        self.fenced = "between two marks" in system
        start = _begin(_RESPONSE, first)
        if self.fenced:
            end = _FENCED.match(first, start).end()  # type: ignore[union-attr]
        else:
            questions = [found.start() for found in _QUESTION.finditer(first, start)]
            end = questions[-1] if questions else len(first)
            if taken_in:
                ends = (found.start() for found in _ANOTHER_SPEAKS.finditer(first, start + 1, end))
                end = next(ends, end)
        self.response = _bare(first[start:end])
        self.outside = "\n".join((first[:start], first[end:]))
        self.everything = "\n".join((first, *later))
        reference = _REFERENCE.search(first, 0, start)
        question = _QUESTION.search(first, 0, start)
        stop = question.start() if question else _RESPONSE.search(first).start()  # type: ignore[union-attr]
        self.query = _bare(first[_begin(_TASK, first) : reference.start() if reference else stop])
        self.reference = _bare(first[reference.end() : stop]) if reference else ""
        self.items = {name: self._item(name) for name in self.schema}

    def _item(self, name: str) -> str:
        """The words of one item."""
        found = re.search(rf"^{name}:\n", self.outside, re.MULTILINE)
        assert found is not None, f"{name} is not described"
        fenced = _FENCED.match(self.outside, found.end())
        return fenced[3] if fenced else self.outside[found.end() :].partition("\n\n")[0]


def _begin(heading: re.Pattern[str], text: str) -> int:
    found = heading.search(text)
    assert found is not None, f"the prompt has no {heading.pattern}"
    return found.end()


def _bare(text: str) -> str:
    """A text without its marks, if it stands between two."""
    fenced = _FENCED.match(text)
    return fenced[3] if fenced else text.strip("\n")


_UNSEEN = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]+")
_LAYOUT = re.compile(r"[*_`~]+|[^\S\n]+")
_TAGS = {0xE0000 + letter: chr(letter) for letter in range(0x20, 0x7F)}
_SELECTORS = {0xE0100 + place: chr(place + 16) for place in range(0x20, 0x70)}
_LOOK_ALIKE = str.maketrans("авекмнорстухіѕјӏԁԛԝ", "abekmhopctyxisjldqw")
_LEET = str.maketrans("013457", "oieast")
_ENCODED = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")


@lru_cache(maxsize=1 << 14)
def plainly(text: str) -> str:
    """As a model reads it: in small letters and usual forms, without layout and without what is invisible."""
    return _LAYOUT.sub(" ", unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).casefold()).replace("  ", " ")


@lru_cache(maxsize=1 << 14)
def readings(line: str) -> tuple[str, ...]:
    """What a line says, as it stands and once it is deciphered as models can."""
    shown = html.unescape(line.translate(_TAGS).translate(_SELECTORS))
    plain = plainly(shown)
    ciphers = (plain[::-1], codecs.encode(plain, "rot13"), plain.translate(_LOOK_ALIKE), plain.translate(_LEET))
    return (plain, *ciphers, *(plainly(text) for text in _decoded(line)))


def _decoded(line: str) -> Iterator[str]:
    for found in _ENCODED.findall(line):
        for decode in (base64.b64decode, binascii.unhexlify):
            try:
                yield decode(found.removeprefix("0x")).decode("ascii")
            except ValueError:
                continue
