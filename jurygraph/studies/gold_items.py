"""Which method is right on items with a known label, each of which is held out of what the method is told."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation.consensus import adjusted_means
from jurygraph.aggregation.consensus.fitting import ConsensusMethod, held_out_posteriors
from jurygraph.arrays import Floats, Ints
from jurygraph.inference.sign_flips import sign_flip_p
from jurygraph.messages import format_count, join_names
from jurygraph.studies.alternative_annotator import SIGNIFICANCE_LEVEL
from jurygraph.studies.conclusions import without_option
from jurygraph.studies.fitted_consensus import FittedConsensus
from jurygraph.studies.report import Figures


class HeldOutLabels(NamedTuple):
    """Of how many known items the likeliest label is wrong, several classes lead, and it is right."""

    wrong: int
    tied: int
    right: int

    def __str__(self) -> str:
        return f"right {self.right}, tied {self.tied}, wrong {self.wrong}"


class HeldOutGold(NamedTuple):
    """Labels by the majority and the model of known `items` that they are not told, and by adjusted means if these are
    the method.

    A tie is half right: `better` is the method with most, and `p` the exact paired test that the next has as much, None
    where they are right on the same items.
    """

    items: int
    majority: HeldOutLabels
    stableval: HeldOutLabels
    better: ConsensusMethod
    p: float | None
    adjusted_mean: HeldOutLabels | None = None

    def describe(self) -> str:
        """Return how often each method is right, and which one to take if the items tell."""
        verdict = "too few to tell which is right more often"
        if self.p is not None and self.p < SIGNIFICANCE_LEVEL:
            verdict = f"surely right more often (exact paired test, p = {self.p:.2g}): --method {self.better}"
        adjusted = ""
        if self.adjusted_mean is not None:
            adjusted = f"adjusted-mean {self.adjusted_mean}; "
            verdict += (
                "; known items have their own label as mean, and do not set the level of others"
            )
        return (
            f"of {format_count(self.items, 'known item')}, held out in up to ten parts: majority {self.majority}; "
            f"model (stableval) {self.stableval}; {adjusted}{verdict}"
        )


def compare_on_gold(counts: Ints) -> list[int]:
    """Return, for each annotator, whether gold items show fewer (-1) or more (1) right labels than the others', else 0.

    `counts` [A,2] are the right labels and all labels of each annotator. Tests are exact (hypergeometric). Only that of
    -1, which leads to a warning, allows for the number of annotators.
    """
    from scipy.stats import hypergeom  # imported lazily: every `study` command would wait for it

    right, labels = counts.T
    all_right, all_labels = counts.sum(axis=0)
    draws = (all_labels, all_right, labels)
    is_worse = hypergeom.cdf(right, *draws) < SIGNIFICANCE_LEVEL / len(counts)
    is_better = hypergeom.sf(right - 1, *draws) < SIGNIFICANCE_LEVEL
    sides: list[int] = (is_better.astype(np.int64) - is_worse).tolist()
    return sides


def conclude_gold(people: Mapping[str, Figures]) -> Iterator[str]:
    """Yield how many labels of gold items are right by person, the smallest share first, or a warning of who errs more.

    Nothing without such labels.
    """
    gold = {name: row["gold"] for name, row in people.items() if row.get("gold", {}).get("labels")}
    if not gold:
        return
    names = sorted(gold, key=lambda name: gold[name]["right"] / gold[name]["labels"])
    counts = join_names(f"{name} {gold[name]['right']} of {gold[name]['labels']}" for name in names)
    sentence = f"right on gold, least often first: {counts}"
    worse = [name for name in names if gold[name].get("side") == -1]
    if worse:
        sentence = (
            f"Warning: {sentence}; surely less often than the others: {join_names(worse)}; to leave out: "
            f"{without_option(worse)}"
        )
    yield sentence


def hold_out_gold(fitted: FittedConsensus) -> HeldOutGold | None:
    """Return how methods do on the known items that have labels; None without any, or if fits take long."""
    model = fitted.model
    items = np.flatnonzero((model.gold >= 0) & model.votes.has_label)
    if not len(items) or fitted.is_refitting_slow:
        return None
    weights: dict[ConsensusMethod, Floats | Ints] = {
        "majority": model.votes.counts[items],
        "stableval": held_out_posteriors(model, items),
    }
    if fitted.method == "adjusted-mean":  # of which no item's mean depends on gold of another
        untold = adjusted_means(model.votes, np.full_like(model.gold, -1))
        weights["adjusted-mean"] = untold.posterior[items]
    scores = {name: _credit_labels(array, model.gold[items]) for name, array in weights.items()}
    # of three equal methods, the gap between the first two is less than that of any two: no p-value is too small
    best, second, *_ = sorted(scores, key=lambda name: -scores[name].sum())
    p = sign_flip_p(scores[best] - scores[second])
    found = {
        name.replace("-", "_"): HeldOutLabels(*np.bincount(score, minlength=3).tolist())
        for name, score in scores.items()
    }
    return HeldOutGold(len(items), better=best, p=p, **found)


def _credit_labels(weights: Floats | Ints, truth: Ints) -> Ints:
    """Return 2 for the items whose true class alone has the greatest weight, 1 if others have as much, else 0, [G]."""
    # equal probabilities can differ in their last bits
    is_leading = weights > weights.max(axis=1, keepdims=True) - 1e-9
    is_right = is_leading[np.arange(len(truth)), truth]
    return np.asarray(np.where(is_leading.sum(axis=1) > 1, 1, 2) * is_right)
