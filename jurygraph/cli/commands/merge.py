"""`jurygraph merge`: merge the shards of a run into one run."""

from functools import partial
from pathlib import Path
from typing import Annotated

from jurygraph.cli.options import JsonOption, argument, option
from jurygraph.cli.render.text import print_message, print_report, progress
from jurygraph.messages import shell_quote


def merge(
    shards: Annotated[
        list[Path], argument("RUN...", "Folders of all shards, or the folder that contains them.")
    ],
    run: Annotated[Path, option("RUN", "Folder of the merged run.", "-o", "--out")],
    json: JsonOption = False,
) -> None:
    """Merge the shards of a run into one run, in the order of TASKS.

    `score --shard I/N` scores one share of the tasks into a run of its own, on any machine. Once all of them are
    complete, this copies their records into one run, as if one process had scored it: the traces have the same digests,
    and `verify` holds. The chain of each shard is verified first, and its head is stored in the merged run. The shards
    may come in any order; they are not changed. `show`, `view`, `compare` and `study` read a folder of shards as it is.

    \b
    Exit codes: 0 done; 2 a shard is missing, named twice, not complete, or of other settings; 5 a shard was changed.
    Nothing is written unless it is 0.

    \b
    Example:
        jurygraph score tasks.jsonl --shard 1/2 --out shards/1
        jurygraph score tasks.jsonl --shard 2/2 --out shards/2
        jurygraph merge shards --out run
    """
    from jurygraph.runs.workflows.merging import merge_shards

    merge_result = merge_shards(shards, run, partial(progress, "merging", what="responses"))
    content = {"run": str(run), **merge_result._asdict()}
    print_report(
        json, content, [f"{run}: {merge_result.traces} rewards", f"head    {merge_result.head}"]
    )
    if not json:
        print_message(f"all rewards:     jurygraph show {shell_quote(run)}")
