"""Responses and verdicts that are in both runs."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from jurygraph.arrays import Floats, Ints
from jurygraph.errors import InputError
from jurygraph.inference.sign_flips import ROUNDING
from jurygraph.runs.reports.comparison.responses import ComparedResponse, Slot

_HINT = "compare two runs of the same tasks and responses"
_LARGEST = 1e300


class PairedRow(NamedTuple):
    """A response of one run: its number there, its task, its agent, and its reward, NaN where it failed."""

    number: int
    task: str
    agent: str | None
    reward: float


class Verdicts(NamedTuple):
    """Verdicts of one run, [n], each over all its samples.

    Sample k of one run and sample k of another are unrelated draws, so they are averaged before anything is paired.
    `keys` are sorted: place of the response * number of slots + slot. `scores` are means, and `votes` is the number of
    samples that are met less those that are not: the majority decides, and a tie is no decision.
    """

    keys: Ints
    scores: Floats
    votes: Ints
    samples: Ints


@dataclass
class Side:
    """The part of one run that a comparison needs: a row for each response, column entries for each scored sample.

    Both sides share `slots`, the number of each slot.
    """

    name: str
    slots: dict[Slot, int]
    responses: dict[str, PairedRow] = field(default_factory=dict)
    tasks: dict[str, tuple[str, str]] = field(default_factory=dict)  # digests of the plan and of the group
    owners: "array[int]" = field(default_factory=lambda: array("q"))
    slot_numbers: "array[int]" = field(default_factory=lambda: array("q"))
    scores: "array[float]" = field(default_factory=lambda: array("d"))
    met: "array[int]" = field(default_factory=lambda: array("b"))

    def add_all(self, responses: Iterable[ComparedResponse]) -> None:
        """Store the values of each response. The last one is freed too: the other run needs as much memory."""
        for response in responses:
            self._add(response)

    def _add(self, response: ComparedResponse) -> None:
        if response.id in self.responses:
            raise InputError(f"response {response.id!r} occurs twice in run {self.name}; compare whole runs")
        row = len(self.responses)
        self.responses[response.id] = PairedRow(row, response.task, response.agent, response.reward)
        self.tasks[response.task] = response.plan, response.group
        for sample in response.samples:
            self.owners.append(row)
            self.slot_numbers.append(self.slots.setdefault(sample.slot, len(self.slots)))
            self.scores.append(sample.score)
            self.met.append(sample.met)

    def verdicts(self, ids: Sequence[str]) -> Verdicts:
        """Return the verdicts on these responses."""
        places = np.full(len(self.responses), -1)
        places[[self.responses[name].number for name in ids]] = np.arange(len(ids))
        owners = places[np.array(self.owners)]
        kept = owners >= 0
        keys = (owners * len(self.slots) + np.array(self.slot_numbers))[kept]
        scores = np.array(self.scores)[kept]
        met = np.array(self.met, dtype=np.intp)[kept]
        order = np.lexsort((scores, keys))  # samples in another order give the same bits
        unique, verdict, samples = np.unique(keys[order], return_inverse=True, return_counts=True)
        totals = np.bincount(verdict, scores[order], len(unique))
        votes = np.bincount(verdict, 2 * met[order] - 1, len(unique)).astype(np.intp)
        return Verdicts(unique, totals / samples, votes, samples)


class PairedRewards(NamedTuple):
    """The responses that have a reward in both runs, by id: rewards, the number of each one's task, agents in A."""

    ids: Sequence[str]
    a: Floats
    b: Floats
    tasks: Ints
    agents: Sequence[str | None]

    @property
    def deltas(self) -> Floats:
        """The differences B - A."""
        return subtract(self.b, self.a)

    def pass_changes(self, passing: float) -> Ints:
        """Return 1 for each response that passes in B alone, -1 for one that passes in A alone, and 0 for others."""
        in_a, in_b = (values >= passing - ROUNDING for values in (self.a, self.b))
        return in_b.astype(np.intp) - in_a


def subtract(b: Floats, a: Floats) -> Floats:
    """Return B - A; a rounding error counts as no difference."""
    deltas = b - a
    return np.where(np.abs(deltas) < ROUNDING, 0.0, deltas)


def pair_ids(a: Side, b: Side) -> list[str]:
    """Return the ids of the responses in both runs, sorted.

    Raises InputError if there are none, or if one belongs to another task in the other run.
    """
    for side in (a, b):
        if not side.responses:
            raise InputError(f"run {side.name} contains no response; score it first")
    ids = sorted(a.responses.keys() & b.responses.keys())
    if not ids:
        example = f"A has {min(a.responses)!r}, B has {min(b.responses)!r}"
        raise InputError(f"the runs have no response in common ({example}); {_HINT}")
    for name in ids:
        task_a = a.responses[name].task
        task_b = b.responses[name].task
        if task_a != task_b:
            raise InputError(f"response {name!r} belongs to task {task_a!r} in A and to {task_b!r} in B; {_HINT}")
    return ids


def number_tasks(side: Side, ids: Sequence[str]) -> Ints:
    """Return the number of the task of each response, from 0 in the order of these ids."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(side.responses[name].task, len(numbers)) for name in ids], dtype=np.intp)


def pair_rewards(a: Side, b: Side, ids: Sequence[str], tasks: Ints) -> PairedRewards:
    """Return those of the responses that have a reward in both runs.

    Raises InputError if one is too large for sums.
    """
    rewards_a, rewards_b = (np.array([side.responses[name].reward for name in ids], np.float64) for side in (a, b))
    for side, rewards in ((a, rewards_a), (b, rewards_b)):
        for row in np.flatnonzero(np.abs(rewards) > _LARGEST).tolist():
            problem = f"is beyond {_LARGEST:g}, too large to compare; lower the weights of the reward"
            raise InputError(f"the reward of response {ids[row]!r} in run {side.name} {problem}")
    rows = np.flatnonzero(~np.isnan(rewards_a + rewards_b))
    kept = [ids[row] for row in rows.tolist()]
    return PairedRewards(
        kept, rewards_a[rows], rewards_b[rows], tasks[rows], [a.responses[name].agent for name in kept]
    )


def count_responses(a: Side, b: Side, ids: Sequence[str]) -> dict[str, int]:
    """Return how many responses are in both runs or in one, and how many of those in both have no reward."""
    failed_a, failed_b = (np.isnan([side.responses[name].reward for name in ids]) for side in (a, b))
    return {
        "paired": len(ids),
        "only_a": len(a.responses) - len(ids),
        "only_b": len(b.responses) - len(ids),
        "failed_a": int((failed_a & ~failed_b).sum()),
        "failed_b": int((failed_b & ~failed_a).sum()),
        "failed_both": int((failed_a & failed_b).sum()),
    }
