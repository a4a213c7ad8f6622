"""Gates and fences, which keep a response from speaking to its judge: before any model call, and around its text.

A judge model can be persuaded to score a response that is empty, copies the reference or addresses its grader. The
gates only decide questions to models: facts and checks are evaluated as usual.

Honest texts contain all signs of an address, so only marks that a machine writes and orders of a verdict on every
criterion count alone; the others count in combinations of signs close to each other. Fewer signs are enough in hidden
text: in invisible characters, look-alikes, spaced letters, comments, or encodings. Bare openers, texts that announce an
answer and contain none, fool undefended judges four times in five (One Token to Fool LLM-as-a-Judge).
"""

import hmac
import os
import re
import tomllib
import unicodedata
from base64 import b64decode
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from html import unescape
from importlib.resources import files
from itertools import chain, count, product
from typing import Any, Literal, NamedTuple, get_args

import re2
from rapidfuzz.distance import Indel

from jurygraph.messages import quote
from jurygraph.schema.conversation import RenderedText, Turn
from jurygraph.schema.frozen_model import JsonFields, split_into_pieces
from jurygraph.schema.verdict import RESPONSE_GATES, ResponseGate

INVISIBLE_CHARACTERS = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Invisible characters as a regex class: controls that are not white space, Unicode's default-ignorable code points
(fillers, joiners, bidirectional marks, variation selectors, tags), blanks that are not white space, and surrogates."""

_INVISIBLE_CHARACTERS_PATTERN = re.compile(f"[{INVISIBLE_CHARACTERS}]+")
_CONTROL_CHARACTER_TABLE = dict.fromkeys((*range(9), *range(14, 32), 127))
_REPLACEMENT_BY_CHARACTER = dict(
    zip(
        "‘’ʼ´“”„«»‐‑‒–—―−\u2028\u2029ıłŁđĐøØ\ufdfa\ufdfb",
        '\'\'\'\'"""""-------\n\nillddoo\u0635\u062c',
        strict=True,
    )
)
"""The last two are phrases in one character, which normalising would expand: 1 MB of them would become 33 MB."""

_REPLACEABLE_CHARACTER_PATTERN = re.compile(f"[{''.join(_REPLACEMENT_BY_CHARACTER)}]")
_STACKED_MARKS_PATTERN = re2.compile(r"\p{M}{8}\p{M}+")
"""More marks on one letter than any script uses. Normalising them takes the square of their number."""

_UNUSUAL_CHARACTER_PATTERN = re2.compile(
    f"[{INVISIBLE_CHARACTERS.replace(chr(0xD800) + '-' + chr(0xDFFF), '')}{''.join(_REPLACEMENT_BY_CHARACTER)}]"
    f"|{_STACKED_MARKS_PATTERN.pattern}"
)
_ACCENT_MARKS_PATTERN = re.compile("[\u0300-\u036f\u0640\u064b-\u065f\u0670]+")
_TEXT_CHUNK_PATTERN = re.compile(r"(?s:.){1,65536}[^ \n]*")


def remove_invisible(text: str) -> str:
    return _INVISIBLE_CHARACTERS_PATTERN.sub("", text)


def fold_text(text: str) -> str:
    """Return a text in lower case without accents or invisible characters, in compatibility forms (NFKD, then NFC),
    with plain quotation marks and dashes. White space is kept. Takes time proportional to the length of the text."""
    if text.isascii():
        return text.translate(_CONTROL_CHARACTER_TABLE).lower()
    # In pieces, because Python lower-cases a text in twelve bytes a character. No mark joins a letter across a space.
    return "".join(_fold_piece(piece[0]) for piece in _TEXT_CHUNK_PATTERN.finditer(text))


def _fold_piece(text: str) -> str:
    text = text.encode("utf-8", "ignore").decode()
    # few texts have invisible characters, stacked marks or other punctuation
    if _UNUSUAL_CHARACTER_PATTERN.search(text) is not None:
        replaced_text = _REPLACEABLE_CHARACTER_PATTERN.sub(
            lambda match: _REPLACEMENT_BY_CHARACTER[match[0]], remove_invisible(text)
        )
        text = str(_STACKED_MARKS_PATTERN.sub("", replaced_text))
    decomposed_text = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", _ACCENT_MARKS_PATTERN.sub("", decomposed_text)).casefold()


def keep_letters_and_digits(read: str) -> str:
    """Return the letters and digits of a folded text, with nothing between them."""
    return "".join(filter(str.isalnum, read))


