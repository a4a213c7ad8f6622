"""From a name in the config to an evaluator, deriver or combiner: by name, dotted path, entry point."""

import importlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jurygraph import ConfigError, Deriver, Evaluator, EvaluatorInput, Jury, Response, Task
from jurygraph.agents import registry
from jurygraph.agents.functions import REGISTERED_EVALUATORS
from jurygraph.agents.registry import (
    BUILTIN_COMBINER_PATHS,
    BUILTIN_EVALUATOR_PATHS,
    import_objects_by_name,
    load_combiner,
    load_deriver,
    load_evaluator,
)
from jurygraph.schema import DeriverUse, EvaluatorUse
from jurygraph.schema.frozen_model import ParamsModel
from jurygraph.sources.user_modules import FolderModules, importing_from
from tests.rows import all_rows

TASK = Task(id="t", query="q")
RESPONSES = [Response(id="s", text="ab"), Response(id="l", text="abcdef")]

MODULE = """
from langchain_core.runnables import RunnableLambda
import jurygraph as jg


def plain(task, response, limit=3):
    return len(response.text) <= limit


@jg.evaluator(name="found_by_name")
def decorated(task, response):
    return 0.5


class Tone(jg.Evaluator):
    def __init__(self, limit: int = 3) -> None:
        self.limit = limit

    def answer(self, ask):
        return len(ask.response.text) <= self.limit


class Unfinished(jg.Evaluator):
    pass


class Counter:
    def __call__(self, *, outputs):
        return len(outputs) < 9


class Words(jg.Deriver):
    gives = "words"

    def __init__(self, of: str = "text") -> None:
        self.of = of

    def derive(self, ask):
        return jg.Material(name="words", data=ask.response.text.split())


class Dated(Words):
    version = property(lambda self: "of 2026")


class GivesNothing(jg.Deriver):
    def derive(self, ask):
        return jg.Material(name="x")


class Own(jg.Combiner):
    name = "own"

    def combine(self, cells, params):
        raise NotImplementedError


runnable = RunnableLambda(lambda state: 0.25)
ready, words = Tone(limit=5), Words()
number = 3
"""


