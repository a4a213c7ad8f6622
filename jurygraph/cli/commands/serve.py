"""`jurygraph serve`: rewards for trainers over HTTP."""

import asyncio
import os
import secrets
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from jurygraph.cli.interrupts import open_runner
from jurygraph.cli.jury_loading import collect_jury_notes, find_config, open_jury
from jurygraph.cli.options import (
    AllowFilesOutsideOption,
    ConfigFileOption,
    MaxCallsOption,
    MaxCostOption,
    ModelNameOption,
    PortOption,
    option,
)
from jurygraph.cli.render.text import print_message, print_messages, print_result, progress
from jurygraph.cli.streams import ExitCode, add_secrets_to_redact
from jurygraph.errors import InputError
from jurygraph.messages import format_count
from jurygraph.sources.files import explain_unreadable_file

if TYPE_CHECKING:
    from jurygraph.jury import Jury
    from jurygraph.models.backend import Backend
    from jurygraph.runs.workflows.plans_file import PlansFile
    from jurygraph.server.settings import ServerSettings

_DEFAULT_PORT = 7577
_MIN_TOKEN_LENGTH = 16
_ENDPOINTS = (
    "/v1/score for TRL, verl, SkyRL (RewardClient), /get_reward for OpenRLHF, /rm for slime, /verify for NeMo Gym; "
    "/readyz, /metrics"
)
_MAX_CONNECTION_SECONDS = 2.0


def serve(
    config: ConfigFileOption = None,
    tasks: Annotated[
        str | None,
        option("PLANS", "Tasks that requests name by id: a file of `plan`, or of tasks."),
    ] = None,
    out: Annotated[
        Path | None, option("RUN", "Record all groups in this run.", "-o", "--out")
    ] = None,
    host: Annotated[
        str,
        option(None, "Address to listen on. Any but loopback needs a token."),
    ] = "127.0.0.1",
    port: PortOption = _DEFAULT_PORT,
    token_file: Annotated[
        Path | None, option("F", "File with the token that requests have to have.")
    ] = None,
    failed: Annotated[
        str,
        option(
            "RULE",
            "What a failed reward becomes: auto, none, neutral, mask, raise or a number.",
        ),
    ] = "auto",
    group_size: Annotated[
        int | None,
        option("N", "Members of a group whose protocol sends one sample a request.", min=1),
    ] = None,
    deadline: Annotated[
        float, option("S", "Seconds after which a request gets a 503.", min=1)
    ] = 100.0,
    cohort_wait: Annotated[
        float | None,
        option("S", "Seconds for which a group waits for its members.", show_default="half of it"),
    ] = None,
    max_requests: Annotated[
        int, option("N", "Requests in work; one more gets a 429.", min=1)
    ] = 1024,
    model: ModelNameOption = None,
    max_cost: MaxCostOption = None,
    max_calls: MaxCallsOption = None,
    allow_files_outside: AllowFilesOutsideOption = False,
) -> None:
    """Serve rewards to trainers over HTTP.

    POST /v1/score takes a `task`, or the `task_id` of one of --tasks, with `responses`, and returns traces and rewards.
    /get_reward speaks to OpenRLHF, /rm to slime, /verify to NeMo Gym. /healthz, /readyz, /metrics and /openapi.json say
    how the server is, and what it takes. A failed judgement is never a 0 by accident: by `auto` it is null where the
    protocol has that, else the mean of its group (--group-size), else a 503.

    With --out every group is recorded before it is answered; the same command after a kill goes on with the run, and
    sends no call with a usable reply again. Ctrl-C or SIGTERM lets the requests in work end; a second ends at once.

    \b
    Example:
        jurygraph serve --config jury.yaml --tasks plans.jsonl --out run
        jurygraph serve --config jury.yaml --group-size 8 --host 0.0.0.0 --token-file token
    """
    print_message("loading the jury; then its address is printed")  # the imports take seconds
    from jurygraph.integrations.lazy_jury import set_training_rule

    path = config or find_config(tasks or "-")
    revise = partial(set_training_rule, record=out)
    opened_jury = open_jury(path, model, revise=revise, max_cost=max_cost, max_calls=max_calls)
    with opened_jury as jury, ExitStack() as stack:
        from jurygraph.integrations.failed_rewards import read_failed_reward_rule
        from jurygraph.server.settings import ServerSettings
        from jurygraph.web_access import LOOPBACK_HOSTS

        settings = ServerSettings(
            failed=None if failed == "auto" else read_failed_reward_rule(failed, "raise"),
            group_size=group_size,
            deadline=deadline,
            cohort_wait=deadline / 2 if cohort_wait is None else cohort_wait,
            max_open_requests=max_requests,
        )
        if settings.cohort_wait >= deadline:
            raise InputError(f"--cohort-wait: {cohort_wait:g} is not below --deadline {deadline:g}")
        token = None if token_file is None else _read_access_token(token_file)
        if token is None and host not in LOOPBACK_HOSTS:
            token = secrets.token_urlsafe(24)
            print_message(f"token: {token}")
        if token is not None:
            add_secrets_to_redact([token])
        print_messages(collect_jury_notes(jury))
        plans = None
        if tasks is not None:
            plans = stack.enter_context(_open_or_write_plans(tasks, jury, allow_files_outside))
        if out is not None:
            stack.enter_context(jury.record(out))
        jury.open()
        runner = stack.enter_context(open_runner())
        runner.get_loop().set_default_executor(jury.context.threads)
        about = [
            f"config: {path}; token: {'none, as only this machine gets in' if token is None else 'needed'}",
            f"tasks: {tasks or 'those of requests'}; record: {out or 'none (--out RUN stores groups)'}",
            _ENDPOINTS,
        ]
        runner.run(_serve(jury, settings, plans, host, port, token, about))


