"""Score a file of tasks in several shards at once, and merge them: `score --processes` and `score --engine ray`.

Everything that can be lost is in the shards' own runs, below `RUN.shards`: this command starts their commands, counts
what they have recorded, and merges them once all are complete. Stopped at any step, the same command goes on.
"""

import json
import shutil
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jurygraph.cli.render.text import print_message, progress
from jurygraph.cli.scoring import (
    ScoredWork,
    ScoreOptions,
    open_scoring_jury,
    resolve_folder_name,
    score_tasks,
)
from jurygraph.cli.shard_engines import LocalShardEngine, RayShardEngine, ShardCommand
from jurygraph.cli.streams import ExitCode
from jurygraph.errors import InputError

if TYPE_CHECKING:
    from jurygraph.jury import Jury
    from jurygraph.runs.reports.bill import CallCosts

_POLL_SECONDS = 0.5
_EXIT_CODES_BY_GRAVITY = (
    ExitCode.INTEGRITY_ERROR,
    ExitCode.INTERNAL_ERROR,
    ExitCode.WRONG_INPUT,
    ExitCode.BUDGET_EXCEEDED,
    ExitCode.INCONCLUSIVE,
)


def find_shards_folder(run: Path) -> Path:
    """Return the folder of the shards of a run, until they are merged."""
    run = resolve_folder_name(run)
    return run.with_name(f"{run.name}.shards")


def refuse_begun_shards(options: ScoreOptions) -> None:
    """Raise `InputError` where shards of the run were scored that one process would score again."""
    from jurygraph.runs.store.folder import LEDGER_FILE

    folder = find_shards_folder(options.run)
    if folder.is_dir() and not (options.run / LEDGER_FILE).exists():
        raise InputError(
            f"{folder}: has shards of {options.run}, which are not complete; "
            "go on with --processes, or remove that folder"
        )


def score_in_shards(options: ScoreOptions) -> ScoredWork:
    """Score all tasks in shards, and merge them into the run, unless that is done.

    Raises `InputError` where a folder has something else, and `typer.Exit` where a shard is not complete: its messages
    are printed, and the same command goes on.
    """
    from jurygraph.runs.run import Run
    from jurygraph.runs.store.folder import LOCK_FILE, acquire_lock, create_folder
    from jurygraph.runs.workflows.merging import merge_shards
    from jurygraph.runs.workflows.totals import summarize_run
    from jurygraph.runs.writable_run import refuse_existing_run

    _refuse_unshardable_options(options)
    folder = find_shards_folder(options.run)
    merged_run = Run.open_if_closed(options.run)
    if merged_run is not None:
        with merged_run:
            origins = map(merged_run.folder_of_origin, merged_run.header.merged)
            has_these_shards = {origin.parent for origin in origins} == {folder.resolve()}
        if has_these_shards and folder.is_dir():  # the command was killed before it removed them
            shutil.rmtree(folder)
        return score_tasks(options)
    refuse_existing_run(options.run)
    engine, number = _open_shard_engine(options, _read_begun_shard_count(folder))
    shards = _Shards(options, folder, number)
    create_folder(folder)
    with closing(acquire_lock(folder / LOCK_FILE)):
        jury = shards.score(engine)
        merge_progress = partial(progress, "merging", what="responses")
        merge_shards([command.run for command in shards.commands], options.run, merge_progress)
        requests = shards.requests()
        with Run.open(options.run) as run:
            summary = summarize_run(jury, run)
        shutil.rmtree(folder)
    return ScoredWork(jury, summary, requests, run.header.extent.tasks)


def _refuse_unshardable_options(options: ScoreOptions) -> None:
    for option, value in (("--limit", options.limit), ("--shard", options.shard)):
        if value is not None:
            raise InputError(
                f"{option}: cannot be used with --processes or --engine, which score all tasks; "
                "leave it out"
            )
    for option, path in (("TASKS", options.tasks), ("--responses", options.responses)):
        if path == "-":
            raise InputError(f"{option}: each shard reads it, so name a file, not standard input")


def _read_begun_shard_count(folder: Path) -> int | None:
    """Return into how many shards the tasks were divided, if a shard was begun."""
    from jurygraph.runs.run import Run
    from jurygraph.runs.store.folder import list_run_folders

    for member in list_run_folders(folder):
        run = Run.open_if_begun(member)
        if run is not None:
            with run:
                return None if run.header.shard is None else run.header.shard.of
    return None


