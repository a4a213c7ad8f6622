"""Compare two runs: the differences of their rewards and verdicts, and how far they can be told from chance.

Responses to one task are not independent, nor are tasks of one `group`, so intervals and tests take whole tasks, or
groups of tasks, as units: intervals are of 95 %, by the jackknife of units (CR3) and Student's t, and tests flip the
signs of whole units. Every difference is B - A.
"""

import math
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from operator import itemgetter
from statistics import fmean
from typing import Any

import numpy as np

from jurygraph.aggregation.consensus.fitting import tau_b
from jurygraph.arrays import Floats, Ints
from jurygraph.display import format_number
from jurygraph.errors import ConfigError, InputError
from jurygraph.inference.clusters import (
    CONFIDENCE_LEVEL,
    ONE_SIDED_LEVEL,
    Estimate,
    bonferroni_interval,
    cluster_numbers,
    detectable_difference,
    is_mean_difference_significant,
    lower_bound,
    max_unseen_cluster_share,
    members_by_cluster,
    needed_cluster_count,
    no_worse_p_value,
    ratio_interval,
)
from jurygraph.inference.sign_flips import ROUNDING_TOLERANCE, holm, nonzero_sums, sign_flip_p
from jurygraph.messages import format_count, join_names, shorten
from jurygraph.runs.calls import read_lookups
from jurygraph.runs.export_table import verdicts_about_response
from jurygraph.runs.reports.gate import CiThreshold
from jurygraph.runs.reports.units import (
    SINGULAR_UNIT_LABELS,
    TASK_UNITS_LABEL,
    unit_name,
    units_label,
)
from jurygraph.runs.run import Run
from jurygraph.runs.store.header import format_value
from jurygraph.runs.workflows.deciding import PackedGroupVerdicts, VerdictTables
from jurygraph.runs.workflows.rescoring import DECISION_CONFIG_KEYS
from jurygraph.schema import Config
from jurygraph.schema.lookup import TOOL_SOURCE_PREFIX
from jurygraph.studies.alternative_annotator import SIGNIFICANCE_LEVEL
from jurygraph.studies.changed_inputs import ChangedInputs
from jurygraph.studies.compared_responses import (
    UNDECIDED_OUTCOME,
    ComparedResponse,
    ComparedVerdictKey,
    SampleMeanVerdict,
)
from jurygraph.studies.report import (
    Columns,
    Figures,
    IntervalCell,
    Report,
    ReportSections,
    ReportTable,
    format_cell,
    group_by,
)
from jurygraph.views.agents import agent_label

STATISTIC_DESCRIPTIONS = {
    "paired": "responses in both runs",
    "only_a": "responses in A only",
    "only_b": "responses in B only",
    "n": "responses with a reward in both runs",
    "tasks": "... tasks that they belong to",
    "changed_tasks": "... of which the mean reward changed",
    "failed_a": "rewards that failed in A alone",
    "failed_b": "rewards that failed in B alone",
    "failed_both": "rewards that failed in both",
    "mean_a": "mean reward in A",
    "mean_b": "mean reward in B",
    "mean_delta": "mean of B - A",
    "mean_delta_low": "its 95 % interval: from",
    "mean_delta_high": "its 95 % interval: to",
    "mean_delta_p": "sign-flip test of whole tasks that it is 0: p",
    "detectable_difference": "least true mean found with a power of 80 %, from 10 tasks on",
    "kendall_within": "mean of Kendall's tau-b within a task",
    "judged_both": "verdicts given in both runs, samples averaged",
    "flips": "... of which the decision flipped",
    "flip_rate": "... as a share",
}
"""The figures that a threshold (`--gate`) can name, with what each is; None where one cannot be computed.

`n` is the number of responses with a reward in both runs: means and tests are over these. A failed reward has no value;
it is counted as failed, never as 0.
"""

NO_WORSE_GATE_NAME = "no_worse_than"
CI_GATE_EXAMPLE = '"mean_delta>-0.01", "mean_delta_low>=-0.02, flips<=3" or "no_worse_than=0.02"'
_MAX_OUTCOMES_NAMED = 2
_MAX_ROWS_LISTED = 20
_MAX_CHANGED_SETTINGS_LISTED = 15
_MAX_COMMENT_CHARACTERS = 60_000
"""Characters; GitHub takes 65,536."""
_FEW_TASKS_THRESHOLD = 20
_MAX_RESPONSES_DECIDED = 20_000
"""Most responses of A that are decided again under B's settings: 120,000 verdicts take a second to read."""
_ROUNDING_DECIMALS = 12  # sums in another order differ in their last bits


VerdictPair = tuple[SampleMeanVerdict, SampleMeanVerdict]
"""The verdict of A and that of B on the same."""
_NO_VERDICT = SampleMeanVerdict(None, 0)
_NO_CHANGED_INPUTS = ChangedInputs()
_COUNTED_KINDS = ("to_met", "to_unmet", "only_a", "only_b", "votes_in_a", "votes_in_b")
_OUTCOMES_OF_FLIPS = ("unsupported", "gated", UNDECIDED_OUTCOME)
_UNUSUAL_OUTCOMES = ("failed", "abstained", "gated", "unsupported", UNDECIDED_OUTCOME)


