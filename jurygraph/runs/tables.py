"""Tables of a run, with one row per response or one per verdict, for CSV, Parquet, Arrow and pandas."""

import importlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from tempfile import SpooledTemporaryFile
from typing import Any, Literal, NamedTuple

from pydantic import JsonValue

from jurygraph.display import ProgressCallback, format_line
from jurygraph.errors import InputError
from jurygraph.schema import RecordedVerdict, Response, Task, Trace
from jurygraph.schema.task import chat_text
from jurygraph.sources.files import close_on_error, require_temporary_space

TableName = Literal["rewards", "verdicts"]
ColumnType = Literal["string", "int64", "double", "bool"]
"""Arrow's name for the type of a column."""

ExportRow = dict[str, JsonValue]
Scored = tuple[Trace, Response | None, Task | None]

IDENTITY = ("task", "response", "agent")
"""The first columns of every table. All are named as `show` and the page name them."""

_COUNTS = ("judged", "gated", "abstained", "failed", "not_applicable")
_VERDICT = (
    *(
        "question",
        "evaluator",
        "layer",
        "subject",
        "stakeholder",
        "reviewer",
        "compared_with",
        "turn",
        "sample",
    ),
    *(
        "judge",
        "superseded",
        "score",
        "met",
        "native",
        "confidence",
        "status",
        "failure",
        "gated_by",
    ),
    *("reason", "quote", "quotes", "call"),
)
_KINDS: dict[str, ColumnType | None] = {
    **dict.fromkeys(
        ("reward", "coverage", "low", "high", "advantage", "score", "confidence"), "double"
    ),
    **dict.fromkeys((*_COUNTS, "turn", "sample", "quotes"), "int64"),
    "met": "bool",
    "superseded": "bool",
    "native": None,  # as the judges give it: numbers, truth values or texts
}
"""Types of the fixed columns that are not text."""

# bytes
_IN_MEMORY = 8 << 20
_BATCH = 16 << 20


class StoredVerdict(NamedTuple):
    """A verdict of a run, with its trace, response and task; the last two are None where they were erased."""

    verdict: RecordedVerdict
    trace: Trace
    response: Response | None
    task: Task | None

    def __repr__(self) -> str:
        return format_line("StoredVerdict", self.verdict._repr_parts())


