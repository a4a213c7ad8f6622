"""Detect texts that address their grader instead of doing their task: orders, claims of authority, prepared verdicts.

Honest texts contain all of these signs, so only marks that a machine writes and orders of a verdict on every criterion
count alone; the others count in combinations of signs close to each other. Fewer signs are enough in hidden text: in
invisible characters, look-alikes, spaced letters, comments, or encodings.
"""

import re
import tomllib
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from html import unescape
from importlib.resources import files
from itertools import product
from typing import Any, Literal, NamedTuple, get_args

import re2

from jurygraph.safety.text_folding import fold_text

WordSign = Literal[
    "kept", "forget", "orders", "told", "grader", "full", "passed", "demand", "praise", "work", "office", "behind"
]
"""Functions of words; `addressing.toml` lists and explains them."""

Sign = Literal["mark", "token"] | WordSign
SIGNS: tuple[Sign, ...] = ("mark", "token", *get_args(WordSign))

_TOKENS = (
    r"<\|[a-z_]{2,24}\|>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>",
    r"(?:^|\n)[ \t]*#{2,4} ?(?:system|assistant|human)[ \t]*:",
)
"""Marks of turns and roles in chat templates."""

_MARKS = (
    r"<<<[ \t]*[a-z_]{1,40}[ \t]+[0-9a-f]{8,64}\b|\b[a-z_]{1,40}[ \t]+[0-9a-f]{8,64}[ \t]*>>>",
    r"nothing between the marks above|answer with the json alone",
    r'"[a-z]{1,20}_[0-9]{1,3}"\s*:\s*\{\s*"(?:reason|quotes|met|probability|value|part_1)"|\{\s*"met"\s*:\s*true',
    r'"met"\s*:\s*true\s*,\s*"probability"|"probability"\s*:\s*(?:1|1\.0|0?\.9[0-9]*)\s*,\s*"met"',
    r'"(?:score|rating|grade)"\s*:\s*"?[0-9.]+"?\s*,\s*"verdict"',
    r'"verdict"\s*:\s*"[a-z ]+"\s*,\s*"(?:score|rating|grade)"',
    r"(?:rating|score|verdict|judge?ment|winner|evaluation|grade|final)(?:\s+is)?[\s*_:=-]{0,8}"
    r"\[\[(?:[0-9.]{1,4}|[a-c]|tie)\]\]|(?:^|\n)[\s*_]*\[\[10\]\][\s*_.]*(?:\n|$)"
    r"|(?:^|[\n.:!])[\s*_]*\[\[[a-c]\]\][\s*_.]*(?:\n|$)",
)
"""Marks of jurygraph's fences, instructions and replies, and verdicts of other judges."""

_GAP, _WORD_LETTER = r"(?:[\s*_>|`~,:-]+)", r"[^\s!-/:-@\[-`{-~]"
_EDGE = r"(?:\b|_)"
_BEGINS_WITH_WORD, _ENDS_WITH_WORD = re.compile(r"\(*[a-z0-9]"), re.compile(r"[a-z0-9)?~@]\Z")
_MEMORY = 1 << 26  # memory limit of RE2, in bytes; with less, its searches are slow
_SPACED = {
    " .. ": f"{_GAP}(?:{_WORD_LETTER}+{_GAP}){{0,2}}",
    " ": _GAP,
    "@": f"{_WORD_LETTER}+",
    "~": f"{_WORD_LETTER}*",
    "(": "(?:",
}
_UNSPACED = {" .. ": ".{0,20}", " ": "", "@": ".{1,12}", "~": ".{0,4}", "(": "(?:"}
_NOTATION = re.compile(r"\[[^]]*\]| \.\. |[ @~(]")
"""Shorthand of `addressing.toml` for longer RE2 patterns; also character classes, which stay unchanged."""


class Signal(NamedTuple):
    """A sign, and the range of bytes that it covers."""

    sign: Sign
    start: int
    end: int


def find_signs(read: bytes, *, spaced: bool = True) -> Iterator[Signal]:
    """Yield the signs in a folded text from first to last, without overlap.

    `spaced` is False if the words of the text have no spaces between them.
    """
    pattern, sign_set = _sign_patterns(spaced)
    for match in pattern.finditer(read):
        indices = sign_set.Match(match[0])  # none if it is a sign only in its context
        if indices and (sign := SIGNS[min(indices)]) != "kept":
            yield Signal(sign, match.start(), match.end())


