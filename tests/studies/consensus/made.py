"""Votes for tests."""

from collections.abc import Sequence
from typing import Any

from jurygraph.schema.rating import Vote
from jurygraph.sources.ratings import VotesFile

NAMES = {name: name for name in ("item", "annotator", "label", "agent", "group", "dimension")}


def votes_file(
    *rows: tuple[str, str, Any], path: str = "v.csv", **fields: Sequence[Any]
) -> VotesFile:
    """Return a file of votes: (item, annotator, label) on each line from line 2 on, with other fields as columns."""
    placed = []
    for place, (item, annotator, label) in enumerate(rows):
        others = {name: column[place] for name, column in fields.items()}
        placed.append(
            (f"line {place + 2}", Vote(item=item, annotator=annotator, label=label, **others))
        )
    return VotesFile(path, tuple(placed), NAMES)


def _label_by(annotator: str, item: int) -> float:
    """Ada and Dee see whether the number is odd; Bo takes every fourth the other way, and Cy goes by thirds."""
    if annotator == "cy":
        return float(item % 3 == 1)
    return float((item + (annotator == "bo" and item % 4 == 3)) % 2)


PANEL = [
    (f"i{item}", one, _label_by(one, item))
    for item in range(12)
    for one in ("ada", "bo", "cy", "dee")
]
"""Twelve items, labelled 0 or 1 by four annotators."""

AGENTS = [("small", "large")[int(item[1:]) % 3 == 0] for item, _, _ in PANEL]
