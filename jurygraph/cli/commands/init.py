"""`jurygraph init`: create a small project that runs as it is."""

import keyword
import os
import re
import sys
from collections.abc import Mapping
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from jurygraph.cli.options import argument
from jurygraph.cli.render.text import print_message, print_result
from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean


def init(
    folder: Annotated[Path, argument("DIR", "Folder to create.")],
    template: Annotated[str, typer.Option(help="maths, judge, trip, rubric, reviewers, ideas or evaluator.")] = "maths",
) -> None:
    """Create a small project that runs as it is.

    It has tasks.jsonl, jury.yaml, README.md, and the files that these need. The template judge has a table of answers
    and a rubric, and needs a model. The package of the template evaluator is named after the folder: my-letters gives
    the package my_letters.

    \b
    Example:
        jurygraph init my-jury
        jurygraph score my-jury/tasks.jsonl --out my-jury/run
        jurygraph init my-judge --template judge
    """
    source = files("jurygraph.cli") / "templates"
    templates = sorted(entry.name for entry in source.iterdir() if entry.is_dir())
    if template not in templates:
        hint = did_you_mean(template, templates) or f"known: {', '.join(templates)}"
        raise InputError(f"unknown template {template!r}; {hint}")
    with as_file(source / template) as content:
        _copy(content, folder, _package_names(folder.resolve().name) if template == "evaluator" else {})
    for path in sorted(folder.iterdir()):
        print_result(str(path))
    tasks = f"{folder / 'tasks.jsonl'}"
    if template == "judge":
        columns = "--prompt-column question --response-column answer --agent-column who --group-by question"
        tasks = f"{folder / 'answers.csv'} {columns} --model openai/gpt-5-mini"
    print_message(f"next: jurygraph score {tasks} --config {folder / 'jury.yaml'} --out {folder / 'run'}")


def _package_names(folder: str) -> dict[str, str]:
    """Return the replacements for the names of the template's package: as a module, and in pyproject.toml.

    Raises InputError if the folder's name cannot be a package's.
    """
    module = folder.lower().replace("-", "_")
    if not re.fullmatch("[a-z]([a-z0-9_]*[a-z0-9])?", module) or keyword.iskeyword(module):
        raise InputError(f"{module!r} is not a valid package name; use letters, digits and hyphens, such as my-letters")
    if module == "tests" or module in sys.stdlib_module_names or find_spec(module):
        raise InputError(f"a module named {module!r} exists already; name another folder")
    return {"plain_letters": module, "plain-letters": module.replace("_", "-")}


def _replace_names(text: str, names: Mapping[str, str]) -> str:
    for old, new in names.items():
        text = text.replace(old, new)
    return text


def _copy(content: Path, folder: Path, names: Mapping[str, str]) -> None:
    """Copy all files, and overwrite nothing; `names` are replaced in paths and texts. Raises InputError."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder")
    parts = {
        Path(_replace_names(str(path.relative_to(content)), names)): path
        for path in content.rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }
    folders = sorted({parent for name in parts for parent in name.parents if parent.name})
    existing = [name for name in sorted(parts) if os.path.lexists(folder / name)]
    existing += [parent for parent in folders if (folder / parent).is_symlink() or (folder / parent).is_file()]
    if existing:
        raise InputError(f"{folder / existing[0]}: exists and was not overwritten; name another folder")
    for name, path in parts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with (folder / name).open("xb") as file:  # mode "x" refuses a link that was created in the meantime
            file.write(_replace_names(path.read_text(encoding="utf-8"), names).encode())
