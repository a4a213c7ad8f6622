"""`jurygraph compare`: compare two runs; thresholds can fail a build."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.options import AsJson, Conditions, argument
from jurygraph.cli.render.summary import print_missed_conditions
from jurygraph.cli.render.text import escape_line, format_table, print_message, print_report, table_section
from jurygraph.display import format_number
from jurygraph.runs.reports.comparison import Comparison
from jurygraph.runs.reports.comparison.figures import ComparisonStatistics, MarginTest, PairedDifference
from jurygraph.runs.reports.comparison.margins import parse_gate, tasks_for_bound
from jurygraph.runs.reports.comparison.notes import setting_notes
from jurygraph.runs.reports.comparison.report import compare_responses
from jurygraph.runs.reports.comparison.responses import ComparedResponse, read_responses
from jurygraph.runs.reports.gate import failed_thresholds
from jurygraph.runs.reports.possible_rewards import possible_rewards
from jurygraph.runs.run import Run


def compare(
    run_a: Annotated[Path, argument("RUN_A", "Folder of the first run.")],
    run_b: Annotated[Path, argument("RUN_B", "Folder of the second run.")],
    gate: Conditions = None,
    passing: Annotated[float, typer.Option(metavar="X", help="Minimum reward of a response that passes.")] = 0.5,
    flips: Annotated[int, typer.Option(min=0, metavar="N", help="List the first N verdicts that flipped.")] = 20,
    json: AsJson = False,
) -> None:
    """Compare two runs: rewards, paired tests, flipped verdicts.

    Both runs must score the same responses; every difference is B - A. Failed rewards are omitted and counted, never
    replaced by 0. Intervals are of 95 %; they and the tests take whole tasks as units, because responses to one task
    are not independent.
    `--json` prints every statistic and every flip.

    --gate takes conditions NAME OP NUMBER on the statistics of the first table, joined by `,` or `and`; a missing value
    meets none. no_worse_than=X holds if B is shown to lose less than X on average, rare large losses included.

    Exit codes: 0 done; 1 done, but a threshold was missed; 2 invalid input.

    \b
    Example:
        jurygraph compare before after
        jurygraph compare before after --gate "no_worse_than=0.02, failed_b<=0"
    """
    thresholds, margins = parse_gate(",".join(gate)) if gate else ([], [])
    with closing(Run.open(run_a)) as a, closing(Run.open(run_b)) as b:
        settings = tuple(setting_notes(a.header, b.header))
        largest_loss = max(_largest_loss(a), _largest_loss(b)) if gate else 1.0
        comparison = compare_responses(_each_response(a), _each_response(b), passing, margins, largest_loss)
    comparison = comparison.model_copy(update={"notes": (*settings, *comparison.notes)})
    print_report(json, comparison, _comparison_lines(comparison, flips))
    missed = failed_thresholds(thresholds, comparison)
    print_missed_conditions(missed)
    for threshold, value in missed:
        needed = tasks_for_bound(threshold, comparison, largest_loss) if value is None else None
        if needed is not None:
            print_message(f"{comparison.tasks} tasks of which none changed have no interval; {needed} would do")
    missed_margins = [margin for margin in comparison.margins if not margin.holds]
    for margin in missed_margins:
        print_message(f"threshold missed: {_condition(margin)}, but {_missed_because(margin, comparison)}")
    if missed or missed_margins:
        raise typer.Exit(ExitCode.SOME_FAILED)


def _largest_loss(run: Run) -> float:
    """Return the most that a reward of the run could lose."""
    limits = possible_rewards(run, run.load_combiners())
    return max((high - low for low, high in limits), default=0.0)


def _each_response(run: Run) -> Iterator[ComparedResponse]:
    """Yield the responses of a run, and close it after the last: the memory is then free for the other run."""
    yield from read_responses(run)
    run.close()


def _comparison_lines(comparison: Comparison, most_flips: int) -> Iterator[str]:
    yield from (*summary_lines(comparison), "")
    yield from _statistics_table(comparison)
    margins = [[_condition(row), "yes" if row.holds else "no", _format_p_value(row.p)] for row in comparison.margins]
    yield from table_section(["condition", "holds", "p"], margins, left=2)
    agents = [[row.agent or "(no agent)", *_difference_cells(row, row.left_out)] for row in comparison.agents]
    yield from table_section(["agent", *_DIFFERENCE_HEADER], agents)
    yield from _question_tables(comparison)
    changes = [[row.response_id, row.a, row.b, row.delta] for row in comparison.changes]
    yield from table_section(["largest changes", "A", "B", "B - A"], changes)
    yield from _flip_table(comparison, most_flips)
    if comparison.notes:
        yield ""
    yield from (f"note: {escape_line(note)}" for note in comparison.notes)


def summary_lines(comparison: Comparison) -> Iterator[str]:
    """Yield the result of a comparison in a sentence, and what it leaves out.

    For example: `B is 0.0350 lower (0.0120 to 0.0580); 7 of 20 tasks changed`.
    """
    yield _difference_sentence(comparison)
    failed = comparison.paired - comparison.n
    if failed:
        yield f"{failed} of {comparison.paired} responses are left out: their reward failed in A or B"


def _difference_sentence(comparison: Comparison) -> str:
    delta = comparison.mean_delta
    if delta is None:
        return "no response has a reward in both A and B"
    size = "A and B have the same mean"
    if comparison.changed_tasks:
        size = f"B is {_signed_difference(delta)}"
    low = comparison.mean_delta_low
    high = comparison.mean_delta_high
    if low is not None and high is not None:
        if low * high >= 0.0:
            ends = sorted([abs(low), abs(high)])
            size += f" ({format_number(ends[0])} to {format_number(ends[1])})"
        else:
            size += f" ({_signed_difference(low)} to {_signed_difference(high)})"
    return f"{size}; {comparison.changed_tasks} of {comparison.tasks} tasks changed"


def _signed_difference(delta: float) -> str:
    return f"{format_number(abs(delta))} {'lower' if delta < 0.0 else 'higher'}"


def _statistics_table(comparison: Comparison) -> list[str]:
    rows = []
    for name, field in ComparisonStatistics.model_fields.items():
        value = getattr(comparison, name)
        rows.append([name, field.description or "", _format_p_value(value) if name.endswith("_p") else value])
    return format_table(["statistic", f"a response passes from {comparison.pass_threshold:g}", "value"], rows, left=2)


def _format_p_value(p: float | None) -> str:
    """Format a p-value; one too small for four decimals is printed as <0.0001, not 0."""
    return format_number(p) if p is None or p >= 0.0001 else "<0.0001"


def _condition(margin: MarginTest) -> str:
    return f"{margin.name} = {margin.margin!r}".removesuffix(".0")


def _missed_because(margin: MarginTest, comparison: Comparison) -> str:
    if margin.lowest is None:
        return f"{comparison.tasks} tasks show nothing of others; compare runs of several tasks"
    p = _format_p_value(margin.p)
    unseen = f"since they cannot show rare losses of up to {margin.largest_loss:g}"
    lowest = format_number(margin.lowest)
    possible = f"{comparison.tasks} tasks leave a mean difference of {lowest} possible (p = {p}), {unseen}"
    if margin.needed_tasks is None:
        return f"{possible}; no number of tasks like these would do"
    return f"{possible}; about {margin.needed_tasks} tasks like these would do"


_DIFFERENCE_HEADER = ["n", "tasks", "mean A", "mean B", "B - A", "from", "to", "p", "Holm p"]


def _difference_cells(row: PairedDifference, left_out: int) -> list[object]:
    """Return the cells of a row; its means leave out values that are missing in one run."""
    means = [row.mean_a, row.mean_b, row.mean_delta, row.mean_delta_low, row.mean_delta_high]
    number = f"{row.n}/{row.n + left_out}" if left_out else row.n
    return [number, row.tasks, *means, _format_p_value(row.mean_delta_p), _format_p_value(row.holm_p)]


def _question_tables(comparison: Comparison) -> Iterator[str]:
    """Yield the differences of the scores, and the changes of the verdicts, of the questions that have some."""
    changed = [
        row
        for row in comparison.questions
        if row.largest_delta or row.to_met or row.to_unmet or row.only_a or row.only_b
    ]
    scores = [[row.question, *_difference_cells(row, row.only_a + row.only_b)] for row in changed if row.n]
    yield from table_section(["question", *_DIFFERENCE_HEADER], scores)
    verdicts = [
        [row.question, row.n, row.to_met, row.to_unmet, row.largest_delta, row.only_a, row.only_b] for row in changed
    ]
    header = ["verdicts", "in both", "to met", "to unmet", "largest |B - A|", "A only", "B only"]
    yield from table_section(header, verdicts)
    same = len(comparison.questions) - len(changed)
    if same:
        yield from ("", f"no verdict differs in {same} {'other ' * bool(changed)}question{'s' * (same > 1)}")


def _flip_table(comparison: Comparison, most: int) -> Iterator[str]:
    flipped = comparison.flipped_verdicts
    rows = []
    for flip in flipped[:most]:
        opponents = ", ".join(name for name in flip.responses if name != flip.response_id) or "-"
        decision = "unmet -> met" if flip.met else "met -> unmet"
        rows.append([flip.question, flip.response_id, opponents, flip.before, flip.after, decision])
    yield from table_section(["flipped", "response", "against", "A", "B", "decision"], rows, left=3)
    if most and len(flipped) > most:
        yield f"... and {len(flipped) - most} more (--flips N lists N, --json all)"
