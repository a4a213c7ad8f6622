"""Decide a run again and again: its verdicts are read once, as tables, and any config is decided from these alone.

`rescore` reads every verdict of a run, which takes most of its time. Here that is done once, so that a run of 100,000
responses is decided in a tenth of a second. The bits are those of `rescore`.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from sys import intern
from typing import NamedTuple

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.decision.combiners import Combiners
from jurygraph.decision.decide import (
    GroupVerdicts,
    can_be_decided_together,
    reward_values,
)
from jurygraph.decision.recipe import check_recipe
from jurygraph.decision.table import VerdictTable, join_tables, stack_groups
from jurygraph.display import ProgressCallback
from jurygraph.runs.outline import StoredGroup, group_verdicts, read_groups
from jurygraph.runs.run import Run
from jurygraph.runs.store.packing import Body
from jurygraph.runs.workflows.rescoring import (
    SurveyedTask,
    digest_deciding_inputs,
    refuse_new_names,
    refuse_other_questions,
    require_content,
)
from jurygraph.schema import Config, Decision, Question
from jurygraph.schema.plan import SUBMITTED

_BATCH_VERDICTS = 10_000
"""Verdicts that are in memory at a time; each takes about 2 kB until it is in a table."""
_MAX_PLANNED_TASKS = 512
_TABLE_ROWS = 8192
"""Rows from which a table is complete: a larger one is decided no faster, and takes more memory meanwhile."""


class _PlanKey(NamedTuple):
    """The digests that groups share if any config gives them one decision: of their tasks, survey and decision.

    `group` is the number of a group that must be decided alone.
    """

    inputs: str | None
    survey: str
    decision: str
    group: int | None


class ResponseOrigin(NamedTuple):
    """Where a response comes from: its agent, "" without one, its task, and the `group` of its task, if it has one."""

    response: str
    agent: str
    task: str
    group: str | None


@dataclass(frozen=True)
class _Batch:
    """Groups of one plan: the first of their tasks, the table of their verdicts, and the sizes of the groups.

    The responses of a group are in the sorted order of ids, as in the table.
    """

    task: str
    questions: Sequence[Question]
    table: VerdictTable
    sizes: Sequence[int]
    responses: Sequence[ResponseOrigin]

    def decide(self, decision: Decision, combiners: Combiners) -> Floats:
        """Return the values of the rewards, NaN where they failed, [R]."""
        if len(self.sizes) == 1 or can_be_decided_together(decision, self.questions, combiners):
            return reward_values(decision, self.table, combiners)
        edges = np.cumsum([0, *self.sizes]).tolist()
        tables = [self.table.select(slice(*ends)) for ends in pairwise(edges)]
        return np.concatenate([reward_values(decision, table, combiners) for table in tables])


class VerdictTables:
    """The verdicts of a run as tables; the run must stay open. `responses` has where each row comes from, [R].

    Raises `TraceMismatch` where the run was changed. `report` receives 1 for each group.
    """

    def __init__(self, run: Run, report: ProgressCallback = lambda count: None) -> None:
        self.run = run
        self._combiners: dict[str, Combiners] = {}
        # A task with a rubric or stakeholders of its own takes 10 ms to read, and its decision 3 ms.
        self._surveyed_task = lru_cache(_MAX_PLANNED_TASKS)(self._read_surveyed_task)
        batches: dict[_PlanKey, list[_Batch]] = defaultdict(list)
        waiting: list[tuple[int, StoredGroup, GroupVerdicts]] = []
        count = 0
        for number, group in enumerate(read_groups(run)):
            stored = group_verdicts(run, group, run.decision(group.decision))
            waiting.append((number, group, stored))
            count += len(stored.verdicts)
            if count >= _BATCH_VERDICTS:
                self._stack(waiting, batches)
                waiting = []
                count = 0
            report(1)
        self._stack(waiting, batches)
        # Tables that are complete are few; the rest are joined only now, when no verdict is in memory any more.
        self._batches = [batch for same in batches.values() for batch in _join(same)]
        self.responses = list(chain.from_iterable(batch.responses for batch in self._batches))

    def _stack(
        self,
        waiting: Sequence[tuple[int, StoredGroup, GroupVerdicts]],
        batches: dict[_PlanKey, list[_Batch]],
    ) -> None:
        """Add the tables of some groups."""
        by_plan: dict[_PlanKey, list[tuple[StoredGroup, GroupVerdicts]]] = defaultdict(list)
        origins: dict[_PlanKey, list[ResponseOrigin]] = defaultdict(list)
        for number, group, stored in waiting:
            task = group.record.key
            content = self.run.task_content(task)
            key = self._plan_key(number, group, stored, content)
            by_plan[key].append((group, stored))
            task_group = None if content is None else content["task"].get("group")
            for trace in sorted(group.traces, key=lambda trace: trace.response_id):
                agent = intern(trace.agent or "")
                origins[key].append(ResponseOrigin(trace.response_id, agent, task, task_group))
        for key, members in by_plan.items():
            names = [sorted(stored.responses) for _, stored in members]
            verdicts = [stored.verdicts for _, stored in members]
            first, stored = members[0]
            batch = _Batch(
                task=first.record.key,
                questions=stored.questions,
                table=stack_groups(stored.questions, zip(names, verdicts, strict=True)),
                sizes=[len(group_names) for group_names in names],
                responses=origins[key],
            )
            batches[key].append(batch)

    def _plan_key(
        self, number: int, group: StoredGroup, stored: GroupVerdicts, content: Body | None
    ) -> _PlanKey:
        outline = self.run.source.survey_outline(group.survey)
        inputs = None if content is None else digest_deciding_inputs(content, outline)
        is_per_response = all(
            question.scope == "response" and question.material == SUBMITTED
            for question in stored.questions
        )
        # Without its texts, a task cannot be told from others.
        is_alone = inputs is None or not is_per_response
        return _PlanKey(inputs, group.survey, group.decision, number if is_alone else None)

    def decide(self, config: Config) -> Floats:
        """Return the rewards that `rescore` gives under a config, NaN where they failed, [R]. Raises as it does."""
        refuse_other_questions(self.run, config)
        combiners = self._load_combiners(config)
        check_recipe(config, self.run.header.evaluators)
        decisions = [self._decision(batch.task, config, combiners) for batch in self._batches]
        refuse_new_names(self.run, config, decisions)
        pairs = zip(self._batches, decisions, strict=True)
        values = [batch.decide(decision, combiners) for batch, decision in pairs]
        return np.concatenate([np.zeros(0), *values])

    def _decision(self, task: str, config: Config, combiners: Combiners) -> Decision:
        if config == self.run.config:
            return self.run.decision_of(task)
        return self._surveyed_task(task).decide(self.run, config, combiners)

    def _read_surveyed_task(self, task: str) -> SurveyedTask:
        return SurveyedTask.read(require_content(self.run, task), self.run.survey_outline_of(task))

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


def _join(batches: Sequence[_Batch]) -> Iterator[_Batch]:
    """Yield the batches of one plan as few that are large enough."""
    joined: list[_Batch] = []
    for batch in batches:
        joined.append(batch)
        if sum(part.table.rows for part in joined) >= _TABLE_ROWS:
            yield _join_all(joined)
            joined = []
    if joined:
        yield _join_all(joined)


def _join_all(batches: Sequence[_Batch]) -> _Batch:
    return _Batch(
        task=batches[0].task,
        questions=batches[0].questions,
        table=join_tables([batch.table for batch in batches]),
        sizes=list(chain.from_iterable(batch.sizes for batch in batches)),
        responses=list(chain.from_iterable(batch.responses for batch in batches)),
    )
