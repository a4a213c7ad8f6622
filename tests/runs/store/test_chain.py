"""Records as they follow one another, and the salts that keep their texts secret."""

import os
from itertools import count

import pytest

from jurygraph.runs.store.chain import (
    FIRST_LINK,
    MAX_TEXTS,
    Draft,
    Record,
    add_salts,
    commitment,
    make_record,
    record_label,
)

SALT = 16


def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the random bytes by 0, 1, 2 …, so that every byte shows where it was taken."""
    numbers = count()
    monkeypatch.setattr(os, "urandom", lambda size: bytes(next(numbers) for _ in range(size)))


class TestSalts:
    def test_every_text_has_sixteen_random_bytes_that_no_other_text_has(self, monkeypatch: pytest.MonkeyPatch) -> None:
        counted(monkeypatch)
        texts = add_salts([b"one", b"two", b"three"], first=7)
        assert [text.salt for text in texts] == [bytes(range(at, at + SALT)) for at in (0, SALT, 2 * SALT)]
        assert [(text.id, text.content) for text in texts] == [(7, b"one"), (8, b"two"), (9, b"three")]

    def test_they_are_drawn_anew_for_every_record(self) -> None:
        drawn = [text.salt for _ in range(50) for text in add_salts([b"same", b"same"], first=0)]
        assert len(set(drawn)) == 100
        assert all(len(salt) == SALT and any(salt) for salt in drawn)


class TestRecord:
    def test_commits_to_its_texts_after_its_body(self, monkeypatch: pytest.MonkeyPatch) -> None:
        counted(monkeypatch)
        record, texts = make_record(FIRST_LINK, 3, 12, Draft("trace", "r", {"value": 1}, (b"one", b"two")))
        assert [text.id for text in texts] == [3 * MAX_TEXTS, 3 * MAX_TEXTS + 1]
        assert record.content == {"value": 1, "texts": [commitment(text.salt, text.content) for text in texts]}
        assert (record.seq, record.kind, record.key, record.at) == (3, "trace", "r", 12)

    def test_says_nothing_of_texts_where_there_is_none(self) -> None:
        record, texts = make_record(FIRST_LINK, 1, 0, Draft("group", "", {"value": 1}))
        assert (record.body, texts) == ('{"value":1}', [])

    def test_is_named_by_its_number_its_kind_and_its_key(self) -> None:
        record = Record(2, "trace", "r1", 0, "{}", FIRST_LINK)
        assert record_label(record) == "record 2 (trace 'r1')"
        assert record_label(record._replace(key="")) == "record 2 (trace)"
