"""`jurygraph demo`: three examples, scored here, in three findings each; and the page of one low reward."""

import os
import subprocess
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from jurygraph.cli.options import argument, option
from jurygraph.cli.output_files import write_output
from jurygraph.cli.render.text import escape_line, print_message, print_result, progress
from jurygraph.cli.scoring import ScoreOptions, score_tasks
from jurygraph.cli.streams import redirect_stdout_to_stderr
from jurygraph.display import ignore_progress
from jurygraph.errors import InputError
from jurygraph.messages import shell_quote, shorten
from jurygraph.runs.integrity.verification import verify
from jurygraph.runs.run import Run

if TYPE_CHECKING:
    from jurygraph.runs.reports.summary import Summary
    from jurygraph.schema import Trace

_PACKAGE_FOLDER = Path(__file__).parents[2]
_EXAMPLE_FOLDERS = (_PACKAGE_FOLDER / "examples", _PACKAGE_FOLDER.parent / "examples")
"""The folder of examples in a wheel, which has the three that are scored here, and in a checkout, which has all."""
_OTHER_DEMOS_SCRIPT = "others.py"
_MAX_LINE_CHARACTERS = 180


class DemoFindings(NamedTuple):
    """Three lines on what a run shows, and the response that most of it is about."""

    lines: list[str]
    response: str


class DemoExample(NamedTuple):
    """An example of `examples/`: what it is in a sentence, its files, and how its findings are read from its run."""

    sentence: str
    tasks: str
    config: str
    read_demo_findings: "Callable[[Run, Summary], DemoFindings]"


def demo(
    folder: Annotated[Path, argument("DIR", "Folder for the runs.")] = Path("demo-run"),
    every: Annotated[
        bool, option(None, "Go on with the other examples of the repository.", "--all")
    ] = False,
) -> None:
    """Show on real data what a reward can tell, without a key or a model.

    Solutions to maths problems, plans for group trips, and texts under rubrics with graphs are scored into runs in DIR
    (demo-run). The page of the mistaken solution with the lowest reward is written there, and opened where there
    is a browser. --all goes on with conversations, a gamed reward, a judge that looks things up, a small
    model as a judge, and reviewers.

    \b
    Example:
        jurygraph demo
        jurygraph demo my-demo
    """
    from jurygraph.viewer.report import render_response_report  # lazily: it loads Jinja

    examples = _find_examples_folder(every)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder for the runs")
    found = {}
    for name, example in DEMO_EXAMPLES.items():
        run = folder / name
        tasks = examples / example.tasks
        options = ScoreOptions(tasks=str(tasks), config=examples / example.config, run=run)
        with redirect_stdout_to_stderr():
            scored = score_tasks(options)
        with Run.open(run) as stored_run:
            found[name] = example.read_demo_findings(stored_run, scored.summary)
        print_result(f"{name}: {example.sentence}")
        for line in found[name].lines:
            print_result(f"  → {escape_line(shorten(line, _MAX_LINE_CHARACTERS))}")
    page_path = folder / "lowest.html"
    with Run.open(folder / "maths") as stored_run:
        page = render_response_report(stored_run, found["maths"].response)
    write_output(page_path, [page.encode()])
    if every:
        sys.stdout.flush()
        script = examples / _OTHER_DEMOS_SCRIPT
        other_demos = subprocess.run([sys.executable, str(script), str(folder)], check=False)
        if other_demos.returncode:
            raise InputError(f"{script}: ended with exit code {other_demos.returncode}, see above")
    print_result(f"\n{found['maths'].response}, from its text to its reward: {page_path}")
    print_result(f"every response, in a browser: jurygraph view {shell_quote(folder / 'maths')}")
    print_result("a project of your own:        jurygraph init my-jury")
    _open_in_browser(page_path)


def _find_examples_folder(needs_all_examples: bool) -> Path:
    """Return the folder of the examples. Raises `InputError` where `needs_all_examples` needs those that a wheel does
    not have."""
    for folder in _EXAMPLE_FOLDERS:
        if (folder / (_OTHER_DEMOS_SCRIPT if needs_all_examples else "maths")).exists():
            return folder
    if needs_all_examples:
        raise InputError("--all: needs the examples of the repository; run it in a checkout of it")
    raise InputError(f"{_EXAMPLE_FOLDERS[0]}: is missing; install jurygraph again")


def _open_in_browser(page_path: Path) -> None:
    """Open the page where somebody sits before a screen: a browser of texts would take the terminal."""
    has_display = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if sys.stdout.isatty() and has_display and webbrowser.open(page_path.resolve().as_uri()):
        print_message("opened in the browser")


