"""Variants of a structured response by rule (DecompR, Table 7): other orders and layouts of one document.

A structured response is read as sections of records; its text, in one of several layouts, is read back by a parser.
A record is a line `field: value; field: value`, a sentence `Its field is value; its field is value.`, or part of a
table. Names and values that could be read otherwise are JSON strings in quotation marks."""

import hashlib
import json
import random
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args

from pydantic import ConfigDict, Field, JsonValue, ValidationError

from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import EMPTY_OBJECT, JsonFields, JsonObject, ReadOnlyFields

FactValue = str | int | float | bool | None | list[str]
FactRecord = dict[str, FactValue]
LayoutFormat = Literal["bullets", "numbers", "prose", "table", "columns", "blocks"]
LAYOUT_FORMATS: tuple[LayoutFormat, ...] = get_args(LayoutFormat)
PRESENTATION_WORDS: ReadOnlyFields = tomllib.loads(
    Path(__file__).with_name("words.toml").read_text("utf-8")
)
"""Headings by kind of section, and the operations of the families that a model writes."""
SECTION_HEADINGS: Mapping[str, Sequence[str]] = PRESENTATION_WORDS["headings"]
"""The headings of each kind of section, the usual one first; that of a stakeholder is followed by the name."""
SERVED_PEOPLE_FIELD = "serves"
"""Field of a record of what several share: the names of those that it serves."""

_SCALAR_VALUE_PATTERN = r'(?:"(?:[^"\\]|\\.)*"|[^"|*]+?)'
_LIST_PATTERN = rf"\[(?:{_SCALAR_VALUE_PATTERN}(?:, {_SCALAR_VALUE_PATTERN})*)?\]"
_FIELD_VALUE_PAIR_PATTERN = re.compile(
    rf"(?P<field>{_SCALAR_VALUE_PATTERN}): (?P<value>{_LIST_PATTERN}|{_SCALAR_VALUE_PATTERN})(?:; |$)"
)
_FIELD_VALUE_CLAUSE_PATTERN = re.compile(
    rf"[Ii]ts (?P<field>{_SCALAR_VALUE_PATTERN}) is (?P<value>{_LIST_PATTERN}|{_SCALAR_VALUE_PATTERN})(?:; |\.$)"
)
_MARKDOWN_CELL_PATTERN = re.compile(rf" *({_LIST_PATTERN}|{_SCALAR_VALUE_PATTERN}|) *\|")
_LIST_ITEM_PATTERN = re.compile(rf"({_SCALAR_VALUE_PATTERN})(?:, |$)")
_BULLET_PATTERN = re.compile(r"^(?:[-+•]|\*(?!\*)|\d+[.)]) +")
_ENTRY_HEADING_PATTERN = re.compile(r"Entry \d+")
_UNSAFE_TEXT_PATTERN = re.compile(
    r"""["`;|*#\[\]\\]|[:,.](?:\s|$)|(?:^|\s)(?:is|[Ii]ts|Entry)(?:\s|$)|\s\s|^[-+•]|^\d+\)|^\s|\s$"""
)


class Section(NamedTuple):
    """A part of a document; `name` is that of a stakeholder, if it is about one."""

    kind: str
    records: tuple[FactRecord, ...]
    name: str = ""


class Layout(NamedTuple):
    """The form of the itinerary and of the rest of a document, its bullets, emphasis and indent.

    `heading` is the position of its headings among those of each kind in `SECTION_HEADINGS`.
    """

    itinerary: LayoutFormat = "bullets"
    rest: LayoutFormat = "bullets"
    heading: int = 0
    bullet: str = "-"
    emphasis: str = ""
    indent: str = ""


FactDocument = tuple[Section, ...]
_NonEmptyRecords = list[Annotated[FactRecord, Field(min_length=1)]]


class _DocumentData(FrozenModel):
    """The parts of structured data, of their types exactly: a text is no list of sentences."""

    model_config = ConfigDict(strict=True)

    itinerary: _NonEmptyRecords = Field(default_factory=list)
    stakeholders: dict[str, list[FactValue]] = EMPTY_OBJECT
    summary: dict[str, FactRecord] = EMPTY_OBJECT
    shared: _NonEmptyRecords = Field(default_factory=list)
    tradeoffs: list[FactValue] = Field(default_factory=list)


