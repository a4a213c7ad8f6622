"""Progress of a long command on standard error: a bar on a terminal, an occasional line elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jurygraph.cli.render.text import print_message

_MIN_SHARE, _MIN_SECONDS = 0.1, 2.0


@contextmanager
def progress(label: str, total: int, what: str, suffix: Callable[[], str] = str) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of items done since the last call; `suffix` returns text to append."""
    if not sys.stderr.isatty():
        yield _ProgressLines(label, total, what, suffix).advance
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, RenderableColumn, TextColumn, TimeRemainingColumn

    class SuffixColumn(RenderableColumn):
        def render(self, task: object) -> str:
            return suffix()

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(what), TimeRemainingColumn(), SuffixColumn())
    with Progress(TextColumn(label), *columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=total)
        yield lambda count: bar.advance(task, count)


class _ProgressLines:
    """A plain line about every tenth of the total, and not more often than every 2 seconds."""

    def __init__(self, doing: str, total: int, what: str, suffix: Callable[[], str]) -> None:
        self.doing, self.total, self.what, self.suffix = doing, total, what, suffix
        self.done = 0
        self._reported, self._reported_at = 0, time.monotonic()

    def advance(self, count: int) -> None:
        self.done += count
        now = time.monotonic()
        if self.done - self._reported >= _MIN_SHARE * self.total and now - self._reported_at >= _MIN_SECONDS:
            self._reported, self._reported_at = self.done, now
            share = f"{self.done} of {self.total} {self.what} ({self.done / self.total:.0%})"
            print_message(f"{self.doing}: {share}{'; ' if self.suffix() else ''}{self.suffix()}")
