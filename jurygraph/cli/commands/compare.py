"""`jurygraph compare`: compare two runs; thresholds can fail a build."""

from functools import partial
from os.path import abspath, basename
from pathlib import Path
from typing import Annotated

import typer

from jurygraph.cli.options import ByLabelOption, GateConditionsOption, argument
from jurygraph.cli.render.report import ReportOutputOptions, make_report_command
from jurygraph.cli.render.summary import print_missed_conditions
from jurygraph.cli.render.text import command_line, print_messages, print_result
from jurygraph.cli.streams import ExitCode


@partial(make_report_command, title="A {run_a}, B {run_b}", kinds=("html", "markdown", "json"))
def compare(
    run_a: Annotated[Path, argument("RUN_A", "Folder of the first run.")],
    run_b: Annotated[Path, argument("RUN_B", "Folder of the second run.")],
    gate: GateConditionsOption = None,
    by: ByLabelOption = None,
    *,
    output: ReportOutputOptions,
) -> None:
    """Compare two runs: rewards, paired tests, flipped verdicts.

    Both runs must score the same responses; every difference is B - A. Failed rewards are omitted and counted, never
    replaced by 0. Intervals are of 95 %; they and the tests take whole tasks as units, because responses to one task
    are not independent. The result in a sentence comes first, then the gate, what was changed (settings, prompts,
    models, and how many tasks), verdicts that failed, abstained or were gated in one run, and flips. `--json` prints
    every statistic and every flip. `--by LABEL` adds the difference in each value of a label of A. `--markdown` is a
    comment on a change, with the other figures in a fold; `jurygraph init --template ci` has a workflow that posts it.
    `--html` writes all figures as a page, too.

    --gate takes conditions NAME OP NUMBER on the statistics of the first table, joined by `,` or `and`; a missing value
    meets none. no_worse_than=X holds if B is shown to lose less than X on average, rare large losses included.

    Exit codes: 0 done; 1 done, but a threshold was missed; 2 invalid input; 5 a record or text of a run
    was changed.

    \b
    Example:
        jurygraph compare before after
        jurygraph compare before after --gate "no_worse_than=0.02, failed_b<=0"
        jurygraph compare before after --markdown --gate "flips<=3" > comment.md
    """
    from jurygraph.display import ignore_progress
    from jurygraph.runs.integrity.record_check import require_records_as_written
    from jurygraph.runs.reports.gate import parse_ci_thresholds
    from jurygraph.runs.run import Run
    from jurygraph.runs.stored_groups import possible_reward_bounds
    from jurygraph.studies import comparison
    from jurygraph.studies.changed_inputs import find_changed_inputs
    from jurygraph.studies.compared_responses import iter_compared_responses
    from jurygraph.views.labels import read_label_values

    statistics = list(comparison.STATISTIC_DESCRIPTIONS)
    no_worse_gate_name = comparison.NO_WORSE_GATE_NAME
    conditions = parse_ci_thresholds(
        gate, statistics, comparison.CI_GATE_EXAMPLE, [no_worse_gate_name]
    )
    margins = [condition.bound for condition in conditions if condition.name == no_worse_gate_name]
    thresholds = [condition for condition in conditions if condition.name in statistics]
    largest_possible_loss = 1.0
    with Run.open(run_a) as a, Run.open(run_b) as b:
        # a comparison is handed on; the check takes 0.4 s for 1,000 responses with 6 calls each
        for compared_run in (a, b):
            require_records_as_written(compared_run, ignore_progress)
        if gate:
            limits = list(possible_reward_bounds(a, a.load_combiners()))
            limits += possible_reward_bounds(b, b.load_combiners())
            largest_possible_loss = max((high - low for low, high in limits), default=0.0)
        report = comparison.compare(
            iter_compared_responses(a),
            iter_compared_responses(b),
            margins,
            largest_possible_loss,
            thresholds,
            find_changed_inputs(a, b),
            under_b=comparison.decide_under_other_settings(a, b.config),
            names=_name_runs(run_a, run_b),
            by=(by, read_label_values(a, by)) if by else ("", {}),
            runs=(a, b),
        )
    messages = list(comparison.missing_evidence_messages(report.figures))
    if output.markdown:
        comment = comparison.render_pull_request_comment(report, command_line.get())
        output.write_report_files(report)
        print_result(comment.removesuffix("\n"))
    else:
        output.write(report)
    has_missed_conditions = print_missed_conditions(thresholds, report.figures)
    print_messages(messages)
    if has_missed_conditions or messages:
        raise typer.Exit(ExitCode.SOME_FAILED)


def _name_runs(run_a: Path, run_b: Path) -> tuple[str, str]:
    """Return the names of the folders; A and B where these are alike, or one is a letter that tables give a run."""
    names = basename(abspath(run_a)), basename(abspath(run_b))
    is_ambiguous = names[0] == names[1] or "A" in names or "B" in names
    return ("A", "B") if is_ambiguous else names
