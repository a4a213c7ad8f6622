"""The groups that are scored, the states of the graphs, and their context; user code isolated, with time limits.

A coroutine that runs past its limit is cancelled. A thread cannot be ended, so its call is given up:
`TimeLimitExceeded` is its answer, a late result is dropped, and another thread goes on. An evaluator with too many
threads that hang is not called any more. A call that waits for the model at its limit ends with a `Fault`, because the
response is not to blame for that.
"""

import asyncio
import operator
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Required, TypedDict, TypeVar

from langsmith import tracing_context

from jurygraph.agents.graph_annotator import (
    Batch,
    CheckedRoles,
    CriterionPair,
    EdgeSource,
    KnownGraph,
)
from jurygraph.agents.roles import CODE_LIMIT, Deriver, Evaluator
from jurygraph.concurrency import DaemonThreads, ThreadCall
from jurygraph.decision.combiners import Combiner, as_plan_error
from jurygraph.display import Displayed
from jurygraph.errors import EvaluatorError, InputError, TimeLimitExceeded
from jurygraph.graphs.events import Listener
from jurygraph.graphs.routing import NO_REUSED_RESULTS, ReusedResults, WaveWork, sort_responses
from jurygraph.models.request import CallSink, Fault
from jurygraph.safety.gates import project_key
from jurygraph.safety.redaction import Redactor, process_redactor
from jurygraph.schema import (
    Call,
    CallsConfig,
    Config,
    Decision,
    Edge,
    Plan,
    RecordedVerdict,
    RejectedEdge,
    Response,
    Rubric,
    SurveyOutline,
    Task,
    Trace,
    UnansweredPair,
)
from jurygraph.schema.frozen_model import require_type
from jurygraph.schema.task import Profiles, ProfilesLine, Role
from jurygraph.schema.verdict import GATED_LAYERS, TIME_LIMIT

if TYPE_CHECKING:
    from jurygraph.models.gateway import Gateways
    from jurygraph.models.judge_client import JudgeClient

OWN_MODEL_LIMIT = 600.0
"""Seconds for a call of user code with a model of its own."""
MAX_HANGING = 4
"""Number of hanging threads from which on an evaluator or deriver is not called any more."""
_CANCELLING = 0.5  # seconds for a cancelled coroutine to end

LEFT_ALONE: list["asyncio.Task[Any]"] = []
"""Tasks that ignored their cancellation. They are kept, because to destroy one runs its code, which may hang again."""

T = TypeVar("T")
Result = tuple[Any, bool]
"""The result or exception of a call, and true if it still has to be awaited."""


def time_limit(component: Evaluator | Deriver, calls: CallsConfig) -> float | None:
    """Return the seconds for one call of an evaluator or deriver; None without a limit.

    One that uses the config's model has `CODE_LIMIT` on top of the deadline of a group, and without a deadline no limit
    but those of its requests.
    """
    if component.timeout is not None:
        return component.timeout
    if component.bounds_its_time or (isinstance(component, Evaluator) and component.runs_inline):
        return None
    if component.uses_model:
        return None if calls.deadline is None else calls.deadline + CODE_LIMIT
    has_own_model = isinstance(component, Evaluator) and component.layer in GATED_LAYERS
    return OWN_MODEL_LIMIT if has_own_model else CODE_LIMIT


def may_take_long(component: Evaluator | Deriver) -> bool:
    """Return whether its answers may take long and exist nowhere but in their traces, unlike the calls of a model."""
    if component.uses_model:
        return False
    return component.may_take_long or time_limit(component, CallsConfig()) is not None


def call_within_limit(
    component: Evaluator | Deriver, method: Callable[..., T], *arguments: Any
) -> T:
    """Return the result of a method besides those that answer; in a thread, unless its class bounds its time.

    Raises TimeLimitExceeded after the default limit of the component, or its own if that is longer; and PlanError with
    the method and the component for any other exception in it.
    """
    with as_plan_error(f"`{method.__name__}` of {component.name!r}"):
        if _bounds_its_time(method):
            return method(*arguments)
        context = copy_context()
        seconds = max(CODE_LIMIT, time_limit(component, CallsConfig()) or 0.0)
        future: Future[T] = DaemonThreads(1).submit(lambda: context.run(method, *arguments))
        if not wait([future], seconds).not_done:
            return future.result()
    hint = "correct it, or raise its `timeout`"
    problem = f"`{method.__name__}` of {component.name!r} ran past its time limit of {seconds:g} s"
    raise TimeLimitExceeded(f"{problem}; {hint}")


