"""Claims as they stand in a response's data: where, in which words, and what they say column by column."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from jurygraph.agents import notation
from jurygraph.agents.facts.names import rank, shown
from jurygraph.agents.facts.stated import ClaimsStated, Form

_LONGEST_BESIDE = 1000


class Claim(NamedTuple):
    """One claim: the path at which it stands, its text, the form that it has, and what it says by column.

    `form` is None where it has none of the forms, so that nothing can be looked up. `beside` are values of the record
    it stands in, None where that says nothing, and `order` is its place among the claims.
    """

    at: str
    text: str
    form: Form | None
    says: Mapping[str, str]
    beside: Mapping[str, Any]
    order: tuple[Any, ...]


def read_claims(stated: ClaimsStated, data: Any) -> list[Claim]:
    """The claims of one kind in a response's data, in their order; what two paths lead to is one claim."""
    return sorted(_claims(stated, data), key=lambda claim: claim.order)


def follows(before: Claim, after: Claim) -> bool:
    """Whether no record lies between those of two claims, by the numbers of their order, else by their places."""
    (kind, first, _, steps, _), (other_kind, second, _, other_steps, _) = before.order, after.order
    if kind == other_kind == 0:
        return bool(second - first <= 1)
    place = next((n for n, pair in enumerate(zip(steps, other_steps, strict=False)) if pair[0] != pair[1]), None)
    if place is None or place == len(steps) - 1 == len(other_steps) - 1:
        return True  # of one record
    (named, at), (other_named, other_at) = steps[place], other_steps[place]
    deeper = [*steps[place + 1 :], *other_steps[place + 1 :]]
    return not named and not other_named and other_at - at <= 1 and all(is_name for is_name, _ in deeper)


def _claims(stated: ClaimsStated, data: Any) -> Iterator[Claim]:
    nodes = {node.location: node for path in stated.paths for node in path.find(data)}
    for location, node in nodes.items():
        record = _parent(data, location)
        place = _order(stated, record)
        path, steps = _where(location)
        beside = dict(_beside(stated, record))
        for number, text in enumerate(_texts(stated, node.value)):
            form, says = stated.form_of(text)
            yield Claim(path, text, form, says, beside, (*place, steps, number))


@lru_cache(maxsize=1 << 14)
def _where(location: tuple[str | int, ...]) -> tuple[str, tuple[Any, ...]]:
    """A location as a JSONPath, and as something that can be sorted: the responses of a group have much the same."""
    return notation.path_to(location), notation.place(location)


def _parent(data: Any, location: Sequence[str | int]) -> Any:
    for step in location[:-1]:
        data = data[step]
    return data


def _order(stated: ClaimsStated, record: Any) -> tuple[Any, ...]:
    """What the record says of its place."""
    return rank(record.get(stated.order) if stated.order is not None and isinstance(record, dict) else None)


def _beside(stated: ClaimsStated, record: Any) -> Iterator[tuple[str, Any]]:
    """Values of the record. Lists, objects and endless texts say nothing: every claim of the record repeats them."""
    for name, one in stated.beside.items():
        value = record.get(one.field) if isinstance(record, dict) else None
        if isinstance(value, list | dict) or (isinstance(value, str) and len(value) > _LONGEST_BESIDE):
            value = None
        yield name, value if one.map is None else one.map.get(shown(value))


def _texts(stated: ClaimsStated, value: Any) -> Iterator[str]:
    if value is None:
        return
    whole = shown(value)
    for part in whole.split(stated.split) if stated.split else (whole,):
        text = part.strip()
        if text and text not in stated.none:
            yield text
