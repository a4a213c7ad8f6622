"""The alternative-annotator test (arXiv 2501.10970): is a judge as near to people as a person is?

Each person is compared with the judge on the items that others labelled, too: who is nearer to these others? The judge
beats a person if it is nearer, or as near, in a share of the items that is above the person's share less ε: what a
judge may be worse because it costs less. The null hypothesis, mean(W_judge) <= mean(W_person) - ε, is tested by a
paired t-test over tasks, and the p-values are adjusted for any dependence (Benjamini & Yekutieli 2001), because all
persons are compared on the same items.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jurygraph.arrays import Bools, Floats, Ints
from jurygraph.inference.agreement import correlations_with_others
from jurygraph.inference.clusters import (
    Estimate,
    cluster_numbers,
    divide_or_nan,
    jackknife_interval,
    max_unseen_cluster_share,
    mean_with_cluster_interval,
    members_by_cluster,
)
from jurygraph.inference.sign_flips import ROUNDING_TOLERANCE
from jurygraph.messages import format_count
from jurygraph.studies.report import IntervalCell, as_interval

MIN_PERSONS = 3
MIN_SHARED_ITEMS_BY_PERSON = 30
"""Items that a person must share with others to be compared (the paper's choice)."""
MIN_OTHER_LABELS = 15
"""Labels besides the median one, such as rare 1s, with fewer of which a low correlation says nothing of a person.

Fewer would find more of those who guess, and warn of half of honest people who err on a tenth where 1 in 20 is rare.
"""
DEFAULT_WIN_RATE_MARGIN = 0.1
"""What a judge may be worse than a person; the paper takes .2 where people are experts, .1 where they are not."""
SIGNIFICANCE_LEVEL = 0.05
MIN_PASSING_WIN_RATE = 0.5
"""Winning rate from which the paper lets a judge stand in for people."""


class PersonLabels(NamedTuple):
    """Labels of people, one a row: the number of its item, of its task and of its person, [n] each.

    `predictions` [n] are the judge's: of the item, or of this person's label. `are_classes` if a label is near to
    another by being equal; else by its distance.
    """

    items: Ints
    tasks: Ints
    persons: Ints
    labels: Floats
    predictions: Floats
    names: Sequence[str]
    are_classes: bool

    def leave_out(self, names: Collection[str]) -> "PersonLabels":
        """Return the labels without those of some persons."""
        kept = ~np.isin(np.array(self.names)[self.persons], list(names))
        columns = [column[kept] for column in self[:5]]
        return PersonLabels._make([*columns, self.names, self.are_classes])


class AlternativeAnnotator(NamedTuple):
    """The result of the test.

    Attributes:
        p: p-value of each of these persons, adjusted for their number (Benjamini & Yekutieli).
        rates: for each of them, the share of items in which the judge is as near to the others or nearer, and the share
            in which the person is.
        persons, items: number of those that were compared.
        winning_rate: ω, the share of persons whom the judge beats; None if the test was not run.
        advantage: ρ, the probability that the judge is as near to others as a person, the mean over persons.
        why: the reason why it was not run; empty if it was.
        left_out: the persons who share too few items with others to be compared.
        guessers: rank correlation with the others of each of these persons who may be guessing.
        winning_rate_without_guessers: ω where these gave no labels; None without them, or if too few persons are left.
        labels_off_constant: where a judge that always gives one answer passes the test, too, the number of labels that
            are another; None elsewhere.
    """

    epsilon: float
    persons: int = 0
    items: int = 0
    p: Mapping[str, float] = {}
    winning_rate: float | None = None
    advantage: IntervalCell | None = None
    why: str = ""
    rates: Mapping[str, tuple[float, float]] = {}
    left_out: Sequence[str] = ()
    guessers: Mapping[str, IntervalCell | None] = {}
    winning_rate_without_guessers: float | None = None
    labels_off_constant: int | None = None


def may_be_guessing(agreement: IntervalCell | Estimate | None, chance: float = 0.0) -> bool:
    """Return whether an interval reaches down to chance, and not half way from there to full agreement, 1."""
    if agreement is None or agreement.low is None or agreement.high is None:
        return False
    return agreement.low <= chance and agreement.high < (1.0 + chance) / 2.0


def compare_judge_with_people(
    people: PersonLabels, epsilon: float = DEFAULT_WIN_RATE_MARGIN
) -> AlternativeAnnotator:
    """Return whether the judge may stand in for people, or why that was not tested.

    Persons with fewer than 30 items that others labelled are compared with nobody, and remain others. Fewer than three
    who have so many are too few. The interval of ρ is the jackknife's over tasks, for these persons.
    """
    from scipy import stats  # imported lazily: every `study` command would wait for it

    extra_distances, is_labelled_by_others = _judge_less_person_distances(people)
    is_judge_as_near = (extra_distances <= ROUNDING_TOLERANCE).astype(np.float64)
    is_person_as_near = (extra_distances >= -ROUNDING_TOLERANCE).astype(np.float64)
    tasks = cluster_numbers(people.tasks)
    size = int(tasks.max(initial=-1)) + 1
    p_values = {}
    win_rates_by_person = {}
    is_compared = np.zeros(len(tasks), dtype=bool)
    shared_item_counts = {}
    person_win_sums = []
    sizes = []
    for number, name in enumerate(people.names):
        rows = is_labelled_by_others & (people.persons == number)
        shared_item_counts[name] = int(np.count_nonzero(rows))
        if shared_item_counts[name] < MIN_SHARED_ITEMS_BY_PERSON:
            continue
        sizes.append(np.bincount(tasks[rows], minlength=size))
        person_win_sums.append(np.bincount(tasks[rows], is_judge_as_near[rows], minlength=size))
        win_rates_by_person[name] = (
            float(is_judge_as_near[rows].mean()),
            float(is_person_as_near[rows].mean()),
        )
        judge_loss_estimate = mean_with_cluster_interval(
            (is_person_as_near - is_judge_as_near)[rows], tasks[rows]
        )
        p_values[name] = _p_value_judge_is_worse(judge_loss_estimate, epsilon)
        is_compared |= rows
    items = len(np.unique(people.items[is_compared]))
    if len(p_values) < MIN_PERSONS:
        found = "no label has the name of its reviewer"
        if people.names:
            found = (
                f"{len(p_values)} of {len(people.names)} do, and the most is "
                f"{format_count(max(shared_item_counts.values()), 'item')}"
            )
        why = (
            f"it takes {MIN_PERSONS} persons who share {MIN_SHARED_ITEMS_BY_PERSON} judged items with others, "
            f"by name; {found}"
        )
        return AlternativeAnnotator(epsilon, items=items, why=why)
    adjusted_p_values = stats.false_discovery_control(list(p_values.values()), method="by").tolist()
    p_values = dict(zip(p_values, adjusted_p_values, strict=True))
    beaten = [name for name, p in p_values.items() if p <= SIGNIFICANCE_LEVEL]
    guessers = _find_guessers(people, p_values)
    winning_rate_without_guessers = None
    if guessers:
        others = people.leave_out(guessers)
        winning_rate_without_guessers = compare_judge_with_people(others, epsilon).winning_rate
    advantage = as_interval(_mean_over_persons(np.array(person_win_sums), np.array(sizes)))
    return AlternativeAnnotator(
        epsilon,
        len(p_values),
        items,
        p_values,
        len(beaten) / len(p_values),
        advantage,
        rates=win_rates_by_person,
        left_out=[name for name in people.names if name not in p_values],
        guessers=guessers,
        winning_rate_without_guessers=winning_rate_without_guessers,
    )


def _find_guessers(
    people: PersonLabels, compared: Collection[str]
) -> dict[str, IntervalCell | None]:
    """Return the rank correlation with the others of those compared persons who may be guessing."""
    guessers: dict[str, IntervalCell | None] = {}
    columns = (people.persons, people.items, people.labels, people.tasks)
    correlations = correlations_with_others(*columns)
    for number, correlation in zip(np.unique(people.persons), correlations, strict=True):
        labels = people.labels[people.persons == number]
        is_told = np.count_nonzero(labels != np.median(labels)) >= MIN_OTHER_LABELS
        if is_told and people.names[number] in compared and may_be_guessing(correlation):
            guessers[people.names[number]] = as_interval(correlation)
    return guessers


def _judge_less_person_distances(people: PersonLabels) -> tuple[Floats, Bools]:
    """Return how much farther than each label's person the judge is from the others' labels of the item, [n].

    Distances are shares of other labels, or root mean squares of differences; the mask has the labels that have others.
    """
    distances = np.zeros((2, len(people.labels)))
    is_labelled_by_others = np.zeros(len(people.labels), dtype=bool)
    for rows in members_by_cluster(people.items):
        if len(rows) < 2:
            continue
        is_labelled_by_others[rows] = True
        others = 1.0 - np.eye(len(rows))
        labels = people.labels[rows]
        for values, gaps in zip((people.predictions, people.labels), distances, strict=True):
            differences = values[rows, None] - labels
            squares = differences != 0.0 if people.are_classes else differences**2
            gaps[rows] = (squares * others).sum(axis=1) / (len(rows) - 1)
    if not people.are_classes:
        distances = np.sqrt(distances)
    return distances[0] - distances[1], is_labelled_by_others


def _p_value_judge_is_worse(judge_loss_estimate: Estimate | None, epsilon: float) -> float:
    """Return the p-value of "the judge is behind the person by ε or more"."""
    from scipy import special

    assert judge_loss_estimate is not None, "there are items"
    if judge_loss_estimate.error is None:
        return 1.0  # a single task shows nothing
    if judge_loss_estimate.error == 0.0:
        # If all are equal, t has no error: the chance that no task shows what the judge would lose on ε of them.
        if judge_loss_estimate.value > 0.0:
            return 1.0
        return (1.0 - epsilon) ** judge_loss_estimate.clusters
    return float(
        special.stdtr(
            judge_loss_estimate.clusters - 1,
            (judge_loss_estimate.value - epsilon) / judge_loss_estimate.error,
        )
    )


def _mean_over_persons(wins: Floats, sizes: Floats) -> Estimate:
    """Return the mean over persons of Σ wins / Σ sizes, of tables [persons, tasks], with its interval over tasks."""
    total = sizes.sum(axis=1, keepdims=True)
    total_wins = wins.sum(axis=1, keepdims=True)
    value = float((total_wins / total).mean())
    has_any_label = sizes.any(axis=0)
    remaining_wins = total_wins - wins[:, has_any_label]
    # without a person's only task nothing is left
    jackknife_means = divide_or_nan(remaining_wins, total - sizes[:, has_any_label]).mean(axis=0)
    estimate = jackknife_interval(value, jackknife_means)
    if estimate.error == 0.0:  # all tasks agree, and those that were not seen may not
        max_unseen_share = max_unseen_cluster_share(estimate.clusters)
        estimate = estimate._replace(low=value - max_unseen_share, high=value + max_unseen_share)
    return estimate.within(0.0, 1.0)
