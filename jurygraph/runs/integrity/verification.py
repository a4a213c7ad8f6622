"""Verify that a run was not changed: its chain, texts, config and seal, and every reward recomputed from its verdicts.

A closed run that was verified can be sealed: an Ed25519 signature of its number of records and the link of the last
one, in seal.json. It covers every record up to that one. A later erasure and its record do not break the seal, but they
are not signed: where a signer is expected, such a run is refused until it is sealed again.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field, StringConstraints, ValidationError

from jurygraph.errors import InputError, JurygraphError, TraceMismatch
from jurygraph.runs.integrity.offline_verifier import Chain, VerificationError
from jurygraph.runs.integrity.recomputation import recompute_rewards, recompute_statistics
from jurygraph.runs.outline import StoredGroup, read_groups
from jurygraph.runs.run import ProgressCallback, Run
from jurygraph.runs.store import folder as run_folder
from jurygraph.runs.store.atomic_files import write_atomically
from jurygraph.runs.store.header import changes, format_value
from jurygraph.runs.store.ledger import Record, record_label
from jurygraph.schema import FrozenModel, canonical_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_REPORT_STEP = 100


class VerificationResult(NamedTuple):
    """The numbers of verified records, traces and texts, up to the head.

    `erased` is the number of texts whose erasure is recorded, `sealed` the public key of the seal, and `unsigned` the
    number of erasures after it. `base` is the folder of the run whose verdicts this one refers to, verified as well.
    """

    records: int
    traces: int
    texts: int
    erased: int
    closed: bool
    head: str
    sealed: str | None
    base: str | None
    unsigned: int


def verify(
    run: Run, report: ProgressCallback, expect_head: str | None = None, signer: Path | str | None = None
) -> VerificationResult:
    """Check a whole run; `report` receives the number of newly checked records.

    Raises `TraceMismatch` with the first thing that was changed. With `expect_head`, only a close record or erasures
    may follow the record with that link; with `signer`, the run must be sealed by that key, and nothing may
    follow the sealed records. Records that another process appends meanwhile are not checked.
    """
    head = None if expect_head is None else expect_head.strip().lower()
    if head is not None and not re.fullmatch("[0-9a-f]{64}", head):
        hint = "give the 64 hexadecimal digits that `jurygraph verify` prints"
        raise InputError(f"the head {expect_head!r} is none; {hint}")
    try:
        with run.ledger.snapshot():
            return _verify_snapshot(run, report, head, signer)
    except JurygraphError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        problem = f"contains an invalid record ({type(error).__name__}: {error})"
        raise TraceMismatch(f"{run.ledger.path}: {problem}; it has been changed") from error


def _verify_snapshot(
    run: Run, report: ProgressCallback, expected: str | None, signer: Path | str | None
) -> VerificationResult:
    ledger = run.ledger
    for fault in ledger.find_faults():
        raise TraceMismatch(f"{ledger.path}: {fault}; it has been changed")
    chain = Chain()
    try:
        chain.walk(_reported(ledger.records(), report), ledger.all_texts())
    except VerificationError as difference:
        raise TraceMismatch(f"{ledger.path}: {difference}") from None
    path = run.folder / run_folder.CONFIG
    if not path.is_file():
        raise TraceMismatch(f"{path}: is missing")
    if sha256(path.read_bytes()).hexdigest() != run.header.config_file:
        raise TraceMismatch(f"{path}: is not the config that was written; it has been changed")
    if expected is not None and expected not in chain.heads().values():
        problem = "no record has it, or more than a close record and erasures follow"
        raise TraceMismatch(f"{ledger.path}: the head is {ledger.head.hex()}, not {expected}: {problem}")
    sealed = read_seal(run.folder, signer)
    if sealed is not None:
        _check_sealed(run, chain, sealed, signer)
    base = None if run.base is None else _verify_base(run, run.base, report, signer)
    _check_rewards(run)
    return VerificationResult(
        records=ledger.count,
        traces=chain.traces,
        texts=chain.texts,
        erased=len(chain.erased),
        closed=chain.is_closed,
        head=ledger.head.hex(),
        sealed=None if sealed is None else sealed.public_key,
        base=base,
        unsigned=0 if sealed is None else ledger.count - sealed.records,
    )


def _reported(records: Iterator[Record], report: ProgressCallback) -> Iterator[Record]:
    for record in records:
        yield record
        if record.seq % _REPORT_STEP == 0:
            report(_REPORT_STEP)


def _verify_base(run: Run, base: Run, report: ProgressCallback, signer: Path | str | None) -> str:
    """Verify the base of a run and return its folder; a base with later erasures needs its own seal by the signer."""
    origin = run.header.base
    assert origin is not None
    verify(base, report, signer=signer if base.ledger.count > origin.records else None)
    if base.ledger.count < origin.records or base.ledger.record_at(origin.records).link.hex() != origin.head:
        raise TraceMismatch(f"{base.ledger.path}, record {origin.records}: is not the one that {run.folder} refers to")
    return str(base.folder)


def _check_rewards(run: Run) -> None:
    """Recompute every reward and require that it is the same to the last bit."""
    groups = _check_statistics(run, read_groups(run)) if run.base is None else read_groups(run)
    combiners = run.load_combiners()
    for trace, reward in recompute_rewards(run, groups, lambda group: run.decision(group.decision), combiners):
        if json.dumps(trace.reward) != json.dumps(reward):
            differences = changes(trace.reward, json.loads(json.dumps(reward)))
            key, old, new = next(differences, ("reward", trace.reward, reward))
            difference = f"{key} is {format_value(old)} in the run and {format_value(new)} when recomputed"
            label = f"{run.ledger.path}, {record_label(trace.own_record)}"
            raise TraceMismatch(f"{label}: the verdicts give another reward: {difference}")


def _check_statistics(run: Run, groups: Iterator[StoredGroup]) -> Iterator[StoredGroup]:
    for group in groups:
        statistics = recompute_statistics(group, run.survey_outline(group.survey))
        if json.dumps(group.body["statistics"]) != json.dumps(statistics):
            raise TraceMismatch(f"{run.ledger.path}, {record_label(group.record)}: its verdicts give other statistics")
        yield group


_HINT = "make one with `openssl genpkey -algorithm ed25519 -out key.pem` or `ssh-keygen -t ed25519 -N '' -f key`"
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
    signature: Annotated[str, StringConstraints(pattern="^[0-9a-f]{128}$")] = "0" * 128

    @property
    def signed_bytes(self) -> bytes:
        return b"jurygraph seal\n" + canonical_json(self.model_dump(mode="json", exclude={"signature"}))

    @property
    def to_bytes(self) -> bytes:
        """Return the bytes of seal.json."""
        return canonical_json(self.model_dump(mode="json")) + b"\n"


def seal(run: Run, key_file: Path, report: ProgressCallback) -> Seal:
    """Verify a closed run and sign it; a valid seal by the same key for the same head is kept.

    `key_file` holds an Ed25519 private key that is not encrypted, PEM (PKCS #8) or OpenSSH. Raises `InputError` where
    it holds another key, where the run is not closed, or where another key sealed it, and `TraceMismatch` where the run
    or an existing seal was changed, because a changed run must not be signed.
    """
    key = load_private_key(key_file)
    if not run.is_closed:
        hint = f"score the rest of its tasks, or end it with `jurygraph close {run_folder.shell_quote(run.folder)}`"
        raise InputError(f"{run.folder}: is not closed, so more could be scored into it; {hint}")
    verified = verify(run, report)
    unsigned = Seal(
        run=run.id,
        records=verified.records,
        head=verified.head,
        signed_at=datetime.now(UTC).isoformat(timespec="seconds"),
        public_key=key.public_key().public_bytes_raw().hex(),
    )
    existing = read_seal(run.folder)
    if existing is not None and existing.public_key != unsigned.public_key:
        hint = f"keep {run_folder.SEAL} somewhere else and remove it, then seal the run again"
        raise InputError(f"{run.folder}: is sealed by another key, {existing.public_key}; {hint}")
    if existing is not None and existing.head == unsigned.head:
        return existing
    new_seal = unsigned.model_copy(update={"signature": key.sign(unsigned.signed_bytes).hex()})
    write_atomically(run.folder / run_folder.SEAL, new_seal.to_bytes)
    return new_seal


def read_seal(folder: Path, signer: Path | str | None = None) -> Seal | None:
    """Return the seal of a run, None without one; its signature is valid, but it may be of other records.

    `signer` is the Ed25519 key that must have signed it: 64 hexadecimal digits, or a file with a public key (PEM or
    OpenSSH) or a private one. Raises `InputError` where the file holds no key, and `TraceMismatch` with the problem of
    the seal.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    expected = None if signer is None else load_public_key(signer)
    path = folder / run_folder.SEAL
    if not path.exists():
        if expected is not None:
            raise TraceMismatch(f"{path}: is missing, and the run should be sealed by the key in {signer}")
        return None
    content = path.read_bytes()
    try:
        found = Seal.model_validate_json(content)
        public_key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(found.public_key))
        public_key.verify(bytes.fromhex(found.signature), found.signed_bytes)
    except ValidationError:
        raise TraceMismatch(f"{path}: is not a valid seal; it has been changed") from None
    except InvalidSignature:
        raise TraceMismatch(f"{path}: the signature is invalid; it or the signed records have been changed") from None
    if found.to_bytes != content:
        raise TraceMismatch(f"{path}: is not in the form that jurygraph writes; it has been changed")
    if expected not in (None, found.public_key):
        raise TraceMismatch(f"{path}: is by the key {found.public_key}, not by the one in {signer}, {expected}")
    return found