_REASONING_TAG_PATTERN = (
    "</?(?:think|thinking|thought|reasoning|analysis|scratchpad|solution|answer|output)[ /]*>"
)
_MIN_FILLER_WORDS = 3
_RE2_MEMORY_BYTES = 1 << 26  # memory limit of RE2, in bytes; with less, its searches are slow
_LAYOUT_TAG_PATTERN = "</?[a-z][a-z0-9]*[ /]*>"
_LETTER_SEPARATOR_PATTERN = rf"(?:[^\pL\pM\pN\p{{Sm}}]|[+<=>|~]|{_LAYOUT_TAG_PATTERN})"
"""Matches between openers: anything but letters, digits and mathematical signs; also layout tags."""

_COMPILED_LAYOUT_TAG_PATTERN = re2.compile(_LAYOUT_TAG_PATTERN)
_WORD_PATTERN = re2.compile(r"[\pL\pN]+")


def is_empty_talk(read: str) -> bool:
    """Return whether a folded text has only openers, fillers ("As requested.") or empty words, or repeats one word."""
    text_without_tags = str(_COMPILED_LAYOUT_TAG_PATTERN.sub("\n", read))
    words = _WORD_PATTERN.findall(text_without_tags)
    _, fillers_pattern, empty_words = _compile_opener_patterns()
    is_repeated_word = len(set(words)) == 1 and words[0].isalpha()
    if len(words) >= _MIN_FILLER_WORDS and (is_repeated_word or empty_words.issuperset(words)):
        return True
    return not words or fillers_pattern.fullmatch(text_without_tags) is not None


@cache
def _compile_opener_patterns() -> tuple[Any, Any, frozenset[str]]:
    options = re2.Options()
    options.max_mem = _RE2_MEMORY_BYTES
    options.log_errors = False
    options.never_capture = True  # to report hundreds of groups takes most of a search
    lists = _load_toml("openings")
    before = rf"{_LETTER_SEPARATOR_PATTERN}*(?:{_join_patterns(lists['before'])}{_LETTER_SEPARATOR_PATTERN}+)*"
    opener_pattern = f"(?:{_REASONING_TAG_PATTERN}|{_join_patterns(chain.from_iterable(lists['openers'].values()))})"
    filler_pattern = _join_patterns(chain.from_iterable(lists["fillers"].values()))
    openers_pattern = rf"{before}(?:{opener_pattern}{_LETTER_SEPARATOR_PATTERN}*)+"
    opener_or_filler_pattern = f"(?:{opener_pattern}|{filler_pattern})"
    fillers_pattern = (
        rf"{before}{opener_or_filler_pattern}"
        rf"(?:{_LETTER_SEPARATOR_PATTERN}+{opener_or_filler_pattern})*{_LETTER_SEPARATOR_PATTERN}*"
    )
    empty_words = frozenset(chain.from_iterable(lists["empty_words"].values()))
    return re2.compile(openers_pattern, options), re2.compile(fillers_pattern, options), empty_words


def _join_patterns(patterns: Iterable[str]) -> str:
    joined_pattern = (
        fold_text("|".join(patterns)).replace(" ?:", r"[\s*_]*:").replace(" ", r"[\s*_>#,-]+")
    )
    return f"(?:{joined_pattern})"


ManipulationWordSignName = Literal[
    "kept",
    "demand",
    "forget",
    "orders",
    "told",
    "grader",
    "full",
    "passed",
    "praise",
    "work",
    "office",
    "behind",
]
"""Functions of words; `addressing.toml` lists and explains them. Words with several functions have the first of them:
an order of a verdict, which counts alone, is no less one for taking something as met."""

ManipulationSign = Literal["mark", "token", ManipulationWordSignName]
MANIPULATION_SIGNS: tuple[ManipulationSign, ...] = get_args(ManipulationSign)

