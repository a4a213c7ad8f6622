"""Read the tables of a run: the rewards, with a row for each response, or the verdicts, with a row for each."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol, get_args

from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.errors import InputError
from jurygraph.messages import describe_value
from jurygraph.runs.export_table import (
    ColumnType,
    ExportRow,
    ExportTable,
    TableName,
    TraceWithContent,
    verdicts_about_response,
)
from jurygraph.schema import Config, Decision, RecordedVerdict, Response, Task, Trace
from jurygraph.schema.frozen_model import FrozenModel, JsonMapping, Number
from jurygraph.schema.task import chat_to_prompt_text
from jurygraph.schema.verdict import RESPONSE_GATES
from jurygraph.sources.files import close_on_error, explain_full_temp_disk

if TYPE_CHECKING:
    from jurygraph.explanation import Explanation

IDENTITY_COLUMNS = ("task", "response", "agent")
"""The first columns of every table. All are named as `show` and the page name them."""

_VERDICT_COUNT_COLUMNS = ("judged", "gated", "abstained", "failed", "not_applicable")
_VERDICT_COLUMNS = (
    "question",
    "evaluator",
    "layer",
    "subject",
    "stakeholder",
    "reviewer",
    "compared_with",
    "turn",
    "sample",
    "judge",
    "superseded",
    "score",
    "met",
    "native",
    "confidence",
    "status",
    "failure",
    "gated_by",
    "unsupported",
    "counts_as",
    "reason",
    "quote",
    "quotes",
    "call",
)
_COLUMN_TYPES: dict[str, ColumnType | None] = {
    **dict.fromkeys(
        ("reward", "coverage", "low", "high", "score", "confidence", "counts_as"),
        "double",
    ),
    **dict.fromkeys((*_VERDICT_COUNT_COLUMNS, "turn", "sample", "quotes"), "int64"),
    "met": "bool",
    "superseded": "bool",
    "native": None,  # as the judges give it: numbers, truth values or texts
}
"""Types of the fixed columns that are not text."""

_ColumnTypes = dict[str, ColumnType | None]
_TraceRowsFunction = Callable[[Trace], Iterable[ExportRow]]


class MeasuredError(FrozenModel):
    """How far off a judge of a reviewer was in a study, on average over all `n` ratings that it predicted.

    `mae` and `own_mean`, the error of always giving the mean of the reviewer's other ratings, are in units of the
    scale; it is None where it was not measured. `exact` is the share of predictions that are less than half a `step`
    from the rating, and `near` of those within one. `conclusion` says how it compares with that mean, if the
    study does.
    """

    n: int
    mae: Number
    own_mean: Number | None
    step: Number
    exact: Number
    near: Number
    conclusion: str = ""


class RunForTables(Protocol):
    """The parts of a run that its tables show. (A protocol, because a run imports what reads its tables.)"""

    @property
    def config(self) -> Config: ...
    def components(self) -> list[str]: ...
    def decision_of(self, task_id: str) -> Decision: ...
    def questions(self) -> list[str]: ...
    def reviewer_questions(self) -> list[str]: ...
    def question_scores(self, trace: Trace) -> dict[str, float]: ...
    def predicted_scores(self, trace: Trace) -> dict[str, float]: ...
    def explain_trace(self, trace: Trace) -> "Explanation": ...
    def labels_with_session(self, trace: Trace) -> JsonMapping: ...
    def responses_with_tasks(self) -> Iterator[TraceWithContent]: ...


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Additions to a table, as `jurygraph export` names them, and a callback with the number of responses read.

    `texts` are `prompt`, `text` and `context`; the others are of the rewards alone: the scores of questions, their
    reasons, what components are made of, and further `numbers` by response. Verdicts have rows of their own.
    `responses` are the ids of those that it has, None: all. `by` is the label by which a workbook compares agents, and
    `errors` say how far off its predictions are, by question; those of a name that ends in @ are of reviewers without
    ratings, who are judged from everybody's.
    """

    texts: bool = False
    questions: bool = False
    reasons: bool = False
    parts: bool = False
    numbers: Mapping[str, ExportRow] = field(default_factory=dict)
    report: ProgressCallback = ignore_progress
    responses: Collection[str] | None = None
    by: str | None = None
    errors: Mapping[str, MeasuredError] = field(default_factory=dict)

    def read_responses(self, run: RunForTables) -> Iterator[TraceWithContent]:
        """Yield the responses that the table has, with their tasks."""
        for trace, response, task in run.responses_with_tasks():
            if self.responses is None or trace.response_id in self.responses:
                yield trace, response, task
            self.report(1)


def open_export_table(
    run: RunForTables, name: TableName = "rewards", options: TableOptions = TableOptions()
) -> ExportTable:
    """Read the table of the rewards, one row per response, or of the verdicts, one row each; to be closed.

    Raises `InputError` for another name.
    """
    if name not in get_args(TableName):
        expected = " or ".join(map(repr, get_args(TableName)))
        raise InputError(f"name: expected {expected}, got {describe_value(name)}")
    columns, iter_table_rows = (
        _reward_columns_and_rows(run, options)
        if name == "rewards"
        else _verdict_columns_and_rows(run)
    )
    texts = ("prompt", "text") if options.texts else ()
    table = ExportTable(_column_types(*IDENTITY_COLUMNS) | columns | _column_types(*texts))
    with close_on_error(table.close), explain_full_temp_disk():
        for trace, response, task in options.read_responses(run):
            labels = run.labels_with_session(trace)
            shared_cells = _describe(trace, response, task, options.texts) | {
                f"label.{name}": value for name, value in labels.items()
            }
            for row in iter_table_rows(trace):
                table.add(row | shared_cells)
    return table


