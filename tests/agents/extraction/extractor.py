"""A perfect reader of plans in prose: by rules of its own, from the text alone, in each of the layouts of the example.

It copies as models do: with plain spaces and quotation marks, and accents in one piece. `reading` puts it, or one that
errs, behind a server.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.models.server import Answer, Script, reply_with

Record = dict[str, Any]
Reply = dict[str, list[Record]]
Reader = Callable[[str, str], Reply]
"""What is taken out of a response, given its text and the task's query."""

KINDS = ("days", "meals", "attractions", "stays", "flights", "drives")
_WORDS = str.maketrans("“”", '""')
_STARTS = r"On day \d|Day \d|We (?:spend|have|see|stay|drive) |Flight |A taxi |The beds |(?:Breakfast|Lunch|Dinner) on "
_TO_SEE = {
    "Breakfast": "meals",
    "Lunch": "meals",
    "Dinner": "meals",
    "To see": "attractions",
    "For the night": "stays",
}


def reader_script(*readers: Reader) -> Script:
    """A server whose first replies are what these readers take out, and from then on what the last one does."""

    def answer(body: dict[str, Any], number: int) -> Answer:
        shown = str(body["messages"][1]["content"])
        reader = readers[min(len(body["messages"]) // 2, len(readers)) - 1]
        return reply_with(
            json.dumps(reader(fenced_text(shown, "response"), fenced_text(shown, "task")))
        )

    return answer


def fenced_text(shown: str, name: str) -> str:
    """Return the text between the marks of this name in a request."""
    found = re.search(rf"<<<({name} [0-9a-f]{{16}})\n(.*)\n\1>>>", shown, re.DOTALL)
    assert found is not None
    return found[2]


def read_perfectly(text: str, query: str = "") -> Reply:
    """Every record of a plan, each with the passage that states it. What is skipped is none of it."""
    reply: Reply = {kind: [] for kind in KINDS}
    plan = text.partition(SKIPPED)[0]
    for kind, record in _READERS[layout_of(plan)](plan):
        reply[kind].append(record)
    return reply


SKIPPED = "\n\nWe skip "
"""How a plan goes on that tells what it leaves out."""


def without_quotes(reply: Mapping[str, list[Record]]) -> Reply:
    """Return the data of a reply if all of it occurs in the response."""
    return {
        kind: [
            {name: value for name, value in record.items() if name != "quote"} for record in records
        ]
        for kind, records in reply.items()
    }


def layout_of(text: str) -> str:
    """The layout of a plan, by what it begins with."""
    for layout, beginning in (("bullets", "## "), ("letter", "Dear "), ("table", "| ")):
        if text.startswith(beginning):
            return layout
    return "prose"


class _Days:
    """Where each day is spent, as far as the text was read."""

    def __init__(self) -> None:
        self.where: dict[int, str] = {}

    def begin(self, day: str, where: str, quote: str) -> tuple[str, Record]:
        self.where[int(day)] = where
        return "days", {"quote": quote, "day": int(day), "where": where}

    def place(self, kind: str, quote: str, name: str, city: str, day: int) -> tuple[str, Record]:
        return kind, {
            "quote": quote,
            "name": re.sub(r'^"(.+)"$', r"\1", name),
            "city": city,
            "day": day,
            "where": self.where[day],
        }


def _flight(quote: str, found: re.Match[str], day: int) -> tuple[str, Record]:
    number, origin, destination, departs, arrives = found.groups()
    ends = {"origin": origin, "destination": destination}
    return "flights", {
        "quote": quote,
        "number": number,
        **ends,
        "departs": departs,
        "arrives": arrives,
        "day": day,
    }


def _drive(quote: str, found: re.Match[str], day: int) -> tuple[str, Record]:
    mode, origin, destination, _, cost = found.groups()
    taxi = "axi" in mode
    return "drives", {
        "quote": quote,
        "mode": "Taxi" if taxi else "Self-driving",
        "origin": origin,
        "destination": destination,
        "cost": float(cost),
        "day": day,
    }


Found = Iterator[tuple[str, Record]]


def _clean(paragraph: str) -> str:
    return " ".join(unicodedata.normalize("NFC", paragraph).translate(_WORDS).split())


def _sentences(paragraph: str) -> list[str]:
    """Split where a sentence begins, since names and cities (St. Petersburg) have full stops of their own."""
    return re.split(rf"(?<=\.) (?={_STARTS})", paragraph)


def _prose(text: str) -> Found:
    days = _Days()
    for paragraph in map(_clean, re.split(r"\n\s*\n", text)):
        first, *rest = _sentences(paragraph)
        head = re.fullmatch(
            r"On day (\d+) we travel (from .+)\.|We spend day (\d+) in (.+)\.", first
        )
        assert head is not None, first
        day, where = head[1] or head[3], head[2] or head[4]
        yield days.begin(day, where, first)
        for sentence in rest:
            yield from _of_a_day(sentence, days, int(day))


def _of_a_day(sentence: str, days: _Days, day: int) -> Found:
    if found := re.fullmatch(r"We have \w+ at (.+) in (.+)\.", sentence):
        yield days.place("meals", sentence, *found.groups(), day)
    elif found := re.fullmatch(r"We stay the night at (.+) in (.+)\.", sentence):
        yield days.place("stays", sentence, *found.groups(), day)
    elif found := re.fullmatch(r"We see (.+)\.", sentence):
        for sight in found[1].split("; "):
            name, _, city = sight.rpartition(" in ")
            yield days.place("attractions", sight, name, city, day)
    elif found := re.fullmatch(
        r"Flight (\S+) from (.+?) to (.+) leaves at (\S+) and lands at (\S+)\.", sentence
    ):
        yield _flight(sentence, found, day)
    else:
        way = r"(We drive|A taxi).*? from (.+?) to (.+?), (\d.+ km), for \$(\S+)\."
        found = re.fullmatch(way, sentence)
        assert found is not None, sentence
        yield _drive(sentence, found, day)


def _bullets(text: str) -> Found:
    days = _Days()
    cities = set(
        re.findall(r"(?:^## Day \d+: (?!from )| to |: from )(.+?)(?= to |$)", text, re.MULTILINE)
    )
    day = 0
    for line in text.splitlines():
        if found := re.fullmatch(r"## Day (\d+): (.+)", line):
            day = int(found[1])
            yield days.begin(*found.groups(), line.removeprefix("## "))
        elif found := re.fullmatch(r"- (.+?): (.+)", line):
            kind = _TO_SEE[found[1]]
            name, city = _pointed(found[2], days.where[day], cities)
            yield days.place(kind, line.removeprefix("- "), name, city, day)
        elif found := re.fullmatch(r"- Flight (\S+), (.+?) to (.+), (\S+) to (\S+)", line):
            yield _flight(line.removeprefix("- "), found, day)
        elif found := re.fullmatch(r"- (Self-driving|Taxi), (.+?) to (.+) \((.+)\), \$(\S+)", line):
            yield _drive(line.removeprefix("- "), found, day)


def _pointed(text: str, where: str, cities: set[str]) -> tuple[str, str]:
    """A name and its city: the text behind it in brackets, if that is a city of some heading, else the day's."""
    found = re.fullmatch(r"(.+) \(([^()]+)\)", text)
    return (found[1], found[2]) if found and found[2] in cities else (text, where)


def _letter(text: str) -> Found:
    days = _Days()
    for sentence in (one for paragraph in text.split("\n\n") for one in _sentences(paragraph)):
        if found := re.fullmatch(r"Day (\d+) (?:takes us|belongs to) (.+)\.", sentence):
            yield days.begin(*found.groups(), sentence)
        elif found := re.fullmatch(
            r"On day (\d+), flight (\S+) goes from (.+?) to (.+), (\S+) to (\S+)\.", sentence
        ):
            way = re.fullmatch(
                r"On day \d+, flight (\S+) goes from (.+?) to (.+), (\S+) to (\S+)\.", sentence
            )
            assert way is not None
            yield _flight(sentence, way, int(found[1]))
        elif found := re.match(r"On day (\d+)", sentence):
            way = re.fullmatch(
                r"On day \d+ (we|a taxi) \w+ from (.+?) to (.+?), (\d.+ km), for \$(\S+)\.",
                sentence,
            )
            assert way is not None, sentence
            yield _drive(sentence, way, int(found[1]))
        elif found := re.fullmatch(r'The beds of day ([\d, ]+) are at "(.+)" in (.+)\.', sentence):
            for night in found[1].split(", "):
                yield days.place("stays", sentence, found[2], found[3], int(night))
        elif found := re.fullmatch(
            r'(?:Breakfast|Lunch|Dinner) on day (\d+) is at "(.+)" in (.+)\.', sentence
        ):
            yield days.place("meals", sentence, found[2], found[3], int(found[1]))
        elif found := re.fullmatch(r'Day (\d+) shows us "(.+)" in (.+)\.', sentence):
            yield days.place("attractions", sentence, found[2], found[3], int(found[1]))


def _table(text: str) -> Found:
    days = _Days()
    for line in text.splitlines()[2:]:
        number, where, way, *meals, sights, night = re.split(r" (?<!\\)\| ", line[2:-2])
        day = int(number)
        yield days.begin(number, where, f"{number} | {where} | {way}")
        if found := re.fullmatch(r"Flight (\S+), (.+?) to (.+), (\S+)–(\S+)", way):
            yield _flight(way, found, day)
        elif found := re.fullmatch(r"(Self-driving|Taxi), (.+?) to (.+?), (\d.+ km), \$(\S+)", way):
            yield _drive(way, found, day)
        cells = [
            *(("meals", cell) for cell in meals),
            *(("attractions", cell) for cell in sights.split("<br>")),
        ]
        for kind, cell in (*cells, ("stays", night)):
            if cell != "none":
                name, _, city = cell.rpartition(", ")
                yield days.place(kind, cell, name, city, day)


_READERS: dict[str, Callable[[str], Found]] = {
    "prose": _prose,
    "bullets": _bullets,
    "letter": _letter,
    "table": _table,
}
