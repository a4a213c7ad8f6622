"""The content of a picture of a rubric graph, independent of its format: criteria, edges, their labels and scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from jurygraph.aggregation import gear
from jurygraph.decision.recipe import RUBRIC
from jurygraph.decision.table import OK, STOPPED, has_score, lacks_score
from jurygraph.errors import InputError
from jurygraph.runs.integrity.recomputation import group_table
from jurygraph.runs.run import Run
from jurygraph.schema import ComponentSpec, Criterion, Decision, Edge, Rubric, Task, Trace


@dataclass(frozen=True, slots=True)
class Score:
    """The scores of a criterion for one response, in [0, 1]: p (`judged_score`), and the rest of it, q (`remaining`).

    `missing` describes the missing part of its judgement, such as "unjudged"; `reason` is the judges' reason. If it is
    not `judged` at all, `judged_score` is the value that it counts as by the run's rule.
    """

    judged_score: float
    remaining: float
    missing: str = ""
    reason: str = ""
    judged: bool = True

    @property
    def suppressed(self) -> bool:
        """True if a prerequisite reduced it."""
        return self.remaining < self.judged_score


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of one response by criterion, and the effect of edges.

    `aggregation` is the run's; `retention` is λ by (parent, child) if that is `gear`. If `failed`, it has no reward.
    """

    response: str
    aggregation: str
    kappa: float
    criteria: Mapping[str, Score]
    retention: Mapping[tuple[str, str], float]
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A criterion, its role from the rubric or an annotator, and its score if the picture is of a response."""

    criterion: Criterion
    role: str | None
    score: Score | None

    @property
    def penalty(self) -> bool:
        """True if the weight is negative."""
        return self.criterion.weight < 0

    @property
    def suppressed(self) -> bool:
        """True if a prerequisite reduced its score."""
        return self.score is not None and self.score.suppressed

    @property
    def missing(self) -> str:
        """Return the missing part of its judgement; "" if nothing is missing."""
        return "" if self.score is None else self.score.missing

    @property
    def role_and_weight(self) -> str:
        """Return its role, if it has one, and its signed weight."""
        weight = self.criterion.weight
        text = f"weight {'+' * (weight > 0)}{_format_exact(weight)}".replace("-", "−")
        return f"{self.role}, {text}" if self.role else text

    @property
    def results(self) -> list[str]:
        """Return lines with p → q and each mark on it; none without a response."""
        if self.score is None:
            return []
        marks = ["▼ suppressed"] * self.suppressed + [f"? {self.missing}"] * bool(self.missing)
        return [_describe_scores(self.score), *marks]


@dataclass(frozen=True, slots=True)
class Link:
    """An edge between two nodes, referenced by their places; `label` contains its kind and its retention.

    If it `closes_cycle`, its child is above its parent.
    """

    parent: int
    child: int
    edge: Edge
    label: str
    closes_cycle: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """The content of a picture of a rubric, or of the `scores` of one response on it.

    Nodes and links are in the rubric's order; in `order`, parents precede children, but for links that close a cycle.
    """

    title: str
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    order: tuple[int, ...]
    scores: Scores | None

    @property
    def summary(self) -> str:
        """Return a summary of one or two sentences."""
        closing = [f"{link.edge.parent} → {link.edge.child}" for link in self.links if link.closes_cycle]
        text = f"{len(self.nodes)} criteria and {len(self.links)} edges; parents stand above what needs them"
        text += f", but for {', '.join(closing)}." if closing else "."
        if self.scores is None:
            return text
        suppressed = ", ".join(node.criterion.id for node in self.nodes if node.suppressed) or "none"
        return f"{text} Suppressed: {suppressed}."


def build_picture(task: str, rubric: Rubric, scores: Scores | None = None) -> Picture:
    """Return the picture of a task's rubric, with the `scores` of a response if they are given.

    With scores, edges may form a cycle, as in a run that does not use them; without, this raises `GraphCycleError`.
    """
    names = [criterion.id for criterion in rubric.criteria]
    place = {name: index for index, name in enumerate(names)}
    ends = [(place[edge.parent], place[edge.child]) for edge in rubric.edges]
    closing = set() if scores is None else _closing_edges(len(names), ends)
    parents, children = ([pair[end] for pair in ends if pair not in closing] for end in (0, 1))
    order = gear.compile(len(names), parents, children, names).order
    title = f"Rubric of task {task}"
    if scores is not None:
        strength = f", κ = {_format_exact(scores.kappa)}" if scores.aggregation == "gear" else ""
        failed = "; its reward failed" if scores.failed else ""
        title += f", response {scores.response} ({scores.aggregation}{strength}{failed})"
    annotated_roles = {} if rubric.annotation is None else rubric.annotation.roles
    return Picture(
        title=title,
        nodes=tuple(
            Node(c, c.role or annotated_roles.get(c.id), None if scores is None else scores.criteria[c.id])
            for c in rubric.criteria
        ),
        links=tuple(
            Link(*pair, edge, _label(edge, scores), closes_cycle=pair in closing)
            for pair, edge in zip(ends, rubric.edges, strict=True)
        ),
        order=order,
        scores=scores,
    )


def _closing_edges(n: int, ends: list[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the edges that close a cycle in a depth-first search that begins with the first node."""
    children: list[list[int]] = [[] for _ in range(n)]
    for parent, child in ends:
        children[parent].append(child)
    remaining = [iter(sorted(nodes)) for nodes in children]
    is_visited, is_on_path = [False] * n, [False] * n
    closing: set[tuple[int, int]] = set()
    for start in range(n):
        path = [] if is_visited[start] else [start]
        while path:
            node = path[-1]
            is_visited[node] = is_on_path[node] = True
            following = next(remaining[node], None)
            if following is None:
                is_on_path[path.pop()] = False
            elif is_on_path[following]:
                closing.add((node, following))
            elif not is_visited[following]:
                path.append(following)
    return closing


