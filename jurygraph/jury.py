"""The Python API: a jury, made from a config, prepares plans and scores responses."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from pydantic_core import PydanticSerializationError

from jurygraph.agents.graph_annotator.domains import load_domain
from jurygraph.agents.profile import read_profiles
from jurygraph.agents.registry import load_combiners, load_deriver, load_evaluator
from jurygraph.agents.roles import Deriver, Evaluator
from jurygraph.agents.user_modules import allow_modules_in_folder
from jurygraph.decision.combiner import Combiner
from jurygraph.decision.recipe import check_recipe
from jurygraph.errors import ConfigError, InputError, ModelError
from jurygraph.graphs import annotate, prepare, score
from jurygraph.graphs.bounded_concurrency import gather_in_order
from jurygraph.graphs.event_loop import Loop
from jurygraph.graphs.execution import open_evaluator, run_isolated, run_isolated_sync, start_isolated
from jurygraph.graphs.plan_compatibility import check_plan_compatibility
from jurygraph.graphs.routing import NO_KNOWN_RESULTS, KnownResults, sort_responses
from jurygraph.graphs.state import AnnotateInput, PrepareState, RunContext, ScoreState
from jurygraph.safety.fence import project_key
from jurygraph.safety.known_secrets import redacted_errors, refuse_secrets_in_config
from jurygraph.schema import Config, Plan, Purpose, PurposeConfig, Response, Rubric, Task, Trace
from jurygraph.schema.purpose import purpose_of
from jurygraph.sources import parse_config, read_config

if TYPE_CHECKING:
    from jurygraph.models.gateway import Gateway
    from jurygraph.models.judge_client import JudgeClient
    from jurygraph.models.request import CallSink, Request
    from jurygraph.schema.profile import Profiles, ProfilesLine

T = TypeVar("T")
Group = tuple[Task, Sequence[Response], Plan]
FindKnownResults = Callable[[Task, Sequence[Response], Plan], KnownResults]
MAX_CONCURRENT_GROUPS = 32
"""Number of groups scored concurrently; more if the config allows more concurrent calls."""
MAX_WAITING_GROUPS = 8
"""Number of finished groups that may wait for an earlier one, for each group that is scored concurrently.

