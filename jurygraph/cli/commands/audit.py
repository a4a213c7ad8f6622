"""`jurygraph verify`, `seal`, `close` and `erase`: check, sign, close and erase parts of a run."""

from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Annotated

import typer

from jurygraph.cli.jury_loading import disable_langsmith_tracing
from jurygraph.cli.options import (
    AllowFilesOutsideOption,
    DryRunOption,
    JsonOption,
    LabelFilterOption,
    RunFolderArgument,
    option,
)
from jurygraph.cli.render.text import (
    escape_line,
    print_message,
    print_messages,
    print_report,
    progress,
)
from jurygraph.cli.streams import ExitCode, redirect_stdout_to_stderr
from jurygraph.errors import ConfigError, InputError, TraceMismatch
from jurygraph.messages import shell_quote
from jurygraph.runs.integrity.signed_page import verify_page
from jurygraph.runs.integrity.verification import VerificationResult
from jurygraph.runs.integrity.verification import seal as seal_run
from jurygraph.runs.integrity.verification import verify as verify_run
from jurygraph.runs.run import Run
from jurygraph.runs.store.folder import SEAL_FILE, list_run_folders
from jurygraph.runs.workflows.erasure import ErasureResult, ErasureTarget
from jurygraph.runs.workflows.erasure import erase as erase_texts
from jurygraph.runs.workflows.erasure import preview_erasure as preview_erasure
from jurygraph.runs.writable_run import close_run
from jurygraph.schema.frozen_model import JsonFields
from jurygraph.sources.task_tables import find_outside_table_error
from jurygraph.sources.user_modules import importing_from
from jurygraph.views.rewards import ResponseSelection


def verify(
    run: RunFolderArgument,
    deep: Annotated[
        bool, option(None, "Also repeat the evaluators that need no model.", "--deep")
    ] = False,
    expect_head: Annotated[str | None, option("H", "Expected head of the run.")] = None,
    signer: Annotated[
        str | None, option("F", "Public key of the expected seal: a file, or 64 hex digits.")
    ] = None,
    allow_files_outside: AllowFilesOutsideOption = False,
    json: JsonOption = False,
) -> None:
    """Verify a run: its records, texts, rewards and seal.

    The hash chain, the texts, config.yaml, and all rewards and statistics are recomputed and compared bit for bit.
    Anyone who can write the folder can rebuild it completely: `--expect-head`, or a seal by a key kept elsewhere,
    detects that. With `--signer`, nothing may follow the sealed records: seal a run again after an erasure.

    `--deep` also checks that every quotation is in its response, and computes every verdict again that needs no model,
    or whose replies are stored. Table files named by the tasks must then be below the current folder, unless
    --allow-files-outside is given.

    RUN can also be a page that `study certify --key` signed; then its seal is checked.

    Exit codes: 0 no difference; 2 the run cannot be verified here; 5 differences: all are listed that can be told
    without what was changed, the first 20 records, texts and rewards, and the number of the others.

    \b
    Example:
        jurygraph verify run
        jurygraph verify run --deep --expect-head 9f2c…
    """
    if run.is_file() and run.suffix != ".zip":  # a bundle has its own verify.py
        if deep or expect_head:
            raise InputError(
                f"{run}: is a page; name a run that it is about to use --deep or --expect-head"
            )
        _verify_page(run, signer, json)
        return
    members = list_run_folders(run)
    if members and (expect_head or signer):
        raise InputError(
            f"{run}: is a set of runs, each with a head of its own; verify them one by one"
        )
    contents: list[JsonFields] = []
    lines: list[str] = []
    mismatches: list[str] = []
    for member in members or [run]:
        try:
            content, report_lines = _verify_run(
                member, deep, expect_head, signer, allow_files_outside
            )
        except TraceMismatch as error:
            findings = [str(error), *getattr(error, "__notes__", ())]
            mismatches += findings
            contents.append(
                {"run": str(member), "findings": findings, "differences": error.differences}
            )
            continue
        contents.append(content)
        lines += report_lines
    content = {"run": str(run), "runs": contents} if members else contents[0]
    if json or lines:
        print_report(json, content, map(escape_line, lines))
    if mismatches:
        print_messages([f"error: {mismatches[0]}", *mismatches[1:]])
        raise typer.Exit(ExitCode.INTEGRITY_ERROR)
    if json:
        return
    for content in contents:
        _warn_of_unproven_end(content, is_proven=bool(signer or expect_head))


_UNKNOWN_SIGNER_WARNING = (
    "a changed {} could be sealed by another key: compare it, or name --signer"
)


def _warn_of_unproven_end(content: JsonFields, is_proven: bool) -> None:
    if content["sealed"] and not is_proven:
        print_message(_UNKNOWN_SIGNER_WARNING.format("run"))
    if content["unsigned"]:
        print_message(
            f"{content['unsigned']} erasures after the seal are unsigned; run `seal` to sign the run again"
        )
    if not content["closed"]:
        print_message(
            "the run is not closed: more records may follow this head, and without a head or a signer "
            "from elsewhere nothing tells whether some did"
        )