def decide_under_other_settings(
    run: Run, other: Config, groups: Iterable[PackedGroupVerdicts] | None = None
) -> tuple[dict[str, float], str]:
    """Decide the verdicts of a run as another config decides, without a request, whatever that one asks.

    `groups` are those of the run; by default they are read. Returns the rewards by response, NaN where one fails, and
    why there are none; neither where both configs decide alike.
    """
    decides = {key: getattr(other, key) for key in DECISION_CONFIG_KEYS}
    config = run.config.model_copy(update=decides)
    if config == run.config:
        return {}, ""
    if run.ledger.count_records("trace") > _MAX_RESPONSES_DECIDED:
        return {}, f"A has more than {_MAX_RESPONSES_DECIDED} responses"
    tables = VerdictTables(run, groups)
    if tables.erased_tasks:
        return {}, "texts of tasks of A were erased"
    try:
        rewards = tables.decide(config).values.value
    except (ConfigError, InputError) as error:
        return {}, f"A's verdicts do not fit them: {error}"
    return dict(zip(tables.responses, rewards.tolist(), strict=True)), ""


def compare(
    a: Iterable[ComparedResponse],
    b: Iterable[ComparedResponse],
    margins: Sequence[float] = (),
    largest_loss: float = 1.0,
    thresholds: Iterable[CiThreshold] = (),
    changed_inputs: ChangedInputs = _NO_CHANGED_INPUTS,
    max_flips_listed: int = sys.maxsize,
    under_b: tuple[Mapping[str, float], str] = ({}, ""),
    names: tuple[str, str] = ("A", "B"),
    by: tuple[str, Mapping[str, str]] = ("", {}),
    runs: tuple[Run, Run] | None = None,
) -> Report:
    """Compare the responses of two runs, which are paired by id; their order does not matter.

    The figures are those of `STATISTIC_DESCRIPTIONS`, what their `units` are (`tasks`, or `groups of tasks`, which
    `tasks` counts then), the `gate` of `thresholds` and `margins`, rows for `agents` and `questions`, the first
    `max_flips_listed` verdicts that flipped, as many that ended otherwise, such as failed, and the largest `changes`.
    The intervals of a table's rows hold together with 95 %, and Holm's adjusted p-values are next to the raw ones.

    `margins` are losses that do not matter, each tested for whether B loses less, where the mean reward of one unit can
    lose `largest_loss` at most, or as much as one did. `changed_inputs` is what `find_changed_inputs` returns.
    `under_b` has what `decide_under_other_settings` returns of A with B's config: what these rewards differ from A's is
    the part of the settings in the mean difference. `names` are those of the runs in the conclusion. `by` has a label
    and its value by response: rows of `by` are apart for each. From `runs`, which are A and B, each of the first flips
    gets as `found_in_b` what only B's judge found by its tools.

    Raises `InputError` if nothing can be paired, or a response is twice in a run or belongs to two tasks.
    """
    pairs, only_a, only_b = _pair_responses(_responses_by_id(a, "A"), _responses_by_id(b, "B"))
    rewards = np.array(
        [(response_in_a.reward, response_in_b.reward) for response_in_a, response_in_b in pairs]
    ).T
    has_failed = np.isnan(rewards)
    has_failed_in_a, has_failed_in_b = has_failed
    has_both_values = ~has_failed.any(axis=0)
    tasks = cluster_numbers([response_in_a.task for response_in_a, _ in pairs])
    # The texts of a task may be erased in one of the runs, and its group with them.
    unit_names = [unit_name(in_a.task, in_a.group or in_b.group) for in_a, in_b in pairs]
    units = cluster_numbers(unit_names)
    paired_rewards = rewards[:, has_both_values]
    overall_difference_figures, estimate = _difference_figures(rewards, units)
    rewards_under_b, missing = under_b
    label, value_by_response = by
    values = [value_by_response.get(response_in_a.id) for response_in_a, _ in pairs]
    mean_change = None
    if rewards_under_b and has_both_values.any():
        decided = np.array([rewards_under_b[response.id] for response, _ in pairs])
        mean_change = round(fmean((decided - rewards[0])[has_both_values]), _ROUNDING_DECIMALS)
        if math.isnan(mean_change):
            mean_change, missing = None, "some rewards of A fail under them"
    unit = cluster_numbers(units[has_both_values])
    losses = np.bincount(unit, paired_rewards[0] - paired_rewards[1]) / np.bincount(unit)
    largest_possible_loss = float(losses.max(initial=largest_loss))
    questions, flipped_verdicts, outcome_changes = _compare_verdicts(pairs, units, max_flips_listed)
    if runs is not None:
        for flip in flipped_verdicts[:_MAX_ROWS_LISTED]:
            found_in_a, found_in_b = (_find_tool_texts(flip, run) for run in runs)
            new_texts = [text for key, text in found_in_b.items() if key not in found_in_a]
            flip["found_in_b"] = new_texts[-1] if new_texts else None
    outcome_counts = Counter(map(itemgetter("before", "after"), outcome_changes))
    counted_rows = [row for row in questions if row["is_counted"]]
    verdicts_in_both_count = sum(row["n"] for row in counted_rows)
    flips = sum(row["to_met"] + row["to_unmet"] for row in counted_rows)
    figures = {
        "names": names,
        "units": units_label(unit_names),
        "paired": len(pairs),
        "paired_tasks": len(set(tasks.tolist())),
        "only_a": only_a,
        "only_b": only_b,
        "failed_a": int((has_failed_in_a & ~has_failed_in_b).sum()),
        "failed_b": int((has_failed_in_b & ~has_failed_in_a).sum()),
        "failed_both": int(has_failed.all(axis=0).sum()),
        **overall_difference_figures,
        "mean_delta_by_settings": mean_change,
        "detectable_difference": estimate and detectable_difference(estimate),
        "kendall_within": _mean_tau_b_within_tasks(paired_rewards, tasks[has_both_values]),
        "judged_both": verdicts_in_both_count,
        "flips": flips if verdicts_in_both_count else None,
        "flip_rate": flips / verdicts_in_both_count if verdicts_in_both_count else None,
        "margins": [_test_margin(margin, estimate, largest_possible_loss) for margin in margins],
        "agents": _compare_agents(pairs, rewards, units),
        "label": label,
        "by": _compare_groups("value", values, rewards, units) if value_by_response else [],
        "questions": questions,
        "flipped_verdicts": flipped_verdicts,
        "outcomes": [{"before": a, "after": b, "n": n} for (a, b), n in outcome_counts.items()],
        "outcome_changes": outcome_changes[:max_flips_listed],
        "changes": _largest_reward_changes(pairs),
        "changed_settings": [
            {"setting": setting, "a": before, "b": after}
            for setting, before, after in changed_inputs.settings
        ],
        "tasks_with_changed_inputs": changed_inputs.tasks,
        "tasks_answered_anew": changed_inputs.answered_anew,
    }
    figures["gate"] = list(_gate_rows(thresholds, figures))
    notes = [*_failure_notes(rewards), *_unit_notes(estimate, figures["units"])]
    if missing:
        notes.append(f"what B's settings change by themselves is left out: {missing}")
    if max(len(figures["agents"]), len(questions)) > 1:
        notes.append(
            "intervals by agent and by question allow for the rows compared: those of a table hold together with 95 %"
        )
    if questions and not verdicts_in_both_count:
        notes.append(
            "the runs have no verdict in common to compare: their questions, or the names of their judges, are others; "
            "a run that asks both judges has a row for each two in `jurygraph study reliability`"
        )
    if any(UNDECIDED_OUTCOME in (row["before"], row["after"]) for row in figures["outcomes"]):
        notes.append(
            "undecided: the votes on a question have no majority, so the worst case counts"
        )
    sections = (headline_sections, _flip_sections, _detail_sections)
    return Report(
        figures,
        chain.from_iterable(part(figures) for part in sections),
        notes,
        conclusion=list(_conclude_comparison(figures)),
    )


