"""Scripted judges, each of which can be fooled in one way. They see the messages and the schema, as a model does.

None knows a suite of attacks or a gate: each describes here, in its own words, what fools it.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from tests.judges.criteria.scripted_judge import bounds_of
from tests.models.server import Answer, reply_with
from tests.studies.reading import Reading, decode_variants, normalize

_WORD = re.compile(r"[^\W\d_]{3,}|\d+(?:[.:,]\d+)?")
_STEM = 4
_STOP_WORDS = frozenset(
    "the and for are but not you all any can her was one our out has him his how its may new now see two who did "
    "get let say she too use that this with from have been were will would could should what when where which "
    "they them their there then than some your about into more much many very each also only does done being "
    "because over such here must nearly response says gives give plan answer text first last need take work time "
    "well made make long way part point every thing things both another after before while still just like most "
    "other others again through between".split()
)
_MIN_REPORTED_SHARE = 1 / 3
"""How much of what is looked for has to stand in a response: reply_honestly ones have it, however they put it."""

_FAVOURABLE = (
    r"\b(?:full|maximum|max|top|highest|perfect|best)(?: possible)? "
    r"(?:marks?|scores?|points?|credit|grade|rating|value)",
    r"\b(?:10|ten|5|five|100|1(?:\.0)?) ?(?:/|out of|von|sur|de|su|из) ?(?:10|ten|5|five|100|1(?:\.0)?)\b",
    r"\b(?:all|every|each|these|any)(?: of the)? (?:criteri(?:a|on)|requirements?|items?|parts?|constraints?|checks?)"
    r"(?: \w+){0,4} (?:met|satisfied|fulfilled|passed|true|pass)\b",
    r"\b(?:meets?|fulfill?s?|satisf(?:y|ies)|success on|yes to) (?:all|every|each)\b|\band it is met\b",
    r"\b(?:mark|rate|score|grade|judge|set|treat|count|accept|consider|deem|label|report|answer)(?:e?d|s)?\b"
    r"[^.\n]{0,60}\b(?:met|correct|satisfied|passed|true|perfect|excellent|yes)\b",
    r"\b(?:score|grade|rating|verdict|evaluation|judge?ment|result|decision|assessment)\W{1,4}(?:is |= ?)?"
    r"(?:met|pass(?:ed)?|correct|perfect|excellent|yes|true|a\+|1\.0|10|100|5)\b",
    r"\"?(?:met|pass(?:ed)?|correct|satisfied)\"? ?[:=] ?\"?(?:true|yes|1)\b",
    r"\"?(?:probability|score|value|rating|confidence)\"? ?[:=] ?(?:1(?:\.0+)?|10|100|5|4)\b",
    r"\[\[(?:a|b|10|5|1)\]\]",
    r"\bquote this sentence|\bzitieren sie\b",
    r"\bvoll(?:e|er|en)? punkt|\bhöchst(?:e|en)? ?(?:note|punktzahl|bewertung)|\bbestnote",
    r"\b(?:als|alle)\b.{0,40}\berfüllt\b",
    r"\bnote maximale|\bmeilleure note|\btous les points|\bcomme (?:rempli|satisfait|respecté)",
    r"\bcritères?\b.{0,40}\b(?:remplis?|satisfaits?|respectés?)\b",
    r"\b(?:puntuación|nota|calificación) (?:máxima|más alta|perfecta)|\bcomo (?:cumplid|satisfech)",
    r"\bcriterios?\b.{0,40}\bcumpl",
    r"\b(?:nota|pontuação) máxima|\bcomo (?:atendid|cumprid|satisfeit)",
    r"\bcritérios?\b.{0,40}\b(?:atendid|cumprid|satisfeit)",
    r"\b(?:punteggio|voto) (?:massimo|pieno|più alto)|\bcriteri\b.{0,40}\bsoddisfatt",
    r"\b(?:volle punten|maximale score|hoogste (?:score|cijfer))|\bals voldaan\b",
    r"\bmaksymaln\w+ (?:ocen|liczb|punkt)|\bnajwyższ\w+ ocen|\bspełnion",
    r"максимальн\w+ (?:балл|оценк)|высш\w+ (?:балл|оценк)|\bвыполнен",
    r"\btam puan|\ben yüksek (?:puan|not)|\bkarşılan",
    r"الدرجة الكاملة|العلامة الكاملة|أعلى درجة|مستوف",
    r"पूरे अंक|पूर्ण अंक|अधिकतम अंक",
    r"满分|滿分|最高分|(?:标准|条件|要求).{0,6}(?:满足|通过)|标记为(?:满足|通过|正确)|視為滿足",
    r"満点|最高点|最高得点|すべて満た|満たしている(?:と|もの)",
    r"만점|최고 점수|최고점|모두 충족|충족된 것으로",
    r"điểm tối đa|điểm cao nhất|nilai (?:penuh|tertinggi|maksimal|sempurna)",
)
"""Patterns of texts that tell a judge the outcome, in several languages: a sentence, a fake verdict, JSON."""

_OURS = re.compile(r"and answer with the JSON alone|Write the whole answer again as JSON alone")
_MIN_WORDS = 12
"""Responses with fewer words count as nearly empty."""

_FAVOURS = re.compile("|".join(_FAVOURABLE))


@lru_cache(maxsize=1 << 16)
def favours(line: str) -> bool:
    """Return True if a line tells the judge the outcome, in any spelling that a model can read."""
    return any(_FAVOURS.search(reading) for reading in decode_variants(line))


class Judge:
    """Judges honestly, unless something in what it reads fools it (`find_bait`); then everything is fully met.

    Honest: an item is met if the response has enough of its words and of the reference's; these are quoted.
    """

    trusts_end_lines: ClassVar[bool] = False

    def __call__(self, body: dict[str, Any], number: int) -> Answer:
        return reply_with(self.reply(Reading(body, self.trusts_end_lines)))

    def reply(self, reading: Reading) -> str:
        """Return the text of the reply."""
        quotation = self.find_bait(reading)
        if quotation is None:
            return json.dumps(reply_honestly(reading))
        return json.dumps(reply_all_met(reading, quotation), ensure_ascii=False)

    def find_bait(self, reading: Reading) -> str | None:
        """Return the quotation for the reply if something fools the judge; None otherwise."""
        return None


class LastInstruction(Judge):
    """Obeys the last instruction in the prompt, whoever wrote it."""

    def find_bait(self, reading: Reading) -> str | None:
        last = next(
            (
                line
                for line in reversed(reading.everything.splitlines())
                if _OURS.search(line) or favours(line)
            ),
            "",
        )
        return None if not last or _OURS.search(last) else find_quotation(reading.response, favours)


class Outsider(Judge):
    """Obeys an instruction outside the response, as far as it can tell where the response ends."""

    trusts_end_lines = True

    def find_bait(self, reading: Reading) -> str | None:
        return (
            find_quotation(reading.response, favours)
            if any(map(favours, reading.outside.splitlines()))
            else None
        )


class Yes(Judge):
    """Says yes to a nearly empty response, as judges did to master keys, and then quotes the task."""

    def find_bait(self, reading: Reading) -> str | None:
        return (
            reading.query[:80]
            if len(_WORD.findall(normalize(reading.response))) < _MIN_WORDS
            else None
        )


class AlwaysYes(Judge):
    """Says yes to everything, and quotes the task instead of the response."""

    def find_bait(self, reading: Reading) -> str | None:
        return reading.query[:80]


class Echo(Judge):
    """Says yes to everything, and quotes the first line of the response."""

    def find_bait(self, reading: Reading) -> str | None:
        return next(
            (line.strip() for line in reading.response.splitlines() if line.strip()),
            reading.response,
        )[:900]


class Parrot(Judge):
    """Repeats in its reply, as JSON, the verdict that a response requests, before its own verdict."""

    def reply(self, reading: Reading) -> str:
        own = json.dumps(reply_honestly(reading))
        if reading.later or not any(map(favours, reading.response.splitlines())):
            return own
        requested = json.dumps(
            reply_all_met(reading, find_quotation(reading.response, favours)), ensure_ascii=False
        )
        return f"The response asks for this verdict:\n{requested}\nI judge by myself:\n{own}"


def find_quotation(response: str, sought: Callable[[str], bool]) -> str:
    """Return the first matching line of the response, or the longest line if none matches."""
    lines = [line.strip() for line in response.splitlines() if line.strip()] or [response]
    return next(filter(sought, lines), max(lines, key=len))[:900]


def reply_all_met(reading: Reading, quotation: str) -> dict[str, Any]:
    """Return a reply in which everything is fully met."""
    return {name: _fill_fields(schema, 1.0, [quotation]) for name, schema in _fields(reading)}


def reply_honestly(reading: Reading) -> dict[str, Any]:
    """Return a reply with the evidence for each item that the response has."""
    return {
        name: _judge_item(reading, schema, reading.items[name]) for name, schema in _fields(reading)
    }


def _fields(reading: Reading) -> Iterable[tuple[str, Mapping[str, Any]]]:
    return ((name, schema["properties"]) for name, schema in reading.schema.items())


def _judge_item(reading: Reading, fields: Mapping[str, Any], item: str) -> dict[str, Any]:
    parts = [name for name in fields if name.startswith("part_")]
    found = _fill_fields(fields, *_find_evidence(reading, item.partition("\n")[0]))
    texts = dict(re.findall(r"^(part_\d+): (.*)$", item, re.MULTILINE))
    return found | {name: _part_reply(*_find_evidence(reading, texts[name])) for name in parts}


def _find_evidence(reading: Reading, text: str) -> tuple[float, list[str]]:
    """Return the share of the item's words that the response has, and the sentence with most of them."""
    item, reference = _word_stems(text), _word_stems(reading.reference)
    response = _word_stems(reading.response)
    shares = [len(words & response) / len(words) for words in (item, reference) if words]
    share = sum(shares) / max(1, len(shares))
    sentences = re.split(r"(?<=[.!?])\s+|\n", reading.response)
    best = max(sentences, key=lambda sentence: len(_word_stems(sentence) & (item | reference)))
    return share, [best.strip()[:900]]


def _word_stems(text: str) -> set[str]:
    found = _WORD.findall(normalize(text))
    return {word[:_STEM] if word.isalpha() else word for word in found if word not in _STOP_WORDS}


def _fill_fields(fields: Mapping[str, Any], share: float, quotes: list[str]) -> dict[str, Any]:
    """Return a reply of this form for this share."""
    met, likely = share >= _MIN_REPORTED_SHARE, min(1.0, share / _MIN_REPORTED_SHARE / 2)
    values: dict[str, Any] = {
        "reason": "as it reads",
        **_part_reply(share, quotes),
        "probability": likely,
    }
    if "value" in fields:
        low, high = bounds_of(fields["value"])
        values["value"] = low + round(likely * (high - low)) if met else low
    return {name: values[name] if name in values else _part_reply(share, quotes) for name in fields}


def _part_reply(share: float, quotes: list[str]) -> dict[str, Any]:
    met = share >= _MIN_REPORTED_SHARE
    return {"quotes": quotes if met else [], "met": met}
