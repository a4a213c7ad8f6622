"""MACRM's Data Optimizer, computed by code: `optimizer.efficiency` and `optimizer.diversity`.

The paper gives no formulas; these are ours, each in [0, 1]. None of them knows what is correct: a short or unusual
answer may be wrong. Give them small weights, or multiply them with accuracy. A response without a word scores 0.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby
from math import sqrt
from operator import itemgetter
from statistics import median
from types import MappingProxyType
from typing import Annotated, TypeVar

from pydantic import Field

from jurygraph.agents.roles import (
    Evaluator,
    EvaluatorAnswer,
    EvaluatorAnswers,
    EvaluatorInput,
)
from jurygraph.concurrency import split_into_batches
from jurygraph.safety.gates import remove_invisible
from jurygraph.schema import Question, TaskView, Verdict
from jurygraph.schema.frozen_model import Number, ParamsModel
from jurygraph.schema.task import query_to_text

T = TypeVar("T")

MAX_WORD_LENGTH = 15  # the largest number of characters in a word
_PIECE_PATTERN = re.compile(".{1,5}")

_UNSPACED_SCRIPT_RANGES = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_BLANK_CHARACTER_PATTERN = re.compile("[_\u115f\u1160\u2800\u3164\uffa0]")
"""Characters that look blank but are no white space: the underscore, the blank of Braille, and fillers of Hangul."""

_WORD_OR_SIGNS_PATTERN = re.compile(
    rf"[{_UNSPACED_SCRIPT_RANGES}]|[^\W{_UNSPACED_SCRIPT_RANGES}]+|[^\w\s]+"
)


def words(text: str) -> list[str]:
    """Return the words of a text, case-folded: runs of letters and digits, runs of other signs, and each character of a
    script written without spaces. An underscore, and other characters that look blank, separate words; invisible
    characters are dropped.

    A run of more than 15 characters is cut into pieces of 5, so that joining words does not make a text short.
    """
    word_pieces = []
    for character_run in _WORD_OR_SIGNS_PATTERN.findall(_fold_case(text)):
        if len(character_run) <= MAX_WORD_LENGTH:
            word_pieces.append(character_run)
        else:
            word_pieces += _PIECE_PATTERN.findall(character_run)
    return word_pieces


def _fold_case(text: str) -> str:
    return remove_invisible(_BLANK_CHARACTER_PATTERN.sub(" ", text)).casefold()


def has_letter_or_digit(word: str) -> bool:
    return any(map(str.isalnum, word))


def has_no_words(text: str) -> bool:
    return not has_letter_or_digit(_fold_case(text))


def to_ngrams(sequence: Sequence[T], n: int) -> list[tuple[T, ...]]:
    """Return all n-grams in their order: len(sequence) - n + 1 of them, or none."""
    return list(zip(*(sequence[start:] for start in range(n)), strict=False))


# Repetitions are searched in so many characters; longer texts are cut there.
MAX_SEARCHED_CHARACTERS = 100_000

_SENTENCE_END_PATTERN = re.compile(r"\n+|(?<=[.!?])\s+|(?<=[。！？])")

MIN_ORDINARY_COMPRESSED_SHARE = 0.55
"""The smallest compressed size of ordinary text, as a share: solutions of GSM8K .68 (99 in 100), prose of 4,000
characters .70 and of 100,000 .61, Python .58 and .54. Below that, a text repeats itself."""


def length_score(length: int, unpenalised_word_count: float, max_length_factor: float) -> float:
    """Return 1 up to the `unpenalised_word_count`, above 0 words, falling linearly to 0 at `max_length_factor`, above
    1, times as many."""
    return min(
        1.0,
        max(0.0, (max_length_factor - length / unpenalised_word_count) / (max_length_factor - 1.0)),
    )


def compute_unpenalised_word_count(reference: int, group: Sequence[int]) -> float:
    """Return the number of words that cost nothing: the reference's, or the group's median if that is less.

    `reference` is 0 without one. Empty responses do not count.
    """
    lengths = [length for length in group if length > 0]
    median_length = float(median(lengths)) if lengths else 0.0
    return min(reference or median_length, median_length)


def unrepeated_share(text: str) -> float:
    """Return 1 - the share of the text's words in sentences that repeat earlier ones; 0 for a text without words.

    A sentence, or a piece of 40 words of one, is a repetition if it occurred before unchanged, or if at least 0.8 of
    its distinct 3-grams occurred in earlier sentences.
    """
    seen_sentence_pieces = set()
    seen_ngrams: set[WordNgram] = set()
    total = repeated_word_count = 0
    sentences = (
        tuple(words(sentence))
        for sentence in _SENTENCE_END_PATTERN.split(text[:MAX_SEARCHED_CHARACTERS])
    )
    # Cut, so that text without sentence ends is compared too.
    for sentence_piece in chain.from_iterable(
        split_into_batches(sentence, 40) for sentence in sentences
    ):
        piece_ngrams = set(to_ngrams(sentence_piece, 3))
        is_repeated_piece = bool(piece_ngrams) and len(piece_ngrams & seen_ngrams) >= 0.8 * len(
            piece_ngrams
        )
        total += len(sentence_piece)
        if is_repeated_piece or sentence_piece in seen_sentence_pieces:
            repeated_word_count += len(sentence_piece)
        seen_sentence_pieces.add(sentence_piece)
        seen_ngrams |= piece_ngrams
    return 1.0 - repeated_word_count / total if total else 0.0


def compressed_share(text: str) -> float:
    """Return the size of a text compressed by LZ78 (Ziv and Lempel, 1978), as a share of its size; above 1 if it grows.

    A character takes 8 bits, or the number that distinguishes all characters of the text; a phrase takes those of the
    character that it adds, and of the number of an earlier phrase. Not zlib, since its builds differ in their output.
    `text` is not empty.
    """
    bits_per_character = max(8, len(set(text)).bit_length())
    number_by_phrase: dict[tuple[int, str], int] = {}
    phrase_number = bit_count = 0
    for character in text:
        longer_phrase_number = number_by_phrase.get((phrase_number, character))
        if longer_phrase_number is not None:
            phrase_number = longer_phrase_number
            continue
        number_by_phrase[phrase_number, character] = len(number_by_phrase) + 1
        bit_count += len(number_by_phrase).bit_length() + bits_per_character
        phrase_number = 0
    remaining_bit_count = len(number_by_phrase).bit_length() if phrase_number else 0
    return (bit_count + remaining_bit_count) / (bits_per_character * len(text))


MAX_WORDS_PER_GROUP = 100_000
"""The number of words read per group, in equal parts for its responses: of 64, the first 1,562 of each."""

_NGRAM_SIZES = (1, 2, 3, 4)
"""The n of the n-grams of BLEU; `distinct_ngram_shares` counts those up to 3."""

_REPEATED_NGRAM_LENGTH = 2

WordNgram = tuple[str, ...]
NgramCounts = list[tuple[int, int]]
"""For each n of `_NGRAM_SIZES`, how many distinct n-grams of a response occur in another, and how many it has."""


class GroupDiversity:
    """The responses of a group as sequences of known words: those that another response, the query or the reference
    uses too. Only words with a letter or a digit are read: signs between words are not new content.

    Words that only one response uses are skipped, and count as nothing new: gibberish is not novel, and a copy with
    gibberish inserted is a copy. `known_share` is the share of each response's distinct words that is left, 0 for one
    without a word. An n-gram counts once, and not at all where a response repeats itself: a repeated copy is a copy.
    """

    def __init__(self, texts: Sequence[str], task_texts: Iterable[str] = ()) -> None:
        length = MAX_WORDS_PER_GROUP // max(1, len(texts))
        truncated_texts = (text[: length * MAX_WORD_LENGTH] for text in texts)
        words_by_response = [
            tuple(filter(has_letter_or_digit, words(text)))[:length] for text in truncated_texts
        ]
        vocabularies = [set(response_words) for response_words in words_by_response]
        response_count_by_word = Counter(chain.from_iterable(vocabularies))
        shared_words = {word for word, count in response_count_by_word.items() if count > 1}
        for text in task_texts:
            shared_words.update(words(text))
        shared_words_by_response = [
            tuple(filter(shared_words.__contains__, response_words))
            for response_words in words_by_response
        ]
        self.known_share = [
            len(vocabulary & shared_words) / len(vocabulary) if vocabulary else 0.0
            for vocabulary in vocabularies
        ]
        response_counts_by_n = {}
        for n in _NGRAM_SIZES:
            ngram_sets = [
                set(to_ngrams(shared_response_words, n))
                for shared_response_words in shared_words_by_response
            ]
            response_counts_by_n[n] = Counter(chain.from_iterable(ngram_sets))
        self._counts = [
            _count_ngrams(shared_response_words, response_counts_by_n)
            for shared_response_words in shared_words_by_response
        ]

    def distinct_ngram_shares(self) -> list[float]:
        """Return, for each response, the share of its distinct n-grams that no other has, times `known_share`.

        The share is the mean over those n of 1, 2 and 3 for which it has any.
        """
        return self._weigh_by_known_share(lambda ngram_counts: _new_ngram_share(ngram_counts[:3]))

    def self_bleu_novelty(self) -> list[float]:
        """Return, for each response, 1 - BLEU of its distinct n-grams against all others (Self-BLEU, Zhu et al. 2018),
        times `known_share`."""
        return self._weigh_by_known_share(
            lambda ngram_counts: 1.0 - _bleu(ngram_counts) if ngram_counts[0][1] else 0.0
        )

    def _weigh_by_known_share(self, measure: Callable[[NgramCounts], float]) -> list[float]:
        return [
            share * measure(ngram_counts)
            for share, ngram_counts in zip(self.known_share, self._counts, strict=True)
        ]


def _count_ngrams(
    word_sequence: WordNgram, response_counts_by_n: Mapping[int, Counter[WordNgram]]
) -> NgramCounts:
    unrepeated_pieces = list(_split_at_repetitions(word_sequence))
    ngram_counts = []
    for n, response_count_by_ngram in response_counts_by_n.items():
        distinct_ngrams = set(
            chain.from_iterable(to_ngrams(piece, n) for piece in unrepeated_pieces)
        )
        shared_ngram_count = sum(response_count_by_ngram[ngram] > 1 for ngram in distinct_ngrams)
        ngram_counts.append((shared_ngram_count, len(distinct_ngrams)))
    return ngram_counts


def _new_ngram_share(ngram_counts: NgramCounts) -> float:
    share_sum = 0.0  # `sum` compensates from Python 3.12 on, which would be other bits
    parts = 0
    for shared_ngram_count, total in ngram_counts:
        if total:
            share_sum += 1.0 - shared_ngram_count / total
            parts += 1
    return share_sum / max(1, parts)


def _split_at_repetitions(word_sequence: WordNgram) -> Iterator[list[str]]:
    """Yield the pieces of a text between its repetitions: pairs of adjacent words that occurred before, or a word after
    itself."""
    repeat_flags = [
        index > 0 and word_sequence[index - 1] == word for index, word in enumerate(word_sequence)
    ]
    earlier_ngrams = set()
    for index, ngram in enumerate(to_ngrams(word_sequence, _REPEATED_NGRAM_LENGTH)):
        if ngram in earlier_ngrams:
            repeat_flags[index : index + _REPEATED_NGRAM_LENGTH] = [True] * _REPEATED_NGRAM_LENGTH
        earlier_ngrams.add(ngram)
    for is_repeat, piece in groupby(
        zip(repeat_flags, word_sequence, strict=True), key=itemgetter(0)
    ):
        if not is_repeat:
            yield [word for _, word in piece]


def _bleu(ngram_counts: NgramCounts) -> float:
    """Return the geometric mean of four precisions, those beyond the first smoothed by one (Lin and Och, 2004).

    Without the brevity penalty, since a part of another response is a copy too. The fourth root is computed as two
    square roots, which give the same bits on every machine.
    """
    (shared_ngram_count, total), *longer_ngram_counts = ngram_counts
    precision_product = shared_ngram_count / total
    for shared_ngram_count, total in longer_ngram_counts:
        precision_product *= (shared_ngram_count + 1) / (total + 1)
    return sqrt(sqrt(precision_product))


MIN_COMPRESSED_CHARACTERS = 200  # the shortest text whose compression is scored
_NO_WORDS_VERDICT = Verdict(score=0.0, reason="there is no word in it")


class Efficiency(Evaluator):
    """Score how concise a response is, in three equal parts.

    `length`       1 up to the baseline: the number of words of the reference, or the group's median if that is less or
                   there is no reference; from there falling linearly to 0 at `limit` times the baseline. Needs a group:
                   left out for a single response.
    `redundancy`   1 - the share of its words in sentences that repeat earlier ones, exactly or nearly (3-grams)
    `compression`  1, unless LZ78 compresses it to less than .55 of its size; then its share of that. 1 for fewer than
                   200 characters, which are too few to tell.

    The last two read 100,000 characters. If rewards make a policy's responses shorter, the median falls with them, so
    give it a small weight.
    """

    class Params(ParamsModel):
        limit: Annotated[Number, Field(gt=1.0)] = 3.0
        """The multiple of the baseline at which the length scores 0."""

    name = "optimizer.efficiency"
    version = "1"
    branch = "specialists"
    scope = "group"
    shares = MappingProxyType({"length": 1.0, "redundancy": 1.0, "compression": 1.0})
    bounds_its_time = True
    settings: Params

    def questions(self, view: TaskView) -> Sequence[Question]:
        response_questions = [
            self.question(view, subject, scope="response")
            for subject in ("redundancy", "compression")
        ]
        return [self.question(view, "length"), *response_questions]

    def answer(self, inputs: EvaluatorInput) -> EvaluatorAnswers:
        text = inputs.response.text
        if inputs.question.subject == "length":
            lengths = [_count_words(response.text) for response in inputs.responses]
            unpenalised_word_count = compute_unpenalised_word_count(
                _count_words(inputs.task.reference or ""), lengths
            )
            return [self._length_verdict(length, unpenalised_word_count) for length in lengths]
        if has_no_words(text):
            return _NO_WORDS_VERDICT
        if inputs.question.subject == "redundancy":
            score = unrepeated_share(text)
            reason = f"{1 - score:.1%} of its words repeat earlier sentences"
            return Verdict(score=score, reason=reason)
        if len(text) < MIN_COMPRESSED_CHARACTERS:
            return Verdict(score=1.0, reason=f"{len(text)} characters are too few to tell")
        score = min(
            1.0, compressed_share(text[:MAX_SEARCHED_CHARACTERS]) / MIN_ORDINARY_COMPRESSED_SHARE
        )
        reason = f"by compression it says {score:.1%} of what ordinary text of its size does"
        return Verdict(score=score, reason=reason)

    def _length_verdict(self, length: int, unpenalised_word_count: float) -> Verdict:
        if length == 0:
            return _NO_WORDS_VERDICT
        score = length_score(length, unpenalised_word_count, self.settings.limit)
        reason = f"{length} words, where {unpenalised_word_count:g} cost nothing"
        return Verdict(score=score, native=length, reason=reason)


class Diversity(Evaluator):
    """Score how a response differs from the others of its group, in two equal parts; a copy scores 0.

    `distinct`   share of its distinct n-grams (n = 1, 2, 3; the mean) that no other response has
    `self-bleu`  1 - BLEU-4 of its distinct n-grams against all others, smoothed, without the brevity penalty (Zhu et
                 al. 2018)

    Each is multiplied by the share of its distinct words that another response, the query or the reference uses too,
    and reads only these words: words that only one response uses count as noise, not as novelty. Signs are no words,
    and a repetition within a response counts once. Still, diversity does not measure truth (wrong solutions of GSM8K
    are more diverse than right ones), and known words in any order count as novel: give it a small weight. 100,000
    words of a group are read.
    """

    name = "optimizer.diversity"
    version = "1"
    branch = "specialists"
    scope = "group"
    shares = MappingProxyType({"distinct": 1.0, "self-bleu": 1.0})
    bounds_its_time = True

    def questions(self, view: TaskView) -> Sequence[Question]:
        return [self.question(view, "distinct"), self.question(view, "self-bleu")]

    def answer(self, inputs: EvaluatorInput) -> Sequence[EvaluatorAnswer]:
        texts = tuple(response.text for response in inputs.responses)
        group = _cached_group_diversity(
            texts, (query_to_text(inputs.task.query), inputs.task.reference or "")
        )
        if inputs.question.subject == "distinct":
            label = "new sequences of words"
            scores = group.distinct_ngram_shares()
        else:
            label = "1 - BLEU against the others"
            scores = group.self_bleu_novelty()
        return [
            Verdict(
                score=score, reason=f"{label}: {score:.3f}, of {shared_word_share:.1%} known words"
            )
            for score, shared_word_share in zip(scores, group.known_share, strict=True)
        ]


# The same group is read for each part of its diversity.
_cached_group_diversity = lru_cache(maxsize=2)(GroupDiversity)


def _count_words(text: str) -> int:
    return 0 if has_no_words(text) else len(words(text))
