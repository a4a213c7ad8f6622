"""Check that ids are unique, and describe wrong ids in messages."""

import difflib
from collections.abc import Iterable, Sequence


def require_unique(kind: str, field: str, ids: Sequence[str]) -> None:
    """Raise ValueError where an id is repeated; `field` is the path of an id, with `{}` for its index."""
    seen: set[str] = set()
    for place, name in enumerate(ids):
        if name in seen:
            raise ValueError(f"`{field.format(place)}` is {quote_name(name)} again; give each {kind} an id of its own")
        seen.add(name)


def quote_name(name: str) -> str:
    """Return a name in quotes, shortened to 60 characters."""
    return repr(name if len(name) <= 60 else f"{name[:59]}…")


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown name: the nearest known one, if there is any."""
    matches = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return f"did you mean {quote_name(matches[0])}?" if matches else "name one that is listed, or list it too"
