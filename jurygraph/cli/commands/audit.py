"""`jurygraph verify`, `seal`, `close` and `erase`: check, sign, close and erase parts of a run."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.jury_loading import allow_run_modules
from jurygraph.cli.options import AsJson, FilesOutside, RunFolder
from jurygraph.cli.render.text import escape_line, print_json, print_message, print_result, shell_quote
from jurygraph.cli.stdout_redirect import redirect_stdout_to_stderr

if TYPE_CHECKING:
    from jurygraph.runs.run import Run
    from jurygraph.runs.workflows.erasure import ErasureResult


def verify(
    run: RunFolder,
    deep: Annotated[bool, typer.Option("--deep", help="Ask evaluators that need no model again, too.")] = False,
    expect_head: Annotated[
        str | None, typer.Option(metavar="H", help="Head that the run must have.", show_default=False)
    ] = None,
    signer: Annotated[
        Path | None, typer.Option(metavar="F", help="Public key that must have sealed the run.", show_default=False)
    ] = None,
    allow_files_outside: FilesOutside = False,
    json: AsJson = False,
) -> None:
    """Check a run: its records, texts, rewards and seal.

    Every record must follow the one before it, every text be the one that its record commits to, config.yaml be the
    run's, every reward and statistic come out of the verdicts again to the last bit. Whoever can write the folder can
    make the whole of it anew: `--expect-head`, or a seal by a key that is kept elsewhere, finds that. With `--signer`,
    nothing may follow what was sealed: seal a run anew after an erasure.

    `--deep` looks for every quotation in its response, and asks every evaluator that needs no model again. Table files
    that its tasks name have to lie below the current folder then, unless --allow-files-outside is given.

    Exit codes: 0 everything is right; 2 the run cannot be checked here; 5 something is not, and the first is named.

    \b
    Example:
        jurygraph verify run
        jurygraph verify run --deep --expect-head 9f2c…
    """
    from jurygraph.cli.render.progress import progress
    from jurygraph.runs.integrity.verification import verify as verify_run
    from jurygraph.runs.run import Run

    with redirect_stdout_to_stderr(), closing(Run.open(run)) as stored_run:
        allow_run_modules(stored_run)
        with progress("verifying", stored_run.ledger.count, "records") as report:
            result = verify_run(stored_run, report, expect_head, signer)
        deep_counts = _verify_deeply(stored_run, allow_files_outside) if deep else None
    if json:
        print_json({"run": str(run), **result._asdict(), "deep": deep_counts})
        return
    counts = f"{result.records} records, {result.texts} texts, {result.erased} erased"
    print_result(escape_line(f"{run} is what was written: {counts}"))
    print_result(f"{result.traces} rewards follow from their verdicts, to the last bit")
    if deep_counts is not None:
        print_result(_describe_deep_counts(deep_counts))
    if result.base is not None:
        print_result(escape_line(f"the verdicts are those of {result.base}, which was verified as well"))
    print_result(f"head    {result.head}")
    print_result(f"sealed  {f'by {result.sealed}' if result.sealed else 'no'}")
    if result.unsigned:
        print_message(
            f"{result.unsigned} erasures came after the seal, and nobody signed them; `seal` signs the run anew"
        )
    if not result.closed:
        print_message("the run is not closed: more may come after this head")


def _verify_deeply(run: "Run", allow_files_outside: bool) -> dict[str, int]:
    """Repeat the evaluators that need no model and return the counts by result.

    Raises ConfigError that says where modules are looked for.
    """
    from jurygraph.cli.jury_loading import disable_tracing
    from jurygraph.cli.render.progress import progress
    from jurygraph.errors import ConfigError
    from jurygraph.runs.integrity.deep_verification import verify_deep

    disable_tracing()
    if not allow_files_outside:
        _refuse_files_outside(run)
    try:
        with progress("asking again", run.ledger.count_records("trace"), "responses") as report:
            return verify_deep(run, report)._asdict()
    except ConfigError as error:
        advice = "the run records no folder of modules, so they have to be installed"
        if run.source.code_folder is not None:
            advice = f"modules of the run are looked for in {run.source.code_folder}, where they lay when it was scored"
        raise ConfigError(f"{error}; {advice}") from None


def _refuse_files_outside(run: "Run") -> None:
    """Raise InputError if a task names a table file outside the current folder: the run may come from a stranger."""
    from jurygraph.errors import InputError
    from jurygraph.sources.table_paths import check_table_files

    for record in run.source.ledger.records("task"):
        task = run.task(record.key)
        outside = None if task is None else check_table_files(task.facts, Path())
        if outside is not None:
            raise InputError(f"{run.folder}: task {record.key!r}, field {outside.field}: {outside}")


def _describe_deep_counts(found: dict[str, int]) -> str:
    """Describe the results of a deep verification in one line."""
    skipped = ", ".join(
        f"{count} {outcome.replace('_', ' ')}" for outcome, count in found.items() if outcome not in _REPEATED and count
    )
    return (
        f"asked again: {found['recomputed']} verdicts came out the same, {found['quotations']} quotations stand where "
        f"they are said to{f'; not asked again: {skipped}' if skipped else ''}"
    )


_REPEATED = ("recomputed", "quotations")


def seal(
    run: RunFolder,
    key: Annotated[Path, typer.Option("--key", metavar="F", help="Ed25519 private key.", show_default=False)],
    json: AsJson = False,
) -> None:
    """Verify a closed run and sign its head, into seal.json.

    The key is a PEM or OpenSSH file, as `openssl genpkey -algorithm ed25519 -out key.pem` makes it. Keep it away from
    the run: whoever has both can write another run and seal that.

    \b
    Example:
        jurygraph seal run --key key.pem
        jurygraph verify run --signer public.pem
    """
    from jurygraph.cli.render.progress import progress
    from jurygraph.runs.integrity.sealing import seal as seal_run
    from jurygraph.runs.run import Run

    with redirect_stdout_to_stderr(), closing(Run.open(run)) as stored_run:
        allow_run_modules(stored_run)
        with progress("verifying", stored_run.ledger.count, "records") as report:
            written_seal = seal_run(stored_run, key, report)
    if json:
        print_json({"run": str(run), **written_seal.model_dump(mode="json")})
        return
    print_result(
        escape_line(
            f"{run} is sealed since {written_seal.signed_at}: {written_seal.records} records, head {written_seal.head}"
        )
    )
    print_result(f"by {written_seal.public_key}")


def close(run: RunFolder, json: AsJson = False) -> None:
    """End a run: nothing more is scored into it.

    Its count and head are recorded. A run that is complete is closed already.

    \b
    Example:
        jurygraph close run
    """
    from jurygraph.runs.close_record import close_run

    closed = close_run(run)
    if json:
        print_json({"run": str(run), **closed._asdict()})
        return
    print_result(escape_line(f"{run} is closed: {closed.traces} traces, {closed.records} records"))
    print_result(f"head {closed.head}")


def erase(
    run: RunFolder,
    response: Annotated[
        str | None, typer.Option(metavar="ID", help="Erase what is written in this response.", show_default=False)
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Erase what is written in this task and its group.", show_default=False),
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for the record.")] = "",
    json: AsJson = False,
) -> None:
    """Erase a text for good. Scores, rewards and ids stay, and `verify` passes.

    Of a response, that is its text, data and labels, what evaluators wrote about it, and every other text of the run
    in which it lies (if it has 20 characters or more); of a task, all that is written in it, in the responses to it
    and about them. Their calls, and others that hold or quote them, go from the cache that is in use
    (`JURYGRAPH_CACHE`) and from the file that `calls.record` names, whose path counts from the folder that you are
    in. Exports of the run that lie in its folder and hold texts are removed; other files that hold it, and files that
    cannot be searched, are named. Ids, names and what a question asks for by name stay. The record of the erasure
    says what and why. Copies elsewhere are yours to find: docs/safety.md lists them.

    Exit codes: 0 done; 1 done, but it lies or may lie in what is named; 2 wrong input, or somebody reads the run.

    \b
    Example:
        jurygraph erase run --response task-1/a --reason "asked for by its author"
    """
    from jurygraph.errors import InputError
    from jurygraph.runs.workflows.erasure import erase as erase_texts

    if (response is None) == (task is None):
        raise InputError("name what to erase: --response ID or --task ID, one of the two")
    result = erase_texts(run, "response" if task is None else "task", response or task or "", reason)
    if json:
        paths = {"exports": list(map(str, result.exports)), "files": list(map(str, result.files))}
        print_json({"run": str(run), **result._asdict(), **paths})
    else:
        _print_erased(result)
    for name in result.tasks:
        command = f"`jurygraph erase {shell_quote(run)} --task {shell_quote(name)}`"
        print_message(f"it also lies in what is written in task {name!r}; {command} erases that")
    for path in result.files:
        print_message(f"it also lies in {path}, which is no export of this run; remove that by hand")
    for reason_why in result.unreached:
        print_message(f"it may still lie in {reason_why}")
    if result.tasks or result.files or result.unreached:
        raise typer.Exit(ExitCode.SOME_FAILED)


def _print_erased(result: "ErasureResult") -> None:
    print_result(f"erased {result.own} texts, and {result.elsewhere} of others in which it lay")
    for number, where in ((result.replies, "replies from the cache"), (result.calls, "calls from the recording")):
        if number:
            print_result(f"removed {number} {where}")
    for path in result.exports:
        print_result(escape_line(f"removed {path}"))
