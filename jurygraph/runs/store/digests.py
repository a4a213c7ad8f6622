"""A set of digests for runs of millions of calls: 16 to 32 bytes for each, where a set of texts takes two hundred."""

from array import array
from collections.abc import Iterable

_MASK = (1 << 64) - 1
"""Among a million digests two are taken for one with a chance of 1 in 37 million."""


class Digests:
    """Digests, told apart by 64 bits; they can be added and found, and nothing else."""

    def __init__(self, digests: Iterable[str] = ()) -> None:
        self._slots = array("Q", bytes(8 * 1024))
        self._size = 0
        for digest in digests:
            self.add(digest)

    def __contains__(self, digest: str) -> bool:
        return self._slots[self._place(_number(digest))] != 0

    def add(self, digest: str) -> None:
        """Have it among them from here on."""
        number = _number(digest)
        place = self._place(number)
        if self._slots[place]:
            return
        self._slots[place] = number
        self._size += 1
        if 2 * self._size > len(self._slots):
            self._grow()

    def _place(self, number: int) -> int:
        """Where a number stands, or would: in the first slot from its own on that is its or free."""
        slots, place = self._slots, number % len(self._slots)
        while slots[place] not in (0, number):
            place = (place + 1) % len(slots)
        return place

    def _grow(self) -> None:
        numbers = self._slots
        self._slots = array("Q", bytes(2 * 8 * len(numbers)))
        for number in numbers:
            if number:
                self._slots[self._place(number)] = number


def _number(digest: str) -> int:
    """Its 64 bits; 1 for 0, which stands for a free slot."""
    return hash(digest) & _MASK or 1
