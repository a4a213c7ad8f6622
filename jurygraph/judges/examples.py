"""The examples of a judge: reviewers' ratings of other items, their order, and what a response's judge is shown.

No example may give the response away: not the judged item, by whichever reviewer, no item of its group, and no text
that is nearly the same. Such a candidate is dropped, and the next one takes its place. Near duplicates are found
without case, accents, white space, punctuation and Unicode compatibility forms; Cyrillic and Greek letters that look
like Latin ones count as those.

A pair is one text that holds two others, its first and its second, each on lines of its own.
"""

import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, lru_cache
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self, TypeVar, cast

import re2
from langchain_core.example_selectors import BaseExampleSelector
from pydantic import Field, InstanceOf, PlainSerializer
from pydantic.json_schema import SkipJsonSchema
from rapidfuzz import fuzz

from jurygraph.errors import ConfigError, InputError
from jurygraph.messages import did_you_mean, join_names, quote
from jurygraph.prompts import Shot
from jurygraph.safety.text_folding import fold_text
from jurygraph.schema import ExampleUse, FrozenModel, Response, TaskView, digest_of
from jurygraph.schema.frozen_model import Number
from jurygraph.schema.rating import Rating
from jurygraph.sources.ratings import Ratings, read_pairs, read_ratings, read_texts

S = TypeVar("S", str, list[str])

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


_BLANK_LINE = r"(?<=[^\n]\n)(?=\n|\Z)"  # the first of several, since only that one is the place of an empty text


def swap_texts(text: str, first: str, second: str) -> str | None:
    """Return a text with two of its parts in each other's place, or None if it does not hold them in this order.

    Each part is on lines of its own; if it occurs more than once, its last place counts.
    """
    at_second = _last_place(second, text, len(text))
    at_first = None if at_second is None else _last_place(first, text, at_second)
    if at_first is None or at_second is None:
        return None
    between = text[at_first + len(first) : at_second]
    behind = text[at_second + len(second) :]
    return f"{text[:at_first]}{second}{between}{first}{behind}"


def _last_place(part: str, text: str, end: int) -> int | None:
    """Return where a part begins that has the whole of its lines and ends before `end`; None if it is not there."""
    pattern = rf"(?<![^\n])(?={re.escape(part)}(?:\n|\Z))" if part else _BLANK_LINE
    places = [match.start() for match in re.finditer(pattern, text) if match.start() + len(part) <= end]
    return places[-1] if places else None


def swap_response(response: Response) -> str | None:
    """Return the text of a response with the `first` and the `second` text of its data in each other's place.

    None if its data has no two such texts, or its text does not hold them in this order.
    """
    data = response.data if isinstance(response.data, dict) else {}
    first = data.get("first")
    second = data.get("second")
    if not isinstance(first, str) or not isinstance(second, str):
        return None
    return swap_texts(response.text, first, second)


ExampleFields = dict[str, Any]  # an example as selectors see it: the fields of `Example`, and its `digest`
Selectors = Callable[[Sequence[ExampleFields], int], BaseExampleSelector]


class _Seeded(BaseExampleSelector):
    def __init__(self, examples: Sequence[ExampleFields], seed: int) -> None:
        self._examples = list(examples)
        self._seed = seed

    def add_example(self, example: ExampleFields) -> None:
        """Add an example to choose from."""
        self._examples.append(example)


class Random(_Seeded):
    """Draw without replacement, each example as likely as any other, so that a reviewer's base rate survives.

    Each query has a draw of its own: otherwise one unlucky draw would stand for a reviewer in a whole run.
    """

    def select_examples(self, input_variables: dict[str, str]) -> list[ExampleFields]:
        """Return all examples in the order of the draw."""
        return shuffle_examples(self._examples, self._seed, input_variables["query"])


class Balanced(_Seeded):
    """Alternate between the scores, so that the examples cover the scale; the order within a score is drawn.

    The frequencies of the scores are lost: a strict and a lenient reviewer look alike.
    """

    def select_examples(self, input_variables: dict[str, str]) -> list[ExampleFields]:
        """Return one example of each item, the first choice first; the task's query has no effect."""
        by_score: dict[float, list[ExampleFields]] = {}
        for example in shuffle_examples(self._examples, self._seed):
            by_score.setdefault(example["score"], []).append(example)
        scores = sorted(by_score, key=lambda score: digest_of([self._seed, float(score)]))
        seen: set[str] = set()
        queues = [_unseen_items(by_score[score], seen) for score in scores]
        ordered: list[ExampleFields] = []
        while turn := [example for queue in queues for example in islice(queue, 1)]:
            ordered += turn
        return ordered


class Similar(_Seeded):
    """Order examples by the words that they share with the task's query: similarity of letters, not of meaning."""

    def select_examples(self, input_variables: dict[str, str]) -> list[ExampleFields]:
        """Return all examples, the most similar to the `query` first."""
        query = input_variables["query"]
        examples = shuffle_examples(self._examples, self._seed)
        return sorted(examples, key=lambda example: -fuzz.token_set_ratio(query, example["text"]))


