"""Reviewed graphs: a TASKS file with edges and roles for the rubrics of other tasks, as `jurygraph annotate` writes."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jurygraph.messages import quote
from jurygraph.schema import Rubric, Task, TaskLine
from jurygraph.sources.json_lines import TaskKeyedFile

_REVIEW_HINT = "have `jurygraph annotate --edges-from` ask about what changed"


class EdgesFile(TaskKeyedFile[TaskLine]):
    """A file of reviewed graphs."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path, TaskLine, "id", "keep one of the two", "name one that `jurygraph annotate` wrote")

    def check_unchanged(self, lines: Iterable[tuple[str, bytes]]) -> None:
        """Raise `InputError` if its tasks differ from these in more than their graphs, so that no edit is lost."""
        for name, line in lines:
            if name in self._lines:
                number, place = self._lines[name]
                if _without_graph(self._file.read(place)) != _without_graph(line):
                    problem = f"task {quote(name)} differs from that in TASKS in more than its graph"
                    hint = "name another --out, and this file with --edges-from; or annotate this one"
                    self._refuse(number, (), problem, hint)

    def with_edges(self, task: Task) -> Task:
        """Return the task with its reviewed roles and edges; unchanged if there are none.

        Raises `InputError` if the query or the criteria differ from the task's own, or if an edge of the task is
        missing.
        """
        entry = self.get(task.id)
        if entry is None or entry.rubric is None:
            return task
        number = self._lines[task.id][0]
        reviewed = entry.rubric
        rubric = task.rubric
        if rubric is None:
            self._refuse(number, ("rubric",), f"task {quote(task.id)} has none", "leave it out")
        if entry.query != task.query:
            problem = f"is not that of task {quote(task.id)}, and the graph was made for it"
            self._refuse(number, ("query",), problem, _REVIEW_HINT)
        self._refuse_other_criteria(task.id, number, rubric, reviewed)
        by_hand = {(edge.parent, edge.child): edge for edge in rubric.edges if not edge.model}
        for ends, edge in by_hand.items():
            if not any(ends == (item.parent, item.child) for item in reviewed.edges):
                problem = f"lacks {edge.parent} -> {edge.child}, which task {quote(task.id)} defines itself"
                hint = "put it in here, or take it out of the task"
                self._refuse(number, ("rubric", "edges"), problem, hint)
        reviewed_criteria = {item.id: item for item in reviewed.criteria}
        criteria = tuple(
            item.model_copy(update={"role": item.role or reviewed_criteria[item.id].role}) for item in rubric.criteria
        )
        edges = tuple(by_hand.get((item.parent, item.child), item) if item.model else item for item in reviewed.edges)
        update = {"criteria": criteria, "edges": edges, "annotation": reviewed.annotation}
        return task.model_copy(update={"rubric": rubric.model_copy(update=update)})

    def _refuse_other_criteria(self, task_id: str, number: int, rubric: Rubric, reviewed: Rubric) -> None:
        reviewed_criteria = {criterion.id: criterion for criterion in reviewed.criteria}
        for name in sorted({*reviewed_criteria} ^ {criterion.id for criterion in rubric.criteria}):
            side = "only this file has" if name in reviewed_criteria else "only the task has"
            problem = f"criterion {quote(name)} of task {quote(task_id)} is one that {side}"
            self._refuse(number, ("rubric", "criteria"), problem, _REVIEW_HINT)
        for criterion in rubric.criteria:
            if criterion.content != reviewed_criteria[criterion.id].content:
                problem = f"criterion {quote(criterion.id)} of task {quote(task_id)} differs in the task"
                self._refuse(number, ("rubric", "criteria"), problem, _REVIEW_HINT)


def annotate_line(line: bytes, rubric: Rubric) -> bytes:
    """Return a line of TASKS with the roles, edges and record of its rubric's annotation; the rest is unchanged."""
    content = json.loads(line)
    roles = {criterion.id: criterion.role for criterion in rubric.criteria}
    for criterion in content["rubric"]["criteria"]:
        if roles[criterion["id"]] is not None:
            criterion["role"] = roles[criterion["id"]]
    content["rubric"]["edges"] = [edge.model_dump(mode="json", exclude_none=True) for edge in rubric.edges]
    if rubric.annotation is not None:
        content["rubric"]["annotation"] = rubric.annotation.model_dump(mode="json", exclude_none=True)
    return json.dumps(content, ensure_ascii=False).encode()


def _without_graph(line: bytes) -> Any:
    """Parse a line of TASKS as JSON, without the roles, the edges and the record of an annotation."""
    content = json.loads(line)
    rubric = content.get("rubric")
    if isinstance(rubric, dict):
        for name in ("edges", "annotation"):
            rubric.pop(name, None)
        for criterion in rubric["criteria"]:
            criterion.pop("role", None)
    return content