def _read_access_token(path: Path) -> str:
    """Return the token in a file. Raises `InputError` for one that is easily guessed."""
    try:
        with explain_unreadable_file(path):
            token = path.read_text(encoding="utf-8").strip()
    except InputError as error:
        raise InputError(f"--token-file: {error}") from None
    if len(token) < _MIN_TOKEN_LENGTH or not token.isascii() or not token.isprintable():
        raise InputError(
            f"--token-file: the token in {path} has less than {_MIN_TOKEN_LENGTH} printable "
            "characters; `openssl rand -hex 24` writes a good one"
        )
    return token


@contextmanager
def _open_or_write_plans(
    tasks: str, jury: "Jury", allow_files_outside: bool
) -> "Iterator[PlansFile]":
    """Open a file of plans; a file of tasks is planned first."""
    from jurygraph.runs.workflows.plans_file import PlansFile, is_plans_file, write_plans
    from jurygraph.sources.task_tables import folder_of_tasks_file
    from jurygraph.sources.tasks import TaskLinesFile

    with ExitStack() as stack:
        plans = Path(tasks)
        if not is_plans_file(tasks):
            folder = None if allow_files_outside else folder_of_tasks_file(tasks)
            file = TaskLinesFile(tasks, defaults=jury.config.task_defaults, folder=folder)
            lines = stack.enter_context(file)
            plans = Path(stack.enter_context(TemporaryDirectory())) / "plans.jsonl"
            with progress("planning", len(lines), "tasks") as report:
                lacking = jury.run(write_plans(jury, lines, Path(tasks).name, plans, report))
            print_messages(lacking.describe())
        yield stack.enter_context(closing(PlansFile(plans, jury)))


async def _serve(
    jury: "Jury",
    settings: "ServerSettings",
    plans: "PlansFile | None",
    host: str,
    port: int,
    token: str | None,
    about: Sequence[str],
) -> None:
    """Listen until a signal ends the server; what is in work then ends before this returns."""
    from jurygraph.server.app import RewardServer
    from jurygraph.server.reward_service import RewardService
    from jurygraph.web_access import serve_app

    allowed_hosts: set[str] = set()
    service = RewardService(jury, settings, plans)
    server = RewardServer(service, allowed_hosts=allowed_hosts, token=token)
    # a client that is gone no longer waits for its reply, and its request may come again
    listening = serve_app(server.app, allowed_hosts, host, port, handler_cancellation=True)
    try:
        async with listening as bound_port:
            stop_event = asyncio.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, _stop_server, stop_event)
            print_result(f"http://{host}:{bound_port}")
            print_messages(about)
            for gateway in jury.gateways.values():
                print_message(f"judge: {await _describe_connection(gateway.backend)}")
            print_message("Ctrl-C ends it")
            await stop_event.wait()
            await server.drain_requests()
            counts = service.counts
            print_message(
                f"ended: {format_count(counts.groups, 'group')} scored, {format_count(counts.rewards, 'reward')}, "
                f"{counts.failed_rewards} of them failed"
            )
    finally:
        if jury.gateways:  # their connections belong to this loop
            await jury.gateways.close()


async def _describe_connection(backend: "Backend") -> str:
    """Return the name of a model, and whether a server of its own can be reached now; it gets no request."""
    url = urlsplit(backend.endpoint or "")
    if url.hostname is None or url.port is None:
        return backend.label
    try:
        async with asyncio.timeout(_MAX_CONNECTION_SECONDS):
            _, writer = await asyncio.open_connection(url.hostname, url.port)
    except OSError:  # also a timeout
        return f"{backend.model} cannot be reached at {backend.endpoint}; requests will wait for it"
    writer.close()
    return f"{backend.model} at {backend.endpoint}, which can be reached"


def _stop_server(stop_event: asyncio.Event) -> None:
    if stop_event.is_set():
        os._exit(ExitCode.INTERRUPTED)
    print_message("ending: requests in work have until their deadline; again to end at once")
    stop_event.set()
