"""The Data Analyzer, with its report, on steps of a trainer or of a stored run, also of one still being written."""

from collections import Counter, defaultdict
from collections.abc import (
    Callable,
    Collection,
    Container,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import closing
from itertools import accumulate, chain, compress, groupby, islice, pairwise
from math import isnan
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from pydantic import JsonValue

from jurygraph.agents.data_analyzer import (
    ACCURACY_SERIES_NAME,
    CALIBRATED_SERIES_NAMES,
    CALIBRATION_STEPS,
    COMPONENT_SERIES_PREFIX,
    CUSUM_REFERENCES,
    FIRST_TESTED_STEP,
    HACK_SERIES_NAMES,
    MAX_STEADY_REWARD_RATIO,
    MIN_CLEAR_CHANGE_SD,
    MIN_FOLLOWING_REWARD_RATIO,
    MIN_RELATIVE_SD,
    MIN_SCORES_BEFORE_TESTS,
    Alert,
    Analyzer,
    StepName,
    TrainingStep,
)
from jurygraph.arrays import Floats
from jurygraph.decision.recipe import component_names, component_weights
from jurygraph.errors import InputError
from jurygraph.inference.clusters import difference_interval
from jurygraph.messages import format_count, join_names
from jurygraph.runs.export_table import json_value_to_text
from jurygraph.runs.run import (
    EVALUATION_PHASE,
    Run,
    ScoredResponse,
    count_sessions,
    is_evaluation,
    read_session,
)
from jurygraph.runs.store import folder as run_folder
from jurygraph.runs.store.ledger import LedgerRecord
from jurygraph.schema import Trace
from jurygraph.studies.report import (
    FigureRows,
    Plot,
    PlotSeries,
    PlotShading,
    Report,
    ReportTable,
    describe_series,
)

ScoredGroup = list[ScoredResponse]
RecordedGroups = Generator[tuple[LedgerRecord, ScoredGroup], None, None]
"""Groups with their records; a generator, so that a reader who stops early closes the run."""
_WaitFunction = Callable[[], None] | None
"""Returns when a run is to be read again; None to read it once."""


class StepGroups(NamedTuple):
    """The groups of a training step, and the value of the label that names it; None where steps are counted."""

    groups: list[ScoredGroup]
    name: StepName | None = None


_TRAINING_STEP_LABEL = "step"
"""The label by which trainers, and the server, name the step of a response."""
_DEFAULT_TASKS_PER_STEP = 32
_SERIES_SUMMARY_NAMES = ("mean", "sd", "min", "max", "last", "change")
_MAX_CHANGES_IN_TITLE = 3
"""Changes of a series in the title of its panel; all are in the report."""
_FEW_STEPS = CALIBRATION_STEPS + MIN_SCORES_BEFORE_TESTS
"""Steps up to which a trend may be no alert yet: most are what the tests compare with."""
_SHORT_MEAN_STEPS = 3
_PERMUTATIONS = 1000
_SUSPICION_LEVEL = 0.05
_MIN_PAIRS_FOR_AUTOCORRELATION = 50
_MAX_HARMLESS_AUTOCORRELATION = 0.1
"""The autocorrelation above which a series is named, by the lower bound of 3 standard errors, from 50 pairs of steps
on."""


def report(analyzer: Analyzer) -> Report:
    """Return the report on the steps so far: all alerts in their order, and every series over the whole stream.

    `arl` is the average run length without change for which the limits were computed, and `limits` are those of the
    CUSUMs by their reference value; without a step there are none. A series has its count, mean, sd, extremes, last
    value and its change from the first half of the steps to the second, with an interval over steps. `outages` are
    sentences about those that last until the last step; notes are about the others.
    """
    columns = np.transpose(analyzer.values)
    rows = [
        _summarize_series(series.name, column)
        for series, column in zip(analyzer.series, columns, strict=True)
    ]
    limits = {}
    if rows:
        limits = dict(zip(map(str, CUSUM_REFERENCES), analyzer.tests.limits.tolist(), strict=True))
    final_outages, past_outages = _describe_outages(analyzer)
    figures = {
        "steps": analyzer.step_count,
        "arl": analyzer.arl,
        "limits": limits,
        "alerts": analyzer.alerts,
        "outages": final_outages,
        "series": rows,
    }
    adverse_count = sum(alert.adverse for alert in analyzer.alerts)
    counts = f"{analyzer.step_count} steps; {len(analyzer.alerts)} alerts, {adverse_count} adverse"
    expected = f"one false alarm is expected in {analyzer.arl:g} steps"
    # as the plots, without what stayed at 0, such as failures
    moving_rows = [list(row.values()) for row in rows if row["min"] or row["max"]]
    names = ("series", "steps", *_SERIES_SUMMARY_NAMES[:-1], "later half - earlier")
    table = ReportTable(names, moving_rows)
    conclusion = _conclude(analyzer, rows, adverse_count)
    sections: list[str | ReportTable] = [table, f"{counts}; {expected}", conclusion]
    return Report(figures, sections, [*past_outages, *_warnings(analyzer)], _plots(analyzer))


def _conclude(analyzer: Analyzer, rows: FigureRows, adverse_count: int) -> str:
    """Return the answer to whether the reward is being hacked, and why; first that it is open, where it is."""
    changes = _describe_changes(analyzer, rows)
    hack_alerts = [alert for alert in analyzer.alerts if alert.kind == "hack"]
    if hack_alerts:
        evidence = ", ".join(hack_alerts[0].evidence)
        return f"the reward looks hacked, since about step {hack_alerts[0].since}: {evidence}"
    if analyzer.step_count < FIRST_TESTED_STEP:
        return f"cannot tell yet: nothing was tested: that begins at step {FIRST_TESTED_STEP}"
    needed_series = ("reward", ACCURACY_SERIES_NAME)
    value_count = min(row["steps"] for row in rows if row["series"] in needed_series)
    doubt = ""
    if value_count <= _FEW_STEPS:
        if suspicion := _describe_suspicion(analyzer, _FEW_STEPS):
            return (
                f"suspicious: since its best steps accuracy fell while others held or rose ({suspicion}), which "
                f"happens by chance in less than {_SUSPICION_LEVEL:.0%} of runs; a firm word needs {_FEW_STEPS + 1} "
                "steps; read responses of the last ones"
            )
        doubt = f"cannot tell yet: in {value_count} steps with values even a large change may not be detected: "
    else:
        # what was said after few steps is not withdrawn without a word
        for step_count in range(_FEW_STEPS, FIRST_TESTED_STEP - 1, -1):
            if suspicion := _describe_suspicion(analyzer, step_count):
                changes += f"; suspicious after {step_count} steps: {suspicion}"
                break
    if adverse_count:
        count = format_count(adverse_count, "adverse change")
        reason = _describe_unmet_condition(analyzer)
        finding = reason if doubt else f"not a hack, because {reason}"
        return f"{doubt}{count}; {finding} ({changes})"
    return f"{doubt}no sign of a hack that began after the first steps ({changes})"


def _describe_unmet_condition(analyzer: Analyzer) -> str:
    """Return which condition of a hack is not met."""
    last_alerts = {alert.series: alert for alert in analyzer.alerts}
    fall = last_alerts.get(ACCURACY_SERIES_NAME)
    if fall is None or fall.direction == "up":
        return "no fall of an accuracy was detected while the reward held"
    moves = analyzer.measure_series_changes(fall.since_number)
    accuracy_move = moves[ACCURACY_SERIES_NAME]
    has_reward_held = moves["reward"] > MAX_STEADY_REWARD_RATIO * accuracy_move
    if accuracy_move > -MIN_CLEAR_CHANGE_SD or has_reward_held:
        return f"accuracy, down from step {fall.since} on, is back, or that is over 50 steps ago"
    share = moves["reward"] / accuracy_move
    return (
        f"the reward fell too, by {share:.0%} of accuracy's fall since step {fall.since}, each in its own sd, where a "
        f"hack's holds (below {MAX_STEADY_REWARD_RATIO:.0%}) or rises"
    )


def _describe_suspicion(analyzer: Analyzer, step_count: int) -> str | None:
    """Return how accuracy fell and length rose from their best of few steps to the last, while others held or rose.

    Too few steps for the tests are compared by permutation: without a change every order of independent steps is as
    likely, so that each of the two p-values is at most 5 % in 5 % of all runs, and both are in fewer. As in a hack,
    each change is in its own sd, the reward may not follow accuracy, and no penalty counts.
    """
    names = [series.name for series in analyzer.series]
    needed_names = (ACCURACY_SERIES_NAME, "length", "reward")
    if not set(needed_names) <= set(names):
        return None
    needed = [names.index(name) for name in needed_names]
    accuracy, length, reward = needed
    values = np.array(analyzer.values)
    values = values[~np.isnan(values[:, needed]).any(axis=1)][:step_count]
    if len(values) < FIRST_TESTED_STEP:
        return None
    peak, fall_p = _test_fall_from_peak(values[:, accuracy])
    _, length_p = _test_fall_from_peak(-values[:, length])
    before = values[peak : peak + _SHORT_MEAN_STEPS].mean(axis=0)
    after = values[-_SHORT_MEAN_STEPS:].mean(axis=0)
    moves = (after - before) / values.std(axis=0).clip(MIN_RELATIVE_SD)
    steady_move = MAX_STEADY_REWARD_RATIO * moves[accuracy]
    movers = [reward] if moves[reward] > steady_move else []
    for index, series in enumerate(analyzer.series):
        is_credit = series.name.startswith(COMPONENT_SERIES_PREFIX) and series.adverse == "down"
        if is_credit and moves[index] > -steady_move:
            movers.append(index)
    is_followed = moves[reward] <= MIN_FOLLOWING_REWARD_RATIO * moves[accuracy]
    if max(fall_p, length_p) > _SUSPICION_LEVEL or is_followed or not movers:
        return None
    changes = [
        f"{names[index]} {before[index]:.3g} to {after[index]:.3g}"
        for index in dict.fromkeys((accuracy, reward, *movers, length))
    ]
    return ", ".join(changes)


def _test_fall_from_peak(series: Floats) -> tuple[int, float]:
    """Return where the steps with the highest mean begin, and the p-value of the fall from it to the last ones."""
    copies = np.tile(series, (_PERMUTATIONS, 1))
    copies[1:] = np.random.default_rng(0).permuted(copies[1:], axis=1)
    means = sliding_window_view(copies, _SHORT_MEAN_STEPS, axis=1).mean(axis=2)
    earlier_means = means[:, :-_SHORT_MEAN_STEPS]
    falls = earlier_means.max(axis=1) - means[:, -1]
    is_as_large = falls > falls[0] - 1e-9  # sums in another order differ
    return int(earlier_means[0].argmax()), float(is_as_large.mean())


def _describe_changes(analyzer: Analyzer, rows: FigureRows) -> str:
    """Return which series had an alert, and which of those that a hack moves had none, though they were tested.

    These need not be flat: that is for the table to say.
    """
    changes = {alert.series: f"{alert.series} {alert.direction}" for alert in analyzer.alerts}
    tested_names = [row["series"] for row in rows if row["steps"] >= FIRST_TESTED_STEP]
    other_names = [
        name for name in tested_names if name in HACK_SERIES_NAMES and name not in changes
    ]
    change_text = ", ".join(changes.values()) or "no change"
    return f"{change_text}; no alert: {', '.join(other_names) or 'none'}"


def _summarize_series(name: str, column: Floats) -> dict[str, Any]:
    values = column[~np.isnan(column)]
    row = {"series": name, "steps": len(values)} | dict.fromkeys(_SERIES_SUMMARY_NAMES)
    if len(values):
        sd = values.std(ddof=1) if len(values) > 1 else 0.0
        figures = (values.mean(), sd, values.min(), values.max(), values[-1])
        row |= zip(_SERIES_SUMMARY_NAMES, map(float, figures), strict=False)
    if len(values) > 1:
        is_late = np.arange(len(values)) >= len(values) // 2
        counts = np.array([is_late, ~is_late], dtype=np.float64)
        row["change"] = difference_interval(counts * values, counts)._asdict()
    return row


def _warnings(analyzer: Analyzer) -> Iterator[str]:
    """Yield a sentence for series not tested yet, and for each autocorrelated one: `arl` does not hold.

    The estimate is of the normal scores: a change of level weighs no more than the steps until it is found. Their
    variance counts as 1 at least, as it is in theory: that of a series that is nearly constant is less, and there the
    least deviations would count. The standard error is by the products themselves: a few large ones show little.
    """
    if not analyzer.series:
        return
    names = [series.name for series in analyzer.series]
    calibrated_series_names = [name for name in names if name in CALIBRATED_SERIES_NAMES]
    if analyzer.step_count <= _FEW_STEPS:
        baseline_text = f"the first {CALIBRATION_STEPS} steps are what they compare with"
        yield f"{' and '.join(calibrated_series_names)}: tested from step {_FEW_STEPS + 1} on; {baseline_text}"
    scores = np.nan_to_num(np.array(analyzer.normal_scores))
    products = scores[1:] * scores[:-1]
    pair_counts = np.count_nonzero(products, axis=0)
    square_sums = np.square(scores).sum(axis=0).clip(pair_counts + 1)
    correlations = products.sum(axis=0) / square_sums
    standard_errors = np.linalg.norm(products, axis=0) / square_sums
    is_harmful = correlations - 3.0 * standard_errors > _MAX_HARMLESS_AUTOCORRELATION
    for index in np.flatnonzero(is_harmful & (pair_counts >= _MIN_PAIRS_FOR_AUTOCORRELATION)):
        yield (
            f"{names[index]} depends on the step before (its normal scores have autocorrelation "
            f"{correlations[index]:.2f}), so false alarms are more frequent than one in {analyzer.arl:g} steps; "
            "shuffle the prompts, or make steps of more tasks"
        )


def _describe_outages(analyzer: Analyzer) -> tuple[list[str], list[str]]:
    """Return sentences about steps at which most rewards failed or lack a verdict: to the last step, and before it.

    The tests find a change alone: an outage from the first steps on is none, and one that lasts is what to act on.
    """
    final_outages = []
    past_outages = []
    problems = {"failed": "failed", "degraded": "lack a verdict"}
    for series, shares in zip(analyzer.series, np.transpose(analyzer.values), strict=True):
        outages = list(compress(analyzer.step_names, shares > 0.5))
        if not outages or series.name not in problems:
            continue
        steps_text = _join_step_names(analyzer.step_names, outages)
        problem = f"more than half of the rewards {problems[series.name]} at step {steps_text}"
        if shares[-1] > 0.5:
            final_outages.append(
                f"{problem}, the last one; `jurygraph explain RUN --status {series.name}` says why"
            )
        else:
            past_outages.append(f"{problem}; what moves there may be the judge's")
    return final_outages, past_outages


def _plots(analyzer: Analyzer) -> list[Plot]:
    """Return a panel for each series, shaded from where a change began to where it was found."""
    plots = []
    names = analyzer.step_names
    positions: Sequence[float] = range(1, len(names) + 1)
    if all(not isinstance(name, str) for name in names) and names == sorted(set(names), key=float):
        positions = [float(name) for name in names]
    columns = np.array(analyzer.values).T.tolist()
    for series, column in zip(analyzer.series, columns, strict=True):
        values = [None if isnan(value) else value for value in column]
        line = PlotSeries(series.name, values, positions)
        alerts = [alert for alert in analyzer.alerts if alert.series == series.name]
        shaded_ranges = []
        for alert in alerts:
            label = "hack" if alert.kind == "hack" else ""
            start = positions[alert.since_number - 1]
            end = positions[alert.step_number - 1]
            shaded_ranges.append(PlotShading(start, end, label, alert.adverse))
        is_tested = len(values) - values.count(None) >= FIRST_TESTED_STEP
        finding = "no change was found" if is_tested else "has too few steps to be tested"
        title = describe_series(f"{series.name}: {finding}; it", "step", line)
        changes = [_describe_alert(alert) for alert in alerts if alert.kind == "change"]
        if changes:
            title = f"{series.name} {'; '.join(changes[:_MAX_CHANGES_IN_TITLE])}"
        plots.append(Plot(title, "line", [line], "step", series.name, shaded_ranges=shaded_ranges))
    return plots


def _describe_alert(alert: Alert) -> str:
    verb_text = "rises" if alert.direction == "up" else "falls"
    return f"{verb_text} from about step {alert.since} on, from {alert.before:.3g} to {alert.after:.3g}"


def refuse_runs_without_order(folder: Path) -> None:
    """Raise `InputError` for a folder of several runs, such as those of ranks, whose groups are to be counted."""
    if len(run_folder.list_run_folders(folder)) > 1:
        raise InputError(
            f"{folder}: has several runs, whose groups have no common order in time; give their label, "
            "such as --step-label step, or merge shards with `jurygraph merge`"
        )


def iter_scored_groups(
    folder: Path, wait: _WaitFunction = None, notes: list[str] | None = None
) -> Generator[ScoredGroup, None, None]:
    """Yield the groups of a run in the order of its tasks; with `wait`, also those added until the run is closed.

    Those of an open-ended run come in the order in which they were scored. With `notes`, groups of evaluations are left
    out, and a sentence about them is added at the end.
    The run is reopened for every pass and closed before `wait`, which returns when to read it again, so that its
    writer is not blocked. Raises `InputError` for several runs, such as those of ranks, whose groups have no order.
    """
    if wait is None:
        refuse_runs_without_order(folder)
    with closing(_iter_groups_as_written(folder, wait)) as groups:
        for _, group in groups if notes is None else _leave_out_evaluations(groups, notes):
            yield group


def _leave_out_evaluations(
    stream: Iterable[tuple[LedgerRecord, ScoredGroup]], notes: list[str]
) -> RecordedGroups:
    """Yield the groups of a training alone, with their records, and note at the end how many were not."""
    count = 0
    for record, group in stream:
        if is_evaluation(record, group):
            count += 1
        else:
            yield record, group
    if count:
        groups = format_count(count, "group")
        notes.append(f"{groups} of evaluations (label phase={EVALUATION_PHASE}) left out")


def _iter_groups_as_written(folder: Path, wait: _WaitFunction) -> RecordedGroups:
    """Yield each group with its record."""
    last_read_sequence_number = 0
    is_run_finished = False
    while not is_run_finished:
        with Run.open(folder) as run:
            is_run_finished = run.is_closed or wait is None
            if wait and run.is_set_of_runs:
                raise run_folder.folder_of_runs_error(folder)
            groups = _iter_group_records(run, last_read_sequence_number, is_run_finished)
            for sequence_number, group in groups:
                yield group, run.group(group)
                last_read_sequence_number = sequence_number
        if wait and not is_run_finished:
            wait()


def _iter_group_records(
    run: Run, after: int, is_run_finished: bool
) -> Iterator[tuple[int, LedgerRecord]]:
    """Yield the groups of the tasks with record numbers above `after`, with these numbers; replaced ones are left out.

    The groups of an open-ended run have an order of their own. A run that is not finished is read up to its first task
    without a group, because later ones may be scored already.
    """
    ledger = run.source.ledger
    last = run.last_base_record_number
    replaced_record_numbers = run.replaced_group_numbers()
    for record in ledger.records("group" if run.header.is_open_ended else "task", after):
        group = record if record.kind == "group" else ledger.find("group", record.key)
        if group is None:
            if not is_run_finished:
                break
        elif group.seq not in replaced_record_numbers and (last is None or group.seq <= last):
            yield record.seq, group


def read_component_weights(folder: Path) -> dict[str, float]:
    """Return the weight of every component that the config and evaluators of a run give, also of some tasks alone."""
    with Run.open(folder) as run:
        names = component_names(run.config, run.header.evaluators)
    return component_weights(run.config, names)


def split_steps_by_task_count(
    stream: Iterable[ScoredGroup], every: int
) -> Generator[StepGroups, None, None]:
    """Yield steps of `every` tasks each; an incomplete step at the end is dropped."""
    groups = iter(stream)
    while len(step := list(islice(groups, every))) == every:
        yield StepGroups(step)


class _SessionStep(NamedTuple):
    """A step, and the session of its training: 1, and counted on at each restart; None where it has none."""

    name: StepName
    session: int | None


class _RecordedGroup(NamedTuple):
    """The number of a group's record, when it was written (ms since 1970), and its step; None if it was erased."""

    record_number: int
    written_at: int
    step: _SessionStep | None
    is_judged_again: bool
    """Whether it replaces one in which judgements had failed."""


class LabelledSteps:
    """The training steps of a run, or of the runs of several ranks, by a label of the responses; to be read once.

    The steps of recorded groups, and of several runs, come by their number, or where one is no number, in the order in
    which they first occur; each has the groups of all ranks. In a run that was made from a file, and in one that is
    followed with `wait`, tasks in a row with one value are a step. Erased responses have no label; a group of them
    belongs to the step around it. Where no response has a label `step`, the steps that groups were recorded with count.

    Groups of evaluations are left out: another set of prompts has other rewards.

    `notes` are sentences about steps that recur or are missing, about runs without the last ones, and about steps that
    are of groups.

    Groups without the label are left out, and noted.

    Reading raises `InputError` if the first response lacks the label, a group has two values, or in a run from a file a
    value occurs again after another.
    """

    def __init__(self, folder: Path, label: str, wait: _WaitFunction = None) -> None:
        self.notes: list[str] = []
        self._folder = folder
        self._label = label
        self._wait = wait
        self.is_step_of_group: bool | None = None
        """Whether steps are those that groups were recorded with; None until a group is read, if it is not known."""
        self.only_last_session = False
        """Whether groups of earlier sessions are left out, of a run that is not followed."""

    def __iter__(self) -> Generator[StepGroups, None, None]:
        with Run.open(self._folder) as run:
            is_recorded = run.header.is_open_ended
            is_finished = self._wait is None or run.is_closed
            if is_finished and (is_recorded or run.is_set_of_runs):
                for name, record_numbers in self._order_steps(run).items():
                    records = map(run.source.ledger.record_at, record_numbers)
                    yield StepGroups(list(map(run.group, records)), name)
                return
        yield from self._split_stream(is_recorded)

    def _order_steps(self, run: Run) -> dict[StepName, list[int]]:
        """Return the record numbers of each step's groups, by the step's name."""
        groups_by_run: dict[str, list[_RecordedGroup]] = defaultdict(list)
        records = _iter_group_records(run, 0, is_run_finished=True)
        stream = ((record, run.group(record)) for _, record in records)
        for record, group, name in self._read_labelled_groups(stream):
            step = None if name is None else _SessionStep(name, read_session(group))
            ledger_path = run.source.ledger.path_of_ledger_with(record.seq)
            groups_by_run[ledger_path.parent.name].append(
                _RecordedGroup(record.seq, record.at, step, "again" in record.content)
            )
        session_by_run = _number_sessions_of_runs(groups_by_run)
        steps_by_run: dict[str, list[_SessionStep]] = {}
        for run_name, recorded_groups in groups_by_run.items():
            steps = self._fill_steps([group.step for group in recorded_groups])
            if not count_sessions(step.session for step in steps):
                steps = [step._replace(session=None) for step in steps]
            steps_by_run[run_name] = steps
        if self.only_last_session:
            _leave_out_earlier_sessions(groups_by_run, steps_by_run, session_by_run)
        step_positions: list[tuple[int, int, StepName]] = []
        first_judged_steps = {}
        for run_name, steps in steps_by_run.items():
            numbers = [group.record_number for group in groups_by_run[run_name]]
            names = [step.name for step in steps]
            step_positions += zip(range(len(names)), numbers, names, strict=True)
            is_first = [not group.is_judged_again for group in groups_by_run[run_name]]
            first_judged_steps[run_name] = list(compress(steps, is_first))
        numbers_by_step: dict[StepName, list[int]] = defaultdict(list)
        for _, number, name in sorted(step_positions, key=itemgetter(0, 1)):
            numbers_by_step[name].append(number)
        ordered_names = list(numbers_by_step)
        if not any(isinstance(name, str) for name in ordered_names):
            ordered_names.sort(key=float)
        recurring_names = _find_recurring_steps(first_judged_steps, session_by_run)
        if recurring_names:
            names_text = _join_step_names(ordered_names, recurring_names)
            self.notes.append(
                f"steps recorded again, as after a restart: {names_text}; all their groups count "
                "without --sessions last"
            )
        self.notes += _describe_missing_steps(ordered_names)
        last_session = max(session_by_run.values(), default=1)
        # Runs of earlier sessions end where later ones go on.
        last_steps = {
            name: [step.name for step in steps]
            for name, steps in steps_by_run.items()
            if steps and session_by_run[name] == last_session
        }
        self.notes += _describe_incomplete_runs(last_steps, ordered_names)
        return {name: numbers_by_step[name] for name in ordered_names}

    def _fill_steps(self, steps: Sequence[_SessionStep | None]) -> list[_SessionStep]:
        """Return the step of each group of a run in the order of time; one without takes that before it, or the first.

        Raises `InputError` if no group has a step.
        """
        first_step = next(filter(None, steps), None)
        if first_step is None:
            raise InputError(
                f"{self._folder}: a run has only erased responses, and no label {self._label!r} of them; "
                "read the other runs by themselves"
            )
        filled_steps = accumulate(steps, lambda before, step: step or before, initial=first_step)
        return list(filled_steps)[1:]

    def _split_stream(self, is_recorded: bool) -> Iterator[StepGroups]:
        """Yield steps of consecutive groups with the same value of the label."""
        step: list[ScoredGroup] = []
        step_names: list[StepName] = []
        with closing(_iter_groups_as_written(self._folder, self._wait)) as groups:
            for record, group, name in self._read_labelled_groups(groups):
                if name is not None and step_names[-1:] != [name]:
                    if name in step_names and not is_recorded:
                        raise InputError(
                            f"task {record.key!r}: label {self._label!r} is {name!r} again, after others; "
                            "order tasks by it"
                        )
                    if step_names:
                        yield StepGroups(step, step_names[-1])
                        step = []
                    step_names.append(name)
                step.append(group)
        if step:
            yield StepGroups(step, *step_names[-1:])
        if len(set(step_names)) < len(step_names):
            self.notes.append(
                "steps recorded again, as after a restart, are more steps here; without --follow they are joined"
            )

    def _read_labelled_groups(
        self, stream: Iterable[tuple[LedgerRecord, ScoredGroup]]
    ) -> Iterator[tuple[LedgerRecord, ScoredGroup, StepName | None]]:
        """Yield the groups of a training with their steps, and note at the end how many have no label."""
        is_label_used = self.is_step_of_group is False
        unlabelled_count = 0
        for record, group in _leave_out_evaluations(stream, self.notes):
            try:
                name = self._read_step_name(record, group)
            except _MissingLabelError:
                if not is_label_used:
                    raise
                unlabelled_count += len(group)
            else:
                is_label_used = True
                yield record, group, name
        if unlabelled_count:
            responses = format_count(unlabelled_count, "response")
            self.notes.append(f"{responses} of groups without the label {self._label!r} left out")

    def _read_step_name(self, record: LedgerRecord, group: ScoredGroup) -> StepName | None:
        """Return the step of a group; None if all of its responses were erased."""
        traces = [trace for trace, response in group if response is not None]
        if not traces:
            return None
        is_labelled = any(self._label in trace.labels for trace in traces)
        if self.is_step_of_group is None:
            has_step = self._label == "step" and "step" in record.content
            self.is_step_of_group = has_step and not is_labelled
            if self.is_step_of_group:
                self.notes.append(
                    "no label 'step': a step is the `step=` that groups were recorded with, else their task's count"
                )
        if self.is_step_of_group:
            if is_labelled:
                raise InputError(
                    f"task {record.key!r}: has label {self._label!r}, and groups before it have none; "
                    "record them apart, or label all"
                )
            step: int = record.content["step"]
            return step
        values = [_get_label(trace, self._label) for trace in traces]
        if any(value != values[0] for value in values):
            raise InputError(
                f"task {record.key!r}: its responses differ in label {self._label!r}; a task belongs to one step"
            )
        return _to_step_name(values[0])


def _number_sessions_of_runs(
    groups_by_run: Mapping[str, Sequence[_RecordedGroup]],
) -> dict[str, int]:
    """Return the session of each run, from 1 on.

    A rank goes on with its run after a restart. A run by the number of a process, which is never 0, is of a later
    session if it begins when all before it have ended.
    """
    if "0" in groups_by_run:
        return dict.fromkeys(groups_by_run, 1)
    session_by_run = {}
    session = 0
    session_end = -1
    runs = sorted(groups_by_run.items(), key=lambda run: run[1][0].written_at)
    for run_name, groups in runs:
        if groups[0].written_at > session_end:
            session += 1
        session_by_run[run_name] = session
        session_end = max(session_end, groups[-1].written_at)
    return session_by_run


def _leave_out_earlier_sessions(
    groups_by_run: dict[str, list[_RecordedGroup]],
    steps_by_run: dict[str, list[_SessionStep]],
    session_by_run: Mapping[str, int],
) -> None:
    """Keep the groups of the last session of all runs, and their steps; a run without one of them has none."""
    sessions_by_run = {
        name: [(session_by_run[name], step.session or 1) for step in steps]
        for name, steps in steps_by_run.items()
    }
    last_session = max(chain.from_iterable(sessions_by_run.values()), default=None)
    for name, sessions in sessions_by_run.items():
        is_last = [session == last_session for session in sessions]
        groups_by_run[name] = list(compress(groups_by_run[name], is_last))
        steps_by_run[name] = list(compress(steps_by_run[name], is_last))


def _find_recurring_steps(
    steps_by_run: Mapping[str, Sequence[_SessionStep]], session_by_run: Mapping[str, int]
) -> set[StepName]:
    """Return the steps that belong to several sessions, or recur in a run after others."""
    recurring_names: set[StepName] = set()
    sessions_by_step: dict[StepName, set[tuple[int, int | None]]] = defaultdict(set)
    for run_name, steps in steps_by_run.items():
        occurrence_counts = Counter(name for name, _ in groupby(step.name for step in steps))
        recurring_names.update(name for name, count in occurrence_counts.items() if count > 1)
        for step in steps:
            sessions_by_step[step.name].add((session_by_run[run_name], step.session))
    recurring_names.update(name for name, seen in sessions_by_step.items() if len(seen) > 1)
    return recurring_names


def _describe_missing_steps(ordered_names: Sequence[StepName]) -> Iterator[str]:
    """Yield a note on steps that are not there, of whole numbers most of which are equally far from each other."""
    numbers = [name for name in ordered_names if isinstance(name, int)]
    distances = Counter(after - before for before, after in pairwise(numbers))
    if not distances or len(numbers) < len(ordered_names):
        return
    usual_distance, count = distances.most_common(1)[0]
    if 2 * count <= distances.total():
        return
    gaps = []
    for before, after in pairwise(numbers):
        distance = after - before
        if distance > usual_distance and distance % usual_distance == 0:
            gap_ends = (before + usual_distance, after - usual_distance)
            gaps.append(" to ".join(map(str, dict.fromkeys(gap_ends))))
    if gaps:
        yield f"there are no groups of step {join_names(gaps)}"


def _describe_incomplete_runs(
    steps_by_run: Mapping[str, Sequence[StepName]], ordered_names: Sequence[StepName]
) -> Iterator[str]:
    """Yield a note on runs, such as of ranks, that end at different steps, and one on ranks that are not there.

    A restart may have ended before the steps that it repeats: the last step of a run is that with the last name.
    """
    positions = {name: position for position, name in enumerate(ordered_names)}
    runs_by_last_step = defaultdict(list)
    for run_name, steps in steps_by_run.items():
        last_step = max(steps, key=positions.__getitem__)
        runs_by_last_step[last_step].append(run_name)
    if len(runs_by_last_step) > 1:
        ends = [f"{join_names(runs)} at step {step}" for step, runs in runs_by_last_step.items()]
        yield f"runs end at different steps, so that the last ones lack groups: {'; '.join(ends)}"
    first_ranks = map(str, range(len(steps_by_run)))
    missing_ranks = [rank for rank in first_ranks if rank not in steps_by_run]
    if missing_ranks and "0" in steps_by_run:
        yield f"there are no groups of rank {join_names(missing_ranks)}"


class _MissingLabelError(InputError):
    pass


def _get_label(trace: Trace, label: str) -> JsonValue:
    if label not in trace.labels:
        names = ", ".join(map(repr, trace.labels)) or "none"
        raise _MissingLabelError(
            f"response {trace.response_id!r}: has no label {label!r}; its labels: {names}"
        )
    return trace.labels[label]


def _to_step_name(value: JsonValue) -> StepName:
    """Return a label's value as the name of a step: a number, or a text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return json_value_to_text(value)


def _join_step_names(ordered_names: Sequence[StepName], chosen: Container[StepName]) -> str:
    """Return the chosen steps, those in a row as `10 to 12`."""
    parts = []
    for is_chosen, group in groupby(ordered_names, key=lambda name: name in chosen):
        names = list(group)
        if is_chosen:
            parts.append(" to ".join(map(str, dict.fromkeys((names[0], names[-1])))))
    return ", ".join(parts)


def read_steps(
    folder: Path,
    label: str | None,
    every: int | None,
    wait: _WaitFunction,
    only_last_session: bool = False,
) -> tuple[Generator[StepGroups, None, None], list[str]]:
    """Return the steps of a run by a label or of `every` tasks, and the notes on them, to which reading adds more.

    With neither, they are those of the label `step` if a training has it, else of 32 tasks. Raises `InputError` where
    the last session is wanted of anything but these steps of a training, or of one that is followed.
    """
    may_be_training = label in (None, _TRAINING_STEP_LABEL) and every is None
    is_training = may_be_training and has_training_steps(folder, wait)
    if only_last_session and (wait or not is_training):
        raise InputError(
            "--sessions last is for the steps of a recorded training; leave out --follow, --every and --step-label"
        )
    if is_training or label is not None:
        labelled_steps = LabelledSteps(folder, label or _TRAINING_STEP_LABEL, wait)
        if is_training:
            labelled_steps.is_step_of_group = False
        labelled_steps.only_last_session = only_last_session
        if label is None:
            labelled_steps.notes.append(
                "steps are those of the responses' label 'step'; --every N counts tasks instead"
            )
        return iter(labelled_steps), labelled_steps.notes
    task_count = every or _DEFAULT_TASKS_PER_STEP
    notes = [f"steps are counted from 1, of {format_count(task_count, 'task')} each"]
    groups = iter_scored_groups(folder, wait, notes)
    return split_steps_by_task_count(groups, task_count), notes


def has_training_steps(folder: Path, wait: _WaitFunction) -> bool:
    """Return whether a recorded run has a trainer's label; one that is followed, in its first group."""
    with closing(_iter_groups_as_written(folder, wait)) as groups:
        return any(
            "step" in record.content and _TRAINING_STEP_LABEL in trace.labels
            for record, group in islice(groups, 1 if wait else None)
            for trace, _ in group
        )


def iter_training_steps(
    steps: Iterable[StepGroups], names: Collection[str]
) -> Iterator[TrainingStep]:
    """Yield steps as the analyzer expects them, each with the components of these names; lengths are in characters.

    Where a reward failed, its components have no value: what the failure rule filled in is no falling quality.
    """
    for step in steps:
        rows = list(chain.from_iterable(step.groups))
        rewards = [trace.reward for trace, _ in rows]
        components = {}
        for name in names:
            components[name] = _to_floats(
                None if reward.value is None else reward.components.get(name) for reward in rewards
            )
        lengths = [None if response is None else len(response.text) for _, response in rows]
        yield TrainingStep(
            rewards=_to_floats(reward.value for reward in rewards),
            components=components,
            lengths=_to_floats(lengths),
            groups=np.repeat(range(len(step.groups)), list(map(len, step.groups))),
            name=step.name,
            degraded=_to_floats(reward.status == "degraded" for reward in rewards),
        )


def _to_floats(values: Iterable[float | None]) -> Floats:
    return np.array(list(values), dtype=np.float64)
