"""The examples of a judge: reviewers' ratings of other items, their order, and what a response's judge is shown.

No example may give the response away: not the judged item, by whichever reviewer, no item of its group, and no text
that is nearly the same. Such a candidate is dropped, and the next one takes its place. Near duplicates are found
without case, accents, white space, punctuation and Unicode compatibility forms; Cyrillic and Greek letters that look
like Latin ones count as those.

A pair is one text that holds two others, its first and its second, each on lines of its own.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple, Self

import re2
from pydantic import Field
from rapidfuzz import fuzz

from jurygraph.agents.data_optimizer import to_ngrams
from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean, format_count, join_names, quote
from jurygraph.prompts import ShownExample
from jurygraph.safety.gates import fold_text
from jurygraph.schema import ExampleUse, FrozenModel, Response, TaskView, digest_of
from jurygraph.schema.conversation import OMITTED_IF_NONE
from jurygraph.schema.frozen_model import Number
from jurygraph.schema.rating import RatedAnswer, Rating
from jurygraph.sources.ratings import (
    RatingsFile,
    read_pairs,
    read_prompts,
    read_ratings,
    read_texts,
)

ScaleByDimension = Mapping[str, tuple[float, float]]
TextPairByKey = Mapping[str, tuple[str, str]]

_PROMPT_COLUMN_NAMES = ("prompt", "question", "query")
"""What people call the column of what a text answers."""

OMISSION_REASON_TEXTS = {
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

    `prompt` is what the text answers, if it is shown. `swapped` is the text with its two parts in each other's place,
    if it is a pair that is judged in both orders. The `digest` covers all other fields, so that the draw is the same in
    one order and in both.
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
    prompt: str | None = OMITTED_IF_NONE
    swapped: str | None = Field(default=None, exclude=True)


class OmittedRatings(NamedTuple):
    """The number of ratings that were left out for one of `OMISSION_REASON_TEXTS`, and the location of the first of
    them."""

    kind: str
    number: int
    first: str


class _ExampleSelection:
    """The examples that can be shown, by reviewer, item and dimension, and the places of the other ratings by reason.

    Equal ratings count once, in any order, and one with a reason wins. With `pairs`, only those can be shown whose text
    holds the two texts of its item. Raises `InputError` for an item of two groups, or for several dimensions if no
    rating names one.
    """

    def __init__(
        self,
        ratings: RatingsFile,
        texts: Mapping[str, str],
        scales: ScaleByDimension,
        pairs: TextPairByKey | None,
        prompts: Mapping[str, str],
    ) -> None:
        self._texts = texts
        self._prompts = prompts
        self._scales = scales
        self._pairs = pairs
        self._groups = _groups_by_key(ratings)
        self.kept: dict[tuple[str, str, str], Example] = {}
        self.left_out: dict[str, list[str]] = {kind: [] for kind in OMISSION_REASON_TEXTS}
        single_dimension = _find_single_dimension(ratings, scales)
        keyed_ratings = [
            (location, rating, (rating.reviewer, rating.key, rating.dimension or single_dimension))
            for location, rating in ratings.rows
        ]
        scores = defaultdict(set)
        for _, rating, cell in keyed_ratings:
            if rating.score is not None:
                scores[cell].add(rating.score)
        for location, rating, cell in keyed_ratings:
            kind = self._add_or_reject_rating(rating, cell, len(scores[cell]) > 1)
            if kind is not None:
                self.left_out[kind].append(location)

    def _add_or_reject_rating(
        self, rating: Rating, cell: tuple[str, str, str], has_conflicting_rating: bool
    ) -> str | None:
        """Keep the rating as an example, or return why it is left out."""
        dimension = cell[2]
        if dimension not in self._scales:
            return "other_dimension" if dimension else "no_dimension"
        if rating.score is None:
            return "no_score"
        if has_conflicting_rating:
            return "contradictory"
        low, high = self._scales[dimension]
        if not low <= rating.score <= high:
            return "off_scale"
        text = rated_text(rating, self._texts)
        if text is None:
            return "no_text"
        if not text.strip():
            return "blank_text"
        pair = None if self._pairs is None else self._pairs.get(rating.key)
        swapped_text = None if pair is None else swap_texts(text, *pair)
        if self._pairs is not None and swapped_text is None:
            return "no_pair"
        example = Example(
            key=rating.key,
            item=rating.item,
            group=self._groups.get(rating.key),
            reviewer=rating.reviewer,
            dimension=dimension,
            domain=rating.domain,
            score=rating.score + 0.0,  # -0.0 would have another digest than 0.0
            text=text,
            reason=rating.reason or None,
            prompt=self._prompts.get(rating.key),
            swapped=swapped_text,
        )
        earlier = self.kept.setdefault(cell, example)
        if earlier is example:
            return None
        self.kept[cell] = max(
            earlier, example, key=lambda e: (e.reason or "", e.domain or "", e.text, e.item)
        )
        return "duplicate"


def _find_prompt_column(ratings: RatingsFile, has_prompts: bool) -> str | None:
    """Return the column of prompts; None without any.

    One that is written in another case counts only if there are no prompts without it: digests of histories that were
    read before stay as they are.
    """
    columns = [name for name in _PROMPT_COLUMN_NAMES if name in ratings.unread_columns]
    if not columns and not has_prompts:
        columns = [
            column for column in ratings.unread_columns if column.casefold() in _PROMPT_COLUMN_NAMES
        ]
    return next(iter(columns), None)


def _find_single_dimension(ratings: RatingsFile, scales: ScaleByDimension) -> str:
    """Return the dimension of ratings that name none: the only one scored, or named by the others; empty without one.

    Raises `InputError` where several are scored and no rating names one.
    """
    names = {rating.dimension for _, rating in ratings.rows if rating.dimension}
    if not names and len(scales) > 1:
        scored = join_names([quote(name) for name in sorted(scales)])
        raise InputError(
            f"{ratings.name}: names no `dimension`, and {len(scales)} are scored: {scored}; give each rating its own, "
            "or ask about one"
        )
    choices = {*scales} if len(scales) == 1 else names
    return min(choices) if len(choices) == 1 else ""


_MIN_SCORES_PER_SLIP = 20
"""Of so many scores one off the scale is more likely a slip of its writer than a wrong scale."""


def refuse_scores_off_scale(ratings: RatingsFile, scales: ScaleByDimension) -> None:
    """Raise `InputError` for a score off the scale of its dimension: more often the scale is wrong than the score."""
    single_dimension = _find_single_dimension(ratings, scales)
    for dimension, (low, high) in scales.items():
        scores = [
            (rating.score, location)
            for location, rating in ratings.rows
            if dimension == (rating.dimension or single_dimension) and rating.score is not None
        ]
        values = [score for score, _ in scores]
        least, greatest = min(low, *values), max(high, *values)
        odd_scores = [row for row in scores if not low <= row[0] <= high]
        if odd_scores:
            score, location = odd_scores[0]
            remedy = f"write `scale: [{least:g}, {greatest:g}]`, or correct the score"
            if len(odd_scores) * _MIN_SCORES_PER_SLIP <= len(scores):
                remedy = f"correct it, as only {len(odd_scores)} of {len(scores)} scores are"
            raise InputError(
                f"{ratings.path}, {location}: score {score:g} of {dimension!r} is off the scale [{low:g}, {high:g}] of "
                f"the config; {remedy}"
            )


def rated_text(rating: Rating, texts: Mapping[str, str]) -> str | None:
    """Return the text of a rated item: the rating's own, or else that in `texts`."""
    rating_text = rating.text
    if rating_text is not None and rating_text.strip():
        return rating_text
    return texts.get(rating.key, rating_text)


