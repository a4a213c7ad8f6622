"""The published columns of TravelPlanner's rows; where they are, they count, and the query is only compared."""

import ast
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import BeforeValidator, Field

from examples.group_trip.travelplanner.budgets import parse_budget
from examples.group_trip.travelplanner.queries import TripRequest, read_wishes
from examples.group_trip.travelplanner.travellers import count_travellers
from examples.group_trip.travelplanner.trip_dates import parse_dates, parse_lengths
from jurygraph.messages import describe_value, did_you_mean, quote
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Number

C = TypeVar("C")
R = TypeVar("R")

_RULES = {name.lower().removeprefix("no "): name for name in (
    "No smoking", "No parties", "No children under 10", "No pets", "No visitors",
)}  # fmt: skip
_ROOMS = {
    "entire room": "Entire home/apt",
    "private room": "Private room",
    "shared room": "Shared room",
}
_NOT_SHARED = "not shared room"
_MODES = {"no flight": "Flight", "no self-driving": "Self-driving"}
_KEYS = ("house rule", "cuisine", "room type", "transportation")


def parse_literal(value: Any) -> Any:
    """Return the value of a Python literal, as the CSV files write lists and records; other values as they are.

    Raises ValueError for a text that is no literal. Empty text is None.
    """
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        return ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ValueError(
            "is not a list or record as Python writes them; write it as JSON"
        ) from None


def _parse_number(value: Any) -> Any:
    if isinstance(value, str):
        text = value.strip().removeprefix("$").replace(",", "")
        try:
            return (int(text) if text.isdecimal() else float(text)) if text else None
        except ValueError:
            return value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _parse_days(value: Any) -> tuple[date, ...] | None:
    texts = parse_literal(value)
    if texts is None:
        return None
    if (
        not isinstance(texts, list | tuple)
        or not texts
        or not all(isinstance(text, str) for text in texts)
    ):
        found = "empty" if texts in ([], ()) else describe_value(texts)
        raise ValueError(f"is {found}; write a list of days such as 2022-03-16")
    days = tuple(date.fromisoformat(text) for text in texts)
    for one, other in pairwise(days):
        if other != one + timedelta(days=1):
            raise ValueError(f"has {other} after {one}; list every day from the first to the last")
    return days


def _parse_constraint(value: Any) -> dict[str, tuple[str, ...]] | None:
    """Return the values of each constraint; none of one that is null."""
    value = parse_literal(value)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError(f"is {describe_value(value)}; write an object with {', '.join(_KEYS)}")
    known: Mapping[str, Mapping[str, str] | None] = {
        "house rule": _RULES, "cuisine": None, "room type": {**_ROOMS, _NOT_SHARED: ""}, "transportation": _MODES
    }  # fmt: skip
    found: dict[str, tuple[str, ...]] = {}
    for name, content in value.items():
        key = str(name).replace("_", " ").lower()
        if key not in known:
            raise ValueError(
                f"has {quote(str(name))}; {did_you_mean(key, _KEYS) or 'known: ' + ', '.join(_KEYS)}"
            )
        found[key] = tuple(_values_of(key, content, known[key]))
    return found


def _values_of(key: str, content: Any, known: Mapping[str, str] | None) -> list[str]:
    values = (
        content
        if isinstance(content, list | tuple)
        else []
        if content in (None, "", "-")
        else [content]
    )
    for value in values:
        if not isinstance(value, str) or (known is not None and value.lower() not in known):
            hint = (
                did_you_mean(str(value), known or ())
                or f"known: {', '.join(known or ['names of cuisines'])}"
            )
            raise ValueError(f"has the {key} {describe_value(value)}; {hint}")
    return [str(value) if known is None else str(value).lower() for value in values]


def _text_or_none(value: Any) -> Any:
    return None if value == "" else value


Count = Annotated[int, Field(ge=1)]
Text = Annotated[str | None, BeforeValidator(_text_or_none)]


