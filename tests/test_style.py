"""The project's own bounds on its code, where ruff has none: see also pyproject.toml."""

import ast
import importlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import jurygraph
from tests.determinism import violations
from tests.rows import all_rows

PACKAGE = Path(jurygraph.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_MODULE_LINES = 1000
"""In lines; functions are bounded by statements, in pyproject.toml."""


@cache
def _trees() -> Mapping[Path, ast.Module]:
    """Return the syntax of every module; parsed by the tests that read it, not by each process that collects tests."""
    return {module: ast.parse(module.read_text(encoding="utf-8")) for module in MODULES}


def test_a_module_can_be_read_in_one_go() -> None:
    lengths = {
        str(module): len(module.read_text(encoding="utf-8").splitlines()) for module in MODULES
    }
    assert {name: lines for name, lines in lengths.items() if lines > MAX_MODULE_LINES} == {}


def test_a_statement_does_one_thing() -> None:
    """At most one assignment of a tuple to a tuple in a thousand lines: they pack what belongs apart."""
    packed = [
        f"{module}:{node.lineno}"
        for module, tree in _trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
        and len(node.targets[0].elts) == len(node.value.elts)
    ]
    lines = sum(len(module.read_text(encoding="utf-8").splitlines()) for module in MODULES)
    assert len(packed) <= lines / 1000, packed


def test_a_public_class_or_alias_has_a_name_of_its_own() -> None:
    """A type variable of one letter may stand in many modules."""
    modules: dict[str, list[str]] = {}
    for module, tree in _trees().items():
        # a user's own code, or to be read alone
        if "templates" in module.parts or module.name == "offline_verifier.py":
            continue
        for name in filter(None, map(_type_name, tree.body)):
            modules.setdefault(name, []).append(str(module.relative_to(PACKAGE)))
    assert {name: found for name, found in modules.items() if len(found) > 1} == {}


def _type_name(node: ast.stmt) -> str | None:
    """Return the public name of a class, or of an alias or type variable that has more than one letter."""
    name = ""
    if isinstance(node, ast.ClassDef):
        name = node.name
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        name = node.targets[0].id
    is_type = re.fullmatch("[A-Z][A-Za-z]*[a-z][A-Za-z]*", name)
    return name if is_type else None


def test_code_that_a_test_hands_to_another_process_imports_what_there_is() -> None:
    """Such code is a text, which mypy does not read; the tests that run it may be rare."""
    import_line = re.compile(r"^\s*from (jurygraph[\w.]*) import (\w+)$", re.MULTILINE)
    missing = [
        f"{test}: {name} of {module}"
        for test in Path(__file__).parent.rglob("test_*.py")
        for module, name in import_line.findall(test.read_text(encoding="utf-8"))
        if not hasattr(importlib.import_module(module), name)
        and not (PACKAGE.parent / module.replace(".", "/") / f"{name}.py").exists()
    ]
    assert missing == []


def test_docstrings_name_what_the_code_has() -> None:
    """Members in backticks (`Run.trace`), and the entries under Attributes and Args: a rename leaves none behind."""
    members: dict[str, set[str]] = {}
    for tree in _trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                members.setdefault(node.name, set()).update(_names_within(node))
    stale = []
    for module, tree in _trees().items():
        for node in ast.walk(tree):
            if not isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ):
                continue
            docstring = ast.get_docstring(node) or ""
            entries = re.search(r"^(?:Attributes|Args):\n((?: {4}.*\n?)+)", docstring, re.MULTILINE)
            named = re.findall(r"^ {4}(\w+): ", entries[1], re.MULTILINE) if entries else []
            if named:
                names = _names_within(node)
                stale += [f"{module}: {name}" for name in named if name not in names]
            for owner, name in re.findall(r"`([A-Z]\w*[a-z]\w*)\.(\w+)`", docstring):
                if name not in _inherited_names(owner, members):
                    stale.append(f"{module}: {owner}.{name}")
    assert stale == []


def _names_within(node: ast.AST) -> set[str]:
    """Return the names of what a class or function binds, and of the base classes."""
    found = set()
    for part in ast.walk(node):
        for field in ("id", "attr", "arg", "name"):
            name = getattr(part, field, None)
            if isinstance(name, str):
                found.add(name)
    return found


def _inherited_names(owner: str, members: Mapping[str, set[str]]) -> set[str]:
    """Return the names of a class of the package with those of the classes that it names."""
    own = members.get(owner, set())
    return own.union(*(members.get(name, set()) for name in own))


DETERMINISTIC_MODULES: Mapping[str, Mapping[str, set[str]]] = {
    "decision/table.py": {
        scope: {"reduce"}
        for scope in (
            "VerdictTable._adjust_turn_columns",
            "VerdictTable.count_discarded",
            "VerdictTable.judged_and_requested_weight",
            "_fill_cells",
            "_reduce_question_columns",
        )
    },
    "decision/recipe.py": {
        scope: {"reduce"}
        for scope in (
            "_build_component_input",
            *(
                f"_ComponentSpecBuilder.{name}"
                for name in (
                    "_evaluator_spec",
                    "_check_component_inputs",
                    "_set_evaluator_fold",
                    "_calibration_of_input",
                )
            ),
        )
    },
    "decision/weighting.py": {},
    "graphs/answers.py": {},
    "graphs/calls.py": {},
    "graphs/prepare_graph.py": {},
    "graphs/survey.py": {},
    "graphs/routing.py": {"_reduce_scores": {"reduce"}},
    "graphs/score_graph.py": {},
    "graphs/traces.py": {},
    "decision/decide.py": {"_may_discard_verdicts": {"reduce"}},
    "decision/fusing.py": {"fuse": {"reduce"}, "_widest_bounds": {"reduce"}},
    "decision/combiners.py": {
        "input_means": {"mean"},
        "_stakeholder_utility": {"mean"},
        "Product.combine": {"reduce"},
        "Nash._combine_utilities": {"reduce"},
    },
    "agents/data_synthesizer.py": {},
    "judges/panel.py": {"Panel.combine": {"mean"}, "ConsensusOfJudges.combine": {"mean"}},
    "judges/combiners.py": {},
}
"""Modules between verdicts and rewards, each with its exemptions: by qualified function name, the banned names that it
may use because they are our own (`ComponentInput.reduce`, `ScoreMatrix.mean`) or run from left to right
(`functools.reduce`). `aggregation` has a test of its own."""


@all_rows("module", DETERMINISTIC_MODULES)
def test_between_verdicts_and_rewards_nothing_differs_by_shape_or_cpu(module: str) -> None:
    assert violations(PACKAGE / module, DETERMINISTIC_MODULES[module]) == []
