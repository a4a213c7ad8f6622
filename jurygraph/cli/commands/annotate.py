"""`jurygraph annotate`: have a model annotate rubric graphs, and write them to a file that a person can edit."""

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.jury_loading import find_config, open_jury
from jurygraph.cli.options import AsJson, ConfigFile, DryRun, EdgesFrom, MaxCalls, MaxCost, ModelName, TasksFile
from jurygraph.cli.output_files import compress_lines, refuse_source, refuse_unwritable, write_output
from jurygraph.cli.render.annotation import AnnotationEstimate, print_forecast, print_graphs, print_missing
from jurygraph.cli.render.text import print_message, shell_quote
from jurygraph.cli.stdout_redirect import redirect_stdout_to_stderr
from jurygraph.cli.task_requests import TaskOutcome, run_each
from jurygraph.errors import ConfigError, InputError

if TYPE_CHECKING:
    from jurygraph.jury import Jury
    from jurygraph.schema import Rubric, Task
    from jurygraph.sources.tasks import TaskLines


DomainOption = Annotated[
    str | None,
    typer.Option(metavar="D", help="generic, medical, writing, legal, or a text file.", show_default=False),
]
VotesOption = Annotated[
    int | None, typer.Option(min=1, max=15, metavar="K", help="Samples of each answer.", show_default=False)
]


def annotate(
    tasks: TasksFile,
    file: Annotated[str, typer.Option("-o", "--out", metavar="F", help="Output file.", show_default=False)],
    config: ConfigFile = None,
    model: ModelName = None,
    edges_from: EdgesFrom = None,
    domain: DomainOption = None,
    votes: VotesOption = None,
    dry_run: DryRun = False,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    json: AsJson = False,
) -> None:
    """Annotate which criteria depend on which (GEAR), with a model.

    F gets a copy of TASKS with the annotated graphs. The model sees the query and the rubric, never a response. Each
    criterion gets a role; pairs whose roles allow an edge are sent to the model, twelve per request. Edges that are
    invalid, contradict the roles or close a cycle are rejected, and recorded in F with the reason. Roles and edges
    given in TASKS are kept. Edit F as you like, and score F itself or pass it to `jurygraph score --edges-from`.

    Graphs that F, or the file of --edges-from, already has are kept, and only changes since are sent to the model;
    running the same command again sends nothing. If TASKS changed, choose another F and pass the old one with
    --edges-from; to annotate everything again, choose another F without --edges-from.

    Exit codes: 0 done; 1 done, but some tasks, criteria or pairs have no answer; 2 invalid config or input; 3 the model
    could not be reached; 4 budget reached; 130 interrupted. Except with 0 and 1 nothing is written, and replies are
    kept in the cache.

    \b
    Example:
        jurygraph annotate tasks.jsonl --config jury.yaml --domain writing --votes 3 --out graphs.jsonl
        jurygraph score tasks.jsonl --config jury.yaml --edges-from graphs.jsonl --out run
    """
    from jurygraph.runs.reports.estimate import count_requests

    refuse_source(file, tasks)
    refuse_unwritable(file)
    overrides = {name: value for name, value in (("domain", domain), ("votes", votes)) if value is not None}
    with (
        redirect_stdout_to_stderr(),
        _open_jury(config, tasks, model, dry_run, overrides, max_cost, max_calls) as jury,
        _open_tasks_with_rubrics(tasks) as lines,
    ):
        command = _AnnotateCommand(jury, lines, file, edges_from)
        forecast = command.estimate_requests() if dry_run else None
        outcomes = [] if dry_run else command.write()
        tally = count_requests(jury)
    if forecast is not None:
        print_forecast(forecast, json)
        return
    print_graphs(outcomes, file, tally, json)
    if tasks != "-":
        print_message(f"next: jurygraph score {shell_quote(tasks)} --edges-from {shell_quote(file)} --out run")
    raise typer.Exit(ExitCode.SOME_FAILED if print_missing(outcomes) else ExitCode.DONE)


