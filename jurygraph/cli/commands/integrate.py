"""`jurygraph integrate`: an example for a trainer, from tasks to rewards."""

import os
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

from jurygraph.cli.commands.setup import copy_files
from jurygraph.cli.options import argument, choose_names, option
from jurygraph.cli.render.text import print_message, print_result
from jurygraph.errors import InputError

_COMMON = "common"


def integrate(
    trainer: Annotated[
        str, argument("TRAINER", "trl, verl, openrlhf, verifiers, ms-swift, slime or skyrl.")
    ],
    out: Annotated[
        Path | None, option("DIR", "Folder to create.", "-o", "--out", show_default="jury-TRAINER")
    ] = None,
) -> None:
    """Write an example that gives a trainer the rewards of a jury.

    It has tasks.jsonl and jury.yaml, and code in both directions: rows of a data set that carry the ids of their tasks,
    and the reward. docs/training.md says what a failed reward becomes in each trainer.

    \b
    Example:
        jurygraph integrate trl
        jurygraph integrate verl --out my-training
    """
    source = files("jurygraph.integrations") / "templates"
    trainers = sorted(entry.name for entry in source.iterdir() if entry.is_dir())
    trainers.remove(_COMMON)
    choose_names("unknown trainer", [trainer], trainers)
    folder = Path(f"jury-{trainer}") if out is None else out
    if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{folder}: exists and was not overwritten; name another folder with --out"
        )
    for name in (_COMMON, trainer):
        with as_file(source / name) as content:
            copy_files(content, folder)
    for path in sorted(folder.iterdir()):
        print_result(str(path))
    print_message(
        f"next: jurygraph doctor --config {folder / 'jury.yaml'}, then read docs/training.md"
    )