ResponsesById = Mapping[str, ComparedResponse]
ComparedPairs = Sequence[tuple[ComparedResponse, ComparedResponse]]


def _responses_by_id(responses: Iterable[ComparedResponse], name: str) -> ResponsesById:
    response_by_id = {}
    for response in responses:
        if response.id in response_by_id:
            raise InputError(
                f"response {response.id!r} occurs twice in run {name}; compare whole runs"
            )
        response_by_id[response.id] = response
    if not response_by_id:
        raise InputError(f"run {name} contains no response; score it first")
    return response_by_id


def _pair_responses(a: ResponsesById, b: ResponsesById) -> tuple[ComparedPairs, int, int]:
    """Return the pairs in the order of their ids, and the numbers of responses in A only and in B only."""
    pairs = [(a[name], b[name]) for name in sorted(a.keys() & b.keys())]
    hint = "compare two runs of the same tasks and responses"
    if not pairs:
        raise InputError(
            f"the runs have no response in common (A has {min(a)!r}, B has {min(b)!r}); {hint}; of agents in one run, "
            "`jurygraph study ranking` says which is better"
        )
    for response_in_a, response_in_b in pairs:
        if response_in_a.task != response_in_b.task:
            raise InputError(
                f"response {response_in_a.id!r} belongs to task {response_in_a.task!r} in A and "
                f"to {response_in_b.task!r} in B; {hint}"
            )
    return pairs, len(a) - len(pairs), len(b) - len(pairs)


# Rewards


def _difference_figures(values: Floats, units: Ints) -> tuple[Figures, Estimate | None]:
    """Return the figures of paired values [2,n], with whole units as independent, and the mean of B - A.

    Pairs of which one is missing are left out and counted; a rounding error counts as no difference.
    """
    has_both_values = ~np.isnan(values).any(axis=0)
    a, b = values[:, has_both_values]
    deltas = np.where(np.abs(b - a) < ROUNDING_TOLERANCE, 0.0, b - a)
    unit = cluster_numbers(units[has_both_values])
    sums = np.bincount(unit, deltas)
    estimate = ratio_interval(sums, np.bincount(unit))
    mean, low, high = (None, None, None) if estimate is None else estimate[:3]
    figures = {
        "n": len(a),
        "left_out": len(units) - len(a),
        "tasks": len(sums),
        "changed_tasks": len(nonzero_sums(sums)) if len(sums) else None,
        "mean_a": fmean(a) if len(a) else None,
        "mean_b": fmean(b) if len(b) else None,
        # differences that cancel leave an error of rounding, which is neither a gain nor a loss
        "mean_delta": None if mean is None else round(mean, _ROUNDING_DECIMALS) + 0.0,
        "mean_delta_low": low,
        "mean_delta_high": high,
        "mean_delta_p": sign_flip_p(sums),
    }
    return figures, estimate


def _adjust_for_multiple_tests(rows: Sequence[tuple[Figures, Estimate | None]]) -> list[Figures]:
    """Return the rows of one table, whose p-values and intervals allow for the number of tests."""
    p_values = [figures["mean_delta_p"] for figures, _ in rows]
    tests = max(1, len(p_values) - p_values.count(None))
    adjusted_rows = []
    for (figures, estimate), p in zip(rows, holm(p_values), strict=True):
        low, high = (None, None) if estimate is None else bonferroni_interval(estimate, tests)
        adjusted_rows.append(
            {**figures, "mean_delta_low": low, "mean_delta_high": high, "holm_p": p}
        )
    return adjusted_rows


