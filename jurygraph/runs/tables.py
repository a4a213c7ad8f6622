"""Tables of a run, with one row per response or one per verdict, for CSV, Parquet, Arrow and pandas."""

import importlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, Literal

from pydantic import JsonValue

from jurygraph.errors import InputError
from jurygraph.schema import RecordedVerdict, Response, Task, Trace
from jurygraph.schema.task import chat_text
from jurygraph.sources.files import require_temporary_space

if TYPE_CHECKING:
    import pandas
    import pyarrow

TableName = Literal["rewards", "verdicts"]
Kind = Literal["text", "int", "float", "bool", "json"]
"""Type of a column; `json` holds values of several types, or lists and objects, as JSON text."""

Row = dict[str, JsonValue]
Scored = tuple[Trace, Response | None, Task | None]

IDENTITY: Mapping[str, Kind] = {"task_id": "text", "response_id": "text", "agent": "text"}
"""The first columns of every table."""

_TEXTS: Mapping[str, Kind] = {"prompt": "text", "response": "text"}
_NUMBERS: Mapping[str, Kind] = {"coverage": "float", "low": "float", "high": "float"}
_COUNTS: Mapping[str, Kind] = {"judged": "int", "abstained": "int", "failed": "int", "not_applicable": "int"}
_VERDICT: Mapping[str, Kind | None] = {
    **dict.fromkeys(("question", "evaluator", "layer", "subject", "stakeholder", "reviewer", "compared_with"), "text"),
    "sample": "int",
    "score": "float",
    "met": "bool",
    "native": None,
    "confidence": "float",
    **dict.fromkeys(("status", "failure", "gated_by", "reason", "quote"), "text"),
    "quotes": "int",
    "call": "text",
}
"""Columns of a verdict, with their types; that of `native`, the judge's own value, depends on the judges."""

_IN_MEMORY, _BATCH = 8 << 20, 16 << 20  # bytes


class Table:
    """The rows of a table, in a temporary file until all are known: names and types of columns depend on every row.

    `columns` gives the type of each column by name, in order: fixed ones, `label.NAME`, then `metadata.NAME`.
    """

    def __init__(self, fixed: Mapping[str, Kind | None]) -> None:
        self._fixed, self._kinds = fixed, dict(fixed)
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed by `close`

    def close(self) -> None:
        """Delete the rows; may be called more than once."""
        self._file.close()

    def add(self, row: Row) -> None:
        """Add a row: values by column; a column that is missing, or None, is an empty cell."""
        for name, value in row.items():
            if self._fixed.get(name) is None and value is not None:
                self._kinds[name] = _widen(self._kinds.get(name), value)
        self._file.write(json.dumps(row).encode() + b"\n")

    @property
    def columns(self) -> dict[str, Kind]:
        """Return the types of all columns, in order; one without any value is text."""
        ordered = sorted(self._kinds, key=lambda name: (name not in self._fixed) * (1 + name.startswith("metadata.")))
        return {name: self._kinds[name] or "text" for name in ordered}

    def batches(self) -> Iterator[list[Row]]:
        """Yield the rows, some megabytes at a time."""
        self._file.seek(0)
        while lines := self._file.readlines(_BATCH):
            yield [json.loads(line) for line in lines]

    def to_arrow(self) -> "pyarrow.Table":
        """Return an Arrow table. Raises `InputError` where pyarrow is not installed."""
        schema, batches = self.arrow_batches()
        return import_library("pyarrow").Table.from_batches(batches, schema=schema)

    def arrow_batches(self) -> tuple["pyarrow.Schema", Iterator["pyarrow.RecordBatch"]]:
        """Return the Arrow schema and the rows in batches. Raises `InputError` where pyarrow is not installed."""
        pa = import_library("pyarrow")
        types = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
        columns = self.columns
        schema = pa.schema([(name, types.get(kind, pa.string())) for name, kind in columns.items()])
        return schema, (
            pa.RecordBatch.from_pylist([_convert(row, columns) for row in rows], schema=schema)
            for rows in self.batches()
        )

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a pandas DataFrame of nullable columns. Raises `InputError` where pandas is not installed."""
        types = {"int": "Int64", "float": "float64", "bool": "boolean"}
        columns = self.columns
        rows = [tuple(_convert(row, columns).values()) for batch in self.batches() for row in batch]
        frame = import_library("pandas").DataFrame.from_records(rows, columns=list(columns))
        return frame.astype({name: types.get(kind, "string") for name, kind in columns.items()})


def read_table(
    name: TableName,
    scored: Iterable[Scored],
    components: Sequence[str],
    texts: bool,
    report: Callable[[int], None],
) -> Table:
    """Return the table of the rewards or of the verdicts of scored responses; to be closed.

    `components` are the names of all components, in order. `texts` adds the columns `prompt` and `response`. `report`
    receives the numbers of responses read.
    """
    columns: Mapping[str, Kind | None] = _VERDICT
    if name == "rewards":
        values: Mapping[str, Kind] = {f"component.{component}": "float" for component in components}
        columns = {"value": "float", "status": "text", **_NUMBERS, **values, **_COUNTS}
    table = Table({**IDENTITY, **columns, **(_TEXTS if texts else {})})
    with ExitStack() as on_error, require_temporary_space():
        on_error.callback(table.close)
        for trace, response, task in scored:
            shared = _describe(trace, response, task, texts)
            for row in [_reward_row(trace)] if name == "rewards" else map(_verdict_row, own_verdicts(trace)):
                table.add(row | shared)
            report(1)
        on_error.pop_all()
    return table


def import_library(name: Literal["pandas", "pyarrow"]) -> Any:
    """Return an optional library. Raises `InputError` with its extra where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        extra = {"pandas": "pandas", "pyarrow": "parquet"}[name]
        raise InputError(f"this needs {name}: pip install 'jurygraph[{extra}]'") from None


