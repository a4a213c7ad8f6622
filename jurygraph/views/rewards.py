"""The view of a run's rewards: a table with a row for each selected response, and what its mean leaves out."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from jurygraph.decision.decide import SAMPLE_SPREAD_DIAGNOSTIC
from jurygraph.display import is_filled_in
from jurygraph.errors import InputError
from jurygraph.messages import (
    did_you_mean,
    join_names,
    shorten,
    suggest_known_name,
)
from jurygraph.runs.export_table import json_value_to_text
from jurygraph.runs.reports.gate import CiThreshold, parse_threshold
from jurygraph.runs.run import Run
from jurygraph.runs.store.packing import (
    ERASED_PLACEHOLDER,
    compare_judges_by_question,
    unpack_response_text,
)
from jurygraph.runs.stored_groups import TraceWithoutTexts, read_stored_groups
from jurygraph.schema import Trace
from jurygraph.schema.frozen_model import JsonMapping

if TYPE_CHECKING:
    from jurygraph.runs.reports.summary import AgentRow, FailedRewards, FindingCounts

T = TypeVar("T")
LabelText = tuple[str, str]
"""The name of a label, and its value as text."""
_LABEL_CONDITION_PATTERN = re.compile("label[.]([^<>=]+)=([^=].*)", re.DOTALL)


class ComponentValue(NamedTuple):
    """A component's value from the judged verdicts alone, and the value that counts; None if none does."""

    judged: float | None
    counted: float | None

    @property
    def is_filled_in(self) -> bool:
        return is_filled_in(self.judged, self.counted)


class RewardColumn(NamedTuple):
    """A column of the table: its name, and its value of a response, a `ComponentValue` for a component."""

    name: str
    value: Callable[[TraceWithoutTexts], Any]
    is_text: bool = False

    def sort_key(self, trace: TraceWithoutTexts) -> tuple[bool, Any] | None:
        """Return the key of a response, numbers before texts; None without a value."""
        value = self.value(trace)
        key = value.counted if isinstance(value, ComponentValue) else value
        if key is None:
            return None
        is_number = isinstance(key, int | float)
        return not is_number, key if is_number else json_value_to_text(key)

    def meets(self, condition: CiThreshold, trace: TraceWithoutTexts) -> bool:
        is_text, value = self.sort_key(trace) or (True, None)
        return not is_text and condition.is_met(value)


def _count_unsupported_verdicts(trace: TraceWithoutTexts) -> int:
    verdicts = trace.body["verdicts"]
    return sum("unsupported" in verdict and not verdict.get("superseded") for verdict in verdicts)


def largest_disagreement(trace: TraceWithoutTexts) -> float | None:
    """Return how far two judges of a question are apart, where they are farthest, or without several judges two samples
    of one; None without either."""
    compared = compare_judges_by_question(trace.body["verdicts"])
    differences = [difference for difference, _ in compared]
    spreads = [
        figures[SAMPLE_SPREAD_DIAGNOSTIC]
        for figures in trace.reward.get("diagnostics", {}).values()
        if SAMPLE_SPREAD_DIAGNOSTIC in figures
    ]
    return max(differences or spreads, default=None)


_COLUMNS = {
    column.name: column
    for column in (
        RewardColumn("response", attrgetter("response_id"), True),
        RewardColumn("agent", attrgetter("agent"), True),
        RewardColumn(
            "status",
            lambda trace: f"{trace.status}, gated" if trace.gates else trace.status,
            True,
        ),
        RewardColumn("reward", attrgetter("value")),
        RewardColumn("best", attrgetter("best")),
        RewardColumn("coverage", attrgetter("coverage")),
        RewardColumn("gates", lambda trace: ", ".join(trace.gates) or None, True),
        RewardColumn(
            "disagreement",
            largest_disagreement,
        ),
        RewardColumn("unsupported", _count_unsupported_verdicts),
    )
}
_FIXED_COLUMNS = ("response", "agent", "status", "reward", "best", "coverage")
"""Columns that are shown by default, `best` where it differs; the others, `query` and `text`, only if named."""
_SESSION_COLUMN = "label.session"
_COLUMNS_SHOWN_IF_DIFFERENT = ("best", _SESSION_COLUMN)
_MAX_TABLE_COLUMNS = 12
"""So many columns a terminal shows beside each other; a table with more leaves the predictions to `--columns`."""
PREDICTED_COLUMN_PREFIX = "predicted."
"""Begins the name of a column whose values are on a reviewer's own scale, such as 4 of 1 to 5."""
_STANDARD_COLUMNS = (*_COLUMNS, "query", "text")


