"""Verify that a run was not changed: its chain, texts, config and seal, and every reward recomputed from its verdicts.

A closed run that was verified can be sealed: an Ed25519 signature of its number of records and the link of the last
one, in seal.json. It covers every record up to that one. A later erasure and its record do not break the seal, but they
are not signed: where a signer is expected, such a run is refused until it is sealed again.

A bundle is one zip file that can be checked without jurygraph: records (with the string whose hash is chained), texts
with their salts, traces, config, seal, those of the base of a re-scored run, and `offline_verifier` as verify.py. Lines
are canonical JSON, so that the same run gives the same bytes, given the same zlib.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Annotated, Literal, NamedTuple, Self, cast
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from pydantic import Field, StringConstraints, ValidationError

from jurygraph.decision.combiners import Combiners
from jurygraph.decision.decide import decide_groups
from jurygraph.decision.table import (
    ABSENT_CODE,
    VerdictTable,
    build_verdict_table,
    dropped_questions,
)
from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.errors import InputError, JurygraphError, TraceMismatch
from jurygraph.messages import list_first, shell_quote
from jurygraph.runs.integrity import offline_verifier
from jurygraph.runs.integrity.offline_verifier import MAX_LISTED, RecordChain
from jurygraph.runs.integrity.record_check import (
    check_record_chain,
    require_config_file_as_written,
    require_records_as_written,
)
from jurygraph.runs.run import Run
from jurygraph.runs.store.atomic_files import write_atomically
from jurygraph.runs.store.folder import CONFIG_FILE, SEAL_FILE
from jurygraph.runs.store.header import changes, format_value
from jurygraph.runs.store.ledger import Ledger, LedgerRecord, Text, record_label
from jurygraph.runs.store.packing import RecordBody, pack_reward
from jurygraph.runs.stored_groups import (
    StoredGroup,
    TraceWithoutTexts,
    build_group_verdicts,
    read_stored_groups,
)
from jurygraph.schema import Decision, FrozenModel, SurveyWithoutTexts, Trace, canonical_json
from jurygraph.schema.frozen_model import JsonFields
from jurygraph.schema.trace import question_score_statistics

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


_GROUPS_PER_BATCH = 64
_KeyName = Path | str
"""A key of a signer: 64 hexadecimal digits, or the file that holds it."""


def build_group_table(run: Run, task_id: str, traces: Sequence[Trace]) -> VerdictTable:
    """Return the table of a task's whole group: one row per response, sorted by id.

    Questions that the run's decision dropped for the group are marked as absent.
    """
    names = sorted(trace.response_id for trace in traces)
    verdicts = list(chain.from_iterable(trace.verdicts for trace in traces))
    table = build_verdict_table(run.survey_without_texts_of(task_id).questions, names, verdicts)
    return table.with_verdict_code(dropped_questions(run.decision_of(task_id), table), ABSENT_CODE)


def recompute_statistics(group: StoredGroup, survey: SurveyWithoutTexts) -> JsonFields:
    names = [question.id for question in survey.questions]
    verdicts = chain.from_iterable(trace.body["verdicts"] for trace in group.traces)
    counted_verdicts = [verdict for verdict in verdicts if not verdict.get("superseded")]
    scored = ((names[verdict["question"]], verdict.get("score")) for verdict in counted_verdicts)
    return question_score_statistics(survey.questions, scored)


def recompute_rewards(
    run: Run,
    groups: Iterable[StoredGroup],
    decision_of: Callable[[StoredGroup], Decision],
    combiners: Combiners,
) -> Iterator[tuple[TraceWithoutTexts, RecordBody]]:
    """Yield every trace with its reward, packed, as recomputed from its verdicts under the decision of its group."""
    remaining_groups = iter(groups)
    while batch := list(islice(remaining_groups, _GROUPS_PER_BATCH)):
        stored_verdicts = [build_group_verdicts(run, group, decision_of(group)) for group in batch]
        for group, rows in zip(batch, decide_groups(stored_verdicts, combiners), strict=True):
            if isinstance(rows, Exception):
                raise rows
            yield from zip(group.traces, map(pack_reward, rows), strict=True)


class VerificationResult(NamedTuple):
    """The numbers of verified records, traces and texts, up to the head.

    Of the traces, `replaced` are those of groups that were judged again: their chain was verified, and only the rewards
    of the others were recomputed.
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
    replaced: int