_WORD_GAP_PATTERN = r"(?:[\s*_>|`~,:-]+)"
_WORD_LETTER_PATTERN = r"[^\s!-/:-@\[-`{-~]"
_WORD_EDGE_PATTERN = r"(?:\b|_)"
_BEGINS_WITH_WORD_PATTERN = re.compile(r"\(*[a-z0-9]")
_ENDS_WITH_WORD_PATTERN = re.compile(r"[a-z0-9)?~@]\Z")
_RE2_OPTIONS = re2.Options()
_RE2_OPTIONS.longest_match = True
_RE2_OPTIONS.max_mem = _RE2_MEMORY_BYTES
_RE2_OPTIONS.log_errors = False
_SENTENCE_START_PATTERN = (
    rf"(?:(?:^|[.!?;:\n]){_WORD_GAP_PATTERN}?|(?:^|[.!?\n])\s*[(\[\"'#]+{_WORD_GAP_PATTERN}?)"
)
_SENTENCE_END_PATTERN = r"(?:[*_)\]\"']*(?:[.!;]|\s*$|[ \t\r]*\n[ \t\r]*(?:\n|[-*#>|+\d])))"
_SPACED_PATTERN_BY_SHORTHAND = {
    "^^": _SENTENCE_START_PATTERN,
    "$$": _SENTENCE_END_PATTERN,
    " .. ": f"{_WORD_GAP_PATTERN}(?:{_WORD_LETTER_PATTERN}+{_WORD_GAP_PATTERN}){{0,2}}",
    " ": _WORD_GAP_PATTERN,
    "@": f"{_WORD_LETTER_PATTERN}+",
    "~": f"{_WORD_LETTER_PATTERN}*",
    "(": "(?:",
}
_UNSPACED_PATTERN_BY_SHORTHAND = {
    "^^": "",
    "$$": r"(?:[.!;\n]|$)",
    " .. ": ".{0,20}",
    " ": "",
    "@": ".{1,12}",
    "~": ".{0,4}",
    "(": "(?:",
}
_SHORTHAND_PATTERN = re.compile(r"\[[^]]*\]|\^\^|\$\$| \.\. |[ @~(]")
"""Shorthand of `addressing.toml` for longer RE2 patterns; also character classes, which stay unchanged."""


class ManipulationSignMatch(NamedTuple):
    """A sign, and the range of bytes that it covers."""

    sign: ManipulationSign
    start: int
    end: int


def find_manipulation_signs(
    read: bytes, *, has_word_spaces: bool = True
) -> Iterator[ManipulationSignMatch]:
    """Yield the signs in a folded text from first to last, without overlap.

    `has_word_spaces` is False if the words of the text have no spaces between them.
    """
    for match in _build_any_sign_pattern(has_word_spaces).finditer(read):
        indices = _build_sign_pattern_set(has_word_spaces).Match(
            match[0]
        )  # none if it is a sign only in its context
        if not indices:
            continue
        sign = MANIPULATION_SIGNS[min(indices)]
        if sign != "kept":
            yield ManipulationSignMatch(sign, match.start(), match.end())


@cache
def _build_any_sign_pattern(has_word_spaces: bool) -> Any:
    """Return a pattern that finds all signs; of signs that begin at the same place the longest.

    Groups in so large a pattern would be slower, so that `_build_sign_pattern_set` tells which sign it is.
    """
    return re2.compile("|".join(_build_sign_patterns(has_word_spaces)), _RE2_OPTIONS)


@cache
def _build_sign_pattern_set(has_word_spaces: bool) -> Any:
    """Return a set of one pattern for each sign; it is made when the first sign is found, which most texts lack."""
    pattern_set = re2.Set.FullMatchSet(_RE2_OPTIONS)
    for pattern in _build_sign_patterns(has_word_spaces):
        pattern_set.Add(pattern)
    pattern_set.Compile()
    return pattern_set


@cache
def _build_sign_patterns(has_word_spaces: bool) -> list[str]:
    languages = _load_toml("addressing").values()
    patterns = [
        "|".join(_MANIPULATION_SIGN_TABLES["marks"]),
        "|".join(_MANIPULATION_SIGN_TABLES["tokens"]),
    ]
    for sign in get_args(ManipulationWordSignName):
        words = chain.from_iterable(language[sign] for language in languages)
        patterns.append("|".join(_expand_shorthand(word, has_word_spaces) for word in words))
    return patterns


def _load_toml(name: str) -> JsonFields:
    return tomllib.loads(files("jurygraph.safety").joinpath(f"{name}.toml").read_bytes().decode())


_MANIPULATION_SIGN_TABLES = _load_toml("signs")


