"""Reviewers' ratings of other items, from which a judge's examples are drawn."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Self

from jurygraph.judges.few_shot.example_filter import (
    OMISSION_REASONS,
    Example,
    ExampleFilter,
    Scales,
    join_names,
    rated_text,
)
from jurygraph.messages import did_you_mean, quote
from jurygraph.schema import digest_of
from jurygraph.schema.rating import Rating
from jurygraph.sources.ratings import Ratings, read_ratings, read_texts


class ReviewerHistory:
    """Examples by reviewer, dimension and domain, in an order that does not depend on the order of the file."""

    def __init__(self, ratings: Ratings, texts: Mapping[str, str] = {}, *, scales: Scales) -> None:
        """Select the ratings that can be shown. `scales` holds the requested dimensions, each with its ends.

        `texts` holds the items' texts by key, for ratings without one. If no rating names a dimension, all are of the
        one requested. Raises `InputError` if several are requested then, or if an item has two groups.
        """
        example_filter = ExampleFilter(ratings, texts, scales)
        self.examples = tuple(
            sorted(example_filter.examples(), key=lambda example: (example.reviewer, example.key, example.dimension))
        )
        self.left_out = example_filter.omitted
        """Ratings that cannot be shown, by reason; together with the examples, these are all ratings."""
        self.reviewers = tuple(sorted({rating.reviewer for _, rating in ratings.rows}))
        """All reviewers in the file, including those without examples."""
        self.domains = tuple(sorted({example.domain for example in self.examples if example.domain is not None}))
        self._name, self._scales, self._unread_columns = ratings.name, scales, ratings.unread
        self._named_dimensions = {rating.dimension for _, rating in ratings.rows if rating.dimension is not None}
        self._examples_by_dimension = _group_examples(self.examples)
        self._groups: dict[str, set[str]] = {}
        self._items: dict[str, set[str]] = {}
        self._texts: dict[str, set[str]] = {}
        for _, rating in ratings.rows:
            self._record_relations(rating, rated_text(rating, texts))

    def _record_relations(self, rating: Rating, text: str | None) -> None:
        """Record the item, group and text of a rating, even if it cannot be shown."""
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
        """Read the history from a RATINGS file, with texts from it or from a TEXTS file.

        `columns` and `text_columns` map our column names to those of the files. Raises `InputError`.
        """
        text_by_key = {} if texts is None else read_texts(texts, text_columns)
        return cls(read_ratings(path, columns), text_by_key, scales=scales)

    def examples_of(self, reviewer: str, dimension: str, domain: str | None = None) -> tuple[Example, ...]:
        """Return the examples of a reviewer; of all domains if none is given."""
        return self._examples_for(dimension, domain).examples_of(reviewer)

    def examples_of_others(self, reviewer: str, dimension: str, domain: str | None = None) -> tuple[Example, ...]:
        """Return the examples of all reviewers but one."""
        return self._examples_for(dimension, domain).examples_of_others(reviewer)

    def example(self, digest: str) -> Example | None:
        """Return the example with a digest; None if there is none."""
        return self._by_digest.get(digest)

    def items_of(self, key: str) -> set[str]:
        """Return the items that were rated under a key: usually one, without the agent that the key may include."""
        return self._items.get(key, set())

    def groups_of(self, names: Iterable[str]) -> set[str]:
        """Return the groups of all ratings under these names, including ratings left out.

        A name is a key, or an item of any agent.
        """
        return {group for name in names for group in self._groups.get(name, ())}

    def texts_of(self, names: Iterable[str]) -> set[str]:
        """Return the texts of all ratings under these names, which mean the same as in `groups_of`."""
        return {text for name in names for text in self._texts.get(name, ())}

    def notes(self, shots: int = 0) -> tuple[str, ...]:
        """Describe the history in sentences: its number of ratings, those left out, and reviewers with sparse ratings.

        Ratings are sparse if there are too few of them, or if all have the same score. `shots` is the number of
        examples of a reviewer that a judge is to be shown.
        """
        return tuple(self._describe(shots))

    def _describe(self, shots: int) -> Iterator[str]:
        total = len(self.examples) + sum(omitted.number for omitted in self.left_out)
        reviewers = _format_count(len({example.reviewer for example in self.examples}), "reviewer")
        yield f"Of {_format_count(total, 'rating')} in {self._name}, {len(self.examples)} can be shown, by {reviewers}."
        for column, hint in self._unread_columns.items():
            yield f"Not read: column {quote(column)}{f'; {hint}' if hint else '.'}"
        for kind, number, first in self.left_out:
            yield f"Left out: {_format_count(number, 'rating')} {OMISSION_REASONS[kind]}; the first is {first}."
        for dimension in sorted(self._scales):
            if self._examples_for(dimension, None).examples:
                yield from self._describe_sparse(dimension, shots)
            else:
                hint = (
                    None
                    if dimension in self._named_dimensions
                    else did_you_mean(dimension, sorted(self._named_dimensions))
                )
                yield f"No rating for {quote(dimension)} can be shown{f'; {hint}' if hint else '.'}"

    def _describe_sparse(self, dimension: str, shots: int) -> Iterator[str]:
        """Yield notes on reviewers with too few ratings of this dimension, or with the same score in all."""
        scores = {name: [example.score for example in self.examples_of(name, dimension)] for name in self.reviewers}
        total = sum(map(len, scores.values()))
        own_counts = {name: len(ratings) for name, ratings in scores.items() if len(ratings) < shots}
        others_counts = {name: total - len(ratings) for name, ratings in scores.items() if total - len(ratings) < shots}
        constant = {
            name: f"{ratings[0]:g}, {len(ratings)} times"
            for name, ratings in scores.items()
            if len(ratings) > 1 and len(set(ratings)) == 1
        }
        notes: tuple[tuple[str, Mapping[str, object]], ...] = (
            (f"fewer than {shots} ratings", own_counts),
            (f"fewer than {shots} ratings by others", others_counts),
            ("one rating", {name: f"{ratings[0]:g}" for name, ratings in scores.items() if len(ratings) == 1}),
            ("one score alone", constant),
        )
        one_sided = [quote(name) for name, ratings in scores.items() if len(ratings) in (0, total)]
        if shots and one_sided:
            yield (
                f"Nothing is shown for {quote(dimension)}, and judges with examples abstain, where the reviewer or "
                f"everybody else has no rating that can be shown: {join_names(one_sided)}."
            )
        for description, reviewers in notes:
            if reviewers:
                named = join_names([f"{quote(name)} ({detail})" for name, detail in reviewers.items()])
                yield f"With {description} for {quote(dimension)}: {named}."

    def _examples_for(self, dimension: str, domain: str | None) -> "_ExampleGroup":
        return self._examples_by_dimension.get((dimension, domain), _ExampleGroup(()))

    @cached_property
    def digest(self) -> str:
        """Digest of all examples, and of the relations by which some of them are dropped."""
        return digest_of([sorted(self._by_digest), self.relations_digest])

    @cached_property
    def relations_digest(self) -> str:
        """Digest of the relations by which an example can give a judged item away: items, groups and texts by name."""
        kinds = self._items, self._groups, self._texts
        return digest_of([[[name, sorted(values)] for name, values in sorted(kind.items())] for kind in kinds])

    @cached_property
    def _by_digest(self) -> Mapping[str, Example]:
        return {example.digest: example for example in self.examples}


class _ExampleGroup:
    """Examples of one dimension, of one domain or all, ordered by reviewer."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self.examples = tuple(examples)
        self._spans: dict[str, tuple[int, int]] = {}
        start = 0
        for reviewer, group in groupby(examples, lambda example: example.reviewer):
            stop = start + sum(1 for _ in group)
            self._spans[reviewer] = start, stop
            start = stop

    def examples_of(self, reviewer: str) -> tuple[Example, ...]:
        start, stop = self._spans.get(reviewer, (0, 0))
        return self.examples[start:stop]

    def examples_of_others(self, reviewer: str) -> tuple[Example, ...]:
        start, stop = self._spans.get(reviewer, (0, 0))
        return self.examples[:start] + self.examples[stop:]


def _group_examples(examples: Iterable[Example]) -> Mapping[tuple[str, str | None], _ExampleGroup]:
    """Group the examples by dimension, and by dimension and domain."""
    parts: dict[tuple[str, str | None], list[Example]] = {}
    for example in examples:
        for domain in {None, example.domain}:
            parts.setdefault((example.dimension, domain), []).append(example)
    return {name: _ExampleGroup(members) for name, members in parts.items()}


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
