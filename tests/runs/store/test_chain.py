"""Links of records, and the salts of their texts."""

import os
from itertools import count

import pytest

from jurygraph.runs.store.ledger import (
    FIRST_CHAIN_LINK,
    MAX_TEXTS_PER_RECORD,
    LedgerRecord,
    RecordDraft,
    commitment,
    generate_salts,
    make_record,
    record_label,
)

SALT = 16


def count_random_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace random bytes by 0, 1, 2 …, so that every byte shows its position."""
    numbers = count()
    monkeypatch.setattr(os, "urandom", lambda size: bytes(next(numbers) for _ in range(size)))


class TestSalts:
    def test_every_text_has_sixteen_random_bytes_of_its_own(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        count_random_bytes(monkeypatch)
        draft = RecordDraft("trace", "r", {}, (b"one", b"two", b"three"))
        _, texts = make_record(FIRST_CHAIN_LINK, 7, 0, draft, generate_salts(3))
        assert [text.salt for text in texts] == [
            bytes(range(at, at + SALT)) for at in (0, SALT, 2 * SALT)
        ]
        first = 7 * MAX_TEXTS_PER_RECORD
        assert [(text.id, text.content) for text in texts] == [
            (first, b"one"),
            (first + 1, b"two"),
            (first + 2, b"three"),
        ]

    def test_salts_differ_between_records(self) -> None:
        draft = RecordDraft("trace", "r", {}, (b"same", b"same"))
        drawn = generate_salts(100)
        records = [make_record(FIRST_CHAIN_LINK, 1, 0, draft, drawn) for _ in range(50)]
        salts = [text.salt for _, texts in records for text in texts]
        assert len(set(salts)) == 100
        assert all(len(salt) == SALT and any(salt) for salt in salts)


class TestRecord:
    def test_a_record_commits_to_its_texts_after_its_body(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        count_random_bytes(monkeypatch)
        draft = RecordDraft("trace", "r", {"value": 1}, (b"one", b"two"))
        record, texts = make_record(FIRST_CHAIN_LINK, 3, 12, draft, generate_salts(2))
        assert [text.id for text in texts] == [
            3 * MAX_TEXTS_PER_RECORD,
            3 * MAX_TEXTS_PER_RECORD + 1,
        ]
        assert record.content == {
            "value": 1,
            "texts": [commitment(text.salt, text.content) for text in texts],
        }
        assert (record.seq, record.kind, record.key, record.at) == (3, "trace", "r", 12)

    def test_a_record_without_texts_has_no_commitments(self) -> None:
        draft = RecordDraft("group", "", {"value": 1})
        record, texts = make_record(FIRST_CHAIN_LINK, 1, 0, draft, generate_salts(0))
        assert (record.body, texts) == ('{"value":1}', [])

    def test_a_label_has_number_kind_and_key(self) -> None:
        record = LedgerRecord(2, "trace", "r1", 0, "{}", FIRST_CHAIN_LINK)
        assert record_label(record) == "record 2 (trace 'r1')"
        assert record_label(record._replace(key="")) == "record 2 (trace)"