def data_to_document(data: Any) -> FactDocument | None:
    """Return structured data as a document; None for data of another form.

    It is a list of flat records, the itinerary, or a mapping with some of `itinerary`, `stakeholders` (lists of
    sentences by name), `summary` (the status of each constraint by stakeholder), `shared` (records with `serves`, a
    list of names) and `tradeoffs` (sentences).
    """
    parts = {"itinerary": data} if isinstance(data, list) else data
    try:
        document_data = _DocumentData.model_validate(parts)
    except ValidationError:
        return None
    sections = [Section("itinerary", tuple(document_data.itinerary))]
    for name, sentences in document_data.stakeholders.items():
        sections.append(Section("stakeholder", _make_sentence_records(sentences), name))
    rows = [{"stakeholder": name, **statuses} for name, statuses in document_data.summary.items()]
    sections.append(Section("summary", tuple(rows)))
    sections.append(Section("shared", tuple(document_data.shared)))
    sections.append(Section("tradeoffs", _make_sentence_records(document_data.tradeoffs)))
    return tuple(section for section in sections if section.records) or None


def _make_sentence_records(sentences: Iterable[FactValue]) -> tuple[FactRecord, ...]:
    return tuple({"text": sentence} for sentence in sentences)


def document_to_data(document: FactDocument) -> JsonValue:
    """Return the data of a document: the itinerary alone as a list, else a mapping of the parts that there are."""
    data: JsonFields = {}
    for section in document:
        if section.kind == "stakeholder":
            sentences_by_name = data.setdefault("stakeholders", {})
            sentences_by_name[section.name] = [record["text"] for record in section.records]
        elif section.kind == "summary":
            rows = [dict(record) for record in section.records]
            data["summary"] = {row.pop("stakeholder"): row for row in rows}
        elif section.kind == "tradeoffs":
            data["tradeoffs"] = [record["text"] for record in section.records]
        else:
            data[section.kind] = list(section.records)
    return data["itinerary"] if data.keys() == {"itinerary"} else data


def write_canonical_form(document: FactDocument) -> str:
    """Return what a document says, whatever the order of people, of shared items and names, and of trade-offs."""
    section_contents = []
    for section in document:
        records = _change_served_people(section, sorted)
        if section.kind in ("summary", "shared", "tradeoffs"):
            records.sort(key=lambda record: json.dumps(record, sort_keys=True))
        section_contents.append([section.kind, section.name, records])
    return json.dumps(sorted(section_contents, key=json.dumps), sort_keys=True)


def _change_served_people(
    section: Section, change: Callable[[list[str]], list[str]]
) -> list[FactRecord]:
    """Return copies of the records of a section, each with a change of the names that it serves, if it is shared."""
    records = [dict(record) for record in section.records]
    for record in records:
        names = record.get(SERVED_PEOPLE_FIELD)
        if section.kind == "shared" and isinstance(names, list):
            record[SERVED_PEOPLE_FIELD] = change(names)
    return records


def render_document(document: FactDocument, layout: Layout = Layout()) -> str:  # noqa: B008 - an immutable tuple
    blocks = []
    for section in document:
        heading = SECTION_HEADINGS[section.kind][layout.heading]
        if section.kind == "stakeholder":
            heading = f"{heading} {_write_value(section.name)}"
        form = layout.itinerary if section.kind == "itinerary" else layout.rest
        lines = [
            f"{layout.indent}{line}" for line in _iter_layout_lines(section.records, form, layout)
        ]
        blocks.append("\n".join([f"## {heading}", *lines]))
    return "\n\n".join(blocks)


def _iter_layout_lines(
    records: Sequence[FactRecord], form: LayoutFormat, layout: Layout
) -> Iterator[str]:
    if form in ("table", "columns"):
        yield from _iter_table_lines(records, form)
        return
    mark = layout.emphasis
    for number, record in enumerate(records, 1):
        pairs = [
            f"{mark}{_write_value(field)}{mark}: {_write_value(value)}"
            for field, value in record.items()
        ]
        if form == "blocks":
            yield from [f"Entry {number}", *pairs]
        elif form == "prose":
            clauses = [
                f"its {_write_value(field)} is {_write_value(value)}"
                for field, value in record.items()
            ]
            yield f"I{'; '.join(clauses)[1:]}."
        else:
            bullet = layout.bullet if form == "bullets" else f"{number}."
            yield f"{bullet} {'; '.join(pairs)}"


def _iter_table_lines(records: Sequence[FactRecord], form: LayoutFormat) -> Iterator[str]:
    """Yield a Markdown table: a row for each record, or in the form `columns` a column."""
    fields = list(dict.fromkeys(chain.from_iterable(records)))
    rows = [[_write_value(field) for field in fields]]
    for record in records:
        rows.append([_write_value(record[field]) if field in record else "" for field in fields])
    if form == "columns":
        numbers = ["", *map(str, range(1, len(rows)))]
        rows = [numbers, *map(list, zip(*rows, strict=True))]
    header, *body = rows
    for row in (header, ["---"] * len(header), *body):
        yield f"| {' | '.join(row)} |"


