"""HealthBench (openai/simple-evals): conversations with physicians' rubrics, whose criteria are met or not."""

from typing import Any

from pydantic import Field

from jurygraph.sources.importers.rows import Content, Format, Key, Note, Points, Row, Turn, nonempty_fields, with_rubric

TEXTLESS = "completions without text are left out"


class RubricItem(Row):
    """A criterion for a response, possibly with negative points."""

    criterion: str
    points: Points
    tags: tuple[str, ...] | None = None


class IdealCompletions(Row):
    """Physicians' completions, in one of three groups, and the models' completions that they were shown."""

    ideal_completion: str | None = None
    ideal_completions_group: str | None = None
    ideal_completions_ref_completions: tuple[str | None, ...] | None = None


class Example(Row):
    """A conversation that ends with the user, and its rubric."""

    prompt_id: Key
    prompt: tuple[Turn, ...] = Field(min_length=1)
    rubrics: tuple[RubricItem, ...]
    example_tags: tuple[str, ...] | None = None
    ideal_completions_data: IdealCompletions | None = None
    canary: str | None = None


def _to_content(example: Example) -> Content:
    """Return an example with its rubric, and with the ideal and reference completions as responses."""
    responses, notes = _completions(example)
    task = {
        "id": example.prompt_id,
        "query": [turn.message() for turn in example.prompt],
        "responses": responses,
        "metadata": nonempty_fields(example_tags=example.example_tags, canary=example.canary, other=example.other),
    }
    items = (
        {"text": item.criterion, "weight": item.points, "about": nonempty_fields(tags=item.tags, **item.other)}
        for item in example.rubrics
    )
    return with_rubric(task, items, notes)


def _completions(example: Example) -> tuple[list[dict[str, Any]], list[Note]]:
    """Return the completions of an example as responses, and notes on completions without text."""
    data = example.ideal_completions_data
    if data is None:
        return [], []
    references = enumerate(data.ideal_completions_ref_completions or (), 1)
    completions = [
        ("ideal", "ideal", data.ideal_completion),
        *((f"reference-{n}", "reference", text) for n, text in references),
    ]
    about = nonempty_fields(ideal_completions_group=data.ideal_completions_group, other=data.other)
    responses = [
        {"id": f"{example.prompt_id}/{name}", "agent": agent, "text": text, "metadata": about}
        for name, agent, text in completions
        if text and text.strip()
    ]
    missing = [name for name, _, text in completions if not (text and text.strip())]
    return responses, [Note(TEXTLESS, f"{example.prompt_id}: {name}") for name in missing]


HEALTHBENCH = Format(Example, _to_content, "prompt_id", "HealthBench's examples")