class ResponseSelection(NamedTuple):
    """The responses to show: those with a status, of an agent, with each `label` and where all conditions on columns
    hold, such as `faithful<0.5`, in the order of a column.

    They are the first `limit`.

    The status `gated` means any reward that a response gate or a reward gate changed. `sort` is the name of a column,
    after a minus for the reverse order; rows without a value come last.
    """

    status: str | None = None
    agent: str | None = None
    sort: str | None = None
    limit: int | None = None
    label: Sequence[str] | None = None
    where: Sequence[str] | None = None

    @property
    def labels(self) -> list[LabelText]:
        """Return the labels that are wanted, with those of conditions such as `label.step=312`."""
        labels = []
        for text in self.label or ():
            name, separator, value = text.partition("=")
            if not name or not separator:
                raise InputError(f"--label: expected NAME=VALUE, such as step=312, got {text!r}")
            labels.append((name, value))
        conditions = filter(None, map(_LABEL_CONDITION_PATTERN.fullmatch, self.conditions))
        return [*labels, *((match[1], match[2]) for match in conditions)]

    @property
    def conditions(self) -> list[str]:
        """Return the texts of single conditions, which `and` may join; it may stand in the value of a label, too."""
        conditions: list[str] = []
        for text in self.where or ():
            for index, part in enumerate(text.split(" and ")):
                if index and not _is_condition(part):
                    conditions[-1] += f" and {part}"
                else:
                    conditions.append(part)
        return conditions

    @property
    def thresholds(self) -> list[CiThreshold]:
        """Return the conditions on numbers. Raises `InputError` for a text that is no condition."""
        thresholds = []
        for text in self.conditions:
            if _LABEL_CONDITION_PATTERN.fullmatch(text):
                continue  # as `label`
            condition, _ = parse_threshold(text)
            if condition is None:
                raise InputError(
                    f"--where: {text!r} is no condition; write it as in 'reward<0.5', or label.NAME=VALUE"
                )
            thresholds.append(condition)
        return thresholds

    def select(self, run: Run, content: Callable[[TraceWithoutTexts], T]) -> Iterable[T]:
        """Return the content of each selected response; without `sort`, one group at a time is in memory.

        Raises `InputError` for an unknown column or agent.
        """
        if self.sort is None:
            return islice(map(content, self._traces_that_meet_conditions(run)), self.limit)
        is_descending = self.sort.startswith("-") and self.sort not in _components_by_column(run)
        column = find_column(run, "--sort", self.sort[is_descending:], make_score_readers(run))
        rows = [
            (column.sort_key(trace), content(trace))
            for trace in self._traces_that_meet_conditions(run)
        ]
        present = [row for row in rows if row[0] is not None]
        present.sort(key=itemgetter(0), reverse=is_descending)
        absent = [row for row in rows if row[0] is None]
        return [item for _, item in (*present, *absent)][: self.limit]

    def _traces_that_meet_conditions(self, run: Run) -> Iterator[TraceWithoutTexts]:
        scores = make_score_readers(run)
        conditions = [
            (find_column(run, "--where", condition.name, scores), condition)
            for condition in self.thresholds
        ]
        for trace in self._selected_traces(run):
            if all(column.meets(condition, trace) for column, condition in conditions):
                yield trace

    def _selected_traces(self, run: Run) -> Iterator[TraceWithoutTexts]:
        agents: dict[str, None] = {}
        values_by_label: dict[str, dict[str, None]] = defaultdict(dict)
        wanted_labels = self._choose_wanted_labels(run)
        has_labelled_response = False
        read = make_trace_reader(run)
        for group in read_stored_groups(run):
            for trace in group.traces:
                if trace.agent:
                    agents[trace.agent] = None
                labels: JsonMapping = {}
                if wanted_labels:
                    labels = run.labels_with_session(read(stored_response_location(trace)))
                texts = {name: json_value_to_text(value) for name, value in labels.items()}
                for name, text in texts.items():
                    values_by_label[name][text] = None
                if wanted_labels <= texts.items():
                    has_labelled_response = True
                    if self._includes_trace(trace):
                        yield trace
        if self.agent is not None and self.agent not in agents:
            hint = suggest_known_name(self.agent, agents)
            raise InputError(f"{run.folder}: has no response of agent {self.agent!r}; {hint}")
        if wanted_labels and not has_labelled_response:
            raise InputError(f"{run.folder}: {self._describe_missing_label(values_by_label)}")

    def _choose_wanted_labels(self, run: Run) -> set[LabelText]:
        """Return the labels to look for: that of the first session is not stored, and the only session has no other."""
        wanted_labels = set(self.labels)
        first_session = ("session", "1")
        if first_session in wanted_labels and run.session_count == 1:
            wanted_labels.remove(first_session)
        return wanted_labels

    def _describe_missing_label(self, values_by_label: Mapping[str, Iterable[str]]) -> str:
        """Return which label no response has; or else that none has all of them."""
        for name, text in self.labels:
            values = values_by_label.get(name, ())
            known_values_text = (
                f"its labels: {', '.join(sorted(values_by_label)) or 'none; metadata is no label'}"
            )
            if values:
                # numbers by their size: steps of several ranks are stored in any order
                ordered_values = sorted(values, key=lambda value: (len(value), value))
                known_values_text = f"values of {name}: {join_names(ordered_values)}"
            if text not in values:
                return f"no response has the label {name}={text}; {known_values_text}"
        names = join_names(f"{name}={text}" for name, text in self.labels)
        return f"no response has all of the labels {names}; leave one out"

    def _includes_trace(self, trace: TraceWithoutTexts) -> bool:
        statuses = (None, trace.status, "gated" if trace.gates else None)
        return self.agent in (None, trace.agent) and self.status in statuses