def _groups_by_key(ratings: RatingsFile) -> Mapping[str, str]:
    groups: dict[str, tuple[str, str]] = {}
    for location, rating in ratings.rows:
        if rating.group is not None:
            group, first = groups.setdefault(rating.key, (rating.group, location))
            if group != rating.group:
                item = quote(rating.key)
                raise InputError(
                    f"{ratings.name}, {location}: item {item} is of group {quote(rating.group)} here, and of "
                    f"{quote(group)} in {first}; give each item one group"
                )
    return {key: group for key, (group, _) in groups.items()}


class ReviewerHistory:
    """Examples by reviewer, dimension and domain, in an order that does not depend on the order of the file."""

    def __init__(
        self,
        ratings: RatingsFile,
        texts: Mapping[str, str] = {},
        *,
        scales: ScaleByDimension,
        pairs: TextPairByKey | None = None,
        prompts: Mapping[str, str] = {},
    ) -> None:
        """Select the ratings that can be shown. `scales` holds the requested dimensions, each with its ends.

        `texts` holds the items' texts by key, for ratings without one. `pairs` holds the two texts of each item, if
        the items are pairs that are judged in both orders. `prompts` holds what the texts answer, by key, to be shown
        with them. A rating that names no dimension is of the only one requested, or of the only one named. Raises
        `InputError` if several are requested and none is named, or if an item has two groups.
        """
        self.has_pairs = pairs is not None
        self.has_prompts = bool(prompts)
        selection = _ExampleSelection(ratings, texts, scales, pairs, prompts)
        self.examples = tuple(selection.kept[cell] for cell in sorted(selection.kept))
        self.left_out = tuple(
            OmittedRatings(kind, len(rating_locations), f"{ratings.name}, {rating_locations[0]}")
            for kind, rating_locations in selection.left_out.items()
            if rating_locations
        )
        """Ratings that cannot be shown, by reason; together with the examples, these are all ratings."""
        self.reviewers = tuple(sorted({rating.reviewer for _, rating in ratings.rows}))
        """All reviewers in the file, including those without examples."""
        self.name = ratings.name
        self._ratings = ratings
        self._scales = scales
        self._dimensions = sorted(scales)
        self._examples_of: dict[tuple[str, str | None], list[Example]] = defaultdict(list)
        """The examples by dimension, and by dimension and domain, in order."""
        for example in self.examples:
            for domain in {None, example.domain}:
                self._examples_of[example.dimension, domain].append(example)
        self._groups: dict[str, set[str]] = defaultdict(set)
        self._items: dict[str, set[str]] = defaultdict(set)
        self._texts: dict[str, set[str]] = defaultdict(set)
        for _, rating in ratings.rows:  # including those that cannot be shown
            self._items[rating.key].add(rating.item)
            text = rated_text(rating, texts)
            for name in (rating.key, rating.item):
                if rating.group is not None:
                    self._groups[name].add(rating.group)
                if text is not None:
                    self._texts[name].add(text)

    @classmethod
    def read(
        cls,
        path: str | Path,
        texts: str | Path | None = None,
        columns: Mapping[str, str] = {},
        *,
        scales: ScaleByDimension,
        has_pairs: bool = False,
        shows_prompts: bool = False,
    ) -> Self:
        """Read the history from a RATINGS file, with texts from it or from a TEXTS file.

        `columns` maps our column names to those of the RATINGS file. If the items are pairs that are judged in both
        orders, the TEXTS file has the columns `first` and `second`, too. If examples show prompts, either file has
        them, in `prompt` or `question`; that of RATINGS may be `query`, or another in `columns`. Raises `InputError`.
        """
        pairs = read_pairs(texts) if has_pairs and texts is not None else None
        text_by_key = {} if texts is None else read_texts(texts)
        required_columns = ("item", "reviewer", "score")
        settings = {name: f"`columns: {{{name}: …}}`" for name in required_columns}
        if "prompt" in columns and not shows_prompts:
            raise InputError(
                "columns: names the `prompt`, which only `show_prompts: true` shows; write that, too, or leave it out"
            )
        rating_columns = {name: column for name, column in columns.items() if name != "prompt"}
        ratings = read_ratings(path, rating_columns, settings)
        prompts: dict[str, str] = {}
        if shows_prompts:
            prompts = {} if texts is None else read_prompts(texts, {})
            prompt_column = columns.get("prompt", _find_prompt_column(ratings, bool(prompts)))
            if prompt_column is not None:
                prompts |= read_prompts(path, {**columns, "prompt": prompt_column})
            if prompts.keys().isdisjoint(rating.key for _, rating in ratings.rows):
                raise InputError(
                    f"{ratings.name}: no item has a prompt for `show_prompts`; name the column of what texts answer "
                    "in `columns`, as in {prompt: task}"
                )
        return cls(ratings, text_by_key, scales=scales, pairs=pairs, prompts=prompts)

    def examples_by_pool(
        self, reviewer: str, dimension: str, domain: str | None = None
    ) -> dict[str, list[Example]]:
        """Return a reviewer's `own` examples and those of all `others`; of all domains if none is given."""
        examples_by_pool: dict[str, list[Example]] = {"own": [], "others": []}
        for example in self._examples_of.get((dimension, domain), ()):
            examples_by_pool["own" if example.reviewer == reviewer else "others"].append(example)
        return examples_by_pool

    def names_of_key(self, key: str) -> set[str]:
        """Return a key and the items that were rated under it: usually one, without the agent that it may include."""
        return {key, *self._items.get(key, ())}

    def groups_of_ratings(self, names: Iterable[str]) -> set[str]:
        """Return the groups of all ratings, even those left out, under these names: keys, or items of any agent."""
        return set(chain.from_iterable(self._groups.get(name, ()) for name in names))

    def require_scores_on_scale(self) -> None:
        """Raise `InputError` for a score off its scale. Plans need it; stored ones, which left it out, are read on."""
        if any(omitted.kind == "off_scale" for omitted in self.left_out):
            refuse_scores_off_scale(self._ratings, self._scales)

    def texts_of_ratings(self, names: Iterable[str]) -> set[str]:
        """Return the texts of all ratings under these names, which mean the same as in `groups_of_ratings`."""
        return set(chain.from_iterable(self._texts.get(name, ()) for name in names))

    def omission_notes(self) -> Iterator[str]:
        """Describe the ratings that cannot be shown."""
        for kind, number, first in self.left_out:
            yield f"Left out: {format_count(number, 'rating')} {OMISSION_REASON_TEXTS[kind]}; the first is {first}."

    def notes(self) -> Iterator[str]:
        """Describe the number of ratings, those that are not read or shown, and dimensions without any."""
        total = len(self._ratings.rows)
        reviewers = format_count(len({example.reviewer for example in self.examples}), "reviewer")
        yield f"Of {format_count(total, 'rating')} in {self.name}, {len(self.examples)} can be shown, by {reviewers}."
        prompt_column = _find_prompt_column(self._ratings, self.has_prompts)
        if prompt_column is not None and not self.has_prompts:
            yield (
                f"Past scores are shown without column {quote(prompt_column)} of {self.name}; if the texts answer it, "
                "`show_prompts: true` shows it with them."
            )
        unread_columns = sorted(
            self._ratings.unread_columns.keys()
            - RatedAnswer.model_fields.keys()
            - {*_PROMPT_COLUMN_NAMES}
        )
        if unread_columns:
            unread_columns_text = join_names(map(quote, unread_columns))
            yield (
                f"Columns of {self.name} that examples do not show: {unread_columns_text}; if one is "
                f"{', '.join(Rating.model_fields)}, say so in `columns`, as in {{text: answer}}."
            )
        yield from self.omission_notes()
        rated_dimensions = {rating.dimension for _, rating in self._ratings.rows}
        for dimension in self._dimensions:
            if (dimension, None) in self._examples_of:
                continue
            suggestion = None
            if dimension not in rated_dimensions:
                suggestion = did_you_mean(dimension, sorted(filter(None, rated_dimensions)))
            end = "." if suggestion is None else f"; {suggestion}"
            yield f"No rating for {quote(dimension)} can be shown{end}"

    @cached_property
    def digest(self) -> str:
        """Digest of all examples, and of the relations by which some of them are dropped."""
        return digest_of([sorted(self.example_by_digest), self.leak_relations_digest])

    @cached_property
    def leak_relations_digest(self) -> str:
        """Digest of the relations by which an example can give a judged item away: items, groups and texts by name.

        It covers the swapped texts of pairs, too, which no digest of an example does.
        """
        relation_rows = [
            [[name, sorted(values)] for name, values in sorted(kind.items())]
            for kind in (self._items, self._groups, self._texts)
        ]
        if not self.has_pairs:
            return digest_of(relation_rows)
        swapped_text_rows = [[example.digest, example.swapped] for example in self.examples]
        return digest_of([relation_rows, swapped_text_rows])

    @cached_property
    def example_by_digest(self) -> Mapping[str, Example]:
        return {example.digest: example for example in self.examples}


