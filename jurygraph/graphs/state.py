"""What flows through the graphs, and what they run with."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from jurygraph.agents.graph_annotator.answers import CheckedRoles
from jurygraph.agents.graph_annotator.candidates import Pair
from jurygraph.agents.graph_annotator.standing import Standing
from jurygraph.agents.graph_annotator.voting import Batch, Source
from jurygraph.agents.roles import Combiner, Deriver, Evaluator
from jurygraph.graphs.routing import Recalled, Work
from jurygraph.safety.known_secrets import process_redactor
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import (
    Config,
    Decision,
    Edge,
    Material,
    Plan,
    RejectedEdge,
    Response,
    Reward,
    Rubric,
    Seat,
    Survey,
    Task,
    TaskView,
    Trace,
    Unanswered,
    Verdict,
)
from jurygraph.schema.profile import Profiles, ProfilesLine
from jurygraph.schema.rubric import Role

if TYPE_CHECKING:
    from jurygraph.models.consultation import Consultation


@dataclass(frozen=True, slots=True)
class Roster:
    """Who can be asked, and the config that says how their answers count: the context of both graphs.

    `gateway` leads to the model, where there is one. `secrets` are known beside those of the environment.
    """

    config: Config
    evaluators: Mapping[str, Evaluator]
    derivers: Mapping[str, Deriver]
    combiners: Mapping[str, Combiner]
    gateway: "Consultation | None" = None
    secrets: tuple[str, ...] = ()

    @property
    def redactor(self) -> Redactor:
        """The redactor of the process, with the environment as it is now: user code may add to it."""
        return process_redactor(self.secrets)

    @property
    def seats(self) -> dict[str, Seat]:
        """What is to be remembered of each evaluator, by its name."""
        return {name: evaluator.seat for name, evaluator in self.evaluators.items()}


class PrepareState(TypedDict, total=False):
    """The prepare graph's state. There is no field in which a response could lie.

    `task` is the one given, and once its `profiles` are read the one with these; `digest` is of the one given. `stated`
    is what somebody wrote down of its profiles. `rubric` is the task's with its graph, where that was annotated.
    """

    task: Task
    stated: ProfilesLine | None
    digest: str
    profiles: Profiles | None
    rubric: Rubric | None
    views: tuple[TaskView, ...]
    weights: dict[str, float]
    difficulty: dict[str, Any]
    survey: Survey
    decision: Decision
    plan: Plan


class PrepareOutput(TypedDict):
    """What a run of the prepare graph returns."""

    plan: Plan


class AnnotateInput(TypedDict, total=False):
    """What a run of the annotate graph is given: a task, and its rubric as a person reviewed it."""

    task: Task
    reviewed: Rubric | None


class AnnotateState(AnnotateInput, total=False):
    """The annotate graph's state. There is no field in which a response could lie."""

    standing: Standing
    given: CheckedRoles
    roles: dict[str, Role]
    candidates: int
    asked: tuple[Pair, ...]
    batches: list[Batch]
    source: Source | None
    proposed: list[Edge]
    rejected: list[RejectedEdge]
    unanswered: list[Unanswered]
    rubric: Rubric


class AnnotateOutput(TypedDict):
    """What a run of the annotate graph returns: the rubric with its graph."""

    rubric: Rubric


class ScoreState(TypedDict, total=False):
    """The score graph's state: one plan and its whole group of responses, in canonical order."""

    plan: Plan
    responses: tuple[Response, ...]
    wave: int
    work: Work
    material: Annotated[list[Material], operator.add]
    verdicts: Annotated[list[Verdict], operator.add]
    recalled: Recalled
    statistics: dict[str, Any]
    rewards: tuple[Reward, ...]
    traces: tuple[Trace, ...]


class ScoreOutput(TypedDict):
    """What a run of the score graph returns."""

    traces: tuple[Trace, ...]
