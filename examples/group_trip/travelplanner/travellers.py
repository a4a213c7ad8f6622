"""How many people travel, as a query states it."""

import re

from examples.group_trip.travelplanner.vocabulary import (
    compile_words,
    load_vocabulary,
    parse_number,
    pattern,
)

_PERSONS = "persons"
_SIZES = {"one": 1, "two": 2, "both": 2, "three": 3, "four": 4}


def count_travellers(query: str) -> int | None:
    """Return the number of travellers; None if the query does not state it.

    "For me" is one person only if the query never speaks of "us". Raises ValueError for no people at all.
    """
    for name, words in load_vocabulary()["people"].items():
        number = _count_companions(query) if name == _PERSONS else None
        match = compile_words(words).search(query)
        if number is None and match is not None:
            number = _size_of(match)
        if number == 0:
            raise ValueError("states 0 people; write how many travel, such as a group of 4")
        if number is not None:
            return number
    speaks_of_one = pattern("for_me").search(query) and not pattern("more_than_one").search(query)
    return 1 if speaks_of_one else None


def _size_of(match: re.Match[str]) -> int:
    groups = {name: text for name, text in match.groupdict().items() if text}
    words = next((_SIZES[name] for name in groups if name in _SIZES), 0)
    couples = 2 * parse_number(groups["couples"]) if "couples" in groups else 0
    times = parse_number(groups.get("times", "one"))  # "two families of four"
    return (
        words
        + couples
        + times * sum(parse_number(groups[name]) for name in ("n", "m", "w") if name in groups)
    )


def _count_companions(query: str) -> int | None:
    """Return the number of "my wife, my two sons and I"; None if there are none, or not a number of each."""
    matches = compile_words(load_vocabulary()["with_me"]).finditer(query)
    return next(filter(None, (_size_with_speaker(_companions(match)) for match in matches)), None)


def _companions(match: re.Match[str]) -> str:
    return " and ".join(filter(None, (match["others"], match["also"], match["later"])))


def _size_with_speaker(companions: str) -> int | None:
    total = 1
    for companion in re.split(r",? and (?:my |our )?|, (?:my |our )?", companions):
        noun = compile_words(
            r"^(?:(?P<n>{{numeral}}|an?) )?(?:[\w-]+ )?(?P<noun>{{relatives}})$"
        ).match(companion)
        if noun is None:
            return None
        is_plural = (
            noun["noun"].lower() == "children" or re.search(r"[^s]s$", noun["noun"]) is not None
        )
        if noun["n"] is None and is_plural:
            return None
        total += parse_number(noun["n"] or "one")
    return total
