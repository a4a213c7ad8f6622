"""Asking a model about tasks one by one, before any response is there: what came of each, or why nothing did."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import typer

from jurygraph.cli.boundary import Exit
from jurygraph.cli.text import say

if TYPE_CHECKING:
    from jurygraph.jury import Jury
    from jurygraph.schema import Task
    from jurygraph.sources.task_lines import TaskLines

_AHEAD = 8  # results that may wait for one before them, for each task that is asked about at once

T = TypeVar("T")
Ask = Callable[["Task"], Awaitable[T | None]]


class Found(NamedTuple, Generic[T]):
    """What was found of a task, or why nothing was."""

    line: int
    task: "Task"
    found: T | None
    why: str | None = None


def ask_each(jury: "Jury", lines: "TaskLines", ask: Ask[T], doing: str) -> list[Found[T]]:
    """What is found of every task that is wanted, in the order of the file, with a bar that says what is `doing`."""
    import asyncio

    from jurygraph.cli.outcome import request_lines
    from jurygraph.cli.progress import progress
    from jurygraph.runs.figures.bill import requests

    def sent() -> str:
        return "; ".join(request_lines(requests(jury)))

    try:
        with progress(doing, len(lines), "tasks", sent) as report, asyncio.Runner() as runner:
            return runner.run(_all(jury, lines, ask, report))
    except KeyboardInterrupt:
        say("interrupted; nothing was written, and the same command goes on with what the cache has")
        raise typer.Exit(Exit.INTERRUPTED) from None


def left_out(found: Iterable[Found[T]]) -> list[dict[str, Any]]:
    """The tasks that are left out, as JSON gives them."""
    return [{"task": one.task.id, "line": one.line, "why": one.why} for one in found if one.why is not None]


def tell_left_out(found: Iterable[Found[T]]) -> int:
    """Which tasks are left out, and how many."""
    listed = list(found)
    left_out = [one for one in listed if one.why is not None]
    for one in left_out:
        say(f"left out, line {one.line}: {one.why}")
    say(f"{len(listed) - len(left_out)} tasks were written, {len(left_out)} left out")
    return len(left_out)


async def _all(jury: "Jury", lines: "TaskLines", ask: Ask[T], report: Any) -> list[Found[T]]:
    import asyncio

    from jurygraph.errors import BudgetExceeded, ModelError
    from jurygraph.graphs.side_by_side import in_order

    gateway = jury.gateway
    begun = (asyncio.create_task(_one(lines.name, line, task, ask)) for line, task in lines.tasks())
    found = []
    try:
        async with aclosing(in_order(begun, jury.at_once, _AHEAD)) as each:
            async for one in each:
                found.append(one)
                report(1)
    except (ModelError, BudgetExceeded):
        assert gateway is not None, "it gave no answer"
        await gateway.settle()  # the cache has it then, for the next time
        raise
    finally:
        if gateway is not None:
            await gateway.close()
    return found


async def _one(name: str, line: int, task: "Task", ask: Ask[T]) -> Found[T]:
    """What becomes of one task. Only that the model cannot be asked is an error for all of them."""
    from jurygraph.errors import BudgetExceeded, ModelError, PlanError
    from jurygraph.models.faults import Fault

    try:
        return Found(line, task, await ask(task))
    except PlanError as error:
        return Found(line, task, None, str(error))
    except (ModelError, BudgetExceeded) as error:
        if isinstance(error.__cause__, Fault) and error.__cause__.cause == "response":
            return Found(line, task, None, str(error))
        again = "nothing was written, and the same command tries again, with what the cache keeps of this time"
        error.args = (f"{name}, line {line}: {error}; {again}",)
        raise
