"""WritingBench (X-PLUG/WritingBench): writing tasks with checklists, scored on a scale."""

from typing import ClassVar

from jurygraph.interchange.rows import (
    NOT_EMPTY,
    ImportedRow,
    RowKey,
    TaskFieldsAndNotes,
    TaskRow,
    add_rubric,
)
from jurygraph.schema.frozen_model import JsonFields

RUBRIC_SCORE_RANGES = ("1-2", "3-4", "5-6", "7-8", "9-10")


class Entry(ImportedRow):
    """An entry of a checklist, and the meaning of each of the `RUBRIC_SCORE_RANGES` of its scale."""

    name: str
    criteria_description: str | None = None

    def criterion_fields(self, lowest: float) -> JsonFields:
        """Return the fields of a criterion on a scale up to 10; its anchors are the described ranges, by their ends."""
        text = ": ".join(part for part in (self.name, self.criteria_description) if part)
        about = self.other
        anchors = {ends: about.pop(ends) for ends in RUBRIC_SCORE_RANGES if ends in about}
        return {
            "text": text,
            "weight": 1.0,
            "scale": (lowest, 10.0),
            "anchors": anchors,
            "about": about,
        }


class ImportedQuery(TaskRow):
    """WritingBench (X-PLUG/WritingBench): a writing task and its checklist.

    A checklist has five entries, or one or two in the sets about a requirement.
    """

    KEY = "index"
    EXPECTED_FILE_CONTENT = "WritingBench's queries"
    LOWEST_SCALE_VALUE: ClassVar[float] = 1.0
    """The end of the scale that counts 0: a value v scores (v - LOWEST) / (10 - LOWEST)."""

    index: RowKey
    query: str = NOT_EMPTY
    checklist: tuple[Entry, ...]

    def to_content(self) -> TaskFieldsAndNotes:
        """Return the query with its checklist as a rubric of criteria on a scale up to 10, each of weight 1."""
        task = {"id": self.index, "query": self.query, "metadata": self.other}
        return add_rubric(
            task, (entry.criterion_fields(self.LOWEST_SCALE_VALUE) for entry in self.checklist)
        )


class QueryInTenths(ImportedQuery):
    """A query whose values score v / 10, as in the code of GEAR's authors, instead of their position on the scale."""

    LOWEST_SCALE_VALUE = 0.0