def _reward_columns_and_rows(
    run: RunForTables, options: TableOptions
) -> tuple[_ColumnTypes, _TraceRowsFunction]:
    """Return the columns of the rewards, and what builds the row of a trace."""
    components = run.components()
    reviewer_questions = run.reviewer_questions()
    questions = run.questions() if options.questions else []
    reasons = run.questions() if options.reasons else []
    numbers = {
        "predicted": reviewer_questions,
        "component": components,
        "term": components,
        "question": questions,
    }
    columns = _column_types("reward", "status", "coverage", "low", "high")
    for numbers_of_response in options.numbers.values():
        columns |= dict.fromkeys(numbers_of_response, "double")
    columns |= {f"{kind}.{key}": "double" for kind, names in numbers.items() for key in names}
    columns |= _column_types(*(f"reason.{key}" for key in reasons), *_VERDICT_COUNT_COLUMNS)
    if reviewer_questions:
        columns |= _column_types("unsupported")

    def rows(trace: Trace) -> Iterator[ExportRow]:
        row = _reward_row(trace, reasons)
        scores = run.question_scores(trace) if questions else {}
        row |= {f"question.{name}": scores[name] for name in questions if name in scores}
        predictions = run.predicted_scores(trace) if reviewer_questions else {}
        row |= {f"predicted.{name}": value for name, value in predictions.items()}
        if reviewer_questions:  # the reward counts as the worst what `predicted` leaves out
            worst_cases = filter(attrgetter("is_worst_case"), verdicts_about_response(trace))
            questions_of_worst_cases = dict.fromkeys(map(attrgetter("question"), worst_cases))
            row["unsupported"] = ", ".join(questions_of_worst_cases) or None
        if options.parts:
            row |= _part_cells(trace, run.decision_of(trace.task_id))
        yield row | options.numbers.get(trace.response_id, {})

    return columns, rows


def _part_cells(trace: Trace, decision: Decision) -> ExportRow:
    """Return the parts of each component, such as q of a criterion and û of a stakeholder, and their weights in it."""
    cells: ExportRow = {}
    for spec in decision.specs:
        for name, value in trace.reward.parts.get(spec.name, {}).items():
            cells[f"part.{spec.name}.{name}"] = value
            if name in spec.inputs:
                cells[f"weight.{spec.name}.{name}"] = spec.inputs[name].signed_weight
    return cells


def _verdict_columns_and_rows(run: RunForTables) -> tuple[_ColumnTypes, _TraceRowsFunction]:
    """Return the columns of the verdicts, without those that are unused in the run, and what builds a trace's rows."""
    unused_columns = set() if run.config.models else {"judge", "superseded"}
    if not any(use.scope for use in run.config.evaluators):
        unused_columns.add("turn")
    columns = _column_types(*(field for field in _VERDICT_COLUMNS if field not in unused_columns))

    def rows(trace: Trace) -> Iterator[ExportRow]:
        verdicts = verdicts_about_response(trace, superseded=True)
        counts_as = {}
        if any(v.is_worst_case or v.gated_by in RESPONSE_GATES for v in trace.verdicts):
            verdict_explanations = run.explain_trace(trace).explained.verdicts
            counts_as = {one.verdict.key: one.worst_case_score for one in verdict_explanations}
        for verdict in verdicts:
            yield _verdict_row(verdict, columns, counts_as.get(verdict.key))

    return columns, rows


def _column_types(*names: str) -> _ColumnTypes:
    return {name: _COLUMN_TYPES.get(name, "string") for name in names}


def _describe(trace: Trace, response: Response | None, task: Task | None, texts: bool) -> ExportRow:
    """Return the cells that all rows of a response share; its own metadata replaces that of its task."""
    identity = (trace.task_id, trace.response_id, trace.agent)
    row: ExportRow = dict(zip(IDENTITY_COLUMNS, identity, strict=True))
    if texts:
        row |= {
            "prompt": chat_to_prompt_text(task.query) if task else None,
            "text": response.text if response else None,
        }
        if task and task.context:
            row["context"] = "\n\n".join(passage.text for passage in task.context)
    if task and task.group is not None:
        row["group"] = task.group
    metadata = {**(task.metadata if task else {}), **(response.metadata if response else {})}
    return row | {f"metadata.{name}": value for name, value in metadata.items()}


def reasons_by_question(trace: Trace) -> dict[str, str]:
    """Return the reasons of each question's verdicts on a trace's response, each different one once, a line each."""
    reasons: dict[str, dict[str, None]] = {}
    for verdict in verdicts_about_response(trace):
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
    texts = reasons_by_question(trace) if reasons else {}
    row |= {f"reason.{name}": texts[name] for name in reasons if name in texts}
    counts = reward.counts
    gated_verdict_count = trace.gated.total()
    return (
        row
        | counts.model_dump()
        | {"judged": counts.judged - gated_verdict_count, "gated": gated_verdict_count}
    )


def _verdict_row(
    verdict: RecordedVerdict, fields: Iterable[str], counts_as: float | None
) -> ExportRow:
    others = [name for name in verdict.responses if name != verdict.about]
    derived_cells = {
        "compared_with": others[0] if len(verdict.responses) == 2 and len(others) == 1 else None,
        "failure": verdict.failure.kind if verdict.failure else None,
        "quote": verdict.evidence[0].quote if verdict.evidence else None,
        "quotes": len(verdict.evidence),
        "counts_as": counts_as,
    }
    if counts_as is not None and verdict.gated_by is not None:
        # no judge has said anything else
        derived_cells |= {"score": counts_as, "met": counts_as == 1.0}
    return {
        name: derived_cells[name] if name in derived_cells else getattr(verdict, name)
        for name in fields
    }
