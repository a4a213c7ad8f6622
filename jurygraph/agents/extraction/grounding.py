"""Ground a reply in the response: keep records whose passage and values occur in it, and report the others."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from pydantic import JsonValue

from jurygraph.agents import notation
from jurygraph.agents.extraction.spec import QUOTE, FieldSpec, Kind, Kinds
from jurygraph.agents.facts.values import parse_number
from jurygraph.safety.evidence import Passage, SearchableText
from jurygraph.schema import Evidence

MAX_PASSAGE = 500
"""The longest passage, in characters, for a record: in a long one any two words are close."""

_MAX_PLACES = 10_000
_MAX_PASSAGES = 100
_MAX_REPORTED = 10
_MAX_QUOTATION = 2 * MAX_PASSAGE
"""The longest quotation, in characters, that is searched; it may have more white space than the passage."""
_BLANK = r"[ \u00a0\u2009\u202f]"
_BLANKS = re.compile(_BLANK)
_IN_GROUPS = rf"[0-9]{{1,3}}(?:{_BLANK}[0-9]{{3}})+(?:[.,][0-9]+)?(?![.,:/-]?[0-9])"
_FIGURES = re.compile(rf"(?<![\w.,])([-\u2212]?(?:{_IN_GROUPS}|[0-9]+(?:[.,:/-][0-9]+)*))(?:st|nd|rd|th)?(?!\w)")
_RANGE = re.compile(r"([0-9]+)-([0-9]+)")

NOT_FOUND_MESSAGE = (
    "what it quotes does not stand in the response, is cut within a word, or has less than eight letters or more than "
    f"{MAX_PASSAGE}"
)
UNKNOWN = "(not found in the response)"
"""The replacement of the text values of a lost record."""
DUPLICATE_MESSAGE = "it is written down twice, and stated once"

Record = Mapping[str, Any]


class LeftOut(NamedTuple):
    """A part of the reply left out of the data: its place in the reply, and the reason."""

    at: str
    reason: str


class Grounded(NamedTuple):
    """The records of each kind that occur in the response, the evidence of each value, and what was left out.

    `lost` has the kind of each record that was left out whole and is no duplicate.
    """

    data: dict[str, list[dict[str, JsonValue]]]
    evidence: tuple[Evidence, ...]
    left_out: tuple[LeftOut, ...] = ()
    lost: tuple[str, ...] = ()


def add_unknown_records(grounded: Grounded, kinds: Kinds) -> dict[str, JsonValue]:
    """Return the data, with an unknown record per lost one behind the records of its kind.

    A record that the model found but cannot show may still be in the response: leaving it out would credit the response
    with not saying it. As an unknown record no fact confirms it, and no check that depends on it can hold.
    """
    data: dict[str, JsonValue] = {}
    for kind, records in grounded.data.items():
        required = (name for name, field in kinds[kind].items() if not (field.number or field.optional))
        unknown: JsonValue = dict.fromkeys(required, UNKNOWN)
        data[kind] = [*records, *([unknown] * grounded.lost.count(kind))]
    return data


def describe_left_out(left_out: Sequence[LeftOut]) -> str:
    """Return what was left out in fixed words, without text of the response or the model; empty if nothing was."""
    messages = [f"{entry.at}: {entry.reason}" for entry in left_out[:_MAX_REPORTED]]
    if len(left_out) > _MAX_REPORTED:
        messages.append(f"and {len(left_out) - _MAX_REPORTED} more")
    return "; ".join(messages)


class IndexedText(SearchableText):
    """A response, with the positions of words and numbers in it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._passages_of: dict[str, Sequence[Passage]] = {}

    def find_passages(self, quotation: str) -> Sequence[Passage]:
        """Return the first 100 passages that match a quotation with enough content (see `supports`)."""
        first = self.find_support(quotation) if len(quotation) <= _MAX_QUOTATION else None
        if first is None or len(first.text) > MAX_PASSAGE:
            return ()
        passages = (passage for passage in self.find_words(first.text) if passage.start >= first.start)
        return list(islice(passages, _MAX_PASSAGES))

    def find_words(self, words: str) -> Sequence[Passage]:
        """Return the first 10,000 passages with exactly these words, not within longer words."""
        if words not in self._passages_of:
            self._passages_of[words] = list(islice(self.find_between_words(words), _MAX_PLACES))
        return self._passages_of[words]

    def find_numerals(self, value: float) -> Sequence[Passage]:
        """Return every passage that writes the number in digits, such as 1200, 1,200 or 1200.0; in order."""
        return self._numerals.get(value, ())

    @cached_property
    def _numerals(self) -> Mapping[float, Sequence[Passage]]:
        passages: dict[float, list[Passage]] = defaultdict(list)
        for figures in _FIGURES.finditer(self.text):
            # of a range, both ends are numbers
            start = figures.start(1)
            ends = _RANGE.fullmatch(figures[1])
            spans = (
                [figures.span(1)] if ends is None else [(start + ends.start(i), start + ends.end(i)) for i in (1, 2)]
            )
            for span in spans:
                numeral = self.text[slice(*span)]
                value = _parse_number(numeral)
                if value is not None:  # times, dates and versions are no numbers
                    passages[value].append(Passage(*span, numeral))
        return passages


