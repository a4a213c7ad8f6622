"""`jurygraph score`: the main job."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli.boundary import Exit
from jurygraph.cli.text import number, out, out_json, say, table

if TYPE_CHECKING:
    import asyncio

    from jurygraph.jury import Jury
    from jurygraph.runs import Session, Summary
    from jurygraph.schema import Config
    from jurygraph.sources import Work


def score(
    tasks: Annotated[
        str, typer.Argument(metavar="TASKS", help="JSONL file of tasks, .gz too; - for stdin.", show_default=False)
    ],
    run: Annotated[Path, typer.Option("--out", metavar="RUN", help="Folder of the run.", show_default=False)],
    config: Annotated[
        Path | None, typer.Option(metavar="F", help="Config.", show_default="jury.yaml beside TASKS, or here")
    ] = None,
    responses: Annotated[
        str | None, typer.Option(metavar="F", help="JSONL file of responses, if not in TASKS.", show_default=False)
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="M", help="Model, instead of the config's.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be asked; write nothing.")] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Score the first N tasks.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Score responses and keep every reward with all that led to it.

    Everything is read and planned before anything is written. The same command on the same RUN resumes it.

    \b
    Exit codes: 0 done; 1 done, but some rewards failed; 2 wrong config or input, nothing written;
    3 inconclusive: too much failed that is no fault of the responses; 130 interrupted, resumable.
    What evaluators print goes to standard error.

    \b
    Example:
        jurygraph score tasks.jsonl --out run
        jurygraph score tasks.jsonl.gz --config jury.yaml --responses answers.jsonl --out run --dry-run
    """
    from jurygraph.sources import read_work

    with redirect_stdout(sys.stderr), _descriptor_1_to_2():  # what a user's code prints is no part of the result
        jury = open_jury(config or _found(tasks), model)
        session = _sat(jury, read_work(tasks, responses), run, limit, dry_run)
    if dry_run:
        _print_forecast(session, json)
        return
    _print_result(session, run, json)
    raise typer.Exit(_exit_code(session.summary, jury.config))


@contextmanager
def _descriptor_1_to_2() -> Iterator[None]:
    """The same for child processes and C code, which write to the descriptor itself."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _sat(opened: "Jury", work: "Work", run: Path, limit: int | None, dry_run: bool) -> "Session":
    """A session that is over: everything is planned and, but for a dry run, scored."""
    import asyncio

    from jurygraph.runs import Session

    with opened as jury, asyncio.Runner() as runner, closing(Session(run, jury, work, limit)) as session:
        runner.run(session.prepare())
        if not dry_run:
            _fill(session, runner)
    return session


def open_jury(path: Path, model: str | None = None) -> "Jury":
    """The jury of a config; its folder becomes importable, so that it can name evaluators that lie beside it."""
    from jurygraph.errors import ConfigError
    from jurygraph.sources import read_config

    config = read_config(path)
    if not config.langsmith:
        send_nothing()
    from jurygraph.jury import Jury  # what it imports may read the environment

    sys.path.insert(0, str(path.resolve().parent))
    try:
        return Jury.from_config(config if model is None else config.model_copy(update={"model": model}))
    except ConfigError as error:
        raise ConfigError(f"{path.name}: {error}") from None


def send_nothing() -> None:
    """Keep what is judged on this machine, whatever the environment says: a command owns its process.

    A jury keeps to this by itself, but for threads that a user's code starts, which have no context of ours.
    """
    os.environ.update({"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"})


def _found(tasks: str) -> Path:
    from jurygraph.errors import ConfigError

    folders = [Path()] if tasks == "-" else [Path(tasks).parent, Path()]
    for folder in folders:
        if (folder / "jury.yaml").is_file():
            return folder / "jury.yaml"
    raise ConfigError("there is no jury.yaml beside the tasks, nor here; name a config with --config")


def _fill(session: "Session", runner: "asyncio.Runner") -> None:
    """Score what is left to score."""
    from jurygraph.cli.progress import progress

    if session.finished:
        say(f"{session.folder} is complete; nothing is done again")
        return
    if session.done:
        say(f"{session.done} tasks are scored already and stay as they are")
    try:
        with progress(session.left.responses) as report:
            gc.freeze()  # libraries and plans stay: the collector need not go through them again and again
            runner.run(session.score(report))
    except KeyboardInterrupt:
        say(f"interrupted; what was scored is kept in {session.folder}, and the same command goes on from there")
        raise typer.Exit(Exit.INTERRUPTED) from None


def _print_forecast(session: "Session", as_json: bool) -> None:
    from jurygraph.runs import forecast

    expected = forecast(session)
    say("nothing was written")
    if as_json:
        out_json(expected.plain())
        return
    rows = [
        ["tasks", expected.tasks],
        ["responses", expected.responses],
        ["questions", expected.questions],
        ["verdicts, at most", expected.verdicts],
        ["... of a model, which abstain under model none", expected.asked_of_model],
        ["model calls", expected.model_calls],
    ]
    for line in table(["still to do", ""], [[str(cell) for cell in row] for row in rows]):
        out(line)


def _print_result(session: "Session", run: Path, as_json: bool) -> None:
    summary = session.summary
    if as_json:
        out_json({"run": str(run), **summary.plain()})
    else:
        for line in _result_lines(summary):
            out(line)
        if len(summary.tasks) < session.tasks:
            out(f"{len(summary.tasks)} of {session.tasks} tasks (--limit)")
    if summary.lowest is not None:
        say(f"every reward:    jurygraph show {_word(run)}")
        say(f"the lowest one:  jurygraph show {_word(run)} --response {_word(summary.lowest)}")
        say(f"in sentences:    jurygraph explain {_word(run)} --response {_word(summary.lowest)}")


def _result_lines(summary: "Summary") -> list[str]:
    rows = [
        [
            row.agent or "(no agent named)",
            str(row.responses),
            number(row.mean),
            number(row.coverage),
            str(row.ok),
            str(row.degraded),
            str(row.failed),
        ]
        for row in summary.agents.values()
    ]
    header = ["agent", "responses", "mean reward", "coverage", "ok", "degraded", "failed"]
    asked = (
        f"verdicts: {summary.judged} judged + {summary.abstained} abstained + {summary.unanswered} failed"
        f" + {summary.not_applicable} not applicable = {summary.asked} asked"
    )
    return [*table(header, rows), asked]


def _exit_code(summary: "Summary", config: "Config") -> Exit:
    if summary.error_rate > config.failure.max_error_rate:
        share = f"{summary.error_rate:.1%} of the verdicts failed, by no fault of the responses"
        say(f"inconclusive: {share}; failure.max_error_rate is {config.failure.max_error_rate:.1%}")
        return Exit.INCONCLUSIVE
    if summary.failed:
        say(f"{summary.failed} of {summary.responses} rewards failed: they have no value")
        return Exit.SOME_FAILED
    return Exit.DONE


def _word(value: object) -> str:
    import shlex

    return shlex.quote(str(value))