class ExportTable:
    """Rows in a temporary file until all are known, since the names and types of columns depend on every row."""

    def __init__(self, fixed: Mapping[str, ColumnType | None]) -> None:
        self._fixed = fixed
        self._kinds = dict(fixed)
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed by `close`

    def close(self) -> None:
        self._file.close()

    def add(self, row: ExportRow) -> None:
        """Add a row: values by column; a column that is missing, or None, is an empty cell."""
        for name, value in row.items():
            if self._fixed.get(name) is None and value is not None:
                self._kinds[name] = _widen(self._kinds.get(name), value)
        self._file.write(json.dumps(row).encode() + b"\n")

    @property
    def columns(self) -> dict[str, ColumnType]:
        """Return the types of all columns: the fixed ones, then those of labels, then those of metadata."""
        ordered = sorted(
            self._kinds,
            key=lambda name: (name not in self._fixed) * (1 + name.startswith("metadata.")),
        )
        return {name: self._kinds[name] or "string" for name in ordered}

    def batches(self) -> Iterator[list[ExportRow]]:
        self._file.seek(0)
        while lines := self._file.readlines(_BATCH):
            yield [json.loads(line) for line in lines]

    def arrow_batches(self) -> tuple[Any, Iterator[Any]]:
        """Return the Arrow schema and the rows in batches; a column of mixed values has JSON texts."""
        arrow = import_library("pyarrow")
        columns = self.columns
        schema = arrow.schema(
            [(name, arrow.type_for_alias(kind)) for name, kind in columns.items()]
        )
        convert: Mapping[ColumnType, Callable[[Any], Any]] = {
            "string": to_text,
            "double": float,
            "int64": int,
            "bool": bool,
        }
        return schema, (
            arrow.RecordBatch.from_pylist(
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


def read_table(
    name: TableName,
    scored: Iterable[Scored],
    components: Sequence[str],
    texts: bool,
    report: ProgressCallback,
    scores_of: Callable[[Trace], Mapping[str, float]],
    questions: Sequence[str] = (),
    reasons: Sequence[str] = (),
    unused: Collection[str] = (),
    advantages: Mapping[str, float | None] | None = None,
    predicted: Sequence[str] = (),
    predictions_of: Callable[[Trace], Mapping[str, float]] = lambda trace: {},
) -> ExportTable:
    """Return a table of scored responses, the rest is as for `Run.read_table`.

    `components` are all names in order; `questions` and `reasons` those that have a column of scores, and of reasons;
    `scores_of` returns the scores of a trace by question, and `advantages` are a column by response, if not None;
    `predicted` are the questions with a column of what a reviewer would give, which `predictions_of` a trace returns.
    Verdicts have no column for the fields that are `unused` in the run.
    """
    numbers = {
        "predicted": predicted,
        "component": components,
        "term": components,
        "question": questions,
    }
    values: dict[str, ColumnType | None] = {
        f"{kind}.{key}": "double" for kind, names in numbers.items() for key in names
    }
    given = [f"reason.{key}" for key in reasons]
    added = () if advantages is None else ("advantage",)
    rewards = ("reward", "status", "coverage", "low", "high", *added, *values, *given, *_COUNTS)
    fields = [field for field in _VERDICT if field not in unused]
    names = (
        *IDENTITY,
        *(rewards if name == "rewards" else fields),
        *(("prompt", "text") if texts else ()),
    )
    table = ExportTable({column: (_KINDS | values).get(column, "string") for column in names})
    with close_on_error(table.close), require_temporary_space():
        for trace, response, task in scored:
            shared = _describe(trace, response, task, texts)
            if name == "rewards":
                scores = scores_of(trace) if questions else {}
                row = _reward_row(trace, reasons)
                row |= {f"question.{name}": scores[name] for name in questions if name in scores}
                predictions = predictions_of(trace) if predicted else {}
                row |= {f"predicted.{name}": value for name, value in predictions.items()}
                if advantages is not None:
                    row["advantage"] = advantages.get(trace.response_id)
                table.add(row | shared)
            else:
                for verdict in own_verdicts(trace, superseded=True):
                    table.add(_verdict_row(verdict, fields) | shared)
            report(1)
    return table


def import_library(name: Literal["pandas", "pyarrow"]) -> Any:
    """Return an optional library. Raises `InputError` with its extra where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        extra = {"pandas": "pandas", "pyarrow": "parquet"}[name]
        raise InputError(f"this needs {name}: pip install 'jurygraph[{extra}]'") from None


def own_verdicts(trace: Trace, superseded: bool = False) -> Iterator[RecordedVerdict]:
    """Yield the verdicts about a trace's response, without those about the other response of a pair that it shares.

    Those that another judge's superseded are left out, unless `superseded` is true.
    """
    own = (verdict for verdict in trace.verdicts if verdict.about == trace.response_id)
    return (verdict for verdict in own if superseded or not verdict.superseded)


def _describe(trace: Trace, response: Response | None, task: Task | None, texts: bool) -> ExportRow:
    """Return the cells that all rows of a response share; its own metadata replaces that of its task."""
    identity = (trace.task_id, trace.response_id, trace.agent)
    row: ExportRow = dict(zip(IDENTITY, identity, strict=True))
    if texts:
        row |= {
            "prompt": chat_text(task.query) if task else None,
            "text": response.text if response else None,
        }
    metadata = {**(task.metadata if task else {}), **(response.metadata if response else {})}
    row |= {f"label.{name}": value for name, value in trace.labels.items()}
    return row | {f"metadata.{name}": value for name, value in metadata.items()}


def mean_scores(response_id: str, verdicts: Iterable[RecordedVerdict]) -> dict[str, float]:
    """Return the mean score of each question's verdicts on a response, without those on its variants."""
    scores: dict[str, list[float]] = {}
    for verdict in verdicts:
        if verdict.score is not None and (
            not verdict.responses or response_id in verdict.responses
        ):
            scores.setdefault(verdict.question, []).append(verdict.score)
    return {question: fmean(values) for question, values in scores.items()}


def question_reasons(trace: Trace) -> dict[str, str]:
    """Return the reasons of each question's verdicts on a trace's response, each different one once, a line each."""
    reasons: dict[str, dict[str, None]] = {}
    for verdict in own_verdicts(trace):
        if verdict.reason and (not verdict.responses or trace.response_id in verdict.responses):
            reasons.setdefault(verdict.question, {})[verdict.reason] = None
    return {question: "\n".join(texts) for question, texts in reasons.items()}


def _reward_row(trace: Trace, reasons: Sequence[str]) -> ExportRow:
    reward = trace.reward
    low, high = reward.range or (None, None)
    row: ExportRow = {
        "reward": reward.value,
        "status": reward.status,
        "coverage": reward.coverage,
        "low": low,
        "high": high,
    }
    row |= {f"component.{name}": value for name, value in reward.components.items()}
    row |= {f"term.{term.name}": term.value for term in reward.terms}
    texts = question_reasons(trace) if reasons else {}
    row |= {f"reason.{name}": texts[name] for name in reasons if name in texts}
    counts = reward.counts
    gated = trace.gated.total()
    return row | counts.model_dump() | {"judged": counts.judged - gated, "gated": gated}


def _verdict_row(verdict: RecordedVerdict, fields: Iterable[str]) -> ExportRow:
    others = [name for name in verdict.responses if name != verdict.about]
    special: ExportRow = {
        "compared_with": others[0] if len(verdict.responses) == 2 and len(others) == 1 else None,
        "failure": verdict.failure.kind if verdict.failure else None,
        "quote": verdict.evidence[0].quote if verdict.evidence else None,
        "quotes": len(verdict.evidence),
    }
    return {name: special[name] if name in special else getattr(verdict, name) for name in fields}


def _widen(kind: ColumnType | None, value: JsonValue) -> ColumnType:
    """Return the type of a column with values of a type (None: no value yet) and one more value; lists are texts."""
    kinds: Mapping[type, ColumnType] = {bool: "bool", int: "int64", float: "double"}
    own = kinds.get(type(value), "string")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        own = "string"
    if kind in (None, own):
        return own
    return "double" if {kind, own} == {"int64", "double"} else "string"


def to_text(value: JsonValue) -> str:
    """Return a JSON value as text: a string as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
