"""Group-normalised advantages of rewards (DecompR, Eq. 4; MACRM, 3.4); what filling in a failed one changes.

A group is the responses to one prompt. A failed reward is NaN: it is in no mean, and its member has no advantage.
"""

# `help` shows the names of types, not all that an ArrayLike is
from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import sqrt
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jurygraph.arrays import (
    Floats,
    as_floats,
    check_choice,
    check_shape,
    refuse_first_invalid,
    total,
)
from jurygraph.errors import PlanError

AdvantageNormalization = Literal["std", "none", "leave-one-out"]
"""Of an advantage: by the group's standard deviation (GRPO), not at all (Dr. GRPO), or against the mean of the other
members (RLOO)."""

GroupIds = Sequence[Any] | NDArray[Any]


def advantages(
    rewards: ArrayLike,
    groups: GroupIds | None = None,
    *,
    normalize: AdvantageNormalization = "std",
    ddof: int = 1,
    epsilon: float = 0.0,
) -> Floats:
    """Return how far each reward is above its group's mean, (R - mean) / (std + epsilon).

    Args:
        rewards: [n] finite numbers, NaN for a failed reward.
        groups: [n] the id of each one's group, such as its prompt; None for one group of all.
        normalize: with `none` the difference is not divided; with `leave-one-out` the mean is that of the others.
        ddof: 1 for the standard deviation of a sample, as torch has it, 0 for that of a population, as NumPy has it.
        epsilon: what a trainer adds to the standard deviation, often 1e-4.

    Returns:
        [n]; NaN where the reward is, and 0 in a group whose rewards are equal, or that has one alone.

    Raises:
        PlanError: rewards that are infinite or no vector, groups of another length, or an unknown option.
    """
    values = as_floats("rewards", rewards)
    if not 0.0 <= epsilon < np.inf:
        raise PlanError(f"epsilon is {epsilon!r}: a finite number of 0 or more")
    check_shape("rewards", values, (values.size,))
    problem = ": finite, or NaN where it failed"
    refuse_first_invalid("rewards", values, np.isinf(values), problem, PlanError)
    _check_options(normalize, ddof)
    result = np.full(len(values), np.nan)
    for members in _indices_by_group(groups, len(values)):
        judged = members[~np.isnan(values[members])]
        result[judged] = _normalize_group_rewards(values[judged], normalize, ddof, epsilon)
    return result


def filling_factor(
    judged: int, members: int, *, normalize: AdvantageNormalization = "std", ddof: int = 1
) -> float:
    """Return the factor by which the judged members' advantages change when the failed ones get the judged mean.

    Order and signs stay, and the filled members have advantage 0. For n members, k of them judged, it is
    √((n - 1) / (k - 1)) with ddof 1 and √(n / k) with ddof 0, 1 without a division, and n (k - 1) / ((n - 1) k) for
    `leave-one-out`. With one judged member every advantage is 0, and the factor 1.

    Raises `PlanError` without a judged member, because there is no mean, or for more judged than there are.
    """
    _check_options(normalize, ddof)
    if not 0 < judged <= members:
        raise PlanError(f"{judged} of {members} members are judged: a mean needs one of them")
    if judged == 1 or normalize == "none":
        return 1.0
    if normalize == "leave-one-out":
        return members * (judged - 1) / ((members - 1) * judged)
    return sqrt((members - ddof) / (judged - ddof))


def _check_options(normalize: str, ddof: int) -> None:
    check_choice("normalize", normalize, get_args(AdvantageNormalization))
    if ddof not in (0, 1):
        raise PlanError(f"ddof is {ddof!r}: 0 or 1")


def _indices_by_group(groups: GroupIds | None, size: int) -> list[NDArray[np.intp]]:
    """Return the members of each group by their index, in the order of its first member."""
    if groups is None:
        return [np.arange(size)]
    if len(groups) != size:
        raise PlanError(f"groups has {len(groups)} ids for {size} rewards: give one for each")
    members = defaultdict(list)
    try:
        for index, name in enumerate(groups):
            members[name].append(index)
    except TypeError:
        raise PlanError(
            "groups has an id that is a list or the like: give texts or numbers"
        ) from None
    return [np.array(indices, dtype=np.intp) for indices in members.values()]


def _normalize_group_rewards(
    rewards: Floats, normalize: AdvantageNormalization, ddof: int, epsilon: float
) -> Floats | float:
    count = len(rewards)
    if count < 2 or (rewards == rewards[0]).all():
        return 0.0
    deviations = rewards - total(rewards) / count
    if normalize == "none":
        return deviations
    if normalize == "leave-one-out":
        return deviations * (count / (count - 1))
    deviation = np.sqrt(total(deviations * deviations) / (count - ddof))
    return deviations / (deviation + epsilon)
