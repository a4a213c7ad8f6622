"""Models inside installed packages."""

import sys
import zipfile
from pathlib import Path

import pytest

from jurygraph.errors import ConfigError
from jurygraph.models.embedding import open_embedder
from jurygraph.models.factory import find_file, find_model_folder
from tests.rows import all_rows

RUN = "raise AssertionError('its code was run')\n"


@pytest.fixture(autouse=True)
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two packages on the path: one with a model file, one with a zipped model."""
    for name in ("one_model", "zipped_model", "no_model"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(RUN)
    (tmp_path / "one_model" / "tiny.gguf").write_bytes(b"GGUF")
    with zipfile.ZipFile(tmp_path / "zipped_model" / "model.zip", "w") as archive:
        archive.writestr("modules.json", "[]")
        archive.writestr("1_Pooling/config.json", "{}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache" / "replies"))
    return tmp_path


def test_a_file_is_found_without_running_the_package(packages: Path) -> None:
    assert find_file("one_model/tiny.gguf") == packages / "one_model" / "tiny.gguf"
    assert "one_model" not in sys.modules


@all_rows(
    ("named", "problem"),
    [
        ("one_model/tiny.guf", "package 'one_model' has no such file; did you mean tiny.gguf?"),
        ("one_model", "package 'one_model' has no such file; it has __init__.py, tiny.gguf"),
        ("absent_model/tiny.gguf", "no package is imported as 'absent_model'; install it, and write its import name"),
        ("one-model/tiny.gguf", "no package is imported as 'one-model'; install it, and write its import name"),
        ("json/__init__.py/x", "package 'json' has no such file"),
    ],
)
def test_a_file_that_is_not_there_is_refused(named: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        find_file(named)
    assert problem in str(raised.value)


def test_a_zipped_model_is_unpacked_once(packages: Path) -> None:
    folder = find_model_folder("zipped_model")
    assert (folder.parent, folder.name[:13]) == (packages / "cache" / "models", "zipped_model-")
    assert sorted(path.name for path in folder.rglob("*.json")) == ["config.json", "modules.json"]
    before = folder.stat().st_mtime_ns
    assert find_model_folder("zipped_model") == folder
    assert folder.stat().st_mtime_ns == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name], "nothing half unpacked is left"


def test_a_package_may_hold_its_model_as_it_is(packages: Path) -> None:
    (packages / "no_model" / "modules.json").write_text("[]")
    assert find_model_folder("no_model") == packages / "no_model"


def test_a_package_without_a_model_and_a_broken_zip_are_refused(packages: Path) -> None:
    with pytest.raises(ConfigError, match="holds no model: it has no modules"):
        open_embedder("sentence-transformers:package:no_model")
    (packages / "zipped_model" / "model.zip").write_bytes(b"PK, cut short")
    with pytest.raises(ConfigError, match=r"model.zip: cannot be unpacked .*; install its package again"):
        find_model_folder("zipped_model")
    assert list((packages / "cache" / "models").iterdir()) == []