def own_verdicts(trace: Trace) -> Iterator[RecordedVerdict]:
    """Yield the verdicts about a trace's response, without those about the other response of a pair that it shares."""
    return (verdict for verdict in trace.verdicts if verdict.about == trace.response_id)


def _describe(trace: Trace, response: Response | None, task: Task | None, texts: bool) -> Row:
    """Return the cells that all rows of a response share; its own metadata replaces that of its task."""
    metadata = {**(task.metadata if task else {}), **(response.metadata if response else {})}
    row: Row = {"task_id": trace.task_id, "response_id": trace.response_id, "agent": trace.agent}
    if texts:
        row |= {"prompt": chat_text(task.query) if task else None, "response": response.text if response else None}
    row |= {f"label.{name}": value for name, value in trace.labels.items()}
    return row | {f"metadata.{name}": value for name, value in metadata.items()}


def _reward_row(trace: Trace) -> Row:
    reward = trace.reward
    low, high = reward.range or (None, None)
    row: Row = {"value": reward.value, "status": reward.status, "coverage": reward.coverage, "low": low, "high": high}
    row |= {f"component.{name}": value for name, value in reward.components.items()}
    return row | {name: getattr(reward.counts, name) for name in _COUNTS}


def _verdict_row(verdict: RecordedVerdict) -> Row:
    others = [name for name in verdict.responses if name != verdict.about]
    special: Row = {
        "compared_with": others[0] if len(verdict.responses) == 2 and len(others) == 1 else None,
        "failure": verdict.failure.kind if verdict.failure else None,
        "quote": verdict.evidence[0].quote if verdict.evidence else None,
        "quotes": len(verdict.evidence),
    }
    return {name: special[name] if name in special else getattr(verdict, name) for name in _VERDICT}


def _widen(kind: Kind | None, value: JsonValue) -> Kind:
    """Return the type of a column that holds values of a type, None for no value yet, and one more value."""
    if isinstance(value, str):
        own: Kind = "text"
    elif isinstance(value, bool):
        own = "bool"
    elif isinstance(value, float):
        own = "float"
    else:
        own = "int" if isinstance(value, int) and -(2**63) <= value < 2**63 else "json"
    if kind in (None, own):
        return own
    return "float" if {kind, own} == {"int", "float"} else "json"


def _convert(row: Row, columns: Mapping[str, Kind]) -> dict[str, Any]:
    """Return a value of its column's type, or None, for each column."""
    return {name: _to_kind(row.get(name), kind) for name, kind in columns.items()}


def _to_kind(value: Any, kind: Kind) -> Any:
    if value is None:
        return None
    if kind == "json":
        return to_text(value)
    return float(value) if kind == "float" else value


def to_text(value: JsonValue) -> str:
    """Return a JSON value as text: a string as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
