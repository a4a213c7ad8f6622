"""Forecast the verdicts and calls, and the costs, of scoring the tasks that are left. Nothing is sent or written."""

from collections import Counter
from collections.abc import Collection, Sequence
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
from jurygraph.runs.workflows.planning import PlanNotes
from jurygraph.runs.workflows.stored_work import StoredJobProgress
from jurygraph.runs.workflows.task_file_job import TaskFileJob
from jurygraph.runs.writable_run import CallStore
from jurygraph.schema import ComponentSpec, Decision, Response, Task


class RemainingWorkEstimator:
    """Plans the remaining tasks of a job, without storing the plans, and counts the verdicts and calls they need.

    `plan_notes` are those of the plans so far. `lacking` has the number of tasks without what an evaluator needs, by
    its name and the fields of which one would do. `tasks_without_question` is the number of those of which all that
    counts does not apply.
    """

    def __init__(self, job: TaskFileJob, stored_work: StoredJobProgress) -> None:
        self._job = job
        self._stored_work = stored_work
        self._planner = Planner(job.jury)
        self._forecast = RemainingWork()
        self.plan_notes = PlanNotes()
        self.lacking: Counter[tuple[str, str]] = Counter()
        self.tasks_without_question = 0

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
        ledgers += branch.ledgers if branch else ()
        path = self._job.folder / PLANNING_FILE
        planning = Ledger.open(path) if path.exists() else None
        if planning is not None:
            ledgers.append(stack.enter_context(closing(planning)))
        return CallStore(*ledgers)

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
        questions = plan.survey.questions
        left_out = {question.id for question in questions if question.missing is not None}
        self.tasks_without_question += _will_fail(plan.decision, left_out)
        for question in questions:
            if question.id in left_out:
                continue
            evaluator = jury.evaluators[question.evaluator]
            missing = evaluator.describe_missing_fields(plan.survey.views[question.view])
            if missing is not None:
                self.lacking[question.evaluator, missing] += 1
        self._forecast.add_group(
            questions, responses, jury.evaluators, reusable_results.verdicts.values()
        )
        if jury.gateways:
            unconditional_plan = without_model_conditions(plan, jury.evaluators)
            requests = await self._planner.aestimate_requests(
                task, responses, unconditional_plan, reusable_results, calls
            )
            cost_estimator.add(requests)


def _will_fail(decision: Decision, left_out: Collection[str]) -> bool:
    """Return whether no component with a weight applies, or one that a gate reads does not, without these questions."""
    gates = {gate.component for gate in decision.gates}
    weighted = [spec for spec in decision.specs if spec.weight]
    gate_specs = [spec for spec in decision.specs if spec.name in gates]
    return _lack_questions(weighted, left_out) or any(
        _lack_questions([spec], left_out) for spec in gate_specs
    )


def _lack_questions(specs: Sequence[ComponentSpec], left_out: Collection[str]) -> bool:
    uses = [use for spec in specs for use in spec.inputs.values()]
    questions = {name for use in uses for name in use.questions}
    counts_as_zero = any(use.if_skipped == "zero" for use in uses)
    return bool(questions) and not counts_as_zero and questions <= set(left_out)