def _write_value(value: FactValue) -> str:
    """Return a value as a layout shows it: as it is, or as JSON where it could be read as something else."""
    if isinstance(value, list):
        return f"[{', '.join(map(_write_value, value))}]"
    if not isinstance(value, str):
        return json.dumps(value)
    is_safe_unquoted = (
        value.isprintable() and value.strip() and not _UNSAFE_TEXT_PATTERN.search(value)
    )
    if is_safe_unquoted and _read_value(value) == value:
        return value
    quoted_text = json.dumps(value, ensure_ascii=not value.isprintable())
    return quoted_text.replace("|", "\\u007c").replace("*", "\\u002a")


def _read_value(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return [_read_value(item) for item in _LIST_ITEM_PATTERN.findall(text[1:-1])]
    try:
        return json.loads(text)
    except ValueError:
        return text


def parse_document(text: str) -> FactDocument:
    """Return the document that a text by `render_document` says, whatever its layout."""
    sections = []
    for block in re.split(r"^## +", text.strip(), flags=re.MULTILINE)[1:]:
        heading, *lines = [line.strip() for line in block.split("\n") if line.strip()]
        kinds = (kind for kind, titles in SECTION_HEADINGS.items() if heading in titles)
        kind = next(kinds, "stakeholder")
        name = ""
        if kind == "stakeholder":
            prefix = next(
                title for title in SECTION_HEADINGS[kind] if heading.startswith(f"{title} ")
            )
            name = str(_read_value(heading.removeprefix(f"{prefix} ")))
        sections.append(Section(kind, tuple(_parse_section_records(lines)), name))
    return tuple(sections)


def _parse_section_records(lines: Sequence[str]) -> list[FactRecord]:
    if lines[0].startswith("|"):
        # Without the second line, which divides the header from the rows.
        rows = [_MARKDOWN_CELL_PATTERN.findall(line[1:]) for line in (lines[0], *lines[2:])]
        if rows[0][0] == "":
            rows = list(map(list, zip(*rows[1:], strict=True)))
        fields = [str(_read_value(cell)) for cell in rows[0]]
        return [
            {
                field: _read_value(cell)
                for field, cell in zip(fields, row, strict=True)
                if cell != ""
            }
            for row in rows[1:]
        ]
    records: list[FactRecord] = []
    has_entry_headings = any(_ENTRY_HEADING_PATTERN.fullmatch(line) for line in lines)
    for line in lines:
        if not has_entry_headings or _ENTRY_HEADING_PATTERN.fullmatch(line):
            records.append({})
        if not _ENTRY_HEADING_PATTERN.fullmatch(line):
            records[-1] |= _parse_record(_BULLET_PATTERN.sub("", line))
    return records


def _parse_record(line: str) -> FactRecord:
    pattern = _FIELD_VALUE_CLAUSE_PATTERN if line.startswith("Its ") else _FIELD_VALUE_PAIR_PATTERN
    plain_line = re.sub(rf"\*\*({_SCALAR_VALUE_PATTERN})\*\*: ", r"\1: ", line)
    return {
        str(_read_value(match["field"])): _read_value(match["value"])
        for match in pattern.finditer(plain_line)
    }


T = TypeVar("T")
PresentationFamily = Literal[
    "stakeholder-section-order",
    "satisfaction-summary-order",
    "shared-benefit-attribution",
    "trade-off-order",
    "format-conversion",
    "section-header",
    "low-level-formatting",
]
VariantDraws = Iterator[tuple[FactDocument, Layout]]
VariantGenerator = Callable[[FactDocument, random.Random], VariantDraws]
MAX_ORDER_DRAWS = 200
"""Draws of an order until enough different ones are found."""


class Presentation(NamedTuple):
    """A text that says what the original says; `data` is what its text gives when it is read back."""

    family: str
    version: int
    text: str
    data: JsonValue


@dataclass
class PresentationSet:
    """The original in the usual layout, variants of it, and the families that are `undefined`, with the reason.

    `discarded` counts, by family, variants that said something else when they were read back, and `broken`, by
    invariant, those that a model wrote.
    """

    original: Presentation
    variants: list[Presentation] = field(default_factory=list)
    undefined: dict[str, str] = field(default_factory=dict)
    discarded: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)

    def add_family(
        self, family: str, texts: Mapping[str, JsonValue], versions: int, verb: str = "exist"
    ) -> None:
        """Add the versions of a family, each text with its data; with fewer than `versions` it is undefined."""
        # All or none: σ²_Sem pools the variants of all families, so each that counts has equally many.
        if len(texts) < versions:
            self.undefined[family] = f"{len(texts)} of {versions} versions {verb}"
            return
        for number, (text, data) in enumerate(texts.items(), 1):
            self.variants.append(Presentation(family, number, text, data))

    def discard(self, family: str, broken_invariant: str | None = None) -> None:
        self.discarded[family] += 1
        if broken_invariant is not None:
            self.broken[broken_invariant] += 1

    def add(self, others: "PresentationSet") -> None:
        """Add the variants of other families, and what was counted of them."""
        self.variants += others.variants
        self.undefined |= others.undefined
        self.discarded += others.discarded
        self.broken += others.broken


