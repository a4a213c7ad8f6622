"""Fragments of erased texts, by which quotations of them are found, and the calls of a recording that contain them."""

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from jurygraph.errors import InputError
from jurygraph.runs.store.atomic_files import write_atomically

MIN_SEARCHED_LENGTH = 20
"""Length in characters below which a text is not searched for: "42" occurs in other answers by chance."""

MIN_QUOTATION_LENGTH = 29
"""Length from which every quotation is found, wherever it begins: a fragment begins every tenth character."""

_STEP = MIN_QUOTATION_LENGTH - MIN_SEARCHED_LENGTH + 1
_MIN_DIFFERENT = 5
"""Number of different characters below which a fragment, such as a line of dashes, is too common to search for."""

_MAX_FRAGMENTS = 100_000
"""Limit on the number of fragments: above a million characters in total, only longer quotations are found for sure."""


class Fragments:
    """Fragments of 20 characters of some texts, in the forms in which files contain them: plain, and escaped as JSON.

    Every text of 20 characters or more is found, and so is every quotation of 29 characters or more.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._by_start: dict[bytes, set[bytes]] = {}
        long_enough = {text for text in texts if len(text) >= MIN_SEARCHED_LENGTH}
        step = max(_STEP, sum(map(len, long_enough)) // _MAX_FRAGMENTS)
        for text in long_enough:
            starts = range(0, len(text) - MIN_SEARCHED_LENGTH + 1, step)
            fragments = [text[start : start + MIN_SEARCHED_LENGTH] for start in starts]
            varied = [fragment for fragment in fragments if len(set(fragment)) >= _MIN_DIFFERENT]
            for fragment in varied or fragments[:1]:
                for form in encoded_forms(fragment, encoded_twice=True):
                    self._by_start.setdefault(form[:MIN_SEARCHED_LENGTH], set()).add(form)

    def __bool__(self) -> bool:
        return bool(self._by_start)

    def is_found_in(self, content: bytes) -> bool:
        """Return whether a content contains one of the fragments."""
        return next(self._matches(content), None) is not None

    def discard_fragments_in(self, contents: Iterable[bytes]) -> None:
        """Drop the fragments that these contents contain, because they are not specific to the texts."""
        found = {form for content in contents for form in self._matches(content)}
        self._by_start = {start: left for start, forms in self._by_start.items() if (left := forms - found)}

    def _matches(self, content: bytes) -> Iterator[bytes]:
        for place in range(len(content) - MIN_SEARCHED_LENGTH + 1) if self else ():
            for form in self._by_start.get(content[place : place + MIN_SEARCHED_LENGTH], ()):
                if content.startswith(form, place):
                    yield form


def encoded_forms(text: str, encoded_twice: bool = False) -> set[bytes]:
    """Return a text as bytes: plain, and as a JSON string with and without escapes for non-ASCII characters.

    `encoded_twice` adds these forms escaped once more, as in a JSON reply that is itself stored as a JSON string.
    """
    forms = {text}
    for _ in range(2 if encoded_twice else 1):
        forms |= {json.dumps(form, ensure_ascii=is_ascii)[1:-1] for form in forms for is_ascii in (False, True)}
    return {form.encode(errors="surrogatepass") for form in forms}


def erase_calls(path: Path, keys: Collection[str], fragments: Fragments) -> int:
    """Rewrite a recording without the calls that have one of the keys or contain a fragment; return their number.

    Raises `InputError` where the file cannot be read or written.
    """

    def is_erased(line: bytes) -> bool:
        return _key_of(line) in keys or fragments.is_found_in(line)

    try:
        target = path.resolve(strict=True)
        with target.open("rb") as file:
            erased = sum(map(is_erased, file))
            if erased:
                file.seek(0)
                write_atomically(target, (line for line in file if not is_erased(line)))
    except OSError as error:
        hint = "put it back there, see that you may write to it, and give the same command again"
        raise InputError(f"{path}: the recording cannot be rewritten ({error.strerror or error}); {hint}") from None
    return erased


def _key_of(line: bytes) -> str | None:
    """Return the key of the call in a line; None if the line was torn, or is of another kind."""
    try:
        key = json.loads(line)["key"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return key if isinstance(key, str) else None
