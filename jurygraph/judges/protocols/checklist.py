"""The protocol of binary questions in five weighted categories (DecompR, Appendix A.2, Checklist, Eq. 12)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import create_model

from jurygraph.agents.judging.findings import Finding
from jurygraph.agents.judging.forms import Claim, Measured, Quotes, Reason
from jurygraph.judges.protocols.people import names_of, shown, with_ids
from jurygraph.judges.protocols.protocol import People, ScoringProtocol
from jurygraph.schema import Noun
from jurygraph.schema.noun import Flag

WEIGHTS: Mapping[str, float] = {"A": 2.5, "B": 2.0, "C": 1.5, "D": 1.5, "E": 1.0}
"""What one item of a category weighs: A hard constraints, B credibility, C timeline, D fairness, E actionability."""
ITEMS: Mapping[str, int] = {"A": 3, "B": 3, "C": 3, "D": 2, "E": 2}
"""How many items a category has, A for each person. The paper says it of A alone; the others, and the words of all, are
our reading."""


# A docstring would stand in the schema that a model is given.


class ItemStated(Noun):
    reason: Reason
    quotes: Quotes
    met: Flag


class _Item(NamedTuple):
    """An item: the subject of its question, and the fields of the reply that lead to it."""

    subject: str
    fields: tuple[str, ...]


class Checklist(ScoringProtocol):
    """R = 9 · Σ a_b ω_b / Σ ω_b + 1 over items that are met (a = 1) or not, each with quotations of its own.

    Category A is asked of everybody by themselves, so that the list grows with the people. Where the task names nobody,
    neither A nor fairness, D, is asked about.
    """

    name = "protocols.checklist"
    prompt = "verification"
    shares = WEIGHTS

    def subjects(self, people: People) -> Sequence[str]:
        return [item.subject for item in _items(people)]

    def reply(self, people: People) -> type[Noun]:
        return _reply(len(people))

    def findings(self, reply: Any, people: People) -> Mapping[str, Finding]:
        return {item.subject: _finding(item, reply, people) for item in _items(people)}

    def reasons(self, people: People) -> int:
        return len(self.subjects(people))

    def beside(self, people: People) -> Mapping[str, Any]:
        return {"names": names_of(len(people))}


def _items(people: People) -> Iterator[_Item]:
    for one, person in zip(people, shown(people), strict=True):
        yield from (_Item(f"A/{one.id}/{number}", (person.name, f"A{number}")) for number in _numbers("A"))
    for category in _common(len(people)):
        yield from (_Item(f"{category}/{number}", (f"{category}{number}",)) for number in _numbers(category))


def _numbers(category: str) -> range:
    return range(1, ITEMS[category] + 1)


def _common(people: int) -> str:
    """The categories that are asked of the response as a whole."""
    return "BCDE" if people else "BCE"


@lru_cache(maxsize=64)
def _reply(people: int) -> type[Noun]:
    own: Any = dict.fromkeys((f"A{number}" for number in _numbers("A")), (ItemStated, ...))
    person = create_model("PersonStated", __base__=Noun, **own)
    fields: Any = dict.fromkeys(names_of(people), (person, ...))
    common = (f"{category}{number}" for category in _common(people) for number in _numbers(category))
    fields |= dict.fromkeys(common, (ItemStated, ...))
    return create_model("VerdictsStated", __base__=Noun, **fields)


def _finding(item: _Item, reply: Any, people: People) -> Finding:
    stated = reply
    for field in item.fields:
        stated = getattr(stated, field)
    claims = [Claim("met", stated.quotes)] if stated.met else []
    measured = Measured(float(stated.met), stated.met)
    return Finding(".".join(item.fields), measured, with_ids(stated.reason, people), stated.quotes, claims)
