"""Score a file of tasks in several shards at once, and merge them: `score --processes` and `score --engine ray`.

Everything that can be lost is in the shards' own runs, below `RUN.shards`: this command starts their commands, counts
what they have recorded, and merges them once all are complete. Stopped at any step, the same command goes on.
"""

import json
import shutil
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from jurygraph.cli.render.text import print_message, progress
from jurygraph.cli.scoring import ScoredWork, ScoreOptions, open_scoring_jury, with_its_name
from jurygraph.cli.shard_engines import Engine, LocalProcesses, RayTasks, ShardCommand
from jurygraph.cli.streams import ExitCode
from jurygraph.errors import InputError

if TYPE_CHECKING:
    from jurygraph.jury import Jury
    from jurygraph.runs.reports.bill import CallCosts
    from jurygraph.runs.run import Run
    from jurygraph.runs.workflows.totals import RunTotals

_POLL_SECONDS = 0.5
_GRAVEST_FIRST = (
    ExitCode.INTEGRITY,
    ExitCode.BUG,
    ExitCode.WRONG_INPUT,
    ExitCode.BUDGET,
    ExitCode.INCONCLUSIVE,
)


def shards_folder(run: Path) -> Path:
    """Return the folder of the shards of a run, until they are merged."""
    run = with_its_name(run)
    return run.with_name(f"{run.name}.shards")


def refuse_begun_shards(options: ScoreOptions) -> None:
    """Raise `InputError` where shards of the run were scored that one process would score again."""
    from jurygraph.runs.store.folder import LEDGER

    folder = shards_folder(options.run)
    if folder.is_dir() and not (options.run / LEDGER).exists():
        hint = "go on with --processes, or remove that folder"
        raise InputError(f"{folder}: has shards of {options.run}, which are not complete; {hint}")


def score_in_shards(options: ScoreOptions) -> ScoredWork:
    """Score all tasks in shards, and merge them into the run.

    Raises `InputError` where the folder of shards has something else, and `typer.Exit` where a shard is not complete:
    its messages are printed, and the same command goes on.
    """
    from jurygraph.runs.store.folder import LOCK, acquire_lock, create_folder

    folder = shards_folder(options.run)
    number = _begun_number(folder)
    if number is not None and options.shard_count not in (None, number):
        hint = f"go on with {number}, or remove that folder"
        raise InputError(f"{folder}: was begun with {number} shards; {hint}")
    engine: Engine = LocalProcesses()
    if options.engine == "ray":
        has_limits = options.max_cost is not None or options.max_calls is not None
        engine = ray = RayTasks(options.address, has_limits)
        number = number or options.shard_count or ray.cores
    number = number or options.shard_count
    assert number is not None, "processes are counted by an option"
    shards = _Shards(options, folder, number)
    create_folder(folder)
    with closing(acquire_lock(folder / LOCK)):
        jury, codes = _run(engine, shards, options)
        shards.require_complete(codes)
        shards.merge()
        requests = shards.requests()
        totals, task_count = _read_totals(options.run, jury)
        shutil.rmtree(folder)
    return ScoredWork(jury, totals, requests, task_count)


def _run(
    engine: Engine, shards: "_Shards", options: ScoreOptions
) -> "tuple[Jury, Mapping[int, int]]":
    """Run the commands of all shards to their ends; return their jury, which is opened meanwhile, and exit codes."""
    try:
        engine.start(shards.commands())
        with open_scoring_jury(options) as jury:
            shards.watch(engine)
        return jury, engine.codes()
    except KeyboardInterrupt:
        engine.interrupt()
        kept = f"finished tasks are kept in {shards.folder}. Run the same command again to continue"
        print_message(f"interrupted; {kept}")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    finally:
        engine.close()


def _read_totals(folder: Path, jury: "Jury") -> "tuple[RunTotals, int]":
    """Return the totals of a merged run, and the number of its tasks; the files of tasks are not read again."""
    from jurygraph.runs.run import Run
    from jurygraph.runs.workflows.totals import RunTotals

    numbers = count()
    with Run.open(folder) as run:
        # groups are read in the order of the tasks
        return RunTotals(jury, lambda task: next(numbers), run), run.header.extent.tasks


def _refuse_unshardable(options: ScoreOptions) -> None:
    name = "--processes" if options.engine is None else "--engine"
    if options.limit is not None or options.shard is not None:
        other = "--limit" if options.shard is None else "--shard"
        raise InputError(
            f"{other}: cannot be used with {name}, which scores all tasks; leave it out"
        )
    for option, path in (("TASKS", options.tasks), ("--responses", options.responses)):
        if path == "-":
            raise InputError(f"{option}: each shard reads it, so name a file, not standard input")


def open_merged(options: ScoreOptions) -> "Run | None":
    """Open the run if it is closed, so that nothing is left to score in shards. Raises `InputError`."""
    from jurygraph.runs.run import Run
    from jurygraph.runs.writable_run import WritableRun

    _refuse_unshardable(options)
    run = options.run
    merged = Run.open_if_closed(run)
    if merged is None:
        begun = WritableRun.open_for_writing(run)
        if begun is not None:
            begun.close()
            hint = "go on without --processes"
            raise InputError(f"{run}: was begun by one process; {hint}, or name another --out")
    return merged


def remove_merged_shards(merged: "Run") -> None:
    """Remove the shards that a run was merged from, where the command was killed before it did."""
    folder = shards_folder(merged.folder)
    sources = {merged.folder_of(origin).parent for origin in merged.header.merged}
    if sources == {folder.resolve()} and folder.is_dir():
        shutil.rmtree(folder)


