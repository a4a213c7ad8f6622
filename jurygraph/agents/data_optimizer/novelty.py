"""How a response differs from the others of its group: new sequences of words, and Self-BLEU (formulas of ours)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import sqrt

from jurygraph.agents.data_optimizer.words import grams, says, words

READ = 100_000
"""Words of a group that are read, in equal parts of its responses: of 64, the first 1,562 of each."""

_DISTINCT = (1, 2, 3)
_BLEU = (1, 2, 3, 4)
_START, _END = " ", "\n"
"""Before and behind a text's words: no word is blank, so that the shortest text has sequences, too."""

Gram = tuple[str, ...]


class Group:
    """The responses of a group as sequences of known words: those that another response, the query or the reference
    uses, too.

    What nobody else would say is read over, in all of them, and counts as nothing new: so gibberish is not novel, and
    a copy with gibberish in it is a copy. `known` is the share of each response's words that is left, 0 for one without
    a word.
    """

    def __init__(self, texts: Sequence[str], task: Iterable[str] = ()) -> None:
        each = READ // max(1, len(texts))
        said = [tuple(words(text[: each * 20])[:each]) for text in texts]  # no word is longer than 20 characters
        said = [own if any(map(says, own)) else () for own in said]
        users = Counter(word for own in said for word in set(own))
        common = {word for text in task for word in words(text)} | {word for word, n in users.items() if n > 1}
        self._said = said
        self._left = [tuple(word for word in own if word in common) for own in said]
        self.known = [len(left) / len(own) if own else 0.0 for left, own in zip(self._left, said, strict=True)]

    def copies(self) -> list[bool]:
        """Whether another response says the same, word for word, for each response."""
        times = Counter(self._said)
        return [times[own] > 1 for own in self._said]

    def distinct(self) -> list[float]:
        """For each response, the share of its distinct n-grams (n = 1, 2, 3) that no other response has, times `known`.

        The mean over n of those that it has; the n-grams of 2 and 3 words take in the beginning and the end.
        """
        shares: list[list[float]] = [[] for _ in self._left]
        for n in _DISTINCT:
            own = [set(grams(_framed(left, n), n)) for left in self._left]
            users = Counter(gram for one in own for gram in one)
            for place, one in enumerate(own):
                if one:
                    shares[place].append(sum(users[gram] == 1 for gram in one) / len(one))
        return [known * sum(own) / max(1, len(own)) for known, own in zip(self.known, shares, strict=True)]

    def unlike(self) -> list[float]:
        """For each response, 1 - BLEU of it against all others (Self-BLEU, Zhu et al. 2018), times `known`."""
        counts = [{n: Counter(grams(left, n)) for n in _BLEU} for left in self._left]
        most = {n: _two_most([one[n] for one in counts]) for n in _BLEU}
        return [
            known * (1.0 - _bleu([_precision(own[n], place, most[n]) for n in _BLEU])) if left else 0.0
            for place, (known, own, left) in enumerate(zip(self.known, counts, self._left, strict=True))
        ]


def _framed(left: Sequence[str], n: int) -> Sequence[str]:
    return left if n == 1 or not left else (_START, *left, _END)


def _two_most(counts: Sequence[Counter[Gram]]) -> dict[Gram, tuple[int, int, int]]:
    """By gram: how often it stands in one text at most, in which one, and how often in another at most."""
    most: dict[Gram, tuple[int, int, int]] = {}
    for place, count in enumerate(counts):
        for gram, times in count.items():
            best, holder, second = most.get(gram, (0, -1, 0))
            most[gram] = (times, place, best) if times > best else (best, holder, max(second, times))
    return most


def _precision(own: Counter[Gram], place: int, most: dict[Gram, tuple[int, int, int]]) -> tuple[int, int]:
    """How many n-grams of a text stand in another, each as often as there at most, and how many it has."""
    found = 0
    for gram, times in own.items():
        best, holder, second = most[gram]
        found += min(times, second if holder == place else best)
    return found, own.total()


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
