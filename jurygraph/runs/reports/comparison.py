"""Compare two runs: the differences of their rewards and verdicts, and their statistical significance."""

import math
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, groupby
from statistics import fmean
from typing import NamedTuple

import numpy as np

from jurygraph.arrays import Bools, Floats, Ints
from jurygraph.errors import InputError
from jurygraph.inference.bootstrap import mean_interval
from jurygraph.runs.reports.gate import ComparisonStatistics
from jurygraph.schema import Trace
from jurygraph.schema.frozen_model import Count, FrozenModel, Number

_MAX_CHANGES = 20
_MET_THRESHOLD = 0.5
# Equal sums can differ in their last bits: 0.3 - 0.2 is not 0.2 - 0.1.
_RANKED_DECIMALS = 12
_MAX_EXACT = 50
_HINT = "compare two runs of the same tasks and responses"


class AgentDelta(FrozenModel):
    """The rewards of an agent's `n` responses with a reward in both runs; the means are None if `n` is 0."""

    agent: str | None
    n: Count
    mean_a: Number | None
    mean_b: Number | None
    mean_delta: Number | None


@dataclass(frozen=True, slots=True)
class QuestionFlips:
    """Changes of the verdicts of one question, for the responses in both runs.

    `to_met` and `to_unmet` count the decisions that flipped, and `mcnemar_p` is McNemar's exact test of these counts;
    `largest_delta` is the maximum |B - A| of a score, in [0, 1]; `only_a` and `only_b` count verdicts of one run only.
    """

    question: str
    judged_both: int
    to_met: int
    to_unmet: int
    mcnemar_p: float | None
    largest_delta: float | None
    only_a: int
    only_b: int


@dataclass(frozen=True, slots=True, order=True)
class Flip:
    """A verdict whose decision flipped, with its scores in A and B; `met` is its decision in B.

    `responses` are the responses that the judge was shown, which distinguish verdicts against different opponents.
    """

    question: str
    response_id: str
    responses: tuple[str, ...]
    sample: int
    before: float
    after: float
    met: bool


@dataclass(frozen=True, slots=True)
class ConstructorPair:
    """The scores that two judges of one reviewer, such as `aggregate` and `personalized`, gave the same responses.

    `runs` are their runs, `n` is the number of pairs of verdicts, and `mean_distance` the mean of |second - first|.
    """

    reviewer: str
    dimension: str
    first: str
    second: str
    runs: tuple[str, str]
    n: int
    mean_first: float
    mean_second: float
    mean_distance: float


class RewardChange(FrozenModel):
    """The reward of a response in both runs."""

    response_id: str
    a: Number
    b: Number
    delta: Number


class Comparison(ComparisonStatistics):
    """Run B compared with run A: overall statistics, statistics by agent and by question, and the individual changes.

    `pass_threshold` is the reward from which a response passes. `flipped_verdicts` has all flips by question and
    response, `constructors` any two judges of one reviewer, `changes` the 20 largest changes of a reward, `notes` other
    differences and limits of the statistics.
    """

    pass_threshold: Number
    agents: tuple[AgentDelta, ...]
    questions: tuple[QuestionFlips, ...]
    constructors: tuple[ConstructorPair, ...]
    flipped_verdicts: tuple[Flip, ...]
    changes: tuple[RewardChange, ...]
    notes: tuple[str, ...]