_BLANK_LINE_PATTERN = (
    r"(?<=[^\n]\n)(?=\n|\Z)"  # the first of several lines: the place of an empty text
)


def swap_texts(text: str, first: str, second: str) -> str | None:
    """Return a text with two of its parts in each other's place, or None if it does not hold them in this order.

    Each part is on lines of its own; if it occurs more than once, its last place counts.
    """
    second_start = _find_last_index(second, text, len(text))
    if second_start is None:
        return None
    first_start = _find_last_index(first, text, second_start)
    if first_start is None:
        return None
    text_between = text[first_start + len(first) : second_start]
    text_after = text[second_start + len(second) :]
    return f"{text[:first_start]}{second}{text_between}{first}{text_after}"


def _find_last_index(part: str, text: str, end: int) -> int | None:
    """Return where a part begins that has the whole of its lines and ends before `end`; None if it is not there."""
    pattern = rf"(?<![^\n])(?={re.escape(part)}(?:\n|\Z))" if part else _BLANK_LINE_PATTERN
    starts = (match.start() for match in re.finditer(pattern, text))
    return max((start for start in starts if start + len(part) <= end), default=None)


def swap_response_texts(response: Response) -> str | None:
    """Return the text of a response with the `first` and the `second` text of its data in each other's place.

    None if its data has no two such texts, or its text does not hold them in this order.
    """
    match response.data:
        case {"first": str(first), "second": str(second)}:
            return swap_texts(response.text, first, second)
        case _:
            return None


