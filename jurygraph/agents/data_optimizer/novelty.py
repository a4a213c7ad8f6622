"""How a response differs from the others of its group: new sequences of words, and Self-BLEU (formulas of ours)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import sqrt
from operator import itemgetter

from jurygraph.agents.data_optimizer.words import LONGEST, grams, says, words

READ = 100_000
"""Words of a group that are read, in equal parts of its responses: of 64, the first 1,562 of each."""

_DISTINCT = (1, 2, 3)
_BLEU = (1, 2, 3, 4)
_REPEATED = 2

Gram = tuple[str, ...]


class Group:
    """The responses of a group as sequences of known words: those that another response, the query or the reference
    uses, too. Only words with a letter or a figure in them are read: signs between words say nothing new.

    What nobody else would say is read over, in all of them, and counts as nothing new: so gibberish is not novel, and
    a copy with gibberish in it is a copy. `known` is the share of each response's distinct words that is left, 0 for
    one without a word. An n-gram counts once, and none where a response repeats itself: so a copy that is repeated is
    a copy.
    """

    def __init__(self, texts: Sequence[str], task: Iterable[str] = ()) -> None:
        each = READ // max(1, len(texts))
        said = [_telling(text[: each * LONGEST])[:each] for text in texts]
        users = Counter(word for own in said for word in set(own))
        common = {word for text in task for word in words(text)} | {word for word, n in users.items() if n > 1}
        left = [tuple(word for word in own if word in common) for own in said]
        self._said = said
        self.known = [len(set(kept)) / len(set(own)) if own else 0.0 for kept, own in zip(left, said, strict=True)]
        self._own = [{n: set(_grams_of_pieces(kept, n)) for n in _BLEU} for kept in left]
        self._users = {n: Counter(gram for kept in left for gram in set(grams(kept, n))) for n in _BLEU}

    def copies(self) -> list[bool]:
        """Whether another response says the same, word for word, for each response; as often as it likes."""
        once = [_once(own) for own in self._said]
        times = Counter(once)
        return [bool(own) and times[own] > 1 for own in once]

    def distinct(self) -> list[float]:
        """For each response, the share of its distinct n-grams (n = 1, 2, 3) that no other response has, times `known`.

        The mean over n of those that it has.
        """
        return [known * self._new(own) for known, own in zip(self.known, self._own, strict=True)]

    def _new(self, own: Mapping[int, set[Gram]]) -> float:
        shares = [1.0 - self._found(n, own[n]) / len(own[n]) for n in _DISTINCT if own[n]]
        return sum(shares) / max(1, len(shares))

    def unlike(self) -> list[float]:
        """For each response, 1 - BLEU of its distinct n-grams against all others (Self-BLEU, Zhu et al. 2018), times
        `known`."""
        return [
            known * (1.0 - _bleu([(self._found(n, own[n]), len(own[n])) for n in _BLEU])) if own[1] else 0.0
            for known, own in zip(self.known, self._own, strict=True)
        ]

    def _found(self, n: int, own: set[Gram]) -> int:
        """How many n-grams of a response stand in another."""
        return sum(self._users[n][gram] > 1 for gram in own)


def _telling(text: str) -> tuple[str, ...]:
    return tuple(filter(says, words(text)))


def _once(said: Gram) -> Gram:
    """What a text says over and over, once."""
    sizes = (size for size in range(1, len(said) // 2 + 1) if len(said) % size == 0)
    return next((said[:size] for size in sizes if said[:size] * (len(said) // size) == said), said)


def _grams_of_pieces(left: Sequence[str], n: int) -> Iterator[Gram]:
    return (gram for piece in _unrepeated(left) for gram in grams(piece, n))


def _unrepeated(left: Sequence[str]) -> Iterator[list[str]]:
    """The pieces of a text between what repeats in it: words that stood beside one another before, or a word beside
    itself."""
    repeated = [place > 0 and left[place - 1] == word for place, word in enumerate(left)]
    seen: set[Gram] = set()
    for place, gram in enumerate(grams(left, _REPEATED)):
        if gram in seen:
            repeated[place : place + _REPEATED] = [True] * _REPEATED
        seen.add(gram)
    for again, piece in groupby(zip(repeated, left, strict=True), key=itemgetter(0)):
        if not again:
            yield [word for _, word in piece]


def _bleu(precisions: Sequence[tuple[int, int]]) -> float:
    """The geometric mean of four precisions, those beyond the first smoothed by one (Lin and Och, 2004).

    Without the brevity penalty: a part of another response is a copy, too. The fourth root is two square ones, which
    are the same on every machine.
    """
    (found, total), *longer = precisions
    product = found / total
    for found, total in longer:
        product *= (found + 1) / (total + 1)
    return sqrt(sqrt(product))
