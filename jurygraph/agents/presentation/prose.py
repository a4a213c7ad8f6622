"""Variants of a response as its policy wrote it (DecompR, A.1 and Table 7): its own words in other places and layouts.

The deriver `extract` writes down what the response says, each record with the passage that says it. The text is cut
into pieces, which are headings, items of a list and sentences; a piece is about what is recorded from it. An order
moves whole pieces, a layout changes what stands between them, and no word of a piece changes but a known heading. What
a piece refers back to may stand elsewhere then: the text says the same only in part of the ways in which a text can.
"""

import hashlib
import random
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from jurygraph.agents.extraction import UNKNOWN_VALUE_TEXT, Extract
from jurygraph.agents.maths.labels import iter_sentence_ends
from jurygraph.agents.presentation.rewrites import (
    Statement,
    count_strength_words,
    find_mentioned_people,
    find_numbers,
)
from jurygraph.agents.presentation.variants import (
    FAMILIES,
    MAX_ORDER_DRAWS,
    ORIGINAL_FAMILY,
    SECTION_HEADINGS,
    Presentation,
    PresentationFamily,
    PresentationSet,
)
from jurygraph.agents.roles import DeriverInput
from jurygraph.concurrency import gather_all
from jurygraph.schema import Material, Response, TaskView
from jurygraph.schema.frozen_model import JsonFields, JsonObject

if TYPE_CHECKING:
    from jurygraph.models.judge_client import JudgeClient

NEED_STATUSES = ("met", "met in part", "not met")
NO_RECORD_REASON = "no record of the text was found in it"
UNREADABLE_REASON = "no record, read back"


class ProsePiece(NamedTuple):
    """A heading, an item of a list, or a sentence: its text, and what stands `before` it (blanks, line breaks, a
    bullet).

    `topics` are the kinds of the records that quote it, `people` whom these are about, `values` what they name, and
    `statuses` those of needs that they report.
    """

    before: str
    text: str
    is_heading: bool
    topics: frozenset[str] = frozenset()
    people: frozenset[str] = frozenset()
    values: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()

    @property
    def is_table_row(self) -> bool:
        return self.text.startswith("|")


class ProseFacts(NamedTuple):
    """Content of a text as `extract` reads it: numbers and names, the status of each person's needs, and how often it
    negates and compares.
    """

    numbers: frozenset[str]
    names: frozenset[str]
    statuses: tuple[tuple[str, str], ...]
    negations: int
    comparatives: int


class Prose(NamedTuple):
    """A response in pieces; `end` is the blank space behind the last one, and `people` those of whom it may speak.

    `note` says which records the model gave that the text does not have.
    """

    response: Response
    pieces: tuple[ProsePiece, ...]
    end: str
    people: tuple[str, ...]
    text_facts: ProseFacts
    note: str

    @property
    def original(self) -> Presentation:
        return Presentation(ORIGINAL_FAMILY, 0, self.response.text, self.response.data)

    def statements_by_name(self) -> dict[str, Statement]:
        """Return what a model has to say in other words: a statement for each piece that is no heading."""
        statements = {}
        for number, piece in enumerate(self.pieces, 1):
            if not piece.is_heading:
                statements[f"s{number}"] = Statement(
                    kind=min(piece.topics, default="other"),
                    text=piece.text,
                    verbatim_values=piece.values,
                    people=find_mentioned_people(piece.text, self.people),
                    is_constraint_unmet=any(status != "met" for status in piece.statuses),
                )
        return statements


def _build_record_kinds(people: Sequence[str]) -> JsonFields:
    """Return the kinds of records for `extract`; without known people, they are the names that the text gives."""
    person_field = {"about": "the person", "one_of": list(people)}
    return {
        "itinerary": {"what": "the place, service or activity"},
        "stakeholders": {
            "person": {**person_field, "about": "the one person that the passage is about"}
        },
        "summary": {
            "person": person_field,
            "need": "the need or wish",
            "status": {"about": "whether it is served", "one_of": list(NEED_STATUSES)},
        },
        "shared": {"item": "what several people have together"},
        "tradeoffs": {"what": "what was weighed or given up"},
    }


async def read_prose(
    view: TaskView, response: Response, people: Sequence[str], client: "JudgeClient"
) -> Prose | str:
    """Return a response as pieces with what they are about, or the reason why it cannot be read.

    `people` are the ids of the task's stakeholders. Raises the errors that end a run.
    """
    if not response.text.strip() or response.messages:
        return "it is empty, or a conversation"
    deriver = Extract(records=_build_record_kinds(people))
    material = await deriver.derive(DeriverInput(view, response, {}, client))
    if material.status == "failed" or not material.evidence:
        return (material.failure and material.failure.message) or NO_RECORD_REASON
    records = list(_read_records(material))
    known_people = tuple(people) or tuple(dict.fromkeys(_iter_field_values(records, "person")))
    pieces, end = split_into_pieces(response.text)
    labelled_pieces = tuple(_label_prose_pieces(pieces, records))
    facts = _collect_prose_facts(records, known_people)
    return Prose(response, labelled_pieces, end, known_people, facts, material.note)


