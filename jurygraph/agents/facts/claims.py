"""Read claims from a response's data: their paths, their texts, and their values by column."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from jurygraph.agents import notation
from jurygraph.agents.facts.names import to_text, value_sort_key
from jurygraph.agents.facts.spec import ClaimsSpec, Form

_MAX_CHARACTERS = 1000


class Claim(NamedTuple):
    """One claim: its path, its text, the form that it matches, and its values by column.

    `form` is None if it matches none, so that nothing can be looked up. `record_values` are values of the record that
    holds the claim, None if the record has none, and `order` is the sort key among the claims.
    """

    at: str
    text: str
    form: Form | None
    values: Mapping[str, str]
    record_values: Mapping[str, Any]
    order: tuple[Any, ...]


def read_claims(kind: ClaimsSpec, data: Any) -> list[Claim]:
    """Return the claims of one kind in a response's data, in their order; two paths to one value give one claim."""
    return sorted(_claims(kind, data), key=lambda claim: claim.order)


def is_adjacent(before: Claim, after: Claim) -> bool:
    """Return true if no record lies between those of two claims, by their order numbers, else by their locations."""
    (rank_class, first, _, steps, _), (other_rank_class, second, _, other_steps, _) = before.order, after.order
    if rank_class == other_rank_class == 0:
        return bool(second - first <= 1)
    place = next((n for n, pair in enumerate(zip(steps, other_steps, strict=False)) if pair[0] != pair[1]), None)
    if place is None or place == len(steps) - 1 == len(other_steps) - 1:
        return True  # in the same record
    (named, at), (other_named, other_at) = steps[place], other_steps[place]
    deeper = [*steps[place + 1 :], *other_steps[place + 1 :]]
    return not named and not other_named and other_at - at <= 1 and all(is_name for is_name, _ in deeper)


def _claims(kind: ClaimsSpec, data: Any) -> Iterator[Claim]:
    nodes = {node.location: node for path in kind.paths for node in path.find(data)}
    for location, node in nodes.items():
        record = _parent(data, location)
        place = _record_rank(kind, record)
        path, steps = _path_and_sort_key(location)
        record_values = dict(_record_values(kind, record))
        for number, text in enumerate(_texts(kind, node.value)):
            form, values = kind.form_of(text)
            yield Claim(path, text, form, values, record_values, (*place, steps, number))


@lru_cache(maxsize=1 << 14)
def _path_and_sort_key(location: tuple[str | int, ...]) -> tuple[str, tuple[Any, ...]]:
    """Return a location as a JSONPath and as a sort key. Cached: the responses of a group share most locations."""
    return notation.jsonpath_of(location), notation.location_sort_key(location)


def _parent(data: Any, location: Sequence[str | int]) -> Any:
    for step in location[:-1]:
        data = data[step]
    return data


def _record_rank(kind: ClaimsSpec, record: Any) -> tuple[Any, ...]:
    """Return the sort key of the record from its order field."""
    return value_sort_key(record.get(kind.order) if kind.order is not None and isinstance(record, dict) else None)


def _record_values(kind: ClaimsSpec, record: Any) -> Iterator[tuple[str, Any]]:
    """Yield values of the record. Lists, objects and long texts count as None, since every claim would repeat them."""
    for name, field_spec in kind.beside.items():
        value = record.get(field_spec.field) if isinstance(record, dict) else None
        if isinstance(value, list | dict) or (isinstance(value, str) and len(value) > _MAX_CHARACTERS):
            value = None
        yield name, value if field_spec.map is None else field_spec.map.get(to_text(value))


def _texts(kind: ClaimsSpec, value: Any) -> Iterator[str]:
    if value is None:
        return
    whole = to_text(value)
    for part in whole.split(kind.split) if kind.split else (whole,):
        text = part.strip()
        if text and text not in kind.none:
            yield text