def verify(
    run: Run,
    report: ProgressCallback,
    expect_head: str | None = None,
    signer: _KeyName | None = None,
) -> VerificationResult:
    """Check a whole run; `report` receives the number of newly checked records.

    Raises `TraceMismatch` with all that differs, the first of each kind, and the number of the others. With
    `expect_head`, only a close record or erasures may follow the record with that link; with `signer`, the run must be
    sealed by that key, and nothing may follow the sealed records. Records that another process appends meanwhile are
    not checked.
    """
    run.require_single_run()
    head = None if expect_head is None else expect_head.strip().lower()
    if head is not None and not re.fullmatch("[0-9a-f]{64}", head):
        raise InputError(
            f"the head {expect_head!r} is none; "
            "give the 64 hexadecimal digits that `jurygraph verify` prints"
        )
    try:
        with run.ledger.snapshot_transaction():
            return _verify_snapshot(run, report, head, signer)
    except JurygraphError:
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise TraceMismatch(
            f"{run.ledger.path}: contains an invalid record ({type(error).__name__}: {error}); "
            "it has been changed"
        ) from error


def _verify_snapshot(
    run: Run, report: ProgressCallback, expected: str | None, signer: _KeyName | None
) -> VerificationResult:
    ledger = run.ledger
    for fault in ledger.find_file_faults():
        raise TraceMismatch(f"{ledger.path}: {fault}; it has been changed")
    mismatches: list[JurygraphError] = []
    with _collecting(mismatches):
        record_chain = check_record_chain(ledger, ledger.all_texts(), report)
        base = None if run.base is None else _verify_base(run, run.base, report, signer)
    is_readable = not mismatches  # else nothing can be told of what rests on all records
    with _collecting(mismatches):
        require_config_file_as_written(run)
    with _collecting(mismatches):
        run_seal = read_seal(run.folder, signer)
        if run_seal is not None and is_readable:
            _check_seal(run, record_chain, run_seal, signer)
    if is_readable:
        with _collecting(mismatches):
            if expected not in (None, *record_chain.head_digests_by_record().values()):
                raise TraceMismatch(
                    f"{ledger.path}: the head is {ledger.head.hex()}, not {expected}: no record has it, "
                    "as in another run, or more than a close record and erasures follow"
                )
        with _collecting(mismatches):
            _check_rewards(run, mismatches)
    if mismatches:
        first, *others = mismatches
        for line in list_first(list(map(str, others)), MAX_LISTED):
            first.add_note(line)
        raise first
    return VerificationResult(
        records=ledger.count,
        traces=record_chain.traces,
        texts=record_chain.texts,
        erased=len(record_chain.erased),
        closed=record_chain.is_closed,
        head=ledger.head.hex(),
        sealed=None if run_seal is None else run_seal.public_key,
        base=base,
        unsigned=0 if run_seal is None else ledger.count - run_seal.records,
        replaced=run.replaced_trace_count,
    )


@contextmanager
def _collecting(mismatches: list[JurygraphError]) -> Iterator[None]:
    """Add a mismatch that is raised inside, so that other checks can follow; after one, also why a check cannot run."""
    try:
        yield
    except JurygraphError as error:
        if not mismatches and not isinstance(error, TraceMismatch):
            raise
        mismatches.append(error)


def _verify_base(run: Run, base: Run, report: ProgressCallback, signer: _KeyName | None) -> str:
    """Verify the base of a run and return its folder; a base with later erasures needs its own seal by the signer."""
    origin = run.header.base
    assert origin is not None
    verify(base, report, signer=signer if base.ledger.count > origin.records else None)
    if (
        base.ledger.count < origin.records
        or base.ledger.record_at(origin.records).link.hex() != origin.head
    ):
        raise TraceMismatch(
            f"{base.ledger.path}, record {origin.records}: "
            f"is not the one that {run.folder} refers to"
        )
    return str(base.folder)


