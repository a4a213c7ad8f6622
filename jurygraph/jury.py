"""The front door for Python: a jury made from a config prepares plans and scores responses."""

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
from jurygraph.agents.roles import Combiner, Deriver, Evaluator
from jurygraph.agents.user_modules import allow_modules_beside
from jurygraph.errors import ConfigError, InputError, ModelError
from jurygraph.graphs import annotate, prepare, score
from jurygraph.graphs.answering import apart, apart_now, begin_apart, open_evaluator
from jurygraph.graphs.fitting import refuse_other_plan
from jurygraph.graphs.loop import Loop
from jurygraph.graphs.recipe import check_recipe
from jurygraph.graphs.routing import NOTHING, Recalled, canonical_order
from jurygraph.graphs.secret_fields import refuse_secrets_in_config
from jurygraph.graphs.side_by_side import in_order
from jurygraph.graphs.state import AnnotateInput, PrepareState, Roster, ScoreState
from jurygraph.safety.fence import project_key
from jurygraph.safety.known_secrets import redacted_errors
from jurygraph.schema import Config, Plan, Purpose, PurposeConfig, Response, Rubric, Task, Trace
from jurygraph.schema.purpose import purpose_of
from jurygraph.sources import parse_config, read_config

if TYPE_CHECKING:
    from jurygraph.models.asking import Request
    from jurygraph.models.consultation import Consultation
    from jurygraph.models.gateway import Gateway
    from jurygraph.models.sink import CallSink
    from jurygraph.schema.profile import Profiles, ProfilesLine

T = TypeVar("T")
Group = tuple[Task, Sequence[Response], Plan]
Recall = Callable[[Task, Sequence[Response], Plan], Recalled]
AT_ONCE = 32
"""Groups that are scored at once; more where a model may be asked more questions at once."""
AHEAD = 8
"""Finished groups that may wait for an earlier one, for each that is scored at once. Their traces take memory; and so
a group may take nine times as long as the others before it holds them up."""


