"""Votes that a test writes down."""

from collections.abc import Sequence
from typing import Any

from jurygraph.schema.rating import Vote
from jurygraph.sources.ratings import VotesFile

NAMES = {name: name for name in ("item", "annotator", "label", "agent", "group", "dimension")}


def cast(*rows: tuple[str, str, Any], path: str = "v.csv", **fields: Sequence[Any]) -> VotesFile:
    """A file of votes: (item, annotator, label) on each line from line 2 on, with other fields as columns."""
    placed = []
    for place, (item, annotator, label) in enumerate(rows):
        more = {name: column[place] for name, column in fields.items()}
        placed.append((f"line {place + 2}", Vote(item=item, annotator=annotator, label=label, **more)))
    return VotesFile(path, tuple(placed), NAMES)


def _says(annotator: str, item: int) -> float:
    """Ada and Dee see whether the number is odd; Bo takes every fourth the other way, and Cy goes by thirds."""
    if annotator == "cy":
        return float(item % 3 == 1)
    return float((item + (annotator == "bo" and item % 4 == 3)) % 2)


PANEL = [(f"i{item}", one, _says(one, item)) for item in range(12) for one in ("ada", "bo", "cy", "dee")]
"""Twelve items, labelled 0 or 1 by four annotators."""

AGENTS = [("small", "large")[int(item[1:]) % 3 == 0] for item, _, _ in PANEL]
