"""The seven rule-based families of variants (DecompR, Table 7): other orders and layouts of one document."""

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from pydantic import JsonValue

from jurygraph.agents.presentation.document import (
    FORMATS,
    HEADINGS,
    SERVES,
    Document,
    Layout,
    canonical_form,
    data_of,
    document_of,
    parse,
    render,
)

T = TypeVar("T")
Family = Literal[
    "stakeholder-section-order",
    "satisfaction-summary-order",
    "shared-benefit-attribution",
    "trade-off-order",
    "format-conversion",
    "section-header",
    "low-level-formatting",
]
Draw = Callable[[Document, random.Random], Iterator[tuple[Document, Layout]]]
MOST_DRAWS = 200
"""Draws of an order until enough different ones are found."""


class Presentation(NamedTuple):
    """A text that says what the original says; `data` is what its text gives when it is read back."""

    family: str
    version: int
    text: str
    data: JsonValue


class PresentationSet(NamedTuple):
    """The original in the usual layout, variants of it, and the families that are `undefined`, with the reason.

    `discarded` counts, by family, variants that said something else when they were read back, and `broken`, by
    invariant, those that a model wrote.
    """

    original: Presentation
    variants: tuple[Presentation, ...]
    undefined: Mapping[str, str]
    discarded: Mapping[str, int]
    broken: Mapping[str, int] = {}

    def with_variants(self, others: "PresentationSet") -> "PresentationSet":
        """Return the set with the variants of other families of the same response."""
        return self._replace(
            variants=self.variants + others.variants,
            undefined={**self.undefined, **others.undefined},
            discarded={**self.discarded, **others.discarded},
            broken={**self.broken, **others.broken},
        )


def _orders(items: Sequence[T], rng: random.Random) -> Iterator[list[T]]:
    for _ in range(MOST_DRAWS if len(items) > 1 else 0):
        yield rng.sample(items, len(items))


def _reordered(kind: str) -> Draw:
    """Return a family that permutes the sections of a kind, or the records of its only section."""

    def draw(document: Document, rng: random.Random) -> Iterator[tuple[Document, Layout]]:
        own = [section for section in document if section.kind == kind]
        for order in _orders(own, rng):
            others = iter(order)
            yield tuple(next(others) if one.kind == kind else one for one in document), Layout()
        for records in _orders(own[0].records, rng) if len(own) == 1 and kind != "stakeholder" else ():
            changed = own[0]._replace(records=tuple(records))
            yield tuple(changed if one.kind == kind else one for one in document), Layout()

    return draw


def _attributions(document: Document, rng: random.Random) -> Iterator[tuple[Document, Layout]]:
    """Yield documents that name those who share an item in another order."""
    for _ in range(MOST_DRAWS if any(section.kind == "shared" for section in document) else 0):
        shown = []
        for section in document:
            records: list[Any] = [dict(record) for record in section.records]
            for record in records if section.kind == "shared" else ():
                if isinstance(record.get(SERVES), list):
                    record[SERVES] = rng.sample(record[SERVES], len(record[SERVES]))
            shown.append(section._replace(records=tuple(records)))
        yield tuple(shown), Layout()


def _formats(document: Document, rng: random.Random) -> Iterator[tuple[Document, Layout]]:
    pairs = list(product(FORMATS, FORMATS))
    rng.shuffle(pairs)
    # Those with one format throughout come first.
    for itinerary, rest in sorted(pairs, key=lambda pair: pair[0] != pair[1]):
        yield document, Layout(itinerary, rest)


def _headings(document: Document, rng: random.Random) -> Iterator[tuple[Document, Layout]]:
    for number in range(1, len(HEADINGS["itinerary"])):
        yield document, Layout(headings=dict.fromkeys(HEADINGS, number))


def _low_level(document: Document, rng: random.Random) -> Iterator[tuple[Document, Layout]]:
    for bullet, emphasis, indent in (
        ("*", "", ""),
        ("-", "**", ""),
        ("+", "", ""),
        ("-", "", "  "),
        ("•", "**", "   "),
    ):
        yield document, Layout(bullet=bullet, emphasis=emphasis, indent=indent)


FAMILIES: dict[Family, Draw] = {
    "stakeholder-section-order": _reordered("stakeholder"),
    "satisfaction-summary-order": _reordered("summary"),
    "shared-benefit-attribution": _attributions,
    "trade-off-order": _reordered("tradeoffs"),
    "format-conversion": _formats,
    "section-header": _headings,
    "low-level-formatting": _low_level,
}
ORIGINAL = "original"


def present(data: Any, versions: int = 5, families: Sequence[Family] = get_args(Family)) -> PresentationSet | None:
    """Return the presentations of structured data; None if it is of another form (`document_of`).

    Each family has `versions` different texts, none of them the original's; one with fewer is undefined for this
    response. Which are drawn depends on the data alone. Each text is read back: a variant that does not say the same is
    discarded and counted.
    """
    document = document_of(data)
    if document is None:
        return None
    text = render(document)
    form = canonical_form(document)
    seed = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
    variants: list[Presentation] = []
    undefined: dict[str, str] = {}
    discarded: dict[str, int] = {}
    for family in families if versions else ():
        texts: dict[str, JsonValue] = {}
        seen = {text}
        for changed, layout in FAMILIES[family](document, random.Random(f"{family} {seed}")):
            shown = render(changed, layout)
            if shown not in seen and len(texts) < versions:
                seen.add(shown)
                read = parse(shown)
                if canonical_form(read) == form:
                    texts[shown] = data_of(read)
                else:
                    discarded[family] = discarded.get(family, 0) + 1
        if len(texts) < versions:
            undefined[family] = f"{len(texts)} of {versions} versions exist"
        else:
            variants += [Presentation(family, number, *pair) for number, pair in enumerate(texts.items(), 1)]
    return PresentationSet(Presentation(ORIGINAL, 0, text, data_of(parse(text))), tuple(variants), undefined, discarded)
