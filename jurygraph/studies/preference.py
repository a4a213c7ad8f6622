"""Accuracy of a judge on preference sets (RewardBench, JudgeBench), measured from a stored run.

Two kinds of judges are read: rewards, of which the higher one wins, and verdicts on pairs, whose orders are counted as
JudgeBench does. A judgement that failed is never an advantage. Categories and weights are those of the sets' own code:
allenai/reward-bench 05a9005, `rewardbench/constants.py` and `calculate_scores_per_section`; ScalerLab/JudgeBench
e2c52c2, `run_judge.py` and `utils/metrics.py`.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, compress
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.errors import InputError
from jurygraph.inference.clusters import cluster_numbers, share_of_clustered_trials, wilson
from jurygraph.runs.export_table import verdicts_about_response
from jurygraph.runs.reports.units import unit_name, units_label
from jurygraph.runs.run import Run
from jurygraph.schema import Question, Task, Trace
from jurygraph.studies.pairs import has_order_flip, majority_choice, scores_by_order
from jurygraph.studies.report import (
    FigureRows,
    Figures,
    IntervalCell,
    Plot,
    Report,
    ReportSection,
    ReportTable,
    group_by,
    list_omissions,
    omission_notes,
)

REWARDBENCH_NAME = "RewardBench"
JUDGEBENCH_NAME = "JudgeBench"
OTHER_SECTION = "other"
_SETS: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("preference_sets.toml").read_text("utf-8")
)
SECTIONS: Mapping[str, Mapping[str, int]] = _SETS["rewardbench"]
"""RewardBench's subsets by section, with their weights."""
JUDGEBENCH_CATEGORY_BY_SOURCE: Mapping[str, str] = _SETS["judgebench"]
"""JudgeBench's categories by the beginning of the source."""
_SECTION_BY_SUBSET: dict[str, str] = {}
for _section_name, _weight_by_subset in SECTIONS.items():
    _SECTION_BY_SUBSET |= dict.fromkeys(_weight_by_subset, _section_name)
_CATEGORIES_BY_BENCHMARK = {
    REWARDBENCH_NAME: list(SECTIONS),
    JUDGEBENCH_NAME: list(JUDGEBENCH_CATEGORY_BY_SOURCE.values()),
}
"""The categories of the published sets, in their order."""


class BenchmarkSubset(NamedTuple):
    """The place of a task in a published set; in any other, the category is the task's own subset or source."""

    benchmark: str
    category: str
    subset: str


def identify_benchmark_subset(task: Task) -> BenchmarkSubset:
    """Return the place of a task by `subset` or `source` of its metadata."""
    subset = str(task.metadata.get("subset") or "")
    source = str(task.metadata.get("source") or "")
    if subset in _SECTION_BY_SUBSET:
        return BenchmarkSubset(REWARDBENCH_NAME, _SECTION_BY_SUBSET[subset], subset)
    for source_prefix, category in JUDGEBENCH_CATEGORY_BY_SOURCE.items():
        if source.startswith(source_prefix):
            return BenchmarkSubset(JUDGEBENCH_NAME, category, source)
    name = subset or source or "(none)"
    return BenchmarkSubset(OTHER_SECTION, name, name)


PreferenceResult = Literal["right", "wrong", "tie", "failed"]
_PREFERENCE_RESULTS_WORST_FIRST: tuple[PreferenceResult, ...] = ("wrong", "failed", "tie", "right")
_RESULT_BY_SCORE: Mapping[float, PreferenceResult] = {1.0: "right", 0.5: "tie", 0.0: "wrong"}
"""The results of a choice from the side of the preferred response."""
DECIDED_BY_REWARD = "reward"
PREFERRED_LABEL_NAME = "preferred"
_ROUNDING_DECIMALS = 12  # equal rewards can differ in their last bits
_MAX_SUBSETS_LISTED = 40
_MAX_FAILED_LISTED = 10
_COUNT_FIELDS = ("tasks", "right", "wrong", "ties", "failed", "flips", "coverage")


class PreferenceComparison(NamedTuple):
    """The preferred response compared with others: `failed` if a judgement is missing that could change the result.

    `reason` is what is missing; `is_flipped` is True if two orders prefer different responses, and `is_strict` if both
    prefer the right one, None where a pair is not judged in both.
    """

    result: PreferenceResult
    reason: str = ""
    is_flipped: bool = False
    is_strict_win: bool | None = None


class PreferenceOutcome(NamedTuple):
    """A task's result; tasks of one `group` belong together."""

    task: str
    place: BenchmarkSubset
    duel: PreferenceComparison
    group: str | None = None

    @property
    def unit(self) -> str:
        return unit_name(self.task, self.group)