class _ProseRecord(NamedTuple):
    """A record with its kind, and the evidence of the passage that it quotes."""

    kind: str
    fields: Mapping[str, str]
    evidence: Any


def _read_records(material: Material) -> Iterator[_ProseRecord]:
    data: Any = material.data
    evidence_by_path = {evidence.of: evidence for evidence in material.evidence}
    for kind, records in data.items():
        for number, fields in enumerate(records):
            evidence = evidence_by_path.get(f"$['{kind}'][{number}]")
            if evidence is not None and UNKNOWN_VALUE_TEXT not in fields.values():
                yield _ProseRecord(kind, fields, evidence)


def _iter_field_values(records: Iterable[_ProseRecord], *names: str) -> Iterator[str]:
    """Yield what the records say in the fields of these names, as far as they have them."""
    for record in records:
        for name in names:
            if name in record.fields:
                yield record.fields[name]


def _collect_prose_facts(records: Sequence[_ProseRecord], people: Sequence[str]) -> ProseFacts:
    # The words of a passage that several records quote count once.
    quote_by_start = {record.evidence.start: record.evidence.quote for record in records}
    text = "\n".join(quote_by_start.values())
    strength_word_counts = count_strength_words(text)
    statuses = [
        (record.fields["person"].casefold(), record.fields["status"])
        for record in records
        if record.kind == "summary"
    ]
    return ProseFacts(
        numbers=frozenset(find_numbers(text)),
        names=find_mentioned_people(text, people),
        statuses=tuple(sorted(statuses)),
        negations=strength_word_counts["negation"],
        comparatives=strength_word_counts["comparison"],
    )


# Pieces

_NONEMPTY_LINE_PATTERN = re.compile(r"[^\n]*\S")
_LINE_START_PATTERN = re.compile(r"[^\S\n]*(?:#{1,6}[^\S\n]+|(?:[-+•]|\*(?!\*)|\d+[.)])[^\S\n]+)?")
_HEADING_PATTERN = re.compile(r"[^\S\n]*(?:#{1,6}\s|\*\*[^*\n]+\*\*:?$|[^.!?|\n]{1,60}:$)")
_SENTENCE_GAP_PATTERN = re.compile(r"[.!?…]*[\"”’)\]*]*\s+")
_BACK_REFERENCE_PATTERN = re.compile(
    r"(?:however|but|so|then|therefore|instead|also|and|both|otherwise|still|yet|he|she|they|it|this|that|these|those"
    r"|his|her|their|its)\b",
    re.IGNORECASE,
)
"""What begins a piece that cannot be moved away from the one before it."""


def split_into_pieces(text: str) -> tuple[tuple[ProsePiece, ...], str]:
    """Return the pieces of a text, and the blank space behind the last: together they are the text."""
    pieces = []
    end = 0
    for line in _NONEMPTY_LINE_PATTERN.finditer(text):
        start = _LINE_START_PATTERN.match(text, line.start(), line.end())
        assert start is not None, "everything in it may be absent"
        is_heading = _HEADING_PATTERN.match(line.group()) is not None
        bounds = [start.end()]
        if not is_heading and not text.startswith("|", start.end()):
            for mark in iter_sentence_ends(text, start.end(), line.end()):
                gap = _SENTENCE_GAP_PATTERN.match(text, mark, line.end())
                if gap is not None and gap.end() < line.end():
                    bounds.append(gap.end())
        for begin, stop in pairwise([*bounds, line.end()]):
            words = text[begin:stop].rstrip()
            pieces.append(ProsePiece(text[end:begin], words, is_heading))
            end = begin + len(words)
    return tuple(pieces), text[end:]


def join_pieces(pieces: Sequence[ProsePiece], end: str) -> str:
    return "".join(f"{piece.before}{piece.text}" for piece in pieces) + end


def _label_prose_pieces(
    pieces: Iterable[ProsePiece], records: Sequence[_ProseRecord]
) -> Iterator[ProsePiece]:
    """Yield the pieces with what the records that quote them are about."""
    end = 0
    for piece in pieces:
        start = end + len(piece.before)
        end = start + len(piece.text)
        quoting_records = [
            record
            for record in records
            if start < record.evidence.end and record.evidence.start < end
        ]
        quoted_field_values = _iter_field_values(quoting_records, "what", "item", "need")
        yield piece._replace(
            topics=frozenset(record.kind for record in quoting_records),
            people=frozenset(_iter_field_values(quoting_records, "person")),
            values=tuple(value for value in quoted_field_values if value in piece.text),
            statuses=tuple(_iter_field_values(quoting_records, "status")),
        )


