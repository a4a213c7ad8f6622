"""The families of variants that a model writes (DecompR, Table 7), each variant verified in code (A.1).

A variant consists of passages, and each names the statement that it makes. The numbers, names, times, prices,
stakeholders, status and strength of that one statement have to be in the passage, and no others: what two statements
say cannot be exchanged unseen. The check is strict: of two ways to say the same it may refuse one, and a variant that
it refuses is only not used."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

from pydantic import Field

from jurygraph.agents.presentation.variants import (
    ORIGINAL_FAMILY,
    PRESENTATION_WORDS,
    SERVED_PEOPLE_FIELD,
    FactDocument,
    FactValue,
    Presentation,
    PresentationSet,
    data_to_document,
    document_to_data,
    render_document,
)
from jurygraph.agents.roles import ask_model
from jurygraph.concurrency import gather_all
from jurygraph.prompts import load_prompt
from jurygraph.schema import FrozenModel

if TYPE_CHECKING:
    from jurygraph.models.judge_client import JudgeClient, ParsedReply


RewriteInvariant = Literal[
    "statements", "times", "prices", "numbers", "stakeholders", "names", "status", "strength"
]


class Statement(NamedTuple):
    """A statement of a document: its kind of section, its text, and what of it has to stay letter by letter.

    `people` are the stakeholders that it names, and `status` is that of a constraint; where it is not met, or not
    wholly, somebody `is_underserved`.
    """

    kind: str
    text: str
    verbatim_values: tuple[str, ...] = ()
    people: frozenset[str] = frozenset()
    status: str = ""
    is_constraint_unmet: bool = False


_TIME_OF_DAY_PATTERN = re.compile(
    r"\b\d{1,2}:\d{2}(?:\s?[ap]m\b)?|\b(?:noon|midday|midnight|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b",
    re.IGNORECASE,
)
_PRICE_PATTERN = re.compile(
    r"[$€£¥]\s?\d+(?:[.,]\d+)*|\b\d+(?:[.,]\d+)*\s?(?:[$€£¥]|(?:CNY|USD|EUR|GBP|yuan|dollars?|euros?|pounds?)\b)",
    re.IGNORECASE,
)
_NUMBER_PATTERN = re.compile(
    r"\d+(?:[.,]\d+)*|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundred|thousand"
    r"|second|third|fourth|fifth|sixth|dozen|half|twice)\b",
    re.IGNORECASE,
)
_PATTERN_BY_INVARIANT: Mapping[RewriteInvariant, re.Pattern[str]] = {
    "times": _TIME_OF_DAY_PATTERN,
    "prices": _PRICE_PATTERN,
    "numbers": _NUMBER_PATTERN,
}
_PROPER_NAME_PATTERN = re.compile(r"(?<![.!?:#|*\-] )(?<!^)(?<![\"“(#*])\b[^\W\d_]\w+")
_PARTIAL_WORDS_PATTERN = (
    r"not (?:fully|entirely|wholly|completely)|in part|part(?:ly|ially?)|somewhat|mostly|half"
)
_NEGATION_WORDS_PATTERN = (
    r"not|no|never|none|neither|nor|cannot|without"
    r"|un(?:met|satisfied|fulfilled)|fail\w*|violat\w+|miss(?:ed|es)"
)
_POSITIVE_WORDS_PATTERN = (
    r"met|meets?|satisf\w+|fulfil\w*|kept|keeps|respect\w*|honou?r\w*|observed|holds?|held"
)
_PATTERN_BY_STATUS = {
    "in part": _PARTIAL_WORDS_PATTERN,
    "not met": _NEGATION_WORDS_PATTERN,
    "met": _POSITIVE_WORDS_PATTERN,
}
"""The classes of a status; the first that a text has is its status."""
_PATTERN_BY_STRENGTH_CLASS = {
    "bound above": r"at most|up to|no more than|not more than|maximum|or less",
    "bound below": r"at least|no less than|not less than|minimum|or more",
    "in part": _PARTIAL_WORDS_PATTERN,
    "negation": rf"{_NEGATION_WORDS_PATTERN}|hardly|barely",
    "necessity": r"must|has to|have to|required?|needs? to|always|certain(?:ly)?|definitely|sure(?:ly)?|guarantee\w*",
    "possibility": r"may|might|could|possib\w+|perhaps|maybe|probab\w+|likely",
    "wholeness": r"fully|completely|entirely|wholly|perfect(?:ly)?|all|every\w*|only|just",
    "nearness": r"approximately|roughly|nearly|almost|circa",
    "comparison": r"more|less|fewer|better|worse|most|least|best|worst|\w{3,}er than",
    "degree": r"very|extremely|highly|strongly|greatly|slightly|rather|too",
}
"""Words of the strength of a claim, by class; longer ones are taken out of a text before the next class counts."""


def build_numbered_statements(document: FactDocument) -> dict[str, Statement]:
    people = _list_people(document)
    statements = {}
    for number, statement in enumerate(_iter_statements(document), 1):
        mentioned = find_mentioned_people(statement.text, people)
        statements[f"s{number}"] = statement._replace(people=mentioned)
    return statements


def _list_people(document: FactDocument) -> tuple[str, ...]:
    names = [section.name for section in document if section.kind == "stakeholder"]
    for section in document:
        for record in section.records:
            served_people = record.get(SERVED_PEOPLE_FIELD)
            if section.kind == "shared" and isinstance(served_people, list):
                names += served_people
            elif section.kind == "summary":
                names.append(str(record["stakeholder"]))
    return tuple(dict.fromkeys(names))


def _iter_statements(document: FactDocument) -> Iterator[Statement]:
    """Yield the statements of a document, still without the people whom they name."""
    for section in document:
        for record in section.records:
            if section.kind in ("stakeholder", "tradeoffs"):
                about = f"for {section.name}: " if section.name else ""
                yield Statement(section.kind, f"{about}{record['text']}")
            elif section.kind == "summary":
                constraints = dict(record)
                person = constraints.pop("stakeholder")
                for constraint, status in constraints.items():
                    yield Statement(
                        "summary",
                        f"{person}, {constraint}: {status}",
                        (constraint,),
                        status=str(status),
                        is_constraint_unmet=_classify_status(str(status)) != "met",
                    )
            else:
                texts = {field: _fact_value_to_texts(value) for field, value in record.items()}
                text = "; ".join(f"{field}: {', '.join(found)}" for field, found in texts.items())
                words = [word for word in chain(*texts.values()) if any(map(str.isalnum, word))]
                yield Statement(section.kind, text, tuple(words))


def _fact_value_to_texts(value: FactValue) -> list[str]:
    if isinstance(value, list):
        return value
    return [value if isinstance(value, str) else json.dumps(value)]


def _contains_words(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words.casefold())}(?!\w)", text.casefold()) is not None


def find_mentioned_people(text: str, people: Iterable[str]) -> frozenset[str]:
    return frozenset(person for person in people if _contains_words(text, person))


def broken_invariant(
    statements: Mapping[str, Statement], passages: "Sequence[PassageReply]"
) -> RewriteInvariant | None:
    if sorted(passage.statement for passage in passages) != sorted(statements):
        return "statements"
    people = set(chain.from_iterable(statement.people for statement in statements.values()))
    values = set(
        chain.from_iterable(statement.verbatim_values for statement in statements.values())
    )
    for passage in passages:
        text = " ".join(passage.text.split())
        broken_passage_invariant = _find_broken_invariant(
            statements[passage.statement], text, people, values
        )
        if broken_passage_invariant is not None:
            return broken_passage_invariant
    return None


def _find_broken_invariant(
    statement: Statement, text: str, people: Set[str], values: Set[str]
) -> RewriteInvariant | None:
    """Return the first invariant that a passage breaks; `people` and `values` are those of all statements."""
    for invariant, pattern in _PATTERN_BY_INVARIANT.items():
        if _find_normalised_matches(pattern, text) != _find_normalised_matches(
            pattern, statement.text
        ):
            return invariant
    if find_mentioned_people(text, people) != statement.people:
        return "stakeholders"
    required_names = {*statement.verbatim_values, *_find_proper_names(statement.text)}
    # Words of one or two letters occur by chance, so they count as no value of another statement.
    other_values = {words for words in values if len(words) > 2 and _contains_words(text, words)}
    found_names = other_values | _find_proper_names(text)
    is_name_missing = not all(_contains_words(text, words) for words in required_names)
    if is_name_missing or not all(_contains_words(statement.text, words) for words in found_names):
        return "names"
    # Words of a name, such as "never" in a title, say nothing of the strength of a claim.
    claim_text = _remove_words(text, statement.verbatim_values)
    strength_word_counts = count_strength_words(claim_text)
    if not statement.status:
        statement_strength_counts = count_strength_words(
            _remove_words(statement.text, statement.verbatim_values)
        )
        return None if strength_word_counts == statement_strength_counts else "strength"
    if _classify_status(statement.status) != _classify_status(claim_text):
        return "status"
    # Negations and words of parts are those of the status itself.
    return "strength" if strength_word_counts.keys() - {"negation", "in part"} else None


def _find_proper_names(text: str) -> set[str]:
    """Return the words with a capital letter that do not begin a sentence or a line."""
    return {
        name.group() for name in _PROPER_NAME_PATTERN.finditer(text) if name.group()[0].isupper()
    }


def _find_normalised_matches(pattern: re.Pattern[str], text: str) -> set[str]:
    return {re.sub(r"\s", "", match.group()).casefold() for match in pattern.finditer(text)}


def find_numbers(text: str) -> set[str]:
    """Return the numbers of a text, in digits or in words."""
    return _find_normalised_matches(_NUMBER_PATTERN, text)


def _remove_words(text: str, verbatim_texts: Iterable[str]) -> str:
    for words in sorted(verbatim_texts, key=len, reverse=True):
        text = _compile_words_pattern(re.escape(words)).sub(" ", text)
    return text


def _compile_words_pattern(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)


def _expand_contractions(text: str) -> str:
    return re.sub(r"n['’]t\b", " not", text)


def _classify_status(text: str) -> str:
    """Return the class of a status, or the text itself if it has none of the known words."""
    class_names = (
        name
        for name, words in _PATTERN_BY_STATUS.items()
        if _compile_words_pattern(words).search(_expand_contractions(text))
    )
    return next(class_names, text.casefold())


def count_strength_words(text: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    text = _expand_contractions(text)
    for name, words in _PATTERN_BY_STRENGTH_CLASS.items():
        text, counts[name] = _compile_words_pattern(words).subn(" ", text)
    return +counts


Rewriting = Literal["causal-direction", "under-served-evidence", "paraphrase", "topic-position"]
REWRITINGS: tuple[Rewriting, ...] = get_args(Rewriting)
PRESENTATION_PROMPT_NAME = "presentation"
NO_REPLY_REASON = "no usable reply"


class PassageReply(FrozenModel):
    statement: Annotated[str, Field(min_length=1, max_length=500)]
    text: Annotated[str, Field(min_length=1, max_length=20_000)]


class PassagesReply(FrozenModel):
    passages: Annotated[tuple[PassageReply, ...], Field(min_length=1, max_length=500)]


def _is_defined(family: Rewriting, statements: Mapping[str, Statement]) -> bool:
    """Return whether a response makes the statements that a family is about."""
    kinds = {statement.kind for statement in statements.values()}
    if family == "causal-direction":
        return "tradeoffs" in kinds
    if family == "under-served-evidence":
        return any(statement.is_constraint_unmet for statement in statements.values())
    return family == "paraphrase" or len(kinds) > 1


async def rewrite_data(data: Any, client: "JudgeClient", versions: int) -> PresentationSet | None:
    """Return variants of structured data that a model writes; None if it is of another form (`data_to_document`).

    As `rewrite_statements` returns them, which raises the same.
    """
    document = data_to_document(data)
    if document is None:
        return None
    original = Presentation(
        ORIGINAL_FAMILY, 0, render_document(document), document_to_data(document)
    )
    return await rewrite_statements(original, build_numbered_statements(document), client, versions)


async def rewrite_statements(
    original: Presentation,
    statements: Mapping[str, Statement],
    client: "JudgeClient",
    versions: int,
) -> PresentationSet:
    """Return variants that a model writes of a text and its statements.

    A variant that breaks an invariant is discarded, and counted in `broken` by it. A family with fewer versions left
    is undefined for this response. Raises the errors that end a run.
    """
    listed = [{"name": name, "text": statement.text} for name, statement in statements.items()]
    size = 2 * sum(len(statement.text) for statement in statements.values())

    async def write(family: Rewriting, number: int) -> tuple[str, str | None]:
        """Return the text of a version, and the invariant that it breaks, if any."""
        words = PRESENTATION_WORDS["rewritings"][family]
        # the ways of later versions repeat
        way = words["ways"][(number - 1) % len(words["ways"])]
        variables = {
            "response": original.text,
            "statements": listed,
            "operation": words["operation"].format(way=way),
        }
        request = client.request(
            load_prompt(PRESENTATION_PROMPT_NAME),
            PassagesReply,
            variables,
            sample=number,
            max_reply_tokens=size,
        )

        def read(reply: "ParsedReply[PassagesReply]") -> tuple[str, str | None]:
            passages = reply.value.passages
            text = "\n\n".join(passage.text for passage in passages)
            return text, broken_invariant(statements, passages)

        return await ask_model(
            client, request, PassagesReply, read=read, fail=lambda fault: ("", NO_REPLY_REASON)
        )

    presentations = PresentationSet(original)
    for family in REWRITINGS if versions else ():
        if not _is_defined(family, statements):
            presentations.undefined[family] = PRESENTATION_WORDS["rewritings"][family]["undefined"]
            continue
        numbers = range(1, versions + 1)
        version_results = await gather_all(write(family, number) for number in numbers)
        texts = {}
        for text, problem in version_results:
            if problem is not None:
                presentations.discard(family, problem)
            elif text != original.text:
                texts[text] = original.data
        presentations.add_family(family, texts, versions, "are left")
    return presentations
