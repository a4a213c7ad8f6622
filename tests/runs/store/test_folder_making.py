"""The folder of a run is made, named and refused in words that say what to type."""

import hashlib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from jurygraph.errors import InputError
from jurygraph.runs.store.folder import (
    CONFIG,
    LEDGER,
    LOCK,
    SEAL,
    config_text,
    digest,
    make,
    refuse_foreign,
    require,
    typed,
    unmake,
)
from jurygraph.sources import parse_config


@pytest.mark.parametrize(
    ("folder", "word"), [("run", "run"), ("my run", "'my run'"), ("-run", "./-run"), ("a/-run", "a/-run")]
)
def test_a_folder_is_named_as_it_is_typed(folder: str, word: str) -> None:
    assert typed(Path(folder)) == word


class TestRequired:
    def test_a_folder_with_a_ledger_is_a_run(self, tmp_path: Path) -> None:
        (tmp_path / LEDGER).touch()
        require(tmp_path)

    def test_one_of_the_first_schema_version_is_to_be_migrated(self, tmp_path: Path) -> None:
        (tmp_path / "run.json").touch()
        how = rf"is a run of schema version 1; `jurygraph migrate {tmp_path} TASKS --out NEW` brings it over"
        with pytest.raises(InputError, match=how):
            require(tmp_path)

    def test_anything_else_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        for folder, state in (
            (tmp_path, "holds no run"),
            (tmp_path / "file", "is no folder"),
            (tmp_path / "x", "does"),
        ):
            with pytest.raises(InputError, match=rf"{state}.*; name the folder that `jurygraph score --out` made"):
                require(folder)


class TestMade:
    def test_what_was_missing_is_told_the_innermost_first_and_taken_away_again(self, tmp_path: Path) -> None:
        folder = tmp_path / "a" / "b"
        made = make(folder)
        assert made == [folder, tmp_path / "a"]
        for name in (LEDGER, LOCK):
            (folder / name).touch()
        unmake(folder, made)
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_was_there_stays_and_so_does_its_seal(self, tmp_path: Path) -> None:
        assert make(tmp_path) == []
        for name in (LEDGER, SEAL):
            (tmp_path / name).touch()
        unmake(tmp_path, [])
        assert [one.name for one in tmp_path.iterdir()] == [SEAL]

    def test_where_none_can_be_made_it_says_so(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        wrong = r"cannot be made \(Not a directory\); name a folder that you may write to with --out"
        with pytest.raises(InputError, match=wrong):
            make(tmp_path / "file" / "run")

    def test_no_run_is_made_among_other_things(self, tmp_path: Path) -> None:
        refuse_foreign(tmp_path)
        refuse_foreign(tmp_path / "not there")
        (tmp_path / "letter.txt").touch()
        with pytest.raises(InputError, match="is no run, and not empty; name another folder with --out"):
            refuse_foreign(tmp_path)
        with pytest.raises(InputError, match=r"letter\.txt: is a file; name a folder with --out"):
            refuse_foreign(tmp_path / "letter.txt")


def test_the_copy_of_a_config_is_yaml_with_a_warning_on_top() -> None:
    config = parse_config({"evaluators": ["criteria"], "failure": {"min_coverage": 0.5}})
    text = config_text(config)
    assert text.startswith(b"# Every setting of this run, defaults included.")
    assert YAML(typ="safe").load(text) == config.model_dump(mode="json")
    assert digest(text) == hashlib.sha256(text).hexdigest()
    assert CONFIG == "config.yaml"
