"""The independent units of a run: its tasks, or groups of tasks.

Variants of one prompt resemble each other like responses to one task, so tasks with the same `group` are one unit:
whatever a study leaves out, flips or draws is a unit with all its responses.
"""

from collections.abc import Iterable

from jurygraph.runs.run import Run

TASK_UNITS = "tasks"
GROUP_UNITS = "groups of tasks"
SINGULAR_UNITS = {TASK_UNITS: "task", GROUP_UNITS: "group of tasks"}
_GROUP_PREFIX = "group "


def group_of(run: Run, task_id: str) -> str | None:
    """Return the `group` of a task; None without one, and where its texts were erased."""
    content = run.task_content(task_id)
    return None if content is None else content["task"].get("group")


def unit_of(run: Run, task_id: str) -> str:
    """Return the name of a task's unit: of its `group`, or of the task itself."""
    return name_unit(task_id, group_of(run, task_id))


def name_unit(task_id: str, group: str | None) -> str:
    return f"task {task_id}" if group is None else f"{_GROUP_PREFIX}{group}"


def describe_units(units: Iterable[str]) -> str:
    """Return what reports call the units: tasks, or groups of tasks if any is one."""
    return GROUP_UNITS if any(unit.startswith(_GROUP_PREFIX) for unit in units) else TASK_UNITS
