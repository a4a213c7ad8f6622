"""How far the rewards and scores of a run would repeat: their variance by task, response and sample of the judge."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from jurygraph.display import format_interval, format_number
from jurygraph.errors import InputError
from jurygraph.inference.clusters import Estimate, effective_size, ratio_interval, t_quantile
from jurygraph.inference.equivalence import detectable_difference
from jurygraph.inference.variance import VarianceSplit, reliability, split_variance
from jurygraph.runs.run import Run
from jurygraph.runs.tables import own_verdicts
from jurygraph.schema import FrozenModel, RecordedVerdict, Trace
from jurygraph.schema.frozen_model import Count, Number, PositiveInt, Unit
from jurygraph.studies.report import IntervalCell, Report, ReportTable, omission_notes

MEAN_OVER = (1, 2, 4, 8)
"""Numbers of values whose mean's reliability is reported."""

LevelName = Literal["task", "response", "sample"]
LEVELS: tuple[LevelName, ...] = ("task", "response", "sample")
_NOT_SPLIT = "one value for each task: what tasks and responses contribute cannot be told apart"
_ROUNDING = 1e-9
_FEW_TASKS = 20
_MAX_QUESTIONS = 30
_ABOUT = 1.1
"""Ratio of two numbers of responses up to which they cost about the same."""


class Level(FrozenModel):
    """The variance between units of one level: tasks, responses of a task, or samples of a response.

    `raw` is the unbiased estimate, and `variance` is 0 where that is below 0. `share` is of all variance, None if
    nothing varies.
    """

    name: LevelName
    units: PositiveInt
    variance: Number
    raw: Number
    share: Unit | None


class Correlation(FrozenModel):
    """The intraclass correlation of two values of one unit, with its 95 % interval over tasks, if it has one.

    `of_means` has the reliability of the mean of 1, 2, 4 and 8 values of a unit, by their number (Spearman-Brown): the
    correlation of two such means.
    """

    value: Unit
    low: Unit | None
    high: Unit | None
    of_means: dict[int, Unit]


class Split(FrozenModel):
    """The variance of rewards or of one question's scores.

    `within_task` is the correlation of two values of different responses to a task, None with one response for each;
    `within_response` that of two samples of a response, None without samples. `levels` is empty where `why` says so.
    """

    name: str
    tasks: PositiveInt
    responses: PositiveInt
    values: PositiveInt
    levels: tuple[Level, ...]
    within_task: Correlation | None
    within_response: Correlation | None
    why: str | None


class Halving(FrozenModel):
    """Numbers that would halve the interval of the mean: of tasks, with as many responses each as now, or of responses
    to each of these tasks. None if no number does, or if that is unknown."""

    tasks: PositiveInt | None
    responses: PositiveInt | None


class MeanReward(FrozenModel):
    """The mean reward with its 95 % interval over tasks, and how much data that is.

    `effective` is the number of independent responses that would be as precise. `detectable` is the smallest true
    difference that two runs of this size on different tasks would find, at 5 % and with power 0.8.
    """

    value: Number
    low: Number | None
    high: Number | None
    effective: Number | None
    detectable: Number | None
    halving: Halving


