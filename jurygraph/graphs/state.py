"""The states of the graphs, and the context in which they run."""

import operator
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Required, TypedDict, TypeVar

from jurygraph.agents.graph_annotator.graph import Batch, EdgeSource, KnownGraph
from jurygraph.agents.graph_annotator.validation import CheckedRoles, CriterionPair
from jurygraph.agents.roles import Deriver, Evaluator
from jurygraph.decision.combiner import Combiner
from jurygraph.display import Displayed
from jurygraph.graphs.first_answers import FirstAnswers
from jurygraph.graphs.routing import ReusedResults, WaveWork
from jurygraph.graphs.time_limits import CallThreads
from jurygraph.safety.fence import project_key
from jurygraph.safety.redaction import Redactor, process_redactor
from jurygraph.schema import (
    Call,
    Config,
    Decision,
    Edge,
    EvaluatorRecord,
    Material,
    Plan,
    RecordedVerdict,
    RejectedEdge,
    Response,
    Rubric,
    Survey,
    SurveyOutline,
    Task,
    Trace,
    UnansweredPair,
)
from jurygraph.schema.profile import Profiles, ProfilesLine
from jurygraph.schema.rubric import Role

T = TypeVar("T")

if TYPE_CHECKING:
    from jurygraph.models.gateway import Gateways
    from jurygraph.models.judge_client import JudgeClient
    from jurygraph.models.request import CallSink


_MAX_SHARED = 512


class SharedParts(dict[Hashable, T]):
    """Parts that the plans of many tasks share, by what they are made from. When it is full, it begins anew."""

    def keep(self, key: Hashable, part: T) -> None:
        """Keep a part for later tasks."""
        if len(self) >= _MAX_SHARED:
            self.clear()
        self[key] = part


@dataclass(frozen=True, repr=False)
class RunContext(Displayed):
    """The context of the graphs: evaluators, derivers and combiners by name, and the config.

    `clients` are those of the models: of the config's `model` under None, and of `models` by their names; `judges` are
    the names under which providers know them. `secrets` are known in addition to those of the environment. Plain
    functions of evaluators and derivers run in `threads`. `first_answers` stops a run whose evaluator is broken; None
    for a dry run, whose replies mean nothing. Tasks that differ only in their texts share the `outlines` and
    `decisions` of their plans.
    """

    config: Config
    evaluators: Mapping[str, Evaluator]
    derivers: Mapping[str, Deriver]
    combiners: Mapping[str, Combiner]
    clients: "Mapping[str | None, JudgeClient]" = field(default_factory=dict)
    judges: tuple[str, ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)
    threads: CallThreads = field(default_factory=CallThreads)
    first_answers: FirstAnswers | None = field(default_factory=FirstAnswers, compare=False, repr=False)
    outlines: SharedParts[SurveyOutline] = field(default_factory=SharedParts)
    decisions: SharedParts[Decision] = field(default_factory=SharedParts)

    def with_models(self, gateways: "Gateways", sink: "CallSink | None" = None) -> "RunContext":
        """Return the context of one graph run, whose clients send to the `gateways` and keep replies in `sink`."""
        if not gateways:
            return self
        from jurygraph.models.judge_client import JudgeClient  # imported lazily: only needed with a model

        calls: dict[str, Call] = {}
        config = self.config
        key = project_key()
        clients = {
            name: JudgeClient(gateway, config.calls_of(name).parameters, config.safety, key, sink, calls)
            for name, gateway in gateways.items()
        }
        context = object.__new__(RunContext)  # a third of the time of `replace`, for each task of a batch
        context.__dict__.update(self.__dict__, clients=clients)
        return context

    def for_batch(self, count: int, gateways: "Gateways", sink: "CallSink | None" = None) -> "BatchContext":
        """Return the contexts of a batch of groups or tasks, each with clients of its own."""
        return BatchContext([self.with_models(gateways, sink) for _ in range(count)])

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

    @property
    def evaluator_records(self) -> dict[str, EvaluatorRecord]:
        """Return the record of each evaluator that a run stores, by name."""
        return {name: evaluator.record for name, evaluator in self.evaluators.items()}


@dataclass(frozen=True, slots=True)
class BatchContext:
    """The contexts of the groups of one graph run: equal but for their clients, each with its deadline and calls."""

    groups: Sequence[RunContext]

    @property
    def redactor(self) -> Redactor:
        """Return the redactor of the process for the current environment, which is the same for all groups."""
        return self.groups[0].redactor


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
    survey: Survey
    decision: Decision
    plan: Plan
    error: Exception


class PrepareState(TypedDict):
    """The prepare graph's state: a batch of tasks."""

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
    """The output of the annotate graph: the rubric with its graph."""

    rubric: Rubric


class PlannedGroup(NamedTuple):
    """A task's plan, and its whole group of responses: as submitted, and in canonical order without their metadata.

    Evaluators are shown the latter; agents and labels come back with the traces.
    """

    plan: Plan
    submitted: Sequence[Response]
    responses: tuple[Response, ...]
    reused_results: ReusedResults


def extend_each(lists: Sequence[Sequence[T]], others: Sequence[Sequence[T]]) -> Sequence[Sequence[T]]:
    """Extend each list by the other one in its place; none at all are as many empty ones."""
    if not lists:
        return others
    return [[*one, *other] if other else one for one, other in zip(lists, others, strict=True)]


class ScoreState(TypedDict, total=False):
    """The score graph's state: a batch of groups. The other sequences have one entry for each group.

    `errors` are those of groups that cannot be scored, by their place; the others go on.
    """

    groups: Sequence[PlannedGroup]
    waves: Sequence[int]
    work: Sequence[WaveWork]
    material: Annotated[Sequence[Sequence[Material]], extend_each]
    verdicts: Annotated[Sequence[Sequence[RecordedVerdict]], extend_each]
    errors: Annotated[dict[int, BaseException], operator.or_]
    outcomes: list[list[Trace] | BaseException]


class ScoreOutput(TypedDict):
    """The output of the score graph: each group's traces, or its error."""

    outcomes: list[list[Trace] | BaseException]
