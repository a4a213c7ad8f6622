"""RewardBench and RewardBench 2 (allenai/reward-bench): a prompt with chosen and rejected responses."""

from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue, field_validator

from jurygraph.schema.frozen_model import digest_of
from jurygraph.sources.importers.rows import Content, Format, Key, Name, Note, Row, Turn, nonempty_fields

ONE_SIDED = "rows without both a chosen and a rejected response are left out"
UNCOUNTED = "rows say another number of responses than they hold"
UNNAMED = "rows do not name one model for each response, so that their responses have no agent"

OneOrMoreTexts = str | tuple[str, ...]


class Comparison(Row):
    """A prompt with its chosen and rejected responses: one of each in RewardBench, lists in RewardBench 2.

    RewardBench names the model of each response separately; in RewardBench 2 `models` has those of the chosen, then
    those of the rejected responses.
    """

    id: Key
    prompt: str | tuple[Turn, ...]
    chosen: OneOrMoreTexts
    rejected: OneOrMoreTexts
    chosen_model: str | None = None
    rejected_model: str | None = None
    models: tuple[str, ...] | None = None
    num_correct: float | None = None
    num_incorrect: float | None = None
    total_completions: float | None = None
    subset: Name | None = None
    additional_metadata: dict[str, JsonValue] | None = None

    @field_validator("prompt")
    @classmethod
    def _require_messages(cls, prompt: str | tuple[Turn, ...]) -> str | tuple[Turn, ...]:
        if prompt == ():
            raise ValueError("is an empty list; give it one message at least")
        return prompt


def _to_content(row: Comparison) -> Content:
    """Return a prompt with its responses, each labelled `preferred` or not.

    Neither the ids of the responses nor their order reveal which is preferred: they are in the order of their digests,
    and if a chosen and a rejected one have the same text, a digest of id and text decides which is first.
    """
    name = row.id if row.subset is None else f"{row.subset}/{row.id}"
    chosen, rejected = ((texts,) if isinstance(texts, str) else texts for texts in (row.chosen, row.rejected))
    if not chosen or not rejected:
        return Content(None, (Note(ONE_SIDED, name),))
    agents = _agents(row, len(chosen), len(rejected))
    labelled = [(text, True) for text in chosen] + [(text, False) for text in rejected]
    shuffled = sorted(zip(labelled, agents, strict=True), key=lambda entry: _sort_key(name, *entry[0]))
    responses = [
        {"id": f"{name}/{number}", "agent": agent, "text": text, "labels": {"preferred": preferred}}
        for number, ((text, preferred), agent) in enumerate(shuffled, 1)
    ]
    query = row.prompt if isinstance(row.prompt, str) else [turn.message() for turn in row.prompt]
    about = nonempty_fields(
        subset=row.subset, additional_metadata=row.additional_metadata, models=row.models, other=row.other
    )
    task = {"id": name, "query": query, "responses": responses, "metadata": about}
    return Content(task, tuple(_inconsistencies(row, name, len(chosen), len(rejected), agents)))


def _sort_key(name: str, text: str, preferred: bool) -> tuple[str, bool]:
    """Return the sort key of a row's responses."""
    rejected_first = int(digest_of([name, text]), 16) % 2 == 1
    return digest_of(text), preferred is rejected_first


def _agents(row: Comparison, chosen: int, rejected: int) -> list[str | None]:
    """Return the model of each response, the chosen first; None if it is not known."""
    if row.models is not None and len(row.models) == chosen + rejected:
        return list(row.models)
    return [row.chosen_model] * chosen + [row.rejected_model] * rejected


def _inconsistencies(
    row: Comparison, name: str, chosen: int, rejected: int, agents: list[str | None]
) -> Iterator[Note]:
    counts: list[tuple[float | None, Any]] = [
        (row.num_correct, chosen),
        (row.num_incorrect, rejected),
        (row.total_completions, chosen + rejected),
    ]
    if any(reported is not None and reported != actual for reported, actual in counts):
        yield Note(UNCOUNTED, name)
    if row.models is not None and None in agents:
        yield Note(UNNAMED, name)


REWARDBENCH = Format(Comparison, _to_content, "id", "RewardBench's or RewardBench 2's rows")