class RunPreferenceOutcomes(NamedTuple):
    """The outcomes of a run's tasks, in their order.

    `decided_by` is `reward`, or the evaluator whose verdicts on pairs decide. `left_out` counts tasks without one
    preferred response, by reason.
    """

    run: str
    decided_by: str
    outcomes: tuple[PreferenceOutcome, ...]
    left_out: Mapping[str, int]


def read_comparisons(
    run: Run, advance: ProgressCallback = ignore_progress
) -> RunPreferenceOutcomes:
    """Return the outcomes of a run's tasks; `advance` is called with 1 for each task.

    A task needs one response with the label `preferred` true, and others with false. By default the verdicts on pairs
    decide if one evaluator of pairs is all that the reward counts, and else the rewards.

    Raises `InputError` for no task with such labels, or a label that is not true or false, and `TraceMismatch` if a
    record of the run has been changed.
    """
    decided_by = _deciding_judge_name(run)
    left_out = Counter[str]()
    outcomes = []
    for group in run.group_records():
        traces = [trace for trace, _ in run.group(group)]
        task = run.task(group.key)
        chosen = [trace for trace in traces if _is_preferred(trace)]
        rejected_traces = [trace for trace in traces if _is_preferred(trace) is False]
        if task is None:
            left_out["tasks whose texts were erased, and their category with them"] += 1
        elif len(chosen) != 1 or not rejected_traces:
            left_out[
                f"tasks without one response labelled `{PREFERRED_LABEL_NAME}: true`, and others labelled false"
            ] += 1
        else:
            compare = _compare_rewards
            if decided_by != DECIDED_BY_REWARD:
                questions = run.survey_without_texts_of(group.key).questions
                question = next((item for item in questions if item.id == decided_by), None)
                compare = partial(_compare_verdicts, question)
            comparisons_with_chosen = [compare(chosen[0], other) for other in rejected_traces]
            # it has to win every one
            worst_comparison = min(
                comparisons_with_chosen,
                key=lambda comparison: _PREFERENCE_RESULTS_WORST_FIRST.index(comparison.result),
            )
            strict_wins = [comparison.is_strict_win for comparison in comparisons_with_chosen]
            comparison = worst_comparison._replace(
                is_flipped=any(comparison.is_flipped for comparison in comparisons_with_chosen),
                is_strict_win=None if None in strict_wins else all(strict_wins),
            )
            outcomes.append(
                PreferenceOutcome(
                    group.key, identify_benchmark_subset(task), comparison, task.group
                )
            )
        advance(1)
    if not outcomes:
        reasons = list_omissions(left_out)
        raise InputError(
            f"{run.folder}: none of its tasks is a preference ({reasons or 'it has none'}); label "
            f"one response of a task `{PREFERRED_LABEL_NAME}: true` and the others false, as "
            "`import judgebench` does"
        )
    return RunPreferenceOutcomes(
        str(run.folder), decided_by, tuple(outcomes), dict(sorted(left_out.items()))
    )


def _is_preferred(trace: Trace) -> bool | None:
    label = trace.labels.get(PREFERRED_LABEL_NAME)
    if label is not None and not isinstance(label, bool):
        problem = f"label {PREFERRED_LABEL_NAME!r} of response {trace.response_id!r} is {label!r}"
        raise InputError(f"{problem}; expected true or false")
    return label


def _deciding_judge_name(run: Run) -> str:
    """Return the evaluator of pairs if the reward counts no other, else `reward`."""
    pairs: set[str] = set()
    for name in run.source.ledger.keys("survey"):
        questions = run.source.survey_without_texts(name).questions
        pairs.update(question.id for question in questions if question.scope == "pair")
    counted: set[str] = set()
    for decision in run.decisions():
        for spec in decision.specs:
            if spec.weight:
                for column in spec.inputs.values():
                    counted.update(column.questions)
    return counted.pop() if len(counted) == 1 and counted <= pairs else DECIDED_BY_REWARD


def _compare_rewards(chosen: Trace, rejected: Trace) -> PreferenceComparison:
    """Compare two rewards; a degraded one counts with its whole range, so that its failures help neither side."""
    reward_ranges = []
    for name, reward in (("preferred", chosen.reward), ("other", rejected.reward)):
        if reward.value is None or reward.range is None:
            return PreferenceComparison("failed", f"the {name} response has no reward")
        bounds = reward.range if reward.status == "degraded" else (reward.value, reward.value)
        reward_ranges.append([round(bound, _ROUNDING_DECIMALS) for bound in bounds])
    (low, high), (other_low, other_high) = reward_ranges
    if low > other_high:
        return PreferenceComparison("right")
    if high < other_low:
        return PreferenceComparison("wrong")
    if low == high == other_low == other_high:
        return PreferenceComparison("tie")
    return PreferenceComparison(
        "failed", "a degraded reward could be higher or lower than the other"
    )


