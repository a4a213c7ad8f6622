"""WritingBench (X-PLUG/WritingBench): queries with checklists, each entry scored from 1 to 10 with anchors."""

from typing import Any

from pydantic import Field

from jurygraph.sources.importers.rows import Content, Format, Key, Row, nonempty_fields, with_rubric

SCALE = (1.0, 10.0)
_RANGES = ("1-2", "3-4", "5-6", "7-8", "9-10")


class Entry(Row):
    """An entry of a checklist, and the meaning of each range of its scale."""

    name: str
    criteria_description: str | None = None
    at_1_2: str | None = Field(default=None, alias="1-2")
    at_3_4: str | None = Field(default=None, alias="3-4")
    at_5_6: str | None = Field(default=None, alias="5-6")
    at_7_8: str | None = Field(default=None, alias="7-8")
    at_9_10: str | None = Field(default=None, alias="9-10")

    @property
    def anchors(self) -> dict[str, str]:
        """The described ranges, by their ends."""
        texts = (self.at_1_2, self.at_3_4, self.at_5_6, self.at_7_8, self.at_9_10)
        return nonempty_fields(**dict(zip(_RANGES, texts, strict=True)))


class Query(Row):
    """A writing task and its checklist: five entries, or one or two in the sets about a requirement."""

    index: Key
    query: str = Field(min_length=1)
    checklist: tuple[Entry, ...]
    domain1: str | None = None
    domain2: str | None = None
    lang: str | None = None


def _to_content(query: Query) -> Content:
    """Return a query with its checklist as a rubric of criteria on the scale [1, 10], each of weight 1."""
    about = nonempty_fields(domain1=query.domain1, domain2=query.domain2, lang=query.lang, other=query.other)
    task = {"id": query.index, "query": query.query, "metadata": about}
    return with_rubric(task, map(_criterion_fields, query.checklist))


def _criterion_fields(entry: Entry) -> dict[str, Any]:
    text = ": ".join(part for part in (entry.name, entry.criteria_description) if part)
    return {"text": text, "weight": 1.0, "scale": SCALE, "anchors": entry.anchors, "about": entry.other}


WRITINGBENCH = Format(Query, _to_content, "index", "WritingBench's queries")