@pytest.fixture(autouse=True)
def _package_of_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package `mine` on the path; modules and registrations of a test go with it."""
    registered, modules = dict(REGISTERED_EVALUATORS), set(sys.modules)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text("")
    (tmp_path / "mine" / "mod.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    registry.find_plugin_paths.cache_clear()
    yield
    registry.find_plugin_paths.cache_clear()
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] == "mine":
            del sys.modules[name]
    REGISTERED_EVALUATORS.clear()
    REGISTERED_EVALUATORS.update(registered)


def evaluator(use: str, **fields: Any) -> Evaluator:
    return load_evaluator(EvaluatorUse(use=use, **fields))


def deriver(use: str, **fields: Any) -> Deriver:
    return load_deriver(DeriverUse(use=use, **fields))


def scores(use: Any) -> list[float | None]:
    with Jury.from_config({"evaluators": [use]}) as jury:
        return [trace.verdicts[0].score for trace in jury.score(TASK, RESPONSES)]


# Known names


@all_rows(
    ("use", "expected"),
    [
        ("mine.mod.plain", [1.0, 0.0]),
        ("mine.mod:plain", [1.0, 0.0]),
        ("mine.mod.decorated", [0.5, 0.5]),
        ("mine.mod.Tone", [1.0, 0.0]),
        ({"use": "mine.mod.Tone", "params": {"limit": 9}}, [1.0, 1.0]),
        ({"use": "mine.mod.plain", "params": {"limit": 9}}, [1.0, 1.0]),
        ("mine.mod.ready", [1.0, 0.0]),
        ("mine.mod:runnable", [0.25, 0.25]),
    ],
)
def test_a_dotted_path_finds_a_function_a_class_an_instance_a_runnable(
    use: Any, expected: list[float]
) -> None:
    assert scores(use) == expected


VERSION = re.compile(r"\d( |$)")
"""A version that its author writes down, and not one of the source."""


@all_rows("name", BUILTIN_EVALUATOR_PATHS)
def test_every_builtin_evaluator_can_be_loaded(name: str) -> None:
    history = {"dimensions": "ideas", "shots": 0}
    needed = {"zero-shot": history, "aggregate": history, "personalized": history}
    needed |= {
        "similarity": {"embedder": "openai-compatible:http://127.0.0.1:9/v1#tiny"},
        "ranker": {"ranker": "openai-compatible:http://127.0.0.1:9/v1#tiny"},
    }
    needed["trajectory.budget"] = {"max_calls": 9}
    made = evaluator(name, params=needed.get(name, {}))
    assert (made.name, isinstance(made, Evaluator), made.bounds_its_time) == (name, True, True)
    assert VERSION.match(made.version)


@all_rows("name", BUILTIN_COMBINER_PATHS)
def test_every_builtin_combiner_can_be_loaded(name: str) -> None:
    made = load_combiner(name)
    assert made.name == name
    assert VERSION.match(made.version)


# Entry points


def install(folder: Path, group: str, points: dict[str, str]) -> None:
    info = folder / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    lines = "\n".join(f"{name} = {value}" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{lines}\n")
    importlib.invalidate_caches()


def test_an_installed_evaluator_is_found_by_its_entry_point(tmp_path: Path) -> None:
    install(
        tmp_path,
        "jurygraph.evaluators",
        {"brevity": "mine.mod:plain", "dotted.name": "mine.mod:Tone"},
    )
    assert scores("brevity") == [1.0, 0.0]
    assert scores("dotted.name") == [1.0, 0.0]
    assert evaluator("brevity").name == "brevity"


# Unknown names


@all_rows(
    ("use", "message"),
    [
        ("maths.acuracy", "unknown evaluator 'maths.acuracy'; did you mean maths.accuracy?"),
        ("found_by_nam", "unknown evaluator 'found_by_nam'; did you mean found_by_name?"),
        ("nobody.tone", "unknown evaluator 'nobody.tone'; module 'nobody' was not found"),
        ("mine.gone.tone", "unknown evaluator 'mine.gone.tone'"),
        ("mine.mod.plian", "module 'mine.mod' has no 'plian'; did you mean plain?"),
        (".tone", "unknown evaluator '.tone'"),
        ("mine.mod.number", "'mine.mod.number' is not an evaluator.*found int"),
        ("mine.mod.Words", "'mine.mod.Words' is not an evaluator: it is a deriver"),
        (
            "mine.mod.Counter",
            "'mine.mod.Counter' is not an evaluator: it is a class; subclass .* an instance",
        ),
        ("mine.mod", "'mine.mod' is not an evaluator.*found module"),
        (
            "mine.mod.Unfinished",
            "evaluator 'mine.mod.Unfinished' is abstract: subclass it and write `answer`",
        ),
        (
            "jurygraph.JudgeEvaluator",
            "'jurygraph.JudgeEvaluator' is abstract: .* write .*`prompt`",
        ),
        ("jurygraph.Evaluator", "'jurygraph.Evaluator' is abstract"),
    ],
)
def test_an_unknown_evaluator_is_refused_with_the_nearest_known_one(use: str, message: str) -> None:
    importlib.import_module("mine.mod")
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        evaluator(use)


def test_a_module_that_is_not_found_is_said_to_be_missing_in_the_folder_of_the_config(
    tmp_path: Path,
) -> None:
    problem = f"module 'nobody' was not found in {tmp_path.resolve()}, and is not installed: check its name"
    with (
        importing_from(FolderModules(tmp_path)),
        pytest.raises(ConfigError, match=re.escape(problem)),
    ):
        evaluator("nobody.tone")


def test_the_code_that_a_param_names_is_imported_or_refused_with_the_param() -> None:
    paths = {"dotted": "json.dumps", "colon": "json:dumps"}
    found = import_objects_by_name("functions", paths, "__call__", "a function")
    assert found == dict.fromkeys(paths, json.dumps)
    for path, message in {
        "json.dmups": "name 'json.dmups': module 'json' has no 'dmups'; did you mean dumps?",
        "no_such_package.name": "unknown name 'no_such_package.name'; module 'no_such_package' was not found",
        "dumps": "unknown name 'dumps'; name one as package.module.name",
        ".dumps": "unknown name '.dumps'",
        "json.__name__": "'json.__name__' is of type str; name a function",
    }.items():
        with pytest.raises(ConfigError, match=re.escape(f"functions.f: {message}")):
            import_objects_by_name("functions", {"f": path}, "__call__", "a function")


@pytest.mark.parametrize(
    ("use", "message"),
    [
        ("words", "unknown deriver 'words'; name one as package.module.deriver"),
        ("mine.mod.Tone", "'mine.mod.Tone' is not a deriver"),
        ("builtins.dict", "'builtins.dict' is not a deriver"),
        ("mine.mod.GivesNothing", "'mine.mod.GivesNothing' is not a deriver.*set `gives`"),
    ],
)
def test_an_unknown_deriver_is_refused(use: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        deriver(use)


def test_an_unknown_combiner_is_told_which_there_are() -> None:
    ours = r"as package\.module\.combiner, or write mean, product, .*bradley-terry"
    with pytest.raises(ConfigError, match=f"unknown combiner 'average'; name one {ours}"):
        registry.load_combiner("average")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "import not_installed_anywhere",
            "No module named 'not_installed_anywhere'; install what it needs, or fix it",
        ),
        ("from mine import nothing_there", "cannot import name 'nothing_there' from 'mine'"),
        (
            "from mine.mod import nothing_there",
            "cannot import name 'nothing_there' from 'mine.mod'",
        ),
        ("def tone(:", "invalid syntax .*; fix it"),
        ("class Other:\n    prompt = 1 / 0\n", "division by zero; fix it"),
    ],
)
def test_a_module_whose_own_import_fails_shows_that_failure(
    tmp_path: Path, source: str, message: str
) -> None:
    (tmp_path / "mine" / "broken.py").write_text(f"{source}\n")
    importlib.invalidate_caches()
    with pytest.raises(
        ConfigError, match=rf"^module 'mine.broken' cannot be imported( \(.*\))?: .*{message}"
    ) as raised:
        evaluator("mine.broken.tone")
    place = " (broken.py, line 2, in Other): ZeroDivisionError"
    assert (place in str(raised.value)) == ("Other" in source)


def test_a_class_that_raises_on_construction_is_reported(tmp_path: Path) -> None:
    source = "import jurygraph as jg\nclass Bad(jg.Evaluator):\n    def __init__(self): raise OSError('no disk')\n"
    (tmp_path / "mine" / "bad.py").write_text(source + "    def answer(self, ask): return 1.0\n")
    importlib.invalidate_caches()
    with pytest.raises(ConfigError, match=r"'mine.bad.Bad' cannot be made: OSError: no disk"):
        evaluator("mine.bad.Bad")


def test_a_frozen_class_that_takes_no_version_is_reported() -> None:
    @dataclass(frozen=True)
    class Frozen(Evaluator):
        name = "frozen"

        def answer(self, inputs: EvaluatorInput) -> float:
            return 1.0

    with pytest.raises(ConfigError, match="'frozen' cannot be made: FrozenInstanceError"):
        registry.make_instance("evaluator", "frozen", Frozen, {})


# Params and instances


@all_rows(
    ("use", "params", "message"),
    [
        (
            "mine.mod.Tone",
            {"limti": 3},
            "'mine.mod.Tone' cannot be made: .*got an unexpected keyword .*; its params: limit; did you mean limit\\?$",
        ),
        ("mine.mod.plain", {"limti": 3}, "got an unexpected keyword argument 'limti'"),
        (
            "mine.mod.ready",
            {"limit": 3},
            "evaluator 'mine.mod.ready' is already set up and takes no params here; leave them out",
        ),
        ("mine.mod.runnable", {"limit": 3}, "is a Runnable and takes no params"),
        ("maths.format", {"limti": 3}, "maths.format: params.limti: unknown; leave it out"),
    ],
)
def test_params_that_do_not_fit_are_refused(use: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        evaluator(use, params=params)


def test_files_that_are_read_are_defaults_of_a_model_or_attributes_of_an_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Listed(Evaluator):
        reads = ("names",)

        class Params(ParamsModel):
            names: str | None = "names.txt"

        settings: Params

        def answer(self, inputs: EvaluatorInput) -> bool:
            return Path(self.settings.names or "").is_absolute()

    monkeypatch.chdir(tmp_path)
    (tmp_path / "names.txt").write_text("Ann")
    for target, path in ((Listed, str(tmp_path / "names.txt")), (Listed(), "names.txt")):
        loaded = load_evaluator(EvaluatorUse(use=target))
        assert loaded.settings.names == path
        assert " reads names 17239b6e" in loaded.version
    without = load_evaluator(EvaluatorUse(use=Listed, params={"names": None}))
    assert "reads" not in without.version
    assert deriver("mine.mod.Dated").version == "of 2026", "a property, as no file is added"
    listed = Listed()
    listed.names = ["Ann"]
    with pytest.raises(ConfigError, match=r"is a list; .* give the class of this object"):
        load_evaluator(EvaluatorUse(use=listed))
