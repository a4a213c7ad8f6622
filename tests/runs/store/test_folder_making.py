"""The folder of a run: creation, names and refusals."""

import os
import re
import zipfile
from pathlib import Path

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.store.folder import (
    CONFIG_FILE,
    LEDGER_FILE,
    LOCK_FILE,
    PLANNING_FILE,
    SEAL_FILE,
    create_folder,
    encode_config,
    refuse_foreign_files,
    refuse_links,
    remove_discarded_run,
    require_run,
)
from jurygraph.sources import parse_config_mapping


class TestRequireRun:
    def test_other_folders_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        for folder, state in (
            (tmp_path, "contains no run"),
            (tmp_path / "file", "is not a folder"),
            (tmp_path / "x", "does"),
        ):
            with pytest.raises(
                InputError, match=rf"{state}.*; name the folder that `jurygraph score --out` made"
            ):
                require_run(folder)

    def test_a_bundle_is_to_be_unpacked(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
            archive.writestr("verify.py", "")
        with pytest.raises(
            InputError,
            match="is a zip file and no run; if it is an audit bundle, unpack it and run",
        ):
            require_run(tmp_path / "b.zip")
        (tmp_path / "b.zip").rename(tmp_path / "answers.xlsx")
        with pytest.raises(InputError, match=r"answers\.xlsx: is not a folder; name the folder"):
            require_run(tmp_path / "answers.xlsx")


class TestCreateFolder:
    def test_created_folders_are_returned_and_removed_again(self, tmp_path: Path) -> None:
        folder = tmp_path / "a" / "b"
        made = create_folder(folder)
        assert made == [folder, tmp_path / "a"]
        for name in (LEDGER_FILE, LOCK_FILE):
            (folder / name).touch()
        remove_discarded_run(folder, made)
        assert list(tmp_path.iterdir()) == []

    def test_an_existing_folder_and_its_seal_are_kept(self, tmp_path: Path) -> None:
        assert create_folder(tmp_path) == []
        for name in (LEDGER_FILE, SEAL_FILE):
            (tmp_path / name).touch()
        remove_discarded_run(tmp_path, [])
        assert [one.name for one in tmp_path.iterdir()] == [SEAL_FILE]

    def test_the_calls_of_an_unfinished_planning_are_kept(self, tmp_path: Path) -> None:
        folder = tmp_path / "run"
        made = create_folder(folder)
        for name in (LEDGER_FILE, PLANNING_FILE, f"{PLANNING_FILE}-wal"):
            (folder / name).touch()
        remove_discarded_run(folder, made)
        assert sorted(one.name for one in folder.iterdir()) == [
            PLANNING_FILE,
            f"{PLANNING_FILE}-wal",
        ]
        with pytest.raises(
            InputError,
            match=r"contains no run yet: planning was interrupted .*, or no group is recorded so far",
        ):
            require_run(folder)

    def test_a_folder_is_accessible_to_its_owner_only(self, tmp_path: Path) -> None:
        before = os.umask(0)
        try:
            create_folder(tmp_path / "run")
        finally:
            os.umask(before)
        assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700

    def test_a_folder_that_cannot_be_created_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        wrong = (
            r"cannot be made \(Not a directory\); name a folder that you may write to with --out"
        )
        with pytest.raises(InputError, match=wrong):
            create_folder(tmp_path / "file" / "run")

    def test_a_folder_with_other_files_is_refused(self, tmp_path: Path) -> None:
        refuse_foreign_files(tmp_path)
        refuse_foreign_files(tmp_path / "not there")
        (tmp_path / "letter.txt").touch()
        with pytest.raises(
            InputError, match="is neither a run nor empty; name another folder with --out"
        ):
            refuse_foreign_files(tmp_path)
        with pytest.raises(InputError, match=r"letter\.txt: is a file; name a folder with --out"):
            refuse_foreign_files(tmp_path / "letter.txt")

    def test_leftovers_of_an_unfinished_run_are_accepted(self, tmp_path: Path) -> None:
        (tmp_path / CONFIG_FILE).write_bytes(
            encode_config(parse_config_mapping({"evaluators": ["criteria"]}))
        )
        for name in (LOCK_FILE, f"{LEDGER_FILE}-wal", f"{LEDGER_FILE}-shm"):
            (tmp_path / name).touch()
        refuse_foreign_files(tmp_path)

    def test_a_foreign_config_is_not_overwritten(self, tmp_path: Path) -> None:
        (tmp_path / CONFIG_FILE).write_text("mine: true")
        with pytest.raises(InputError, match="is neither a run nor empty"):
            refuse_foreign_files(tmp_path)

    def test_the_log_of_a_missing_ledger_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / f"{LEDGER_FILE}-wal").write_bytes(b"records")
        wrong = rf"{LEDGER_FILE}-wal: is the log of a {LEDGER_FILE} that is not there; restore {LEDGER_FILE} next to it"
        with pytest.raises(InputError, match=wrong):
            refuse_foreign_files(tmp_path)

    @pytest.mark.parametrize(
        ("kind", "what"), [("link", "a symbolic link"), ("folder", "not a regular file")]
    )
    def test_links_and_folders_in_place_of_files_are_refused(
        self, tmp_path: Path, kind: str, what: str
    ) -> None:
        refuse_links(tmp_path)
        (tmp_path / LEDGER_FILE).touch()
        refuse_links(tmp_path)
        seal = tmp_path / SEAL_FILE
        seal.mkdir() if kind == "folder" else seal.symlink_to("nowhere")
        with pytest.raises(
            InputError, match=rf"^{re.escape(str(seal))}: is {what}, .*; put the file there$"
        ):
            refuse_links(tmp_path)
