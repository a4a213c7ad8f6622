"""`jurygraph plan`: make the plans of tasks before there are responses."""

from pathlib import Path
from typing import Annotated

from jurygraph.cli.interrupts import exit_on_interrupt, open_runner, run_interruptible
from jurygraph.cli.jury_loading import collect_jury_notes, find_config, open_jury
from jurygraph.cli.options import (
    AllowFilesOutsideOption,
    ConfigFileOption,
    GroupByOption,
    JsonOption,
    MaxCallsOption,
    MaxCostOption,
    ModelNameOption,
    ResponseStartOption,
    argument,
    build_table_columns,
    option,
)
from jurygraph.cli.output_files import refuse_unwritable
from jurygraph.cli.render.summary import format_request_lines
from jurygraph.cli.render.text import print_messages, print_report, progress
from jurygraph.cli.streams import redirect_stdout_to_stderr
from jurygraph.errors import InputError


def plan(
    tasks: Annotated[
        str, argument("TASKS", "JSONL file of tasks or chats, .gz too; they need no responses.")
    ],
    out: Annotated[str, option("PLANS", "File of plans to write.", "-o", "--out")],
    group_by: GroupByOption = None,
    response_from: ResponseStartOption = None,
    config: ConfigFileOption = None,
    model: ModelNameOption = None,
    max_cost: MaxCostOption = None,
    max_calls: MaxCallsOption = None,
    allow_files_outside: AllowFilesOutsideOption = False,
    json: JsonOption = False,
) -> None:
    """Plan tasks before there are responses, for `serve --tasks`.

    Chats become the tasks that `score` makes of them with the same --group-by and --response-from.

    The plans are in the order of TASKS, and PLANS is written whole or not at all. A training then sends the ids of its
    tasks alone, and no task can be planned differently halfway. Where a plan needs the model (profiles in text, graphs
    of rubrics), its replies are cached: the same command after an interruption sends only the rest.

    Exit codes: 0 done; 2 invalid config or input; 3 the model gave no answer; 4 --max-cost or --max-calls reached; 130
    interrupted. Nothing is written unless all tasks are planned.

    \b
    Example:
        jurygraph plan tasks.jsonl --config jury.yaml --out plans.jsonl
        jurygraph serve --config jury.yaml --tasks plans.jsonl
    """
    if out.endswith(".gz"):
        raise InputError(f"{out}: plans are read line by line; name a file without .gz")
    refuse_unwritable(out, *([] if tasks == "-" else [tasks]))
    columns = build_table_columns(tasks, group_by=group_by, response_from=response_from)
    path = config or find_config(tasks)
    with (
        redirect_stdout_to_stderr(),
        open_jury(path, model, max_cost=max_cost, max_calls=max_calls) as jury,
    ):
        from jurygraph.runs.reports.bill import count_requests
        from jurygraph.runs.workflows.plans_file import write_plans
        from jurygraph.sources.task_tables import folder_of_tasks_file
        from jurygraph.sources.tasks import TaskLinesFile

        folder = None if allow_files_outside else folder_of_tasks_file(tasks)
        print_messages(collect_jury_notes(jury))
        with (
            TaskLinesFile(
                tasks, defaults=jury.config.task_defaults, folder=folder, columns=columns
            ) as lines,
            open_runner() as runner,
            progress("planning", len(lines), "tasks") as report,
        ):
            name = Path(tasks).name
            written_plans = write_plans(jury, lines, name, Path(out), report)
            with exit_on_interrupt("interrupted; nothing was written"):
                lacking = run_interruptible(runner, written_plans, jury.context.threads)
        print_messages(lacking.describe())
        requests = count_requests(jury)
    content = {"plans": out, "tasks": len(lines), "requests": requests and requests.to_json()}
    print_report(
        json, content, [f"wrote {len(lines)} plans to {out}", *format_request_lines(requests)]
    )