class Jury:
    """Evaluators, and the arithmetic that makes rewards of their verdicts.

        with Jury.from_config("jury.yaml") as jury:
            plan = jury.prepare(task)
            traces = jury.score(task, responses, plan=plan)

    A `gateway` takes the place of that to the config's model. In `code_folder` lie modules that the config names and
    that are not installed; the attribute is None where the config names none. Raises ConfigError when the config cannot
    run.
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
        own_code = code_folder is not None and allow_modules_beside(config, folder=code_folder)
        self.code_folder = code_folder if own_code else None
        self.evaluators: Mapping[str, Evaluator]
        self.derivers: Mapping[str, Deriver]
        self.evaluators, self.derivers = apart_now(lambda: _load(config), config.langsmith)
        seats = {name: one.seat for name, one in self.evaluators.items()}
        self.combiners: Mapping[str, Combiner] = load_combiners(config, seats.values())
        check_recipe(config, seats)
        if gateway is None and config.model != "none":
            gateway = _gateway(config, sink, max_cost, max_calls)
        self.gateway = gateway
        secrets = () if gateway is None else gateway.backend.secrets
        self._roster = Roster(config, self.evaluators, self.derivers, self.combiners, secrets=tuple(secrets))
        self.domain = None if config.annotation is None else load_domain(config.annotation.domain).name
        self._judge = None if gateway is None else gateway.backend.model
        self.purpose = purpose_of(config.purpose, self._judge)
        _refuse_the_judge_of_training(self.purpose, config.purpose)
        self._prepare = prepare.build()
        self._annotate = annotate.build()
        self._score = score.build()
        self._loop: Loop | None = None
        self._loop_made = threading.Lock()
        self._opened = False

    @classmethod
    def from_config(cls, source: str | Path | Mapping[str, Any] | Config, **limits: Any) -> Self:
        """A jury from a YAML file, a mapping or a Config; `limits` are max_cost (US dollars), max_calls and
        `code_folder`.
        """
        if isinstance(source, Config):
            return cls(source, **limits)
        return cls(parse_config(source) if isinstance(source, Mapping) else read_config(Path(source)), **limits)

    async def aprepare(self, task: Task, profiles: "ProfilesLine | None" = None) -> Plan:
        """The plan for a task, made without any response.

        A stakeholder's profile in text alone is read as `profiles` say, else by the model. Raises PlanError; InputError
        where these are of another task; ModelError or BudgetExceeded where the model gave no answer.
        """
        return await self._planned(task, profiles, self.gateway)

    async def aforesee(self, task: Task, profiles: "ProfilesLine | None" = None) -> "tuple[Plan | None, list[Request]]":
        """The plan as `aprepare` makes it, as far as no model need be asked for it, and what it would be asked first.

        Where it must read profiles, there is no plan. Where it must find a rubric's graph, the plan has none, which
        changes no question. Nothing is sent. Raises PlanError.
        """
        plan, first = await self._foreseen(lambda gateway: self._plan_directly(task, profiles, gateway))
        if plan is None and self.config.annotation is not None:
            plan, _ = await self._foreseen(lambda gateway: self._plan_directly(task, profiles, gateway, False))
        return plan, first

    async def _foreseen(self, made: "Callable[[Gateway | None], Awaitable[T]]") -> "tuple[T | None, list[Request]]":
        """What is `made` with the replies that are known; where one is lacking, None, and what would be asked first."""
        if self.gateway is None:
            return await made(None), []
        from jurygraph.models.foreseeing import noted_beyond_known

        known, gateway = noted_beyond_known(self.gateway, AT_ONCE)
        try:
            return await made(gateway), []
        except ModelError:
            if not known.requests:
                raise
            return None, list(known.requests.values())
        finally:
            await gateway.close()

    async def aread(self, task: Task) -> "Profiles | None":
        """What the model reads in profiles of a task in text alone; None where there is none.

        Raises as `aprepare`, and ConfigError under model none.
        """
        if self.gateway is None:
            raise ConfigError("model: none reads no profiles; name one in the config or with --model")
        gateway = _consultation(self.gateway, self.config)
        with redacted_errors(self._roster.secrets):
            return await apart(lambda: read_profiles(task, None, gateway), self.config.langsmith)

    async def aannotate(self, task: Task, reviewed: Rubric | None = None) -> Rubric:
        """A task's rubric with its graph, as the config's `annotation` says; what stands of it is not asked about.

        `reviewed` is the rubric as a person left it, in the place of the task's own edges. Raises PlanError where the
        task has no rubric, ConfigError for an unknown domain; ModelError or BudgetExceeded where the model gave no
        answer.
        """
        return await self._annotated(task, reviewed, self.gateway)

    async def aforesee_annotation(
        self, task: Task, reviewed: Rubric | None = None
    ) -> "tuple[Rubric | None, list[Request]]":
        """The graph as `aannotate` makes it, as far as the cache has all replies. Nothing is sent.

        Where it lacks some, there is no graph, but what would be asked first. Raises PlanError and ConfigError.
        """
        return await self._foreseen(lambda gateway: self._annotated(task, reviewed, gateway))

    async def _annotated(self, task: Task, reviewed: Rubric | None, gateway: "Gateway | None") -> Rubric:
        start, roster = AnnotateInput(task=task, reviewed=reviewed), self._with(gateway)
        with redacted_errors(roster.secrets):
            state = await apart(lambda: self._annotate.ainvoke(start, context=roster), self.config.langsmith)
        rubric: Rubric = state["rubric"]
        return rubric

    async def _planned(self, task: Task, profiles: "ProfilesLine | None", gateway: "Gateway | None") -> Plan:
        start, roster = PrepareState(task=task, stated=profiles), self._with(gateway)
        with redacted_errors(roster.secrets):
            state = await apart(lambda: self._prepare.ainvoke(start, context=roster), self.config.langsmith)
        plan: Plan = state["plan"]
        return plan

    async def _plan_directly(
        self, task: Task, profiles: "ProfilesLine | None", gateway: "Gateway | None", annotated: bool = True
    ) -> Plan:
        """The same plan, in a fraction of the time and traced nowhere; without a graph if not `annotated`."""
        start, roster = PrepareState(task=task, stated=profiles), self._with(gateway)
        if not annotated:
            roster = replace(roster, config=roster.config.model_copy(update={"annotation": None}))
        with redacted_errors(roster.secrets):
            return await apart(lambda: prepare.prepare_directly(start, roster), self.config.langsmith)

    def _with(self, gateway: "Gateway | None") -> Roster:
        """The roster of a graph, with a way to the model where there is one."""
        return self._roster if gateway is None else replace(self._roster, gateway=_consultation(gateway, self.config))

    async def ascore(
        self, task: Task, responses: Sequence[Response], plan: Plan | None = None, recalled: Recalled = NOTHING
    ) -> list[Trace]:
        """The traces of a task's whole group of responses, in the order given. What is `recalled` is not asked again.

        Raises InputError for a group of none, and where two responses share an id.
        """
        return await self._begun(task, responses, plan, recalled)

    async def arequests(
        self, task: Task, responses: Sequence[Response], plan: Plan | None = None, recalled: Recalled = NOTHING
    ) -> "list[Request]":
        """What the model would be asked to score a group, as far as that hangs on none of its replies. Nothing is sent.

        Evaluators that ask no model are asked: what they say may decide whether one is. Raises InputError as `ascore`.
        """
        if self.gateway is None:
            return []
        first: list[Request] = []
        if plan is None:
            plan, first = await self.aforesee(task)
            if plan is None:
                return first
        from jurygraph.models.foreseeing import noted

        unsent, gateway = noted(self.gateway, AT_ONCE)
        try:
            await apart(lambda: self._asked(task, responses, plan, recalled, gateway), self.config.langsmith)
        finally:
            await gateway.close()
        return [*first, *unsent.requests.values()]

    def _begun(
        self, task: Task, responses: Sequence[Response], plan: Plan | None, recalled: Recalled
    ) -> "asyncio.Task[list[Trace]]":
        return begin_apart(lambda: self._scored(task, responses, plan, recalled, self.gateway), self.config.langsmith)

    async def _scored(
        self,
        task: Task,
        responses: Sequence[Response],
        plan: Plan | None,
        recalled: Recalled,
        gateway: "Gateway | None",
    ) -> list[Trace]:
        _check_group(task, responses)
        if plan is None:
            plan = await self._planned(task, None, gateway)
        else:
            refuse_other_plan(plan, task, self._roster)
        limit = RunnableConfig(recursion_limit=2 * len(plan.survey.waves) + 10)
        start = _unscored(plan, responses, recalled)
        with redacted_errors():
            self._open()
            ended = await self._score.ainvoke(start, context=self._with(gateway), config=limit, version="v2")
        traces = {trace.response_id: trace for trace in ended.value["traces"]}
        return [self._signed(traces[r.id], r) for r in responses]

    async def _asked(
        self, task: Task, responses: Sequence[Response], plan: Plan, recalled: Recalled, gateway: "Gateway"
    ) -> None:
        """Ask what scoring a group asks, and make no rewards of it."""
        _check_group(task, responses)
        refuse_other_plan(plan, task, self._roster)
        start = _unscored(plan, responses, recalled)
        with redacted_errors():
            self._open()
            await score.ask_directly(start, self._with(gateway))

    def _signed(self, trace: Trace, response: Response) -> Trace:
        """The trace with who gave its response, what is known of that, and what its reward is for."""
        purpose = purpose_of(self.config.purpose, self._judge, [call.served for call in trace.calls if call.served])
        _refuse_the_judge_of_training(purpose, self.config.purpose)
        return trace.model_copy(update={"agent": response.agent, "labels": response.labels, "purpose": purpose})

    def ascore_all(self, groups: Iterable[Group], recall: Recall | None = None) -> AsyncIterator[list[Trace]]:
        """The traces of many groups, several at once, in the order given.

        `recall` says what of a group is known already; it is called when the group's turn comes. A group that is
        finished makes room for another, though its traces wait until those before it are given. `groups` is read as
        far ahead as that takes, and no further. The error of a group is raised where its traces would be given.
        """
        begun = (self._begun(*group, recall(*group) if recall else NOTHING) for group in groups)
        return in_order(begun, self.at_once, AHEAD)

    @property
    def at_once(self) -> int:
        """How many groups are scored at once."""
        return AT_ONCE if self.gateway is None else max(AT_ONCE, self.config.calls.concurrency)

    def prepare(self, task: Task, profiles: "ProfilesLine | None" = None) -> Plan:
        """As `aprepare`, for callers without an event loop."""
        return self._run(self.aprepare(task, profiles))

    def annotate(self, task: Task, reviewed: Rubric | None = None) -> Rubric:
        """As `aannotate`, for callers without an event loop."""
        return self._run(self.aannotate(task, reviewed))

    def score(self, task: Task, responses: Sequence[Response], plan: Plan | None = None) -> list[Trace]:
        """As `ascore`, for callers without an event loop."""
        return self._run(self.ascore(task, responses, plan))

    def close(self) -> None:
        """Release what evaluators hold (worker processes) and the event loop. May be called more than once."""
        for evaluator in self.evaluators.values():
            apart_now(evaluator.close, self.config.langsmith)
        self._opened = False
        if self.gateway is not None:
            self._run(self.gateway.close())
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    async def aclose(self) -> None:
        """As `close`, for whoever awaited `ascore` in a loop of their own: connections belong to that."""
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
        with self._loop_made:
            self._loop = self._loop or Loop()
        return self._loop.run(work)


def _refuse_the_judge_of_training(purpose: Purpose | None, stated: PurposeConfig) -> None:
    if purpose is not None and purpose.same_judge and stated.same_judge == "refuse":
        gave = f"{purpose.judge!r} (or who answers for it) would evaluate what was trained on its own rewards"
        how = "name another model, or set same_judge: allow, which every trace then tells"
        raise ConfigError(f"purpose.reward_judges: {gave}; {how}")


def _gateway(config: Config, sink: "CallSink | None", max_cost: float | None, max_calls: int | None) -> "Gateway":
    from jurygraph.models.opening import open_gateway  # nobody pays for it who asks no model

    return open_gateway(config.model, config.calls, sink=sink, max_cost=max_cost, max_calls=max_calls)


def _consultation(gateway: "Gateway", config: Config) -> "Consultation":
    from jurygraph.models.consultation import Consultation

    return Consultation(gateway, config.calls.parameters, config.safety, project_key())


def _load(config: Config) -> tuple[dict[str, Evaluator], dict[str, Deriver]]:
    evaluators = _named("evaluators", load_evaluator, config.evaluators)
    return evaluators, _named("derivers", load_deriver, config.derivers)


def _named(key: str, load: Callable[[Any], Any], uses: Iterable[Any]) -> dict[str, Any]:
    """By name, in the order of names."""
    named: dict[str, Any] = {}
    for place, use in enumerate(uses):
        try:
            one = load(use)
        except ConfigError as error:
            raise ConfigError(f"{key}[{place}]: {error}") from error.__cause__
        if one.name in named:
            raise ConfigError(f"{key}: {one.name!r} is listed twice; give one of them a `name` of its own")
        named[one.name] = one
    return {name: named[name] for name in sorted(named)}


def _unscored(plan: Plan, responses: Sequence[Response], recalled: Recalled) -> ScoreState:
    group = canonical_order(responses)
    return ScoreState(plan=plan, responses=group, recalled=recalled, wave=0, material=[], verdicts=[])


def _check_group(task: Task, responses: Sequence[Response]) -> None:
    if not responses:
        raise InputError(f"task {task.id!r} has no responses: a group of none cannot be scored")
    seen: set[str] = set()
    for response in responses:
        if response.id in seen:
            raise InputError(f"task {task.id!r} has two responses with the id {response.id!r}")
        seen.add(response.id)
        try:
            response.model_dump_json()
        except PydanticSerializationError as error:
            raise InputError(f"response {response.id!r} cannot be written as JSON: {error}") from error