def _parse_number(numeral: str) -> float | None:
    return parse_number(_BLANKS.sub("", numeral).replace("\u2212", "-"))


class _GroundedRecord(NamedTuple):
    passage: Passage
    found: Mapping[str, Passage]
    record: dict[str, JsonValue]


def ground(text: IndexedText, kinds: Kinds, reply: Mapping[str, Sequence[Record]]) -> Grounded:
    """Return the parts of a reply that occur in the response.

    The quoted passage of a record must occur there, and each value in it as whole words: case and every letter count. A
    value of `context` occurs at or before the passage's end, and the nearest occurrence is its evidence. A record that
    misses any of this is left out whole, or without that field if it is optional. Two equal records need two passages,
    or one of them is left out.
    """
    data: dict[str, list[dict[str, JsonValue]]] = {}
    evidence: list[Evidence] = []
    left_out: list[LeftOut] = []
    lost: list[str] = []
    for kind, fields in kinds.items():
        kept: list[_GroundedRecord] = []
        for index, record in enumerate(reply[kind]):
            grounded = _ground_record(text, fields, record, kept)
            if isinstance(grounded, str):
                left_out.append(LeftOut(f"{kind}[{index}]", grounded))
                lost += [kind] if grounded != DUPLICATE_MESSAGE else []
                continue
            missing = (name for name in fields if record[name] is not None and name not in grounded.found)
            left_out += [LeftOut(f"{kind}[{index}].{name}", _missing_message(fields[name], name)) for name in missing]
            evidence.append(_evidence_at(grounded.passage, kind, len(kept)))
            evidence += (_evidence_at(place, kind, len(kept), name) for name, place in grounded.found.items())
            kept.append(grounded)
        data[kind] = [grounded.record for grounded in kept]
    return Grounded(data, tuple(evidence), tuple(left_out), tuple(lost))


def _ground_record(
    text: IndexedText, fields: Kind, record: Record, kept: Sequence[_GroundedRecord]
) -> _GroundedRecord | str:
    """Return a record with its evidence, in a passage of its own if possible; or the reason why there is none."""
    complete: list[_GroundedRecord] = []
    problem = NOT_FOUND_MESSAGE
    for index, passage in enumerate(text.find_passages(record[QUOTE])):
        places = {name: _locate_value(text, field, record[name], passage) for name, field in fields.items()}
        found = {name: place for name, place in places.items() if place is not None}
        missing = [name for name, field in fields.items() if name not in found and not field.optional]
        if not missing:
            values = {name: _value(fields[name], record[name], place) for name, place in found.items()}
            complete.append(_GroundedRecord(passage, found, values))
        elif index == 0:
            problem = _missing_message(fields[missing[0]], missing[0])
    if not complete:
        return problem
    non_overlapping = [candidate for candidate in complete if not any(_overlaps(candidate, other) for other in kept)]
    if not non_overlapping and any(
        candidate.record == other.record and _overlaps(candidate, other) for candidate in complete for other in kept
    ):
        return DUPLICATE_MESSAGE
    return (non_overlapping or complete)[0]


def _locate_value(text: IndexedText, field: FieldSpec, value: Any, passage: Passage) -> Passage | None:
    if value is None or field.one_of:
        return None if value is None else passage
    if not field.number and not any(map(str.isalnum, value)):
        return None
    places = text.find_numerals(value) if field.number else text.find_words(value)
    if field.context:
        before = bisect_right(places, passage.end, key=lambda candidate: candidate.end)
        return places[before - 1] if before else None
    first = bisect_left(places, passage.start, key=lambda candidate: candidate.start)
    return next((candidate for candidate in places[first : first + 1] if candidate.end <= passage.end), None)


def _missing_message(field: FieldSpec, name: str) -> str:
    manner = "in digits " if field.number else ""
    where = "at or before the end of" if field.context else "in"
    return f"its {name} does not stand {manner}{where} the passage that it quotes"


def _value(field: FieldSpec, reply_value: Any, place: Passage) -> JsonValue:
    """Return the value as the response writes it, in one line."""
    if field.one_of:
        return str(reply_value)
    return _parse_number(place.text) if field.number else " ".join(place.text.split())


def _overlaps(first: _GroundedRecord, second: _GroundedRecord) -> bool:
    return first.passage.start < second.passage.end and second.passage.start < first.passage.end


def _evidence_at(place: Passage, *at: str | int) -> Evidence:
    return Evidence(quote=place.text, start=place.start, end=place.end, verified=True, of=notation.jsonpath_of(at))
