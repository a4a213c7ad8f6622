"""PLawBench's practical case analyses (skylenage/PLawbench): rubrics whose items give partial credit by sub-items.

A row has `label`, `context`, `question` and `rubrics`; an item of a rubric has its sub-items in one text, each with its
points in a mark such as (+5分).
"""

import math
import re
from itertools import pairwise
from typing import Any

from pydantic import Field

from jurygraph.schema.frozen_model import digest_of
from jurygraph.sources.importers.rows import Content, Format, Note, Points, Row, nonempty_fields, with_rubric

WHOLE = "criteria are judged as one, since they mark no sub-items whose points add up to their own"
_MARK = re.compile(r"[(（]\s*[+＋]\s*(\d+(?:\.\d+)?)\s*分?\s*[)）]+")
_HEADING = re.compile(r"【[^】]*】|\d+\s*分")
_MAX_PARTS = 20
_NUMBERING = re.compile(r"[\W\d_一二三四五六七八九十第步]*")


class ScoredItem(Row):
    """A section of the answer (named by `tags`), its required content, and its points."""

    criterion: str
    points: Points
    tags: str | tuple[str, ...] | None = None


class Case(Row):
    """A case, a question about it, and the rubric of the analysis."""

    context: str | None = None
    question: str = Field(min_length=1)
    rubrics: tuple[ScoredItem, ...]
    label: str | None = None
    reference: str | None = None


def _to_content(case: Case) -> Content:
    """Return a case with its rubric; an item has parts if its sub-items' points add up to its own.

    Rows have no ids: the id of a task contains the digest of its row.
    """
    rubric = [[item.criterion, item.points] for item in case.rubrics]
    name = f"case-{digest_of([case.context, case.question, rubric])[:12]}"
    task = {
        "id": name,
        "query": f"## 案例\n{case.context}\n\n## 问题\n{case.question}" if case.context else case.question,
        "reference": case.reference,
        "metadata": nonempty_fields(label=case.label, other=case.other),
    }
    parts = [_weighted_parts(item) for item in case.rubrics]
    whole = [Note(WHOLE, f"{name}: criterion-{n}") for n, item_parts in enumerate(parts, 1) if item_parts is None]
    return with_rubric(task, map(_criterion_fields, case.rubrics, parts), whole)


def _weighted_parts(item: ScoredItem) -> list[dict[str, Any]] | None:
    """Return the sub-items of an item; None if they do not give all of its points, or if one has no words."""
    parts = sub_items(item.criterion)
    weights = [part["weight"] for part in parts]
    have_words = all(re.search(r"\w", _HEADING.sub("", _MARK.sub("", part["text"]))) for part in parts)
    is_complete = math.isclose(sum(weights), item.points) and 0 not in weights and len(parts) <= _MAX_PARTS
    return parts if is_complete and have_words else None


def _criterion_fields(item: ScoredItem, parts: list[dict[str, Any]] | None) -> dict[str, Any]:
    tags = [item.tags] if isinstance(item.tags, str) else item.tags
    content = {"text": item.criterion, "weight": item.points, "about": nonempty_fields(tags=tags, **item.other)}
    return {**content, "parts": parts} if parts is not None and len(parts) > 1 else content


def sub_items(text: str) -> list[dict[str, Any]]:
    """Return the marked sub-items of a text, each with its points.

    A mark is either before its sub-item, or at the end of the line that begins it; in both cases the sub-item continues
    until the next one. Text before the first sub-item belongs to none.
    """
    marks = list(_MARK.finditer(text))
    starts = [_sub_item_start(text, earlier, mark) for earlier, mark in zip([None, *marks], marks, strict=False)]
    return [
        {"text": text[start:end].strip(), "weight": float(mark[1])}
        for mark, (start, end) in zip(marks, pairwise([*starts, len(text)]), strict=True)
    ]


def _sub_item_start(text: str, earlier: re.Match[str] | None, mark: re.Match[str]) -> int:
    """Return the start of a mark's sub-item.

    It is the start of its line or, if the line has an earlier mark, the position at or behind a mark.
    """
    line = text.rfind("\n", 0, mark.start()) + 1
    if earlier is None or earlier.start() < line:
        return line
    return mark.start() if _NUMBERING.fullmatch(text, line, earlier.start()) else earlier.end()


PLAWBENCH = Format(Case, _to_content, None, "PLawBench's practical case analyses")