ExampleChoiceMethod = Literal["random", "similar"]


def order_examples(
    choice: ExampleChoiceMethod, examples: Iterable[Example], query: str, seed: int
) -> list[Example]:
    """Return examples in the order of the choice for a task's query, and of each item only the one that comes first.

    Equal seeds and equal examples give the same order on every machine, whatever the order of the input. So an item
    that several reviewers rated is shown with the rating that the draw meets first, and one rated often is as likely to
    be met as its ratings are many.

    - `random` draws without replacement, each example as likely as any other, so that a reviewer's base rate survives.
      Each query has a draw of its own: otherwise one unlucky draw would stand for a reviewer in a whole run.
    - `similar` orders by the words shared with the query: similarity of letters, not of meaning.
    """
    seeds = (seed, query) if choice == "random" else (seed,)
    shuffled_examples = sorted(examples, key=lambda example: digest_of([*seeds, example.digest]))
    if choice == "similar":
        shuffled_examples.sort(key=lambda example: -fuzz.token_set_ratio(query, example.text))
    example_by_item: dict[str, Example] = {}
    for example in shuffled_examples:
        example_by_item.setdefault(example.key, example)
    return list(example_by_item.values())


TARGET_REVIEWER_PSEUDONYM = "reviewer 1"
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


def candidate_examples(
    examples: Iterable[Example], view: TaskView, history: ReviewerHistory
) -> list[Example]:
    """Return the examples that neither are the task nor of its group; this is known before there is a response."""
    names = history.names_of_key(view.id)
    if view.group is not None:
        names.add(view.group)
    groups = names | history.groups_of_ratings(names)
    return [
        example for example in examples if _leak_reason(example, names, groups, (), history) is None
    ]


