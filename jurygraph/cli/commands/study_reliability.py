"""`jurygraph study reliability`: the variance of rewards and scores, by task, response and sample."""

from collections.abc import Iterator, Sequence
from contextlib import closing

from jurygraph.cli.options import AsJson, RunFolder
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.text import (
    escape_line,
    format_interval,
    format_number,
    print_message,
    print_report,
    table_section,
)
from jurygraph.runs.run import Run
from jurygraph.studies.reliability import (
    MEAN_OVER,
    Correlation,
    ReliabilityReport,
    Split,
    read_scores,
    report,
)

FEW_TASKS = 20
_MAX_QUESTIONS = 30
_ABOUT = 1.1


def reliability(run: RunFolder, json: AsJson = False) -> None:
    """Measure how far rewards and scores would repeat.

    The variance of the rewards is split into that between tasks and that between responses to a task; that of each
    question's scores also into that between samples of the judge, where it has several (`samples`). The table gives the
    correlation of two responses to a task, or of two samples of a response, and how reliable a mean of several is. For
    the run's mean reward: its interval over tasks, the effective sample size, the difference that two such runs could
    detect, and how many tasks or responses would halve the interval. No request is sent, and nothing is written.

    Exit codes: 0 done; 2 invalid input, such as a run with rewards of one task.

    \b
    Example:
        jurygraph study reliability run
        jurygraph study reliability run --json
    """
    with closing(Run.open(run)) as opened, progress("reading", opened.tasks_scored, "tasks") as advance:
        scores = read_scores(opened, advance)
    found = report(scores)
    print_report(json, found, _report_lines(found))
    _print_notes(found)


def _print_notes(report: ReliabilityReport) -> None:
    for reason, count in report.left_out.items():
        print_message(f"omitted, {reason}: {count}")
    if report.rewards.tasks < FEW_TASKS:
        print_message(f"{report.rewards.tasks} tasks: with fewer than {FEW_TASKS}, shares and intervals are rough")
    if not any(one.within_response for one in report.questions):
        print_message("no question has several samples (`samples`): how far a judge would repeat a score is unknown")


def _report_lines(report: ReliabilityReport) -> Iterator[str]:
    rewards = report.rewards
    yield escape_line(f"{report.run}: rewards of {rewards.responses} responses to {rewards.tasks} tasks")
    rows = [[one.name, one.units, one.variance, one.share] for one in rewards.levels]
    yield from table_section(["variance between", "units", "variance", "share"], rows)
    yield ""
    if rewards.why is not None:
        yield f"the variance is not split: {rewards.why}"
    if rewards.within_task is not None:
        yield f"two responses to a task correlate: {_with_interval(rewards.within_task)}"
        means = ", ".join(f"{one:.4f} of {count}" for count, one in rewards.within_task.of_means.items())
        yield f"reliability of a task's mean over responses: {means}"
    yield from _mean_lines(report)
    yield from _question_table(report.questions)


def _mean_lines(report: ReliabilityReport) -> Iterator[str]:
    mean, rewards = report.mean, report.rewards
    yield f"mean reward: {format_interval(mean.value, mean.low, mean.high)}, 95 % interval over tasks"
    if mean.effective is not None:
        yield f"effective sample size: {mean.effective:.0f} of {rewards.responses} responses"
    if mean.detectable is not None:
        detectable = format_number(mean.detectable)
        yield f"detectable difference of two such runs on different tasks: {detectable} (level 0.05, power 0.8)"
    if mean.halving.tasks is not None:
        yield from _halving_lines(report, mean.halving.tasks)


def _halving_lines(report: ReliabilityReport, tasks: int) -> Iterator[str]:
    """Return what it takes, and which way needs fewer responses: never the same tasks, but they can need as few."""
    rewards, responses = report.rewards, report.mean.halving.responses
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


def _question_table(questions: Sequence[Split]) -> Iterator[str]:
    has_samples = any(one.within_response for one in questions)
    header = ["share by question", "values", "task (95 %)", "response"]
    if has_samples:
        header += ["sample", "one sample (95 %)", *(f"mean of {count}" for count in MEAN_OVER[1:])]
    rows = [_question_row(one)[: len(header)] for one in questions]
    yield from table_section(header, rows, most=_MAX_QUESTIONS)


def _question_row(split: Split) -> Sequence[object]:
    shares, samples = {one.name: one.share for one in split.levels}, split.within_response
    of_means = [None if samples is None else samples.of_means[count] for count in MEAN_OVER[1:]]
    columns = _with_interval(split.within_task), shares.get("response"), shares.get("sample"), _with_interval(samples)
    return [split.name, split.values, *columns, *of_means]


def _with_interval(found: Correlation | None) -> str:
    return "-" if found is None else format_interval(found.value, found.low, found.high)
