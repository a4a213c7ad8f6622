"""Fragments of texts, for finding these texts and long quotations of them in other files."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

MIN_SEARCHED_LENGTH = 20
"""Length in characters below which a text is not searched for: "42" occurs in other answers by chance."""

MIN_QUOTATION_LENGTH = 29
"""Length from which every quotation is found, wherever it begins: a fragment begins every tenth character."""

_STEP = MIN_QUOTATION_LENGTH - MIN_SEARCHED_LENGTH + 1
_MIN_DIFFERENT = 5
"""Number of different characters below which a fragment, such as a line of dashes, is too common to search for."""

_MAX_FRAGMENTS = 100_000
"""Limit on the number of fragments: above a million characters in total, only longer quotations are found for sure."""

_BLOCK = 1 << 18
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_SPARE_BITS, _MIN_BITS = 8, 16
"""Bits of a slot number beyond those needed for the number of fragments: about one position in 256 is compared."""


class Fragments:
    """Fragments of 20 characters of some texts, in the forms in which files contain them: plain, and escaped as JSON.

    Every text of 20 characters or more is found, and so is every quotation of 29 characters or more.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._by_start: dict[bytes, set[bytes]] = {}
        long_enough = {text for text in texts if len(text) >= MIN_SEARCHED_LENGTH}
        step = max(_STEP, sum(map(len, long_enough)) // _MAX_FRAGMENTS)
        for text in long_enough:
            for fragment in _fragments_of(text, step):
                for form in encoded_forms(fragment, encoded_twice=True):
                    self._by_start.setdefault(form[:MIN_SEARCHED_LENGTH], set()).add(form)
        self._index()

    def _index(self) -> None:
        """Mark the slots of all fragments, so that most positions of a content can be skipped."""
        bits = max(_MIN_BITS, len(self._by_start).bit_length() + _SPARE_BITS)
        self._shift = np.uint64(64 - bits)
        self._marked = np.zeros(1 << bits, dtype=np.bool_)
        for start in self._by_start:
            self._marked[self._slots_of(start)] = True
        self.overlap = max((len(form) for forms in self._by_start.values() for form in forms), default=2) - 1

    def __bool__(self) -> bool:
        return bool(self._by_start)

    def is_found_in(self, content: bytes) -> bool:
        """Return whether a content contains one of the fragments."""
        return next(self._matches(content), None) is not None

    def discard_fragments_in(self, contents: Iterable[bytes]) -> None:
        """Drop the fragments that these contents contain, because they are not specific to the texts."""
        for content in contents:
            for form in set(self._matches(content)):
                start = form[:MIN_SEARCHED_LENGTH]
                self._by_start[start].discard(form)
                if not self._by_start[start]:
                    del self._by_start[start]
        self._index()

    def _matches(self, content: bytes) -> Iterator[bytes]:
        for begin in range(0, len(content), _BLOCK) if self else ():
            block = content[begin : begin + _BLOCK + self.overlap]
            for place in np.flatnonzero(self._marked[self._slots_of(block)]).tolist():
                forms = self._by_start.get(block[place : place + MIN_SEARCHED_LENGTH], ())
                yield from (form for form in forms if block.startswith(form, place))

    def _slots_of(self, content: bytes) -> NDArray[np.uint64]:
        """Return for every position the slot number of the bytes that begin there, shape [positions]."""
        positions = len(content) - MIN_SEARCHED_LENGTH + 1
        if positions <= 0:
            return np.empty(0, dtype=np.uint64)
        first, last = (
            np.ndarray((positions,), dtype="<u8", buffer=content, offset=offset, strides=(1,))
            for offset in (0, MIN_SEARCHED_LENGTH - 8)
        )
        mixed: NDArray[np.uint64] = first * _FACTORS[0] ^ last * _FACTORS[1]
        return mixed >> self._shift


def encoded_forms(text: str, encoded_twice: bool = False) -> set[bytes]:
    """Return a text as bytes: plain, and as a JSON string with and without escapes for non-ASCII characters.

    `encoded_twice` adds these forms escaped once more, as in a JSON reply that is itself stored as a JSON string.
    """
    once = _as_json(text)
    twice = {form for escaped in once for form in _as_json(escaped)} if encoded_twice else set()
    return {form.encode(errors="surrogatepass") for form in {text, *once, *twice}}


def iter_strings(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value; the keys of objects are not included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from iter_strings(inner)


def _as_json(text: str) -> set[str]:
    return {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (False, True)}


def _fragments_of(text: str, step: int) -> list[str]:
    starts = range(0, len(text) - MIN_SEARCHED_LENGTH + 1, step)
    fragments = [text[start : start + MIN_SEARCHED_LENGTH] for start in starts]
    varied = [fragment for fragment in fragments if len(set(fragment)) >= _MIN_DIFFERENT]
    return varied or fragments[:1]