def _draw_orders(items: Sequence[T], rng: random.Random) -> Iterator[list[T]]:
    for _ in range(MAX_ORDER_DRAWS if len(items) > 1 else 0):
        yield rng.sample(items, len(items))


def _reorder(kind: str, document: FactDocument, rng: random.Random) -> VariantDraws:
    """Permute the sections of a kind, or the records of its only section."""
    sections = [section for section in document if section.kind == kind]
    orders = _draw_orders(sections, rng)
    if sections and kind != "stakeholder":
        (section,) = sections
        record_orders = _draw_orders(section.records, rng)
        orders = ([section._replace(records=tuple(records))] for records in record_orders)
    for order in orders:
        others = iter(order)
        yield (
            tuple(next(others) if other.kind == kind else other for other in document),
            Layout(),
        )


def _shuffle_attributions(document: FactDocument, rng: random.Random) -> VariantDraws:
    if not any(section.kind == "shared" for section in document):
        return
    for _ in range(MAX_ORDER_DRAWS):
        sections = []
        for section in document:
            records = _change_served_people(section, lambda names: rng.sample(names, len(names)))
            sections.append(section._replace(records=tuple(records)))
        yield tuple(sections), Layout()


def _vary_format(document: FactDocument, rng: random.Random) -> VariantDraws:
    pairs = list(product(LAYOUT_FORMATS, LAYOUT_FORMATS))
    rng.shuffle(pairs)
    # Those with one format throughout come first.
    for itinerary, rest in sorted(pairs, key=lambda pair: pair[0] != pair[1]):
        yield document, Layout(itinerary, rest)


def _vary_headings(document: FactDocument, rng: random.Random) -> VariantDraws:
    for number in range(1, len(SECTION_HEADINGS["itinerary"])):
        yield document, Layout(heading=number)


def _vary_typography(document: FactDocument, rng: random.Random) -> VariantDraws:
    forms = (("*", "", ""), ("-", "**", ""), ("+", "", ""), ("-", "", "  "), ("•", "**", "   "))
    for bullet, emphasis, indent in forms:
        yield document, Layout(bullet=bullet, emphasis=emphasis, indent=indent)


FAMILIES: dict[PresentationFamily, VariantGenerator] = {
    "stakeholder-section-order": partial(_reorder, "stakeholder"),
    "satisfaction-summary-order": partial(_reorder, "summary"),
    "shared-benefit-attribution": _shuffle_attributions,
    "trade-off-order": partial(_reorder, "tradeoffs"),
    "format-conversion": _vary_format,
    "section-header": _vary_headings,
    "low-level-formatting": _vary_typography,
}
ORIGINAL_FAMILY = "original"


def present(data: Any, versions: int = 5) -> PresentationSet | None:
    """Return the presentations of structured data; None if it is of another form (`data_to_document`).

    Each family has `versions` different texts, none of them the original's; one with fewer is undefined for this
    response. Which are drawn depends on the data alone. Each text is read back: a variant that does not say the same is
    discarded and counted.
    """
    document = data_to_document(data)
    if document is None:
        return None
    text = render_document(document)
    canonical_text = write_canonical_form(document)
    seed = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
    presentations = PresentationSet(
        Presentation(ORIGINAL_FAMILY, 0, text, document_to_data(parse_document(text)))
    )
    for family, draw in FAMILIES.items() if versions else ():
        texts: JsonObject = {}
        tried_texts = {text}
        for changed_document, layout in draw(document, random.Random(f"{family} {seed}")):
            variant_text = render_document(changed_document, layout)
            if variant_text not in tried_texts and len(texts) < versions:
                tried_texts.add(variant_text)
                reparsed_document = parse_document(variant_text)
                if write_canonical_form(reparsed_document) == canonical_text:
                    texts[variant_text] = document_to_data(reparsed_document)
                else:
                    presentations.discard(family)
        presentations.add_family(family, texts, versions)
    return presentations
