"""Links and commitments, which tie each record to the previous one, and each text to its record.

    link of a record = SHA-256(link of the previous record ‖ prefix ‖ newline ‖ body)
    prefix           = canonical JSON of [seq, kind, key, at];  the first record follows 32 zero bytes
    commitment       = SHA-256(salt ‖ content), stored in the body of the record that a text belongs to

The last link, the head, depends on every record. A body contains the commitment of a text, never the text nor an
unsalted hash of it: salt and content can be erased, and then nothing reveals the text, while the chain is still valid.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple

from jurygraph.schema.frozen_model import ascii_json

FIRST_LINK = bytes(32)
MAX_TEXTS = 1 << 20
"""Maximum number of texts of a record; the ids of the texts of record n begin at n * MAX_TEXTS."""


class Draft(NamedTuple):
    """A record to be appended: its body without the commitments, and the texts that belong to it."""

    kind: str
    key: str
    body: Mapping[str, Any]
    texts: Sequence[bytes] = ()


class Record(NamedTuple):
    """A stored record; `at` is in milliseconds since 1970, UTC."""

    seq: int
    kind: str
    key: str
    at: int
    body: str
    link: bytes

    @property
    def content(self) -> dict[str, Any]:
        """Return the parsed JSON of the body."""
        content: dict[str, Any] = json.loads(self.body)
        return content


class Text(NamedTuple):
    """A stored text."""

    id: int
    salt: bytes
    content: bytes


def record_label(record: Record) -> str:
    """Return the name of a record for messages."""
    return f"record {record.seq} ({record.kind}{f' {record.key!r}' if record.key else ''})"


def link_of(previous: bytes, seq: int, kind: str, key: str, at: int, body: str) -> bytes:
    """Return the link of a record that follows the link `previous`."""
    # the same as `canonical_json([seq, kind, key, at])`, in a third of the time
    prefix = f"[{seq},{encode_basestring_ascii(kind)},{encode_basestring_ascii(key)},{at}]"
    return hashlib.sha256(b"".join((previous, prefix.encode(), b"\n", body.encode()))).digest()


def commitment(salt: bytes, content: bytes) -> str:
    """Return the commitment of a text, as stored in the body of its record."""
    return hashlib.sha256(salt + content).hexdigest()


def make_record(previous: bytes, seq: int, at: int, draft: Draft) -> tuple[Record, list[Text]]:
    """Return a draft as the record that follows the link `previous`, and its texts with fresh salts."""
    texts = [Text(number, os.urandom(16), content) for number, content in enumerate(draft.texts, seq * MAX_TEXTS)]
    commitments = [commitment(text.salt, text.content) for text in texts]
    body = ascii_json({**draft.body, "texts": commitments} if texts else draft.body).decode()
    return Record(seq, draft.kind, draft.key, at, body, link_of(previous, seq, draft.kind, draft.key, at, body)), texts