@cache
def _sign_patterns(spaced: bool) -> tuple[Any, Any]:
    """Return one pattern that finds all signs, and a set of one pattern for each sign that identifies them.

    Groups in so large a pattern would be slower. Of signs that begin at the same place the longest is found.
    """
    options = re2.Options()
    options.longest_match = True
    options.max_mem = _MEMORY
    options.log_errors = False
    languages = tomllib.loads(files("jurygraph.safety").joinpath("addressing.toml").read_bytes().decode())
    expand = _expand_spaced if spaced else _expand_unspaced
    word_patterns = (
        [expand(word) for words in languages.values() for word in words[sign]] for sign in get_args(WordSign)
    )
    patterns = ["|".join(alternatives) for alternatives in (_MARKS, _TOKENS, *word_patterns)]
    sign_set = re2.Set.FullMatchSet(options)
    for pattern in patterns:
        sign_set.Add(pattern)
    sign_set.Compile()
    return re2.compile("|".join(patterns), options), sign_set


def _expand_spaced(pattern: str) -> str:
    """Return the pattern, for whole words if it is ASCII, since RE2 has no other word boundaries."""
    plain = fold_text(pattern)
    expanded = f"(?:{_expand_notation(plain, _SPACED)})"
    if not plain.isascii():
        return expanded
    before = _EDGE if _BEGINS_WITH_WORD.match(plain) else ""
    behind = _EDGE if _ENDS_WITH_WORD.search(plain) else ""
    return f"{before}{expanded}{behind}"


def _expand_unspaced(pattern: str) -> str:
    return f"(?:{_expand_notation(fold_text(pattern), _UNSPACED)})"


def _expand_notation(plain: str, notation: Mapping[str, str]) -> str:
    return _NOTATION.sub(lambda found: notation.get(found[0], found[0]), plain)


class View(NamedTuple):
    """One way to read a text, folded. `hidden` describes where the view was hidden if readers do not see it;
    `run_together` is True if it has lost the spaces between its words."""

    folded: bytes
    hidden: str = ""
    run_together: bool = False


_Combination = tuple[frozenset[Sign], int]
"""Signs that count when they occur together, and the number of characters that the passage may have (0: no limit)."""


def _combination(within: int, *signs: Sign) -> _Combination:
    return frozenset(signs), within


_GRADER_SIGNS: tuple[Sign, ...] = ("grader", "office", "behind")
_VERDICT_SIGNS: tuple[Sign, ...] = ("full", "passed", "praise")
_COMBINATIONS: tuple[_Combination, ...] = (
    *(_combination(0, "mark"), _combination(0, "token"), _combination(0, "demand")),
    _combination(80, "forget", "orders"),
    _combination(120, "work", "full"),
    *(_combination(240, address, verdict) for address, verdict in product(_GRADER_SIGNS, _VERDICT_SIGNS)),
    *(_combination(240, "forget", "told", other) for other in (*_GRADER_SIGNS, *_VERDICT_SIGNS)),
    *(_combination(240, address, "grader") for address in ("office", "behind")),
    *(_combination(240, "passed", "full"), _combination(240, "passed", "praise")),
)
_HIDDEN_COMBINATIONS: tuple[_Combination, ...] = (
    *_COMBINATIONS,
    *(
        _combination(0, "grader"),
        _combination(0, "full"),
        _combination(0, "passed"),
        _combination(240, "forget", "told"),
    ),
)

_ABOUT_MODELS = (
    r"prompt.injection|jailbreak|chat.?template|chatml|special tokens|system prompt|prompt engineering|red.team"
    r"|\bllms?\b|language models?|chatbots?|ai (?:safety|security|alignment|assistants?)|提示(?:词)?注入"
    r"|大(?:语言)?模型|プロンプトインジェクション|言語モデル|언어 모델|языков\S+ модел|sprachmodell"
    r"|modelos? de lenguaje"
)
_ABOUT_GRADERS = r"\b(?:evaluator|grader|assessor|rater|judge|reviewer|examiner|referee)s?\b"
_ABOUT_MARKS = (
    r"\b(?:grade|evaluate|assess|rate|review|critique|score|judge|mark|proofread)"
    r" (?:the|this|these|my|an?|following|each)\b"
    r"|\b(?:letter|e-?mail|message|appeal|speech|script|dialogue)\b[^.]{0,80}"
    r"\b(?:judges?|jury|teacher|professor|examiner|grader|reviewers?|referees?|admissions?)\b"
    r"|\b(?:rubric|marking scheme|mark scheme|answer key|exam|quiz|worksheet|feedback|testimonial|review)\b"
    r"|klassenarbeit|klausur|erwartungshorizont|notenschlussel|bewerte|evalue|califica|avalie|valuta "
    r"|оцени|评分|评价|评审|点评|採点|評価して|평가해|채점|تقييم|मूल्यांकन"
)
_SIGNS_BY_TOPIC: tuple[tuple[str, frozenset[Sign]], ...] = (
    (_ABOUT_MODELS, frozenset({"token", "forget", "orders", "told", "office", "grader"})),
    (_ABOUT_GRADERS, frozenset({"grader"})),
    (_ABOUT_MARKS, frozenset({"grader", "demand", *_VERDICT_SIGNS})),
)
"""Patterns of topics that a task may be about, and the signs that then do not count."""


