"""Read Ed25519 keys from files: PEM, OpenSSH, or a public key as 64 hexadecimal digits."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from jurygraph.errors import InputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_HINT = "make one with `openssl genpkey -algorithm ed25519 -out key.pem` or `ssh-keygen -t ed25519 -N '' -f key`"


def load_private_key(path: Path) -> "Ed25519PrivateKey":
    """Return the private key in an unencrypted file. Raises `InputError` if there is none."""
    return _parse_private_key(path, _read_content(path))


def _parse_private_key(path: Path, content: bytes) -> "Ed25519PrivateKey":
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    openssh = b"OPENSSH PRIVATE KEY" in content
    load = serialization.load_ssh_private_key if openssh else serialization.load_pem_private_key
    try:
        key = load(content, password=None)
    except TypeError:
        raise InputError(f"{path}: is encrypted, and passphrases are not supported; {_HINT}") from None
    except (ValueError, UnsupportedAlgorithm):
        raise InputError(f"{path}: contains no private key; {_HINT}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{path}: contains a key that is not Ed25519; {_HINT}")
    return key


def load_public_key(path: Path) -> str:
    """Return the public key in a file, or of the private key in it, in hexadecimal.

    Raises `InputError` if the file contains neither.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    content = _read_content(path)
    if re.fullmatch(rb"[0-9a-fA-F]{64}", content.strip()):
        return content.decode().strip().lower()
    if b"PRIVATE KEY" in content:
        return _parse_private_key(path, content).public_key().public_bytes_raw().hex()
    load = serialization.load_ssh_public_key if content.startswith(b"ssh-") else serialization.load_pem_public_key
    try:
        key = load(content)
    except (ValueError, UnsupportedAlgorithm):
        raise InputError(f"{path}: contains no public key; name the public key of the seal") from None
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"{path}: contains a key that is not Ed25519; name the public key of the seal")
    return key.public_bytes_raw().hex()


def _read_content(path: Path) -> bytes:
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(f"{path}: is not a file; name the file of an Ed25519 key")
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name the file of an Ed25519 key") from None