def _check_rewards(run: Run, mismatches: list[JurygraphError]) -> None:
    """Add a mismatch for each reward, and for the statistics of each group, that do not follow from the verdicts."""

    def add(record: LedgerRecord, problem: str) -> None:
        mismatches.append(TraceMismatch(f"{run.ledger.path}, {record_label(record)}: {problem}"))

    def check_statistics(groups: Iterator[StoredGroup]) -> Iterator[StoredGroup]:
        for group in groups:
            statistics = recompute_statistics(group, run.survey_without_texts(group.survey))
            if json.dumps(group.body["statistics"]) != json.dumps(statistics):
                add(group.record, "its verdicts give other statistics")
            yield group

    groups = read_stored_groups(run)
    if run.base is None:
        groups = check_statistics(groups)
    rewards = recompute_rewards(
        run, groups, lambda group: run.decision(group.decision), run.load_combiners()
    )
    for trace, reward in rewards:
        recomputed_json = json.dumps(reward)
        if json.dumps(trace.reward) != recomputed_json:
            key, old, new = next(
                changes(trace.reward, json.loads(recomputed_json)),
                ("reward", trace.reward, reward),
            )
            add(
                trace.current_run_record,
                "the verdicts give another reward: "
                f"{key} is {format_value(old)} in the run and {format_value(new)} when recomputed",
            )


_SIGNING_KEY_HINT = (
    "make one with `openssl genpkey -algorithm ed25519 -out key.pem` or `ssh-keygen "
    "-t ed25519 -N '' -f key`"
)
Digest = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class Signature(FrozenModel):
    """A signature with its time; a file of it is canonical JSON and a newline.

    `signature` is over the line "jurygraph seal" and the canonical JSON of all other fields; `public_key` and
    `signature` are the raw bytes in hexadecimal.
    """

    version: Literal[1] = 1
    signed_at: str = ""
    public_key: Digest = "0" * 64
    signature: Annotated[str, StringConstraints(pattern="^[0-9a-f]{128}$")] = "0" * 128

    def sign(self, key: "Ed25519PrivateKey") -> Self:
        """Return it signed by a key, now."""
        unsigned = self.model_copy(
            update={
                "signed_at": datetime.now(UTC).isoformat(timespec="seconds"),
                "public_key": key.public_key().public_bytes_raw().hex(),
            }
        )
        return unsigned.model_copy(update={"signature": key.sign(unsigned.signed_bytes).hex()})

    @property
    def signed_bytes(self) -> bytes:
        return b"jurygraph seal\n" + canonical_json(
            self.model_dump(mode="json", exclude={"signature"})
        )

    @property
    def to_bytes(self) -> bytes:
        return canonical_json(self.model_dump(mode="json")) + b"\n"

    @classmethod
    def parse(cls, content: bytes, path: Path, signer: _KeyName | None) -> Self:
        """Return what is signed in a file, with a valid signature, by the `signer` if one is expected.

        Raises as `read_seal` does.
        """
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        expected = None if signer is None else load_public_key(signer)
        try:
            seal = cls.model_validate_json(content)
            public_key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(seal.public_key))
            public_key.verify(bytes.fromhex(seal.signature), seal.signed_bytes)
        except ValidationError:
            raise TraceMismatch(f"{path}: is not a valid seal; it has been changed") from None
        except InvalidSignature:
            raise TraceMismatch(
                f"{path}: the signature is invalid; it or the signed records have been changed"
            ) from None
        if seal.to_bytes != content:
            raise TraceMismatch(
                f"{path}: is not in the form that jurygraph writes; it has been changed"
            )
        if expected not in (None, seal.public_key):
            raise TraceMismatch(
                f"{path}: is by the key {seal.public_key}, not by the one in {signer}, {expected}"
            )
        return seal


class Seal(Signature):
    """The content of seal.json: `head` is the link of record number `records`."""

    run: str
    records: Annotated[int, Field(strict=True, ge=1)]
    head: Digest


