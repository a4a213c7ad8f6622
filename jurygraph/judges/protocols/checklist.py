"""The protocol of binary questions in five weighted categories (DecompR, Appendix A.2, Checklist, Eq. 12)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import create_model

from jurygraph.agents.judging.findings import Finding
from jurygraph.agents.judging.forms import Claim, Measurement, Quotes, Reason
from jurygraph.judges.protocols.people import named_people, person_names, restore_ids
from jurygraph.judges.protocols.protocol import People, ScoringProtocol
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Flag

WEIGHTS: Mapping[str, float] = {"A": 2.5, "B": 2.0, "C": 1.5, "D": 1.5, "E": 1.0}
"""Weight of one item of a category: A hard constraints, B credibility, C timeline, D fairness, E actionability."""
ITEMS: Mapping[str, int] = {"A": 3, "B": 3, "C": 3, "D": 2, "E": 2}
"""Number of items of a category, of A for each person.

The paper gives the number of A alone; the other numbers, and the wording of all items, are our interpretation.
"""


# No docstring: it would be part of the schema in the prompt.


class ItemReply(FrozenModel):
    reason: Reason
    quotes: Quotes
    met: Flag


class _Item(NamedTuple):
    """An item: the subject of its question, and the path of its field in the reply."""

    subject: str
    fields: tuple[str, ...]


class Checklist(ScoringProtocol):
    """R = 9 · Σ a_b ω_b / Σ ω_b + 1 over items that are met (a = 1) or not, each with its own quotations.

    Category A has its items for each person, so that the list grows with the number of people. If the task has no
    people, the items of A and of fairness, D, are left out.
    """

    name = "protocols.checklist"
    prompt = "verification"
    shares = WEIGHTS

    def subjects(self, people: People) -> Sequence[str]:
        return [item.subject for item in _items(people)]

    def reply_model(self, people: People) -> type[FrozenModel]:
        return _reply_model(len(people))

    def findings(self, reply: Any, people: People) -> Mapping[str, Finding]:
        return {item.subject: _build_finding(item, reply, people) for item in _items(people)}

    def max_reasons(self, people: People) -> int:
        return len(self.subjects(people))

    def prompt_variables(self, people: People) -> Mapping[str, Any]:
        return {"names": person_names(len(people))}


def _items(people: People) -> Iterator[_Item]:
    for stakeholder, person in zip(people, named_people(people), strict=True):
        yield from (_Item(f"A/{stakeholder.id}/{number}", (person.name, f"A{number}")) for number in _item_numbers("A"))
    for category in _shared_categories(len(people)):
        yield from (_Item(f"{category}/{number}", (f"{category}{number}",)) for number in _item_numbers(category))


def _item_numbers(category: str) -> range:
    return range(1, ITEMS[category] + 1)


def _shared_categories(people: int) -> str:
    """Return the categories whose items are about the response as a whole."""
    return "BCDE" if people else "BCE"


@lru_cache(maxsize=64)
def _reply_model(people: int) -> type[FrozenModel]:
    item_fields: Any = dict.fromkeys((f"A{number}" for number in _item_numbers("A")), (ItemReply, ...))
    person = create_model("PersonReply", __base__=FrozenModel, **item_fields)
    fields: Any = dict.fromkeys(person_names(people), (person, ...))
    names = (f"{category}{number}" for category in _shared_categories(people) for number in _item_numbers(category))
    fields |= dict.fromkeys(names, (ItemReply, ...))
    return create_model("VerdictsReply", __base__=FrozenModel, **fields)


def _build_finding(item: _Item, reply: Any, people: People) -> Finding:
    field_value = reply
    for field in item.fields:
        field_value = getattr(field_value, field)
    claims = [Claim("met", field_value.quotes)] if field_value.met else []
    measured = Measurement(float(field_value.met), field_value.met)
    return Finding(".".join(item.fields), measured, restore_ids(field_value.reason, people), field_value.quotes, claims)
