"""Traces as JSON lines, and the audit bundle that holds them with the ledger."""

from collections.abc import Iterator
from pathlib import Path

from jurygraph.messages import escape_hidden_characters
from jurygraph.runs.run import Run
from jurygraph.schema import Trace


def trace_to_json_line(trace: Trace) -> bytes:
    """Return a trace as one printable line of JSON, with invisible characters escaped and without newline."""
    return escape_hidden_characters(trace.model_dump_json()).encode()


def export_traces_as_jsonl(run: Run) -> Iterator[bytes]:
    for trace in run.traces():
        yield trace_to_json_line(trace) + b"\n"


def write_audit_bundle(run: Run, path: Path) -> None:
    """Write the audit bundle of a run. Raises as `export_bundle`."""
    from jurygraph.runs.integrity.verification import export_bundle  # lazily: it loads LangGraph

    export_bundle(run, path, export_traces_as_jsonl(run))
