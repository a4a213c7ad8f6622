"""`jurygraph profiles`: what profiles in text are read as, in a file that a person can edit."""

import os
from collections.abc import Iterator
from contextlib import aclosing, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from jurygraph.cli.boundary import Exit
from jurygraph.cli.printing import kept_off_stdout
from jurygraph.cli.reading import AsJson
from jurygraph.cli.scoring import found_config, open_jury
from jurygraph.cli.text import number, out, out_json, say, table, visible, word

if TYPE_CHECKING:
    from jurygraph.jury import Jury
    from jurygraph.runs.bill import Tally
    from jurygraph.schema import Task
    from jurygraph.schema.profile import Profiles
    from jurygraph.sources.profiles import Unread

_AHEAD = 8  # results that may wait for one before them, for each task that is read at once


def profiles(
    tasks: Annotated[
        str, typer.Argument(metavar="TASKS", help="JSONL file of tasks, .gz too; - for stdin.", show_default=False)
    ],
    file: Annotated[str, typer.Option("--out", metavar="PROFILES", help="Where to write.", show_default=False)],
    config: Annotated[
        Path | None, typer.Option(metavar="F", help="Config.", show_default="jury.yaml beside TASKS, or here")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="M", help="Model, instead of the config's.", show_default=False)
    ] = None,
    json: AsJson = False,
) -> None:
    """Have the model read profiles in text as constraints and tensions, and write them down, a task a line.

    Read are the profiles of stakeholders for whom TASKS states no constraints. Each constraint rests on words of the
    profile, which stand beside it as `quote`; what a model says without such words is dropped, and told. Change in
    PROFILES what you like, and give it to `jurygraph score --profiles-from`. A task of which a profile cannot be read
    is left out and named. The same command again asks for nothing that the cache has.

    \b
    Exit codes: 0 done; 1 done, but some tasks are left out; 2 wrong config or input; 3 the model could not be reached;
    4 a budget is reached; 130 interrupted. With any but 0 and 1 nothing is written.

    \b
    Example:
        jurygraph profiles tasks.jsonl --config jury.yaml --out profiles.jsonl
        jurygraph score tasks.jsonl --config jury.yaml --profiles-from profiles.jsonl --out run
    """
    from jurygraph.cli.delivery import deliver
    from jurygraph.runs.bill import requests
    from jurygraph.sources.profiles import Unread, profiles_line

    _refuse(tasks, file)
    with kept_off_stdout(), open_jury(config or found_config(tasks), model) as jury, closing(Unread(tasks)) as unread:
        found = _read(jury, unread)
        sent = requests(jury)
    deliver(file, [profiles_line(one.task, one.profiles) for one in found if one.profiles is not None])
    if json:
        out_json(_plain(file, found, sent))
    else:
        _print(found, sent)
    left_out = _tell(found)
    say(f"next: jurygraph score {word(tasks)} --profiles-from {word(file)} --out run")
    raise typer.Exit(Exit.SOME_FAILED if left_out else Exit.DONE)


class _Found(NamedTuple):
    """What the profiles of a task were read as, or why they were not."""

    line: int
    task: "Task"
    profiles: "Profiles | None"
    why: str | None = None


def _refuse(tasks: str, file: str) -> None:
    """Refuse to write over what is read, or into a run."""
    from jurygraph.cli.delivery import refuse_inside
    from jurygraph.errors import InputError

    refuse_inside(file)
    if os.path.exists(tasks) and os.path.exists(file) and os.path.samefile(tasks, file):
        raise InputError(f"{file}: is the file that is read; name another to write")


def _read(jury: "Jury", unread: "Unread") -> "list[_Found]":
    """What the model reads in all profiles, in the order of the tasks."""
    import asyncio

    from jurygraph.cli.progress import progress

    try:
        with progress("reading profiles", len(unread), "tasks") as report, asyncio.Runner() as runner:
            return runner.run(_all(jury, unread, report))
    except KeyboardInterrupt:
        say("interrupted; nothing was written, and the same command goes on with what the cache has")
        raise typer.Exit(Exit.INTERRUPTED) from None


async def _all(jury: "Jury", unread: "Unread", report: Any) -> "list[_Found]":
    import asyncio

    from jurygraph.errors import ModelError
    from jurygraph.graphs.side_by_side import in_order

    gateway = jury.gateway
    begun = (asyncio.create_task(_one(jury, unread.name, line, task)) for line, task in unread.tasks())
    found = []
    try:
        async with aclosing(in_order(begun, jury.at_once, _AHEAD)) as read:
            async for one in read:
                found.append(one)
                report(1)
    except ModelError:
        assert gateway is not None, "it gave no answer"
        await gateway.settle()  # the cache has it then, for the next time
        raise
    finally:
        if gateway is not None:
            await gateway.close()
    return found


async def _one(jury: "Jury", name: str, line: int, task: "Task") -> _Found:
    """What becomes of one task. Only that the model cannot be asked is an error for all of them."""
    from jurygraph.errors import ModelError, PlanError
    from jurygraph.models.faults import Fault

    try:
        return _Found(line, task, await jury.aread(task))
    except PlanError as error:
        return _Found(line, task, None, str(error))
    except ModelError as error:
        if isinstance(error.__cause__, Fault) and error.__cause__.cause == "response":
            return _Found(line, task, None, str(error))
        again = "nothing was written, and the same command tries again, with what the cache keeps of this time"
        error.args = (f"{name}, line {line}: {error}; {again}",)
        raise


def _plain(file: str, found: list[_Found], sent: "Tally | None") -> dict[str, Any]:
    """All that was found, as JSON gives it."""
    read = [
        {"task": one.task.id, **one.profiles.model_dump(mode="json"), "dropped": one.profiles.dropped}
        for one in found
        if one.profiles is not None
    ]
    left_out = [{"task": one.task.id, "line": one.line, "why": one.why} for one in found if one.why is not None]
    requests = None if sent is None else sent.plain()
    return {"profiles_file": file, "profiles": read, "left_out": left_out, "requests": requests}


def _print(found: list[_Found], sent: "Tally | None") -> None:
    from jurygraph.cli.outcome import request_lines

    rows = [row for one in found for row in _rows(one)]
    for line in table(["task", "stakeholder", "constraint", "rests on", "kind", "α"], rows, left=5):
        out(line)
    for line in (*(line for one in found for line in _beside(one)), *request_lines(sent)):
        out(line)


def _rows(found: _Found) -> Iterator[list[str]]:
    for read in found.profiles.stakeholders if found.profiles else ():
        for one in read.constraints:
            stated = [f"{one.id}: {one.text}", one.quote, one.kind, number(one.restrictiveness)]
            yield [found.task.id, read.id, *stated]


def _beside(found: _Found) -> Iterator[str]:
    """Tensions, and what was dropped."""
    if found.profiles is not None:
        for tension in found.profiles.tensions:
            between = " and ".join(tension.between)
            strength = number(tension.strength)
            yield visible(f"{found.task.id}: tension between {between}: {strength}, {tension.reason}", 300)
        yield from (visible(f"{found.task.id}: dropped of {why}", 300) for why in found.profiles.dropped)


def _tell(found: list[_Found]) -> int:
    """Which tasks are left out, and how many."""
    left_out = [one for one in found if one.why is not None]
    for one in left_out:
        say(f"left out, line {one.line}: {one.why}")
    say(f"{len(found) - len(left_out)} tasks were written, {len(left_out)} left out")
    return len(left_out)