def compare(
    a: Iterable[Trace], b: Iterable[Trace], *, passing: float = 0.5, resamples: int = 2_000, seed: int = 0
) -> Comparison:
    """Compare two runs, response by response; both are streamed, and their order does not matter.

    Responses are paired by id, verdicts by question, response, responses shown and sample. If a verdict has no `met`,
    it counts as met with a score of 0.5 or more.

    - The interval of the mean difference is a 95 % percentile bootstrap over tasks: a task is drawn with all its
      responses, since responses to one task are not independent. With one task only, responses are drawn.
    - The Wilcoxon signed-rank test is two-sided, exact for up to 50 responses and normal beyond. Zeros follow Pratt:
      ranked, then left out; if left out before ranking, as by Wilcoxon, a smaller change can be more significant.
    - McNemar's test is the exact binomial one, two-sided.
    - Rewards and differences are rounded to 12 decimals before ranking, so that rounding errors do not break ties.

    Args:
        a: the traces of the first run.
        b: the traces of the second run; every difference is B - A.
        passing: a response passes with a reward of at least this. Any finite number.
        resamples: bootstrap samples, at least 1.
        seed: seed of the bootstrap.

    Raises:
        InputError: nothing can be paired, a response occurs twice in a run or belongs to another task in the other run,
            or `passing` is not finite.
    """
    if not math.isfinite(passing):
        raise InputError(f"a response cannot pass with a reward of {passing}; name a finite number, such as 0.5")
    slots: dict[_Slot, int] = {}
    judges: set[_Judge] = set()
    sides = _Side("A", slots, judges), _Side("B", slots, judges)
    for side, traces in zip(sides, (a, b), strict=True):
        side.add_all(traces)
    ids = _pair_ids(*sides)
    rewards, verdicts = _Rewards(*sides, ids), _Verdicts(*sides, ids)
    passed_a, passed_b = rewards.a >= passing, rewards.b >= passing
    lost, gained = int((passed_a & ~passed_b).sum()), int((passed_b & ~passed_a).sum())
    return Comparison(
        **_counts(*sides, ids),
        **_means(rewards.a, rewards.b),
        median_delta=float(np.median(rewards.b - rewards.a)) if rewards.ids else None,
        **_interval(rewards, resamples, seed),
        **_rank_statistics(rewards.a, rewards.b),
        passed_a_only=lost,
        passed_b_only=gained,
        mcnemar_p=_mcnemar(lost, gained),
        judged_both=len(verdicts.keys),
        flips=int(verdicts.flipped.sum()),
        flip_rate=float(verdicts.flipped.mean()) if len(verdicts.keys) else None,
        pass_threshold=passing,
        agents=tuple(_by_agent(sides[0], ids, rewards)),
        questions=tuple(verdicts.by_question()),
        constructors=tuple(verdicts.constructor_pairs(judges)),
        flipped_verdicts=tuple(sorted(verdicts.flips())),
        changes=tuple(_largest_changes(rewards)),
        notes=tuple(_notes(*sides, ids, rewards)),
    )


_Slot = tuple[str, tuple[str, ...] | None, int]
"""Key of a verdict among those on a response: question, responses shown (None for the response alone), sample."""

_Judge = tuple[str, str, str, str]
"""Reviewer, dimension, evaluator (such as `personalized`) and question of a prediction."""


class _Response(NamedTuple):
    row: int
    task: str
    agent: str | None
    reward: float  # NaN where it failed


@dataclass
class _Side:
    """The part of one run that a comparison needs: a row for each response, column entries for each scored verdict."""

    name: str
    slots: dict[_Slot, int]
    judges: set[_Judge]
    responses: dict[str, _Response] = field(default_factory=dict)
    tasks: dict[str, tuple[str, str]] = field(default_factory=dict)
    owners: "array[int]" = field(default_factory=lambda: array("q"))
    slot_numbers: "array[int]" = field(default_factory=lambda: array("q"))
    scores: "array[float]" = field(default_factory=lambda: array("d"))
    met: "array[int]" = field(default_factory=lambda: array("b"))

    def add_all(self, traces: Iterable[Trace]) -> None:
        """Store the compared values of each trace. The last trace is freed too: the other run needs as much memory."""
        for trace in traces:
            self._add(trace)

    def _add(self, trace: Trace) -> None:
        if trace.response_id in self.responses:
            raise InputError(f"response {trace.response_id!r} occurs twice in run {self.name}; compare whole runs")
        task, agent = sys.intern(trace.task_id), trace.agent and sys.intern(trace.agent)
        reward = math.nan if trace.reward.value is None else trace.reward.value
        self.responses[trace.response_id] = _Response(len(self.responses), task, agent, reward)
        self.tasks[task] = trace.plan_digest, trace.group
        for verdict in trace.verdicts:
            # A verdict on an unordered pair is also in the trace of the other response.
            if verdict.score is not None and verdict.about == trace.response_id:
                shown = None if verdict.responses == (verdict.about,) else verdict.responses
                slot = self.slots.setdefault((verdict.question, shown, verdict.sample), len(self.slots))
                self.owners.append(len(self.responses) - 1)
                self.slot_numbers.append(slot)
                self.scores.append(verdict.score)
                self.met.append(verdict.score >= _MET_THRESHOLD if verdict.met is None else verdict.met)
                if verdict.reviewer is not None:
                    self.judges.add((verdict.reviewer, verdict.subject, verdict.evaluator, verdict.question))

    def judged_verdicts(self, ids: Sequence[str]) -> tuple[Ints, Floats, Bools]:
        """Return keys (place of the response, then slot), scores and decisions of the verdicts on these responses."""
        places = np.full(len(self.responses), -1)
        places[[self.responses[name].row for name in ids]] = np.arange(len(ids))
        owners = places[np.array(self.owners)]
        keys, first = np.unique(owners * len(self.slots) + np.array(self.slot_numbers), return_index=True)
        kept = owners[first] >= 0
        return keys[kept], np.array(self.scores)[first][kept], np.array(self.met, dtype=np.bool_)[first][kept]