def _mean_tau_b_within_tasks(rewards: Floats, tasks: Ints) -> float | None:
    """Return the mean of tau-b over the tasks in which neither side is constant.

    Over all responses it would also reward a ranking of easy tasks above hard ones.
    """
    rounded_rewards = rewards.round(_ROUNDING_DECIMALS)
    taus = []
    for members in members_by_cluster(tasks):
        a, b = rounded_rewards[:, members]
        if len(a) > 1 and np.ptp(a) and np.ptp(b):
            taus.append(tau_b(a, b))
    return round(fmean(taus), _ROUNDING_DECIMALS) if taus else None


def _compare_agents(pairs: ComparedPairs, rewards: Floats, units: Ints) -> list[Figures]:
    """Return a row for each agent, those that changed first; `left_out` are the responses that failed in a run.

    Where another agent wrote the response in B, the row names both.
    """
    names = []
    for a, b in pairs:
        is_same = a.agent == b.agent
        names.append(
            a.agent if is_same else f"{agent_label(a.agent)} in A, {agent_label(b.agent)} in B"
        )
    rows = _compare_groups("agent", names, rewards, units)
    return sorted(rows, key=lambda row: not row["changed_tasks"])


def _compare_groups(
    kind: str, names: Sequence[str | None], rewards: Floats, units: Ints
) -> list[Figures]:
    """Return a row for each name of a pair's group, ordered by it; `kind` is what the row calls it."""
    indices_by_name = group_by(range(len(names)), names.__getitem__)
    differences = []
    for name in sorted(indices_by_name, key=lambda name: (name is None, name or "")):
        columns = np.array(indices_by_name[name])
        figures, estimate = _difference_figures(rewards[:, columns], units[columns])
        differences.append(({kind: name, **figures}, estimate))
    return _adjust_for_multiple_tests(differences)


def _largest_reward_changes(pairs: ComparedPairs) -> list[Figures]:
    """Return the largest changes of a reward, ties by id. Unchanged rewards are left out.

    For each outcome of a verdict, a row says in which of the runs one of those that differ has it.
    """
    changed_pairs = [
        (a, b) for a, b in pairs if abs(b.reward - a.reward) >= ROUNDING_TOLERANCE
    ]  # NaN is no change
    changed_pairs.sort(key=lambda pair: -abs(pair[1].reward - pair[0].reward))
    rows: list[Figures] = []
    for a, b in changed_pairs[:_MAX_ROWS_LISTED]:
        row = {
            "response_id": a.id,
            "a": a.reward,
            "b": b.reward,
            "delta": b.reward - a.reward,
        }
        changed_verdicts = _changed_verdicts(a, b)
        for outcome in _UNUSUAL_OUTCOMES:
            row[f"{outcome}_in"] = _runs_with(outcome, changed_verdicts)
        rows.append(row)
    return rows


# Verdicts


def _changed_verdicts(
    response_in_a: ComparedResponse, response_in_b: ComparedResponse
) -> list[VerdictPair]:
    return [
        (before, after)
        for _, before, after in _paired_verdicts(response_in_a, response_in_b)
        if after != before and _NO_VERDICT not in (before, after)
    ]


def _paired_verdicts(
    a: ComparedResponse, b: ComparedResponse
) -> Iterator[tuple[ComparedVerdictKey, SampleMeanVerdict, SampleMeanVerdict]]:
    """Yield each verdict of A and that of B, in the order of the verdicts: a set has another one in each process."""
    # as dicts, which are looked up in a fifth of the time
    verdicts_in_a, verdicts_in_b = dict(a.verdicts.items()), dict(b.verdicts.items())
    for key in {**verdicts_in_a, **verdicts_in_b}:
        yield key, _find_verdict(verdicts_in_a, key), _find_verdict(verdicts_in_b, key)


def _find_verdict(
    verdicts: Mapping[ComparedVerdictKey, SampleMeanVerdict], key: ComparedVerdictKey
) -> SampleMeanVerdict:
    """Return the verdict of the key, or the only judge's where the other run has a jury."""
    if key in verdicts or not key.is_jury:
        return verdicts.get(key, _NO_VERDICT)
    single_verdicts = [found for other, found in verdicts.items() if other.question == key.question]
    return single_verdicts[0] if len(single_verdicts) == 1 else _NO_VERDICT


def _runs_with(outcome: str, changed: Iterable[VerdictPair]) -> str | None:
    """Return which of A and B has one with this outcome among its verdicts: `A`, `B`, `A and B` or None."""
    names = [
        name
        for name, verdicts in zip("AB", zip(*changed, strict=True), strict=False)
        if any(verdict.outcome == outcome for verdict in verdicts)
    ]
    return " and ".join(names) or None


def _has_changed_outcome(
    key: ComparedVerdictKey, before: SampleMeanVerdict, after: SampleMeanVerdict
) -> bool:
    """Return whether a verdict ended otherwise; the votes of a jury say why, unless it is undecided."""
    outcomes = {before.outcome, after.outcome}
    has_both = _NO_VERDICT not in (before, after)
    return has_both and len(outcomes) > 1 and (not key.is_jury or UNDECIDED_OUTCOME in outcomes)


