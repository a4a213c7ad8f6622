"""What of a reply stands in the response: records whose passage and values are found there, and what is not."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from pydantic import JsonValue

from jurygraph.agents import notation
from jurygraph.agents.extraction.stated import QUOTE, FieldStated, Kind, Kinds
from jurygraph.agents.facts.names import number
from jurygraph.safety.evidence import Passage, Text
from jurygraph.schema import Evidence

LONGEST_PASSAGE = 500
"""Characters that a record may rest on: in a long passage everything stands near to everything."""

_MOST_PLACES, _MOST_PASSAGES, _MOST_TOLD = 10_000, 100, 10
_LONGEST_QUOTED = 2 * LONGEST_PASSAGE
"""Characters of a quotation that is looked for; white space may be more than in the passage."""
_BLANK = r"[ \u00a0\u2009\u202f]"
_BLANKS = re.compile(_BLANK)
_IN_GROUPS = rf"[0-9]{{1,3}}(?:{_BLANK}[0-9]{{3}})+(?:[.,][0-9]+)?(?![.,:/-]?[0-9])"
_FIGURES = re.compile(rf"(?<![\w.,])([-\u2212]?(?:{_IN_GROUPS}|[0-9]+(?:[.,:/-][0-9]+)*))(?:st|nd|rd|th)?(?!\w)")
_RANGE = re.compile(r"([0-9]+)-([0-9]+)")

NOWHERE = (
    "what it quotes does not stand in the response, is cut within a word, or has less than eight letters or more than "
    f"{LONGEST_PASSAGE}"
)
UNKNOWN = "(not found in the response)"
"""Stands for the words of a record that was lost."""
TWICE = "it is written down twice, and stated once"

Record = Mapping[str, Any]


class LeftOut(NamedTuple):
    """What was left out of the data: where it stands in the reply, and why."""

    at: str
    why: str

    @property
    def lost(self) -> str | None:
        """The kind of the record, where it was left out whole and is not there anyway."""
        whole = self.at.endswith("]") and self.why != TWICE
        return self.at.partition("[")[0] if whole else None


class Grounded(NamedTuple):
    """The records of each kind that stand in the response, the evidence of each value, and what was left out."""

    data: dict[str, JsonValue]
    evidence: tuple[Evidence, ...]
    left_out: tuple[LeftOut, ...]


def with_unknown(grounded: Grounded, kinds: Kinds) -> dict[str, JsonValue]:
    """The data, and behind the records of each kind one of which nothing is known for each that was lost.

    What a model found in a response and cannot show there may be there all the same: to leave it out would be to credit
    the response with not having said it. As it is, no fact confirms it, and no check that hangs on it is shown to hold.
    """
    lost = [one.lost for one in grounded.left_out]
    unknown = {kind: _unknown(fields) for kind, fields in kinds.items()}
    return {kind: [*_listed(records), *([unknown[kind]] * lost.count(kind))] for kind, records in grounded.data.items()}


def _unknown(fields: Kind) -> JsonValue:
    return {name: UNKNOWN for name, field in fields.items() if not (field.number or field.optional)}


def _listed(records: JsonValue) -> list[JsonValue]:
    assert isinstance(records, list)
    return records


def told(left_out: Sequence[LeftOut]) -> str:
    """What was left out, in words of ours alone: nothing of it is the response's or the model's. Empty for nothing."""
    said = [f"{one.at}: {one.why}" for one in left_out[:_MOST_TOLD]]
    more = len(left_out) - len(said)
    return "; ".join([*said, *([f"and {more} more"] if more else [])])


class Places(Text):
    """A response, and where in it words and numbers stand."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._known: dict[str, Sequence[Passage]] = {}

    def rests(self, quotation: str) -> Sequence[Passage]:
        """The first 100 passages that a quotation of some weight is (see `supports`)."""
        first = self.supports(quotation) if len(quotation) <= _LONGEST_QUOTED else None
        if first is None or len(first.text) > LONGEST_PASSAGE:
            return ()
        return list(islice((one for one in self.words(first.text) if one.start >= first.start), _MOST_PASSAGES))

    def words(self, words: str) -> Sequence[Passage]:
        """The first 10,000 passages that are these words, and no part of longer ones."""
        if words not in self._known:
            self._known[words] = list(islice(self.between_words(words), _MOST_PLACES))
        return self._known[words]

    def numerals(self, value: float) -> Sequence[Passage]:
        """Every passage that writes a number in digits, such as 1200, 1,200 or 1200.0; the first first."""
        return self._numerals.get(value, ())

    @cached_property
    def _numerals(self) -> Mapping[float, Sequence[Passage]]:
        found: dict[float, list[Passage]] = defaultdict(list)
        for figures in _FIGURES.finditer(self.text):
            for start, end in _parts(figures):
                value = _number(self.text[start:end])
                if value is not None:  # times, dates and versions are no numbers
                    found[value].append(Passage(start, end, self.text[start:end]))
        return found


def _number(written: str) -> float | None:
    """What digits say, in groups of three too."""
    return number(_BLANKS.sub("", written).replace("\u2212", "-"))


