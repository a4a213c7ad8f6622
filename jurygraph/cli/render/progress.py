"""Progress of a long command on standard error: a bar on a terminal, an occasional line elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jurygraph.cli.render.text import print_message

_MIN_SHARE = 0.1
_MIN_SECONDS = 2.0


@contextmanager
def progress(label: str, total: int, what: str, suffix: Callable[[], str] = str) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of items done since the last call; `suffix` returns text to append."""
    if not sys.stderr.isatty():
        yield _progress_lines(label, total, what, suffix)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, RenderableColumn, TextColumn, TimeRemainingColumn

    class SuffixColumn(RenderableColumn):
        def render(self, task: object) -> str:
            return suffix()

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(what), TimeRemainingColumn(), SuffixColumn())
    # standard output may be a file, and is not moved into the bar
    with Progress(TextColumn(label), *columns, console=Console(stderr=True), redirect_stdout=False) as bar:
        task = bar.add_task(label, total=total)
        yield lambda count: bar.advance(task, count)


def _progress_lines(label: str, total: int, what: str, suffix: Callable[[], str]) -> Callable[[int], None]:
    """Return a function that prints about every tenth of the total, and not more often than every 2 seconds."""
    done = 0
    reported = 0
    reported_at = time.monotonic()

    def advance(count: int) -> None:
        nonlocal done, reported, reported_at
        done = done + count
        now = time.monotonic()
        if done - reported >= _MIN_SHARE * total and now - reported_at >= _MIN_SECONDS:
            reported = done
            reported_at = now
            share = f"{done} of {total} {what} ({done / total:.0%})"
            print_message(f"{label}: {share}{'; ' if suffix() else ''}{suffix()}")

    return advance