def _compare_verdicts(
    pairs: ComparedPairs, units: Ints, max_flips_listed: int
) -> tuple[list[Figures], list[Figures], list[Figures]]:
    """Return a row for each question that has a score in either run, the first verdicts that flipped, and all that were
    asked for in both runs and ended otherwise, such as judged and failed.
    """
    # By question: score in A, score in B and unit of each verdict; objects would take ten times the memory.
    values: dict[str, array[float]] = defaultdict(lambda: array("d"))
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    vote_names = set()  # of several judges the folded value counts, and none of its votes
    flips = []
    outcome_changes: list[Figures] = []
    for (a, b), unit in zip(pairs, units.tolist(), strict=True):
        paired_verdicts = list(_paired_verdicts(a, b))
        folded_questions = {key.question for key, _, _ in paired_verdicts if key.is_jury}
        for key, before, after in paired_verdicts:
            question = key.name
            is_vote_of_jury = key.question in folded_questions and not key.is_jury
            if is_vote_of_jury:
                vote_names.add(question)
            subject = {
                "question": question,
                "response_id": a.id,
                "responses": key.responses or (a.id,),
            }
            if _has_changed_outcome(key, before, after):
                outcome_change = {"before": before.outcome, "after": after.outcome}
                outcome_changes.append({**subject, **outcome_change, "a": a.reward, "b": b.reward})
            if before.score is None or after.score is None:
                if before.score != after.score:
                    counts[question]["only_b" if before.score is None else "only_a"] += 1
                continue
            values[question].extend((before.score, after.score, unit))
            count = counts[question]
            count["votes_in_a"] += _counts_vote_for_score(before, after)
            count["votes_in_b"] += _counts_vote_for_score(after, before)
            if before.votes * after.votes < 0:
                is_met = after.votes > 0
                count["to_met" if is_met else "to_unmet"] += 1
                if is_vote_of_jury or count["to_met"] + count["to_unmet"] > max_flips_listed:
                    continue
                flip = {**subject, "before": before.score, "after": after.score, "met": is_met}
                flip["is_graded"] = after.is_graded
                for outcome in _OUTCOMES_OF_FLIPS:
                    flip[f"{outcome}_in"] = _runs_with(outcome, [(before, after)])
                flips.append(flip)
    flips.sort(key=lambda flip: (flip["question"], flip["response_id"], flip["responses"]))
    outcome_changes.sort(key=itemgetter("before", "after", "question", "response_id"))
    rows = _question_rows(values, counts, vote_names)
    return rows, flips[:max_flips_listed], outcome_changes


def _find_tool_texts(flip: Figures, run: Run) -> dict[object, str]:
    """Return a line on each call of a tool, then on each quotation from a result, by what is equal in other runs."""
    trace = run.find_trace(flip["response_id"])
    question = flip["question"].removesuffix(", jury")
    verdicts = [
        verdict
        for verdict in verdicts_about_response(trace)
        if verdict.responses == flip["responses"]
        and question in (verdict.question, f"{verdict.question} by {verdict.judge}")
    ]
    texts: dict[object, str] = {
        (made.lookup.tool, made.arguments): made.summary
        for made in read_lookups(run, trace, verdicts).values()
    }
    for evidence in chain.from_iterable(verdict.evidence for verdict in verdicts):
        if evidence.source.startswith(TOOL_SOURCE_PREFIX):
            texts[evidence.quote] = f"{evidence.source}: “{shorten(evidence.quote, 90)}”"
    return texts


def _counts_vote_for_score(vote: SampleMeanVerdict, other: SampleMeanVerdict) -> bool:
    """Return whether `met` counts 1 in the one, and its probability in the other."""
    return vote.is_vote and not other.is_vote and other.score not in (0.0, 1.0)


def _question_rows(
    values: Mapping[str, Sequence[float]],
    counts: Mapping[str, Counter[str]],
    vote_names: Set[str],
) -> list[Figures]:
    """Return a row for each question; a vote that only one run asks for has none."""
    differences = []
    for name in sorted(values.keys() | (counts.keys() - vote_names)):
        *scores, verdict_units = np.array(values.get(name, ())).reshape(-1, 3).T
        figures, estimate = _difference_figures(np.array(scores), verdict_units.astype(np.intp))
        for kind in _COUNTED_KINDS:
            figures[kind] = counts[name][kind]
        figures["is_counted"] = name not in vote_names
        figures["left_out"] = figures["only_a"] + figures["only_b"]
        deltas = np.abs(np.subtract(*scores)).round(_ROUNDING_DECIMALS)
        figures["largest_delta"] = float(deltas.max()) if len(deltas) else None
        differences.append(({"question": name, **figures}, estimate))
    return _adjust_for_multiple_tests(differences)


# Conditions


def _test_margin(margin: float, estimate: Estimate | None, largest_loss: float) -> Figures:
    """Test that the true mean difference is above the negative margin, where a unit can lose `largest_loss`.

    `lowest` is the least difference that the units leave possible, and `needed_tasks` the number of units alike with
    which the condition would hold, None if none would. A single unit shows nothing.
    """
    margin_figures = {
        "name": NO_WORSE_GATE_NAME,
        "margin": margin,
        "holds": False,
        "largest_loss": largest_loss,
        "p": None,
        "lowest": None,
        "needed_tasks": None,
    }
    if estimate is not None and estimate.clusters > 1:
        p = no_worse_p_value(estimate, margin, largest_loss)
        margin_figures |= {
            "holds": p < ONE_SIDED_LEVEL,
            "p": p,
            "lowest": lower_bound(estimate, largest_loss),
            "needed_tasks": needed_cluster_count(estimate, margin, largest_loss),
        }
    return margin_figures


