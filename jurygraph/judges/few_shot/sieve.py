"""Which ratings a judge can be shown as examples, and why the others cannot."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from jurygraph.errors import InputError
from jurygraph.schema import Noun
from jurygraph.schema.noun import Number
from jurygraph.schema.rating import Rating
from jurygraph.sources.complaint import quoted
from jurygraph.sources.ratings import Ratings

Scales = Mapping[str, tuple[float, float]]
Kind = Literal["no_dimension", "other_dimension", "contradictory", "off_scale", "no_text", "blank_text", "duplicate"]

WHY: Mapping[Kind, str] = {
    "no_dimension": "without a dimension, where others have one",
    "other_dimension": "of a dimension that is not asked about",
    "contradictory": "by a reviewer who gave the same item another score for the same dimension",
    "off_scale": "with a score off the scale",
    "no_text": "of an item without a text",
    "blank_text": "of an item whose text is blank",
    "duplicate": "given before, with the same score",
}
_MOST_NAMED = 8


class Example(Noun):
    """A rated item as a judge may be shown it: what a reviewer gave, and why. Its `digest` is of all of this."""

    key: str
    item: str
    group: str | None
    reviewer: str
    dimension: str
    domain: str | None
    score: Number
    text: str
    reason: str | None


class LeftOut(NamedTuple):
    """How many ratings were left out for one reason, and where the first of them stands."""

    kind: Kind
    number: int
    first: str


class Sieve:
    """Tells ratings that can be shown from those that cannot. Of each it is one or the other, for one reason."""

    def __init__(self, ratings: Ratings, texts: Mapping[str, str], scales: Scales) -> None:
        """Raises `InputError` where an item is of two groups, or no dimension is named and several are asked about."""
        self._ratings, self._texts, self._scales = ratings, texts, scales
        self._only = _only_dimension(ratings, scales)
        self._groups = _groups(ratings)
        self._torn = self._contradicted()
        self._numbers: Counter[Kind] = Counter()
        self._first: dict[Kind, str] = {}

    def examples(self) -> Iterable[Example]:
        """What can be shown; ratings that say the same are one."""
        kept: dict[tuple[str, str, str], Example] = {}
        for place, rating in self._ratings.rows:
            found = self._example(rating)
            if not isinstance(found, Example):
                self._leave_out(found, place)
                continue
            cell = self._cell(rating)
            earlier = kept.setdefault(cell, found)
            if earlier is not found:
                self._leave_out("duplicate", place)
                kept[cell] = max(earlier, found, key=_weight)
        return kept.values()

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What cannot, once all were looked at."""
        kinds = [kind for kind in get_args(Kind) if kind in self._first]
        return tuple(LeftOut(kind, self._numbers[kind], self._first[kind]) for kind in kinds)

    def _leave_out(self, kind: Kind, place: str) -> None:
        self._numbers[kind] += 1
        self._first.setdefault(kind, f"{self._ratings.name}, {place}")

    def _example(self, rating: Rating) -> Example | Kind:
        """A rating as an example, or why it cannot be one."""
        dimension = rating.dimension or self._only
        text = text_of(rating, self._texts)
        if dimension is None:
            return "no_dimension"
        if dimension not in self._scales:
            return "other_dimension"
        if self._cell(rating) in self._torn:
            return "contradictory"
        low, high = self._scales[dimension]
        if not low <= rating.score <= high:
            return "off_scale"
        if text is None:
            return "no_text"
        if not text.strip():
            return "blank_text"
        return Example(
            key=rating.key,
            item=rating.item,
            group=self._groups.get(rating.key),
            reviewer=rating.reviewer,
            dimension=dimension,
            domain=rating.domain,
            score=rating.score + 0.0,  # no -0.0, which is 0.0 and has another digest
            text=text,
            reason=rating.reason or None,
        )

    def _cell(self, rating: Rating) -> tuple[str, str, str]:
        """What one score is given for."""
        return rating.reviewer, rating.key, rating.dimension or self._only or ""

    def _contradicted(self) -> set[tuple[str, str, str]]:
        """For what somebody gave several scores."""
        scores: dict[tuple[str, str, str], float] = {}
        rows = self._ratings.rows
        return {cell for _, one in rows if scores.setdefault(cell := self._cell(one), one.score) != one.score}


def _only_dimension(ratings: Ratings, scales: Scales) -> str | None:
    """The dimension that all ratings are of, where none names one."""
    if any(rating.dimension is not None for _, rating in ratings.rows):
        return None
    if len(scales) != 1:
        asked = listed([quoted(name) for name in sorted(scales)])
        wrong = f"{ratings.name}: names no `dimension`, and {len(scales)} are asked about: {asked}"
        raise InputError(f"{wrong}; give each rating its own, or ask about one")
    return next(iter(scales))


def text_of(rating: Rating, texts: Mapping[str, str]) -> str | None:
    """What is rated says: by the rating itself, or else by the texts."""
    said = rating.text
    return texts.get(rating.key, said) if said is None or not said.strip() else said


def _groups(ratings: Ratings) -> Mapping[str, str]:
    """The group of each item that has one, though not every rating of it may say so."""
    stated: dict[str, tuple[str, str]] = {}
    for place, rating in ratings.rows:
        if rating.group is not None:
            group, first = stated.setdefault(rating.key, (rating.group, place))
            if group != rating.group:
                wrong = f"item {quoted(rating.key)} is of group {quoted(rating.group)} here, and of {quoted(group)}"
                raise InputError(f"{ratings.name}, {place}: {wrong} in {first}; give each item one group")
    return {key: group for key, (group, _) in stated.items()}


def _weight(example: Example) -> tuple[str, ...]:
    """Which of two examples that give the same score for the same counts: one that says why rather than one that does
    not, and else any, but whatever their order the same."""
    return example.reason or "", example.domain or "", example.text, example.item


def listed(names: Sequence[str]) -> str:
    """Names, of many the first ones."""
    shown, more = names[:_MOST_NAMED], len(names) - _MOST_NAMED
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
