"""The seal of a run: an Ed25519 signature of its number of records and the link of the last one, in seal.json.

It covers every record up to that one. A later erasure and its record do not break the seal, but they are not signed:
where a signer is expected, such a run is refused until it is sealed again.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.store.folder import SEAL
from jurygraph.runs.store.ledger import Ledger, record_label
from jurygraph.schema import FrozenModel, canonical_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


_HEX_KEY = "[0-9a-fA-F]{64}"
_HINT = "make one with `openssl genpkey -algorithm ed25519 -out key.pem` or `ssh-keygen -t ed25519 -N '' -f key`"


def load_private_key(path: Path) -> "Ed25519PrivateKey":
    """Return the private key in an unencrypted file. Raises `InputError` if there is none."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = _load_key(path)
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{path}: contains no private Ed25519 key; {_HINT}")
    return key


def load_public_key(key: Path | str) -> str:
    """Return the public key of a signer in hexadecimal: 64 such digits, or a file with a public or private key.

    Raises `InputError` if the file contains neither.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    if re.fullmatch(_HEX_KEY, str(key)):
        return str(key).lower()
    loaded = _load_key(Path(key))
    if isinstance(loaded, Ed25519PrivateKey):
        loaded = loaded.public_key()
    if not isinstance(loaded, Ed25519PublicKey):
        raise InputError(f"{key}: contains no Ed25519 key; name the public key of the seal")
    return loaded.public_bytes_raw().hex()


def _load_key(path: Path) -> object:
    """Return the key in a file, PEM or OpenSSH, whatever its kind; None without one."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name the file of an Ed25519 key") from None
    if re.fullmatch(_HEX_KEY.encode(), content.strip()):
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(content.decode()))
    try:
        if b"OPENSSH PRIVATE KEY" in content:
            return serialization.load_ssh_private_key(content, password=None)
        if b"PRIVATE KEY" in content:
            return serialization.load_pem_private_key(content, password=None)
        if content.startswith(b"ssh-"):
            return serialization.load_ssh_public_key(content)
        return serialization.load_pem_public_key(content)
    except TypeError:
        raise InputError(f"{path}: is encrypted, and passphrases are not supported; {_HINT}") from None
    except (ValueError, UnsupportedAlgorithm):
        return None


KINDS_AFTER_HEAD = frozenset({"close", "erasure"})
"""Kinds of records that may follow an expected or signed head: none of them adds or changes a reward."""

_Key = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class Seal(FrozenModel):
    """The content of seal.json, which is canonical JSON and a newline.

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
    def signed_bytes(self) -> bytes:
        """Return the signed bytes."""
        return signed_bytes(self.model_dump(mode="json", exclude={"signature"}))

    @property
    def to_bytes(self) -> bytes:
        """Return the bytes of seal.json."""
        return canonical_json(self.model_dump(mode="json")) + b"\n"


def check_seal(folder: Path, ledger: Ledger, signer: Path | str | None = None) -> Seal | None:
    """Check the seal of a run and return it, None without one; `Ledger.verified_records` checks the chain itself.

    `signer` is the Ed25519 key that must have sealed it: 64 hexadecimal digits, or a file with these, a public key (PEM
    or OpenSSH) or a private one. With it, nothing may follow the sealed records, not even erasures. Raises `InputError`
    where the file holds no key, and `TraceMismatch` with the problem of the seal.
    """
    expected = None if signer is None else load_public_key(signer)
    path = folder / SEAL
    if not path.exists() and expected is None:
        return None
    if not path.exists():
        raise TraceMismatch(f"{path}: is missing, and the run should be sealed by the key in {signer}")
    if not path.is_file():
        raise TraceMismatch(f"{path}: is not a file; it has been changed")
    seal = _parse_seal(path, path.read_bytes())
    if expected not in (None, seal.public_key):
        raise TraceMismatch(f"{path}: is by the key {seal.public_key}, not by the one in {signer}, {expected}")
    _check_sealed(path, seal, ledger)
    if expected is not None and seal.records < ledger.count:
        after = f"{ledger.count - seal.records} erasures after the sealed records are not signed"
        raise TraceMismatch(f"{path}: {after}; if they are legitimate, seal the run again")
    return seal


def _parse_seal(path: Path, content: bytes) -> Seal:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        seal = Seal.model_validate_json(content)
    except ValidationError:
        raise TraceMismatch(f"{path}: is not a valid seal; it has been changed") from None
    if seal.to_bytes != content:
        raise TraceMismatch(f"{path}: is not in the form that jurygraph writes; it has been changed")
    try:
        public_key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(seal.public_key))
        public_key.verify(bytes.fromhex(seal.signature), seal.signed_bytes)
    except InvalidSignature:
        raise TraceMismatch(f"{path}: the signature is invalid; it or the signed records have been changed") from None
    return seal


def _check_sealed(path: Path, seal: Seal, ledger: Ledger) -> None:
    run = ledger.record_at(1).key
    if seal.run != run:
        raise TraceMismatch(f"{path}: is the seal of another run, {seal.run}; this one is {run}")
    if seal.records > ledger.count:
        raise TraceMismatch(f"{ledger.path}: {seal.records} records were sealed, and {ledger.count} are there")
    if ledger.record_at(seal.records).link.hex() != seal.head:
        raise TraceMismatch(f"{ledger.path}: its first {seal.records} records are not those that were sealed")
    for record in ledger.records(after=seal.records):
        if record.kind not in KINDS_AFTER_HEAD:
            raise TraceMismatch(f"{ledger.path}, {record_label(record)}: comes after the sealed records")


def signed_bytes(content: Mapping[str, Any]) -> bytes:
    """Return the signed bytes: a first line, and the canonical JSON of every field of a seal but the signature."""
    return b"jurygraph seal\n" + canonical_json(content)
