"""`jurygraph init`: a small project that runs as it is."""

import shutil
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from jurygraph.cli.text import out, say


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to make.", show_default=False)],
    template: Annotated[
        str, typer.Option(help="What the project is about: maths, trip, rubric, reviewers, ideas or evaluator.")
    ] = "maths",
) -> None:
    """Make a small project that runs as it is.

    It has tasks.jsonl, jury.yaml and README.md, and what else they rest on.

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
        _copy(content, folder)
    for name in sorted(path.name for path in folder.iterdir()):
        out(str(folder / name))
    say(f"next: jurygraph score {folder / 'tasks.jsonl'} --config {folder / 'jury.yaml'} --out {folder / 'run'}")


def _copy(content: Path, folder: Path) -> None:
    """Copy all files or none, over nothing that is there."""
    from jurygraph.errors import InputError

    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder")
    names = sorted(path.relative_to(content) for path in content.rglob("*") if _is_part(path))
    folders = sorted({above for name in names for above in name.parents})
    there = [
        *(name for name in names if (folder / name).exists()),
        *(one for one in folders if (folder / one).is_file()),
    ]
    if there:
        raise InputError(f"{folder / there[0]}: is there already and stays as it is; name another folder")
    with ExitStack() as undo:
        for new in (folder / one for one in folders if not (folder / one).exists()):
            new.mkdir(parents=True)
            undo.callback(new.rmdir)
        for name in names:
            undo.callback((folder / name).unlink, missing_ok=True)
            shutil.copyfile(content / name, folder / name)
        undo.pop_all()


def _is_part(path: Path) -> bool:
    """Whether it is a file of a template, and not what Python left beside one that was imported."""
    return path.is_file() and path.parent.name != "__pycache__"