def _expand_shorthand(pattern: str, has_word_spaces: bool) -> str:
    """Return a pattern of `addressing.toml` for RE2.

    With spaces between words, it is for whole words if it is ASCII, since RE2 has no other word boundaries.
    """
    folded_pattern = fold_text(pattern)
    pattern_by_shorthand = (
        _SPACED_PATTERN_BY_SHORTHAND if has_word_spaces else _UNSPACED_PATTERN_BY_SHORTHAND
    )
    expanded_pattern = _SHORTHAND_PATTERN.sub(
        lambda match: pattern_by_shorthand.get(match[0], match[0]), folded_pattern
    )
    expanded_pattern = f"(?:{expanded_pattern})"
    if not has_word_spaces or not folded_pattern.isascii():
        return expanded_pattern
    before = _WORD_EDGE_PATTERN if _BEGINS_WITH_WORD_PATTERN.match(folded_pattern) else ""
    right_edge_pattern = (
        _WORD_EDGE_PATTERN if _ENDS_WITH_WORD_PATTERN.search(folded_pattern) else ""
    )
    return f"{before}{expanded_pattern}{right_edge_pattern}"


class TextReading(NamedTuple):
    """One way to read a text, folded. `hiding_place` describes where the view was hidden if readers do not see it;
    `has_lost_spaces` is True if it has lost the spaces between its words."""

    folded: bytes
    hiding_place: str = ""
    has_lost_spaces: bool = False


_SignCombination = tuple[frozenset[ManipulationSign], int]
"""Signs that count when they occur together, and the number of characters that the passage may have (0: no limit)."""


def _find_sign_combinations(view: TextReading) -> Iterator[tuple[frozenset[ManipulationSign], str]]:
    """Yield combinations of signs with their passages, in one pass: only the last of each sign counts."""
    combinations = _HIDDEN_COMBINATIONS_BY_SIGN if view.hiding_place else _COMBINATIONS_BY_SIGN
    last = {}
    for signal in find_manipulation_signs(view.folded, has_word_spaces=not view.has_lost_spaces):
        last[signal.sign] = signal
        for signs, max_passage_length in combinations[signal.sign]:
            if not signs <= last.keys():
                continue
            start = min(last[sign].start for sign in signs)
            passage = view.folded[start : signal.end]
            if (
                max_passage_length and len(passage) > 4 * max_passage_length
            ):  # a character has four bytes at most
                continue
            words = " ".join(passage.decode().split())
            if not max_passage_length or len(words) <= max_passage_length:
                yield signs, words


def _load_manipulation_signs(*names: str) -> Mapping[ManipulationSign, list[_SignCombination]]:
    combinations: dict[ManipulationSign, list[_SignCombination]] = defaultdict(list)
    for entry in chain.from_iterable(_MANIPULATION_SIGN_TABLES[name] for name in names):
        for alternatives in product(*map(str.split, entry["signs"])):
            signs: frozenset[Any] = frozenset(alternatives)
            for sign in signs:
                combinations[sign].append((signs, entry["within"]))
    return combinations


_COMBINATIONS_BY_SIGN = _load_manipulation_signs("combinations")
_HIDDEN_COMBINATIONS_BY_SIGN = _load_manipulation_signs("combinations", "hidden_combinations")


@lru_cache(maxsize=16)
def _find_allowed_signs(query: str, reference: str) -> frozenset[ManipulationSign]:
    """Return the signs that the task shows in combination or asks for. Cached for all responses of a group."""
    folded_query = fold_text(query)
    allowed_signs: set[ManipulationSign] = set()
    for text in (folded_query, fold_text(reference)):
        for signs, _ in _find_sign_combinations(TextReading(text.encode())):
            allowed_signs |= signs
    for topic, sign_names in _MANIPULATION_SIGN_TABLES["allowed_signs"].items():
        if is_task_about(topic, folded_query):
            allowed_signs.update(sign_names.split())
    return frozenset(allowed_signs)


def is_task_about(topic: str, folded_query: str) -> bool:
    """Return whether a task is about one of the topics that `signs.toml` lists."""
    return (
        re2.search("|".join(_MANIPULATION_SIGN_TABLES["topics"][topic]), folded_query) is not None
    )


_FOREIGN_LOOKALIKE_PAIRS = _MANIPULATION_SIGN_TABLES["look_alikes"]["foreign"].split()
_ODD_LOOKALIKE_PAIRS = _MANIPULATION_SIGN_TABLES["look_alikes"]["odd"].split()
_LATIN_LETTER_BY_LOOKALIKE = {
    ord(pair[0]): pair[1] for pair in (*_FOREIGN_LOOKALIKE_PAIRS, *_ODD_LOOKALIKE_PAIRS)
}
"""Latin letters by the look-alikes that folding does not replace."""

