"""Verify and sign a closed run."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from jurygraph.errors import InputError
from jurygraph.runs.integrity.seal import Seal, check_seal, load_private_key, signed_bytes
from jurygraph.runs.integrity.verification import verify
from jurygraph.runs.progress import ProgressCallback
from jurygraph.runs.run import Run
from jurygraph.runs.store.drafts import write_atomically
from jurygraph.runs.store.folder import SEAL, shell_quote

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def seal(run: Run, key_file: Path, report: ProgressCallback) -> Seal:
    """Verify a closed run and sign it; a valid seal by the same key for the same head is kept.

    `key_file` holds an Ed25519 private key that is not encrypted, PEM (PKCS #8) or OpenSSH. Raises `InputError` where
    it holds another key, where the run is not closed, or where another key sealed it, and `TraceMismatch` where the run
    or an existing seal was changed, because a changed run must not be signed.
    """
    key = load_private_key(key_file)
    if not run.is_closed:
        hint = f"score the rest of its tasks, or end it with `jurygraph close {shell_quote(run.folder)}`"
        raise InputError(f"{run.folder}: is not closed, so more could be scored into it; {hint}")
    verified = verify(run, report)
    new_seal = _sign(run, key, verified.head)
    existing = check_seal(run.folder, run.ledger)
    if existing is not None and existing.public_key != new_seal.public_key:
        hint = f"keep {SEAL} somewhere else and remove it, then seal the run again"
        raise InputError(f"{run.folder}: is sealed by another key, {existing.public_key}; {hint}")
    if existing is not None and existing.head == new_seal.head:
        return existing
    write_atomically(run.folder / SEAL, new_seal.to_bytes)
    return new_seal


def _sign(run: Run, key: "Ed25519PrivateKey", head: str) -> Seal:
    content = {
        "version": 1,
        "run": run.id,
        "records": run.ledger.count,
        "head": head,
        "signed_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "public_key": key.public_key().public_bytes_raw().hex(),
    }
    return Seal.model_validate({**content, "signature": key.sign(signed_bytes(content)).hex()})
