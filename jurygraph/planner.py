"""Prepare and estimate the work of a jury: read profiles, annotate rubrics, list the requests of a dry run."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from jurygraph.agents.profile import read_profiles
from jurygraph.display import ReprParts, ShortRepr
from jurygraph.errors import ConfigError, ModelError
from jurygraph.graphs import annotate_graph
from jurygraph.graphs.context import GraphContext
from jurygraph.graphs.groups import TASK_EXAMPLE_HINT, Group, make_planned_group
from jurygraph.graphs.prepare_graph import plan_tasks
from jurygraph.graphs.routing import NO_REUSED_RESULTS, ReusedResults
from jurygraph.graphs.score_graph import score_one_group
from jurygraph.graphs.state import AnnotateInput
from jurygraph.graphs.time_limits import start_in_new_context
from jurygraph.jury import DEFAULT_CONCURRENT_GROUPS, Jury, check_group
from jurygraph.safety.redaction import redact_errors
from jurygraph.schema import Plan, Response, Rubric, Task
from jurygraph.schema.frozen_model import require_argument_type

if TYPE_CHECKING:
    from jurygraph.models.gateway import Gateways
    from jurygraph.models.judge_client import JudgeClient
    from jurygraph.models.request import CallSink, Request
    from jurygraph.schema.task import Profiles, ProfilesLine

T = TypeVar("T")


class Planner(ShortRepr):
    """Read profiles, annotate rubrics and estimate requests with the evaluators and the model of a jury.

        with Jury.from_config("jury.yaml") as jury:
            rubric = Planner(jury).annotate(task)

    The `estimate` methods send nothing and return the requests, also those with a reply in a `sink` or the cache.
    """

    def __init__(self, jury: Jury) -> None:
        require_argument_type("jury", jury, Jury, "give a jg.Jury")
        self._jury = jury
        self._config = jury.config

    def _repr_parts(self) -> ReprParts:
        return self._jury._repr_parts()

    async def aread_profiles(self, task: Task) -> "Profiles | None":
        """Return what the model reads from the task's profiles in text; None if no profile has to be read.

        Raises the errors of `Jury.aprepare`, and ConfigError with model none.
        """
        return await self.arun_with_client(lambda client: read_profiles(task, None, client))

    async def arun_with_client(self, make: "Callable[[JudgeClient], Awaitable[T]]") -> T:
        """Return what `make` makes of the model. Raises ConfigError with model none, and the errors that end a run."""
        client = self._jury.context.with_model_clients(self._jury.gateways).judge_client
        if client is None:
            raise ConfigError("model: none answers nothing; name one in the config or with --model")
        with redact_errors(self._jury.context.secrets):
            return await start_in_new_context(lambda: make(client), self._config.langsmith)

    async def aannotate(self, task: Task, reviewed: Rubric | None = None) -> Rubric:
        """Return a task's rubric with its graph, annotated by the config's `annotation`; known edges are kept.

        `reviewed` is the rubric as a person reviewed it; its edges replace those of the task. Raises PlanError if the
        task has no rubric, ConfigError for an unknown domain, ModelError or BudgetExceeded if the model gave no answer.
        """
        return await self._annotate_rubric(self._jury.gateways, task, reviewed)

    def annotate(self, task: Task, reviewed: Rubric | None = None) -> Rubric:
        """Run `aannotate` for callers without an event loop."""
        return self._jury.run(self.aannotate(task, reviewed))

    async def aestimate_annotation(
        self, task: Task, reviewed: Rubric | None = None
    ) -> "tuple[Rubric | None, list[Request]]":
        """Return the rubric as `aannotate` does if the cache has all replies, else None; and the requests so far.

        Raises PlanError and ConfigError.
        """
        return await self._dry_run(
            lambda gateways: self._annotate_rubric(gateways, task, reviewed), None
        )

    async def aestimate_plan(
        self, task: Task, profiles: "ProfilesLine | None" = None, sink: "CallSink | None" = None
    ) -> "tuple[Plan | None, list[Request]]":
        """Return the plan as far as it needs no new reply of a model, and the requests up to there.

        Where a model must read profiles first, there is no plan. Where it must annotate a rubric, the plan has no
        graph, which changes no question. Raises PlanError.
        """
        context = self._jury.context
        plan, first = await self._dry_run(
            lambda gateways: _plan_task(task, profiles, context, gateways), sink
        )
        if plan is None and self._config.annotation is not None:
            config = self._config.model_copy(update={"annotation": None})
            context_without_annotation = replace(context, config=config)
            plan, _ = await self._dry_run(
                lambda gateways: _plan_task(task, profiles, context_without_annotation, gateways),
                sink,
            )
        return plan, first

    async def aestimate_requests(
        self,
        task: Task,
        responses: Sequence[Response],
        plan: Plan | None = None,
        reused_results: ReusedResults = NO_REUSED_RESULTS,
        sink: "CallSink | None" = None,
    ) -> "list[Request]":
        """Return the requests for scoring a group, as far as they depend on no new reply of the model.

        Evaluators without a model do run, because their verdicts may decide if a model is needed. Raises InputError
        like `Jury.ascore`.
        """
        if not self._jury.gateways:
            return []
        first: list[Request] = []
        if plan is None:
            plan, first = await self.aestimate_plan(task, sink=sink)
            if plan is None:
                return first
        group = Group(task, responses, plan, reused_results)
        _, requests = await self._dry_run(
            lambda gateways: self._score_group_by_plan(group, plan, gateways), sink
        )
        return [*first, *requests]

    async def _score_group_by_plan(self, group: Group, plan: Plan, gateways: "Gateways") -> None:
        check_group(group, self._jury.context)
        with redact_errors():
            self._jury.open()
            context = replace(self._jury.context, first_verdicts_check=None).with_model_clients(
                gateways
            )
            outcome = await start_in_new_context(
                lambda: score_one_group(make_planned_group(group, plan), context),
                self._config.langsmith,
            )
            if isinstance(outcome, BaseException):
                raise outcome

    async def _annotate_rubric(
        self, gateways: "Gateways", task: Task, reviewed: Rubric | None
    ) -> Rubric:
        require_argument_type("task", task, Task, TASK_EXAMPLE_HINT)
        start = AnnotateInput(task=task, reviewed=reviewed)
        context = self._jury.context.with_model_clients(gateways)
        with redact_errors(context.secrets):
            graph = annotate_graph.build()
            state = await start_in_new_context(
                lambda: graph.ainvoke(start, context=context), self._config.langsmith
            )
        rubric: Rubric = state["rubric"]
        return rubric

    async def _dry_run(
        self, make: "Callable[[Gateways], Awaitable[T]]", sink: "CallSink | None"
    ) -> "tuple[T | None, list[Request]]":
        """Return the result of `make` with known replies, None if one is missing; and the requests so far."""
        backends, gateways = self._jury.gateways.make_dry_run_gateways(
            DEFAULT_CONCURRENT_GROUPS, sink
        )
        result = None
        try:
            result = await make(gateways)
        except ModelError:
            if not any(backend.lacks_reply for backend in backends):
                raise
        finally:
            await gateways.close()
        requests = chain.from_iterable(backend.requests.values() for backend in backends)
        return result, list(requests)


async def _plan_task(
    task: Task, profiles: "ProfilesLine | None", context: GraphContext, gateways: "Gateways"
) -> Plan:
    (plan,) = await start_in_new_context(
        lambda: plan_tasks([(task, profiles)], [context.with_model_clients(gateways)]),
        context.config.langsmith,
    )
    if isinstance(plan, Exception):
        with redact_errors(context.secrets):
            raise plan
    return plan