def _bounds_its_time(method: Any) -> bool:
    """Return whether the class that defines a method bounds its time; the defaults of the roles do little."""
    classes = type(getattr(method, "__self__", None)).__mro__
    author: Any = next((each for each in classes if method.__name__ in vars(each)), None)
    return author in (Evaluator, Deriver) or getattr(author, "bounds_its_time", False)


def _copy_untraced_context() -> Context:
    with tracing_context(enabled=False):
        return copy_context()


_UNTRACED = Context().run(_copy_untraced_context)
"""An otherwise empty context with tracing off: copying it is cheaper than turning tracing off on every call."""


def fresh_context(langsmith: bool) -> Context:
    """Return an empty context, in which nothing is traced unless `langsmith` is true."""
    return Context() if langsmith else _UNTRACED.copy()


def start_isolated(function: Callable[[], Awaitable[T]], langsmith: bool) -> "asyncio.Task[T]":
    """Start a function as an asyncio task in a fresh context, traced to LangSmith only if `langsmith` is true.

    It inherits nothing: user code gets neither the package's clients nor its keys, and the package's graphs get
    neither the callbacks nor the checkpointer of a graph that calls them.
    """

    async def run() -> T:
        return await function()

    return asyncio.create_task(run(), context=fresh_context(langsmith))


def clients_of(inputs: Any) -> list["JudgeClient"]:
    """Return the clients of an input, or of a batch of them; none where no model may be used."""
    batch = inputs if isinstance(inputs, tuple) else (inputs,)
    return [each.client for each in batch if each.client]


