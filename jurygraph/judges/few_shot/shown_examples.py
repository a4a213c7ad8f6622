"""Choose the examples that a response's judge is shown, from the candidates that a plan froze.

No example may give the response away: not the judged item, by whichever reviewer, no item of its group, and no text
that is nearly the same. Such a candidate is dropped, and the next one takes its place. Near duplicates are found
without case, accents, white space, punctuation and Unicode compatibility forms; Cyrillic and Greek letters that look
like Latin ones count as those.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple, TypeVar

import re2
from rapidfuzz import fuzz

from jurygraph.judges.few_shot.history import Example, ReviewerHistory
from jurygraph.judges.few_shot.pairs import swap_response
from jurygraph.prompts import Shot
from jurygraph.safety.text_folding import fold_text
from jurygraph.schema import ExampleUse, Response, TaskView

S = TypeVar("S", str, list[str])

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
        if names.isdisjoint((example.key, example.item)) and groups.isdisjoint(_groups(example, history))
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


def _groups(example: Example, history: ReviewerHistory) -> set[str]:
    return history.groups_of((example.key, example.item)) | ({example.group} if example.group is not None else set())


def _leak_reason(example: Example, judged: JudgedItem, history: ReviewerHistory) -> str | None:
    if example.key in judged.names or example.item in judged.names:
        return "it is the judged item"
    if not judged.groups.isdisjoint(_groups(example, history)):
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
