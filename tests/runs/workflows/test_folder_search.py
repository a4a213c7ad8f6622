"""Other files in a run's folder are searched in bounded memory, or named."""

import gzip
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

from jurygraph.runs.workflows.folder_search import MAX_SEARCHED_BYTES, Fragments, search_file
from tests.runs.sample_runs import SIMPLE_CONFIG, make_tasks, score, write_tasks

TEXT = "My own words, which\nI take back: «naïve» and 'quoted'."
FRAGMENTS = Fragments([TEXT])
MOST_MEMORY = 300 << 10
"""In KiB."""

ERASE = """\
import re, sys
from jurygraph.cli import main

try:
    main(["erase", *sys.argv[1:]])
finally:
    print(re.search(r"VmHWM:\\s+([0-9]+) kB", open("/proc/self/status").read())[1])
"""


def gzip_bomb(mebibytes: int) -> bytes:
    """Return a small gzip file of many line feeds with a wrong checksum, which should never be reached."""
    packing = zlib.compressobj(9, wbits=-15)
    block = packing.compress(b"\n" * (1 << 20)) + packing.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08" + bytes(7) + block * mebibytes + packing.flush() + bytes(8)


def write_zip(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("content", "holds"),
    [
        (TEXT.encode(), True),
        (b"a note: " + TEXT.encode() + b" and more", True),
        (b"nothing of it", False),
        (gzip.compress(b"x" * 99 + TEXT.encode()), True),
        (gzip.compress(b"nothing of it"), False),
        (b"\x1f\x8b" + TEXT.encode(), True),
        (b"\0" + TEXT.encode(), True),
        (b"", False),
    ],
    ids=["text", "within", "other", "packed", "other packed", "not packed", "binary", "empty"],
)
def test_packed_text_is_searched(tmp_path: Path, content: bytes, holds: bool) -> None:
    (tmp_path / "file").write_bytes(content)
    assert search_file(tmp_path / "file", FRAGMENTS) == (holds, None)


def test_a_text_across_two_chunks_is_found(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * ((1 << 18) - 20) + TEXT.encode())
    assert search_file(tmp_path / "file", FRAGMENTS) == (True, None)


def test_every_member_of_a_zip_file_is_searched(tmp_path: Path) -> None:
    assert search_file(write_zip(tmp_path / "a.zip", one=b"no", two=TEXT.encode(), three=b"no"), FRAGMENTS) == (
        True,
        None,
    )
    assert search_file(write_zip(tmp_path / "b.zip", one=b"no", two=b"nor here"), FRAGMENTS) == (False, None)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (TEXT.encode("utf-16"), "is not UTF-8 text"),
        (b"\x89PNG\r\n\x1a\n", "is not UTF-8 text"),
        (b"PAR1\0\0", "is not UTF-8 text"),
        (gzip.compress(gzip.compress(TEXT.encode())), "is not UTF-8 text"),
        (gzip.compress(TEXT.encode() * 9)[:-9], "cannot be read"),
        (b"\x1f\x8bbroken", "cannot be read"),
        (b"PK\x03\x04\xff and no directory", "is a zip file with too many members, or a damaged one"),
        (b"PK\xff" + b"PK\x05\x06" + bytes(8) + b"\xff" * 4 + bytes(6), "is a zip file with too many members"),
    ],
    ids=["UTF-16", "PNG", "Parquet", "packed twice", "cut", "no gzip", "no directory", "many members"],
)
def test_unsearchable_files_are_reported(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "file").write_bytes(content)
    holds, reason = search_file(tmp_path / "file", Fragments(["words that are in none of these files"]))
    assert not holds
    assert reason is not None
    assert why in reason


def test_an_archive_with_a_binary_member_is_unsearchable(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", one=b"text", two=TEXT.encode("utf-16"), three=b"text")
    assert search_file(path, FRAGMENTS) == (False, "is not UTF-8 text, so it cannot be searched")


def test_the_searched_size_is_limited(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MAX_SEARCHED_BYTES + 1)
    holds, why = search_file(tmp_path / "large", FRAGMENTS)
    assert (holds, why) == (False, "contains more than 64 MiB; the rest was not searched")


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", [pytest.param("gzip", marks=pytest.mark.exhaustive), "zip"])
def test_an_archive_bomb_takes_little_memory_and_blocks_no_erasure(tmp_path: Path, how: str) -> None:
    given = make_tasks()
    given[1]["responses"][0]["text"] = TEXT
    score(tmp_path / "run", write_tasks(tmp_path / "given", given), SIMPLE_CONFIG)
    packed = gzip_bomb(mebibytes=500)
    (tmp_path / "run" / "bomb").write_bytes(packed if how == "gzip" else zip_header(packed, size=500 << 20))
    ended = subprocess.run(
        [sys.executable, "-c", ERASE, str(tmp_path / "run"), "--response", "t1/r0"],
        capture_output=True,
        text=True,
        env={**os.environ, "JURYGRAPH_CACHE": str(tmp_path / "cache")},
    )
    message, most_memory = ended.stdout.splitlines()
    assert (ended.returncode, message) == (1, "erased 8 texts, and 0 others that contained it")
    assert "bomb: contains more than 64 MiB; the rest was not searched" in ended.stderr
    assert TEXT.encode() not in (tmp_path / "run" / "run.sqlite").read_bytes()
    assert int(most_memory) < MOST_MEMORY


def zip_header(packed: bytes, size: int) -> bytes:
    """Return a zip file with the deflated content of a gzip file and any declared size."""
    deflated, name = packed[10:-8], b"inside"
    crc = struct.unpack("<I", packed[-8:-4])[0]
    common = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 0, crc, len(deflated), size, len(name), 0)
    local = b"PK\x03\x04" + common + name
    entry = b"PK\x01\x02" + struct.pack("<H", 20) + common + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name
    place = len(local) + len(deflated)
    return local + deflated + entry + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), place, 0)
