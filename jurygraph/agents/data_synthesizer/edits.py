"""An edit of a text: what stood where, what stands there now, and why the text is worse for it."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from jurygraph.schema import Response, Variant

T = TypeVar("T")
Kind = Literal["number", "step", "answer", "negation", "unit", "entity"]


@dataclass(frozen=True, slots=True)
class Change:
    """One passage of a text, `text[start:end]`, and what takes its place."""

    start: int
    end: int
    after: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A contrast of a text: changes that do not overlap, in their order, of which `says` tells what they make wrong."""

    kind: Kind
    changes: tuple[Change, ...]
    says: str

    def made(self, text: str) -> str:
        """The text after the edit."""
        parts, end = [], 0
        for change in self.changes:
            parts += [text[end : change.start], change.after]
            end = change.end
        return "".join([*parts, text[end:]])

    def variant(self, name: str, response: Response) -> Variant:
        """The response after the edit, as evaluators see it: without data, which the edit may contradict."""
        first, last = self.changes[0], self.changes[-1]
        text = self.made(response.text)
        grown = len(text) - len(response.text)
        told = {
            "kind": self.kind,
            "start": first.start,
            "end": last.end,
            "before": response.text[first.start : last.end],
            "after": text[first.start : last.end + grown],
            "says": self.says,
        }
        return Variant(response=Response(id=name, text=text), edit=told)


def replaced(kind: Kind, start: int, end: int, after: str, says: str) -> Edit:
    """The edit that puts something in the place of one passage."""
    return Edit(kind, (Change(start, end, after),), says)


def chosen(found: Sequence[T], most: int, seed: str) -> list[T]:
    """At most so many of what was found, in its order; which ones hangs on the seed alone."""
    if len(found) <= most:
        return list(found)
    return [found[place] for place in sorted(random.Random(seed).sample(range(len(found)), most))]