def _pair_ids(a: _Side, b: _Side) -> list[str]:
    for side in (a, b):
        if not side.responses:
            raise InputError(f"run {side.name} contains no response; score it first")
    ids = sorted(a.responses.keys() & b.responses.keys())
    if not ids:
        example = f"A has {min(a.responses)!r}, B has {min(b.responses)!r}"
        raise InputError(f"the runs have no response in common ({example}); {_HINT}")
    for name in ids:
        task_a, task_b = a.responses[name].task, b.responses[name].task
        if task_a != task_b:
            raise InputError(f"response {name!r} belongs to task {task_a!r} in A and to {task_b!r} in B; {_HINT}")
    return ids


class _Rewards:
    """The responses that have a reward in both runs, by id."""

    def __init__(self, a: _Side, b: _Side, ids: Sequence[str]) -> None:
        self.ids = [name for name in ids if not math.isnan(a.responses[name].reward + b.responses[name].reward)]
        self.of_a = [a.responses[name] for name in self.ids]
        self.a, self.b = (np.array([side.responses[name].reward for name in self.ids], np.float64) for side in (a, b))


def _counts(a: _Side, b: _Side, ids: Sequence[str]) -> dict[str, int]:
    failed_a, failed_b = (np.isnan([side.responses[name].reward for name in ids]) for side in (a, b))
    return {
        "paired": len(ids),
        "only_a": len(a.responses) - len(ids),
        "only_b": len(b.responses) - len(ids),
        "n": int((~failed_a & ~failed_b).sum()),
        "failed_a": int((failed_a & ~failed_b).sum()),
        "failed_b": int((failed_b & ~failed_a).sum()),
        "failed_both": int((failed_a & failed_b).sum()),
    }


def _means(a: Floats, b: Floats) -> dict[str, float | None]:
    values = {"mean_a": a, "mean_b": b, "mean_delta": b - a}
    return {name: fmean(numbers) if len(numbers) else None for name, numbers in values.items()}


def _interval(rewards: _Rewards, resamples: int, seed: int) -> dict[str, float | None]:
    """Return the cluster bootstrap interval of the mean difference; it is unknown for fewer than two responses."""
    places = {task: place for place, task in enumerate(dict.fromkeys(response.task for response in rewards.of_a))}
    clusters = [places[response.task] for response in rewards.of_a] if len(places) > 1 else range(len(rewards.ids))
    sums = np.bincount(clusters, rewards.b - rewards.a).astype(np.float64)
    low, high = mean_interval(sums, np.bincount(clusters), resamples, seed)
    return {"mean_delta_low": low, "mean_delta_high": high}


def _rank_statistics(a: Floats, b: Floats) -> dict[str, float | None]:
    from scipy import stats

    deltas, a, b = (v.clip(-1e200, 1e200).round(_RANKED_DECIMALS) for v in (b - a, a, b))  # no overflow
    wilcoxon = _wilcoxon(deltas) if deltas.any() else None
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return {"wilcoxon_p": wilcoxon, "spearman": None, "kendall": None}
    rho, tau = stats.spearmanr(a, b).statistic, stats.kendalltau(a, b, variant="b").statistic
    # scipy returns 0.9999999999999999 for equal orders, for which `spearman==1` would be false.
    return {"wilcoxon_p": wilcoxon, "spearman": round(float(rho), 12), "kendall": round(float(tau), 12)}