class Columns(FrozenModel):
    """The columns that the authors publish beside a query; each may be missing or null, and numbers may be text."""

    org: Text = None
    dest: Text = None
    days: Annotated[Count | None, BeforeValidator(_parse_number)] = None
    visiting_city_number: Annotated[Count | None, BeforeValidator(_parse_number)] = None
    date: Annotated[Any, BeforeValidator(_parse_days)] = None
    people_number: Annotated[Count | None, BeforeValidator(_parse_number)] = None
    local_constraint: Annotated[Any, BeforeValidator(_parse_constraint)] = None
    budget: Annotated[Number | None, Field(gt=0), BeforeValidator(_parse_number)] = None
    level: Text = None


class Reading(NamedTuple):
    """A request, and where a column and the query differ."""

    request: TripRequest
    differs: tuple[str, ...]


def read_request(query: str, columns: Columns) -> Reading:
    """Read the columns, and the query for what they lack. Raises ValueError if something is missing or impossible."""
    differs: list[str] = []
    people = _choose("people", columns.people_number, lambda: count_travellers(query), differs)
    budget = _choose("budget", columns.budget, lambda: parse_budget(query, people or 1), differs)
    dates = _choose("dates", columns.date, lambda: parse_dates(query), differs)
    days = _choose(
        "days",
        columns.days,
        lambda: len(dates) if len(dates) in parse_lengths(query) else None,
        differs,
    )
    if days is not None and days != len(dates):
        if columns.date is not None:
            raise ValueError(f"has {len(dates)} dates, and `days` is {days}; make them agree")
        dates = tuple(dates[0] + timedelta(days=n) for n in range(days))
    request = _merge_wishes(read_wishes(query), columns.local_constraint or {}, differs)
    request = request._replace(
        people=people or 1, dates=dates, budget=float(budget), is_assumed=people is None
    )
    return Reading(request, tuple(differs))


def _choose(name: str, column: C | None, read: Callable[[], R], differs: list[str]) -> C | R:
    """Return the column, or else what the query states; a query beside a column needs not be readable."""
    if column is None:
        return read()
    try:
        in_query = read()
    except ValueError:
        return column
    if in_query is not None and in_query != column:
        differs.append(
            f"{name}: {_describe(column)} in the column, {_describe(in_query)} in the query"
        )
    return column


def _describe(value: object) -> str:
    """Return a number, the first and last of several dates, or several names."""
    if isinstance(value, tuple):
        return (
            " to ".join(map(str, (value[0], value[-1])))
            if isinstance(value[0], date)
            else ", ".join(value)
        )
    return f"{value:g}" if isinstance(value, float) else str(value)


def _merge_wishes(
    request: TripRequest, column: Mapping[str, tuple[str, ...]], differs: list[str]
) -> TripRequest:
    """Return the request with the constraints of the column; they leave nothing unread of what they name."""
    in_query: dict[str, tuple[str, ...]] = {
        "house rule": tuple(name for name in _RULES if _RULES[name] in request.house_rules),
        "cuisine": request.cuisines,
        "room type": (_NOT_SHARED,)
        if request.not_shared
        else tuple(n for n, r in _ROOMS.items() if r == request.room),
        "transportation": tuple(name for name in _MODES if _MODES[name] in request.barred),
    }
    for key, names in column.items():
        if sorted(names) != sorted(in_query[key]):
            described = (", ".join(some) or "none" for some in (names, in_query[key]))
            differs.append("{}: {} in the column, {} in the query".format(key, *described))
    chosen = {**in_query, **column}
    room = chosen["room type"][0] if chosen["room type"] else None
    settled = set(column) >= set(_KEYS)
    return request._replace(
        house_rules=tuple(_RULES[name] for name in chosen["house rule"]),
        room=None if room == _NOT_SHARED else _ROOMS.get(room or ""),
        not_shared=room == _NOT_SHARED,
        cuisines=chosen["cuisine"],
        unwanted=() if "cuisine" in column else request.unwanted,
        barred=tuple(_MODES[name] for name in chosen["transportation"]),
        unread=() if settled else request.unread,
    )
