"""Edits of a text: the replaced passages, their replacements, and why the text is worse afterwards."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from jurygraph.schema import Response, Variant

T = TypeVar("T")
Kind = Literal["number", "step", "answer", "negation", "unit", "entity"]


@dataclass(frozen=True, slots=True)
class Change:
    """One passage of a text, `text[start:end]`, and its replacement."""

    start: int
    end: int
    after: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A contrast of a text: non-overlapping changes in their order; `reason` explains the error that they introduce."""

    kind: Kind
    changes: tuple[Change, ...]
    reason: str

    def apply(self, text: str) -> str:
        """Return the text after the edit."""
        parts, end = [], 0
        for change in self.changes:
            parts += [text[end : change.start], change.after]
            end = change.end
        return "".join([*parts, text[end:]])

    def variant(self, name: str, response: Response) -> Variant:
        """Return the response after the edit as evaluators see it: without data, which the edit may contradict."""
        first, last = self.changes[0], self.changes[-1]
        text = self.apply(response.text)
        growth = len(text) - len(response.text)
        edit_record = {
            "kind": self.kind,
            "start": first.start,
            "end": last.end,
            "before": response.text[first.start : last.end],
            "after": text[first.start : last.end + growth],
            "says": self.reason,
        }
        return Variant(response=Response(id=name, text=text), edit=edit_record)


def replace_passage(kind: Kind, start: int, end: int, after: str, says: str) -> Edit:
    """Return the edit that replaces one passage."""
    return Edit(kind, (Change(start, end, after),), says)


def choose_some(candidates: Sequence[T], most: int, seed: str) -> list[T]:
    """Return at most `most` of the candidates, in their order; the selection depends on the seed only."""
    if len(candidates) <= most:
        return list(candidates)
    return [candidates[index] for index in sorted(random.Random(seed).sample(range(len(candidates)), most))]
