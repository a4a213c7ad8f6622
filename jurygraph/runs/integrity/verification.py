"""Verify that a run was not changed: its chain, texts and config, and every reward recomputed from its verdicts.

A closed run that was verified can be sealed.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from jurygraph.errors import InputError, JurygraphError, TraceMismatch
from jurygraph.runs.canary import check_canaries
from jurygraph.runs.integrity.recomputation import recompute_rewards, recompute_statistics
from jurygraph.runs.integrity.seal import KINDS_AFTER_HEAD, Seal, check_seal, load_private_key, signed_bytes
from jurygraph.runs.outline import StoredGroup, read_groups
from jurygraph.runs.run import ProgressCallback, Run
from jurygraph.runs.store import folder as run_folder
from jurygraph.runs.store.atomic_files import write_atomically
from jurygraph.runs.store.header import changes, format_value
from jurygraph.runs.store.ledger import FIRST_LINK, MAX_TEXTS, Ledger, Record, Text, commitment, record_label
from jurygraph.runs.store.packing import Body

_KINDS = frozenset({"run", "survey", "decision", "task", "group", "trace", "call", "canary", *KINDS_AFTER_HEAD})
_UNIQUE_KINDS = ("survey", "decision", "task", "group", "trace", "canary")
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
    if run.base is None:
        check_canaries(run.ledger, run.plan_of)
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
            if record.kind not in KINDS_AFTER_HEAD:
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
    content = {
        "version": 1,
        "run": run.id,
        "records": verified.records,
        "head": verified.head,
        "signed_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "public_key": key.public_key().public_bytes_raw().hex(),
    }
    new_seal = Seal.model_validate({**content, "signature": key.sign(signed_bytes(content)).hex()})
    existing = check_seal(run.folder, run.ledger)
    if existing is not None and existing.public_key != new_seal.public_key:
        hint = f"keep {run_folder.SEAL} somewhere else and remove it, then seal the run again"
        raise InputError(f"{run.folder}: is sealed by another key, {existing.public_key}; {hint}")
    if existing is not None and existing.head == new_seal.head:
        return existing
    write_atomically(run.folder / run_folder.SEAL, new_seal.to_bytes)
    return new_seal
