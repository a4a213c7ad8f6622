"""`jurygraph annotate`: have a model annotate rubric graphs, and write them to a file that a person can edit."""

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.jury_loading import find_config, open_jury
from jurygraph.cli.options import AsJson, ConfigFile, DryRun, EdgesFrom, MaxCalls, MaxCost, ModelName, TasksFile
from jurygraph.cli.render.annotation import AnnotationEstimate, print_forecast, print_graphs, print_missing
from jurygraph.cli.render.text import print_message, shell_quote
from jurygraph.cli.stdout_redirect import redirect_stdout_to_stderr
from jurygraph.cli.task_requests import TaskOutcome, run_each

if TYPE_CHECKING:
    from jurygraph.jury import Jury
    from jurygraph.schema import Rubric, Task
    from jurygraph.sources.task_lines import TaskLines


DomainOption = Annotated[
    str | None,
    typer.Option(metavar="D", help="generic, medical, writing, legal, or a text file.", show_default=False),
]
VotesOption = Annotated[
    int | None, typer.Option(min=1, max=15, metavar="K", help="Samples of each answer.", show_default=False)
]


def annotate(
    tasks: TasksFile,
    file: Annotated[str, typer.Option("-o", "--out", metavar="F", help="Where to write.", show_default=False)],
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
    """Have the model find which criteria license which (GEAR).

    TASKS is written anew with these graphs of its rubrics. The model sees the query and the rubric, never a response.
    Each criterion gets a role; pairs that can bear an edge by their roles are asked about, twelve to a request; what is
    malformed, against the roles, or closes a cycle is rejected, and stands in F with the reason. A criterion's `role`
    and an edge that TASKS states itself stay. Change in F what you like, and score F itself, or give it to `jurygraph
    score --edges-from`.

    Where F, or the file of --edges-from, has a graph of a task already, that stays: asked about is just what changed
    since. The same command again asks for nothing. Where TASKS changed, name another F, and the old one with
    --edges-from; to have everything asked anew, another F alone.

    Exit codes: 0 done; 1 done, but some tasks, criteria or pairs have no answer; 2 wrong config or input; 3 the model
    could not be reached; 4 a budget is reached; 130 interrupted. With any but 0 and 1 nothing is written, and what was
    answered is in the cache.

    \b
    Example:
        jurygraph annotate tasks.jsonl --config jury.yaml --domain writing --votes 3 --out graphs.jsonl
        jurygraph score tasks.jsonl --config jury.yaml --edges-from graphs.jsonl --out run
    """
    from jurygraph.cli.output_files import refuse_source, refuse_unwritable
    from jurygraph.runs.reports.bill import count_requests

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
            raise InputError("--out -: graphs are written to a file, from which the next command reads them; name it")
        self._jury, self._planner, self._lines, self._file = jury, Planner(jury), lines, file
        self._initial_identity = _file_identity(file)
        self._existing_graphs = _read_existing_graphs(lines, edges_from, file)

    def write(self) -> "list[TaskOutcome[Rubric]]":
        """Annotate every rubric and write every line of TASKS, with its graph if there is one; return all outcomes."""
        from jurygraph.cli.output_files import compress_lines, write_output
        from jurygraph.sources.reviewed_graphs import annotate_line

        outcomes = run_each(self._jury, self._lines, self._annotate_task, "annotating")
        self._refuse_changed()
        self._refuse_left_out(outcomes)
        graphs = {one.task.id: one.result for one in outcomes if one.result is not None}
        lines = (annotate_line(raw, graphs[name]) if name in graphs else raw for name, raw in self._lines.raw())
        write_output(self._file, compress_lines(self._file, (line + b"\n" for line in lines)))
        return outcomes

    async def _annotate_task(self, task: "Task") -> "Rubric | None":
        return await self._planner.aannotate(task, self._existing_graphs.get(task.id))

    def estimate_requests(self) -> AnnotationEstimate:
        """Estimate the requests that do not depend on earlier replies, without sending any."""
        import asyncio

        from jurygraph.runs.reports.estimate import Estimator

        gateway, waiting = self._jury.gateway, 0
        assert gateway is not None, "it was refused before"
        estimator = Estimator(gateway)
        with asyncio.Runner() as runner:
            for _, task in self._lines.tasks():
                _, requests = runner.run(self._planner.aestimate_annotation(task, self._existing_graphs.get(task.id)))
                estimator.add(requests)
                waiting += any(request.prompt == "graph-roles" for request in requests)
            runner.run(gateway.close())
        return AnnotationEstimate(len(self._lines), waiting, estimator.estimate())

    def _refuse_left_out(self, outcomes: "list[TaskOutcome[Rubric]]") -> None:
        """Raise InputError if a task was omitted and the file existed before: it may hold a graph of that task."""
        from jurygraph.errors import InputError

        omitted = next((one for one in outcomes if one.omitted_because is not None), None)
        if self._initial_identity is not None and omitted is not None:
            problem = f"line {omitted.line} is left out: {omitted.omitted_because}"
            raise InputError(f"{self._file}: nothing was written over it, for {problem}")

    def _refuse_changed(self) -> None:
        """Raise InputError if the file changed while the model was running."""
        from jurygraph.errors import InputError

        if _file_identity(self._file) != self._initial_identity:
            advice = "nothing was written over it, and the same command goes on with what the cache has"
            raise InputError(f"{self._file}: was changed while the model was asked; {advice}")


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
    from jurygraph.errors import ConfigError
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
        raise ConfigError("model: none annotates nothing; name a model in the config or with --model")
    return jury


def _open_tasks_with_rubrics(tasks: str) -> "TaskLines":
    """Open the lines of TASKS whose task has a rubric. Raises InputError if there is none."""
    from jurygraph.errors import InputError
    from jurygraph.sources.task_lines import TaskLines

    lines = TaskLines(tasks, lambda task: task.rubric is not None)
    if not len(lines):
        lines.close()
        raise InputError(f"{lines.name}: no task has a `rubric`, so there is nothing to annotate; give them criteria")
    return lines


def _read_existing_graphs(lines: "TaskLines", edges_from: str | None, file: str) -> "dict[str, Rubric]":
    """Return the rubrics that already have a graph, by task id: from --edges-from, or from an earlier run.

    Raises InputError if the output file exists and --edges-from names another file, or if a graph does not match TASKS.
    """
    from jurygraph.errors import InputError
    from jurygraph.sources.reviewed_graphs import EdgesFile

    earlier = file if os.path.isfile(file) and os.path.getsize(file) else None
    if edges_from is None and earlier is None:
        return {}
    with closing(EdgesFile(edges_from or file)) as graphs:
        graphs.check(lambda name: name in lines.ids, lambda: lines.ids)
        if earlier is not None and (edges_from is None or os.path.samefile(edges_from, earlier)):
            graphs.check_unchanged(lines.raw())
            print_message(f"{file} is there already: its graphs stay, and what changed since is asked about")
        elif earlier is not None:
            raise InputError(f"{file}: is there already, and --edges-from names another file; name a new one to write")
        return {name: rubric for name in lines.ids if (rubric := graphs.rubric(name)) is not None}


def _file_identity(file: str) -> tuple[int, int, int] | None:
    """Return inode, size and modification time of a file, to detect changes; None if there is no file."""
    try:
        status = os.stat(file)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