Their traces take memory. With 8, a group may take nine times as long as the others before it delays them.
"""


class Jury:
    """Evaluators, and the rules that turn their verdicts into rewards.

        with Jury.from_config("jury.yaml") as jury:
            plan = jury.prepare(task)
            traces = jury.score(task, responses, plan=plan)

    A `gateway` replaces the one for the config's model. `max_cost` (US dollars) and `max_calls` limit the calls of a
    gateway made here, and `sink` stores them. `code_folder` holds modules that the config names and that are not
    installed; the attribute is None if the config names none. Raises ConfigError if the config cannot run.
    """

    @redacted_errors()
    def __init__(
        self,
        config: Config,
        *,
        gateway: "Gateway | None" = None,
        sink: "CallSink | None" = None,
        max_cost: float | None = None,
        max_calls: int | None = None,
        code_folder: Path | None = None,
    ) -> None:
        self.config = config
        refuse_secrets_in_config(config)
        uses_code_folder = code_folder is not None and allow_modules_in_folder(config, folder=code_folder)
        self.code_folder = code_folder if uses_code_folder else None
        self.evaluators: Mapping[str, Evaluator]
        self.derivers: Mapping[str, Deriver]
        self.evaluators, self.derivers = run_isolated_sync(lambda: _load(config), config.langsmith)
        records = {name: evaluator.record for name, evaluator in self.evaluators.items()}
        self.combiners: Mapping[str, Combiner] = load_combiners(config, records.values())
        check_recipe(config, records)
        if gateway is None and config.model != "none":
            gateway = _open_gateway(config, sink, max_cost, max_calls)
        self.gateway = gateway
        secrets = () if gateway is None else gateway.backend.secrets
        self._context = RunContext(config, self.evaluators, self.derivers, self.combiners, secrets=tuple(secrets))
        self.domain = None if config.annotation is None else load_domain(config.annotation.domain).name
        self._judge = None if gateway is None else gateway.backend.model
        self.purpose = purpose_of(config.purpose, self._judge)
        _refuse_training_judge(self.purpose, config.purpose)
        self._prepare = prepare.build()
        self._annotate = annotate.build()
        self._score = score.build()
        self._loop: Loop | None = None
        self._loop_lock = threading.Lock()
        self._opened = False

    @classmethod
    def from_config(cls, source: str | Path | Mapping[str, Any] | Config, **limits: Any) -> Self:
        """Return a jury from a YAML file, a mapping or a Config; `limits` are max_cost (US dollars), max_calls and
        `code_folder`.
        """
        if isinstance(source, Config):
            return cls(source, **limits)
        return cls(parse_config(source) if isinstance(source, Mapping) else read_config(Path(source)), **limits)

    async def aprepare(self, task: Task, profiles: "ProfilesLine | None" = None) -> Plan:
        """Return the plan for a task, made without any response.

        The constraints of a stakeholder with only a profile in text are taken from `profiles`, or else read by the
        model. Raises PlanError; InputError if `profiles` belong to another task; ModelError or BudgetExceeded if the
        model gave no answer.
        """
        return await self._plan_task(task, profiles, self.gateway)

    async def aestimate_plan(
        self, task: Task, profiles: "ProfilesLine | None" = None
    ) -> "tuple[Plan | None, list[Request]]":
        """Return the plan as far as it needs no new reply of a model, and the first requests that it would send.

        Nothing is sent. Where a model must read profiles first, there is no plan. Where it must annotate a rubric, the
        plan has no graph, which changes no question. Raises PlanError.
        """
        plan, first = await self._dry_run(lambda gateway: self._plan_directly(task, profiles, gateway))
        if plan is None and self.config.annotation is not None:
            plan, _ = await self._dry_run(
                lambda gateway: self._plan_directly(task, profiles, gateway, should_annotate=False)
            )
        return plan, first

    async def _dry_run(self, make: "Callable[[Gateway | None], Awaitable[T]]") -> "tuple[T | None, list[Request]]":
        """Return the result of `make` with cached replies; if a reply is missing, None and the first requests."""
        if self.gateway is None:
            return await make(None), []
        from jurygraph.models.dry_run import caching_recording_gateway

        backend, gateway = caching_recording_gateway(self.gateway, MAX_CONCURRENT_GROUPS)
        try:
            return await make(gateway), []
        except ModelError:
            if not backend.requests:
                raise
            return None, list(backend.requests.values())
        finally:
            await gateway.close()

    async def aread_profiles(self, task: Task) -> "Profiles | None":
        """Return what the model reads from the task's profiles in text; None if no profile has to be read.

        Raises the errors of `aprepare`, and ConfigError with model none.
        """
        if self.gateway is None:
            raise ConfigError("model: none reads no profiles; name one in the config or with --model")
        gateway = _judge_client(self.gateway, self.config)
        with redacted_errors(self._context.secrets):
            return await run_isolated(lambda: read_profiles(task, None, gateway), self.config.langsmith)

    async def aannotate(self, task: Task, reviewed: Rubric | None = None) -> Rubric:
        """Return a task's rubric with its graph, annotated by the config's `annotation`; known edges are kept.

        `reviewed` is the rubric as a person reviewed it; its edges replace those of the task. Raises PlanError if the
        task has no rubric, ConfigError for an unknown domain, ModelError or BudgetExceeded if the model gave no answer.
        """
        return await self._annotate_task(task, reviewed, self.gateway)

    async def aestimate_annotation(
        self, task: Task, reviewed: Rubric | None = None
    ) -> "tuple[Rubric | None, list[Request]]":
        """Return the rubric as `aannotate` does if the cache has all replies, else None and the first requests.

        Nothing is sent. Raises PlanError and ConfigError.
        """
        return await self._dry_run(lambda gateway: self._annotate_task(task, reviewed, gateway))

    async def _annotate_task(self, task: Task, reviewed: Rubric | None, gateway: "Gateway | None") -> Rubric:
        start, context = AnnotateInput(task=task, reviewed=reviewed), self._context_with(gateway)
        with redacted_errors(context.secrets):
            state = await run_isolated(lambda: self._annotate.ainvoke(start, context=context), self.config.langsmith)
        rubric: Rubric = state["rubric"]
        return rubric

    async def _plan_task(self, task: Task, profiles: "ProfilesLine | None", gateway: "Gateway | None") -> Plan:
        start, context = PrepareState(task=task, profiles_line=profiles), self._context_with(gateway)
        with redacted_errors(context.secrets):
            state = await run_isolated(lambda: self._prepare.ainvoke(start, context=context), self.config.langsmith)
        plan: Plan = state["plan"]
        return plan

    async def _plan_directly(
        self, task: Task, profiles: "ProfilesLine | None", gateway: "Gateway | None", should_annotate: bool = True
    ) -> Plan:
        """Return the same plan as `_plan_task` without the graph engine: quicker, and without LangSmith traces."""
        start, context = PrepareState(task=task, profiles_line=profiles), self._context_with(gateway)
        if not should_annotate:
            context = replace(context, config=context.config.model_copy(update={"annotation": None}))
        with redacted_errors(context.secrets):
            return await run_isolated(lambda: prepare.prepare_directly(start, context), self.config.langsmith)

    def _context_with(self, gateway: "Gateway | None") -> RunContext:
        """Return the context of a graph run, with a client for the model if there is a gateway."""
        return (
            self._context
            if gateway is None
            else replace(self._context, judge_client=_judge_client(gateway, self.config))
        )

    async def ascore(
        self,
        task: Task,
        responses: Sequence[Response],
        plan: Plan | None = None,
        known_results: KnownResults = NO_KNOWN_RESULTS,
    ) -> list[Trace]:
        """Return the traces of a task's whole group of responses, in the order of `responses`.

        Verdicts and material in `known_results` are reused. Raises InputError for an empty group, and where two
        responses have the same id.
        """
        return await self._start_scoring(task, responses, plan, known_results)

    async def aestimate_requests(
        self,
        task: Task,
        responses: Sequence[Response],
        plan: Plan | None = None,
        recalled: KnownResults = NO_KNOWN_RESULTS,
    ) -> "list[Request]":
        """Return the requests for scoring a group, as far as they depend on no reply of the model. Nothing is sent.

        Evaluators without a model do run, because their verdicts may decide if a model is needed. Raises InputError
        like `ascore`.
        """
        if self.gateway is None:
            return []
        first: list[Request] = []
        if plan is None:
            plan, first = await self.aestimate_plan(task)
            if plan is None:
                return first
        from jurygraph.models.dry_run import recording_gateway

        backend, gateway = recording_gateway(self.gateway, MAX_CONCURRENT_GROUPS)
        try:
            await run_isolated(
                lambda: self._record_requests(task, responses, plan, recalled, gateway), self.config.langsmith
            )
        finally:
            await gateway.close()
        return [*first, *backend.requests.values()]

    def _start_scoring(
        self, task: Task, responses: Sequence[Response], plan: Plan | None, recalled: KnownResults
    ) -> "asyncio.Task[list[Trace]]":
        return start_isolated(
            lambda: self._score_group(task, responses, plan, recalled, self.gateway), self.config.langsmith
        )

    async def _score_group(
        self,
        task: Task,
        responses: Sequence[Response],
        plan: Plan | None,
        recalled: KnownResults,
        gateway: "Gateway | None",
    ) -> list[Trace]:
        _check_group(task, responses)
        if plan is None:
            plan = await self._plan_task(task, None, gateway)
        else:
            check_plan_compatibility(plan, task, self._context)
        limit = RunnableConfig(recursion_limit=2 * len(plan.survey.waves) + 10)
        start = _initial_state(plan, responses, recalled)
        with redacted_errors():
            self._open()
            output = await self._score.ainvoke(start, context=self._context_with(gateway), config=limit, version="v2")
        traces = {trace.response_id: trace for trace in output.value["traces"]}
        return [self._complete_trace(traces[r.id], r) for r in responses]

    async def _record_requests(
        self, task: Task, responses: Sequence[Response], plan: Plan, recalled: KnownResults, gateway: "Gateway"
    ) -> None:
        """Send the requests of scoring a group to a gateway that only records them; compute no rewards."""
        _check_group(task, responses)
        check_plan_compatibility(plan, task, self._context)
        start = _initial_state(plan, responses, recalled)
        with redacted_errors():
            self._open()
            await score.answer_questions(start, self._context_with(gateway))

    def _complete_trace(self, trace: Trace, response: Response) -> Trace:
        """Return the trace with the agent and the labels of its response, and the purpose of its reward."""
        purpose = purpose_of(self.config.purpose, self._judge, [call.served for call in trace.calls if call.served])
        _refuse_training_judge(purpose, self.config.purpose)
        return trace.model_copy(update={"agent": response.agent, "labels": response.labels, "purpose": purpose})

    def ascore_all(self, groups: Iterable[Group], recall: FindKnownResults | None = None) -> AsyncIterator[list[Trace]]:
        """Yield the traces of many groups, in the order of `groups`; several groups are scored concurrently.

        `recall` returns the known verdicts and material of a group; it is called when the group is started. A finished
        group makes room for another, and its traces wait until those before it are yielded; `groups` is read ahead no
        further than this needs. The error of a group is raised in the place of its traces.
        """
        scoring_tasks = (
            self._start_scoring(*group, recall(*group) if recall else NO_KNOWN_RESULTS) for group in groups
        )
        return gather_in_order(scoring_tasks, self.max_concurrent_groups, MAX_WAITING_GROUPS)

    @property
    def max_concurrent_groups(self) -> int:
        """Return the number of groups that are scored concurrently."""
        return (
            MAX_CONCURRENT_GROUPS if self.gateway is None else max(MAX_CONCURRENT_GROUPS, self.config.calls.concurrency)
        )

    def prepare(self, task: Task, profiles: "ProfilesLine | None" = None) -> Plan:
        """Run `aprepare` for callers without an event loop."""
        return self._run(self.aprepare(task, profiles))

    def annotate(self, task: Task, reviewed: Rubric | None = None) -> Rubric:
        """Run `aannotate` for callers without an event loop."""
        return self._run(self.aannotate(task, reviewed))

    def score(self, task: Task, responses: Sequence[Response], plan: Plan | None = None) -> list[Trace]:
        """Run `ascore` for callers without an event loop."""
        return self._run(self.ascore(task, responses, plan))

    def close(self) -> None:
        """Release the evaluators' resources (worker processes) and the event loop. Can be called more than once."""
        for evaluator in self.evaluators.values():
            run_isolated_sync(evaluator.close, self.config.langsmith)
        self._opened = False
        if self.gateway is not None:
            self._run(self.gateway.close())
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    async def aclose(self) -> None:
        """Close the jury in the event loop that awaited `ascore`, to which the gateway's connections belong."""
        if self.gateway is not None:
            await self.gateway.close()
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _open(self) -> None:
        if not self._opened:
            for evaluator in self.evaluators.values():
                open_evaluator(evaluator, self.config.langsmith)
            self._opened = True

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._loop_lock:
            self._loop = self._loop or Loop()
        return self._loop.run(work)


