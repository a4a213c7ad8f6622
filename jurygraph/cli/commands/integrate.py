"""`jurygraph integrate`: an example for a trainer, from tasks to rewards."""

from pathlib import Path
from typing import Annotated

from jurygraph.cli.commands.setup import create_folder_from_template
from jurygraph.cli.options import argument, option
from jurygraph.cli.render.text import print_message
from jurygraph.messages import shell_quote


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
    folder = out or Path(f"jury-{trainer}")
    create_folder_from_template(
        "jurygraph.integrations", "trainer", trainer, folder, common="common"
    )
    print_message(
        f"next: jurygraph doctor --config {shell_quote(folder / 'jury.yaml')}, then read docs/training.md"
    )