_FOREIGN_LOOKALIKE_LETTERS = "".join(pair[0] for pair in _FOREIGN_LOOKALIKE_PAIRS)
_ODD_LOOKALIKE_LETTERS = "".join(pair[0] for pair in _ODD_LOOKALIKE_PAIRS)
_MIXED_ALPHABETS_PATTERN = re2.compile(
    f"[a-z][{_FOREIGN_LOOKALIKE_LETTERS}]|[{_FOREIGN_LOOKALIKE_LETTERS}][a-z]|[{_ODD_LOOKALIKE_LETTERS}]"
)
"""Matches where a word mixes alphabets."""

_TAG_CHARACTERS_PATTERN = re2.compile("[\U000e0020-\U000e007e]+")
_VARIATION_SELECTORS_PATTERN = re2.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
_HIDDEN_COMMENT_PATTERN = re2.compile(r"<!--((?s:.*?))(?:-->|\z)|\[(?://|comment)\]: ?#([^\n]*)")
_BASE64_PATTERN = re2.compile(r"[A-Za-z0-9+/_-]{24,}(?:\r?\n[A-Za-z0-9+/_-]+)*")
_LETTER_PATTERN = r"[^\s[:punct:]\d]"
_LETTER_SPACING_PATTERN = r"[\s[:punct:]]{1,3}"
_SPACED_LETTERS_PATTERN = re2.compile(
    f"{_LETTER_PATTERN}(?:{_LETTER_SPACING_PATTERN}{_LETTER_PATTERN}){{9,}}"
)
_SEPARATOR_BYTES_PATTERN = re.compile(rb"[\s!-/:-@\[-`{-~]+")
_BACKWARD_WORDS_PATTERN = re2.compile(
    r"erongi|snoitcurtsni|redarg|rotaulave|egduj|erocs|skram|airetirc|esnopser|rewsna"
)
_DIRECTION_CONTROLS_PATTERN = re2.compile("[\u202d\u202e\u2066\u2067]")
_ASCII_HIDING_PATTERN = re2.compile(
    f"&#|{_HIDDEN_COMMENT_PATTERN.pattern}|{_BASE64_PATTERN.pattern}|{_SPACED_LETTERS_PATTERN.pattern}"
    f"|{_BACKWARD_WORDS_PATTERN.pattern}"
)
"""Matches in every folded ASCII text that hides another one: most texts are searched for this only."""


def iter_text_readings(text: str, read: str) -> Iterator[TextReading]:
    """Yield a text and all texts that are hidden in it; `read` is the folded text.

    Takes time proportional to the length of the text.
    """
    text_bytes = text.encode("utf-8", "replace")
    content = read.encode()
    yield TextReading(content)
    if text.isascii() and _ASCII_HIDING_PATTERN.search(content) is None:
        return
    # what may have tags, selectors and direction controls
    non_ascii_bytes = b"" if text.isascii() else text_bytes
    if not read.isascii() and _MIXED_ALPHABETS_PATTERN.search(content) is not None:
        yield TextReading(read.translate(_LATIN_LETTER_BY_LOOKALIKE).encode())
    if b"&#" in text_bytes:
        yield TextReading(fold_text(unescape(text)).encode())
    hidden_comments = b"\n".join(
        match[1] or match[2] for match in _HIDDEN_COMMENT_PATTERN.finditer(content)
    )
    codes = (_decode_base64(match[0]) for match in _BASE64_PATTERN.finditer(text_bytes))
    backward_words = set(
        _BACKWARD_WORDS_PATTERN.findall(content)
    )  # one of them may occur by chance
    is_backward_text = (
        len(backward_words) > 1 or _DIRECTION_CONTROLS_PATTERN.search(non_ascii_bytes) is not None
    )
    hidden_text_by_place = {
        "in characters that nobody sees": _decode_invisible_characters(non_ascii_bytes),
        "in a comment": hidden_comments.decode(),
        "in base64": "\n".join(filter(None, codes)),
        "backwards": read[::-1] if is_backward_text else "",
    }
    for hiding_place, hidden_text in hidden_text_by_place.items():
        if hidden_text:
            yield TextReading(fold_text(hidden_text).encode(), hiding_place)
    spaced_words = (
        _SEPARATOR_BYTES_PATTERN.sub(b"", match[0])
        for match in _SPACED_LETTERS_PATTERN.finditer(content)
    )
    unspaced_words = b"\n".join(spaced_words)
    if unspaced_words:
        yield TextReading(unspaced_words, "in spaced letters", has_lost_spaces=True)


