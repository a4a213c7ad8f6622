"""Contrasts of the sentence around a right calculation: a negation, or another unit."""

import re
from collections.abc import Iterator

from jurygraph.agents.data_synthesizer.edits import Edit, replace_passage
from jurygraph.agents.data_synthesizer.numbers import right_steps

_AUXILIARY = re.compile(r"\b(?:is|are|was|were|will|must)\b(?! +(?:not|no|never|only|less|fewer)\b)(?!n't|')")
_LEADS_TO = re.compile(r"(?: (?:a total of|[A-Za-z]+))?[ \t$£€(]*(?:[-+*/x×÷%=(). ,0-9$£€]{0,200}<<)?")
UNCERTAIN_WORDS = re.compile(r"\b(?:if|unless|whether|not|no|never|suppose|let|would|could)\b|n't\b", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;:.?!](?![0-9])|\b(?:because|since|and|but|which|that|who)\b")
_UNIT = re.compile(r"(?:>>[0-9.,]*[0-9])?[ \t]+([A-Za-z]+)\b")
_OTHER_UNIT = {
    "second": "minute", "minute": "hour", "hour": "minute", "day": "week", "week": "day", "month": "year",
    "year": "month", "dollar": "cent", "cent": "dollar", "inch": "foot", "inches": "feet", "foot": "inch",
    "feet": "inches", "yard": "inch", "yards": "inches", "mile": "yard", "meter": "kilometer", "metre": "kilometre",
    "kilometer": "meter", "kilometre": "metre", "km": "cm", "cm": "km", "ounce": "pound", "pound": "ounce",
    "gram": "kilogram", "kilogram": "gram", "kg": "g", "ton": "pound", "liter": "milliliter", "litre": "millilitre",
    "gallon": "pint", "pint": "gallon",
}  # fmt: skip


def negation_edits(text: str) -> Iterator[Edit]:
    """Yield edits that negate a sentence with a right result, by "not" after its verb.

    The verb is in the calculation's own clause, at most one word before it; lines with a supposition or a negation are
    skipped.
    """
    for step in right_steps(text):
        line = text.rfind("\n", 0, step.start) + 1
        end = text.find("\n", step.start)
        if UNCERTAIN_WORDS.search(text, line, len(text) if end < 0 else end):
            continue
        clause = max((mark.end() for mark in _CLAUSE.finditer(text, line, step.start)), default=line)
        verbs = list(_AUXILIARY.finditer(text, clause, step.start))
        if verbs and _LEADS_TO.fullmatch(text, verbs[-1].end(), step.start):
            verb = verbs[-1]
            says = f"{step.quote} is right, and is denied"
            yield replace_passage("negation", verb.start(), verb.end(), f"{verb[0]} not", says)


def unit_edits(text: str) -> Iterator[Edit]:
    """Yield edits that give a right result in a unit of another size."""
    for step in right_steps(text):
        unit = _UNIT.match(text, step.end) if step.claimed else None  # a result of 0 is the same in any unit
        other_unit = _exchange_unit(unit[1]) if unit else None
        if unit and other_unit:
            says = f"{step.quote} are {unit[1]}, not {other_unit}"
            yield replace_passage("unit", unit.start(1), unit.end(1), other_unit, says)


def _exchange_unit(unit: str) -> str | None:
    lower = unit.lower()
    if lower in _OTHER_UNIT:
        return _OTHER_UNIT[lower]
    singular = _OTHER_UNIT.get(lower[:-1]) if lower.endswith("s") else None
    if singular is None:
        return None
    return {"foot": "feet", "inch": "inches"}.get(singular, singular if singular.endswith("s") else f"{singular}s")