def _describe_agent_means(summary: "Summary", *agents: str) -> str:
    means = {name: row.mean for name, row in summary.agents.items()}
    return ", ".join(f"{agent} {means[agent]:.2f}" for agent in agents)


def _read_maths_findings(run: Run, summary: "Summary") -> DemoFindings:
    """Return the means, why the lowest reward with a quoted mistake is low, and what a verification finds."""
    traces_with_quoted_mistake = [trace for trace in run.traces() if _has_quoted_mistake(trace)]
    rewards = {trace.response_id: trace.reward.value or 0.0 for trace in traces_with_quoted_mistake}
    lowest = min(rewards, key=rewards.__getitem__)
    explanation = run.explain(lowest)
    loss_reasons = [line.reason for line in explanation.lines if line.has_loss and line.reason]
    with progress("verifying", run.ledger.count, "records") as report:
        verification = verify(run, report)
    means = _describe_agent_means(summary, "175b_verification", "6b_finetuning")
    lines = [
        f"the larger model's solutions earn more, for more of them are right: {means}, of 2.5",
        f"a low reward says why: {rewards[lowest]:.2f}, for {'; '.join(loss_reasons[:2])}",
        f"{verification.traces} rewards, computed again from their verdicts, are the same to the last bit",
    ]
    return DemoFindings(lines, lowest)


def _has_quoted_mistake(trace: "Trace") -> bool:
    return any(
        verdict.evaluator == "maths.calculation" and verdict.evidence for verdict in trace.verdicts
    )


def _read_trip_findings(run: Run, summary: "Summary") -> DemoFindings:
    """Return what planted faults cost, who in the group pays for one and why, and the weights of its people."""
    fault = "cuisine-dropped"
    faulty_trace = next(trace for trace in run.traces() if trace.agent == fault)
    group = [member.trace for member in run.group_of_response(faulty_trace.response_id)]
    (reference,) = [trace for trace in group if trace.agent == "reference"]
    before = reference.reward.parts["stakeholders"]
    after = faulty_trace.reward.parts["stakeholders"]
    person = min(after, key=lambda name: after[name] - before[name])
    reason = next(
        verdict.reason
        for verdict in faulty_trace.verdicts
        if verdict.stakeholder == person and verdict.met is False
    )
    (spec,) = run.decision_of(faulty_trace.task_id).specs
    weights = ", ".join(f"{name} {use.input_weight:.2f}" for name, use in spec.inputs.items())
    faults = [agent for agent in summary.agents if agent not in ("reference", None)]
    lines = [
        f"every fault costs: {_describe_agent_means(summary, 'reference', *map(str, faults))}",
        f"who pays is named: {person}, {before[person]:.2f} → {after[person]:.2f}: {reason}",
        f"weights follow from what each person asks for, before a plan is read: {weights}",
    ]
    return DemoFindings(lines, faulty_trace.response_id)


def _read_rubric_findings(run: Run, summary: "Summary") -> DemoFindings:
    """Return the mean rewards, the credit that a graph keeps back, for one criterion and over all responses."""
    from jurygraph.studies.credit import read_rubric_scores, report

    assert summary.lowest is not None, "the example has responses"
    (term,) = run.explain(summary.lowest.response_id).lines
    unsupported_credit_part = next(part for part in term.parts if " × " in part.note)
    sheets = read_rubric_scores(run, ignore_progress)
    credit = report(sheets, random_graph_count=1).figures["methods"]
    flat_credit_leakage, gear_credit_leakage = (
        credit[rule]["leakage"]["value"] for rule in ("flat", "gear")
    )
    lines = [
        f"texts that only look right earn less: {_describe_agent_means(summary, 'sound', 'partial', 'hollow')}",
        (
            f"a criterion counts as far as what it depends on: {unsupported_credit_part.names[0]} "
            f"{unsupported_credit_part.note}"
        ),
        f"unearned credit falls from {flat_credit_leakage:.1%} of a rubric's weight (weighted mean) to "
        f"{gear_credit_leakage:.1%} (graph)",
    ]
    return DemoFindings(lines, summary.lowest.response_id)


DEMO_EXAMPLES = {
    "maths": DemoExample(
        "400 solutions to maths problems, graded by answer, arithmetic and form",
        "maths/tasks.jsonl",
        "maths/jury.yaml",
        _read_maths_findings,
    ),
    "trip": DemoExample(
        "plans for ten group trips, each with one planted fault but the reference",
        "group_trip/tasks.jsonl.gz",
        "group_trip/jury.yaml",
        _read_trip_findings,
    ),
    "rubric": DemoExample(
        "60 texts under rubrics whose criteria depend on each other",
        "rubric/tasks.jsonl.gz",
        "rubric/read.yaml",
        _read_rubric_findings,
    ),
}
