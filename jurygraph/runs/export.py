"""A run in other forms."""

import csv
import io
from collections.abc import Iterator

from jurygraph.runs.run import Run
from jurygraph.schema import Trace

_BEFORE = ("task_id", "response_id", "agent", "value", "status", "coverage", "low", "high")
_COUNTS = ("judged", "abstained", "failed", "not_applicable")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export_jsonl(run: Run) -> Iterator[bytes]:
    """The traces as they are, one a line."""
    for record in run.records():
        yield record.line + b"\n"


def export_csv(run: Run) -> Iterator[bytes]:
    """One row a response: its reward, one column `component.NAME` for each component, and the counts.

    A missing number is an empty cell. An id or a name that a spreadsheet would run as a formula gets a leading
    apostrophe; `export_jsonl` leaves every name as it is.
    """
    names = list(dict.fromkeys(name for trace in run.traces() for name in trace.reward.components))
    yield _row([*_BEFORE, *(f"component.{name}" for name in names), *_COUNTS])
    for trace in run.traces():
        yield _row(_cells(trace, names))


def _cells(trace: Trace, names: list[str]) -> list[str | float | None]:
    reward = trace.reward
    low, high = reward.range or (None, None)
    identity = [_text(trace.task_id), _text(trace.response_id), _text(trace.agent or "")]
    components = [reward.components.get(name) for name in names]
    counts = [getattr(reward.counts, name) for name in _COUNTS]
    return [*identity, reward.value, reward.status, reward.coverage, low, high, *components, *counts]


def _text(value: str) -> str:
    return f"'{value}" if value.startswith(_FORMULA) else value


def _row(cells: list[str | float | None] | list[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue().encode()
