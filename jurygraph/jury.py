"""The Python API: a jury, made from a config, prepares plans and scores responses."""

import asyncio
import os
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Sized,
)
from concurrent.futures import CancelledError
from contextlib import ExitStack, aclosing, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from inspect import iscoroutinefunction
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, Unpack

from pydantic_core import PydanticSerializationError

from jurygraph.agents.graph_annotator import load_domain
from jurygraph.agents.registry import (
    READS_MARK,
    check_judges,
    load_combiners,
    load_derivers,
    load_evaluators,
)
from jurygraph.agents.roles import Deriver, Evaluator
from jurygraph.concurrency import EventLoopThread, gather_in_order
from jurygraph.decision.combiners import Combiner
from jurygraph.decision.recipe import check_recipe
from jurygraph.display import ReprParts, ShortRepr
from jurygraph.errors import InputError
from jurygraph.graphs.active_groups import ActiveGroups
from jurygraph.graphs.answers import result_or_error
from jurygraph.graphs.context import GraphContext
from jurygraph.graphs.events import EventListener, RewardGiven, report_stored_verdicts
from jurygraph.graphs.group_scheduler import (
    MAX_FINISHED_PER_ACTIVE_GROUP,
    FinishedGroup,
    GroupScheduler,
)
from jurygraph.graphs.groups import (
    TASK_EXAMPLE_HINT,
    Group,
    GroupLike,
    GroupOutcome,
    make_planned_group,
    make_settled_future,
    split_into_batches,
    to_groups,
)
from jurygraph.graphs.prepare_graph import TaskWithProfiles, plan_by_code, plan_tasks
from jurygraph.graphs.routing import NO_REUSED_RESULTS, ReusedResults
from jurygraph.graphs.score_graph import run_score_graph
from jurygraph.graphs.survey import digests_of_tool_files
from jurygraph.graphs.time_limits import (
    may_take_long,
    new_contextvars_context,
    start_in_new_context,
)
from jurygraph.graphs.user_calls import call_component_method
from jurygraph.models.gateway import NO_GATEWAYS, Gateway, Gateways
from jurygraph.safety.redaction import redact_errors, refuse_secrets_in_config
from jurygraph.schema import (
    Config,
    Plan,
    Response,
    Task,
    Trace,
    digest_of,
)
from jurygraph.schema.config import JurySettings
from jurygraph.schema.frozen_model import StrPath, require_argument_type
from jurygraph.schema.task import ProfilesLine
from jurygraph.schema.trace import permitted_purpose
from jurygraph.sources import locate_config_errors, parse_config_mapping, read_config
from jurygraph.sources.user_modules import FolderModules, current_folder_modules, importing_from
from jurygraph.tools.registry import attach_toolsets_to_evaluators

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableLambda

    from jurygraph.graphs.runnable import JuryRunnable
    from jurygraph.models.request import CallSink
    from jurygraph.runs.open_ended_recorder import OpenEndedRecorder

T = TypeVar("T")

DEFAULT_CONCURRENT_GROUPS = 32
"""Number of tasks that are planned by a model at once, or more if the config allows it."""
MAX_RESPONSES_PER_BATCH = 64
"""Number of responses that go in together; with fewer concurrent calls as many as these, so that the first are soon
done."""
MAX_RESPONSES_PER_SLOW_BATCH = 8
"""The same where an answer may take long and is stored only with its trace: a kill loses the groups in work."""
RESPONSES_PER_CONCURRENT_CALL = 8
"""Number of responses in work for each concurrent call. There must be more than calls: a group that waits for its
slowest reply, or for a turn of the score graph, leaves the calls to others. With four times as many, scoring takes a
fifth longer: Python searches all that they hold for unused objects."""
MAX_RESPONSES_PER_CONCURRENT_CALL = 32
"""The same where groups are so large that there would be less than one for each two calls."""
MAX_RESPONSES_IN_WORK = 4096
"""Most responses in work; two for each concurrent call where that is more."""
MAX_RESPONSES_WITHOUT_MODEL = 256
PLANNING_BATCH_SIZE = 256
"""Number of tasks of a batch that is planned without the model."""


GroupProgressCallback = Callable[[int, int | None], object]
"""A callback that receives the number of groups done, and their total if `items` has a length, else None."""


