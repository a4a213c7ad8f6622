"""Modules in the folder of a config are imported only if the config names them by a dotted path."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jurygraph.errors import ConfigError
from jurygraph.sources import parse_config
from jurygraph.sources.user_modules import allow_modules_in_folder, import_module
from tests.rows import all_rows

RUNS = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the folder and what was imported from it."""
    before = set(sys.modules)
    for name, value in (("_folder", ""), ("_named", set()), ("_loaded", set())):
        monkeypatch.setattr(f"jurygraph.sources.user_modules.{name}", value)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def allow(folder: Path, evaluator: str) -> bool:
    return allow_modules_in_folder(parse_config({"evaluators": [evaluator]}), folder=folder)


def test_a_named_module_can_import_its_siblings_and_nobody_else_can(tmp_path: Path) -> None:
    (tmp_path / "manners.py").write_text("from wording import polite\n")
    (tmp_path / "wording.py").write_text("from words import WORD\n\n\ndef polite(task, response):\n    return WORD\n")
    (tmp_path / "words.py").write_text("WORD = 'please'\n")
    (tmp_path / "other.py").write_text(RUNS)
    assert allow(tmp_path, "manners.polite")
    assert import_module("manners").polite(None, None) == "please"
    with pytest.raises(ModuleNotFoundError):
        import_module("other")
    assert not (tmp_path / "ran").exists()


def test_a_folder_without_code_hides_no_installed_module(tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "tone.py").write_text("WORD = 'please'\n")
    assert allow(tmp_path, "checks.tone.polite")
    assert import_module("checks.tone").WORD == "please"


def test_a_module_that_is_importable_anyway_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "manners.py").write_text("WORD = 'please'\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert allow(tmp_path, "manners.polite")
    assert import_module("manners").WORD == "please"


def test_a_config_that_names_no_module_of_the_folder_allows_none(tmp_path: Path) -> None:
    (tmp_path / "manners.py").write_text(RUNS)
    assert not allow(tmp_path, "maths.accuracy")
    with pytest.raises(ModuleNotFoundError):
        import_module("manners")


STANDARD, INSTALLED = "a module of Python itself", "an installed module ("


@all_rows(
    ("name", "config", "owner"),
    [
        ("json", {"evaluators": ["json.polite"]}, STANDARD),
        ("colorsys", {"evaluators": ["maths.accuracy", {"use": "colorsys.polite"}]}, STANDARD),
        ("jinja2", {"evaluators": ["jinja2.polite"]}, INSTALLED),
        ("diskcache", {"evaluators": ["maths.accuracy"], "derivers": ["diskcache.polite"]}, INSTALLED),
        (
            "diskcache",
            {"evaluators": [{"use": "checks.constraints", "params": {"functions": {"one": "diskcache.polite"}}}]},
            INSTALLED,
        ),
        ("jinja2", {"evaluators": ["criteria"], "model": "langchain:jinja2.model"}, INSTALLED),
        (
            "jinja2",
            {
                "evaluators": ["criteria"],
                "components": {"rubric": {"combiner": "jinja2.Mean", "inputs": {"r": "criteria"}}},
            },
            INSTALLED,
        ),
    ],
)
def test_a_module_whose_name_is_taken_is_refused_before_anything_runs(
    tmp_path: Path, name: str, config: dict, owner: str
) -> None:
    (tmp_path / f"{name}.py").write_text(RUNS)
    with pytest.raises(ConfigError) as refused:
        allow_modules_in_folder(parse_config(config), folder=tmp_path)
    assert f"{name}.py next to the config has the same name as {owner}" in str(refused.value)
    assert f"; rename {name}.py, and name it so in the config" in str(refused.value)
    assert not (tmp_path / "ran").exists()