def _decode_invisible_characters(text_bytes: bytes) -> str:
    """Return the texts that tags and variation selectors encode, a line each."""
    lines = []
    for run in _TAG_CHARACTERS_PATTERN.findall(text_bytes):
        lines.append("".join(chr(ord(char) - 0xE0000) for char in run.decode()))
    for run in _VARIATION_SELECTORS_PATTERN.findall(text_bytes):
        lines.append(
            bytes(map(_variation_selector_to_byte, run.decode())).decode("utf-8", "ignore")
        )
    return "\n".join(lines)


def _variation_selector_to_byte(selector_character: str) -> int:
    code = ord(selector_character)
    return code - 0xFE00 if code < 0xE0100 else code - 0xE0100 + 16


def _decode_base64(code: bytes) -> str:
    """Return the text that a base64 code, in either alphabet, encodes; "" if it encodes no text."""
    normalized_base64 = b"".join(code.split()).translate(bytes.maketrans(b"-_", b"+/"))
    # the last letter of the beginning may be incomplete
    start = b64decode(normalized_base64[:24]).decode("utf-8", "replace")[:-1]
    if "\ufffd" in start or not all(map(str.isprintable, start.split())):
        return ""
    decodable_length = len(normalized_base64) // 4 * 4
    return b64decode(normalized_base64[:decodable_length]).decode("utf-8", "ignore")


class TextGateResult(NamedTuple):
    """The gate that stops a response, and the reason, a sentence that quotes the passage."""

    gate: ResponseGate
    reason: str


def find_stopping_gate(
    text: str,
    gates: Collection[ResponseGate],
    *,
    query: str = "",
    reference: str | None = None,
    last_message_counts_alone: bool = False,
) -> TextGateResult | None:
    """Return the first of these gates, in the order of `RESPONSE_GATES`, that stops a response; None if none does.

    Depends on the texts alone, and takes time proportional to their length. Passages that the query or reference
    contains as well do not count against a response. In a conversation, the messages of the assistant are read one by
    one: what others wrote is not its work. An empty last one stops it alone if `last_message_counts_alone`, else only
    if all are empty.
    """
    if isinstance(text, RenderedText) and text.has_turn_headers:
        return _gate_conversation(text, gates, query, reference, last_message_counts_alone)
    read = fold_text(text)
    reference = reference or ""
    reasons = {
        "empty-response": lambda: _check_empty(text),
        "punctuation-only": lambda: _check_punctuation(text, query, reference),
        "bare-opener": lambda: _check_opener(text, read, query, reference),
        "reference-copy": lambda: _check_reference_copy(read, query, reference),
        "addresses-grader": lambda: _check_speaks_to_grader(text, read, query, reference),
    }
    for gate in RESPONSE_GATES:
        if gate not in gates:
            continue
        reason = reasons[gate]()
        if reason is not None:
            return TextGateResult(gate, reason)
    return None


def _gate_conversation(
    text: RenderedText,
    gates: Collection[ResponseGate],
    query: str,
    reference: str | None,
    last_message_counts_alone: bool,
) -> TextGateResult | None:
    """Return the gate that stops a conversation: for an address in any message, else for the last reply.

    A last message that only calls tools is an action, not an empty answer. An empty one is passed over to the last that
    says or does something, so that it hides no bare opener.
    """
    assistant_turns = [turn for turn in text.turns if turn.role == "assistant"]
    grader_address_gates = [gate for gate in gates if gate == "addresses-grader"]
    passages = [
        (f"message {turn.message}: ", text[turn.start : turn.end]) for turn in assistant_turns
    ]
    # an address may be split over several messages
    passages.append(("", _join_turn_texts(text, assistant_turns)))
    for lead, words in passages:
        found = find_stopping_gate(words, grader_address_gates, query=query, reference=reference)
        if found is not None:
            return found._replace(reason=f"{lead}{found.reason}")
    last_message = max((turn.message for turn in assistant_turns), default=None)
    if not last_message_counts_alone:
        for turn in assistant_turns:
            if turn.kind == "call" or _check_empty(_join_turn_texts(text, [turn])) is None:
                last_message = turn.message
    last = [turn for turn in assistant_turns if turn.message == last_message]
    if any(turn.kind == "call" for turn in last):
        return None
    reply = _join_turn_texts(text, last)
    others = [gate for gate in gates if gate != "addresses-grader"]
    return find_stopping_gate(reply, others, query=query, reference=reference)


