"""Convert the items of a published rubric to criteria."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jurygraph.sources.importers.rows import Content, Note

WORDLESS = "criteria without words are left out"
WORTHLESS = "criteria of 0 points are left out"
NO_GAIN = "tasks whose rubric has no criterion of positive weight are left out, since no reward can be formed from it"


def with_rubric(task: Mapping[str, Any], items: Iterable[Mapping[str, Any]], notes: Sequence[Note] = ()) -> Content:
    """Return the task with a rubric of these items, each the fields of a criterion.

    The task is left out if no weight is above 0. An item's `about`, with other published fields, goes to the task's
    metadata, by the id of the criterion. Ids count the published items, so that leaving one out renames no other.
    """
    all_notes, criteria = list(notes), []
    about: dict[str, Any] = {}
    for number, item in enumerate(items, 1):
        name = f"criterion-{number}"
        if not item["text"].strip():
            all_notes.append(Note(WORDLESS, f"{task['id']}: {name}"))
        elif item["weight"] == 0:
            all_notes.append(Note(WORTHLESS, f"{task['id']}: {name}"))
        else:
            criteria.append({"id": name, **{field: value for field, value in item.items() if field != "about"}})
            about |= {name: item["about"]} if item["about"] else {}
    if not any(criterion["weight"] > 0 for criterion in criteria):
        return Content(None, (*all_notes, Note(NO_GAIN, task["id"])))
    metadata = {**task["metadata"], **({"criteria": about} if about else {})}
    return Content({**task, "metadata": metadata, "rubric": {"criteria": criteria}}, tuple(all_notes))
