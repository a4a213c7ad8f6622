"""The deriver that extracts records from a response's prose with a model, and keeps only what the prose contains."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice, product
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    AfterValidator,
    Field,
    JsonValue,
    StringConstraints,
    create_model,
    model_validator,
)

from jurygraph.agents import notation
from jurygraph.agents.facts.tables import parse_number
from jurygraph.agents.roles import (
    Deriver,
    DeriverInput,
    ask_model,
    require_client,
    shared_prompt_variables,
)
from jurygraph.messages import list_first
from jurygraph.prompts import load_prompt
from jurygraph.safety.evidence import Passage, SearchableText, search_off_loop
from jurygraph.schema import Evidence, Failure, FrozenModel, Material
from jurygraph.schema.config import ModelWithShorthand
from jurygraph.schema.frozen_model import JsonFields, JsonObject, Number, ParamsModel, StrictBool

if TYPE_CHECKING:
    from jurygraph.models.judge_client import ParsedReply

QUOTE_FIELD = "quote"
"""The field of every record of a reply that quotes the passage with the record's values."""

MAX_RECORDS_PER_KIND = 60
"""The largest number of records per kind in one reply."""

_FIELD_NAME_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,59}")
_WordsText = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
_ValueText = Annotated[str, StringConstraints(min_length=1, max_length=500)]
_QuoteText = Annotated[str, StringConstraints(max_length=20_000)]


class FieldSpec(ModelWithShorthand):
    """One field of a record: the description `about` that the model sees; a plain text means only that.

    The value consists of words of the quoted passage, or with `number` of a number written there in digits. With
    `context` it may occur anywhere before, as in a heading. With `one_of` it is one of these words, whose only evidence
    is the passage that it was decided on. A record may lack a field that is `optional`.
    """

    about: _WordsText
    number: StrictBool = False
    context: StrictBool = False
    optional: StrictBool = False
    one_of: tuple[_ValueText, ...] = ()

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        conflicting_options = [name for name in ("number", "context") if getattr(self, name)]
        if self.one_of and conflicting_options:
            raise ValueError(
                f"`one_of` is not sought in the response, and `{conflicting_options[0]}` is; keep one of them"
            )
        if len(set(self.one_of)) < len(self.one_of):
            raise ValueError("`one_of` has a duplicate; remove it")
        return self


FieldSpecs = Mapping[str, FieldSpec]
FieldSpecsByKind = Mapping[str, FieldSpecs]


def _check_name(name: str) -> str:
    if not _FIELD_NAME_PATTERN.fullmatch(name):
        raise ValueError("a name begins with a letter, and has up to 60 letters, digits and _")
    return name


def _check_field_name(name: str) -> str:
    if name == QUOTE_FIELD:
        raise ValueError("every record has one already; leave it out")
    return _check_name(name)


_KindName = Annotated[str, AfterValidator(_check_name)]
_FieldName = Annotated[str, AfterValidator(_check_field_name)]


class RecordParams(ParamsModel):
    """The params of `extract`."""

    records: dict[
        _KindName, Annotated[dict[_FieldName, FieldSpec], Field(min_length=1, max_length=30)]
    ] = Field(min_length=1, max_length=30)
    """Kinds of records, each with its fields: a description of each, or `about` with `number`, `context`, `optional` or
    `one_of`."""


def reply_model(kinds: FieldSpecsByKind) -> type[FrozenModel]:
    """Return the reply model: a list of records for each kind, in which the quoted passage comes first.

    Kinds and fields are aliases, so that no name hides an attribute of `FrozenModel` (digest, …).
    """
    lists: JsonFields = {}
    for kind_number, (kind, fields) in enumerate(kinds.items(), start=1):
        record_fields: JsonFields = {}
        for number, (name, field) in enumerate(fields.items(), start=1):
            record_fields[f"field_{number}"] = (_value_type_of_field(field), Field(alias=name))
        record_model = create_model(
            f"Record_{kind}", __base__=FrozenModel, quote=(_QuoteText, ...), **record_fields
        )
        records = Annotated[tuple[record_model, ...], Field(max_length=MAX_RECORDS_PER_KIND)]
        lists[f"kind_{kind_number}"] = (records, Field(alias=kind))
    return create_model("Extracted", __base__=FrozenModel, **lists)


def _value_type_of_field(field: FieldSpec) -> Any:
    value: Any = _ValueText
    if field.one_of:
        value = Literal[field.one_of]
    elif field.number:
        value = Number
    return value | None if field.optional else value


MAX_PASSAGE_LENGTH = 500
"""The longest passage, in characters, for a record: in a long one any two words are close."""

