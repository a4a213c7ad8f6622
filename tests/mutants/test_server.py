"""A mutant lives in the functions of its process alone, wherever they are held."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.mutants.equivalents import known_equivalents
from tests.mutants.rooms import ROOMS
from tests.mutants.server import _apply, _caches, _clear

SOURCE = """
from functools import cache

class Counter:
    def __init__(self, step=1, *, start=0):
        self.step, self.count = step, start

    @property
    def doubled(self):
        return self.count * 2

    def added(self, times):
        return [self.count + self.step * n for n in range(times)]


def adder(step):
    def add(number):
        return number + step

    return add


add_one = adder(1)


@cache
def constant():
    return 1
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = tmp_path / "mutated.py"
    path.write_text(SOURCE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("mutated", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutated", made)
    spec.loader.exec_module(made)
    return made


def mutate(module: ModuleType, before: str, after: str) -> bool:
    assert before in SOURCE
    return _apply({"module": module.__file__, "source": SOURCE.replace(before, after)})


@pytest.mark.parametrize(
    ("before", "after", "read", "values"),
    [
        ("self.count * 2", "self.count / 2", lambda module: module.Counter(start=8).doubled, (16, 4)),
        ("self.count + self", "self.count - self", lambda module: module.Counter().added(3), ([0, 1, 2], [0, -1, -2])),
        ("step=1", "step=2", lambda module: module.Counter().step, (1, 2)),
        ("start=0", "start=1", lambda module: module.Counter().count, (0, 1)),
        ("start=0", "start=-1", lambda module: module.Counter().count, (0, -1)),
        ("number + step", "number - step", lambda module: module.add_one(5), (6, 4)),
    ],
    ids=[
        "property",
        "comprehension",
        "default",
        "keyword default",
        "negative default",
        "closure that was there before",
    ],
)
def test_the_live_functions_change_and_the_file_does_not(
    module: ModuleType, before: str, after: str, read: Any, values: tuple[Any, Any]
) -> None:
    assert read(module) == values[0]
    assert mutate(module, before, after)
    assert read(module) == values[1]
    assert Path(str(module.__file__)).read_text(encoding="utf-8") == SOURCE


def test_what_changes_no_function_is_told(module: ModuleType) -> None:
    assert not mutate(module, "add_one = adder(1)", "add_one = adder(2)")


def test_an_object_whose_class_cannot_be_read_is_passed_over(module: ModuleType) -> None:
    class Classless:
        @property  # type: ignore[misc]
        def __class__(self) -> type:  # type: ignore[override]
            raise RuntimeError("no class")

    held = [Classless()]
    assert mutate(module, "number + step", "number - step")
    assert held


def test_what_a_function_has_kept_is_forgotten(module: ModuleType) -> None:
    assert module.constant() == 1
    assert mutate(module, "return 1", "return 2")
    assert module.constant() == 1
    _clear(_caches([str(module.__file__)]))
    assert module.constant() == 2


def test_every_room_has_its_modules_and_tests() -> None:
    paths = {path.partition("::")[0] for room in ROOMS.values() for path in (*room.modules, *room.tests)}
    assert [path for path in sorted(paths) if not Path(__file__).parents[2].joinpath(path).exists()] == []


def test_an_entry_whose_line_is_gone_is_named_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module, reviewed = tmp_path / "one.py", tmp_path / "equivalent.toml"
    module.write_text("def f():\n    return 1\n")
    entry = "[[mutant]]\nmodule = '{}'\nfunction = 'f'\nbefore = '{}'\nafter = 'return 2'\nreason = 'none'\n"
    gone = tmp_path / "gone.py"
    reviewed.write_text("".join(entry.format(*one) for one in ((module, "return 1"), (module, "no"), (gone, "no"))))
    assert known_equivalents(reviewed) == {(str(module), "f", "return 1", "return 2"): "none"}
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == [str(module), str(gone)]