def _compare_verdicts(
    question: Question | None, chosen: Trace, rejected: Trace
) -> PreferenceComparison:
    """Compare by verdicts on the pair: each counts 1 for the response that it prefers, and the sum decides."""
    if question is None:
        return PreferenceComparison("failed", "the task has no question about pairs")
    is_ordered = question.pairs == "ordered"
    expected = question.samples * (2 if is_ordered else 1)
    pair = {chosen.response_id, rejected.response_id}
    verdicts = []
    for verdict in chain(verdicts_about_response(chosen), verdicts_about_response(rejected)):
        is_about_pair = verdict.question == question.id and set(verdict.responses) == pair
        if is_about_pair and verdict.score is not None:
            verdicts.append(verdict)
    is_strict_win = False if is_ordered else None
    if len(verdicts) < expected:
        reason = f"{expected - len(verdicts)} of {expected} verdicts on the pair are missing"
        return PreferenceComparison("failed", reason, is_strict_win=is_strict_win)
    orders = scores_by_order(chosen.response_id, verdicts)
    choices = tuple(map(majority_choice, orders))
    if len(choices) > 1:
        is_strict_win = set(choices) == {1.0}
    result = _RESULT_BY_SCORE[majority_choice(chain(*orders))]
    return PreferenceComparison(
        result, is_flipped=has_order_flip(choices), is_strict_win=is_strict_win
    )


WeightedOutcomes = list[tuple[float, PreferenceOutcome]]
"""Outcomes, each with its weight, which is above 0."""


def report(comparisons: RunPreferenceOutcomes) -> Report:
    """Return the accuracy by category. A tie is not right (RewardBench for rewards, JudgeBench), nor is a failed task.

    RewardBench: a section is the mean of its subsets by the published numbers of examples, of those subsets that the
    run has, and all is the mean of the four sections. JudgeBench and other sets: each task counts the same.

    The figures are `benchmarks` with their `categories`, each with its `subsets`, and `overall`; the tasks that
    `failed`, and `left_out`, by reason, those that are no preference. A row has `tasks` = `right` + `wrong` + `ties` +
    `failed`; `flips` of them had orders that prefer different responses. `coverage` is the share of the tasks that did
    not fail. `accuracy` has a Wilson interval of 95 %, with the effective number of tasks (Σ w)² / Σ w²; it is None if
    a section of RewardBench is missing from the mean of all. Each task counts once, so tasks count as independent;
    those of one `group` do not, and then the interval is over groups (`units`). `strict` is the share of tasks that are
    right in both orders, with its interval; None unless pairs are judged in both.
    """
    outcomes_by_benchmark = group_by(comparisons.outcomes, attrgetter("place.benchmark"))
    sorted_names = sorted(
        outcomes_by_benchmark, key=lambda name: (name not in _CATEGORIES_BY_BENCHMARK, name)
    )
    benchmarks = [
        _benchmark_accuracy_figures(name, outcomes_by_benchmark[name]) for name in sorted_names
    ]
    failed_comparisons = [
        {
            "task": outcome.task,
            "category": outcome.place.category,
            "reason": outcome.duel.reason,
        }
        for outcome in comparisons.outcomes
        if outcome.duel.result == "failed"
    ]
    units = units_label(outcome.unit for outcome in comparisons.outcomes)
    figures = {
        "run": comparisons.run,
        "decided_by": comparisons.decided_by,
        "left_out": comparisons.left_out,
        "units": units,
        "benchmarks": benchmarks,
        "failed": failed_comparisons,
    }
    judge = f"verdicts of {comparisons.decided_by} on pairs"
    if comparisons.decided_by == DECIDED_BY_REWARD:
        judge = "rewards"
    sections: list[ReportSection] = [
        f"{comparisons.run}: decided by {judge}; a tie is not right, a failed task is wrong; "
        f"intervals are over {units}",
        *_build_preference_tables(benchmarks),
    ]
    columns = {"failed task": "task", "category": "category", "what is missing": "reason"}
    sections.append(ReportTable.of(columns, failed_comparisons, left=3, most=_MAX_FAILED_LISTED))
    notes = list(omission_notes(comparisons.left_out))
    for benchmark in benchmarks:
        if benchmark["overall"]["accuracy"] is None:
            notes.append(
                f"{benchmark['benchmark']}: no accuracy of all: it is the mean of four categories, "
                "and one has no task"
            )
    return Report(figures, sections, notes, map(_plot_benchmark_accuracy, benchmarks))