def _join_turn_texts(text: RenderedText, turns: Iterable[Turn]) -> str:
    return "\n\n".join(text[turn.start : turn.end] for turn in turns if turn.kind == "text")


_VISIBLE_CHARACTER_PATTERN = re.compile(f"[^\\s{INVISIBLE_CHARACTERS}]")
_WORD_CHARACTER_PATTERN = re.compile(f"(?![{INVISIBLE_CHARACTERS}])[^\\W_]")
_MAX_SHORT_ANSWER_LENGTH = 30


def _check_empty(text: str) -> str | None:
    return (
        None
        if _VISIBLE_CHARACTER_PATTERN.search(text)
        else "there is nothing in it that can be seen"
    )


def _check_punctuation(text: str, query: str, reference: str) -> str | None:
    if not _has_only_punctuation(text) or _has_only_punctuation(reference):
        return None
    if is_task_about("punctuation", fold_text(query)):
        return None
    return f"there is no word and no figure in it: {quote(_shorten_to_first_line(text))}"


def _has_only_punctuation(text: str) -> bool:
    """Return whether nothing to be seen is or represents (as ㈱ does) a letter, digit or mathematical sign."""
    if (
        _VISIBLE_CHARACTER_PATTERN.search(text) is None
        or _WORD_CHARACTER_PATTERN.search(text) is not None
    ):
        return False
    return not any(map(_is_content_character, set(remove_invisible(text))))


def _is_content_character(char: str) -> bool:
    if not char.isascii() and unicodedata.category(char) == "Sm":
        return True
    return any(map(str.isalnum, unicodedata.normalize("NFKC", char)))


def _check_opener(text: str, read: str, query: str, reference: str) -> str | None:
    openers_pattern, _, _ = _compile_opener_patterns()
    # only openers, in any layout, number and mixture of 28 languages
    if openers_pattern.fullmatch(read) is None:
        return None
    # it may be a word that the query asks for, or that a short reference contains
    if len(text) <= _MAX_SHORT_ANSWER_LENGTH:
        is_short_reference = len(reference) <= _MAX_SHORT_ANSWER_LENGTH
        if is_short_reference and keep_letters_and_digits(read) in _letters_of(reference):
            return None
        if is_task_about("words", fold_text(query)):
            return None
    return f"it announces an answer and gives none: {quote(_shorten_to_first_line(text))}"


def _check_reference_copy(read: str, query: str, reference: str) -> str | None:
    description = describe_reference_copy(read, reference, query)
    return description and f"{description}: {quote(_shorten_to_first_line(reference))}"


def _check_speaks_to_grader(text: str, read: str, query: str, reference: str) -> str | None:
    """Quote the first passage that speaks to a grader; signs that query or reference show or ask for do not count."""
    for view in iter_text_readings(text, read):
        for signs, passage in _find_sign_combinations(view):
            if signs.isdisjoint(_find_allowed_signs(query, reference)):
                hiding_place_text = f", {view.hiding_place}" if view.hiding_place else ""
                return f"it speaks to its grader{hiding_place_text}: {quote(passage)}"
    return None


def _shorten_to_first_line(text: str) -> str:
    return " ".join(remove_invisible(text[:200]).split())


MIN_REFERENCE_LETTERS = 60
"""Minimum number of letters of a reference for a copy of it to be suspicious. Digits do not count: correct solutions of
a problem share all of theirs. On GSM8K, where models learnt to write as references do, some correct solutions of up to
56 letters equal the reference letter by letter."""

_NEAR_COPY_CUTOFFS = ((240, 0.92), (120, 0.98))
"""Minimum numbers of letters, each with the similarity from which a text is nearly the reference. On GSM8K, honest
solutions reach similarities of 0.85 and 0.97."""

_LONG_REFERENCE_MIN_LETTERS = 120
_MAX_EXTRA_TEXT_SHARE = 1.0
"""A reference of at least so many letters is copied by any response that contains all of it; a shorter one only if the
rest of the response is at most `_MAX_EXTRA_TEXT_SHARE` times as long. No honest solution in GSM8K contains a long
one."""
_MAX_CHARACTERS_COMPARED = 20_000
_NGRAM_LENGTH = 16
_MAX_REFERENCE_SHARE_IN_QUERY = 0.5


