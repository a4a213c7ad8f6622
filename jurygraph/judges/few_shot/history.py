"""What reviewers said of other items: the rated items from which a judge's examples are drawn."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Self

from jurygraph.judges.few_shot.sieve import WHY, Example, Scales, Sieve, listed, text_of
from jurygraph.schema import digest_of
from jurygraph.schema.rating import Rating
from jurygraph.sources.complaint import nearest, quoted
from jurygraph.sources.ratings import Ratings, read_ratings, read_texts


class ReviewerHistory:
    """Examples by reviewer, dimension and domain, in an order that the order of the file does not change."""

    def __init__(self, ratings: Ratings, texts: Mapping[str, str] = {}, *, scales: Scales) -> None:
        """Sort out what can be shown. `scales` are the dimensions asked about, each with its ends.

        `texts` says what items say, by their keys, where a rating does not. Ratings of which none names a dimension
        are of the one asked about. Raises `InputError` where several are, or an item is of two groups.
        """
        sieve = Sieve(ratings, texts, scales)
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
            self._relate(rating, text_of(rating, texts))

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
            yield f"Left out: {_counted(number, 'rating')} {WHY[kind]}; the first is {first}."
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
                f"everybody else has no rating that can be shown: {listed(one_sided)}."
            )
        for what, whose in found:
            if whose:
                named = listed([f"{quoted(name)} ({said})" for name, said in whose.items()])
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


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
