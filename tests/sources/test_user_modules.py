"""Modules in the folder of a config are imported only if the config names them by a dotted path."""

import importlib
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jurygraph.errors import ConfigError
from jurygraph.sources import parse_config_mapping
from jurygraph.sources.user_modules import FolderModules, import_module, importing_from
from tests.rows import all_rows

RUNS = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"


def modules_of(folder: Path, evaluator: str) -> FolderModules:
    return FolderModules(folder, parse_config_mapping({"evaluators": [evaluator]}))


def test_a_named_module_can_import_its_siblings_and_nobody_else_can(tmp_path: Path) -> None:
    (tmp_path / "manners.py").write_text("from wording import polite\n")
    (tmp_path / "wording.py").write_text(
        "from words import WORD\n\n\ndef polite(task, response):\n    return WORD\n"
    )
    (tmp_path / "words.py").write_text("WORD = 'please'\n")
    (tmp_path / "other.py").write_text(RUNS)
    with importing_from(modules_of(tmp_path, "manners.polite")):
        assert import_module("manners").polite(None, None) == "please"
        with pytest.raises(ModuleNotFoundError):
            import_module("other")
    assert not (tmp_path / "ran").exists()
    assert not {"manners", "wording", "words"} & sys.modules.keys()


INSIDE = "def polite(task, response):\n    import wording.words as words\n    from wording import closing\n"
INSIDE += "    return words.WORD + closing.WORD + __import__('wording').WORD\n"


def make_folder(folder: Path, word: str) -> Path:
    """Write a module that imports its siblings, modules of a package, inside a function."""
    (folder / "wording").mkdir(parents=True)
    (folder / "manners.py").write_text(INSIDE)
    (folder / "wording" / "__init__.py").write_text(f"WORD = '{word}'\n")
    (folder / "wording" / "words.py").write_text("from . import WORD\n")
    (folder / "wording" / "closing.py").write_text("from wording.words import WORD\n")
    return folder


def test_two_folders_have_modules_of_one_name_and_each_uses_its_own_also_inside_functions(
    tmp_path: Path,
) -> None:
    polite = []
    for word in "abc":
        modules = modules_of(make_folder(tmp_path / word, word), "manners.polite")
        polite.append(modules.import_module("manners").polite)
    with ThreadPoolExecutor() as pool:
        words = list(pool.map(lambda function: function(None, None), polite * 10))
    assert words == ["aaa", "bbb", "ccc"] * 10


def test_changed_files_are_imported_anew_and_what_is_imported_stays(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "a", "first")
    before = modules_of(folder, "manners.polite").import_module("manners").polite
    same = modules_of(folder, "manners.polite").import_module("manners").polite
    (folder / "wording" / "__init__.py").write_text("WORD = 'second'\n")
    after = modules_of(folder, "manners.polite").import_module("manners").polite
    assert after(None, None) == "second" * 3
    folder.rename(tmp_path / "b")
    make_folder(folder, "another")
    other = modules_of(folder, "manners.polite").import_module("manners").polite
    assert same is before
    assert [polite(None, None) for polite in (after, other)] == ["second" * 3, "another" * 3]


def test_a_sibling_with_the_name_of_an_installed_module_is_not_run_in_its_place(
    tmp_path: Path,
) -> None:
    code = "def polite(task, response):\n    import diskcache, json\n    return json.dumps(1)\n"
    (tmp_path / "manners.py").write_text(code)
    polite = modules_of(tmp_path, "manners.polite").import_module("manners").polite
    assert polite(None, None) == "1"
    for name in ("json", "diskcache"):
        (tmp_path / f"{name}.py").write_text(RUNS)
    polite = modules_of(tmp_path, "manners.polite").import_module("manners").polite
    with pytest.raises(
        ImportError,
        match=r"^diskcache.py next to the config has the same name as an installed module",
    ):
        polite(None, None)
    assert not (tmp_path / "ran").exists()


def test_a_folder_without_code_hides_no_installed_module(tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "tone.py").write_text("WORD = 'please'\n")
    assert modules_of(tmp_path, "checks.tone.polite").import_module("checks.tone").WORD == "please"


def test_a_module_that_is_importable_anyway_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "manners.py").write_text("WORD = 'please'\n")
    monkeypatch.syspath_prepend(tmp_path)
    modules = modules_of(tmp_path, "manners.polite")
    assert (
        modules.import_module("manners")
        is importlib.import_module("manners")
        is sys.modules.pop("manners")
    )


def test_a_config_that_names_no_module_of_the_folder_allows_none(tmp_path: Path) -> None:
    (tmp_path / "manners.py").write_text(RUNS)
    modules = modules_of(tmp_path, "maths.accuracy")
    assert not modules.named
    with pytest.raises(ModuleNotFoundError):
        modules.import_module("manners")


STANDARD, INSTALLED = "a module of Python itself", "an installed module ("


@all_rows(
    ("name", "config", "owner"),
    [
        ("json", {"evaluators": ["json.polite"]}, STANDARD),
        ("colorsys", {"evaluators": ["maths.accuracy", {"use": "colorsys.polite"}]}, STANDARD),
        ("jinja2", {"evaluators": ["jinja2.polite"]}, INSTALLED),
        (
            "diskcache",
            {"evaluators": ["maths.accuracy"], "derivers": ["diskcache.polite"]},
            INSTALLED,
        ),
        (
            "diskcache",
            {
                "evaluators": [
                    {
                        "use": "checks.constraints",
                        "params": {"functions": {"one": "diskcache.polite"}},
                    }
                ]
            },
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
        FolderModules(tmp_path, parse_config_mapping(config))
    assert f"{name}.py next to the config has the same name as {owner}" in str(refused.value)
    assert f"; rename {name}.py, and name it so in the config" in str(refused.value)
    assert not (tmp_path / "ran").exists()
