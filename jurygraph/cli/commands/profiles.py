"""`jurygraph profiles`: have a model read profiles in text as constraints, in a file that a person can edit."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.jury_loading import find_config, open_jury
from jurygraph.cli.options import AsJson, ConfigFile, ModelName, TasksFile, option
from jurygraph.cli.output_files import refuse_unwritable, write_output
from jurygraph.cli.render.text import escape_line, format_table, print_message, shell_quote
from jurygraph.cli.streams import redirect_stdout_to_stderr
from jurygraph.cli.task_requests import run_each
from jurygraph.display import format_number
from jurygraph.schema import Task
from jurygraph.schema.task import Profiles, is_text_only
from jurygraph.sources.profiles import profiles_line
from jurygraph.sources.tasks import TaskLines


def profiles(
    tasks: TasksFile,
    file: Annotated[str, option("PROFILES", "Output file.", "-o", "--out")],
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

    refuse_unwritable(file, tasks)
    with (
        redirect_stdout_to_stderr(),
        open_jury(config or find_config(tasks), model) as jury,
        TaskLines(tasks, lambda task: any(map(is_text_only, task.stakeholders)), jury.config.task_defaults) as lines,
    ):
        results = run_each(jury, lines, Planner(jury).aread_profiles, "reading profiles")
    write_output(file, [profiles_line(task, result) for task, result in results.found])
    entries = [
        {"task": task.id, **result.model_dump(mode="json"), "dropped": result.dropped} for task, result in results.found
    ]
    results.print_report(json, {"profiles_file": file, "profiles": entries}, _profile_lines(results.found))
    if not results.found and not results.omitted:
        print_message("no stakeholder has only a profile in text: there was nothing to read")
    elif tasks != "-":
        print_message(f"next: jurygraph score {shell_quote(tasks)} --profiles-from {shell_quote(file)} --out run")
    raise typer.Exit(ExitCode.SOME_FAILED if results.omitted else ExitCode.DONE)


def _profile_lines(found: Sequence[tuple[Task, Profiles]]) -> Iterator[str]:
    """Return a table of the constraints, and lines on tensions and on constraints that were dropped."""
    rows = [
        [task.id, profile.id, f"{one.id}: {one.text}", one.quote, one.kind, one.restrictiveness]
        for task, result in found
        for profile in result.stakeholders
        for one in profile.constraints
    ]
    if rows:
        yield from format_table(["task", "stakeholder", "constraint", "quote", "kind", "α"], rows, left=5)
    for task, result in found:
        for tension in result.tensions:
            between = " and ".join(tension.between)
            strength = format_number(tension.strength)
            yield escape_line(f"{task.id}: tension between {between}: {strength}, {tension.reason}", 300)
        yield from (escape_line(f"{task.id}: dropped of {why}", 300) for why in result.dropped)
