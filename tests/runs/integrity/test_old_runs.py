"""Runs that an earlier version wrote are verified and read as by that version; see `tests/data/old_runs/make.py`."""

import json
import sqlite3
import tarfile
from collections.abc import Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.command import run_command

ARCHIVES = Path(__file__).parents[2] / "data" / "old_runs"
RECORDED: Mapping[str, Mapping[str, Any]] = json.loads((ARCHIVES / "recorded.json").read_text(encoding="utf-8"))


def unpack(name: str, folder: Path) -> Path:
    with tarfile.open(ARCHIVES / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def output_of(folder: Path, *command: str) -> str:
    code, out, err = run_command(*command, cwd=folder)
    assert code == 0, f"{command}: {err}"
    return out


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


@pytest.mark.landing
@pytest.mark.parametrize("name", RECORDED)
def test_an_old_run_is_verified_and_read_as_before(name: str, tmp_path: Path) -> None:
    folder = unpack(name, tmp_path)
    assert {ledger.parent.name for ledger in folder.glob("*/run.sqlite")} == RECORDED[name].keys()
    for run, recorded in RECORDED[name].items():
        assert digest((folder / run / "run.sqlite").read_bytes()) == recorded["ledger"]
        verified = json.loads(output_of(folder, "verify", run, "--deep", "--json"))
        assert verified.pop("base") in (None, str(folder / "branch"))
        assert verified == recorded["verify"]
        for command, printed in recorded["printed"].items():
            assert digest(output_of(folder, *command.split()).encode()) == printed, command


@pytest.mark.parametrize(("table", "column"), [("records", "body"), ("records", "link"), ("texts", "content")])
def test_a_changed_byte_is_found(table: str, column: str, tmp_path: Path) -> None:
    folder = unpack("one_response", tmp_path)
    ledger = folder / "run" / "run.sqlite"
    with closing(sqlite3.connect(ledger)) as connection:
        rows = connection.execute(f"SELECT CAST({column} AS BLOB) FROM {table}").fetchall()
    content = bytearray(ledger.read_bytes())
    stored = rows[len(rows) // 2][0][:40]
    content[content.index(stored) + len(stored) // 2] ^= 1
    ledger.write_bytes(content)
    code, _, message = run_command("verify", "run", "--deep", cwd=folder)
    assert code == 5, message
