"""Read claims from a response's data, find the table row of each, and compare its values with the claimed ones."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from operator import getitem
from typing import Any, Literal, NamedTuple, TypedDict

from jurygraph.agents import notation
from jurygraph.agents.facts.spec import ClaimPattern, ClaimsSpec
from jurygraph.agents.facts.tables import FactTable
from jurygraph.agents.facts.values import normalise, split_list, to_text, value_sort_key, values_agree
from jurygraph.messages import shorten

_MAX_CLAIM_CHARACTERS = 1000


class Claim(NamedTuple):
    """One claim: its path, its text, the form that it matches, and its values by column.

    `form` is None if it matches none, so that nothing can be looked up. `record_values` are values of the record that
    holds the claim, None if the record has none, and `order` is the sort key among the claims.
    """

    at: str
    text: str
    form: ClaimPattern | None
    values: Mapping[str, str]
    record_values: Mapping[str, Any]
    order: tuple[Any, ...]


def read_claims(kind: ClaimsSpec, data: Any) -> list[Claim]:
    """Return the claims of one kind in a response's data, in their order; two paths to one value give one claim."""
    nodes = {node.location: node for path in kind.paths for node in path.find(data)}
    claims = []
    for location, node in nodes.items():
        parent = reduce(getitem, location[:-1], data)
        record = parent if isinstance(parent, dict) else {}
        rank = value_sort_key(None if kind.order is None else record.get(kind.order))
        path, steps = _path_and_sort_key(location)
        record_values = dict(_record_values(kind, record))
        parts = map(str.strip, split_list(to_text(node.value), kind.split))
        for number, text in enumerate(part for part in parts if part not in ("", "-")):
            form, values = kind.form_of(text)
            claims.append(Claim(path, text, form, values, record_values, (*rank, steps, number)))
    return sorted(claims, key=lambda claim: claim.order)


def is_adjacent(before: Claim, after: Claim) -> bool:
    """Return true if the orders of two claims are numbers that are equal or follow each other."""
    (kind, first, *_), (other_kind, second, *_) = before.order, after.order
    return bool(kind == other_kind == 0 and second - first <= 1)


@lru_cache(maxsize=1 << 14)
def _path_and_sort_key(location: tuple[str | int, ...]) -> tuple[str, tuple[Any, ...]]:
    """Return a location as a JSONPath and as a sort key. Cached: the responses of a group share most locations."""
    return notation.jsonpath_of(location), notation.location_sort_key(location)


