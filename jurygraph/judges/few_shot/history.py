"""Reviewers' ratings of other items, from which a judge's examples are drawn, and why some cannot be shown."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Annotated, NamedTuple, Self

from pydantic import Field, InstanceOf, PlainSerializer
from pydantic.json_schema import SkipJsonSchema

from jurygraph.errors import InputError
from jurygraph.judges.few_shot.pairs import swap_texts
from jurygraph.messages import did_you_mean, join_names, quote
from jurygraph.schema import FrozenModel, digest_of
from jurygraph.schema.frozen_model import Number
from jurygraph.schema.rating import Rating
from jurygraph.sources.ratings import Ratings, read_pairs, read_ratings, read_texts

Scales = Mapping[str, tuple[float, float]]
Pairs = Mapping[str, tuple[str, str]]

OMISSION_REASONS = {
    "no_dimension": "without a dimension, where others have one",
    "other_dimension": "of a dimension that is not asked about",
    "no_score": "without a score",
    "contradictory": "by a reviewer who gave the same item another score for the same dimension",
    "off_scale": "with a score off the scale",
    "no_text": "of an item without a text",
    "blank_text": "of an item whose text is blank",
    "no_pair": "of an item whose text does not hold a `first` and a `second`, each on lines of its own",
    "duplicate": "given before, with the same score",
}


class Example(FrozenModel):
    """A rated item as a judge may be shown it: the score and reason of a reviewer.

    `swapped` is the text with its two parts in each other's place, if it is a pair that is judged in both orders. The
    `digest` covers all other fields, so that the draw is the same in one order and in both.
    """

    key: str
    item: str
    group: str | None
    reviewer: str
    dimension: str
    domain: str | None
    score: Number
    text: str
    reason: str | None
    swapped: str | None = Field(default=None, exclude=True)


class OmittedRatings(NamedTuple):
    """The number of ratings that were left out for one of `OMISSION_REASONS`, and the location of the first of them."""

    kind: str
    number: int
    first: str


def select_examples(
    ratings: Ratings, texts: Mapping[str, str], scales: Scales, pairs: Pairs | None = None
) -> tuple[Iterable[Example], tuple[OmittedRatings, ...]]:
    """Return the examples that can be shown, and the other ratings, each left out for exactly one reason.

    With `pairs`, only those can be shown whose text holds the two texts of its item.
    Equal ratings count once, in any order, and one with a reason wins. Raises `InputError` for an item of two groups,
    or for several dimensions if no rating names one.
    """
    only = _only_dimension(ratings, scales)
    groups = _groups(ratings)
    cells = [(rating.reviewer, rating.key, rating.dimension or only) for _, rating in ratings.rows]
    scores: dict[tuple[str, str, str], float] = {}
    rated = list(zip(cells, ratings.rows, strict=True))
    given = ((cell, rating.score) for cell, (_, rating) in rated if rating.score is not None)
    contradictory = {cell for cell, score in given if scores.setdefault(cell, score) != score}
    kept: dict[tuple[str, str, str], Example] = {}
    left_out: dict[str, list[str]] = {kind: [] for kind in OMISSION_REASONS}
    for cell, (location, rating) in rated:
        text = rated_text(rating, texts)
        pair = None if pairs is None or text is None else pairs.get(rating.key)
        swapped = None if pair is None else swap_texts(text or "", *pair)
        kind = _omission(rating, cell[2], text, cell in contradictory, scales)
        if kind is None and pairs is not None and swapped is None:
            kind = "no_pair"
        if kind is None:
            example = _build_example(rating, scores[cell], cell[2], text or "", swapped, groups)
            earlier = kept.setdefault(cell, example)
            if earlier is not example:
                kind = "duplicate"
                kept[cell] = max(earlier, example, key=lambda e: (e.reason or "", e.domain or "", e.text, e.item))
        if kind is not None:
            left_out[kind].append(location)
    return kept.values(), tuple(
        OmittedRatings(kind, len(places), f"{ratings.name}, {places[0]}") for kind, places in left_out.items() if places
    )


def _omission(rating: Rating, dimension: str, text: str | None, is_contradictory: bool, scales: Scales) -> str | None:
    if dimension not in scales:
        return "other_dimension" if dimension else "no_dimension"
    if rating.score is None:
        return "no_score"
    if is_contradictory:
        return "contradictory"
    low, high = scales[dimension]
    if not low <= rating.score <= high:
        return "off_scale"
    if text is None:
        return "no_text"
    return None if text.strip() else "blank_text"


def _build_example(
    rating: Rating, score: float, dimension: str, text: str, swapped: str | None, groups: Mapping[str, str]
) -> Example:
    return Example(
        key=rating.key,
        item=rating.item,
        group=groups.get(rating.key),
        reviewer=rating.reviewer,
        dimension=dimension,
        domain=rating.domain,
        score=score + 0.0,  # -0.0 would have another digest than 0.0
        text=text,
        reason=rating.reason or None,
        swapped=swapped,
    )


def _only_dimension(ratings: Ratings, scales: Scales) -> str:
    if any(rating.dimension is not None for _, rating in ratings.rows):
        return ""
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
    groups: dict[str, tuple[str, str]] = {}
    for location, rating in ratings.rows:
        if rating.group is not None:
            group, first = groups.setdefault(rating.key, (rating.group, location))
            if group != rating.group:
                problem = f"item {quote(rating.key)} is of group {quote(rating.group)} here, and of {quote(group)}"
                raise InputError(f"{ratings.name}, {location}: {problem} in {first}; give each item one group")
    return {key: group for key, (group, _) in groups.items()}


class ReviewerHistory:
    """Examples by reviewer, dimension and domain, in an order that does not depend on the order of the file."""

    def __init__(
        self, ratings: Ratings, texts: Mapping[str, str] = {}, *, scales: Scales, pairs: Pairs | None = None
    ) -> None:
        """Select the ratings that can be shown. `scales` holds the requested dimensions, each with its ends.

        `texts` holds the items' texts by key, for ratings without one. `pairs` holds the two texts of each item, if
        the items are pairs that are judged in both orders. If no rating names a dimension, all are of the one
        requested. Raises `InputError` if several are requested then, or if an item has two groups.
        """
        self.has_pairs = pairs is not None
        examples, self.left_out = select_examples(ratings, texts, scales, pairs)
        """Ratings that cannot be shown, by reason; together with the examples, these are all ratings."""
        self.examples = tuple(sorted(examples, key=lambda example: (example.reviewer, example.key, example.dimension)))
        self.reviewers = tuple(sorted({rating.reviewer for _, rating in ratings.rows}))
        """All reviewers in the file, including those without examples."""
        self.name = ratings.name
        self._scales = scales
        self._unread_columns = ratings.unread
        self._unmapped_fields = [name for name in Rating.model_fields if name not in ratings.columns]
        self._named_dimensions = {rating.dimension for _, rating in ratings.rows if rating.dimension is not None}
        self._by_dimension: dict[tuple[str, str | None], dict[str, list[Example]]] = {}
        """The examples by dimension, and by dimension and domain; then by reviewer, in order."""
        for example in self.examples:
            for domain in {None, example.domain}:
                by_reviewer = self._by_dimension.setdefault((example.dimension, domain), {})
                by_reviewer.setdefault(example.reviewer, []).append(example)
        self._groups: dict[str, set[str]] = {}
        self._items: dict[str, set[str]] = {}
        self._texts: dict[str, set[str]] = {}
        for _, rating in ratings.rows:  # including those that cannot be shown
            self._items.setdefault(rating.key, set()).add(rating.item)
            text = rated_text(rating, texts)
            for name in (rating.key, rating.item):
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
        has_pairs: bool = False,
    ) -> Self:
        """Read the history from a RATINGS file, with texts from it or from a TEXTS file.

        `columns` maps our column names to those of the RATINGS file. If the items are pairs that are judged in both
        orders, the TEXTS file has the columns `first` and `second`, too. Raises `InputError`.
        """
        pairs = read_pairs(texts) if has_pairs and texts is not None else None
        text_of = {} if texts is None else read_texts(texts)
        return cls(read_ratings(path, columns), text_of, scales=scales, pairs=pairs)

    def examples_of(self, reviewer: str, dimension: str, domain: str | None = None) -> tuple[Example, ...]:
        """Return the examples of a reviewer; of all domains if none is given."""
        return tuple(self._by_dimension.get((dimension, domain), {}).get(reviewer, ()))

    def examples_of_others(self, reviewer: str, dimension: str, domain: str | None = None) -> tuple[Example, ...]:
        """Return the examples of all reviewers but one."""
        by_reviewer = self._by_dimension.get((dimension, domain), {})
        return tuple(chain.from_iterable(own for name, own in by_reviewer.items() if name != reviewer))

    def items_of(self, key: str) -> set[str]:
        """Return the items that were rated under a key: usually one, without the agent that the key may include."""
        return self._items.get(key, set())

    def groups_of(self, names: Iterable[str]) -> set[str]:
        """Return the groups of all ratings, even those left out, under these names: keys, or items of any agent."""
        return {group for name in names for group in self._groups.get(name, ())}

    def texts_of(self, names: Iterable[str]) -> set[str]:
        """Return the texts of all ratings under these names, which mean the same as in `groups_of`."""
        return {text for name in names for text in self._texts.get(name, ())}

    def notes(self, shots: int = 0) -> tuple[str, ...]:
        """Describe the number of ratings, those left out, and reviewers with fewer than `shots` or one score alone."""
        return tuple(self._describe(shots))

    def _describe(self, shots: int) -> Iterator[str]:
        total = len(self.examples) + sum(omitted.number for omitted in self.left_out)
        reviewers = _format_count(len({example.reviewer for example in self.examples}), "reviewer")
        yield f"Of {_format_count(total, 'rating')} in {self.name}, {len(self.examples)} can be shown, by {reviewers}."
        if self._unread_columns:
            unread = join_names(list(map(quote, self._unread_columns)))
            unmapped = ", ".join(self._unmapped_fields)
            yield f"Not read: {unread}{f'; `columns` can map {unmapped}' if unmapped else ''}."
        for kind, number, first in self.left_out:
            yield f"Left out: {_format_count(number, 'rating')} {OMISSION_REASONS[kind]}; the first is {first}."
        for dimension in sorted(self._scales):
            if (dimension, None) in self._by_dimension:
                yield from self._describe_sparse(dimension, shots)
            else:
                named = self._named_dimensions
                hint = None if dimension in named else did_you_mean(dimension, sorted(named))
                yield f"No rating for {quote(dimension)} can be shown{f'; {hint}' if hint else '.'}"
        if shots:
            domains = sorted({domain for _, domain in self._by_dimension if domain is not None})
            known = f"The ratings have the domains {join_names(list(map(quote, domains)))}" if domains else ""
            tasks = f"tasks with {'another' if domains else 'a'} domain (metadata.domain)"
            yield f"{known or 'No rating has a domain'}; judges with examples abstain on {tasks}."

    def _describe_sparse(self, dimension: str, shots: int) -> Iterator[str]:
        scores = {name: [example.score for example in self.examples_of(name, dimension)] for name in self.reviewers}
        total = sum(map(len, scores.values()))
        few = {name: f"{len(own)}" for name, own in scores.items() if len(own) < shots}
        constant = {name: f"{own[0]:g}" for name, own in scores.items() if len(set(own)) == 1}
        one_sided = [quote(name) for name, own in scores.items() if len(own) in (0, total)]
        if shots and one_sided:
            yield (
                f"Nothing is shown for {quote(dimension)}, and judges with examples abstain, where the reviewer or "
                f"everybody else has no rating that can be shown: {join_names(one_sided)}."
            )
        for description, reviewers in ((f"fewer than {shots} ratings", few), ("one score alone", constant)):
            if reviewers:
                named = join_names([f"{quote(name)} ({detail})" for name, detail in reviewers.items()])
                yield f"With {description} for {quote(dimension)}: {named}."

    @cached_property
    def digest(self) -> str:
        """Digest of all examples, and of the relations by which some of them are dropped."""
        return digest_of([sorted(self.by_digest), self.relations_digest])

    @cached_property
    def relations_digest(self) -> str:
        """Digest of the relations by which an example can give a judged item away: items, groups and texts by name.

        It covers the swapped texts of pairs, too, which no digest of an example does.
        """
        kinds = self._items, self._groups, self._texts
        relations = [[[name, sorted(values)] for name, values in sorted(kind.items())] for kind in kinds]
        swapped = [[example.digest, example.swapped] for example in self.examples] if self.has_pairs else None
        return digest_of(relations if swapped is None else [relations, swapped])

    @cached_property
    def by_digest(self) -> Mapping[str, Example]:
        """The examples by their digests."""
        return {example.digest: example for example in self.examples}


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


LoadedHistory = Annotated[SkipJsonSchema[InstanceOf[ReviewerHistory]], PlainSerializer(attrgetter("digest"))]
"""A history as the type of a field, whose digest stands for it."""
