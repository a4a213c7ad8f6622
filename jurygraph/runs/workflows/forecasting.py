"""Forecast the verdicts and calls, and the costs, of scoring the tasks that are left. Nothing is sent or written."""

from contextlib import ExitStack, closing

from jurygraph.display import ProgressCallback
from jurygraph.planner import Planner
from jurygraph.runs.reports.estimate import (
    CallCostEstimator,
    RemainingWork,
    without_model_conditions,
)
from jurygraph.runs.store.folder import PLANNING_FILE
from jurygraph.runs.store.ledger import Ledger
from jurygraph.runs.workflows.lacking_tasks import LackingTasks
from jurygraph.runs.workflows.planning import PlanNotes
from jurygraph.runs.workflows.stored_work import StoredJobProgress
from jurygraph.runs.workflows.task_file_job import TaskFileJob
from jurygraph.runs.writable_run import CallStore
from jurygraph.schema import Response, Task


class RemainingWorkEstimator:
    """Plans the remaining tasks of a job, without storing the plans, and counts the verdicts and calls they need.

    `plan_notes` and `lacking_tasks` are those of the plans so far.
    """

    def __init__(self, job: TaskFileJob, stored_work: StoredJobProgress) -> None:
        self._job = job
        self._stored_work = stored_work
        self._planner = Planner(job.jury)
        self._forecast = RemainingWork()
        self.plan_notes = PlanNotes()
        self.lacking_tasks = LackingTasks(job.jury)

    async def forecast(self, report: ProgressCallback) -> RemainingWork:
        """Return the forecast, with a model that of its calls; `report` receives the number of responses of each group.

        Raises as planning does.
        """
        jury = self._job.jury
        self._job.refuse_unknown_names()
        self._job.refuse_missing_workspaces()
        try:
            with ExitStack() as stack:
                calls = self._open_call_store(stack)
                cost_estimator = CallCostEstimator(
                    jury.gateways, calls, jury.config.escalated_only_models
                )
                for task, responses in self._stored_work.remaining_pairs():
                    await self._add_task(task, responses, cost_estimator, calls)
                    report(len(responses))
        finally:
            await jury.gateways.close()
        if jury.gateways:
            self._forecast.model = cost_estimator.estimate()
        return self._forecast

    def _open_call_store(self, stack: ExitStack) -> CallStore:
        """Return the calls of this run, of the branch and of a planning that was stopped."""
        branch = self._job.branch
        ledgers = [] if self._stored_work.run is None else [self._stored_work.run.ledger]
        branch_ledgers = branch.ledgers if branch else ()
        ledgers += branch_ledgers
        path = self._job.folder / PLANNING_FILE
        planning = Ledger.open(path) if path.exists() else None
        if planning is not None:
            ledgers.append(stack.enter_context(closing(planning)))
        return CallStore(*ledgers, to_repeat=branch_ledgers)

    async def _add_task(
        self,
        task: Task,
        responses: tuple[Response, ...],
        cost_estimator: CallCostEstimator,
        calls: CallStore,
    ) -> None:
        jury = self._job.jury
        with self._job.add_location_to_errors([task]):
            # without a graph that a model would have to annotate
            plan, first = await self._planner.aestimate_plan(
                task, self._job.profiles_of(task), calls
            )
        cost_estimator.add(first)
        if plan is None:  # a model must read its profiles first
            self._forecast.add_group((), responses, jury.evaluators)
            return
        self.plan_notes.add(plan)
        reusable_results = self._job.find_reusable_results(task, responses, plan)
        self.lacking_tasks.add(plan)
        self._forecast.add_group(
            plan.survey.questions,
            responses,
            jury.evaluators,
            reusable_results.verdicts.values(),
            reusable_results.settled,
        )
        if jury.gateways:
            unconditional_plan = without_model_conditions(plan, jury.evaluators)
            requests = await self._planner.aestimate_requests(
                task, responses, unconditional_plan, reusable_results, calls
            )
            cost_estimator.add(requests)