def _is_condition(text: str) -> bool:
    return bool(_LABEL_CONDITION_PATTERN.fullmatch(text) or parse_threshold(text)[0])


class RewardTable(NamedTuple):
    """The rewards of the selected responses: a row of values for each, and the means of their agents.

    Columns of text come first. `left_out` describes the failed rewards, which the mean leaves out, and `findings` those
    of the whole run that need a quotation; without an unsupported one they are not counted.
    """

    columns: Sequence[RewardColumn]
    rows: Sequence[Sequence[Any]]
    agents: "Mapping[str | None, AgentRow]"
    left_out: "FailedRewards"
    findings: "FindingCounts"


def build_reward_table(
    run: Run, response_selection: ResponseSelection, names: Sequence[str] | None
) -> RewardTable:
    """Return the table of rewards with the columns of these names, by default the components.

    `best` is a column by default where it differs because components do not apply to some responses, and the session of
    a training where the responses are of several. Raises `InputError` for an unknown column or agent.
    """
    from jurygraph.runs.reports.summary import (  # lazily: it loads LangGraph
        AgentRow,
        ComponentValuesByOutcome,
        FindingCounts,
        count_findings,
    )

    shows_default_columns = names is None
    if names is None:
        names = [*_FIXED_COLUMNS, *_components_by_column(run)]
        if run.is_continued:
            names.append(_SESSION_COLUMN)
        predicted_columns = predicted_score_column_names(run.reviewer_questions())
        # without `best`, which most tables leave out
        if len(names) - 1 + len(predicted_columns) <= _MAX_TABLE_COLUMNS:
            names += predicted_columns
    scores = make_score_readers(run)
    columns = [find_column(run, "--columns", name, scores) for name in dict.fromkeys(names)]
    columns.sort(key=lambda column: not column.is_text)

    def compute_row_values(trace: TraceWithoutTexts) -> tuple[list[Any], TraceWithoutTexts]:
        return [column.value(trace) for column in columns], trace

    rows = []
    agents: dict[str | None, AgentRow] = {}
    parts = ComponentValuesByOutcome()
    responses = set()
    has_unsupported_verdict = False
    for row, trace in response_selection.select(run, compute_row_values):
        rows.append(row)
        agent_row = agents.setdefault(trace.agent, AgentRow(trace.agent))
        agent_row.add(trace.value, trace.status, trace.coverage)
        responses.add(trace.response_id)
        parts.add(trace.reward, trace.comparable_names)
        has_unsupported_verdict |= any(
            "unsupported" in verdict for verdict in trace.body["verdicts"]
        )
    if shows_default_columns:
        for name in _COLUMNS_SHOWN_IF_DIFFERENT:
            _drop_column_of_one_value(name, columns, rows)
    # a second pass over the verdicts, which most runs do without
    findings = FindingCounts()
    if has_unsupported_verdict and run.config.safety.evidence == "required":
        findings = count_findings(run, responses)
    return RewardTable(
        columns=columns,
        rows=rows,
        agents=agents,
        left_out=parts.failed,
        findings=findings,
    )


def _drop_column_of_one_value(
    name: str, columns: list[RewardColumn], rows: Sequence[list[Any]]
) -> None:
    for index, column in enumerate(columns):
        if column.name == name and len({row[index] for row in rows}) < 2:
            for values in (columns, *rows):
                del values[index]
            return


def _components_by_column(run: Run) -> dict[str, str]:
    """Return the components by column; `component.NAME` is the column of one with the name of another column."""
    return {
        f"component.{name}" if name in _STANDARD_COLUMNS else name: name
        for name in run.components()
    }


def predicted_score_column_names(reviewer_questions: Sequence[str]) -> list[str]:
    """Return the columns of what each reviewer is predicted to give, by the reviewer alone where that is enough."""
    counts = Counter(map(_short_question_name, reviewer_questions))
    names = []
    for question in reviewer_questions:
        reviewer = question.rpartition("@")[2]
        is_unambiguous_name = reviewer == _short_question_name(question) and counts[reviewer] == 1
        names.append(PREDICTED_COLUMN_PREFIX + (reviewer if is_unambiguous_name else question))
    return names