def _label(edge: Edge, scores: Scores | None) -> str:
    if scores is None:
        retention: dict[str, float] = {} if edge.retention is None else {edge.kind: edge.retention}
        return f"{edge.kind} {_format_share(float(gear.retention([edge.kind], base=retention)[0]))}"
    if scores.aggregation == "gear":
        return f"{edge.kind} {_format_share(scores.retention[edge.parent, edge.child])}"
    return f"{edge.kind}, {'not used' if scores.aggregation == 'flat' else 'gate'}"


def _format_share(share: float) -> str:
    """Return a share of 1 with two digits, without the 0 before the point."""
    return f"{share:.2g}".replace("0.", ".", 1)


def _format_exact(value: float) -> str:
    return str(value).removesuffix(".0")


def _describe_scores(score: Score) -> str:
    """Return p → q with two digits, or with more if they would look equal; p has no number if it was not judged."""
    for digits in (2, 4):
        local, left = f"{score.judged_score:.{digits}f}", f"{score.remaining:.{digits}f}"
        if (local == left) is not score.suppressed:
            break
    return f"p {local if score.judged else f'– (counts {local})'} → q {left}"


def scores_of(run: Run, response: str) -> tuple[Task, Scores]:
    """Return the task of a response, with its planned rubric, and the scores under the run's own aggregation.

    p is the score from the verdicts, filled by the run's rule if there is none; q is the value from which the reward
    was computed. Raises `InputError` if there is no such response, its task was erased or has no rubric, or the run
    computed no component from the rubric.
    """
    trace = run.find_trace(response)
    task = run.planned_task(trace.task_id)
    if task is None:
        raise InputError(f"{run.folder}: the texts of task {trace.task_id!r} were erased, its rubric with them")
    if task.rubric is None:
        raise InputError(f"{run.folder}: task {task.id!r} has no rubric to draw; name a response to one that has")
    decision, criteria = run.decision_of(task.id), {criterion.id for criterion in task.rubric.criteria}
    spec = next((one for one in decision.specs if one.name == RUBRIC and set(one.inputs) == criteria), None)
    if spec is None:
        problem = f"made no component {RUBRIC!r} of the criteria of task {task.id!r}, so there are no scores to draw"
        raise InputError(f"{run.folder}: {problem}; draw the graph alone with --task")
    names, params = list(spec.inputs), cast(Mapping[str, list[Any]], spec.params)
    edges = zip(params["parents"], params["children"], params["retention"], strict=True)  # by places of the criteria
    return task, Scores(
        response=response,
        aggregation=spec.combiner,
        kappa=run.config.rubric.kappa,
        criteria=_criterion_scores(run, trace, decision, spec),
        retention={(names[parent], names[child]): retention for parent, child, retention in edges},
        failed=trace.reward.status == "failed",
    )


def _criterion_scores(run: Run, trace: Trace, decision: Decision, spec: ComponentSpec) -> dict[str, Score]:
    group = [member.trace for member in run.group_of(trace.task_id)]
    row = sorted(member.response_id for member in group).index(trace.response_id)
    table = group_table(run, trace.task_id, group)
    scores = {}
    for name, entry in spec.inputs.items():
        matrix = table.score_matrix(entry, decision.rule, spec.direction, "counted")
        p, _ = matrix.mean()
        outcome = table.outcomes(entry)[0][row]
        reasons = [one.reason for question in entry.questions for one in trace.verdicts if one.question == question]
        scores[name] = Score(
            judged_score=float(p[row]),
            remaining=trace.reward.parts[spec.name].get(name, 0.0),
            missing=_describe_missing(outcome, bool(matrix.applicable[row].any())),
            reason="; ".join(dict.fromkeys(filter(None, reasons))),
            judged=bool((outcome == OK).any()),
        )
    return scores


def _describe_missing(outcome: NDArray[np.int8], is_counted: bool) -> str:
    """Return the missing part of a criterion's judgement, from the outcome of each question and sample."""
    if not is_counted:
        return "does not count"
    if (outcome == STOPPED).any():
        return "stopped by a gate"
    if lacks_score(outcome).any():
        return "partly judged" if has_score(outcome).any() else "unjudged"
    return "" if has_score(outcome).any() else "not asked"