def seal(run: Run, key_file: Path, report: ProgressCallback) -> Seal:
    """Verify a closed run and sign it; a valid seal by the same key for the same head is kept.

    `key_file` holds an Ed25519 private key that is not encrypted, PEM (PKCS #8) or OpenSSH. Raises `InputError` where
    it holds another key, where the run is not closed, or where another key sealed it, and `TraceMismatch` where the run
    or an existing seal was changed, because a changed run must not be signed.
    """
    run.require_single_run()
    key = load_private_key(key_file)
    if not run.is_closed:
        raise InputError(
            f"{run.folder}: is not closed, so more could be scored into it; "
            "score the rest of its tasks, or end it with `jurygraph close "
            f"{shell_quote(run.folder)}`"
        )
    verification = verify(run, report)
    signed_seal = Seal(run=run.id, records=verification.records, head=verification.head).sign(key)
    earlier_seal = read_seal(run.folder)
    if earlier_seal is not None:
        if earlier_seal.public_key != signed_seal.public_key:
            raise InputError(
                f"{run.folder}: is sealed by another key, {earlier_seal.public_key}; "
                f"keep {SEAL_FILE} somewhere else and remove it, then seal the run again"
            )
        if earlier_seal.head == signed_seal.head:
            return earlier_seal
    write_atomically(run.folder / SEAL_FILE, signed_seal.to_bytes)
    return signed_seal


def read_seal(folder: Path, signer: _KeyName | None = None) -> Seal | None:
    """Return the seal of a run, None without one; its signature is valid, but it may be of other records.

    `signer` is the Ed25519 key that must have signed it: 64 hexadecimal digits, or a file with a public key (PEM or
    OpenSSH). Raises `InputError` where the file holds none, and `TraceMismatch` with the problem of the seal.
    """
    path = folder / SEAL_FILE
    if path.exists():
        return Seal.parse(path.read_bytes(), path, signer)
    if signer is not None:
        load_public_key(signer)
        raise TraceMismatch(
            f"{path}: is missing, and the run should be sealed by the key in {signer}; "
            "it was never sealed (`jurygraph seal` does that), or lost its seal"
        )
    return None


def _check_seal(
    run: Run, record_chain: RecordChain, run_seal: Seal, signer: _KeyName | None
) -> None:
    """Check that a seal is of this run's records; with a signer, nothing may follow these, not even erasures."""
    path = run.folder / SEAL_FILE
    if run_seal.run != run.id:
        raise TraceMismatch(
            f"{path}: is the seal of another run, {run_seal.run}; this one is {run.id}"
        )
    if record_chain.head_digests_by_record().get(run_seal.records) != run_seal.head:
        raise TraceMismatch(
            f"{path}: is of {run_seal.records} other records, and {run.ledger.count} are there: "
            "some were changed, added or lost"
        )
    erasure_count = run.ledger.count - run_seal.records
    if signer is not None and erasure_count:
        raise TraceMismatch(
            f"{path}: {erasure_count} erasures after the sealed records are not signed; "
            "if they are legitimate, seal the run again"
        )


def load_private_key(path: Path) -> "Ed25519PrivateKey":
    """Return the private key in an unencrypted file. Raises `InputError` if there is none."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = _load_signature_key(path)
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(
            f"{path}: contains no private Ed25519 key, or an encrypted one; {_SIGNING_KEY_HINT}"
        )
    return key


def load_public_key(key: _KeyName) -> str:
    """Return the public key of a signer in hexadecimal: 64 such digits, or a file with it.

    Raises `InputError` if the file contains none, or a private key, which only who signs should have.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

    if re.fullmatch("[0-9a-fA-F]{64}", str(key)):
        return str(key).lower()
    loaded_key = _load_signature_key(Path(key))
    if isinstance(loaded_key, Ed25519PrivateKey):
        raise InputError(
            f"{key}: contains a private key, which only who signs should have; name the public one: "
            f"`openssl pkey -in {shell_quote(key)} -pubout -out public.pem` writes it, and "
            f"`ssh-keygen` wrote {key}.pub"
        )
    if not isinstance(loaded_key, Ed25519PublicKey):
        raise InputError(f"{key}: contains no Ed25519 key; name the public key of the seal")
    return loaded_key.public_bytes_raw().hex()