def _check_sealed(run: Run, chain: Chain, sealed: Seal, signer: Path | str | None) -> None:
    """Check that a seal is of this run's records; with a signer, nothing may follow these, not even erasures."""
    path = run.folder / run_folder.SEAL
    if sealed.run != run.id:
        raise TraceMismatch(f"{path}: is the seal of another run, {sealed.run}; this one is {run.id}")
    if chain.heads().get(sealed.records) != sealed.head:
        raise TraceMismatch(f"{path}: is of other records: some were changed, added or lost")
    later = run.ledger.count - sealed.records
    if signer is not None and later:
        problem = f"{later} erasures after the sealed records are not signed"
        raise TraceMismatch(f"{path}: {problem}; if they are legitimate, seal the run again")


def load_private_key(path: Path) -> "Ed25519PrivateKey":
    """Return the private key in an unencrypted file. Raises `InputError` if there is none."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = _load_key(path)
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{path}: contains no private Ed25519 key, or an encrypted one; {_HINT}")
    return key


def load_public_key(key: Path | str) -> str:
    """Return the public key of a signer in hexadecimal: 64 such digits, or a file with a public or private key.

    Raises `InputError` if the file contains neither.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    if re.fullmatch("[0-9a-fA-F]{64}", str(key)):
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

    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name the file of an Ed25519 key") from None
    loads = (
        partial(serialization.load_pem_private_key, password=None),
        partial(serialization.load_ssh_private_key, password=None),
        serialization.load_pem_public_key,
        serialization.load_ssh_public_key,
    )
    for load in loads:
        with suppress(TypeError, ValueError, UnsupportedAlgorithm):  # such as one that is encrypted
            return load(content)
    return None
