"""`jurygraph init`: a small project that runs as it is."""

import keyword
import os
import re
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from jurygraph.cli.text import out, say

PACKAGED = "evaluator"
"""The template that is a package: it is called after the folder, as a module and in pyproject.toml's way."""


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to make.", show_default=False)],
    template: Annotated[
        str, typer.Option(help="What the project is about: maths, trip, rubric, reviewers, ideas or evaluator.")
    ] = "maths",
) -> None:
    """Make a small project that runs as it is.

    It has tasks.jsonl, jury.yaml and README.md, and what else they rest on. Of the template evaluator the package is
    called after the folder: my-letters makes the package my_letters.

    \b
    Example:
        jurygraph init my-jury
        jurygraph score my-jury/tasks.jsonl --out my-jury/run
    """
    from jurygraph.errors import InputError

    source = files("jurygraph.cli") / "templates"
    known = sorted(entry.name for entry in source.iterdir() if entry.is_dir())
    if template not in known:
        from jurygraph.sources import nearest

        hint = nearest(template, known) or f"known here: {', '.join(known)}"
        raise InputError(f"there is no template {template!r}; {hint}")
    with as_file(source / template) as content:
        _copy(content, folder, _package_named(folder.resolve().name) if template == PACKAGED else {})
    for name in sorted(path.name for path in folder.iterdir()):
        out(str(folder / name))
    say(f"next: jurygraph score {folder / 'tasks.jsonl'} --config {folder / 'jury.yaml'} --out {folder / 'run'}")


def _package_named(folder: str) -> dict[str, str]:
    """What stands for the names of the template's package. InputError where the folder's cannot be a package's."""
    from jurygraph.errors import InputError

    module = folder.lower().replace("-", "_")
    if not re.fullmatch("[a-z]([a-z0-9_]*[a-z0-9])?", module) or keyword.iskeyword(module):
        raise InputError(
            f"no package can be called {module!r}; name a folder with letters, digits and hyphens, such as my-letters"
        )
    if module == "tests" or module in sys.stdlib_module_names or find_spec(module):
        raise InputError(
            f"the package would be called {module!r}, which is the name of another module already; name another folder"
        )
    return {"plain_letters": module, "plain-letters": module.replace("_", "-")}


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for old, new in names.items():
        text = text.replace(old, new)
    return text


def _copy(content: Path, folder: Path, names: Mapping[str, str]) -> None:
    """Copy all files or none, over nothing that is there; `names` stand for others, in paths and texts."""
    from jurygraph.errors import InputError

    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder")
    parts = {
        Path(_renamed(str(path.relative_to(content)), names)): path for path in content.rglob("*") if _is_part(path)
    }
    folders = sorted({above for name in parts for above in name.parents})
    there = [
        *(name for name in sorted(parts) if os.path.lexists(folder / name)),
        *(one for one in folders if one.name and (folder / one).is_symlink()),
        *(one for one in folders if (folder / one).is_file()),
    ]
    if there:
        raise InputError(f"{folder / there[0]}: is there already and stays as it is; name another folder")
    with ExitStack() as undo:
        for new in (folder / one for one in folders if not (folder / one).exists()):
            new.mkdir(parents=True)
            undo.callback(new.rmdir)
        for name, part in sorted(parts.items()):
            with (folder / name).open("xb") as file:  # never through a link that was put there meanwhile
                undo.callback((folder / name).unlink, missing_ok=True)
                file.write(_renamed(part.read_text(encoding="utf-8"), names).encode())
        undo.pop_all()


def _is_part(path: Path) -> bool:
    """Whether it is a file of a template, and not what Python left beside one that was imported."""
    return path.is_file() and path.parent.name != "__pycache__"
