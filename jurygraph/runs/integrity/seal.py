"""The seal of a run: an Ed25519 signature of how many records it had and of the link of the last one, in seal.json.

It vouches for every record up to there. What is erased afterwards, and the record that says so, breaks no seal, but
nobody signed it: where a signer is expected, such a run is refused until it is sealed anew.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError

from jurygraph.errors import TraceMismatch
from jurygraph.runs.integrity.offline_verifier import verifies
from jurygraph.runs.store.chain import named
from jurygraph.runs.store.folder import SEAL
from jurygraph.runs.store.keys import public_key_in
from jurygraph.runs.store.ledger import Ledger
from jurygraph.schema import Noun, canonical

MAY_FOLLOW = frozenset({"close", "erasure"})
"""Kinds of records that may come after a head that somebody noted or signed: none of them adds or changes a reward."""

_Key = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class Seal(Noun):
    """What seal.json holds, as canonical JSON and a newline.

    `signature` is over the line "jurygraph seal" and the canonical JSON of all other fields; `head` is the link of
    record number `records`; `public_key` and `signature` are the raw bytes in hexadecimal.
    """

    version: Literal[1] = 1
    run: str
    records: Annotated[int, Field(strict=True, ge=1)]
    head: _Key
    signed_at: str
    public_key: _Key
    signature: Annotated[str, StringConstraints(pattern="^[0-9a-f]{128}$")]

    @property
    def written(self) -> bytes:
        """The bytes of seal.json."""
        return canonical(self.model_dump(mode="json")) + b"\n"


def check_seal(folder: Path, ledger: Ledger, signer: Path | None = None) -> Seal | None:
    """The seal of a run, if it has one and that holds; the chain itself is for `Ledger.chained` to check.

    `signer` is a file with the Ed25519 key that must have sealed it: a public one, PEM or OpenSSH or 64 hexadecimal
    digits, or a private one; then nothing may follow what was sealed, erasures neither. Raises `InputError` where it
    holds none, and `TraceMismatch` saying what is wrong.
    """
    expected = None if signer is None else public_key_in(signer)
    path = folder / SEAL
    if not path.exists() and expected is None:
        return None
    if not path.exists():
        raise TraceMismatch(f"{path}: is missing, and the run should be sealed by the key in {signer}")
    if not path.is_file():
        raise TraceMismatch(f"{path}: is no file; it has been changed")
    found = _read(path, path.read_bytes())
    if expected not in (None, found.public_key):
        raise TraceMismatch(f"{path}: is by the key {found.public_key}, not by the one in {signer}, {expected}")
    _check_sealed(path, found, ledger)
    if expected is not None and found.records < ledger.count:
        after = f"{ledger.count - found.records} erasures came after what was sealed, and nobody signed them"
        raise TraceMismatch(f"{path}: {after}; whoever holds the key seals the run anew where they are right")
    return found


def _read(path: Path, content: bytes) -> Seal:
    """A seal whose form and signature are right."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        found = Seal.model_validate_json(content)
    except ValidationError:
        raise TraceMismatch(f"{path}: is no seal that jurygraph wrote; it has been changed") from None
    if found.written != content:
        raise TraceMismatch(f"{path}: is not in the form that jurygraph writes; it has been changed")
    stated = found.model_dump(mode="json", exclude={"signature"})
    try:
        public_key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(found.public_key))
        public_key.verify(bytes.fromhex(found.signature), signed(stated))
    except InvalidSignature:
        raise TraceMismatch(f"{path}: the signature does not hold; it or what it signs has been changed") from None
    if not verifies(bytes.fromhex(found.public_key), signed(stated), bytes.fromhex(found.signature)):
        raise TraceMismatch(f"{path}: is by a key of low order, whose signatures anybody can make; it has been changed")
    return found


def _check_sealed(path: Path, found: Seal, ledger: Ledger) -> None:
    """Whether a ledger is the one that was sealed."""
    run = ledger.at(1).key
    if found.run != run:
        raise TraceMismatch(f"{path}: is the seal of another run, {found.run}; this one is {run}")
    if found.records > ledger.count:
        raise TraceMismatch(f"{ledger.path}: {found.records} records were sealed, and {ledger.count} are there")
    if ledger.at(found.records).link.hex() != found.head:
        raise TraceMismatch(f"{ledger.path}: its first {found.records} records are not those that were sealed")
    for record in ledger.records(after=found.records):
        if record.kind not in MAY_FOLLOW:
            raise TraceMismatch(f"{ledger.path}, {named(record)}: comes after what was sealed")


def signed(stated: Mapping[str, Any]) -> bytes:
    """What a signature is over: every field of a seal but the signature."""
    return b"jurygraph seal\n" + canonical(stated)
