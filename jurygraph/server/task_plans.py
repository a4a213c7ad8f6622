"""The tasks of a server with their plans: those of a file that was planned before, and those that requests bring."""

import asyncio
from collections import OrderedDict

from jurygraph.errors import InputError
from jurygraph.jury import Jury
from jurygraph.messages import quote
from jurygraph.runs.workflows.plans_file import PlannedTask, PlansFile
from jurygraph.schema import Plan, Task
from jurygraph.server.settings import RequestRefusedError
from jurygraph.sources.task_tables import iter_fact_tables

MAX_PLANS_IN_MEMORY = 4096
"""Plans of tasks from requests that are kept for the next request with the same task."""


class TaskPlans:
    """Finds the plan of a task, or makes it. A plan that a model makes is requested once for all who wait for it."""

    def __init__(self, jury: Jury, tasks: PlansFile | None = None) -> None:
        self._jury = jury
        self._tasks = tasks
        self._plans: OrderedDict[str, asyncio.Task[Plan]] = OrderedDict()

    @property
    def has_tasks_file(self) -> bool:
        """Return whether the server was started with tasks."""
        return self._tasks is not None

    def find(self, task_id: str, field: str = "task_id") -> PlannedTask:
        """Return a task of the file. Raises `InputError` naming the field for an id that it does not have."""
        if self._tasks is None:
            hint = "send the task itself as `task`, or start the server with --tasks"
            raise InputError(f"{field}: there is no task {quote(task_id)}; {hint}")
        return self._tasks.find(task_id, field)

    async def plan(self, task: Task) -> PlannedTask:
        """Return a task of a request with its plan. Raises as `Jury.aprepare`, and `RequestRefusedError` if it names a
        file."""
        refuse_file_tables(task)
        task = self._jury.config.task_defaults.complete(task)
        key = f"{task.id}\n{task.content_digest}"
        planning = self._plans.get(key)
        if planning is None:
            planning = asyncio.ensure_future(self._jury.aprepare(task))
            self._plans[key] = planning
            planning.add_done_callback(
                lambda finished_asyncio_task: self._remove_failed_plan(key, finished_asyncio_task)
            )
            while len(self._plans) > MAX_PLANS_IN_MEMORY:
                self._plans.popitem(last=False)
        else:
            self._plans.move_to_end(key)
        plan = await asyncio.shield(planning)
        return PlannedTask.model_construct(task=task, plan=plan)

    def _remove_failed_plan(self, key: str, planning: "asyncio.Task[Plan]") -> None:
        if planning.cancelled() or planning.exception() is not None:
            self._plans.pop(key, None)


def refuse_file_tables(task: Task) -> None:
    """Refuse a task of a request that names a file: a client would read what only the server may."""
    for name, table in iter_fact_tables(task.facts):
        if "file" in table:
            field = f"task.facts.tables.{name}.file"
            raise RequestRefusedError(
                422,
                f"{field}: a request may not name a file; "
                "send its `rows`, or put the task into the server's --tasks",
            )