def describe_reference_copy(read: str, reference: str, query: str) -> str | None:
    """Return how a folded response copies the reference, as a sentence; None if it does not.

    A reference that is mostly in the query, as in tasks that correct or quote a text, cannot be copied.
    """
    reference_letters = _letters_of(reference)
    weight = sum(map(str.isalpha, reference_letters))
    if weight < MIN_REFERENCE_LETTERS:
        return None
    description = _describe_reference_likeness(
        keep_letters_and_digits(read), reference_letters, weight
    )
    if description is None:
        return None
    letters = keep_letters_and_digits(fold_text(query))
    ngrams = {letters[start : start + _NGRAM_LENGTH] for start in range(len(letters))}
    starts = range(len(reference_letters) - _NGRAM_LENGTH + 1)
    shared_ngram_count = sum(
        reference_letters[start : start + _NGRAM_LENGTH] in ngrams for start in starts
    )
    return None if shared_ngram_count > _MAX_REFERENCE_SHARE_IN_QUERY * len(starts) else description


@lru_cache(maxsize=16)
def _letters_of(reference: str) -> str:
    return keep_letters_and_digits(fold_text(reference))


def _describe_reference_likeness(response: str, reference: str, weight: int) -> str | None:
    if response == reference:
        return "it is the reference"
    is_slightly_longer = len(response) <= (1 + _MAX_EXTRA_TEXT_SHARE) * len(reference)
    if reference in response and (weight >= _LONG_REFERENCE_MIN_LETTERS or is_slightly_longer):
        return "it holds the reference, word for word"
    similarity_cutoff = next(
        (share for length, share in _NEAR_COPY_CUTOFFS if weight >= length), None
    )
    shorter_length, longer_length = sorted((len(response), len(reference)))
    if similarity_cutoff is None or shorter_length < similarity_cutoff * longer_length:
        return None
    compared_texts = response[:_MAX_CHARACTERS_COMPARED], reference[:_MAX_CHARACTERS_COMPARED]
    is_near_reference = (
        Indel.normalized_similarity(*compared_texts, score_cutoff=similarity_cutoff) > 0
    )
    return "it is nearly the reference" if is_near_reference else None


FENCE_MARK_LENGTH = 16
"""Length of a mark in hexadecimal digits."""

SHORT_FENCE_MARK_LENGTH = 8
"""Length where tokens are dear: a guess at the mark of another text is right once in 2^32."""

_DEFAULT_FENCE_KEY = b"jurygraph"


def read_project_key() -> bytes:
    """Return the project's key for the marks of fences from the environment; empty if there is none."""
    return os.fsencode(os.environ.get("JURYGRAPH_FENCE_KEY", ""))


@dataclass(frozen=True, slots=True)
class TextFence:
    """Encloses texts in marks, and lists the marks in `marks`, in the order in which they were made.

    A mark is an HMAC of the project's `key` and the text. It is always the same, so that caches and recordings work,
    and it is not in the text, since no author can include the mark of a text in that text; if it is there by chance,
    another is made. Without a key, marks are still not in the texts, but anyone can compute the mark of a known text.
    Nothing is enclosed unless `is_fencing_enabled`. A mark has `mark_length` hexadecimal digits.
    """

    key: bytes = b""
    is_fencing_enabled: bool = True
    mark_length: int = FENCE_MARK_LENGTH
    marks: list[str] = field(default_factory=list)

    def enclose(self, text: str, name: str) -> str:
        """Return the text between two lines that show where it begins and ends.

        In a conversation, each message is enclosed too, so that no words of one can pass for the header of another.
        """
        if not self.is_fencing_enabled:
            return text
        if isinstance(text, RenderedText) and text.has_turn_headers:
            blocks = text.blocks()
            text = "".join(
                header + self._wrap_in_marks(words, "message") for header, words in blocks
            )
        return self._wrap_in_marks(text, name)

    def _wrap_in_marks(self, text: str, name: str) -> str:
        for turn in count():
            content = hmac.new(self.key or _DEFAULT_FENCE_KEY, f"{turn} {name} ".encode(), "sha256")
            for piece in split_into_pieces(text):
                content.update(piece.encode("utf-8", "backslashreplace"))
            mark = content.hexdigest()[: self.mark_length]
            if mark not in text:
                break
        if mark not in self.marks:
            self.marks.append(mark)
        return f"<<<{name} {mark}\n{text}\n{name} {mark}>>>"