def _wilcoxon(deltas: Floats) -> float:
    """Return the p-value of the signed-rank test.

    Up to 50 differences are enumerated here: with ties or zeros, scipy is exact for up to 13 only.
    """
    from scipy import stats

    if len(deltas) > _MAX_EXACT:
        return float(stats.wilcoxon(deltas, zero_method="pratt", method="asymptotic").pvalue)
    doubled = (2 * stats.rankdata(np.abs(deltas))).astype(np.int64)  # integers, since tied ranks may be halves
    counts = np.ones(1)  # number of sign combinations for each sum of positive ranks
    for rank in doubled[deltas != 0]:
        counts = np.pad(counts, (0, rank)) + np.pad(counts, (rank, 0))
    observed = doubled[deltas > 0].sum()
    return min(1.0, 2 * float(min(counts[: observed + 1].sum(), counts[observed:].sum()) / counts.sum()))


@cache
def _mcnemar(lost: int, gained: int) -> float | None:
    from scipy import stats

    return float(stats.binomtest(lost, lost + gained).pvalue) if lost + gained else None


def _by_agent(side: _Side, ids: Sequence[str], rewards: _Rewards) -> Iterator[AgentDelta]:
    rows: dict[str | None, list[int]] = {side.responses[name].agent: [] for name in ids}
    for row, response in enumerate(rewards.of_a):
        rows[response.agent].append(row)
    for agent in sorted(rows, key=lambda agent: (agent is None, agent or "")):
        own_rows = rows[agent]
        yield AgentDelta(agent=agent, n=len(own_rows), **_means(rewards.a[own_rows], rewards.b[own_rows]))


class _Verdicts:
    """The verdicts on the responses in both runs, by key; a key is `place of the response * len(slots) + slot`."""

    def __init__(self, a: _Side, b: _Side, ids: Sequence[str]) -> None:
        (keys_a, scores_a, met_a), (keys_b, scores_b, met_b) = a.judged_verdicts(ids), b.judged_verdicts(ids)
        self.slots, self._ids = list(a.slots), ids
        self._scores = {"A": (keys_a, scores_a), "B": (keys_b, scores_b)}
        self.keys, in_a, in_b = np.intersect1d(keys_a, keys_b, assume_unique=True, return_indices=True)
        self.before, self.after = scores_a[in_a], scores_b[in_b]
        self.to_met, self.to_unmet = met_b[in_b] & ~met_a[in_a], met_a[in_a] & ~met_b[in_b]
        self.flipped = self.to_met | self.to_unmet
        self.only_a, self.only_b = np.setdiff1d(keys_a, self.keys, True), np.setdiff1d(keys_b, self.keys, True)

    def by_question(self) -> Iterator[QuestionFlips]:
        """Yield a row for each question that has a verdict in either run, ordered by name."""
        names = sorted({question for question, _, _ in self.slots})
        places = {name: place for place, name in enumerate(names)}
        of_slot = np.array([places[question] for question, _, _ in self.slots], dtype=np.int64)
        judged, only_a, only_b = (of_slot[keys % len(of_slot)] for keys in (self.keys, self.only_a, self.only_b))
        largest = np.zeros(len(names))
        np.maximum.at(largest, judged, np.abs(self.after - self.before))
        columns = [judged, judged[self.to_met], judged[self.to_unmet], only_a, only_b]
        counts = [np.bincount(column, minlength=len(names)).tolist() for column in columns]
        for name, delta, both, to_met, to_unmet, *only in zip(names, largest.tolist(), *counts, strict=True):
            if both or any(only):
                p, delta = _mcnemar(to_unmet, to_met), delta if both else None
                yield QuestionFlips(name, both, to_met, to_unmet, p, delta, *only)

    def constructor_pairs(self, judges: set[_Judge]) -> Iterator[ConstructorPair]:
        """Yield every two judges of a reviewer and dimension: within each run that has both, else across the runs."""
        is_same = all(map(np.array_equal, self._scores["A"], self._scores["B"]))
        scores = {run: self._scores_by_question(run) for run in "AB" if judges}
        for _, group in groupby(sorted(judges), key=lambda judge: judge[:2]):
            for pair in combinations(group, 2):
                within = [row for run in ("A" if is_same else "AB") for row in _compare_judges(pair, scores, run, run)]
                across = (row for order in (pair, pair[::-1]) for row in _compare_judges(order, scores, "A", "B"))
                yield from within or across

    def _scores_by_question(self, run: str) -> dict[str, tuple[Ints, Floats]]:
        """Return keys and scores of a run by question; the keys of one sample are the same for all questions."""
        keys, scores = self._scores[run]
        names = {name: place for place, name in enumerate(sorted({slot[0] for slot in self.slots}))}
        first = {slot[1:]: place for place, slot in reversed([*enumerate(self.slots)])}
        question, sample = np.array([(names[slot[0]], first[slot[1:]]) for slot in self.slots]).T
        slots = keys % len(self.slots)
        order = np.argsort(question[slots], kind="stable")
        ends = np.searchsorted(question[slots][order], np.arange(1, len(names)))
        columns = (np.split(column[order], ends) for column in (keys - slots + sample[slots], scores))
        return dict(zip(names, zip(*columns, strict=True), strict=True))

    def flips(self) -> Iterator[Flip]:
        """Yield every verdict whose decision flipped."""
        columns = (column[self.flipped].tolist() for column in (self.keys, self.before, self.after, self.to_met))
        for key, before, after, met in zip(*columns, strict=True):
            place, slot = divmod(key, len(self.slots))
            question, shown, sample = self.slots[slot]
            response = self._ids[place]
            yield Flip(question, response, (response,) if shown is None else shown, sample, before, after, met)


