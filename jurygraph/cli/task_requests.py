"""Run model requests for tasks one by one, before there are responses; each task has a result or a reason for none."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import typer

from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.interrupts import run_interruptible
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.summary import request_lines
from jurygraph.cli.render.text import print_message, print_report
from jurygraph.concurrency import gather_in_order
from jurygraph.errors import BudgetExceeded, ModelError, PlanError
from jurygraph.models.request import Fault
from jurygraph.runs.reports.estimate import CallCosts, count_requests
from jurygraph.schema import Task
from jurygraph.sources.tasks import TaskLines

if TYPE_CHECKING:
    from jurygraph.jury import Jury

_MAX_WAITING = 8  # finished results that may wait for an earlier task, per task that runs at once

T = TypeVar("T")
TaskRequest = Callable[[Task], Awaitable[T | None]]


class TaskResults(NamedTuple, Generic[T]):
    """The tasks with their results, the omitted tasks as JSON with line number and reason, and the requests sent."""

    found: list[tuple[Task, T]]
    omitted: list[dict[str, Any]]
    requests: CallCosts | None

    def print_report(self, as_json: bool, content: dict[str, Any], lines: Iterable[str]) -> None:
        """Print a report with the omitted tasks and the requests, and the totals to standard error."""
        requests = self.requests and self.requests.to_json()
        content = {**content, "left_out": self.omitted, "requests": requests}
        print_report(as_json, content, [*lines, *request_lines(self.requests)])
        for one in self.omitted:
            print_message(f"omitted, line {one['line']}: {one['why']}")
        print_message(f"{len(self.found)} tasks written, {len(self.omitted)} omitted")


def run_each(jury: "Jury", lines: TaskLines, request: TaskRequest[T], doing: str) -> TaskResults[T]:
    """Return the results for all selected tasks, in the order of the file, with a progress bar labelled `doing`.

    Raises ModelError and BudgetExceeded; Ctrl-C exits with code 130.
    """

    def request_summary() -> str:
        return "; ".join(request_lines(count_requests(jury)))

    try:
        with progress(doing, len(lines), "tasks", request_summary) as report, asyncio.Runner() as runner:
            found, omitted = run_interruptible(runner, _request_all(jury, lines, request, report), jury.context.threads)
    except KeyboardInterrupt:
        print_message("interrupted; nothing was written. Run the same command again: it continues from the cache")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    return TaskResults(found, omitted, count_requests(jury))


async def _request_all(
    jury: "Jury", lines: TaskLines, request: TaskRequest[T], report: Callable[[int], None]
) -> tuple[list[tuple[Task, T]], list[dict[str, Any]]]:
    found = []
    omitted = []
    pending = (
        asyncio.create_task(_request_one(lines.file_digest.name, line, task, request)) for line, task in lines.tasks()
    )
    try:
        async with aclosing(gather_in_order(pending, jury.max_concurrent_groups, _MAX_WAITING)) as outcomes:
            async for line, task, result, why_omitted in outcomes:
                if why_omitted is not None:
                    omitted.append({"task": task.id, "line": line, "why": why_omitted})
                elif result is not None:
                    found.append((task, result))
                report(1)
    except (ModelError, BudgetExceeded):
        await jury.gateways.wait_for_pending()  # replies that were paid for go to the cache, for the next run
        raise
    finally:
        await jury.gateways.close()
    return found, omitted


async def _request_one(
    name: str, line: int, task: Task, request: TaskRequest[T]
) -> tuple[int, Task, T | None, str | None]:
    """Return line, task, result, and the reason if the task is omitted.

    Only an unreachable model or an exhausted budget fails the whole command.
    """
    try:
        return line, task, await request(task), None
    except PlanError as error:
        return line, task, None, str(error)
    except (ModelError, BudgetExceeded) as error:
        if isinstance(error.__cause__, Fault) and error.__cause__.cause == "response":
            return line, task, None, str(error)
        advice = "nothing was written; run the same command again: it continues from the cache"
        error.args = (f"{name}, line {line}: {error}; {advice}",)
        raise