def _benchmark_accuracy_figures(name: str, outcomes: Sequence[PreferenceOutcome]) -> Figures:
    outcomes_by_category = group_by(outcomes, attrgetter("place.category"))
    categories = []
    outcomes_of_all_categories = []
    for category in _CATEGORIES_BY_BENCHMARK.get(name, sorted(outcomes_by_category)):
        if category not in outcomes_by_category:
            continue
        outcomes_by_subset = group_by(outcomes_by_category[category], attrgetter("place.subset"))
        sizes = SECTIONS[category] if name == REWARDBENCH_NAME else {}
        weighted_outcomes = []
        for subset, members in outcomes_by_subset.items():
            weight = sizes[subset] / len(members) if sizes else 1.0
            weighted_outcomes += [(weight, member) for member in members]
        subsets = [
            _preference_figures(subset, [(1.0, member) for member in members])
            for subset, members in sorted(outcomes_by_subset.items())
        ]
        categories.append(_preference_figures(category, weighted_outcomes) | {"subsets": subsets})
        # RewardBench's sections have equal weights
        total = sum(weight for weight, _ in weighted_outcomes) if sizes else 1.0
        outcomes_of_all_categories += [
            (weight / total, outcome) for weight, outcome in weighted_outcomes
        ]
    has_all_sections = name != REWARDBENCH_NAME or outcomes_by_category.keys() == SECTIONS.keys()
    return {
        "benchmark": name,
        "categories": categories,
        "overall": _preference_figures("all", outcomes_of_all_categories, has_all_sections),
    }


def _preference_figures(
    name: str, weighted_outcomes: WeightedOutcomes, is_accuracy_known: bool = True
) -> Figures:
    comparisons = [outcome.duel for _, outcome in weighted_outcomes]
    counts = Counter(comparison.result for comparison in comparisons)
    accuracy = None
    strict = None
    if is_accuracy_known:
        hits = [comparison.result == "right" for comparison in comparisons]
        accuracy = _weighted_share(weighted_outcomes, hits)
        strict_wins = [comparison.is_strict_win for comparison in comparisons]
        if None not in strict_wins:
            strict = _weighted_share(weighted_outcomes, list(map(bool, strict_wins)))
    return {
        "name": name,
        "tasks": len(weighted_outcomes),
        "right": counts["right"],
        "wrong": counts["wrong"],
        "ties": counts["tie"],
        "failed": counts["failed"],
        "flips": sum(comparison.is_flipped for comparison in comparisons),
        "coverage": 1.0 - counts["failed"] / len(weighted_outcomes),
        "accuracy": accuracy,
        "strict": strict,
    }


def _weighted_share(weighted_outcomes: WeightedOutcomes, hits: Sequence[bool]) -> IntervalCell:
    """Return the share of the weights that belongs to hits."""
    weights = [weight for weight, _ in weighted_outcomes]
    total = sum(weights)
    share = min(1.0, sum(compress(weights, hits)) / total)
    size = total**2 / sum(weight**2 for weight in weights)
    names = [outcome.unit for _, outcome in weighted_outcomes]
    if len(set(names)) == len(names):
        return IntervalCell(share, *wilson(share * size, size))
    # Weights are made to add up to the effective number of tasks, so that each counts as so many trials.
    trials = np.array(weights) * size / total
    units = cluster_numbers(names)
    success_counts_by_unit = np.bincount(units, np.where(hits, trials, 0.0)).astype(np.float64)
    trial_counts_by_unit = np.bincount(units, trials).astype(np.float64)
    estimate = share_of_clustered_trials(success_counts_by_unit, trial_counts_by_unit)
    return IntervalCell(share, estimate.low, estimate.high)


def _build_preference_tables(benchmarks: FigureRows) -> Iterator[ReportTable]:
    categories = []
    subsets = []
    for benchmark in benchmarks:
        yield _build_accuracy_table(
            benchmark["benchmark"], [*benchmark["categories"], benchmark["overall"]]
        )
        for category in benchmark["categories"]:
            categories.append(category)
            subsets += category["subsets"]
    if len(subsets) > len(categories):
        yield _build_accuracy_table("subset", subsets, _MAX_SUBSETS_LISTED)


def _build_accuracy_table(
    title: str, rows: FigureRows, max_rows_listed: int | None = None
) -> ReportTable:
    columns = {title: "name"}
    for name in _COUNT_FIELDS:
        columns[name] = name
    columns["accuracy (95 %)"] = "accuracy"
    if any(row["strict"] is not None for row in rows):
        columns["right in both orders (95 %)"] = "strict"
    return ReportTable.of(columns, rows, most=max_rows_listed)


def _plot_benchmark_accuracy(benchmark: Figures) -> Plot:
    rows = (*benchmark["categories"], benchmark["overall"])
    cells = {row["name"]: row["accuracy"] for row in rows}
    return Plot.bars_of_estimates(f"Accuracy on {benchmark['benchmark']}", "accuracy", cells)