class Address(NamedTuple):
    """A passage that addresses the grader, folded, and where it is hidden if readers do not see it."""

    passage: str
    hiding_place: str


def find_address(text: str, read: str, query: str, reference: str) -> Address | None:
    """Return the first passage in which a text addresses its grader; None if there is none. `read` is the folded text.

    Signs that the query or the reference shows or asks for do not count.
    """
    for view in find_views(text, read):
        for signs, passage in _find_combinations(view):
            if signs.isdisjoint(_allowed_signs(query, reference)):
                return Address(passage, view.hidden)
    return None


def _find_combinations(view: View) -> Iterator[tuple[frozenset[Sign], str]]:
    """Yield combinations of signs with their passages.

    Only the last occurrence of each sign counts, so that one pass over the text is enough.
    """
    combinations = _HIDDEN_COMBINATIONS_BY_SIGN if view.hidden else _COMBINATIONS_BY_SIGN
    last: dict[Sign, Signal] = {}
    for signal in find_signs(view.folded, spaced=not view.run_together):
        last[signal.sign] = signal
        for signs, within in combinations[signal.sign]:
            if signs <= last.keys():
                start = min(last[sign].start for sign in signs)
                if (passage := _passage(view.folded[start : signal.end], within)) is not None:
                    yield signs, passage


def _passage(read: bytes, within: int) -> str | None:
    """Return the words of a passage; None if it has more than `within` characters, or four times as many bytes."""
    if within and len(read) > 4 * within:
        return None
    passage = " ".join(read.decode().split())
    return passage if not within or len(passage) <= within else None


def _group_by_sign(combinations: Iterable[_Combination]) -> Mapping[Sign, tuple[_Combination, ...]]:
    return {sign: tuple(combination for combination in combinations if sign in combination[0]) for sign in SIGNS}


_COMBINATIONS_BY_SIGN, _HIDDEN_COMBINATIONS_BY_SIGN = (
    _group_by_sign(_COMBINATIONS),
    _group_by_sign(_HIDDEN_COMBINATIONS),
)


@lru_cache(maxsize=16)
def _allowed_signs(query: str, reference: str) -> frozenset[Sign]:
    """Return the signs that the task itself shows in combination, and those that it asks for.

    Cached, since all responses of a group have the same task.
    """
    folded_query = fold_text(query)
    shown_signs = (
        signs for text in (folded_query, fold_text(reference)) for signs, _ in _find_combinations(View(text.encode()))
    )
    return frozenset().union(
        *shown_signs, *(signs for pattern, signs in _SIGNS_BY_TOPIC if re2.search(pattern, folded_query) is not None)
    )


_CYRILLIC_AND_GREEK = (
    "аa вb сc ԁd еe ғf ԍg һh нh іi јj кk ӏl мm пn оo рp ԛq гr ѕs тt иu цu уy ѵv ѡw ԝw хx ҳx ьb "
    "αa βb γy εe ηn ιi κk νv οo ρp σo τt υu χx ωw μu"
)
_ARMENIAN = "օo ոn սu հh ցg զq յj"
_LISU = "ꓐb ꓑp ꓓd ꓔt ꓖg ꓗk ꓙj ꓚc ꓜz ꓝf ꓟm ꓠn ꓡl ꓢs ꓣr ꓦv ꓧh ꓪw ꓫx ꓬy ꓮa ꓰe ꓲi ꓳo ꓴu"
_CHEROKEE = "Ꭰd Ꭱr Ꭲt Ꭵi Ꭺa Ꭻj Ꭼe Ꮃw Ꮇm Ꮋh Ꮆg Ꮓz Ꮟb Ꮢr Ꮩv Ꮪs Ꮮl Ꮯc Ꮲp Ꮶk"
_OTHERS = "ɑa ɡg ᴀa ʙb ᴄc ᴅd ᴇe ꜰf ɢg ʜh ɪi ᴊj ᴋk ʟl ᴍm ɴn ᴏo ᴘp ʀr ꜱs ᴛt ᴜu ᴠv ᴡw ʏy ᴢz"
_BOXED = [f"{chr(first + at)}{chr(ord('a') + at)}" for first in (0x1F150, 0x1F170, 0x1F1E6) for at in range(26)]
_FOREIGN_PAIRS = [*_CYRILLIC_AND_GREEK.split(), *_ARMENIAN.split()]
_ODD_PAIRS = [*_OTHERS.split(), *_LISU.split(), *_CHEROKEE.split(), *_BOXED]
_LOOKS_LIKE = {ord(pair[0]): pair[1] for pair in (*_FOREIGN_PAIRS, *_ODD_PAIRS)}
"""Latin letters by the look-alikes that folding does not replace."""