def missing_evidence_messages(figures: Figures) -> Iterator[str]:
    """Yield what is missing for the margins that do not hold, and for ends of an interval that there is not."""
    units = figures["units"]
    conditions = " ".join(row["condition"] for row in figures["gate"])
    if figures["mean_delta_low"] is None and ("_low" in conditions or "_high" in conditions):
        yield (
            f"conditions on an interval need {units} that differ from each other; of several alike, "
            "no_worse_than=MARGIN can hold"
        )
    for margin in figures["margins"]:
        if margin["holds"]:
            continue
        missing = f"threshold missed: {_format_no_worse_condition(margin)}, but {figures['tasks']} {units}"
        if margin["lowest"] is None:
            yield f"{missing} show nothing of others; compare runs of several {units}"
        else:
            needed_text = (
                f"about {margin['needed_tasks']}" if margin["needed_tasks"] else "no number of"
            )
            yield (
                f"{missing} leave a mean difference of {format_number(margin['lowest'])} possible "
                f"(p = {_format_p(margin['p'])}), as a rare {SINGULAR_UNIT_LABELS[units]} may lose "
                f"{margin['largest_loss']:g}; {needed_text} {units} like these would do with a chance of 80%"
            )


def _format_no_worse_condition(margin: Figures) -> str:
    return str(CiThreshold(margin["name"], "=", margin["margin"]))


def _gate_rows(thresholds: Iterable[CiThreshold], figures: Figures) -> Iterator[Figures]:
    """Yield each threshold, then each margin that was tested: whether it is met, and what was found."""
    for threshold in thresholds:
        value = figures[threshold.name]
        found = "none" if value is None else format_cell(value)
        yield {"condition": str(threshold), "met": threshold.is_met(value), "found": found}
    for margin in figures["margins"]:
        yield {
            "condition": _format_no_worse_condition(margin),
            "met": margin["holds"],
            "found": f"p = {_format_p(margin['p'])}",
        }


def render_pull_request_comment(report: Report, command: str) -> str:
    """Return a comparison as Markdown for a comment on a change: what it comes to, what was changed, gate and flips.

    What is missing for conditions that are not met comes below them. The rest is in a fold, which is left out where the
    comment would be too long for GitHub.
    """
    figures = report.figures
    sentence, *gate = report.conclusion
    sections = chain(headline_sections(figures), _flip_sections(figures))
    top = Report({}, sections, missing_evidence_messages(figures))
    comment = f"{' '.join([f'**{sentence}.**', *gate])}\n\n{top.to_markdown()}"
    rest = Report({}, _detail_sections(figures), report.notes).to_markdown(command)
    fold = f"<details><summary>All figures</summary>\n\n{rest}\n</details>\n"
    if len(comment) + len(fold) > _MAX_COMMENT_CHARACTERS:
        fold = "The other figures are too long for a comment; `--json` prints them.\n"
    return f"{comment}\n{fold}"


# Notes


def _failure_notes(rewards: Floats) -> Iterator[str]:
    """Yield whether the responses that failed in one run are others than the rest, by their rewards in the other."""
    has_failed = np.isnan(rewards)
    for name, index, other in (("A", 0, "B"), ("B", 1, "A")):
        rewards_of_other_run = rewards[1 - index]
        has_failed_here_alone = has_failed[index] & ~has_failed[1 - index]
        failed = rewards_of_other_run[has_failed_here_alone]
        kept = rewards_of_other_run[~has_failed.any(axis=0)]
        if is_mean_difference_significant(failed, kept):
            yield (
                f"means and tests mislead: {format_count(len(failed), 'response')} failed in {name} alone, with a mean "
                f"of {failed.mean():.4f} in {other}, where the others have one of {kept.mean():.4f}"
            )


def _unit_notes(estimate: Estimate | None, units: str) -> Iterator[str]:
    """Yield what the number of units and their differences mean for the interval of the mean."""
    missing = "the mean difference has no interval"
    if estimate is None:
        yield f"{missing}: no response has a reward in both runs"
    elif estimate.clusters == 1:
        unit = SINGULAR_UNIT_LABELS[units]
        yield f"{missing}: all rewards are of one {unit}, and responses to one {unit} are not independent draws"
    elif estimate.low is None:
        share = max_unseen_cluster_share(estimate.clusters, 1.0 - CONFIDENCE_LEVEL)
        no_variation_text = f"all {units} differ equally"
        if estimate.value == 0.0:
            no_variation_text = f"no {SINGULAR_UNIT_LABELS[units]} differs"
        yield f"{missing}: {no_variation_text}, but up to {share:.1%} of all {units} may differ otherwise (95 %)"
    elif estimate.clusters < _FEW_TASKS_THRESHOLD:
        yield (
            f"only {estimate.clusters} {units}: with fewer than {_FEW_TASKS_THRESHOLD}, intervals rely on means of "
            f"{units} that are nearly normal"
        )


# Tables


def _conclude_comparison(figures: Figures) -> Iterator[str]:
    """Yield what is read first: the result in a sentence, and whether the gate is met."""
    a, b = figures["names"]
    outcomes = [
        f"{format_count(row['n'], 'verdict')} {row['before']} in {a}, {row['after']} in {b}"
        for row in figures["outcomes"]
    ]
    if len(outcomes) > _MAX_OUTCOMES_NAMED:
        count = sum(row["n"] for row in figures["outcomes"])
        outcomes = [f"{count} verdicts ended otherwise, in {len(outcomes)} ways"]
    parts = [_describe_mean_change(figures), *outcomes]
    if len(figures["agents"]) > 1 and figures["changed_tasks"]:
        # by other weights alone the mean has another scale, and its change says little
        is_scale = figures["mean_delta_by_settings"] == figures["mean_delta"]
        parts.insert(0 if is_scale else len(parts), _describe_order(figures))
        changed_agents = [row for row in figures["agents"] if row["changed_tasks"]]
        if len(changed_agents) < len(figures["agents"]):
            deltas = [
                f"{agent_label(row['agent'])} ({_describe_delta(row['mean_delta'])})"
                for row in changed_agents
            ]
            parts.insert(0, f"of the agents only {join_names(deltas)} changed")
    yield "; ".join([*parts, *_describe_counting(figures)])
    gate = figures["gate"]
    missed = sum(not row["met"] for row in gate)
    if missed:
        yield f"The gate is missed: {missed} of {len(gate)} conditions."
    elif gate:
        yield "The gate is met."


