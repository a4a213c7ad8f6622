"""The project's own bounds on its code."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import jurygraph
from tests.determinism import violations

PACKAGE = Path(jurygraph.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST_MODULE, LONGEST_FUNCTION = 600, 60
BROAD = {"Exception", "BaseException"}
BOUNDARIES = (
    "graphs/execution.py",
    "decision/combiner.py",
    "graphs/answer_validation.py",
    "agents/registry.py",
    "agents/maths/worker.py",
    "judges/few_shot/selection.py",
    "models/backends/litellm.py",
    "models/backends/chat_model.py",
    "models/embedding/sentence_transformer.py",
    "runs/store/writer.py",
    "cli/",
)
"""Where whatever arrives is turned into a verdict, a reply or a message; elsewhere an error not known is a bug."""

every_module = pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))


def tree(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


def inside(module: Path, places: tuple[str, ...]) -> bool:
    return module.relative_to(PACKAGE).as_posix().startswith(places)


@every_module
def test_a_module_can_be_read_in_one_go(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= LONGEST_MODULE


@every_module
def test_a_function_fits_on_a_screen(module: Path) -> None:
    long = {
        node.name: node.end_lineno - node.lineno + 1
        for node in ast.walk(tree(module))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None
    }
    assert {name: lines for name, lines in long.items() if lines > LONGEST_FUNCTION} == {}


@every_module
def test_errors_that_are_not_known_are_caught_at_the_boundaries_alone(module: Path) -> None:
    if not inside(module, BOUNDARIES):
        assert [line for line, passed_on in broad_handlers(tree(module)) if not passed_on] == []


def broad_handlers(parsed: ast.AST) -> Iterator[tuple[int, bool]]:
    """Handlers of every error: their lines, and whether they pass the error on in the end."""
    for node in ast.walk(parsed):
        if isinstance(node, ast.ExceptHandler):
            if BROAD & (named(node.type) if node.type else BROAD):
                last = node.body[-1]
                yield node.lineno, isinstance(last, ast.Raise) and last.exc is None
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress") and BROAD & named(node):
            yield node.lineno, False


def named(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def test_the_walk_finds_broad_handlers() -> None:
    source = """
try: a()
except: pass
try: a()
except (ValueError, Exception) as e: raise ValueError from e
try: a()
except BaseException:
    undo()
    raise
try: a()
except ValueError: pass
with suppress(Exception): a()
with contextlib.suppress(OSError, BaseException): a()
"""
    assert sorted(broad_handlers(ast.parse(source))) == [(3, False), (5, False), (7, True), (12, False), (13, False)]


@every_module
def test_nothing_is_left_to_do(module: Path) -> None:
    assert re.findall(r"\b(TODO|FIXME|XXX|HACK)\b", module.read_text(encoding="utf-8")) == []


@every_module
def test_only_the_command_line_prints(module: Path) -> None:
    printed = [
        node.lineno
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printed == [] or inside(module, ("cli/",))


@every_module
def test_a_module_says_what_it_is_for(module: Path) -> None:
    assert ast.get_docstring(tree(module))


DECIDING: Mapping[str, Mapping[str, set[str]]] = {
    "decision/table.py": {
        scope: {"reduce"}
        for scope in ("Table.effective", "Table.discarded", "Table.judged_weight", "_fill_cells", "_fold_columns")
    },
    "decision/fusion.py": {},
    "decision/decide.py": {"_is_selective": {"reduce"}},
    "decision/group_result.py": {},
    "decision/combiners.py": {"input_means": {"mean"}},
    "agents/data_synthesizer/contrast.py": {},
    "decision/combiner.py": {},
    "judges/panel.py": {"Panel.combine": {"mean"}},
    "judges/consensus/combiner.py": {"ConsensusOfJudges.combine": {"mean"}},
    "judges/consensus/votes.py": {},
    "judges/protocols/combiners.py": {},
    "judges/pairwise/combiners.py": {},
    "judges/pairwise/both_orders.py": {},
}
"""Between verdicts and rewards, and the names of our own that are called like something banned: `Input.reduce` and
`ScoreMatrix.mean`. `aggregation` has a test of its own."""


@pytest.mark.parametrize("module", DECIDING)
def test_between_verdicts_and_rewards_nothing_differs_by_shape_or_cpu(module: str) -> None:
    assert violations(PACKAGE / module, DECIDING[module]) == []
