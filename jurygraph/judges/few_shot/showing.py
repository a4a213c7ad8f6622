"""From the candidates that a plan froze to the examples that one response's judge is shown.

Nothing may be shown that gives the response away: not the judged item, whoever rated it, no item of its group, and
nothing that says nearly the same. Such a candidate is dropped, and the next one takes its place.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from jurygraph.judges.few_shot.history import Example, ReviewerHistory
from jurygraph.judges.few_shot.nearness import near_duplicate
from jurygraph.prompts import Shot
from jurygraph.schema import ExampleUse, Response, TaskView

TARGET = "reviewer 1"
"""The pseudonym of the reviewer whose score is predicted; others are numbered as they appear."""


class Shown(NamedTuple):
    """The examples that are shown, and what became of every candidate that was looked at."""

    examples: tuple[Example, ...]
    uses: tuple[ExampleUse, ...]


def may_be_candidates(examples: Iterable[Example], view: TaskView, history: ReviewerHistory) -> list[Example]:
    """Examples that are neither the task itself nor of its group: known before any response is."""
    names = {view.id, *history.items_of(view.id)} | ({view.group} if view.group is not None else set())
    groups = names | history.groups_of(names)
    return [one for one in examples if names.isdisjoint((one.key, one.item)) and one.group not in groups]


def shown_of(
    candidates: Sequence[Example], count: int, response: Response, view: TaskView, history: ReviewerHistory
) -> Shown:
    """The first `count` candidates that give the response not away."""
    judged = {response.id, *history.items_of(response.id)}
    groups = history.groups_of(judged)
    if view.group is not None:
        groups = groups | {view.group}
    examples: list[Example] = []
    uses: list[ExampleUse] = []
    for candidate in candidates:
        if len(examples) == count:
            break
        why = _gives_away(candidate, response, judged, groups)
        uses.append(use_of(candidate, why))
        if why is None:
            examples.append(candidate)
    return Shown(tuple(examples), tuple(uses))


def use_of(example: Example, dropped: str | None = None) -> ExampleUse:
    """An example as traces name it."""
    return ExampleUse(
        item=example.key, reviewer=example.reviewer, score=example.score, fingerprint=example.digest, dropped=dropped
    )


def _gives_away(example: Example, response: Response, judged: Collection[str], groups: Collection[str]) -> str | None:
    if example.key in judged or example.item in judged:
        return "it is the judged item"
    if example.group in groups:
        return "it is of the judged item's group"
    if near_duplicate(example.text, response.text):
        return "it says nearly the same as the judged item"
    if example.reason is not None and near_duplicate(example.reason, response.text):
        return "its reason says nearly the same as the judged item"
    return None


def as_shots(examples: Sequence[Example], target: str) -> tuple[Shot, ...]:
    """Examples as the prompt has them, with pseudonyms for who scored."""
    names = {target: TARGET}
    for example in examples:
        names.setdefault(example.reviewer, f"reviewer {len(names) + 1}")
    return tuple(Shot(names[one.reviewer], one.text, f"{one.score:.15g}", one.reason or "") for one in examples)
