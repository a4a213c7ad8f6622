"""docs/reference.md names all that there is, and nothing else."""

import re
from pathlib import Path

import pytest

from jurygraph.agents.registry import BUILTIN_COMBINERS, BUILTIN_DERIVERS, BUILTIN_EVALUATORS
from jurygraph.cli.exit_codes import ExitCode
from jurygraph.schema import Config

PAGE = (Path(__file__).parent.parent / "docs" / "reference.md").read_text(encoding="utf-8")


def listed(head: str) -> list[str]:
    """What stands in the first column of the table with this head."""
    found = re.search(rf"^\| {head} \|.*\n\|---.*\n((?:\|.*\n)+)", PAGE, flags=re.MULTILINE)
    assert found is not None
    first = [row.split(" | ")[0].removeprefix("| ") for row in found[1].splitlines()]
    return [name.strip("`") for cell in first for name in cell.split(" · ")]


@pytest.mark.parametrize(
    ("head", "there"),
    [
        ("evaluator", BUILTIN_EVALUATORS),
        ("deriver", BUILTIN_DERIVERS),
        ("combiner", BUILTIN_COMBINERS),
        ("key", ["preset", *Config.model_fields]),  # a preset is written out before a config is made of it
        ("code", [str(int(code)) for code in ExitCode]),
    ],
)
def test_a_table_lists_each_once(head: str, there: list[str]) -> None:
    assert sorted(listed(head)) == sorted(there)


@pytest.mark.parametrize("key", ["weights", "rubric", "annotation", "panel", "failure"])
def test_the_keys_below_a_key_are_all_named(key: str) -> None:
    _, _, config = PAGE.partition("## Config")
    (row,) = (row for row in config.splitlines() if row.startswith(f"| `{key}` |"))
    annotation = Config.model_fields[key].annotation
    (below,) = (one for one in getattr(annotation, "__args__", (annotation,)) if hasattr(one, "model_fields"))
    assert set(re.findall(r"`(\w+)`", row)) - {key} == set(below.model_fields)
