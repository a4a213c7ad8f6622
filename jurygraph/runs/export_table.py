"""Tables of a run, with one row per response or one per verdict, for CSV, Parquet, Arrow and pandas."""

import importlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from statistics import fmean
from tempfile import SpooledTemporaryFile
from typing import Any, Literal, NamedTuple

from pydantic import JsonValue

from jurygraph.display import format_repr_line
from jurygraph.errors import InputError
from jurygraph.schema import RecordedVerdict, Response, Task, Trace

TableName = Literal["rewards", "verdicts"]
ColumnType = Literal["string", "int64", "double", "bool"]
"""Arrow's name for the type of a column."""

ExportRow = dict[str, JsonValue]
TraceWithContent = tuple[Trace, Response | None, Task | None]
"""A trace with its response and task; the last two are None where they were erased."""

_MAX_BYTES_IN_MEMORY = 8 << 20
_BATCH_BYTES = 16 << 20


class StoredVerdict(NamedTuple):
    """A verdict of a run, with its trace, response and task; the last two are None where they were erased."""

    verdict: RecordedVerdict
    trace: Trace
    response: Response | None
    task: Task | None

    def __repr__(self) -> str:
        return format_repr_line("StoredVerdict", self.verdict._repr_parts())


class ExportTable:
    """Rows in a temporary file until all are known, since the names and types of columns depend on every row."""

    def __init__(self, type_by_fixed_column: Mapping[str, ColumnType | None]) -> None:
        self._fixed = type_by_fixed_column
        self._kinds = dict(type_by_fixed_column)
        self._file = SpooledTemporaryFile(_MAX_BYTES_IN_MEMORY)  # noqa: SIM115 - closed by `close`

    def close(self) -> None:
        self._file.close()

    def add(self, row: ExportRow) -> None:
        """Add a row: values by column; a column that is missing, or None, is an empty cell."""
        for name, value in row.items():
            if self._fixed.get(name) is None and value is not None:
                self._kinds[name] = _widen_type(self._kinds.get(name), value)
        self._file.write(json.dumps(row).encode() + b"\n")

    @property
    def columns(self) -> dict[str, ColumnType]:
        """Return the types of all columns: the fixed ones, then those of labels, then those of metadata."""
        sorted_names = sorted(
            self._kinds,
            key=lambda name: (name not in self._fixed) * (1 + name.startswith("metadata.")),
        )
        return {name: self._kinds[name] or "string" for name in sorted_names}

    def batches(self) -> Iterator[list[ExportRow]]:
        self._file.seek(0)
        while lines := self._file.readlines(_BATCH_BYTES):
            yield [json.loads(line) for line in lines]

    def arrow_batches(self) -> tuple[Any, Iterator[Any]]:
        """Return the Arrow schema and the rows in batches; a column of mixed values has JSON texts."""
        pyarrow = import_library("pyarrow")
        columns = self.columns
        schema = pyarrow.schema(
            [(name, pyarrow.type_for_alias(kind)) for name, kind in columns.items()]
        )
        convert: Mapping[ColumnType, Callable[[Any], Any]] = {
            "string": json_value_to_text,
            "double": float,
            "int64": int,
            "bool": bool,
        }
        return schema, (
            pyarrow.RecordBatch.from_pylist(
                [
                    {
                        name: convert[columns[name]](row[name])
                        for name in row
                        if row[name] is not None
                    }
                    for row in rows
                ],
                schema,
            )
            for rows in self.batches()
        )


def import_library(name: Literal["pandas", "pyarrow", "openpyxl"]) -> Any:
    """Return an optional library. Raises `InputError` with its extra where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        extra_name = {"pandas": "pandas", "pyarrow": "parquet", "openpyxl": "xlsx"}[name]
        raise InputError(f"this needs {name}: pip install 'jurygraph[{extra_name}]'") from None


def verdicts_about_response(trace: Trace, superseded: bool = False) -> Iterator[RecordedVerdict]:
    """Yield the verdicts about a trace's response, without those about the other response of a pair that it shares.

    Those that another judge's superseded are left out, unless `superseded` is true.
    """
    for verdict in trace.verdicts:
        if verdict.about == trace.response_id and (superseded or not verdict.superseded):
            yield verdict


def mean_score_by_question(
    response_id: str, verdicts: Iterable[RecordedVerdict]
) -> dict[str, float]:
    """Return the mean score of each question's verdicts on a response, without those on its variants."""
    scores: dict[str, list[float]] = {}
    for verdict in verdicts:
        if verdict.score is not None and (
            not verdict.responses or response_id in verdict.responses
        ):
            scores.setdefault(verdict.question, []).append(verdict.score)
    return {question: fmean(values) for question, values in scores.items()}


def _widen_type(kind: ColumnType | None, value: JsonValue) -> ColumnType:
    """Return the type of a column with values of a type (None: no value yet) and one more value; lists are texts."""
    kinds: Mapping[type, ColumnType] = {bool: "bool", int: "int64", float: "double"}
    value_type = kinds.get(type(value), "string")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        value_type = "string"
    if kind in (None, value_type):
        return value_type
    return "double" if {kind, value_type} == {"int64", "double"} else "string"


def json_value_to_text(value: JsonValue) -> str:
    """Return a JSON value as text: a string as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
