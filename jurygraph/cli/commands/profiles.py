"""`jurygraph profiles`: have a model read profiles in text as constraints, in a file that a person can edit."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.jury_loading import find_config, open_jury
from jurygraph.cli.options import AsJson, ConfigFile, ModelName, TasksFile
from jurygraph.cli.output_files import refuse_source, write_output
from jurygraph.cli.render.summary import request_lines
from jurygraph.cli.render.text import (
    escape_line,
    format_number,
    format_table,
    print_json,
    print_message,
    print_result_lines,
    shell_quote,
)
from jurygraph.cli.stdout_redirect import redirect_stdout_to_stderr
from jurygraph.cli.task_requests import TaskOutcome, omitted_tasks_json, print_omitted_tasks, run_each

if TYPE_CHECKING:
    from jurygraph.runs.reports.estimate import CallCosts
    from jurygraph.schema.profile import Profiles


def profiles(
    tasks: TasksFile,
    file: Annotated[str, typer.Option("-o", "--out", metavar="PROFILES", help="Output file.", show_default=False)],
    config: ConfigFile = None,
    model: ModelName = None,
    json: AsJson = False,
) -> None:
    """Read profiles in text as constraints, with a model.

    The constraints and the tensions between stakeholders are written to PROFILES, one task per line. Only profiles of
    stakeholders without constraints in TASKS are read. Each constraint has a `quote` from the profile; constraints
    without one are dropped and listed. Edit PROFILES as you like, and pass it to `jurygraph score --profiles-from`. A
    task with a profile that cannot be read is omitted and named. Running the same command again uses the cache.

    Exit codes: 0 done; 1 done, but some tasks were omitted; 2 invalid config or input; 3 the model could not be
    reached; 4 budget reached; 130 interrupted. Except with 0 and 1 nothing is written.

    \b
    Example:
        jurygraph profiles tasks.jsonl --config jury.yaml --out profiles.jsonl
        jurygraph score tasks.jsonl --config jury.yaml --profiles-from profiles.jsonl --out run
    """
    from jurygraph.planner import Planner
    from jurygraph.runs.reports.estimate import count_requests
    from jurygraph.schema.profile import is_text_only
    from jurygraph.sources.profiles import profiles_line
    from jurygraph.sources.tasks import TaskLines

    refuse_source(file, tasks)
    with redirect_stdout_to_stderr(), open_jury(config or find_config(tasks), model) as jury:
        with TaskLines(tasks, lambda task: any(map(is_text_only, task.stakeholders))) as lines:
            outcomes = run_each(jury, lines, Planner(jury).aread_profiles, "reading profiles")
        tally = count_requests(jury)
    write_output(file, [profiles_line(one.task, one.result) for one in outcomes if one.result is not None])
    if json:
        print_json(_profiles_json(file, outcomes, tally))
    else:
        _print_profiles(outcomes, tally)
    omitted = print_omitted_tasks(outcomes)
    if not outcomes:
        print_message("no stakeholder has only a profile in text: there was nothing to read")
    elif tasks != "-":
        print_message(f"next: jurygraph score {shell_quote(tasks)} --profiles-from {shell_quote(file)} --out run")
    raise typer.Exit(ExitCode.SOME_FAILED if omitted else ExitCode.DONE)


def _profiles_json(file: str, outcomes: "list[TaskOutcome[Profiles]]", tally: "CallCosts | None") -> dict[str, Any]:
    """Return all profiles and omitted tasks as JSON."""
    profiles = [
        {"task": one.task.id, **one.result.model_dump(mode="json"), "dropped": one.result.dropped}
        for one in outcomes
        if one.result is not None
    ]
    requests = None if tally is None else tally.to_json()
    return {"profiles_file": file, "profiles": profiles, "left_out": omitted_tasks_json(outcomes), "requests": requests}


def _print_profiles(outcomes: "list[TaskOutcome[Profiles]]", tally: "CallCosts | None") -> None:
    rows = [row for one in outcomes for row in _constraint_rows(one)]
    print_result_lines(
        format_table(["task", "stakeholder", "constraint", "quote", "kind", "α"], rows, left=5) if rows else ()
    )
    print_result_lines([*(line for one in outcomes for line in _tension_lines(one)), *request_lines(tally)])


def _constraint_rows(outcome: "TaskOutcome[Profiles]") -> Iterator[list[object]]:
    for profile in outcome.result.stakeholders if outcome.result else ():
        for constraint in profile.constraints:
            text = f"{constraint.id}: {constraint.text}"
            yield [outcome.task.id, profile.id, text, constraint.quote, constraint.kind, constraint.restrictiveness]


def _tension_lines(outcome: "TaskOutcome[Profiles]") -> Iterator[str]:
    """Return lines on tensions, and on constraints that were dropped."""
    if outcome.result is not None:
        for tension in outcome.result.tensions:
            between = " and ".join(tension.between)
            strength = format_number(tension.strength)
            yield escape_line(f"{outcome.task.id}: tension between {between}: {strength}, {tension.reason}", 300)
        yield from (escape_line(f"{outcome.task.id}: dropped of {why}", 300) for why in outcome.result.dropped)
