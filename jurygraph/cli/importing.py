"""`jurygraph import`: other people's data as TASKS."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from jurygraph.cli.reading import AsJson
from jurygraph.cli.text import out, out_json, say, word

FORMATS = ("travelplanner",)


def import_tasks(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help="travelplanner.", show_default=False)],
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The file; `-` reads standard input.", show_default=False)
    ],
    tasks: Annotated[str, typer.Option("--out", metavar="TASKS", help="Where to write them.", show_default=False)],
    stakeholders: Annotated[
        str | None,
        typer.Option(metavar="F", help="Who travels: lines of {task, stakeholders, tensions}.", show_default=False),
    ] = None,
    json: AsJson = False,
) -> None:
    """Read a file of another project, and write it as TASKS. Whole, or nothing is written.

    travelplanner: each query with its tables as facts, its plan as the one response, and its own constraints as those
    of one stakeholder, or the stakeholders of `--stakeholders`, joined by the ids of the tasks.

    \b
    Example:
        jurygraph import travelplanner train.jsonl --out tasks.jsonl
        jurygraph score tasks.jsonl --config jury.yaml --out run
    """
    from jurygraph.cli.delivery import deliver, refuse_inside
    from jurygraph.errors import InputError
    from jurygraph.schema import TaskLine
    from jurygraph.sources import nearest
    from jurygraph.sources.travelplanner import read_travelplanner

    if form not in FORMATS:
        hint = nearest(form, FORMATS) or "known: " + ", ".join(FORMATS)
        raise InputError(f"there is no format {form!r}; {hint}")
    refuse_inside(tasks)
    counts = {"tasks": 0, "responses": 0}

    def counted(lines: Iterable[TaskLine]) -> Iterator[bytes]:
        for line in lines:
            counts["tasks"] += 1
            counts["responses"] += len(line.responses)
            yield line.model_dump_json(exclude_defaults=True).encode() + b"\n"

    content = counted(read_travelplanner(file, stakeholders))
    if tasks == "-":
        for line in list(content):
            out(line.removesuffix(b"\n"))
    else:
        deliver(tasks, content)
    if json and tasks != "-":
        out_json({"tasks_file": tasks, **counts})
    say(f"{counts['tasks']} tasks with {counts['responses']} responses")
    if tasks != "-" and Path(tasks).suffix:
        say(f"next: jurygraph score {word(tasks)} --config jury.yaml --out run")
