"""`jurygraph init`: a small project that runs as it is."""

import shutil
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from jurygraph.cli.text import out, say


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to make.", show_default=False)],
    template: Annotated[
        str, typer.Option(help="What the project is about: maths, trip, rubric, reviewers or ideas.")
    ] = "maths",
) -> None:
    """Make a small project that runs as it is: tasks.jsonl, jury.yaml, README.md, and what else it rests on.

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
    names = [path.name for path in content.iterdir() if path.is_file()]
    there = [name for name in names if (folder / name).exists()]
    if there:
        raise InputError(f"{folder / there[0]}: is there already and stays as it is; name another folder")
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for name in names:
            shutil.copyfile(content / name, folder / name)
    except BaseException:
        for name in names:
            (folder / name).unlink(missing_ok=True)
        if made:
            folder.rmdir()
        raise