def _verify_page(page: Path, signer: str | None, json: bool) -> None:
    """Check the seal of a page that `study certify --key` signed, and print by whom it is."""
    seal = verify_page(page, signer)
    content = seal.model_dump(mode="json")
    lines = [f"{page} is unchanged since {seal.signed_at}", f"sealed  by {seal.public_key}"]
    print_report(json, content, map(escape_line, lines))
    if signer is None:
        print_message(_UNKNOWN_SIGNER_WARNING.format("page"))


def _verify_run(
    run: Path, deep: bool, expect_head: str | None, signer: str | None, allow_files_outside: bool
) -> tuple[JsonFields, list[str]]:
    """Verify one run; return its report as JSON values, and as lines."""
    with redirect_stdout_to_stderr(), Run.open(run) as stored_run:
        modules = stored_run.modules() if deep else None  # before anything takes long
        with progress("verifying", stored_run.ledger.count, "records") as report:
            result = verify_run(stored_run, report, expect_head, signer)
        with importing_from(modules):
            deep_verification_counts = (
                _verify_deeply(stored_run, allow_files_outside) if deep else None
            )
    content = {"run": str(run), **result._asdict(), "deep": deep_verification_counts}
    lines = _format_verification_lines(
        run, result, deep_verification_counts, expect_head is not None
    )
    return content, list(lines)


def _format_verification_lines(
    run: Path,
    result: VerificationResult,
    deep_verification_counts: dict[str, int] | None,
    checks_expected_head: bool,
) -> Iterator[str]:
    content = f"{result.records} records, {result.texts} texts, {result.erased} erased"
    is_end_proven = result.closed or result.sealed is not None or checks_expected_head
    subject = f"{run} is" if is_end_proven else f"{run}: what is there is"
    yield f"{subject} unchanged: {content}"
    yield f"{result.traces - result.replaced} rewards recomputed from their verdicts, bit for bit"
    if result.replaced:
        yield f"{result.replaced} earlier ones, of groups judged again since, are as they were written"
    if deep_verification_counts is not None:
        skipped = dict(deep_verification_counts)
        recomputed = skipped.pop("recomputed")
        quotations = skipped.pop("quotations")
        line = f"repeated: {recomputed} verdicts are the same, and the {quotations} verified quotations are in place"
        skipped_texts = [
            f"{count} {name.replace('_', ' ')}" for name, count in skipped.items() if count
        ]
        if skipped_texts:
            line += f"; not repeated: {', '.join(skipped_texts)}"
        yield line
    if result.base is not None:
        yield f"the verdicts are those of {result.base}, which was verified too"
    yield f"head    {result.head}"
    if result.sealed:
        yield f"sealed  by {result.sealed}"
    else:
        yield "sealed  no: a rewritten run would pass, unless its head is compared with one kept elsewhere"


def _verify_deeply(run: Run, allow_files_outside: bool) -> dict[str, int]:
    """Repeat the evaluators that need no model and return the counts by result.

    Raises ConfigError that says where modules are looked for, and InputError if a task names a table file outside the
    current folder, unless that is allowed.
    """
    from jurygraph.runs.integrity.deep_verification import verify_deep

    disable_langsmith_tracing()
    if not allow_files_outside:  # the run may come from a stranger
        for record in run.source.ledger.records("task"):
            task = run.task(record.key)
            outside_file_problem = (
                None if task is None else find_outside_table_error(task.facts, Path())
            )
            if outside_file_problem is not None:
                raise InputError(
                    f"{run.folder}: task {record.key!r}, field {outside_file_problem.field}: "
                    f"{outside_file_problem}"
                )
    try:
        with progress("repeating", run.ledger.count_records("trace"), "responses") as report:
            return verify_deep(run, report)._asdict()
    except ConfigError as error:
        advice = (
            "the run records no folder of modules: install them; what a script gave as an object cannot be repeated "
            "here, and `verify` without --deep checks the rewards"
        )
        code_folder = run.source.code_folder
        if code_folder is not None:
            advice = (
                f"modules are imported from {code_folder}, where they were when the run was scored"
            )
        raise ConfigError(f"{error}; {advice}") from None


