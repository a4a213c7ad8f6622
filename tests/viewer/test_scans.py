"""Scans of a whole run, which somebody waits for, and what ends them."""

import asyncio
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest
from aiohttp import ServerDisconnectedError, web
from aiohttp.test_utils import TestClient, TestServer

from jurygraph.display import ProgressCallback
from jurygraph.runs.run import Run
from jurygraph.studies.ranking import AgentRanker
from jurygraph.viewer.index import RunIndex
from jurygraph.viewer.pages import DisplayedRun
from jurygraph.viewer.scans import RunScanQueue
from jurygraph.viewer.server import make_app


def test_a_check_goes_on_when_neither_a_page_nor_a_scan_is_being_made(letters: Path) -> None:
    steps: list[str] = []
    scan_begins, check_begins, check_ends = Event(), Event(), Event()

    def scan() -> None:
        scan_begins.set()
        check_ends.wait(0.1)  # which it does not
        steps.append("scan")

    def check(run: Run, report: ProgressCallback) -> None:
        check_begins.set()
        report(1)
        steps.append("check")
        check_ends.set()

    async def serve(queue: RunScanQueue) -> None:
        scanned = asyncio.create_task(queue.call(scan))
        await asyncio.to_thread(scan_begins.wait)
        await asyncio.gather(scanned, queue.check(check))
        check_begins.clear()
        checked = asyncio.create_task(queue.check(check))
        await asyncio.sleep(0)  # so that the task begins
        check_begins.wait()  # what a page does, the loop cannot do anything else meanwhile
        steps.append("page")
        await checked
        await queue.close()

    with closing(Run.open(letters)) as run, closing(RunIndex(run)) as index:
        asyncio.run(serve(RunScanQueue(index)))
    assert steps == ["scan", "check", "page", "check"]


def test_the_end_of_the_server_ends_a_ranking_at_its_next_decision(letters: Path) -> None:
    decided: list[int] = []
    search_begins = Event()

    def search(ranker: AgentRanker) -> None:
        for _ in range(10_000):  # far more than the end of the server takes
            decided.append(len(ranker.decide(ranker.run.config).decisions))
            search_begins.set()

    async def serve(displayed_run: DisplayedRun) -> None:
        async def show(request: web.Request) -> web.Response:
            return web.Response(text=str(await displayed_run.scans.rank(search)))

        hosts: set[str] = set()
        app = make_app({"a": displayed_run}, allowed_hosts=hosts, token=None)
        app.router.add_get("/search", show)
        async with TestClient(TestServer(app)) as client:
            hosts.add(f"127.0.0.1:{client.port}")
            asked = asyncio.create_task(client.get("/search"))
            await asyncio.to_thread(search_begins.wait)
            await client.server.close()
            with pytest.raises(ServerDisconnectedError):
                await asked

    with closing(Run.open(letters)) as run, closing(RunIndex(run)) as index:
        asyncio.run(serve(DisplayedRun(run, index)))
    assert 0 < len(decided) < 10_000