class Jury(ShortRepr):
    """Evaluators, and the rules that turn their verdicts into rewards.

        with Jury(evaluators=["maths.accuracy", polite], reward={"accuracy": 1.0, "polite": 0.5}) as jury:
            plan = jury.prepare(task)
            traces = jury.score(task, responses, plan=plan)

    The `settings` are the keys of a config. An evaluator, deriver, combiner or model may be an object in the place of
    its name; questions know it by its name. `config` is a whole config instead of `settings`.

    A `gateway` replaces the one for the config's `model`, or several those for all models. `max_cost` (US dollars) and
    `max_calls` limit the calls of gateways made here, together. `code_folder` holds modules that the config names and
    that are not installed; the attribute is None if the config names none. What is scored is stored in the run `record`
    (see the method). Raises ConfigError if the config cannot run.

    The `sink` of a method stores each reply of the model before it is used, so that the same request is not sent again.
    """

    @redact_errors()
    def __init__(
        self,
        config: Config | None = None,
        *,
        gateway: Gateway | Gateways | None = None,
        max_cost: float | None = None,
        max_calls: int | None = None,
        code_folder: StrPath | None = None,
        record: StrPath | None = None,
        **settings: Unpack[JurySettings],
    ) -> None:
        require_argument_type("record", record, StrPath | None, "give the folder of a run")
        require_argument_type("max_cost", max_cost, int | float | None, "give US dollars")
        require_argument_type("max_calls", max_calls, int | None, "give a number of calls")
        require_argument_type("code_folder", code_folder, StrPath | None, "give a path")
        self.config = config = _config_from_arguments(config, settings)
        refuse_secrets_in_config(config)
        folder_modules = (
            current_folder_modules()
            if code_folder is None
            else FolderModules(Path(code_folder), config)
        )
        self.evaluators: Mapping[str, Evaluator]
        self.derivers: Mapping[str, Deriver]
        self.evaluators, self.derivers = new_contextvars_context(config.langsmith).run(
            _load_evaluators_and_derivers, config, folder_modules
        )
        components = (*self.evaluators.values(), *self.derivers.values())
        reads_files = any(component.reads for component in components)
        folder = Path() if folder_modules is None else folder_modules.folder
        is_named = folder_modules is not None and bool(folder_modules.named)
        self.code_folder = folder if is_named or reads_files else None
        records = {name: evaluator.record for name, evaluator in self.evaluators.items()}
        with importing_from(folder_modules):
            self.combiners: Mapping[str, Combiner] = load_combiners(config, records.values())
            check_judges(config, self.evaluators)
            attach_toolsets_to_evaluators("evaluators", config.evaluators, self.evaluators)
            attach_toolsets_to_evaluators("derivers", config.derivers, self.derivers)
            check_recipe(config, records)
            self.gateways = _use_or_open_gateways(gateway, config, max_cost, max_calls)
        self.gateway = self.gateways.get(None)
        # a gateway of another jury has its own
        limits = [config.call_settings_of(name).concurrency for name in self.gateways]
        self._concurrent_calls = max(limits, default=DEFAULT_CONCURRENT_GROUPS)
        judges = tuple(gateway.backend.model for gateway in self.gateways.values())
        self.purpose = permitted_purpose(config.purpose, judges)
        self.context = GraphContext(
            config,
            self.evaluators,
            self.derivers,
            self.combiners,
            judges=judges,
            secrets=self.gateways.secrets,
        )
        has_slow_evaluator = any(map(may_take_long, self.evaluators.values()))
        has_slow_code = has_slow_evaluator or any(map(may_take_long, self.derivers.values()))
        self._largest_batch = (
            MAX_RESPONSES_PER_SLOW_BATCH if has_slow_code else MAX_RESPONSES_PER_BATCH
        )
        annotation = config.annotation
        self.domain = None if annotation is None else load_domain(annotation.domain).name
        self.loop = EventLoopThread(self.context.threads)
        self._opened = self._closed = False
        self._process: int | None = None  # its process id, from the first use on
        self._config_file: Path | None = None  # which errors of planning and scoring name
        self._record_in = record
        self._recorder: OpenEndedRecorder | None = None
        self._recorder_guard = Lock()

    @property
    def tools(self) -> dict[str, str]:
        """Return the versions of all tools of judges, by the owner's name and their own: `criteria prices`."""
        versions: dict[str, str] = {}
        for owner, toolset in self.context.toolsets:
            versions |= {f"{owner} {name}": tool.version for name, tool in toolset.tools.items()}
        return versions

    def _repr_parts(self) -> ReprParts:
        yield from (("model", self.config.judging_models), ("evaluators", [*self.evaluators]))
        if self.config.reward:  # else the only component with weight 1
            yield "reward", self.config.reward

    @classmethod
    def from_config(
        cls,
        source: StrPath | Mapping[str, Any] | Config,
        *,
        model: Any = None,
        max_cost: float | None = None,
        max_calls: int | None = None,
        code_folder: StrPath | None = None,
        record: StrPath | None = None,
        revise: Callable[[Config], Config] | None = None,
    ) -> Self:
        """Return a jury from a YAML file, a mapping or a Config, with the other arguments of the class.

        `model` replaces the config's own: a name, or a model as an object. A mapping may contain objects, too. Modules
        that a file names are looked for in its folder, unless `code_folder` is given. `revise` changes the config.
        """
        require_argument_type(
            "source", source, (str, Path, Mapping, Config), "give a file, a dict or a Config"
        )
        path = None
        if isinstance(source, StrPath):
            path = Path(source)
            config = read_config(path, model)
            code_folder = code_folder or path.parent
        elif isinstance(source, Config) and model is None:
            config = source
        else:
            config = parse_config_mapping(
                {**dict(source), **({} if model is None else {"model": model})}
            )
        if revise is not None:
            config = revise(config)
        with nullcontext() if path is None else locate_config_errors(path, model, "model"):
            jury = cls(
                config,
                max_cost=max_cost,
                max_calls=max_calls,
                code_folder=code_folder,
                record=record,
            )
        jury._config_file = path
        return jury

    async def aprepare(
        self, task: Task, profiles: ProfilesLine | None = None, sink: "CallSink | None" = None
    ) -> Plan:
        """Return the plan for a task, made without any response. Parts that it lacks are those of `task_defaults`.

        The constraints of a stakeholder with only a profile in text are taken from `profiles`, or else read by the
        model. Raises PlanError; ConfigError if the config's `task_defaults` are wrong, or if no deriver gives material
        that is needed; InputError if `profiles` belong to another task; ModelError or BudgetExceeded if the model gave
        no answer.
        """
        self._claim_for_process()
        require_argument_type("task", task, Task, TASK_EXAMPLE_HINT)
        require_argument_type(
            "profiles", profiles, ProfilesLine | None, "give a line of a PROFILES file, or none"
        )
        (plan_or_error,) = await start_in_new_context(
            partial(self._prepare_batch, [(task, profiles)], sink), self.config.langsmith
        )
        return self._result_or_raise(plan_or_error)

    async def aprepare_many(
        self, tasks: Iterable[TaskWithProfiles], sink: "CallSink | None" = None
    ) -> AsyncGenerator[Plan, None]:
        """Yield the plans of many tasks, each with its profiles or None, in their order; see `aprepare`.

        Where no plan needs the model one batch of tasks is planned after the other, else several at once. The error of
        a task is raised in the place of its plan.
        """
        self._require_open()
        size, batches_at_once = (
            (self._responses_per_batch, self._max_responses_in_work // self._responses_per_batch)
            if self._may_plan_by_model
            else (PLANNING_BATCH_SIZE, 1)
        )
        batches = split_into_batches(tasks, lambda _: 1, size)
        work = (
            start_in_new_context(partial(self._prepare_batch, batch, sink), self.config.langsmith)
            for batch in batches
        )
        async with aclosing(
            gather_in_order(work, batches_at_once, MAX_FINISHED_PER_ACTIVE_GROUP)
        ) as results:
            async for plans in results:
                for plan_or_error in plans:
                    yield self._result_or_raise(plan_or_error)

    async def _prepare_batch(
        self, batch: Sequence[TaskWithProfiles], sink: "CallSink | None"
    ) -> list[Plan | Exception]:
        """Run the prepare graph on a batch of tasks; return each task's plan, or its error."""
        self._claim_for_process()
        gateways = self.gateways if self._may_plan_by_model else NO_GATEWAYS
        return await plan_tasks(
            batch, [self.context.with_model_clients(gateways, sink) for _ in batch]
        )

    @property
    def _may_plan_by_model(self) -> bool:
        """True if a plan may need the model: to read profiles in text, or to annotate a rubric's graph."""
        has_stakeholder_evaluator = any(
            evaluator.audience == "stakeholder" for evaluator in self.evaluators.values()
        )
        return self.gateway is not None and (
            has_stakeholder_evaluator or self.config.annotation is not None
        )

    def _result_or_raise(self, outcome: T | BaseException) -> T:
        """Return a result, or raise the error that took its place."""
        if isinstance(outcome, BaseException):
            with redact_errors(self.context.secrets), ExitStack() as stack:
                if self._config_file is not None:
                    stack.enter_context(locate_config_errors(self._config_file))
                raise outcome
        return outcome

    async def ascore(
        self,
        task: Task,
        responses: Sequence[Response | str],
        plan: Plan | None = None,
        reused_results: ReusedResults = NO_REUSED_RESULTS,
        sink: "CallSink | None" = None,
        *,
        step: int | None = None,
        phase: str | None = None,
    ) -> list[Trace]:
        """Return the traces of a task's whole group of responses, in the order of `responses`.

        A response may be its text alone: the third of task `a` is then `a/3`. Verdicts and material in `reused_results`
        are reused. `step` and `phase` name the group in the run that it is recorded in (see `record`).

        Raises InputError for an empty group, where two responses have the same id, for values of a wrong type, and for
        a closed jury; ModelAccessError if a server refuses the key or does not have the model, ModelOutageError if it
        does not answer for too long, and BudgetExceeded at a limit of cost or calls.
        """
        group = Group(task, responses, plan, reused_results, step, phase)  # type: ignore[arg-type]
        return await self._score_group(group, sink=sink)

    async def _score_group(
        self, group: Group, listener: EventListener | None = None, sink: "CallSink | None" = None
    ) -> list[Trace]:
        """Return the traces of a group; the `listener` gets the events of its scoring."""

        async def score() -> GroupOutcome:
            active_groups = ActiveGroups()
            outcome_futures = await self._record_and_admit([group], active_groups, sink, listener)
            active_groups.close()
            await run_score_graph(active_groups)
            return await outcome_futures[0]

        traces = self._result_or_raise(await start_in_new_context(score, self.config.langsmith))
        if listener is not None:
            for trace in traces:
                listener(
                    RewardGiven(task_id=trace.task_id, response_id=trace.response_id, trace=trace)
                )
        return traces

    def as_runnable(self) -> "JuryRunnable":
        """Return the jury as a langchain-core Runnable, from `{"task": …, "responses": […]}` to the traces.

        `stream` and `astream` yield events instead: a question sent, a verdict, a reward.
        """
        from jurygraph.graphs.runnable import JuryRunnable  # loads message types

        return JuryRunnable(self.context, self._score_group, self._iterate_in_own_loop, self.run)

    def as_node(
        self,
        *,
        task: str = "task",
        responses: str = "responses",
        traces: str = "traces",
        step: str | None = None,
        plan: str | None = None,
    ) -> "RunnableLambda[Any, dict[str, Any]]":
        """Return a node for a LangGraph StateGraph that reads and writes these keys of its state.

        `step` names the round of a loop, from which responses without an id get theirs. `plan` is written, for
        `trace.explain(plan)`: a checkpoint keeps traces without theirs. The graph's stream of mode `custom` gets the
        events as dicts, and its callbacks as custom events.
        """
        return self.as_runnable().as_node(traces, plan, task=task, responses=responses, step=step)

    async def ascore_many(
        self,
        items: Iterable[GroupLike],
        progress: GroupProgressCallback | None = None,
        sink: "CallSink | None" = None,
        *,
        step: int | None = None,
    ) -> AsyncGenerator[list[Trace], None]:
        """Yield the traces of many groups, in the order of `items`; several batches of groups are scored concurrently.

        Each item is a Group or a pair (task, responses), recorded at this `step` if it has none of its own. A finished
        batch makes room for another, and its traces wait until those before it are yielded; `items` is read ahead no
        further than this needs. The error of a group is raised in the place of its traces.
        """
        self._require_open()
        require_argument_type(
            "progress", progress, Callable | None, "give a function of (done, total)"
        )
        if iscoroutinefunction(progress):
            raise InputError(
                "progress: is an async function, which nothing awaits; give a plain one of (done, total)"
            )
        done_group_count = 0
        total = len(items) if isinstance(items, Sized) else None
        scheduler = self._make_scheduler(to_groups("items", items, step), sink, in_order=True)
        async with aclosing(scheduler.run()) as results:
            async for finished in results:
                for group in finished:
                    traces = self._result_or_raise(group.outcome)
                    done_group_count += 1
                    if progress is not None:
                        progress(done_group_count, total)
                    yield traces

    async def ascore_as_finished(
        self, groups: Iterable[Group], sink: "CallSink | None" = None
    ) -> AsyncGenerator[list[FinishedGroup], None]:
        """Yield groups as they finish, several if they do at once, each with its traces or the error of it alone.

        No group waits for another one, such as those of several callers of a server. Closing this cancels the groups
        that are in work.
        """
        async with aclosing(
            self._make_scheduler(to_groups("groups", groups), sink).run()
        ) as results:
            async for finished in results:
                yield [
                    group._replace(
                        outcome=result_or_error(partial(self._result_or_raise, group.outcome))
                    )
                    for group in finished
                ]

    def score_many(
        self,
        items: Iterable[GroupLike],
        progress: GroupProgressCallback | None = None,
        *,
        step: int | None = None,
    ) -> Iterator[list[Trace]]:
        """Run `ascore_many` for callers without an event loop; `items` and `progress` are used in another thread."""
        self._require_open()
        return self._iterate_in_own_loop(self.ascore_many(items, progress, step=step))

    def _iterate_in_own_loop(self, results: AsyncGenerator[T, None]) -> Iterator[T]:
        """Yield what an asynchronous generator yields in the jury's own event loop."""
        turn = asyncio.Lock()  # an interrupted step may not have ended when the generator is closed

        async def step(step_function: Callable[[], Awaitable[Any]]) -> Any:
            async with turn:
                return await step_function()

        try:
            while (result := self.run(step(lambda: anext(results, turn)))) is not turn:
                yield result
        finally:
            if not self._closed:
                self.run(step(results.aclose))

    def _make_scheduler(
        self, groups: Iterable[Group], sink: "CallSink | None", in_order: bool = False
    ) -> GroupScheduler:
        return GroupScheduler(
            groups=groups,
            admit_groups=partial(self._record_and_admit, sink=sink),
            batch_size=self._responses_per_batch,
            max_responses=self._max_responses_in_work,
            target_response_count=RESPONSES_PER_CONCURRENT_CALL * self._concurrent_calls,
            target_group_count=self._concurrent_calls // 2,
            may_plan_by_model=self._may_plan_by_model,
            langsmith=self.config.langsmith,
            in_order=in_order,
        )

    async def _record_and_admit(
        self,
        groups: Sequence[Group],
        active_groups: ActiveGroups,
        sink: "CallSink | None",
        listener: EventListener | None = None,
    ) -> "list[asyncio.Future[GroupOutcome]]":
        """Let a batch of groups into the score graph, and record them if the jury does.

        Return the future traces, or the error, of each.
        """
        self._claim_for_process()
        # None also for the command line, whose job records by itself.
        recorder = self.open_recorder()
        if recorder is None:
            return await self._plan_and_admit(groups, active_groups, sink, listener)
        begun_groups = [result_or_error(partial(recorder.begin, group)) for group in groups]
        try:
            outcome_futures = await self._plan_and_admit(
                begun_groups, active_groups, sink or recorder.sink, listener
            )
        except BaseException:
            for item in begun_groups:
                if isinstance(item, Group):
                    recorder.end(item)
            raise
        return [
            asyncio.ensure_future(recorder.finish(item, outcome_future))
            if isinstance(item, Group)
            else outcome_future
            for item, outcome_future in zip(begun_groups, outcome_futures, strict=True)
        ]

    async def _plan_and_admit(
        self,
        groups: "Sequence[Group | GroupOutcome]",
        active_groups: ActiveGroups,
        sink: "CallSink | None",
        listener: EventListener | None,
    ) -> "list[asyncio.Future[GroupOutcome]]":
        """Let groups in, checked and planned; the others have their outcome, as those that cannot begin have."""
        groups_or_outcomes = [
            result_or_error(partial(self._check_group, item)) if isinstance(item, Group) else item
            for item in groups
        ]
        unplanned_tasks = [
            item.task
            for item in groups_or_outcomes
            if isinstance(item, Group) and item.plan is None
        ]
        missing_plans = iter(await self._plan_without_profiles(unplanned_tasks, sink))
        context = self.context if listener is None else replace(self.context, listener=listener)
        outcome_futures = []
        for item in groups_or_outcomes:
            if not isinstance(item, Group):
                if listener is not None and isinstance(item, list):
                    report_stored_verdicts(item, listener)
                outcome_futures.append(make_settled_future(item))
                continue
            plan = item.plan or next(missing_plans)
            if isinstance(plan, Exception):
                outcome_futures.append(make_settled_future(plan))
                continue
            with redact_errors():
                self.open()
            planned_group = make_planned_group(item, plan)
            clients_context = context.with_model_clients(self.gateways, sink)
            outcome_futures.append(active_groups.admit_group(planned_group, clients_context))
        return outcome_futures

    def _check_group(self, group: Group) -> Group:
        """Return a group with its complete task. Raises what `check_group` does."""
        task = self.config.task_defaults.complete(group.task)
        if task is not group.task:
            group = replace(group, task=task)
        check_group(group, self.context)
        return group

    async def _plan_without_profiles(
        self, tasks: Sequence[Task], sink: "CallSink | None"
    ) -> Sequence[Plan | Exception]:
        """Return the plan of each task, or the error that prevents it."""
        # for one task alone, the prepare graph would cost as much again as `ascore` does
        if len(tasks) == 1 and (plan_or_error := plan_by_code(tasks[0], self.context)):
            return [plan_or_error]
        return await self._prepare_batch([(task, None) for task in tasks], sink) if tasks else ()

    @property
    def max_concurrent_groups(self) -> int:
        """Return the number of tasks that are planned by a model at once."""
        return max(DEFAULT_CONCURRENT_GROUPS, self._concurrent_calls)

    @property
    def _responses_per_batch(self) -> int:
        """The number of responses of a batch, which has whole groups."""
        return min(self._largest_batch, self._concurrent_calls)

    @property
    def _max_responses_in_work(self) -> int:
        """The number of responses in work at once."""
        calls = self._concurrent_calls
        max_responses_with_model = min(
            MAX_RESPONSES_PER_CONCURRENT_CALL * calls, max(MAX_RESPONSES_IN_WORK, 2 * calls)
        )
        return max_responses_with_model if self.gateways else MAX_RESPONSES_WITHOUT_MODEL

    def prepare(self, task: Task, profiles: ProfilesLine | None = None) -> Plan:
        """Run `aprepare` for callers without an event loop."""
        return self.run(self.aprepare(task, profiles))

    def score(
        self,
        task: Task,
        responses: Sequence[Response | str],
        plan: Plan | None = None,
        *,
        step: int | None = None,
        phase: str | None = None,
    ) -> list[Trace]:
        """Run `ascore` for callers without an event loop."""
        return self.run(self.ascore(task, responses, plan, step=step, phase=phase))

    @contextmanager
    def record(self, folder: StrPath, phase: str | None = None) -> "Iterator[OpenEndedRecorder]":
        """Store what is scored inside the block in a run without a file of tasks; see `OpenEndedRecorder`.

            with jury.record("run") as recorder:
                jury.score(task, responses, step=7)

        A group is named by its task's id, a `step` and a `phase`. Without a step, every group is the next one of its
        task. With a step, the same responses return the stored traces, and only what failed by infrastructure is
        requested again: after an interrupt, `score_many(items, step=1)` scores the groups that are missing. The run
        that is in the folder is continued, if it has the settings of this jury.

        Raises InputError if the jury records already, if the folder holds another run, and where another process
        writes it.
        """
        self._require_open()
        require_argument_type("folder", folder, StrPath, "give the folder of a run")
        if self._record_in is not None:
            raise InputError(
                f"this jury records into {self._record_in} already; give `phase` to `score`, or make another jury"
            )
        self._record_in = folder
        try:
            recorder = self.open_recorder(phase)
            assert recorder is not None
            yield recorder
        finally:
            self._release_recorder()
            self._record_in = None

    def open_recorder(self, phase: str | None = None) -> "OpenEndedRecorder | None":
        """Return the recorder of the jury, None if it has none; its run is opened with the first use."""
        if self._record_in is None:
            return None
        with self._recorder_guard:
            if self._recorder is None:
                # the only import upwards: a jury offers to record, and knows no more of runs than this
                from jurygraph.runs.open_ended_recorder import OpenEndedRecorder

                self._recorder = OpenEndedRecorder(self._record_in, self, phase)
            return self._recorder

    def _release_recorder(self) -> None:
        recorder = self._recorder
        self._recorder = None
        if recorder is not None:
            recorder.release_run()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the jury's own event loop. Raises InputError if the jury is closed, also meanwhile."""
        try:
            self._claim_for_process()
            self._require_other_loop()
        except InputError:
            work.close()
            raise
        try:
            return self.loop.run(work)
        except CancelledError:
            self._require_open()
            raise

    def _require_other_loop(self) -> None:
        if self.loop.is_current_thread:
            raise InputError(
                "this code runs in the jury's own event loop, and would wait for itself; in an async function, await "
                "`ascore` or `aprepare`"
            )

    def _require_open(self) -> None:
        if self._closed:
            raise InputError(
                "this jury is closed; use it inside its `with` block, or make another one"
            )
        if self._is_in_forked_process:
            raise InputError(
                "this jury was used in another process, before a fork; make one in each process"
            )

    @property
    def _is_in_forked_process(self) -> bool:
        """Return true in a fork after the first use: the threads and connections are those of the other process."""
        return self._process not in (None, os.getpid())

    def _claim_for_process(self) -> None:
        self._require_open()
        self._process = os.getpid()

    def open(self) -> None:
        """Open the evaluators' resources (worker processes), unless they are open; scoring does so when needed."""
        self._claim_for_process()
        if not self._opened:
            for evaluator in self.evaluators.values():
                self._call_evaluator_method(evaluator, evaluator.open)
            self._opened = True

    def close(self) -> None:
        """Release the evaluators' resources (worker processes) and the event loop. Can be called more than once."""
        self._require_other_loop()
        self._opened = False
        self._closed = True
        if self._is_in_forked_process:
            return
        with ExitStack() as stack:  # all is closed, whatever one of them raises
            stack.callback(self._release_recorder)
            stack.callback(self.loop.close)
            if self.gateways:
                stack.callback(lambda: self.loop.run(self.gateways.close()))
            for evaluator in self.evaluators.values():
                stack.callback(self._call_evaluator_method, evaluator, evaluator.close)
            for _, toolset in self.context.toolsets:
                for tool in toolset.tools.values():
                    stack.callback(tool.close)

    def _call_evaluator_method(self, evaluator: Evaluator, method: Callable[[], None]) -> None:
        new_contextvars_context(self.config.langsmith).run(call_component_method, evaluator, method)

    async def aclose(self) -> None:
        """Close the jury in the event loop that awaited `ascore`, to which the gateway's connections belong."""
        self._closed = True
        try:
            if self.gateways and not self._is_in_forked_process:
                await self.gateways.close()
        finally:
            await asyncio.to_thread(self.close)

    async def __aenter__(self) -> Self:
        self._require_open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        self._require_open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _load_evaluators_and_derivers(
    config: Config, folder_modules: FolderModules | None
) -> tuple[dict[str, Evaluator], dict[str, Deriver]]:
    with importing_from(folder_modules):
        return load_evaluators(config), load_derivers(config)


def _config_from_arguments(config: Config | None, settings: Mapping[str, Any]) -> Config:
    """Return the config, or the one with these settings. Raises InputError for both, and for another type."""
    if config is None:
        return parse_config_mapping(settings)
    require_argument_type(
        "config", config, Config, "use Jury.from_config(…), or Jury(evaluators=[…])"
    )
    if settings:
        raise InputError(
            f"config: is given, and so is its key {sorted(settings)[0]!r}; give one of them"
        )
    return config


def _use_or_open_gateways(
    gateway: Gateway | Gateways | None,
    config: Config,
    max_cost: float | None,
    max_calls: int | None,
) -> Gateways:
    """Return the given gateways; those that are missing are opened for the config's models."""
    if gateway is None and not config.judges:
        return NO_GATEWAYS
    from jurygraph.models.factory import open_gateways  # imported lazily: only needed with a model

    hint = "leave it out, or give the `gateway` of a jury"
    require_argument_type("gateway", gateway, Gateway | Gateways | None, hint)
    if isinstance(gateway, Gateways):
        return gateway
    return open_gateways(config, default=gateway, max_cost=max_cost, max_calls=max_calls)


def check_group(group: Group, context: GraphContext) -> None:
    """Refuse a group without responses or with repeated ids, and a plan that does not fit.

    Raises InputError, and whatever an evaluator's `check` raises for a question of the plan.
    """
    if not group.responses:
        raise InputError(
            f"task {group.task.id!r} has no responses: a group of none cannot be scored"
        )
    ids = set()
    for response in group.responses:
        if response.id in ids:
            raise InputError(
                f"task {group.task.id!r} has two responses with the id {response.id!r}"
            )
        ids.add(response.id)
        try:
            response.model_dump_json()
        except PydanticSerializationError as error:
            raise InputError(
                f"response {response.id!r} cannot be written as JSON: {error}"
            ) from error
    if group.plan is not None:
        _check_plan(group.plan, group.task, context)
        check_unchanged_inputs(group.plan, context)
        for question in group.plan.survey.questions:
            evaluator = context.evaluators[question.evaluator]
            call_component_method(evaluator, evaluator.check, question)


def _check_plan(plan: Plan, task: Task, context: GraphContext) -> None:
    """Refuse a plan from another task, or with evaluators, derivers or combiners of other names or versions."""
    if plan.task_id != task.id:
        raise InputError(f"the plan is for task {plan.task_id!r}, not for {task.id!r}")
    if plan.task_digest != task.content_digest:
        raise InputError(
            f"the plan was made from another version of task {task.id!r}: prepare it again"
        )
    if problem := find_changed_version(plan, context):
        raise InputError(f"the plan was made with {problem}: prepare it again")


def find_changed_version(plan: Plan, context: GraphContext) -> str | None:
    """Return which evaluator, deriver or combiner of a plan has another version here; None if all are the same."""
    planned_uses = (
        ("evaluator", plan.survey.questions, context.evaluators),
        ("deriver", plan.survey.derivations, context.derivers),
        ("combiner", plan.decision.specs, context.combiners),
    )
    for role, uses, registry in planned_uses:
        for use in uses:
            name = getattr(use, role)
            component = registry.get(name)
            version = getattr(component, "version", None)
            if use.version not in (version, *getattr(component, "earlier_versions", ())):
                problem = (
                    f"{role} {name!r} of version {use.version!r}; this jury has {version or 'none'}"
                )
                code, mark, _ = use.version.partition(READS_MARK)
                if mark and version and version.partition(READS_MARK)[0] == code:
                    problem += ", because a file that it reads has changed"
                return problem
    return None


def check_unchanged_inputs(plan: Plan, context: GraphContext) -> None:
    """Raise InputError if inputs of derivers or tools besides the task, such as files, changed since planning."""
    files = digests_of_tool_files(plan.survey, context.toolsets) if plan.files else {}
    for field, sha256 in plan.files.items():
        if files.get(field) != sha256:
            _refuse_changed_facts(plan, f"{field} has changed")
    for derivation in plan.survey.derivations:
        deriver = context.derivers[derivation.deriver]
        params = call_component_method(
            deriver, deriver.params_for, plan.survey.views[derivation.view]
        )
        if digest_of(dict(params)) != digest_of(derivation.params):
            _refuse_changed_facts(
                plan,
                f"the input of deriver {derivation.deriver!r} (its params, or files) has changed",
            )


def _refuse_changed_facts(plan: Plan, difference: str) -> NoReturn:
    raise InputError(
        f"the plan for task {plan.task_id!r} was made with other facts: {difference}; put that back as it "
        "was, or prepare the task again (a run: score into another --out, with --branch)"
    )
