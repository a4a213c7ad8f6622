"""The states of the graphs. Those of `prepare` and `annotate` have no field that could hold a response."""

from collections.abc import Mapping, Sequence
from typing import Required, TypedDict

from jurygraph.agents.graph_annotator import (
    CheckedRoles,
    CriterionPair,
    EdgeProvenance,
    KnownGraph,
    PairBatchAnswers,
)
from jurygraph.graphs.routing import WaveWork
from jurygraph.schema import (
    Edge,
    Plan,
    RejectedEdge,
    Rubric,
    Task,
    UnansweredPair,
)
from jurygraph.schema.frozen_model import JsonFields
from jurygraph.schema.task import CriterionRole, Profiles, ProfilesLine


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
    difficulty: JsonFields
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
    roles: dict[str, CriterionRole]
    candidates: int
    requested_pairs: tuple[CriterionPair, ...]
    batches: list[PairBatchAnswers]
    source: EdgeProvenance | None
    proposed: list[Edge]
    rejected: list[RejectedEdge]
    unanswered: list[UnansweredPair]
    rubric: Rubric


class AnnotateOutput(TypedDict):
    rubric: Rubric


class ScoreState(TypedDict, total=False):
    """The score graph's state: its present turn. All else about the groups, named by numbers, lies in the context.

    `work` has the work of the groups that the branches take up, and `complete` the groups that `decide` lets out.
    """

    turn: int
    work: Mapping[int, WaveWork]
    complete: tuple[int, ...]