def _describe_counting(figures: Figures) -> Iterator[str]:
    """Yield that a yes of judges counts otherwise in the runs, whatever they find."""
    a, b = figures["names"]
    for name, other, kind in ((a, b, "votes_in_a"), (b, a, "votes_in_b")):
        count = sum(row[kind] > 0 for row in figures["questions"])
        if count:
            yield (
                f"with another fold or number of judges, in {format_count(count, 'question')}: met counts 1 in {name}, "
                f"and its probability in {other}"
            )


def _describe_order(figures: Figures) -> str:
    """Return whether agents are in the same order of their means, and both orders where they are not."""
    orders = []
    leads = []
    for mean in ("mean_a", "mean_b"):
        names_by_mean: dict[float, list[str]] = defaultdict(list)
        for row in figures["agents"]:
            if row["n"]:
                name = agent_label(row["agent"])
                names_by_mean[round(row[mean], _ROUNDING_DECIMALS)].append(name)
        ranks = sorted(names_by_mean.items(), reverse=True)
        orders.append(" > ".join(" = ".join(names) for _, names in ranks))
        if len(ranks) > 1 and len(ranks[0][1]) == 1:  # of several that are level none leads
            leads.append(format_number(ranks[0][0] - ranks[1][0]))
    before, after = orders
    a, b = figures["names"]
    leads_text = ""
    if len(leads) == 2:
        leads_text = f"; the first leads by {leads[0]} in {a}, {leads[1]} in {b}"
    if after == before:
        return f"agents are in the same order{leads_text}"
    return f"agents are in another order: by mean {before} in {a}, {after} in {b}{leads_text}"


def headline_sections(figures: Figures) -> ReportSections:
    """Yield what was changed, the conditions of the gate, and what ended otherwise."""
    settings = []
    for change in figures["changed_settings"]:
        before, after = (
            "none" if value is None else format_value(value) for value in _name_tools(change)
        )
        settings += [[change["setting"], "A", before], ["", "B", after]]
    header = ["changed between the runs", "", "value"]
    yield ReportTable(header, settings, left=3, most=2 * _MAX_CHANGED_SETTINGS_LISTED)
    changed_task_count = figures["tasks_with_changed_inputs"]
    if changed_task_count:
        answered_anew = figures["tasks_answered_anew"]
        responses = (
            f"{answered_anew} of them with other responses; if the rows of a table were reordered, score both with "
            "--id-column"
        )
        yield (
            f"{format_count(changed_task_count, 'task')} with another content in B, which the config may give, such "
            f"as a rubric; {responses if answered_anew else 'the responses are the same'}"
        )
    gate_columns: Columns = {
        "gate": "condition",
        "": lambda row: "met" if row["met"] else "missed",
        "found": "found",
    }
    yield ReportTable.of(gate_columns, figures["gate"], left=2)
    columns = {
        "ended otherwise": "question",
        "response": "response_id",
        "A": "before",
        "B": "after",
        "reward in A": "a",
        "reward in B": "b",
    }
    yield ReportTable.of(columns, figures["outcome_changes"], left=4, most=_MAX_ROWS_LISTED)


def _name_tools(change: Figures) -> list[Any]:
    """Return what differs as it is shown: lists of other tools by their names, which settings would cut off."""
    values = [change["a"], change["b"]]
    if not change["setting"].endswith(".tools"):
        return values
    names = [tools and [tool["name"] or tool["use"] for tool in tools] for tools in values]
    return values if names[0] == names[1] else names


def _detail_sections(figures: Figures) -> ReportSections:
    units = figures["units"]
    differences: Columns = {
        "n": lambda row: (
            f"{row['n']}/{row['n'] + row['left_out']}" if row["left_out"] else row["n"]
        ),
        units: "tasks",
        "mean A": "mean_a",
        "mean B": "mean_b",
        "B - A": lambda row: IntervalCell(
            row["mean_delta"], row["mean_delta_low"], row["mean_delta_high"]
        ),
        "p": lambda row: _format_p(row["mean_delta_p"]),
        "Holm p": lambda row: _format_p(row["holm_p"]),
    }
    agent_columns: Columns = {"agent": lambda row: agent_label(row["agent"]), **differences}
    yield ReportTable.of(agent_columns, figures["agents"])
    value_columns: Columns = {
        figures["label"]: lambda row: row["value"] or "(no value)",
        **differences,
    }
    yield ReportTable.of(value_columns, figures["by"])
    counts = ("to_met", "to_unmet", "largest_delta", "left_out")
    questions = figures["questions"]
    changed_questions = [row for row in questions if any(row[name] for name in counts)]
    columns = {"question": "question", **differences, "to met": "to_met", "to unmet": "to_unmet"}
    yield ReportTable.of(columns, changed_questions)
    unchanged_question_count = sum(
        row["is_counted"] and row not in changed_questions for row in questions
    )
    if unchanged_question_count:
        noun = "other question" if changed_questions else "question"
        yield f"no verdict differs in {format_count(unchanged_question_count, noun)}"
    change_columns = {"largest changes": "response_id", "A": "a", "B": "b", "B - A": "delta"}
    for outcome in find_changed_outcomes(figures):
        change_columns[f"{outcome} in"] = f"{outcome}_in"
    changes = figures["changes"]
    # Another weight alone may change all by as much, so that none is the largest.
    is_alike = len({round(row["delta"], 4) for row in changes}) == 1
    are_all_changed = figures["changed_tasks"] == figures["tasks"]
    if len(changes) < 2 or not (is_alike and are_all_changed):
        yield ReportTable.of(change_columns, changes)
    statistics = []
    for name, text in STATISTIC_DESCRIPTIONS.items():
        value = _format_p(figures[name]) if name.endswith("_p") else figures[name]
        statistics.append([name, text.replace(TASK_UNITS_LABEL, units), value])
    yield ReportTable(["statistic", "", "value"], statistics, left=2)