# Families

PieceRange = tuple[int, int]
"""The range of the pieces that an order moves together."""
ProseVariantGenerator = Callable[[Prose, random.Random], Iterator[str]]


def _find_person_sections(prose: Prose) -> list[PieceRange]:
    """Return the ranges of pieces about one person each: their passages, headings that name them, and what follows
    these within a line."""
    groups = []
    previous_person = None
    for index, piece in enumerate(prose.pieces):
        people = piece.people if "stakeholders" in piece.topics else frozenset()
        if piece.is_heading:
            people = find_mentioned_people(piece.text, prose.people)
        person = min(people) if len(people) == 1 else None
        is_same_line = "\n" not in piece.before and not piece.topics and index > 0
        if is_same_line or (person is not None and person == previous_person):
            person = previous_person
            if person is not None:
                groups[-1] = (groups[-1][0], index + 1)
        elif person is not None:
            groups.append((index, index + 1))
        previous_person = person
    return groups


def _find_pieces_about(topic: str, prose: Prose) -> list[PieceRange]:
    numbered_pieces = enumerate(prose.pieces)
    return [(index, index + 1) for index, piece in numbered_pieces if topic in piece.topics]


def _exchange_places(
    find_piece_ranges: Callable[[Prose], list[PieceRange]], prose: Prose, rng: random.Random
) -> Iterator[str]:
    """Yield the text with groups of pieces in each other's place: all headed or none, all rows of tables or none."""
    groups = find_piece_ranges(prose)
    pieces = prose.pieces
    first_pieces_of_groups = [pieces[start] for start, _ in groups]
    # A heading in the place of a sentence, or a row outside its table, would read as something else.
    kinds = {(piece.is_heading, piece.is_table_row) for piece in first_pieces_of_groups}
    refers_back = any(_BACK_REFERENCE_PATTERN.match(piece.text) for piece in first_pieces_of_groups)
    if len(groups) < 2 or len(kinds) > 1 or refers_back:
        return
    for _ in range(MAX_ORDER_DRAWS):
        moved_pieces: list[ProsePiece] = []
        end = 0
        order = rng.sample(groups, len(groups))
        for (start, stop), source in zip(groups, order, strict=True):
            first, *others = pieces[slice(*source)]
            # what stands before a place, such as a number, stays there
            first = first._replace(before=pieces[start].before)
            moved_pieces += [*pieces[end:start], first, *others]
            end = stop
        yield join_pieces([*moved_pieces, *pieces[end:]], prose.end)


def _shuffle_attributions(prose: Prose, rng: random.Random) -> Iterator[str]:
    """Yield the text with the names of each enumeration ("Ann, Bob and Cy") in another order."""
    name = "|".join(map(re.escape, sorted(prose.people, key=len, reverse=True)))
    name_list_pattern = rf"(?<!\w)(?:{name})(?:, *(?:{name}))*,? +(?:and|&) +(?:{name})(?!\w)"
    enumeration_pattern = re.compile(name_list_pattern, re.IGNORECASE)
    name_pattern = re.compile(rf"(?<!\w)(?:{name})(?!\w)", re.IGNORECASE)
    text = prose.response.text
    if not name or not enumeration_pattern.search(text):
        return

    def shuffle_names(found: re.Match[str]) -> str:
        names = name_pattern.findall(found[0])
        drawn_names = iter(rng.sample(names, len(names)))
        return name_pattern.sub(lambda _: next(drawn_names), found[0])

    for _ in range(MAX_ORDER_DRAWS):
        yield enumeration_pattern.sub(shuffle_names, text)


def _vary_format(prose: Prose, rng: random.Random) -> Iterator[str]:
    """Yield the same pieces as bullets, numbers, running text, paragraphs and two tables."""
    if any("|" in piece.text for piece in prose.pieces):
        return
    for first, before, after in (
        ("", "- ", "\n"),
        ("", "{number}. ", "\n"),
        ("", "", " "),
        ("", "", "\n\n"),
        ("| |\n|---|\n", "| ", " |\n"),
        ("| | |\n|---|---|\n", "| {number} | ", " |\n"),
    ):
        blocks = []
        number = 0
        for piece in prose.pieces:
            if piece.is_heading:
                blocks.append(f"\n\n{piece.before.strip()} {piece.text}\n\n".replace("\n ", "\n"))
                number = 0
                continue
            number += 1
            start = first if number == 1 else ""
            blocks.append(f"{start}{before.format(number=number)}{piece.text}{after}")
        yield "".join(blocks).strip()