def _load_signature_key(path: Path) -> object:
    """Return the key in a file, PEM or OpenSSH, whatever its kind; None without one."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); name the file of an Ed25519 key"
        ) from None
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


BundleMember = tuple[str, Iterable[bytes]]

BUNDLE_README_TEXT = b"""\
How to check this bundle: python3 -I verify.py in the unpacked folder, or python3 -I verify.py bundle.zip (Python 3.8).
Whoever has reason to doubt verify.py as well takes jurygraph's own runs/integrity/offline_verifier.py: it is that file.
Proved: records and texts are those of the head that it prints, rewards follow from their terms, and traces.jsonl shows
these rewards, and the agents, labels, scores, reasons and quotations of the records. All can be forged, except a head
that you know (--expect-head), or a seal: verify.py prints the command that checks its signature.
Not here: prompts and replies of what a branch reused; they are in the run that it was branched from: export that too.
Not proved: that verdicts lead to the terms (jurygraph verify); the rest of traces.jsonl, such as
notes, counts, calls and offsets of quotations; that texts are true.
"""


def export_bundle(run: Run, output: Path, traces: Iterable[bytes]) -> None:
    """Write a run, in its state when it was opened; `traces` are the lines of its traces.

    An erasure in the run meanwhile gives a bundle that does not verify: write it again. Raises `TraceMismatch` where a
    record or text was changed, and writes nothing.
    """
    run.require_single_run()
    require_records_as_written(run, ignore_progress)
    with output.open("wb") as file:
        # without its method `tell`, the zip file is streamed: the sizes of a member follow it
        stream = cast("IO[bytes]", SimpleNamespace(write=file.write, flush=file.flush))
        with ZipFile(stream, "w") as archive:
            for name, content in _bundle_members(run, traces):
                # without information about the time and machine of its creation
                entry = ZipInfo(name)
                entry.compress_type = ZIP_DEFLATED
                entry.create_system = 3  # Unix on every platform, for identical bytes
                entry.external_attr = 0o644 << 16
                with archive.open(entry, "w", force_zip64=True) as member:
                    member.writelines(content)


def _bundle_members(run: Run, traces: Iterable[bytes]) -> Iterator[BundleMember]:
    yield "README.txt", [BUNDLE_README_TEXT]
    yield "verify.py", [Path(offline_verifier.__file__).read_bytes()]
    yield CONFIG_FILE, [(run.folder / CONFIG_FILE).read_bytes()]
    seal = read_seal(run.folder)
    if seal is not None:
        yield "seal.txt", [seal.signed_bytes]
        yield "seal.sig", [bytes.fromhex(seal.signature)]
    yield from _ledger_bundle_members(run.ledger, run.ledger.count)
    if run.base is not None and run.last_base_record_number is not None:
        ledger = run.base.ledger
        # to the last erasure, if it comes later, because it explains missing texts
        erasure_numbers = (
            record.seq for record in ledger.records("erasure", after=run.last_base_record_number)
        )
        for name, content in _ledger_bundle_members(
            ledger, max(erasure_numbers, default=run.last_base_record_number)
        ):
            yield f"base/{name}", content
    yield "traces.jsonl", traces


def _ledger_bundle_members(ledger: Ledger, last: int) -> Iterator[BundleMember]:
    records = (
        {**record._asdict(), "link": record.link.hex()}
        for record in ledger.records(up_to_record=last)
    )
    yield "records.jsonl", (canonical_json(record) + b"\n" for record in records)
    yield "texts.jsonl", (_text_line(text, ledger) for text in ledger.stored_texts(1, last))


def _text_line(text: Text, ledger: Ledger) -> bytes:
    try:
        line = {"id": text.id, "salt": text.salt.hex(), "content": text.content.decode()}
    except UnicodeDecodeError:
        raise TraceMismatch(
            f"{ledger.path}, text {text.id}: is not UTF-8; it has been changed"
        ) from None
    return canonical_json(line) + b"\n"
