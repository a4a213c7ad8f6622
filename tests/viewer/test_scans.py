"""The check of a whole run beside pages and rankings, which somebody waits for."""

import asyncio
from contextlib import closing
from pathlib import Path
from threading import Event

from jurygraph.display import ProgressCallback
from jurygraph.runs.run import Run
from jurygraph.viewer.index import RunIndex
from jurygraph.viewer.scans import RunScanQueue


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
