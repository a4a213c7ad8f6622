"""MACRM's Data Optimizer, computed by code: `optimizer.efficiency` and `optimizer.diversity`.

The paper gives no formulas; these are ours, each in [0, 1]. None of them knows what is correct: a short or unusual
answer may be wrong. Give them small weights, or multiply them with accuracy. A response without a word scores 0.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby
from math import sqrt
from operator import itemgetter
from statistics import median
from types import MappingProxyType
from typing import Annotated, TypeVar

from pydantic import Field

from jurygraph.agents.roles import Evaluator, EvaluatorAnswer, EvaluatorInput
from jurygraph.safety.gates import remove_invisible
from jurygraph.schema import Branch, Question, Scope, TaskView, Verdict
from jurygraph.schema.frozen_model import Number, ParamsModel
from jurygraph.schema.task import query_text

T = TypeVar("T")
S = TypeVar("S", str, tuple[str, ...])

MAX_WORD_LENGTH = 15  # the largest number of characters in a word

_UNSPACED_SCRIPTS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_BLANK_LETTERS = re.compile("[_\u115f\u1160\u2800\u3164\uffa0]")
"""Characters that look blank but are no white space: the underscore, the blank of Braille, and fillers of Hangul."""

_WORD_OR_SIGNS = re.compile(rf"[{_UNSPACED_SCRIPTS}]|[^\W{_UNSPACED_SCRIPTS}]+|[^\w\s]+")


def words(text: str) -> list[str]:
    """Return the words of a text, case-folded: runs of letters and digits, runs of other signs, and each character of a
    script written without spaces. An underscore, and other characters that look blank, separate words; invisible
    characters are dropped.

    A run of more than 15 characters is cut into pieces of 5, so that joining words does not make a text short.
    """
    pieces: list[str] = []
    for run in _WORD_OR_SIGNS.findall(_fold_case(text)):
        if len(run) <= MAX_WORD_LENGTH:
            pieces.append(run)
        else:
            pieces.extend(_cut_into_pieces(run, 5))
    return pieces


def _fold_case(text: str) -> str:
    return remove_invisible(_BLANK_LETTERS.sub(" ", text)).casefold()


def _cut_into_pieces(sequence: S, size: int) -> list[S]:
    return [sequence[start : start + size] for start in range(0, len(sequence), size)]


def has_content(word: str) -> bool:
    return any(map(str.isalnum, word))


def is_silent(text: str) -> bool:
    return not has_content(_fold_case(text))


def grams(sequence: Sequence[T], n: int) -> list[tuple[T, ...]]:
    """Return all n-grams in their order: len(sequence) - n + 1 of them, or none."""
    return list(zip(*(sequence[start:] for start in range(n)), strict=False))


MAX_CHARACTERS = 100_000  # the number of characters in which repetitions are searched; longer texts are cut there

_SENTENCE_END = re.compile(r"\n+|(?<=[.!?])\s+|(?<=[。！？])")

ORDINARY_COMPRESSION = 0.55
"""The smallest compressed size of ordinary text, as a share: solutions of GSM8K .68 (99 in 100), prose of 4,000
characters .70 and of 100,000 .61, Python .58 and .54. Below that, a text repeats itself."""


def brevity(length: int, free_words: float, limit: float) -> float:
    """Return 1 up to the `free_words`, above 0 words, falling linearly to 0 at `limit`, above 1, times as many."""
    return min(1.0, max(0.0, (limit - length / free_words) / (limit - 1.0)))


def free_length(reference: int, group: Sequence[int]) -> float:
    """Return the number of words that cost nothing: the reference's, or the group's median if that is less.

    `reference` is 0 without one. Empty responses do not count.
    """
    lengths = [length for length in group if length > 0]
    median_length = float(median(lengths)) if lengths else 0.0
    return min(reference or median_length, median_length)


def freshness(text: str) -> float:
    """Return 1 - the share of the text's words in sentences that repeat earlier ones; 0 for a text without words.

    A sentence, or a piece of 40 words of one, is a repetition if it occurred before unchanged, or if at least 0.8 of
    its distinct 3-grams occurred in earlier sentences.
    """
    seen_units: set[tuple[str, ...]] = set()
    seen_grams: set[tuple[str, ...]] = set()
    total = repeated_count = 0
    sentences = (tuple(words(sentence)) for sentence in _SENTENCE_END.split(text[:MAX_CHARACTERS]))
    # Cut, so that text without sentence ends is compared too.
    for unit in chain.from_iterable(_cut_into_pieces(sentence, 40) for sentence in sentences):
        unit_grams = set(grams(unit, 3))
        is_known = bool(unit_grams) and len(unit_grams & seen_grams) >= 0.8 * len(unit_grams)
        total += len(unit)
        if is_known or unit in seen_units:
            repeated_count += len(unit)
        seen_units.add(unit)
        seen_grams |= unit_grams
    return 1.0 - repeated_count / total if total else 0.0


def compressed_share(text: str) -> float:
    """Return the size of a text compressed by LZ78 (Ziv and Lempel, 1978), as a share of its size; above 1 if it grows.

    A character takes 8 bits, or the number that distinguishes all characters of the text; a phrase takes those of the
    character that it adds, and of the number of an earlier phrase. Not zlib, since its builds differ in their output.
    `text` is not empty.
    """
    width = max(8, len(set(text)).bit_length())
    phrases: dict[tuple[int, str], int] = {}
    phrase = bits = 0
    for char in text:
        longer_phrase = phrases.get((phrase, char))
        if longer_phrase is not None:
            phrase = longer_phrase
            continue
        phrases[phrase, char] = len(phrases) + 1
        bits += len(phrases).bit_length() + width
        phrase = 0
    rest_bits = len(phrases).bit_length() if phrase else 0
    return (bits + rest_bits) / (width * len(text))


MAX_WORDS = 100_000
"""The number of words read per group, in equal parts for its responses: of 64, the first 1,562 of each."""

_NGRAM_SIZES = (1, 2, 3, 4)
"""The n of the n-grams of BLEU; `distinct_ngram_shares` counts those up to 3."""

_REPEATED_GRAM_LENGTH = 2

WordNgram = tuple[str, ...]
WordCounts = list[tuple[int, int]]
"""For each n of `_NGRAM_SIZES`, how many distinct n-grams of a response occur in another, and how many it has."""


class MeasuredGroup:
    """The responses of a group as sequences of known words: those that another response, the query or the reference
    uses too. Only words with a letter or a digit are read: signs between words are not new content.

    Words that only one response uses are skipped, and count as nothing new: gibberish is not novel, and a copy with
    gibberish inserted is a copy. `known_share` is the share of each response's distinct words that is left, 0 for one
    without a word. An n-gram counts once, and not at all where a response repeats itself: a repeated copy is a copy.
    """

    def __init__(self, texts: Sequence[str], task: Iterable[str] = ()) -> None:
        length = MAX_WORDS // max(1, len(texts))
        cut_texts = (text[: length * MAX_WORD_LENGTH] for text in texts)
        self._words = [tuple(filter(has_content, words(text)))[:length] for text in cut_texts]
        vocabularies = [set(response_words) for response_words in self._words]
        users = Counter(chain.from_iterable(vocabularies))
        common = {word for word, count in users.items() if count > 1}
        for text in task:
            common.update(words(text))
        common_words = [
            tuple(filter(common.__contains__, response_words)) for response_words in self._words
        ]
        self.known_share = [
            len(set(kept_words)) / len(vocabulary) if vocabulary else 0.0
            for kept_words, vocabulary in zip(common_words, vocabularies, strict=True)
        ]
        gram_users: dict[int, Counter[WordNgram]] = {}
        for n in _NGRAM_SIZES:
            gram_sets = [set(grams(kept_words, n)) for kept_words in common_words]
            gram_users[n] = Counter(chain.from_iterable(gram_sets))
        self._counts = [_count_grams(kept_words, gram_users) for kept_words in common_words]

    def distinct_ngram_shares(self) -> list[float]:
        """Return, for each response, the share of its distinct n-grams that no other has, times `known_share`.

        The share is the mean over those n of 1, 2 and 3 for which it has any.
        """
        return [
            known_share * _new_share(counts[:3])
            for known_share, counts in zip(self.known_share, self._counts, strict=True)
        ]

    def self_bleu_novelty(self) -> list[float]:
        """Return, for each response, 1 - BLEU of its distinct n-grams against all others (Self-BLEU, Zhu et al. 2018),
        times `known_share`."""
        return [
            known_share * (1.0 - _bleu(counts)) if counts[0][1] else 0.0
            for known_share, counts in zip(self.known_share, self._counts, strict=True)
        ]


def _count_grams(sequence: WordNgram, users: Mapping[int, Counter[WordNgram]]) -> WordCounts:
    pieces = list(_pieces_between_repeats(sequence))
    counts = []
    for n, gram_users in users.items():
        distinct_grams = set(chain.from_iterable(grams(piece, n) for piece in pieces))
        shared_count = sum(gram_users[gram] > 1 for gram in distinct_grams)
        counts.append((shared_count, len(distinct_grams)))
    return counts


def _new_share(counts: WordCounts) -> float:
    share_sum = 0.0  # `sum` compensates from Python 3.12 on, which would be other bits
    parts = 0
    for shared_count, total in counts:
        if total:
            share_sum += 1.0 - shared_count / total
            parts += 1
    return share_sum / max(1, parts)


def _pieces_between_repeats(sequence: WordNgram) -> Iterator[list[str]]:
    """Yield the pieces of a text between its repetitions: pairs of adjacent words that occurred before, or a word after
    itself."""
    repeat_flags = [
        index > 0 and sequence[index - 1] == word for index, word in enumerate(sequence)
    ]
    earlier_grams: set[WordNgram] = set()
    for index, gram in enumerate(grams(sequence, _REPEATED_GRAM_LENGTH)):
        if gram in earlier_grams:
            repeat_flags[index : index + _REPEATED_GRAM_LENGTH] = [True] * _REPEATED_GRAM_LENGTH
        earlier_grams.add(gram)
    for is_repeat, piece in groupby(zip(repeat_flags, sequence, strict=True), key=itemgetter(0)):
        if not is_repeat:
            yield [word for _, word in piece]


def _bleu(counts: WordCounts) -> float:
    """Return the geometric mean of four precisions, those beyond the first smoothed by one (Lin and Och, 2004).

    Without the brevity penalty, since a part of another response is a copy too. The fourth root is computed as two
    square roots, which give the same bits on every machine.
    """
    (shared_count, total), *longer_grams = counts
    product = shared_count / total
    for shared_count, total in longer_grams:
        product *= (shared_count + 1) / (total + 1)
    return sqrt(sqrt(product))


MIN_COMPRESSED_CHARACTERS = 200  # the shortest text whose compression is scored
_NO_WORDS = Verdict(score=0.0, reason="there is no word in it")


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
    branch: Branch = "specialists"
    scope: Scope = "group"
    shares = MappingProxyType({"length": 1.0, "redundancy": 1.0, "compression": 1.0})
    bounds_its_time = True
    settings: Params

    def questions(self, view: TaskView) -> Sequence[Question]:
        redundancy = self.question(view, "redundancy", scope="response")
        compression = self.question(view, "compression", scope="response")
        return [self.question(view, "length"), redundancy, compression]

    def answer(self, inputs: EvaluatorInput) -> EvaluatorAnswer | Sequence[EvaluatorAnswer]:
        text = inputs.response.text
        if inputs.question.subject == "length":
            lengths = [_length(response.text) for response in inputs.responses]
            free_words = free_length(_length(inputs.task.reference or ""), lengths)
            return [self._length_verdict(length, free_words) for length in lengths]
        if is_silent(text):
            return _NO_WORDS
        if inputs.question.subject == "redundancy":
            score = freshness(text)
            reason = f"{1 - score:.1%} of its words repeat earlier sentences"
            return Verdict(score=score, reason=reason)
        if len(text) < MIN_COMPRESSED_CHARACTERS:
            return Verdict(score=1.0, reason=f"{len(text)} characters are too few to tell")
        score = min(1.0, compressed_share(text[:MAX_CHARACTERS]) / ORDINARY_COMPRESSION)
        reason = f"by compression it says {score:.1%} of what ordinary text of its size does"
        return Verdict(score=score, reason=reason)

    def _length_verdict(self, length: int, free_words: float) -> Verdict:
        if length == 0:
            return _NO_WORDS
        score = brevity(length, free_words, self.settings.limit)
        reason = f"{length} words, where {free_words:g} cost nothing"
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
    branch: Branch = "specialists"
    scope: Scope = "group"
    shares = MappingProxyType({"distinct": 1.0, "self-bleu": 1.0})
    bounds_its_time = True

    def questions(self, view: TaskView) -> Sequence[Question]:
        return [self.question(view, "distinct"), self.question(view, "self-bleu")]

    def answer(self, inputs: EvaluatorInput) -> Sequence[EvaluatorAnswer]:
        texts = tuple(response.text for response in inputs.responses)
        group = _measure_group(texts, (query_text(inputs.task.query), inputs.task.reference or ""))
        if inputs.question.subject == "distinct":
            label = "new sequences of words"
            scores = group.distinct_ngram_shares()
        else:
            label = "1 - BLEU against the others"
            scores = group.self_bleu_novelty()
        return [
            Verdict(score=score, reason=f"{label}: {score:.3f}, of {known_share:.1%} known words")
            for score, known_share in zip(scores, group.known_share, strict=True)
        ]


# The same group is read for each part of its diversity.
_measure_group = lru_cache(maxsize=2)(MeasuredGroup)


def _length(text: str) -> int:
    return 0 if is_silent(text) else len(words(text))
