"""docs/reference.md names all that there is, and nothing else."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jurygraph.agents.registry import (
    BUILTIN_COMBINER_PATHS,
    BUILTIN_DERIVER_PATHS,
    BUILTIN_EVALUATOR_PATHS,
    builtin_params_models,
)
from jurygraph.cli.streams import ExitCode
from jurygraph.interchange.readers import READERS, TRIAL_READERS
from jurygraph.models.factory import BACKEND_KIND_BY_PREFIX
from jurygraph.schema import Config
from jurygraph.sources import parse_config_mapping
from jurygraph.sources.config import Document
from tests.pages import ROOT, blocks
from tests.rows import all_rows

FILE = Path(__file__).parent.parent / "docs" / "reference.md"
PAGE = FILE.read_text(encoding="utf-8")
HEAD = "| of | param | type | default | what it is |\n|---|---|---|---|---|\n"
PARAMS = re.compile(rf"{re.escape(HEAD)}(\|.*\n)*")
TYPES = {
    "integer": "whole number",
    "string": "text",
    "boolean": "true, false",
    "array": "list",
    "object": "mapping",
}
BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


@pytest.mark.parametrize(
    ("page", "names"),
    [("models.md", BACKEND_KIND_BY_PREFIX), ("importing.md", {**READERS, **TRIAL_READERS})],
)
def test_a_page_names_every_backend_and_every_format(page: str, names: Mapping[str, Any]) -> None:
    text = (FILE.parent / page).read_text(encoding="utf-8")
    assert [name for name in names if f"`{name}" not in text] == []


def listed(head: str) -> list[str]:
    """What stands in the first column of the table with this head."""
    found = re.search(rf"^\| {head} \|.*\n\|---.*\n((?:\|.*\n)+)", PAGE, flags=re.MULTILINE)
    assert found is not None
    first = [row.split(" | ")[0].removeprefix("| ") for row in found[1].splitlines()]
    return [name.strip("`") for cell in first for name in cell.split(" · ")]


@pytest.mark.parametrize(
    ("head", "there"),
    [
        ("evaluator", BUILTIN_EVALUATOR_PATHS),
        ("deriver", BUILTIN_DERIVER_PATHS),
        ("combiner", BUILTIN_COMBINER_PATHS),
        # a preset is written out before a config is made of it
        (
            "key",
            ["preset", *Config.model_fields],
        ),
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
    (below,) = (
        one
        for one in getattr(annotation, "__args__", (annotation,))
        if hasattr(one, "model_fields")
    )
    assert set(re.findall(r"`(\w+)`", row)) - {key} == set(below.model_fields)


@all_rows(
    "block",
    [
        block
        for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "jurygraph" / "SKILL.md"]
        for block in blocks(page.read_text(encoding="utf-8"), "yaml")
    ],
)
def test_a_block_of_yaml_is_a_config_or_a_part_of_one(block: str) -> None:
    """Also on pages without a command, or whose config no command reads. `tools` are those of an evaluator."""
    config = Document(block).value
    if set(config) == {"tools"}:
        config = {"evaluators": [{"use": "criteria", **config}]}
    if "preset" not in config:
        config.setdefault("evaluators", ["maths.accuracy"])
    parse_config_mapping(config)


def describe_type(schema: Mapping[str, Any]) -> str:
    """What JSON Schema says of a param, in words."""
    parts = [describe_type(part) for part in schema.get("anyOf", ()) if part.get("type") != "null"]
    if parts:
        return ", or ".join(parts)
    if "const" in schema or "enum" in schema:
        return " · ".join(f"`{word}`" for word in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "object")
    bounds = [f" {sign} {schema[bound]:g}" for bound, sign in BOUNDS.items() if bound in schema]
    return TYPES.get(kind, kind) + ",".join(bounds)


def params_table() -> str:
    """A row for each param; those that mean the same share it."""
    names: dict[tuple[str, ...], list[str]] = {}
    for role in ("evaluators", "derivers", "combiners"):
        for name, model in builtin_params_models(role).items():
            schema = model.model_json_schema()
            for param, field in schema.get("properties", {}).items():
                default = f"`{json.dumps(field.get('default', {}))}`"
                if param in schema.get("required", ()) or len(default) > 62:
                    default = "required" if "default" not in field else "see there"
                description = " ".join(field["description"].split())
                names.setdefault(
                    (f"`{param}`", describe_type(field), default, description), []
                ).append(f"`{name}`")
    rows = [(" · ".join(owners), *columns) for columns, owners in names.items()]
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def test_the_table_of_params_is_what_the_models_say() -> None:
    shown = PARAMS.search(PAGE)
    assert shown is not None
    assert shown[0] == params_table()


if __name__ == "__main__":  # writes the table anew
    FILE.write_text(PARAMS.sub(lambda _: params_table(), PAGE), encoding="utf-8")
