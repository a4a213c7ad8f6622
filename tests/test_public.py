"""The public names of `import jurygraph`, and how little it loads for them."""

import ast
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import jurygraph
from tests.rows import all_rows

ROOT = Path(jurygraph.__file__).parents[1]
HEAVY = (
    "litellm", "langgraph", "langchain", "langchain_core", "langsmith", "pandas", "scipy", "sympy", "math_verify",
    "pydantic", "numpy", "typer", "rich", "ruamel",
)  # fmt: skip


def loaded_by(code: str) -> set[str]:
    """The modules that a new interpreter has loaded after running `code`."""
    script = f"{code}\nimport sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.landing
def test_importing_it_loads_no_heavy_library() -> None:
    assert not loaded_by("import jurygraph") & set(HEAVY)


@pytest.mark.landing
def test_its_aggregation_loads_numpy_and_no_other_library() -> None:
    loaded = loaded_by("import jurygraph.aggregation")
    assert loaded & set(HEAVY) == {"numpy"}
    rooms = {name.split(".")[1] for name in loaded if name.startswith("jurygraph.")}
    assert rooms == {"aggregation", "arrays", "errors", "inference"}


@pytest.mark.landing
@pytest.mark.parametrize("name", ["JurygraphError", "Verdict", "evaluator"])
def test_names_for_writing_an_evaluator_load_no_graph_library(name: str) -> None:
    heavy = set(HEAVY) - {"pydantic", "numpy"}
    assert not loaded_by(f"import jurygraph; jurygraph.{name}") & heavy


@all_rows("name", jurygraph.__all__)
def test_every_public_name_is_available_and_listed(name: str) -> None:
    assert getattr(jurygraph, name) is not None
    assert name in dir(jurygraph)


def test_nothing_else_is_listed() -> None:
    assert set(dir(jurygraph)) == {*jurygraph.__all__, "__version__"}
    assert list(jurygraph.__all__) == sorted(set(jurygraph.__all__))


def test_type_checkers_see_each_public_name() -> None:
    tree = ast.parse(Path(jurygraph.__file__).read_text(encoding="utf-8"))
    (checking,) = (node for node in tree.body if isinstance(node, ast.If))
    imported = [
        (node.module, a.name)
        for node in checking.body
        if isinstance(node, ast.ImportFrom)
        for a in node.names
    ]
    starred = [
        import_module(module) for module, name in imported if module is not None and name == "*"
    ]
    exported = {name for module in starred for name in jurygraph.__all__ if name in vars(module)}
    assert {name for _, name in imported if name != "*"} | exported == set(jurygraph.__all__)


@pytest.mark.parametrize("name", ["Juri", "evaluators", "_Jury", "numpy", "__wrapped__"])
def test_an_unknown_name_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'jurygraph' has no attribute '{name}'"):
        getattr(jurygraph, name)


def test_the_version_is_that_of_the_distribution() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "version"
    ]
    assert jurygraph.__version__ == version


def test_the_package_is_marked_as_typed() -> None:
    assert (ROOT / "jurygraph" / "py.typed").is_file()
