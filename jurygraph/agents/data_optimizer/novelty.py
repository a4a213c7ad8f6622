"""The difference of a response from the others of its group: new sequences of words, and Self-BLEU (our formulas)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import sqrt
from operator import itemgetter

from jurygraph.agents.data_optimizer.words import MAX_WORD_LENGTH, grams, has_content, words

MAX_WORDS = 100_000
"""The number of words read per group, in equal parts for its responses: of 64, the first 1,562 of each."""

_DISTINCT = (1, 2, 3)
_BLEU = (1, 2, 3, 4)
_REPEATED = 2

Gram = tuple[str, ...]


class Group:
    """The responses of a group as sequences of known words: those that another response, the query or the reference
    uses too. Only words with a letter or a digit are read: signs between words are not new content.

    Words that only one response uses are skipped, and count as nothing new: gibberish is not novel, and a copy with
    gibberish inserted is a copy. `known_share` is the share of each response's distinct words that is left, 0 for one
    without a word. An n-gram counts once, and not at all where a response repeats itself: a repeated copy is a copy.
    """

    def __init__(self, texts: Sequence[str], task: Iterable[str] = ()) -> None:
        words_per_response = MAX_WORDS // max(1, len(texts))
        all_words = [_word_tokens(text[: words_per_response * MAX_WORD_LENGTH])[:words_per_response] for text in texts]
        users = Counter(word for response_words in all_words for word in set(response_words))
        common = {word for text in task for word in words(text)} | {word for word, n in users.items() if n > 1}
        common_words = [tuple(word for word in response_words if word in common) for response_words in all_words]
        self._all_words = all_words
        self.known_share = [
            len(set(kept_words)) / len(set(response_words)) if response_words else 0.0
            for kept_words, response_words in zip(common_words, all_words, strict=True)
        ]
        self._grams_by_size = [{n: set(_grams_of_pieces(kept_words, n)) for n in _BLEU} for kept_words in common_words]
        self._users = {
            n: Counter(gram for kept_words in common_words for gram in set(grams(kept_words, n))) for n in _BLEU
        }

    def copies(self) -> list[bool]:
        """Return, for each response, true if another has the same words, regardless of repetitions."""
        unrepeated = [_remove_repetition(response_words) for response_words in self._all_words]
        times = Counter(unrepeated)
        return [bool(response_words) and times[response_words] > 1 for response_words in unrepeated]

    def distinct_ngram_shares(self) -> list[float]:
        """Return, for each response, the share of its distinct n-grams (n = 1, 2, 3) that no other has, times
        `known_share`.

        The mean over those n for which it has any.
        """
        return [
            known * self._new_share(response_grams)
            for known, response_grams in zip(self.known_share, self._grams_by_size, strict=True)
        ]

    def _new_share(self, response_grams: Mapping[int, set[Gram]]) -> float:
        shares = [
            1.0 - self._count_shared(n, response_grams[n]) / len(response_grams[n])
            for n in _DISTINCT
            if response_grams[n]
        ]
        return sum(shares) / max(1, len(shares))

    def self_bleu_novelty(self) -> list[float]:
        """Return, for each response, 1 - BLEU of its distinct n-grams against all others (Self-BLEU, Zhu et al. 2018),
        times `known_share`."""
        return [
            known * (1.0 - _bleu([(self._count_shared(n, response_grams[n]), len(response_grams[n])) for n in _BLEU]))
            if response_grams[1]
            else 0.0
            for known, response_grams in zip(self.known_share, self._grams_by_size, strict=True)
        ]

    def _count_shared(self, n: int, response_grams: set[Gram]) -> int:
        """Return the number of n-grams of a response that occur in another."""
        return sum(self._users[n][gram] > 1 for gram in response_grams)


def _word_tokens(text: str) -> tuple[str, ...]:
    return tuple(filter(has_content, words(text)))


def _remove_repetition(sequence: Gram) -> Gram:
    """Return a text that is one sequence repeated as that sequence alone."""
    sizes = (size for size in range(1, len(sequence) // 2 + 1) if len(sequence) % size == 0)
    return next((sequence[:size] for size in sizes if sequence[:size] * (len(sequence) // size) == sequence), sequence)


def _grams_of_pieces(sequence: Sequence[str], n: int) -> Iterator[Gram]:
    return (gram for piece in _pieces_between_repeats(sequence) for gram in grams(piece, n))


def _pieces_between_repeats(sequence: Sequence[str]) -> Iterator[list[str]]:
    """Yield the pieces of a text between its repetitions: pairs of adjacent words that occurred before, or a word after
    itself."""
    repeated = [place > 0 and sequence[place - 1] == word for place, word in enumerate(sequence)]
    seen: set[Gram] = set()
    for place, gram in enumerate(grams(sequence, _REPEATED)):
        if gram in seen:
            repeated[place : place + _REPEATED] = [True] * _REPEATED
        seen.add(gram)
    for is_repeat, piece in groupby(zip(repeated, sequence, strict=True), key=itemgetter(0)):
        if not is_repeat:
            yield [word for _, word in piece]


def _bleu(precisions: Sequence[tuple[int, int]]) -> float:
    """Return the geometric mean of four precisions, those beyond the first smoothed by one (Lin and Och, 2004).

    Without the brevity penalty, since a part of another response is a copy too. The fourth root is computed as two
    square roots, which give the same bits on every machine.
    """
    (shared, total), *longer_grams = precisions
    product = shared / total
    for shared, total in longer_grams:
        product *= (shared + 1) / (total + 1)
    return sqrt(sqrt(product))