def find_column(run: Run, option: str, name: str, scores: "ScoreReaders") -> RewardColumn:
    """Return the column of a name. Raises `InputError` for the `option` where there is none."""
    if name in _COLUMNS:
        return _COLUMNS[name]
    if name == "query":
        get_task_query = lru_cache(maxsize=16)(
            lambda seq: run.short_query(run.source.ledger.record_at(seq).key)
        )
        return RewardColumn(
            name, lambda trace: get_task_query(stored_response_location(trace)[0]), True
        )
    if name == "text":
        return RewardColumn(name, partial(_first_words_of_response, run), True)
    components = _components_by_column(run)
    if name in components:
        component = components[name]
        return RewardColumn(name, lambda trace: ComponentValue(*trace.component(component)))
    read = make_trace_reader(run)
    questions = run.questions()
    if name.startswith(PREDICTED_COLUMN_PREFIX):
        reviewer_questions = run.reviewer_questions()
        # a reviewer alone means what the judge of the reward predicts
        rewarded_questions = [
            question
            for question in reviewer_questions
            if question.partition("/")[0] in run.config.reward
        ]
        wanted_question = find_question_id(
            name.removeprefix(PREDICTED_COLUMN_PREFIX), rewarded_questions or reviewer_questions
        )
        if wanted_question in reviewer_questions:
            return RewardColumn(
                name,
                lambda trace: scores.predicted(stored_response_location(trace)).get(
                    wanted_question
                ),
            )
    question = find_question_id(name.removeprefix("question."), questions)
    if question in questions:
        return RewardColumn(
            name, lambda trace: scores.questions(stored_response_location(trace)).get(question)
        )
    labels = {f"label.{label}": None for trace in run.traces() for label in trace.labels}
    is_label = name.startswith("label.")
    if name in labels or (is_label and not run.tasks_scored):
        label = name.removeprefix("label.")
        return RewardColumn(
            name,
            lambda trace: run.labels_with_session(read(stored_response_location(trace))).get(label),
            True,
        )
    columns = [
        *_STANDARD_COLUMNS,
        *components,
        *predicted_score_column_names(run.reviewer_questions()),
        *labels,
    ]
    short_question_names = [_short_question_name(question) for question in questions]
    names = labels if is_label else [*columns, *short_question_names, *questions]
    hint = did_you_mean(name, names)
    hint = hint or did_you_mean(f"label.{name}", labels)  # the prefix makes short names unlike
    hint = hint or f"known: {', '.join((is_label and labels) or columns)}, and each question"
    if name.startswith(("people.", "judge.")):  # which `export --labels` writes
        hint = f"it selects by the run's own columns, and not by people's labels; {hint}"
    raise InputError(f"{option}: there is no column {name!r}; {hint}")


def find_question_id(name: str, questions: Collection[str]) -> str:
    """Return the question of this name, or the only one that ends in it, as `criteria@kind` in `kind`."""
    matches = [question for question in questions if _short_question_name(question) == name]
    return matches[0] if len(matches) == 1 and name not in questions else name


def _short_question_name(question: str) -> str:
    return re.split("[@./]", question)[-1]


def _first_words_of_response(run: Run, trace: TraceWithoutTexts) -> str:
    texts = run.source.ledger.texts_of_record(trace.record)
    text = unpack_response_text(trace.body, texts)
    return ERASED_PLACEHOLDER if text is None else shorten(" ".join(text.split()))


def stored_response_location(trace: TraceWithoutTexts) -> tuple[int, str]:
    """Return where a trace is stored: the number of its group's record, and its response."""
    return trace.record.seq - trace.body["group"], trace.response_id


def make_trace_reader(run: Run) -> Callable[[tuple[int, str]], Trace]:
    """Return a function that reads the trace at an address; the last groups are kept, since others often follow."""
    load_group = lru_cache(maxsize=16)(lambda seq: run.group(run.source.ledger.record_at(seq)))

    def read(address: tuple[int, str]) -> Trace:
        seq, response = address
        return next(trace for trace, _ in load_group(seq) if trace.response_id == response)

    return read


_QuestionScoreReader = Callable[[tuple[int, str]], dict[str, float]]


class ScoreReaders(NamedTuple):
    """Functions that return the scores of questions, and what reviewers are predicted to give, of the response at an
    address."""

    questions: _QuestionScoreReader
    predicted: _QuestionScoreReader


def make_score_readers(run: Run) -> ScoreReaders:
    """Return readers that all columns share: the scores of a response are made together."""
    read = make_trace_reader(run)
    return ScoreReaders(
        questions=lru_cache(maxsize=1)(lambda address: run.question_scores(read(address))),
        predicted=lru_cache(maxsize=1)(lambda address: run.predicted_scores(read(address))),
    )
