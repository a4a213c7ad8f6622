"""Traces without what somebody wrote: all that a table or a summary of a run shows, in a fraction of the time."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from sys import intern
from typing import NamedTuple

from pydantic_core import from_json

from jurygraph.errors import TraceMismatch
from jurygraph.runs.run import Run
from jurygraph.runs.store.chain import Record, named
from jurygraph.runs.store.packing import Body, unpack_message


class TraceOutline(NamedTuple):
    """A trace as it is stored, without its texts.

    `record` and `body` are those of the run that holds the verdicts; `reward` is packed as `unpack_reward` reads it,
    and its components have the given names.
    """

    task_id: str
    record: Record
    body: Body
    reward: Body
    names: Sequence[str]

    @property
    def response_id(self) -> str:
        """The id of the response."""
        return self.record.key

    @property
    def agent(self) -> str | None:
        """Who gave the response."""
        return self.body.get("agent")

    @property
    def value(self) -> float | None:
        """The reward; None where it failed."""
        value: float | None = self.reward["value"]
        return value

    @property
    def status(self) -> str:
        """Whether the reward is ok, degraded or failed."""
        return str(self.reward.get("status", "ok"))

    @property
    def coverage(self) -> float:
        """The judged share of the weight."""
        return float(self.reward.get("coverage", 1.0))

    @property
    def components(self) -> Mapping[str, float | None]:
        """The components of the reward by name."""
        values = self.reward["components" if "components" in self.reward else "terms"]
        return dict(zip(self.names, values, strict=True))


def read_outlines(run: Run) -> Iterator[TraceOutline]:
    """Return the outline of every trace, in the order of the tasks.

    Raises `TraceMismatch` where a record does not follow the one before it, or cannot be read. Texts are not looked at.
    """
    own = None if run.base is None else _traces(run)
    decisions = {} if run.base is None else {one.key: one.content["decision"] for one in run.ledger.records("task")}
    source = run.source
    records = source.ledger.chained(1, source.ledger.count if run.extent is None else run.extent)

    @lru_cache(maxsize=1024)
    def names_of(decision: str) -> list[str]:
        return [spec.name for spec in run.decision(decision).specs]

    for record in records:
        if record.kind == "task" and run.base is None:
            decisions[record.key] = intern(_content(run, record)["decision"])  # tasks share them
        elif record.kind == "group":
            decision = decisions.pop(record.key, None)
            if decision is None:
                raise TraceMismatch(f"{run.ledger.path}: has no task {record.key!r}; records of it are lost")
            for trace in islice(records, _content(run, record)["size"]):
                yield _outline(run, record.key, trace, own, names_of(decision))


def failure_message(run: Run, outline: TraceOutline, verdict: Body) -> str:
    """Return what a failed verdict of an outline says. Raises `TraceMismatch` where its text was changed."""
    seq = outline.record.seq
    return unpack_message(verdict, run.source.ledger.texts({seq: outline.body["texts"]})[seq])


def _traces(run: Run) -> Iterator[Record]:
    return (record for record in run.ledger.chained(1, run.ledger.count) if record.kind == "trace")


def _outline(
    run: Run, task_id: str, record: Record, own: Iterator[Record] | None, names: Sequence[str]
) -> TraceOutline:
    body = _content(run, record)
    if own is None:
        return TraceOutline(task_id, record, body, body["reward"], names)
    mine = next(own, None)
    if mine is None or mine.key != record.key:
        raise TraceMismatch(f"{run.ledger.path}: the trace of response {record.key!r} is missing or out of its place")
    return TraceOutline(task_id, record, body, _content(run, mine)["reward"], names)


_NEEDED = {"task": "decision", "group": "size", "trace": "reward"}


def _content(run: Run, record: Record) -> Body:
    """Return the body of a record. Raises `TraceMismatch` where it is not as a task, group or trace is written."""
    try:
        content: Body = from_json(record.body)
        if _NEEDED[record.kind] in content:
            return content
        wrong = f"states no {_NEEDED[record.kind]}"
    except (KeyError, TypeError, ValueError) as error:
        wrong = f"cannot be read ({type(error).__name__}: {error})"
    raise TraceMismatch(f"{run.ledger.path}, {named(record)}: {wrong}; it has been changed")
