"""`jurygraph profiles`: have a model read profiles in text as constraints, in a file that a person can edit."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jurygraph.cli.boundary import Exit
from jurygraph.cli.by_task import Found, ask_each, left_out, tell_left_out
from jurygraph.cli.opening import found_config, open_jury
from jurygraph.cli.options import AsJson, ConfigFile, ModelName, TasksFile
from jurygraph.cli.printing import kept_off_stdout
from jurygraph.cli.text import number, out, out_json, say, table, visible, word

if TYPE_CHECKING:
    from jurygraph.runs.figures.bill import Tally
    from jurygraph.schema.profile import Profiles


def profiles(
    tasks: TasksFile,
    file: Annotated[str, typer.Option("-o", "--out", metavar="PROFILES", help="Where to write.", show_default=False)],
    config: ConfigFile = None,
    model: ModelName = None,
    json: AsJson = False,
) -> None:
    """Have the model read profiles in text as constraints.

    These, and the tensions between them, are written down, a task a line. Read are the profiles of stakeholders for
    whom TASKS states no constraints. Each constraint rests on words of the profile, which stand beside it as `quote`;
    what a model says without such words is dropped, and told. Change in PROFILES what you like, and give it to
    `jurygraph score --profiles-from`. A task of which a profile cannot be read is left out and named. The same command
    again asks for nothing that the cache has.

    Exit codes: 0 done; 1 done, but some tasks are left out; 2 wrong config or input; 3 the model could not be reached;
    4 a budget is reached; 130 interrupted. With any but 0 and 1 nothing is written.

    \b
    Example:
        jurygraph profiles tasks.jsonl --config jury.yaml --out profiles.jsonl
        jurygraph score tasks.jsonl --config jury.yaml --profiles-from profiles.jsonl --out run
    """
    from jurygraph.cli.delivery import deliver, refuse_source
    from jurygraph.runs.figures.bill import requests
    from jurygraph.schema.profile import in_text_alone
    from jurygraph.sources.profiles import profiles_line
    from jurygraph.sources.task_lines import TaskLines

    refuse_source(file, tasks)
    with kept_off_stdout(), open_jury(config or found_config(tasks), model) as jury:
        with TaskLines(tasks, lambda task: any(map(in_text_alone, task.stakeholders))) as lines:
            outcomes = ask_each(jury, lines, jury.aread, "reading profiles")
        tally = requests(jury)
    deliver(file, [profiles_line(one.task, one.found) for one in outcomes if one.found is not None])
    if json:
        out_json(_profiles_json(file, outcomes, tally))
    else:
        _print_profiles(outcomes, tally)
    omitted = tell_left_out(outcomes)
    if not outcomes:
        say("no profile of TASKS is in text alone: there was nothing to read")
    elif tasks != "-":
        say(f"next: jurygraph score {word(tasks)} --profiles-from {word(file)} --out run")
    raise typer.Exit(Exit.SOME_FAILED if omitted else Exit.DONE)


def _profiles_json(file: str, outcomes: "list[Found[Profiles]]", tally: "Tally | None") -> dict[str, Any]:
    """Return all profiles and omitted tasks as JSON."""
    profiles = [
        {"task": one.task.id, **one.found.model_dump(mode="json"), "dropped": one.found.dropped}
        for one in outcomes
        if one.found is not None
    ]
    requests = None if tally is None else tally.plain()
    return {"profiles_file": file, "profiles": profiles, "left_out": left_out(outcomes), "requests": requests}


def _print_profiles(outcomes: "list[Found[Profiles]]", tally: "Tally | None") -> None:
    from jurygraph.cli.outcome import request_lines

    rows = [row for one in outcomes for row in _constraint_rows(one)]
    for line in table(["task", "stakeholder", "constraint", "rests on", "kind", "α"], rows, left=5) if rows else ():
        out(line)
    for line in (*(line for one in outcomes for line in _tension_lines(one)), *request_lines(tally)):
        out(line)


def _constraint_rows(outcome: "Found[Profiles]") -> Iterator[list[str]]:
    for profile in outcome.found.stakeholders if outcome.found else ():
        for constraint in profile.constraints:
            cells = [
                f"{constraint.id}: {constraint.text}",
                constraint.quote,
                constraint.kind,
                number(constraint.restrictiveness),
            ]
            yield [outcome.task.id, profile.id, *cells]


def _tension_lines(outcome: "Found[Profiles]") -> Iterator[str]:
    """Return lines on tensions, and on constraints that were dropped."""
    if outcome.found is not None:
        for tension in outcome.found.tensions:
            between = " and ".join(tension.between)
            strength = number(tension.strength)
            yield visible(f"{outcome.task.id}: tension between {between}: {strength}, {tension.reason}", 300)
        yield from (visible(f"{outcome.task.id}: dropped of {why}", 300) for why in outcome.found.dropped)