BUILT_IN: dict[str, Selectors] = {"random": Random, "balanced": Balanced, "similar": Similar}
_CHOICES = f"{', '.join(BUILT_IN)}, or a callable as package.module.name"


def load_selector(choice: str) -> Selectors:
    """Return the factory of a selector: built in, or a callable by its path. Raises `ConfigError` if it is neither."""
    if choice in BUILT_IN:
        return BUILT_IN[choice]
    module, _, name = choice.rpartition(".")
    try:
        target = getattr(importlib.import_module(module), name) if module else None
    except Exception as error:  # importing a user's module may raise anything
        raise ConfigError(f"choice: {choice!r} cannot be found ({error}); name {_CHOICES}") from error
    if not callable(target):
        raise ConfigError(f"choice: there is no selector {choice!r}; name {_CHOICES}")
    try:
        inspect.signature(target).bind([], 0)
    except (TypeError, ValueError):
        raise ConfigError(f"choice: {choice!r} does not take examples and a seed, in this order; fix it") from None
    return cast(Selectors, target)


def order_examples(selectors: Selectors, examples: Sequence[Example], query: str, seed: int) -> list[Example]:
    """Return examples in a selector's order for a task's query, and of each item only the one that comes first.

    So an item that several reviewers rated is shown with the rating that the draw meets first, and one rated often is
    as likely to be met as its ratings are many. Raises `ConfigError` if the selector returns anything else.
    """
    by_digest = {example.digest: example for example in examples}
    records = [{**example.model_dump(), "digest": digest} for digest, example in by_digest.items()]
    try:
        selector = selectors(records, seed)
        is_selector = isinstance(selector, BaseExampleSelector)
        selected = selector.select_examples({"query": query}) if is_selector else None
    except Exception as error:  # a user's selector may raise anything
        raise ConfigError(f"choice: the selector failed: {type(error).__name__}: {error}; fix it") from error
    if not is_selector:
        raise ConfigError(f"choice: it gave a {type(selector).__name__}, and no example selector of langchain-core")
    if not isinstance(selected, list) or not all(isinstance(example, dict) for example in selected):
        raise ConfigError("choice: the selector did not return a list of the given examples; fix it")
    chosen = [str(example.get("digest")) for example in selected]
    if not set(chosen) <= by_digest.keys() or len(set(chosen)) < len(chosen):
        raise ConfigError("choice: the selector gave an example twice, or one that it was not given; fix it")
    by_item: dict[str, Example] = {}
    for digest in chosen:
        by_item.setdefault(by_digest[digest].key, by_digest[digest])
    return list(by_item.values())


def shuffle_examples(examples: Iterable[ExampleFields], *seed: int | str) -> list[ExampleFields]:
    """Return examples in an order that depends on the seed alone, not on the order of the input."""
    return sorted(examples, key=lambda example: digest_of([*seed, example["digest"]]))


def _unseen_items(examples: Iterable[ExampleFields], seen: set[str]) -> Iterator[ExampleFields]:
    for example in examples:
        if example["key"] not in seen:
            seen.add(example["key"])
            yield example


TARGET_PSEUDONYM = "reviewer 1"
"""Pseudonym of the reviewer whose score is predicted; others are numbered in order of appearance."""


class ShownExamples(NamedTuple):
    """The examples that are shown, and the outcome for them and for the candidates before them."""

    examples: tuple[Example, ...]
    uses: tuple[ExampleUse, ...]

    def first_examples(self, count: int) -> "ShownExamples":
        """Return at most `count` of the examples, with all candidates that were dropped."""
        kept = {example.digest for example in self.examples[:count]}
        uses = (use for use in self.uses if use.dropped is not None or use.fingerprint in kept)
        return ShownExamples(self.examples[:count], tuple(uses))


class JudgedItem(NamedTuple):
    """A judged item: names under which it may have been rated, its groups, and its texts."""

    names: AbstractSet[str]
    groups: AbstractSet[str]
    texts: Sequence[str]


def candidate_examples(examples: Iterable[Example], view: TaskView, history: ReviewerHistory) -> list[Example]:
    """Return the examples that neither are the task nor of its group; this is known before there is a response."""
    names = {view.id, *history.items_of(view.id)} | ({view.group} if view.group is not None else set())
    groups = names | history.groups_of(names)
    return [
        example
        for example in examples
        if names.isdisjoint((example.key, example.item)) and groups.isdisjoint(_groups_of_example(example, history))
    ]


