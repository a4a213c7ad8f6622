"""Select the ratings that a judge can be shown as examples, and report why the others cannot be shown."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from jurygraph.errors import InputError
from jurygraph.messages import quote
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Number
from jurygraph.schema.rating import Rating
from jurygraph.sources.ratings import Ratings

Scales = Mapping[str, tuple[float, float]]
Kind = Literal["no_dimension", "other_dimension", "contradictory", "off_scale", "no_text", "blank_text", "duplicate"]

OMISSION_REASONS: Mapping[Kind, str] = {
    "no_dimension": "without a dimension, where others have one",
    "other_dimension": "of a dimension that is not asked about",
    "contradictory": "by a reviewer who gave the same item another score for the same dimension",
    "off_scale": "with a score off the scale",
    "no_text": "of an item without a text",
    "blank_text": "of an item whose text is blank",
    "duplicate": "given before, with the same score",
}
_MAX_NAMES = 8


class Example(FrozenModel):
    """A rated item as a judge may be shown it: the score and reason of a reviewer. Its `digest` covers all fields."""

    key: str
    item: str
    group: str | None
    reviewer: str
    dimension: str
    domain: str | None
    score: Number
    text: str
    reason: str | None


class OmittedRatings(NamedTuple):
    """The number of ratings that were left out for one reason, and the location of the first of them."""

    kind: Kind
    number: int
    first: str


class ExampleFilter:
    """Separate ratings that can be shown from those that cannot; a rating is left out for exactly one reason."""

    def __init__(self, ratings: Ratings, texts: Mapping[str, str], scales: Scales) -> None:
        """Find groups and contradictions in the ratings.

        Raises `InputError` for an item of two groups, or for several dimensions if no rating names one.
        """
        self._ratings, self._texts, self._scales = ratings, texts, scales
        self._only = _only_dimension(ratings, scales)
        self._groups = _groups(ratings)
        self._contradictory = self._find_contradictions()
        self._counts: Counter[Kind] = Counter()
        self._first_locations: dict[Kind, str] = {}

    def examples(self) -> Iterable[Example]:
        """Return the examples that can be shown; equal ratings count once."""
        kept: dict[tuple[str, str, str], Example] = {}
        for location, rating in self._ratings.rows:
            example = self._to_example(rating)
            if not isinstance(example, Example):
                self._leave_out(example, location)
                continue
            cell = self._score_key(rating)
            earlier = kept.setdefault(cell, example)
            if earlier is not example:
                self._leave_out("duplicate", location)
                kept[cell] = max(earlier, example, key=_preference_key)
        return kept.values()

    @property
    def omitted(self) -> tuple[OmittedRatings, ...]:
        """Ratings that cannot be shown, after `examples` has read all."""
        kinds = [kind for kind in get_args(Kind) if kind in self._first_locations]
        return tuple(OmittedRatings(kind, self._counts[kind], self._first_locations[kind]) for kind in kinds)

    def _leave_out(self, kind: Kind, location: str) -> None:
        self._counts[kind] += 1
        self._first_locations.setdefault(kind, f"{self._ratings.name}, {location}")

    def _to_example(self, rating: Rating) -> Example | Kind:
        """Return a rating as an example, or the reason why it cannot be one."""
        dimension = rating.dimension or self._only
        text = rated_text(rating, self._texts)
        if dimension is None:
            return "no_dimension"
        if dimension not in self._scales:
            return "other_dimension"
        if self._score_key(rating) in self._contradictory:
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
            score=rating.score + 0.0,  # -0.0 would have another digest than 0.0
            text=text,
            reason=rating.reason or None,
        )

    def _score_key(self, rating: Rating) -> tuple[str, str, str]:
        """Return the key of a score: reviewer, item key and dimension."""
        return rating.reviewer, rating.key, rating.dimension or self._only or ""

    def _find_contradictions(self) -> set[tuple[str, str, str]]:
        """Return the keys for which a reviewer gave different scores."""
        scores: dict[tuple[str, str, str], float] = {}
        rows = self._ratings.rows
        return {
            cell
            for _, rating in rows
            if scores.setdefault(cell := self._score_key(rating), rating.score) != rating.score
        }


def _only_dimension(ratings: Ratings, scales: Scales) -> str | None:
    """Return the single requested dimension if no rating names one, else None."""
    if any(rating.dimension is not None for _, rating in ratings.rows):
        return None
    if len(scales) != 1:
        names = join_names([quote(name) for name in sorted(scales)])
        problem = f"{ratings.name}: names no `dimension`, and {len(scales)} are scored: {names}"
        raise InputError(f"{problem}; give each rating its own, or ask about one")
    return next(iter(scales))


def rated_text(rating: Rating, texts: Mapping[str, str]) -> str | None:
    """Return the text of a rated item: the rating's own, or else that in `texts`."""
    own_text = rating.text
    return texts.get(rating.key, own_text) if own_text is None or not own_text.strip() else own_text


def _groups(ratings: Ratings) -> Mapping[str, str]:
    """Return the group of each item that has one, even if only some of its ratings name it."""
    groups: dict[str, tuple[str, str]] = {}
    for location, rating in ratings.rows:
        if rating.group is not None:
            group, first = groups.setdefault(rating.key, (rating.group, location))
            if group != rating.group:
                problem = f"item {quote(rating.key)} is of group {quote(rating.group)} here, and of {quote(group)}"
                raise InputError(f"{ratings.name}, {location}: {problem} in {first}; give each item one group")
    return {key: group for key, (group, _) in groups.items()}


def _preference_key(example: Example) -> tuple[str, ...]:
    """Return a sort key to choose between equal ratings, independent of their order; one with a reason wins."""
    return example.reason or "", example.domain or "", example.text, example.item


def join_names(names: Sequence[str]) -> str:
    """Join names, only the first ones of many."""
    first, remaining = names[:_MAX_NAMES], len(names) - _MAX_NAMES
    return ", ".join(first) + (f" and {remaining} more" if remaining > 0 else "")
