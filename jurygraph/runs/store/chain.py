"""Links and commitments: what makes a record follow from the one before it, and a text belong to its record.

    link of a record = SHA-256(link of the record before it ‖ header ‖ newline ‖ body)
    header           = canonical JSON of [seq, kind, key, at];  the first record follows 32 zero bytes
    commitment       = SHA-256(salt ‖ content), as it stands in the body of the record that a text belongs to

The last link, the head, stands for every record. A body holds a text's commitment, never the text nor a plain hash of
it: salt and content can be erased, and what is left says nothing of them while the chain still holds.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple

START = bytes(32)
MOST_TEXTS = 1 << 20
"""The texts of record n have the ids from n * MOST_TEXTS on."""

_SALT = 16
_JSON = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


class Draft(NamedTuple):
    """A record to be: its body without the commitments, and the texts that belong to it."""

    kind: str
    key: str
    body: Mapping[str, Any]
    texts: Sequence[bytes] = ()


class Record(NamedTuple):
    """A record as it is stored; `at` is in milliseconds since 1970, UTC."""

    seq: int
    kind: str
    key: str
    at: int
    body: str
    link: bytes

    @property
    def content(self) -> dict[str, Any]:
        """The body's JSON."""
        content: dict[str, Any] = json.loads(self.body)
        return content


class Text(NamedTuple):
    """A text as it is stored."""

    id: int
    salt: bytes
    content: bytes


def named(record: Record) -> str:
    """A record as one speaks of it."""
    return (
        f"record {record.seq} ({record.kind} {record.key!r})" if record.key else f"record {record.seq} ({record.kind})"
    )


def link_of(previous: bytes, seq: int, kind: str, key: str, at: int, body: str) -> bytes:
    """The link of a record to the one before it."""
    # As `canonical([seq, kind, key, at])` has it, in a third of the time.
    header = f"[{seq},{encode_basestring_ascii(kind)},{encode_basestring_ascii(key)},{at}]"
    return hashlib.sha256(b"".join((previous, header.encode(), b"\n", body.encode()))).digest()


def commitment(salt: bytes, content: bytes) -> str:
    """What a record says of a text."""
    return hashlib.sha256(salt + content).hexdigest()


def salted(contents: Sequence[bytes], first: int) -> list[Text]:
    salts = os.urandom(_SALT * len(contents))
    return [
        Text(first + place, salts[place * _SALT : (place + 1) * _SALT], content)
        for place, content in enumerate(contents)
    ]


def linked(previous: bytes, seq: int, at: int, draft: Draft) -> tuple[Record, list[Text]]:
    """A draft as the record that follows a link, and its texts with fresh salts."""
    texts = salted(draft.texts, seq * MOST_TEXTS) if draft.texts else []
    stated = {"texts": [commitment(text.salt, text.content) for text in texts]} if texts else {}
    body = _JSON.encode({**draft.body, **stated} if stated else draft.body)
    return Record(seq, draft.kind, draft.key, at, body, link_of(previous, seq, draft.kind, draft.key, at, body)), texts
