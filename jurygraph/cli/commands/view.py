"""`jurygraph view`: look at a run, or at two, in a browser."""

import asyncio
import secrets
import signal
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from jurygraph.cli.options import PortOption, RunFolderArgument, argument, option
from jurygraph.cli.render.text import print_message, print_result, progress

if TYPE_CHECKING:
    from jurygraph.viewer.pages import DisplayedRun

_DEFAULT_PORT = 7576


def view(
    run: RunFolderArgument,
    other: Annotated[
        Path | None, argument("RUN2", "Another run, to be compared with the first.")
    ] = None,
    port: PortOption = _DEFAULT_PORT,
    host: Annotated[
        str,
        option(
            None,
            "Address to listen on. Any but loopback needs a token, which is printed.",
        ),
    ] = "127.0.0.1",
) -> None:
    """Look at a run in a browser: what its responses lost, and why.

    Pages have the run, a table of responses, each response with its losses and quotations, and each verdict with prompt
    and reply; "what if" decides again from the stored verdicts. Nothing is written except an index beside the ledger
    (`index.sqlite`), which may be deleted. A run that is being scored may be looked at. Ctrl-C ends it.

    \b
    Example:
        jurygraph view run
        jurygraph view before after --port 8000
    """
    from jurygraph.errors import InputError
    from jurygraph.runs.run import Run
    from jurygraph.viewer.index import RunIndex
    from jurygraph.viewer.pages import DisplayedRun
    from jurygraph.viewer.scans import return_freed_arrays

    if other is not None and other.resolve() == run.resolve():
        raise InputError(f"{other}: is named twice; name two runs, or one")
    return_freed_arrays()
    with ExitStack() as exit_stack:
        runs = {}
        for letter, folder in zip("ab", [run, *([] if other is None else [other])], strict=False):
            stored_run = exit_stack.enter_context(Run.open(folder))
            index = exit_stack.enter_context(closing(RunIndex(stored_run)))
            responses = stored_run.ledger.count_records("trace")
            with progress("indexing", responses, "responses") as report:
                index.update(report)
            with progress("reading texts and verdicts", responses, "responses") as report:
                index.complete(report)
            runs[letter] = DisplayedRun(stored_run, index)
            runs[letter].update()
        if other is not None:
            runs["a"].other = runs["b"]
        asyncio.run(_serve(runs, host, port))


async def _serve(runs: "dict[str, DisplayedRun]", host: str, port: int) -> None:
    from jurygraph.viewer.server import make_app
    from jurygraph.web_access import LOOPBACK_HOSTS, serve_app

    token = None if host in LOOPBACK_HOSTS else secrets.token_urlsafe(24)
    allowed_hosts: set[str] = set()
    app = make_app(runs, allowed_hosts=allowed_hosts, token=token)
    async with serve_app(app, allowed_hosts, host, port) as bound_port:
        query = "" if token is None else f"?token={token}"
        print_result(f"http://{host}:{bound_port}/{query}")
        print_message("Ctrl-C ends it")
        end_event = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end_event.set)
        await end_event.wait()