def _vary_headings(prose: Prose, rng: random.Random) -> Iterator[str]:
    """Yield the text with other words for each heading that is one of the known ones."""
    for title_index_offset in range(1, len(SECTION_HEADINGS["itinerary"])):
        pieces = []
        for piece in prose.pieces:
            if piece.is_heading:
                piece = piece._replace(text=_rename_heading(piece.text, title_index_offset))
            pieces.append(piece)
        yield join_pieces(pieces, prose.end)


def _rename_heading(heading: str, title_index_offset: int) -> str:
    title = heading.strip("*: ")
    for kind, titles in SECTION_HEADINGS.items():
        for number, known_title in enumerate(titles):
            other = titles[(number + title_index_offset) % len(titles)]
            if title.casefold() == known_title.casefold():
                return heading.replace(title, other)
            if kind == "stakeholder" and title.casefold().startswith(f"{known_title.casefold()} "):
                return heading.replace(title[: len(known_title)], other, 1)
    return heading


def _vary_typography(prose: Prose, rng: random.Random) -> Iterator[str]:
    """Yield the text with other blank space, line lengths, bullets and emphasis."""
    if any(piece.is_table_row for piece in prose.pieces):
        return
    text = prose.response.text
    bullet_translation = str.maketrans("-*+", "*-•")
    pieces_with_other_bullets = [
        piece._replace(before=piece.before.translate(bullet_translation)) for piece in prose.pieces
    ]
    yield textwrap.indent(text, "  ")
    yield re.sub(r"\n+", "\n\n\n", text)
    yield "\n".join(textwrap.fill(line, 60) for line in text.split("\n"))
    yield re.sub(r"(?<=\S)$", "  ", text, flags=re.MULTILINE)
    yield textwrap.indent(join_pieces(pieces_with_other_bullets, prose.end), "    ")
    yield re.sub(r"(?<=\S )(\d[\d.,:]*\d|\d)(?![*\w])", r"**\1**", text)


_GENERATOR_BY_FAMILY: Mapping[PresentationFamily, ProseVariantGenerator] = {
    "stakeholder-section-order": partial(_exchange_places, _find_person_sections),
    "satisfaction-summary-order": partial(_exchange_places, partial(_find_pieces_about, "summary")),
    "shared-benefit-attribution": _shuffle_attributions,
    "trade-off-order": partial(_exchange_places, partial(_find_pieces_about, "tradeoffs")),
    "format-conversion": _vary_format,
    "section-header": _vary_headings,
    "low-level-formatting": _vary_typography,
}


def make_prose_presentations(prose: Prose, versions: int = 5) -> PresentationSet:
    """Return variants of a response in its own words, as `present` does of structured data.

    Which are drawn depends on the text alone.
    """
    text = prose.response.text
    seed = hashlib.sha256(text.encode()).hexdigest()
    presentations = PresentationSet(prose.original)
    for family in FAMILIES if versions else ():
        drawn_texts = _GENERATOR_BY_FAMILY[family](prose, random.Random(f"{family} {seed}"))
        texts = [other for other in dict.fromkeys(drawn_texts) if other != text][:versions]
        presentations.add_family(family, dict.fromkeys(texts, prose.response.data), versions)
    return presentations


# What a model wrote, read back


def first_difference(original: ProseFacts, variant: ProseFacts) -> str | None:
    """Return what of a text is read otherwise in a variant of it: numbers, names, …; None if nothing is."""
    for field in ProseFacts._fields:
        if getattr(original, field) != getattr(variant, field):
            return f"{field}, read back"
    return None


async def keep_faithful_variants(
    prose: Prose, view: TaskView, model_presentations: PresentationSet, client: "JudgeClient"
) -> PresentationSet:
    """Return what a model wrote without the variants in which `extract` reads something else than in the original.

    They are counted in `discarded` and `broken`. A family that has fewer versions left is undefined for this response.
    Raises the errors that end a run.
    """

    async def find_fact_difference(variant: Presentation) -> str | None:
        response = prose.response.model_copy(update={"text": variant.text})
        read = await read_prose(view, response, prose.people, client)
        if isinstance(read, str):
            return UNREADABLE_REASON
        return first_difference(prose.text_facts, read.text_facts)

    differences = await gather_all(map(find_fact_difference, model_presentations.variants))
    presentations = PresentationSet(model_presentations.original)
    presentations.add(replace(model_presentations, variants=[]))
    texts: defaultdict[str, JsonObject] = defaultdict(dict)
    for variant, difference in zip(model_presentations.variants, differences, strict=True):
        if difference is None:
            texts[variant.family][variant.text] = variant.data
        else:
            presentations.discard(variant.family, difference)
    versions = Counter(variant.family for variant in model_presentations.variants)
    for family, number in versions.items():
        presentations.add_family(family, texts[family], number, "are left")
    return presentations
