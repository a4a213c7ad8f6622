"""From the candidates that a plan froze to the examples that one response's judge is shown.

Nothing may be shown that gives the response away: not the judged item, whoever rated it, no item of its group, and
nothing that says nearly the same. Such a candidate is dropped, and the next one takes its place.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Self

from jurygraph.judges.few_shot.history import ReviewerHistory
from jurygraph.judges.few_shot.nearness import near_duplicate
from jurygraph.judges.few_shot.sieve import Example
from jurygraph.prompts import Shot
from jurygraph.schema import ExampleUse, Response, TaskView

TARGET = "reviewer 1"
"""The pseudonym of the reviewer whose score is predicted; others are numbered as they appear."""


class Shown(NamedTuple):
    """The examples that are shown, and what became of them and of those before them."""

    examples: tuple[Example, ...]
    uses: tuple[ExampleUse, ...]

    def first(self, count: int) -> "Shown":
        """With so many examples at most, and all that was dropped."""
        shown = self.examples[:count]
        kept = {example.digest for example in shown}
        return Shown(shown, tuple(one for one in self.uses if one.dropped is not None or one.fingerprint in kept))


class Judged(NamedTuple):
    """What is known of a judged item: names under which it may have been rated, its groups, and what it says."""

    names: AbstractSet[str]
    groups: AbstractSet[str]
    texts: Sequence[str]

    @classmethod
    def of(cls, response: Response, view: TaskView, history: ReviewerHistory) -> Self:
        """As the response, its task and the history tell it. The task's own name is one for what was rated of it."""
        names = {response.id, *history.items_of(response.id)}
        groups = history.groups_of(names) | ({view.group} if view.group is not None else set())
        others = history.texts_of({*names, view.id}) - {response.text}
        return cls(names, groups, (response.text, *sorted(others)))


def may_be_candidates(examples: Iterable[Example], view: TaskView, history: ReviewerHistory) -> list[Example]:
    """Examples that are neither the task itself nor of its group: known before any response is."""
    names = {view.id, *history.items_of(view.id)} | ({view.group} if view.group is not None else set())
    groups = names | history.groups_of(names)
    return [
        one for one in examples if names.isdisjoint((one.key, one.item)) and groups.isdisjoint(_groups(one, history))
    ]


def shown_of(
    candidates: Sequence[Example], count: int, response: Response, view: TaskView, history: ReviewerHistory
) -> Shown:
    """The first `count` candidates that give the response not away."""
    judged = Judged.of(response, view, history)
    examples: list[Example] = []
    uses: list[ExampleUse] = []
    for candidate in candidates:
        if len(examples) == count:
            break
        why = _gives_away(candidate, judged, history)
        uses.append(use_of(candidate, why))
        if why is None:
            examples.append(candidate)
    return Shown(tuple(examples), tuple(uses))


def use_of(example: Example, dropped: str | None = None) -> ExampleUse:
    """An example as traces name it."""
    return ExampleUse(
        item=example.key, reviewer=example.reviewer, score=example.score, fingerprint=example.digest, dropped=dropped
    )


def _groups(example: Example, history: ReviewerHistory) -> set[str]:
    """Those of the example, and of its item whatever agent it is by."""
    return history.groups_of((example.key, example.item)) | ({example.group} if example.group is not None else set())


def _gives_away(example: Example, judged: Judged, history: ReviewerHistory) -> str | None:
    if example.key in judged.names or example.item in judged.names:
        return "it is the judged item"
    if not judged.groups.isdisjoint(_groups(example, history)):
        return "it is of the judged item's group"
    if any(near_duplicate(example.text, text) for text in judged.texts):
        return "it says nearly the same as the judged item"
    if example.reason is not None and any(near_duplicate(example.reason, text) for text in judged.texts):
        return "its reason says nearly the same as the judged item"
    return None


def as_shots(examples: Sequence[Example], target: str) -> tuple[Shot, ...]:
    """Examples as the prompt has them, with pseudonyms for who scored."""
    names = {target: TARGET}
    for example in examples:
        names.setdefault(example.reviewer, f"reviewer {len(names) + 1}")
    return tuple(Shot(names[one.reviewer], one.text, f"{one.score:.15g}", one.reason or "") for one in examples)