def choose_examples(
    candidates: Sequence[Example],
    count: int,
    response: Response,
    view: TaskView,
    history: ReviewerHistory,
) -> ShownExamples:
    """Return the first `count` candidates that do not give the response away; nor a pair with its texts swapped."""
    names = history.names_of_key(response.id)
    groups = history.groups_of_ratings(names)
    if view.group is not None:
        groups.add(view.group)
    texts = [response.text]
    swapped_text = swap_response_texts(response) if history.has_pairs else None
    if swapped_text is not None:
        texts.append(swapped_text)
    # texts may be rated under the task's id too
    texts += sorted(history.texts_of_ratings({*names, view.id}) - {response.text})
    examples: list[Example] = []
    uses = []
    for candidate in candidates:
        if len(examples) == count:
            break
        reason = _leak_reason(candidate, names, groups, texts, history)
        uses.append(build_example_use(candidate, reason))
        if reason is None:
            examples.append(candidate)
    return ShownExamples(tuple(examples), tuple(uses))


def build_example_use(example: Example, dropped: str | None = None) -> ExampleUse:
    return ExampleUse(
        item=example.key,
        reviewer=example.reviewer,
        score=example.score,
        fingerprint=example.digest,
        dropped=dropped,
    )


def _leak_reason(
    example: Example,
    names: set[str],
    groups: set[str],
    texts: Sequence[str],
    history: ReviewerHistory,
) -> str | None:
    """Return why an example gives an item of these names, groups and texts away; None if it does not."""
    if example.key in names or example.item in names:
        return "it is the judged item"
    if not groups.isdisjoint(history.groups_of_ratings((example.key, example.item))):
        return "it is of the judged item's group"
    contents = {"it": example.text, "its reason": example.reason, "its prompt": example.prompt}
    for subject, content in contents.items():
        if content is None:
            continue
        if any(is_near_duplicate(content, text) for text in texts):
            return f"{subject} says nearly the same as the judged item"
    return None