class CallThreads(DaemonThreads):
    """The threads of a jury's evaluators and derivers, which count those that hang, by the name of their owner."""

    def __init__(self) -> None:
        super().__init__()
        self._hanging: dict[str, list[ThreadCall]] = {}
        self._refused: set[str] = set()

    def give_up(self, owner: str, calls: Sequence[ThreadCall]) -> None:
        """Abandon unfinished calls that ran past their time limit. With too many that hang, `owner` is refused."""
        earlier = [call for call in self._hanging.get(owner, ()) if not call.future.done()]
        self._hanging[owner] = [*earlier, *self.abandon(calls)]
        if len(self._hanging[owner]) >= MAX_HANGING:
            self._refused.add(owner)

    def refusal(self, owner: str) -> Fault | None:
        """Return the reason why `owner` is not called any more; None if it is."""
        if owner not in self._refused:
            return None
        hint = "correct it, raise its `timeout`, or set `isolate: process` for an evaluator, which can then be ended"
        problem = f"it is not called any more: {MAX_HANGING} of its calls ran past their time limit and still hang"
        return Fault("hanging", f"{problem}; {hint}")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The limits of the calls of one evaluator or deriver, `owner`: seconds for each, or None, and their threads."""

    owner: str
    seconds: float | None
    threads: CallThreads

    def excess(self, inputs: Any) -> TimeLimitExceeded | Fault:
        """Return the error that takes the place of the answer of a call with these inputs."""
        problem = f"{self.owner!r} ran past its time limit of {self.seconds:g} s"
        if any(client.is_waiting for client in clients_of(inputs)):
            return Fault(
                TIME_LIMIT, f"{problem} while it waited for the model; raise its `timeout`"
            )
        return TimeLimitExceeded(problem)

    async def call_in_thread(
        self, call: Callable[[Any], Result], inputs: Sequence[Any], finish: Callable[[Any], None]
    ) -> list[Result]:
        """Return the results of `call` for all inputs, made one after another in a thread, and in one context.

        The input of a call that hangs is given to `finish`, and the next one gets another thread.
        """
        context = copy_context()
        results: list[Result] = []
        for each in inputs:
            if (refusal := self.threads.refusal(self.owner)) is not None:
                return results + [(refusal, False)] * (len(inputs) - len(results))
            result, is_late = await self._call_in_time(partial(context.run, call, each))
            if is_late:
                result = (
                    self.excess(each),
                    False,
                )  # before `finish`, after which no request is waited for
                finish(each)
                context = context.copy()  # the call that hangs is still in the other
            results.append(result)
        return results

    async def _call_in_time(self, call: Callable[[], Result]) -> tuple[Any, bool]:
        """Return the result of a call in a thread, and whether it ran past the limit, which begins when it does."""
        with self.threads.record_calls() as made:
            future = asyncio.get_running_loop().run_in_executor(self.threads, call)
        own_call = made[0]
        try:
            while not (await asyncio.wait({future}, timeout=self._seconds_left(own_call)))[0]:
                if self._seconds_left(own_call) == 0.0:
                    self.threads.give_up(self.owner, made)
                    return None, True
            return future.result(), self.seconds is not None and own_call.duration >= self.seconds
        finally:
            future.cancel()
            self.threads.abandon(made)

    def _seconds_left(self, call: ThreadCall) -> float | None:
        """Return the seconds until a call is late; None without a limit, and all of them before it begins."""
        return None if self.seconds is None else max(0.0, self.seconds - call.duration)

    async def await_result(self, result: Awaitable[Any], inputs: Any) -> Any:
        """Return the awaited result, or `excess`; the work is cancelled then, and left alone if it goes on."""
        with self.threads.record_calls() as made:
            task = asyncio.ensure_future(_timed(result))
        try:
            if (await asyncio.wait({task}, timeout=self.seconds))[0]:
                value, seconds = await task
                if (
                    self.seconds is None or seconds < self.seconds
                ):  # one that never awaits is not cancelled
                    return value
            return self.excess(inputs)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=_CANCELLING)
                self.threads.give_up(self.owner, made)
            if (
                not task.done()
            ):  # it caught the cancellation: asyncio would wait for it when the loop is closed
                asyncio._unregister_task(task)
                LEFT_ALONE.append(task)


async def _timed(result: Awaitable[T]) -> tuple[T, float]:
    """Return the awaited result, and the seconds since its first step."""
    began = monotonic()
    return await result, monotonic() - began


FIRST_VERDICTS = 10  # of an evaluator, of which one has to be no error of its code


class FirstAnswers:
    """The first verdicts of each evaluator in a session: whether its code failed at all of them."""

    def __init__(self) -> None:
        self._failed = Counter[str]()
        self._working: set[str] = set()

    def note(self, evaluator: str, verdicts: Iterable[RecordedVerdict]) -> None:
        """Note verdicts of an evaluator. Raises EvaluatorError if its code failed at the first `FIRST_VERDICTS`."""
        if evaluator in self._working:
            return
        for verdict in verdicts:
            failure = verdict.failure
            if failure is None or failure.cause != "evaluator":
                self._working.add(evaluator)
                return
            self._failed[evaluator] += 1
            if self._failed[evaluator] == FIRST_VERDICTS:
                problem = (
                    f"failed at each of its first {FIRST_VERDICTS} verdicts, with {failure.kind}"
                )
                raise EvaluatorError(
                    f"evaluator {evaluator!r} {problem}: {failure.message}; mend its code"
                )


_MAX_SHARED = 512


class SharedParts(dict[Hashable, T]):
    """Parts that the plans of many tasks share, by what they are made from. When it is full, it begins anew."""

    def keep(self, key: Hashable, part: T) -> None:
        if len(self) >= _MAX_SHARED:
            self.clear()
        self[key] = part


@dataclass(frozen=True, repr=False)
class RunContext(Displayed):
    """The context of the graphs: evaluators, derivers and combiners by name, and the config.

    `clients` are those of the models: of the config's `model` under None, and of `models` by their names; `settings`
    are those of their calls, and `judges` the names under which providers know them. `secrets` are known in addition
    to those of the environment. Plain functions of evaluators and derivers run in `threads`. `first_answers` stops a
    run whose evaluator is broken; None for a dry run, whose replies mean nothing. The `listener` gets the events. Tasks
    that differ only in their texts share the `outlines` and `decisions` of their plans.
    """

    config: Config
    evaluators: Mapping[str, Evaluator]
    derivers: Mapping[str, Deriver]
    combiners: Mapping[str, Combiner]
    clients: "Mapping[str | None, JudgeClient]" = field(default_factory=dict)
    settings: Mapping[str | None, CallsConfig] = field(default_factory=dict)
    judges: tuple[str, ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)
    threads: CallThreads = field(default_factory=CallThreads)
    first_answers: FirstAnswers | None = field(
        default_factory=FirstAnswers, compare=False, repr=False
    )
    listener: Listener | None = field(default=None, compare=False, repr=False)
    outlines: SharedParts[SurveyOutline] = field(default_factory=SharedParts)
    decisions: SharedParts[Decision] = field(default_factory=SharedParts)

    def with_models(self, gateways: "Gateways", sink: CallSink | None = None) -> "RunContext":
        """Return the context of one graph run, whose clients send to the `gateways` and keep replies in `sink`."""
        if not gateways:
            return self
        from jurygraph.models.judge_client import (
            JudgeClient,
        )  # imported lazily: only needed with a model

        calls: dict[str, Call] = {}
        safety = self.config.safety
        key = project_key()
        clients = {
            name: JudgeClient(
                gateway,
                self.settings[name].parameters,
                safety,
                key,
                sink,
                calls,
                self.settings[name],
            )
            for name, gateway in gateways.items()
        }
        context = object.__new__(
            RunContext
        )  # a third of the time of `replace`, for each task of a batch
        context.__dict__.update(self.__dict__, clients=clients)
        return context

    def for_batch(
        self,
        count: int,
        gateways: "Gateways",
        sink: CallSink | None = None,
        listener: Listener | None = None,
    ) -> "BatchContext":
        """Return the contexts of a batch of groups or tasks, each with clients of its own."""
        context = self if listener is None else replace(self, listener=listener)
        return BatchContext([context.with_models(gateways, sink) for _ in range(count)])

    @property
    def judge_client(self) -> "JudgeClient | None":
        """Return the client of the config's `model`; None without one."""
        return self.clients.get(None)

    @property
    def calls(self) -> Mapping[str, Call]:
        """Return all calls of the graph run so far, by id."""
        return next((client.calls for client in self.clients.values()), {})

    @property
    def redactor(self) -> Redactor:
        """Return the redactor of the process for the current environment, which user code may have changed."""
        return process_redactor(self.secrets)


