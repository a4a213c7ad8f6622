"""Exports that lie in the folder of a run: what a text that is erased from the run must not go on lying in."""

import gzip
import json
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from jurygraph.runs.run import Run
from jurygraph.runs.store.folder import OWN

_GZIP = b"\x1f\x8b"
_UNREADABLE = (EOFError, OSError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)


def exports_with(run: Run, forms: set[bytes]) -> tuple[list[Path], list[Path]]:
    """The exports of a run below its folder that hold texts, and other files that hold one of these forms.

    Traces as JSON lines and audit bundles of this run are known by what they begin with or hold; whether a text of the
    run lies in them need not be asked, because all of its texts do.
    """
    exports: list[Path] = []
    others: list[Path] = []
    for path in sorted(run.folder.rglob("*")):
        if not path.is_file() or (path.parent == run.folder and path.name in OWN):
            continue
        contents = list(_contents(path))
        if not path.is_symlink() and any(_is_export(run, content) for content in contents):
            exports.append(path)
        elif any(form in content for content in contents for form in forms):
            others.append(path)
    return exports, others


def _is_export(run: Run, content: bytes) -> bool:
    """Whether a content begins like the traces of this run, or like the records of its bundle."""
    try:
        first = json.loads(content.split(b"\n", 1)[0])
    except ValueError:
        return False
    if not isinstance(first, dict):
        return False
    if first.get("kind") == "run":
        return first.get("key") == run.id
    name = first.get("response_id")
    return isinstance(name, str) and "reward" in first and run.ledger.find("trace", name) is not None


def _contents(path: Path) -> Iterator[bytes]:
    """What a file holds as bytes, and what is packed in it as far as that can be read."""
    content = path.read_bytes()
    yield content
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                yield from (archive.read(name) for name in archive.namelist())
        elif content.startswith(_GZIP):
            yield gzip.decompress(content)
    except _UNREADABLE:
        return  # damaged, or locked by a password: its bytes are all that can be looked through
