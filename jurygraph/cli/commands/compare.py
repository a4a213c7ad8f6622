"""`jurygraph compare`: compare two runs; thresholds can fail a build."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.options import AsJson, Conditions
from jurygraph.cli.render.summary import print_missed_conditions
from jurygraph.cli.render.text import escape_line, format_number, format_table, print_json, print_result_lines

if TYPE_CHECKING:
    from jurygraph.runs.reports.comparison import Comparison, Flip
    from jurygraph.runs.run import Run
    from jurygraph.schema import Trace


def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="Folder of the first run.", show_default=False)],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="Folder of the second run.", show_default=False)],
    gate: Conditions = None,
    passing: Annotated[float, typer.Option(metavar="X", help="Minimum reward of a response that passes.")] = 0.5,
    flips: Annotated[int, typer.Option(min=0, metavar="N", help="List the first N verdicts that flipped.")] = 20,
    json: AsJson = False,
) -> None:
    """Compare two runs: rewards, paired tests, flipped verdicts.

    Both runs must score the same responses; every difference is B - A. Failed rewards are omitted and counted, never
    replaced by 0. --gate takes conditions NAME OP NUMBER on the statistics of the first table, joined by `,` or `and`;
    a missing value meets none. `--json` prints every statistic and every flip.

    Exit codes: 0 done; 1 done, but a threshold was missed; 2 invalid input.

    \b
    Example:
        jurygraph compare before after
        jurygraph compare before after --gate "mean_delta>-0.01, failed_b<=0"
    """
    from jurygraph.runs.reports.comparison import compare as compare_traces
    from jurygraph.runs.reports.gate import failed_thresholds, parse_thresholds
    from jurygraph.runs.run import Run

    thresholds = parse_thresholds(",".join(gate)) if gate else []
    with closing(Run.open(run_a)) as a, closing(Run.open(run_b)) as b:
        comparison = compare_traces(_each_trace(a), _each_trace(b), passing=passing)
    if json:
        print_json(comparison.model_dump(mode="json"))
    else:
        print_result_lines(_comparison_lines(comparison, flips))
    missed = failed_thresholds(thresholds, comparison)
    print_missed_conditions(missed)
    if missed:
        raise typer.Exit(ExitCode.SOME_FAILED)


def _each_trace(run: "Run") -> "Iterator[Trace]":
    """Return the traces of a run, and close it after the last: the memory is then free for the other run."""
    yield from run.traces()
    run.close()


def _comparison_lines(comparison: "Comparison", flips: int) -> Iterator[str]:
    yield from _figure_table(comparison)
    yield from _agent_table(comparison)
    yield from _question_table(comparison)
    yield from _change_table(comparison)
    yield from _flip_table(comparison.flipped_verdicts, flips)
    if comparison.notes:
        yield ""
    for note in comparison.notes:
        yield f"note: {escape_line(note)}"


def _figure_table(comparison: "Comparison") -> list[str]:
    from jurygraph.runs.reports.gate import ComparisonStatistics

    rows = [
        [name, field.description or "", _format_figure(name, getattr(comparison, name))]
        for name, field in ComparisonStatistics.model_fields.items()
    ]
    return format_table(["statistic", f"a response passes from {comparison.pass_threshold:g}", "value"], rows, left=2)


def _format_figure(name: str, figure: float | None) -> str:
    if isinstance(figure, int):
        return str(figure)
    return _format_p_value(figure) if name.endswith("_p") else format_number(figure)


def _format_p_value(p: float | None) -> str:
    """Format a p-value; one too small for four decimals is printed as <0.0001, not 0."""
    return format_number(p) if p is None or p >= 0.0001 else "<0.0001"


def _agent_table(comparison: "Comparison") -> Iterator[str]:
    rows = [[row.agent or "(no agent)", row.n, row.mean_a, row.mean_b, row.mean_delta] for row in comparison.agents]
    return _section(["agent", "n", "mean A", "mean B", "B - A"], rows)


def _question_table(comparison: "Comparison") -> Iterator[str]:
    rows = [
        [
            row.question,
            row.judged_both,
            row.to_met,
            row.to_unmet,
            _format_p_value(row.mcnemar_p),
            row.largest_delta,
            row.only_a,
            row.only_b,
        ]
        for row in comparison.questions
    ]
    header = ["question", "in both", "to met", "to unmet", "McNemar p", "largest |B - A|", "A only", "B only"]
    return _section(header, rows)


def _change_table(comparison: "Comparison") -> Iterator[str]:
    rows = [[c.response_id, c.a, c.b, c.delta] for c in comparison.changes]
    return _section(["largest changes", "A", "B", "B - A"], rows)


def _flip_table(flipped: "Sequence[Flip]", limit: int) -> Iterator[str]:
    rows = [
        [f.question, f.response_id, _opponents(f), f.sample, f.before, f.after, _decision_change(f)]
        for f in flipped[:limit]
    ]
    yield from _section(["flipped", "response", "against", "sample", "A", "B", "decision"], rows, left=3)
    if limit and len(flipped) > limit:
        yield f"... and {len(flipped) - limit} more (--flips N lists N, --json all)"


def _opponents(flip: "Flip") -> str:
    return ", ".join(name for name in flip.responses if name != flip.response_id) or "-"


def _decision_change(flip: "Flip") -> str:
    return "unmet -> met" if flip.met else "met -> unmet"


def _section(header: list[str], rows: Sequence[Sequence[object]], left: int = 1) -> Iterator[str]:
    """Return a table after an empty line, or nothing if there are no rows."""
    if rows:
        yield ""
        yield from format_table(header, rows, left)
