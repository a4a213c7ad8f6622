"""Sign a page about runs with the key of a seal, and check that it is still what was signed.

The seal is a comment at the end of the page, both in Markdown and in HTML, so that one file is handed on.
"""

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from jurygraph.errors import TraceMismatch
from jurygraph.runs.integrity.verification import Digest, Signature

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_BEGINNING = b"<!-- jurygraph seal\n"
_END = b"-->\n"


class PageSeal(Signature):
    """The seal of a page: `page` is the SHA-256 of all that stands before it."""

    page: Digest


def sign_page(page: str, key: "Ed25519PrivateKey") -> str:
    """Return a page with its seal, which begins a line: tools that check it without jurygraph cut lines."""
    content = page.removesuffix("\n").encode() + b"\n"
    seal = PageSeal(page=sha256(content).hexdigest()).sign(key)
    return (content + _BEGINNING + seal.to_bytes + _END).decode()


def verify_page(path: Path, signer: Path | str | None = None) -> PageSeal:
    """Return the seal of a page in a file.

    Raises `TraceMismatch` where the page has none, or was changed, and as `read_seal` for another signer.
    """
    page = path.read_bytes()
    content, beginning, seal_json = page.rpartition(_BEGINNING)
    if not beginning:
        problem = (
            "is no run, and no page with a seal, as `jurygraph study certify --key F` "
            "prints it; it was never signed, or lost its seal"
        )
        if _BEGINNING in page.replace(b"\r\n", b"\n"):
            problem = (
                "has other line ends than the page that was signed, CRLF, as mail and git make them; "
                "ask for the file itself, or turn them into LF and verify that"
            )
        raise TraceMismatch(f"{path}: {problem}")
    if not seal_json.endswith(_END):
        raise TraceMismatch(
            f"{path}: does not end with its seal; something was added after it, or its end is cut off"
        )
    seal = PageSeal.parse(seal_json.removesuffix(_END), path, signer)
    if seal.page != sha256(content).hexdigest():
        raise TraceMismatch(f"{path}: is not the page that was signed; it has been changed")
    return seal