def to_prompt_examples(examples: Sequence[Example], target: str) -> tuple[ShownExample, ...]:
    """Return examples in the form for the prompt, with pseudonyms for reviewers."""
    names = {target: TARGET_REVIEWER_PSEUDONYM}
    for example in examples:
        names.setdefault(example.reviewer, f"reviewer {len(names) + 1}")
    return tuple(
        ShownExample(
            names[example.reviewer],
            example.text,
            f"{example.score:.15g}",
            example.reason or "",
            example.prompt or "",
        )
        for example in examples
    )


# least similarity of two near texts: percentage of letters that are the same, in the same order
MIN_SIMILARITY_PERCENT = 85.0
# least share of the shorter text's n-grams that occur in the other, for the two to be near
MIN_SHARED_NGRAM_SHARE = 0.6
# lengths of n-grams; letters in scripts without spaces between words
_WORDS_PER_NGRAM = 3
_LETTERS_PER_NGRAM = 5
# a shorter text has too few n-grams for their share to be meaningful
_MIN_WORDS_FOR_NGRAMS = 8
_UNSPACED_LETTERS_PER_WORD = 2
_MIN_CONTAINED_LETTERS = 12  # a shorter text may occur in another by chance

_LATIN_LETTER_BY_LOOKALIKE = str.maketrans(
    "авеһіјкмнорсѕтухԁαβεζηικμνορτυχ", "abehijkmhopcstyxdabezhikmnoptyx"
)
"""Small letters that look like Latin ones, or whose capitals do: Cyrillic, then Greek."""

_COMBINING_MARKS_PATTERN = re2.compile(r"\p{M}+")
_WORD_PATTERN = re.compile(r"[^\W_]+")
_UNSPACED_SCRIPTS_PATTERN = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Thai and Lao, Burmese, Khmer, Japanese and Chinese."""


class NormalizedText:
    """A text in normalized form for comparison, with cached n-grams."""

    def __init__(self, text: str) -> None:
        normalized_text = fold_text(text)
        if not normalized_text.isascii():
            normalized_text = str(_COMBINING_MARKS_PATTERN.sub("", normalized_text)).translate(
                _LATIN_LETTER_BY_LOOKALIKE
            )
        self._normalized = normalized_text
        self.letters = "".join(_WORD_PATTERN.findall(normalized_text))
        """Letters and digits of the text, in lower case."""

    @cached_property
    def ngrams(self) -> frozenset[str]:
        """Three words in a row, or five letters of a script without spaces; none for a text under eight words."""
        words = _WORD_PATTERN.findall(_UNSPACED_SCRIPTS_PATTERN.sub(" ", self._normalized))
        letters = "".join(_UNSPACED_SCRIPTS_PATTERN.findall(self.letters))
        if len(words) + len(letters) / _UNSPACED_LETTERS_PER_WORD < _MIN_WORDS_FOR_NGRAMS:
            return frozenset()
        word_ngrams = map(" ".join, to_ngrams(words, _WORDS_PER_NGRAM))
        # Slices of a long text are much faster than tuples of its letters.
        letter_ngrams = (
            letters[start : start + _LETTERS_PER_NGRAM]
            for start in range(len(letters) - _LETTERS_PER_NGRAM + 1)
        )
        return frozenset(chain(word_ngrams, letter_ngrams))

    def is_near_duplicate_of(self, other: "NormalizedText") -> bool:
        """Return True if the texts are the same but for a little, or one mostly occurs in the other."""
        if (
            self.letters == other.letters
            or self._is_contained_in(other)
            or other._is_contained_in(self)
        ):
            return True
        smaller_ngram_count = min(len(self.ngrams), len(other.ngrams))
        if (
            smaller_ngram_count
            and len(self.ngrams & other.ngrams) >= MIN_SHARED_NGRAM_SHARE * smaller_ngram_count
        ):
            return True
        return fuzz.ratio(self.letters, other.letters, score_cutoff=MIN_SIMILARITY_PERCENT) > 0

    def _is_contained_in(self, other: "NormalizedText") -> bool:
        return len(self.letters) >= _MIN_CONTAINED_LETTERS and self.letters in other.letters


def is_near_duplicate(first: str, second: str) -> bool:
    """Return True if two texts are nearly the same; the function is symmetric."""
    return first == second or _normalize_text(first).is_near_duplicate_of(_normalize_text(second))


# a text is compared with many examples, and they with many texts
_normalize_text = lru_cache(maxsize=512)(NormalizedText)
