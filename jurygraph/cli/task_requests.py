"""Run model requests for tasks one by one, before there are responses; each task has a result or a reason for none."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import typer

from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.summary import request_lines
from jurygraph.cli.render.text import print_message
from jurygraph.concurrency import gather_in_order
from jurygraph.errors import BudgetExceeded, ModelError, PlanError
from jurygraph.models.faults import Fault
from jurygraph.runs.reports.estimate import count_requests
from jurygraph.schema import Task
from jurygraph.sources.tasks import TaskLines

if TYPE_CHECKING:
    from jurygraph.jury import Jury

_MAX_WAITING = 8  # finished results that may wait for an earlier task, per task that runs at once

T = TypeVar("T")
TaskRequest = Callable[[Task], Awaitable[T | None]]


class TaskOutcome(NamedTuple, Generic[T]):
    """The result for one task, if there is one, or the reason why the task was omitted; `line` is its line number."""

    line: int
    task: Task
    result: T | None
    omitted_because: str | None = None


def run_each(jury: "Jury", lines: TaskLines, request: TaskRequest[T], doing: str) -> list[TaskOutcome[T]]:
    """Return the outcome for every selected task, in the order of the file, with a progress bar labelled `doing`.

    Raises ModelError and BudgetExceeded; Ctrl-C exits with code 130.
    """

    def request_summary() -> str:
        return "; ".join(request_lines(count_requests(jury)))

    try:
        with progress(doing, len(lines), "tasks", request_summary) as report, asyncio.Runner() as runner:
            return runner.run(_request_all(jury, lines, request, report))
    except KeyboardInterrupt:
        print_message("interrupted; nothing was written. Run the same command again: it continues from the cache")
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def omitted_tasks_json(outcomes: Iterable[TaskOutcome[T]]) -> list[dict[str, Any]]:
    """Return the omitted tasks as JSON records: task id, line number and reason."""
    omitted = (one for one in outcomes if one.omitted_because is not None)
    return [{"task": one.task.id, "line": one.line, "why": one.omitted_because} for one in omitted]


def print_omitted_tasks(outcomes: list[TaskOutcome[T]]) -> int:
    """Print each omitted task and the totals to standard error; return the number of omitted tasks."""
    omitted = omitted_tasks_json(outcomes)
    for one in omitted:
        print_message(f"omitted, line {one['line']}: {one['why']}")
    print_message(f"{len(outcomes) - len(omitted)} tasks written, {len(omitted)} omitted")
    return len(omitted)


async def _request_all(jury: "Jury", lines: TaskLines, request: TaskRequest[T], report: Any) -> list[TaskOutcome[T]]:
    gateway, results = jury.gateway, []
    pending = (asyncio.create_task(_request_one(lines.mark.name, line, task, request)) for line, task in lines.tasks())
    try:
        async with aclosing(gather_in_order(pending, jury.max_concurrent_groups, _MAX_WAITING)) as outcomes:
            async for outcome in outcomes:
                results.append(outcome)
                report(1)
    except (ModelError, BudgetExceeded):
        assert gateway is not None, "only a model raises these errors"
        await gateway.wait_for_pending()  # so that the replies that were paid for are in the cache for the next run
        raise
    finally:
        if gateway is not None:
            await gateway.close()
    return results


async def _request_one(name: str, line: int, task: Task, request: TaskRequest[T]) -> TaskOutcome[T]:
    """Return the outcome for one task. Only an unreachable model or an exhausted budget fails the whole command."""
    try:
        return TaskOutcome(line, task, await request(task))
    except PlanError as error:
        return TaskOutcome(line, task, None, str(error))
    except (ModelError, BudgetExceeded) as error:
        if isinstance(error.__cause__, Fault) and error.__cause__.cause == "response":
            return TaskOutcome(line, task, None, str(error))
        advice = "nothing was written; run the same command again: it continues from the cache"
        error.args = (f"{name}, line {line}: {error}; {advice}",)
        raise
