"""The request as a scripted judge reads it: the messages and the schema of the reply, and nothing else."""

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
_END_LINES = re.compile(
    r"^\W*(?:end of (?:the )?(?:response|answer|submission)|/?response\b|system\b|user\b|assistant\b|inst\b|im_start"
    r"|human\b|evaluator\b|judge\b|instructions?\b|note to\b|what to give\b|criteria\b|task\b)",
    re.IGNORECASE | re.MULTILINE,
)
"""Lines that seem to say that the response ends, and that somebody else speaks now."""


class Reading:
    """The parts of a request: the task, a reference, the response, the items to be judged, and the whole text.

    `outside` is the text around the response; with `trusts_end_lines`, lines that seem to end the response do end it.
    Between two fence marks only the mark ends it.
    """

    def __init__(self, body: Mapping[str, Any], trusts_end_lines: bool = False) -> None:
        system, first, *later = [message["content"] for message in body["messages"]]
        self.schema: Mapping[str, Any] = body["response_format"]["json_schema"]["schema"][
            "properties"
        ]
        self.later = later
        self.fenced = "between two marks" in system
        start = _end_of_heading(_RESPONSE, first)
        if self.fenced:
            end = _FENCED.match(first, start).end()  # type: ignore[union-attr]
        else:
            questions = [found.start() for found in _QUESTION.finditer(first, start)]
            end = questions[-1] if questions else len(first)
            if trusts_end_lines:
                ends = (found.start() for found in _END_LINES.finditer(first, start + 1, end))
                end = next(ends, end)
        self.response = _strip_fence(first[start:end])
        self.outside = "\n".join((first[:start], first[end:]))
        self.everything = "\n".join((first, *later))
        reference = _REFERENCE.search(first, 0, start)
        question = _QUESTION.search(first, 0, start)
        stop = question.start() if question else _RESPONSE.search(first).start()  # type: ignore[union-attr]
        self.query = _strip_fence(
            first[_end_of_heading(_TASK, first) : reference.start() if reference else stop]
        )
        self.reference = _strip_fence(first[reference.end() : stop]) if reference else ""
        self.items = {name: self._item(name) for name in self.schema}

    def _item(self, name: str) -> str:
        """Return the text of one item."""
        found = re.search(rf"^{name}:\n", self.outside, re.MULTILINE)
        assert found is not None, f"{name} is not described"
        fenced = _FENCED.match(self.outside, found.end())
        return fenced[3] if fenced else self.outside[found.end() :].partition("\n\n")[0]


def _end_of_heading(heading: re.Pattern[str], text: str) -> int:
    found = heading.search(text)
    assert found is not None, f"the prompt has no {heading.pattern}"
    return found.end()


def _strip_fence(text: str) -> str:
    """Return a text without its fence marks, if it has any."""
    fenced = _FENCED.match(text)
    return fenced[3] if fenced else text.strip("\n")


_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]+"
)
_LAYOUT = re.compile(r"[*_`~]+|[^\S\n]+")
_TAGS = {0xE0000 + letter: chr(letter) for letter in range(0x20, 0x7F)}
_SELECTORS = {0xE0100 + place: chr(place + 16) for place in range(0x20, 0x70)}
_LOOK_ALIKE = str.maketrans("авекмнорстухіѕјӏԁԛԝ", "abekmhopctyxisjldqw")
_LEET = str.maketrans("013457", "oieast")
_ENCODED = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")


@lru_cache(maxsize=1 << 14)
def normalize(text: str) -> str:
    """Return the text in lower case and usual forms, without layout and invisible characters."""
    return _LAYOUT.sub(
        " ", unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold()
    ).replace("  ", " ")


@lru_cache(maxsize=1 << 14)
def decode_variants(line: str) -> tuple[str, ...]:
    """Return the normalized line, and the line decoded in every way that models can decode."""
    shown = html.unescape(line.translate(_TAGS).translate(_SELECTORS))
    plain = normalize(shown)
    ciphers = (
        plain[::-1],
        codecs.encode(plain, "rot13"),
        plain.translate(_LOOK_ALIKE),
        plain.translate(_LEET),
    )
    return (plain, *ciphers, *(normalize(text) for text in _decoded(line)))


def _decoded(line: str) -> Iterator[str]:
    for found in _ENCODED.findall(line):
        for decode in (base64.b64decode, binascii.unhexlify):
            try:
                yield decode(found.removeprefix("0x")).decode("ascii")
            except ValueError:
                continue
