"""Benchmarks whose rows are tasks with rubrics: HealthBench, PLawBench and WritingBench."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pydantic import Field

from jurygraph.schema.frozen_model import digest_of
from jurygraph.sources.importers.rows import (
    Content,
    ImportedRow,
    ImportedTurn,
    Key,
    Note,
    Points,
    TaskRow,
    nonempty_fields,
)

WORTHLESS = "criteria without words, or of 0 points, are left out"
NO_GAIN = "tasks whose rubric has no criterion of positive weight are left out, since no reward can be formed from it"
TEXTLESS = "completions without text are left out"
WHOLE = "criteria are judged as one, since they mark no sub-items whose points add up to their own"


def _with_rubric(task: Mapping[str, Any], items: Iterable[Mapping[str, Any]], notes: Sequence[Note] = ()) -> Content:
    """Return the task with a rubric of these items, each the fields of a criterion.

    The task is left out if no weight is above 0. An item's `about`, with other published fields, goes to the task's
    metadata, by the id of the criterion. Ids count the published items, so that leaving one out renames no other.
    """
    all_notes = list(notes)
    criteria = []
    about: dict[str, Any] = {}
    for number, item in enumerate(items, 1):
        name = f"criterion-{number}"
        if not item["text"].strip() or item["weight"] == 0:
            all_notes.append(Note(WORTHLESS, f"{task['id']}: {name}"))
            continue
        criteria.append({"id": name, **{field: value for field, value in item.items() if field != "about"}})
        about |= nonempty_fields(**{name: item["about"]})
    if not any(criterion["weight"] > 0 for criterion in criteria):
        return None, [*all_notes, Note(NO_GAIN, task["id"])]
    metadata = {**task["metadata"], **nonempty_fields(criteria=about)}
    return {**task, "metadata": metadata, "rubric": {"criteria": criteria}}, all_notes


class ScoredItem(ImportedRow):
    """A criterion for a response, or the required content of a section of it, and its points, possibly negative."""

    criterion: str
    points: Points

    def criterion_fields(self) -> dict[str, Any]:
        """Return the fields of a criterion."""
        return {"text": self.criterion, "weight": self.points, "about": self.other}


class IdealCompletions(ImportedRow):
    """Physicians' completions, and the models' completions that they were shown."""

    ideal_completion: str | None = None
    ideal_completions_ref_completions: tuple[str | None, ...] | None = None


class ImportedExample(TaskRow):
    """HealthBench (openai/simple-evals): a conversation that ends with the user, with a physician's rubric."""

    KEY = "prompt_id"
    EXPECTED = "HealthBench's examples"

    prompt_id: Key
    prompt: tuple[ImportedTurn, ...] = Field(min_length=1)
    rubrics: tuple[ScoredItem, ...]
    ideal_completions_data: IdealCompletions | None = None

    def to_content(self) -> Content:
        """Return the example with its rubric, and with the ideal and reference completions as responses."""
        data = self.ideal_completions_data or IdealCompletions()
        completions = {"ideal": data.ideal_completion} if self.ideal_completions_data else {}
        for number, text in enumerate(data.ideal_completions_ref_completions or (), 1):
            completions[f"reference-{number}"] = text
        responses = []
        notes = []
        for name, text in completions.items():
            if text and text.strip():
                identity = {"id": f"{self.prompt_id}/{name}", "agent": name.partition("-")[0]}
                responses.append({**identity, "text": text, "metadata": data.other})
            else:
                notes.append(Note(TEXTLESS, f"{self.prompt_id}: {name}"))
        query = [turn.message() for turn in self.prompt]
        task = {"id": self.prompt_id, "query": query, "responses": responses, "metadata": self.other}
        return _with_rubric(task, (item.criterion_fields() for item in self.rubrics), notes)


RANGES = ("1-2", "3-4", "5-6", "7-8", "9-10")


class Entry(ImportedRow):
    """An entry of a checklist, and the meaning of each of the `RANGES` of its scale."""

    name: str
    criteria_description: str | None = None

    def criterion_fields(self) -> dict[str, Any]:
        """Return the fields of a criterion; its anchors are the described ranges, by their ends."""
        text = ": ".join(part for part in (self.name, self.criteria_description) if part)
        about = self.other
        anchors = {ends: about.pop(ends) for ends in RANGES if ends in about}
        return {"text": text, "weight": 1.0, "scale": (1.0, 10.0), "anchors": anchors, "about": about}


class Query(TaskRow):
    """WritingBench (X-PLUG/WritingBench): a writing task and its checklist.

    A checklist has five entries, or one or two in the sets about a requirement.
    """

    KEY = "index"
    EXPECTED = "WritingBench's queries"

    index: Key
    query: str = Field(min_length=1)
    checklist: tuple[Entry, ...]

    def to_content(self) -> Content:
        """Return the query with its checklist as a rubric of criteria on the scale [1, 10], each of weight 1."""
        task = {"id": self.index, "query": self.query, "metadata": self.other}
        return _with_rubric(task, (entry.criterion_fields() for entry in self.checklist))


class Case(TaskRow):
    """PLawBench's practical case analyses (skylenage/PLawbench): a case, a question, and the rubric of the analysis.

    An item of the rubric has its sub-items in one text, each with its points in a mark such as (+5分).
    """

    KEY = None
    EXPECTED = "PLawBench's practical case analyses"

    context: str | None = None
    question: str = Field(min_length=1)
    rubrics: tuple[ScoredItem, ...]
    reference: str | None = None

    def to_content(self) -> Content:
        """Return the case with its rubric; an item has parts if its sub-items' points add up to its own.

        Rows have no ids: the id of a task contains the digest of its row.
        """
        rubric = [[item.criterion, item.points] for item in self.rubrics]
        name = f"case-{digest_of([self.context, self.question, rubric])[:12]}"
        query = f"## 案例\n{self.context}\n\n## 问题\n{self.question}" if self.context else self.question
        task = {"id": name, "query": query, "reference": self.reference, "metadata": self.other}
        items = []
        notes = []
        for number, item in enumerate(self.rubrics, 1):
            parts = _weighted_parts(item)
            if parts is None:
                notes.append(Note(WHOLE, f"{name}: criterion-{number}"))
            items.append(item.criterion_fields() | ({"parts": parts} if parts and len(parts) > 1 else {}))
        return _with_rubric(task, items, notes)


_MARK = re.compile(r"[(（]\s*[+＋]\s*(\d+(?:\.\d+)?)\s*分?\s*[)）]+")
_HEADING = re.compile(r"【[^】]*】|\d+\s*分")
_MAX_PARTS = 20
_NUMBERING = re.compile(r"[\W\d_一二三四五六七八九十第步]*")


def _weighted_parts(item: ScoredItem) -> list[dict[str, Any]] | None:
    """Return the sub-items of an item; None if they do not give all of its points, or if one has no words."""
    parts = sub_items(item.criterion)
    weights = [part["weight"] for part in parts]
    have_words = all(re.search(r"\w", _HEADING.sub("", _MARK.sub("", part["text"]))) for part in parts)
    is_complete = math.isclose(sum(weights), item.points) and 0 not in weights and len(parts) <= _MAX_PARTS
    return parts if is_complete and have_words else None


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
