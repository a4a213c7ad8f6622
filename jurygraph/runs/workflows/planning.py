"""Plan the tasks of a job that are left, all or none of them."""

from dataclasses import dataclass, field
from itertools import tee
from typing import NamedTuple

from jurygraph.display import ProgressCallback
from jurygraph.errors import BudgetExceeded, ModelError
from jurygraph.models.request import CallSink
from jurygraph.runs.workflows.stored_work import StoredJobProgress
from jurygraph.runs.workflows.task_file_job import StopSwitch, TaskFileJob
from jurygraph.runs.writable_run import PlanningCallStore, WritableRun
from jurygraph.schema import Plan, Task

_MAX_KEPT_QUESTIONS = 4096
"""Number of questions in the plans that are kept until their tasks are scored; others are read again.

Where evaluators are code, reading a plan again takes up to a tenth of the time of scoring its task.
"""


class PlanNote(NamedTuple):
    """A note of a plan; the smallest is that of the plan with the smallest checked share."""

    checked_weight_share: float
    task: str
    note: str


@dataclass
class PlanNotes:
    """The notes of several plans, and the number of tasks without a table for the tool `look_up`."""

    notes: list[PlanNote] = field(default_factory=list)
    missing_tables_count: int = 0

    def add(self, plan: Plan) -> None:
        self.notes += [
            PlanNote(plan.checked_weight_share, plan.task_id, note) for note in plan.notes
        ]
        self.missing_tables_count += plan.lacks_lookup_tables


class PlannedTasks:
    """The run with the plans of all tasks that are to be scored; `has_calls` if any of them took calls to a model now.

    `notes` are those of the plans. `unanswered_annotations` counts the pairs and criteria that an annotator left
    unanswered.
    """

    def __init__(self, run: WritableRun) -> None:
        self.run = run
        self.has_calls = False
        self.notes = PlanNotes()
        self.unanswered_annotations = 0
        self._kept: dict[str, Plan] = {}
        self._room = _MAX_KEPT_QUESTIONS

    def add(self, task: Task, plan: Plan) -> None:
        self._room -= len(plan.survey.questions)
        if self._room >= 0 and not plan.calls:  # which are no part of the stored plan
            self._kept[plan.task_id] = plan
        self.has_calls |= bool(plan.calls)
        self.notes.add(plan)
        if task.rubric is not None and (record := task.rubric.annotation) is not None:
            self.unanswered_annotations += len(record.unanswered) + len(record.unassigned)

    def pop_plan(self, task: Task) -> Plan:
        """Return the plan of a task, which is kept no longer."""
        return self._kept.pop(task.id, None) or self.run.plan_of(task.id)


@dataclass(kw_only=True)
class JobPlanner:
    """Plans the tasks that are left.

    `stored_call_count` is the number of calls that a planning which ended early left in the folder for the next
    session.
    """

    job: TaskFileJob
    stored_work: StoredJobProgress
    stop_switch: StopSwitch
    stored_call_count: int = field(default=0, init=False)

    async def plan(self, report: ProgressCallback) -> PlannedTasks:
        """Plan all remaining tasks, or none of them; `report` receives 1 for each.

        Raises `PlanError`, and for an unreadable profile `ModelError` or `BudgetExceeded`, each with file and line;
        `ConfigError` if `weights.fixed` names a stakeholder that no task of the file has.
        """
        self.job.refuse_unknown_names()
        self.job.refuse_missing_workspaces()
        run = self.stored_work.create_run_if_missing()
        gateways = self.job.jury.gateways
        calls = self._open_planning_call_store(run)
        try:
            planned_tasks = await self._plan_tasks(run, calls, report)
        except BaseException as error:
            if isinstance(error, ModelError | BudgetExceeded):
                # The cache or the file of calls needs every reply for the next session.
                await gateways.wait_for_pending()
            await gateways.close()
            if calls is not None:
                self.stored_call_count = calls.close()
            self.stop_switch.cancel_if_stopped(error)
            raise
        if calls is not None:
            calls.discard()
        return planned_tasks

    def _open_planning_call_store(self, run: WritableRun) -> PlanningCallStore | None:
        gateway = self.job.jury.gateway
        if gateway is None:
            return None
        branch = self.job.branch
        others = () if branch is None else branch.ledgers
        return PlanningCallStore(run, *others, uses_planning_file=gateway.cache is None)

    async def _plan_tasks(
        self, run: WritableRun, sink: CallSink | None, report: ProgressCallback
    ) -> PlannedTasks:
        planned_tasks = PlannedTasks(run)
        unplanned_tasks = self.job.source.pairs(run.planned_task_count, self.job.limit)
        started_tasks = self.stop_switch.items_until_stopped(unplanned_tasks)
        tasks, tasks_ahead = tee(task for task, _ in started_tasks)
        inputs = ((task, self.job.profiles_of(task)) for task in tasks_ahead)
        with self.job.add_location_to_errors(tasks):
            async for plan in self.job.jury.aprepare_many(inputs, sink):
                task = next(tasks)
                run.ledger.append(*run.plan_drafts(task, plan, self._task_number_in_file(task)))
                planned_tasks.add(task, plan)
                report(1)
        self.stop_switch.raise_if_cut_short()
        run.ledger.commit()
        return planned_tasks

    def _task_number_in_file(self, task: Task) -> int | None:
        """Return the number by which `merge` orders the tasks of shards; a run of the whole file needs none."""
        source = self.job.source
        return None if source.shard is None else source.task_number(task.id)
