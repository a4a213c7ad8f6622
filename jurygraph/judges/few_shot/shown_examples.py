"""Choose the examples that a response's judge is shown, from the candidates that a plan froze.

No example may give the response away: not the judged item, by whichever reviewer, no item of its group, and no text
that is nearly the same. Such a candidate is dropped, and the next one takes its place.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Self

from jurygraph.judges.few_shot.example_filter import Example
from jurygraph.judges.few_shot.history import ReviewerHistory
from jurygraph.judges.few_shot.near_duplicates import is_near_duplicate
from jurygraph.prompts import Shot
from jurygraph.schema import ExampleUse, Response, TaskView

TARGET_PSEUDONYM = "reviewer 1"
"""Pseudonym of the reviewer whose score is predicted; others are numbered in order of appearance."""


class ShownExamples(NamedTuple):
    """The examples that are shown, and the outcome for them and for the candidates before them."""

    examples: tuple[Example, ...]
    uses: tuple[ExampleUse, ...]

    def first_examples(self, count: int) -> "ShownExamples":
        """Return at most `count` of the examples, with all candidates that were dropped."""
        examples = self.examples[:count]
        kept = {example.digest for example in examples}
        return ShownExamples(
            examples, tuple(use for use in self.uses if use.dropped is not None or use.fingerprint in kept)
        )


class JudgedItem(NamedTuple):
    """A judged item: names under which it may have been rated, its groups, and its texts."""

    names: AbstractSet[str]
    groups: AbstractSet[str]
    texts: Sequence[str]

    @classmethod
    def from_response(cls, response: Response, view: TaskView, history: ReviewerHistory) -> Self:
        """Collect the names, groups and texts from the response, its task and the history.

        The task's id counts as a name for texts rated under it.
        """
        names = {response.id, *history.items_of(response.id)}
        groups = history.groups_of(names) | ({view.group} if view.group is not None else set())
        other_texts = history.texts_of({*names, view.id}) - {response.text}
        return cls(names, groups, (response.text, *sorted(other_texts)))


def candidate_examples(examples: Iterable[Example], view: TaskView, history: ReviewerHistory) -> list[Example]:
    """Return the examples that neither are the task nor of its group; this is known before there is a response."""
    names = {view.id, *history.items_of(view.id)} | ({view.group} if view.group is not None else set())
    groups = names | history.groups_of(names)
    return [
        example
        for example in examples
        if names.isdisjoint((example.key, example.item)) and groups.isdisjoint(_groups(example, history))
    ]


def choose_examples(
    candidates: Sequence[Example], count: int, response: Response, view: TaskView, history: ReviewerHistory
) -> ShownExamples:
    """Return the first `count` candidates that do not give the response away."""
    judged = JudgedItem.from_response(response, view, history)
    examples: list[Example] = []
    uses: list[ExampleUse] = []
    for candidate in candidates:
        if len(examples) == count:
            break
        reason = _leak_reason(candidate, judged, history)
        uses.append(example_use(candidate, reason))
        if reason is None:
            examples.append(candidate)
    return ShownExamples(tuple(examples), tuple(uses))


def example_use(example: Example, dropped: str | None = None) -> ExampleUse:
    """Return the record of an example for traces."""
    return ExampleUse(
        item=example.key, reviewer=example.reviewer, score=example.score, fingerprint=example.digest, dropped=dropped
    )


def _groups(example: Example, history: ReviewerHistory) -> set[str]:
    """Return the groups of the example, and of its item by any agent."""
    return history.groups_of((example.key, example.item)) | ({example.group} if example.group is not None else set())


def _leak_reason(example: Example, judged: JudgedItem, history: ReviewerHistory) -> str | None:
    if example.key in judged.names or example.item in judged.names:
        return "it is the judged item"
    if not judged.groups.isdisjoint(_groups(example, history)):
        return "it is of the judged item's group"
    if any(is_near_duplicate(example.text, text) for text in judged.texts):
        return "it says nearly the same as the judged item"
    if example.reason is not None and any(is_near_duplicate(example.reason, text) for text in judged.texts):
        return "its reason says nearly the same as the judged item"
    return None


def as_shots(examples: Sequence[Example], target: str) -> tuple[Shot, ...]:
    """Return examples in the form for the prompt, with pseudonyms for reviewers."""
    names = {target: TARGET_PSEUDONYM}
    for example in examples:
        names.setdefault(example.reviewer, f"reviewer {len(names) + 1}")
    return tuple(
        Shot(names[example.reviewer], example.text, f"{example.score:.15g}", example.reason or "")
        for example in examples
    )
