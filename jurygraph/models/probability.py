"""Probability of a yes or a no from the log probabilities of a reply's tokens.

Alternatives of a token are needed for it only where a value begins, and are kept only there.
"""

import json
import math
import re
from bisect import bisect_right
from codecs import getincrementaldecoder
from collections.abc import Collection, Sequence
from itertools import accumulate, chain, count
from operator import itemgetter
from typing import Any

from jurygraph.models.request import Reply, Token

_SPACE = re.compile(r"[ \t\n\r]*")
_SPACES = " \t\n\r"
_JSON = json.JSONDecoder()
_MAX_UNSEEN = 0.05  # largest error of a probability, if one of the two words is not among the alternatives
_LEAST_LOGPROB = -9999.0  # vLLM's value for minus infinity
_ROUNDING = 1e-3
_VALUE = re.compile(r""""(?:[^"\\]|\\.)*"(?P<named>[ \t\n\r]*:)?|[{\[]|[^\s"{}\[\]:,]+""", re.DOTALL)


def p_true(reply: Reply, path: Sequence[str | int]) -> float | None:
    """Return the probability in [0, 1] that the boolean at `path` of a JSON reply is true.

    A path is such as `("verdicts", 1, "met")`. The probability is P(true) / (P(true) + P(false)) over the token in
    which the boolean begins and its alternatives. An alternative counts if it agrees with the reply up to the boolean,
    apart from white space before it, and continues with the whole word or a prefix of it.

    None if there is no such boolean, if no token begins either word, or if the alternatives leave more than 0.05 of the
    probability to the word that is not among them; and if the tokens do not spell the text. They may spell more around
    it: a server removes fences and thoughts from the text.
    """
    offset = offset_of(reply.text, path) if reply.tokens else None
    if offset is None or not reply.text.startswith(("true", "false"), offset):
        return None
    alternatives = _alternatives_at(reply, offset)
    return None if alternatives is None else _share_of_true(alternatives)


def read_tokens(logprobs: Any, text: str) -> tuple[Token, ...]:
    """Read log probabilities in OpenAI's format: of every token, or of none if one is unreadable, which left a gap."""
    entries = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(entries, list):
        return ()
    read = [token for token in map(_token, entries) if token is not None]
    if len(read) < len(entries):
        return ()
    texts = [token for token, _ in read]
    if text not in "".join(texts):
        texts = token_texts([(token, entry.get("bytes")) for token, entry in zip(texts, entries, strict=True)])
    indices = value_token_indices(text, texts)
    return tuple(
        Token.model_construct(text=token, logprob=logprob, others=_others(entries[index]) if index in indices else ())
        for index, (token, (_, logprob)) in enumerate(zip(texts, read, strict=True))
    )


def _others(entry: dict[str, Any]) -> tuple[tuple[str, float], ...]:
    top = entry.get("top_logprobs")
    others = [other for other in map(_token, top) if other is not None] if isinstance(top, list) else []
    return tuple(sorted(others, key=itemgetter(1), reverse=True))


def _token(entry: Any) -> tuple[str, float] | None:
    """Return a token and its log probability, which is at most 0; None if there is no such pair."""
    if not isinstance(entry, dict):
        return None
    text: Any = entry.get("token")
    number: Any = entry.get("logprob")
    if not isinstance(text, str) or not isinstance(number, (float, int)) or not number <= _ROUNDING:
        return None
    if _LEAST_LOGPROB <= number <= 0.0:
        return text, float(number)
    return text, 0.0 if number > 0.0 else _LEAST_LOGPROB


def token_texts(tokens: Sequence[tuple[str, Sequence[int] | None]]) -> list[str]:
    """Return the texts of tokens from their bytes: a character that is split belongs to the token in which it ends.

    The texts are returned unchanged if a token has no bytes, or if the bytes are not UTF-8.
    """
    decoder = getincrementaldecoder("utf-8")()
    byte_lists = [list(codes) for _, codes in tokens if isinstance(codes, Sequence)]
    try:
        texts = [decoder.decode(bytes(codes)) for codes in byte_lists]
    except (ValueError, TypeError):
        texts = []
    return texts if texts and len(texts) == len(tokens) else [text for text, _ in tokens]


