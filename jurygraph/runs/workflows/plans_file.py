"""A file of plans: tasks that were planned before their responses exist, for a server or a trainer.

The first line says with which settings the plans were made, as the header of a run does. Each other line is a task,
with the parts that the config gave it, and its plan. Lines are read when their task is needed.
"""

import json
from collections.abc import Collection
from functools import lru_cache
from itertools import tee
from pathlib import Path
from typing import Literal

from jurygraph.display import ProgressCallback
from jurygraph.errors import BudgetExceeded, InputError, ModelError, PlanError
from jurygraph.jury import Jury
from jurygraph.messages import did_you_mean, quote
from jurygraph.runs.recorder import build_run_header
from jurygraph.runs.store.atomic_files import open_replacement_file
from jurygraph.runs.store.header import RunHeader, differences
from jurygraph.runs.workflows.lacking_tasks import LackingTasks
from jurygraph.schema import Plan, Task
from jurygraph.schema.frozen_model import FrozenModel, StrPath
from jurygraph.sources.files import (
    ByteRange,
    TextFile,
    close_on_error,
    read_model_line,
    reread_line,
    validate_at_location,
)
from jurygraph.sources.tasks import TaskLinesFile

MAX_PLANS_IN_MEMORY = 4096
"""Plans that are kept in memory, those that were used last."""
_PLAN_AGAIN_HINT = "make the plans again with `jurygraph plan`"
_PLANS_FILE_PREFIX = '{"plans":'


class PlansFileHeader(FrozenModel):
    """The first line of a file of plans: the version of its form, and the settings of the jury."""

    plans: Literal[1] = 1
    made_with: RunHeader


class PlannedTask(FrozenModel):
    """A task, complete with the parts that the config gives it, and its plan: a line of the file."""

    task: Task
    plan: Plan


async def write_plans(
    jury: Jury, tasks: TaskLinesFile, name: str, path: Path, report: ProgressCallback
) -> LackingTasks:
    """Plan the tasks of the file `name` in their order, write all plans or none, and return what tasks lack.

    `report` receives 1 for each. Raises errors of planning with file and line.
    """
    lacking_tasks = LackingTasks(jury)
    header = PlansFileHeader(made_with=build_run_header(jury, path.resolve().parent))
    numbered_tasks, tasks_ahead = tee(tasks.tasks())
    with open_replacement_file(path, private=False) as replacement, replacement.open("wb") as file:
        file.write(header.model_dump_json().encode() + b"\n")
        try:
            async for plan in jury.aprepare_many((task, None) for _, task in tasks_ahead):
                _, task = next(numbered_tasks)
                file.write(PlannedTask(task=task, plan=plan).model_dump_json().encode() + b"\n")
                lacking_tasks.add(plan)
                report(1)
        except (PlanError, ModelError, BudgetExceeded) as error:
            number, _ = next(numbered_tasks)
            # changed in place, to keep its class and attributes
            error.args = (f"{name}, line {number}: {error}",)
            raise
    return lacking_tasks


def is_plans_file(path: StrPath) -> bool:
    """Return whether a file begins as a file of plans does. Raises `InputError` if it cannot be read."""
    file = TextFile(path)
    try:
        first = next(file.lines(), None)
    finally:
        file.close()
    return first is not None and first.text.startswith(_PLANS_FILE_PREFIX)


class PlansFile:
    """The plans of a file, which stays open until `close`. Each has the failure rule of the jury.

    `plan` writes that of a config, and a server has another where the config names none; no request depends on it.
    """

    def __init__(self, path: StrPath, jury: Jury) -> None:
        """Validate the file. Raises `InputError` with file and line, and where it was made with other settings."""
        self._file = TextFile(path)
        self._places: dict[str, ByteRange] = {}
        self._rule = jury.config.failure.rule
        self._read_planned_task = lru_cache(maxsize=MAX_PLANS_IN_MEMORY)(self._reread)
        with close_on_error(self.close):
            lines = self._file.lines()
            first = next(lines)
            # a config is validated as YAML is, and not strictly
            header = validate_at_location(
                f"{self._file.name}, line {first.number}", PlansFileHeader, json.loads(first.text)
            )
            self._refuse_other_settings(header.made_with, jury, Path(path))
            for line in lines:
                try:
                    planned_task = read_model_line(self._file, line, PlannedTask)
                except InputError as error:  # such as the last line of half a copy
                    raise InputError(f"{error}; {_PLAN_AGAIN_HINT}") from None
                self._places[planned_task.task.id] = line.place

    def _refuse_other_settings(self, made_with: RunHeader, jury: Jury, path: Path) -> None:
        config = made_with.config.with_failure_rule(self._rule)
        made_with = made_with.model_copy(update={"config": config})
        found = list(differences(made_with, build_run_header(jury, path.resolve().parent)))
        if found:
            sentences = "; ".join(found).replace(" in the run", " in the plans")
            raise InputError(
                f"{self._file.name}: was made with other settings: {sentences}; {_PLAN_AGAIN_HINT}"
            )

    @property
    def ids(self) -> Collection[str]:
        """The ids of all tasks."""
        return self._places.keys()

    def get(self, task_id: str) -> PlannedTask | None:
        """Return a task with its plan; None if there is none with the id."""
        byte_range = self._places.get(task_id)
        return None if byte_range is None else self._read_planned_task(byte_range)

    def find(self, task_id: str, place: str) -> PlannedTask:
        """Return a task with its plan. Raises `InputError`, which begins with the place, for an id without one."""
        planned_task = self.get(task_id)
        if planned_task is None:
            hint = did_you_mean(task_id, self.ids) or "name one that has a plan"
            raise InputError(f"{place}: there is no task {quote(task_id)}; {hint}")
        return planned_task

    def _reread(self, byte_range: ByteRange) -> PlannedTask:
        planned_task = reread_line(self._file, byte_range, model=PlannedTask)
        plan = planned_task.plan
        decision = plan.decision.model_copy(update={"rule": self._rule})
        plan = plan.model_copy(update={"decision": decision})
        return planned_task.model_copy(update={"plan": plan})

    def close(self) -> None:
        """Close the file."""
        self._read_planned_task.cache_clear()
        self._file.close()