_MAX_WORD_OCCURRENCES = 10_000
_MAX_PASSAGES_PER_QUOTATION = 100
_MAX_REPORTED_OMISSIONS = 10
_MAX_QUOTATION_LENGTH = 2 * MAX_PASSAGE_LENGTH
"""The longest quotation, in characters, that is searched; it may have more white space than the passage."""
_BLANK_PATTERN = r"[ \u00a0\u2009\u202f]"
_BLANK_REGEX = re.compile(_BLANK_PATTERN)
_GROUPED_DIGITS_PATTERN = (
    rf"[0-9]{{1,3}}(?:{_BLANK_PATTERN}[0-9]{{3}})+(?:[.,][0-9]+)?(?![.,:/-]?[0-9])"
)
_WRITTEN_NUMBER_PATTERN = re.compile(
    rf"(?<![\w.,])([-\u2212]?(?:{_GROUPED_DIGITS_PATTERN}|[0-9]+(?:[.,:/-][0-9]+)*))(?:st|nd|rd|th)?(?!\w)"
)
_NUMBER_RANGE_PATTERN = re.compile(r"([0-9]+)-([0-9]+)")

QUOTE_NOT_FOUND_MESSAGE = (
    "what it quotes does not stand in the response, is cut within a word, or has less than eight letters or more than "
    f"{MAX_PASSAGE_LENGTH}"
)
UNKNOWN_VALUE_TEXT = "(not found in the response)"
"""The replacement of the text values of a lost record."""
DUPLICATE_RECORD_MESSAGE = "it is written down twice, and stated once"

ExtractedRecord = Mapping[str, Any]


class OmittedPart(NamedTuple):
    """A part of the reply left out of the data: its place in the reply, and the reason."""

    location: str
    reason: str


class GroundedReply(NamedTuple):
    """The records of each kind, the evidence of each value that occurs in the response, and what was left out."""

    data: dict[str, list[JsonObject]]
    evidence: tuple[Evidence, ...]
    omitted_parts: tuple[OmittedPart, ...] = ()


def describe_omitted_parts(omitted_parts: Sequence[OmittedPart]) -> str:
    """Return what was left out in fixed words, without text of the response or the model; empty if nothing was."""
    messages = [f"{entry.location}: {entry.reason}" for entry in omitted_parts]
    return "; ".join(list_first(messages, _MAX_REPORTED_OMISSIONS))