def choose_examples(
    candidates: Sequence[Example], count: int, response: Response, view: TaskView, history: ReviewerHistory
) -> ShownExamples:
    """Return the first `count` candidates that do not give the response away; nor a pair with its texts swapped."""
    names = {response.id, *history.items_of(response.id)}
    groups = history.groups_of(names) | ({view.group} if view.group is not None else set())
    other_texts = history.texts_of({*names, view.id}) - {response.text}  # texts may be rated under the task's id too
    swapped = swap_response(response) if history.has_pairs else None
    shown_texts = (response.text,) if swapped is None else (response.text, swapped)
    judged = JudgedItem(names, groups, (*shown_texts, *sorted(other_texts)))
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


def _groups_of_example(example: Example, history: ReviewerHistory) -> set[str]:
    return history.groups_of((example.key, example.item)) | ({example.group} if example.group is not None else set())


def _leak_reason(example: Example, judged: JudgedItem, history: ReviewerHistory) -> str | None:
    if example.key in judged.names or example.item in judged.names:
        return "it is the judged item"
    if not judged.groups.isdisjoint(_groups_of_example(example, history)):
        return "it is of the judged item's group"
    for subject, content in (("it", example.text), ("its reason", example.reason)):
        if content is not None and any(is_near_duplicate(content, text) for text in judged.texts):
            return f"{subject} says nearly the same as the judged item"
    return None


def as_shots(examples: Sequence[Example], target: str) -> tuple[Shot, ...]:
    """Return examples in the form for the prompt, with pseudonyms for reviewers."""
    names = {target: TARGET_PSEUDONYM}
    for example in examples:
        names.setdefault(example.reviewer, f"reviewer {len(names) + 1}")
    return tuple(
        Shot(names[example.reviewer], example.text, format_score(example.score), example.reason or "")
        for example in examples
    )


def format_score(score: float) -> str:
    """Return a score as prompts show it."""
    return f"{score:.15g}"


MIN_SIMILARITY = 85.0  # least similarity of two near texts: percentage of letters that are the same, in the same order

MIN_SHARED_NGRAMS = 0.6  # least share of the shorter text's n-grams that occur in the other, for the two to be near
# lengths of n-grams; letters in scripts without spaces between words
_WORDS_PER_NGRAM = 3
_LETTERS_PER_NGRAM = 5
# a shorter text has too few n-grams for their share to be meaningful
_MIN_WORDS = 8
_LETTERS_PER_WORD = 2
_MIN_LETTERS = 12  # a shorter text may occur in another by chance

_LIKE_LATIN = str.maketrans("авеһіјкмнорсѕтухԁαβεζηικμνορτυχ", "abehijkmhopcstyxdabezhikmnoptyx")
"""Small letters that look like Latin ones, or whose capitals do: Cyrillic, then Greek."""

_MARKS = re2.compile(r"\p{M}+")
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Thai and Lao, Burmese, Khmer, Japanese and Chinese."""


class NormalizedText:
    """A text in normalized form for comparison, with cached n-grams."""

    def __init__(self, text: str) -> None:
        folded = fold_text(text)
        self._normalized = folded if folded.isascii() else str(_MARKS.sub("", folded)).translate(_LIKE_LATIN)
        self.letters = "".join(_WORD.findall(self._normalized))
        """Letters and digits of the text, in lower case."""

    @cached_property
    def ngrams(self) -> frozenset[str]:
        """Three words in a row, or five letters of a script without spaces; none for a text under eight words."""
        words = _WORD.findall(_UNSPACED.sub(" ", self._normalized))
        letters = "".join(_UNSPACED.findall(self.letters))
        if len(words) + len(letters) / _LETTERS_PER_WORD < _MIN_WORDS:
            return frozenset()
        word_ngrams = map(" ".join, _runs(words, _WORDS_PER_NGRAM))
        return frozenset(chain(word_ngrams, _runs(letters, _LETTERS_PER_NGRAM)))

    def is_near(self, other: "NormalizedText") -> bool:
        """Return True if the texts are the same but for a little, or one mostly occurs in the other."""
        if self.letters == other.letters or self._is_within(other) or other._is_within(self):
            return True
        shorter = min(len(self.ngrams), len(other.ngrams))
        if shorter and len(self.ngrams & other.ngrams) >= MIN_SHARED_NGRAMS * shorter:
            return True
        return fuzz.ratio(self.letters, other.letters, score_cutoff=MIN_SIMILARITY) > 0

    def _is_within(self, other: "NormalizedText") -> bool:
        return len(self.letters) >= _MIN_LETTERS and self.letters in other.letters


def _runs(sequence: S, length: int) -> Iterator[S]:
    return (sequence[start : start + length] for start in range(len(sequence) - length + 1))


def is_near_duplicate(first: str, second: str) -> bool:
    """Return True if two texts are nearly the same; the function is symmetric."""
    return first == second or _normalize(first).is_near(_normalize(second))


_normalize = lru_cache(maxsize=512)(NormalizedText)  # a text is compared with many examples, and they with many texts