class ReliabilityReport(Report):
    """A run's rewards and, by question, its scores; `left_out` counts responses and verdicts by reason."""

    run: str
    mean: MeanReward
    rewards: Split
    questions: tuple[Split, ...]
    left_out: dict[str, Count]

    def _sections(self) -> Iterator[str | ReportTable]:
        rewards = self.rewards
        yield f"{self.run}: rewards of {rewards.responses} responses to {rewards.tasks} tasks"
        rows = [[one.name, one.units, one.variance, one.share] for one in rewards.levels]
        yield ReportTable(("variance between", "units", "variance", "share"), rows)
        if rewards.why is not None:
            yield f"the variance is not split: {rewards.why}"
        if rewards.within_task is not None:
            within = rewards.within_task
            yield f"two responses to a task correlate: {format_interval(within.value, within.low, within.high)}"
            means = ", ".join(f"{one:.4f} of {count}" for count, one in within.of_means.items())
            yield f"reliability of a task's mean over responses: {means}"
        yield from self._mean_lines()
        yield self._question_table()

    def _mean_lines(self) -> Iterator[str]:
        mean = self.mean
        yield f"mean reward: {format_interval(mean.value, mean.low, mean.high)}, 95 % interval over tasks"
        if mean.effective is not None:
            yield f"effective sample size: {mean.effective:.0f} of {self.rewards.responses} responses"
        if mean.detectable is not None:
            detectable = format_number(mean.detectable)
            yield f"detectable difference of two such runs on different tasks: {detectable} (level 0.05, power 0.8)"
        if mean.halving.tasks is not None:
            yield from self._halving_lines(mean.halving.tasks)

    def _halving_lines(self, tasks: int) -> Iterator[str]:
        """Return what it takes, and which way needs fewer responses: never the same tasks, but they can need as few."""
        rewards = self.rewards
        responses = self.mean.halving.responses
        size = rewards.responses / rewards.tasks
        by_tasks = f"to halve the interval: {tasks} tasks with {size:.3g} response{'s' * (size != 1)} each"
        if not rewards.levels:
            yield by_tasks
        elif responses is None:
            yield by_tasks
            share = f"{100.0 * (rewards.levels[0].share or 0.0):.0f} % of the variance is theirs"
            yield f"more tasks pay more: {share}, and no number of responses to these {rewards.tasks} halves it"
        else:
            yield f"{by_tasks}, or {responses} responses to each of these {rewards.tasks}"
            by_responses = rewards.tasks * responses
            if by_responses <= _ABOUT * tasks * size:
                yield "more responses to the same tasks pay about as much as more tasks"
            else:
                yield f"more tasks pay more: {tasks * size:.0f} responses in all, against {by_responses}"

    def _question_table(self) -> ReportTable:
        header = ["share by question", "values", "task (95 %)", "response"]
        if any(one.within_response for one in self.questions):
            header += ["sample", "one sample (95 %)", *(f"mean of {count}" for count in MEAN_OVER[1:])]
        rows = [_question_row(one)[: len(header)] for one in self.questions]
        return ReportTable(header, rows, most=_MAX_QUESTIONS)

    def _notes(self) -> Iterator[str]:
        yield from omission_notes(self.left_out)
        if self.rewards.tasks < _FEW_TASKS:
            yield f"{self.rewards.tasks} tasks: with fewer than {_FEW_TASKS}, shares and intervals are rough"
        if not any(one.within_response for one in self.questions):
            yield "no question has several samples (`samples`): how far a judge would repeat a score is unknown"


def _question_row(split: Split) -> Sequence[object]:
    shares = {one.name: one.share for one in split.levels}
    samples = split.within_response
    of_means = [None if samples is None else samples.of_means[count] for count in MEAN_OVER[1:]]
    cells = [_interval_cell(split.within_task), shares.get("response"), shares.get("sample"), _interval_cell(samples)]
    return [split.name, split.values, *cells, *of_means]


def _interval_cell(found: Correlation | None) -> IntervalCell | None:
    return None if found is None else IntervalCell(found.value, found.low, found.high)


@dataclass(slots=True)
class Scores:
    """Values with the ids of their tasks and responses, row by row."""

    name: str
    values: list[float] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    responses: list[str] = field(default_factory=list)

    def add(self, value: float, trace: Trace) -> None:
        """Add a value of a trace's response."""
        self.values.append(value)
        self.tasks.append(trace.task_id)
        self.responses.append(trace.response_id)


@dataclass(frozen=True, slots=True)
class RunScores:
    """The rewards of a run, the scores of its questions, and the number of those left out, by reason."""

    run: str
    rewards: Scores
    questions: tuple[Scores, ...]
    left_out: Mapping[str, int]


def read_scores(run: Run, advance: Callable[[int], None] = lambda tasks: None) -> RunScores:
    """Return the rewards and scores of a run; `advance` is called with 1 for each task.

    A re-scored run gives its own rewards. Left out and counted are responses whose reward failed, and verdicts without
    a score or set by a gate. Comparisons of two responses and judgements of variants are no samples of a response.

    Raises:
        InputError: rewards of fewer than two tasks.
        TraceMismatch: a record of the run has been changed.
    """
    rewards = Scores("reward")
    questions = {name: Scores(name) for name in run.questions()}
    left_out: Counter[str] = Counter()
    for group in run.group_records():
        for trace, _ in run.group(group):
            if trace.reward.value is None:
                left_out["responses whose reward failed"] += 1
            else:
                rewards.add(trace.reward.value, trace)
            for verdict in _judgements(trace):
                if verdict.question not in questions:
                    continue
                if verdict.score is None or verdict.gated_by is not None:
                    left_out["verdicts without a score, or with that of a gate"] += 1
                elif verdict.is_worst_case:
                    left_out["unsupported verdicts, which count as the worst case"] += 1
                else:
                    questions[verdict.question].add(verdict.score, trace)
        advance(1)
    if (tasks := len(set(rewards.tasks))) < 2:
        found = f"{len(rewards.values)} rewards, of {tasks} task{'s' * (tasks != 1)}"
        hint = "score at least 2 tasks: every figure here is over tasks"
        raise InputError(f"{run.folder}: has {found}; {hint}")
    scored = tuple(one for one in questions.values() if one.values)
    return RunScores(str(run.folder), rewards, scored, dict(sorted(left_out.items())))


