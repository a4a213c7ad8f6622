"""PLawBench (skylenage/PLawbench): case analyses with rubrics, scored by partial credit."""

import math
import re
from itertools import pairwise

from jurygraph.interchange.rows import (
    NOT_EMPTY,
    ImportNote,
    ScoredItem,
    TaskFieldsAndNotes,
    TaskRow,
    add_rubric,
)
from jurygraph.schema.frozen_model import JsonFields, digest_of

UNDIVIDED_CRITERIA_IMPORT_NOTE = (
    "criteria are judged as one, since they mark no sub-items whose points add up to their own"
)


class Case(TaskRow):
    """PLawBench's practical case analyses (skylenage/PLawbench): a case, a question, and the rubric of the analysis.

    An item of the rubric has its sub-items in one text, each with its points in a mark such as (+5分).
    """

    KEY = None
    EXPECTED_FILE_CONTENT = "PLawBench's practical case analyses"

    context: str | None = None
    question: str = NOT_EMPTY
    rubrics: tuple[ScoredItem, ...]
    reference: str | None = None

    def to_content(self) -> TaskFieldsAndNotes:
        """Return the case with its rubric; an item has parts if its sub-items' points add up to its own.

        Rows have no ids: the id of a task contains the digest of its row.
        """
        rubric = [[item.criterion, item.points] for item in self.rubrics]
        name = f"case-{digest_of([self.context, self.question, rubric])[:12]}"
        query = self.question
        if self.context:
            query = f"## 案例\n{self.context}\n\n## 问题\n{self.question}"
        task = {"id": name, "query": query, "reference": self.reference, "metadata": self.other}
        items = []
        notes = []
        for number, item in enumerate(self.rubrics, 1):
            parts = _split_weighted_parts(item)
            if parts is None:
                notes.append(
                    ImportNote(UNDIVIDED_CRITERIA_IMPORT_NOTE, f"{name}: criterion-{number}")
                )
            fields = item.criterion_fields()
            if parts and len(parts) > 1:
                fields["parts"] = parts
            items.append(fields)
        return add_rubric(task, items, notes)


_POINTS_MARK_PATTERN = re.compile(r"[(（]\s*[+＋]\s*(\d+(?:\.\d+)?)\s*分?\s*[)）]+")
_HEADING_PATTERN = re.compile(r"【[^】]*】|\d+\s*分")
_MAX_SUB_ITEMS = 20
_NUMBERING_PATTERN = re.compile(r"[\W\d_一二三四五六七八九十第步]*")


def _split_weighted_parts(item: ScoredItem) -> list[JsonFields] | None:
    """Return the sub-items of an item; None if they do not give all of its points, or if one has no words."""
    parts = parse_scored_sub_items(item.criterion)
    weights = [part["weight"] for part in parts]
    if len(parts) > _MAX_SUB_ITEMS or 0 in weights or not math.isclose(sum(weights), item.points):
        return None
    for part in parts:
        text_without_points = _POINTS_MARK_PATTERN.sub("", part["text"])
        if re.search(r"\w", _HEADING_PATTERN.sub("", text_without_points)) is None:
            return None
    return parts


def parse_scored_sub_items(text: str) -> list[JsonFields]:
    """Return the marked sub-items of a text, each with its points.

    A mark is either before its sub-item, or at the end of the line that begins it; in both cases the sub-item continues
    until the next one. Text before the first sub-item belongs to none.
    """
    marks = list(_POINTS_MARK_PATTERN.finditer(text))
    starts = []
    earlier = None
    for mark in marks:
        # The start of the line or, if the line has an earlier mark, the position at or behind a mark.
        start = text.rfind("\n", 0, mark.start()) + 1
        if earlier is not None and earlier.start() >= start:
            is_numbering = _NUMBERING_PATTERN.fullmatch(text, start, earlier.start())
            start = mark.start() if is_numbering else earlier.end()
        starts.append(start)
        earlier = mark
    return [
        {"text": text[start:end].strip(), "weight": float(mark[1])}
        for mark, (start, end) in zip(marks, pairwise([*starts, len(text)]), strict=True)
    ]