def _parts(figures: re.Match[str]) -> Sequence[tuple[int, int]]:
    """Where the numbers stand in a run of figures: both ends of a range, else all of it."""
    ends = _RANGE.fullmatch(figures[1])
    if ends is None:
        return [figures.span(1)]
    return [(figures.start(1) + start, figures.start(1) + end) for start, end in (ends.span(1), ends.span(2))]


class _Rests(NamedTuple):
    """A record, and what it rests on: its passage, and where the value of each field stands."""

    passage: Passage
    found: Mapping[str, Passage]
    record: dict[str, JsonValue]


def ground(text: Places, kinds: Kinds, reply: Mapping[str, Sequence[Record]]) -> Grounded:
    """What of a reply stands in the response.

    The passage that a record quotes must stand there, and each value in it, between words: case and every letter count.
    A value of `context` stands at or before the passage's end, and the nearest such place is its evidence. A record of
    which one of this is missing is left out whole, or without that field where it is optional. Two records that say the
    same rest on two passages, or one of them is left out.
    """
    data: dict[str, JsonValue] = {}
    evidence: list[Evidence] = []
    left_out: list[LeftOut] = []
    for kind, fields in kinds.items():
        kept: list[_Rests] = []
        for place, stated in enumerate(reply[kind]):
            rests = _rests(text, fields, stated, kept)
            if isinstance(rests, str):
                left_out.append(LeftOut(f"{kind}[{place}]", rests))
                continue
            lost = (name for name in fields if stated[name] is not None and name not in rests.found)
            left_out += [LeftOut(f"{kind}[{place}].{name}", _missing(fields[name], name)) for name in lost]
            evidence += _evidence(kind, len(kept), rests)
            kept.append(rests)
        data[kind] = [rests.record for rests in kept]
    return Grounded(data, tuple(evidence), tuple(left_out))


def _rests(text: Places, fields: Kind, stated: Record, kept: Sequence[_Rests]) -> _Rests | str:
    """What a record rests on: a passage of its own if there is one. Or why it rests on nothing."""
    passages = text.rests(stated[QUOTE])
    all_found = [(passage, _found(text, fields, stated, passage)) for passage in passages]
    whole = [_Rests(p, found, _record(fields, stated, found)) for p, found in all_found if not _lacking(fields, found)]
    if not whole:
        return _missing(*_first_lacking(fields, all_found[0][1])) if all_found else NOWHERE
    own = [one for one in whole if not any(_overlap(one, other) for other in kept)]
    if not own and any(one.record == other.record and _overlap(one, other) for one in whole for other in kept):
        return TWICE
    return (own or whole)[0]


def _found(text: Places, fields: Kind, stated: Record, passage: Passage) -> dict[str, Passage]:
    """Where the value of each field stands, of those that stand where they must."""
    places = ((name, _place(text, field, stated[name], passage)) for name, field in fields.items())
    return {name: place for name, place in places if place is not None}


def _place(text: Places, field: FieldStated, value: Any, passage: Passage) -> Passage | None:
    if value is None or field.one_of:
        return None if value is None else passage
    if not field.number and not any(map(str.isalnum, value)):
        return None
    places = text.numerals(value) if field.number else text.words(value)
    if field.context:
        before = bisect_right(places, passage.end, key=lambda one: one.end)
        return places[before - 1] if before else None
    first = bisect_left(places, passage.start, key=lambda one: one.start)
    return next((one for one in places[first : first + 1] if one.end <= passage.end), None)


def _lacking(fields: Kind, found: Mapping[str, Passage]) -> list[str]:
    return [name for name, field in fields.items() if name not in found and not field.optional]


def _first_lacking(fields: Kind, found: Mapping[str, Passage]) -> tuple[FieldStated, str]:
    name = _lacking(fields, found)[0]
    return fields[name], name


def _missing(field: FieldStated, name: str) -> str:
    how = "in digits " if field.number else ""
    where = "at or before the end of" if field.context else "in"
    return f"its {name} does not stand {how}{where} the passage that it quotes"


def _record(fields: Kind, stated: Record, found: Mapping[str, Passage]) -> dict[str, JsonValue]:
    return {name: _value(fields[name], stated[name], place) for name, place in found.items()}


def _value(field: FieldStated, stated: Any, place: Passage) -> JsonValue:
    """The value as the response writes it, in one line."""
    if field.one_of:
        return str(stated)
    return _number(place.text) if field.number else " ".join(place.text.split())


def _overlap(one: _Rests, other: _Rests) -> bool:
    return one.passage.start < other.passage.end and other.passage.start < one.passage.end


def _evidence(kind: str, number: int, rests: _Rests) -> Iterator[Evidence]:
    yield _of(rests.passage, kind, number)
    for name, place in rests.found.items():
        yield _of(place, kind, number, name)


def _of(place: Passage, *at: str | int) -> Evidence:
    """The evidence of what stands at a place in the data."""
    return Evidence(quote=place.text, start=place.start, end=place.end, verified=True, of=notation.path_to(at))
