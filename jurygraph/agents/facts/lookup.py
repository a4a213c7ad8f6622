"""Claims looked up: is there such a row, where the claim says, and does it say what is claimed?"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, TypedDict

from jurygraph.agents.facts.names import agree, nearest, normalised, shown
from jurygraph.agents.facts.reading import Claim, follows, read_claims
from jurygraph.agents.facts.stated import ClaimsStated
from jurygraph.agents.facts.tables import Key, Table
from jurygraph.sources.complaint import shortened

Found = Literal["confirmed", "differs", "elsewhere", "near", "unknown", "unread"]
_MOST_TOLD, _LONGEST_TOLD = 5, 200
_MOST_HINTS = 200


class Finding(TypedDict):
    """What became of a claim, as JSON.

    `confirmed`: there is such a row and it says what is claimed. `differs`: there is, but it says otherwise, or
    nothing, in the columns `differs`. `elsewhere`: rows of that name stand elsewhere, at `places`. `near`: no such
    name, but `nearly` another one. `unknown`: nothing of the kind. `unread`: the claim has none of the forms that were
    stated.

    `at` are JSONPaths. `row` is the number of the row in `table`, from 1, and None where there is none. `values` are
    the row's, those of the claim that no column holds, and how many were merged; without a row all that is claimed.
    `own` are the columns of `values` that the response gives itself, in whatever row.
    `alternatives` are the numbers of other rows of the same key that say otherwise.
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
    nearly: str | None
    alternatives: list[int]


def told(one: Finding) -> str:
    """What became of a claim, in words."""
    where = f" in {one['table']}" if one["table"] else ""
    text = repr(shortened(one["text"], _LONGEST_TOLD))
    other = f" (rows {', '.join(map(str, one['alternatives']))} say otherwise)" if one["alternatives"] else ""
    if one["found"] == "differs":
        return f"{text} is there{where}, but {', '.join(_otherwise(one, column) for column in one['differs'])}{other}"
    if one["found"] == "elsewhere":
        return f"{text} is not there{where}, but in {'; '.join(one['places'])}"
    if one["found"] == "near":
        return f"{text} is not there{where}; {one['nearly']!r} is, which is another name"
    words = {"confirmed": "is there", "unknown": "is not there", "unread": "cannot be read"}
    return f"{text} {words[one['found']]}{where}{other}"


def _otherwise(one: Finding, column: str) -> str:
    stands, claimed = shown(one["values"].get(column)), shortened(one["claimed"][column], _LONGEST_TOLD)
    return f"{column} is {stands or 'not told'}, not {claimed or 'left open'}"


async def look_up(stated: ClaimsStated, tables: Mapping[str, Table], data: Any) -> list[Finding]:
    """What becomes of all claims of one kind. After 200 names that are not there, near ones are not looked for."""
    found: list[Finding] = []
    misses = 0
    claims = read_claims(stated, data)
    for claim in claims:
        found.append(await _found(claim, tables, hint=misses < _MOST_HINTS))
        misses += found[-1]["found"] in ("near", "unknown")
    return found if stated.merged is None else _merged(claims, found, stated.merged)


async def _found(claim: Claim, tables: Mapping[str, Table], hint: bool) -> Finding:
    if claim.form is None:
        return _finding(claim, "unread", values=dict(claim.beside), own=sorted(claim.beside))
    table = tables[claim.form.table]
    says = {table.stated.key[0]: claim.text} if claim.form.compiled is None else claim.says
    known = {**claim.beside, **claim.form.states}
    key = table.key_of({**known, **says})
    rows = await table.find(key) if all(key) else ()  # a claim that leaves a part of the key open is of no row
    if not rows:
        return _not_found(claim, {**known, **says}, _own(known, table.columns or ()), table, key, hint)
    first, *others = rows
    columns = first.values.keys() if table.columns is None else table.columns
    claimed = {**{name: shown(known[name]) for name in known if name in columns}, **says}
    claimed = {name: value for name, value in claimed.items() if name not in table.stated.key}
    within = claim.form.within
    differs = [
        name for name, said in sorted(claimed.items()) if not agree(said, first.values.get(name), within.get(name, 0.0))
    ]
    return _finding(
        claim,
        "differs" if differs else "confirmed",
        table=table.name,
        row=first.number,
        values={**{name: None if name in columns else known[name] for name in known}, **first.values},
        own=_own(known, columns),
        claimed=claimed,
        differs=differs,
        alternatives=[row.number for row in others if table.content(row) != table.content(first)],
    )


def _own(known: Mapping[str, Any], columns: Collection[str]) -> list[str]:
    """The columns that a claim has besides those of its table."""
    return sorted(name for name in known if name not in columns)


def _not_found(claim: Claim, values: dict[str, Any], own: list[str], table: Table, key: Key, hint: bool) -> Finding:
    places = sorted({", ".join(filter(None, place)) for place in table.places(key[0])} - {""}) if key[0] else []
    names = [name for name in table.names_near(key) if name != key[0]] if hint and not places else []
    nearly = nearest(key[0], names)
    found: Found = "elsewhere" if places else "near" if nearly else "unknown"
    return _finding(claim, found, table=table.name, values=values, own=own, places=places[:_MOST_TOLD], nearly=nearly)


def _finding(claim: Claim, found: Found, **known: Any) -> Finding:
    empty: dict[str, Any] = {"claimed": {}, "differs": [], "places": [], "nearly": None, "alternatives": []}
    stated = {"at": [claim.at], "text": claim.text, "found": found, "table": None, "row": None}
    return Finding(**{**stated, **empty, **known})  # type: ignore[typeddict-item]


def _merged(claims: Sequence[Claim], found: Sequence[Finding], name: str) -> list[Finding]:
    """Equal claims in a row of which the same became as one, with their number."""
    merged: list[Finding] = []
    for place, one in enumerate(found):
        if merged and same_claim(merged[-1]) == same_claim(one) and follows(claims[place - 1], claims[place]):
            merged[-1]["at"] += one["at"]
            merged[-1]["values"][name] += 1
        else:
            one["values"][name] = 1
            one["own"] = sorted({*one["own"], name})
            merged.append(one)
    return merged


def same_claim(one: Finding) -> tuple[Any, ...]:
    """What two findings share that are of one claim, made twice."""
    claimed, places = tuple(sorted(one["claimed"].items())), tuple(one["places"])
    return normalised(one["text"]), one["found"], one["table"], one["row"], claimed, places, one["nearly"]
