"""One conformance suite of fault modes for every backend and embedder.

Whatever a provider answers in place of a right reply ends as the fault that it is, in time, and never as credit.
Nothing reaches another server, and no reply, however large it is or becomes, takes the memory of the process.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jurygraph.models import embedding as remote
from tests.models.embedding.server import run_embedding_server
from tests.models.fault_targets import (
    COUNTED,
    HTTP_TARGETS,
    IN_PROCESS_TARGETS,
    IN_PROCESS_TEXT,
    KEYS,
    each_of,
    outcome,
)
from tests.models.faults import (
    HTTP,
    QUICK,
    REPLY,
    VECTORS,
    Planted,
    gzip_bomb,
    json_body,
    make_bombs,
)
from tests.models.server import Answer, Server
from tests.virtual_time import run_held

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*ReadOnly.*:UserWarning", "ignore:Pydantic serializer.*:UserWarning"
)

MAX_MEMORY_MIB = 500.0
"""MiB that a process may have at once, litellm's own 170 included: pydantic builds all of a reply that lacks a key."""

_ADDRESSES = ("OPENAI_API_BASE", "HOSTED_VLLM_API_BASE", "COHERE_API_BASE")
_BEYOND_LIMITS = [
    mode
    for mode in HTTP
    if "too-large" in HTTP[mode].kinds or mode.startswith(("redirect-", "endless", "gzip-bomb"))
]
every_target = each_of("name", HTTP_TARGETS)
every_local = each_of("name", IN_PROCESS_TARGETS)


def modes_of(name: str) -> list[str]:
    """Return the modes that are tried on a target: a user's own client may follow redirects and read anything."""
    if name in HTTP_TARGETS:
        target = HTTP_TARGETS[name]
        http = [mode for mode in HTTP if target.is_limited or mode not in _BEYOND_LIMITS]
        return [*http, *(REPLY if target.wrap_text else ())]
    return list(REPLY if name in IN_PROCESS_TEXT else VECTORS)


def kinds(name: str, mode: str) -> frozenset[str]:
    if mode in VECTORS:
        return frozenset({"unreadable"})
    found = HTTP[mode].kinds if mode in HTTP else REPLY[mode].kinds
    # a class of the user's own that stumbles over a reply is named with its line
    return found | {"code"} if name == "chat_model" else found


@contextmanager
def provider(name: str) -> Iterator[tuple[Server, Server]]:
    """Run a server that answers by the mode in a model's name, and another that must not be reached."""
    target = HTTP_TARGETS[name]

    def script(body: dict[str, Any], number: int) -> Answer:
        mode = body["model"].rpartition("/")[2]
        if mode in HTTP:
            return HTTP[mode].answer(Planted(target.valid_body, other.url))
        assert target.wrap_text is not None or mode == "right"
        return json_body(
            REPLY[mode].reply(target.wrap_text)
            if mode in REPLY and target.wrap_text
            else target.valid_body
        )

    gzip_bomb(target.valid_body)  # which takes a while, once
    with (
        run_embedding_server(lambda body, number: json_body(target.valid_body)) as other,
        run_embedding_server(script) as server,
    ):
        yield server, other


def address(server: Server) -> str:
    return server.url.removesuffix("/v1")


@pytest.fixture
def environment_of_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set keys, and restore afterwards whatever the targets set."""
    for key in (*KEYS, *_ADDRESSES):
        monkeypatch.setenv(key, "sk-0123456789")
    for key in _ADDRESSES:
        monkeypatch.delenv(key)
    monkeypatch.setattr(remote, "REQUEST_TIMEOUT_SECONDS", remote.REQUEST_TIMEOUT_SECONDS)
    monkeypatch.setattr(remote, "RETRY_POLICY", remote.RETRY_POLICY)


@every_target
@pytest.mark.usefixtures("environment_of_targets")
def test_each_fault_mode_over_http_is_its_kind_of_fault(name: str) -> None:
    modes = [mode for mode in QUICK if mode in modes_of(name)]
    with provider(name) as (server, other):
        met = {
            mode: run_held(outcome(HTTP_TARGETS[name].call, address(server), mode))
            for mode in ("right", *modes)
        }
        assert met.pop("right") == COUNTED
        assert {mode: found for mode, found in met.items() if found not in kinds(name, mode)} == {}
        assert [seen.body["model"] for seen in server.requests] == ["right", *modes]  # each once
        assert other.count == 0


@every_local
def test_each_fault_mode_in_process_is_its_kind_of_fault(name: str, tmp_path: Path) -> None:
    call = IN_PROCESS_TARGETS[name]
    assert asyncio.run(outcome(call, str(tmp_path), "right")) == COUNTED
    met = {mode: asyncio.run(outcome(call, str(tmp_path), mode)) for mode in modes_of(name)}
    assert {mode: found for mode, found in met.items() if found not in kinds(name, mode)} == {}


def outcomes_in_new_process(name: str, place: str, *modes: str) -> dict[str, tuple[str, float]]:
    """Return the outcome of each mode, and the peak memory of the process until then."""
    environment = {
        **os.environ,
        **dict.fromkeys(KEYS, "sk-0123456789"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    made = subprocess.run(
        [sys.executable, "-m", "tests.models.fault_targets", name, place, *modes],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    met: dict[str, tuple[str, float]] = json.loads(made.stdout.splitlines()[-1])
    return met


@pytest.mark.exhaustive
@every_target
def test_each_fault_mode_over_http_takes_little_memory(name: str) -> None:
    modes = modes_of(name)
    make_bombs(HTTP_TARGETS[name].valid_body)
    with provider(name) as (server, other):
        met = outcomes_in_new_process(name, address(server), "right", *modes)
        assert met.pop("right")[0] == COUNTED
        assert {
            mode: found for mode, (found, _) in met.items() if found not in kinds(name, mode)
        } == {}
        assert {mode: memory for mode, (_, memory) in met.items() if memory >= MAX_MEMORY_MIB} == {}
        assert (server.count, other.count) == (1 + len(modes), 0)


@pytest.mark.exhaustive
@every_local
def test_each_fault_mode_in_process_takes_little_memory(name: str, tmp_path: Path) -> None:
    met = outcomes_in_new_process(name, str(tmp_path), *modes_of(name))
    assert {mode: memory for mode, (_, memory) in met.items() if memory >= MAX_MEMORY_MIB} == {}
