"""A seal signs a run up to its head; every change of the seal or of the signed records is found."""

import json
import os
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.integrity.verification import Seal, load_private_key, read_seal
from jurygraph.runs.run import Run
from jurygraph.runs.store.folder import LEDGER_FILE, SEAL_FILE
from jurygraph.runs.store.ledger import Ledger, RecordDraft
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.writable_run import close_run
from jurygraph.schema import canonical_json
from tests.runs.sample_runs import (
    SIMPLE_CONFIG,
    make_tasks,
    rescore_run,
    score,
    seal_run,
    verify_run,
    write_tasks,
)
from tests.runs.store.test_ledger import execute_sql


def pem(key: Ed25519PrivateKey) -> bytes:
    form = (
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return key.private_bytes(*form)


@pytest.fixture
def key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


@pytest.fixture
def key_file(tmp_path: Path, key: Ed25519PrivateKey) -> Path:
    path = tmp_path / "key.pem"
    path.write_bytes(pem(key))
    return path


@pytest.fixture
def other_file(tmp_path: Path) -> Path:
    path = tmp_path / "other.pem"
    path.write_bytes(pem(Ed25519PrivateKey.generate()))
    return path


@pytest.fixture
def sealed_run(plain: Path, key_file: Path) -> Path:
    seal_run(plain, key_file)
    return plain


def public_key(key_file: Path) -> str:
    return load_private_key(key_file).public_key().public_bytes_raw().hex()


def find_seal(folder: Path, key_file: Path | None = None) -> Seal | None:
    signer = None if key_file is None else public_key(key_file)
    verify_run(folder, signer=signer)
    return read_seal(folder, signer)


def append_record(folder: Path, draft: RecordDraft) -> None:
    with closing(Ledger.open(folder / LEDGER_FILE, write=True)) as ledger:
        ledger.append(draft)
        ledger.commit()


class TestSealing:
    def test_a_seal_signs_the_count_and_the_head_of_a_closed_run(
        self, plain: Path, key_file: Path, key: Ed25519PrivateKey
    ) -> None:
        made = seal_run(plain, key_file)
        with closing(Run.open(plain)) as run:
            assert (made.run, made.records, made.head) == (
                run.id,
                run.ledger.count,
                run.ledger.head.hex(),
            )
        assert made.public_key == key.public_key().public_bytes_raw().hex()
        assert find_seal(plain) == made

    def test_the_file_is_canonical_json_and_the_signature_is_over_all_other_fields(
        self, sealed_run: Path, key: Ed25519PrivateKey
    ) -> None:
        written = (sealed_run / SEAL_FILE).read_bytes()
        content = json.loads(written)
        assert written == canonical_json(content) + b"\n"
        signature = bytes.fromhex(content.pop("signature"))
        key.public_key().verify(signature, b"jurygraph seal\n" + canonical_json(content))
        assert content["version"] == 1
        assert content["signed_at"].endswith("+00:00")

    def test_a_run_that_is_not_closed_is_refused(self, tmp_path: Path, key_file: Path) -> None:
        folder = tmp_path / "open"
        score(folder, write_tasks(tmp_path / "given", make_tasks()), SIMPLE_CONFIG, limit=2)
        with pytest.raises(InputError, match=r"is not closed.*score the rest.*jurygraph close"):
            seal_run(folder, key_file)
        assert not (folder / SEAL_FILE).exists()
        close_run(folder)
        assert seal_run(folder, key_file) == find_seal(folder)

    def test_a_run_can_be_sealed_again_after_an_erasure(
        self, sealed_run: Path, key_file: Path
    ) -> None:
        erase(sealed_run, "response", "t1/r0", "asked for")
        before = find_seal(sealed_run)
        assert before is not None
        assert seal_run(sealed_run, key_file).records == before.records + 1

    def test_the_seal_of_another_key_is_not_replaced(
        self, sealed_run: Path, key_file: Path, other_file: Path
    ) -> None:
        with pytest.raises(
            InputError, match=r"is sealed by another key.*keep seal\.json somewhere else"
        ):
            seal_run(sealed_run, other_file)
        assert find_seal(sealed_run, key_file)

    def test_a_changed_run_is_not_signed(self, plain: Path, key_file: Path) -> None:
        execute_sql(
            plain / LEDGER_FILE,
            "UPDATE texts SET content = x'78' WHERE id = (SELECT max(id) FROM texts)",
        )
        with pytest.raises(TraceMismatch, match="reason of response"):
            seal_run(plain, key_file)
        assert not (plain / SEAL_FILE).exists()


class TestChecking:
    @pytest.mark.landing
    def test_every_changed_byte_is_found(self, sealed_run: Path) -> None:
        path = sealed_run / SEAL_FILE
        whole = path.read_bytes()
        for at in range(len(whole)):
            for other in {whole[at] ^ 1, whole[at] ^ 0x20, 0x20} - {whole[at]}:
                path.write_bytes(whole[:at] + bytes([other]) + whole[at + 1 :])
                with pytest.raises(TraceMismatch, match=r"seal\.json"):
                    read_seal(sealed_run)

    @pytest.mark.parametrize("change", [b"", b"{}", b"\xff", b"[" * 10_000])
    def test_invalid_content_is_named(self, sealed_run: Path, change: bytes) -> None:
        (sealed_run / SEAL_FILE).write_bytes(change)
        with pytest.raises(TraceMismatch, match=r"seal\.json: is not a valid seal"):
            find_seal(sealed_run)

    def test_the_same_content_in_another_form_is_refused(self, sealed_run: Path) -> None:
        content = json.loads((sealed_run / SEAL_FILE).read_bytes())
        (sealed_run / SEAL_FILE).write_text(json.dumps(content, indent=1))
        with pytest.raises(TraceMismatch, match="is not in the form"):
            find_seal(sealed_run)

    def test_the_seal_of_another_run_is_named(
        self, sealed_run: Path, rich: Path, key_file: Path
    ) -> None:
        seal_run(rich, key_file)
        (sealed_run / SEAL_FILE).write_bytes((rich / SEAL_FILE).read_bytes())
        with pytest.raises(TraceMismatch, match="is the seal of another run"):
            find_seal(sealed_run)

    def test_another_history_is_found(self, sealed_run: Path) -> None:
        execute_sql(sealed_run / LEDGER_FILE, "DELETE FROM records WHERE kind = 'close'")
        with pytest.raises(
            TraceMismatch,
            match=r"seal\.json: is of 24 other records, and 23 are there: some were changed, added or lost",
        ):
            find_seal(sealed_run)

    def test_a_later_erasure_keeps_the_seal_valid(self, sealed_run: Path) -> None:
        before = find_seal(sealed_run)
        erase(sealed_run, "response", "t1/r0", "asked for")
        assert find_seal(sealed_run) == before


class TestSigner:
    def test_with_a_signer_later_erasures_must_be_signed(
        self, sealed_run: Path, key_file: Path
    ) -> None:
        erase(sealed_run, "response", "t1/r0", "asked for")
        with pytest.raises(
            TraceMismatch, match="1 erasures after the sealed records are not signed"
        ):
            find_seal(sealed_run, key_file)
        seal_run(sealed_run, key_file)
        assert find_seal(sealed_run, key_file)

    def test_with_a_signer_erasures_in_the_base_must_be_signed(
        self, plain: Path, tmp_path: Path, key_file: Path
    ) -> None:
        rescore_run(plain, tmp_path / "other")
        seal_run(tmp_path / "other", key_file)
        assert verify_run(tmp_path / "other", signer=public_key(key_file)).sealed
        erase(plain, "response", "t1/r0", "asked for")
        with pytest.raises(TraceMismatch, match=r"plain/seal\.json: is missing"):
            verify_run(tmp_path / "other", signer=public_key(key_file))
        seal_run(plain, key_file)
        assert verify_run(tmp_path / "other", signer=public_key(key_file)).base

    def test_with_a_signer_a_seal_by_that_key_is_required(
        self, plain: Path, key_file: Path, other_file: Path
    ) -> None:
        with pytest.raises(TraceMismatch, match=r"seal\.json: is missing"):
            find_seal(plain, key_file)
        seal_run(plain, key_file)
        assert find_seal(plain, key_file)
        with pytest.raises(TraceMismatch, match="is by the key"):
            find_seal(plain, other_file)


def test_a_seal_that_is_a_fifo_is_refused_at_once(plain: Path) -> None:
    os.mkfifo(plain / "seal.json")
    with pytest.raises(InputError, match=r"seal\.json: is not a regular file"):
        Run.open(plain)
