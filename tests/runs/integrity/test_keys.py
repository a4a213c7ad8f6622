"""Ed25519 keys in the usual files, and messages for files without a key."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from jurygraph.errors import InputError
from jurygraph.runs.integrity.verification import load_private_key, load_public_key

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key().public_bytes_raw().hex()
PEM, SSH = serialization.Encoding.PEM, serialization.Encoding.OpenSSH
OPEN, PKCS8 = serialization.PrivateFormat.OpenSSH, serialization.PrivateFormat.PKCS8
NONE = serialization.NoEncryption()
LOCKED = serialization.BestAvailableEncryption(b"a passphrase")
OTHER = ec.generate_private_key(ec.SECP256R1())
PUBLIC_SSH = KEY.public_key().public_bytes(SSH, serialization.PublicFormat.OpenSSH)
PUBLIC_PEM = KEY.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def write_key(folder: Path, content: bytes) -> Path:
    path = folder / "key"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("form", [OPEN, PKCS8], ids=["openssh", "pem"])
def test_a_private_key_is_read_and_is_no_signer_to_expect(
    tmp_path: Path, form: serialization.PrivateFormat
) -> None:
    path = write_key(tmp_path, KEY.private_bytes(PEM, form, NONE))
    assert load_private_key(path).private_bytes_raw() == bytes(range(32))
    with pytest.raises(InputError, match=r"contains a private key, .* -pubout") as refused:
        load_public_key(path)
    assert not set(path.read_text().splitlines()) & set(str(refused.value).split())


@pytest.mark.parametrize(
    "content", [PUBLIC_SSH + b" me@here\n", PUBLIC_PEM], ids=["openssh", "pem"]
)
def test_a_public_key_is_read_in_every_form(tmp_path: Path, content: bytes) -> None:
    assert (
        load_public_key(write_key(tmp_path, content)) == load_public_key(PUBLIC.upper()) == PUBLIC
    )


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (
            KEY.private_bytes(PEM, PKCS8, LOCKED),
            "contains no private Ed25519 key, or an encrypted one; make one with",
        ),
        (b"nothing", "contains no private Ed25519 key"),
        (OTHER.private_bytes(PEM, PKCS8, NONE), "contains no private Ed25519 key"),
        (PUBLIC_SSH, "contains no private Ed25519 key"),
    ],
)
def test_a_file_without_a_private_key_is_refused(
    tmp_path: Path, content: bytes, wrong: str
) -> None:
    with pytest.raises(InputError, match=f"key: {wrong}"):
        load_private_key(write_key(tmp_path, content))


@pytest.mark.parametrize(
    "content", [b"nothing", b"ssh-ed25519 AAAA", b"-----BEGIN PRIVATE KEY-----\n"]
)
def test_a_file_without_a_public_key_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError, match="key: contains no Ed25519 key; name the public key"):
        load_public_key(write_key(tmp_path, content))


def test_a_path_that_is_not_a_file_is_refused(tmp_path: Path) -> None:
    for path, wrong in (
        (tmp_path, "Is a directory"),
        (tmp_path / "absent", "No such file or directory"),
    ):
        with pytest.raises(InputError, match=rf"cannot be read \({wrong}\); name the file"):
            load_private_key(path)
