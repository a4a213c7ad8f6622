"""`jurygraph assign`: blinded sheets for reviewers, balanced over items and agents."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from jurygraph.cli.options import AsJson, argument, option, split_names
from jurygraph.cli.output_files import write_output
from jurygraph.cli.render.text import print_report, shell_quote
from jurygraph.errors import InputError
from jurygraph.messages import quote
from jurygraph.runs.run import Run
from jurygraph.sources.sheets import SheetItem, make_sheets, read_items, shared_items, sheet_to_csv
from jurygraph.studies.agreement import LEAST_SHARED

_FILE_NAME = re.compile(r"\w[\w. -]*")


def assign(
    items: Annotated[Path, argument("ITEMS", "Items: a CSV, JSONL or Parquet file, or the folder of a run.")],
    reviewers: Annotated[str, option("A,B", "Names of reviewers, or a file with one a line.")],
    out: Annotated[Path, option("DIR", "New folder for the sheets and their key.", "-o", "--out")],
    per_item: Annotated[int, typer.Option(metavar="K", help="Reviewers of each item.", min=1)] = 2,
    gold: Annotated[Path | None, option("F", "File of items that every reviewer gets.")] = None,
    dimensions: Annotated[str | None, option("A,B", "Dimensions, each with a score.")] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="Seed of the assignment.", min=0)] = 0,
    json: AsJson = False,
) -> None:
    """Assign items to reviewers, as balanced and blinded sheets.

    An item has `item` and `text`, or `first` and `second` for a pair, and may have `agent`, `domain` and `group`; those
    of a run are its responses. Each item gets K reviewers, and two reviewers' numbers of items differ by at most one:
    of all, of each agent, and of each domain of an agent. A sheet (DIR/sheets/NAME.csv) has the texts in an order of
    its own under ids that say nothing, of half of the pairs the second text first, and columns for score and reason.
    DIR/key.jsonl maps the ids to items, agents and reviewers: do not send it. `jurygraph import sheets` reads the
    filled sheets with the key. A pair's score is first, second or tie, or a number: below 0 for the first text.

    Exit codes: 0 done; 2 invalid input, such as fewer reviewers than K.

    \b
    Example:
        jurygraph assign items.csv --reviewers ann,bob,cy --per-item 2 --out assigned
        jurygraph assign run --reviewers names.txt --gold gold.csv --out assigned --seed 7
        jurygraph import sheets assigned/key.jsonl assigned/sheets/ann.csv --out ratings.jsonl
    """
    names = _read_names(reviewers)
    if per_item > len(names):
        raise InputError(f"--per-item: is {per_item}, and there are {len(names)} reviewers; name more, or lower it")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: exists; name a new folder, so that no sheet is replaced")
    given = list(_read_responses(items)) if items.is_dir() else read_items(items)
    common = [] if gold is None else read_items(gold)
    made = make_sheets(given, common, names, per_item, split_names(dimensions or None), seed)
    (out / "sheets").mkdir(parents=True, exist_ok=True)
    lines = (row.model_dump_json(exclude_defaults=True).encode() + b"\n" for row in made.key)
    write_output(str(out / "key.jsonl"), lines)
    for name, rows in made.sheets.items():
        if rows:
            write_output(str(out / "sheets" / f"{name}.csv"), sheet_to_csv(rows))
    loads = made.assigned.sum(axis=0)
    shared = list(shared_items(made.assigned, len(common))) or [0]
    counts = {"items": len(made.assigned), "gold": len(common), "reviewers": len(names), "per_item": per_item}
    figures = {"least_items": int(loads.min()), "most_items": int(loads.max()), "seed": seed}
    report = {**counts, **figures, "least_shared": min(shared), "most_shared": max(shared)}
    few = sum(one < LEAST_SHARED for one in shared)
    messages = [
        f"{report['items']} items for {len(names)} reviewers, each item {per_item} times; "
        f"{report['least_items']} to {report['most_items']} for each, and {len(common)} gold items for everybody",
        f"two reviewers share {min(shared)} to {max(shared)} items; pairs with fewer than {LEAST_SHARED}: {few}",
        f"next: send the sheets in {out / 'sheets'}, not the key; then jurygraph import sheets "
        f"{shell_quote(out / 'key.jsonl')} SHEET... --out ratings.jsonl",
    ]
    print_report(json, report, messages)


def _read_names(given: str) -> list[str]:
    """Return the names of reviewers, which are names of files, too."""
    file = Path(given)
    text = file.read_text(encoding="utf-8") if file.is_file() else given.replace(",", "\n")
    names = [name.strip() for name in text.splitlines() if name.strip()]
    known: set[str] = set()
    for name in names:
        if not _FILE_NAME.fullmatch(name):
            raise InputError(f"--reviewers: {quote(name)} cannot name a file; use letters, digits, spaces, . _ and -")
        if name.casefold() in known:
            raise InputError(f"--reviewers: {quote(name)} is there twice; name each reviewer once")
        known.add(name.casefold())
    if not names:
        raise InputError("--reviewers: names nobody; write names, such as ann,bob")
    return names


def _read_responses(folder: Path) -> Iterator[SheetItem]:
    """Yield the responses of a run as items under their ids, which name them for `study judge`, too."""
    with closing(Run.open(folder)) as run:
        for trace, response in run.scored_responses():
            if response is not None:
                yield SheetItem(item=trace.response_id, text=response.text, group=trace.task_id, author=trace.agent)