def find_changed_outcomes(figures: Figures) -> list[str]:
    """Return the outcomes other than judged that a verdict has where a reward is among the largest changes."""
    changes = figures["changes"]
    return [name for name in _UNUSUAL_OUTCOMES if any(row[f"{name}_in"] for row in changes)]


def _flip_sections(figures: Figures) -> ReportSections:
    flips = []
    for flip in figures["flipped_verdicts"]:
        response = flip["response_id"]
        others = ", ".join(name for name in flip["responses"] if name != response)
        decision = "unmet -> met" if flip["met"] else "met -> unmet"
        if flip["is_graded"]:
            decision = f"{'up' if flip['met'] else 'down'} past half its scale"
        for outcome in _OUTCOMES_OF_FLIPS:
            if flip[f"{outcome}_in"]:
                decision += f", {outcome} in {flip[f'{outcome}_in']}"
        flips.append({**flip, "others": others or "-", "decision": decision})
    if figures["flips"]:
        verdicts = format_count(figures["judged_both"], "verdict")
        yield f"On {verdicts} in both runs they agree on {1.0 - figures['flip_rate']:.1%}."
    columns = {"flipped": "question", "response": "response_id"}
    if any(flip["others"] != "-" for flip in flips):
        columns["against"] = "others"
    left = len(columns)
    columns |= {"A": "before", "B": "after", "decision": "decision"}
    yield ReportTable.of(columns, flips, left=left, most=_MAX_ROWS_LISTED)
    found = {"found in B alone": "question", "response": "response_id", "": "found_in_b"}
    yield ReportTable.of(found, [flip for flip in flips if flip.get("found_in_b")], left=3)
    if not flips:
        yield "No verdict flipped."


def _describe_mean_change(figures: Figures) -> str:
    """Return the result in a sentence: how much better or worse B is, whether that is certain, of what, without what.

    `B is 0.0350 lower (95 % interval: 0.0580 lower to 0.0120 lower, certain); 7 of 20 tasks changed; n = 38 responses,
    left out: 2 failed in B`.
    """
    number = f"n = {format_count(figures['n'], 'response')}"
    a, b = figures["names"]
    causes = {
        "failed_a": f"failed in {a}",
        "failed_b": f"failed in {b}",
        "failed_both": "failed in both",
        "only_a": f"only in {a}",
        "only_b": f"only in {b}",
    }
    left_out = [f"{figures[name]} {cause}" for name, cause in causes.items() if figures[name]]
    if left_out:
        number += f", left out: {', '.join(left_out)}"
    delta = figures["mean_delta"]
    if delta is None:
        return f"no response has a reward in both {a} and {b}; {number}"
    text = f"{a} and {b} have the same mean"
    if figures["changed_tasks"]:
        text = f"{b} is {_describe_delta(delta)}" if delta else text
        text += f" ({_describe_certainty(figures)})"
    by_settings = figures["mean_delta_by_settings"]
    if by_settings is not None and figures["changed_tasks"]:
        rest = round(delta - by_settings, 4) + 0.0  # never minus zero
        text += (
            f", of which {by_settings:+.4f} by the settings ({a}'s verdicts under {b}'s settings), "
            f"{rest:+.4f} by what was asked and judged"
        )
    return f"{text}; {figures['changed_tasks']} of {figures['tasks']} {figures['units']} changed; {number}"


def _describe_certainty(figures: Figures) -> str:
    low, high = figures["mean_delta_low"], figures["mean_delta_high"]
    p = figures["mean_delta_p"]
    is_significant = p < SIGNIFICANCE_LEVEL
    test = f"p {_format_p(p)} in the sign-flip test"
    if low is None:
        return f"no interval, but {test}" if is_significant else "no interval, so not certain"
    certainty = "not certain"
    excludes_zero = not low <= 0.0 <= high
    if excludes_zero != is_significant:
        certainty += f": {test}"
    elif excludes_zero:
        certainty = "certain"
        outcomes = figures["outcomes"]
        failed = sum(row["n"] for row in outcomes if "failed" in (row["before"], row["after"]))
        if failed:
            verdicts = format_count(failed, "verdict")
            certainty += f" but for {verdicts} that failed in one run, filled in or left out"
        if figures["tasks_with_changed_inputs"]:
            answered_anew = figures["tasks_answered_anew"]
            certainty += f", with other {'responses' if answered_anew else 'questions or rubrics'}"
    return f"95 % interval: {_describe_delta(low)} to {_describe_delta(high)}, {certainty}"


def _describe_delta(delta: float) -> str:
    return f"{format_number(abs(delta))} {'lower' if delta < 0.0 else 'higher'}"


def _format_p(p: float | None) -> str:
    """Format a p-value; one too small for four decimals is printed as <0.0001, not 0."""
    return format_number(p) if p is None or p >= 0.0001 else "<0.0001"
