"""Several ledgers read as one: those of ranks that recorded apart, or of the shards of one job.

Records are renumbered: those of a ledger follow those of the ledgers before it. Positions inside a record are relative
to it, so that nothing else changes, and whoever reads one run reads a set of them. Nothing is written or chained here:
each ledger keeps its own links, and is verified by itself.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from jurygraph.errors import TraceMismatch
from jurygraph.runs.store.ledger import MAX_TEXTS_PER_RECORD, Ledger, LedgerRecord, Text

_SHARED_RECORD_KINDS = ("run", "survey", "decision", "task")
"""Kinds of records that several ledgers may have under one key; each counts once."""


class JoinedLedger(Ledger):
    """The records and texts of some ledgers, in their order, for reading alone."""

    def __init__(self, path: Path, ledgers: Sequence[Ledger]) -> None:
        self.path = path
        self._ledgers = ledgers
        self._starts = [0]
        """The number of records before those of each ledger."""
        for ledger in ledgers:
            self._starts.append(self._starts[-1] + ledger.count)
        self.count = self._starts.pop()
        self.head = ledgers[-1].head

    @property
    def members(self) -> Sequence[Ledger]:
        return self._ledgers

    def refresh(self) -> None:
        """Leave the records as they were when the ledgers were opened: new ones would renumber those after them."""

    def __del__(self) -> None:
        """Leave the connections to the ledgers, which own them."""

    def close(self) -> None:
        for ledger in self._ledgers:
            ledger.close()

    def _parts(self, after: int, last: int | None) -> Iterator[tuple[int, Ledger, int, int]]:
        """Yield each ledger with its start, and the own numbers of the records after one and up to the last."""
        end = self._last_number(last)
        for start, ledger in zip(self._starts, self._ledgers, strict=True):
            first = max(after - start, 0)
            final = min(end - start, ledger.count)
            if first < final:
                yield start, ledger, first, final

    def _find_ledger_of_record(self, seq: int) -> tuple[int, Ledger]:
        for start, ledger, _, _ in self._parts(seq - 1, seq):
            return start, ledger
        raise TraceMismatch(f"{self.path}: record {seq} is missing")

    def records(
        self, kind: str | None = None, after: int = 0, up_to_record: int | None = None
    ) -> Iterator[LedgerRecord]:
        for start, ledger, first, final in self._parts(after, up_to_record):
            for record in ledger.records(kind, first, final):
                yield _renumber_record(record, start)

    def record_numbers(self, kind: str, up_to_record: int | None = None) -> Iterator[int]:
        for start, ledger, _, final in self._parts(0, up_to_record):
            for number in ledger.record_numbers(kind, final):
                yield number + start

    def ordered_group_numbers(
        self, up_to_record: int | None = None
    ) -> Iterator[tuple[int, int | None]]:
        for start, ledger, _, final in self._parts(0, up_to_record):
            for number, task in ledger.ordered_group_numbers(final):
                yield number + start, None if task is None else task + start

    def path_of_ledger_with(self, seq: int) -> Path:
        return self._find_ledger_of_record(seq)[1].path

    def verified_records(self, first: int, last: int) -> Iterator[LedgerRecord]:
        for start, ledger, before, final in self._parts(first - 1, last):
            for record in ledger.verified_records(before + 1, final):
                yield _renumber_record(record, start)

    def find(self, kind: str, key: str, up_to_record: int | None = None) -> LedgerRecord | None:
        """Return the last record of a kind with this key; a close record only if every ledger has one."""
        if kind == "close" and any(ledger.find(kind, key) is None for ledger in self._ledgers):
            return None
        found = None
        for start, ledger, _, final in self._parts(0, up_to_record):
            record = ledger.find(kind, key, final)
            found = found if record is None else _renumber_record(record, start)
        return found

    def find_all_records(self, kind: str, key: str) -> list[LedgerRecord]:
        found = []
        for start, ledger in zip(self._starts, self._ledgers, strict=True):
            found += [
                _renumber_record(record, start) for record in ledger.find_all_records(kind, key)
            ]
        return found

    def record_at(self, seq: int) -> LedgerRecord:
        start, ledger = self._find_ledger_of_record(seq)
        return _renumber_record(ledger.record_at(seq - start), start)

    def keys(self, kind: str) -> Iterator[str]:
        keys = chain.from_iterable(ledger.keys(kind) for ledger in self._ledgers)
        return iter(dict.fromkeys(keys)) if kind in _SHARED_RECORD_KINDS else keys

    def count_records(self, kind: str) -> int:
        if kind in _SHARED_RECORD_KINDS:
            return len(set(self.keys(kind)))
        return sum(ledger.count_records(kind) for ledger in self._ledgers)

    def _is_erased(self, seq: int, index: int) -> bool:
        start, ledger = self._find_ledger_of_record(seq)
        return ledger._is_erased(seq - start, index)

    def stored_texts(
        self, first: int, last: int, limit: int = MAX_TEXTS_PER_RECORD
    ) -> Iterator[Text]:
        for start, ledger, before, final in self._parts(first - 1, last):
            for text in ledger.stored_texts(before + 1, final, limit):
                yield text._replace(id=text.id + start * MAX_TEXTS_PER_RECORD)


def _renumber_record(record: LedgerRecord, start: int) -> LedgerRecord:
    return record._replace(seq=record.seq + start)
