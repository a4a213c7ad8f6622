"""Rubric graphs as Mermaid flowcharts, alone or with the scores of a response.

Texts are untrusted: they are quoted, with all Mermaid syntax encoded.
"""

import textwrap
from collections.abc import Iterable, Iterator, Mapping
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
from jurygraph.safety.text_folding import escape_hidden
from jurygraph.schema import ComponentSpec, Criterion, Decision, Edge, Rubric, Task, Trace

_LINE_LENGTH = 24
_MAX_LINES = 4
"""Letters in a line of a label, and maximum number of lines: Mermaid breaks lines by itself from 200 pixels."""
_ARROWS = {"weak": "-.->", "strong": "==>", "activation": "--o"}
_SAFE = frozenset(" ,.-()")
_REPLACEMENTS = str.maketrans({"ﬂ": "fl", **{letter: letter + "\u2060" for letter in "¶$:\\"}})
"""Replacements for characters that Mermaid interprets even if they are encoded: its own marks for codes, formulas
between "$$", "fa:fa-car", and a backslash before "n" as a line break. A word joiner separates them."""
_CLASSES = (
    ("penalty", "stroke:#8a1c2b", "k4"),
    ("suppressed", "fill:#fff0c2,stroke-width:4px", "k6"),
    ("missing", "stroke-dasharray:5 5", "k7"),
)
"""Property of nodes that have a class, its style, and the sample in the legend."""


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
    """An edge between two nodes, referenced by their places; `label` contains its kind and its retention."""

    parent: int
    child: int
    edge: Edge
    label: str


@dataclass(frozen=True, slots=True)
class RubricDrawing:
    """The content of a drawing of a rubric, or of the `scores` of one response on it, in the rubric's order."""

    title: str
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    scores: Scores | None


def arrange_rubric(task: str, rubric: Rubric, scores: Scores | None = None) -> RubricDrawing:
    """Return the drawing of a task's rubric, with the `scores` of a response if they are given.

    With scores, edges may form a cycle, as in a run that does not use them; without, this raises `GraphCycleError`.
    """
    names = [criterion.id for criterion in rubric.criteria]
    place = {name: index for index, name in enumerate(names)}
    parents = [place[edge.parent] for edge in rubric.edges]
    children = [place[edge.child] for edge in rubric.edges]
    title = f"Rubric of task {task}"
    if scores is None:
        gear.compile(len(names), parents, children, names)  # refuses a cycle
    else:
        strength = f", κ = {_format_exact(scores.kappa)}" if scores.aggregation == "gear" else ""
        failed = "; its reward failed" if scores.failed else ""
        title += f", response {scores.response} ({scores.aggregation}{strength}{failed})"
    annotated_roles = {} if rubric.annotation is None else rubric.annotation.roles
    return RubricDrawing(
        title=title,
        nodes=tuple(
            Node(c, c.role or annotated_roles.get(c.id), None if scores is None else scores.criteria[c.id])
            for c in rubric.criteria
        ),
        links=tuple(
            Link(parent, child, edge, _edge_label(edge, scores))
            for parent, child, edge in zip(parents, children, rubric.edges, strict=True)
        ),
        scores=scores,
    )


def _edge_label(edge: Edge, scores: Scores | None) -> str:
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
        local = f"{score.judged_score:.{digits}f}"
        left = f"{score.remaining:.{digits}f}"
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
    decision = run.decision_of(task.id)
    criteria = {criterion.id for criterion in task.rubric.criteria}
    spec = next((one for one in decision.specs if one.name == RUBRIC and set(one.inputs) == criteria), None)
    if spec is None:
        problem = f"made no component {RUBRIC!r} of the criteria of task {task.id!r}, so there are no scores to draw"
        raise InputError(f"{run.folder}: {problem}; draw the graph alone with --task")
    names = list(spec.inputs)
    params = cast(Mapping[str, list[Any]], spec.params)
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


def to_mermaid(drawing: RubricDrawing) -> str:
    """Return the flowchart. Nodes are named n1, n2, … in the rubric's order; the same drawing gives the same text."""
    return "\n".join(["flowchart TD", *_graph(drawing), *_legend(drawing), *_classes(drawing), ""])


def _graph(drawing: RubricDrawing) -> Iterator[str]:
    yield f'  subgraph rubric["{_label(_wrap(drawing.title, 3 * _LINE_LENGTH, 2))}"]'
    yield "    direction TB"
    for number, node in enumerate(drawing.nodes, start=1):
        name = f"<b>{_label(_wrap(node.criterion.id, _LINE_LENGTH, 2))}</b>"
        text = _label([node.role_and_weight, *_wrap(node.criterion.text, _LINE_LENGTH, _MAX_LINES)])
        results = (f"<b>{_encode(line)}</b>" for line in node.results)
        yield f"    n{number}{_box(node.penalty, '<br/>'.join([name, text, *results]))}"
    for link in drawing.links:
        yield f'    n{link.parent + 1} {_ARROWS[link.edge.kind]}|"{_encode(link.label)}"| n{link.child + 1}'
    yield "  end"


def _wrap(text: str, length: int, most: int) -> list[str]:
    """Return the text in at most `most` lines; "…" replaces the rest, and escapes replace what is invisible."""
    return textwrap.wrap(escape_hidden(" ".join(text.split())), length, max_lines=most, placeholder="…") or [""]


def _label(lines: Iterable[str]) -> str:
    return "<br/>".join(map(_encode, lines))


def _encode(text: str) -> str:
    """Return the text with all characters except letters, digits and safe punctuation replaced by their codes."""
    text = text.translate(_REPLACEMENTS)
    return "".join(c if c.isalnum() or c in _SAFE else f"#{ord(c)};" for c in text)


def _box(penalty: bool, label: str) -> str:
    return f'{{{{"{label}"}}}}' if penalty else f'["{label}"]'


def _legend(drawing: RubricDrawing) -> Iterator[str]:
    yield '  subgraph legend["How to read it"]'
    yield "    direction TB"
    yield from (f"    k{number}{_box(False, 'criterion')}" for number in (1, 2, 3))
    yield f"    k4{_box(True, 'penalty')}"
    yield from (f'    k{at} {arrow}|"{kind}"| k{at + 1}' for at, (kind, arrow) in enumerate(_ARROWS.items(), start=1))
    if drawing.scores is not None:
        yield f"    k5{_box(False, 'p as judged → q left of it')}"
        yield f"    k6{_box(False, '▼ suppressed, q below p')}"
        yield f"    k7{_box(False, '? not or not wholly judged')}"
    yield "  end"


def _classes(drawing: RubricDrawing) -> Iterator[str]:
    for name, style, sample in _CLASSES if drawing.scores is not None else _CLASSES[:1]:
        marked = [f"n{number}" for number, node in enumerate(drawing.nodes, start=1) if getattr(node, name)]
        yield f"  classDef {name} {style}"
        yield f"  class {','.join([sample, *marked])} {name}"