def _refuse_training_judge(purpose: Purpose | None, config: PurposeConfig) -> None:
    if purpose is not None and purpose.same_judge and config.same_judge == "refuse":
        problem = f"{purpose.judge!r} (or who answers for it) would evaluate what was trained on its own rewards"
        how = "name another model, or set same_judge: allow, which every trace then tells"
        raise ConfigError(f"purpose.reward_judges: {problem}; {how}")


def _open_gateway(config: Config, sink: "CallSink | None", max_cost: float | None, max_calls: int | None) -> "Gateway":
    from jurygraph.models.factory import open_gateway  # imported lazily: only needed with a model

    return open_gateway(config.model, config.calls, sink=sink, max_cost=max_cost, max_calls=max_calls)


def _judge_client(gateway: "Gateway", config: Config) -> "JudgeClient":
    from jurygraph.models.judge_client import JudgeClient

    return JudgeClient(gateway, config.calls.parameters, config.safety, project_key())


def _load(config: Config) -> tuple[dict[str, Evaluator], dict[str, Deriver]]:
    evaluators = _load_named("evaluators", load_evaluator, config.evaluators)
    return evaluators, _load_named("derivers", load_deriver, config.derivers)


def _load_named(key: str, load: Callable[[Any], Any], uses: Iterable[Any]) -> dict[str, Any]:
    """Load evaluators or derivers and return them by name, sorted. Raises ConfigError with the key of a faulty one."""
    loaded: dict[str, Any] = {}
    for place, use in enumerate(uses):
        try:
            component = load(use)
        except ConfigError as error:
            raise ConfigError(f"{key}[{place}]: {error}") from error.__cause__
        if component.name in loaded:
            raise ConfigError(f"{key}: {component.name!r} is listed twice; give one of them a `name` of its own")
        loaded[component.name] = component
    return {name: loaded[name] for name in sorted(loaded)}


def _initial_state(plan: Plan, responses: Sequence[Response], recalled: KnownResults) -> ScoreState:
    group = sort_responses(responses)
    return ScoreState(plan=plan, responses=group, recalled=recalled, wave=0, material=[], verdicts=[])


def _check_group(task: Task, responses: Sequence[Response]) -> None:
    if not responses:
        raise InputError(f"task {task.id!r} has no responses: a group of none cannot be scored")
    ids: set[str] = set()
    for response in responses:
        if response.id in ids:
            raise InputError(f"task {task.id!r} has two responses with the id {response.id!r}")
        ids.add(response.id)
        try:
            response.model_dump_json()
        except PydanticSerializationError as error:
            raise InputError(f"response {response.id!r} cannot be written as JSON: {error}") from error
