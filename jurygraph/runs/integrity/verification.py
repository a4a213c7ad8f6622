"""Verify that a run was not changed: its chain, texts, config and seal, and every reward recomputed from its verdicts.

A closed run that was verified can be sealed: an Ed25519 signature of its number of records and the link of the last
one, in seal.json. It covers every record up to that one. A later erasure and its record do not break the seal, but they
are not signed: where a signer is expected, such a run is refused until it is sealed again.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NoReturn

from pydantic import Field, StringConstraints, ValidationError

from jurygraph.errors import InputError, JurygraphError, TraceMismatch
from jurygraph.runs.integrity.recomputation import recompute_rewards, recompute_statistics
from jurygraph.runs.outline import StoredGroup, read_groups
from jurygraph.runs.run import ProgressCallback, Run
from jurygraph.runs.store import folder as run_folder
from jurygraph.runs.store.atomic_files import write_atomically
from jurygraph.runs.store.header import changes, format_value
from jurygraph.runs.store.ledger import FIRST_LINK, MAX_TEXTS, Ledger, Record, Text, commitment, record_label
from jurygraph.runs.store.packing import Body
from jurygraph.schema import FrozenModel, canonical_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_KINDS_AFTER_HEAD = frozenset({"close", "erasure"})
"""Kinds of records that may follow an expected or signed head: none of them adds or changes a reward."""

_KINDS = frozenset({"run", "survey", "decision", "task", "group", "trace", "call", *_KINDS_AFTER_HEAD})
_UNIQUE_KINDS = ("survey", "decision", "task", "group", "trace")
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
    for fault in run.ledger.find_faults():
        raise TraceMismatch(f"{run.ledger.path}: {fault}; it has been changed")
    chain = _ChainVerifier(run.ledger, report)
    chain.walk()
    path = run.folder / run_folder.CONFIG
    if not path.is_file():
        raise TraceMismatch(f"{path}: is missing")
    if sha256(path.read_bytes()).hexdigest() != run.header.config_file:
        raise TraceMismatch(f"{path}: is not the config that was written; it has been changed")
    if expected is not None:
        chain.expect(expected)
    sealed = check_seal(run.folder, run.ledger, signer)
    base = None if run.base is None else _verify_base(run, run.base, report, signer)
    _check_rewards(run)
    return VerificationResult(
        records=run.ledger.count,
        traces=chain.numbers["trace"],
        texts=chain.texts,
        erased=len(chain.erased),
        closed=run.is_closed,
        head=run.ledger.head.hex(),
        sealed=None if sealed is None else sealed.public_key,
        base=base,
        unsigned=0 if sealed is None else run.ledger.count - sealed.records,
    )


class _ChainVerifier:
    """One pass over all records and, in parallel, all texts."""

    def __init__(self, ledger: Ledger, report: ProgressCallback) -> None:
        self.texts = 0
        self.erased: set[int] = set()
        self.numbers: Counter[str] = Counter()
        self._ledger = ledger
        self._report = report
        self._stored = ledger.all_texts()
        self._next_text: Text | None = next(self._stored, None)
        self._missing: dict[int, Record] = {}
        self._group_seq = self._group_size = 0

    def walk(self) -> None:
        before = FIRST_LINK.hex()
        for record in self._ledger.verified_records(1, self._ledger.count):
            is_after_end = "close" in self.numbers and record.kind != "erasure"
            if record.kind not in _KINDS or (record.kind == "run") != (record.seq == 1) or is_after_end:
                self._fail(f"{record_label(record)}: has no business there")
            body = record.content
            self._check_place(record, body)
            self._check_texts(record, body.get("texts", ()))
            if record.kind == "close" and body != {"traces": self.numbers["trace"], "head": before}:
                self._fail(f"{record_label(record)}: does not state the traces and the head before it")
            if record.kind == "erasure":
                self.erased.update(body["ids"])
            self.numbers[record.kind] += 1
            before = record.link.hex()
            if record.seq % _REPORT_STEP == 0:
                self._report(_REPORT_STEP)
        self._check_completeness()

    def expect(self, head: str) -> None:
        """Raise `TraceMismatch` unless the run has this head, followed by nothing but a close record or erasures."""
        records = self._ledger.records()
        if head != FIRST_LINK.hex() and all(record.link.hex() != head for record in records):
            self._fail(f"the head is {self._ledger.head.hex()}, and no record has the link {head} that was expected")
        for record in records:  # those after the one with the expected link
            if record.kind not in _KINDS_AFTER_HEAD:
                self._fail(f"{record_label(record)}: comes after the head that was expected")

    def _check_place(self, record: Record, body: Body) -> None:
        """Check that the traces of a group follow its record immediately."""
        if record.kind == "group":
            self._group_seq = record.seq
            self._group_size = body["size"]
        expects_trace = record.seq - self._group_seq <= self._group_size and record.seq != self._group_seq
        if "group" in body and record.kind == "trace":
            if not expects_trace or body["group"] != record.seq - self._group_seq:
                self._fail(f"{record_label(record)}: does not belong to the group before it")
        elif expects_trace:
            self._fail(f"{record_label(record)}: expected a trace of the group before it")

    def _check_texts(self, record: Record, commitments: Any) -> None:
        for number, expected in enumerate(commitments, start=record.seq * MAX_TEXTS):
            text = self._next_text
            if text is not None and text.id < number:
                self._fail(f"text {text.id}: belongs to no record")
            if text is None or text.id > number:
                self._missing[number] = record
                continue
            if commitment(text.salt, text.content) != expected:
                self._fail(f"text {text.id} of {record_label(record)}: differs from what was written")
            self.texts += 1
            self._next_text = next(self._stored, None)

    def _check_completeness(self) -> None:
        if self._next_text is not None:
            self._fail(f"text {self._next_text.id}: belongs to no record")
        for number in sorted(self.erased - self._missing.keys()):
            self._fail(f"text {number}: was erased, and is there again")
        for number, record in self._missing.items():
            if number not in self.erased:
                self._fail(f"text {number} of {record_label(record)}: is missing without an erasure")
        if self._ledger.count < self._group_seq + self._group_size:
            self._fail(f"record {self._group_seq}: not all traces of this group are there")
        for kind in _UNIQUE_KINDS:
            repeated = self._ledger.find_repeated_key(kind)
            if repeated is not None:
                self._fail(f"{kind} {repeated!r}: is there twice")

    def _fail(self, problem: str) -> NoReturn:
        raise TraceMismatch(f"{self._ledger.path}: {problem}")


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


_HEX_KEY = "[0-9a-fA-F]{64}"
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
        """Return the signed bytes."""
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
    existing = check_seal(run.folder, run.ledger)
    if existing is not None and existing.public_key != unsigned.public_key:
        hint = f"keep {run_folder.SEAL} somewhere else and remove it, then seal the run again"
        raise InputError(f"{run.folder}: is sealed by another key, {existing.public_key}; {hint}")
    if existing is not None and existing.head == unsigned.head:
        return existing
    new_seal = unsigned.model_copy(update={"signature": key.sign(unsigned.signed_bytes).hex()})
    write_atomically(run.folder / run_folder.SEAL, new_seal.to_bytes)
    return new_seal


def check_seal(folder: Path, ledger: Ledger, signer: Path | str | None = None) -> Seal | None:
    """Check the seal of a run and return it, None without one; `Ledger.verified_records` checks the chain itself.

    `signer` is the Ed25519 key that must have sealed it: 64 hexadecimal digits, or a file with a public key (PEM or
    OpenSSH) or a private one. With it, nothing may follow the sealed records, not even erasures. Raises `InputError`
    where the file holds no key, and `TraceMismatch` with the problem of the seal.
    """
    expected = None if signer is None else load_public_key(signer)
    path = folder / run_folder.SEAL
    if not path.exists() and expected is None:
        return None
    if not path.exists():
        raise TraceMismatch(f"{path}: is missing, and the run should be sealed by the key in {signer}")
    found = _read_seal(path)
    if expected not in (None, found.public_key):
        raise TraceMismatch(f"{path}: is by the key {found.public_key}, not by the one in {signer}, {expected}")
    run = ledger.record_at(1).key
    if found.run != run:
        raise TraceMismatch(f"{path}: is the seal of another run, {found.run}; this one is {run}")
    if found.records > ledger.count:
        raise TraceMismatch(f"{ledger.path}: {found.records} records were sealed, and {ledger.count} are there")
    if ledger.record_at(found.records).link.hex() != found.head:
        raise TraceMismatch(f"{ledger.path}: its first {found.records} records are not those that were sealed")
    for record in ledger.records(after=found.records):
        if record.kind not in _KINDS_AFTER_HEAD:
            raise TraceMismatch(f"{ledger.path}, {record_label(record)}: comes after the sealed records")
    if expected is not None and found.records < ledger.count:
        after = f"{ledger.count - found.records} erasures after the sealed records are not signed"
        raise TraceMismatch(f"{path}: {after}; if they are legitimate, seal the run again")
    return found


def _read_seal(path: Path) -> Seal:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    content = path.read_bytes()
    try:
        found = Seal.model_validate_json(content)
    except ValidationError:
        raise TraceMismatch(f"{path}: is not a valid seal; it has been changed") from None
    if found.to_bytes != content:
        raise TraceMismatch(f"{path}: is not in the form that jurygraph writes; it has been changed")
    try:
        public_key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(found.public_key))
        public_key.verify(bytes.fromhex(found.signature), found.signed_bytes)
    except InvalidSignature:
        raise TraceMismatch(f"{path}: the signature is invalid; it or the signed records have been changed") from None
    return found


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

    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name the file of an Ed25519 key") from None
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
