"""JudgeBench (ScalerLab/JudgeBench): pairs of a model's responses, of which one is right."""

from typing import Literal

from pydantic import Field

from jurygraph.sources.importers.rows import Content, Format, Key, Row, nonempty_fields


class Pair(Row):
    """Two responses of one model to a question, and a label for the right one."""

    pair_id: Key
    question: str = Field(min_length=1)
    response_A: str
    response_B: str
    label: Literal["A>B", "B>A"]
    response_model: str | None = None
    source: str | None = None
    original_id: Key | None = None


def _to_content(pair: Pair) -> Content:
    """Return a pair with its two responses, each labelled `preferred` or not."""
    responses = [
        {
            "id": f"{pair.pair_id}/{name}",
            "agent": pair.response_model,
            "text": text,
            "labels": {"preferred": pair.label.startswith(name)},
        }
        for name, text in (("A", pair.response_A), ("B", pair.response_B))
    ]
    about = nonempty_fields(source=pair.source, original_id=pair.original_id, other=pair.other)
    return Content({"id": pair.pair_id, "query": pair.question, "responses": responses, "metadata": about})


JUDGEBENCH = Format(Pair, _to_content, "pair_id", "JudgeBench's pairs")
