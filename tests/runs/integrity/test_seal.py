"""A seal says who vouches for a run, and for how much of it; whatever is changed in it or below it is found."""

import json
import os
import subprocess
from contextlib import closing
from hashlib import sha512
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.integrity.offline_verifier import ORDER
from jurygraph.runs.integrity.seal import Seal, check_seal
from jurygraph.runs.run import Run
from jurygraph.runs.store.chain import Draft
from jurygraph.runs.store.folder import LEDGER, SEAL
from jurygraph.runs.store.ledger import Ledger
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.writable_run import close_run
from jurygraph.schema import canonical_json
from tests.runs.made import PLAIN, checked, lines, score, seal, write_tasks
from tests.runs.store.test_ledger import changed
from tests.runs.workflows.test_rescoring import again

ENCODED, PRIVATE, PUBLIC = serialization.Encoding, serialization.PrivateFormat, serialization.PublicFormat
OPEN = serialization.NoEncryption()


def pem(key: Ed25519PrivateKey | rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(ENCODED.PEM, PRIVATE.PKCS8, OPEN)


def public_hex(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes_raw().hex()


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
def sealed(plain: Path, key_file: Path) -> Path:
    seal(plain, key_file)
    return plain


def found(folder: Path, signer: Path | None = None) -> Seal | None:
    with closing(Ledger.open(folder / LEDGER)) as ledger:
        return check_seal(folder, ledger, signer)


def append(folder: Path, draft: Draft) -> None:
    with closing(Ledger.open(folder / LEDGER, write=True)) as ledger:
        ledger.append(draft)
        ledger.commit()


class TestSealing:
    def test_a_seal_signs_the_count_and_the_head_of_a_closed_run(
        self, plain: Path, key_file: Path, key: Ed25519PrivateKey
    ) -> None:
        made = seal(plain, key_file)
        with closing(Run.open(plain)) as run:
            assert (made.run, made.records, made.head) == (run.id, run.ledger.count, run.ledger.head.hex())
        assert made.public_key == public_hex(key)
        assert found(plain) == made

    def test_the_file_is_canonical_json_and_the_signature_is_over_all_other_fields(
        self, sealed: Path, key: Ed25519PrivateKey
    ) -> None:
        written = (sealed / SEAL).read_bytes()
        content = json.loads(written)
        assert written == canonical_json(content) + b"\n"
        signature = bytes.fromhex(content.pop("signature"))
        key.public_key().verify(signature, b"jurygraph seal\n" + canonical_json(content))
        assert content["version"] == 1
        assert content["signed_at"].endswith("+00:00")

    def test_a_run_that_is_not_closed_is_refused(self, tmp_path: Path, key_file: Path) -> None:
        folder = tmp_path / "open"
        score(folder, write_tasks(tmp_path / "given", lines()), PLAIN, limit=2)
        with pytest.raises(InputError, match=r"is not closed.*score the rest.*jurygraph close"):
            seal(folder, key_file)
        assert not (folder / SEAL).exists()
        close_run(folder)
        assert seal(folder, key_file) == found(folder)

    def test_sealing_again_changes_nothing(self, sealed: Path, key_file: Path) -> None:
        before = (sealed / SEAL).read_bytes()
        assert seal(sealed, key_file).to_bytes == before
        assert (sealed / SEAL).read_bytes() == before

    def test_what_was_erased_since_can_be_sealed_by_the_same_key(self, sealed: Path, key_file: Path) -> None:
        erase(sealed, "response", "t1/r0", "asked for")
        before = found(sealed)
        assert before is not None
        assert seal(sealed, key_file).records == before.records + 1

    def test_the_seal_of_another_key_is_not_replaced(self, sealed: Path, key_file: Path, other_file: Path) -> None:
        with pytest.raises(InputError, match=r"is sealed by another key.*keep seal\.json somewhere else"):
            seal(sealed, other_file)
        assert found(sealed, key_file)

    def test_a_seal_that_does_not_hold_is_not_replaced(self, sealed: Path, key_file: Path) -> None:
        (sealed / SEAL).write_bytes(b"{}\n")
        with pytest.raises(TraceMismatch, match=r"seal\.json"):
            seal(sealed, key_file)

    def test_a_chain_that_does_not_hold_is_not_signed(self, plain: Path, key_file: Path) -> None:
        changed(plain / LEDGER, "UPDATE records SET at = at + 1 WHERE seq = 3")
        with pytest.raises(TraceMismatch, match="record 3"):
            seal(plain, key_file)
        assert not (plain / SEAL).exists()


class TestChecking:
    def test_a_run_without_a_seal_has_none(self, plain: Path) -> None:
        assert found(plain) is None

    def test_every_byte_counts(self, sealed: Path) -> None:
        path = sealed / SEAL
        whole = path.read_bytes()
        for at in range(len(whole)):
            for other in {whole[at] ^ 1, whole[at] ^ 0x20, 0x20} - {whole[at]}:
                path.write_bytes(whole[:at] + bytes([other]) + whole[at + 1 :])
                with pytest.raises(TraceMismatch, match=r"seal\.json"):
                    found(sealed)

    @pytest.mark.parametrize("change", [b"", b"{}", b"\xff", b"[" * 10_000])
    def test_what_is_no_seal_is_named(self, sealed: Path, change: bytes) -> None:
        (sealed / SEAL).write_bytes(change)
        with pytest.raises(TraceMismatch, match=r"seal\.json: is not a valid seal"):
            found(sealed)

    def test_the_same_content_in_another_form_is_no_seal(self, sealed: Path) -> None:
        content = json.loads((sealed / SEAL).read_bytes())
        (sealed / SEAL).write_text(json.dumps(content, indent=1))
        with pytest.raises(TraceMismatch, match="is not in the form"):
            found(sealed)

    def test_the_seal_of_another_run_is_named(self, sealed: Path, rich: Path, key_file: Path) -> None:
        seal(rich, key_file)
        (sealed / SEAL).write_bytes((rich / SEAL).read_bytes())
        with pytest.raises(TraceMismatch, match="is the seal of another run"):
            found(sealed)

    def test_lost_records_are_found(self, sealed: Path) -> None:
        changed(sealed / LEDGER, "DELETE FROM records WHERE kind = 'close'")
        with pytest.raises(TraceMismatch, match="records were sealed, and"):
            found(sealed)

    def test_another_history_of_the_same_length_is_found(self, sealed: Path) -> None:
        changed(sealed / LEDGER, "UPDATE records SET link = zeroblob(32) WHERE kind = 'close'")
        with pytest.raises(TraceMismatch, match="are not those that were sealed"):
            found(sealed)

    def test_an_erasure_afterwards_breaks_nothing(self, sealed: Path) -> None:
        before = found(sealed)
        erase(sealed, "response", "t1/r0", "asked for")
        assert found(sealed) == before

    def test_anything_else_afterwards_is_named(self, sealed: Path) -> None:
        append(sealed, Draft("erasure", "x", {"what": "response", "reason": "", "ids": []}))
        append(sealed, Draft("trace", "sneaked in", {}))
        append(sealed, Draft("task", "later", {}))
        with pytest.raises(TraceMismatch, match=r"\(trace 'sneaked in'\): comes after the sealed records"):
            found(sealed)


class TestLowOrder:
    """Keys of which anybody can make signatures."""

    def forged(self, folder: Path, key: str) -> bytes:
        """A seal that holds by the equation of Ed25519, made without a secret: R = B, S = 1, and k A is neutral."""
        start = b"\x58" + 31 * b"\x66"
        with closing(Run.open(folder)) as run:
            stated = {"version": 1, "run": run.id, "records": run.ledger.count, "head": run.ledger.head.hex()}
        for second in range(60):
            content = {**stated, "signed_at": f"2026-01-01T00:00:{second:02}+00:00", "public_key": key}
            message = b"jurygraph seal\n" + canonical_json(content)
            number = int.from_bytes(sha512(start + bytes.fromhex(key) + message).digest(), "little")
            if number % ORDER % 8 == 0:
                signature = (start + (1).to_bytes(32, "little")).hex()
                return canonical_json({**content, "signature": signature}) + b"\n"
        raise AssertionError("none was found")

    @pytest.mark.parametrize(
        "key",
        [
            "01" + "00" * 31,
            "ec" + "ff" * 30 + "7f",
            "00" * 32,
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        ],
        ids=["order 1", "order 2", "order 4", "order 8"],
    )
    def test_they_seal_nothing(self, plain: Path, tmp_path: Path, key: str) -> None:
        (plain / SEAL).write_bytes(self.forged(plain, key))
        (tmp_path / "signer").write_text(key)
        for signer in (None, tmp_path / "signer"):
            with pytest.raises(TraceMismatch, match=r"key of low order, whose signatures anybody can make"):
                found(plain, signer)


class TestSigner:
    def test_what_came_after_the_seal_must_be_signed_too(self, sealed: Path, key_file: Path) -> None:
        erase(sealed, "response", "t1/r0", "asked for")
        with pytest.raises(TraceMismatch, match="1 erasures after the sealed records are not signed"):
            found(sealed, key_file)
        seal(sealed, key_file)
        assert found(sealed, key_file)

    def test_so_must_what_came_after_it_in_the_run_that_it_refers_to(
        self, plain: Path, tmp_path: Path, key_file: Path
    ) -> None:
        again(plain, tmp_path / "other")
        seal(tmp_path / "other", key_file)
        assert checked(tmp_path / "other", signer_key_file=key_file).sealed
        erase(plain, "response", "t1/r0", "asked for")
        with pytest.raises(TraceMismatch, match=r"plain/seal\.json: is missing"):
            checked(tmp_path / "other", signer_key_file=key_file)
        seal(plain, key_file)
        assert checked(tmp_path / "other", signer_key_file=key_file).base

    def test_a_run_must_be_sealed_where_a_signer_is_asked_for(self, plain: Path, key_file: Path) -> None:
        with pytest.raises(TraceMismatch, match=r"seal\.json: is missing"):
            found(plain, key_file)

    def test_it_must_be_that_signer(self, sealed: Path, key_file: Path, other_file: Path) -> None:
        assert found(sealed, key_file)
        with pytest.raises(TraceMismatch, match="is by the key"):
            found(sealed, other_file)

    @pytest.mark.parametrize("form", ["pem", "openssh", "hex", "HEX", "private pem", "private openssh"])
    def test_the_signer_can_be_named_by_any_form_of_the_key(
        self, sealed: Path, tmp_path: Path, key: Ed25519PrivateKey, form: str
    ) -> None:
        forms = {
            "pem": key.public_key().public_bytes(ENCODED.PEM, PUBLIC.SubjectPublicKeyInfo),
            "openssh": key.public_key().public_bytes(ENCODED.OpenSSH, PUBLIC.OpenSSH) + b" somebody@somewhere\n",
            "hex": public_hex(key).encode() + b"\n",
            "HEX": public_hex(key).upper().encode(),
            "private pem": pem(key),
            "private openssh": key.private_bytes(ENCODED.PEM, PRIVATE.OpenSSH, OPEN),
        }
        (tmp_path / "signer").write_bytes(forms[form])
        assert found(sealed, tmp_path / "signer")

    @pytest.mark.parametrize(
        ("content", "wrong"),
        [
            (b"hello", "contains no public key"),
            (b"ssh-ed25519 AAAA", "contains no public key"),
            (b"\xff" * 64, "contains no public key"),
            (public_hex(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))[1:].encode(), "contains no public key"),
            (b"-----BEGIN PRIVATE KEY-----", "contains no private key"),
        ],
    )
    def test_what_is_no_key_is_named(self, sealed: Path, tmp_path: Path, content: bytes, wrong: str) -> None:
        (tmp_path / "signer").write_bytes(content)
        with pytest.raises(InputError, match=f"signer: {wrong}"):
            found(sealed, tmp_path / "signer")

    def test_another_kind_of_key_is_named(self, sealed: Path, tmp_path: Path) -> None:
        rsa_key = rsa.generate_private_key(65537, 2048).public_key()
        (tmp_path / "signer").write_bytes(rsa_key.public_bytes(ENCODED.PEM, PUBLIC.SubjectPublicKeyInfo))
        with pytest.raises(InputError, match="signer: contains a key that is not Ed25519"):
            found(sealed, tmp_path / "signer")


def run(command: str, folder: Path) -> None:
    """Run a program that makes keys, where there is one that can."""
    try:
        subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{command.split()[0]} makes no such keys here: {error.stderr!r}")


class TestPrivateKeys:
    @pytest.mark.parametrize(
        "command", ["openssl genpkey -algorithm ed25519 -out key", "ssh-keygen -q -t ed25519 -f key -N ''"]
    )
    def test_keys_made_by_the_usual_programs_serve(self, plain: Path, tmp_path: Path, command: str) -> None:
        run(command, tmp_path)
        seal(plain, tmp_path / "key")
        assert found(plain, tmp_path / "key")

    @pytest.mark.parametrize(
        "command",
        [
            "openssl genpkey -algorithm ed25519 -aes-256-cbc -pass pass:secret -out key",
            "ssh-keygen -q -t ed25519 -f key -N secret",
        ],
    )
    def test_an_encrypted_key_is_refused(self, plain: Path, tmp_path: Path, command: str) -> None:
        run(command, tmp_path)
        with pytest.raises(InputError, match=r"key: is encrypted.*openssl genpkey"):
            seal(plain, tmp_path / "key")

    def test_another_kind_of_key_is_refused(self, plain: Path, tmp_path: Path) -> None:
        for other in (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())):
            (tmp_path / "other").write_bytes(pem(other))
            with pytest.raises(InputError, match=r"other: contains a key that is not Ed25519.*ssh-keygen -t ed25519"):
                seal(plain, tmp_path / "other")

    @pytest.mark.parametrize("content", [b"", b"hello", b"ssh-ed25519 AAAA", b"-----BEGIN OPENSSH PRIVATE KEY-----\n"])
    def test_what_is_no_private_key_is_refused(self, plain: Path, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "no").write_bytes(content)
        with pytest.raises(InputError, match=r"no: contains no private key.*openssl genpkey"):
            seal(plain, tmp_path / "no")

    def test_a_file_that_cannot_be_read_is_named(self, plain: Path, tmp_path: Path) -> None:
        for path in (tmp_path / "nowhere", tmp_path):
            with pytest.raises(InputError, match=f"{path}: cannot be read"):
                seal(plain, path)


def test_a_seal_that_is_no_file_is_found_and_not_waited_for(plain: Path) -> None:
    os.mkfifo(plain / "seal.json")
    with pytest.raises(InputError, match=r"seal\.json: is not a regular file"):
        Run.open(plain)