@dataclass(frozen=True, slots=True)
class BatchContext:
    """The contexts of a batch of groups or tasks: equal but for their clients, each with its deadline and calls."""

    groups: Sequence[RunContext]


class TaskPlanning(TypedDict, total=False):
    """The planning of one task. It has no field that could hold a response.

    `task` is the original task, and after its `profiles` were read the task with their constraints and tensions;
    `digest` is that of the original. `profiles_line` has the profiles of a PROFILES file. `rubric` is the task's
    rubric with its annotated graph, if it was annotated. In the end there is a `plan`, or an `error` if there is none.
    """

    task: Required[Task]
    profiles_line: Required[ProfilesLine | None]
    digest: Required[str]
    profiles: Profiles | None
    rubric: Rubric
    weights: dict[str, float]
    difficulty: dict[str, Any]
    plan: Plan
    error: Exception


class PrepareState(TypedDict):
    tasks: Sequence[TaskPlanning]


class AnnotateInput(TypedDict, total=False):
    """The input of the annotate graph: a task, and its rubric as reviewed by a person."""

    task: Task
    reviewed: Rubric | None


class AnnotateState(AnnotateInput, total=False):
    """The annotate graph's state. It has no field that could hold a response."""

    known_graph: KnownGraph
    assigned_roles: CheckedRoles
    roles: dict[str, Role]
    candidates: int
    requested_pairs: tuple[CriterionPair, ...]
    batches: list[Batch]
    source: EdgeSource | None
    proposed: list[Edge]
    rejected: list[RejectedEdge]
    unanswered: list[UnansweredPair]
    rubric: Rubric


class AnnotateOutput(TypedDict):
    rubric: Rubric


class PlannedGroup(NamedTuple):
    """A task's plan, and its whole group of responses: as submitted, and in canonical order without their metadata.

    Evaluators are shown the latter; agents and labels come back with the traces.
    """

    plan: Plan
    submitted: Sequence[Response]
    responses: tuple[Response, ...]
    reused_results: ReusedResults


Outcome = list[Trace] | BaseException
"""A group's traces, or the error because of which it has none."""


class ScoreState(TypedDict, total=False):
    """The score graph's state: its present turn. All else about the groups, named by numbers, lies in the context.

    `work` has the work of the groups that the branches take up, and `complete` the groups that `decide` lets out.
    """

    turn: int
    work: Mapping[int, WaveWork]
    complete: tuple[int, ...]


TASK_HINT = 'write jg.Task(id="a", query="…")'
_ITEM_HINT = "give a list of Groups, or of pairs (task, responses)"