class IndexedText(SearchableText):
    """A response, with the positions of words and numbers in it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._passages_of: dict[str, Sequence[Passage]] = {}

    def find_passages(self, quotation: str) -> Sequence[Passage]:
        """Return the first 100 passages that match a quotation with enough content (see `find_support`)."""
        first = self.find_support(quotation) if len(quotation) <= _MAX_QUOTATION_LENGTH else None
        if first is None or len(first.text) > MAX_PASSAGE_LENGTH:
            return ()
        passages = (
            passage for passage in self.find_words(first.text) if passage.start >= first.start
        )
        return list(islice(passages, _MAX_PASSAGES_PER_QUOTATION))

    def find_words(self, words: str) -> Sequence[Passage]:
        """Return the first 10,000 passages with exactly these words, not within longer words."""
        if words not in self._passages_of:
            self._passages_of[words] = list(
                islice(self.find_whole_word_matches(words), _MAX_WORD_OCCURRENCES)
            )
        return self._passages_of[words]

    @cached_property
    def numerals(self) -> Mapping[float, Sequence[Passage]]:
        """Return the passages that write a number in digits, such as 1200, 1,200 or 1200.0, in order; by number."""
        passages = defaultdict(list)
        for number_match in _WRITTEN_NUMBER_PATTERN.finditer(self.text):
            spans = [number_match.span(1)]
            ends = _NUMBER_RANGE_PATTERN.fullmatch(number_match[1])
            if ends is not None:  # of a range, both ends are numbers
                start = number_match.start(1)
                spans = [(start + ends.start(group), start + ends.end(group)) for group in (1, 2)]
            for span in spans:
                numeral = self.text[slice(*span)]
                value = _parse_number(numeral)
                if value is not None:  # times, dates and versions are no numbers
                    passages[value].append(Passage(*span, numeral))
        return passages


def _parse_number(numeral: str) -> float | None:
    return parse_number(_BLANK_REGEX.sub("", numeral).replace("\u2212", "-"))


class _GroundedRecord(NamedTuple):
    passage: Passage
    found: Mapping[str, Passage]
    record: JsonObject


def ground_reply(
    text: IndexedText, kinds: FieldSpecsByKind, reply: Mapping[str, Sequence[ExtractedRecord]]
) -> GroundedReply:
    """Return the parts of a reply that occur in the response.

    The quoted passage of a record must occur there, and each value in it as whole words: case and every letter count. A
    value of `context` occurs at or before the passage's end, and the nearest occurrence is its evidence. A record that
    misses any of this is left out whole, or without that field if it is optional. Two equal records need two passages,
    or one of them is left out.

    Behind the records of a kind is an unknown one for each other that was left out whole. A record that the model found
    but cannot show may still be in the response: leaving it out would credit the response with not saying it. As an
    unknown record no fact confirms it, and no check that depends on it can hold.
    """
    data = {}
    evidence = []
    omitted_parts = []
    for kind, fields in kinds.items():
        required_text_fields = [
            name for name, field in fields.items() if not (field.number or field.optional)
        ]
        unknown_records: list[JsonObject] = []
        kept_records: list[_GroundedRecord] = []
        for index, record in enumerate(reply[kind]):
            record_or_problem = _ground_record(text, fields, record, kept_records)
            if isinstance(record_or_problem, str):
                omitted_parts.append(OmittedPart(f"{kind}[{index}]", record_or_problem))
                if record_or_problem != DUPLICATE_RECORD_MESSAGE:
                    unknown_records.append(dict.fromkeys(required_text_fields, UNKNOWN_VALUE_TEXT))
                continue
            for name, field in fields.items():
                if record[name] is not None and name not in record_or_problem.found:
                    problem = _missing_value_message(field, name)
                    omitted_parts.append(OmittedPart(f"{kind}[{index}].{name}", problem))
            number = len(kept_records)
            evidence.append(_build_evidence(record_or_problem.passage, kind, number))
            for name, passage in record_or_problem.found.items():
                evidence.append(_build_evidence(passage, kind, number, name))
            kept_records.append(record_or_problem)
        data[kind] = [grounded_record.record for grounded_record in kept_records] + unknown_records
    return GroundedReply(data, tuple(evidence), tuple(omitted_parts))


def _ground_record(
    text: IndexedText,
    fields: FieldSpecs,
    record: ExtractedRecord,
    kept_records: Sequence[_GroundedRecord],
) -> _GroundedRecord | str:
    """Return a record with its evidence, in a passage of its own if possible; or the reason why there is none."""
    fully_grounded_records = []
    problem = QUOTE_NOT_FOUND_MESSAGE
    for index, passage in enumerate(text.find_passages(record[QUOTE_FIELD])):
        found = {}
        missing_fields = []
        for name, field in fields.items():
            value_passage = _locate_value(text, field, record[name], passage)
            if value_passage is not None:
                found[name] = value_passage
            elif not field.optional:
                missing_fields.append(name)
        if not missing_fields:
            values = {
                name: _convert_reply_value(fields[name], record[name], found[name])
                for name in found
            }
            fully_grounded_records.append(_GroundedRecord(passage, found, values))
        elif index == 0:
            problem = _missing_value_message(fields[missing_fields[0]], missing_fields[0])
    return (
        _choose_record(fully_grounded_records, kept_records) if fully_grounded_records else problem
    )


def _choose_record(
    candidates: Sequence[_GroundedRecord], kept_records: Sequence[_GroundedRecord]
) -> _GroundedRecord | str:
    for candidate in candidates:
        if not any(_passages_overlap(candidate, other) for other in kept_records):
            return candidate
    # Different records may rest on one passage, such as a sentence with two prices: only equal ones are duplicates.
    for candidate, other in product(candidates, kept_records):
        if candidate.record == other.record and _passages_overlap(candidate, other):
            return DUPLICATE_RECORD_MESSAGE
    return candidates[0]


def _locate_value(
    text: IndexedText, field: FieldSpec, value: Any, passage: Passage
) -> Passage | None:
    if value is None:
        return None
    if field.one_of:
        return passage
    candidates: Sequence[Passage] = ()
    if field.number:
        candidates = text.numerals.get(value, ())
    elif any(map(str.isalnum, value)):
        candidates = text.find_words(value)
    if field.context:
        before = bisect_right(candidates, passage.end, key=lambda candidate: candidate.end)
        return candidates[before - 1] if before else None
    first = bisect_left(candidates, passage.start, key=lambda candidate: candidate.start)
    if first < len(candidates) and candidates[first].end <= passage.end:
        return candidates[first]
    return None


def _missing_value_message(field: FieldSpec, name: str) -> str:
    digits_hint = "in digits " if field.number else ""
    where = "at or before the end of" if field.context else "in"
    return f"its {name} does not stand {digits_hint}{where} the passage that it quotes"


def _convert_reply_value(field: FieldSpec, reply_value: Any, passage: Passage) -> JsonValue:
    """Return the value as the response writes it, in one line."""
    if field.one_of:
        return str(reply_value)
    return _parse_number(passage.text) if field.number else " ".join(passage.text.split())


def _passages_overlap(first: _GroundedRecord, second: _GroundedRecord) -> bool:
    return first.passage.start < second.passage.end and second.passage.start < first.passage.end


def _build_evidence(passage: Passage, *location: str | int) -> Evidence:
    return Evidence(
        quote=passage.text,
        start=passage.start,
        end=passage.end,
        verified=True,
        of=notation.location_to_jsonpath(location),
    )


DATA_MATERIAL_NAME = "data"
_TOKENS_PER_RECORD = 48
"""Tokens of a record with a short quotation: so many that a list which a small model repeats to its end is a reply."""

_QUOTE_HINT = "quote and copy letter by letter from the response, and leave out what is not there"


class Extract(Deriver):
    """Extract a response's `data` from its text: records of the kinds that the config defines, each with its evidence.

    Every record is based on a passage of the response, and every value on words in it (or, for `context`, before it).
    So facts and checks can work on prose, and a response that addresses the model can only make it record what the
    response itself contains. Values that are not found are shown to the model once for repair. After that their record
    becomes an unknown one, whether the model invented it, misspelt it, or took it from the task or a reference: a
    possible statement of the response is counted against it rather than forgotten.

    Evidence cannot verify the meaning of the surrounding words. These errors remain possible:

    - context of another record: the wrong day, or a place named earlier (facts may find nothing there);
    - statements that the response excludes ("we skip it"), or only mentions;
    - words of the passage in the wrong field, too few or too many of them (facts do not know such a name);
    - a record of the wrong kind, and the wrong one of `one_of` (facts look it up in another table);
    - omissions by the model. A check that requires nothing more passes without them: require what must be there;
    - unknown records: a check that counts by JSONPath counts them too. One that counts a kind of claims counts only
      those in a table.

    An empty response has no records, and the model is not called. If the config's `safety.evidence` is `off`, the
    reply is not checked.
    """

    name = "extract"
    gives = DATA_MATERIAL_NAME
    uses_model = True
    bounds_its_time = True
    Params = RecordParams
    settings: RecordParams

    def _set_up_from_settings(self) -> None:
        self._kinds: FieldSpecsByKind = self.settings.records
        self._reply = reply_model(self._kinds)
        self._prompt = load_prompt("extract")
        self.version = f"1 prompt {self._prompt.full_version}"

    async def derive(self, inputs: DeriverInput) -> Material:
        response = inputs.response
        if not response.text.strip():
            return Material(name=DATA_MATERIAL_NAME, data={kind: [] for kind in self._kinds})
        client = require_client(inputs.client)
        character_count = len(response.text)
        text = None
        if client.safety.evidence != "off":
            text = await search_off_loop(lambda: IndexedText(response.text), character_count)
        variables = {**shared_prompt_variables(inputs), "kinds": self._kinds}
        request = client.request(
            self._prompt,
            self._reply,
            variables,
            max_reply_tokens=MAX_RECORDS_PER_KIND * _TOKENS_PER_RECORD,
        )

        def read(reply: "ParsedReply[Any]") -> Material:
            grounded_reply = self._ground_reply(text, reply.value)
            note = describe_omitted_parts(grounded_reply.omitted_parts)
            if grounded_reply.omitted_parts and not grounded_reply.evidence:
                failure = Failure(cause="response", kind="unsupported", message=note)
                return _failed_material(failure, reply.call.id)
            return Material(
                name=DATA_MATERIAL_NAME,
                data=grounded_reply.data,
                evidence=grounded_reply.evidence,
                note=note,
                call=reply.call.id,
            )

        def find_reply_flaw(reply: FrozenModel) -> str | None:
            """Return the problems of a reply for its repair. Records listed twice need no second call."""
            problems = [
                problem
                for problem in self._ground_reply(text, reply).omitted_parts
                if problem.reason != DUPLICATE_RECORD_MESSAGE
            ]
            return f"{describe_omitted_parts(problems)}. So {_QUOTE_HINT}" if problems else None

        return await ask_model(
            client,
            request,
            self._reply,
            read=read,
            fail=lambda fault: _failed_material(fault.failure, fault.call),
            find_reply_flaw=find_reply_flaw,
            character_count=character_count,
        )

    def _ground_reply(self, text: IndexedText | None, reply: FrozenModel) -> GroundedReply:
        values = reply.model_dump(by_alias=True)
        if text is not None:
            return ground_reply(text, self._kinds, values)
        evidence = []
        data = {}
        for kind, records in values.items():
            evidence += [Evidence(quote=record.pop(QUOTE_FIELD)) for record in records]
            data[kind] = [
                {name: value for name, value in record.items() if value is not None}
                for record in records
            ]
        return GroundedReply(data, tuple(evidence))


def _failed_material(failure: Failure, call_id: str | None) -> Material:
    return Material(name=DATA_MATERIAL_NAME, status="failed", failure=failure, call=call_id)