class _AnnotateCommand:
    """The annotation of all rubrics in TASKS by a jury, written to a file."""

    def __init__(self, jury: "Jury", lines: "TaskLines", file: str, edges_from: str | None) -> None:
        from jurygraph.errors import InputError
        from jurygraph.planner import Planner

        if file == "-":
            raise InputError("--out -: expected a file, because the next command reads the graphs from it; name one")
        self._jury, self._planner, self._lines, self._file = jury, Planner(jury), lines, file
        self._initial_identity = _file_identity(file)
        self._existing_graphs = _read_existing_graphs(lines, edges_from, file)

    def write(self) -> "list[TaskOutcome[Rubric]]":
        """Annotate every rubric and write every line of TASKS, with its graph if there is one; return all outcomes."""
        from jurygraph.sources.reviewed_graphs import annotate_line

        outcomes = run_each(self._jury, self._lines, self._annotate_task, "annotating")
        self._refuse_changed()
        self._refuse_omitted(outcomes)
        graphs = {one.task.id: one.result for one in outcomes if one.result is not None}
        lines = (annotate_line(raw, graphs[name]) if name in graphs else raw for name, raw in self._lines.raw_lines())
        write_output(self._file, compress_lines(self._file, (line + b"\n" for line in lines)))
        return outcomes

    async def _annotate_task(self, task: "Task") -> "Rubric | None":
        return await self._planner.aannotate(task, self._existing_graphs.get(task.id))

    def estimate_requests(self) -> AnnotationEstimate:
        """Estimate the requests that do not depend on earlier replies, without sending any."""
        import asyncio

        from jurygraph.runs.reports.estimate import Estimator

        gateway, waiting = self._jury.gateway, 0
        assert gateway is not None, "_open_jury raises ConfigError without a model"
        estimator = Estimator(gateway)
        with asyncio.Runner() as runner:
            for _, task in self._lines.tasks():
                _, requests = runner.run(self._planner.aestimate_annotation(task, self._existing_graphs.get(task.id)))
                estimator.add(requests)
                waiting += any(request.prompt == "graph-roles" for request in requests)
            runner.run(gateway.close())
        return AnnotationEstimate(len(self._lines), waiting, estimator.estimate())

    def _refuse_omitted(self, outcomes: "list[TaskOutcome[Rubric]]") -> None:
        """Raise InputError if a task was omitted and the file existed before: it may hold a graph of that task."""
        omitted = next((one for one in outcomes if one.omitted_because is not None), None)
        if self._initial_identity is not None and omitted is not None:
            problem = f"line {omitted.line} was omitted: {omitted.omitted_because}"
            raise InputError(f"{self._file}: not overwritten, because {problem}")

    def _refuse_changed(self) -> None:
        """Raise InputError if the file changed while the model was running."""
        if _file_identity(self._file) != self._initial_identity:
            advice = "it was not overwritten; run the same command again: it continues from the cache"
            raise InputError(f"{self._file}: changed while the model was running; {advice}")


def _open_jury(
    config: Path | None,
    tasks: str,
    model: str | None,
    dry_run: bool,
    annotation: dict[str, Any],
    max_cost: float | None,
    max_calls: int | None,
) -> "Jury":
    """Return the jury of the config; without a config, a jury with only the model and the evaluator `criteria`.

    Raises ConfigError if there is neither a config nor a model, or if the model is none.
    """
    from jurygraph.agents.graph_annotator.domains import load_domain
    from jurygraph.jury import Jury
    from jurygraph.schema import AnnotationConfig, Config

    if "domain" in annotation:
        load_domain(annotation["domain"], "--domain")
    annotation_config = AnnotationConfig().model_copy(update=annotation)

    def with_overrides(loaded: Config) -> Config:
        return loaded.model_copy(
            update={"annotation": (loaded.annotation or annotation_config).model_copy(update=annotation)}
        )

    try:
        path = config or find_config(tasks)
    except ConfigError:
        if model is None:
            raise
        minimal = Config.model_validate({"model": model, "evaluators": ["criteria"], "annotation": annotation_config})
        jury = Jury(minimal, max_cost=max_cost, max_calls=max_calls)
    else:
        jury = open_jury(path, model, dry_run, with_overrides, max_cost=max_cost, max_calls=max_calls)
    if jury.gateway is None:
        jury.close()
        raise ConfigError("model: annotation needs a model; name one in the config or with --model")
    return jury


def _open_tasks_with_rubrics(tasks: str) -> "TaskLines":
    """Open the lines of TASKS whose task has a rubric. Raises InputError if there is none."""
    from jurygraph.errors import InputError
    from jurygraph.sources.tasks import TaskLines

    lines = TaskLines(tasks, lambda task: task.rubric is not None)
    if not len(lines):
        lines.close()
        raise InputError(f"{lines.name}: no task has a `rubric` to annotate; add criteria")
    return lines


def _read_existing_graphs(lines: "TaskLines", edges_from: str | None, file: str) -> "dict[str, Rubric]":
    """Return the rubrics that already have a graph, by task id: from --edges-from, or from an earlier run.

    Raises InputError if the output file exists and --edges-from names another file, or if a graph does not match TASKS.
    """
    from jurygraph.sources.reviewed_graphs import EdgesFile

    earlier = file if os.path.isfile(file) and os.path.getsize(file) else None
    if edges_from is None and earlier is None:
        return {}
    with closing(EdgesFile(edges_from or file)) as graphs:
        graphs.check(lambda name: name in lines.ids, lambda: lines.ids)
        if earlier is not None and (edges_from is None or os.path.samefile(edges_from, earlier)):
            graphs.check_unchanged(lines.raw_lines())
            print_message(f"{file} exists: its graphs are kept, and only changes are sent to the model")
        elif earlier is not None:
            raise InputError(f"{file}: exists, and --edges-from names another file; name a new output file")
        return {name: rubric for name in lines.ids if (rubric := graphs.rubric(name)) is not None}


def _file_identity(file: str) -> tuple[int, int, int] | None:
    """Return inode, size and modification time of a file, to detect changes; None if there is no file."""
    try:
        status = os.stat(file)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
