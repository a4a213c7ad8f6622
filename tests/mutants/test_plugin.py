"""A mutant stands in for its module when that is imported; the reviewed list and the rooms name what is there."""

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from tests.mutants.equivalents import known_equivalents
from tests.mutants.plugin import cached_functions, import_mutant
from tests.mutants.rooms import ROOMS

SOURCE = """
from functools import cache

@cache
def constant():
    return 1
"""


def test_a_mutant_is_imported_in_place_of_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mutated.py"
    path.write_text(SOURCE, encoding="utf-8")
    monkeypatch.setattr(SourceFileLoader, "get_code", SourceFileLoader.get_code)  # it is put back
    import_mutant(str(path), SOURCE.replace("return 1", "return 2"))
    spec = importlib.util.spec_from_file_location("mutated", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.constant() == 2
    assert path.read_text(encoding="utf-8") == SOURCE
    assert cached_functions([str(path)]) == [module.constant]


def test_every_room_has_its_modules_and_tests() -> None:
    paths = {
        path.partition("::")[0] for room in ROOMS.values() for path in (*room.modules, *room.tests)
    }
    assert [
        path for path in sorted(paths) if not Path(__file__).parents[2].joinpath(path).exists()
    ] == []


def test_every_reviewed_mutant_is_one_of_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    known_equivalents()
    assert capsys.readouterr().out == ""


def test_an_entry_whose_line_is_gone_is_named_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module, reviewed = tmp_path / "one.py", tmp_path / "equivalent.toml"
    module.write_text("def f():\n    return 1\n")
    entry = "[[mutant]]\nmodule = '{}'\nfunction = 'f'\nbefore = '{}'\nafter = 'return 2'\nreason = 'none'\n"
    gone = tmp_path / "gone.py"
    reviewed.write_text(
        "".join(entry.format(*one) for one in ((module, "return 1"), (module, "no"), (gone, "no")))
    )
    assert known_equivalents(reviewed) == {(str(module), "f", "return 1", "return 2"): "none"}
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == [
        str(module),
        str(gone),
    ]
