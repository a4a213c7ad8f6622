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

WORDLESS = "criteria without words are left out"
WORTHLESS = "criteria of 0 points are left out"
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
        if not item["text"].strip():
            all_notes.append(Note(WORDLESS, f"{task['id']}: {name}"))
        elif item["weight"] == 0:
            all_notes.append(Note(WORTHLESS, f"{task['id']}: {name}"))
        else:
            criteria.append({"id": name, **{field: value for field, value in item.items() if field != "about"}})
            about |= {name: item["about"]} if item["about"] else {}
    if not any(criterion["weight"] > 0 for criterion in criteria):
        return None, [*all_notes, Note(NO_GAIN, task["id"])]
    metadata = {**task["metadata"], **({"criteria": about} if about else {})}
    return {**task, "metadata": metadata, "rubric": {"criteria": criteria}}, all_notes


class ScoredItem(ImportedRow):
    """A criterion for a response, or the required content of a section of it (named by `tags`), and its points."""

    criterion: str
    points: Points
    tags: str | tuple[str, ...] | None = None

    def criterion_fields(self) -> dict[str, Any]:
        """Return the fields of a criterion."""
        tags = [self.tags] if isinstance(self.tags, str) else self.tags
        return {"text": self.criterion, "weight": self.points, "about": nonempty_fields(tags=tags, **self.other)}


class RubricItem(ScoredItem):
    """A criterion of HealthBench, possibly with negative points."""

    tags: tuple[str, ...] | None = None


class IdealCompletions(ImportedRow):
    """Physicians' completions, in one of three groups, and the models' completions that they were shown."""

    ideal_completion: str | None = None
    ideal_completions_group: str | None = None
    ideal_completions_ref_completions: tuple[str | None, ...] | None = None


class ImportedExample(TaskRow):
    """HealthBench (openai/simple-evals): a conversation that ends with the user, with a physician's rubric."""

    KEY = "prompt_id"
    EXPECTED = "HealthBench's examples"

    prompt_id: Key
    prompt: tuple[ImportedTurn, ...] = Field(min_length=1)
    rubrics: tuple[RubricItem, ...]
    example_tags: tuple[str, ...] | None = None
    ideal_completions_data: IdealCompletions | None = None
    canary: str | None = None

    def to_content(self) -> Content:
        """Return the example with its rubric, and with the ideal and reference completions as responses."""
        responses, notes = self._completions()
        task = {
            "id": self.prompt_id,
            "query": [turn.message() for turn in self.prompt],
            "responses": responses,
            "metadata": nonempty_fields(example_tags=self.example_tags, canary=self.canary, other=self.other),
        }
        return _with_rubric(task, (item.criterion_fields() for item in self.rubrics), notes)

    def _completions(self) -> tuple[list[dict[str, Any]], list[Note]]:
        """Return the completions as responses, and notes on completions without text."""
        data = self.ideal_completions_data
        if data is None:
            return [], []
        references = enumerate(data.ideal_completions_ref_completions or (), 1)
        completions = {"ideal": data.ideal_completion, **{f"reference-{n}": text for n, text in references}}
        about = nonempty_fields(ideal_completions_group=data.ideal_completions_group, other=data.other)
        responses = []
        notes = []
        for name, text in completions.items():
            if text and text.strip():
                agent, _, _ = name.partition("-")
                responses.append({"id": f"{self.prompt_id}/{name}", "agent": agent, "text": text, "metadata": about})
            else:
                notes.append(Note(TEXTLESS, f"{self.prompt_id}: {name}"))
        return responses, notes


RANGES = ("1-2", "3-4", "5-6", "7-8", "9-10")


class Entry(ImportedRow):
    """An entry of a checklist, and the meaning of each of the `RANGES` of its scale."""

    name: str
    criteria_description: str | None = None

    def criterion_fields(self) -> dict[str, Any]:
        """Return the fields of a criterion; its anchors are the described ranges, by their ends."""
        text = ": ".join(part for part in (self.name, self.criteria_description) if part)
        about = self.other
        anchors = nonempty_fields(**{ends: about.pop(ends, None) for ends in RANGES})
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
    domain1: str | None = None
    domain2: str | None = None
    lang: str | None = None

    def to_content(self) -> Content:
        """Return the query with its checklist as a rubric of criteria on the scale [1, 10], each of weight 1."""
        about = nonempty_fields(domain1=self.domain1, domain2=self.domain2, lang=self.lang, other=self.other)
        task = {"id": self.index, "query": self.query, "metadata": about}
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
    label: str | None = None
    reference: str | None = None

    def to_content(self) -> Content:
        """Return the case with its rubric; an item has parts if its sub-items' points add up to its own.

        Rows have no ids: the id of a task contains the digest of its row.
        """
        rubric = [[item.criterion, item.points] for item in self.rubrics]
        name = f"case-{digest_of([self.context, self.question, rubric])[:12]}"
        task = {
            "id": name,
            "query": f"## 案例\n{self.context}\n\n## 问题\n{self.question}" if self.context else self.question,
            "reference": self.reference,
            "metadata": nonempty_fields(label=self.label, other=self.other),
        }
        parts = [_weighted_parts(item) for item in self.rubrics]
        whole = [Note(WHOLE, f"{name}: criterion-{n}") for n, item_parts in enumerate(parts, 1) if item_parts is None]
        items = (
            item.criterion_fields() | ({"parts": item_parts} if item_parts is not None and len(item_parts) > 1 else {})
            for item, item_parts in zip(self.rubrics, parts, strict=True)
        )
        return _with_rubric(task, items, whole)


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
