"""`jurygraph migrate`: convert a run of an older schema version."""

from typing import Annotated

import typer

from jurygraph.cli.options import AsJson, NewRun, RunFolder
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.text import escape_line, print_json, print_result


def migrate(
    run: RunFolder,
    tasks: Annotated[str, typer.Argument(metavar="TASKS", help="Tasks file that was scored.", show_default=False)],
    new: NewRun,
    responses: Annotated[
        str | None, typer.Option(metavar="F", help="Responses file that was scored, if any.", show_default=False)
    ] = None,
    json: AsJson = False,
) -> None:
    """Migrate a run of schema version 1 to a new folder.

    Such a run is a folder of JSONL files. Its rewards stay the same, bit for bit; no request is sent. It has neither
    tasks nor responses, so the files that were scored are needed again.

    \b
    Example:
        jurygraph migrate run tasks.jsonl --out new-run
    """
    from jurygraph.runs.workflows.migration import migrate as migrate_run
    from jurygraph.sources import read_work

    with (
        read_work(tasks, responses, allow_files_outside=True) as work,
        progress("migrating", work.extent()[1], "responses") as report,
    ):
        traces = migrate_run(run, new, work, report)
    if json:
        print_json({"run": str(new), "traces": traces})
        return
    print_result(escape_line(f"{run} was migrated to {new}: {traces} traces"))