def _compare_judges(
    judges: Sequence[_Judge], scores: Mapping[str, Mapping[str, tuple[Ints, Floats]]], *runs: str
) -> Iterator[ConstructorPair]:
    """Yield the pair of two judges, each in its run, if they judged one sample or more in common."""
    (keys, a), (other_keys, b) = (scores[run][question] for (*_, question), run in zip(judges, runs, strict=True))
    _, rows, other_rows = np.intersect1d(keys, other_keys, assume_unique=True, return_indices=True)
    a, b = a[rows], b[other_rows]
    if len(rows):
        names, means = (*judges[0][:3], judges[1][2]), (fmean(a), fmean(b), fmean(np.abs(b - a)))
        yield ConstructorPair(*names, (runs[0], runs[1]), len(rows), *means)


def _largest_changes(rewards: _Rewards) -> Iterator[RewardChange]:
    """Yield the largest changes of a reward, ties by id. Unchanged rewards are left out."""
    deltas = rewards.b - rewards.a
    for i in np.argsort(-np.abs(deltas), kind="stable")[:_MAX_CHANGES]:  # the ids are sorted
        if deltas[i]:
            a, b = float(rewards.a[i]), float(rewards.b[i])
            yield RewardChange(response_id=rewards.ids[i], a=a, b=b, delta=float(deltas[i]))


def _notes(a: _Side, b: _Side, ids: Sequence[str], rewards: _Rewards) -> Iterator[str]:
    shared = a.tasks.keys() & b.tasks.keys()
    only_a, only_b = len(a.tasks) - len(shared), len(b.tasks) - len(shared)
    if only_a or only_b:
        yield f"the runs are of different tasks: {len(shared)} in both, {only_a} in A only, {only_b} in B only"
    for part, label in enumerate(("plans", "groups of responses, by their ids or contents,")):
        differing = sum(a.tasks[task][part] != b.tasks[task][part] for task in shared)
        if differing:
            yield f"the {label} of {differing} of the {len(shared)} tasks in both runs differ"
    renamed = sum(a.responses[name].agent != b.responses[name].agent for name in ids)
    if renamed:
        yield f"the agent of {renamed} of the {len(ids)} responses in both runs is another one in B; A's is shown"
    if len(rewards.ids) < 2:
        yield "fewer than 2 responses have a reward in both runs, so the mean difference has no interval"
    elif len({response.task for response in rewards.of_a}) == 1:
        yield "all rewards are of one task, so the interval draws responses, as if they were independent"
