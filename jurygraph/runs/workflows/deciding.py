"""Decide a run again and again: its verdicts are read once, as tables, and any config is decided from these alone.

`rescore` reads every verdict of a run, which takes most of its time. Here that is done once, so that a run of 100,000
responses is decided in a tenth of a second; components are computed again only where more than weights, gates, scale
and clip has changed. The bits are those of `rescore`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from sys import intern
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jurygraph.decision.combiners import Combiners
from jurygraph.decision.decide import (
    MeasuredTable,
    TableRewards,
    compute_reward_values,
    computes_rows_apart,
    measure_table,
)
from jurygraph.decision.recipe import check_recipe
from jurygraph.decision.table import (
    ScoreArrays,
    VerdictTable,
    build_verdict_table,
    verdict_table_from_columns,
)
from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.runs.run import Run
from jurygraph.runs.stored_groups import StoredGroup, read_stored_groups
from jurygraph.runs.workflows.rescoring import (
    TaskWithSurvey,
    digest_decision_inputs,
    refuse_changed_questions,
    refuse_unknown_member_names,
)
from jurygraph.schema import Config, Decision, Question, RecordedVerdict

_MAX_TASKS_IN_MEMORY = 512
"""Tasks that are kept as they were read, and groups of a table whose components are kept, in 50 KB each at most."""
_ROWS_PER_DECISION_BATCH = 8192
"""Rows from which a table is complete: a larger one is decided no faster, and takes more memory meanwhile."""


class DecisionKey(NamedTuple):
    """The digests that groups share if any config gives them one decision: of their tasks, survey and decision.

    Without its texts, a task has no `inputs`: it cannot be told from others, and keeps the stored decision.
    """

    inputs: str | None
    survey: str
    decision: str


_SCORE_RECORD_DTYPE = np.dtype(
    list(zip(ScoreArrays._fields, ("<f8", "?", "i1", "<f8", "?", "?"), strict=True))
)


class PackedGroupVerdicts(NamedTuple):
    """The verdicts of a group as bytes, ready to be decided with others; `task_cluster` is the `group` of its task.

    Its responses are in the sorted order of ids. The `cells` of its table are row by row, those of a question next to
    each other; `cell_counts` are their numbers. Cells of groups with the same questions and numbers may follow each
    other: they are one table.
    """

    plan: DecisionKey
    task: str
    task_cluster: str | None
    responses: Sequence[str]
    agents: Sequence[str | None]
    cell_counts: Sequence[int]
    cells: bytes


def read_packed_groups(
    run: Run, report: ProgressCallback = ignore_progress
) -> Iterator[PackedGroupVerdicts]:
    """Yield the groups of a run, in the order of the tasks. `report` receives 1 for each.

    Raises `TraceMismatch` where the run was changed.
    """
    for group in read_stored_groups(run):
        survey = run.source.survey_without_texts(group.survey)
        yield pack_group(run, group, group.verdicts(survey))
        report(1)


def pack_group(
    run: Run, group: StoredGroup, verdicts: Sequence[RecordedVerdict]
) -> PackedGroupVerdicts:
    task = group.record.key
    survey = run.source.survey_without_texts(group.survey)
    content = run.stored_task_record(task)
    inputs = digest_decision_inputs(content, survey) if content else None
    traces = sorted(group.traces, key=lambda trace: trace.response_id)
    names = [trace.response_id for trace in traces]
    cell_counts, cells = _pack_table(build_verdict_table(survey.questions, names, verdicts))
    return PackedGroupVerdicts(
        plan=DecisionKey(inputs, group.survey, group.decision),
        task=task,
        task_cluster=content["task"].get("group") if content else None,
        responses=names,
        agents=[trace.agent for trace in traces],
        cell_counts=cell_counts,
        cells=cells,
    )


class _DecisionBatch(NamedTuple):
    """Groups with the same questions and stored decision: the table of their verdicts, and the size of each group.

    `inputs` has for each group the first task that gives a decision the same inputs. `measured` has the components of
    rows, by the ends of these: the next decision may differ in weights alone.
    """

    inputs: Sequence[str]
    table: VerdictTable
    sizes: Sequence[int]
    measured: dict[tuple[int, int], MeasuredTable]

    def decide(self, by_inputs: Mapping[str, Decision], combiners: Combiners) -> TableRewards:
        """Return the rewards of all rows, at once where other words of the tasks change no decision."""
        decisions = [by_inputs[task] for task in self.inputs]
        first = decisions[0]
        is_decided_alike = all(by_inputs[task] == first for task in {*self.inputs})
        if is_decided_alike and computes_rows_apart(first, combiners):
            return self._decide_rows((0, self.table.rows), first, combiners)
        edges = np.cumsum([0, *self.sizes]).tolist()
        return _concatenate_rewards(
            self._decide_rows(rows, decision, combiners)
            for rows, decision in zip(pairwise(edges), decisions, strict=True)
        )

    def _decide_rows(
        self, rows: tuple[int, int], decision: Decision, combiners: Combiners
    ) -> TableRewards:
        table = self.table.select(slice(*rows))
        measured = measure_table(decision, table, combiners, self.measured.get(rows))
        if rows in self.measured or len(self.measured) < _MAX_TASKS_IN_MEMORY:
            self.measured[rows] = measured
        return compute_reward_values(decision, measured)


def _concatenate_rewards(parts: Iterable[TableRewards]) -> TableRewards:
    return TableRewards._make(map(np.concatenate, zip(*parts, strict=True)))


def _read_task_with_survey(run: Run, task: str) -> TaskWithSurvey:
    content = run.stored_task_record(task)
    assert content is not None  # else its stored decision is taken
    return TaskWithSurvey.read(content, run.survey_without_texts_of(task))


def _component_names(decision: Decision) -> list[str]:
    return [*(spec.name for spec in decision.specs), *(gate.step for gate in decision.gates)]


class DecidedRewards(NamedTuple):
    """The rewards of all rows, and the decisions that gave them, one for each plan.

    `components` are the names of the columns of `values.judged`, with gates: NaN where the plan of a row does not have
    one.
    """

    values: TableRewards
    decisions: Sequence[Decision]
    components: Sequence[str]


class VerdictTables:
    """The verdicts of a run as tables; the run must stay open.

    `groups` are those of the run; by default they are read from it, which raises `TraceMismatch` where it was changed.
    Tasks whose texts were erased keep their stored decision under every config.

    Attributes:
        responses: the id of each row, [R].
        agents: the agent of each row, "" without one.
        tasks: the task of each row, with the `group` of the task.
        erased_tasks: those without texts.
    """

    def __init__(self, run: Run, groups: Iterable[PackedGroupVerdicts] | None = None) -> None:
        self.run = run
        self.erased_tasks: set[str] = set()
        self.responses: list[str] = []
        self.agents: list[str] = []
        self.tasks: list[tuple[str, str | None]] = []
        self._batches: list[_DecisionBatch] = []
        self._tasks_by_inputs: dict[DecisionKey, str] = {}
        self._combiners: dict[str, Combiners] = {}
        self._decisions: dict[str, Decision] = {}
        """Those of the last config, which the next one may have but for the weights of components."""
        self._weightless_config = run.config
        # A task with a rubric or stakeholders of its own takes 10 ms to read, and its decision 3 ms.
        # Of the run, not of these tables: they would refer to themselves, and stay in memory until a collection.
        read_task = partial(_read_task_with_survey, run)
        self._task_with_survey = lru_cache(_MAX_TASKS_IN_MEMORY)(read_task)
        groups_by_plan = defaultdict(list)
        rows: Counter[Any] = Counter()
        for group in read_packed_groups(run) if groups is None else groups:
            key = group.plan._replace(inputs=None), tuple(group.cell_counts)
            groups_by_plan[key].append(group)
            rows[key] += len(group.responses)
            if rows[key] >= _ROWS_PER_DECISION_BATCH:
                self._add_plan_table(groups_by_plan.pop(key))
                del rows[key]
        for groups_of_plan in groups_by_plan.values():
            self._add_plan_table(groups_of_plan)

    def _add_plan_table(self, groups: Sequence[PackedGroupVerdicts]) -> None:
        """Add the table of groups with the same questions and stored decision."""
        first = groups[0]
        questions = self.run.source.survey_without_texts(first.plan.survey).questions
        sizes = [len(group.responses) for group in groups]
        for group in groups:
            if group.plan.inputs is None:
                self.erased_tasks.add(group.task)
            self.responses += group.responses
            self.agents += [intern(agent or "") for agent in group.agents]
            self.tasks += [(group.task, group.task_cluster)] * len(group.responses)
        cells = b"".join(group.cells for group in groups)
        table = _unpack_table(questions, sum(sizes), first.cell_counts, cells)
        inputs = [self._tasks_by_inputs.setdefault(group.plan, group.task) for group in groups]
        self._batches.append(_DecisionBatch(inputs, table, sizes, {}))

    def decide(self, config: Config) -> DecidedRewards:
        """Return the rewards that `rescore` gives under a config. Raises as it does."""
        refuse_changed_questions(self.run, config)
        combiners = self._load_combiners(config)
        check_recipe(config, self.run.header.evaluators)
        signs = {name: np.sign(weight) for name, weight in config.reward.items()}
        weightless_config = config.model_copy(update={"reward": signs})
        if weightless_config != self._weightless_config:
            self._weightless_config = weightless_config
            self._decisions.clear()
        by_inputs = {
            task: self._decision_under_config(task, config, combiners)
            for task in self._tasks_by_inputs.values()
        }
        decisions = list(by_inputs.values())
        refuse_unknown_member_names(self.run, config, decisions)
        names = sorted({name for decision in decisions for name in _component_names(decision)})
        values = [TableRewards(*np.zeros((4, 0)))._replace(judged=np.zeros((0, len(names))))]
        for batch in self._batches:
            decision = by_inputs[batch.inputs[0]]
            rewards = batch.decide(by_inputs, combiners)
            # a task without a rubric may go without its component
            judged = np.full((len(rewards.value), len(names)), np.nan)
            judged[:, [names.index(name) for name in _component_names(decision)]] = rewards.judged
            values.append(rewards._replace(judged=judged))
        return DecidedRewards(_concatenate_rewards(values), decisions, names)

    def _decision_under_config(self, task: str, config: Config, combiners: Combiners) -> Decision:
        if config == self.run.config or task in self.erased_tasks:
            return self.run.decision_of(task)
        if task not in self._decisions:
            decision = self._task_with_survey(task).decide(self.run, config, combiners)
            if len(self._decisions) >= _MAX_TASKS_IN_MEMORY:
                return decision
            self._decisions[task] = decision
        decision = self._decisions[task]
        specs = [
            spec.model_copy(update={"weight": config.reward.get(spec.name, spec.weight)})
            for spec in decision.specs
        ]
        return decision.model_copy(update={"specs": tuple(specs)})

    def _load_combiners(self, config: Config) -> Combiners:
        """Return the combiners of a config; they are loaded once for all that name the same, which takes 25 ms."""
        names = config.model_dump_json(
            include={"components": True, "rubric": {"aggregation"}, "weights": {"welfare"}}
        )
        if config == self.run.config:  # whose versions are checked
            names = ""
        if names not in self._combiners:
            self._combiners[names] = self.run.load_combiners(config)
        return self._combiners[names]


def _pack_table(table: VerdictTable) -> tuple[list[int], bytes]:
    """Return the widths and the cells of a table, as `PackedGroupVerdicts` has them."""
    cell_counts = [arrays.value.shape[1] for arrays in table.columns.values()]
    cell_rows = np.empty((table.rows, sum(cell_counts)), _SCORE_RECORD_DTYPE)
    for columns, arrays in zip(
        _split_cells_by_question(cell_rows, cell_counts), table.columns.values(), strict=True
    ):
        for name in ScoreArrays._fields:
            columns[name] = getattr(arrays, name)
    return cell_counts, cell_rows.tobytes()


def _unpack_table(
    questions: Sequence[Question], rows: int, cell_counts: Sequence[int], cells: bytes
) -> VerdictTable:
    """Return the table of so many rows from its cells."""
    cell_rows = np.frombuffer(cells, _SCORE_RECORD_DTYPE).reshape(rows, sum(cell_counts))
    columns = {}
    for question, part in zip(
        questions, _split_cells_by_question(cell_rows, cell_counts), strict=True
    ):
        arrays = [np.ascontiguousarray(part[name]) for name in ScoreArrays._fields]
        columns[question.id] = ScoreArrays._make(arrays)
    return verdict_table_from_columns(questions, rows, columns)


def _split_cells_by_question(
    cell_rows: NDArray[Any], cell_counts: Sequence[int]
) -> list[NDArray[Any]]:
    """Return the cells of each question, [R,K], as parts of all of them."""
    return np.split(cell_rows, np.cumsum(cell_counts)[:-1], axis=1) if cell_counts else []
