"""`jurygraph import`: other people's data as TASKS."""

import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, cast

import typer

from jurygraph.cli.reading import AsJson
from jurygraph.cli.text import out, out_json, say, word

FORMATS = ("travelplanner",)
_MOST_UNREAD = 5
_GZIP = 31


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
    from jurygraph.errors import InputError
    from jurygraph.sources import nearest

    if form not in FORMATS:
        hint = nearest(form, FORMATS) or "known: " + ", ".join(FORMATS)
        raise InputError(f"there is no format {form!r}; {hint}")
    _refuse_itself(tasks, [file, *([stakeholders] if stakeholders else [])])
    read = _Read()
    _write(tasks, read.lines(file, stakeholders))
    if json and tasks != "-":
        out_json({"tasks_file": tasks, "tasks": read.tasks, "responses": read.responses})
    for line in read.told():
        say(line)
    if tasks != "-" and Path(tasks).suffix:
        apart = "" if read.responses else " --responses RESPONSES"
        say(f"next: jurygraph score {word(tasks)} --config jury.yaml{apart} --out run")


class _Read:
    """What was read, counted as it goes by."""

    def __init__(self) -> None:
        self.tasks = self.responses = 0
        self.unread: list[str] = []

    def lines(self, file: str, stakeholders: str | None) -> Iterator[bytes]:
        """The tasks, each as a line."""
        from jurygraph.sources.travelplanner import UNREAD, read_travelplanner

        for line in read_travelplanner(file, stakeholders):
            self.tasks += 1
            self.responses += len(line.responses)
            self.unread += [f"{line.id}: {what}" for what in cast(list[str], line.metadata.get(UNREAD, []))]
            yield line.model_dump_json(exclude_defaults=True).encode() + b"\n"

    def told(self) -> Iterator[str]:
        """How much it was, and what no rule understood."""
        yield f"{self.tasks} tasks with {self.responses} responses"
        if self.unread:
            yield f"{len(self.unread)} things that queries speak of in words that no rule reads are no constraints:"
            yield from (f"  {one}" for one in self.unread[:_MOST_UNREAD])


def _refuse_itself(tasks: str, sources: Iterable[str]) -> None:
    from jurygraph.cli.delivery import refuse_inside
    from jurygraph.errors import InputError

    refuse_inside(tasks)
    for source in sources:
        if os.path.exists(source) and os.path.exists(tasks) and os.path.samefile(source, tasks):
            raise InputError(f"{tasks}: is the file that is read; name another to write")


def _write(tasks: str, content: Iterable[bytes]) -> None:
    from jurygraph.cli.delivery import deliver

    if tasks == "-":
        for line in list(content):
            out(line.removesuffix(b"\n"))
    else:
        deliver(tasks, _packed(content) if tasks.endswith(".gz") else content)


def _packed(lines: Iterable[bytes]) -> Iterator[bytes]:
    """As gzip has them, the same bytes every time."""
    packing = zlib.compressobj(wbits=_GZIP)
    yield from (packed for line in lines if (packed := packing.compress(line)))
    yield packing.flush()