def _record_values(kind: ClaimsSpec, record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield values of the record. Lists, objects and long texts count as None, since every claim would repeat them."""
    for name, field_spec in kind.beside.items():
        value = record.get(field_spec.field)
        if isinstance(value, list | dict) or (isinstance(value, str) and len(value) > _MAX_CLAIM_CHARACTERS):
            value = None
        yield name, value if field_spec.map is None else field_spec.map.get(to_text(value))


Found = Literal["confirmed", "differs", "elsewhere", "unknown", "unread"]
_MAX_PLACES = 5
_MAX_CHARACTERS = 200


class Finding(TypedDict):
    """The result of looking up a claim, as JSON.

    `confirmed`: the row exists and agrees. `differs`: the row exists, but disagrees or has no value in the columns
    `differs`. `elsewhere`: rows of that name exist at other `places`. `unknown`: no row has that name. `unread`: the
    claim matches none of the task's forms.

    `at` are JSONPaths. `row` is the number of the row in `table`, from 1, or None without a row. `values` are the row's
    values, those of the claim that no column holds, and the number of merged claims; without a row, all claimed values.
    `own` are the columns of `values` that come from the response, whatever the row.
    """

    at: list[str]
    text: str
    found: Found
    table: str | None
    row: int | None
    values: dict[str, Any]
    own: list[str]
    claimed: dict[str, str]
    differs: list[str]
    places: list[str]


def describe_finding(finding: Finding) -> str:
    where = f" in {finding['table']}" if finding["table"] else ""
    text = repr(shorten(finding["text"], _MAX_CHARACTERS))
    differences = []
    for column in finding["differs"]:
        actual = to_text(finding["values"].get(column))
        claimed = shorten(finding["claimed"][column], _MAX_CHARACTERS)
        differences.append(f"{column} is {actual or 'not told'}, not {claimed or 'left open'}")
    descriptions: dict[Found, str] = {
        "confirmed": f"is there{where}",
        "differs": f"is there{where}, but {', '.join(differences)}",
        "elsewhere": f"is not there{where}, but in {'; '.join(finding['places'])}",
        "unknown": f"is not there{where}",
        "unread": f"cannot be read{where}",
    }
    return f"{text} {descriptions[finding['found']]}"


async def look_up(kind: ClaimsSpec, tables: Mapping[str, FactTable], data: Any) -> list[Finding]:
    """Look up all claims of one kind."""
    claims = read_claims(kind, data)
    findings = [await _look_up_claim(claim, tables) for claim in claims]
    return findings if kind.merged is None else _merge(claims, findings, kind.merged)


async def _look_up_claim(claim: Claim, tables: Mapping[str, FactTable]) -> Finding:
    if claim.form is None:
        return _build_finding(claim, "unread", values=dict(claim.record_values), own=sorted(claim.record_values))
    table = tables[claim.form.table]
    claimed_values = {table.spec.key[0]: claim.text} if claim.form.compiled is None else claim.values
    known = {**claim.record_values, **claim.form.states}
    key = table.key_of({**known, **claimed_values})
    rows = await table.find(key) if all(key) else ()  # a claim without a part of the key matches no row
    columns = table.columns if table.columns is not None else rows[0].values.keys() if rows else ()
    own = sorted(name for name in known if name not in columns)
    if not rows:
        places = sorted({", ".join(filter(None, place)) for place in table.places(key[0])} - {""}) if key[0] else []
        values = {**known, **claimed_values}
        found: Found = "elsewhere" if places else "unknown"
        return _build_finding(claim, found, table=table.name, values=values, own=own, places=places[:_MAX_PLACES])
    first = rows[0]
    claimed = {**{name: to_text(known[name]) for name in known if name in columns}, **claimed_values}
    claimed = {name: value for name, value in claimed.items() if name not in table.spec.key}
    tolerances = claim.form.within
    differs = [
        name
        for name, value in sorted(claimed.items())
        if not values_agree(value, first.values.get(name), tolerances.get(name, 0.0))
    ]
    return _build_finding(
        claim,
        "differs" if differs else "confirmed",
        table=table.name,
        row=first.number,
        values={**{name: None if name in columns else known[name] for name in known}, **first.values},
        own=own,
        claimed=claimed,
        differs=differs,
    )


def _build_finding(claim: Claim, found: Found, **known: Any) -> Finding:
    return {
        "at": [claim.at],
        "text": claim.text,
        "found": found,
        "table": None,
        "row": None,
        "claimed": {},
        "differs": [],
        "places": [],
        **known,  # type: ignore[typeddict-item]
    }


def _merge(claims: Sequence[Claim], found: Sequence[Finding], name: str) -> list[Finding]:
    merged: list[Finding] = []
    for place, finding in enumerate(found):
        if merged and claim_key(merged[-1]) == claim_key(finding) and is_adjacent(claims[place - 1], claims[place]):
            merged[-1]["at"] += finding["at"]
            merged[-1]["values"][name] += 1
        else:
            finding["values"][name] = 1
            finding["own"] = sorted({*finding["own"], name})
            merged.append(finding)
    return merged


def claim_key(finding: Finding) -> tuple[Any, ...]:
    """Return a key that is equal for findings of the same claim made twice."""
    claimed = tuple(sorted(finding["claimed"].items()))
    return normalise(finding["text"]), finding["found"], finding["table"], finding["row"], claimed, *finding["places"]
