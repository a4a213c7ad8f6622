"""Read traces without their texts: enough for a table or a summary of a run, in a fraction of the time."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from sys import intern
from typing import NamedTuple

from pydantic_core import from_json

from jurygraph.errors import TraceMismatch
from jurygraph.runs.run import Run
from jurygraph.runs.store.chain import Record, record_label
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
        """Return the id of the response."""
        return self.record.key

    @property
    def agent(self) -> str | None:
        """Return the agent that gave the response."""
        return self.body.get("agent")

    @property
    def value(self) -> float | None:
        """Return the reward; None where it failed."""
        value: float | None = self.reward["value"]
        return value

    @property
    def status(self) -> str:
        """Return the status of the reward: ok, degraded or failed."""
        return str(self.reward.get("status", "ok"))

    @property
    def coverage(self) -> float:
        """Return the judged share of the weight, in [0, 1]."""
        return float(self.reward.get("coverage", 1.0))

    @property
    def components(self) -> Mapping[str, float | None]:
        """Return the components of the reward by name."""
        values = self.reward["components" if "components" in self.reward else "terms"]
        return dict(zip(self.names, values, strict=True))


def read_outlines(run: Run) -> Iterator[TraceOutline]:
    """Yield the outline of every trace, in the order of the tasks; texts are not read.

    Raises `TraceMismatch` where a record does not follow the one before it, or cannot be read.
    """
    own_traces = None if run.base is None else _trace_records(run)
    decisions = (
        {} if run.base is None else {record.key: record.content["decision"] for record in run.ledger.records("task")}
    )
    source = run.source
    records = source.ledger.verified_records(
        1, source.ledger.count if run.last_base_record is None else run.last_base_record
    )

    @lru_cache(maxsize=1024)
    def names_of(decision: str) -> list[str]:
        return [spec.name for spec in run.decision(decision).specs]

    for record in records:
        if record.kind == "task" and run.base is None:
            # interned: many tasks have the same digest
            decisions[record.key] = intern(_read_body(run, record)["decision"])
        elif record.kind == "group":
            decision = decisions.pop(record.key, None)
            if decision is None:
                raise TraceMismatch(f"{run.ledger.path}: has no task {record.key!r}; records of it are lost")
            for trace in islice(records, _read_body(run, record)["size"]):
                yield _build_outline(run, record.key, trace, own_traces, names_of(decision))


def failure_message(run: Run, outline: TraceOutline, verdict: Body) -> str:
    """Return the failure message of a failed verdict. Raises `TraceMismatch` where its text was changed."""
    seq = outline.record.seq
    return unpack_message(verdict, run.source.ledger.texts({seq: outline.body["texts"]})[seq])


def _trace_records(run: Run) -> Iterator[Record]:
    return (record for record in run.ledger.verified_records(1, run.ledger.count) if record.kind == "trace")


def _build_outline(
    run: Run, task_id: str, record: Record, own_traces: Iterator[Record] | None, names: Sequence[str]
) -> TraceOutline:
    body = _read_body(run, record)
    if own_traces is None:
        return TraceOutline(task_id, record, body, body["reward"], names)
    own_record = next(own_traces, None)
    if own_record is None or own_record.key != record.key:
        raise TraceMismatch(f"{run.ledger.path}: the trace of response {record.key!r} is missing or out of its place")
    return TraceOutline(task_id, record, body, _read_body(run, own_record)["reward"], names)


_REQUIRED_KEYS = {"task": "decision", "group": "size", "trace": "reward"}


def _read_body(run: Run, record: Record) -> Body:
    """Return the body of a record. Raises `TraceMismatch` where it is not the body of a task, group or trace."""
    try:
        content: Body = from_json(record.body)
        if _REQUIRED_KEYS[record.kind] in content:
            return content
        problem = f"has no {_REQUIRED_KEYS[record.kind]}"
    except (KeyError, TypeError, ValueError) as error:
        problem = f"cannot be read ({type(error).__name__}: {error})"
    raise TraceMismatch(f"{run.ledger.path}, {record_label(record)}: {problem}; it has been changed")