_FOREIGN, _ODD = ("".join(pair[0] for pair in pairs) for pairs in (_FOREIGN_PAIRS, _ODD_PAIRS))
_MIXED = re2.compile(f"[a-z][{_FOREIGN}]|[{_FOREIGN}][a-z]|[{_ODD}]")
"""Matches where a word mixes alphabets."""

_SELECTOR_RANGES = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_TAGS = re2.compile("[\U000e0020-\U000e007e]+")
_SELECTORS = re2.compile(f"[{_SELECTOR_RANGES}]{{4,}}")
_COMMENT = re2.compile(rb"<!--((?s:.*?))(?:-->|\z)|\[(?://|comment)\]: ?#([^\n]*)")
_CODE = re2.compile(rb"[A-Za-z0-9+/_-]{24,}(?:\r?\n[A-Za-z0-9+/_-]+)*")
_LETTER, _SEPARATOR = r"[^\s[:punct:]\d]", r"[\s[:punct:]]{1,3}"
_SPACED_LETTERS = re2.compile(f"{_LETTER}(?:{_SEPARATOR}{_LETTER}){{9,}}")
_SEPARATORS = re.compile(rb"[\s!-/:-@\[-`{-~]+")
_BACKWARD_WORDS = re2.compile(rb"erongi|snoitcurtsni|redarg|rotaulave|egduj|erocs|skram|airetirc|esnopser|rewsna")
_DIRECTION_CONTROLS = re2.compile("[\u202d\u202e\u2066\u2067]")


def find_views(text: str, read: str) -> Iterator[View]:
    """Yield a text and all texts that are hidden in it; `read` is the folded text.

    Takes time proportional to the length of the text.
    """
    raw, content = text.encode("utf-8", "replace"), read.encode()
    yield View(content)
    if not read.isascii() and _MIXED.search(content) is not None:
        yield View(read.translate(_LOOKS_LIKE).encode())
    if b"&#" in raw:
        yield View(fold_text(unescape(text)).encode())
    hidden = {
        "in characters that nobody sees": _invisible_text(raw),
        "in a comment": _comment_text(content),
        "in base64": _base64_text(raw),
        "backwards": read[::-1] if _DIRECTION_CONTROLS.search(raw) is not None or _has_backward_words(content) else "",
    }
    yield from (View(fold_text(hidden_text).encode(), place) for place, hidden_text in hidden.items() if hidden_text)
    if spaced := b"\n".join(_SEPARATORS.sub(b"", match[0]) for match in _SPACED_LETTERS.finditer(content)):
        yield View(spaced, "in spaced letters", run_together=True)


def _invisible_text(raw: bytes) -> str:
    """Return the text that tags (as ASCII) and variation selectors (as bytes) spell."""
    tagged = ("".join(chr(ord(char) - 0xE0000) for char in run.decode()) for run in _TAGS.findall(raw))
    selected = (bytes(map(_selector_byte, run.decode())).decode("utf-8", "ignore") for run in _SELECTORS.findall(raw))
    return "\n".join([*tagged, *selected])


def _selector_byte(selector: str) -> int:
    code = ord(selector)
    return code - 0xFE00 if code < 0xE0100 else code - 0xE0100 + 16


def _comment_text(content: bytes) -> str:
    return b"\n".join(match[1] or match[2] for match in _COMMENT.finditer(content)).decode()


def _base64_text(raw: bytes) -> str:
    """Return the texts that are encoded in base64, in either alphabet."""
    return "\n".join(filter(None, (_decode_base64(match[0]) for match in _CODE.finditer(raw))))


def _decode_base64(code: bytes) -> str:
    """Return the text that a base64 code encodes; "" if it encodes no text."""
    plain = b"".join(code.split()).translate(bytes.maketrans(b"-_", b"+/"))
    start = b64decode(plain[:24]).decode("utf-8", "replace")[:-1]  # the last letter may be incomplete
    if "\ufffd" in start or not all(map(str.isprintable, start.split())):
        return ""
    return b64decode(plain[: len(plain) // 4 * 4]).decode("utf-8", "ignore")


def _has_backward_words(content: bytes) -> bool:
    """Return whether at least two different ones of the listed words are written backwards."""
    first = _BACKWARD_WORDS.search(content)
    return first is not None and any(match[0] != first[0] for match in _BACKWARD_WORDS.finditer(content))
