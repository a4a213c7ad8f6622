"""Run model requests for tasks one by one, before there are responses; each task has a result or a reason for none."""

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

_MAX_WAITING = 8  # finished results that may wait for an earlier task, per task that runs at once

T = TypeVar("T")
Ask = Callable[["Task"], Awaitable[T | None]]


class Found(NamedTuple, Generic[T]):
    """The result for one task, or the reason why there is none.

    Attributes:
        line: line number in the file of tasks.
        task: the task.
        found: the result; None if there is none, or if the task was omitted.
        why: the reason why the task was omitted; None if it was not.
    """

    line: int
    task: "Task"
    found: T | None
    why: str | None = None


def ask_each(jury: "Jury", lines: "TaskLines", ask: Ask[T], doing: str) -> list[Found[T]]:
    """Return the outcome for every selected task, in the order of the file, with a progress bar labelled `doing`.

    Raises ModelError and BudgetExceeded; Ctrl-C exits with code 130.
    """
    import asyncio

    from jurygraph.cli.outcome import request_lines
    from jurygraph.cli.progress import progress
    from jurygraph.runs.figures.bill import requests

    def request_summary() -> str:
        return "; ".join(request_lines(requests(jury)))

    try:
        with progress(doing, len(lines), "tasks", request_summary) as report, asyncio.Runner() as runner:
            return runner.run(_ask_all(jury, lines, ask, report))
    except KeyboardInterrupt:
        say("interrupted; nothing was written, and the same command goes on with what the cache has")
        raise typer.Exit(Exit.INTERRUPTED) from None


def left_out(outcomes: Iterable[Found[T]]) -> list[dict[str, Any]]:
    """Return the omitted tasks as JSON records: task id, line number and reason."""
    return [{"task": one.task.id, "line": one.line, "why": one.why} for one in outcomes if one.why is not None]


def tell_left_out(outcomes: Iterable[Found[T]]) -> int:
    """Print each omitted task and the totals to standard error; return the number of omitted tasks."""
    listed = list(outcomes)
    omitted = [one for one in listed if one.why is not None]
    for one in omitted:
        say(f"left out, line {one.line}: {one.why}")
    say(f"{len(listed) - len(omitted)} tasks were written, {len(omitted)} left out")
    return len(omitted)


async def _ask_all(jury: "Jury", lines: "TaskLines", ask: Ask[T], report: Any) -> list[Found[T]]:
    import asyncio

    from jurygraph.errors import BudgetExceeded, ModelError
    from jurygraph.graphs.side_by_side import in_order

    gateway = jury.gateway
    pending = (asyncio.create_task(_ask_one(lines.name, line, task, ask)) for line, task in lines.tasks())
    results = []
    try:
        async with aclosing(in_order(pending, jury.at_once, _MAX_WAITING)) as outcomes:
            async for outcome in outcomes:
                results.append(outcome)
                report(1)
    except (ModelError, BudgetExceeded):
        assert gateway is not None, "it gave no answer"
        await gateway.settle()  # so that the replies that were paid for are in the cache for the next run
        raise
    finally:
        if gateway is not None:
            await gateway.close()
    return results


async def _ask_one(name: str, line: int, task: "Task", ask: Ask[T]) -> Found[T]:
    """Return the outcome for one task. Only an unreachable model or an exhausted budget fails the whole command."""
    from jurygraph.errors import BudgetExceeded, ModelError, PlanError
    from jurygraph.models.faults import Fault

    try:
        return Found(line, task, await ask(task))
    except PlanError as error:
        return Found(line, task, None, str(error))
    except (ModelError, BudgetExceeded) as error:
        if isinstance(error.__cause__, Fault) and error.__cause__.cause == "response":
            return Found(line, task, None, str(error))
        advice = "nothing was written, and the same command tries again, with what the cache keeps of this time"
        error.args = (f"{name}, line {line}: {error}; {advice}",)
        raise