def value_token_indices(text: str, tokens: Sequence[str]) -> Collection[int]:
    """Return the indices of a reply's tokens at which a JSON value begins, or the characters of a string value.

    Returns all indices if the text is not a JSON object or list, or if the tokens do not spell it.
    """
    ends = list(accumulate(map(len, tokens)))
    before = "".join(tokens).rfind(text)
    if before < 0 or text.lstrip(_SPACES)[:1] not in ("{", "["):
        return range(len(tokens))
    values = (match for match in _VALUE.finditer(text) if not match["named"])
    starts = (before + match.start() + letter for match in values for letter in range(1 + (match[0][0] == '"')))
    return {bisect_right(ends, start) for start in starts}


def offset_of(text: str, path: Sequence[str | int]) -> int | None:
    """Return the offset in characters at which the value at `path` begins in a JSON text; None if there is none."""
    try:
        offset = _skip_space(text, 0)
        for step in path:
            offset = _offset_of_part(text, offset, step)
    except (ValueError, LookupError, RecursionError):
        return None
    return offset


def _offset_of_part(text: str, offset: int, step: str | int) -> int:
    """Return the offset of a member or an element. Raises `LookupError` or `ValueError` if there is none."""
    closing = {"{": "}", "[": "]"}[text[offset]]
    for index in count():
        offset = _skip_space(text, offset + 1)
        name = index
        if text[offset] == closing:
            break
        if closing == "}":
            name, offset = _decode_value(text, offset)
            if text[offset] != ":":
                break
            offset = _skip_space(text, offset + 1)
        if name == step:
            return offset
        _, offset = _decode_value(text, offset)
        if text[offset] != ",":
            break
    raise LookupError(step)


def _decode_value(text: str, offset: int) -> tuple[Any, int]:
    """Return the value at an offset, and the offset of what follows it."""
    value, end = _JSON.raw_decode(text, offset)
    return value, _skip_space(text, end)


def _skip_space(text: str, offset: int) -> int:
    match = _SPACE.match(text, offset)
    return offset if match is None else match.end()


def _alternatives_at(reply: Reply, offset: int) -> list[tuple[str, float]] | None:
    """Return the token at an offset and its alternatives, from there on ("" if they differ before it)."""
    before = "".join(token.text for token in reply.tokens).rfind(reply.text)  # thoughts may contain a draft of it
    if before < 0:
        return None
    offset += before
    ends = accumulate(len(token.text) for token in reply.tokens)
    token, end = next((token, end) for token, end in zip(reply.tokens, ends, strict=True) if offset < end)
    lead = token.text[: offset - (end - len(token.text))].rstrip(_SPACES)
    others = [other for other in token.others if other[0] != token.text]  # some servers include the token itself
    return [
        (text[len(lead) :].lstrip(_SPACES) if text.startswith(lead) else "", logprob)
        for text, logprob in [(token.text, token.logprob), *others]
    ]


def _share_of_true(alternatives: list[tuple[str, float]]) -> float | None:
    """Return the share of `true` among the two words; None if no alternative begins either.

    A word that none begins may have at most the probability of the least likely alternative.
    """
    sides = [[logprob for text, logprob in alternatives if _is_word_start(text, word)] for word in ("true", "false")]
    if not any(sides):
        return None
    top = max(chain.from_iterable(sides))  # subtracted, so that the largest exponential neither overflows nor vanishes
    yes, no = (math.fsum(math.exp(logprob - top) for logprob in side) for side in sides)
    missing = 0.0 if all(sides) else math.exp(min(logprob for _, logprob in alternatives) - top)
    return None if missing > _MAX_UNSEEN * (yes + no + missing) else yes / (yes + no)


def _is_word_start(text: str, word: str) -> bool:
    """Return True if a text is a prefix of the word, or begins with it and the word ends there."""
    if len(text) < len(word):
        return text != "" and word.startswith(text)
    return text.startswith(word) and not text[len(word) :][:1].isalnum()