def _judgements(trace: Trace) -> Iterator[RecordedVerdict]:
    """Return the verdicts on a trace's response itself."""
    return (one for one in own_verdicts(trace) if not one.responses or trace.response_id in one.responses)


def report(scores: RunScores) -> ReliabilityReport:
    """Return the variance of a run's rewards and scores by level, and what its size can tell."""
    rewards = split_scores(scores.rewards)
    return ReliabilityReport(
        run=scores.run,
        mean=_mean_reward(scores.rewards, rewards),
        rewards=rewards,
        questions=tuple(map(split_scores, scores.questions)),
        left_out=dict(scores.left_out),
    )


def split_scores(scores: Scores) -> Split:
    """Return the variance of scores by level.

    Samples are a level if a response has several values. With one response for each task, tasks are none: what varies
    between responses is then between tasks, too.
    """
    units = (len(set(scores.tasks)), len(set(scores.responses)), len(scores.values))
    has_tasks = units[1] > units[0]
    has_samples = units[2] > units[1]
    levels = [*([scores.tasks] if has_tasks else []), *([scores.responses] if has_samples else [])]
    found = split_variance(scores.values, *levels) if levels and units[0] > 1 else None
    why = None if found is not None else "one task" if units[0] == 1 else _NOT_SPLIT
    correlations = iter(() if found is None else found.correlations)
    return Split(
        name=scores.name,
        tasks=units[0],
        responses=units[1],
        values=units[2],
        levels=() if found is None else tuple(_levels(found, LEVELS[not has_tasks :])),
        within_task=_correlation(next(correlations, None)) if has_tasks else None,
        within_response=_correlation(next(correlations, None)) if has_samples else None,
        why=why,
    )


def _levels(found: VarianceSplit, names: Sequence[LevelName]) -> Iterator[Level]:
    shares = found.shares or [None] * len(found.raw)
    for name, *figures in zip(names, found.units, found.components, found.raw, shares, strict=False):
        units, variance, raw, share = figures
        yield Level(name=name, units=units, variance=variance, raw=raw, share=share)


def _correlation(found: Estimate | None) -> Correlation | None:
    if found is None:
        return None
    of_means = {count: reliability(found.value, count) for count in MEAN_OVER}
    return Correlation(value=found.value, low=found.low, high=found.high, of_means=of_means)


def _mean_reward(rewards: Scores, split: Split) -> MeanReward:
    values = np.array(rewards.values)
    tasks = np.unique(rewards.tasks, return_inverse=True)[1]
    estimate = ratio_interval(np.bincount(tasks, values), np.bincount(tasks))
    assert estimate is not None
    # The error of a difference of two runs, and the degrees of freedom of both.
    error = None if estimate.error is None else math.sqrt(2.0) * estimate.error
    difference = estimate._replace(error=error, clusters=2 * estimate.clusters - 1)
    return MeanReward(
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        effective=effective_size(values, tasks),
        detectable=detectable_difference(difference),
        halving=_halving(estimate, split),
    )


def _halving(estimate: Estimate, split: Split) -> Halving:
    """Return what halves the interval, whose half-width is t_(G-1) · √((σ²_task + σ²_response / m) / G)."""
    if not estimate.error:
        return Halving(tasks=None, responses=None)
    count = estimate.clusters
    goal = t_quantile(estimate.clusters - 1) / 2.0
    tasks = max(
        count + 1, math.floor(count * (t_quantile(math.inf) / goal) ** 2)
    )  # the least, with the normal quantile
    while t_quantile(tasks - 1) * math.sqrt(count / tasks) > goal:
        tasks += 1
    responses = None
    if split.levels:
        (between, within), size = (level.variance for level in split.levels), split.responses / split.tasks
        left = (between + within / size) / 4.0 - between
        responses = math.ceil(within / left - _ROUNDING) if left > 0.0 else None
    return Halving(tasks=tasks, responses=responses)