@dataclass(frozen=True, slots=True, repr=False)
class Group(Displayed):
    """A task and all its responses, which are scored together. Without a plan, one is made.

    A response may be its text alone, or have no id: the third of task `a` is then `a/3`. A recorded group has a `step`
    of its task, and a `phase`, such as an evaluation: the third of `a` at step 7 is `a@7/3`, and `a@test:7/3` in phase
    `test`. Where each `rank` records apart, its name is `a@7#0/3`. Raises InputError for a wrong type.
    """

    task: Task
    responses: Sequence[Response]
    plan: Plan | None = None
    reused_results: ReusedResults = NO_REUSED_RESULTS
    step: int | None = None
    phase: str | None = None
    rank: str | None = None
    unnamed: frozenset[int] = field(default=frozenset(), init=False)
    """The positions of the responses whose ids come from the group."""

    def __post_init__(self) -> None:
        require_type("task", self.task, Task, TASK_HINT)
        if self.step is not None:
            object.__setattr__(self, "step", _read_step(self.step))
        require_type("phase", self.phase, str | None, "give a name, such as 'test', or none")
        if self.phase == "":
            raise InputError("phase: is empty; give a name, such as 'test', or none")
        require_type("plan", self.plan, Plan | None, "give one of jury.prepare(task), or none")
        require_type(
            "reused_results",
            self.reused_results,
            ReusedResults,
            "leave it out, or give ReusedResults",
        )
        if isinstance(self.responses, str) or not isinstance(self.responses, Sequence):
            require_type(
                "responses", self.responses, (), "give a list of Responses, or of their texts"
            )
        name = self.name
        responses: list[Response] = []
        unnamed: set[int] = set()
        for position, response in enumerate(self.responses):
            if isinstance(response, str):
                response = Response(id=f"{name}/{position + 1}", text=response)
                unnamed.add(position)
            require_type(
                f"responses[{position}]",
                response,
                Response,
                'write jg.Response(id="a", text="…"), or a text',
            )
            if not response.id:
                response = response.model_copy(update={"id": f"{name}/{position + 1}"})
                unnamed.add(position)
            responses.append(response)
        object.__setattr__(self, "responses", responses)
        object.__setattr__(self, "unnamed", frozenset(unnamed))

    @property
    def name(self) -> str:
        """The name of the group in messages and in ids of its responses: the task's id, with its phase and step."""
        return _group_name(self.task.id, self.phase, self.step, self.rank)

    def at(
        self, step: int, phase: str | None, rank: str | None, task: Task, plan: Plan | None
    ) -> "Group":
        """Return the group under the name of a step and a phase, with its completed task and the plan of that.

        The ids that come from its name are new.
        """
        name = _group_name(task.id, phase, step, rank)
        responses = [
            response.model_copy(update={"id": f"{name}/{position + 1}"})
            if position in self.unnamed
            else response
            for position, response in enumerate(self.responses)
        ]
        return Group(task, responses, plan, self.reused_results, step, phase, rank)

    def _repr_parts(self) -> Iterable[tuple[str, Any]]:
        return [("task", self.task.id), ("responses", self.responses)]


def _read_step(step: Any) -> int:
    """Return a step as an int, which a counter of NumPy or torch is not."""
    hint = "give a whole number from 0 on, or none"
    if isinstance(step, bool) or not hasattr(step, "__index__"):
        require_type("step", step, (), hint)
    number: int = operator.index(step)
    if number < 0:
        raise InputError(f"step: is {number}; {hint}")
    return number


def _group_name(task_id: str, phase: str | None, step: int | None, rank: str | None) -> str:
    parts = [str(part) for part in (phase, step) if part is not None]
    name = "@".join([task_id, ":".join(parts)] if parts else [task_id])
    return name if rank is None else f"{name}#{rank}"


def plan_group(group: Group, plan: Plan) -> PlannedGroup:
    return PlannedGroup(
        plan, group.responses, sort_responses(group.responses), group.reused_results
    )


GroupLike = Group | tuple[Task, Sequence[Response | str]]


def read_groups(argument: str, items: Any) -> Iterator[Group]:
    """Return an argument's Groups and pairs as groups. Raises InputError with the place of a wrong one."""
    require_type(argument, items, Iterable, _ITEM_HINT)
    return (_read_group(f"{argument}[{place}]", item) for place, item in enumerate(items))


def _read_group(where: str, item: Any) -> Group:
    if isinstance(item, Group):
        return item
    require_type(where, item, tuple, _ITEM_HINT)
    if len(item) != 2:
        raise InputError(f"{where}: has {len(item)} entries; {_ITEM_HINT}")
    try:
        return Group(*item)
    except InputError as error:
        raise InputError(f"{where}.{error}") from None


def split_into_batches(
    items: Iterable[T], count: Callable[[T], int], size: int
) -> Iterator[list[T]]:
    """Yield the items in lists whose counts sum up to this size or just above; the last list may have less."""
    batch: list[T] = []
    filled = 0
    for item in items:
        batch.append(item)
        filled += count(item)
        if filled >= size:
            yield batch
            batch = []
            filled = 0
    if batch:
        yield batch
