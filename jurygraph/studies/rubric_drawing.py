"""Rubric graphs as Mermaid flowcharts, alone or with the scores of a response.

Texts are untrusted: they are quoted, with all Mermaid syntax encoded.
"""

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from jurygraph.aggregation import gear
from jurygraph.decision.recipe import RUBRIC
from jurygraph.decision.table import OK, lacks_score
from jurygraph.errors import InputError
from jurygraph.messages import escape_hidden
from jurygraph.runs.integrity.recomputation import group_table
from jurygraph.runs.run import Run
from jurygraph.schema import ComponentSpec, Criterion, Decision, Edge, Rubric, Task, Trace

_LINE_LENGTH = 24
_MAX_LINES = 4
"""Letters in a line of a label, and maximum number of lines: Mermaid breaks lines by itself from 200 pixels."""
_ARROWS = {"weak": "-.->", "strong": "==>", "activation": "--o"}
_SAFE = frozenset(" ,.-()")
_UNJUDGED = "unjudged"
_REPLACEMENTS = str.maketrans({"ﬂ": "fl", **{letter: letter + "\u2060" for letter in "¶$:\\"}})
"""Replacements for characters that Mermaid interprets even if they are encoded: its own marks for codes, formulas
between "$$", "fa:fa-car", and a backslash before "n" as a line break. A word joiner separates them."""
_CLASSES = {
    "penalty": "stroke:#8a1c2b",
    "suppressed": "fill:#fff0c2,stroke-width:4px",
    "missing": "stroke-dasharray:5 5",
}
"""Classes of nodes, with their style."""


@dataclass(frozen=True, slots=True)
class Score:
    """The scores of a criterion for one response, in [0, 1]: p (`judged_score`), and the rest of it, q (`remaining`).

    `missing` is "unjudged" or "partly judged" if its judgement is. Without one, `judged_score` is the value that it
    counts as by the run's rule.
    """

    judged_score: float
    remaining: float
    missing: str = ""

    @property
    def suppressed(self) -> bool:
        """True if a prerequisite reduced it."""
        return self.remaining < self.judged_score

    def lines(self) -> list[str]:
        """Return p → q with two digits, or with four if they would look equal, and each mark on it."""
        digits = 4 if self.suppressed and f"{self.judged_score:.2f}" == f"{self.remaining:.2f}" else 2
        local = f"{self.judged_score:.{digits}f}"
        marks = ["▼ suppressed"] * self.suppressed + [f"? {self.missing}"] * bool(self.missing)
        shown = f"– (counts {local})" if self.missing == _UNJUDGED else local
        return [f"p {shown} → q {self.remaining:.{digits}f}", *marks]


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
        p, _ = table.score_matrix(entry, decision.rule, spec.direction, "counted").mean()
        outcome = table.outcomes(entry)[0][row]
        missing = _UNJUDGED if not (outcome == OK).any() else "partly judged" if lacks_score(outcome).any() else ""
        scores[name] = Score(float(p[row]), trace.reward.parts[spec.name].get(name, 0.0), missing)
    return scores


def to_mermaid(task: str, rubric: Rubric, scores: Scores | None = None) -> str:
    """Return the flowchart of a task's rubric, with the `scores` of a response if they are given.

    Nodes are named n1, n2, … in the rubric's order; the same rubric and scores give the same text. With scores, edges
    may form a cycle, as in a run that does not use them; without, this raises `GraphCycleError`.
    """
    number = {criterion.id: place for place, criterion in enumerate(rubric.criteria, start=1)}
    title = f"Rubric of task {task}"
    if scores is None:
        parents = [number[edge.parent] - 1 for edge in rubric.edges]
        children = [number[edge.child] - 1 for edge in rubric.edges]
        gear.compile(len(number), parents, children, list(number))  # refuses a cycle
    else:
        strength = f", κ = {_format_exact(scores.kappa)}" if scores.aggregation == "gear" else ""
        failed = "; its reward failed" if scores.failed else ""
        title += f", response {scores.response} ({scores.aggregation}{strength}{failed})"
    lines = ["flowchart TD", f'  subgraph rubric["{_label(_wrap(title, 3 * _LINE_LENGTH, 2))}"]', "    direction TB"]
    annotated_roles = {} if rubric.annotation is None else rubric.annotation.roles
    for criterion in rubric.criteria:
        role = criterion.role or annotated_roles.get(criterion.id)
        lines.append(f"    n{number[criterion.id]}{_node(criterion, role, scores)}")
    for edge in rubric.edges:
        arrow = f'{_ARROWS[edge.kind]}|"{_encode(_edge_label(edge, scores))}"|'
        lines.append(f"    n{number[edge.parent]} {arrow} n{number[edge.child]}")
    lines.append("  end")
    for name, style in _CLASSES.items():
        marked = [f"n{number[one.id]}" for one in rubric.criteria if _is_marked(name, one, scores)]
        if marked:
            lines += [f"  classDef {name} {style}", f"  class {','.join(marked)} {name}"]
    return "\n".join([*lines, ""])


def _node(criterion: Criterion, role: str | None, scores: Scores | None) -> str:
    name = f"<b>{_label(_wrap(criterion.id, _LINE_LENGTH, 2))}</b>"
    sign = "+" * (criterion.weight > 0)
    weight = f"weight {sign}{_format_exact(criterion.weight)}".replace("-", "−")
    text = [f"{role}, {weight}" if role else weight, *_wrap(criterion.text, _LINE_LENGTH, _MAX_LINES)]
    results = [] if scores is None else scores.criteria[criterion.id].lines()
    label = "<br/>".join([name, _label(text), *(f"<b>{_encode(one)}</b>" for one in results)])
    return f'{{{{"{label}"}}}}' if criterion.weight < 0 else f'["{label}"]'


def _edge_label(edge: Edge, scores: Scores | None) -> str:
    if scores is not None and scores.aggregation != "gear":
        return f"{edge.kind}, {'not used' if scores.aggregation == 'flat' else 'gate'}"
    share = gear.BASE_RETENTION[edge.kind] if edge.retention is None else edge.retention
    if scores is not None:
        share = scores.retention[edge.parent, edge.child]
    return f"{edge.kind} {share:.2g}".replace(" 0.", " .", 1)


def _is_marked(name: str, criterion: Criterion, scores: Scores | None) -> bool:
    if name == "penalty":
        return criterion.weight < 0
    if scores is None:
        return False
    score = scores.criteria[criterion.id]
    return score.suppressed if name == "suppressed" else bool(score.missing)


def _format_exact(value: float) -> str:
    return str(value).removesuffix(".0")


def _wrap(text: str, length: int, most: int) -> list[str]:
    """Return the text in at most `most` lines; "…" replaces the rest, and escapes replace what is invisible."""
    return textwrap.wrap(escape_hidden(" ".join(text.split())), length, max_lines=most, placeholder="…") or [""]


def _label(lines: Iterable[str]) -> str:
    return "<br/>".join(map(_encode, lines))


def _encode(text: str) -> str:
    text = text.translate(_REPLACEMENTS)
    return "".join(c if c.isalnum() or c in _SAFE else f"#{ord(c)};" for c in text)
