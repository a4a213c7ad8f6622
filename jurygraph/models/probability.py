"""How sure a model was of a yes or a no, from the log probabilities of the tokens of its reply.

What might have stood in the place of a token tells that only where a value begins, and is kept only there.
"""

import json
import math
import re
from bisect import bisect_right
from codecs import getincrementaldecoder
from collections.abc import Collection, Sequence
from itertools import accumulate, count
from typing import NamedTuple

from jurygraph.models.asking import Reply, Token

_SPACE = re.compile(r"[ \t\n\r]*")
_SPACES = " \t\n\r"
_JSON = json.JSONDecoder()
_ROOM = 0.05
"""A probability may be off by as much, where one word is listed and the other is not."""

_VALUE = re.compile(r""""(?:[^"\\]|\\.)*"(?P<named>[ \t\n\r]*:)?|[{\[]|[^\s"{}\[\]:,]+""", re.DOTALL)


def p_true(reply: Reply, path: Sequence[str | int]) -> float | None:
    """The probability in [0, 1] that the boolean at `path` of a JSON reply is true, as in `("verdicts", 1, "met")`.

    It is P(true) / (P(true) + P(false)) over the token in which the boolean begins and those that might have stood
    there. One counts where it agrees with the reply up to the boolean, white space before it aside, and goes on with
    the whole word or a beginning of it.

    None where there is no such boolean, no token says either, or what is listed leaves room for more than 0.05 of the
    word that is not there; and where the tokens do not spell the text. They may spell more around it: a server leaves
    out fences and thoughts.
    """
    place = place_of(reply.text, path) if reply.tokens else None
    if place is None or not reply.text.startswith(("true", "false"), place):
        return None
    listed = _listed(reply, place)
    return None if listed is None else _share(listed.candidates, listed.least, "true", "false")


def p_yes(reply: Reply) -> float | None:
    """The probability in [0, 1] of yes, where the whole reply is yes or no or, cut off, a beginning of it.

    As `p_true`, in upper or lower case. None where the reply is anything else.
    """
    bare = reply.text.strip(_SPACES).removesuffix(".").lower()
    if not bare or not ("yes".startswith(bare) or "no".startswith(bare)):
        return None
    place = _after_space(reply.text, 0)
    listed = _listed(reply, place)
    if listed is None:
        return None
    return _share([(rest.lower(), logprob) for rest, logprob in listed.candidates], listed.least, "yes", "no")


def spelled(tokens: Sequence[tuple[str, Sequence[int] | None]]) -> list[str]:
    """The texts of tokens by their bytes: a letter that is cut apart belongs to the token in which it ends.

    As they are where one comes without bytes, or the bytes are no UTF-8.
    """
    decoder = getincrementaldecoder("utf-8")()
    stated = [list(codes) for _, codes in tokens if isinstance(codes, Sequence)]
    try:
        texts = [decoder.decode(bytes(codes)) for codes in stated]
    except (ValueError, TypeError):
        texts = []
    return texts if texts and len(texts) == len(tokens) else [text for text, _ in tokens]


def telling(text: str, tokens: Sequence[str]) -> Collection[int]:
    """The places of the tokens, given all of a reply, in which a value of a JSON text begins, or the letters of one.

    All of them where the text is no JSON object or list, or the tokens do not spell it.
    """
    ends = list(accumulate(map(len, tokens)))
    before = "".join(tokens).rfind(text)
    if before < 0 or text.lstrip(_SPACES)[:1] not in ("{", "["):
        return range(len(tokens))
    values = (found for found in _VALUE.finditer(text) if not found["named"])
    starts = (before + found.start() + letter for found in values for letter in range(1 + (found[0][0] == '"')))
    return {bisect_right(ends, start) for start in starts}


def place_of(text: str, path: Sequence[str | int]) -> int | None:
    """Where in a JSON text the value at `path` begins, in characters; None where there is none."""
    try:
        place = _after_space(text, 0)
        for step in path:
            place = _part(text, place, step)
    except (ValueError, LookupError, RecursionError):
        return None
    return place


def _part(text: str, place: int, step: str | int) -> int:
    """Where a field or an entry begins, of the object or list that begins at `place`."""
    opening = text[place]
    if opening not in "{[":
        raise LookupError(step)
    for index in count():
        place = _after_space(text, place + 1)
        name: str | int = index
        if opening == "{":
            name, place = _name(text, place)
        elif text[place] == "]":
            raise LookupError(step)
        if name == step:
            return place
        _, place = _JSON.raw_decode(text, place)
        place = _after_space(text, place)
        if text[place] != ",":
            break
    raise LookupError(step)


def _name(text: str, place: int) -> tuple[str, int]:
    """The name of a field, and where its value begins."""
    if text[place] != '"':
        raise LookupError(place)
    name, place = _JSON.raw_decode(text, place)
    place = _after_space(text, place)
    if text[place] != ":":
        raise LookupError(place)
    return name, _after_space(text, place + 1)


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()


class _Listed(NamedTuple):
    """What each token that might have stood somewhere says from there on, with its log probability; and the least."""

    candidates: list[tuple[str, float]]
    least: float


def _listed(reply: Reply, place: int) -> _Listed | None:
    before = "".join(token.text for token in reply.tokens).rfind(reply.text)  # thoughts may have tried it before
    if before < 0:
        return None
    place += before
    token, start = _covering(reply.tokens, place)
    lead = token.text[: place - start].rstrip(_SPACES)
    others = [(text, logprob) for text, logprob in token.others if text != token.text]  # some list the token itself too
    stood = [(token.text, token.logprob), *others]
    said = [(text[len(lead) :].lstrip(_SPACES), logprob) for text, logprob in stood if text.startswith(lead)]
    return _Listed(said, min(logprob for _, logprob in stood))


def _covering(tokens: Sequence[Token], place: int) -> tuple[Token, int]:
    """The token in which a place lies, and where it starts."""
    ends = accumulate(len(token.text) for token in tokens)
    return next((token, end - len(token.text)) for token, end in zip(tokens, ends, strict=True) if place < end)


def _share(candidates: Sequence[tuple[str, float]], least: float, positive: str, negative: str) -> float | None:
    """The share of the positive word among the two; None where no candidate says either.

    A word that none says may hold as much as the least likely of those that are listed, and no more.
    """
    for_it = [logprob for text, logprob in candidates if _says(text, positive)]
    against = [logprob for text, logprob in candidates if _says(text, negative)]
    if not for_it and not against:
        return None
    top = max(for_it + against)  # taken off, so that the likeliest neither overflows nor vanishes
    yes, no = (math.fsum(math.exp(logprob - top) for logprob in side) for side in (for_it, against))
    unseen = 0.0 if for_it and against else math.exp(least - top)
    return None if unseen > _ROOM * (yes + no + unseen) else yes / (yes + no)


def _says(text: str, word: str) -> bool:
    """Whether a text is a beginning of the word, or the word with nothing that makes it another one."""
    if len(text) < len(word):
        return text != "" and word.startswith(text)
    return text.startswith(word) and not text[len(word) :][:1].isalnum()
