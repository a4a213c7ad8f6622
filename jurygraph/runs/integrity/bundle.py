"""Export a run as one zip file that can be checked without jurygraph: records, texts, config, seal and verifier.

    records.jsonl   one record per line: seq, kind, key, at, body (the string whose hash is chained), link (hexadecimal)
    texts.jsonl     one text per line: id, salt (hexadecimal), content
    config.yaml     as in the run's folder
    seal.txt, seal.sig   the signed bytes of a seal, and their Ed25519 signature
    traces.jsonl    every trace in full
    base/           records and texts of the run whose verdicts a re-scored run refers to
    verify.py       `offline_verifier`

Lines are canonical JSON. The same run gives the same bytes, given the same zlib.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import IO, cast
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.integrity import offline_verifier
from jurygraph.runs.integrity.verification import read_seal
from jurygraph.runs.run import Run
from jurygraph.runs.store import folder as run_folder
from jurygraph.runs.store.atomic_files import open_replacement
from jurygraph.runs.store.ledger import Ledger, Text
from jurygraph.schema import canonical_json

Member = tuple[str, Iterable[bytes]]

README = b"""\
How to check this bundle: python3 verify.py in the unpacked folder, or python3 verify.py bundle.zip (Python 3.8, alone).
Whoever has reason to doubt verify.py as well takes jurygraph's own runs/integrity/offline_verifier.py: it is that file.
Proved: records and texts are those of the head that it prints, rewards follow from their terms, and traces.jsonl shows
these rewards. All can be forged, except a head that you know (--expect-head), or
a seal: verify.py prints the command that checks its signature.
Not here: prompts and replies of what a branch reused; they are in the run that it was branched from: export that too.
Not proved: that verdicts lead to the terms (jurygraph verify); the rest of traces.jsonl; that texts are true.
"""


def export_bundle(run: Run, output: Path, traces: Iterable[bytes]) -> None:
    """Write a run, in its state when it was opened, completely or not at all; `traces` are the lines of its traces.

    An erasure in the run meanwhile gives a bundle that does not verify: write it again. Raises `InputError` where
    `output` exists and is not a file, and `TraceMismatch` where a text is not UTF-8.
    """
    if output.exists() and not output.is_file():
        raise InputError(f"{output}: exists and is not a file; name another file for the bundle")
    with open_replacement(output) as replacement, replacement.open("r+b") as file:
        # without its method `tell`, the zip file is streamed: the sizes of a member follow it
        stream = cast("IO[bytes]", SimpleNamespace(write=file.write, flush=file.flush))
        with ZipFile(stream, "w") as archive:
            for name, content in _members(run, traces):
                entry = ZipInfo(name)  # without information about the time and machine of its creation
                entry.compress_type = ZIP_DEFLATED
                entry.create_system = 3  # Unix on every platform, for identical bytes
                entry.external_attr = 0o644 << 16
                with archive.open(entry, "w", force_zip64=True) as member:
                    member.writelines(content)


def _members(run: Run, traces: Iterable[bytes]) -> Iterator[Member]:
    yield "README.txt", [README]
    yield "verify.py", [Path(offline_verifier.__file__).read_bytes()]
    yield run_folder.CONFIG, [(run.folder / run_folder.CONFIG).read_bytes()]
    seal = read_seal(run.folder)
    if seal is not None:
        yield "seal.txt", [seal.signed_bytes]
        yield "seal.sig", [bytes.fromhex(seal.signature)]
    yield from _ledger_members(run.ledger, run.ledger.count)
    if run.base is not None and run.last_base_record is not None:
        ledger = run.base.ledger
        # to the last erasure, if it comes later, because it explains missing texts
        later = (record.seq for record in ledger.records("erasure", after=run.last_base_record))
        members = _ledger_members(ledger, max(later, default=run.last_base_record))
        for name, content in members:
            yield f"base/{name}", content
    yield "traces.jsonl", traces


def _ledger_members(ledger: Ledger, last: int) -> Iterator[Member]:
    records = ({**record._asdict(), "link": record.link.hex()} for record in ledger.records(up_to=last))
    yield "records.jsonl", (canonical_json(record) + b"\n" for record in records)
    yield "texts.jsonl", (_text_line(text, ledger) for text in ledger.stored_texts(1, last))


def _text_line(text: Text, ledger: Ledger) -> bytes:
    try:
        line = {"id": text.id, "salt": text.salt.hex(), "content": text.content.decode()}
    except UnicodeDecodeError:
        raise TraceMismatch(f"{ledger.path}, text {text.id}: is not UTF-8; it has been changed") from None
    return canonical_json(line) + b"\n"
