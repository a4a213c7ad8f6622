"""What reviewers said of other items: the rated items from which a judge's examples are drawn."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple, Self, get_args

from jurygraph.errors import InputError
from jurygraph.schema import Noun, digest_of
from jurygraph.schema.noun import Number
from jurygraph.schema.rating import Rating
from jurygraph.sources.complaint import nearest, quoted
from jurygraph.sources.ratings import Ratings, read_ratings, read_texts

Scales = Mapping[str, tuple[float, float]]
Kind = Literal["no_dimension", "other_dimension", "contradictory", "off_scale", "no_text", "blank_text", "duplicate"]

_WHY: Mapping[Kind, str] = {
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


class ReviewerHistory:
    """Examples by reviewer, dimension and domain, in an order that the order of the file does not change."""

    def __init__(self, ratings: Ratings, texts: Mapping[str, str] = {}, *, scales: Scales) -> None:
        """Sort out what can be shown. `scales` are the dimensions asked about, each with its ends.

        `texts` says what items say, by their keys, where a rating does not. Ratings of which none names a dimension
        are of the one asked about. Raises `InputError` where several are, or an item is of two groups.
        """
        sieve = _Sieve(ratings, texts, scales)
        self.examples = tuple(sorted(sieve.examples(), key=lambda one: (one.reviewer, one.key, one.dimension)))
        self.left_out = sieve.left_out
        """What cannot be shown, by reason; with the examples, these are all ratings."""
        self.reviewers = tuple(sorted({rating.reviewer for _, rating in ratings.rows}))
        """Everybody in the file, also those of whom nothing is left."""
        self.domains = tuple(sorted({one.domain for one in self.examples if one.domain is not None}))
        self._name, self._scales, self._unread = ratings.name, scales, ratings.unread
        self._stated = {rating.dimension for _, rating in ratings.rows if rating.dimension is not None}
        self._parts = _parts(self.examples)
        self._groups: dict[str, set[str]] = {}
        self._items: dict[str, set[str]] = {}
        self._texts: dict[str, set[str]] = {}
        for _, rating in ratings.rows:
            self._relate(rating, _text(rating, texts))

    def _relate(self, rating: Rating, text: str | None) -> None:
        """Remember of which item and group a rating is, and what it is of says, also where it cannot be shown."""
        self._items.setdefault(rating.key, set()).add(rating.item)
        for name in {rating.key, rating.item}:
            if rating.group is not None:
                self._groups.setdefault(name, set()).add(rating.group)
            if text is not None:
                self._texts.setdefault(name, set()).add(text)

    @classmethod
    def read(
        cls,
        path: str | Path,
        texts: str | Path | None = None,
        columns: Mapping[str, str] = {},
        *,
        scales: Scales,
        text_columns: Mapping[str, str] = {},
    ) -> Self:
        """The history in a RATINGS file, with texts from it or from a TEXTS file.

        `columns` and `text_columns` are what the two call what we call otherwise. Raises `InputError`.
        """
        said = {} if texts is None else read_texts(texts, text_columns)
        return cls(read_ratings(path, columns), said, scales=scales)

    def of(self, reviewer: str, dimension: str, domain: str | None = None) -> tuple[Example, ...]:
        """The examples of a reviewer; of whatever domain where none is named."""
        return self._part(dimension, domain).of(reviewer)

    def others(self, reviewer: str, dimension: str, domain: str | None = None) -> tuple[Example, ...]:
        """The examples of everybody but a reviewer."""
        return self._part(dimension, domain).others(reviewer)

    def example(self, digest: str) -> Example | None:
        """The example that has a digest; None where there is none."""
        return self._by_digest.get(digest)

    def items_of(self, key: str) -> set[str]:
        """The items that were rated under a key: one, and without its agent another name than that."""
        return self._items.get(key, set())

    def groups_of(self, names: Iterable[str]) -> set[str]:
        """The groups of what has one of these names: a key, or an item whatever its agent; also of what is left out."""
        return {group for name in names for group in self._groups.get(name, ())}

    def texts_of(self, names: Iterable[str]) -> set[str]:
        """What is said by all that has one of these names, as `groups_of`."""
        return {text for name in names for text in self._texts.get(name, ())}

    def notes(self, shots: int = 0) -> tuple[str, ...]:
        """In plain sentences how many ratings there are, what was left out, and whose history is thin or says little.

        `shots` is how many examples of a reviewer a judge is to be shown.
        """
        return tuple(self._notes(shots))

    def _notes(self, shots: int) -> Iterator[str]:
        total = len(self.examples) + sum(left.number for left in self.left_out)
        people = _counted(len({one.reviewer for one in self.examples}), "reviewer")
        yield f"Of {_counted(total, 'rating')} in {self._name}, {len(self.examples)} can be shown, by {people}."
        for column, hint in self._unread.items():
            yield f"Not read: column {quoted(column)}{f'; {hint}' if hint else '.'}"
        for kind, number, first in self.left_out:
            yield f"Left out: {_counted(number, 'rating')} {_WHY[kind]}; the first is {first}."
        for dimension in sorted(self._scales):
            if self._part(dimension, None).examples:
                yield from self._thin(dimension, shots)
            else:
                hint = None if dimension in self._stated else nearest(dimension, sorted(self._stated))
                yield f"No rating for {quoted(dimension)} can be shown{f'; {hint}' if hint else '.'}"

    def _thin(self, dimension: str, shots: int) -> Iterator[str]:
        """Whose history is too short for so many examples, or says little, as far as this dimension goes."""
        scores = {name: [one.score for one in self.of(name, dimension)] for name in self.reviewers}
        total = sum(map(len, scores.values()))
        own = {name: len(given) for name, given in scores.items() if len(given) < shots}
        by_others = {name: total - len(given) for name, given in scores.items() if total - len(given) < shots}
        constant = {
            name: f"{given[0]:g}, {len(given)} times"
            for name, given in scores.items()
            if len(given) > 1 and len(set(given)) == 1
        }
        found: tuple[tuple[str, Mapping[str, object]], ...] = (
            (f"fewer than {shots} ratings", own),
            (f"fewer than {shots} ratings by others", by_others),
            ("one rating", {name: f"{given[0]:g}" for name, given in scores.items() if len(given) == 1}),
            ("one score alone", constant),
        )
        one_sided = [quoted(name) for name, given in scores.items() if len(given) in (0, total)]
        if shots and one_sided:
            yield (
                f"Nothing is shown for {quoted(dimension)}, and judges with examples abstain, where the reviewer or "
                f"everybody else has no rating that can be shown: {_listed(one_sided)}."
            )
        for what, whose in found:
            if whose:
                named = _listed([f"{quoted(name)} ({said})" for name, said in whose.items()])
                yield f"With {what} for {quoted(dimension)}: {named}."

    def _part(self, dimension: str, domain: str | None) -> "_Part":
        return self._parts.get((dimension, domain), _Part(()))

    @cached_property
    def digest(self) -> str:
        """Of all examples, and of all by which some of them are dropped."""
        return digest_of([sorted(self._by_digest), self.relations])

    @cached_property
    def relations(self) -> str:
        """Digest of all by which an example is known to give a judged item away: items, groups and texts by name."""
        kinds = self._items, self._groups, self._texts
        return digest_of([[[name, sorted(one)] for name, one in sorted(kind.items())] for kind in kinds])

    @cached_property
    def _by_digest(self) -> Mapping[str, Example]:
        return {one.digest: one for one in self.examples}


class _Part:
    """Examples of one dimension, of one domain or all, in the order of their reviewers."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self.examples = tuple(examples)
        self._spans: dict[str, tuple[int, int]] = {}
        start = 0
        for reviewer, own in groupby(examples, lambda one: one.reviewer):
            stop = start + sum(1 for _ in own)
            self._spans[reviewer] = start, stop
            start = stop

    def of(self, reviewer: str) -> tuple[Example, ...]:
        start, stop = self._spans.get(reviewer, (0, 0))
        return self.examples[start:stop]

    def others(self, reviewer: str) -> tuple[Example, ...]:
        start, stop = self._spans.get(reviewer, (0, 0))
        return self.examples[:start] + self.examples[stop:]


def _parts(examples: Iterable[Example]) -> Mapping[tuple[str, str | None], _Part]:
    """The examples of each dimension, and of each of its domains."""
    parts: dict[tuple[str, str | None], list[Example]] = {}
    for one in examples:
        for domain in {None, one.domain}:
            parts.setdefault((one.dimension, domain), []).append(one)
    return {name: _Part(own) for name, own in parts.items()}


class _Sieve:
    """Tells ratings that can be shown from those that cannot. Of each it is one or the other, for one reason."""

    def __init__(self, ratings: Ratings, texts: Mapping[str, str], scales: Scales) -> None:
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
        text = _text(rating, self._texts)
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
        asked = _listed([quoted(name) for name in sorted(scales)])
        wrong = f"{ratings.name}: names no `dimension`, and {len(scales)} are asked about: {asked}"
        raise InputError(f"{wrong}; give each rating its own, or ask about one")
    return next(iter(scales))


def _text(rating: Rating, texts: Mapping[str, str]) -> str | None:
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


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    shown, more = names[:_MOST_NAMED], len(names) - _MOST_NAMED
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