def _begun_number(folder: Path) -> int | None:
    """Return into how many shards the tasks were divided, if a shard was begun."""
    from jurygraph.runs.store.folder import member_folders

    for member in member_folders(folder):
        run = _open_begun(member)
        if run is not None:
            with closing(run):
                shard = run.header.shard
            if shard is None:
                raise InputError(f"{member}: is no shard; remove it, or name another --out")
            return shard.of
    return None


def _open_begun(folder: Path) -> "Run | None":
    """Open the run of a shard; None until its tasks are planned."""
    from jurygraph.runs.run import Run, open_ledger
    from jurygraph.runs.store.folder import LEDGER
    from jurygraph.runs.store.header import read_header

    ledger = open_ledger(folder) if (folder / LEDGER).is_file() else None
    if ledger is None:
        return None
    return Run(folder, ledger, read_header(ledger))


class _Progress(NamedTuple):
    """Counts of the records of the shards; `responses` are those of the file, 0 until a shard has counted them."""

    scored: int = 0
    calls: int = 0
    responses: int = 0


class _Shards:
    """The shards of a run, each in the folder of its number."""

    def __init__(self, options: ScoreOptions, folder: Path, number: int) -> None:
        self._options = options
        self.folder = folder
        self._indices = range(1, number + 1)
        self._number = number

    def _run_folder(self, index: int) -> Path:
        return self.folder / str(index)

    def _output(self, index: int) -> Path:
        return self.folder / f"{index}.json"

    def _messages(self, index: int) -> Path:
        return self.folder / f"{index}.log"

    def commands(self) -> list[ShardCommand]:
        from jurygraph.sources import Shard

        commands: list[ShardCommand] = []
        for index in self._indices:
            options = replace(
                self._options,
                processes=None,
                engine=None,
                address=None,
                shards=None,
                shard=Shard(index=index, of=self._number),
                run=self._run_folder(index),
            )
            arguments = ["score", *options.arguments, "--json"]
            commands.append(ShardCommand(arguments, self._output(index), self._messages(index)))
        return commands

    def watch(self, engine: Engine) -> None:
        """Show what is recorded, until all shards have ended."""
        state = _Progress()
        while not state.responses:
            if not engine.wait(_POLL_SECONDS):
                return
            state = self._read_progress()
        label = f"scoring in {self._number} shards"
        reported = 0
        calls = state.calls
        with progress(label, state.responses, "responses", lambda: _describe(calls)) as report:
            is_running = True
            while is_running:
                report(state.scored - reported)
                reported = state.scored
                is_running = engine.wait(_POLL_SECONDS)
                state = self._read_progress()
                calls = state.calls
            report(state.scored - reported)

    def _read_progress(self) -> _Progress:
        state = _Progress()
        for index in self._indices:
            run = _open_begun(self._run_folder(index))
            if run is None:
                continue
            with closing(run):
                extent = run.header.file_extent
                scored = state.scored + run.ledger.count_records("trace")
                calls = state.calls + run.ledger.count_records("call")
            state = _Progress(
                scored, calls, state.responses if extent is None else extent.responses
            )
        return state

    def require_complete(self, codes: Mapping[int, int]) -> None:
        """Raise `typer.Exit` with the gravest exit code unless all shards are complete; print their last messages."""
        failed: list[int] = []
        for index in self._indices:
            if not self._is_complete(index):
                code = codes.get(index - 1, -1)
                failed.append(code)
                ending = f"was ended by signal {-code}" if code < 0 else self._last_message(index)
                print_message(f"shard {index}/{self._number}: {ending}")
        if not failed:
            return
        kept = f"what was scored is kept in {self.folder}; run the same command again to continue"
        print_message(f"{len(failed)} of {self._number} shards are not complete; {kept}")
        gravest = (code for code in _GRAVEST_FIRST if code in failed)
        raise typer.Exit(next(gravest, ExitCode.INCONCLUSIVE))

    def _is_complete(self, index: int) -> bool:
        run = _open_begun(self._run_folder(index))
        if run is None:
            return False
        with closing(run):
            return run.is_closed and run.tasks_scored == run.header.extent.tasks

    def _last_message(self, index: int) -> str:
        lines = self._messages(index).read_text(errors="replace").splitlines()
        errors = [line for line in lines if line.startswith("error: ")]
        return next(iter([*errors[-1:], *lines[-1:]]), "ended without a message")

    def merge(self) -> None:
        """Merge the shards, and remove them."""
        from jurygraph.runs.workflows.merging import count_responses, merge_shards

        folders = [self._run_folder(index) for index in self._indices]
        with progress("merging", count_responses(folders), "responses") as report:
            merge_shards(folders, self._options.run, report)

    def requests(self) -> "CallCosts | None":
        """Return the requests that the shards have sent, as they report them."""
        from jurygraph.runs.reports.bill import CallCosts

        total: CallCosts | None = None
        for index in self._indices:
            sent = _read_requests(self._output(index))
            if sent is not None:
                total = total or CallCosts()
                total.number += sent["number"]
                total.unpriced += sent["unpriced"]
                total.cost += sent["cost"] or 0.0
        return total


def _read_requests(path: Path) -> dict[str, Any] | None:
    text = path.read_text()
    sent: dict[str, Any] | None = json.loads(text)["requests"] if text else None
    return sent


def _describe(calls: int) -> str:
    return f"{calls} requests" if calls else ""