def seal(
    run: RunFolderArgument,
    key: Annotated[Path, option("F", "Ed25519 private key.", "--key")],
    json: JsonOption = False,
) -> None:
    """Verify a closed run and sign its head, into seal.json.

    The key is a PEM or OpenSSH file, as `openssl genpkey -algorithm ed25519 -out key.pem` makes it. Keep it away from
    the run: anyone who has both can write another run and seal it.

    \b
    Example:
        jurygraph seal run --key key.pem
        jurygraph verify run --signer public.pem
    """
    with (
        redirect_stdout_to_stderr(),
        Run.open(run) as stored_run,
        progress("verifying", stored_run.ledger.count, "records") as report,
    ):
        written_seal = seal_run(stored_run, key, report)
    first_line = escape_line(
        f"{run} was sealed at {written_seal.signed_at}: {written_seal.records} records, "
        f"head {written_seal.head}"
    )
    content = {"run": str(run), **written_seal.model_dump(mode="json")}
    print_report(json, content, [first_line, f"by {written_seal.public_key}"])


def close(run: RunFolderArgument, json: JsonOption = False) -> None:
    """Close a run, so that nothing more is scored into it.

    The number of traces and the head are recorded. A complete run is closed already. Of a folder of runs, such as those
    of ranks, all are closed.

    \b
    Example:
        jurygraph close run
    """
    members = list_run_folders(run)
    contents = []
    lines = []
    for member in members or [run]:
        closing_result = close_run(member)
        lines += [
            escape_line(
                f"{member} is closed: {closing_result.traces} traces, "
                f"{closing_result.records} records"
            ),
            f"head {closing_result.head}",
        ]
        contents.append({"run": str(member), **closing_result._asdict()})
    content = {"run": str(run), "runs": contents} if members else contents[0]
    print_report(json, content, lines)


def erase(
    run: RunFolderArgument,
    response: Annotated[
        list[str] | None, option("ID", "Erase the text of this response; repeat it for several.")
    ] = None,
    task: Annotated[
        list[str] | None,
        option("ID", "Erase the texts of this task and its responses; repeat it for several."),
    ] = None,
    label: LabelFilterOption = None,
    reason: Annotated[str, option("TEXT", "Reason, kept in the record.")] = "",
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Erase texts for good. Scores, rewards and ids stay, and `verify` passes.

    Several --response are erased together, and so are several --task, and the responses with a --label.
    --response erases the text, data, labels and metadata of a response, what evaluators wrote about it, and every other
    text of the run that contains it (if it has 20 characters or more). --task erases the texts of a task, of its
    responses, and what was written about them. Calls that contain them are removed from the current cache
    (`JURYGRAPH_CACHE`) and from the file named by `calls.record`, relative to the current folder. Ids, names and
    subjects of questions stay. A record keeps what was erased and why. Exports and other copies are yours to delete:
    docs/safety.md lists where they may be.

    Other responses that lose text or the words of verdicts are named; --dry-run says so before.

    Exit codes: 0 done; 1 done, but the listed places or tasks contain or may contain it; 2 invalid input, or the run
    is in use.

    \b
    Example:
        jurygraph erase run --response task-1/a --dry-run
        jurygraph erase run --response task-1/a --reason "requested by its author"
        jurygraph erase run --label author=ann --dry-run
    """
    if sum(map(bool, (response, task, label))) != 1:
        raise InputError("expected one of --response ID, --task ID and --label NAME=VALUE")
    erasure_target: ErasureTarget = "task" if task else "response"
    names = response or task or _find_labelled_responses(run, label)
    if dry_run:
        print_message("dry run: nothing was erased; cache and recordings were not searched")
        result = preview_erasure(run, erasure_target, names)
    else:
        result = erase_texts(run, erasure_target, names, reason)
    print_report(
        json,
        {"run": str(run), "requested": names, **result._asdict()},
        map(escape_line, _format_erasure_lines(result, dry_run)),
    )
    if (run / SEAL_FILE).exists() and not dry_run:
        print_message(
            f"the seal does not cover this erasure; `jurygraph seal {shell_quote(run)} --key F` signs it"
        )
    for task_id in result.tasks:
        print_message(
            f"task {task_id!r} also contains it; "
            f"`jurygraph erase {shell_quote(run)} --task {shell_quote(task_id)}` erases that"
        )
    for unerased_location in result.unreached:
        print_message(f"it may still be in {unerased_location}")
    if result.tasks or result.unreached:
        raise typer.Exit(ExitCode.SOME_FAILED)


def _find_labelled_responses(run: Path, label: list[str] | None) -> list[str]:
    """Return the ids of the responses with these labels. Raises `InputError` where none has them."""
    with Run.open(run) as stored_run:
        ids = [*ResponseSelection(label=label).select(stored_run, attrgetter("response_id"))]
    print_message(f"with the label: {', '.join(ids)}")
    return ids


def _format_erasure_lines(result: ErasureResult, dry_run: bool) -> Iterator[str]:
    verb = "would erase" if dry_run else "erased"
    yield f"{verb} {result.erased} texts, and {result.erased_in_others} others that contained it"
    if result.responses:
        names = ", ".join(result.responses)
        yield f"{verb} text or words of verdicts of other responses: {names}"
    if result.replies:
        yield f"removed {result.replies} replies from the cache"
    if result.calls:
        yield f"removed {result.calls} calls from recordings"