def _open_shard_engine(
    options: ScoreOptions, begun_shard_count: int | None
) -> tuple[LocalShardEngine | RayShardEngine, int]:
    """Return what runs the shards, and their number."""
    number = options.processes or options.shards or begun_shard_count
    if begun_shard_count not in (None, number):
        folder = find_shards_folder(options.run)
        raise InputError(
            f"{folder}: was begun with {begun_shard_count} shards; "
            f"go on with {begun_shard_count}, or remove that folder"
        )
    if options.engine == "ray":
        has_request_limits = options.max_cost is not None or options.max_calls is not None
        ray_cluster = RayShardEngine(options.address, has_request_limits)
        return ray_cluster, number or ray_cluster.core_count
    assert number is not None, "processes are counted by an option"
    return LocalShardEngine(), number


class _Shards:
    """The shards of a run, each in the folder of its number."""

    def __init__(self, options: ScoreOptions, folder: Path, number: int) -> None:
        from jurygraph.sources import Shard

        self._options = options
        self._folder = folder
        self._calls = 0
        self.commands: list[ShardCommand] = []
        for index in range(1, number + 1):
            shard = Shard(index=index, of=number)
            run = folder / str(index)
            unsharded_options = replace(
                options, processes=None, engine=None, address=None, shards=None
            )
            arguments = replace(unsharded_options, shard=shard, run=run).arguments
            self.commands.append(ShardCommand(str(shard), run, ["score", *arguments, "--json"]))

    def score(self, engine: LocalShardEngine | RayShardEngine) -> "Jury":
        """Run all commands to their ends; return their jury, which is opened meanwhile."""
        with closing(engine):
            try:
                engine.start(self.commands)
                with open_scoring_jury(self._options) as jury:
                    codes = self._show_progress(engine)
            except KeyboardInterrupt:
                engine.interrupt()
                print_message(
                    f"interrupted; finished tasks are kept in {self._folder}. Run the same "
                    "command again to continue"
                )
                raise typer.Exit(ExitCode.INTERRUPTED) from None
        self._require_complete_shards(codes)
        return jury

    def _show_progress(self, engine: LocalShardEngine | RayShardEngine) -> list[int | None]:
        """Show what is recorded, until all shards have ended; return their exit codes."""
        reported_response_count = 0
        with ExitStack() as stack:
            report = None
            while True:
                codes = engine.wait(_POLL_SECONDS)
                scored, total = self._count_scored_responses()
                if report is None and total:
                    label = f"scoring in {len(codes)} shards"
                    bar = progress(
                        label,
                        total,
                        "responses",
                        lambda: f"{self._calls} requests" if self._calls else "",
                    )
                    report = stack.enter_context(bar)
                if report is not None:
                    report(scored - reported_response_count)
                    reported_response_count = scored
                if None not in codes:
                    return codes

    def _count_scored_responses(self) -> tuple[int, int]:
        """Return how many responses are scored, and how many the file has: 0 until a shard has counted them."""
        from jurygraph.runs.run import Run

        scored = self._calls = total = 0
        for command in self.commands:
            run = Run.open_if_begun(command.run)
            if run is not None:
                with run:
                    scored += run.ledger.count_records("trace")
                    self._calls += run.ledger.count_records("call")
                    total = run.header.header_of_all_shards().extent.responses
        return scored, total

    def _require_complete_shards(self, codes: Sequence[int | None]) -> None:
        """Raise `typer.Exit` with the gravest exit code unless all shards are complete; print their last messages."""
        from jurygraph.runs.run import Run

        failure_exit_codes = []
        for command, code in zip(self.commands, codes, strict=True):
            run = Run.open_if_closed(command.run)
            if run is not None:
                run.close()
                continue
            assert code is not None, "it has ended"
            failure_exit_codes.append(code)
            shard_ending_text = f"was ended by signal {-code}" if code < 0 else command.last_message
            print_message(f"shard {command.shard}: {shard_ending_text}")
        if failure_exit_codes:
            print_message(
                f"{len(failure_exit_codes)} of {len(codes)} shards are not complete; "
                f"what was scored is kept in {self._folder}; "
                "run the same command again to continue"
            )
            exit_codes_by_gravity = (
                code for code in _EXIT_CODES_BY_GRAVITY if code in failure_exit_codes
            )
            raise typer.Exit(next(exit_codes_by_gravity, ExitCode.INCONCLUSIVE))

    def requests(self) -> "CallCosts | None":
        """Return the requests that the shards have sent, as they report them."""
        from jurygraph.runs.reports.bill import CallCosts

        total = None
        for command in self.commands:
            text = command.output.read_text()
            requests_json = json.loads(text)["requests"] if text else None
            if requests_json is not None:
                total = total or CallCosts()
                total.number += requests_json["number"]
                total.unpriced += requests_json["unpriced"]
                total.cost += requests_json["cost"] or 0.0
        return total
