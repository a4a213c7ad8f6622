"""Find the JSON in the text of a reply: without a thought, a code fence and wrong escapes, and where words surround it.

Everything here cuts a text or doubles a backslash, and nothing validates. The judged response may have provoked every
character of a reply: what is cut off never decides which object counts, and `is_quoted_from` finds an object that the
judge may only have repeated. Log probabilities belong to the text as it was sent, so it is never rewritten.
"""

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

_REASONING = re.compile(r"\s*<(think|thinking)>.*?</\1>", re.DOTALL)
_THOUGHT_TAG = re.compile(r"<(?P<closes>/?)think(?:ing)?>")
_CODE_FENCE = re.compile(r"\s*```[A-Za-z0-9_+-]*\s(?P<inside>.*)```\s*", re.DOTALL)
_ESCAPE = re.compile(r'\\(?P<escaped>["\\/bfnrt]|u[0-9a-fA-F]{4})?')
_OPENING = re.compile(r'\{\s*"')


class JsonText(NamedTuple):
    """The part of a reply that may be its JSON; `has_words_around` if other words than a marked thought were cut
    off."""

    text: str
    has_words_around: bool


def find_json(text: str, *, among_words: bool = False) -> JsonText:
    """Return a reply without one thought at its beginning, and without one code fence around the rest.

    With `among_words`, words around the only object are cut off, too. A thought ends with the first closing tag if it
    begins with an opening tag. Chat templates that write the opening tag themselves leave a thought without it: that
    ends with the only tag of the reply, since a second one may be part of a response that the thought repeats.
    """
    has_words_around = False
    if thought := _REASONING.match(text):
        text = text[thought.end() :]
    elif (end := _end_of_unopened_thought(text)) is not None:
        text = text[end:]
        has_words_around = True
    if fence := _CODE_FENCE.fullmatch(text):
        text = fence["inside"]
    if among_words and (cut := _cut_to_object(text)) is not None:
        has_words_around |= cut != text.strip()
        text = cut
    return JsonText(text, has_words_around)


def _end_of_unopened_thought(text: str) -> int | None:
    """Return the offset at which the answer begins after a thought without an opening tag; None if there is none.

    In a text that begins with JSON, or a fence, the tag is part of a string.
    """
    tags = list(_THOUGHT_TAG.finditer(text))
    if len(tags) != 1 or not tags[0]["closes"] or text.lstrip().startswith(("{", "```")):
        return None
    return tags[0].end()


def _cut_to_object(text: str) -> str | None:
    """Return a text from its first brace to its last, None if it has none or if a thought remains around them.

    Two objects, or braces among the words, leave what is no JSON: which of several objects counts is never chosen, not
    even where one is within a string of a broken one.
    """
    start = text.find("{")
    end = text.rfind("}") + 1
    if not 0 <= start < end or _THOUGHT_TAG.search(text[:start]) or _THOUGHT_TAG.search(text[end:]):
        return None
    return text[start:end]


def double_wrong_backslashes(text: str) -> str:
    """Return a JSON text in which a backslash that begins no escape stands for itself, as in `\\sqrt` or `\\(`.

    Strings end where they did, because a quotation mark and a backslash after a backslash remain an escape.
    """
    return _ESCAPE.sub(lambda escape: escape[0] if escape["escaped"] else "\\\\", text)


def is_quoted_from(json_text: str, sources: Iterable[str]) -> bool:
    """Return whether a source has the object of a JSON text, in any white space and order of keys."""
    answer = json.loads(double_wrong_backslashes(json_text))
    decoder = json.JSONDecoder()
    for source in map(double_wrong_backslashes, sources):
        for opening in _OPENING.finditer(source):
            try:
                found, _ = decoder.raw_decode(source, opening.start())
            except (ValueError, RecursionError):
                continue
            if found == answer:
                return True
    return False
