"""A compact set of digests for runs of millions of calls: 16 to 32 bytes each, while a set of strings takes 200."""

from array import array
from collections.abc import Iterable


class Digests:
    """A set of digests; only adding and membership tests are possible.

    64 bits of each are compared; the probability of a collision among a million digests is 1 in 37 million.
    """

    def __init__(self, digests: Iterable[str] = ()) -> None:
        self._slots = array("Q", bytes(8 * 1024))
        self._size = 0
        for digest in digests:
            self.add(digest)

    def __contains__(self, digest: str) -> bool:
        return self._slots[self._find_slot(_number(digest))] != 0

    def add(self, digest: str) -> None:
        """Add a digest to the set."""
        number = _number(digest)
        place = self._find_slot(number)
        if self._slots[place]:
            return
        self._slots[place] = number
        self._size += 1
        if 2 * self._size > len(self._slots):
            numbers = self._slots
            self._slots = array("Q", bytes(2 * 8 * len(numbers)))
            for stored in filter(None, numbers):
                self._slots[self._find_slot(stored)] = stored

    def _find_slot(self, number: int) -> int:
        """Return the index of the slot that holds a number, or of the free slot for it."""
        slots, place = self._slots, number % len(self._slots)
        while slots[place] not in (0, number):
            place = (place + 1) % len(slots)
        return place


def _number(digest: str) -> int:
    """Return 64 bits of a digest; 1 instead of 0, which marks a free slot."""
    return hash(digest) & 0xFFFF_FFFF_FFFF_FFFF or 1
