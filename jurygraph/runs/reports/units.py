"""The independent units of a run: its tasks, or groups of tasks.

Variants of one prompt resemble each other like responses to one task, so tasks with the same `group` are one unit:
whatever a study leaves out, flips or draws is a unit with all its responses.
"""

from collections.abc import Iterable

from jurygraph.runs.run import Run

TASK_UNITS_LABEL = "tasks"
GROUP_UNITS_LABEL = "groups of tasks"
SINGULAR_UNIT_LABELS = {
    TASK_UNITS_LABEL: "task",
    GROUP_UNITS_LABEL: "group of tasks",
    "items": "item",
    "items answered by both": "item answered by both",
    "answers": "answer",
    "groups": "group",
}
_GROUP_UNIT_PREFIX = "group "


def group_of(run: Run, task_id: str) -> str | None:
    """Return the `group` of a task; None without one, and where its texts were erased."""
    content = run.stored_task_record(task_id)
    return content["task"].get("group") if content else None


def unit_name_of_task(run: Run, task_id: str) -> str:
    """Return the name of a task's unit: of its `group`, or of the task itself."""
    return unit_name(task_id, group_of(run, task_id))


def unit_name(task_id: str, group: str | None) -> str:
    return f"task {task_id}" if group is None else f"{_GROUP_UNIT_PREFIX}{group}"


def units_label(units: Iterable[str]) -> str:
    """Return what reports call the units: tasks, or groups of tasks if any is one."""
    if any(unit.startswith(_GROUP_UNIT_PREFIX) for unit in units):
        return GROUP_UNITS_LABEL
    return TASK_UNITS_LABEL
